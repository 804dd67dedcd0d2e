"""Storages as scripts see them: the size, the address and the elements of the memory of tensors.

They read and write the memory through a tensor that shows all of it as a row, and resize it
(storage_tensors.py).
"""

from __future__ import annotations

import copy
import operator
import os
import weakref
from collections.abc import Sequence

import jax
import numpy as np

from ..core import dtypes, named_dtypes
from ..core import strides as layouts
from ..core.aval import strides_of
from ..core.device import as_device, check_pinning, device_of, is_meta
from ..late import LateModule
from ..names.missing import missing_in
from ..storage.address import in_memory_order
from ..storage.alias import Storage, begin, settle
from ..tape import handle_lock
from ..tape.warn_once import warn_once

array_creation = LateModule("jaxgrad.frontend.array_creation")
factories = LateModule("jaxgrad.frontend.factories")
storage_tensors = LateModule("jaxgrad.frontend.storage_tensors")


def elements(storage: Storage) -> np.ndarray:
    """All elements of a memory, in PyTorch's order, as a flat array. Raises RuntimeError under a
    trace.
    """
    with handle_lock.lock:
        settle(storage)
        array = storage.array
    if isinstance(array, jax.core.Tracer):
        raise RuntimeError(
            "a storage has no numbers inside of a function that is being traced: read it outside"
        )
    return in_memory_order(np.asarray(array, order="C"), strides_of(storage.aval))


_INTEGERS = {
    **{named_dtypes.qint8: dtypes.int8, named_dtypes.qint32: dtypes.int32},
    **dict.fromkeys(
        (named_dtypes.quint8, named_dtypes.quint4x2, named_dtypes.quint2x4), dtypes.uint8
    ),
}


def in_memory(dtype: dtypes.dtype) -> dtypes.dtype:
    """The dtype of the numbers that a storage of a dtype holds: integers for a quantized one."""
    return _INTEGERS.get(dtype, dtype)


