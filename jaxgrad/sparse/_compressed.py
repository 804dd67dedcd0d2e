"""Tensors in compressed layouts: rows (CSR), columns (CSC), and these of blocks (BSR, BSC).

Between the layouts stands the coordinate format: `as_coo` and `compress` convert to and from it,
and operators compute in it.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from .. import ops
from ..core import dtypes
from ..core.device import sparse_csr
from ..tape.sparse_tensor import (
    CompressedTensor,
    Compression,
    SparseTensor,
    is_compressed,
    is_sparse,
    sparse,
    values_of,
)
from ..tape.tensor import Tensor, concrete, is_concrete, wrap
from . import _elements, _operators, _pattern, _refusals
from ._layouts import BLOCKLESS, BLOCKS, NAMES, ROWS, TURNED


def name_of(tensor: Tensor) -> str:
    """The name of a tensor's layout in PyTorch's messages."""
    return NAMES.get(tensor.layout, "Sparse" if is_sparse(tensor) else "Strided")


def batch_dims(tensor: CompressedTensor) -> int:
    """The number of batch dimensions."""
    return tensor._indices_held.ndim - 1


def block_of(tensor: CompressedTensor) -> tuple[int, int] | None:
    """The sizes of a block; None in the layouts of single elements."""
    if tensor.layout not in BLOCKS:
        return None
    begin = batch_dims(tensor) + 1
    return tuple(values_of(tensor).shape[begin : begin + 2])


def like(tensor: CompressedTensor, values: Tensor) -> CompressedTensor:
    """Other values at the indices of a tensor."""
    return sparse(values, tensor._indices_held, tensor._sizes, tensor._coalesced)


def zero(tensor: CompressedTensor) -> CompressedTensor:
    """A tensor of the same shape without elements."""
    values, count = values_of(tensor).detach(), batch_dims(tensor)
    none = ops.narrow(values, count, 0, 0).clone()
    begin = ops.mul(tensor._coalesced.indices, 0)
    plain = ops.narrow(tensor._indices_held, count, 0, 0).clone()
    return sparse(none, plain, tensor._sizes, Compression(begin, tensor.layout))


def resized(tensor: CompressedTensor, size) -> CompressedTensor:
    """A CSR tensor of other sizes, with the elements that it has room for, in their order.

    Raises RuntimeError for fewer columns.
    """
    name = "torch.resize_"
    if tensor.layout is not sparse_csr:
        raise _refusals.refusal("resize_", tensor.layout)
    if len(size) < 2:
        raise RuntimeError(
            f"{name}: Only batched sparse CSR matrices are supported, but got size {list(size)}"
        )
    columns = tensor.shape[batch_dims(tensor) + 1]
    if columns > size[-1]:
        raise RuntimeError(
            f"{name}: Resizing columns of sparse CSR tensors to a smaller value is not supported. "
            f"The original number of columns is {columns} while the requested new number of "
            f"columns is {size[-1]}."
        )
    begin = np.asarray(concrete(tensor._coalesced.indices, "resize_"))
    *batch, rows, _ = size
    count = min(tensor._nnz(), rows * size[-1])
    lines = begin.shape[-1]
    begin = _prefix(begin, (*batch, rows + 1))
    begin[..., min(lines, rows) :] = count
    dense = values_of(tensor).shape[batch_dims(tensor) + 1 :]
    plain = np.asarray(concrete(tensor._indices_held, "resize_"))
    plain = _prefix(plain, (*batch, count))
    return sparse(
        _first_values(values_of(tensor), (*batch, count, *dense)),
        _as_index_tensor(plain, tensor._indices_held.dtype),
        tuple(size),
        Compression(_as_index_tensor(begin, tensor._indices_held.dtype), tensor.layout),
    )


def _prefix(array, shape):
    """The first numbers of an array in another shape; zeros behind them."""
    result, flat = np.zeros(shape, array.dtype), array.reshape(-1)
    count = min(flat.size, result.size)
    result.reshape(-1)[:count] = flat[:count]
    return result


def _first_values(values: Tensor, shape) -> Tensor:
    flat, count = ops.reshape(values, (-1,)), math.prod(shape)
    missing = count - flat.shape[0]
    flat = ops.cat([flat, flat.new_zeros(missing)]) if missing > 0 else flat[:count]
    return ops.reshape(flat, shape)


def check_same_layout(tensor, other):
    """Raise RuntimeError where a tensor cannot take the shape of another one."""
    if not is_compressed(other):
        raise RuntimeError(
            "resize_as_sparse_compressed_: src  expected sparse compressed tensor layout but got "
            f"{name_of(other)}"
        )
    if tensor.layout is not other.layout:
        raise RuntimeError(
            "resize_as_sparse_compressed_tensor_: self and src must have the same layout, but got: "
            f"self ({name_of(tensor)}) and source ({name_of(other)})"
        )


def shaped_as(tensor: CompressedTensor, other: CompressedTensor) -> CompressedTensor:
    """The first values of a tensor at the indices of another one, of the dtype of its own."""
    dtype, values = tensor._indices_held.dtype, values_of(tensor).detach()
    begin = other._coalesced.indices.to(dtype)
    return sparse(
        _first_values(values, tuple(values_of(other).shape)),
        other._indices_held.to(dtype),
        other._sizes,
        Compression(begin, tensor.layout),
    )


# ---- conversions


def as_coo(tensor: CompressedTensor) -> SparseTensor:
    """The tensor in coordinate format, where a trace knows the elements' number too."""
    values, count = values_of(tensor), batch_dims(tensor)
    parts = tensor._coalesced.indices, tensor._indices_held
    block, dense = block_of(tensor), values.shape[count + 1 :]
    if block is not None:
        dense = dense[2:]
    find = _known_indices if all(map(is_concrete, parts)) else _traced_indices
    with jax.enable_x64(True):
        compressed, plain = (part._array for part in parts)
        pair = find(compressed, plain)
        pair = pair if tensor.layout in ROWS else pair[::-1]
        indices = _as_indices(*pair, tensor._sizes[:count], block)
    flat = ops.reshape(values, (indices.shape[1], *dense))
    is_sorted = tensor.layout is sparse_csr or indices.shape[1] < 2
    return sparse(flat, _pattern.as_indices(indices), tensor._sizes, is_sorted)


