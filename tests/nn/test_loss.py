"""Losses and random activations as layers and functions: values, gradients, names of parameters,
representations and refusals that the samples of operators do not have."""

import functools
import pickle

import numpy
import pytest
from helpers.as_torch import as_torch, error
from helpers.checks import count
from helpers.layers import in_float64, irregular

import jaxgrad
import jaxgrad.nn.functional as F

close = functools.partial(as_torch, precision=1e-8)


def table(torch, rows, columns, first=0):
    """Numbers without a pattern that a mistake could reproduce."""
    places = torch.arange(rows * columns, dtype=torch.float64) + first
    return torch.sin(1.3 * places**2 + 0.7).reshape(rows, columns)


def of(loss, input, *rest):
    input = input.detach().clone().requires_grad_()
    value = loss(input, *rest)
    value.sum().backward()
    return [value.detach(), input.grad]


@pytest.mark.slow
@close
def test_margin_loss_layers(torch):
    nn, x, classes = torch.nn, table(torch, 3, 4), torch.tensor([0, 3, 1])
    labels = torch.tensor([[1, 0, -1, 2], [3, -1, -1, -1], [-1, 0, 1, 2]])
    weight = torch.tensor([0.5, 1.0, 2.0, 1.5], dtype=torch.float64)
    others = table(torch, 3, 4, 5), table(torch, 3, 4, 9)
    layers = [
        nn.MultiMarginLoss(2, 0.5, weight),
        nn.MultiMarginLoss(reduction="none"),
        nn.MultiLabelMarginLoss(reduction="sum"),
        nn.MultiLabelSoftMarginLoss(weight),
        nn.TripletMarginWithDistanceLoss(swap=True, margin=0.7),
        nn.PairwiseDistance(1.0, 0.0, True),
        nn.CTCLoss(1, "sum", True),
        nn.RReLU(0.2, 0.4, True),
        nn.FeatureAlphaDropout(0.25),
    ]
    log_probs = table(torch, 10, 3).reshape(5, 2, 3)
    targets = torch.tensor([[0, 2], [2, 2]])
    return [
        of(layers[0], x, classes),
        of(layers[1], x, classes),
        of(layers[2], x, labels),
        of(layers[3], x, (labels > 0).double()),
        of(layers[4], x, *others),
        of(layers[5], x, others[0]),
        of(lambda x: layers[6](x.log_softmax(2), targets, [5, 2], (2, 2)), log_probs),
        of(lambda x: layers[7].eval()(x.clone()), x),
        layers[8].eval()(x),
        [repr(layer) for layer in layers],
        list(layers[0].state_dict()),
    ]


@pytest.mark.slow
@close
def test_adaptive_log_softmax(torch):
    layer = torch.nn.AdaptiveLogSoftmaxWithLoss(4, 7, [2, 4], 2.0, True, dtype=torch.float64)
    for position, parameter in enumerate(layer.parameters()):
        rows, columns = (*parameter.shape, 1)[:2]
        parameter.data = table(torch, rows, columns, position).reshape(parameter.shape)
    x = table(torch, 5, 4, 3).requires_grad_()
    results = []
    for target in ([0, 6, 2, 1, 3], [1, 0, 0, 1, 0], [4, 5, 6, 4, 5]):
        output, loss = layer(x, torch.tensor(target))
        gradients = torch.autograd.grad(loss, [x, layer.head.weight])
        results.append([output, loss, *gradients])
    one = layer(x[0], torch.tensor(5))
    kept = {name: list(value.shape) for name, value in layer.state_dict().items()}
    return [
        results,
        [one.output, one.loss, layer.log_prob(x), layer.predict(x)],
        [kept, repr(layer)],
        error(layer, x, torch.tensor([0, 1, 2, 3, 7]), words="Target values should be in [0, 6]"),
        error(layer, x, torch.tensor([0, 1]), words="same size in the batch dimension"),
        error(torch.nn.AdaptiveLogSoftmaxWithLoss, 4, 7, [4, 2], words="unique, positive"),
    ]


