"""Index tensors, masks and triangles: errors, dtypes and places as PyTorch has them; what a trace
reads out of bounds; and a gradient that PyTorch has wrong."""

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
        "torch.gather(zeros(2, 3), 0, tensor([0]))",
        RuntimeError,
        "Index tensor must have the same number of dimensions as input tensor",
    ),
    (
        "torch.gather(zeros(2, 3), 0, tensor([[0.0]]))",
        RuntimeError,
        "gather(): Expected dtype int32/int64 for index",
    ),
    (
        "torch.gather(zeros(2, 3), 0, tensor([[2]]))",
        RuntimeError,
        "index 2 is out of bounds for dimension 0 with size 2",
    ),
    (
        "torch.gather(zeros(2, 3), 0, tensor([[0, 0, 0, 0]]))",
        RuntimeError,
        "Size does not match at dimension 1 expected index [1, 4] to be no larger than self",
    ),
    (
        "torch.scatter(zeros(2, 3), 0, tensor([[0]]), zeros(1, 1, dtype=torch.float64))",
        RuntimeError,
        "scatter(): Expected self.dtype to be equal to src.dtype",
    ),
    (
        "torch.scatter(zeros(2, 3), 0, tensor([[0, 0]]), zeros(1, 1))",
        RuntimeError,
        "Expected index [1, 2] to be no larger than self [2, 3] apart from dimension 0 and to",
    ),
    (
        "torch.scatter(zeros(2, 3), 0, tensor([[0.0]]), 1.0)",
        RuntimeError,
        "scatter(): Expected dtype int32/int64 for index",
    ),
    (
        "torch.index_select(zeros(2, 3), 0, tensor([[0]]))",
        IndexError,
        "index_select(): Index is supposed to be a vector",
    ),
    (
        "torch.index_select(zeros(2, 3), 2, tensor([0]))",
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    (
        "torch.index_select(tensor(1.0), 0, tensor([0, 0]))",
        RuntimeError,
        "index_select(): Index to scalar can have only 1 value, got 2 value(s)",
    ),
    (
        "torch.index_add(zeros(2, 3), 0, tensor([0]), zeros(1, 2))",
        RuntimeError,
        "source tensor shape must match self tensor shape, excluding the specified dimension",
    ),
    (
        "torch.index_add(zeros(2, 3), 0, tensor([[0]]), zeros(1, 3))",
        IndexError,
        "(): Index is supposed to be a vector, but",
    ),
    (
        "torch.index_put(zeros(2, 3), (tensor([0]),), zeros(2))",
        RuntimeError,
        "shape mismatch: value tensor of shape [2] cannot be broadcast to indexing result of",
    ),
    (
        "torch.index_put(zeros(2, 3), (tensor([0]),), zeros(3, dtype=torch.float64))",
        RuntimeError,
        "Index put requires the source and destination dtypes match, got Float for the",
    ),
    (
        "torch.index_put(zeros(3), (tensor([0]), tensor([0])), zeros(1))",
        IndexError,
        "too many indices for tensor of dimension 1 (got 2)",
    ),
    (
        "torch.index_put(zeros(3, 3), (tensor([0, 1]), tensor([0, 1, 2])), zeros(1))",
        IndexError,
        "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]",
    ),
    ("torch.take(zeros(0), tensor([0]))", IndexError, "take(): tried to take from an empty tensor"),
    ("torch.take(zeros(3), tensor([3]))", IndexError, "out of range: "),
    (
        "torch.take_along_dim(zeros(2, 3), tensor([0]), 0)",
        RuntimeError,
        "torch.take_along_dim(): input and indices should have the same number of dimensions,",
    ),
    (
        "torch.take_along_dim(zeros(2, 3), tensor([[0, 0]]), 0)",
        RuntimeError,
        "The size of tensor a (3) must match the size of tensor b (2) at non-singleton",
    ),
    (
        "torch.masked_fill(zeros(3), tensor([1, 0, 1]), 0.0)",
        RuntimeError,
        "only supports boolean masks, but got mask with dtype",
    ),
    (
        "torch.masked_fill(zeros(3), tensor([True, False]), 0.0)",
        RuntimeError,
        ") must match the size of tensor b (",
    ),
    (
        "torch.masked_fill(zeros(3), tensor([True, False, True]), zeros(1))",
        RuntimeError,
        "only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s)",
    ),
    (
        "torch.masked_fill(tensor([1], dtype=torch.uint8), tensor([True]), 300)",
        RuntimeError,
        "value cannot be converted to type uint8_t without overflow",
    ),
    ("torch.tril(zeros(3))", RuntimeError, "tril: input tensor must have at least 2 dimensions"),
    ("torch.triu(tensor(1.0))", RuntimeError, "triu: input tensor must have at least 2 dimensions"),
]

