"""The walk over the state that a function's code can reach: its variables, the containers and
instances that they hold, and the functions and classes that it calls.

Before the function runs, a walk takes a snapshot of each holder of state, since the function may
change it. Afterwards a second walk, which enters only what was read, chooses the names to guard:
those that are read, and those that are assigned to what they were bound to already.
"""

from __future__ import annotations

import builtins
import collections
import contextvars
import functools
import operator
import re
import sys
import types
import weakref

import numpy as np

from .code import DYNAMIC, READING_MODULES, SETTING, CodeNames, KnownCode, named_cells, names_in
from .holder import (
    BUFFERS,
    MEMBERS,
    MOST_BYTES_COMPARED,
    MOST_COMPARED,
    WHOLE,
    ArrayHolder,
    CellHolder,
    ClassHolder,
    FunctionHolder,
    GlobalsHolder,
    Holder,
    InstanceHolder,
    LibraryHolder,
    ReportingHolder,
    array_of,
)
from .objects import own_dict, referent
from .ownership import (
    is_closed,
    is_internal_module,
    is_observable,
    is_of_library,
    is_value_class,
    reported_when_set,
)
from .snapshot import Snapshots

OPAQUE = (
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    range,
    slice,
    np.generic,
    types.BuiltinFunctionType,
    types.CodeType,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
)
MUTABLE = (dict, list, set, collections.deque, types.MappingProxyType, *ArrayHolder.kinds)
KEPT = (*MUTABLE, tuple, frozenset, type, types.FunctionType, functools.partial)
# what a class may wrap a function in
WRAPPERS = (staticmethod, classmethod, property, functools.cached_property)

MOST_MET = 20_000  # a walk ends after so many objects
MOST_KEYS = 8  # so far inside of containers elements have names of their own

ALL = object()  # in the place of names: all contents of a holder, in their order


