"""Operators that rearrange elements: reshaping, permuting, joining, splitting, repeating."""

import math
import operator

import jax.numpy as jnp
from jax import lax

from jaxgrad.core import dtypes, named_dtypes, promotion, symbolic_extents
from jaxgrad.core import strides as layouts
from jaxgrad.core.primitive import op


def wrap_dim(dim, ndim):
    """A dimension counted from 0; a tensor without dimensions has the dimensions 0 and -1."""
    count = max(ndim, 1)
    if not -count <= dim < count:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got "
            f"{dim})"
        )
    return dim % count


def wrap_dims(dims, ndim):
    """`wrap_dim` of each dimension. Raises RuntimeError for duplicates."""
    wrapped = [wrap_dim(dim, ndim) for dim in dims]
    for position, dim in enumerate(wrapped):
        if dim in wrapped[:position]:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    return wrapped


def view(self, size):
    return jnp.reshape(self, infer_size(size, self.size))


def view_dtype(self, dtype):
    """The bytes of an array as another dtype."""
    named_dtypes.of_tensor(dtype)  # or raise
    shape = layouts.shape_as_dtype(self.shape, dtypes.from_numpy(self.dtype), dtype)
    array = self.astype(jnp.uint8) if self.dtype == bool else self
    if jnp.iscomplexobj(array):
        array = jnp.stack([lax.real(array), lax.imag(array)], -1)
    part = dtypes.uint8 if dtype is dtypes.bool else dtype.to_real()
    array = _with_bits_of(array.reshape(-1), part.numpy)
    if dtype.is_complex:
        array = lax.complex(array[::2], array[1::2])
    return (array != 0 if dtype is dtypes.bool else array).reshape(shape)


def _with_bits_of(flat, kind):
    """The bits of an array of one dimension as another dtype of numbers."""
    size = jnp.dtype(kind).itemsize
    if size > flat.dtype.itemsize:
        flat = flat.reshape(-1, size // flat.dtype.itemsize)
    return lax.bitcast_convert_type(flat, kind).reshape(-1)


def as_dtype_of(value, self):
    return view_dtype(value, dtypes.from_numpy(self.dtype))


def infer_size(size, count):
    """`size` with -1 replaced, so that it has `count` elements."""
    for position, extent in enumerate(size):
        if extent < -1:
            raise RuntimeError(
                f"invalid shape dimension {extent} at index {position} of shape {list(size)}"
            )
    if size.count(-1) > 1:
        raise RuntimeError(
            f"only one dimension can be inferred, but shape {list(size)} has several -1"
        )
    known = math.prod(extent for extent in size if extent != -1)
    if -1 in size and known == 0 == count:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(size)} because the unspecified "
            "dimension size -1 "
            "can be any value and is ambiguous"
        )
    inferred = tuple(count // (known or 1) if extent == -1 else extent for extent in size)
    if math.prod(inferred) != count:
        rest = count % (known or 1)
        unless = "" if isinstance(rest, int) else f", unless {rest} is 0"  # a size that varies
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}{unless}")
    return inferred


def flatten(self, start_dim=0, end_dim=-1):
    start, end = wrap_dim(start_dim, self.ndim), wrap_dim(end_dim, self.ndim)
    if start > end:
        raise RuntimeError(
            "flatten() has invalid args: start_dim cannot come after end_dim, but they are "
            f"{start_dim} and {end_dim}"
        )
    shape = self.shape
    if start == end and shape:
        return self
    return jnp.reshape(self, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


flatten.returns_self = True


def unflatten(self, dim, sizes):
    if not self.ndim or not sizes:
        raise RuntimeError(
            f"unflatten: sizes must be non-empty and the tensor have dimensions: {sizes}, "
            f"{self.ndim}"
        )
    dim = wrap_dim(dim, self.ndim)
    extent = self.shape[dim]
    try:
        inferred = infer_size(sizes, extent)
    except RuntimeError as error:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
            f"({extent}) in the "
            f"input tensor: {error}"
        ) from None
    return jnp.reshape(self, (*self.shape[:dim], *inferred, *self.shape[dim + 1 :]))


