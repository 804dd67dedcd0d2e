"""Values in the files of a directory, for many processes at a time.

A rename makes each file appear as a whole, and a checksum in it shows damage. Only the user may
write to the directory. Files that have not been read for the longest time are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import warnings
from pathlib import Path

VARIABLE = "JAXGRAD_CACHE"

# The bytes of all files, and into how many shares they are divided: a process looks at the others'
# files when it has written one share, and leaves one share free.
LIMIT, SHARES = 10**9, 8

# the first bytes of a file; other contents have another number
MAGIC = b"jaxgrad cache 1\n"

SUFFIX, UNFINISHED = ".cached", ".unfinished"


class FileCache:
    """Bytes by keys, which are names of files. After any failure a value counts as missing."""

    def __init__(self, directory: Path, limit: int = LIMIT):
        self.directory, self.limit = directory, limit
        self.written = limit  # since the last look at all files
        self.has_warned = False

    def path(self, key: str) -> Path:
        return self.directory / (key + SUFFIX)

    def get(self, key: str) -> bytes | None:
        """The value of a key, None without one. A damaged or foreign file warns, once for all, and
        is removed.
        """
        path = self.path(key)
        try:
            content = path.read_bytes()
            os.utime(path)  # it has been used now
        except OSError:
            return None
        value = content[len(MAGIC) + 32 :]
        if content[: len(MAGIC) + 32] == MAGIC + _checksum(key, value):
            return value
        with contextlib.suppress(OSError):
            path.unlink()
        if not self.has_warned:
            self.has_warned = True
            warnings.warn(
                f"{path} is damaged, or of another program, and is ignored: what it held is "
                f"compiled anew. {VARIABLE}=off keeps nothing on disk",
                RuntimeWarning,
                stacklevel=2,
            )
        return None

    def put(self, key: str, value: bytes):
        """Keep a value, unless it takes more than one share of the limit."""
        content = MAGIC + _checksum(key, value) + value
        if len(content) > self.limit // SHARES:
            return
        with contextlib.suppress(OSError):
            self._write(self.path(key), content)
        self.written += len(content)
        if self.written > self.limit // SHARES:
            self.written = 0
            self.shrink(self.limit - self.limit // SHARES)

    def _write(self, path: Path, content: bytes):
        descriptor, unfinished = tempfile.mkstemp(UNFINISHED, dir=self.directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(unfinished, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
            raise

    def files(self) -> list[tuple[int, int, str]]:
        """Of each file when it was used last, in nanoseconds, its size and its path."""
        # a user's directory may hold other files
        paths = [path for path in self.paths() if path.endswith((SUFFIX, UNFINISHED))]
        files = []
        for path in paths:
            with contextlib.suppress(OSError):  # another process may have removed it
                info = os.lstat(path)
                files.append((info.st_mtime_ns, info.st_size, path))
        return files

    def names(self) -> set[str]:
        """The keys of the values that there are now."""
        names = map(os.path.basename, self.paths())
        return {name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)}

    def paths(self) -> list[str]:
        try:
            return [os.path.join(self.directory, name) for name in os.listdir(self.directory)]
        except OSError:
            return []

    def shrink(self, most: int):
        """Remove the least recently used files until the others have at most so many bytes."""
        files = sorted(self.files())
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= most:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size


def _checksum(key: str, value: bytes) -> bytes:
    # of the key too: a file under the name of another one is a foreign one
    return hashlib.sha256(key.encode() + b"\n" + value).digest()


def wanted_directory() -> Path | None:
    """The directory that the environment asks for, by default one in the user's cache; None for
    none.
    """
    wanted = os.environ.get(VARIABLE)
    if wanted == "off":
        return None
    if wanted:
        return Path(wanted).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    if not (base and os.path.isabs(base)):
        base = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return Path(base).expanduser() / "jaxgrad"


def open_directory(path: Path):
    """Create a directory that only the user may use, or check the one that there is.

    Raises OSError if nothing can be written to it, or if others could have written to it: what is
    kept there may be programs.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid"):
        info = path.stat()
        if info.st_uid != os.getuid() or info.st_mode & 0o022:
            raise PermissionError(13, "it belongs to another user, or others may write to it")
    with tempfile.TemporaryFile(dir=path):
        pass  # raises where nothing can be written
