"""Tensors from data: Python numbers and lists, numpy and JAX arrays, DLPack.

numpy arrays are copied first, because JAX may read them after the call and may keep them.
`frontend/to.py` converts tensors to other dtypes and devices.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from itertools import chain

import jax
import jax.numpy as jnp
import numpy as np

from ..core import dtypes, named_dtypes, promotion
from ..core import strides as layouts
from ..core.aval import meta_array, strong, types_of_trace, with_strides
from ..core.device import check_pinning, is_meta
from ..core.meta_array import MetaArray
from ..core.pytorch_tensors import dtype_of, is_of_pytorch, numbers_of
from ..core.symbolic_extents import is_exported, is_symbolic
from ..core.tracebacks import shows_users_frames, users_stacklevel
from ..late import LateModule
from ..storage.alias import detached
from ..tape import mode
from ..tape.drawn_array import DrawnArray
from ..tape.sparse_tensor import is_sparse
from ..tape.symbolic_number import has_open, open_number
from ..tape.tensor import Tensor, abstract_value, concrete, held, hold, wrap
from ..tape.torch_function import api_boundary
from .array_creation import finish, is_traced, on_device, taken_over

CONVERTING = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first."
)

storages = LateModule("jaxgrad.frontend.storages")
storage_tensors = LateModule("jaxgrad.frontend.storage_tensors")

_PYTHON = {bool: dtypes.bool, int: dtypes.int64}
_OF_NUMPY = np.ndarray, np.generic

COMPLEX_TO_REAL = "Casting complex values to real discards the imaginary part"
COPY_CONSTRUCT = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
)

NOT_WRITABLE = (
    "The given {0} is not writable, and there are no non-writable tensors. jaxgrad copies it, so "
    "writes to the tensor do not reach the {0}; PyTorch's tensor would write to it"
)
LIST_OF_ARRAYS = (
    "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting "
    "the list to a single numpy.ndarray with numpy.array() before converting to a tensor."
)


@api_boundary
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """Create a leaf from data.

    data: a number, nested lists of numbers, a numpy array, a JAX array or a tensor, also one of
    PyTorch itself; it is copied.
    dtype: if None, bool for bools, int64 for ints, the default dtype for floats, its complex
    counterpart for complex numbers, and that of an array. device: the default one if it is None.
    requires_grad: needs a floating-point or complex dtype. pin_memory: as for `zeros`.

    Raises ValueError for lists of unequal lengths, TypeError for strings, RuntimeError if the data
    has no dtype or `dtype` cannot hold it.

    >>> jaxgrad.tensor([[1, 2], [3, 4.5]])
    tensor([[1.0000, 2.0000],
            [3.0000, 4.5000]])
    """
    if pin_memory:
        check_pinning("tensor()")
    if isinstance(data, Tensor):
        warnings.warn(COPY_CONSTRUCT, UserWarning, stacklevel=users_stacklevel())
    if is_sparse(data):
        return data.detach().to(device, dtype, copy=True).requires_grad_(requires_grad)
    return finish(_array_of(data, _as_dtype(dtype), _place(data, device)), requires_grad)


@api_boundary
def as_tensor(data, dtype=None, device=None) -> Tensor:
    """Return a tensor of this dtype and device: `data` itself if it is one.

    data: as for `tensor`. A tensor of another dtype or device is converted, and gradients flow
    through that. Other data is copied, numpy arrays included, so later writes to it do not change
    the tensor. dtype, device, errors: as for `tensor`.

    >>> x = jaxgrad.ones(2)
    >>> jaxgrad.as_tensor(x) is x
    True
    """
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype)
    tensor = finish(_array_of(data, _as_dtype(dtype), _place(data, device)))
    return in_order_of(data, tensor) if isinstance(data, np.ndarray) else tensor


@api_boundary
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None) -> Tensor:
    """Return `obj` as a tensor, as `as_tensor` does, with control of the copy.

    obj, dtype, device: as for `as_tensor`; a storage stands for its elements. copy: True copies
    always, False never, None if needed. requires_grad: that of the result; if None, that of a
    tensor and False for other data.

    Raises ValueError if `copy` is False and a copy is needed: for anything but a tensor or a JAX
    array, and for another dtype or device. Other errors as for `tensor`.

    >>> jaxgrad.asarray([1, 2], dtype=jaxgrad.float32)
    tensor([1., 2.])
    """
    if copy is False and not isinstance(obj, Tensor | jax.Array | storages.StorageBase):
        kind = "arbitrary sequence" if _is_sequence(obj) else type(obj).__name__
        raise ValueError(f"can't alias {kind} into a tensor: leave out copy=False")
    if type(obj).__name__ == "PyCapsule" or _has_memory(obj):
        obj = from_dlpack(obj)
    if isinstance(obj, storages.StorageBase):
        obj = storage_tensors.row_of(obj)
    if not isinstance(obj, Tensor):
        return tensor(obj, dtype=dtype, device=device, requires_grad=bool(requires_grad))
    result = obj.to(device=device, dtype=dtype, copy=bool(copy))
    if copy is False and result is not obj:
        kinds = obj.dtype.scalar_type, (obj.dtype if dtype is None else dtype).scalar_type
        raise ValueError(
            "can't alias tensor with dtype '{}' into dtype '{}', or on another device: leave out "
            "copy=False".format(*kinds)
        )
    if requires_grad is None or requires_grad == result.requires_grad:
        return result
    return result.detach().requires_grad_(requires_grad)


@shows_users_frames
def from_numpy(ndarray: np.ndarray) -> Tensor:
    """Create a leaf from a copy of a numpy array, of the same shape and dtype.

    ndarray: of any shape and of a dtype that tensors have. Unlike in PyTorch, the two do not share
    memory. Raises TypeError for anything but a numpy array.

    >>> jaxgrad.from_numpy(np.arange(3))
    tensor([0, 1, 2])
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if any(step % ndarray.itemsize for step in ndarray.strides if ndarray.size):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size: from_numpy() takes "
            "a copy of the array"
        )
    if not ndarray.flags.writeable and not _is_memory_of_tensors(ndarray):
        warnings.warn(NOT_WRITABLE.format("NumPy array"), UserWarning, users_stacklevel())
    return in_order_of(ndarray, finish(_array_of(ndarray, None, None)))