def squeeze(self, dim=None):
    """`self` without dimensions of size 1; only those among `dim` if it is given."""
    dims = (
        range(self.ndim)
        if dim is None
        else wrap_dims(dim if isinstance(dim, tuple) else (dim,), self.ndim)
    )
    return lax.squeeze(
        self, [dim for dim in dims if any(map(symbolic_extents.is_one, self.shape[dim : dim + 1]))]
    )


def unsqueeze(self, dim):
    return lax.expand_dims(self, [wrap_dim(dim, self.ndim + 1)])


def expand(self, size, *, implicit=False):
    """`self` broadcast to `size`, where -1 keeps a size; `implicit` has no effect."""
    return jnp.broadcast_to(self, expanded_size(self.shape, size))


def expanded_size(shape, size):
    """`size` with -1 replaced by the sizes of `shape`."""
    extra = len(size) - len(shape)
    if extra < 0:
        raise RuntimeError(
            f"expand to size {list(size)}: the number of sizes provided ({len(size)}) must be "
            "greater or equal to the "
            f"number of dimensions in the tensor ({len(shape)}), whose shape is {list(shape)}"
        )
    if -1 in size[:extra]:
        raise RuntimeError(
            "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing "
            f"dimension {size.index(-1)}"
        )
    wanted = [
        *size[:extra],
        *(old if new == -1 else new for new, old in zip(size[extra:], shape, strict=True)),
    ]
    for dim, (new, old) in enumerate(zip(wanted[extra:], shape, strict=True), start=extra):
        if new != old and old != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({new}) must match the existing size ({old}) at "
                "non-singleton "
                f"dimension {dim}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )
    return _non_negative(wanted)


def _non_negative(size):
    if any(extent < 0 for extent in size):
        negative = next(extent for extent in size if extent < 0)
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {negative}: {list(size)}"
        )
    return tuple(size)


# dimensions in another order


def permute(self, dims):
    return jnp.transpose(self, permutation(dims, self.ndim))


def permutation(dims, ndim):
    if len(dims) != ndim:
        raise RuntimeError(
            "permute: number of dimensions in the tensor input does not match the length of the "
            "desired ordering of "
            f"dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    wrapped = [wrap_dim(dim, ndim) for dim in dims]
    if len({*wrapped}) < ndim:
        raise RuntimeError(f"permute(): duplicate dims are not allowed, but dims is {list(dims)}")
    return wrapped


def permute_backwards(grad, dims):
    order = permutation(dims, grad.ndim)
    return jnp.transpose(grad, sorted(range(grad.ndim), key=order.__getitem__))


def transpose(self, dim0, dim1):
    dim0, dim1 = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
    return jnp.swapaxes(self, dim0, dim1) if self.ndim else self


def t(self):
    if self.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D: use mT, or "
            "transpose(dim0, dim1)"
        )
    return jnp.transpose(self)


def movedim(self, source, destination):
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should "
            "contain the same number "
            f"of dims as destination ({list(destination)} dims)"
        )
    moved = []
    for name, dims in (("source", source), ("destination", destination)):
        moved.append([wrap_dim(dim, self.ndim) for dim in dims])
        if len({*moved[-1]}) < len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    return jnp.moveaxis(self, *moved) if self.ndim else self


def flip(self, dims):
    dims = wrap_dims(dims, self.ndim)
    return lax.rev(self, dims) if self.ndim else self


def roll(self, shifts, dims=()):
    if not shifts:
        raise RuntimeError("`shifts` required: roll() got none")
    if not dims and len(shifts) == 1:
        return jnp.roll(self, shifts[0])
    if len(shifts) != len(dims):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    if not self.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return jnp.roll(self, shifts, [wrap_dim(dim, self.ndim) for dim in dims])


