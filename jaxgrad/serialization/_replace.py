"""Replaces a file as a whole: after any interrupt either the old file or the new one is there."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat


@contextlib.contextmanager
def replacing(path: str):
    """A block that writes a file. Its path leads to the old file until the block has ended well.

    The new file is beside it, under another name, until all of it is on the disk. It gets the mode
    of the old one. What is no file, such as a pipe, is written to as it is.
    """
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "wb") as file:
            yield file
        return
    begun = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        with open(begun, "xb") as file:
            if os.path.exists(path):
                shutil.copymode(path, begun)  # before there is anything to read
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(begun, path)
    except BaseException:
        if os.path.exists(begun):
            os.remove(begun)
        raise
    _sync_folder(os.path.dirname(path) or ".")


def _sync_folder(path):
    """Write the new name to the disk, where folders are files."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
