"""Functions that rearrange elements: shapes, joining, splitting, repeating."""

from __future__ import annotations

import operator
import warnings

import numpy as np

from .. import ops
from ..core import promotion
from ..core.aval import Size
from ..core.device import contiguous_format
from ..core.dtypes import int32, int64
from ..core.pytorch_tensors import type_name
from ..core.symbolic_extents import is_symbolic
from ..core.tracebacks import users_stacklevel
from ..frontend import tensor_data
from ..frontend.array_creation import from_host_beside
from ..rules.shape import wrap_dim
from ..tape.tensor import Tensor, concrete, is_concrete
from ..tape.torch_function import api_boundary, names_defaults
from .arguments import check_tensor
from .out import takes_joined_out


@api_boundary
def atleast_1d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """Return each tensor, with one dimension if it has none.

    tensors: one or several tensors of any shape, or a list of them. Returns a tensor for one, else
    a tuple. Raises TypeError for other types.

    >>> jaxgrad.atleast_1d(jaxgrad.tensor(1.0))
    tensor([1.])
    """
    return _map_tensors("atleast_1d", lambda x: x.reshape(1) if x.ndim == 0 else x, tensors)


@api_boundary
def atleast_2d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """Return each tensor, with dimensions of extent 1 in front if it has fewer than two.

    tensors: one or several tensors of any shape, or a list of them. Returns a tensor for one, else
    a tuple. Raises TypeError for other types.

    >>> jaxgrad.atleast_2d(jaxgrad.tensor([1.0, 2.0]))
    tensor([[1., 2.]])
    """
    return _map_tensors("atleast_2d", _in_two, tensors)


@api_boundary
def atleast_3d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """Return each tensor, with dimensions of extent 1 around its own if it has fewer than three.

    tensors: one or several tensors of any shape, or a list of them; shape () becomes (1, 1, 1),
    (n,) becomes (1, n, 1) and (n, m) becomes (n, m, 1). Returns a tensor for one, else a tuple.
    Raises TypeError for other types.

    >>> jaxgrad.atleast_3d(jaxgrad.tensor([1.0, 2.0])).shape
    torch.Size([1, 2, 1])
    """
    return _map_tensors("atleast_3d", _in_three, tensors)


def _in_two(x):
    return x.reshape(1, 1) if x.ndim == 0 else x.unsqueeze(0) if x.ndim == 1 else x


def _in_three(x):
    if x.ndim > 2:
        return x
    return _in_two(x).unsqueeze(-1) if x.ndim else x.reshape(1, 1, 1)


def _map_tensors(name, function, tensors):
    is_one = len(tensors) == 1 and isinstance(tensors[0], Tensor)
    listed = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    for position, tensor in enumerate(listed):
        if not isinstance(tensor, Tensor):
            kind = type_name(tensor)
            raise TypeError(f"{name}(): argument {position} must be Tensor, not {kind}")
    results = tuple(map(function, listed))
    return results[0] if is_one else results


@takes_joined_out
def column_stack(tensors) -> Tensor:
    """Return tensors side by side, each vector as a column.

    tensors: a list of tensors; (n,) counts as (n, 1) and () as (1, 1), others have two dimensions
    or more and agree except along the second. dtypes promote. Returns their sizes, with the sum
    along the second dimension. Raises RuntimeError for an empty list and for other shapes,
    TypeError if it is no list of tensors.

    >>> jaxgrad.column_stack((jaxgrad.tensor([1, 2]), jaxgrad.tensor([3, 4])))
    tensor([[1, 3],
            [2, 4]])
    """
    listed = _list_of_tensors("column_stack", tensors)
    return ops.cat([x.reshape(x.numel(), 1) if x.ndim < 2 else x for x in listed], 1)


@takes_joined_out
def dstack(tensors) -> Tensor:
    """Return tensors joined along the third dimension.

    tensors: a list of tensors, with dimensions added as by `atleast_3d`, that agree except along
    the third. dtypes promote. Raises RuntimeError for an empty list and for other shapes, TypeError
    if it is no list of tensors.

    >>> jaxgrad.dstack((jaxgrad.tensor([1, 2]), jaxgrad.tensor([3, 4])))
    tensor([[[1, 3],
             [2, 4]]])
    """
    return ops.cat(list(map(atleast_3d, _list_of_tensors("dstack", tensors))), 2)