class Walk:
    """A walk from values, each with the name by which it was reached, to all state behind them.

    `wanted`: by the key of a holder the names in it that code reads, or ALL; `leaves`: by id the
    leaves that it has met; `kinds`: holders of functions with their code, and of instances with
    their class; `skipped`: containers that are too large to compare, with their names.
    """

    def __init__(self, snapshots: Snapshots, root, is_after=False, unseen=(), code=None):
        """root: the compiled function, or None where it is no Python function; is_after: whether
        only attributes that were read are entered; unseen: code objects whose reads do not count;
        code: that of an earlier walk, all of it, by which only items that are read count.
        """
        self.snapshots, self.root, self.is_after = snapshots, root, is_after
        self.knows_items, self.code = code is not None, code or KnownCode(unseen)
        self.known_leaves = snapshots.leaves
        self.opaque = (*OPAQUE, snapshots.leaves.kind, *snapshots.leaves.opaque)
        self.seen: set[tuple] = set()
        self.kept: list = []
        # classes, modules and functions: the names in the code say what it reads of them
        self.named: list[tuple[Holder, dict]] = []
        self.leaves: dict[int, object] = {}
        self.kinds: list[tuple[Holder, str, object]] = []
        self.wanted: dict[int, tuple[Holder, set]] = {}
        self.skipped: dict[str, str] = {}

    def walk(self, *roots):
        stack = list(roots)
        while stack and len(self.seen) < MOST_MET:
            name, value = stack.pop()
            value = referent(value)
            if isinstance(value, self.known_leaves.kind):
                self.leaves[id(value)] = value
                stack.extend(self.of_leaf(name, value))
            elif not self.is_opaque(value) and self.is_new(name, value):
                self.snapshots.on_met(value)
                stack.extend(self.contents(name, value))
            # names that were found late may be those of objects that were found early
            stack = stack or self.named_values()

    def is_unmet(self, name, value) -> bool:
        """Whether the walk has yet to enter a value."""
        if isinstance(value, self.known_leaves.kind):
            return id(value) not in self.leaves
        return not self.is_opaque(value) and _key(name, value) not in self.seen

    def is_opaque(self, value) -> bool:
        """Whether a value has no state. Numbers and strings of the user's classes have state."""
        kind = type(value)
        return isinstance(value, self.opaque) and (not kind.__dictoffset__ or is_closed(kind))

    def is_new(self, name, value) -> bool:
        key = _key(name, value)
        if key in self.seen:
            return False
        self.seen.add(key)
        # while it is kept its id is not used again; instances that the function creates must be
        # free to go
        if isinstance(value, KEPT) or is_value_class(type(value)):
            self.kept.append(value)
        return True

    def want(self, holder, names):
        _, known = self.wanted.setdefault(id(holder), (holder, set()))
        known.update((ALL,) if names is ALL else names)

    def named_values(self) -> list:
        """The values that classes and modules hold under names in the code."""
        values = []
        for holder, before in self.named:
            # what was set to what it was must be that; all names of the code are many more
            bound = before.keys()
            names = bound & self.code.names | (bound & self.code.stored_names) - holder.changed
            is_of_library = isinstance(holder, LibraryHolder)
            # what a library changes by itself is not the user's
            by_itself = set_by(type(holder.reference())) if is_of_library else frozenset()
            is_instance = isinstance(holder, InstanceHolder) and not is_of_library
            absent = self.code.names if is_instance else self.code.maybe_absent
            absent = (absent | self.code.deleted_names) - bound
            if is_of_library:
                stored = self.code.names if self.code.names_any(SETTING) else self.code.stored_names
                holder.stored |= stored - by_itself
                if self.is_after:  # made at their first use, which was inside
                    contents = holder.current()
                    late = contents.keys() & self.code.names - bound - holder.stored
                    holder.before = before = before | {name: contents[name] for name in late}
                    names |= late
                absent -= own_dict(holder.reference()).keys()  # it has more than it shows
            if isinstance(holder, ClassHolder):
                absent = absent | hidden_by_own(holder.reference()) & self.code.names
            reading = READING_MODULES if isinstance(holder, GlobalsHolder) else DYNAMIC
            is_any = is_instance or isinstance(holder, GlobalsHolder)
            if is_any and self.code.names_any(reading):
                self.want(holder, ALL)
            elif names or absent:
                self.want(holder, [*names, *absent])
            for name in names - by_itself:
                value = before[name]
                values += [(name, part) for part in wrapped_functions(value) or (value,)]
        return [(name, value) for name, value in values if self.is_unmet(name, value)]


def _key(name, value) -> tuple:
    # what the code reads of a container depends on the name by which it reaches it
    is_container = isinstance(value, (*MUTABLE, tuple, frozenset))
    return id(value), type(value), name if is_container else None


# called when an object is created, shown or compared as a key, not by what reads its state
_NO_CALLS = ("__repr__", "__str__", "__hash__", "__del__", "__init_subclass__")
# the methods by which the library calls what users may put in their place
_CALLED = {"forward", "step", "__call__"}
# the attributes of a module with submodules and hooks
_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


def elements(name, pairs) -> list:
    """The elements of a container, named after it by a name that no variable has. Deeply nested
    elements share one name, since a container may contain itself.
    """
    if name.count("[") > MOST_KEYS:
        return [(name.removesuffix("[*]") + "[*]", element) for _, element in pairs]
    return [
        (f"{name}[{key!r}]" if isinstance(key, str | int) else f"{name}[]", element)
        for key, element in pairs
    ]


_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)


def functions_held(attributes: dict) -> list:
    """The functions in the attributes of a library's object, and in lists and dicts there, which
    the library calls, and the memory that the object shows.
    """
    functions = []
    for name, value in attributes.items():
        are_many = isinstance(value, list | tuple | dict) and len(value) <= MOST_COMPARED
        items = (value.values() if isinstance(value, dict) else value) if are_many else (value,)
        functions += [(name, item) for item in items if isinstance(item, (*_FUNCTIONS, *BUFFERS))]
    return functions


