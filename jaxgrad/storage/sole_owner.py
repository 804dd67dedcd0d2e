"""Whether only one tensor shows a memory: counts the references to its place and its storage."""

from __future__ import annotations

import itertools
import operator
import types

from ..core.reference_counts import Held
from ..tape.tensor import Tensor

# inlined: the accessors of tape/tensor.py


def is_shared(tensor: Tensor) -> bool:
    """Whether a tensor shares its memory with another one that exists."""
    return tensor._alias is not None and not _STORAGE.is_sole(tensor)


def has_views(tensor: Tensor) -> bool:
    """Whether views exist that were cut from a root."""
    return tensor._alias is not None and not _ALIAS.is_sole(tensor)


def leave_storage(tensor: Tensor):
    """Let a tensor that is up to date leave its storage, if only it shows the memory, and all of
    it: reads and writes then need not look for aliases. A tensor that has shown its address stays.
    """
    alias = tensor._alias
    storage = alias.storage
    is_whole = alias.place is alias.root is alias.base is alias.before is alias.tangents is None
    is_settled = storage.pending is None and alias.seen == storage.epoch
    if is_whole and is_settled and storage.home is None:
        del alias, storage
        _leave_if_sole([tensor])


def _leave_if_sole(tensors: list[Tensor]):
    # all in C, so that no other thread cuts a view between the comparison and the change
    counts = zip(_STORAGE.counts(tensors), _ALIAS.counts(tensors), strict=True)
    are_sole = map(operator.eq, counts, itertools.repeat((_STORAGE.sole, _ALIAS.sole)))
    owners = itertools.compress(tensors, are_sole)
    any(map(setattr, owners, itertools.repeat("_alias"), itertools.repeat(None)))


def _sole() -> Tensor:
    tensor = object.__new__(Tensor)
    tensor._alias = types.SimpleNamespace(storage=object())
    return tensor


_STORAGE, _ALIAS = (Held(operator.attrgetter(at), _sole()) for at in ("_alias.storage", "_alias"))
