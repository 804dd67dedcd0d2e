"""Functions that join, split, stack and repeat tensors: errors, dtypes and odd arguments."""

import warnings

import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad
from jaxgrad import ops

REFUSED = [
    ("torch.meshgrid(zeros(2, 2), indexing='ij')", RuntimeError, "Expected 0D or 1D tensor"),
    ("torch.meshgrid(indexing='ij')", RuntimeError, "meshgrid expects a non-empty TensorList"),
    ("torch.meshgrid(zeros(2), indexing='x')", RuntimeError, 'must be one of "xy" or "ij"'),
    ("torch.meshgrid(zeros(1), tensor([1]), indexing='ij')", RuntimeError, "the same dtype"),
    ("torch.repeat_interleave(zeros(2), -1)", RuntimeError, "Repeats must be non-negative"),
    ("torch.repeat_interleave(zeros(2), tensor([1, -1]))", RuntimeError, "can not be negative"),
    (
        "torch.repeat_interleave(zeros(3), tensor([1, 2]))",
        RuntimeError,
        "repeats must have the same size as input along dim, but got repeats.size(0) = 2",
    ),
    ("torch.repeat_interleave(zeros(3), 2, output_size=5)", RuntimeError, "expected 6 but got 5"),
    (
        "torch.repeat_interleave(zeros(2), tensor([1, 1]), output_size=5)",
        RuntimeError,
        "allocated size does not match required size",
    ),
    ("torch.repeat_interleave(tensor([1.0]))", NotImplementedError, "not implemented for 'Float'"),
    ("torch.repeat_interleave(zeros(2), [1, 2])", TypeError, "repeat_interleave() received an in"),
    ("torch.repeat_interleave(zeros(2), 2, 1)", IndexError, "Dimension out of range"),
    ("torch.tensor_split(zeros(2), 0)", RuntimeError, "number of sections must be larger than 0"),
    ("torch.tensor_split(tensor(1.0), 1)", RuntimeError, "expected at least a 1-dimensional"),
    ("torch.tensor_split(zeros(2), tensor([1.0]))", RuntimeError, "to have dtype of long, but got"),
    ("torch.tensor_split(zeros(2), tensor([[1]]))", RuntimeError, "zero-dimensional or one-dim"),
    ("torch.tensor_split(zeros(2), 1.5)", TypeError, "tensor_split() received an invalid combin"),
    ("torch.hsplit(zeros(2, 3), 2)", RuntimeError, "the size of the dimension 3 is not divisible"),
    ("torch.hsplit(tensor(1.0), 1)", RuntimeError, "torch.hsplit requires a tensor with at least"),
    ("torch.vsplit(zeros(2), 1)", RuntimeError, "torch.vsplit requires a tensor with at least 2"),
    ("torch.dsplit(zeros(2, 2), 1)", RuntimeError, "torch.dsplit requires a tensor with at least"),
    ("torch.hsplit(zeros(2), tensor([1]))", TypeError, "hsplit() received an invalid combination"),
    ("torch.column_stack([])", RuntimeError, "column_stack expects a non-empty TensorList"),
    ("torch.dstack(zeros(2))", TypeError, "dstack(): argument 'tensors'"),
    ("torch.broadcast_tensors(zeros(2), zeros(3))", RuntimeError, "must match the size of tensor"),
    ("torch.broadcast_shapes((-1,), (3,))", ValueError, "with negative length!"),
    ("torch.broadcast_shapes(1.5)", RuntimeError, "Input shapes should be of type ints"),
    ("torch.unsafe_chunk(zeros(2), 0)", RuntimeError, "chunk expects `chunks` to be greater than"),
    ("torch.fliplr(zeros(2))", RuntimeError, "Input must be >= 2-d."),
    ("torch.flipud(tensor(1.0))", RuntimeError, "Input must be >= 1-d."),
    ("torch._chunk_cat([], 0, 2)", RuntimeError, "a non-empty input tensor list"),
    ("torch._chunk_cat([zeros(2)], 0, 0)", RuntimeError, "expects positive num_chunks"),
    ("torch._chunk_cat([zeros(2), zeros(0)], 0, 2)", RuntimeError, "expects non-empty tensor"),
    ("torch._chunk_cat([zeros(2), tensor([1])], 0, 2)", RuntimeError, "with the same dtype"),
    ("torch._chunk_cat([zeros(2, 3), zeros(3, 4)], 1, 2)", RuntimeError, "expects same sizes of"),
]

