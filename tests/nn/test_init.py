"""jaxgrad.nn.init, the first values of layers, and jaxgrad.nn.utils."""

import math

import numpy
import pytest
from helpers.as_torch import as_torch, error, leaf, parameters, warned

import jaxgrad
from jaxgrad import nn

UTILS = ("clip_grad_norm_", "clip_grad_value_", "get_total_norm", "clip_grads_with_norm_")


def with_gradients(torch):
    """Three parameters; the last one has no gradient."""
    parameters = [leaf(torch, 3.0, -4.0, dtype=torch.float64), leaf(torch, 12.0), leaf(torch, 1.0)]
    parameters[0].grad = torch.tensor([3.0, -4.0], dtype=torch.float64)
    parameters[1].grad = torch.tensor(12.0)
    return parameters


@pytest.mark.row("S04")
@pytest.mark.slow
@as_torch(precision=1e-7)
def test_get_total_norm_of_gradients(torch):
    total = torch.nn.utils.get_total_norm
    tensors = [torch.tensor([3.0, 0.0, -4.0]), torch.tensor([[12.0]])]
    norms = [total(tensors, p) for p in (2.0, 1, 3, 0.5, math.inf, "inf", -math.inf, 0)]
    words = "is non-finite, so it cannot be clipped"
    return [
        norms,
        total([]),
        total(tensors[0]),
        total([torch.tensor([300.0, 400.0], dtype=torch.float16)]),
        total([torch.ones(1), torch.ones(1, dtype=torch.float64)]),
        total([torch.tensor([3.0 + 4.0j])]),
        total([torch.tensor([math.nan])]),
        error(lambda: total([torch.tensor([math.inf])], 2.0, True), words=words),
        total(torch.ones(2, requires_grad=True)).requires_grad,
    ]


@pytest.mark.row("S04")
@as_torch(precision=1e-7)
def test_clipping_of_gradients(torch):
    utils, results = torch.nn.utils, []
    for options in ({"max_norm": 1.0}, {"max_norm": 100.0}, {"max_norm": 2, "norm_type": math.inf}):
        weights = with_gradients(torch)
        gradient = weights[0].grad
        results.append(utils.clip_grad_norm_(weights, **options))
        results.append([gradient, weights[1].grad, weights[2].grad, weights[0].grad is gradient])
    weights = with_gradients(torch)
    utils.clip_grad_value_(weights, 3.5)
    results.append([weight.grad for weight in weights])
    utils.clip_grads_with_norm_(weights[1], 0.5, torch.tensor(1.0))
    nothing = warned(lambda: utils.clip_grad_norm_((x for x in []), 1.0))
    weights[0].grad.fill_(math.inf)
    refused = error(
        lambda: utils.clip_grad_norm_(weights, 1.0, error_if_nonfinite=True),
        words="is non-finite, so it cannot be clipped",
    )
    return results, weights[1].grad, nothing, refused, weights[0].grad


@pytest.mark.row("S04")
@as_torch
def test_signatures_of_clipping(torch):
    return {name: parameters(getattr(torch.nn.utils, name)) for name in UTILS}


@as_torch("""
    tensor([1.0, 1.0, 1.0, 1.0, 5.0], requires_grad=True)
    [tensor([[0.0, 1.0], [2.0, 3.0]]), tensor(4.0)]
    [tensor([[0.0, 2.0], [4.0, 6.0]], requires_grad=True), tensor(8.0, requires_grad=True)]
    TypeError('expected torch.Tensor, but got: list')
""")
def test_parameters_as_a_vector_and_back(torch):
    utils = torch.nn.utils
    weights = [torch.ones(2, 2, requires_grad=True), leaf(torch, 5.0)]
    vector = utils.parameters_to_vector(weights)
    (vector * torch.arange(5.0)).sum().backward()
    utils.vector_to_parameters(torch.arange(5.0) * 2, weights)
    refused = error(utils.vector_to_parameters, [1.0], weights, words="expected torch.Tensor, but")
    return vector, [weight.grad for weight in weights], weights, refused


@as_torch
def test_first_values_without_chance(torch):
    init, empty = torch.nn.init, torch.empty
    return [
        init.constant_(empty(2), 3.0),
        init.ones_(empty(2)),
        init.zeros_(torch.ones(2, requires_grad=True)),
        init.eye_(empty(2, 3)),
        init.dirac_(empty(2, 2, 3)),
        init.dirac_(empty(4, 2, 2, 2), 2),
        [init.calculate_gain(name) for name in ("linear", "conv2d", "tanh", "relu", "selu")],
        init.calculate_gain("leaky_relu", 0.2),
        error(init.calculate_gain, "bent"),
        error(init.kaiming_uniform_, torch.ones(3)),
        error(init.kaiming_normal_, torch.ones(3, 3), 0, "fan"),
        error(init.orthogonal_, torch.ones(3)),
        error(init.eye_, torch.ones(3)),
        error(init.dirac_, torch.ones(3)),
    ]


