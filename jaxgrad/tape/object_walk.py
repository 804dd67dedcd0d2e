"""Walks over Python objects: from some objects to everything that they hold.

Capture looks for the names that a function's code reads and for the tensors that it can reach,
checkpointing for the tensors that it must put back, a Function's context for intermediate results.
"""

from __future__ import annotations

import collections
import dis
import functools
import sys
import sysconfig
import types
import weakref
from pathlib import Path
from typing import NamedTuple

from .tensor import Tensor

# in the place of the contents of a cell or an attribute that does not exist
UNSET = object()


_CONTAINERS = (list, tuple, set, frozenset, collections.deque)


class ObjectWalk:
    """A depth-first walk over objects, which visits each of them once.

    Subclasses choose how far it goes: `opaque`, the types that it leaves out; `most`, the number of
    objects after which it ends; and what it enters of a function (`of_function`) and of any other
    object (`of_object`).
    """

    opaque: tuple[type, ...] = ()
    most = 10_000

    def __init__(self):
        self.seen: dict[int, object] = {}

    def walk(self, *roots):
        """Yield the roots and everything reachable from them."""
        stack = [*reversed(roots)]
        while stack and len(self.seen) < self.most:
            value = referent(stack.pop())
            if id(value) in self.seen or isinstance(value, self.opaque):
                continue
            self.seen[id(value)] = value  # keeps it alive: a freed object's id is used again
            yield value
            stack.extend(self.contents(value))

    def contents(self, value):
        """The objects that an object holds."""
        if isinstance(value, Tensor):
            return vars(value).values()
        # what the object holds, which a subclass with methods of its own may not show
        for kind in _CONTAINERS:
            if isinstance(value, kind):
                return kind.__iter__(value)
        if isinstance(value, dict):
            return dict.values(value)
        if isinstance(value, functools.partial):
            return value.func, *value.args, *value.keywords.values()
        if isinstance(value, types.MethodType):
            return value.__self__, value.__func__
        if isinstance(value, types.FunctionType):
            return self.of_function(value)
        return self.of_object(value)

    def of_function(self, function):
        return [cell.cell_contents for cell in full_cells(function)]

    def of_object(self, value):
        held = vars(value).values() if hasattr(value, "__dict__") else ()
        return [*held, *slot_values(value, slots_of(type(value))).values()]


def tuple_parts(values):
    """Yield what tuples among values hold, and tuples in these."""
    for value in values:
        if isinstance(value, tuple):
            yield from value
            yield from tuple_parts(value)


def referent(value):
    """The object behind a `weakref.proxy`, None where it is gone; any other value is its own."""
    if type(value) not in weakref.ProxyTypes:
        return value
    try:
        return value.__init__.__self__
    except ReferenceError:
        return None


@functools.lru_cache(maxsize=1024)
def slots_of(kind: type) -> dict:
    """The slots of a class and its bases, by name."""
    return {
        name: member
        for base in reversed(kind.__mro__)
        if "__slots__" in vars(base)  # classes in C make some members anew at each read
        for name, member in vars(base).items()
        if type(member) is types.MemberDescriptorType
    }


def slot_values(target, slots: dict) -> dict:
    """What is in the slots of an instance, by name."""
    found = {}
    for name, slot in slots.items():
        try:
            found[name] = slot.__get__(target)
        except AttributeError:
            continue
    return found


# ---- what the code of a function reads