ANSWERS = [
    (
        "torch._chunk_cat([torch.arange(10).reshape(5, 2), tensor([7, 8])], 0, 3)",
        "int64",
        [[0, 1, 2, 3, 7], [4, 5, 6, 7, 8], [8, 9, 0, 0, 0]],
    ),
    (
        "torch._chunk_cat([torch.arange(6).reshape(2, 3), torch.arange(8).reshape(2, 4)], -1, 2)",
        "int64",
        [[[0, 1, 0, 1], [2, 0, 2, 3]], [[3, 4, 4, 5], [5, 0, 6, 7]]],
    ),
    ("torch.meshgrid(zeros(0), tensor([1.0]), indexing='xy')[1]", "float32", [[]]),
    ("torch.repeat_interleave(tensor(3), 2)", "int64", [3, 3]),
    ("torch.repeat_interleave(tensor([2, 1], dtype=torch.int32))", "int32", [0, 0, 1]),
    ("torch.repeat_interleave(tensor([[1, 2]]), tensor(2), -1)", "int64", [[1, 1, 2, 2]]),
    ("torch.tensor_split(tensor([1, 2, 3]), (1, 9, -1))[3]", "int64", [3]),
    ("torch.tensor_split(tensor([1, 2]), sections=2)[1]", "int64", [2]),
    ("torch.tensor_split(tensor([1, 2]), tensor_indices_or_sections=tensor(2))[1]", "int64", [2]),
    ("torch.hsplit(tensor([1, 2]), indices=(1,))[1]", "int64", [2]),
    ("torch.column_stack((tensor(1), tensor([2.5])))", "float32", [[1.0, 2.5]]),
    ("torch.dstack((tensor(1), tensor(2)), out=zeros(0))", "float32", [[[1.0, 2.0]]]),
]

RANGES = [
    ("torch.range(1, 4)", "float32", [1.0, 2.0, 3.0, 4.0]),
    ("torch.range(4, 1, -1.5)", "float32", [4.0, 2.5, 1.0]),
    ("torch.range(1, 4.5, dtype=torch.int64)", "int64", [1, 2, 3, 4]),
    ("torch.range(0, 1, 0.1)[-1:]", "float32", [1.0]),
    ("zeros(2, 1).resize(2)", "float32", [0.0, 0.0]),
    ("zeros(2, 1).resize_as(zeros(2))", "float32", [0.0, 0.0]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


@answers(RANGES)
def test_deprecated_functions_warn_and_match_pytorch(call, dtype, values):
    with pytest.warns(UserWarning, match="deprecated"):
        check_answer(jaxgrad, call, dtype, values)


def test_meshgrid_warns_without_indexing():
    with pytest.warns(UserWarning, match="required to pass the indexing argument"):
        grids = jaxgrad.meshgrid(jaxgrad.arange(2), jaxgrad.arange(3))
    assert grids[1].tolist() == [[0, 1, 2]] * 2
    with warnings.catch_warnings(action="error"):
        jaxgrad.meshgrid(jaxgrad.arange(2), indexing="xy")


def test_pieces_are_views_and_unsafe_pieces_share_memory_alone():
    x = jaxgrad.zeros(4)
    for split in (jaxgrad.tensor_split, jaxgrad.hsplit):
        split(x, 2)[1].fill_(5)
        assert x.tolist() == [0, 0, 5, 5]
        x.zero_()
    for pieces in (ops.unsafe_split(x, 2), jaxgrad.unsafe_chunk(x, 2)):
        version = x._version
        pieces[1].fill_(5)
        assert x.tolist() == [0, 0, 5, 5] and not pieces[1]._is_view()
        assert (x._version, pieces[0]._version, pieces[1]._version) == (version, 0, 1)
        x.zero_()
        assert pieces[1].tolist() == [0, 0]


def test_derivatives_of_unsafe_pieces():
    x = jaxgrad.arange(12.0).reshape(3, 4).requires_grad_()
    left, right = jaxgrad.unsafe_chunk(x, 2, 1)
    right.mul_(2)  # no view of a leaf
    assert x[1].tolist() == [4, 5, 12, 14]
    (left.sum() + (right**2).sum()).backward()
    assert x.grad.tolist() == [[1, 1, 16, 24], [1, 1, 48, 56], [1, 1, 80, 88]]  # as in PyTorch

    def function(x):
        first, second = x.unsafe_split(2)
        first.add_(1)
        return x.sum() + (second**2).sum()

    x = jaxgrad.tensor([1.0, 2.0, 3.0])
    for run in (function, jaxgrad.jit(function)):
        assert run(x.clone()).item() == 17
    _, tangent = jaxgrad.func.jvp(lambda x: x.unsafe_split(2)[1] ** 2, (x,), (x,))
    assert tangent.tolist() == [18]


def test_counts_are_traced_where_the_size_is_given():
    compiled = jaxgrad.jit(
        lambda x, repeats: (x.repeat_interleave(repeats, output_size=3), x.nonzero_static(size=2))
    )
    for repeats, expected in (([1, 2], [0, 5, 5]), ([3, 0], [0, 0, 0])):
        result, places = compiled(jaxgrad.tensor([0, 5]), jaxgrad.tensor(repeats))
        assert result.tolist() == expected and places.tolist() == [[1], [-1]]
    assert len(compiled.traces) == 1
    with pytest.raises(RuntimeError, match="repeat_interleave\\(\\) without output_size needs the"):
        jaxgrad.jit(jaxgrad.repeat_interleave)(jaxgrad.arange(2), jaxgrad.tensor([1, 2]))
    count("programs")


@pytest.mark.filterwarnings("ignore:non-inplace resize")
def test_gradient_of_a_resized_tensor():
    x = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (x.t().resize(4) * jaxgrad.tensor([10.0, 20.0, 30.0, 40.0])).sum().backward()
    assert x.grad.tolist() == [[10.0, 30.0], [20.0, 40.0]]
    count("closed forms")
