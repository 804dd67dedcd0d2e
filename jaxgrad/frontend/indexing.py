"""Indexing of tensors, `x[...]`, and their transposes, `x.T`.

As in PyTorch, each part of an index becomes an operator: integers `select`, slices `slice`, None
`unsqueeze`. An integer tensor without dimensions is an integer, also in a trace. Other tensors,
arrays, lists and booleans become one `index` together. A boolean mask stands for the positions
where it is true, so its values must be known: in a trace it raises. An index out of range raises
IndexError if its values are known; in a trace it reads NaN, and writes to it are dropped.
"""

from __future__ import annotations

import numbers
import operator
import warnings
from collections.abc import Sequence

import numpy as np

from .. import ops
from ..core import dtypes, promotion
from ..core.pytorch_tensors import is_of_pytorch, type_name
from ..core.symbolic_extents import is_exported, is_symbolic, slice_of
from ..core.tracebacks import hide_frames, users_stacklevel
from ..late import LateModule
from ..tape import dual, interception
from ..tape.sparse_tensor import is_sparse
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor, concrete, current, is_traced, wrap
from ..tape.torch_function import NOT_OVERRIDDEN, api_boundary
from .array_creation import along, from_host, from_host_beside

warnings_once = LateModule("jaxgrad.tape.warn_once")

INDEX_DTYPES = (dtypes.int64, dtypes.int32)
MASK_DTYPES = (dtypes.bool, dtypes.uint8)
MOST_PARTS_OF_A_LIST = 32

NO_MATRIX = (
    "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated: "
    "call permute with the dimensions in the order you want, here of {} dimensions"
)
NO_DIMENSIONS = "Tensor.{} is deprecated on 0-D tensors, which are their own transposes"
BYTE_MASK = (
    "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."
)
LIST_OF_PARTS = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed "
    "in pytorch 2.9; use "
    "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
    "x[torch.tensor(seq)], which "
    "will result either in an error or a different result"
)


def getitem(tensor: Tensor, index) -> Tensor:
    """Return the part of a tensor that an index selects.

    tensor: of any shape and dtype.
    index: an int, slice, `...`, None, an integer or bool tensor, an array, a list, or a tuple of
    these.

    Basic indices (int, integer tensor without dimensions, slice, `...`, None) give a view, others a
    copy. Raises IndexError for an index out of range, of a wrong type or for too many indices,
    ValueError for a negative step, RuntimeError for a mask inside a trace.

    >>> x = jaxgrad.arange(6.0).reshape(2, 3)
    >>> x[1], x[:, 0], x[x > 2]
    (tensor([3., 4., 5.]), tensor([0., 3.]), tensor([3., 4., 5.]))
    """
    try:
        if interception.override is not None:
            result = interception.override(Tensor.__getitem__, (tensor, index), {})
            if result is not NOT_OVERRIDDEN:
                return result
        kind = type(index)
        if kind is int:
            return _at(tensor, 0, index)
        if kind is slice:
            return _sliced(tensor, 0, index)
        return _Walk(tensor, _parts(index)).result()
    except Exception as error:
        if is_sparse(tensor):
            return tensor[index]
        hide_frames(error)
        raise


# as PyTorch's methods, which a `__torch_function__` knows by their names
getitem.__name__ = "__getitem__"


def _parts(index):
    return tuple(index) if _is_list_of_parts(index) else (index,)


def _at(tensor, dim, index):
    """Select one index of a dimension.

    The index is data of the kernel, as the start of a slice is, so a loop compiles one kernel.
    """
    shape = tensor.shape
    if dim >= len(shape):
        raise _too_many(shape)
    if type(index) is Varying:  # its range cannot be checked
        return ops._select(tensor, dim, index, False)
    extent = shape[dim]
    if not -extent <= index < extent:
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {extent}")
    if is_symbolic(index):
        return ops.select(tensor, dim, index)
    return ops._select(tensor, dim, index if index >= 0 else index + extent)