def _known_indices(compressed, plain):
    """The compressed and the plain index of each element, of shape (batches, elements)."""
    compressed, plain = np.asarray(compressed), np.asarray(plain)
    rows = compressed.reshape(-1, compressed.shape[-1]).astype(np.int64)
    numbers = [np.repeat(np.arange(rows.shape[1] - 1), np.diff(row)) for row in rows]
    plain = plain.reshape(len(rows), -1).astype(np.int64)
    return np.stack(numbers) if len(numbers) else plain, plain


def _traced_indices(compressed, plain):
    rows = compressed.reshape(-1, compressed.shape[-1]).astype(jnp.int64)
    plain = plain.reshape(rows.shape[0], -1).astype(jnp.int64)
    places = jnp.arange(plain.shape[1])
    find = functools.partial(jnp.searchsorted, v=places, side="right")
    return jax.vmap(find)(rows) - 1, plain


def _as_indices(row, column, batch, block):
    """The indices (batch dimensions + 2, elements) of all elements of blocks."""
    module = np if isinstance(row, np.ndarray) else jnp
    count = row.shape[0]
    if block is not None:
        inner = module.arange(block[0])[:, None], module.arange(block[1])[None, :]
        row = row[..., None, None] * block[0] + inner[0] + 0 * inner[1]
        column = column[..., None, None] * block[1] + inner[1] + 0 * inner[0]
        row, column = row.reshape(count, -1), column.reshape(count, -1)
    numbers = np.unravel_index(np.arange(count), batch) if batch else ()
    numbers = [module.broadcast_to(number[:, None], row.shape).reshape(-1) for number in numbers]
    return module.stack([*numbers, row.reshape(-1), column.reshape(-1)])


