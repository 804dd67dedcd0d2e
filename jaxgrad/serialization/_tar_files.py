"""Files of PyTorch before 0.1.10: tar archives. `load(weights_only=False)` reads them.

The entry `storages` has a number, for each storage its key, location and type, the number of its
elements and their bytes, and a list of slices of storages. `tensors` has a number, and for each
tensor its key, storage and type, then its dimensions, sizes, strides and offset. `pickle` has the
object, whose persistent ids are keys.
"""

from __future__ import annotations

import io
import struct
import tarfile

from ..frontend.storages import TypedStorage
from ..late import LateModule
from ._archive import Record
from ._instructions import Objects
from ._memory import Loading
from ._source import Source

storage_tensors = LateModule("jaxgrad.frontend.storage_tensors")
unpickler = LateModule("jaxgrad.serialization._unpickler")


class _Kept(Objects):
    """The objects under their keys."""

    def __init__(self):
        self.by_key = {}

    def persistent(self, machine, identity):
        # a module, with the code of its class
        return identity[0] if type(identity) is tuple else self.by_key[int(identity)]


class Tar:
    """A tar archive. source, map_location, encoding: as for files of other formats."""

    def __init__(self, source: Source, map_location, encoding: str):
        self.source, self.encoding = source, encoding
        self.loading, self.objects = Loading(source, map_location), _Kept()
        self.records: dict[str, Record] = {}

    def load(self):
        raise self.source.refuse("a tar archive is read by the names in it alone")

    def load_by_names(self, pickle_module):
        """The object, made by what the file names."""
        self.records = self._entries()
        self._read_storages(_Part(self, "storages", pickle_module))
        self._read_tensors(_Part(self, "tensors", pickle_module))
        value = _Part(self, "pickle", pickle_module).object()
        self.source.end_at(self.source.size)
        return value

    def _entries(self) -> dict[str, Record]:
        data = self.source.read(0, self.source.size, "the file")
        try:
            with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
                members = archive.getmembers()
        except tarfile.TarError as error:
            raise self.source.refuse(f"the tar archive is damaged: {error}") from None
        entries = {member.name: Record(member.offset_data, member.size) for member in members}
        for name in ("storages", "tensors", "pickle"):
            if name not in entries:
                raise self.source.refuse(f"the tar archive has no entry {name}")
        return entries

    def _read_storages(self, part: _Part):
        kept = self.objects.by_key
        for _ in range(part.object()):
            key, location, kind = part.object()
            (count,) = part.numbers("<q")
            data = part.bytes(count * kind.dtype.itemsize)
            storage = TypedStorage.from_buffer(data, "little", dtype=kind.dtype)
            device = self.loading.device_for(location, len(data))
            kept[key] = storage if device is None else storage.to(device=device)
        for key, root, offset, count in part.object():
            size, memory = kept[root].dtype.itemsize, kept[root]._storage
            span = range(offset * size, (offset + count) * size)
            kept[key] = TypedStorage._of(memory, kept[root].dtype, span)

    def _read_tensors(self, part: _Part):
        kept = self.objects.by_key
        for _ in range(part.object()):
            key, storage, _ = part.object()
            (dimensions,) = part.numbers("<i4x")
            places = part.numbers(f"<{2 * dimensions + 1}q")
            size, stride, offset = places[:dimensions], places[dimensions:-1], places[-1]
            row = storage_tensors.row_of(kept[storage])
            # of a slice the row begins further on
            kept[key] = row.as_strided(size, stride, row.storage_offset() + offset).detach()


class _Part:
    """An entry of a tar archive, which is read from its start on."""

    def __init__(self, files: Tar, name: str, pickle_module):
        self.files, self.name, self.pickle_module = files, name, pickle_module
        self.place, size = files.records[name]
        self.end = self.place + size

    def object(self):
        """The object that the next instructions make."""
        record = Record(self.place, self.end - self.place)
        value, self.place = unpickler.unpickled(self.files, record, self.name, self.pickle_module)
        return value

    def bytes(self, count: int) -> bytes:
        """The next bytes."""
        data = self.files.source.read(self.place, count, f"the entry {self.name}")
        self.place += count
        return data

    def numbers(self, form: str) -> tuple[int, ...]:
        """The next numbers, in a form of the module struct."""
        return struct.unpack(form, self.bytes(struct.calcsize(form)))
