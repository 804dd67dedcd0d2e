"""Less common functions that create tensors; frontend/factories.py has the others."""

from __future__ import annotations

import math
import warnings
from typing import Unpack

import numpy as np

from ..core import dtypes, named_dtypes
from ..core.tracebacks import users_stacklevel
from ..frontend.factories import arange, empty, full, like, zeros
from ..frontend.factory_options import FactoryOptions, check_options, dtype_of, number_of, shape_of
from ..frontend.tensor_data import NOT_WRITABLE, as_tensor, from_numpy
from ..late import LateModule
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary

storages = LateModule("jaxgrad.frontend.storages")
storage_tensors = LateModule("jaxgrad.frontend.storage_tensors")

RANGE = (
    "torch.range is deprecated and will be removed in a future release because its behavior is "
    "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in "
    "[start, end)."
)


@api_boundary
def empty_strided(size, stride, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return a tensor of unspecified values with the given strides; the values are zeros.

    size, stride: lists of ints of one length; strides count elements. Options as for `zeros`. The
    memory of the result is larger where the strides leave gaps, and smaller where they overlap.

    Raises RuntimeError for lists of different lengths and a negative stride.

    >>> jaxgrad.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape = shape_of("empty_strided", size)
    if len(shape) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides "
            f"({len(stride)})"
        )
    if any(step < 0 for step in stride):
        raise RuntimeError(f"empty_strided: strides must not be negative, but are {list(stride)}")
    if _is_dense(shape, stride):
        return empty(shape, **options, memory_format=tuple(stride))
    requires_grad = options.pop("requires_grad", False)
    reach = 1 + sum((extent - 1) * step for extent, step in zip(shape, stride, strict=True))
    whole = zeros(reach if math.prod(shape) else 0, **options)
    return whole.as_strided(shape, tuple(stride)).detach().requires_grad_(requires_grad)


def _is_dense(shape, stride):
    """Whether the strides are those of a contiguous tensor whose dimensions are permuted."""
    pairs = sorted(zip(stride, shape, strict=True))
    expected = 1
    for step, extent in pairs:
        if step != expected and extent != 1:
            return False
        expected *= extent
    return True


