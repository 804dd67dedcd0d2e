"""`torch.ops.aten`: the operators by the names of PyTorch's table, with its overloads.

>>> jaxgrad.ops.aten.add.Tensor(jaxgrad.ones(2), jaxgrad.ones(2))
tensor([2., 2.])
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

from ..late import LateModule

function_schema = LateModule("jaxgrad.ops.function_schema")
table_schema = LateModule("jaxgrad.table.schema")

COVERAGE = Path(__file__).parents[1] / "coverage"
SCHEMAS, NAMES = COVERAGE / "aten_schemas.txt", COVERAGE / "aten_names.txt"


@functools.cache
def _texts() -> dict[str, list[str]]:
    """The texts of PyTorch's schemas by the name of the operator."""
    texts: dict[str, list[str]] = {}
    for line in SCHEMAS.read_text().splitlines():
        texts.setdefault(re.split(r"\W", line, maxsplit=1)[0], []).append(line)
    return texts


@functools.cache
def schemas(name: str) -> dict:
    """PyTorch's schemas of an operator by their overloads; none for a name that it lacks."""
    known = [table_schema.parse_schema(text) for text in _texts().get(name, ())]
    return {schema.overload or "default": schema for schema in known}


@functools.cache
def overloads_of_pytorch() -> dict[str, list[str]]:
    """The names of the overloads of PyTorch's operators, by the names of these."""
    lines = map(str.split, NAMES.read_text().splitlines())
    return {name: overloads for name, *overloads in lines}


class _Shared:
    """An object that copies share, such as the targets of nodes of a copied graph."""

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class Packet(_Shared):
    """What has the overloads of an operator, PyTorch's or the user's."""


class Overload(_Shared):
    """An operator with types of arguments, PyTorch's or the user's."""


class OpOverloadPacket(Packet):
    """An operator. Its attributes are its overloads, all of which choose by their arguments."""

    def __init__(self, name: str, find: Callable):
        self.__name__, self._find = name, find
        self._qualified_op_name = f"aten::{name}"

    def __call__(self, *args, **kwargs):
        return self._run(self.__name__, args, kwargs)

    def _run(self, name, args, kwargs):
        operator = self._find(name)
        if operator is None:
            raise NotImplementedError(f"aten.{name} is not provided by jaxgrad")
        return operator(*args, **kwargs)

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return [*overloads_of_pytorch().get(self.__name__, ("default",))]

    def __getattr__(self, overload):
        if overload not in self.overloads():
            raise AttributeError(
                f"The underlying op of {str(self)!r} has no overload name {overload!r}: it has "
                + ", ".join(self.overloads())
            )
        operator = OpOverload(self, overload)
        setattr(self, overload, operator)
        return operator

    def __str__(self):
        return f"aten.{self.__name__}"

    __repr__ = __str__


class OpOverload(Overload):
    """An operator with types of arguments: `torch.ops.aten.add.Tensor`."""

    namespace = "aten"

    def __init__(self, packet: OpOverloadPacket, overload: str):
        self.overloadpacket, self._overloadname = packet, overload
        self._opname, self.__name__ = packet.__name__, f"{packet.__name__}.{overload}"

    def __call__(self, *args, **kwargs):
        return self.overloadpacket._run(self.__name__, args, kwargs)

    @property
    def _schema(self):
        schema = schemas(self._opname).get(self._overloadname)
        if schema is None:
            raise AttributeError(f"{self}: jaxgrad does not have the schema of this operator")
        return function_schema.FunctionSchema(schema)

    def name(self) -> str:
        """The qualified name, `aten::add.Tensor`; without the overload if it is the default one."""
        overload = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self._opname}{overload}"

    def __str__(self):
        return f"aten.{self.__name__}"

    __repr__ = __str__


def namespace(find: Callable) -> type:
    """The object with an operator for each name. find: gives the function of `add` or `add.Tensor`,
    or None.
    """

    class Aten:
        __name__ = "aten"

        @functools.cache  # noqa: B019
        def __getattr__(self, name):
            if name not in overloads_of_pytorch() and find(name) is None:
                raise AttributeError(
                    f"'_OpNamespace' 'aten' object has no attribute {name!r}: PyTorch has no such "
                    "operator"
                )
            return OpOverloadPacket(name, find)

    return Aten()
