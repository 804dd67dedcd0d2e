"""jaxgrad.nn.functional: arguments that its functions check, warn of or convert before they call an
operator. The operators' own errors are in tests/rules."""

import numpy
import pytest
from helpers.as_torch import as_torch, error

import jaxgrad
import jaxgrad.nn.functional as F
from jaxgrad import nn

X = numpy.linspace(-1, 1, 12).reshape(3, 4)
CLASSES = numpy.array([1, 0, 3])


def tensors():
    return jaxgrad.tensor(X), jaxgrad.tensor(CLASSES)


def test_softmax_without_dim_warns_and_chooses_one():
    x = jaxgrad.tensor(X)
    for name in ("softmax", "log_softmax", "softmin"):
        with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name}") as caught:
            result = getattr(F, name)(x)
        assert caught[0].filename == __file__
        # by one of two executors, which round in different places
        expected = getattr(F, name)(x, dim=1).numpy()
        numpy.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)
    with pytest.warns(UserWarning, match="Implicit"):
        assert F.softmax(jaxgrad.zeros(2, 1, 1))[0].item() == 0.5


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"size_average": False}, "sum"),
        ({"reduce": True}, "mean"),
        ({"size_average": True, "reduce": False}, "none"),
    ],
)
def test_old_spellings_of_reduction_warn(old, new):
    x, target = tensors()
    with pytest.warns(UserWarning, match=f"please use reduction='{new}' instead"):
        loss = F.cross_entropy(x, target, **old)
    assert loss.tolist() == F.cross_entropy(x, target, reduction=new).tolist()


def test_losses_warn_of_shapes_that_differ():
    x = jaxgrad.tensor(X)
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss):
        with pytest.warns(UserWarning, match="that is different to the input size"):
            loss(x, jaxgrad.zeros(4, dtype=jaxgrad.float64))


def ones(*shape, dtype="float32"):
    return jaxgrad.ones(shape, dtype=getattr(jaxgrad, dtype))


@pytest.mark.slow
@as_torch
def test_pad_that_crops_or_changes_nothing(torch):
    pads = (-3, 0), (-1, -2), (-3, 2), (0, 0), (), (-1, 1), (2, -3)
    results = []
    for pad in pads:
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = torch.nn.functional.pad(x, pad, value=7.0)
        (y * y).sum().backward()
        results.append((y, y is x, x.grad))
    empty = torch.zeros(0, requires_grad=True)
    words = "must be non-negative"
    refused = error(torch.nn.functional.pad, torch.ones(3), (-4, 2), words=words)
    kept = torch.ones(1, 2, 3, requires_grad=True)
    modes = [torch.nn.functional.pad(kept, (0, 0), mode) for mode in ("reflect", "circular")]
    return results, torch.nn.functional.pad(empty, (1, 1)), refused, [out is kept for out in modes]


LONG = ones(3, dtype="int64")
REFUSED = [
    (F.mse_loss, (ones(3), ones(3)), {"reduction": "bad"}, ValueError, "bad is not a valid value"),
    (F.mse_loss, (ones(3), ones(3)), {"weight": ones(2)}, ValueError, "must have the same size"),
    (F.mse_loss, (LONG, LONG), {}, NotImplementedError, "not implemented for 'Long'"),
    (F.hardtanh, (ones(3), 2, 1), {}, ValueError, "min_val cannot be greater than max_val"),
    (F.celu, (ones(3), 0), {}, RuntimeError, "alpha cannot be 0 for CELU"),
    (
        F.softmax,
        (ones(3, 2), 2),
        {},
        IndexError,
        r"expected to be in range of \[-2, 1\], but got 2",
    ),
    (
        F.binary_cross_entropy_with_logits,
        (ones(3), ones(2)),
        {},
        ValueError,
        "must be the same as input size",
    ),
    (F.one_hot, (LONG[:0],), {}, RuntimeError, "Can not infer total number of classes"),
]


@pytest.mark.parametrize(("function", "arguments", "options", "error", "words"), REFUSED)
def test_errors_match_pytorch(function, arguments, options, error, words):
    """With PyTorch's exceptions and the words that programs match on."""
    with pytest.raises(error, match=words):
        function(*arguments, **options)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(0, 4), (0, 4, 3), (2, 4, 0)])
def test_normalization_of_an_empty_batch(shape):
    x = jaxgrad.zeros(*shape, requires_grad=True)
    weight, bias = jaxgrad.ones(4, requires_grad=True), jaxgrad.zeros(4, requires_grad=True)
    mean, variance = jaxgrad.zeros(4), jaxgrad.ones(4)
    results = [
        F.batch_norm(x, mean, variance, weight, bias, training=True),
        F.group_norm(x, 2, weight, bias),
    ]
    for result in results:
        assert tuple(result.shape) == shape
        result.sum().backward()
    assert tuple(x.grad.shape) == shape
    assert weight.grad.tolist() == bias.grad.tolist() == [0.0] * 4
    assert mean.tolist() == [0.0] * 4 and variance.tolist() == [1.0] * 4


