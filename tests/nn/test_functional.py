"""jaxgrad.nn.functional: what samples cannot say. Errors, and derivatives that PyTorch lacks."""

from functools import partial

import checks
import jax
import jax.numpy as jnp
import numpy
import pytest
from jax.test_util import check_grads

import jaxgrad
import jaxgrad.nn.functional as F
from jaxgrad import ops

pytestmark = pytest.mark.slow

X = numpy.linspace(-1, 1, 12).reshape(3, 4)
CLASSES = numpy.array([1, 0, 3])
WEIGHT = numpy.array([0.5, 1.5, 0.7, 1.1])


def tensors():
    return jaxgrad.tensor(X), jaxgrad.tensor(CLASSES)


# derivatives


def weight_of_nll_loss(x, weight, *, reduction):
    return ops.nll_loss(x, CLASSES, weight, reduction, 0)


def weight_of_cross_entropy(x, weight, *, reduction):
    return ops.cross_entropy_loss(x, CLASSES, weight, reduction, 0, 0.25)


def weights_of_binary_cross_entropy(x, weight, *, reduction):
    target = abs(X)
    return ops.binary_cross_entropy_with_logits(x, target, weight, 2 * weight, reduction)


@pytest.mark.parametrize("reduction", [0, 1])
@pytest.mark.parametrize(
    "function", [weight_of_nll_loss, weight_of_cross_entropy, weights_of_binary_cross_entropy]
)
def test_weights_have_gradients(function, reduction):
    """PyTorch refuses most of these."""
    with jax.enable_x64(True):
        arguments = jnp.asarray(X), jnp.asarray(WEIGHT)
        compiled = jax.jit(partial(function, reduction=reduction))
        check_grads(compiled, arguments, 2, eps=1e-4)
    checks.count("loss", 4)


def test_silu_of_complex_numbers():
    """Holomorphic, so that differences along two directions say all; PyTorch has the value only."""
    with jax.enable_x64(True):
        check_grads(ops.silu, (jnp.asarray(X + 1j * X[::-1]),), 2, eps=1e-4)
    checks.count("activation", 4)


def test_gradient_of_silu_of_complex_numbers_is_conjugate():
    z, step = 0.3 - 0.8j, 1e-6
    x = jaxgrad.tensor(z, dtype=jaxgrad.complex128, requires_grad=True)
    F.silu(x).real.backward()
    real, imaginary = (value(z + d) - value(z - d) for d in (step, 1j * step))
    assert x.grad.item() == pytest.approx((real + 1j * imaginary) / (2 * step), rel=1e-8)


def value(z):
    return (z / (1 + numpy.exp(-z))).real


# numbers


def test_softmax_of_halves_is_as_good_as_halves_can_be():
    given = numpy.linspace(-4, 4, 3000, dtype=numpy.float16)
    exponentials = numpy.exp(given.astype(numpy.float64))
    exact = exponentials / exponentials.sum()
    found = jaxgrad.softmax(jaxgrad.tensor(given), 0)
    assert found.dtype is jaxgrad.float16
    numpy.testing.assert_array_equal(found.numpy(), exact.astype(numpy.float16))
    logarithms = jaxgrad.log_softmax(jaxgrad.tensor(given), 0).numpy()
    numpy.testing.assert_array_equal(logarithms, numpy.log(exact).astype(numpy.float16))


def test_cross_entropy_keeps_small_losses_beside_large_logits():
    logits = jaxgrad.tensor([[20000.0, 19990.0]])
    found = F.cross_entropy(logits, jaxgrad.tensor([0])).item()
    assert found == pytest.approx(numpy.log1p(numpy.exp(-10)), rel=1e-3)


def test_ignored_rows_have_no_gradient_whatever_they_hold():
    x = jaxgrad.tensor([[0.0, 1.0], [numpy.inf, numpy.nan]], requires_grad=True)
    F.cross_entropy(x, jaxgrad.tensor([0, -100])).backward()
    assert x.grad[1].tolist() == [0, 0]


@pytest.mark.parametrize("loss", [F.nll_loss, F.cross_entropy])
@pytest.mark.parametrize("wrong", [4, 1000, -1, -99])
def test_class_that_there_is_not(loss, wrong):
    x, target = jaxgrad.tensor(X), jaxgrad.tensor([0, wrong, 1])
    with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
        loss(x, target)
    # in a compiled program nobody can raise
    assert numpy.isnan(jaxgrad.jit(loss)(x, target).item())


# arguments


