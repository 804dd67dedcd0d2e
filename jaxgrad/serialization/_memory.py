"""The tensors of a file: the memory that each of them shows, and its device.

Tensors of one storage share memory after they are loaded. If one of them shows all of the storage,
the others become its aliases; otherwise they are aliases of a hidden tensor that does. Arrays go to
the device as they lie in memory, so that no program is compiled for them.
"""

from __future__ import annotations

import math
import weakref
from typing import NamedTuple

import numpy as np

from .. import ops
from ..cached import cached_property
from ..core import dtypes
from ..core import strides as layouts
from ..core.aval import meta_array, with_strides
from ..core.device import as_device, device, has, is_meta
from ..core.primitive import ARRAY
from ..frontend.array_creation import finish, from_host
from ..frontend.storages import TypedStorage
from ..storage.alias import begin, place_detached
from ..tape.tensor import Tensor, abstract_value, held, hold
from . import _packages
from ._refused import shown

MOST_DIMENSIONS = 64

# The elements of all tensors may take this, and so many times the size of the file: tensors whose
# elements overlap, as those of `expand`, have more elements than the file.
ALLOWANCE, FOR_EACH_BYTE = 64 << 20, 16


class Place(NamedTuple):
    """The part of a storage that a tensor shows. is_conj, is_neg: whether it is the conjugate, or
    the negative.
    """

    dtype: dtypes.dtype
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    is_conj: bool = False
    is_neg: bool = False

    @property
    def is_contiguous(self) -> bool:
        return layouts.is_contiguous(self.size, self.stride)


def count_of(machine, size, itemsize: int) -> int:
    """The number of elements of a shape. Raises RefusedFile for one that cannot be."""
    if len(size) > MOST_DIMENSIONS or min(size, default=0) < 0:
        raise machine.refuse(f"there is a tensor of size {shown(size)}")
    if math.prod(max(extent, 1) for extent in size) * itemsize >= 2**63:
        raise machine.refuse(f"a tensor of size {shown(size)} has 2**63 bytes or more")
    return math.prod(size)


class Loading:
    """One call of `load`: the storages of its file by their keys.

    map_location: as for `load`.
    """

    def __init__(self, source, map_location):
        self.source, self.map_location = source, map_location
        # whether the bytes of numbers are in the order big-endian
        self.is_swapped = False
        self.storages: dict = {}
        self.spent = 0

    def spend(self, machine, size: int):
        """Count the bytes of a tensor. Raises RefusedFile for many more than the file has."""
        self.spent += size
        if self.spent > ALLOWANCE + FOR_EACH_BYTE * self.source.size:
            raise machine.refuse(
                f"its tensors would take {self.spent} bytes, and the file has "
                f"{self.source.size}: their elements overlap. Save copies of smaller parts"
            )

    def storage(self, key, dtype, count: int, location: str, read) -> FileStorage:
        """The storage of this key, which is made at the first request."""
        storage = self.storages.get(key)
        if storage is None:
            place = self.device_for(location, count * dtype.itemsize)
            storage = self.storages[key] = FileStorage(self, dtype, count, place, read)
        return storage

    def device_for(self, location: str, size: int) -> device | None:
        """The device of a storage, None for the default one."""
        target = self.map_location
        if callable(target):
            chosen = target(Candidate("cpu", size), location)
            if chosen is not None and not hasattr(chosen, "device"):
                raise TypeError(
                    "load(): map_location returns the storage that it gets, its cpu() or cuda(), "
                    f"or None, not {type(chosen).__name__}"
                )
            return self._restored(location, size) if chosen is None else as_device(chosen.device)
        if isinstance(target, dict):
            target = target.get(location)
            if isinstance(target, str) and target != "cpu":
                return self._restored(target, size)
        if target is None:
            return self._restored(location, size)
        return self._present(as_device(target))

    def _restored(self, location: str, size: int) -> device | None:
        """The device that a file names. A file made on a CPU loads on the default device."""
        if _packages.is_changed():
            chosen = _packages.restored(Candidate("cpu", size), location)
            if chosen is not None:
                return as_device(chosen.device)
        if location == "cpu":
            return None
        try:
            device = as_device(location)
        except RuntimeError:
            raise self.source.refuse(
                "don't know how to restore data location of torch.storage.UntypedStorage (tagged "
                f"with {shown(location)}): give map_location, as in torch.load(f, "
                "map_location='cpu')"
            ) from None
        return self._present(device)

    def _present(self, device: device) -> device:
        """The device, which JAX must have."""
        if not (is_meta(device) or has(device.type)):
            kind = "a CUDA device" if device.type == "cuda" else f"the device {device}"
            raise self.source.refuse(
                f"Attempting to deserialize object on {kind}, and JAX has found none. If you are "
                "running on a CPU-only machine, please use torch.load with "
                "map_location=torch.device('cpu') to map your storages to the CPU"
            )
        return device

    def finish(self):
        """Let tensors of one storage share its memory."""
        for storage in self.storages.values():
            storage.finish()


