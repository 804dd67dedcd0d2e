"""CTC losses: lengths, padding and blanks against a sum over all paths, with derivatives of two
orders; errors as PyTorch has them."""

import itertools

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import check_refusal, refusals
from jax.test_util import check_grads

import jaxgrad
import jaxgrad.nn.functional as F
from jaxgrad import ops

LOGITS = numpy.sin(numpy.arange(36.0) ** 2).reshape(4, 3, 3)

# targets, lengths of inputs and targets, blank
CASES = [
    ([[1, 2], [2, 2], [1, 9]], [4, 3, 4], [2, 2, 1], 0),
    ([0, 1, 1, 0], [4, 1, 2], [2, 0, 2], 2),
    ([[2], [0], [0]], [3, 4, 2], [0, 1, 1], 1),
]


def over_all_paths(log_probs, labels, blank):
    """Minus the logarithm of the probability of the paths that stand for the labels."""
    total = 0.0
    for path in itertools.product(range(log_probs.shape[1]), repeat=len(log_probs)):
        merged = [label for label, _ in itertools.groupby(path) if label != blank]
        if merged == list(labels):
            total += numpy.exp(log_probs[range(len(path)), path].sum())
    return -numpy.log(total)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "order"), list(zip(CASES, (1, 2, 1), strict=True)))
def test_sum_over_paths_and_derivatives(case, order):
    """Of numbers that are not normalized: PyTorch's gradient is another then."""
    targets, inputs, ends, blank = case
    starts = numpy.cumsum(ends) - ends
    expected = [
        over_all_paths(
            LOGITS[:length, b],
            targets[b][:end] if isinstance(targets[0], list) else targets[start : start + end],
            blank,
        )
        for b, (length, start, end) in enumerate(zip(inputs, starts, ends, strict=True))
    ]
    with jax.enable_x64(True):
        arguments = jnp.array(targets), jnp.array(inputs), jnp.array(ends)
        loss = jax.jit(lambda x: ops._ctc_loss(x, *arguments, blank)[0])
        numpy.testing.assert_allclose(loss(LOGITS), expected, 1e-12)
        check_grads(loss, (jnp.array(LOGITS),), order)
    count("ctc", 2)


@pytest.mark.slow
def test_second_derivative_on_the_tape_and_compiled():
    x = jaxgrad.tensor(LOGITS, requires_grad=True)

    def penalty(x):
        loss = F.ctc_loss(x.log_softmax(2), jaxgrad.tensor(CASES[0][0]), *CASES[0][1:3])
        (slope,) = jaxgrad.autograd.grad(loss, x, create_graph=True)
        return (slope * slope).sum()

    (eager,) = jaxgrad.autograd.grad(penalty(x), x)
    (compiled,) = jaxgrad.autograd.grad(jaxgrad.jit(penalty)(x), x)
    numpy.testing.assert_allclose(eager.numpy(), compiled.numpy(), 1e-10)
    moved = jaxgrad.tensor(LOGITS + 1e-6 * numpy.eye(1, 36).reshape(4, 3, 3), requires_grad=True)
    slope = (penalty(moved) - penalty(x)).item() / 1e-6
    assert abs(slope - eager[0, 0, 0].item()) < 1e-5
    count("ctc", 2)


@pytest.mark.slow
def test_lists_and_tensors_and_rows_agree():
    x = jaxgrad.tensor(LOGITS)
    inputs, ends = [4, 3, 4], [2, 2, 1]
    rows = F.ctc_loss(x, jaxgrad.tensor([1, 2, 2, 2, 1]), inputs, ends, reduction="none")
    padded = jaxgrad.tensor([[1, 2], [2, 2], [1, -7]])
    tensors = map(jaxgrad.tensor, (inputs, ends))
    of_tensors = F.ctc_loss(x, padded, *tensors, reduction="none")
    numpy.testing.assert_allclose(of_tensors.numpy(), rows.numpy(), 1e-14)
    losses, alpha = ops._ctc_loss(x, padded, inputs, ends)
    numpy.testing.assert_allclose(losses.numpy(), rows.numpy(), 1e-14)
    assert tuple(alpha.shape) == (3, 4, 5)
    one = F.ctc_loss(x[:, 0], jaxgrad.tensor([1, 2]), jaxgrad.tensor(4), jaxgrad.tensor(2))
    numpy.testing.assert_allclose(one.item(), rows[0].item() / 2, 1e-14)