def test_dim_left_out():
    x = jaxgrad.tensor(X)
    for name in ("softmax", "log_softmax", "softmin"):
        with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name}") as caught:
            found = getattr(F, name)(x)
        assert caught[0].filename == __file__
        assert found.tolist() == getattr(F, name)(x, dim=1).tolist()
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
def test_old_spellings_of_reduction(old, new):
    x, target = tensors()
    with pytest.warns(UserWarning, match=f"please use reduction='{new}' instead"):
        found = F.cross_entropy(x, target, **old)
    assert found.tolist() == F.cross_entropy(x, target, reduction=new).tolist()


def test_shapes_that_differ():
    x = jaxgrad.tensor(X)
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss):
        with pytest.warns(UserWarning, match="that is different to the input size"):
            loss(x, jaxgrad.zeros(4, dtype=jaxgrad.float64))


def ones(*shape, dtype="float32"):
    return jaxgrad.ones(shape, dtype=getattr(jaxgrad, dtype))


LONG = ones(3, dtype="int64")
REFUSED = [
    (F.mse_loss, (ones(3), ones(3)), {"reduction": "bad"}, ValueError, "bad is not a valid value"),
    (F.mse_loss, (ones(3), ones(3)), {"weight": ones(2)}, ValueError, "must have the same size"),
    (F.mse_loss, (LONG, LONG), {}, NotImplementedError, "not implemented for 'Long'"),
    (F.gelu, (LONG,), {}, NotImplementedError, "not implemented for 'Long'"),
    (F.gelu, (ones(3),), {"approximate": "sine"}, RuntimeError, "must be either none or tanh"),
    (F.relu, (ones(3, dtype="bool"),), {}, RuntimeError, "not implemented for 'Bool'"),
    (F.hardtanh, (ones(3), 2, 1), {}, ValueError, "min_val cannot be greater than max_val"),
    (F.celu, (ones(3), 0), {}, RuntimeError, "alpha cannot be 0 for CELU"),
    (F.softmax, (LONG, 0), {}, NotImplementedError, "not implemented for 'Long'"),
    (
        F.softmax,
        (ones(3, 2), 2),
        {},
        IndexError,
        r"expected to be in range of \[-2, 1\], but got 2",
    ),
    (F.smooth_l1_loss, (ones(3), ones(3)), {"beta": -1}, RuntimeError, "negative values for beta"),
    (F.nll_loss, (ones(), LONG[0]), {}, ValueError, "Expected 1 or more dimensions"),
    (F.nll_loss, (ones(2, 4), LONG), {}, ValueError, r"batch_size \(2\) to match .* \(3\)"),
    (F.nll_loss, (ones(3, 4, 2), ones(3, 5, dtype="int64")), {}, RuntimeError, "target size"),
    (F.nll_loss, (ones(3, 4), ones(3)), {}, RuntimeError, "to be Long or Byte, but got Float"),
    (F.nll_loss, (ones(3, 4), LONG, ones(3)), {}, RuntimeError, "either for all 4 classes or no"),
    (F.cross_entropy, (ones(2, 4), LONG), {}, ValueError, r"batch_size \(2\) to match .* \(3\)"),
    (F.cross_entropy, (LONG, LONG), {}, NotImplementedError, "not implemented for 'Long'"),
    (F.cross_entropy, (ones(3), LONG), {}, RuntimeError, "class probabilities, got Long"),
    (F.cross_entropy, (ones(3), ones(3), ones(2)), {}, RuntimeError, "either for all 3 classes"),
    (
        F.cross_entropy,
        (ones(3), ones(3)),
        {"ignore_index": 1},
        RuntimeError,
        "ignore_index is not supported for floating point target",
    ),
    (
        F.cross_entropy,
        (ones(3, 4), LONG),
        {"label_smoothing": 1.5},
        RuntimeError,
        "between 0.0 and 1.0. Got: 1.5",
    ),
    (
        F.binary_cross_entropy_with_logits,
        (ones(3), ones(2)),
        {},
        ValueError,
        "must be the same as input size",
    ),
    (F.one_hot, (ones(3),), {}, RuntimeError, "only applicable to index tensor"),
    (F.one_hot, (LONG, 1), {}, RuntimeError, "smaller than num_classes"),
    (F.one_hot, (-LONG, 2), {}, RuntimeError, "must be non-negative"),
    (F.one_hot, (LONG[:0],), {}, RuntimeError, "Can not infer total number of classes"),
    (
        ops.leaky_relu_backward,
        (ones(3), ones(3), -0.5, True),
        {},
        RuntimeError,
        "triggered with a negative slope",
    ),
]


@pytest.mark.parametrize(("function", "arguments", "options", "error", "words"), REFUSED)
def test_what_is_refused(function, arguments, options, error, words):
    """With PyTorch's exceptions and the words that programs match on."""
    with pytest.raises(error, match=words):
        function(*arguments, **options)
