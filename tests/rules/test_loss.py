"""Losses: errors, empty batches, dtypes and large logits as PyTorch has them; gradients of weights,
most of which PyTorch refuses, against finite differences."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, primitives, refusals
from jax.test_util import check_grads

import jaxgrad
import jaxgrad.nn.functional as F
from jaxgrad import ops

X = numpy.linspace(-1, 1, 12).reshape(3, 4)
CLASSES = numpy.array([1, 0, 3])
WEIGHT = numpy.array([0.5, 1.5, 0.7, 1.1])

REFUSED = [
    (
        "F.cross_entropy(zeros(2, 2).half(), tensor([0, 1]), tensor([1.0, 3.0]))",
        RuntimeError,
        "expected scalar type Half but found Float",
    ),
    (
        "F.binary_cross_entropy(tensor([1.5]), tensor([1.0]))",
        RuntimeError,
        "all elements of input should be between 0 and 1",
    ),
    (
        "F.binary_cross_entropy(tensor([nan]), tensor([1.0]))",
        RuntimeError,
        "all elements of input should be between 0 and 1",
    ),
    (
        "F.binary_cross_entropy(tensor([0.5]), tensor([2.0]))",
        RuntimeError,
        "all elements of target should be between 0 and 1",
    ),
    (
        "F.binary_cross_entropy(tensor([0.5]), tensor([1]))",
        RuntimeError,
        "Found dtype Long but expected Float",
    ),
    (
        "F.binary_cross_entropy(zeros(2), zeros(2), zeros(3, 2))",
        RuntimeError,
        "doesn't match the broadcast shape",
    ),
    (
        "F.huber_loss(zeros(2), zeros(2), delta=0.0)",
        RuntimeError,
        "huber_loss does not support non-positive values for delta",
    ),
    ("F.huber_loss(tensor([1]), tensor([2]))", NotImplementedError, "not implemented for 'Long'"),
    (
        "F.soft_margin_loss(zeros(2), zeros(1, 2))",
        RuntimeError,
        "doesn't match the broadcast shape",
    ),
    (
        "F.multi_margin_loss(zeros(2, 3), tensor([0, 1]), p=3)",
        ValueError,
        "only p == 1 and p == 2 supported",
    ),
    (
        "F.multi_margin_loss(zeros(2, 3), tensor([0]))",
        RuntimeError,
        "target tensor should be 1-D with size equal to the number of input",
    ),
    (
        "F.multi_margin_loss(zeros(2, 3), tensor([0, 1]), weight=zeros(2))",
        RuntimeError,
        "inconsistent weight size, expected 3 but got [2]",
    ),
    (
        "F.multi_margin_loss(zeros(2, 3), tensor([0.0, 1.0]))",
        RuntimeError,
        "expected scalar type Long but found Float",
    ),
    (
        "F.multi_margin_loss(zeros(2, 0), tensor([0, 1]))",
        RuntimeError,
        "Expected non-empty vector or matrix",
    ),
    (
        "F.multilabel_margin_loss(zeros(2, 3), tensor([[0, 1, 2]]))",
        RuntimeError,
        "inconsistent target size: [1, 3] for input of size: [2, 3]",
    ),
    (
        "F.gaussian_nll_loss(zeros(3), zeros(3), tensor([-1.0, 1.0, 1.0]))",
        ValueError,
        "var has negative entry/entries",
    ),
    (
        "F.gaussian_nll_loss(zeros(3, 2), zeros(3, 2), zeros(2))",
        ValueError,
        "var is of incorrect size",
    ),
    (
        "F.triplet_margin_loss(zeros(3), zeros(3), zeros(3), margin=0)",
        ValueError,
        "margin must be greater than 0, got 0",
    ),
    (
        "F.mse_loss(tensor([1, 2]), tensor([1, 2]))",
        NotImplementedError,
        "not implemented for 'Long'",
    ),
    (
        "F.mse_loss(tensor([1j]), tensor([1j]))",
        NotImplementedError,
        "not implemented for 'ComplexFloat'",
    ),
    (
        "F.smooth_l1_loss(zeros(3), zeros(3), beta=-1)",
        RuntimeError,
        "smooth_l1_loss does not support negative values for beta",
    ),
    (
        "F.smooth_l1_loss(tensor([1j]), tensor([1j]))",
        NotImplementedError,
        "not implemented for 'ComplexFloat'",
    ),
    ("F.nll_loss(tensor(1.0), tensor(1))", ValueError, "Expected 1 or more dimensions (got 0)"),
    (
        "F.nll_loss(zeros(2, 4), zeros(3, dtype=torch.int64))",
        ValueError,
        "Expected input batch_size (2) to match target batch_size (3)",
    ),
    (
        "F.nll_loss(zeros(3, 4), zeros(3))",
        RuntimeError,
        "expected target dtype to be Long or Byte, but got Float",
    ),
    (
        "F.nll_loss(zeros(3, 4), zeros(3, dtype=torch.int64), zeros(3))",
        RuntimeError,
        "weight tensor should be defined either for all 4 classes or no classes but got weight",
    ),
    ("F.nll_loss(zeros(3, 4), tensor([0, 4, 1]))", IndexError, "Target 4 is out of bounds"),
    ("F.nll_loss(zeros(3, 4), tensor([0, -1, 1]))", IndexError, "Target -1 is out of bounds"),
    (
        "F.cross_entropy(zeros(2, 4), zeros(3, dtype=torch.int64))",
        ValueError,
        "Expected input batch_size (2) to match target batch_size (3)",
    ),
    (
        "F.cross_entropy(tensor([[1, 2]]), tensor([0]))",
        NotImplementedError,
        "not implemented for 'Long'",
    ),
    (
        "F.cross_entropy(zeros(3), zeros(3, dtype=torch.int64))",
        RuntimeError,
        "Expected floating point type for target with class probabilities, got Long",
    ),
    (
        "F.cross_entropy(zeros(3), zeros(3), zeros(2))",
        RuntimeError,
        "weight tensor should be defined either for all 3 classes or no classes but got weight",
    ),
    (
        "F.cross_entropy(zeros(3), zeros(3), ignore_index=1)",
        RuntimeError,
        "ignore_index is not supported for floating point target",
    ),
    (
        "F.cross_entropy(zeros(3, 4), zeros(3, dtype=torch.int64), label_smoothing=1.5)",
        RuntimeError,
        "label_smoothing must be between 0.0 and 1.0. Got: 1.5",
    ),
    (
        "F.nll_loss(zeros(3, 4, 2), zeros(3, 5, dtype=torch.int64))",
        RuntimeError,
        "Expected target size [3, 2], got [3, 5]",
    ),
    (
        "F.binary_cross_entropy_with_logits(zeros(3), zeros(2))",
        ValueError,
        "Target size (torch.Size([2])) must be the same as input size (torch.Size([3]))",
    ),
    (
        "F.binary_cross_entropy_with_logits(tensor([1]), tensor([1]))",
        NotImplementedError,
        "not implemented for 'Long'",
    ),
    (
        "F.one_hot(zeros(3))",
        RuntimeError,
        "one_hot is only applicable to index tensor of type LongTensor",
    ),
    ("F.one_hot(tensor([1]), 1)", RuntimeError, "Class values must be smaller than num_classes"),
    ("F.one_hot(tensor([-1]), 2)", RuntimeError, "Class values must be non-negative"),
    (
        "F.one_hot(zeros(0, dtype=torch.int64))",
        RuntimeError,
        "Can not infer total number of classes from empty tensor",
    ),
]

ANSWERS = [
    # class weights have the dtype of the input, also where it is of half precision
    (
        "F.cross_entropy(zeros(2, 2).half(), tensor([0, 1]), tensor([1.0, 3.0]).half(), "
        "reduction='sum')",
        "float16",
        2.7734375,
    ),
    # nothing to take the mean of
    ("F.mse_loss(zeros(0), zeros(0))", "float32", numpy.nan),
    ("F.mse_loss(zeros(0), zeros(0), reduction='sum')", "float32", 0.0),
    ("F.nll_loss(zeros(0, 3), zeros(0, dtype=torch.int64))", "float32", numpy.nan),
    ("F.nll_loss(tensor([[-1.0, -2.0]]), tensor([-100]))", "float32", numpy.nan),
    ("F.nll_loss(tensor([[-1.0, -2.0]]), tensor([-100]), reduction='sum')", "float32", 0.0),
    ("F.cross_entropy(zeros(1, 2), tensor([0]), weight=tensor([0.0, 1.0]))", "float32", numpy.nan),
    # dtypes
    ("F.mse_loss(tensor([1.0], dtype=torch.float16), tensor([2.0]))", "float32", 1.0),
    ("F.l1_loss(tensor([1, 2]), tensor([3, 5]), reduction='sum')", "int64", 5),
    ("F.l1_loss(tensor([3 + 4j]), tensor([0j]))", "float32", 5.0),
    (
        "F.cross_entropy(tensor([[1.0, 2.0]], dtype=torch.bfloat16), tensor([1]))",
        "bfloat16",
        0.3125,
    ),
    ("F.nll_loss(tensor([[-1.0, -2.0]]), tensor([1], dtype=torch.uint8))", "float32", 2.0),
    ("F.nll_loss(tensor([-1.0, -2.0]), tensor(1))", "float32", 2.0),
    ("F.one_hot(tensor([0, 2]))", "int64", [[1, 0, 0], [0, 0, 1]]),
    ("F.one_hot(tensor([], dtype=torch.int64), 3)", "int64", numpy.zeros((0, 3))),
    # large logits
    ("F.cross_entropy(tensor([[1000.0, 0.0]]), tensor([1]))", "float32", 1000.0),
    (
        "F.binary_cross_entropy_with_logits(tensor([1000.0, -1000.0]), tensor([1.0, 0.0]))",
        "float32",
        0.0,
    ),
    ("F.binary_cross_entropy_with_logits(tensor([1000.0]), tensor([0.0]))", "float32", 1000.0),
    ("F.kl_div(tensor([0.0]), tensor([0.0]), reduction='sum')", "float32", 0.0),
    ("F.smooth_l1_loss(tensor([1.0]), tensor([3.0]), beta=0)", "float32", 2.0),
    (
        "F.cross_entropy(zeros(1, 2), tensor([[1.0, 0.0]]), label_smoothing=1.0)",
        "float32",
        0.6931471824645996,
    ),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


@pytest.mark.parametrize(
    ("loss", "wrong"),
    [
        (lambda y: F.multi_margin_loss(jaxgrad.tensor(X), y), [0, 4, 1]),
        (lambda y: F.multi_margin_loss(jaxgrad.tensor(X), y), [0, -1, 1]),
        (lambda y: F.multilabel_margin_loss(jaxgrad.tensor(X[0]), y), [0, 4, -1, 0]),
        (lambda y: F.ctc_loss(jaxgrad.tensor(X[:, None]), y, [3], [1]), [4]),
    ],
)
def test_targets_out_of_range_raise_and_give_nan_when_compiled(loss, wrong):
    wrong = jaxgrad.tensor(wrong)
    with pytest.raises((RuntimeError, IndexError), match=r"out of (range|bounds)"):
        loss(wrong)
    assert numpy.isnan(jaxgrad.jit(loss)(wrong).item())


@pytest.mark.parametrize("loss", [F.nll_loss, F.cross_entropy], ids=["nll_loss", "cross_entropy"])
@pytest.mark.parametrize("wrong", [4, 1000, -1, -99])
def test_a_class_out_of_range_raises_and_gives_nan_when_compiled(loss, wrong):
    x, target = jaxgrad.tensor(X), jaxgrad.tensor([0, wrong, 1])
    with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
        loss(x, target)
    assert numpy.isnan(jaxgrad.jit(loss)(x, target).item())
    for reduction in ("mean", "sum", "none"):
        total = jaxgrad.jit(lambda x, r=reduction: loss(x, target, reduction=r).sum())
        gradient = jaxgrad.func.grad(total)(x)
        assert numpy.isnan(gradient[1].numpy()).all()
        # the mean divides by the weights of all rows
        assert numpy.isnan(gradient[[0, 2]].numpy()).any() == (reduction == "mean")


def test_probabilities_must_be_floating_point():
    with pytest.raises(RuntimeError, match="class probabilities, got Long"):
        F.cross_entropy(jaxgrad.ones(3), jaxgrad.ones(3, dtype=jaxgrad.int64))
    count("errors")


# numbers


def test_cross_entropy_keeps_small_losses_beside_large_logits():
    logits = jaxgrad.tensor([[20000.0, 19990.0]])
    loss = F.cross_entropy(logits, jaxgrad.tensor([0])).item()
    assert loss == pytest.approx(numpy.log1p(numpy.exp(-10)), rel=1e-3)


def test_ignored_rows_have_no_gradient_whatever_they_hold():
    x = jaxgrad.tensor([[0.0, 1.0], [numpy.inf, numpy.nan]], requires_grad=True)
    F.cross_entropy(x, jaxgrad.tensor([0, -100])).backward()
    assert x.grad[1].tolist() == [0, 0]


# derivatives


def weight_of_nll_loss(x, weight, *, reduction):
    return ops.nll_loss(x, CLASSES, weight, reduction, 0)


def weight_of_cross_entropy(x, weight, *, reduction):
    return ops.cross_entropy_loss(x, CLASSES, weight, reduction, 0, 0.25)


def weights_of_binary_cross_entropy(x, weight, *, reduction):
    target = abs(X)
    return ops.binary_cross_entropy_with_logits(x, target, weight, 2 * weight, reduction)


def weight_of_multi_margin_loss(x, weight, *, reduction):
    return ops.multi_margin_loss(x, CLASSES, 2, 1.3, weight, reduction)


def target_and_weight_of_entropy(x, weight, *, reduction):
    return ops.binary_cross_entropy(abs(x) * 0.8 + 0.1, abs(x) * 0.7 + 0.1, weight, reduction)


def target_of_soft_margin_loss(x, weight, *, reduction):
    return ops.soft_margin_loss(x, weight, reduction)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "reduction"),
    [
        *((weight_of_nll_loss, reduction) for reduction in (0, 1)),
        *((weight_of_cross_entropy, reduction) for reduction in (0, 1)),
        *((weights_of_binary_cross_entropy, reduction) for reduction in (0, 1)),
        (weight_of_multi_margin_loss, 1),
        (target_and_weight_of_entropy, 1),
        (target_of_soft_margin_loss, 1),
    ],
)
def test_weights_have_gradients_that_pytorch_lacks(function, reduction):
    with jax.enable_x64(True):
        arguments = jnp.asarray(X), jnp.asarray(WEIGHT)
        compiled = jax.jit(partial(function, reduction=reduction))
        check_grads(compiled, arguments, 2, eps=1e-4)
    count("loss", 4)


def test_smooth_l1_without_a_parabola_is_flat_where_both_are_equal():
    """PyTorch's gradient is -1 there; that of l1_loss is 0 in both."""
    x = jaxgrad.zeros(1, requires_grad=True)
    ops.smooth_l1_loss(x, jaxgrad.zeros(1), 1, 0.0).backward()
    assert x.grad.tolist() == [0.0]
    count("closed forms")


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy_loss"])
def test_the_gradient_of_classes_compares_and_does_not_scatter(name):
    target = jnp.array([1, 0, 3])
    loss = partial(getattr(ops, name), reduction=1)
    program = jax.make_jaxpr(jax.grad(lambda x: loss(x, target)))(jnp.ones((3, 4)))
    assert not any("scatter" in primitive for primitive in primitives(program))
    count("programs")


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("l1_loss", {}, [0.0, 1, -1, 0, 1]),
        ("smooth_l1_loss", {}, [float("nan"), 1, -1, 0, 1]),
        ("smooth_l1_loss", {"beta": 0.0}, [0.0, 1, -1, 0, 1]),
        ("huber_loss", {"delta": 1.5}, [float("nan"), 1, -1.5, 0, 1.5]),
    ],
)
def test_gradients_at_nan(name, options, expected):
    """Those of PyTorch 2.13: a loss that is NaN gave a finite gradient."""
    x = jaxgrad.tensor([float("nan"), 1.0, -2.0, 0.0, float("inf")], requires_grad=True)
    getattr(F, name)(x, jaxgrad.zeros(5), reduction="sum", **options).backward()
    numpy.testing.assert_array_equal(x.grad.tolist(), expected)
