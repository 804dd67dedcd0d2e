"""Files of `torch.save`: archives, and the streams of PyTorch before 1.6.

An archive has the instructions in `data.pkl` and each storage in `data/KEY`. A stream has, one
after the other: a magic number, a version, facts about the machine, the instructions for the
object, those for the list of keys, and for each key the number of elements and the bytes of the
storage, in the order little-endian.
"""

from __future__ import annotations

import functools

from ..core import dtypes
from ..frontend.storages import TYPES, TypedStorage, UntypedStorage
from ..late import LateModule
from . import _options
from ._archive import Record, records
from ._encoder import MAGIC, VERSION
from ._instructions import Machine, Objects
from ._listing import names_in
from ._memory import Loading
from ._objects import Rehearsal, TorchObjects
from ._refused import UnknownByteOrder, shown
from ._source import Source

# imported late: few programs ask for it, and it imports all that a file may name
unpickler = LateModule("jaxgrad.serialization._unpickler")


# the newest version of archives that PyTorch 2.13 reads
NEWEST_ARCHIVE = 10

STORAGE_TYPES = {id(kind): kind.dtype for kind in TYPES.values()}
STORAGE_TYPES |= dict.fromkeys((id(UntypedStorage), id(TypedStorage)), dtypes.uint8)


def _description(machine, identity, length: int):
    """Type, key, location, size and slice of the storage that a persistent id describes."""
    if type(identity) is not tuple or len(identity) != length:
        raise machine.refuse("a persistent id describes no storage")
    word, kind, key, location, count, *rest = map(_as_text, identity)
    if word != "storage":
        raise machine.refuse("a persistent id describes no storage")
    dtype = STORAGE_TYPES.get(id(kind))
    if dtype is None or type(key) is not str or type(location) is not str:
        raise machine.refuse("a persistent id describes no storage")
    slice_of = rest[0] if rest else None
    if type(count) is not int or not 0 <= count < 2**63 or not _is_slice(slice_of, count):
        raise machine.refuse("a persistent id describes a storage that cannot be")
    return dtype, key, location, count, slice_of


def _as_text(part):
    """A part of a description: text, where strings of Python 2 are left as bytes."""
    return part.decode("latin1") if type(part) is bytes else part


def _is_slice(part, count: int) -> bool:
    """Whether a value describes a slice of a storage of so many elements, or is None."""
    if part is None:
        return True
    is_triple = type(part) is tuple and [*map(type, map(_as_text, part))] == [str, int, int]
    return is_triple and min(part[1:]) >= 0 and sum(part[1:]) <= count


class _Files:
    """The common part of both formats. source: the file; map_location: as for `load`."""

    def __init__(self, source: Source, map_location, encoding: str):
        self.source, self.encoding = source, encoding
        self.loading = Loading(source, map_location)
        self.objects = TorchObjects(self.loading, self.find_storage)

    # the number of parts of a persistent id
    parts: int

    def find_storage(self, machine, identity):
        dtype, key, location, count, part = _description(machine, identity, self.parts)
        record = self.record(machine, key)
        if record.size != count * dtype.itemsize:
            raise machine.refuse(
                f"the storage {shown(key)} should have {count} elements of {dtype}, and has "
                f"{record.size} bytes"
            )
        read = functools.partial(self.source.array, *record, f"the storage {key}")
        storage = self.loading.storage(key, dtype, count, location, read)
        if storage.dtype is not dtype:
            raise machine.refuse(f"the storage {shown(key)} has two dtypes")
        if part is not None:
            return storage.part(*part[1:])
        storage.named += 1
        return storage

    def run(self, record: Record, what: str, objects: Objects):
        """The object that instructions make, and where they end."""
        end = record.offset + record.size
        machine = Machine(self.source, record.offset, end, what, objects, self.encoding)
        return machine.run(), machine.end


