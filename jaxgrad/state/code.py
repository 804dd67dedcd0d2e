"""The names in the code of functions: the variables, attributes and items that it reads or sets."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from typing import NamedTuple

# in the place of the contents of a name that is not bound
UNSET = object()


class CodeNames(NamedTuple):
    """The names in a code object, with the modules that it imports.

    `attributes`, `strings`: the attributes that it reads, and its constant strings; `globals`,
    `cells`: the global and the closure variables that it reads; `keys`: by variable, attribute or
    item, the constant keys by which the code reads its items, None if the code uses it in any other
    way than reading items, assigning items and appending; `stored_attributes`, `stored_globals`,
    `stored_cells`, `stored_keys`: the names that it assigns or deletes; `deleted`: the attributes
    and globals that it deletes.
    """

    attributes: frozenset
    strings: frozenset
    globals: frozenset
    cells: frozenset
    imports: frozenset
    keys: dict[str, frozenset | None]
    stored_attributes: frozenset
    stored_globals: frozenset
    stored_cells: frozenset
    stored_keys: dict[str, frozenset]
    deleted: frozenset


@functools.lru_cache(maxsize=4096)
def names_in(code) -> CodeNames:
    instructions = [one for one in dis.get_instructions(code) if one.opname not in _SILENT]
    keys: dict[str, frozenset | None] = {}
    stored_keys: dict[str, frozenset] = {}
    for number, instruction in enumerate(instructions):
        if instruction.opname in (*_LOADS_GLOBAL, *_LOADS_CELL, *_LOADS_ATTRIBUTE):
            _record_keys(keys, stored_keys, instruction.argval, instructions, number)

    def named(operations):
        return frozenset(one.argval for one in instructions if one.opname in operations)

    parts = [c if isinstance(c, tuple | frozenset) else (c,) for c in code.co_consts]
    strings = frozenset(part for inner in parts for part in inner if isinstance(part, str))
    read = named(_LOADS_ATTRIBUTE), strings, named(_LOADS_GLOBAL), named(_LOADS_CELL)
    stored = [named([f"STORE_{kind}", f"DELETE_{kind}"]) for kind in ("ATTR", "GLOBAL", "DEREF")]
    deleted = named(["DELETE_ATTR", "DELETE_GLOBAL"])
    return CodeNames(*read, named(["IMPORT_NAME"]), keys, *stored, stored_keys, deleted)


# the words of Python 3.11 and of later versions
_SILENT = ("CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "RESUME")
_LOADS_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM")
_LOADS_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_LOADS_CELL = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")


def _record_keys(keys, stored_keys, name, instructions, number):
    """Record the keys by which the code reads items of the result of instruction `number`, and
    items of these items; or the key of the item that it assigns.
    """
    following = [one.opname for one in instructions[number + 1 : number + 3]]
    if following == ["LOAD_CONST", "STORE_SUBSCR"]:
        key = instructions[number + 1].argval
        stored_keys[name] = stored_keys.get(name, frozenset()) | {key}
    read, known = _keys_of(instructions, number), keys.get(name, frozenset())
    keys[name] = None if read is None or known is None else known | read
    for key in read or ():
        if instructions[number + 2].opname == "BINARY_SUBSCR":
            _record_keys(keys, stored_keys, f"{name}[{key!r}]", instructions, number + 2)
        else:
            keys[f"{name}[{key!r}]"] = None


def _keys_of(instructions, number) -> frozenset | None:
    """The key by which the code reads an item of the result of instruction `number`; an empty set
    if it only assigns an item or appends; None if the code uses the result in any other way.
    """
    following = [one.opname for one in instructions[number + 1 : number + 4]]
    first, second, third = [*following, "", "", ""][:3]
    if first == "LOAD_CONST" and second in ("BINARY_SUBSCR", "DELETE_SUBSCR"):
        return frozenset([instructions[number + 1].argval])
    if first == "LOAD_CONST" and second == "STORE_SUBSCR":
        return frozenset()
    if first == "LOAD_CONST" and second == third == "COPY":  # an augmented assignment
        return frozenset([instructions[number + 1].argval])
    if first == "CONTAINS_OP" and number and instructions[number - 1].opname == "LOAD_CONST":
        return frozenset([instructions[number - 1].argval])
    if first not in ("LOAD_METHOD", "LOAD_ATTR"):
        return None
    method = instructions[number + 1].argval
    if method in ("append", "extend"):
        return frozenset()
    if method == "get" and second == "LOAD_CONST":
        return frozenset([instructions[number + 2].argval])
    return None


def codes(code, unseen=frozenset()):
    """Yield a code object and those of the functions defined in it, except those in `unseen`."""
    if code not in unseen:
        yield code
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from codes(constant, unseen)


# code that names one of these may read any attribute or variable, all variables of a module, or
# assign an attribute by a string
DYNAMIC = frozenset(["getattr", "attrgetter", "vars", "__dict__", "globals", "locals"])
READING_MODULES, SETTING = ("vars", "__dict__"), ("setattr", "delattr", "vars", "__dict__")


# code that names one of these may ask whether there is an attribute
_ASKING = frozenset(["getattr", "hasattr", "vars"])


def _maybe_absent(names: CodeNames, code) -> set[str]:
    """The names that code reads of an object which may lack them."""
    asked = names.strings if names.globals & _ASKING else frozenset()
    tried = names.attributes if code.co_exceptiontable else frozenset()
    return {name for name in asked | tried if name.isidentifier()}


class KnownCode:
    """The names in all the code that a walk has met.

    `names`: the names that it reads, of attributes, variables and constant strings; `maybe_absent`:
    the names whose absence the code handles; `stored_names`: the attributes that it assigns or
    deletes; `deleted_names`, `keys`, `stored_keys`: as in `CodeNames`. unseen: code objects whose
    reads do not count.
    """

    def __init__(self, unseen=()):
        self.unseen = frozenset(unseen)
        self.names: set[str] = set()
        self.maybe_absent: set[str] = set()
        self.stored_names: set[str] = set()
        self.deleted_names: set[str] = set()
        self.keys: dict[str, frozenset | None] = {}
        self.stored_keys: dict[str, frozenset] = {}

    def learn(self, code) -> list[CodeNames]:
        """Collect the names in the code of a function; gives them."""
        parts = list(codes(code, self.unseen))
        learned = [names_in(part) for part in parts]
        for part, names in zip(parts, learned, strict=True):
            self.maybe_absent |= _maybe_absent(names, part)
            self.names |= names.attributes | names.strings | names.globals | names.cells
            self.stored_names |= names.stored_attributes
            self.deleted_names |= names.deleted
            self.deleted_names |= names.strings if "delattr" in names.globals else frozenset()
            self.keys.update(dict.fromkeys(names.strings))
            for name, keys in names.keys.items():
                known = self.keys.get(name, frozenset())
                self.keys[name] = None if keys is None or known is None else known | keys
            for name, keys in names.stored_keys.items():
                self.stored_keys[name] = self.stored_keys.get(name, frozenset()) | keys
        return learned

    def names_any(self, names) -> bool:
        """Whether the code has one of these names."""
        return not self.names.isdisjoint(names)

    def keys_of(self, name: str) -> frozenset | None:
        """The keys by which alone the code reads items of the value of a name; None if it may use
        the value in any other way.
        """
        # an item is read by these keys alone if the code gets at it by its own key alone
        around = [name[:end] for end, letter in enumerate(name) if letter == "["]
        if any(self.keys.get(container) is None for container in around):
            return None
        return self.keys.get(name)


# ---- the variables of a function


def global_names(function) -> list[str]:
    """The globals that a function's code names."""
    named = [names_in(code) for code in codes(function.__code__)]
    names = set().union(*[one.globals | one.stored_globals for one in named])
    return sorted(names & function.__globals__.keys())


def named_cells(function):
    """The closure variables of a function: pairs of a name and a cell."""
    return zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)


def full_cells(function) -> list:
    """The cells of a function's closure that hold a value."""
    return [cell for cell in function.__closure__ or () if cell_value(cell) is not UNSET]


def cell_value(cell):
    """The value of a closure variable; UNSET before its first assignment."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNSET


def python_function(function):
    """The function whose code runs; None if that is not known."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if isinstance(function, types.MethodType):
        function = function.__func__
    return function if isinstance(function, types.FunctionType) else None