ANSWERS = [
    # an index without elements may have any dtype
    ("torch.gather(zeros(3), 0, tensor([], dtype=torch.uint8))", "float32", []),
    ("torch.scatter(zeros(3), 0, tensor([]), zeros(3))", "float32", [0.0, 0.0, 0.0]),
    ("torch.take_along_dim(tensor([1, 2, 3]), tensor([-1, 0]), 0)", "int64", [3, 1]),
    # no dimensions, no elements
    ("torch.gather(tensor(5), 0, tensor(0))", "int64", 5),
    ("torch.gather(tensor([1, 2]), 0, zeros(0, dtype=torch.int64))", "int64", []),
    ("torch.index_select(tensor(5), 0, tensor([0]))", "int64", 5),
    ("torch.index_select(tensor([[1, 2], [3, 4]]), 1, tensor(1))", "int64", [[2], [4]]),
    ("torch.take(tensor([[1, 2], [3, 4]]), tensor([[-1], [0]]))", "int64", [[4], [1]]),
    ("torch.tril(zeros(2, 0, 3))", "float32", numpy.zeros((2, 0, 3))),
    # a number takes the dtype of what it is written to
    ("torch.scatter(tensor([1, 2, 3]), 0, tensor([0]), 7.9)", "int64", [7, 2, 3]),
    ("torch.masked_fill(tensor([1, 2]), tensor([True, False]), 9.7)", "int64", [9, 2]),
    # a place that is named twice
    (
        "torch.scatter_add(tensor([1, 2], dtype=torch.uint8), 0, tensor([0, 0]), tensor([200, "
        "100], dtype=torch.uint8))",
        "uint8",
        [45, 2],
    ),
    (
        "torch.scatter_add(tensor([True, False]), 0, tensor([1, 1]), tensor([True, True]))",
        "bool",
        [True, True],
    ),
    (
        "torch.index_add(tensor([1, 2]), 0, tensor([1, 1]), tensor([10, 20]), alpha=2)",
        "int64",
        [1, 62],
    ),
    (
        "torch.index_put(tensor([1, 2, 3]), (tensor([0, 0]),), tensor([5, 6]), accumulate=True)",
        "int64",
        [12, 2, 3],
    ),
    # nan where a mask or a triangle leaves nothing
    ("torch.masked_fill(tensor([nan, 2.0]), tensor([True, False]), 0)", "float32", [0.0, 2.0]),
    (
        "torch.tril(tensor([[nan, inf], [inf, nan]]))",
        "float32",
        [[numpy.nan, 0.0], [numpy.inf, numpy.nan]],
    ),
    (
        "torch.triu(tensor([[True, True], [True, True]]), 1)",
        "bool",
        [[False, True], [False, False]],
    ),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


# indices out of bounds

SQUARE = numpy.arange(1.0, 7.0).reshape(2, 3)
OUTSIDE = {
    "gather": lambda x, i: x.gather(0, i.reshape(1, 1)),
    "scatter": lambda x, i: x.scatter(0, i.reshape(1, 1), 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i.reshape(1, 1), x),
    "index_select": lambda x, i: x.index_select(0, i),
    "index_add": lambda x, i: x.index_add(0, i, x[:1]),
    "index_put": lambda x, i: x.index_put([i], x[:1]),
    "take": lambda x, i: x.take(3 * i),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_out_of_bounds_raises(name):
    x = jaxgrad.tensor(SQUARE)
    OUTSIDE[name](x, jaxgrad.tensor([1]))
    for wrong in (2, -3):
        with pytest.raises(IndexError, match="is out of bounds for dimension"):
            OUTSIDE[name](x, jaxgrad.tensor([wrong]))


@pytest.mark.parametrize("name", OUTSIDE)
def test_only_index_put_and_take_accept_a_negative_index(name):
    x, last = jaxgrad.tensor(SQUARE), jaxgrad.tensor([-1])
    if name in ("index_put", "take"):
        positive = OUTSIDE[name](x, jaxgrad.tensor([1]))
        expected = positive if name == "index_put" else x[1:, 0]
        assert OUTSIDE[name](x, last).tolist() == expected.tolist()
        return
    with pytest.raises(IndexError, match="index -1 is out of bounds"):
        OUTSIDE[name](x, last)


def test_an_out_of_bounds_error_is_both_errors_that_pytorch_raises():
    """gather raises a RuntimeError in PyTorch, index_select an IndexError."""
    with pytest.raises(RuntimeError) as caught:
        jaxgrad.zeros(2).gather(0, jaxgrad.tensor([2]))
    assert isinstance(caught.value, IndexError)
    count("errors")


@pytest.mark.parametrize(
    "read",
    [
        lambda x, i: ops.index(x, [i]),
        lambda x, i: ops.index_select(x, 0, i),
        lambda x, i: ops.gather(x, 0, i),
        lambda x, i: ops.take(x, i),
    ],
    ids=["index", "index_select", "gather", "take"],
)
def test_what_is_read_out_of_bounds_under_a_trace_is_nan(read):
    result = jax.jit(read)(jnp.arange(3.0), jnp.array([1, 7]))
    assert result[0] == 1 and numpy.isnan(result[1])


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i: ops.index_put(x, [i], jnp.array([8.0, 9.0])),
        lambda x, i: ops.index_add(x, 0, i, jnp.array([8.0, 9.0])),
        lambda x, i: ops.scatter(x, 0, i, jnp.array([8.0, 9.0])),
        lambda x, i: ops.scatter_add(x, 0, i, jnp.array([8.0, 9.0])),
    ],
    ids=["index_put", "index_add", "scatter", "scatter_add"],
)
def test_what_is_written_out_of_bounds_under_a_trace_is_dropped(write):
    assert jax.jit(write)(jnp.zeros(3), jnp.array([1, 7])).tolist() == [0.0, 8.0, 0.0]
    count("programs")