@pytest.mark.slow
def test_gradient_of_cudnn_ctc_loss():
    x = jaxgrad.tensor(LOGITS, requires_grad=True)
    targets, inputs, ends = jaxgrad.tensor([1, 2, 2, 2, 1]), [4, 3, 4], [2, 2, 1]
    losses, gradient = ops._cudnn_ctc_loss(x, targets, inputs, ends, 0, True)
    expected = F.ctc_loss(x, targets, inputs, ends, reduction="none")
    assert not gradient.requires_grad
    numpy.testing.assert_allclose(losses.detach().numpy(), expected.detach().numpy(), 1e-14)
    (derivative,) = jaxgrad.autograd.grad(3 * losses.sum(), x)
    numpy.testing.assert_allclose(derivative.numpy(), 3 * gradient.numpy(), 1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(("zero_infinity", "value", "slope"), [(False, "inf", "nan"), (True, 0, 0)])
def test_targets_longer_than_the_input(zero_infinity, value, slope):
    x = jaxgrad.tensor(LOGITS, requires_grad=True)
    losses = F.ctc_loss(
        x,
        jaxgrad.tensor([[1, 1], [1, 2], [1, 2]]),
        [2, 4, 4],
        [2, 2, 2],
        reduction="none",
        zero_infinity=zero_infinity,
    )
    losses.sum().backward()
    assert losses[0].item() == float(value)
    assert numpy.array_equal(x.grad[:2, 0].numpy(), numpy.full((2, 3), float(slope)), True)
    assert not x.grad[2:, 0].any() and x.grad[:, 1:].isfinite().all()


@pytest.mark.slow
def test_nan_propagates():
    x = jaxgrad.tensor(LOGITS)
    x[1, 0, 0] = numpy.nan
    losses = F.ctc_loss(x, jaxgrad.tensor([[1], [2], [1]]), [4] * 3, [1] * 3, reduction="none")
    assert losses.isnan().tolist() == [True, False, False]


REFUSED = [
    (
        "F.ctc_loss(zeros(3, 2, 4), tensor([[1], [2]]), [3, 4], [1, 1])",
        RuntimeError,
        "input_lengths to have value at most 3",
    ),
    (
        "F.ctc_loss(zeros(3, 2, 4), tensor([[1], [2]]), [3, -1], [1, 1])",
        RuntimeError,
        "to have value at least 0, but got",
    ),
    (
        "F.ctc_loss(zeros(3, 2, 4), tensor([[1], [2]]), [3, 3], [1, 2])",
        RuntimeError,
        "size at least 2 at dimension 1, but got",
    ),
    (
        "F.ctc_loss(zeros(3, 2, 4), tensor([1, 2]), [3, 3], [1, 2])",
        RuntimeError,
        "to have size 3 at dimension 0, but got size",
    ),
    (
        "F.ctc_loss(zeros(3, 2, 4), tensor([[1], [2]]), [3], [1, 1])",
        RuntimeError,
        "input_lengths must be of size batch_size",
    ),
    (
        "F.ctc_loss(zeros(3, 2, 4), tensor([[1], [2]]), [3, 3], [1, 1], 4)",
        RuntimeError,
        "blank must be in label range",
    ),
    (
        "F.ctc_loss(zeros(3, 2, 4), tensor([[1], [2]]), tensor([3.0, 3.0]), tensor([1, 1]))",
        RuntimeError,
        "must be integral",
    ),
    (
        "F.ctc_loss(zeros(3, 2, 4), tensor([[1], [2]]), 3, 1)",
        TypeError,
        "invalid combination of arguments",
    ),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


def test_errors_of_targets():
    with pytest.raises(IndexError, match="Target 4 is out of bounds"):
        F.ctc_loss(jaxgrad.zeros(3, 1, 4), jaxgrad.tensor([[4]]), [3], [1])
