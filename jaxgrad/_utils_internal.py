"""Where PyTorch's tests look for files and write them, as torch._utils_internal."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .names.missing import missing_in


def get_file_path(*path_components: str) -> str:
    """A file of the package, by the parts of its path."""
    return str(Path(__file__).parent.joinpath(*path_components))


def get_writable_path(path: str) -> str:
    """The path, if its folder can be written to; otherwise a new folder for temporary files."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))


def resolve_library_path(path: str) -> str:
    """The path without links."""
    return os.path.realpath(path)


__getattr__ = missing_in(__name__)