class CodeNames(NamedTuple):
    """The names in a code object, with the modules that it imports.

    `attributes`, `strings`: the attributes that it reads, and its constant strings; `globals`,
    `cells`: the global and the closure variables that it reads; `keys`: by variable or attribute,
    and by item of one as in `name['key']`, the constant keys by which the code reads items of it,
    None where it does anything else with it than that, assigning items and appending;
    `stored_attributes`, `stored_globals`, `stored_cells`, `stored_keys`: the same for what it
    assigns.
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


@functools.lru_cache(maxsize=4096)
def names_in(code) -> CodeNames:
    lines = [each for each in dis.get_instructions(code) if each.opname not in _SILENT]
    keys: dict[str, frozenset | None] = {}
    stored_keys: dict[str, frozenset] = {}
    for number, each in enumerate(lines):
        if each.opname in (*_LOADS_GLOBAL, *_LOADS_CELL, *_LOADS_ATTRIBUTE):
            _record_keys(keys, stored_keys, each.argval, lines, number)

    def named(kinds):
        return frozenset(each.argval for each in lines if each.opname in kinds)

    strings = frozenset(each for each in code.co_consts if isinstance(each, str))
    return CodeNames(
        named(_LOADS_ATTRIBUTE),
        strings,
        named(_LOADS_GLOBAL),
        named(_LOADS_CELL),
        named(["IMPORT_NAME"]),
        keys,
        named(["STORE_ATTR"]),
        named(["STORE_GLOBAL"]),
        named(["STORE_DEREF"]),
        stored_keys,
    )


# the words of Python 3.11 and of later versions
_SILENT = ("CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "RESUME")
_LOADS_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM")
_LOADS_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_LOADS_CELL = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")


def _record_keys(keys, stored_keys, name, lines, number):
    """Record the key by which the code reads an item of what instruction `number` gives, and those
    by which it reads items of that item; or the key of the item that it assigns.
    """
    following = [each.opname for each in lines[number + 1 : number + 3]]
    if following == ["LOAD_CONST", "STORE_SUBSCR"]:
        stored_keys[name] = stored_keys.get(name, frozenset()) | {lines[number + 1].argval}
    found, known = _keys_of(lines, number), keys.get(name, frozenset())
    keys[name] = None if found is None or known is None else known | found
    for key in found or ():
        if lines[number + 2].opname == "BINARY_SUBSCR":
            _record_keys(keys, stored_keys, f"{name}[{key!r}]", lines, number + 2)
        else:
            keys[f"{name}[{key!r}]"] = None


def _keys_of(lines, number) -> frozenset | None:
    """The key by which the code reads an item of what instruction `number` gives; an empty set
    where it only assigns one or appends; None where the code does anything else with it.
    """
    following = [each.opname for each in lines[number + 1 : number + 4]]
    first, second, third = [*following, "", "", ""][:3]
    if first == "LOAD_CONST" and second in ("BINARY_SUBSCR", "DELETE_SUBSCR"):
        return frozenset([lines[number + 1].argval])
    if first == "LOAD_CONST" and second == "STORE_SUBSCR":
        return frozenset()
    if first == "LOAD_CONST" and second == third == "COPY":  # an augmented assignment
        return frozenset([lines[number + 1].argval])
    if first == "CONTAINS_OP" and number and lines[number - 1].opname == "LOAD_CONST":
        return frozenset([lines[number - 1].argval])
    if first in ("LOAD_METHOD", "LOAD_ATTR") and lines[number + 1].argval in ("append", "extend"):
        return frozenset()
    if first in ("LOAD_METHOD", "LOAD_ATTR") and lines[number + 1].argval == "get":
        return frozenset([lines[number + 2].argval]) if second == "LOAD_CONST" else None
    return None


def codes(code, unseen=frozenset()):
    """Yield a code object and those of the functions defined in it, except those in `unseen`."""
    if code not in unseen:
        yield code
        for each in code.co_consts:
            if isinstance(each, types.CodeType):
                yield from codes(each, unseen)


# the instructions that read a variable by its name, which is a global unless a class body has it
GLOBAL_READS = {
    *("LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL"),
    *("LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_FROM_DICT_OR_GLOBALS"),
}


def global_names(function) -> list[str]:
    """The globals that a function's code names."""
    names = set().union(*map(_globals_named, codes(function.__code__)))
    return sorted(names & function.__globals__.keys())


@functools.lru_cache(maxsize=4096)
def _globals_named(code) -> frozenset[str]:
    # not all of `co_names`, in which attributes are too: `a.x` reads no global `x`
    found = dis.get_instructions(code)
    return frozenset(each.argval for each in found if each.opname in GLOBAL_READS)


def named_cells(function):
    """The closure variables of a function: pairs of a name and a cell."""
    return zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)


def full_cells(function) -> list:
    """The cells of a function's closure that hold a value."""
    return [cell for cell in function.__closure__ or () if cell_value(cell) is not UNSET]


def cell_value(cell):
    """What a closure variable is bound to; UNSET before its first assignment."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNSET


# ---- whose code it is

CLOSED = ("jax", "jaxgrad", "jaxlib", "numpy", "builtins", "torch")


@functools.lru_cache(maxsize=4096)
def is_of_library(module: str | None) -> bool:
    """Whether a Python module belongs to Python, or was installed."""
    root = (module or "builtins").partition(".")[0]
    if root == "__main__":  # among the names of Python's own modules
        return False
    if root in CLOSED or root in sys.stdlib_module_names:
        return True
    path = getattr(sys.modules.get(module), "__file__", None) or ""
    # those of other environments are in the path too, as with --system-site-packages
    is_installed = not _INSTALLED.isdisjoint(Path(path).parts)
    paths = sysconfig.get_paths()
    return is_installed or path.startswith((paths["purelib"], paths["platlib"]))


_INSTALLED = frozenset(["site-packages", "dist-packages"])


# ---- dicts of any class

_ITERATIONS = dict.__iter__, collections.OrderedDict.__iter__


def dict_class(target: dict) -> type:
    """The built-in class of a dict, whose methods reach its items past those of its own class."""
    return collections.OrderedDict if isinstance(target, collections.OrderedDict) else dict


def own_items(target: dict) -> dict:
    """The items of a dict, past what its class does when one is read."""
    kind = type(target)
    is_plain = kind.__getitem__ is dict.__getitem__ and not hasattr(kind, "__missing__")
    if is_plain and kind.__iter__ in _ITERATIONS:
        return target
    return dict(dict_class(target).items(target))