class StorageBase:
    """The memory that tensors share, as elements of `dtype`. Writes reach the tensors."""

    dtype: dtypes.dtype
    _is_typed = True
    _part: range | None = None  # the bytes that a slice of a storage shows; None: all of them

    @classmethod
    def _of(cls, memory: Storage, dtype: dtypes.dtype | None = None, part: range | None = None):
        """The storage that shows a memory of tensors, or a part of it."""
        storage = object.__new__(cls)
        storage._storage = memory
        if dtype is not None:
            storage.dtype = dtype
        if part is not None:
            storage._part = part
        return storage

    @property
    def device(self):
        """The device of the memory.

        >>> jaxgrad.zeros(1, device="cpu").untyped_storage().device
        device(type='cpu')
        """
        return device_of(self._storage.array)

    is_cuda = property(lambda self: self.device.type == "cuda", doc="Whether it is on a GPU.")
    is_hpu = is_sparse = is_sparse_csr = property(lambda self: False, doc="False: there are none.")

    def data_ptr(self) -> int:
        """Return the address of the bytes, as `Tensor.data_ptr` does.

        >>> x = jaxgrad.zeros(4)
        >>> x.untyped_storage().data_ptr() == x.data_ptr()
        True
        """
        return self._storage.address + self._start

    @property
    def _start(self) -> int:
        """The number of bytes of the memory before those of the storage."""
        return 0 if self._part is None else self._part.start

    @property
    def _cdata(self) -> int:
        """The address of the Python object that all storages of this memory share, which stands
        for PyTorch's address of its own. It is not that of elements.

        >>> x = jaxgrad.zeros(4)
        >>> x.untyped_storage()._cdata == x[1:].untyped_storage()._cdata
        True
        """
        return id(self._storage if self._part is None else self)

    def nbytes(self) -> int:
        """Return the size in bytes.

        >>> jaxgrad.zeros(4).untyped_storage().nbytes()
        16
        """
        if self._part is not None:
            return len(self._part)
        shown = self._storage.aval
        return layouts.reach(shown.shape, strides_of(shown)) * shown.dtype.itemsize

    def element_size(self) -> int:
        """Return the size of an element in bytes.

        >>> jaxgrad.zeros(4).storage().element_size()
        4
        """
        return self.dtype.itemsize

    def size(self) -> int:
        """Return the number of elements; those of an untyped storage are its bytes.

        >>> jaxgrad.zeros(4).storage().size(), jaxgrad.zeros(4).untyped_storage().size()
        (4, 16)
        """
        return self.nbytes() // self.element_size()

    def __len__(self):
        return self.size()

    def tolist(self) -> list:
        """Return the elements as Python numbers.

        >>> jaxgrad.arange(3.0)[1:].storage().tolist()
        [0.0, 1.0, 2.0]
        """
        return self._numbers().tolist()

    def _numbers(self) -> np.ndarray:
        self._check_data()
        numbers = elements(self._storage).view(np.uint8)[self._start :]
        return numbers[: self.size() * self.element_size()].view(in_memory(self.dtype).numpy)

    def _check_data(self):
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type: there are no numbers")

    def _check_copied(self):
        if self.device.type == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def __array__(self, dtype=None, copy=None):
        return np.array(self._numbers(), dtype)

    def _row(self):
        self._check_data()
        return storage_tensors.row_of(self, in_memory(self.dtype))

    def __iter__(self):
        return iter(self.tolist())

    def _place(self, index):
        """An index from 0, or a slice with the step 1, in a typed storage with any step above 0."""
        if isinstance(index, slice):
            start, stop, step = index.indices(self.size())
            if self._is_typed and step > 0:
                return slice(start, max(start, stop), step)
            if step != 1:
                raise RuntimeError(
                    f"Trying to slice with a step of {step}, but only a step of 1 is supported: "
                    "make a tensor of the storage"
                )
            return slice(start, max(start, stop))
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            raise TypeError(f"can't index a {type(self)} with {type(index)}")
        place, count = operator.index(index), self.size()
        if not -count <= place < count:
            raise IndexError(f"index {place} out of range for storage of size {count}")
        return place % count

    def fill_(self, value):
        """Write a number to all elements, and return the storage.

        >>> x = jaxgrad.zeros(2)
        >>> x.storage().fill_(3).tolist(), x.tolist()
        ([3.0, 3.0], [3.0, 3.0])
        """
        self[:] = value
        return self

    def copy_(self, source, non_blocking: bool | None = None):
        """Write the bytes of another storage of this size to this one, which is returned.

        source: a storage. non_blocking: not used. Raises RuntimeError for another size in bytes.

        >>> x = jaxgrad.zeros(2)
        >>> storage = x.storage().copy_(jaxgrad.ones(2).storage())
        >>> x.tolist()
        [1.0, 1.0]
        """
        source._check_copied()
        if self.nbytes() != source.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was "
                f"{source.nbytes()} bytes"
            )
        if self.nbytes():
            dtype = self._storage.aval.dtype if self._part is None else dtypes.uint8
            row = storage_tensors.row_of(self, dtype)
            row.copy_(storage_tensors.row_of(source, dtype))
        return self

    def clone(self):
        """Return a copy with memory of its own.

        >>> x = jaxgrad.ones(2)
        >>> copied = x.storage().clone().fill_(0)
        >>> x.tolist()
        [1.0, 1.0]
        """
        return copy.deepcopy(self)

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        if self._part is None:
            memory = copy.deepcopy(self._storage, memo)
        else:
            memory = _of_numbers(self._numbers().copy())
        return type(self)._of(memory, self.__dict__.get("dtype"))

    def __reduce__(self):
        return _unpickled, (type(self), self.__dict__.get("dtype"), self._numbers())

    def _resize(self, size: int):
        """Resize the memory to so many bytes."""
        if self._part is not None:
            raise RuntimeError(
                f"Trying to resize storage that is not resizable: it is a part of {len(self._part)}"
                " bytes of another storage"
            )
        itemsize = self._storage.aval.dtype.itemsize
        if size < 0 or size % itemsize:
            raise RuntimeError(
                f"resize_: a storage of {self._storage.aval.dtype} may have a multiple of "
                f"{itemsize} bytes, not {size}"
            )
        storage_tensors.memory_row(self._storage, self._storage.aval.dtype, size // itemsize)

    def cuda(self, device=None, non_blocking: bool = False):
        """Return the storage itself if it is on the GPU, else a copy there.

        >>> storage = jaxgrad.ones(2).storage()
        >>> storage = storage.cuda() if jaxgrad.cuda.is_available() else storage
        """
        return self.to(device="cuda" if device is None else device)

    def cpu(self):
        """Return the storage itself if it is on a CPU, else a copy there.

        >>> jaxgrad.ones(2).storage().cpu().tolist()
        [1.0, 1.0]
        """
        return self if self.device.type == "cpu" else self.to(device="cpu")

    def to(self, *, device, non_blocking: bool = False):
        """Return the storage itself if it is on the device, else a copy there.

        >>> jaxgrad.ones(2).storage().to(device="cpu").tolist()
        [1.0, 1.0]
        """
        if as_device(device) == self.device:
            return self
        self._check_copied()
        moved = self._row().to(device)
        return type(self)._of(begin(moved).storage, self.__dict__.get("dtype"))

    def hpu(self, device=None, non_blocking: bool = False):
        """Raise RuntimeError: JAX has no devices of this type.

        >>> jaxgrad.ones(2).storage().hpu()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        RuntimeError: ...
        """
        return self.to(device="hpu" if device is None else device)

    def pin_memory(self, device=None):
        """Return the storage itself, as `Tensor.pin_memory` does. Raises RuntimeError where JAX has
        no accelerator.

        >>> storage = jaxgrad.ones(2).storage()
        >>> pinned = storage.pin_memory() if jaxgrad.accelerator.is_available() else storage
        """
        check_pinning("pin_memory()")
        return self

    def resizable(self) -> bool:
        """Return whether the memory can be resized: False for a slice of a storage.

        >>> storage = jaxgrad.zeros(2).untyped_storage()
        >>> storage.resizable(), storage[:4].resizable()
        (True, False)
        """
        return self._part is None

    def is_pinned(self, device=None) -> bool:
        """Return False: no memory is page-locked.

        >>> jaxgrad.ones(2).storage().is_pinned()
        False
        """
        return False

    def is_shared(self) -> bool:
        """Return False: no memory is shared by processes.

        >>> jaxgrad.ones(2).storage().is_shared()
        False
        """
        return False

    def share_memory_(self):
        """Raise RuntimeError: XLA's arrays cannot be moved to memory that processes share.

        >>> jaxgrad.ones(2).storage().share_memory_()
        Traceback (most recent call last):
        RuntimeError: share_memory_(): XLA manages the memory of arrays, and processes cannot
        share it; send the values instead
        """
        self._share_fd_cpu_()

    def _share_fd_cpu_(self, *arguments):
        raise RuntimeError(self._unshared("_share_fd_"))

    def _share_filename_cpu_(self, *arguments):
        raise RuntimeError(self._unshared("_share_filename_"))

    def _unshared(self, name: str) -> str:
        on_cpu = self.device.type == "cpu"
        return UNSHARED if on_cpu else f"{name}: only available on CPU, not on {self.device}"

    def _write_file(self, file, is_real_file: bool, save_size: bool, element_size: int):
        """Write the bytes to an open file, after their number of elements if `save_size`."""
        self._check_copied()
        count = self.nbytes() // element_size
        file.write((count.to_bytes(8, "little") if save_size else b"") + self._numbers().tobytes())

    def get_device(self) -> int:
        """Return the number of the device, -1 for a CPU.

        >>> jaxgrad.ones(2, device="cpu").storage().get_device()
        -1
        """
        return -1 if self.device.index is None else self.device.index

    def _converted(self, dtype: dtypes.dtype) -> TypedStorage:
        return TypedStorage._of(begin(self._row().to(dtype, copy=True)).storage, dtype)

    def __repr__(self):
        numbers = "\n ".join(map(str, self.tolist() if self.device.type != "meta" else ["..."]))
        return f" {numbers}\n[{self._kind()} of size {self.size()}]"


UNSHARED = (
    "share_memory_(): XLA manages the memory of arrays, and processes cannot share it; send the "
    "values instead"
)


def _conversion(name: str, dtype: dtypes.dtype):
    def convert(self) -> TypedStorage:
        return self._converted(dtype)

    convert.__name__ = convert.__qualname__ = name
    shown = [dtype.numpy.type(1).item()]
    convert.__doc__ = f"""Return a copy with the elements in {dtype}.

    >>> jaxgrad.ones(1).storage().{name}().tolist()
    {shown}
    """
    return convert


for _name, _dtype in {
    "float": dtypes.float32,
    "double": dtypes.float64,
    "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16,
    "byte": dtypes.uint8,
    "char": dtypes.int8,
    "short": dtypes.int16,
    "int": dtypes.int32,
    "long": dtypes.int64,
    "bool": dtypes.bool,
    "complex_float": dtypes.complex64,
    "complex_double": dtypes.complex128,
    **{
        f"float8_{kind}": getattr(dtypes, f"float8_{kind}")
        for kind in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")
    },
}.items():
    setattr(StorageBase, _name, _conversion(_name, _dtype))


def _allocated(what: str, arguments, dtype: dtypes.dtype, device) -> Storage:
    """New memory: of so many elements, which are 0, or with the numbers of a sequence."""
    if len(arguments) > 1:
        raise RuntimeError(
            f"{what} received an invalid combination of arguments: Too many positional arguments: "
            f"it takes a size, or a sequence of numbers, not {len(arguments)} of them"
        )
    (data,) = arguments or (0,)
    dtype = in_memory(dtype)
    if isinstance(data, StorageBase) and what != UNTYPED:
        raise TypeError(
            f"{what}: Argument type not recognized: {type(data).__name__}; its clone() is a copy"
        )
    if isinstance(data, StorageBase | bytes | bytearray):
        data = list(data)
    if isinstance(data, str):
        raise TypeError(f"{what}: invalid data type 'str': a storage holds numbers")
    if hasattr(data, "__index__") and not hasattr(data, "__array__"):
        if data < 0:
            raise RuntimeError(f"{what}: a storage has a size from 0, not {data}")
        tensor = factories.zeros(operator.index(data), dtype=dtype, device=device)
    elif isinstance(data, Sequence) and is_meta(device):
        tensor = factories.zeros(len(data), dtype=dtype, device=device)
    elif isinstance(data, Sequence):
        return _of_numbers(np.array(data).astype(dtype.numpy), device)
    else:
        raise TypeError(f"{what}: Argument type not recognized: {type(data).__name__}")
    return begin(tensor).storage


UNTYPED = "UntypedStorage()"
BYTE_ORDERS = {"native": "=", "little": "<", "big": ">"}


def _numbers(buffer, byte_order, count: int, offset: int, dtype: dtypes.dtype) -> np.ndarray:
    """The numbers in a buffer, as a new array. Raises ValueError for another byte order, and for a
    buffer that is too short.
    """
    if dtype.itemsize > 1 and byte_order not in BYTE_ORDERS:
        if byte_order is None:
            raise RuntimeError("from_buffer(): missing required argument 'byte_order' (pos 2)")
        raise ValueError(
            f"invalid byte_order {byte_order!r} (expected 'big', 'little', or 'native') of {dtype}"
        )
    size = memoryview(buffer).nbytes
    if not 0 <= offset <= size:
        raise ValueError(
            f"from_buffer(): offset must be non-negative and no greater than buffer length ({size})"
            f", but got {offset}"
        )
    if count < 0 and (size - offset) % dtype.itemsize:
        raise ValueError(
            f"from_buffer(): buffer size ({size - offset}) must be a multiple of element size "
            f"({dtype.itemsize})"
        )
    available = (size - offset) // dtype.itemsize
    if count > available:
        raise ValueError(
            f"from_buffer(): buffer has only {available} elements after offset {offset}, but "
            f"specified a size of {count}"
        )
    if dtype is dtypes.bool:
        return np.frombuffer(buffer, np.uint8, count, offset) != 0
    order = BYTE_ORDERS.get(byte_order, "=")
    there = np.frombuffer(buffer, dtype.numpy.newbyteorder(order), count, offset)
    return there.astype(dtype.numpy)


class UntypedStorage(StorageBase):
    """The memory that tensors share as bytes; `Tensor.untyped_storage` returns it.

    A call makes a new one: `UntypedStorage(4)` has four bytes, which are 0, and
    `UntypedStorage([1, 2])` those of a sequence. device: the default one if it is None.

    Raises TypeError for other arguments.

    >>> x = jaxgrad.zeros(4)
    >>> x.untyped_storage() == x[:2].untyped_storage()
    True
    >>> jaxgrad.UntypedStorage([1, 2]).tolist()
    [1, 2]
    """

    dtype = dtypes.uint8
    _is_typed = False
    filename = None  # of memory that is that of a file, which none is

    def __init__(self, *size, device=None, **named):
        if named.keys() - {"size"} or (size and named):
            raise TypeError(f"UntypedStorage(): unknown arguments: {', '.join(named)}")
        arguments = size or tuple(named.values())
        self._storage = _allocated(UNTYPED, arguments, self.dtype, device)

    def _kind(self):
        return f"torch.storage.UntypedStorage(device={self.device})"

    @classmethod
    def from_file(cls, filename, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Return the first bytes of a file as a storage. They are read from the file where they are
        used, and are not to change meanwhile. Writes do not reach the file.

        filename: a path. shared: False, since no memory is that of a file. nbytes: how many, all if
        0.

        Raises RuntimeError with `shared=True`, if the file has fewer bytes, and for a file that
        cannot be read.

        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     count = file.write(b"abc")
        ...     file.flush()
        ...     jaxgrad.UntypedStorage.from_file(file.name, nbytes=2).tolist()
        [97, 98]
        """
        return cls._of(_of_file("UntypedStorage", filename, shared, nbytes, cls.dtype))

    @classmethod
    def from_buffer(
        cls,
        buffer,
        byte_order: str | None = None,
        count: int = -1,
        offset: int = 0,
        dtype: dtypes.dtype = dtypes.uint8,
    ) -> UntypedStorage:
        """Return a storage with a copy of the bytes of a buffer.

        buffer: `bytes`, or what has a buffer. byte_order: that of its numbers, "native", "little"
        or "big"; needed for dtypes of several bytes. count: how many numbers, all if -1; offset:
        the bytes before them. dtype: that of the numbers. Raises ValueError for a buffer that is
        too short and an unknown byte order, RuntimeError without a byte order where one is needed.

        >>> jaxgrad.UntypedStorage.from_buffer(b"abc").tolist()
        [97, 98, 99]
        """
        numbers = _numbers(buffer, byte_order, count, offset, dtype)
        return cls._of(_of_numbers(numbers.view(np.uint8)))

    def untyped(self) -> UntypedStorage:
        """Return the storage itself.

        >>> storage = jaxgrad.zeros(2).untyped_storage()
        >>> storage.untyped() is storage
        True
        """
        return self

    def new(self) -> UntypedStorage:
        """Return an empty storage on this device.

        >>> jaxgrad.zeros(2).untyped_storage().new().size()
        0
        """
        return UntypedStorage(device=self.device)

    def resize_(self, size: int) -> UntypedStorage:
        """Resize the memory to so many bytes, and return the storage. New bytes are 0. A tensor for
        which it is too small raises when it is read.

        size: a multiple of the bytes of an element. Raises RuntimeError for another number.

        >>> x = jaxgrad.ones(2)
        >>> x.untyped_storage().resize_(16).nbytes()
        16
        """
        self._resize(operator.index(size))
        return self

    def byteswap(self, dtype: dtypes.dtype):
        """Reverse the order of the bytes of each number, in place. dtype: that of the numbers;
        those of a complex number are its two parts.

        >>> storage = jaxgrad.UntypedStorage([1, 2])
        >>> storage.byteswap(jaxgrad.int16)
        >>> storage.tolist()
        [2, 1]
        """
        width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        swapped = self._numbers().reshape(-1, width)[:, ::-1].reshape(-1)
        self.copy_(UntypedStorage._of(_of_numbers(swapped)))

    def type(self, dtype=None, non_blocking: bool = False):
        """Return the name of the type, or a storage with the bytes in another dtype.

        >>> jaxgrad.zeros(2).untyped_storage().type()
        'torch.storage.UntypedStorage'
        """
        return "torch.storage.UntypedStorage" if dtype is None else self._converted(dtype.dtype)

    def __getitem__(self, index):
        self._check_data()
        place = self._place(index)
        if not isinstance(place, slice):
            return self._numbers()[place].item()
        return self._of(self._storage, part=self._bytes()[place])

    def _bytes(self) -> range:
        """The places of the bytes in the memory."""
        return range(self.nbytes()) if self._part is None else self._part

    def __setitem__(self, index, value):
        self._row()[self._place(index)] = operator.index(value) % 256

    def __eq__(self, other):
        return type(other) is type(self) and self._cdata == other._cdata

    def __hash__(self):
        return id(self._storage)


def _unpickled(kind: type, dtype, numbers):
    """The storage of a class with the elements that pickling has written."""
    return kind._of(_of_numbers(numbers), dtype)


def _of_numbers(values: np.ndarray, device=None) -> Storage:
    return begin(array_creation.finish(array_creation.taken_over(values, device))).storage


def _of_file(name: str, filename, shared: bool, nbytes: int, dtype: dtypes.dtype) -> Storage:
    if shared:
        raise RuntimeError(
            f"{name}.from_file(shared=True): writes to a storage do not reach the file; use "
            "shared=False, and write the file anew"
        )
    try:
        size = os.stat(filename).st_size
    except OSError as error:
        raise RuntimeError(
            f"unable to open file <{filename}> in read-only mode: {error.strerror} ({error.errno})"
        ) from error
    if nbytes > size:
        raise RuntimeError(
            f"{name}.from_file: file <{filename}> size <{size}> is smaller than the required "
            f"mapping size <{nbytes}>"
        )
    count = (nbytes or size) // dtype.itemsize
    if not count:
        return _of_numbers(np.zeros(0, dtype.numpy))
    return _of_numbers(np.memmap(filename, dtype.numpy, "r", shape=(count,)))


def untyped(memory: Storage) -> UntypedStorage:
    """The one object that stands for a memory as bytes, for as long as it is used."""
    storage = None if memory.untyped is None else memory.untyped()
    if storage is None:
        storage = UntypedStorage._of(memory)
        memory.untyped = weakref.ref(storage)
    return storage


_WRAPS = "TypedStorage.__init__ received an invalid combination of arguments"


def _check_wrapped(what: str, size, wrap_storage, device=None):
    if not (size or device is not None) and isinstance(wrap_storage, UntypedStorage):
        return
    text = f"{what} received an invalid combination of arguments"
    if size:
        raise RuntimeError(f"{text}: No positional arguments should be given with 'wrap_storage'")
    if device is not None:
        raise RuntimeError(f"{text}: Argument 'device' should not be specified with 'wrap_storage'")
    kind = type(wrap_storage).__name__
    raise TypeError(f"{text}: Argument 'wrap_storage' must be UntypedStorage, but got {kind}")


def _warn_typed_storage_removal():
    warn_once(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be "
        "the only storage class: use tensor.untyped_storage() instead of tensor.storage()"
    )


class TypedStorage(StorageBase):
    """The memory that tensors share as elements of a dtype; `Tensor.storage` returns it.

    A call makes a new one, as that of `UntypedStorage` does, with elements of `dtype` (the default
    dtype if it is None). wrap_storage: an untyped storage whose memory it shows.

    Raises RuntimeError for other arguments.

    >>> x = jaxgrad.arange(3)
    >>> x.storage().dtype, isinstance(x.storage(), jaxgrad.LongStorage)
    (torch.int64, True)
    >>> jaxgrad.TypedStorage([1, 2], dtype=jaxgrad.float32).tolist()
    [1.0, 2.0]
    """

    def __init__(self, *size, wrap_storage=None, dtype=None, device=None, _internal=False):
        if not _internal:
            _warn_typed_storage_removal()
        if wrap_storage is None:
            self.dtype = dtypes.get_default_dtype() if dtype is None else dtype
            self._storage = _allocated("TypedStorage.__init__", size, self.dtype, device)
            return
        _check_wrapped("TypedStorage.__init__", size, wrap_storage, device)
        if dtype is None:
            raise RuntimeError(f"{_WRAPS}: Argument 'dtype' must be specified with 'wrap_storage'")
        if not isinstance(dtype, dtypes.dtype):
            kind = type(dtype).__name__
            raise TypeError(f"{_WRAPS}: Argument 'dtype' must be torch.dtype, not {kind}")
        self.dtype, self._storage, self._part = dtype, wrap_storage._storage, wrap_storage._part

    def _kind(self):
        return f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"

    filename = None

    @classmethod
    def from_buffer(cls, *arguments, dtype: dtypes.dtype, device=None, **named) -> TypedStorage:
        """Return a storage with a copy of the numbers of a buffer; see
        `UntypedStorage.from_buffer`.

        >>> jaxgrad.TypedStorage.from_buffer(b"ab", dtype=jaxgrad.uint8).tolist()
        [97, 98]
        """
        return cls._of(_of_numbers(_read(dtype, *arguments, **named)), dtype)

    _from_buffer = from_buffer

    def untyped(self) -> UntypedStorage:
        """Return the same memory as bytes.

        >>> jaxgrad.zeros(2).storage().untyped().nbytes()
        8
        """
        if self._part is not None:
            return UntypedStorage._of(self._storage, part=self._part)
        return untyped(self._storage)

    _untyped_storage = property(untyped)

    def resize_(self, size: int):
        """Resize the memory to so many elements; see `UntypedStorage.resize_`.

        >>> x = jaxgrad.ones(2)
        >>> x.storage().resize_(3)
        >>> x.storage().tolist()
        [1.0, 1.0, 0.0]
        """
        self._resize(operator.index(size) * self.dtype.itemsize)

    def pickle_storage_type(self) -> str:
        """Return the name of the type of storages of this dtype.

        >>> jaxgrad.zeros(2).storage().pickle_storage_type()
        'FloatStorage'
        """
        return f"{self.dtype.scalar_type}Storage"

    def type(self, dtype=None, non_blocking: bool = False):
        """Return the name of the type, or a storage with the elements in another dtype.

        dtype: a type such as `jaxgrad.DoubleStorage`, or its name.

        >>> jaxgrad.zeros(2).storage().type()
        'torch.FloatStorage'
        """
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        kind = TYPES[dtype.rpartition(".")[2]] if isinstance(dtype, str) else dtype
        return self._converted(kind.dtype)

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not hasattr(index, "__index__"):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._check_data()
        return self._numbers()[self._place(index)].item()

    def __setitem__(self, index, value):
        if not isinstance(index, slice) and not hasattr(index, "__index__"):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if isinstance(value, StorageBase):
            raise RuntimeError(f"cannot set item with value type {type(value)}: take its elements")
        if isinstance(value, str):
            raise TypeError(f"can't assign a str to a torch.{self.dtype.scalar_type}Tensor")
        self._row()[self._place(index)] = value

    def __eq__(self, other):
        return type(other) is type(self) and self._cdata == other._cdata

    def __hash__(self):
        return id(self._storage)


def default_type():
    """The type of storages of the default dtype, `torch.Storage`."""
    return TYPES[f"{dtypes.get_default_dtype().scalar_type}Storage"]


def _read(dtype, buffer, byte_order=None, count=-1, offset=0):
    return _numbers(buffer, byte_order, count, offset, dtype)


class StorageType(type):
    """The class of the types of storages by dtype, which their storages are not made of: all are of
    the class `TypedStorage`.
    """

    def __call__(cls, *size, wrap_storage=None, device=None, dtype=None, _internal=False):
        if cls is _LegacyStorage:
            raise RuntimeError(
                "Only child classes of _LegacyStorage can be instantiated, such as FloatStorage"
            )
        for name, value in {"device": device, "dtype": dtype}.items():
            if value is not None:
                raise RuntimeError(
                    f"{cls!r}.__new__ received an invalid combination of arguments: Keyword "
                    f"argument {name!r} cannot be specified: call TypedStorage"
                )
        if not _internal:
            _warn_typed_storage_removal()
        if wrap_storage is None:
            memory = _allocated(f"{cls!r}.__new__", size, cls.dtype, device)
            return TypedStorage._of(memory, cls.dtype)
        _check_wrapped(f"{cls!r}.__new__", size, wrap_storage)
        return TypedStorage(wrap_storage=wrap_storage, dtype=cls.dtype, _internal=True)

    _dtype = property(lambda cls: cls.dtype)

    def __instancecheck__(cls, instance):
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    def from_buffer(cls, buffer, byte_order: str | None = None, count: int = -1, offset: int = 0):
        """Return a storage with a copy of the numbers of a buffer; see
        `UntypedStorage.from_buffer`.

        >>> jaxgrad.ByteStorage.from_buffer(b"ab").tolist()
        [97, 98]
        """
        numbers = _numbers(buffer, byte_order, count, offset, cls.dtype)
        return TypedStorage._of(_of_numbers(numbers), cls.dtype)

    _from_buffer = from_buffer

    def from_file(cls, filename, shared: bool = False, size: int = 0):
        """Return the first numbers of a file as a storage; see `UntypedStorage.from_file`.

        size: how many, all if 0.

        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     count = file.write(b"abc")
        ...     file.flush()
        ...     jaxgrad.ByteStorage.from_file(file.name, size=2).tolist()
        [97, 98]
        """
        nbytes = size * cls.dtype.itemsize
        return TypedStorage._of(
            _of_file(cls.__name__, filename, shared, nbytes, cls.dtype), cls.dtype
        )


class _LegacyStorage(metaclass=StorageType):
    """What the types of storages by dtype derive from; it makes none itself."""

    is_cuda = False


def _type_of(dtype) -> StorageType:
    name = f"{dtype.scalar_type}Storage"
    text = (
        f"The type of storages of {dtype}: a call makes one by its size, or of numbers.\n\n"
        f">>> jaxgrad.{name}(2).dtype\n{dtype}\n"
    )
    known = {"dtype": dtype, "__module__": "torch", "__doc__": text}
    return StorageType(name, (_LegacyStorage,), known)


TYPES = {
    f"{dtype.scalar_type}Storage": _type_of(dtype)
    for dtype in (
        *(dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.uint8),
        *(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.bool),
        *(dtypes.complex64, dtypes.complex128),
        *_INTEGERS,
    )
}
globals().update(TYPES)

_storage_classes = {UntypedStorage, TypedStorage, *TYPES.values()}


def _dtype_to_storage_type_map() -> dict[dtypes.dtype, str]:
    return {kind.dtype: name for name, kind in TYPES.items()}


def _storage_type_to_dtype_map() -> dict[str, dtypes.dtype]:
    return {name: kind.dtype for name, kind in TYPES.items()}


def is_storage(obj) -> bool:
    """Return whether `obj` is a storage.

    >>> jaxgrad.is_storage(jaxgrad.zeros(1).storage()), jaxgrad.is_storage(jaxgrad.zeros(1))
    (True, False)
    """
    return isinstance(obj, StorageBase)


__getattr__ = missing_in(__name__)
