"""Where checkpoints are: folders of a file system."""

from __future__ import annotations

import os

from ...names.not_provided import names_of


class FileSystemWriter:
    """Names the folder of a checkpoint for `save`.

    path: the folder. overwrite: whether a checkpoint that is there may be replaced; if not, `save`
    raises RuntimeError. The other arguments are taken and not used: orbax chooses the files.

    >>> from jaxgrad.distributed.checkpoint import FileSystemWriter
    >>> FileSystemWriter("a/b").checkpoint_id
    'a/b'
    """

    def __init__(
        self,
        path: str | os.PathLike,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions=None,
        serialization_format=None,
    ):
        self.path, self.overwrite = path, overwrite

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        """The folder."""
        return self.path


class FileSystemReader:
    """Names the folder of a checkpoint for `load`.

    >>> from jaxgrad.distributed.checkpoint import FileSystemReader
    >>> FileSystemReader("a/b").checkpoint_id
    'a/b'
    """

    def __init__(self, path: str | os.PathLike, _extension_registry=None):
        self.path = path

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        """The folder."""
        return self.path


def folder_of(checkpoint_id, place, kind: type) -> str:
    """The absolute path of a checkpoint.

    checkpoint_id: the path, or None; place: a FileSystemWriter or FileSystemReader, or None; kind:
    which of them. Raises RuntimeError without either, NotImplementedError for another storage or a
    URL.
    """
    if place is not None and not isinstance(place, kind):
        raise NotImplementedError(
            f"{type(place).__name__}: checkpoints are in file systems: give checkpoint_id=, or "
            f"{kind.__name__}(path)"
        )
    if checkpoint_id is None and place is None:
        raise RuntimeError(
            "`checkpoint_id` must be specified if storage_reader/storage_writer is None."
        )
    path = os.fspath(place.path if checkpoint_id is None else checkpoint_id)
    if "://" in path:
        raise NotImplementedError(
            f"{path}: checkpoints are in file systems: mount it, and give a path"
        )
    return os.path.abspath(path)


__getattr__, __dir__ = names_of(__name__)
