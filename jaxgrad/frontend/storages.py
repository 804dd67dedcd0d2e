"""Storages as scripts see them: the size, the address and the elements of the memory of tensors.

A storage is read-only: tensors write to it.
"""

from __future__ import annotations

import os

import jax
import numpy as np

from ..core import dtypes
from ..core import strides as layouts
from ..core.aval import make_aval, strides_of
from ..core.device import device_of
from ..names.missing import missing_in
from ..storage.address import in_memory_order
from ..storage.alias import Storage, settle
from ..tape import handle_lock


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


class ReadOnlyStorage:
    """The memory that tensors share, as elements of `dtype`."""

    dtype: dtypes.dtype
    kind: str

    def __init__(self, storage: Storage):
        if not isinstance(storage, Storage):
            raise TypeError(
                f"{type(self).__name__}: jaxgrad makes no storage without a tensor; make the "
                "tensor, and call its untyped_storage()"
            )
        self._storage = storage

    @property
    def device(self):
        """The device of the memory.

        >>> jaxgrad.zeros(1, device="cpu").untyped_storage().device
        device(type='cpu')
        """
        return device_of(self._storage.array)

    def data_ptr(self) -> int:
        """Return the address of the bytes, as `Tensor.data_ptr` does.

        >>> x = jaxgrad.zeros(4)
        >>> x.untyped_storage().data_ptr() == x.data_ptr()
        True
        """
        return self._storage.address

    @property
    def _cdata(self) -> int:
        """The address of the Python object that all storages of this memory share, which stands
        for PyTorch's address of its own. It is not that of elements.

        >>> x = jaxgrad.zeros(4)
        >>> x.untyped_storage()._cdata == x[1:].untyped_storage()._cdata
        True
        """
        return id(self._storage)

    def nbytes(self) -> int:
        """Return the size in bytes.

        >>> jaxgrad.zeros(4).untyped_storage().nbytes()
        16
        """
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
        return elements(self._storage).view(self.dtype.numpy).tolist()

    @classmethod
    def _of_numbers(cls, values: np.ndarray, dtype: dtypes.dtype):
        return cls(Storage(values, make_aval(values.shape, dtype)))

    def __getitem__(self, index):
        return self.tolist()[index]

    def __iter__(self):
        return iter(self.tolist())

    def __eq__(self, other):
        return type(other) is type(self) and self._storage is other._storage

    def __hash__(self):
        return id(self._storage)

    def __repr__(self):
        return f"{self.tolist()}\n[{self.kind}(device={self.device}) of size {self.size()}]"


BYTE_ORDERS = {"native": "=", "little": "<", "big": ">"}


def _numbers(buffer, byte_order, count: int, offset: int, dtype: dtypes.dtype) -> np.ndarray:
    """The numbers in a buffer, as a new array. Raises ValueError for another byte order."""
    if dtype.itemsize > 1 and byte_order not in BYTE_ORDERS:
        raise ValueError(
            f"from_buffer: byte_order is 'native', 'little' or 'big' for {dtype}, not {byte_order}"
        )
    order = BYTE_ORDERS.get(byte_order, "=")
    there = np.frombuffer(buffer, dtype.numpy.newbyteorder(order), count, offset)
    return there.astype(dtype.numpy)