def _too_many(shape):
    if not shape:
        return IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim "
            "tensor to a number"
        )
    return IndexError(f"too many indices for tensor of dimension {len(shape)}")


def _sliced(tensor, dim, part):
    """Slice a dimension."""
    shape = tensor.shape
    if dim >= len(shape):
        raise _too_many(shape)
    start, length, step = _bounds(part, shape[dim])
    if step < 0:
        raise ValueError(
            f"step must be greater than zero, but got {step}: use flip to reverse a dimension"
        )
    return ops._slice(tensor, dim, start, length, step)


def _bounds(part, extent):
    """The start, the length and the step of a slice of a dimension."""
    try:
        start, end, step = part.indices(extent)
    except TypeError:
        if any(map(is_symbolic, (extent, part.start, part.stop))):
            return slice_of(part, extent)
        raise
    return start, len(range(start, end, step)), step


def _is_list_of_parts(index):
    """Whether PyTorch treats a list as a tuple: a short one that holds more than numbers."""
    if isinstance(index, tuple):
        return True
    if not isinstance(index, list) or len(index) >= MOST_PARTS_OF_A_LIST:
        return False
    has_parts = any(
        item is None or isinstance(item, Tensor | Sequence | np.ndarray | slice | type(...))
        for item in index
    )
    if has_parts:
        warnings.warn(LIST_OF_PARTS, UserWarning, stacklevel=users_stacklevel())
    return has_parts


class _Walk:
    """One walk over the parts of an index.

    tensor: the result of the parts so far. dim: its next dimension. indices: index tensors by
    dimension.
    """

    def __init__(self, tensor, parts):
        self.tensor, self.dim, self.indices = tensor, 0, {}
        self.parts = [_known(part) for part in parts]
        self.hidden = tensor.ndim - sum(map(_consumed, self.parts))
        if self.hidden < 0:
            raise _too_many(tensor.shape)

    def result(self) -> Tensor:
        original, walked = self.tensor, self.walked()
        if self.indices:
            return ops.index(walked, self.index_list())
        return ops.alias(original) if walked is original else walked

    def walked(self) -> Tensor:
        """The tensor after all parts except the index tensors."""
        for part in self.parts:
            self.take(part)
        return self.tensor

    def index_list(self):
        """The index tensors, None for dimensions without one."""
        return [self.indices.get(dim) for dim in range(max(self.indices) + 1)]

    def is_mask(self) -> bool:
        """Whether all index tensors come from one mask, which has dimensions."""
        arrays = [part for part in self.parts if isinstance(part, Tensor | np.ndarray)]
        masks = [part for part in arrays if dtypes.as_dtype(part.dtype) in MASK_DTYPES]
        return len(masks) == 1 and len(self.indices) == masks[0].ndim

    def take(self, part):
        if isinstance(part, Tensor | np.ndarray):
            self.take_array(part)
        elif part is None:
            self.insert()
            self.dim += 1
        elif part is ...:
            self.dim += self.hidden
        elif isinstance(part, slice):
            if not _is_whole(part, self.tensor.shape[self.dim]):
                self.tensor = _sliced(self.tensor, self.dim, part)
            self.dim += 1
        else:
            self.tensor = _at(self.tensor, self.dim, part)

    def insert(self):
        self.tensor = ops.unsqueeze(self.tensor, self.dim)

    def take_array(self, part):
        dtype = dtypes.as_dtype(part.dtype)
        if dtype in MASK_DTYPES:
            self.take_mask(part, dtype)
        elif part.ndim or dtype.category != dtypes.INTEGRAL:
            self.add(part, dtype)
        elif isinstance(part, np.ndarray) or not is_traced(current(part)):
            self.tensor = _at(self.tensor, self.dim, int(part.item()))
        else:
            # an integer that is being traced; its range cannot be checked
            number = Varying.of_tensor(part) if is_exported() else Varying(part._array)
            self.tensor = ops._select(self.tensor, self.dim, number, False)

    def take_mask(self, mask, dtype):
        """Turn a mask into one index tensor for each dimension; a 0-d mask adds a dimension."""
        if not mask.ndim:
            self.insert()
        elif dtype == dtypes.uint8:
            warnings.warn(BYTE_MASK, UserWarning, stacklevel=users_stacklevel())
        numbers = (
            concrete(mask, "indexing with a boolean mask") if isinstance(mask, Tensor) else mask
        )
        numbers = np.atleast_1d(np.asarray(numbers))
        shape = self.tensor.shape
        for position, extent in enumerate(numbers.shape):
            if extent != shape[self.dim + position]:
                raise IndexError(
                    f"The shape of the mask {list(mask.shape)} at index {position} does not match "
                    "the shape of the indexed "
                    f"tensor {list(shape)} at index {self.dim + position}"
                )
        for places in np.nonzero(numbers):
            self.add(places, dtypes.int64)

    def add(self, index, dtype):
        if dtype not in INDEX_DTYPES:
            raise IndexError(
                f"tensors used as indices must be long, int, byte or bool tensors, not {dtype}"
            )
        index = index if isinstance(index, Tensor) else wrap(from_host(index))
        self.indices[self.dim] = along(index, self.tensor)
        self.dim += 1