def _list_of_tensors(name, tensors):
    if not isinstance(tensors, list | tuple):
        kind = type_name(tensors)
        raise TypeError(f"{name}(): argument 'tensors' must be tuple of Tensors, not {kind}")
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    for position, tensor in enumerate(tensors):
        check_tensor(name, tensor, f"element {position} of tensors")
    return tensors


@api_boundary
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors expanded to the shape to which they broadcast, as views.

    tensors: of shapes that broadcast, of any dtypes. Raises RuntimeError for other shapes,
    TypeError for other types.

    >>> jaxgrad.broadcast_tensors(jaxgrad.tensor([1, 2]), jaxgrad.tensor(3))
    (tensor([1, 2]), tensor([3, 3]))
    """
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            kind = type_name(tensor)
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {kind}")
    shape = promotion.broadcast_shapes("broadcast_tensors", *(tensor.shape for tensor in tensors))
    return tuple(tensor if tensor.shape == shape else tensor.expand(shape) for tensor in tensors)


@api_boundary
def broadcast_shapes(*shapes) -> Size:
    """Return the shape to which tensors of these shapes broadcast.

    shapes: lists of ints; an int n means (n,). Raises RuntimeError if they do not broadcast or are
    of other types, ValueError for a negative extent.

    >>> jaxgrad.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    sequences = [(shape,) if hasattr(shape, "__index__") else shape for shape in shapes]
    for shape in sequences:
        if not isinstance(shape, tuple | list):
            raise RuntimeError(
                "Input shapes should be of type ints, a tuple of ints, or a list of ints, got "
                f"{shape}"
            )
        if any(extent < 0 for extent in shape):
            raise ValueError(
                "Attempting to broadcast a dimension with negative length! A shape has "
                f"{min(shape)}: {tuple(shape)}"
            )
    return Size(promotion.broadcast_shapes("broadcast_shapes", *map(tuple, sequences)))