class StateWalk(Walk):
    """A walk over all state: what is behind a value of each kind."""

    def contents(self, name, value):
        if isinstance(value, types.FunctionType):
            return self.of_function(value)
        if isinstance(value, types.MethodType):
            return (name, value.__self__), (name, value.__func__)
        if isinstance(value, functools.partial):
            attributes = self.snapshots.take(vars(value), name)
            self.named.append((attributes, attributes.before))
            return [(name, value.func), (f"{name}.args", (*value.args, value.keywords))]
        if isinstance(value, WRAPPERS):
            functions = [(name, function) for function in wrapped_functions(value)]
            return functions + self.of_object(name, value)
        if isinstance(value, types.ModuleType):
            return self.of_module(value)
        if isinstance(value, type):
            return self.of_class(name, value)
        if isinstance(value, weakref.ref):
            return [(name, value()), *self.of_object(name, value)]
        if isinstance(value, contextvars.ContextVar) and value.name[:8] != "jaxgrad.":
            holder = self.snapshots.take(value, value.name)
            self.want(holder, [value.name])
            return holder.before.items()
        if isinstance(value, operator.attrgetter | operator.methodcaller):
            self.code.names.update(re.findall(r"\w+", repr(value)))
            return ()
        if isinstance(value, tuple | frozenset) and type(value).__module__ == "builtins":
            return elements(name, enumerate(value))
        return self.of_object(name, value)

    def of_object(self, name, value):
        if isinstance(value, BUFFERS):
            return self.of_container(name, value)
        contents = []
        if is_closed(type(value)):
            contents += self.of_closed(name, value)
        if isinstance(value, MUTABLE) and not is_closed(type(value), but=("builtins", "numpy")):
            contents += self.of_container(name, value)
        if isinstance(value, tuple):
            contents += elements(name, enumerate(value))
        if not is_closed(type(value)):
            contents += self.of_instance(name, value)
        return contents

    def of_leaf(self, name, value):
        """The functions that a leaf calls, its class where it is the user's, and its attributes."""
        kind, functions = type(value), self.known_leaves.functions(value)
        is_plain = kind is self.known_leaves.kind and not own_dict(value)
        if (is_plain and not functions) or not self.is_new(name, value):
            return ()
        contents = [(f"a hook of {name}", function) for function in functions]
        if not is_plain:
            holder = self.snapshots.take(value, name, self.known_leaves.holder)
            self.want(holder, holder.names)
            contents += holder.before.items()
        return contents if is_closed(kind) else [*contents, (kind.__name__, kind)]

    def of_closed(self, name, value):
        """The functions of a compiled function, the submodules and hooks of a module, and the
        functions of the user's that another object of the library calls, such as hooks of an
        optimizer.
        """
        attributes = own_dict(value)
        if type(value).__dictoffset__ and not hasattr(type(value), "_reported"):
            self.take_of_library(name, value)
        if "__wrapped__" in attributes:
            return [(name, attributes["__wrapped__"])]
        if hasattr(type(value), "_reported"):
            self.snapshots.take(value, name, ReportingHolder)
            self.take_members(value, name, attributes)
        for group in ("_parameters", "_buffers"):
            self.snapshots.members.update(map(id, attributes.get(group, {}).values()))
        held = [*self.members(attributes), *functions_held(attributes)]
        return [*held, (type(value).__name__, type(value))]

    def of_container(self, name, value):
        is_array = isinstance(value, ArrayHolder.kinds)
        size = array_of(value).nbytes if is_array else len(value)
        if size > (MOST_BYTES_COMPARED if is_array else MOST_COMPARED):
            self.skipped[name] = f"{array_of(value).size if is_array else size} elements"
            return ()
        holder = self.snapshots.take(value, name)
        before, keys = holder.before, self.keys_of(name, value)
        if keys is not None:
            keys |= self.stored_items(name, holder)
            before = {key: before[key] for key in keys if key in before}
        if keys is None or keys:
            self.want(holder, ALL if keys is None else keys)
        if is_array:
            holds_objects = isinstance(value, np.ndarray) and value.dtype.hasobject
            return elements(name, enumerate(value.flat)) if holds_objects else ()
        return elements(name, before.items())

    def keys_of(self, name, value) -> frozenset | None:
        """The constant keys by which alone the code reads a dict; none if it only assigns items or
        appends to a list; None if it may read anything.
        """
        if not self.knows_items or self.code.names_any(DYNAMIC) or isinstance(value, set):
            return None
        # each call repeats a change of the order, or of an array, by writing all elements anew
        is_array = isinstance(value, ArrayHolder.kinds)
        if is_array or WHOLE in self.snapshots.take(value, name).changed:
            return None
        # where elements are dropped, what is left depends on those that were there
        if isinstance(value, collections.deque) and value.maxlen is not None:
            return None
        keys = self.code.keys_of(name)
        return keys if isinstance(value, dict) or not keys else None

    def stored_items(self, name, holder) -> set:
        """The constant keys of items to which the code assigns their present values."""
        stored = self.code.stored_keys.get(name, frozenset())
        if holder.is_sequence:
            size = len(holder.before)
            numbers = [key for key in stored if type(key) is int and -size <= key < size]
            stored = {key % size for key in numbers}
        return (stored & holder.before.keys()) - holder.changed

    def of_instance(self, name, value):
        kind = type(value)
        if is_value_class(kind):
            if kind.__dictoffset__:  # which changes through `vars` alone
                self.snapshots.take(own_dict(value), name)
            return [(kind.__name__, kind), *own_dict(value).items()]
        holder, attributes = self.snapshots.take(value, name, InstanceHolder), own_dict(value)
        self.kinds.append((holder, "__class__", kind))
        contents = self.members(attributes)
        if isinstance(attributes.get("_buffers"), dict):
            self.take_members(value, name, attributes)
            self.snapshots.members.update(map(id, attributes["_parameters"].values()))
        if "__wrapped__" in attributes:
            contents.append((name, attributes["__wrapped__"]))
        if not is_observable(kind):
            self.named.append((holder, holder.before))
        # its special methods are looked up past `__getattribute__`
        contents.append((kind.__name__, kind))
        if not self.is_after:
            hidden = reported_when_set(kind)
            contents += [pair for pair in holder.before.items() if pair[0] not in hidden]
        return contents

    def take_members(self, module, name, attributes: dict):
        """Take snapshots of the members of a module. attributes: of the module."""
        for group, kind in MEMBERS.items():
            if isinstance(attributes.get(group), dict):
                self.snapshots.take(module, name, kind)

    def members(self, attributes: dict) -> list:
        """The submodules and hooks of a module, from its attributes, and its leaves that have
        attributes or hooks; nothing of other objects.
        """
        if not isinstance(attributes.get("_modules"), dict):
            return []
        contents = [*attributes["_modules"].items()]
        groups = (attributes.get(name, {}) for name in ("_parameters", "_buffers"))
        leaves = [item for group in groups for item in group.items()]
        contents += [
            (name, leaf)
            for name, leaf in leaves
            if leaf is not None and (own_dict(leaf) or self.known_leaves.functions(leaf))
        ]
        contents += [(name, hook) for name in _HOOKS for hook in attributes.get(name, {}).values()]
        return contents

    def of_class(self, name, value):
        if not is_observable(value):
            return ()
        if is_closed(value) or is_of_library(value.__module__):
            holder = self.take_of_library(name, value)
            called = _CALLED & set().union(*map(vars, value.__mro__))
            self.kinds += [(holder, method, getattr(value, method)) for method in called]
            return [*users_functions(holder), *[(kind.__name__, kind) for kind in value.__bases__]]
        holder = self.snapshots.take(value, name)
        self.named.append((holder, holder.before))
        # the methods of a Function or a module are called by the library
        derives = any(is_closed(base, but=("builtins",)) for base in value.__mro__)
        methods = [
            (attribute, function)
            for attribute, member in holder.before.items()
            if derives or (attribute[:2] == "__" and attribute not in _NO_CALLS)
            for function in wrapped_functions(member)
        ]
        return [*methods, *[(kind.__name__, kind) for kind in (*value.__bases__, type(value))]]

    def take_of_library(self, name, value) -> LibraryHolder:
        """Take in the attributes that code may have set on an object, a class or a module of a
        library.
        """
        holder = self.snapshots.take(value, name, LibraryHolder)
        self.named.append((holder, holder.before))
        return holder

    def of_module(self, value):
        if is_of_library(value.__name__):
            return users_functions(self.take_of_library(value.__name__, value))
        holder = self.snapshots.take(vars(value), value.__name__, GlobalsHolder)
        self.named.append((holder, holder.before))
        return ()

    # ---- functions

    def of_function(self, function):
        # one that `exec` made may have no module
        is_library = "__name__" in function.__globals__ and is_of_library(function.__module__)
        if is_library and (function is not self.root or _is_public(function)):
            return ()
        code: list[CodeNames] = self.code.learn(function.__code__)
        module = self.snapshots.take(function.__globals__, str(function.__module__), GlobalsHolder)
        stored = set().union(*[names.stored_globals for names in code])
        wanted = set().union(*[names.globals for names in code])
        wanted |= stored & module.before.keys() - module.changed
        wanted |= set().union(*[names.deleted for names in code]) - module.before.keys()
        if "globals" in wanted:
            wanted |= set().union(*[names.strings for names in code]) & module.before.keys()
        self.want(module, wanted)
        contents = [(name, module.before[name]) for name in wanted if name in module.before]
        contents.append(("builtins", builtins))
        imported = set().union(*[names.imports for names in code]) & sys.modules.keys()
        contents += [(name, sys.modules[name]) for name in imported]
        for name, cell in named_cells(function):
            holder = self.snapshots.take(cell, name, CellHolder)
            is_stored = any(name in names.stored_cells for names in code) and not holder.changed
            if is_stored or any(name in names.cells for names in code):
                self.want(holder, [name])
                contents += holder.before.items()
        defaults = self.snapshots.take(function, function.__name__, FunctionHolder)
        self.kinds.append((defaults, "__code__", function.__code__))
        if function.__defaults__ or function.__kwdefaults__:
            self.want(defaults, ["__defaults__", "__kwdefaults__"])
            contents += defaults.before.items()
        # also where it has none: code may ask for one, and set it
        attributes = self.snapshots.take(vars(function), function.__name__)
        self.named.append((attributes, attributes.before))
        contents += [
            (function.__name__, attributes.before[name])
            for name in ("__wrapped__", "registry")  # the second of functools.singledispatch
            if name in attributes.before
        ]
        return contents


