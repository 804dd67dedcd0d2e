"""Archives of PyTorch's files as programs read and write them entry by entry."""

from __future__ import annotations

import contextlib
import os
from pathlib import PurePath

from ..core import dtypes
from ..frontend.storages import StorageBase
from . import _options
from ._archive import ArchiveWriter, records
from ._saved_memory import memory_of_storage
from ._source import opened


class _open_zipfile_writer:
    """Write an archive entry by entry, in a `with` block.

    name_or_buffer: a path, or a binary file.

    >>> import io
    >>> file = io.BytesIO()
    >>> with jaxgrad.serialization._open_zipfile_writer(file) as archive:
    ...     archive.write_record("notes", b"three", 5)
    >>> with jaxgrad.serialization._open_zipfile_reader(file) as archive:
    ...     archive.get_record("notes")
    b'three'
    """

    def __init__(self, name_or_buffer):
        self.names: list[str] = []
        self.files = contextlib.ExitStack()
        is_path = isinstance(name_or_buffer, str | os.PathLike)
        self.root = PurePath(name_or_buffer).stem if is_path else "archive"
        opened_file = open(name_or_buffer, "wb") if is_path else None  # noqa: SIM115
        self.file = self.files.enter_context(opened_file) if is_path else name_or_buffer
        self.archive = ArchiveWriter(
            self.file.write, _options.save.compute_crc32, _options.save.storage_alignment
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        with self.files:
            self.write_end_of_file()
            if hasattr(self.file, "flush"):
                self.file.flush()

    def write_record(self, name: str, data, size: int):
        """Write an entry: the first `size` of bytes, of text or of the memory of a storage."""
        if isinstance(data, StorageBase):
            data = memory_of_storage(data).elements(dtypes.uint8)
        data = data.encode() if isinstance(data, str) else data
        self.archive.add(f"{self.root}/{name}", memoryview(data).cast("B")[:size])
        self.names.append(name)

    def write_end_of_file(self):
        """Write the version and the directory; the block does so."""
        if "version" not in self.names:
            self.write_record("version", b"3\n", 2)
        self.archive.close()

    def archive_name(self) -> str:
        """The name before those of all entries."""
        return self.root

    def get_all_written_records(self) -> list[str]:
        """The names of the entries so far."""
        return [*self.names]


class _open_zipfile_reader:
    """Read an archive entry by entry.

    name_or_buffer: a path, or a binary file, which is read from its start. Raises RuntimeError for
    a file that is no archive.
    """

    def __init__(self, name_or_buffer):
        self.files = contextlib.ExitStack()
        if hasattr(name_or_buffer, "seek"):
            name_or_buffer.seek(0)
        self.source = self.files.enter_context(opened(name_or_buffer, False))
        try:
            entries = records(self.source)
        except BaseException:
            self.files.close()
            raise
        self.root = next(iter(entries), "").partition("/")[0]
        self.records = {name.removeprefix(f"{self.root}/"): entries[name] for name in entries}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.files.close()

    def has_record(self, name: str) -> bool:
        """Whether there is an entry."""
        return name in self.records

    def get_record(self, name: str) -> bytes:
        """The bytes of an entry. Raises RuntimeError where there is none."""
        return self.source.read(*self._record(name), f"the entry {name}")

    def get_record_offset(self, name: str) -> int:
        """Where in the file the bytes of an entry begin."""
        return self._record(name).offset

    def get_record_size(self, name: str) -> int:
        """How many bytes an entry has."""
        return self._record(name).size

    def get_all_records(self) -> list[str]:
        """The names of all entries."""
        return [*self.records]

    def archive_name(self) -> str:
        """The name before those of all entries."""
        return self.root

    def _record(self, name):
        if name not in self.records:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {name}: file not found. The archive has "
                f"{', '.join(sorted(self.records))}"
            )
        return self.records[name]