@pytest.mark.slow
@close
def test_linear_cross_entropy(torch):
    F, nn = torch.nn.functional, torch.nn
    x, weight, classes = table(torch, 2, 3), table(torch, 4, 3, 7), torch.tensor([3, 1])
    shares = table(torch, 2, 4, 2).softmax(1)
    several = table(torch, 8, 3, 2).reshape(4, 2, 3)
    layer = nn.LinearCrossEntropyLoss(3, 4, out_features=(2,), bias=True, dtype=torch.float64)
    layer.linear.weight.data, layer.linear.bias.data = table(torch, 8, 3), table(torch, 1, 8)[0]
    places = torch.tensor([[0, 3], [1, -100]])
    return [
        of(lambda x: F.linear_cross_entropy(x, weight, classes, label_smoothing=0.1), x),
        of(lambda w: F.linear_cross_entropy(x, w, classes, ignore_index=1), weight),
        of(lambda x: F.linear_cross_entropy(x, weight, shares, reduction="none"), x),
        of(lambda x: F.linear_cross_entropy(x, several, places, reduction="sum"), x),
        F.linear_cross_entropy(x[0], weight, classes[0], linear_bias=weight[:, 0]),
        of(layer, x, places),
        [repr(layer), list(layer.state_dict())],
        error(functools.partial(F.linear_cross_entropy, ignore_index=2), x, weight, shares),
        error(F.linear_cross_entropy, x[0], several, places, words="requires batched input"),
    ]


@pytest.mark.slow
@close
def test_reduction_codes_at_the_top_level(torch):
    x, y, z = table(torch, 2, 3), table(torch, 2, 3, 5), table(torch, 2, 3, 8)
    signs = torch.tensor([1, -1])
    return [
        [torch.triplet_margin_loss(x, y, z), torch.triplet_margin_loss(x, y, z, reduction=1)],
        [torch.cosine_embedding_loss(x, y, signs), torch.margin_ranking_loss(x, y, z, 0.1, 2)],
        [torch.hinge_embedding_loss(x, signs[:, None]), torch.prelu(x, x[0]), torch.selu_(y)],
        error(
            torch.nn.functional.margin_ranking_loss, x, y, z[0], words="should have same dimension"
        ),
        error(torch.cosine_embedding_loss, x, y, x, words="multi-target not supported"),
    ]


@pytest.mark.slow
def test_slopes_of_rrelu_are_random_and_kept():
    x = jaxgrad.linspace(-2, 2, 400, dtype=jaxgrad.float64).requires_grad_()
    noise = jaxgrad.zeros_like(x.detach())
    y = jaxgrad.ops.rrelu_with_noise(x, noise, 0.1, 0.3, True)
    y.sum().backward()
    slopes = noise[:200]
    assert (noise[200:] == 1).all() and ((slopes >= 0.1) & (slopes < 0.3)).all()
    assert abs(slopes.mean().item() - 0.2) < 0.02 and len(set(slopes.tolist())) > 190
    assert x.grad.tolist() == noise.tolist()
    numpy.testing.assert_allclose(y.detach().numpy(), (x * noise).detach().numpy(), 1e-15)
    written = x.detach().clone()
    assert jaxgrad.ops.rrelu_with_noise_(written, noise, 0.1, 0.3, True) is written
    numpy.testing.assert_allclose(written.numpy(), (x * noise).detach().numpy(), 1e-15)
    compiled = jaxgrad.jit(lambda x: F.rrelu(x, training=True))
    assert (compiled(x) != compiled(x)).any()
    count("random", 3)


@pytest.mark.slow
def test_gumbel_softmax():
    logits = jaxgrad.tensor([[0.0, 1.0, 3.0]] * 2000, requires_grad=True)
    jaxgrad.manual_seed(0)
    hard = F.gumbel_softmax(logits, tau=0.5, hard=True)
    assert (hard.sum(1) == 1).all() and (hard.max(1).values == 1).all()
    shares = logits[0].softmax(0).tolist()
    numpy.testing.assert_allclose(hard.mean(0).tolist(), shares, atol=0.04)
    jaxgrad.manual_seed(0)
    soft = F.gumbel_softmax(logits, tau=0.5)
    gradients = [jaxgrad.autograd.grad(y[:, 0].sum(), logits)[0] for y in (hard, soft)]
    assert gradients[0].tolist() == gradients[1].tolist()
    with pytest.warns(UserWarning, match="`eps` parameter is deprecated"):
        F.gumbel_softmax(logits, eps=1.0)
    count("random", 2)