# draws, checked by the distribution's mean and deviation

SHAPE = (200, 50, 2)
IN, OUT = 100, 400
DRAWN = [
    (lambda t: nn.init.uniform_(t, -1, 3), 1, 4 / math.sqrt(12), (-1, 3)),
    (lambda t: nn.init.normal_(t, 2, 3), 2, 3, (-math.inf, math.inf)),
    (nn.init.xavier_uniform_, 0, math.sqrt(2 / (IN + OUT)), math.sqrt(6 / (IN + OUT))),
    (lambda t: nn.init.xavier_normal_(t, 2), 0, 2 * math.sqrt(2 / (IN + OUT)), math.inf),
    (nn.init.kaiming_uniform_, 0, math.sqrt(2 / IN), math.sqrt(6 / IN)),
    (lambda t: nn.init.kaiming_normal_(t, 1, "fan_out"), 0, math.sqrt(1 / OUT), math.inf),
    # of the standard normal distribution between -1 and 1
    (lambda t: nn.init.trunc_normal_(t, 0, 2, -2, 2), 0, 2 * 0.5396, 2),
    (lambda t: nn.init.kaiming_uniform_(t, a=math.sqrt(5)), 0, 0.1 / math.sqrt(3), 0.1),
]


@pytest.mark.parametrize(("draw", "mean", "deviation", "bounds"), DRAWN)
def test_distributions_of_initial_values(draw, mean, deviation, bounds):
    jaxgrad.manual_seed(3)
    values = draw(jaxgrad.empty(*SHAPE)).numpy()
    error = deviation / math.sqrt(values.size)
    assert abs(values.mean() - mean) < 5 * error
    assert values.std() == pytest.approx(deviation, rel=0.02)
    low, high = bounds if isinstance(bounds, tuple) else (-bounds, bounds)
    assert low <= values.min() and values.max() <= high


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 2)])
def test_orthogonal_makes_orthonormal_rows(shape):
    rows = nn.init.orthogonal_(jaxgrad.empty(*shape, dtype=jaxgrad.float64), gain=2.0)
    matrix = rows.numpy().reshape(shape[0], -1)
    matrix = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    numpy.testing.assert_allclose(matrix @ matrix.T, 4 * numpy.eye(len(matrix)), atol=1e-12)


def test_sparse_leaves_a_share_of_zeros():
    values = nn.init.sparse_(jaxgrad.empty(10, 4), 0.3, 2.0).numpy()
    assert ((values == 0).sum(0) == 3).all()


FIRST = [
    (lambda: nn.Linear(25, 400), 25),
    (lambda: nn.Conv2d(4, 200, (3, 3), groups=2), 18),
    (lambda: nn.ConvTranspose2d(100, 20, 2), 80),
    (lambda: nn.Bilinear(16, 20, 30), 16),
]


@pytest.mark.parametrize(("make", "fan"), FIRST)
def test_layers_begin_evenly_within_the_root_of_their_inputs(make, fan):
    """The distribution that PyTorch's documentation gives for each."""
    layer, bound = make(), 1 / math.sqrt(fan)
    for parameter in layer.parameters():
        values = parameter.detach().numpy()
        assert abs(values).max() <= bound
        if values.size > 200:
            assert values.std() == pytest.approx(bound / math.sqrt(3), rel=0.1)


def test_tables_begin_with_normal_numbers():
    values = nn.Embedding(50, 40, padding_idx=3).weight.detach().numpy()
    assert (values[3] == 0).all()
    assert values.std() == pytest.approx(math.sqrt(49 / 50), rel=0.1)


@pytest.mark.parametrize("layer", [nn.Dropout(0.25), nn.Dropout2d(0.25), nn.AlphaDropout(0.25)])
def test_dropout_keeps_mean_and_drops_its_part(layer):
    jaxgrad.manual_seed(1)
    x = jaxgrad.ones(40, 50, 2, 2, requires_grad=True)
    output = layer(x)
    channels = output.detach().numpy().reshape(2000, -1)
    kept = channels.max()
    whole = (channels == channels[:, :1]).all(1)
    assert whole.all() == isinstance(layer, nn.Dropout2d)
    count = whole.sum() if isinstance(layer, nn.Dropout2d) else channels.size
    error = math.sqrt(0.25 * 0.75 / count)
    assert abs((channels < kept).mean() - 0.25) < 5 * error
    output.sum().backward()
    gradient = x.grad.numpy().reshape(2000, -1)
    assert ((gradient == 0) == (channels < kept)).all()
    if not isinstance(layer, nn.AlphaDropout):
        assert kept == pytest.approx(4 / 3) and gradient.max() == pytest.approx(4 / 3)
        x = jaxgrad.ones(3, 4, 2, 2)
        inside = type(layer)(0.5, inplace=True)
        assert inside(x) is x and set(x.reshape(-1).tolist()) <= {0.0, 2.0}