# the arrays that `Tensor.numpy` has returned and that are still there, by their ids
_shown: weakref.WeakValueDictionary[int, np.ndarray] = weakref.WeakValueDictionary()


def shown(array: np.ndarray) -> np.ndarray:
    """An array of a tensor's elements as users get it: read-only, since tensors may share it."""
    array.flags.writeable = False
    _shown[id(array)] = array
    return array


def _is_memory_of_tensors(array) -> bool:
    """Whether an array is read-only because tensors or JAX own its memory."""
    while isinstance(array, np.ndarray):
        if _shown.get(id(array)) is array:
            return True
        array = array.base
    return isinstance(array, memoryview)


def in_order_of(values: np.ndarray, tensor: Tensor) -> Tensor:
    """The tensor of an array of NumPy with the strides of that, where its elements are dense."""
    strides = tuple(step // max(values.itemsize, 1) for step in values.strides)
    if not values.flags.c_contiguous and layouts.is_dense(values.shape, strides):
        hold(tensor, held(tensor), with_strides(abstract_value(tensor), strides))
    return tensor


@api_boundary
def from_dlpack(ext_tensor, *, device=None, copy: bool | None = None) -> Tensor:
    """Create a leaf from an array of another library by the DLPack protocol.

    ext_tensor: an object with `__dlpack__`, or a capsule of memory of the host; the tensor
    has its shape and dtype. device: the default one if it is None. copy: if it is False,
    the two share memory, and a write by the other library
    changes the tensor; by default the tensor has a copy. With a tensor of jaxgrad the result shares
    memory, as `detach()` does, unless `copy` is True.

    Raises TypeError for an object without `__dlpack__`, BufferError for a tensor that requires grad
    or shows the conjugate of its memory. With `copy=False` raises ValueError if JAX
    cannot share the memory, for example if its address is not a multiple of 64 bytes.

    >>> jaxgrad.from_dlpack(np.ones(2, "float32"))
    tensor([1., 1.])
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = Capsule(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__"):
        kind = type(ext_tensor).__name__
        raise TypeError(f"from_dlpack() takes an object that has __dlpack__, not {kind}")
    if isinstance(ext_tensor, Tensor):
        check_exported(ext_tensor)
        shared = detached(ext_tensor)
        shared = shared if device is None else shared.to(device)
        return shared.clone() if copy else shared
    if isinstance(ext_tensor, np.ndarray) and copy is not False:
        return finish(_array_of(ext_tensor, None, device))
    with jax.enable_x64(True):
        array = jax.dlpack.from_dlpack(ext_tensor, copy=False if copy is False else None)
        if copy is not False:
            array = jnp.copy(array).block_until_ready()  # its owner may write to it after the call
    return finish(on_device(array, device))


def check_exported(tensor: Tensor):
    """Raise BufferError for a tensor that the DLPack protocol cannot describe, NotImplementedError
    for one without data.
    """
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if tensor.is_conj():
        raise BufferError(
            "Can't export tensors with the conjugate bit set, use tensor.resolve_conj()"
        )
    concrete(tensor, "__dlpack__()")


class Capsule:
    """A capsule of the DLPack protocol as an object that gives it, once. It must be of memory of
    the host: a capsule does not tell where its memory is.
    """

    def __init__(self, capsule):
        if '"dltensor"' not in repr(capsule):
            raise RuntimeError(
                "from_dlpack received an invalid capsule. Note that DLTensor capsules can be "
                "consumed only once, so you might have already constructed a tensor from it once."
            )
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _as_dtype(dtype):
    return None if dtype is None else named_dtypes.of_tensor(dtype)


def _place(data, device):
    """The `device` argument for data, where meta may be the default."""
    is_default = device is None and not isinstance(data, Tensor)
    return "meta" if is_default and is_meta(None) else device


def _array_of(data, dtype, device) -> jax.Array | MetaArray:
    """The values as an array that shares no memory with `data`, unless that is immutable."""
    if device is not None and is_meta(device):
        data = data if isinstance(data, Tensor) else wrap(_array_of(data, dtype, None))
        return meta_array(data.shape, data.dtype if dtype is None else dtype)
    if type(data) is DrawnArray:
        drawn = data.traced(functools.partial(_from_numpy, dtype=dtype))
        return on_device(drawn, device)
    if isinstance(data, _OF_NUMPY):  # first, since it takes long to tell what the others are
        return taken_over(_from_numpy(np.asarray(data), dtype), device)
    if isinstance(data, Tensor):
        data = data._array
    if isinstance(data, MetaArray) and device is None:
        return meta_array(data.shape, data.aval.dtype if dtype is None else dtype)
    if is_of_pytorch(data):
        if is_traced():
            raise RuntimeError(
                "a PyTorch tensor would be a constant of the compiled function: convert it outside "
                "by jaxgrad.as_tensor, and pass it in"
            )
        data = numbers_of(data)
    if isinstance(data, jax.Array):
        return on_device(_converted(data, dtype), device)
    if hasattr(data, "__array__"):
        if isinstance(data, storages.StorageBase):
            return _array_of(storage_tensors.elements_of(data, dtype), dtype, device)
        return taken_over(_from_numpy(np.asarray(data), dtype), device)
    if is_exported() and has_open(data):
        return on_device(_from_sizes(data, dtype), device)
    run = mode.drawn_run.get()
    drawn = None if run is None else run.array_of(_from_python, data, dtype)
    if drawn is not None:
        return on_device(drawn, device)
    return taken_over(_from_python(data, dtype), device)


def _converted(array, dtype):
    """A JAX array in this dtype, by default its own, without a weak type."""
    natural = dtypes.from_numpy(array.dtype)
    if dtype is None or dtype is natural:
        return strong(array)
    if is_traced():
        with types_of_trace():
            return jax.lax.convert_element_type(array, promotion.available(dtype))
    with jax.enable_x64(True):
        return jax.lax.convert_element_type(array, dtype.numpy)


def _from_numpy(values, dtype):
    """Copy numpy values; the conversion to another dtype is that of C, without a range check."""
    own_dtype = values.dtype
    natural = dtypes.from_numpy(own_dtype if own_dtype.isnative else own_dtype.newbyteorder("="))
    if dtype is None or dtype is natural:
        return np.array(values, dtype=natural.numpy)
    if natural.is_complex and not dtype.is_complex and dtype is not dtypes.bool:
        warnings.warn(COMPLEX_TO_REAL, UserWarning, stacklevel=users_stacklevel())
        values = values.real
    with np.errstate(invalid="ignore", over="ignore"):
        return np.array(values, dtype=dtype.numpy)


_NO_TEXT = "a tensor holds numbers; convert text by float or int, or give each word a number"


def _from_python(data, dtype):
    """The numpy values of a number or of nested sequences."""
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}': {_NO_TEXT}")
    if _has_memory(data):
        return _from_numpy(np.asarray(from_dlpack(data)), dtype)
    shape, leaves = _flatten(data)
    if len(leaves) and isinstance(leaves[0], str):
        raise ValueError("too many dimensions 'str': a tensor holds numbers")
    if isinstance(leaves, np.ndarray):
        return _from_numpy(leaves, dtype).reshape(shape)
    kinds = set(map(type, leaves))
    natural = _common_dtype(kinds, leaves)
    if not kinds <= {bool, int, float, complex}:
        if any(isinstance(leaf, Tensor) and leaf._requires_grad for leaf in leaves):
            warnings.warn(CONVERTING, UserWarning, stacklevel=users_stacklevel())
        leaves = [_number(leaf) for leaf in leaves]
    values = np.array(leaves, dtype=None if leaves else natural.numpy)
    wanted = named_dtypes.of_tensor(natural) if dtype is None else dtype
    if values.dtype == object and max(natural.category, wanted.category) > dtypes.INTEGRAL:
        # integers of more than 64 bits
        values = values.astype(complex if natural.is_complex else float)
    elif natural.category <= dtypes.INTEGRAL and values.dtype.kind not in "biu":
        raise ValueError("Overflow when unpacking long long: an integer has more than 64 bits")
    if dtype is None and values.dtype.kind == "u" and kinds <= {bool, int}:
        raise ValueError("Overflow when unpacking long long: give dtype=torch.uint64")
    return _fitted(values, wanted).reshape(shape)


def _flatten(data):
    """The shape of nested sequences, and their elements: a list, or an array of joined arrays."""
    shape, level = [], [data]
    while level and _is_sequence(level[0]):
        if all(isinstance(item, np.ndarray) for item in level):
            for dimension in range(min(item.ndim for item in level)):
                lengths = [item.shape[dimension] for item in level]
                _check_lengths(lengths, len(shape) + dimension)
            joined = np.stack(level)
            warnings.warn(LIST_OF_ARRAYS, UserWarning, users_stacklevel())
            return (*shape, *joined.shape[1:]), joined
        for item in level:
            if not _is_sequence(item):
                raise TypeError(
                    f"not a sequence: {type(item).__name__} beside a list at dim {len(shape)}"
                )
        lengths = [len(item) for item in level]
        _check_lengths(lengths, len(shape))
        shape.append(lengths[0])
        if len(shape) > MOST_DIMENSIONS:
            raise TypeError(SELF_REFERENTIAL)
        level = list(chain.from_iterable(map(_elements, level)))
    return tuple(shape), level


def _check_lengths(lengths, dimension):
    for length in lengths:
        if length != lengths[0]:
            raise ValueError(
                f"expected sequence of length {lengths[0]} at dim {dimension} (got {length}): "
                "the lists of one level must be equally long"
            )


def _has_memory(data) -> bool:
    """Whether data of another library has memory by the DLPack protocol, and no other form."""
    known = Tensor, jax.Array, np.ndarray, np.generic
    is_other = hasattr(type(data), "__dlpack__") and not isinstance(data, known)
    return is_other and not (hasattr(type(data), "__array__") or is_of_pytorch(data))


SEQUENCES = list | tuple | range | memoryview | bytearray
NO_SEQUENCES = str | bytes | dict | set | frozenset | np.generic | jax.Array | Tensor
SELF_REFERENTIAL = "new(): self-referential lists are incompatible"
MOST_DIMENSIONS = 128


def _is_sequence(item) -> bool:
    if isinstance(item, np.ndarray):
        return item.ndim > 0
    if isinstance(item, SEQUENCES):
        return True
    kind = type(item)
    has_items = hasattr(kind, "__len__") and hasattr(kind, "__getitem__")
    return has_items and not isinstance(item, NO_SEQUENCES) and not is_of_pytorch(item)


def _elements(item):
    """The elements of a sequence: those of a user's class by their numbers."""
    if isinstance(item, SEQUENCES | np.ndarray):
        return item
    try:
        return [item[number] for number in range(len(item))]
    except Exception as error:
        raise ValueError(
            f"could not determine the shape of object type '{type(item).__name__}'"
        ) from error


def tensor_of_number(number) -> Tensor:
    """The tensor of a number that varies in a program that is exported, in the dtype that holds all
    of Python's: int64 or float64.
    """
    return wrap(strong(open_number(number)._array))


def _from_sizes(data, dtype):
    """An array of the exported program, of numbers and nested sequences with some that vary."""
    shape, leaves = _flatten(data)
    common = _common_dtype({*map(type, leaves)}, leaves) if dtype is None else dtype
    leaves = [getattr(open_number(leaf), "_array", leaf) for leaf in leaves]
    with types_of_trace():
        numbers = [jnp.asarray(leaf, promotion.available(common)) for leaf in leaves]
        return jnp.stack(numbers).reshape(shape)


def _common_dtype(kinds, leaves):
    """The dtype that all elements promote to; the default dtype if there are none."""
    if not kinds:
        return dtypes.get_default_dtype()
    element_dtypes = [_python_dtype(kind) for kind in kinds if kind in (bool, int, float, complex)]
    element_dtypes += {
        _leaf_dtype(leaf) for leaf in leaves if type(leaf) not in (bool, int, float, complex)
    }
    common = element_dtypes[0]
    for dtype in element_dtypes[1:]:
        common = promotion.promote_types(common, dtype)
    return common


def _python_dtype(kind):
    default = dtypes.get_default_dtype()
    return _PYTHON.get(kind) or (default if kind is float else default.to_complex())


def _leaf_dtype(leaf):
    if isinstance(leaf, Tensor):
        return leaf.dtype
    if is_of_pytorch(leaf):
        return dtype_of(leaf)
    if isinstance(leaf, np.generic | np.ndarray | jax.Array):
        return dtypes.from_numpy(leaf.dtype)
    if isinstance(leaf, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(leaf).__name__}': {_NO_TEXT}")
    if isinstance(leaf, list | tuple):
        if any(part is leaf for part in leaf):
            raise TypeError(SELF_REFERENTIAL)
        raise TypeError(
            f"'{type(leaf).__name__}' object beside numbers: lists must be equally deep"
        )
    for kind in (bool, int, float, complex):
        if isinstance(leaf, kind):
            return _python_dtype(kind)
    if is_symbolic(leaf):
        return _python_dtype(int)
    raise RuntimeError(
        f"Could not infer dtype of {type(leaf).__name__}: a tensor is made of numbers, tensors and "
        "arrays, and of lists of them"
    )


def _number(leaf):
    """An element as a Python number."""
    if not hasattr(leaf, "item"):
        return leaf
    if (isinstance(leaf, Tensor) or is_of_pytorch(leaf)) and leaf.numel() != 1:
        raise ValueError(
            "only one element tensors can be converted to Python scalars: "
            "join tensors with torch.stack"
        )
    return leaf.item()


def _fitted(values, dtype):
    """Convert numbers to a dtype; floats are truncated to integers.

    Raises RuntimeError for an integer out of range, TypeError for complex numbers in a real dtype.
    """
    if values.dtype.kind == "c" and not dtype.is_complex and dtype is not dtypes.bool:
        raise TypeError(f"must be real number, not complex: dtype is {dtype}; give the real parts")
    if dtype.category == dtypes.INTEGRAL and values.size:
        for extreme in (values.min(), values.max()):
            _check_fit(extreme.item(), dtype)
    return dtypes.of_array(values, dtype)


def _check_fit(number, dtype):
    try:
        promotion.checked_number(number, dtype)
    except RuntimeError:
        raise RuntimeError(
            f"value cannot be converted to type {dtype.name} without overflow: {number!r}"
        ) from None


class DataMethods:
    """Methods of `Tensor` that create tensors from data."""

    @api_boundary
    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False) -> Tensor:
        """Create a leaf from data, by default in this tensor's dtype and on its device.

        Arguments and errors as for `tensor`.

        >>> jaxgrad.zeros(1).new_tensor([1, 2])
        tensor([1., 2.])
        """
        if isinstance(data, Tensor):
            warnings.warn(COPY_CONSTRUCT, UserWarning, stacklevel=users_stacklevel())
        dtype = self.dtype if dtype is None else dtype
        device = self.device if device is None else device
        return finish(_array_of(data, _as_dtype(dtype), device), requires_grad)