def test_feature_alpha_dropout_drops_channels():
    x = jaxgrad.ones(20, 10, 4)
    y = F.feature_alpha_dropout(x, 0.5, training=True)
    assert (y == y[:, :, :1]).all() and len(set(y.flatten().tolist())) == 2


def test_prelu_backward_sums_over_all_but_channels():
    x = jaxgrad.tensor(numpy.sin(numpy.arange(12.0)).reshape(2, 3, 2), requires_grad=True)
    weight = jaxgrad.tensor([0.1, 0.2, 0.3], dtype=jaxgrad.float64, requires_grad=True)
    grad = jaxgrad.cos(x.detach())
    expected = jaxgrad.autograd.grad(F.prelu(x, weight), (x, weight), grad)
    gradients = jaxgrad.ops.prelu_backward(grad, x, weight)
    for one, other in zip(gradients, expected, strict=True):
        numpy.testing.assert_allclose(one.detach().numpy(), other.numpy(), 1e-15)
    assert gradients[1].requires_grad


PAIRS = (
    *("float64 float32", "float32 float64", "float32 bfloat16", "float16 float32"),
    *("float16 bfloat16", "float32 int64", "float16 int64", "int64 float32"),
    "float32 bool",
)


def losses_of_two(torch):
    """Losses of an input and a target that have one shape."""
    F, logits = torch.nn.functional, torch.nn.functional.binary_cross_entropy_with_logits
    weight = torch.tensor([[0.5], [1.5]], dtype=torch.float64)
    return {
        "logits": logits,
        "weighted logits": lambda x, y: logits(x, y, weight, pos_weight=weight),
        "probabilities": F.binary_cross_entropy,
        "classes": F.cross_entropy,
        "smoothed classes": lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
        "weighted classes": lambda x, y: F.cross_entropy(x, y, torch.ones(3).double()),
        "huber": F.huber_loss,
        "soft margin": F.soft_margin_loss,
        "smooth": F.smooth_l1_loss,
        "absolute": F.l1_loss,
        "squared": F.mse_loss,
        "divergence": functools.partial(F.kl_div, reduction="sum"),
        "counts": lambda x, y: F.poisson_nll_loss(x, y, full=y.dtype != torch.bool),
    }


def of_dtypes(torch, pair):
    """An input and a target: probabilities, or 0 and 1 where the dtype has no others."""
    numbers = torch.tensor([[[0.25, 0.75, 0.5], [0.625, 1, 0]], [[0.75, 0.5, 1], [0, 0.25, 0.5]]])
    dtypes = [getattr(torch, name) for name in pair.split()]
    return [tensor.to(dtype) for tensor, dtype in zip(numbers, dtypes, strict=True)]


@as_torch
def test_dtypes_of_losses_of_two_dtypes(torch):
    """PyTorch writes some losses over a tensor, whose dtype they keep."""
    answers = []
    for name, loss in losses_of_two(torch).items():
        dtypes = []
        for pair in PAIRS:
            try:
                dtypes.append(str(loss(*of_dtypes(torch, pair)).dtype))
            except RuntimeError:
                dtypes.append("refused")
        answers.append([name, dtypes])
    return answers


@functools.partial(as_torch, precision=1e-6)
def test_values_and_gradients_of_losses_of_two_dtypes(torch):
    answers, losses = [], losses_of_two(torch)
    for name in ("logits", "weighted logits", "classes", "smoothed classes", "soft margin"):
        for pair in PAIRS[:2]:
            operands = of_dtypes(torch, pair)
            leaves = operands[: 1 if name == "soft margin" else 2]
            for leaf in leaves:
                leaf.requires_grad_()
            loss = losses[name](*operands)
            answers.append([loss.detach(), *torch.autograd.grad(loss, leaves)])
    return answers