class UntypedStorage(ReadOnlyStorage):
    """The memory that tensors share as bytes; `Tensor.untyped_storage` returns it.

    >>> x = jaxgrad.zeros(4)
    >>> x.untyped_storage() == x[:2].untyped_storage()
    True
    """

    dtype, kind = dtypes.uint8, "torch.storage.UntypedStorage"

    @classmethod
    def from_file(cls, filename, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Return the first bytes of a file as a storage. They are read from the file where they are
        used, and are not to change meanwhile.

        filename: a path. shared: False, since a storage is read-only. nbytes: how many, all if 0.

        Raises RuntimeError with `shared=True`, and if the file has fewer bytes; OSError for a file
        that cannot be read.

        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     count = file.write(b"abc")
        ...     file.flush()
        ...     jaxgrad.UntypedStorage.from_file(file.name, nbytes=2).tolist()
        [97, 98]
        """
        if shared:
            raise RuntimeError(
                "UntypedStorage.from_file(shared=True): a storage is read-only, and writes to "
                "tensors do not reach the file; use shared=False, and write the file anew"
            )
        size = os.stat(filename).st_size
        if nbytes > size:
            raise RuntimeError(
                f"UntypedStorage.from_file: {filename} has {size} bytes, fewer than nbytes={nbytes}"
            )
        count = nbytes or size
        read = (
            np.memmap(filename, np.uint8, "r", shape=(count,)) if count else np.zeros(0, np.uint8)
        )
        return cls._of_bytes(read)

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
        too short, and without a byte order where one is needed.

        >>> jaxgrad.UntypedStorage.from_buffer(b"abc").tolist()
        [97, 98, 99]
        """
        return cls._of_bytes(_numbers(buffer, byte_order, count, offset, dtype).view(np.uint8))

    @classmethod
    def _of_bytes(cls, values: np.ndarray) -> UntypedStorage:
        return cls._of_numbers(values, dtypes.uint8)

    def untyped(self) -> UntypedStorage:
        """Return the storage itself.

        >>> storage = jaxgrad.zeros(2).untyped_storage()
        >>> storage.untyped() is storage
        True
        """
        return self

    def __getitem__(self, index):
        if not isinstance(index, slice):
            return super().__getitem__(index)
        if index.step not in (None, 1):
            raise RuntimeError(
                f"UntypedStorage: a slice has the step 1, not {index.step}: make a tensor of it"
            )
        return self._of_bytes(elements(self._storage).view(np.uint8)[index])


class TypedStorage(ReadOnlyStorage):
    """The memory that tensors share as elements of a dtype; `Tensor.storage` returns it.

    >>> x = jaxgrad.arange(3)
    >>> x.storage().dtype, isinstance(x.storage(), jaxgrad.LongStorage)
    (torch.int64, True)
    """

    kind = "torch.storage.TypedStorage"

    def __init__(self, storage: Storage, dtype: dtypes.dtype | None = None):
        super().__init__(storage)
        self.dtype = storage.aval.dtype if dtype is None else dtype

    def untyped(self) -> UntypedStorage:
        """Return the same memory as bytes.

        >>> jaxgrad.zeros(2).storage().untyped().nbytes()
        8
        """
        return UntypedStorage(self._storage)


class StorageType(type):
    """The class of the types of storages by dtype, which their storages are not made of: all are of
    the class `TypedStorage`.
    """

    def __call__(cls, *arguments, **options):
        return TypedStorage(*arguments, **options)

    def __instancecheck__(cls, instance):
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    def from_buffer(cls, buffer, byte_order: str | None = None, count: int = -1, offset: int = 0):
        """Return a storage with a copy of the numbers of a buffer; see
        `UntypedStorage.from_buffer`.

        >>> jaxgrad.ByteStorage.from_buffer(b"ab").tolist()
        [97, 98]
        """
        numbers = _numbers(buffer, byte_order, count, offset, cls.dtype)
        return TypedStorage._of_numbers(numbers, cls.dtype)

    _from_buffer = from_buffer


def _type_of(dtype) -> StorageType:
    name, ours = f"{dtype.scalar_type}Storage", str(dtype).removeprefix("torch.")
    text = (
        f"The type of storages of {dtype}, which `Tensor.storage` makes.\n\n"
        f">>> x = jaxgrad.zeros(2, dtype=jaxgrad.{ours})\n"
        f">>> isinstance(x.storage(), jaxgrad.{name})\nTrue\n"
    )
    return StorageType(name, (), {"dtype": dtype, "__module__": "torch", "__doc__": text})


TYPES = {
    f"{dtype.scalar_type}Storage": _type_of(dtype)
    for dtype in (
        *(dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.uint8),
        *(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.bool),
        *(dtypes.complex64, dtypes.complex128),
    )
}
globals().update(TYPES)


def is_storage(obj) -> bool:
    """Return whether `obj` is a storage.

    >>> jaxgrad.is_storage(jaxgrad.zeros(1).storage()), jaxgrad.is_storage(jaxgrad.zeros(1))
    (True, False)
    """
    return isinstance(obj, ReadOnlyStorage)


__getattr__ = missing_in(__name__)