def compress(tensor: SparseTensor, layout, block=None, index_dtype=dtypes.int64):
    """A tensor in coordinate format in a compressed layout.

    The last two sparse dimensions are those of the matrices. Raises RuntimeError for batches of
    which the matrices have different numbers of elements, and in a trace.
    """
    tensor = _elements.coalesce(tensor)
    indices, sizes = _pattern.needed(tensor, "a compressed layout"), _pattern.sparse_sizes(tensor)
    *batch, rows, columns = sizes
    batches, (height, width) = math.prod(batch), block or (1, 1)
    if not batches:
        raise RuntimeError(
            f"to_{layout.name}: Expected product of batch dimensions to be non-zero, but got sizes "
            f"{list(tensor._sizes)}"
        )
    number = np.ravel_multi_index(tuple(indices[:-2]), batch) if batch else 0
    places = indices[-2] // height, indices[-1] // width
    extents = rows // height, columns // width
    if layout not in ROWS:
        places, extents = places[::-1], extents[::-1]
    key = (number * extents[0] + places[0]) * extents[1] + places[1]
    kept, inverse = np.unique(key, return_inverse=True)
    line, plain = np.divmod(kept, max(extents[1], 1))
    counts = np.bincount(line, minlength=batches * extents[0]).reshape(batches, extents[0])
    totals = counts.sum(1)
    if (totals != totals[:1]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    begin = np.concatenate([np.zeros((batches, 1), np.int64), counts.cumsum(1)], 1)
    values, dense = values_of(tensor), tensor._sizes[len(sizes) :]
    if block is None:
        values = ops._coo_ungroup(values, _pattern.as_indices(np.argsort(key, kind="stable")))
    else:
        within = np.stack([inverse.reshape(-1), indices[-2] % height, indices[-1] % width])
        shape = (len(kept), height, width, *dense)
        if within.shape[1] == math.prod(shape[:3]):  # all elements: none is added to a zero
            order = np.argsort(np.ravel_multi_index(tuple(within), shape[:3]))
            values = ops._coo_ungroup(values, _pattern.as_indices(order)).reshape(shape)
        else:
            values = ops._coo_to_dense(values, _pattern.as_indices(within), shape)
    shape = (*batch, len(kept) // max(batches, 1))
    values = ops.reshape(values, (*shape, *values.shape[1:]))
    begin = _as_index_tensor(begin.reshape(*batch, extents[0] + 1), index_dtype)
    plain = _as_index_tensor(plain.reshape(shape), index_dtype)
    return sparse(values, plain, tensor._sizes, Compression(begin, layout))


def _as_index_tensor(array, dtype) -> Tensor:
    with jax.enable_x64(True):
        return wrap(jnp.asarray(array, dtype=dtype.numpy))


def convert(tensor: Tensor, layout, blocksize=None, dense_dim=None) -> Tensor:
    """A tensor in a compressed layout, from any layout. Raises RuntimeError for sizes of blocks and
    dense dimensions that do not fit.
    """
    source, target = name_of(tensor), NAMES[layout]
    what = f"conversion from {source} to {target}"
    name = "dense_to_sparse" if not is_sparse(tensor) else "to_sparse"
    block = (blocksize, blocksize) if isinstance(blocksize, int) else blocksize
    if is_compressed(tensor) and dense_dim is not None:
        raise RuntimeError(f"{name}: {what} with dense_dim argument given is not supported")
    if layout in BLOCKS and block is None:
        if tensor.layout is layout:
            return tensor
        raise RuntimeError(f"{name}: {what} without blocksize argument given is not supported")
    if layout not in BLOCKS and block is not None:
        raise RuntimeError(f"{name}: {what} with blocksize argument given is not supported")
    if tensor.layout is layout and (block is None or tuple(block) == block_of(tensor)):
        return tensor
    block = None if block is None else tuple(block)
    if is_compressed(tensor):
        matrices, dtype = as_coo(tensor), tensor._indices_held.dtype
    else:
        matrices, dtype = _matrices_of(tensor, target, dense_dim, block), dtypes.int64
    count = _pattern.sparse_dims(matrices)
    _check_block(target, matrices._sizes[count - 2 : count], block)
    return compress(matrices, layout, block, dtype)


def _matrices_of(tensor, target, dense_dim, block) -> SparseTensor:
    """A strided tensor or one in coordinate format, with its matrices in sparse dimensions."""
    if is_sparse(tensor):
        if _pattern.sparse_dims(tensor) < 2:
            raise RuntimeError(f"to_sparse: conversion from Sparse to {target} needs 2 sparse dims")
        return tensor
    dense, most = dense_dim or 0, tensor.ndim - 2
    if most < 0 or not 0 <= dense <= most:
        kind = RuntimeError if dense and block is None else IndexError
        raise kind(
            f"dense_to_sparse_{target[-3:].lower()}: dense_dim argument must be in [0,{most}] "
            f"range, but {dense} is given: Dimension out of range"
        )
    count = tensor.ndim - dense
    _check_block(target, tensor.shape[count - 2 : count], block)
    return _elements.from_dense(tensor, count, block)


def _check_block(target, sizes, block):
    if block is None:
        return
    if len(block) != 2 or min(block) <= 0:
        raise RuntimeError(f"blocksize needs to be a tuple of two positive sizes, but got {block}")
    if any(size % extent for size, extent in zip(sizes, block, strict=True)):
        shown = [",".join(map(str, pair)) for pair in (sizes, block)]
        raise RuntimeError(
            f"dense_to_sparse_{target[-3:].lower()}: tensor sparse size ({shown[0]}) must be "
            f"divisible by given blocksize ({shown[1]})"
        )


def to_dense(tensor: CompressedTensor) -> Tensor:
    """The strided tensor."""
    return _elements.to_dense(as_coo(tensor))


def at_pattern(tensor: CompressedTensor, gradient: Tensor) -> Tensor:
    """The elements of a gradient of any layout at the indices of a tensor, as its values."""
    if is_compressed(gradient) and has_pattern_of(gradient, tensor):
        return values_of(gradient)
    coo = as_coo(like(tensor, values_of(tensor).detach()))
    gradient = gradient.to_dense() if is_sparse(gradient) else gradient
    return ops.reshape(ops._coo_mask(gradient, coo._indices_held), values_of(tensor).shape)


def has_pattern_of(one: CompressedTensor, other: CompressedTensor) -> bool:
    """Whether two tensors of one layout have the same indices, as far as is known."""
    if one.layout is not other.layout:
        return False
    pairs = (
        (one._indices_held, other._indices_held),
        (one._coalesced.indices, other._coalesced.indices),
    )
    return all(
        a is b or (is_concrete(a) and is_concrete(b) and np.array_equal(a._array, b._array))
        for a, b in pairs
    )


# ---- operators


def call(name: str, args, kwargs):
    """Call an operator with a compressed tensor among its arguments."""
    tensors = [value for value in (*args, *kwargs.values()) if is_sparse(value)]
    tensors += [item for value in args if isinstance(value, list | tuple) for item in value]
    first = next(tensor for tensor in tensors if is_compressed(tensor))
    tags = ops.library.tags(name)
    if not tags.isdisjoint(("sparse_linear", "sparse_zero_to_zero")) and args[0] is first:
        return like(first, getattr(ops, name)(values_of(first), *args[1:], **kwargs))
    if name in ("add", "sub") and not all(map(is_sparse, args[:2])):
        _check_sum(*args[:2])
        dense = [to_dense(value) if is_compressed(value) else value for value in args]
        return getattr(ops, name)(*dense, **kwargs)
    operator = _operators.operator(name)
    if operator is None:
        raise _refusals.refusal(name, first.layout)
    plain = _Coordinates()
    named = {key: plain(value) for key, value in kwargs.items()}
    result = operator(*map(plain, args), **named)
    is_matrix = isinstance(result, Tensor) and result.ndim == first.ndim
    if name == "sum" and is_matrix and not is_sparse(result):
        return convert(result, first.layout, block_of(first))
    is_of_first = is_compressed(args[0]) or (name == "mul" and not is_sparse(args[0]))
    if not (is_matrix and is_sparse(result) and is_of_first):
        return result
    if result._indices_held is plain(first)._indices_held:
        values, shape = values_of(result), values_of(first).shape
        return like(first, values if values.shape == shape else ops.reshape(values, (*shape,)))
    return _in_layout(name, args, result, first)


class _Coordinates:
    """Gives the arguments of a call in coordinate format, one tensor for each of them."""

    def __init__(self):
        self.known = {}

    def __call__(self, value):
        if isinstance(value, list | tuple):
            return type(value)(map(self, value))
        if not is_compressed(value):
            return value
        if id(value) not in self.known:
            self.known[id(value)] = as_coo(value)
        return self.known[id(value)]


def _check_sum(one, other):
    if getattr(one, "shape", ()) != getattr(other, "shape", ()):
        shapes = [list(getattr(value, "shape", ())) for value in (one, other)]
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {shapes[0]} "
            f"while other has size {shapes[1]}: a sparse tensor never broadcasts"
        )


_SWAPS = ("transpose", "swapaxes", "swapdims")


def _in_layout(name, args, result: SparseTensor, first: CompressedTensor) -> CompressedTensor:
    """A result in the layout of the first operand; a transpose exchanges rows and columns."""
    layout, block, count = first.layout, block_of(first), batch_dims(first)
    matrix = {count, count + 1}
    dims = {_elements.wrapped(dim, first.ndim) for dim in args[1:3]} if name in _SWAPS else ()
    if name == "t" or dims == matrix:
        layout, block = TURNED[layout], block and block[::-1]
    if name in ("mm", "matmul", "linear"):
        layout, block = sparse_csr, None
    rows, columns = _pattern.sparse_sizes(result)[-2:]
    if block and (rows % block[0] or columns % block[1]):
        layout, block = BLOCKLESS[layout], None
    return compress(result, layout, block, first._indices_held.dtype)


def part(tensor: CompressedTensor, result: Tensor) -> Tensor:
    """A part of a tensor that was cut from its elements: compressed if matrices are left whole."""
    if not is_sparse(result):
        return result
    if result.ndim - tensor.ndim + batch_dims(tensor) < 0:
        return _elements.coalesce(result)
    return in_layout_of(tensor, result)


def in_layout_of(tensor: CompressedTensor, result: SparseTensor) -> CompressedTensor:
    """A tensor in coordinate format in the layout, the blocks and the indices' dtype of another."""
    return compress(result, tensor.layout, block_of(tensor), tensor._indices_held.dtype)


def _check_product(name, mat1, mat2):
    if mat1.ndim != 2 or mat2.ndim != 2 or mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"{name}: mat1 and mat2 shapes cannot be multiplied ({_pattern.words(mat1.shape)} and "
            f"{_pattern.words(mat2.shape)})"
        )