def roll_backward(grad, shifts, dims):
    return op.roll(grad, tuple(-shift for shift in shifts), dims)


def rot90(self, k=1, dims=(0, 1)):
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.ndim}")
    first, second = (wrap_dim(dim, self.ndim) for dim in dims)
    if first == second:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    return jnp.rot90(self, k, (first, second))


# joining


def cat(tensors, dim=0):
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for position, tensor in enumerate(tensors):
        if not tensor.ndim:
            raise RuntimeError(
                f"zero-dimensional tensor (at position {position}) cannot be concatenated: "
                "unsqueeze it, or use stack"
            )
    shapes = [tensor.shape for tensor in tensors]
    kept = [tensor for tensor in promotion.unify(*tensors) if not _is_skipped(tensor.shape, shapes)]
    # as in PyTorch, empty vectors alone are joined along any dimension
    dim = 0 if kept[0].shape == (0,) else wrap_dim(dim, kept[0].ndim)
    _check_extents(kept, dim)
    return jnp.concatenate(kept, dim)


def _is_skipped(shape, shapes):
    """Whether `cat` skips a tensor: it accepts empty vectors among tensors of other shapes."""
    return shape == (0,) and any(other != (0,) for other in shapes)


def _check_extents(tensors, dim):
    first = tensors[0].shape
    for position, tensor in enumerate(tensors):
        if tensor.ndim != len(first):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first)} and {tensor.ndim}"
            )
        for other, (expected, got) in enumerate(zip(first, tensor.shape, strict=True)):
            if other != dim and expected != got:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size "
                    f"{expected} but got size {got} "
                    f"for tensor number {position} in the list."
                )


def cat_tensors_backward(grad, shapes, dim):
    """The piece of `grad` for each tensor of a `cat`."""
    dim = wrap_dim(dim, grad.ndim)
    extents = [0 if _is_skipped(shape, shapes) else shape[dim] for shape in shapes]
    pieces = _pieces(grad, extents, dim)
    return [jnp.reshape(piece, shape) for piece, shape in zip(pieces, shapes, strict=True)]


def stack(tensors, dim=0):
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0].shape
    for position, tensor in enumerate(tensors):
        if tensor.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(tensor.shape)} at entry {position}"
            )
    return jnp.stack(promotion.unify(*tensors), wrap_dim(dim, len(first) + 1))


def _check_parts(name, tensors):
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")


def hstack(tensors):
    _check_parts("hstack", tensors)
    return cat(
        [jnp.atleast_1d(tensor) for tensor in tensors], _hstack_dim(t.shape for t in tensors)
    )


def hstack_backward(grad, shapes):
    return _stacked_backward(grad, [shape or (1,) for shape in shapes], shapes, _hstack_dim(shapes))


def _hstack_dim(shapes):
    return 0 if len(next(iter(shapes), ())) < 2 else 1


def vstack(tensors):
    _check_parts("vstack", tensors)
    return cat([jnp.atleast_2d(tensor) for tensor in tensors])


def vstack_backward(grad, shapes):
    rows = [shape if len(shape) > 1 else (1, *(shape or (1,))) for shape in shapes]
    return _stacked_backward(grad, rows, shapes, 0)


def _stacked_backward(grad, widened, shapes, dim):
    pieces = cat_tensors_backward(grad, widened, dim)
    return [jnp.reshape(piece, shape) for piece, shape in zip(pieces, shapes, strict=True)]


# splitting


def split(self, split_size, dim=0):
    if not self.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(
            f"split expects split_size be non-negative, but got split_size={split_size}"
        )
    dim = wrap_dim(dim, self.ndim)
    extent = self.shape[dim]
    if split_size == 0 != extent:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {extent}"
        )
    full, rest = map(int, divmod(extent, split_size or 1))
    return _pieces(self, [split_size] * full + [rest] * (rest > 0 or not full), dim)


