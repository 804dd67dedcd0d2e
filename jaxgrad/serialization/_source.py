"""The bytes of a file, which are read in parts.

Every size is compared with the size of the file before memory is taken for it.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import stat
from collections.abc import Iterator

import numpy as np

from ..tape import mode
from ._refused import RefusedFile, printable, shown

LONGEST_MESSAGE = 600

# JAX on CPUs goes on with memory at such an address, and copies any other
ALIGNMENT = 64

# From here on memory is mapped with all its pages at once, where the system can do so. NumPy would
# ask for huge pages, whose first use takes several times as long in virtual machines.
LARGE = 1 << 22
ALL_PAGES = (
    {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE}
    if hasattr(mmap, "MAP_POPULATE")
    else {}
)


class NoFile(AttributeError, TypeError):
    """An object is no file."""


class TextFile(TypeError, AssertionError):
    """A file gives text in place of bytes."""


class Source:
    """A file from its current position on. name: for messages; size: its bytes.

    mapped: the file as an `mmap`, whose memory arrays then share; None to read it.
    """

    def __init__(self, file, name: str, mapped=None):
        self.file, self.name, self.mapped = file, shown(name, 200), mapped
        self.start = file.tell()
        file.seek(0, os.SEEK_END)
        self.size = file.tell() - self.start

    def refuse(self, why: str, kind: type = RefusedFile) -> RefusedFile:
        """The error that says why the file is not read."""
        return kind(f"{self.name}: {printable(why[:LONGEST_MESSAGE])}")

    def check(self, offset: int, count: int, what: str):
        """Raise RefusedFile if the file ends before these bytes."""
        if offset < 0 or count < 0 or offset + count > self.size:
            raise self.refuse(
                f"{what} should be {count} bytes at byte {offset}, and the file has {self.size} "
                "bytes: it is damaged or was not written to its end"
            )

    def read(self, offset: int, count: int, what: str) -> bytes:
        """Some bytes. what: their name in messages."""
        self.check(offset, count, what)
        self.file.seek(self.start + offset)
        data = self.file.read(count)
        while len(data) < count:
            more = self.file.read(count - len(data))
            if not more:
                raise self.refuse(f"the file became shorter while {what} was read")
            data += more
        return data

    def array(self, offset: int, count: int, what: str) -> np.ndarray:
        """Some bytes as an array of uint8 that shares memory with nothing but a mapped file."""
        self.check(offset, count, what)
        if self.mapped is not None:
            window = np.frombuffer(self.mapped, np.uint8, count, self.start + offset)
            if window.ctypes.data % ALIGNMENT == 0:
                return window
            buffer = aligned(count)
            buffer[:] = window
            return buffer
        buffer = aligned(count)
        self.file.seek(self.start + offset)
        rest = memoryview(buffer)
        while rest:
            done = self._read_into(rest)
            if not done:
                raise self.refuse(f"the file became shorter while {what} was read")
            rest = rest[done:]
        return buffer

    def _read_into(self, target) -> int:
        if hasattr(self.file, "readinto"):
            return self.file.readinto(target)
        data = self.file.read(len(target))
        target[: len(data)] = data
        return len(data)

    def end_at(self, offset: int):
        """Put the file to the position behind what has been read."""
        self.file.seek(self.start + offset)


def aligned(count: int) -> np.ndarray:
    """New bytes at an address that suits JAX."""
    if count >= LARGE:
        return np.frombuffer(mmap.mmap(-1, count, **ALL_PAGES), np.uint8)
    memory = np.empty(count + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + count]


@contextlib.contextmanager
def opened(f, use_mmap: bool) -> Iterator[Source]:
    """The source of a path or of a binary file. Raises TypeError for anything else."""
    if isinstance(f, str | os.PathLike):
        mode.refuse_to_repeat("it loads a file")
        with open(f, "rb") as file:
            yield _of_path(file, os.fspath(f), use_mmap)
        return
    if use_mmap:
        raise ValueError(
            "load(): f must be a file path in order to use the mmap argument, and not an open file"
        )
    if not hasattr(f, "read"):
        raise NoFile(
            f"load(): f must be a path or a binary file: {type(f).__name__!r} object has no "
            "attribute 'read'"
        )
    yield Source(_seekable(f), getattr(f, "name", "the file"))


def _of_path(file, name, use_mmap) -> Source:
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return Source(_seekable(file), name)
    is_mapped = use_mmap and os.fstat(file.fileno()).st_size
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if is_mapped else None
    return Source(file, name, mapped)


def _seekable(file):
    if isinstance(file.read(0), str):
        raise TextFile('load(): f is a text file: open it in the mode "rb"')
    can_seek = hasattr(file, "seek") and hasattr(file, "tell")
    if can_seek and getattr(file, "seekable", lambda: True)():
        return file
    return io.BytesIO(file.read())