def all_elements(tensor: CompressedTensor) -> CompressedTensor:
    """The tensor with an element at every index, 0 where it has none."""
    return in_layout_of(tensor, _elements.all_elements(as_coo(tensor)))


def _in_batches(tensor: CompressedTensor, batch) -> CompressedTensor:
    """A matrix for each place of a batch."""
    if tensor.ndim == len(batch) + 2:
        return tensor
    begin, plain, values = (
        ops.expand(part, (*batch, *part.shape)).contiguous()
        for part in (tensor._coalesced.indices, tensor._indices_held, values_of(tensor))
    )
    return sparse(values, plain, (*batch, *tensor._sizes), Compression(begin, tensor.layout))


def sampled_addmm(input, mat1, mat2, *, beta=1, alpha=1) -> CompressedTensor:
    """`beta * input` and `alpha` times the elements of `mat1 @ mat2` at its indices."""
    _check_sampled(input, mat1, mat2)
    input = _in_batches(input, mat1.shape[:-2])
    *batch, row, column = ops.unbind(as_coo(input)._indices_held)
    place = row.new_zeros(row.shape)
    for number, extent in zip(batch, mat1.shape[:-2], strict=True):
        place = place * extent + number
    rows, inner, columns = math.prod(mat1.shape[:-1]), mat1.shape[-1], mat2.shape[-1]
    indices = ops.stack([place * mat1.shape[-2] + row, place * columns + column])
    turned = ops.reshape(mat2.mT, (math.prod(mat2.shape[:-2]) * columns, inner))
    product = ops._coo_sampled_mm(ops.reshape(mat1, (rows, inner)), indices, turned)
    product = ops.reshape(product, tuple(values_of(input).shape))
    return like(input, ops.add(ops.mul(values_of(input), beta), product, alpha=alpha))


