"""Lookups in an embedding table, and one-hot encoding."""

from __future__ import annotations

import numpy

from .. import ops
from ..autograd import Function
from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.tracebacks import api_boundary


class _DividedByCount(Function):
    """The identity, whose backward divides each row's gradient by the number of its lookups."""

    @staticmethod
    def forward(ctx, rows, counts):
        ctx.save_for_backward(counts)
        return rows.view_as(rows)

    @staticmethod
    def backward(ctx, gradient):
        (counts,) = ctx.saved_tensors
        return gradient / counts, None


@api_boundary
def embedding(
    input, weight, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
):  # fmt: skip
    """Return the rows of `weight` at the indices `input`.

    input: int32 or int64 indices of any shape (*). weight: (num_embeddings, embedding_dim). The
    result is (*, embedding_dim). padding_idx: a row that receives no gradient. max_norm: rescale,
    in place, the rows that are looked up and whose `norm_type`-norm is greater. scale_grad_by_freq:
    divide the gradient of each row by the number of its lookups. Raises IndexError for an index
    outside the table, RuntimeError for another dtype or shape, NotImplementedError for
    `sparse=True`: gradients are dense.

    >>> table = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> F.embedding(jaxgrad.tensor([1, 1, 0]), table)
    tensor([[3., 4.],
            [3., 4.],
            [1., 2.]])
    """
    _check(input, weight)
    padding_idx = _row_index("Padding_idx", padding_idx, weight.shape[0])
    if sparse:
        raise NotImplementedError("embedding(): gradients are dense; leave sparse=True out")
    if max_norm is not None:
        _renormalize(input, weight, max_norm, norm_type)
    rows = _rows_at(weight, input)
    if scale_grad_by_freq:
        flat = input.reshape(-1)
        counts = weight.new_zeros(weight.shape[0]).index_add(
            0, flat, weight.new_ones(flat.shape[0])
        )
        rows = _DividedByCount.apply(rows, _rows_at(counts, input).unsqueeze(-1))
    if padding_idx is None:
        return rows
    return ops.where((input == padding_idx).unsqueeze(-1), rows.detach(), rows)


def _check(input, weight):
    if input.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {input.type()} instead (while checking arguments for embedding)"
        )
    if weight.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D, not of shape {list(weight.shape)}")


def _rows_at(table, input):
    try:
        rows = ops.index_select(table, 0, input.reshape(-1))
    except IndexError as error:
        raise IndexError(f"index out of range in self: embedding() of {error}") from None
    return rows.reshape(*input.shape, *table.shape[1:])


def _row_index(what, number, count):
    """Return a row index, counted from the end if it is negative."""
    if number is None:
        return None
    if not -count <= number < count:
        raise AssertionError(f"{what} must be within num_embeddings")
    return number % count


def _renormalize(input, weight, max_norm, norm_type):
    """Scale the rows that are looked up to a norm of at most `max_norm`."""
    with no_grad():
        norms = (weight.detach().abs() ** norm_type).sum(1, True) ** (1 / norm_type)
        is_used = weight.new_zeros(weight.shape[0]).index_fill(0, input.reshape(-1), 1).unsqueeze(1)
        exceeds = (is_used != 0).logical_and(norms > max_norm)
        weight.copy_(ops.where(exceeds, weight * (max_norm / (norms + 1e-7)), weight))


@api_boundary
def one_hot(tensor, num_classes: int = -1):
    """Return a tensor (*, num_classes) with 1 at the index in `tensor` (*), and 0 elsewhere.

    tensor: int64 indices. num_classes: -1 for one more than the largest index, which needs concrete
    values. The result is int64. Raises RuntimeError for an empty tensor without `num_classes`.

    >>> F.one_hot(jaxgrad.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if num_classes == -1:
        num_classes = _count_classes(tensor)
    return ops.one_hot(tensor, num_classes)


def _count_classes(tensor):
    classes = numpy.asarray(tensor)
    if not classes.size:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    return max(int(classes.max()), 0) + 1
