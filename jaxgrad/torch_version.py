"""A version as text that compares as a version, as torch.torch_version."""

from __future__ import annotations

import re

from .names.missing import missing_in


class TorchVersion(str):
    """A version of PyTorch: text that is compared with texts and tuples by its numbers.

    >>> from jaxgrad.torch_version import TorchVersion
    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0") >= (2, 13)
    (True, True)
    """

    __slots__ = ()

    def __lt__(self, other):
        return _before(self, other)

    def __gt__(self, other):
        return _before(other, self)

    def __le__(self, other):
        return not _before(other, self)

    def __ge__(self, other):
        return not _before(self, other)

    def __eq__(self, other):
        if not isinstance(other, str | tuple | list):
            return False
        return not (_before(self, other) or _before(other, self))

    __hash__ = str.__hash__


def _before(one, other) -> bool:
    one, other = _numbers(one), _numbers(other)
    length = max(len(one), len(other))
    return one + (0,) * (length - len(one)) < other + (0,) * (length - len(other))


def _numbers(version) -> tuple[int, ...]:
    """The numbers of a release: (2, 13, 0) of "2.13.0+cpu"."""
    if not isinstance(version, str):
        version = ".".join(map(str, version))
    release = re.match(r"v?\d+(\.\d+)*", version.strip())
    if release is None:
        raise ValueError(f"Invalid version: {version!r}; a version is like '2.13.0'")
    return tuple(map(int, release[0].removeprefix("v").split(".")))


__getattr__ = missing_in(__name__)