def _check_sampled(input, mat1, mat2):
    name = "sampled_addmm"
    if not is_compressed(input) or input.layout is not sparse_csr:
        raise RuntimeError(
            f"{name}: Expected self to have sparse csr layout, but got {name_of(input)}"
        )
    for argument, matrix in (("mat1", mat1), ("mat2", mat2)):
        if is_sparse(matrix):
            raise RuntimeError(
                f"{name}: Expected {argument} to have strided layout, but got {name_of(matrix)}"
            )
        if matrix.ndim < 2:
            raise RuntimeError(f"{name}: Expected {argument} to be a matrix, got {matrix.ndim}-D")
    if mat1.shape[:-2] != mat2.shape[:-2] or mat1.shape[-1] != mat2.shape[-2]:
        raise RuntimeError(
            f"{name}: mat1 and mat2 shapes cannot be multiplied ({_pattern.words(mat1.shape)} and "
            f"{_pattern.words(mat2.shape)})"
        )
    product = *mat1.shape[:-1], mat2.shape[-1]
    if tuple(input.shape) not in (product, product[-2:]):
        dim, other = (-2, "mat1") if input.shape[-2] != product[-2] else (-1, "mat2")
        raise RuntimeError(
            f"{name}: self.shape[{dim}] must match {other}.shape[{dim}]: {list(input.shape)} must "
            f"be the shape of the product, {list(product)}"
        )


