"""ATen schemas: `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.

The dialect of early PyTorch (`IntList`, `int64_t`, `double`, `std::array<bool,3>`, no returns)
gives the same objects as today's.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from ..cached import cached_property
from .mistakes import mean, shown

MAX_CHARACTERS = 2000
MAX_ARGUMENTS = 64
# types whose values are bare words: dtype=long, memory_format=contiguous_format
WORDY = frozenset(["ScalarType", "Layout", "MemoryFormat"])
BASES = WORDY | {"Tensor", "Scalar", "int", "float", "bool", "str"}
BASES |= {"Generator", "Device", "TensorOptions"}
# SymInt is an int, since shapes are static in XLA; the other spellings are from early PyTorch
SPELLINGS = {
    "SymInt": "int",
    "int64_t": "int",
    "double": "float",
    "IntList": "int[]",
    "TensorList": "Tensor[]",
    "SparseTensorRef": "Tensor",
}
REDUCTIONS = {"Mean": 1, "Sum": 2}


class Required:
    """Marks an argument without a default."""

    def __repr__(self):
        return "REQUIRED"


REQUIRED = Required()


class SchemaError(ValueError):
    """A text that is no schema; the mistake is at `offset` characters from its start."""

    def __init__(self, offset, cause, cure):
        super().__init__(f"{cause}; {cure}")
        self.offset, self.cause, self.cure = offset, cause, cure


@dataclass(frozen=True, slots=True)
class Type:
    """A type such as `Tensor(a!)`, `int[2]?` or `Tensor?[]`.

    `Tensor?[]` has `optional_items` and is not `optional`; `alias` is the text in parentheses.
    """

    base: str
    optional: bool = False
    list: bool = False
    size: int | None = None
    alias: str | None = None
    optional_items: bool = False

    def __str__(self):
        items = f"{'?' if self.optional_items else ''}[{self.size or ''}]" if self.list else ""
        return f"{self.base}{items}{'?' if self.optional else ''}"

    @property
    def tensor(self):
        return self.base == "Tensor"

    @property
    def written(self):
        return self.alias is not None and "!" in self.alias


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    type: Type
    default: object = REQUIRED
    keyword_only: bool = False


@dataclass(frozen=True, slots=True)
class Return:
    name: str | None
    type: Type


@dataclass(frozen=True)
class Schema:
    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]
    text: str

    def __str__(self):
        return self.text

    @cached_property
    def full_name(self):
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @cached_property
    def names(self):
        """The names of the arguments in order."""
        return tuple(argument.name for argument in self.arguments)

    @cached_property
    def returns_known(self):
        """False in the dialect of early PyTorch, which does not declare returns."""
        return "->" in self.text

    @cached_property
    def written(self):
        """The names of the arguments that the operator overwrites."""
        marked = tuple(a.name for a in self.arguments if a.type.written)
        is_undeclared_write = self.name.endswith("_") and not self.returns_known
        return marked or (self.names[:1] if is_undeclared_write else ())

    @cached_property
    def inplace(self):
        return self.name.endswith("_") and bool(self.written)

    @cached_property
    def is_view(self):
        """Whether the result shares memory with the first argument and writes nothing."""
        aliases = [value.type.alias for value in (*self.arguments[:1], *self.returns[:1])]
        return len(aliases) == 2 and None not in aliases and not self.written

    @cached_property
    def tensors(self):
        """The names of the Tensor arguments, lists included, without an `out` argument."""
        out = () if self.inplace else self.written
        return tuple(a.name for a in self.arguments if a.type.tensor and a.name not in out)

    @cached_property
    def signature(self):
        """Names and types of the arguments, by which overloads differ."""
        return tuple((a.name, a.type.base, a.type.list) for a in self.arguments)


HEAD = re.compile(r"\s*(?P<name>\w+)(?:\.(?P<overload>\w+))?\s*\(\s*", re.ASCII)
TYPE = r"(?:std::array<bool,\s*\d+>|[A-Za-z]\w*)(?:\([a-z\d|! *>-]*\))?[?\[\]\d]*"
DEFAULT = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\[[^\[\]]*\]|[^\s,()\[\]]+"
ARGUMENT = re.compile(
    rf"(?P<type>{TYPE})\s+(?P<name>[A-Za-z]\w*)\s*(?:=\s*(?P<default>{DEFAULT})\s*)?", re.ASCII
)
RETURN = re.compile(rf"(?P<type>{TYPE})(?:\s+(?P<name>[A-Za-z]\w*))?\s*", re.ASCII)
STAR = re.compile(r"\*\s*")
COMMA = re.compile(r",\s*")
ARROW = re.compile(r"\)\s*->\s*")
PARTS = re.compile(
    r"(?P<base>[A-Za-z]\w*)(?:\((?P<alias>[^()]*)\))?(?P<inner>\?)?(?P<list>\[\d*\])?(?P<outer>\?)?",
    re.ASCII,
)
ALIAS = re.compile(r"[a-z]\d{0,3}(\|[a-z])*!?( -> [a-z*](\|[a-z])*)?")
ARRAY = re.compile(r"std::array<bool,\s*(\d{1,3})>")
INTEGER = re.compile(r"-?\d{1,18}")
FLOAT = re.compile(r"-?(inf|nan|(\d{1,40}\.?\d{0,40}|\.\d{1,40})([eE][+-]?\d{1,3})?)")


def parse_schema(text):
    """Parse a schema. Raises SchemaError with the place of the mistake.

    >>> from jaxgrad.table import parse_schema
    >>> parse_schema("mul.Scalar(Tensor self, Scalar other) -> Tensor").names
    ('self', 'other')
    """
    head = HEAD.match(text) if len(text) <= MAX_CHARACTERS else None
    if head is None:
        raise SchemaError(0, f"cannot read {shown(text)} as a schema", FORM)
    name, overload = head["name"], head["overload"] or ""
    _check_name(name, overload, head)
    arguments, end = _arguments(text, head.end())
    returns = _returns(text, end)
    return Schema(name, overload, arguments, returns, text)


FORM = "write it as `name(Type argument, ...) -> Type`"


def _check_name(name, overload, head):
    if "__" in name or name.strip("_") == "" or name[0].isdigit():
        cure = "a name has letters, digits and single underscores"
        raise SchemaError(head.start("name"), f"{shown(name)} cannot be an operator's name", cure)
    if "__" in overload or overload.startswith("_"):
        cure = "an overload has letters, digits and single underscores"
        raise SchemaError(head.start("overload"), f"{shown(overload)} is no overload", cure)


def _arguments(text, position):
    """The arguments from `position` on, and the position of their closing bracket."""
    arguments, keyword_only = [], False
    while position < len(text) and text[position] != ")":
        star = STAR.match(text, position)
        if star and not keyword_only:
            keyword_only, position = True, star.end()
        else:
            match = _expect(ARGUMENT, text, position, "an argument", "write `Type name`")
            arguments.append(_argument(match, keyword_only))
            position = match.end()
        position = _after_comma(text, position, ")")
    if position >= len(text):
        raise SchemaError(len(text), "the bracket of the arguments is not closed", FORM)
    _check_arguments(arguments, position)
    return tuple(arguments), position


def _after_comma(text, position, closing):
    if text[position : position + 1] in ("", closing):
        return position
    return _expect(COMMA, text, position, "a comma or the closing bracket", FORM).end()


def _expect(pattern, text, position, what, cure):
    match = pattern.match(text, position)
    if match is None:
        cause = f"expected {what} at {shown(text[position:])}"
        raise SchemaError(position, cause, cure)
    return match


def _check_arguments(arguments, position):
    names = [argument.name for argument in arguments]
    if len(names) > MAX_ARGUMENTS:
        raise SchemaError(position, f"{len(names)} arguments", f"at most {MAX_ARGUMENTS} are read")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise SchemaError(position, f"two arguments are called {shown(twice)}", "rename one")


def _argument(match, keyword_only):
    type_ = _type(match, match["type"])
    default = REQUIRED if match["default"] is None else _default(match, type_)
    return Argument(match["name"], type_, default, keyword_only)


def _type(match, text):
    try:
        return parse_type(text)
    except ValueError as error:
        cause, cure = error.args
        raise SchemaError(match.start("type"), cause, cure) from None


@lru_cache(maxsize=1024)
def parse_type(text):
    """Parse a type. Raises ValueError with cause and cure."""
    array = ARRAY.fullmatch(text)
    if array:
        return Type("bool", list=True, size=int(array[1]))
    parts = PARTS.fullmatch(text)
    if parts is None:
        raise ValueError(f"cannot read the type {shown(text)}", "write `Tensor?`, `int[2]`, ...")
    base, is_list, size = _base(parts)
    alias = parts["alias"]
    if alias is not None and not ALIAS.fullmatch(alias):
        raise ValueError(f"cannot read the alias ({alias})", "write `(a)`, `(a!)` or `(a -> *)`")
    inner, outer = bool(parts["inner"]), bool(parts["outer"])
    if not is_list:
        return Type(base, inner or outer, alias=alias)
    is_outer = parts["list"] is None  # `TensorList?`: the ? stands behind the list
    return Type(base, outer or (inner and is_outer), True, size, alias, inner and not is_outer)


def _base(parts):
    base = SPELLINGS.get(parts["base"], parts["base"])
    is_list, size = parts["list"] is not None, (parts["list"] or "[]")[1:-1]
    if base.endswith("[]"):
        base, is_list = base[:-2], True
    if base not in BASES:
        known = BASES | SPELLINGS.keys()
        cure = mean(base, known, f"the types are {', '.join(sorted(BASES))}")
        raise ValueError(f"unknown type {shown(base)}", cure)
    return base, is_list, int(size[:3]) if size else None


def _default(match, type_):
    text = match["default"]
    value = _value(text, type_)
    if type_.size and isinstance(value, int | float):
        value = (value,) * type_.size  # int[2] stride=1 is stride=(1, 1)
    if value is REQUIRED or not _fits(value, type_):
        cause = f"{shown(text)} cannot be the default of {shown(match['name'])}"
        cure = f"its type is {shown(match['type'])}"
        raise SchemaError(match.start("default"), cause, cure)
    return value


CONSTANTS = {"None": None, "True": True, "False": False}
SCALARS = {
    "int": (int,),
    "bool": (bool,),
    "float": (float, int),
    "Scalar": (float, int, bool),
    "str": (str,),
    "Device": (str,),
} | dict.fromkeys(WORDY, (str,))


def _value(text, type_):
    """The Python value of a default, or REQUIRED if the text is none."""
    if text[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", text[1:-1]) if type_.base in ("str", "Device") else REQUIRED
    if text[0] == "[":
        items = [item.strip() for item in text[1:-1].split(",")]
        return tuple(_value(item, type_) for item in items) if items != [""] else ()
    if text in CONSTANTS:
        return CONSTANTS[text]
    if INTEGER.fullmatch(text):
        return int(text)
    if FLOAT.fullmatch(text):
        return float(text)
    if type_.base in WORDY and text.isidentifier():
        return text
    return REDUCTIONS.get(text, REQUIRED) if type_.base == "int" else REQUIRED


def _fits(value, type_):
    if value is None:
        return type_.optional
    kinds = SCALARS.get(type_.base, ())
    if type_.list:
        return isinstance(value, tuple) and all(type(item) in kinds for item in value)
    return type(value) in kinds


def _returns(text, position):
    """The returns, after the closing bracket of the arguments at `position`."""
    if not text[position + 1 :].strip():
        return (Return(None, parse_type("Tensor")),)
    position = _expect(ARROW, text, position, "`-> Type`", FORM).end()
    if text[position : position + 1] != "(":
        returns, end = _return(text, position)
        returns = [returns]
    else:
        returns, end = _several_returns(text, position + 1)
    if text[end:].strip():
        raise SchemaError(end, f"{shown(text[end:])} follows the schema", FORM)
    return tuple(returns)


def _several_returns(text, position):
    returns = []
    while position < len(text) and text[position] != ")":
        item, position = _return(text, position)
        returns.append(item)
        position = _after_comma(text, position, ")")
    if position >= len(text):
        raise SchemaError(len(text), "the bracket of the returns is not closed", FORM)
    return returns, position + 1


def _return(text, position):
    match = _expect(RETURN, text, position, "a return", "write `Type` or `Type name`")
    return Return(match["name"], _type(match, match["type"])), match.end()
