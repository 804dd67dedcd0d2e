"""Windows of a dimension and views by strides: errors and values as PyTorch has them; gradients of
elements that are read several times or not at all; and which of them need no scatter."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, primitives, refusals

import jaxgrad
from jaxgrad import ops

REFUSED = [
    (
        "torch.view_as_complex(zeros(2, 3).T)",
        RuntimeError,
        "Tensor must have a last dimension with stride 1",
    ),
    (
        "torch.view_as_complex(zeros(3, 3)[:, :2])",
        RuntimeError,
        "Tensor must have a stride divisible by 2 for all but last dimension",
    ),
    (
        "zeros(5).unfold(0, 6, 1)",
        RuntimeError,
        "maximum size for tensor at dimension 0 is 5 but size is 6",
    ),
    ("zeros(5).unfold(0, -1, 1)", RuntimeError, "size is -1 but must be >= 0"),
    ("zeros(5).unfold(0, 2, 0)", RuntimeError, "step is 0 but must be > 0"),
    (
        "zeros(5).unfold(1, 2, 1)",
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ),
    (
        "tensor(1.0).unfold(0, 2, 1)",
        RuntimeError,
        "maximum size for tensor at dimension 0 is 1 but size is 2",
    ),
    (
        "torch.as_strided(zeros(4), (2, 2), (1,))",
        RuntimeError,
        "mismatch in length of strides and shape",
    ),
    (
        "torch.as_strided(zeros(4), (2, 2), (2, -1))",
        RuntimeError,
        "as_strided: Negative strides are not supported at the moment, got strides: [2, -1]",
    ),
    (
        "torch.as_strided(zeros(4), (2, 2), (2, 1), -1)",
        RuntimeError,
        "Tensor: invalid storage offset -1",
    ),
    (
        "torch.as_strided(zeros(4), (-1, 2), (2, 1))",
        RuntimeError,
        "Storage size calculation overflowed with sizes=[-1, 2] and strides=[2, 1]",
    ),
    (
        "torch.as_strided(zeros(4), (2, 3), (2, 1))",
        RuntimeError,
        "setStorage: sizes [2, 3], strides [2, 1], storage offset 0, and itemsize 4 requiring",
    ),
    (
        "torch.as_strided(zeros(4), (2, 2), (2, 1), 1)",
        RuntimeError,
        "setStorage: sizes [2, 2], strides [2, 1], storage offset 1, and itemsize 4 requiring",
    ),
    (
        "torch.as_strided_scatter(zeros(4), zeros(2), (2, 2), (2, 1))",
        RuntimeError,
        "expected src to have a size equal to the slice of self. src size = [2], slice size =",
    ),
    (
        "torch.as_strided_scatter(zeros(4), zeros(2, 3), (2, 3), (2, 1))",
        RuntimeError,
        "setStorage: sizes [2, 3], strides [2, 1], storage offset 0, and itemsize 4 requiring",
    ),
]

ANSWERS = [
    # windows: the rest of a dimension is left out, and none, one or all elements are a window
    ("tensor([1, 2, 3, 4, 5]).unfold(0, 3, 2)", "int64", [[1, 2, 3], [3, 4, 5]]),
    ("tensor([1, 2, 3, 4, 5]).unfold(0, 2, 2)", "int64", [[1, 2], [3, 4]]),
    ("tensor([1, 2, 3, 4, 5]).unfold(0, 0, 2)", "int64", numpy.zeros((3, 0))),
    ("tensor(7).unfold(0, 1, 1)", "int64", [7]),
    ("zeros(0).unfold(0, 0, 1)", "float32", numpy.zeros((1, 0))),
    # strides over the elements of the storage, whatever the view that is given
    ("torch.as_strided(tensor([1, 2, 3, 4]), (2, 2), (0, 1))", "int64", [[1, 2], [1, 2]]),
    ("torch.as_strided(tensor([1, 2, 3, 4]), (3, 2), (1, 1))", "int64", [[1, 2], [2, 3], [3, 4]]),
    ("torch.as_strided(tensor([1, 2, 3, 4]), (), (), 3)", "int64", 4),
    ("torch.as_strided(tensor([1, 2, 3, 4]), (0,), (9,), 99)", "int64", []),
    ("torch.as_strided(tensor([[1, 2], [3, 4]]).t(), (4,), (1,))", "int64", [1, 2, 3, 4]),
    ("torch.as_strided(tensor([[1, 2], [3, 4]])[1], (2,), (1,))", "int64", [3, 4]),
    ("torch.as_strided(tensor([[1, 2], [3, 4]])[1], (2,), (1,), 0)", "int64", [1, 2]),
    # writing by strides, in the dtype of what is written to
    (
        "torch.as_strided_scatter(tensor([1, 2, 3, 4]), tensor([8, 9]), (2,), (3,))",
        "int64",
        [8, 2, 3, 9],
    ),
    ("torch.as_strided_scatter(tensor([1, 2]), tensor([8.9, 9.9]), (2,), (1,))", "int64", [8, 9]),
    (
        "torch.as_strided_scatter(tensor([1, 2, 3, 4]), tensor([9]), (1,), (0,), 3)",
        "int64",
        [1, 2, 3, 9],
    ),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


# derivatives


@pytest.mark.parametrize(
    ("read", "times"),
    [
        (lambda x: x.unfold(0, 3, 1), [1, 2, 3, 2, 1]),
        (lambda x: x.unfold(0, 2, 2), [1, 1, 1, 1, 0]),
        (lambda x: x.unfold(0, 1, 3), [1, 0, 0, 1, 0]),
        (lambda x: x.as_strided((3, 2), (1, 1)), [1, 2, 2, 1, 0]),
        (lambda x: x.as_strided((4,), (0,), 2), [0, 0, 4, 0, 0]),
        (lambda x: x.as_strided((2, 2), (2, 1), 1), [0, 1, 1, 1, 1]),
    ],
    ids=["overlap", "side by side", "gaps", "strides that overlap", "stride 0", "row by row"],
)
def test_the_gradient_counts_how_often_an_element_is_read(read, times):
    x = jaxgrad.ones(5, requires_grad=True)
    read(x).sum().backward()
    assert x.grad.tolist() == times
    count("closed forms")


@pytest.mark.slow
def test_as_strided_scatter_passes_no_gradient_to_what_it_covers():
    x = jaxgrad.ones(4, requires_grad=True)
    source = jaxgrad.zeros(2, requires_grad=True)
    written = jaxgrad.as_strided_scatter(x, source, (2,), (2,), 1)
    written.backward(jaxgrad.tensor([1.0, 2.0, 3.0, 4.0]))
    assert (x.grad.tolist(), source.grad.tolist()) == ([1.0, 0.0, 3.0, 0.0], [2.0, 4.0])
    count("closed forms", 2)


# programs


@pytest.mark.parametrize(
    ("function", "scatters"),
    [
        (lambda x: ops.unfold(x, 0, 2, 2), False),
        (lambda x: ops.unfold(x, 0, 2, 3), False),
        (lambda x: ops.unfold(x, 0, 3, 1), True),
        (lambda x: ops.as_strided(x, (2, 3), (3, 1), 1), False),
        (lambda x: ops.as_strided(x, (2, 3), (1, 2)), True),
    ],
    ids=["windows side by side", "windows apart", "overlap", "row by row", "columns"],
)
def test_only_overlaps_and_other_orders_gather_and_scatter(function, scatters):
    program = jax.make_jaxpr(jax.grad(lambda x: function(x).sum()))(jnp.ones(8))
    names = {*primitives(program)}
    assert any("scatter" in name for name in names) is scatters
    assert scatters or "gather" not in names
    count("programs")