REDUCTIONS = ("sum", "mean", "amax", "amin")


def reduced_mm(mat1, mat2, reduce: str) -> Tensor:
    """A product of a CSR and a dense matrix, in which another reduction may stand for the sum. Rows
    without elements are 0.
    """
    if reduce not in REDUCTIONS:
        raise ValueError(f"reduce argument must be one of {list(REDUCTIONS)}, but got {reduce!r}")
    if not is_compressed(mat1) or mat1.layout is not sparse_csr or is_sparse(mat2):
        raise RuntimeError(
            f"sparse_mm_reduce: expect self to be SparseCsr, got {name_of(mat1)}, and mat2 strided"
        )
    _check_product("sparse_mm_reduce", mat1, mat2)
    if mat1.dtype is not mat2.dtype:
        raise RuntimeError(
            f"sparse_mm_reduce: Expected both matrices to have the same dtype, but got "
            f"{mat1.dtype} and {mat2.dtype}"
        )
    coo = as_coo(mat1)
    row, column = ops.unbind(coo._indices_held)
    products = ops.mul(ops.unsqueeze(values_of(coo), 1), ops.index_select(mat2, 0, column))
    zeros = products.detach().new_zeros(mat1.shape[0], mat2.shape[1])
    places = ops.expand(ops.unsqueeze(row, 1), tuple(products.shape))
    return ops.scatter_reduce(zeros, 0, places, products, reduce, include_self=False)
