"""`torch.ops.aten`: the operators by the names of PyTorch's table, with its overloads.

>>> jaxgrad.ops.aten.add.Tensor(jaxgrad.ones(2), jaxgrad.ones(2))
tensor([2., 2.])
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..names.missing import MissingName


class Packet:
    """An operator. Its attributes are its overloads, all of which choose by their arguments."""

    def __init__(self, name: str, operator: Callable | None):
        self.__name__, self._operator = name, operator

    def __call__(self, *args, **kwargs):
        if self._operator is None:
            raise NotImplementedError(f"{self} is not provided by jaxgrad")
        return self._operator(*args, **kwargs)

    def __getattr__(self, overload):
        if overload.startswith("__"):
            raise AttributeError(f"{self} has no attribute {overload!r}")
        packet = Packet(f"{self.__name__}.{overload}", self._operator)
        setattr(self, overload, packet)
        return packet

    def __repr__(self):
        return f"aten.{self.__name__}"


def namespace(find: Callable) -> type:
    """The object with a packet for each name. find: gives the operator of a name, or None."""

    class Aten:
        __name__ = "aten"

        @functools.cache  # noqa: B019
        def __getattr__(self, name):
            if name.startswith("__"):
                raise MissingName("jaxgrad.ops", f"aten.{name}")
            return Packet(name, find(name))

    return Aten()
