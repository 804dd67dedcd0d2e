"""The parameters and submodules of modules, which a traced function may bind anew, and the names
that it removes.
"""

from __future__ import annotations

from .guards import Guard
from .holders import Holder, MemberHolder, own_dict


class ParameterHolder(MemberHolder):
    """The parameters of a module."""

    @staticmethod
    def mapping(target):
        return own_dict(target)["_parameters"]


class SubmoduleHolder(MemberHolder):
    """The submodules of a module."""

    is_ordered = True

    @staticmethod
    def mapping(target):
        return own_dict(target)["_modules"]


KINDS_OF_MEMBERS = {
    "_buffers": MemberHolder,
    "_parameters": ParameterHolder,
    "_modules": SubmoduleHolder,
}


def take_members(snapshots, module, name, own: dict):
    """Take snapshots of the members of a module. own: its attributes."""
    for group, kind in KINDS_OF_MEMBERS.items():
        if isinstance(own.get(group), dict):
            snapshots.take(module, name, kind)


class BoundGuard(Guard):
    """Names of a holder that the function removes are bound, to whatever it may be."""

    __slots__ = ("holder", "mapping", "name", "names")

    def __init__(self, holder: Holder):
        self.name, self.holder, self.mapping = holder.name, holder.reference, holder.mapping
        self.names = tuple(holder.removed)

    def check(self, leaves, tensors):
        target = self.holder()
        return target is not None and not self.missing(target)

    def missing(self, target) -> list:
        now = self.mapping(target)
        return [name for name in self.names if name not in now]

    def reason(self, leaves, tensors):
        target = self.holder()
        names = self.names if target is None else self.missing(target)
        return f"{', '.join(map(str, names))} of {self.name}, which it removes, is not there"