def without_masks(tensor: Tensor, indices) -> list[Tensor | None]:
    """Index tensors, or None, for the dimensions of a tensor, with masks of bool and uint8 as the
    positions that they select. Raises IndexError for a mask of another shape than its dimensions.
    """
    walk = _Walk(tensor, ())
    for index in indices:
        if index is None:
            walk.dim += 1
        elif index.dtype in MASK_DTYPES and index.ndim:
            walk.take_mask(index, index.dtype)
        else:
            walk.indices[walk.dim] = along(index, tensor)
            walk.dim += 1
    return [walk.indices.get(dim) for dim in range(walk.dim)]


def _known(part):
    """A part of an index as None, `...`, a slice, an int, a tensor or a numpy array."""
    if part is None or part is ... or isinstance(part, slice | Tensor):
        return part
    if isinstance(part, bool):
        return np.asarray(part)
    if isinstance(part, np.ndarray | list | tuple | range):
        return _known_list(part)
    if isinstance(part, str):
        raise TypeError("new(): invalid data type 'str': a tensor has no fields with names")
    if is_symbolic(part) or (type(part) is Varying and part.is_open and part.kind is int):
        return part
    is_index = hasattr(part, "__index__") and not is_of_pytorch(part)
    if isinstance(part, np.bool_) or not is_index:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            "valid indices "
            f"(got {type_name(part)})"
        )
    return operator.index(part)


def _known_list(part):
    if isinstance(part, list | tuple) and any(isinstance(item, Tensor) for item in part):
        return ops.stack([_as_item(item) for item in part])
    array = np.array(part)  # a copy, since JAX may keep it
    return array if array.size or isinstance(part, np.ndarray) else array.astype(np.int64)


def _as_item(item):
    return item if isinstance(item, Tensor) else wrap(from_host(np.asarray(item)))


def _consumed(part):
    """The number of dimensions that a part of an index consumes."""
    if part is None or part is ...:
        return 0
    if isinstance(part, Tensor | np.ndarray) and dtypes.as_dtype(part.dtype) in MASK_DTYPES:
        return part.ndim
    return 1


def _is_whole(part, extent):
    """Whether PyTorch skips a slice that stands beside other parts: it compares the bounds as
    written."""
    start, end = 0 if part.start is None else part.start, extent if part.stop is None else part.stop
    if type(start) is not int or type(end) is not int or type(extent) is not int:
        return False
    return start == 0 and end >= extent and part.step in (None, 1)


