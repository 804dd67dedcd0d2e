"""Whether a tensor alone shows its memory, which the references to its place and storage tell."""

from __future__ import annotations

import itertools
import operator
import sys

from ..tape.tensor import Tensor
from .alias import Alias, Storage


def is_shared(tensor: Tensor) -> bool:
    """Whether a tensor shares its memory with another one that exists."""
    return tensor._alias is not None and next(_references([tensor]))[0] > _SOLE[0]


def has_views(tensor: Tensor) -> bool:
    """Whether views exist that were cut from a root."""
    return tensor._alias is not None and next(_references([tensor]))[1] > _SOLE[1]


def leave_storage(tensor: Tensor):
    """Let a tensor that is up to date leave its storage, where it alone shows that memory, and all
    of it: what reads or writes it then need not look for others. One that has shown its address
    stays.
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
    are_sole = map(operator.eq, _references(tensors), itertools.repeat(_SOLE))
    owners = itertools.compress(tensors, are_sole)
    any(map(setattr, owners, itertools.repeat("_alias"), itertools.repeat(None)))


def _references(tensors: list[Tensor]):
    """The numbers of references to the storage and the alias of tensors."""
    storages = map(sys.getrefcount, map(_storage_of, tensors))
    return zip(storages, map(sys.getrefcount, map(_alias_of, tensors)), strict=True)


_alias_of, _storage_of = map(operator.attrgetter, ("_alias", "_alias.storage"))


def _sole():
    tensor = object.__new__(Tensor)
    tensor._alias = Alias(Storage(None, None))
    return next(_references([tensor]))


# counted in the same form, since interpreters differ in the references that a call adds
_SOLE = _sole()
