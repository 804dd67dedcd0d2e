"""Archives of PyTorch's files: zip files whose entries are not compressed.

The format is that of PKWARE's APPNOTE 6.3.10, sections 4.3 and 4.5.3. PyTorch pads the header of an
entry so that its bytes begin at a multiple of 64.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Callable
from typing import NamedTuple

from ._refused import shown
from ._source import ALIGNMENT, Source

LOCAL = struct.Struct("<4s5H3L2H")
CENTRAL = struct.Struct("<4s6H3L5H2L")
END = struct.Struct("<4s4H2LH")
END64_LOCATOR = struct.Struct("<4sLQL")
END64 = struct.Struct("<4sQ2H2L4Q")

LONGEST_COMMENT = 0xFFFF
# in place of a number that needs 64 bits, which is in the entry's field of this kind
ELSEWHERE, ZIP64 = 0xFFFFFFFF, 1


class Record(NamedTuple):
    """The bytes of an entry of an archive."""

    offset: int
    size: int


# ---- reading


def records(source: Source) -> dict[str, Record]:
    """The entries of an archive by name. Raises RefusedFile where its directory does not describe
    disjoint, uncompressed entries.
    """
    count, size, offset = _directory_place(source)
    if count * CENTRAL.size > size:
        raise _damaged(source, f"a directory of {size} bytes cannot have {count} entries")
    directory = source.read(offset, size, "the directory of the archive")
    entries: dict[str, Record] = {}
    spans = []
    for name, start, length in _entries(source, directory, count):
        if name in entries:
            raise _damaged(source, f"two entries are called {shown(name)!r}")
        entries[name] = _located(source, name, start, length)
        spans.append((start, entries[name].offset + length, name))
    spans.sort()
    for (_, end, name), (start, _, _) in itertools.pairwise([*spans, (offset, offset, "")]):
        if end > start:
            raise _damaged(source, f"the bytes of {shown(name)!r} overlap with those after them")
    return entries


def _damaged(source, why):
    return source.refuse(f"the archive is damaged (failed finding central directory): {why}")


def _directory_place(source):
    """The number of entries, the size and the offset of the directory."""
    tail = source.read(*_tail(source), "the end of the archive")
    place = tail.rfind(b"PK\5\6")
    while place >= 0 and len(tail) - place < END.size:
        place = tail.rfind(b"PK\5\6", 0, place)
    if place < 0:
        raise _damaged(source, "its end is missing, so it was not written or copied to its end")
    _, disk, other, here, count, size, offset, comment = END.unpack_from(tail, place)
    if place + END.size + comment != len(tail):
        raise _damaged(source, "there are other bytes behind its end")
    end = source.size - len(tail) + place
    if ELSEWHERE in (size, offset) or 0xFFFF in (count, here):
        end, disk, other, here, count, size, offset = _directory_place_64(source, end)
    if disk or other or here != count or offset + size > end:
        raise _damaged(source, f"its directory is said to be at byte {offset}, of {size} bytes")
    return count, size, offset


def _tail(source):
    size = min(source.size, END.size + LONGEST_COMMENT)
    return source.size - size, size


def _directory_place_64(source, end):
    """The same from the record for archives of 4 GB and more, which a locator leads to."""
    located = source.read(end - END64_LOCATOR.size, END64_LOCATOR.size, "a locator")
    mark, _, place, disks = END64_LOCATOR.unpack(located)
    if mark != b"PK\6\7" or disks > 1 or place + END64.size > end:
        raise _damaged(source, "the record of its large directory is missing")
    mark, _, _, _, disk, other, here, count, size, offset = END64.unpack(
        source.read(place, END64.size, "the record of the directory")
    )
    if mark != b"PK\6\6":
        raise _damaged(source, "the record of its large directory is missing")
    return place, disk, other, here, count, size, offset


def _entries(source, directory, count):
    """Name, offset of the local header, and size of each entry."""
    place = 0
    for _ in range(count):
        if place + CENTRAL.size > len(directory):
            raise _damaged(source, "its directory ends too early")
        mark, _, _, flags, method, _, _, _, packed, size, *lengths, _, _, _, start = (
            CENTRAL.unpack_from(directory, place)
        )
        ends = [place + CENTRAL.size + sum(lengths[: i + 1]) for i in range(3)]
        if mark != b"PK\1\2" or ends[-1] > len(directory):
            raise _damaged(source, "its directory holds something that is no entry")
        name = _name(source, directory[place + CENTRAL.size : ends[0]])
        wide = _wide_numbers(directory[ends[0] : ends[1]])
        size, packed, start = (
            next(wide, -1) if number == ELSEWHERE else number for number in (size, packed, start)
        )
        if flags & 1 or method or packed != size:
            kind = "encrypted" if flags & 1 else "compressed"
            raise source.refuse(
                f"the entry {shown(name)!r} of the archive is {kind}; PyTorch writes none, so "
                "make the archive again without that"
            )
        yield name, start, size
        place = ends[-1]


def _name(source, name):
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise _damaged(source, "a name is not UTF-8") from None
    if not text or text.startswith("/") or "\\" in text or ".." in text.split("/"):
        raise _damaged(source, f"an entry is called {shown(text)!r}")
    return text


def _wide_numbers(extra):
    """The numbers of 64 bits in the further fields of an entry."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<2H", extra)
        if kind == ZIP64:
            body = extra[4 : 4 + size]
            yield from (number for (number,) in struct.iter_unpack("<Q", body[: size // 8 * 8]))
            return
        extra = extra[4 + size :]


def _located(source, name, start, size) -> Record:
    """Where the bytes of an entry are, behind its local header."""
    header = source.read(start, LOCAL.size, f"the header of {shown(name)!r}")
    mark, *_, name_size, extra_size = LOCAL.unpack(header)
    if mark != b"PK\3\4" or name_size != len(name.encode()):
        raise _damaged(source, f"there is no header of {shown(name)!r} at byte {start}")
    record = Record(start + LOCAL.size + name_size + extra_size, size)
    source.check(*record, f"the entry {shown(name)!r}")
    return record


# ---- writing

# the date and time of every entry: 1 January 1980, so that equal objects make equal files
DATE = 0x21


class ArchiveWriter:
    """Writes an archive from its start to its end, without going back.

    write: takes bytes. has_checksums: whether entries have the checksum CRC-32, without which only
    PyTorch and jaxgrad read them. alignment: their bytes begin at a multiple of it. Call `close` at
    the end.
    """

    def __init__(self, write: Callable, has_checksums: bool = True, alignment: int = ALIGNMENT):
        self.write_bytes, self.position, self.has_checksums = write, 0, has_checksums
        self.alignment = alignment
        self.directory: list[bytes] = []

    def _write(self, data):
        self.write_bytes(data)
        self.position += len(data)

    def add(self, name: str, data):
        """Write an entry. data: bytes, or what shows them as a memoryview of bytes."""
        start, size, encoded = self.position, len(data), name.encode()
        checksum = zlib.crc32(data) if self.has_checksums else 0
        sums = checksum, min(size, ELSEWHERE), min(size, ELSEWHERE)
        wide = _field(ZIP64, struct.pack("<QQ", size, size)) if size >= ELSEWHERE else b""
        begin = start + LOCAL.size + len(encoded) + len(wide) + 4
        extra = wide + _field(0x4246, bytes(-begin % self.alignment))  # "FB", as PyTorch calls it
        version = 45 if wide else 20
        # bit 11: the name is UTF-8
        kind = version, 0x800, 0, 0, DATE
        self._write(LOCAL.pack(b"PK\3\4", *kind, *sums, len(encoded), len(extra)))
        self._write(encoded + extra)
        self._write(data)
        numbers = [size, size] * (size >= ELSEWHERE) + [start] * (start >= ELSEWHERE)
        wide = _field(ZIP64, struct.pack(f"<{len(numbers)}Q", *numbers)) if numbers else b""
        sizes = len(encoded), len(wide), 0, 0, 0, 0, min(start, ELSEWHERE)
        self.directory.append(CENTRAL.pack(b"PK\1\2", 45, *kind, *sums, *sizes) + encoded + wide)

    def close(self):
        """Write the directory."""
        start, count = self.position, len(self.directory)
        for entry in self.directory:
            self._write(entry)
        end, size = self.position, self.position - start
        if count >= 0xFFFF or max(start, size) >= ELSEWHERE:
            numbers = 0, 0, count, count, size, start
            self._write(END64.pack(b"PK\6\6", END64.size - 12, 45, 45, *numbers))
            self._write(END64_LOCATOR.pack(b"PK\6\7", 0, end, 1))
        counts = [min(count, 0xFFFF)] * 2
        numbers = min(size, ELSEWHERE), min(start, ELSEWHERE)
        self._write(END.pack(b"PK\5\6", 0, 0, *counts, *numbers, 0))


def _field(kind, body):
    return struct.pack("<2H", kind, len(body)) + body
