"""Shapes, joining and splitting: errors, promotion, empty and 0-d tensors as PyTorch has them; and
programs that only move what they must."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, primitives, refusals

import jaxgrad
from jaxgrad import ops

REFUSED = [
    # sizes that overflow
    (
        "tensor([1.0, 2.0]).repeat(2**40, 2**40)",
        RuntimeError,
        "Storage size calculation overflowed with sizes=[1099511627776, 2199023255552]",
    ),
    (
        "tensor([[1.0]]).expand(2**31, 2**31) + 1",
        RuntimeError,
        "Storage size calculation overflowed with sizes=[2147483648, 2147483648]",
    ),
    ("zeros(6).view(4)", RuntimeError, "shape '[4]' is invalid for input of size 6"),
    ("zeros(6).view(-1, -1)", RuntimeError, "only one dimension can be inferred"),
    (
        "zeros(6).view(-2, 3)",
        RuntimeError,
        "invalid shape dimension -2 at index 0 of shape [-2, 3]",
    ),
    (
        "zeros(0).view(-1, 0)",
        RuntimeError,
        "cannot reshape tensor of 0 elements into shape [-1, 0] because the unspecified",
    ),
    (
        "zeros(3).to(torch.uint8).view(torch.float32)",
        RuntimeError,
        "self.size(-1) must be divisible by 4 to view Byte as Float (different element sizes)",
    ),
    (
        "zeros(8).to(torch.uint8)[::2].view(dtype=torch.float32)",
        RuntimeError,
        "self.stride(-1) must be 1 to view Byte as Float (different element sizes), but got 2",
    ),
    (
        "zeros(3, 5).to(torch.uint8)[:, :4].view(torch.int16)",
        RuntimeError,
        "self.stride(0) must be divisible by 2 to view Byte as Short (different element sizes)",
    ),
    (
        "zeros(()).view(torch.uint8)",
        RuntimeError,
        "self.dim() cannot be 0 to view Float as Byte (different element sizes)",
    ),
    (
        "torch.flatten(zeros(2, 3), 1, 0)",
        RuntimeError,
        "flatten() has invalid args: start_dim cannot come after end_dim",
    ),
    (
        "torch.unflatten(zeros(6), 0, (4, 2))",
        RuntimeError,
        "unflatten: Provided sizes [4, 2] don't multiply up to the size of dim 0 (6) in the",
    ),
    ("torch.unflatten(zeros(6), 0, ())", RuntimeError, "unflatten: sizes must be non-empty"),
    (
        "torch.squeeze(zeros(1, 1), (0, 0))",
        RuntimeError,
        "dim 0 appears multiple times in the list of dims",
    ),
    (
        "torch.unsqueeze(zeros(2), 2)",
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    (
        "zeros(3).expand(2)",
        RuntimeError,
        "The expanded size of the tensor (2) must match the existing size (3) at non-singleton",
    ),
    (
        "zeros(3).expand(-1, 3)",
        RuntimeError,
        "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing",
    ),
    (
        "zeros(2, 3).expand(3)",
        RuntimeError,
        "the number of sizes provided (1) must be greater or equal to the number of dimensions",
    ),
    (
        "torch.permute(zeros(2, 3), (0,))",
        RuntimeError,
        "number of dimensions in the tensor input does not match the length of the desired",
    ),
    (
        "torch.permute(zeros(2, 3), (0, 0))",
        RuntimeError,
        "permute(): duplicate dims are not allowed",
    ),
    (
        "torch.transpose(zeros(2, 3), 0, 2)",
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    (
        "torch.t(zeros(1, 2, 3))",
        RuntimeError,
        "t() expects a tensor with <= 2 dimensions, but self is 3D",
    ),
    (
        "torch.movedim(zeros(2, 3), (0, 1), (0,))",
        RuntimeError,
        "movedim: Invalid source or destination dims: source ([0, 1] dims) should contain the",
    ),
    (
        "torch.movedim(zeros(2, 3), (0, 0), (0, 1))",
        RuntimeError,
        "movedim: repeated dim in `source` ([0, 0])",
    ),
    (
        "torch.flip(zeros(2, 3), (0, 0))",
        RuntimeError,
        "dim 0 appears multiple times in the list of dims",
    ),
    ("torch.roll(zeros(2, 3), ())", RuntimeError, "`shifts` required"),
    (
        "torch.roll(zeros(2, 3), (1, 2), (0,))",
        RuntimeError,
        "shifts and dimensions must align. shifts: 2, dims:1",
    ),
    (
        "torch.rot90(zeros(2, 3), 1, (0,))",
        RuntimeError,
        "expected total rotation dims == 2, but got dims = 1",
    ),
    ("torch.rot90(zeros(2))", RuntimeError, "expected total dims >= 2, but got total dims = 1"),
    (
        "torch.rot90(zeros(2, 3), 1, (0, -2))",
        RuntimeError,
        "expected rotation dims to be different, but got dim0 = 0 and dim1 = -2",
    ),
    ("torch.cat(())", ValueError, "torch.cat(): expected a non-empty list of Tensors"),
    (
        "torch.cat([tensor(1.0), tensor([1.0])])",
        RuntimeError,
        "zero-dimensional tensor (at position 0) cannot be concatenated",
    ),
    (
        "torch.cat([zeros(2, 3), zeros(3, 2)])",
        RuntimeError,
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for",
    ),
    (
        "torch.cat([zeros(2, 3), zeros(3)])",
        RuntimeError,
        "Tensors must have same number of dimensions: got 2 and 1",
    ),
    ("torch.stack(())", RuntimeError, "stack expects a non-empty TensorList"),
    (
        "torch.stack([zeros(2), zeros(3)])",
        RuntimeError,
        "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
    ),
    (
        "torch.hstack([zeros(2, 3), zeros(3, 3)])",
        RuntimeError,
        "Sizes of tensors must match except in dimension 1. Expected size 2 but got size 3 for",
    ),
    (
        "torch.vstack([zeros(2, 3), zeros(2, 2)])",
        RuntimeError,
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for",
    ),
    ("torch.split(tensor(1.0), 1)", RuntimeError, "split expects at least a 1-dimensional tensor"),
    (
        "torch.split(zeros(4), -1)",
        RuntimeError,
        "split expects split_size be non-negative, but got split_size=-1",
    ),
    (
        "torch.split(zeros(4), 0)",
        RuntimeError,
        "split_size can only be 0 if dimension size is 0, but got dimension size of 4",
    ),
    (
        "torch.split(zeros(4), (1, 2))",
        RuntimeError,
        "split_with_sizes expects split_sizes to sum exactly to 4 (input tensor's size at",
    ),
    (
        "torch.split(zeros(4), (-1, 5))",
        RuntimeError,
        "split_with_sizes expects split_sizes have only non-negative entries, but got",
    ),
    (
        "torch.chunk(zeros(4), 0)",
        RuntimeError,
        "chunk expects `chunks` to be greater than 0, got: 0",
    ),
    ("torch.chunk(tensor(1.0), 2)", RuntimeError, "chunk expects at least a 1-dimensional tensor"),
    (
        "torch.unbind(tensor(1.0))",
        IndexError,
        "Dimension specified as 0 but tensor has no dimensions",
    ),
    (
        "torch.diagonal(zeros(2))",
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ),
    (
        "torch.diagonal(zeros(2, 2), 0, 1, 1)",
        RuntimeError,
        "diagonal dimensions cannot be identical 1, 1",
    ),
    (
        "torch.diag_embed(zeros(2), 0, 0, 0)",
        RuntimeError,
        "diagonal dimensions cannot be identical 0, 0",
    ),
    ("torch.diag(zeros(1, 1, 1))", RuntimeError, "diag(): Supports 1D or 2D tensors. Got 3D"),
    (
        "zeros(2, 3).repeat(2)",
        RuntimeError,
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of",
    ),
    (
        "zeros(2, 3).repeat(-1, 2)",
        RuntimeError,
        "Trying to create tensor with negative dimension -2: [-2, 6]",
    ),
]

ANSWERS = [
    # cat and stack promote dtypes; an empty vector joins any shape and its dtype counts
    ("torch.cat([tensor([1], dtype=torch.int8), tensor([True])])", "int8", [1, 1]),
    (
        "torch.cat([tensor([1], dtype=torch.int8), tensor([2.5], dtype=torch.float16)])",
        "float16",
        [1.0, 2.5],
    ),
    ("torch.cat([zeros(0), tensor([[1, 2]])])", "float32", [[1.0, 2.0]]),
    ("torch.cat([zeros(0, dtype=torch.float64), tensor([1.0])])", "float64", [1.0]),
    ("torch.stack([tensor(1), tensor(2.5)])", "float32", [1.0, 2.5]),
    ("torch.hstack([tensor(1), tensor([2, 3])])", "int64", [1, 2, 3]),
    ("torch.vstack([tensor(1), tensor([2])])", "int64", [[1], [2]]),
    # how many pieces, and of which extent
    ("tensor([len(piece) for piece in torch.chunk(zeros(5), 4)])", "int64", [2, 2, 1]),
    ("tensor([len(piece) for piece in torch.chunk(zeros(0), 3)])", "int64", [0, 0, 0]),
    ("tensor([len(piece) for piece in torch.split(zeros(5), 2)])", "int64", [2, 2, 1]),
    ("tensor([len(piece) for piece in torch.split(zeros(0), 0)])", "int64", [0]),
    ("tensor([len(piece) for piece in torch.split(zeros(4), (0, 4, 0))])", "int64", [0, 4, 0]),
    # no dimensions, no elements
    ("torch.flatten(tensor(1.0))", "float32", [1.0]),
    ("torch.t(tensor(1.0))", "float32", 1.0),
    ("torch.squeeze(zeros(1, 0, 1))", "float32", []),
    ("torch.diagonal(zeros(2, 3), 7)", "float32", []),
    ("torch.diag_embed(zeros(2, 0))", "float32", numpy.zeros((2, 0, 0))),
    ("torch.unflatten(zeros(0, 6), 0, (0, 3))", "float32", numpy.zeros((0, 3, 6))),
    ("zeros(0, 3).view(-1, 3)", "float32", numpy.zeros((0, 3))),
    ("zeros(1, 0).expand(3, -1, 0)", "float32", numpy.zeros((3, 1, 0))),
    ("tensor([1, 2]).repeat(2, 0)", "int64", numpy.zeros((2, 0))),
    ("torch.tile(tensor([1, 2]), ())", "int64", [1, 2]),
    # rotations past the end
    ("torch.roll(tensor([[1, 2], [3, 4]]), 1)", "int64", [[4, 1], [2, 3]]),
    ("torch.roll(tensor([1, 2, 3]), (1, 1), (0, 0))", "int64", [2, 3, 1]),
    ("torch.roll(tensor([1, 2, 3]), -4)", "int64", [2, 3, 1]),
    ("torch.rot90(tensor([[1, 2], [3, 4]]), 5)", "int64", [[2, 4], [1, 3]]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


def test_broadcasting_to_a_size_that_overflows_is_refused():
    operands = [jaxgrad.zeros(2**21, *[1] * extra) for extra in range(3)]
    with pytest.raises(RuntimeError, match=r"overflowed with sizes=\[2097152, 2097152, 2097152\]"):
        jaxgrad.addcmul(*operands)


def test_diag_embed_needs_a_dimension():
    with pytest.raises(RuntimeError, match="needs a tensor of one dimension or more"):
        jaxgrad.diag_embed(jaxgrad.tensor(1.0))
    count("errors")


def test_a_negative_extent_is_refused():
    with pytest.raises(RuntimeError, match="Trying to create tensor with negative dimension -2"):
        jaxgrad.zeros(1).expand(-2)
    count("errors")


def test_cat_gives_each_tensor_the_gradient_of_its_own_dtype():
    first = jaxgrad.ones(2, dtype=jaxgrad.float16, requires_grad=True)
    second = jaxgrad.ones(1, dtype=jaxgrad.float64, requires_grad=True)
    joined = jaxgrad.cat([first, second])
    joined.backward(jaxgrad.tensor([1.0, 2.0, 3.0], dtype=jaxgrad.float64))
    assert joined.dtype is jaxgrad.float64
    assert (first.grad.dtype, second.grad.dtype) == (jaxgrad.float16, jaxgrad.float64)
    assert (first.grad.tolist(), second.grad.tolist()) == ([1.0, 2.0], [3.0])
    count("closed forms", 2)


def test_cat_of_a_tensor_with_itself_adds_its_gradients():
    x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    jaxgrad.stack([x, x]).backward(jaxgrad.tensor([[1.0, 2.0], [10.0, 20.0]]))
    assert x.grad.tolist() == [11.0, 22.0]
    count("closed forms")


def test_outputs_of_split_without_a_gradient_give_zeros():
    x = jaxgrad.ones(5, requires_grad=True)
    _, middle, _ = x.split((1, 2, 2))
    middle.backward(jaxgrad.tensor([3.0, 4.0]))
    assert x.grad.tolist() == [0.0, 3.0, 4.0, 0.0, 0.0]
    count("closed forms")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ops.permute(x, (1, 0)),
        lambda x: ops.expand(ops.unsqueeze(x, 0), (4, 2, 3)),
        lambda x: ops.repeat(x, (2, 2)),
        lambda x: ops.cat([x, x]),
        lambda x: ops.stack(ops.split(x, 1)),
        lambda x: ops.flip(x, (0,)),
        lambda x: ops.roll(x, (1,), (0,)),
    ],
    ids=["permute", "expand", "repeat", "cat", "split and stack", "flip", "roll"],
)
def test_gradients_move_blocks_and_do_not_gather_or_scatter(function):
    """A gather or a scatter would run one element at a time."""

    def gradient(x):
        value, pull = jax.vjp(function, x)
        return pull(value)

    names = {*primitives(jax.make_jaxpr(gradient)(jnp.ones((2, 3))))}
    assert not any("scatter" in name or "gather" in name for name in names)
    assert "mul" not in names
    count("programs")
