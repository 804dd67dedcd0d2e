"""Writing: errors, dtypes, broadcasting and places as PyTorch has them; gradients of what is
covered; and what a trace drops because it cannot raise."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad
from jaxgrad import ops

REFUSED = [
    (
        "zeros(2).copy_(zeros(3))",
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton",
    ),
    (
        "zeros(2).fill_(zeros(1))",
        RuntimeError,
        "fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions",
    ),
    (
        "torch.fill(zeros(2, dtype=torch.uint8), 256)",
        RuntimeError,
        "value cannot be converted to type uint8_t without overflow",
    ),
    (
        "torch.index_copy(zeros(3), 0, tensor([[0]]), zeros(1))",
        IndexError,
        "index_copy_(): Index should have dimension 1 or 0 (got 2)",
    ),
    (
        "torch.index_copy(zeros(3), 0, tensor([0.0]), zeros(1))",
        RuntimeError,
        "index_copy_(): Expected a long tensor for index, but got Float",
    ),
    (
        "torch.index_copy(zeros(3), 0, tensor([0]), zeros(1, dtype=torch.float64))",
        RuntimeError,
        "index_copy_(): self and source expected to have the same dtype, but got (self) Float",
    ),
    (
        "torch.index_copy(zeros(3), 0, tensor([0, 1]), zeros(1))",
        IndexError,
        "index_copy_(): Number of indices (2) should be equal to source.size(dim) (1)",
    ),
    (
        "torch.index_copy(zeros(3, 2), 0, tensor([0]), zeros(1, 3))",
        RuntimeError,
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination",
    ),
    (
        "torch.index_copy(zeros(3, 2), 0, tensor([0]), zeros(2))",
        IndexError,
        "index_copy_(): When source and destination are not scalars, their dimensionality must",
    ),
    (
        "torch.index_copy(zeros(3), 0, tensor([3]), zeros(1))",
        IndexError,
        "index 3 is out of bounds for dimension 0 with size 3",
    ),
    (
        "torch.index_copy(zeros(3), 0, tensor([-1]), zeros(1))",
        IndexError,
        "index -1 is out of bounds for dimension 0 with size 3",
    ),
    (
        "torch.index_fill(zeros(3), 0, tensor([3]), 1.0)",
        IndexError,
        "index 3 is out of bounds for dimension 0 with size 3",
    ),
    (
        "torch.index_fill(zeros(3), 0, tensor([-4]), 1.0)",
        IndexError,
        "index -4 is out of bounds for dimension 0 with size 3",
    ),
    (
        "torch.index_fill(zeros(3), 0, tensor([[0]]), 1.0)",
        RuntimeError,
        "Index has to be a vector/scalar",
    ),
    (
        "torch.index_fill(zeros(3), 0, tensor([0.0]), 1.0)",
        IndexError,
        "index_fill_(): Expected dtype int64 for index",
    ),
    (
        "torch.index_fill(zeros(3), 0, tensor([0]), zeros(1))",
        RuntimeError,
        "index_fill_ only supports a 0-dimensional value tensor, but got tensor with 1",
    ),
    (
        "torch.index_fill(zeros(3), 0, tensor([0]), 1j)",
        RuntimeError,
        "index_fill_(): Converting complex Scalar to non-complex type is not supported",
    ),
    (
        "torch.put(zeros(3), tensor([0.0]), zeros(1))",
        RuntimeError,
        "put_(): Expected a long tensor for index, but got Float",
    ),
    (
        "torch.put(zeros(3), tensor([0]), zeros(1, dtype=torch.float64))",
        RuntimeError,
        "put_(): self and source expected to have the same dtype, but got self.dtype = Float",
    ),
    (
        "torch.put(zeros(3), tensor([0]), zeros(2))",
        IndexError,
        "put_(): Expected source and index to have the same number of elements, but got",
    ),
    (
        "torch.put(zeros(0), tensor([0]), zeros(1))",
        IndexError,
        "put_(): Tried to put elements into an empty tensor",
    ),
    (
        "torch.put(zeros(3), tensor([-4]), zeros(1))",
        IndexError,
        "out of range: tried to access index -4 on a tensor of 3 elements",
    ),
    (
        "torch.masked_scatter(zeros(3), tensor([1, 0, 1]), zeros(2))",
        RuntimeError,
        "masked_scatter_ only supports boolean masks, but got mask with dtype Long",
    ),
    (
        "torch.masked_scatter(zeros(3), tensor([True, False, True]), zeros(1))",
        RuntimeError,
        "Number of elements of source < number of ones in mask",
    ),
    (
        "torch.diagonal_scatter(zeros(2, 2), zeros(3))",
        RuntimeError,
        "expected src to have a size equal to the slice of self. src size = [3], slice size =",
    ),
    (
        "torch.diagonal_scatter(zeros(2, 2), zeros(2), 0, 1, 1)",
        RuntimeError,
        "diagonal dimensions cannot be identical 1, 1",
    ),
    ("zeros(2).fill_diagonal_(1.0)", RuntimeError, "dimensions must larger than 1"),
    (
        "zeros(2, 2, 3).fill_diagonal_(1.0)",
        RuntimeError,
        "all dimensions of input must be of equal length",
    ),
]

ANSWERS = [
    # what is written takes the dtype of what it is written to
    ("zeros(2, dtype=torch.uint8).copy_(tensor([-1, 300]))", "uint8", [255, 44]),
    ("zeros(2, dtype=torch.bool).copy_(tensor([0.0, nan]))", "bool", [False, True]),
    ("zeros(2, dtype=torch.int8).fill_(tensor(3.9))", "int8", [3, 3]),
    ("zeros(2, dtype=torch.int64).fill_(3.9)", "int64", [3, 3]),
    ("zeros(2, dtype=torch.bool).fill_(0.5)", "bool", [True, True]),
    ("torch.index_fill(tensor([1, 2, 3]), 0, tensor([-1, 0]), 9.7)", "int64", [9, 2, 9]),
    (
        "torch.diagonal_scatter(zeros(2, 2, dtype=torch.int64), tensor([1.9, -1.9]))",
        "int64",
        [[1, 0], [0, -1]],
    ),
    # what is written is broadcast
    ("zeros(2, 2).copy_(tensor([1.0, 2.0]))", "float32", [[1.0, 2.0], [1.0, 2.0]]),
    (
        "torch.masked_scatter(tensor([1, 2]), tensor([[True, False], [False, True]]), tensor([8, "
        "9]))",
        "int64",
        [[8, 2], [1, 9]],
    ),
    # places
    ("torch.index_copy(tensor([1, 2, 3]), 0, tensor([2, 0]), tensor([8, 9]))", "int64", [9, 2, 8]),
    (
        "torch.put(tensor([[1, 2], [3, 4]]), tensor([-1, 0]), tensor([8, 9]))",
        "int64",
        [[9, 2], [3, 8]],
    ),
    (
        "torch.put(tensor([1, 2]), tensor([0, 0]), tensor([5, 6]), accumulate=True)",
        "int64",
        [12, 2],
    ),
    (
        "torch.put(tensor([True, False]), tensor([1, 1]), tensor([True, True]), accumulate=True)",
        "bool",
        [True, True],
    ),
    (
        "torch.masked_scatter(tensor([1, 2, 3]), tensor([True, False, True]), tensor([8, 9, 7]))",
        "int64",
        [8, 2, 9],
    ),
    (
        "zeros(4, 2).fill_diagonal_(1.0)",
        "float32",
        [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]],
    ),
    (
        "zeros(5, 2).fill_diagonal_(1.0, wrap=True)",
        "float32",
        [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
    ),
    (
        "zeros(2, 2, 2).fill_diagonal_(5.0)",
        "float32",
        [[[5.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 5.0]]],
    ),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@pytest.mark.slow
@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


def test_copy_does_not_enlarge_self():
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        ops.copy(jaxgrad.zeros(1), jaxgrad.zeros(3))
    count("errors")


def test_masked_scatter_needs_one_dtype():
    mask = jaxgrad.tensor([True, False])
    with pytest.raises(RuntimeError, match="same dtypes but got Float and Double"):
        jaxgrad.masked_scatter(jaxgrad.zeros(2), mask, jaxgrad.zeros(2, dtype=jaxgrad.float64))
    count("errors")


# derivatives

PLACES = jaxgrad.tensor([2, 0])
MASK = jaxgrad.tensor([True, False, True])


@pytest.mark.parametrize(
    ("write", "of_self", "of_source"),
    [
        (lambda x, s: jaxgrad.index_copy(x, 0, PLACES, s), [0.0, 2.0, 0.0], [3.0, 1.0]),
        (lambda x, s: jaxgrad.put(x, PLACES, s), [0.0, 2.0, 0.0], [3.0, 1.0]),
        (
            lambda x, s: jaxgrad.put(x, PLACES, s, accumulate=True),
            [1.0, 2.0, 3.0],
            [3.0, 1.0],
        ),
        (lambda x, s: jaxgrad.masked_scatter(x, MASK, s), [0.0, 2.0, 0.0], [1.0, 3.0]),
        (lambda x, s: jaxgrad.index_fill(x, 0, PLACES, s.sum()), [0.0, 2.0, 0.0], [4.0, 4.0]),
    ],
    ids=["index_copy", "put", "put, accumulated", "masked_scatter", "index_fill"],
)
def test_gradients_of_copies_into_parts(write, of_self, of_source):
    x = jaxgrad.zeros(3, requires_grad=True)
    source = jaxgrad.zeros(2, requires_grad=True)
    write(x, source).backward(jaxgrad.tensor([1.0, 2.0, 3.0]))
    assert (x.grad.tolist(), source.grad.tolist()) == (of_self, of_source)
    count("closed forms", 2)


def test_index_fill_of_an_index_that_is_given_twice():
    value = jaxgrad.tensor(5.0, requires_grad=True)
    jaxgrad.index_fill(jaxgrad.zeros(3), 0, jaxgrad.tensor([1, 1]), value).sum().backward()
    assert value.grad.item() == 1.0
    count("closed forms")


def test_elements_that_masked_scatter_leaves_over_have_no_gradient():
    source = jaxgrad.zeros(4, requires_grad=True)
    jaxgrad.masked_scatter(jaxgrad.zeros(3), MASK, source).sum().backward()
    assert source.grad.tolist() == [1.0, 1.0, 0.0, 0.0]
    count("closed forms")


# under a trace


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda x, i: ops.index_copy(x, 0, i, jnp.array([8.0, 9.0])), [0.0, 8.0, 0.0]),
        (lambda x, i: ops.index_fill(x, 0, i, 8.0), [0.0, 8.0, 0.0]),
        (lambda x, i: ops.put(x, i, jnp.array([8.0, 9.0])), [0.0, 8.0, 0.0]),
    ],
    ids=["index_copy", "index_fill", "put"],
)
def test_what_is_written_out_of_bounds_under_a_trace_is_dropped(write, expected):
    assert jax.jit(write)(jnp.zeros(3), jnp.array([1, 7])).tolist() == expected
    count("programs")


def test_a_source_too_short_for_its_mask_is_nan_under_a_trace():
    result = jax.jit(ops.masked_scatter)(jnp.zeros(2), jnp.array([True, True]), jnp.ones(1))
    numpy.testing.assert_array_equal(result, [1.0, numpy.nan])
    count("programs")


def test_copy_of_a_number():
    assert jaxgrad.tensor([1, 2]).copy_(2.7).tolist() == [2, 2]
    x = jaxgrad.ones(2, requires_grad=True)
    y = (x * 2).copy_(3)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([3.0, 3.0], [0.0, 0.0])