@api_boundary
def new_empty_strided(self: Tensor, size, stride, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return unspecified values with the given strides, by default in the dtype of a tensor and on
    its device; see `empty_strided`.

    >>> jaxgrad.arange(3).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    return empty_strided(size, stride, **like("new_empty_strided", self, options))


@api_boundary
def empty_permuted(size, physical_layout, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return a tensor of unspecified values whose dimensions lie in memory in another order.

    size: the shape. physical_layout: each dimension once, from the outermost in memory to the
    innermost. Options as for `zeros`. Raises RuntimeError for another list of dimensions.

    >>> jaxgrad.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    shape, order = shape_of("empty_permuted", size), list(physical_layout)
    if len(shape) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    for position, dim in enumerate(order):
        if not 0 <= dim < len(shape):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got "
                f"{dim} at index {position}): negative dims are not taken"
            )
    if len(set(order)) < len(order):
        raise RuntimeError(f"Duplicate dim not allowed: physical_layout is {order}")
    strides = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return empty(shape, **options, memory_format=tuple(strides))


@api_boundary
def _efficientzerotensor(*size, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return a tensor of zeros, for which XLA needs no memory inside of a program."""
    return zeros(*size, **options)


@api_boundary
def scalar_tensor(s, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return a 0-d tensor of a number, by default in the default dtype.

    s: a number or a 0-d tensor. Options as for `zeros`. Raises TypeError for another `s`,
    RuntimeError for a complex number in a real dtype.

    >>> jaxgrad.scalar_tensor(3)
    tensor(3.)
    """
    number = number_of("scalar_tensor", "s", s)
    dtype = dtype_of(options, dtypes.get_default_dtype())
    return full((), number, **options | {"dtype": dtype})


@api_boundary
def range(start=0, end=None, step=1, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return the numbers `start`, `start + step`, ... up to and including `end`.

    start, end, step: numbers. dtype: the default dtype if it is None. Other options as for
    `zeros`. Deprecated, as in PyTorch: `arange` leaves out the end, like Python's ranges.

    Raises TypeError without `end`, RuntimeError for a step of 0 or away from the end.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     jaxgrad.range(1, 4)
    tensor([1., 2., 3., 4.])
    """
    warnings.warn(RANGE, UserWarning, stacklevel=users_stacklevel())
    if end is None:
        raise TypeError('range() missing 1 required positional arguments: "end"')
    numbers = {"start": start, "end": end, "step": step}
    first, last, by = (number_of("range", name, value) for name, value in numbers.items())
    dtype = dtype_of(options, dtypes.get_default_dtype())
    if not dtype.is_floating_point:
        first, last, by = int(first), int(last), int(by)
    if by == 0 or by != by:
        raise RuntimeError(f"step must be nonzero, not {by}: range() would never reach its end")
    if (last - first) * by < 0:
        raise RuntimeError(
            "upper bound and lower bound inconsistent with step sign: "
            f"from {first} to {last} by {by}"
        )
    count = math.floor((last - first) / by) + 1
    # floats end half a step behind the last number, so that rounding neither adds nor drops one
    end = first + by * (count - 0.5 if dtype.is_floating_point else count)
    return arange(first, end, by, **options | {"dtype": dtype})


@api_boundary
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> Tensor:
    """Return a 1-d tensor of the numbers in a copy of a buffer.

    buffer: an object with Python's buffer protocol. dtype: that of the numbers. count: how many,
    all if it is negative. offset: how many bytes to skip. Unlike in PyTorch, the two do not share
    memory. Raises ValueError for a buffer of another length, and for what is no buffer.

    >>> jaxgrad.frombuffer(bytearray([1, 0, 2, 0]), dtype=jaxgrad.int16)
    tensor([1, 2], dtype=torch.int16)
    """
    try:
        length = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError(
            f"object does not implement Python buffer protocol: {type(buffer).__name__}"
        ) from None
    size = dtype.itemsize
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({length} bytes) minus 1"
        )
    if count < 0 and (length - offset) % size:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a "
            f"multiple of element size ({size})"
        )
    if count * size > length - offset:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must "
            f"not be greater than actual buffer length ({length} bytes)"
        )
    if dtype is named_dtypes.complex32:  # pairs of float16
        pairs = np.frombuffer(buffer, np.float16, max(2 * count, -1), offset)
        return as_tensor(pairs).view(dtype).requires_grad_(requires_grad)
    numbers = np.frombuffer(buffer, named_dtypes.of_tensor(dtype).numpy, count, offset)
    if not numbers.flags.writeable:
        warnings.warn(NOT_WRITABLE.format("buffer"), UserWarning, users_stacklevel())
    return as_tensor(numbers).requires_grad_(requires_grad)


@api_boundary
def from_file(filename, shared=None, size=0, *, dtype=None, **options) -> Tensor:
    """Return a 1-d tensor of the first numbers of a file.

    filename: a path. shared: False or None, since no memory is that of a file: writes to the tensor
    do not reach it. size: how many numbers. dtype: the default dtype if it is None. Other options
    are those of `zeros`. Raises RuntimeError with `shared=True`, and for a file that is too short.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     count = file.write(bytes([1, 2]))
    ...     file.flush()
    ...     jaxgrad.from_file(file.name, size=2, dtype=jaxgrad.uint8)
    tensor([1, 2], dtype=torch.uint8)
    """
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    bytes_ = storages.UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    row = storage_tensors.row_of(bytes_, dtype)[:size].detach()
    return row.to(options.get("device")).requires_grad_(options.get("requires_grad", False))


@api_boundary
def tril_indices(row: int, col: int, offset: int = 0, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return the indices of the elements on and below a diagonal, row by row.

    row, col: the shape of the matrix. offset: which diagonal: 0 the main one, positive above it.
    dtype: int64 if it is None; int16 and int32 are taken too. Returns the shape (2, count).

    Raises TypeError for other types, RuntimeError for a negative size, NotImplementedError for
    another dtype.

    >>> jaxgrad.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle("tril_indices", row, col, offset, options, is_lower=True)


@api_boundary
def triu_indices(row: int, col: int, offset: int = 0, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return the indices of the elements on and above a diagonal, row by row; see `tril_indices`.

    >>> jaxgrad.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle("triu_indices", row, col, offset, options, is_lower=False)


def _triangle(name, row, col, offset, options, is_lower):
    check_options(name, options)
    for which, value in (("row", row), ("col", col), ("offset", offset)):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{name}(): argument '{which}' must be int, not {type(value).__name__}")
    for which, extent in (("row", row), ("col", col)):
        if extent < 0:
            raise RuntimeError(f"{which} must be non-negative, got{extent}")
    dtype = dtype_of(options, dtypes.int64)
    if dtype not in (dtypes.int16, dtypes.int32, dtypes.int64):
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.scalar_type}'")
    # the places of a row are known by its first and its end: no matrix is made
    rows = np.arange(row)
    firsts = np.zeros(row, np.int64) if is_lower else np.clip(rows + offset, 0, col)
    ends = np.clip(rows + offset + 1, 0, col) if is_lower else np.full(row, col)
    counts = np.maximum(ends - firsts, 0)
    row_of = np.repeat(rows, counts)
    before = np.repeat(np.cumsum(counts) - counts - firsts, counts)
    places = np.stack([row_of, np.arange(row_of.size) - before]).astype(dtype.numpy)
    indices = from_numpy(places)
    device = options.get("device")
    if device is not None:
        indices = indices.to(device)
    return indices.requires_grad_(bool(options.get("requires_grad")))