@api_boundary
def setitem(tensor: Tensor, index, value):
    """Write a value in place to the part that an index selects.

    tensor: of any shape and dtype. index: as for `getitem`.
    value: a number, or a tensor; it is broadcast to the part and converted to its dtype.

    Raises RuntimeError if the shapes do not fit, TypeError for another value, and the errors of
    `getitem`.

    >>> x = jaxgrad.zeros(2, 3)
    >>> x[:, 0] = 1
    >>> x[x == 0] = 2
    >>> x
    tensor([[1., 2., 2.],
            [1., 2., 2.]])
    """
    if isinstance(value, np.generic | np.ndarray) and not value.ndim:
        value = value.item()
    if not isinstance(value, Tensor | numbers.Number):
        raise TypeError(
            f"can't assign a {type_name(value)} to a torch.{tensor.dtype.scalar_type}Tensor: "
            "convert it with torch.tensor"
        )
    if isinstance(value, Tensor):
        value = along(value, tensor)
    elif type(value) in (int, float) and tensor.dtype.itemsize <= 2:
        value = promotion.overflowed(value, tensor.dtype)
    if index is False:
        return
    if index is True:  # PyTorch copies, which converts
        index = (None, ...)
    if isinstance(index, Tensor) and index.dtype == dtypes.bool and _is_one(value):
        _fill_mask(tensor, index, value)
        return
    walk = _Walk(tensor, _parts(index))
    target = walk.walked()
    if walk.indices:
        if isinstance(value, Tensor):
            if value.dtype != tensor.dtype and _is_one(value) and walk.is_mask():
                value = value.to(tensor.dtype)
            value = _without_leading_ones(value, _indexed_ndim(target, walk))
        else:
            value = tensor.new_tensor(promotion.checked_number(value, tensor.dtype))
        ops.index_put_(target, walk.index_list(), value)
    elif isinstance(value, Tensor):
        value = _without_leading_ones(value, target.ndim)
        ops.copy_(target, value if value.shape == target.shape else value.expand(target.shape))
    else:
        ops.fill_(target, value)


setitem.__name__ = "__setitem__"


def _is_one(value):
    return not isinstance(value, Tensor) or value.numel() == 1


def _fill_mask(tensor, mask, value):
    """`x[mask] = number`, which works with a traced mask too."""
    if mask.shape != tensor.shape[: mask.ndim]:
        raise IndexError(
            f"The shape of the mask {list(mask.shape)} at index 0 does not match the shape of the "
            f"indexed tensor {list(tensor.shape)} at index 0"
        )
    mask = along(mask, tensor).reshape((*mask.shape, *[1] * (tensor.ndim - mask.ndim)))
    if isinstance(value, Tensor):
        value = value.reshape(()).to(tensor.dtype)
    ops.masked_fill_(tensor, mask, value)


def _indexed_ndim(target, walk):
    """The number of dimensions of the part that index tensors select."""
    call, _ = ops.index.operator.bind((target, walk.index_list()), {})
    return call.outputs[0].ndim


def _without_leading_ones(value, ndim):
    extra = value.ndim - ndim
    if extra > 0 and set(value.shape[:extra]) == {1}:
        return value.reshape(value.shape[extra:])
    return value


@api_boundary
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False):
    """Return the indices of the elements that are not zero.

    input: a tensor of any shape and dtype. out: an int64 tensor that receives the indices.
    as_tuple: return one int64 tensor of shape (count,) for each dimension, instead of one of shape
    (count, ndim).

    Raises RuntimeError in a trace, because the count depends on the values, and for `out` of
    another dtype or with as_tuple.

    >>> jaxgrad.nonzero(jaxgrad.tensor([0.0, 2.0, 3.0]))
    tensor([[1],
            [2]])
    """
    if out is not None and not isinstance(out, Tensor):
        raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type_name(out)}")
    if out is not None and as_tuple:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    numbers = np.asarray(concrete(input, "nonzero()"))
    if as_tuple:
        numbers = np.atleast_1d(numbers)
    places = from_host_beside(input, np.argwhere(numbers))
    dual.show(places, (1, len(places)))  # PyTorch writes the places dimension by dimension
    return ops.unbind(places, 1) if as_tuple else _into(out, places)