class Archive(_Files):
    """An archive of PyTorch."""

    parts = 5

    def __init__(self, source: Source, map_location, encoding: str):
        super().__init__(source, map_location, encoding)
        self.records = records(source)
        self.root = self._find_root()
        for name in ("constants.pkl", "code/"):
            if any(entry.startswith(self.root + name) for entry in self.records):
                raise source.refuse(
                    "Cannot use ``weights_only=True`` with TorchScript archives passed to "
                    "``torch.load``: the file holds a program. Where PyTorch is installed, save "
                    "the state_dict() of the module that torch.jit.load returns"
                )
        self._check_version()
        self.loading.is_swapped = self._byte_order() == b"big"

    def _check_version(self):
        record = self.records.get(f"{self.root}version")
        if record is None:
            return
        text = self.source.read(record.offset, min(record.size, 16), "the version").strip()
        if not text.isdigit():
            raise self.source.refuse(f"Couldn't parse the version {shown(text)}")
        if int(text) > NEWEST_ARCHIVE:
            raise self.source.refuse(
                f"Attempted to read a PyTorch file with version {int(text)}, but the maximum "
                f"supported version for reading is {NEWEST_ARCHIVE}: a newer PyTorch wrote it"
            )

    def _find_root(self) -> str:
        """The prefix of all names."""
        names = [name for name in self.records if name.rpartition("/")[2] == "data.pkl"]
        if "program.jax" in self.records:
            raise self.source.refuse(
                "it is a file of torch.export.save or torch.jit.save: read it with "
                "torch.export.load or torch.jit.load"
            )
        if len(names) != 1:
            raise self.source.refuse(
                f"the archive has {len(names)} entries called data.pkl, and torch.save writes one"
            )
        return names[0].removesuffix("data.pkl")

    def _byte_order(self) -> bytes:
        record = self.records.get(f"{self.root}byteorder")
        if record is None:
            is_big = _options.load.endianness is _options.LoadEndianness.BIG
            return b"big" if is_big else b"little"
        order = self.source.read(record.offset, min(record.size, 16), "the byte order")
        if order not in (b"little", b"big"):
            raise self.source.refuse(
                f"Unknown endianness type: the byte order is {shown(order)}", UnknownByteOrder
            )
        return order

    def record(self, machine, key):
        record = self.records.get(f"{self.root}data/{key}")
        if record is None:
            raise machine.refuse(f"there is no storage {shown(key)} in the archive")
        return record

    def load(self):
        value, _ = self.run(self.instructions, "data.pkl", self.objects)
        return self.finished(value)

    def load_by_names(self, pickle_module):
        """The object, made by what the file names."""
        value = unpickler.unpickle(self, self.instructions, "data.pkl", pickle_module)
        return self.finished(value)

    def names(self) -> list[str]:
        """The names of functions and classes in the file."""
        return names_in(self, self.instructions, "data.pkl")

    @property
    def instructions(self) -> Record:
        return self.records[f"{self.root}data.pkl"]

    def finished(self, value):
        self.loading.finish()
        self.source.end_at(self.source.size)
        return value


class Stream(_Files):
    """A file of PyTorch before 1.6, or of torch.save(_use_new_zipfile_serialization=False)."""

    parts = 6

    def __init__(self, source: Source, map_location, encoding: str):
        super().__init__(source, map_location, encoding)
        number, place = self.part(0, "the magic number")
        if number != MAGIC:
            raise source.refuse(
                f"Invalid magic number; corrupt file? It begins with {shown(number)}, and "
                "not as torch.save does"
            )
        version, place = self.part(place, "the version")
        if version != VERSION:
            raise source.refuse(f"Invalid protocol version: {shown(version)}")
        _, self.begin = self.part(place, "the facts about the machine")
        self.places: dict[str, Record] = {}

    def rest(self, place: int) -> Record:
        return Record(place, self.source.size - place)

    def part(self, place: int, what: str):
        """The data that instructions make, and where they end."""
        return self.run(self.rest(place), what, Objects())

    def load(self):
        place = self.locate(self._rehearse)
        value, _ = self.run(self.rest(self.begin), "the object", self.objects)
        return self.finished(value, place)

    def load_by_names(self, pickle_module):
        """The object, made by what the file names."""
        record = self.rest(self.begin)
        place = self.locate(lambda note: unpickler.rehearse(self, record, "the object", note))
        return self.finished(unpickler.unpickle(self, record, "the object", pickle_module), place)

    def names(self) -> list[str]:
        """The names of functions and classes in the file."""
        return names_in(self, self.rest(self.begin), "the object")

    def finished(self, value, place):
        self.loading.finish()
        self.source.end_at(place)
        return value

    def _rehearse(self, note) -> int:
        _, place = self.run(self.rest(self.begin), "the object", Rehearsal(note))
        return place

    def locate(self, rehearse) -> int:
        """Find the storages, whose sizes and whose order are in two places. Returns their end.

        rehearse: tells a function of the descriptions of storages, and gives their end.
        """
        dtypes_of = {}

        def note(machine, identity):
            dtype, key, *_ = _description(machine, identity, self.parts)
            dtypes_of[key] = dtype

        place = rehearse(note)
        keys, place = self.part(place, "the list of storages")
        keys = [*map(_as_text, keys)] if type(keys) is list else keys
        is_list = type(keys) is list and {*map(type, keys)} <= {str}
        if not is_list or sorted(keys) != sorted(dtypes_of):
            raise self.source.refuse("its list of storages names others than the object does")
        for key in keys:
            what = f"the storage {shown(key)}"
            count = int.from_bytes(self.source.read(place, 8, what), "little")
            self.places[key] = Record(place + 8, count * dtypes_of[key].itemsize)
            self.source.check(*self.places[key], what)
            place = sum(self.places[key])
        return place

    def record(self, machine, key):
        return self.places[key]