# derivatives


@pytest.mark.slow
def test_index_add_has_the_conjugate_of_alpha_in_its_gradient():
    """PyTorch 2.13 leaves the conjugate out; JAX's own derivative of the same sum is the judge."""
    x, source = numpy.array([1 + 2j, 3j]), numpy.array([2 - 1j, 1 + 1j])
    places, alpha, gradient = numpy.array([1, 1]), 0.5 + 2j, numpy.array([1 - 3j, 2 + 1j])
    moving = jaxgrad.tensor(source, requires_grad=True)
    result = jaxgrad.tensor(x).index_add(0, jaxgrad.tensor(places), moving, alpha=alpha)
    result.backward(jaxgrad.tensor(gradient))
    with jax.enable_x64(True):
        _, pull = jax.vjp(lambda s: jnp.asarray(x).at[places].add(alpha * s), jnp.asarray(source))
        expected = numpy.conj(pull(jnp.asarray(numpy.conj(gradient)))[0])
    numpy.testing.assert_allclose(moving.grad.numpy(), expected, rtol=1e-14)


def test_scatter_gives_each_source_of_one_index_its_gradient():
    """As in PyTorch, though only one of them is the value."""
    source = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    written = jaxgrad.zeros(2).scatter(0, jaxgrad.tensor([1, 1]), source)
    written.backward(jaxgrad.tensor([3.0, 5.0]))
    assert source.grad.tolist() == [5.0, 5.0]
    count("closed forms")


@pytest.mark.parametrize(
    "call",
    [
        lambda: jaxgrad.take_along_dim(jaxgrad.ones(2), jaxgrad.tensor([2]), 0),
        lambda: jaxgrad.take_along_dim(jaxgrad.ones(2), jaxgrad.tensor([-3]), 0),
        lambda: jaxgrad.take_along_dim(jaxgrad.ones(2), jaxgrad.tensor([2])),
        lambda: jaxgrad.take_along_dim(jaxgrad.zeros(0, 3), jaxgrad.tensor([[0]]), 0),
        lambda: jaxgrad.index_select(jaxgrad.zeros(2, 0), 1, jaxgrad.tensor([0])),
    ],
)
def test_indices_of_no_element_are_refused(call):
    """`take_along_dim` of PyTorch takes the remainder by the size instead."""
    with pytest.raises(RuntimeError, match="is out of bounds for dimension"):
        call()