@pytest.mark.slow
@in_float64
def test_loss_layers(torch):
    nn, x = torch.nn, irregular(torch, 4, 3)
    y, signs = irregular(torch, 4, 3, first=4), irregular(torch, 4, first=2).sign()
    one, two, three = (irregular(torch, 4, 3, first=i) for i in (1, 2, 3))
    classes = torch.tensor([0, 2, 1, 0])
    weight = torch.tensor([0.5, 1.0, 2.0])
    probable, target = x.sigmoid(), (y > 0).double()
    edges = torch.tensor([0.0, 1.0, 1.0, 0.0])

    def of(loss, input, *rest):
        input = input.detach().clone().requires_grad_()
        value = loss(input, *rest)
        value.sum().backward()
        return [value.detach(), input.grad]

    return [
        of(nn.MSELoss(), x, y),
        of(nn.L1Loss(reduction="sum"), x, y),
        of(nn.SmoothL1Loss(beta=0.5), x, y),
        of(nn.HuberLoss("none", 0.4), x, y),
        of(nn.KLDivLoss(reduction="batchmean"), x, probable),
        of(nn.NLLLoss(weight), x, classes),
        of(nn.CrossEntropyLoss(weight, ignore_index=2, label_smoothing=0.1), x, classes),
        of(nn.BCELoss(), probable, target),
        of(nn.BCELoss(reduction="none"), edges, edges.flip(0) * 0.5),
        of(nn.BCEWithLogitsLoss(pos_weight=weight), x, target),
        of(nn.MarginRankingLoss(0.1), x[:, 0], y[:, 0], signs),
        of(nn.CosineEmbeddingLoss(0.1), one, two, signs),
        of(nn.TripletMarginLoss(swap=True), one, two, three),
        of(nn.PoissonNLLLoss(full=True), x, target * 3),
        of(nn.GaussianNLLLoss(full=True), x, y, probable),
        of(nn.SoftMarginLoss(), x[:, 0], signs),
        of(nn.HingeEmbeddingLoss(), x[:, 0], signs),
        of(nn.CosineSimilarity(), one, two),
        list(nn.CrossEntropyLoss(weight).state_dict()),
        error(nn.BCELoss(), x[:2], x, words="that is different to the input size"),
    ]


@pytest.mark.parametrize("delta", [1j, "1", None])
def test_delta_of_the_huber_loss_is_a_number(delta):
    with pytest.raises(TypeError, match="delta must be a float or int"):
        jaxgrad.nn.HuberLoss(delta=delta)


def test_sizes_of_targets_are_checked_before_their_dtype():
    logits, target = jaxgrad.ones(4, 2), jaxgrad.ones(5)
    for function in (F.cross_entropy, F.nll_loss):
        with pytest.raises(ValueError, match=r"batch_size \(4\) to match target batch_size \(5\)"):
            function(logits, target)
        with pytest.raises(RuntimeError, match="expected target dtype to be Long or Byte"):
            function(logits, target[:4])


def test_one_example_takes_its_class_as_a_list_of_one():
    logits = jaxgrad.tensor([0.5, 1.0, -1.0]).requires_grad_()
    for reduction in ("mean", "none"):
        value = F.cross_entropy(logits, jaxgrad.tensor([0]), reduction=reduction)
        assert value.shape == () and round(value.item(), 4) == 1.055
    assert F.nll_loss(logits, jaxgrad.tensor([2])).item() == 1
    for function in (F.cross_entropy, F.nll_loss):
        with pytest.raises(ValueError, match="1D target must have size 1, but got target size: 2"):
            function(logits, jaxgrad.tensor([1, 2]))


@pytest.mark.parametrize(
    ("options", "reduction"),
    [((0, 1), "sum"), ((1, 0), "none"), ((None, 1), "mean"), (("sum",), "mean")],
)
def test_deprecated_options_of_losses_are_true_or_false(options, reduction):
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        assert jaxgrad.nn.MSELoss(*options).reduction == reduction