class Candidate:
    """The argument of a function as `map_location`: a storage that is on the CPU, or was moved."""

    def __init__(self, where, size: int):
        self.device, self.size = as_device(where), size

    def nbytes(self) -> int:
        return self.size

    def cpu(self) -> Candidate:
        return Candidate("cpu", self.size)

    def cuda(self, device=None) -> Candidate:
        return Candidate("cuda" if device is None else as_device(device), self.size)


class FileStorage(TypedStorage):
    """The memory of tensors in a file. Its bytes are read when they are first needed.

    dtype: of its `count` elements; where: a device, None for the default one; read: gives the
    bytes, in the order little-endian.
    """

    def __init__(self, loading: Loading, dtype, count: int, where, read):
        self.loading, self.dtype, self.count, self.where = loading, dtype, count, where
        self.read, self.is_meta = read, where is not None and is_meta(where)
        self.users: list[tuple[weakref.ref, Place]] = []
        self.arrays: dict = {}
        self.parts: list[TypedStorage] = []
        # how often the file names it, and how often it is the storage of a tensor
        self.named = self.used = 0

    def place(self, machine, dtype, offset, size, stride, conj=False, neg=False) -> Place:
        """The place of a tensor. Raises RefusedFile if it would reach beyond the storage."""
        count_of(machine, size, dtype.itemsize)
        available = self.count * self.dtype.itemsize // dtype.itemsize
        if len(size) != len(stride) or min(stride, default=0) < 0:
            raise machine.refuse(f"a tensor of size {shown(size)} has the strides {shown(stride)}")
        needed = offset + layouts.reach(size, stride)
        # PyTorch lets a tensor without elements begin anywhere
        if offset < 0 or (needed > available and 0 not in size):
            raise machine.refuse(
                f"a tensor of size {shown(size)} with strides {shown(stride)} and "
                f"offset {offset} is out of bounds for a storage of {available} elements"
            )
        if (conj and not dtype.is_complex) or (neg and not dtype.is_signed):
            raise machine.refuse(f"a tensor of {dtype} is marked as conjugate or negative")
        if self.users and self.shown_dtype is not dtype:
            raise machine.refuse(
                f"a storage is shown by tensors of {self.shown_dtype} and of {dtype}, which "
                "jaxgrad does not let share memory"
            )
        return Place(dtype, offset, size, stride, conj, neg)

    def tensor(self, machine, place: Place) -> Tensor:
        """A tensor at a place."""
        self.used += 1
        self.users.append((lambda: None, place))
        array = self.arrays.get(place)
        if array is None:
            self.loading.spend(machine, math.prod(place.size) * place.dtype.itemsize)
            array = self.arrays[place] = (
                meta_array(place.size, place.dtype)
                if self.is_meta
                else from_host(self.values(place), self.where)
            )
        tensor = finish(array)
        hold(tensor, held(tensor), with_strides(abstract_value(tensor), place.stride))
        self.users[-1] = weakref.ref(tensor), place
        return tensor

    def replace(self, tensor: Tensor, target: Tensor):
        """Let another tensor stand for one."""
        self.users[:] = [
            (weakref.ref(target), place) if ref() is tensor else (ref, place)
            for ref, place in self.users
        ]

    @cached_property
    def flat(self) -> np.ndarray:
        """The elements, in the dtype of the tensors that show them."""
        dtype, data = self.shown_dtype, self.read()
        if dtype is dtypes.bool and data.max(initial=0) > 1:
            return data != 0  # other bytes than 0 and 1 are no values of XLA's
        if self.loading.is_swapped:
            # of a complex number each part by itself
            part = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
            data = data.view(f"u{part}").byteswap().view(np.uint8)
        return data[: data.size // dtype.itemsize * dtype.itemsize].view(dtype.numpy)

    @property
    def shown_dtype(self) -> dtypes.dtype:
        return self.users[0][1].dtype if self.users else self.dtype

    def values(self, place: Place) -> np.ndarray:
        """The elements at a place."""
        # once more, since NumPy's strides reach any memory
        is_right = self.flat.dtype == place.dtype.numpy
        needed = place.offset + layouts.reach(place.size, place.stride)
        if not is_right or (needed > self.flat.size and 0 not in place.size):
            raise self.loading.source.refuse("a tensor is out of bounds of its storage")
        flat = self.flat[place.offset :]
        if place.is_contiguous:
            values = flat[: math.prod(place.size)].reshape(place.size)
        else:
            size = place.dtype.itemsize
            # as bytes, since NumPy strides no types of other packages
            row, steps = flat.view(f"V{size}"), [step * size for step in place.stride]
            values = np.lib.stride_tricks.as_strided(row, place.size, steps, writeable=False)
            values = values.view(place.dtype.numpy)
        values = np.conj(values) if place.is_conj else values
        return np.negative(values) if place.is_neg else values

    def _owner(self) -> Tensor:
        """A tensor for all of the memory, contiguous: one that the file has, or a new one."""
        for reference, place in self.users:
            tensor = reference()
            whole = math.prod(place.size) == self.flat.size
            if tensor is not None and whole and place.is_contiguous and not any(place[4:]):
                return tensor
        if self.is_meta:
            return finish(meta_array(self.flat.shape, self.shown_dtype))
        return finish(from_host(self.flat, self.where))

    def finish(self):
        """Let the tensors that exist share memory, and forget the bytes. A storage that the file
        holds by itself becomes an ordinary one.
        """
        users = [(ref(), place) for ref, place in self.users if ref() is not None]
        is_shared = len(users) > 1 or self.named > self.used
        if is_shared or self._is_shown_in_part(users) or any(place.is_conj for _, place in users):
            owner = self._owner()
            for tensor, place in users:
                if tensor is not owner and not place.is_neg:
                    place_detached(tensor, owner, steps_to(place, owner))
            self._storage = begin(owner).storage
            for part in self.parts:
                part._storage = self._storage
        self.arrays.clear()
        self.users.clear()
        self.__dict__.pop("flat", None)
        self.__class__ = TypedStorage

    def _is_shown_in_part(self, users) -> bool:
        """Whether tensors show a part of the memory. Of a mapped file only that is read."""
        sizes = [math.prod(place.size) for _, place in users]
        return self.loading.source.mapped is None and sizes != [] and max(sizes) < self.count

    def part(self, offset: int, count: int) -> TypedStorage:
        """A slice of the storage, as PyTorch 0.3 saved them; `finish` gives it the memory."""
        self.named += 1
        size = self.dtype.itemsize
        part = object.__new__(TypedStorage)
        part.dtype, part._part = self.dtype, range(offset * size, (offset + count) * size)
        self.parts.append(part)
        return part


def steps_to(place: Place, owner: Tensor) -> list:
    """The view calls that lead from a contiguous tensor for all of a memory to a place in it."""
    shown, steps = abstract_value(owner), []
    if place.size != tuple(shown.shape) or not place.is_contiguous:
        steps.append(_call("as_strided", (place.size, place.stride, place.offset), shown))
    if place.is_conj:
        steps.append(_call("conj", (), steps[-1].outputs[0] if steps else shown))
    return [(call, ()) for call in steps]


def _call(name, arguments, source):
    return getattr(ops, name).operator.overloads.primitives[0].call((ARRAY, *arguments), (source,))