@names_defaults
@api_boundary
def meshgrid(*tensors, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid, as views: one tensor for each input, along whose dimension
    it varies.

    tensors: n tensors of one dtype with one dimension or none, or a list of them.
    indexing: "ij", the default, gives the shape (len(first), len(second), ...); "xy" exchanges the
    first two dimensions. Without it PyTorch's warning is raised.

    Raises RuntimeError for no tensors, other dimensions or dtypes, and another `indexing`.

    >>> jaxgrad.meshgrid(jaxgrad.tensor([1, 2]), jaxgrad.tensor([3, 4]), indexing="ij")
    (tensor([[1, 1],
            [2, 2]]), tensor([[3, 4],
            [3, 4]]))
    """
    is_list = len(tensors) == 1 and isinstance(tensors[0], list | tuple)
    listed = tensors[0] if is_list else tensors
    _check_meshgrid(listed)
    if indexing is None:
        warnings.warn(MESHGRID, UserWarning, stacklevel=users_stacklevel())
    elif indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    dims = list(range(len(listed)))
    if indexing == "xy":
        dims[:2] = dims[1::-1]
    shape = [1] * len(dims)
    for dim, tensor in zip(dims, listed, strict=True):
        shape[dim] = tensor.numel()
    return tuple(
        tensor.view([tensor.numel() if d == dim else 1 for d in range(len(dims))]).expand(shape)
        for dim, tensor in zip(dims, listed, strict=True)
    )


MESHGRID = (
    "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument."
)


def _check_meshgrid(tensors):
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for position, tensor in enumerate(tensors):
        check_tensor("meshgrid", tensor, f"element {position} of tensors")
    for tensor in tensors:
        if tensor.ndim > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got one of shape "
                f"{list(tensor.shape)}"
            )
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError(
                "meshgrid expects all tensors to have the same dtype, but got "
                f"{tensors[0].dtype} and {tensor.dtype}"
            )
        if tensor.device != tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")


@api_boundary
def repeat_interleave(input=None, repeats=None, dim: int | None = None, *, output_size=None):
    """Return each slice of a dimension several times in a row.

    input: a tensor of any shape and dtype. repeats: an int, or int32 or int64 counts of shape (n,)
    for the n slices or with one element for all. dim: a dimension; None means the flattened tensor.
    output_size: the extent of the result, if it is known; needed where `repeats` is being traced,
    and then not checked. The form `repeat_interleave(repeats)` returns the positions themselves.

    Raises RuntimeError for a negative count, for another number of counts and for another
    output_size, TypeError for other arguments.

    >>> x = jaxgrad.tensor([1, 2])
    >>> jaxgrad.repeat_interleave(x, 2), jaxgrad.repeat_interleave(x, jaxgrad.tensor([0, 3]))
    (tensor([1, 1, 2, 2]), tensor([2, 2, 2]))
    """
    if repeats is None or input is None:
        check_tensor("repeat_interleave", input if repeats is None else repeats, "repeats")
        return _repeated_positions(input if repeats is None else repeats, output_size)
    check_tensor("repeat_interleave", input)
    if dim is None:
        input, dim = (input if input.ndim == 1 else input.flatten()), 0
    if isinstance(repeats, Tensor):
        return _repeated_slices(input, repeats, dim, output_size)
    is_number = hasattr(repeats, "__index__") or is_symbolic(repeats)
    if isinstance(repeats, bool) or not is_number:
        kind = type(repeats).__name__
        raise TypeError(
            "repeat_interleave() received an invalid combination of arguments: repeats must be "
            f"int or Tensor, not {kind}"
        )
    if repeats < 0:
        raise RuntimeError(f"Repeats must be non-negative, got {repeats}")
    dim = wrap_dim(dim, input.ndim)
    wide = input.unsqueeze(dim + 1)
    count = input.shape[dim] * repeats
    if output_size is not None and output_size != count:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {count} but got {output_size}"
        )
    shape = [*input.shape[: dim + 1], repeats, *input.shape[dim + 1 :]]
    copy = wide.expand(shape).clone(memory_format=contiguous_format)
    return copy.view([*input.shape[:dim], count, *input.shape[dim + 1 :]])


def _repeated_slices(input, repeats, dim, output_size):
    dim = wrap_dim(dim, input.ndim)
    count = input.shape[dim] if input.ndim else 1
    if repeats.ndim > 1:
        raise RuntimeError(
            f"repeats must be 0-dim or 1-dim tensor, but its shape is {list(repeats.shape)}"
        )
    if repeats.ndim and repeats.numel() not in (1, count):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.shape[0]} and input.size({dim}) = {count}"
        )
    if repeats.numel() == 1:
        repeats = repeats.reshape(1).expand(count)
    return ops.index_select(input, dim, _repeated_positions(repeats, output_size))


def _repeated_positions(repeats, output_size):
    if repeats.ndim != 1:
        raise RuntimeError(
            "repeat_interleave only accept 1D vector as repeat, not one of shape "
            f"{list(repeats.shape)}"
        )
    if repeats.dtype not in (int32, int64):
        raise NotImplementedError(
            f"\"repeat_interleave_cpu\" not implemented for '{repeats.dtype.scalar_type}': repeats "
            "must be int32 or int64"
        )
    if output_size is not None and not is_concrete(repeats):
        return ops._repeated(repeats, output_size)
    counts = np.asarray(concrete(repeats, "repeat_interleave() without output_size"))
    if counts.size and counts.min() < 0:
        raise RuntimeError(f"repeats can not be negative, but one is {counts.min()}")
    if output_size is not None and counts.sum() != output_size:
        raise RuntimeError(
            f"allocated size does not match required size: repeats add up to {counts.sum()}, and "
            f"output_size is {output_size}"
        )
    return from_host_beside(repeats, np.repeat(np.arange(counts.size, dtype=counts.dtype), counts))


@api_boundary
def tensor_split(input: Tensor, indices_or_sections=None, dim: int = 0, **named):
    """Return consecutive pieces of a dimension, as views.

    input: at least one dimension. indices_or_sections: the number of pieces (the first ones
    have one element more if need be), or a list of the positions at which to cut, or an int64
    tensor with one of these. Keywords of PyTorch: `sections`, `indices`,
    `tensor_indices_or_sections`. dim: the dimension. Returns a tuple.

    Raises RuntimeError for no dimensions, fewer than 1 pieces and other tensors, TypeError for
    other types, IndexError for another dimension.

    >>> jaxgrad.tensor_split(jaxgrad.arange(3), 2), jaxgrad.tensor_split(jaxgrad.arange(3), (1,))
    ((tensor([0, 1]), tensor([2])), (tensor([0]), tensor([1, 2])))
    """
    check_tensor("tensor_split", input)
    division = _sections("tensor_split", indices_or_sections, named, "tensor_indices_or_sections")
    if not input.ndim:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    if isinstance(division, Tensor):
        division = _numbers_of(division)
    dim = wrap_dim(dim, input.ndim)
    if isinstance(division, list | tuple):
        cuts = [operator.index(cut) for cut in division]
    else:
        cuts = _even_cuts(input.shape[dim], operator.index(division))
    starts, ends = [0, *cuts], [*cuts, input.shape[dim]]
    return tuple(ops.slice(input, dim, *ends_of) for ends_of in zip(starts, ends, strict=True))


def _sections(name, division, named, *others):
    """The argument that says where to cut, by position or by one of its keywords."""
    for keyword in ("sections", "indices", *others):
        if keyword in named and division is None:
            division = named.pop(keyword)
    allowed = (list, tuple, Tensor) if others else (list, tuple)
    is_int = hasattr(division, "__index__") and not isinstance(division, bool | Tensor)
    if named or not (is_int or isinstance(division, allowed)):
        kind = type_name(division)
        raise TypeError(
            f"{name}() received an invalid combination of arguments: it takes a tensor, and an int "
            f"or a list of ints, not {kind}{' and ' if named else ''}{', '.join(named)}"
        )
    return division


def _numbers_of(tensor):
    if tensor.dtype is not int64:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
            f"{tensor.dtype.scalar_type}"
        )
    if tensor.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
            f"one-dimensional tensor, but got a tensor with {tensor.ndim} dims"
        )
    return np.asarray(concrete(tensor, "tensor_split() at a tensor")).tolist()


def _even_cuts(extent, sections):
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    size, longer = divmod(extent, sections)
    return [piece * size + min(piece, longer) for piece in range(1, sections)]


def _split_along(name, least, dim, input, division, named):
    """Cut a dimension into equal pieces or at positions."""
    check_tensor(name, input)
    division = _sections(name, division, named)
    if input.ndim < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor "
            f"with {input.ndim} dimensions!"
        )
    if not isinstance(division, list | tuple) and (division == 0 or input.shape[dim] % division):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
            f"{input.shape[dim]} is not divisible by the split_size {division}!"
        )
    return tensor_split(input, division, dim)


@api_boundary
def hsplit(input: Tensor, indices_or_sections=None, **named):
    """Return consecutive pieces of the second dimension, or of the only one, as views.

    input: at least one dimension. indices_or_sections: the number of pieces, which divides the
    extent, or a list of positions at which to cut; also by PyTorch's keywords `sections` and
    `indices`. Raises RuntimeError for fewer dimensions and another number, TypeError for other
    types.

    >>> jaxgrad.hsplit(jaxgrad.tensor([[1, 2], [3, 4]]), 2)[0]
    tensor([[1],
            [3]])
    """
    dim = 1 if isinstance(input, Tensor) and input.ndim > 1 else 0
    return _split_along("hsplit", 1, dim, input, indices_or_sections, named)


@api_boundary
def vsplit(input: Tensor, indices_or_sections=None, **named):
    """Return consecutive pieces of the first dimension, as views; see `hsplit`.

    input: at least two dimensions.

    >>> jaxgrad.vsplit(jaxgrad.tensor([[1, 2], [3, 4]]), 2)[0]
    tensor([[1, 2]])
    """
    return _split_along("vsplit", 2, 0, input, indices_or_sections, named)


@api_boundary
def dsplit(input: Tensor, indices_or_sections=None, **named):
    """Return consecutive pieces of the third dimension, as views; see `hsplit`.

    input: at least three dimensions.

    >>> jaxgrad.dsplit(jaxgrad.tensor([[[1, 2], [3, 4]]]), 2)[0]
    tensor([[[1],
             [3]]])
    """
    return _split_along("dsplit", 3, 2, input, indices_or_sections, named)


@api_boundary
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return at most `chunks` pieces of equal size of a dimension, the last one smaller if need be.

    They count as no views: a write to one leaves the others' gradients valid. input: at least one
    dimension. Raises RuntimeError for no dimensions and fewer than 1 chunks.

    >>> jaxgrad.unsafe_chunk(jaxgrad.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    check_tensor("unsafe_chunk", input)
    if not input.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    extent = input.shape[wrap_dim(dim, input.ndim)]
    if not extent:
        return tuple(ops.unsafe_split_with_sizes(input, [0] * chunks, dim))
    return tuple(ops.unsafe_split(input, -(-extent // chunks), dim))


@api_boundary
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return a matrix with the elements of a tensor on a diagonal and zeros elsewhere.

    input: of any shape and dtype, with n elements. offset: which diagonal: 0 the main one, positive
    above it, negative below it. Returns the shape (n + |offset|, n + |offset|).

    >>> jaxgrad.diagflat(jaxgrad.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    check_tensor("diagflat", input)
    return ops.diag_embed(input.contiguous().view(-1), offset)


@api_boundary
def fliplr(input: Tensor) -> Tensor:
    """Return a tensor with the order of its second dimension reversed.

    input: at least two dimensions; the result has its shape. Raises RuntimeError for fewer.

    >>> jaxgrad.fliplr(jaxgrad.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    check_tensor("fliplr", input)
    if input.ndim < 2:
        raise RuntimeError(f"Input must be >= 2-d., but its shape is {list(input.shape)}")
    return ops.flip(input, (1,))


@api_boundary
def flipud(input: Tensor) -> Tensor:
    """Return a tensor with the order of its first dimension reversed.

    input: at least one dimension; the result has its shape. Raises RuntimeError for none.

    >>> jaxgrad.flipud(jaxgrad.tensor([1, 2]))
    tensor([2, 1])
    """
    check_tensor("flipud", input)
    if not input.ndim:
        raise RuntimeError("Input must be >= 1-d., but it has no dimensions")
    return ops.flip(input, (0,))


@api_boundary
def block_diag(*tensors: Tensor) -> Tensor:
    """Return a matrix with the given matrices along its diagonal and zeros elsewhere.

    tensors: each of at most 2 dimensions; one with fewer is a row. Dtypes promote.
    Raises RuntimeError for more dimensions.

    >>> jaxgrad.block_diag(jaxgrad.tensor([[1.0, 2.0]]), jaxgrad.tensor(3.0))
    tensor([[1., 2., 0.],
            [0., 0., 3.]])
    """
    _check_tensors(tensors)
    return ops.block_diag(tensors) if tensors else tensor_data.tensor([[]])


def _check_tensors(tensors):
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            kind = type_name(tensor)
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {kind}")


@api_boundary
def adjoint(input: Tensor) -> Tensor:
    """Return the conjugate transpose of a matrix, or of each matrix of a batch.

    input: (..., n, m), any dtype; the result is (..., m, n), a view if it is real. A tensor without
    dimensions is conjugated. Raises RuntimeError for vectors.

    >>> jaxgrad.adjoint(jaxgrad.tensor([[1j, 2.0]]))
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    if input.ndim == 0:
        return input.conj()
    if input.ndim == 1:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor."
        )
    return input.mH


@takes_joined_out
def _chunk_cat(tensors, dim, num_chunks):
    """Return chunk by chunk what the tensors have: each is padded along `dim` with zeros to
    `num_chunks` equal chunks, a chunk is flattened, and the chunks of one number are concatenated.

    tensors: of equal sizes before `dim`. The result has these sizes, then `num_chunks`, then the
    elements. Raises RuntimeError for other sizes, no tensors, and fewer chunks than one.

    >>> jaxgrad._chunk_cat([jaxgrad.tensor([1, 2, 3]), jaxgrad.tensor([[4, 5], [6, 7]])], 0, 2)
    tensor([[1, 2, 4, 5],
            [3, 0, 6, 7]])
    """
    if num_chunks < 1:
        raise RuntimeError(f"_chunk_cat expects positive num_chunks, but got {num_chunks}")
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    ndims = {tensor.ndim for tensor in tensors}
    if dim < 0 and len(ndims) > 1:
        raise RuntimeError(
            "_chunk_cat expects non-negative dim when input tensors have different ndims, but got "
            f"dim {dim} and ndims {sorted(ndims)}"
        )
    if dim >= min(ndims):
        raise RuntimeError(
            f"_chunk_cat expects dim < ndim for all input tensors, but got dim {dim} and ndims "
            f"{sorted(ndims)}"
        )
    dim = wrap_dim(dim, tensors[0].ndim)
    leading = tensors[0].shape[:dim]
    for tensor in tensors:
        if not tensor.numel():
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if tensor.shape[:dim] != leading:
            raise RuntimeError(
                "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors, but got "
                f"shapes {[list(other.shape) for other in tensors]} with dim {dim}"
            )
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
    return ops.cat([_in_chunks(tensor, dim, num_chunks) for tensor in tensors], dim + 1)


def _in_chunks(tensor, dim, count):
    missing = -tensor.shape[dim] % count
    padded = ops.constant_pad_nd(tensor, [0, 0] * (tensor.ndim - dim - 1) + [0, missing])
    return padded.reshape(*tensor.shape[:dim], count, padded.shape[dim:].numel() // count)