def _into(out, indices):
    """Indices, or `out` with them. Raises RuntimeError for an `out` of another dtype."""
    if out is None:
        return indices
    if out.dtype != dtypes.int64:
        raise RuntimeError(
            "nonzero: Expected out tensor to have scalar type Long but got scalar type "
            f"{out.dtype.scalar_type}"
        )
    return ops.positive(indices, out=out)


@api_boundary
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the elements for which a mask is true, as a 1-d tensor.

    input: a tensor of any shape and dtype. mask: a bool tensor that broadcasts with it. out: a
    tensor that receives the elements; then `input` may not require grad.

    Raises RuntimeError for a mask of another dtype, and in a trace, because the count depends on
    the values.

    >>> x = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> jaxgrad.masked_select(x, x > 1)
    tensor([2., 3., 4.])
    """
    if mask.dtype != dtypes.bool:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, not {mask.dtype}")
    shape = promotion.broadcast_shapes("masked_select", input.shape, mask.shape)
    # numpy broadcasts the mask, since operators in a trace give no values
    known = np.broadcast_to(np.asarray(concrete(mask, "masked_select()")), shape)
    places = wrap(from_host(np.flatnonzero(known)))
    if out is None:
        return ops._masked_select(input, shape, places)
    return ops._masked_select(input, shape, places, out=out)


def _transposed(tensor, name, supported):
    if not supported:
        batches = " or batches of matrices" if name.startswith("m") else " (2-D tensors)"
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices{batches}. Got {tensor.ndim}-D tensor."
        )
    if not tensor.ndim:
        warnings_once.warn_once(NO_DIMENSIONS.format(name))
    return tensor.transpose(-2, -1) if tensor.ndim else tensor


def _conjugate(tensor):
    return tensor.conj() if tensor.dtype.is_complex else tensor


class IndexingMethods:
    """Indexing and transposes as methods of `Tensor`; `frontend/methods.py` installs them."""

    __getitem__ = getitem
    __setitem__ = setitem

    def __delitem__(self, index):
        raise TypeError(
            "Tensor does not support deleting items: index the others, or take narrow()"
        )

    nonzero = nonzero
    masked_select = masked_select

    @property
    def T(self) -> Tensor:
        """The tensor with its dimensions in reverse order, a view; the transpose of a matrix.

        >>> jaxgrad.zeros(2, 3).T.shape
        torch.Size([3, 2])
        """
        if self.ndim != 2:
            form = NO_MATRIX.format(self.ndim) if self.ndim else NO_DIMENSIONS.format("T")
            warnings_once.warn_once(form)
        return self.permute(tuple(range(self.ndim))[::-1])

    @property
    def mT(self) -> Tensor:
        """The transpose of each matrix in the last two dimensions, a view.

        Raises RuntimeError for a 1-d tensor.

        >>> jaxgrad.zeros(5, 2, 3).mT.shape
        torch.Size([5, 3, 2])
        """
        return _transposed(self, "mT", self.ndim != 1)

    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix, a view. Raises RuntimeError for other tensors.

        >>> jaxgrad.tensor([[1j, 2.0]]).H.shape
        torch.Size([2, 1])
        """
        return _conjugate(_transposed(self, "H", self.ndim in (0, 2)))

    @property
    def mH(self) -> Tensor:
        """The conjugate transpose of each matrix in the last two dimensions, a view.

        Raises RuntimeError for a 1-d tensor.

        >>> jaxgrad.zeros(5, 2, 3).mH.shape
        torch.Size([5, 3, 2])
        """
        return _conjugate(_transposed(self, "mH", self.ndim != 1))