def split_with_sizes(self, split_sizes, dim=0):
    if not self.ndim:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, self.ndim)
    if any(size < 0 for size in split_sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(split_sizes)}"
        )
    if sum(split_sizes) != self.shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {self.shape[dim]} (input "
            "tensor's size at dimension "
            f"{dim}), but got split_sizes={list(split_sizes)}"
        )
    return _pieces(self, split_sizes, dim)


def _pieces(self, extents, dim):
    """Consecutive pieces of these sizes along a dimension."""
    pieces, start = [], 0
    for extent in extents:
        pieces.append(lax.slice_in_dim(self, start, start + extent, axis=dim))
        start += extent
    return pieces


def chunk(self, chunks, dim=0):
    if not self.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, self.ndim)
    extent = self.shape[dim]
    if not extent:
        return [self] * chunks
    if extent % chunks == 0:
        return _pieces(self, [extent // chunks] * chunks, dim)
    return split(self, -(-extent // chunks), dim)


def unbind(self, dim=0):
    if not self.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = wrap_dim(dim, self.ndim)
    return [lax.index_in_dim(self, i, dim, keepdims=False) for i in range(self.shape[dim])]


# diagonals


def diagonal(self, offset=0, dim1=0, dim2=1):
    return jnp.diagonal(self, offset, *_two_dims(dim1, dim2, self.ndim))


def _two_dims(dim1, dim2, ndim):
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


def diagonal_backward(grad_output, input_sizes, offset, dim1, dim2):
    """Zeros of shape `input_sizes` with `grad_output` on the diagonal."""
    return with_diagonal(jnp.zeros(input_sizes, grad_output.dtype), grad_output, offset, dim1, dim2)


def with_diagonal(tensor, diagonal, offset, dim1, dim2):
    """`tensor` with `diagonal` written on its diagonal."""
    dims = _two_dims(dim1, dim2, tensor.ndim)
    along = jnp.arange(diagonal.shape[-1])
    rows, columns = along + max(-offset, 0), along + max(offset, 0)
    moved = jnp.moveaxis(tensor, dims, (-2, -1))
    filled = moved.at[..., rows, columns].set(diagonal, unique_indices=True)
    return jnp.moveaxis(filled, (-2, -1), dims)


def diag_embed(self, offset=0, dim1=-2, dim2=-1):
    if not self.ndim:
        raise RuntimeError(
            "diag_embed needs a tensor of one dimension or more, but got one of none"
        )
    first, second = _two_dims(dim1, dim2, self.ndim + 1)
    extents = iter(self.shape[:-1])
    side = self.shape[-1] + abs(offset)
    sizes = [side if dim in (first, second) else next(extents) for dim in range(self.ndim + 1)]
    return diagonal_backward(self, sizes, offset, first, second)


def diag(self, diagonal=0):
    if self.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")
    return jnp.diag(self, diagonal)


def diag_backward(grad, shape, diagonal):
    if len(shape) == 1:
        return op.diagonal(grad, diagonal)
    return op.diagonal_backward(grad, shape, diagonal, 0, 1)


# repeating


def repeat(self, repeats):
    if len(repeats) < self.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor: "
            f"repeats is {list(repeats)}, the tensor's shape {list(self.shape)}"
        )
    shape = (1,) * (len(repeats) - self.ndim) + self.shape
    _non_negative(list(map(operator.mul, shape, repeats)))
    return jnp.tile(self, repeats)


def tile(self, dims):
    return repeat(self, (1,) * (self.ndim - len(dims)) + dims)


def repeat_backward(grad, shape, repeats):
    """The sum of the copies, which are slices of `grad`."""
    ndim = grad.ndim
    repeats = (1,) * (ndim - len(repeats)) + tuple(repeats)
    shape = (1,) * (ndim - len(shape)) + tuple(shape)
    split_dims = [extent for pair in zip(repeats, shape, strict=True) for extent in pair]
    return jnp.sum(jnp.reshape(grad, split_dims), range(0, 2 * ndim, 2))