@as_torch("""
    True
    tensor([[0.6000000238418579, 0.800000011920929], [0.0, 0.0]])
    RuntimeError(
     "div(): functions with out=... arguments don't support automatic differentiation, "
     'but one of the arguments requires grad.')
""")
def test_normalize_into_a_tensor(torch):
    x, out = torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.empty(0)
    normalize = torch.nn.functional.normalize
    result = normalize(x, dim=-1, out=out)
    refused = error(lambda: normalize(x.requires_grad_(), out=out), words="out=... arguments don't")
    return result is out, out, refused


@as_torch
def test_wrong_arguments_of_layers_and_functions(torch):
    F, nn, t = torch.nn.functional, torch.nn, torch.ones
    image, kernel = t(1, 3, 5, 5), t(2, 3, 3, 3)
    return [
        error(F.conv2d, t(1, 1, 2, 3, 3), t(1, 2, 3, 3)),
        error(F.conv2d, t(1, 4, 5, 5), kernel, words="weight of size [2, 3, 3, 3], expected input"),
        error(F.conv2d, t(1, 3, 2, 2), kernel),
        error(F.conv2d, image, kernel, t(3)),
        error(F.conv2d, image, kernel, None, 2, "same"),
        error(F.conv2d, image, kernel, None, 1, "odd", words="Invalid padding string"),
        error(F.conv2d, image, kernel, None, 1, -1, words="negative padding is not supported"),
        error(F.conv2d, image, kernel, None, 0, words="non-positive stride is not supported"),
        error(F.max_pool2d, image, 2, 2, 2),
        error(F.max_pool2d, t(5, 5), 2, words="tensor expected for input"),
        error(F.max_pool2d, t(1, 1, 1), 2),
        error(F.layer_norm, image, [3]),
        error(F.layer_norm, image, [5], t(3)),
        error(F.layer_norm, image, []),
        error(F.batch_norm, t(1, 2), None, None, None, None, True),
        error(F.batch_norm, t(3, 2), t(3), t(3)),
        error(F.batch_norm, t(3, 2), None, None),
        error(nn.BatchNorm2d(3), t(2, 3)),
        error(nn.BatchNorm1d(3), image),
        error(nn.GroupNorm, 2, 3),
        error(F.group_norm, t(2, 3), 2),
        error(nn.Conv2d, 3, 4, 3, 1, 0, 1, 2, words="in_channels must be divisible by groups"),
        error(nn.Embedding, 3, 2, 5, words="Padding_idx must be within num_embeddings"),
        error(F.embedding, t(1), t(3, 2)),
        error(F.glu, t(3)),
        error(
            lambda: F.scaled_dot_product_attention(*[t(3, 5, 5)] * 3, t(5, 5), 0.0, True),
            words="Explicit attn_mask should not be set when is_causal=True",
        ),
    ]


ROWS, IMAGES = (2, 4), (1, 4, 6, 6)
LAYERS_OF_FUNCTIONS = [
    *[("relu", nn.ReLU(), ROWS), ("linear", nn.Linear(4, 2), ROWS), ("prelu", nn.PReLU(), ROWS)],
    *[("softmax", nn.Softmax(1), ROWS), ("layer_norm", nn.LayerNorm(4), ROWS)],
    *[("conv2d", nn.Conv2d(4, 2, 3), IMAGES), ("batch_norm", nn.BatchNorm2d(4), IMAGES)],
    *[("conv_transpose2d", nn.ConvTranspose2d(4, 2, 3), IMAGES), ("dropout", nn.Dropout(), ROWS)],
    *[("max_pool2d", nn.MaxPool2d(2), IMAGES), ("pad", nn.ZeroPad2d(1), IMAGES)],
    *[("interpolate", nn.Upsample(scale_factor=2), IMAGES), ("mse_loss", nn.MSELoss(), ROWS, ROWS)],
]


@pytest.mark.parametrize("name, layer, shapes", [(n, m, s) for n, m, *s in LAYERS_OF_FUNCTIONS])
def test_layers_call_what_programs_put_in_the_place_of_a_function(name, layer, shapes, monkeypatch):
    original, calls = getattr(F, name), []

    def counted(*args, **kwargs):
        calls.append(name)
        return original(*args, **kwargs)

    args = [jaxgrad.ones(shape) for shape in shapes]
    layer(*args)
    monkeypatch.setattr(F, name, counted)
    layer(*args)
    assert calls == [name]
