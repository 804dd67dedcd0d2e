"""jaxgrad.nn.init, the first values of layers, and jaxgrad.nn.utils."""

import math

import numpy
import pytest
from helpers.as_torch import as_torch, error, leaf, warned

import jaxgrad
from jaxgrad import nn


@as_torch
def test_deterministic_initializers_and_gains(torch):
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
def test_distributions_of_random_initializers(draw, mean, deviation, bounds):
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


@pytest.mark.parametrize("transform", [jaxgrad.jit, lambda f: lambda: _mapped(f)])
def test_orthogonal_in_a_trace(transform):
    jaxgrad.manual_seed(0)
    drawn = transform(lambda: nn.init.orthogonal_(jaxgrad.empty(2, 3)))()
    pytorch = [[0.57398093, -0.10929461, -0.81154215], [-0.34541512, -0.93088269, -0.11893554]]
    numpy.testing.assert_allclose(drawn.numpy(), pytorch, atol=1e-6)


def _mapped(function):
    map = jaxgrad.func.vmap(lambda x: function(), randomness="same")
    return map(jaxgrad.zeros(2))[1]


def test_sparse_initialization_leaves_a_share_of_zeros():
    values = nn.init.sparse_(jaxgrad.empty(10, 4), 0.3, 2.0).numpy()
    assert ((values == 0).sum(0) == 3).all()


FIRST = [
    (lambda: nn.Linear(25, 400), 25),
    (lambda: nn.Conv2d(4, 200, (3, 3), groups=2), 18),
    (lambda: nn.ConvTranspose2d(100, 20, 2), 80),
    (lambda: nn.Bilinear(16, 20, 30), 16),
]


@pytest.mark.parametrize(("make", "fan"), FIRST)
def test_default_initialization_of_layers_is_uniform(make, fan):
    """The distribution that PyTorch's documentation gives for each."""
    layer, bound = make(), 1 / math.sqrt(fan)
    for parameter in layer.parameters():
        values = parameter.detach().numpy()
        assert abs(values).max() <= bound
        if values.size > 200:
            assert values.std() == pytest.approx(bound / math.sqrt(3), rel=0.1)


def test_default_initialization_of_embeddings_is_normal():
    values = nn.Embedding(50, 40, padding_idx=3).weight.detach().numpy()
    assert (values[3] == 0).all()
    assert values.std() == pytest.approx(math.sqrt(49 / 50), rel=0.1)


@pytest.mark.slow
@as_torch
def test_deprecated_names_of_initializers_and_clipping(torch):
    init, empty = torch.nn.init, torch.empty
    results = [
        warned(lambda: init.constant(empty(2), 3.0)),
        warned(lambda: init.eye(empty(2, 2))),
        warned(lambda: init.dirac(empty(1, 1, 3))),
        warned(lambda: init.uniform(empty(1), 2, 2)),
        warned(lambda: init.normal(empty(1), 2, 0)),
    ]
    for name in ("kaiming_normal", "kaiming_uniform", "xavier_normal", "xavier_uniform"):
        results.append(warned(lambda name=name: getattr(init, name)(empty(2, 3)).shape == (2, 3)))
    results.append(warned(lambda: init.orthogonal(empty(1, 1)).abs()))
    results.append(warned(lambda: init.sparse(empty(2, 1), 1.0)))
    x = leaf(torch, 3.0, 4.0)
    x.grad = torch.tensor([3.0, 4.0])
    results.append(warned(lambda: torch.nn.utils.clip_grad_norm([x], 1.0)))
    return results