def test_a_loss_that_is_made_with_the_arguments_of_its_call_raises():
    with pytest.raises(RuntimeError, match="Boolean value of Tensor"):
        jaxgrad.nn.CrossEntropyLoss(jaxgrad.ones(2, 3), jaxgrad.tensor([0, 1]))


def test_a_variance_that_is_an_integer():
    x = jaxgrad.tensor([0.5, 1.5])
    losses = [F.gaussian_nll_loss(x, x + 1, var) for var in (2, 2.0)]
    assert losses[0].item() == losses[1].item()
    with pytest.raises(ValueError, match="var has negative entry/entries"):
        F.gaussian_nll_loss(x, x, -1)


def test_hinge_embedding_loss_of_integers():
    """Integers, as PyTorch 2.13 prints them: a margin is cut to an integer, bytes wrap around."""
    distances, target = jaxgrad.tensor([0, 1, 2, 3]), jaxgrad.tensor([-1, -1, 1, -1])
    losses = F.hinge_embedding_loss(distances, target, margin=2.5, reduction="none")
    assert losses.dtype == jaxgrad.int64 and losses.tolist() == [2, 1, 2, 0]
    in_bytes = F.hinge_embedding_loss(distances.to(jaxgrad.uint8), target, reduction="none")
    assert in_bytes.tolist() == [1, 0, 2, 254]
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        F.hinge_embedding_loss(distances, target)
    with pytest.raises(RuntimeError, match="Subtraction"):
        F.hinge_embedding_loss(distances.bool(), target)
    # a margin is a float, and so are losses of integers
    assert F.margin_ranking_loss(distances, distances + 1, target).item() == 0.25


def test_cross_entropy_needs_a_dimension_of_classes():
    with pytest.raises(IndexError, match="Dimension out of range"):
        F.cross_entropy(jaxgrad.tensor(1.0), jaxgrad.zeros(2))


@as_torch("""
    1.3493
    4.1951
    1.2625
    -0.6333
    0.9631
    1.5333
    [[6.0, 9.0], [21.0, 24.0]]
""")
def test_pickled_layers_keep_the_tensors_among_their_options(torch):
    nn, x = torch.nn, torch.tensor([[0.2, 0.9, 0.4], [0.6, 0.3, 0.5]])
    labels, classes = torch.tensor([[0.0, 1, 1], [1, 0, 1]]), torch.tensor([1, 2])
    weight, places = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([[[0.2, 0.9]]])
    calls = [
        (nn.BCELoss(weight), (x, labels)),
        (nn.BCEWithLogitsLoss(weight, pos_weight=weight + 1), (x, labels)),
        (nn.MultiLabelSoftMarginLoss(weight), (x, labels)),
        (nn.NLLLoss(weight), (x, classes)),
        (nn.CrossEntropyLoss(weight), (x, classes)),
        (nn.MultiMarginLoss(weight=weight), (x, classes)),
    ]
    losses = [pickle.loads(pickle.dumps(layer))(*args).item() for layer, args in calls]
    pool = nn.FractionalMaxPool2d(2, output_size=2, _random_samples=places)
    image = torch.arange(25.0).reshape(1, 5, 5)
    pooled = pickle.loads(pickle.dumps(pool))(image)[0].tolist()
    return [*(round(loss, 4) for loss in losses), pooled]


@as_torch("""
    [[2.0359, 2.05], [9.782, 6.474]]
""")
def test_multilabel_soft_margin_loss_sums_over_the_classes_of_the_input(torch):
    x, y = torch.arange(12.0).reshape(3, 4) / 7 - 1, torch.arange(12).reshape(3, 4) % 3 == 0
    weight = torch.arange(24.0).reshape(2, 3, 4)
    losses = torch.nn.functional.multilabel_soft_margin_loss(x, y.float(), weight, reduction="none")
    return [[round(losses[i, j].item(), 4) for j in (0, 1)] for i in (0, 1)]