def _is_public(function) -> bool:
    """Whether a function is one that jaxgrad offers. It reads no state of users, but for that of
    its arguments. The compiled function itself is entered where another library has it.
    """
    is_internal = is_internal_module(function.__globals__["__name__"])
    is_operator = hasattr(function, "operator")  # a method of one bears no name of its own
    return is_internal and (is_operator or "<locals>" not in function.__qualname__)


def users_functions(holder: LibraryHolder) -> list:
    """The functions of the user's that replace functions of a library."""
    functions = [pair for pair in holder.before.items() if isinstance(pair[1], _FUNCTIONS[0])]
    return [pair for pair in functions if not is_of_library(pair[1].__module__)]


def hidden_by_own(kind: type) -> set[str]:
    """The names that a class inherits from other classes of the user's, and that an attribute of
    the class itself would hide.
    """
    bases = [base for base in kind.__mro__[1:] if not is_closed(base)]
    return set().union(*map(vars, bases)) - vars(kind).keys()


@functools.lru_cache(maxsize=4096)
def set_by(kind: type) -> frozenset:
    """The attributes that the methods of a class assign."""
    members = [member for base in kind.__mro__ for member in vars(base).values()]
    methods = [method.__code__ for member in members for method in wrapped_functions(member)]
    return frozenset().union(*[names_in(code).stored_attributes for code in methods])


def wrapped_functions(member) -> list:
    """The Python functions in a member of a class: a method, or the parts of a property."""
    if isinstance(member, property):
        parts = member.fget, member.fset, member.fdel
    elif isinstance(member, functools.cached_property):
        parts = (member.func,)
    else:
        parts = getattr(member, "__func__", member), getattr(member, "__wrapped__", None)
    return [part for part in parts if isinstance(part, types.FunctionType)]
