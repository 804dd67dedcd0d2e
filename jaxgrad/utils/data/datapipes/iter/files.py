"""Pipes of files."""

from __future__ import annotations

import fnmatch
import os

from ..datapipe import IterDataPipe, functional_datapipe


class FileListerIterDataPipe(IterDataPipe):
    """The paths of the files in folders.

    root: a folder, a list of them or a pipe of them. masks: patterns; a name fits one of them.
    recursive: those in subfolders too. abspath: as absolute paths. non_deterministic: in any order,
    else sorted. length: what `len` gives, unknown if negative. Raises OSError for a folder that
    cannot be read.
    """

    def __init__(
        self,
        root=".",
        masks="",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ):
        self.root = [root] if isinstance(root, str | os.PathLike) else root
        self.masks = [masks] if isinstance(masks, str) else masks
        self.recursive, self.abspath, self.length = recursive, abspath, length
        self.non_deterministic = non_deterministic

    def __iter__(self):
        for root in self.root:
            root = os.path.abspath(root) if self.abspath else os.fspath(root)
            paths = self._paths(root)
            yield from paths if self.non_deterministic else sorted(paths)

    def _paths(self, root):
        for folder, folders, names in os.walk(root, onerror=_throw):
            if not self.recursive:
                folders.clear()
            patterns = [mask for mask in self.masks if mask]
            for name in names:
                if not patterns or any(fnmatch.fnmatch(name, mask) for mask in patterns):
                    yield os.path.join(folder, name)

    def __len__(self):
        return _known_length(self)


def _throw(error):
    raise error


def _known_length(pipe) -> int:
    if pipe.length < 0:
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return pipe.length


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe):
    """Pairs of a path and the open file: `pipe.open_files(mode="rb")`.

    mode, encoding: as for `open`; the encoding is of text alone, ValueError otherwise.
    """

    def __init__(self, datapipe, mode: str = "r", encoding: str | None = None, length: int = -1):
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.encoding, self.length = datapipe, encoding, length
        self.mode = mode if mode.startswith("r") else f"r{mode}"

    def __iter__(self):
        for path in self.datapipe:
            # the user closes it
            yield path, open(path, self.mode, encoding=self.encoding)  # noqa: SIM115

    def __len__(self):
        return _known_length(self)


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """Pairs of a path and a part of the file: `pipe.read_from_stream(chunk)`.

    datapipe: of pairs of a path and an open file, which is closed behind its end. chunk: how much
    is in a part, all of the file if it is None.
    """

    def __init__(self, datapipe, chunk: int | None = None):
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self):
        for path, file in self.datapipe:
            while content := file.read(self.chunk):
                yield path, content
            file.close()
