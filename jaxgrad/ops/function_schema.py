"""Schemas of PyTorch's operators as programs read them: `torch.ops.aten.add.Tensor._schema`."""

from __future__ import annotations

from typing import NamedTuple

from ..table.schema import REQUIRED, Argument, Schema, Type

_NAMES = {
    **{"Scalar": "number", "SymInt": "int", "ScalarType": "int", "Layout": "int"},
    **{"MemoryFormat": "int", "bool": "bool", "Dimname": "str"},
}


class AliasInfo(NamedTuple):
    """What an argument shares memory with: sets of the letters of the schema."""

    is_write: bool
    before_set: set[str]
    after_set: set[str]


def _alias_info(kind: Type) -> AliasInfo | None:
    if kind.alias is None:
        return None
    before, _, after = kind.alias.replace("!", "").partition("->")
    letters = {letter.strip() for letter in before.split("|")}
    others = {letter.strip() for letter in after.split("|")} if after else letters
    return AliasInfo("!" in kind.alias, letters, others)


def type_text(kind: Type) -> str:
    """The name of a type in PyTorch's programs, such as `Optional[List[int]]`."""
    name = _NAMES.get(kind.base, kind.base)
    if kind.list:
        name = f"List[{f'Optional[{name}]' if kind.optional_items else name}]"
    return f"Optional[{name}]" if kind.optional else name


class SchemaArgument:
    """An argument of an operator. N: the length of a list of fixed length, else None."""

    def __init__(self, argument: Argument):
        self.name, self.kwarg_only = argument.name, argument.keyword_only
        self.type, self.N = type_text(argument.type), argument.type.size
        self.alias_info = _alias_info(argument.type)
        self.is_out = self.kwarg_only and argument.type.written
        default = argument.default
        self._default = [*default] if isinstance(default, tuple) else default

    default_value = property(lambda self: None if self._default is REQUIRED else self._default)

    def has_default_value(self) -> bool:
        """Whether the argument may be left out."""
        return self._default is not REQUIRED

    def __repr__(self):
        return f"<argument {self.name}: {self.type}>"


class FunctionSchema:
    """The schema of an operator: its qualified name, arguments and returns."""

    def __init__(self, schema: Schema):
        self._text = f"aten::{schema.text}"
        self.name, self.overload_name = f"aten::{schema.name}", schema.overload
        self.arguments = [SchemaArgument(argument) for argument in schema.arguments]
        self.returns = [
            SchemaArgument(Argument(result.name or "", result.type)) for result in schema.returns
        ]
        self.is_mutable = any(a.alias_info and a.alias_info.is_write for a in self.arguments)

    def __str__(self):
        return self._text

    __repr__ = __str__
