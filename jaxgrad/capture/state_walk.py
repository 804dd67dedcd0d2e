"""The walk over the state that a function's code can reach: its variables, the containers and
instances that they hold, and the functions and classes that it calls.

A walk serves twice. Before the function runs, it takes a snapshot of each holder of state, since
the function may change it. Afterwards a second walk, which enters only what was read, chooses the
names to guard: those that are read, and those that are assigned to what they were bound to already.
"""

from __future__ import annotations

import collections
import contextvars
import functools
import operator
import re
import sys
import threading
import types
import weakref

import jax
import numpy as np

from ..tape.object_walk import (
    CLOSED,
    CodeNames,
    codes,
    is_of_library,
    named_cells,
    names_in,
    referent,
)
from ..tape.tensor import Tensor
from ..tape.traced_hooks import hooks_of
from .guards import HEAP_TYPE, is_value_class
from .holders import (
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
    SettingsHolder,
    TensorHolder,
    holder_of,
    own_dict,
)
from .members import take_members

OPAQUE = (
    int, float, complex, str, bytes, type(None), range, slice, Tensor, jax.Array, np.generic,
    types.BuiltinFunctionType, types.CodeType, types.MemberDescriptorType,
    types.GetSetDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType,
)  # fmt: skip
MUTABLE = (
    dict, list, set, collections.deque, types.MappingProxyType, *ArrayHolder.kinds,
)  # fmt: skip
KEPT = (*MUTABLE, tuple, frozenset, type, types.FunctionType, functools.partial)
# what a class may wrap a function in
WRAPPERS = (staticmethod, classmethod, property, functools.cached_property)

# a walk ends after so many objects
MOST_MET = 20_000

ALL = object()  # in the place of names: all contents of a holder, in their order


class Snapshots:
    """The holders of state that a trace has met, with their contents before, and in `members` the
    ids of the parameters of modules, and of the buffers of jaxgrad's own.
    """

    def __init__(self, on_new=lambda holder, target: None):
        """on_new: called with each new holder."""
        self.holders: dict[tuple, Holder] = {}
        self.members: set[int] = set()
        self.on_new = on_new

    def get(self, target, kind=None) -> Holder | None:
        found = self.holders.get((id(target), kind))
        # the id of an instance that is gone is used again
        return found if found is not None and found.reference() is target else None

    def take(self, target, name, kind=None) -> Holder:
        found = self.get(target, kind)
        if found is None:
            found = (kind or holder_of)(target, name)
            self.holders[id(target), kind] = found
            self.on_new(found, target)
        return found


class StateWalk:
    """A walk from values, each with the name by which it was reached, to all state behind them.

    `wanted`: by the key of a holder the names of it that code reads, or ALL; `tensors`: by id those
    that it has met; `kinds`: holders of functions with their code, and of instances with their
    class, since a reload of a module changes both; `skipped`: containers that are too large to
    compare, with their names.
    """

    def __init__(self, snapshots: Snapshots, root, is_after=False, unseen=(), learned=None):
        """root: the compiled function, or None where it is no Python function; is_after: whether
        only attributes that were read are entered; unseen: code objects whose reads do not count;
        learned: an earlier walk that knows all the code, by which only items that are read count.
        """
        self.snapshots, self.root, self.is_after = snapshots, root, is_after
        self.learned = learned
        self.unseen = frozenset(unseen)
        self.seen: set[tuple] = set()
        self.kept: list = []
        self.names: set[str] = set() if learned is None else learned.names
        self.stored_names: set[str] = set() if learned is None else learned.stored_names
        # where modules and classes lack these, the code goes on
        self.maybe_absent: set[str] = set() if learned is None else learned.maybe_absent
        self.keys: dict[str, frozenset | None] = {} if learned is None else learned.keys
        self.stored_keys: dict[str, frozenset] = {} if learned is None else learned.stored_keys
        # classes, modules and functions: the names in the code say what it reads of them
        self.named: list[tuple[Holder, dict]] = []
        self.tensors: dict[int, Tensor] = {}
        self.kinds: list[tuple[Holder, str, object]] = []
        self.wanted: dict[int, tuple[Holder, set]] = {}
        self.skipped: dict[str, str] = {}

    def walk(self, *roots):
        stack = list(roots)
        while stack and len(self.seen) < MOST_MET:
            name, value = stack.pop()
            value = referent(value)
            if isinstance(value, Tensor):
                self.tensors[id(value)] = value
                stack.extend(self.of_tensor(name, value))
            elif not isinstance(value, OPAQUE) and self.is_new(name, value):
                stack.extend(self.contents(name, value))
            # names that were found late may be those of objects that were found early
            stack = stack or self.named_values()

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

    # ---- what is behind a value

    def contents(self, name, value):
        if isinstance(value, types.FunctionType):
            return self.of_function(value)
        if isinstance(value, types.MethodType):
            return (name, value.__self__), (name, value.__func__)
        if isinstance(value, functools.partial):
            return [(name, value.func), (f"{name}.args", (*value.args, value.keywords))]
        if isinstance(value, WRAPPERS):
            return [(name, function) for function in wrapped_functions(value)]
        if isinstance(value, types.ModuleType):
            return () if is_of_library(value.__name__) else self.of_module(value)
        if isinstance(value, type):
            return self.of_class(name, value)
        if isinstance(value, weakref.ref):
            return [(name, value())]
        if isinstance(value, contextvars.ContextVar):
            holder = self.snapshots.take(value, value.name)
            self.want(holder, [value.name])
            return holder.before.items()
        if isinstance(value, operator.attrgetter | operator.methodcaller):
            self.names.update(re.findall(r"\w+", repr(value)))
            return ()
        if isinstance(value, tuple | frozenset) and type(value).__module__ == "builtins":
            return elements(name, enumerate(value))
        return self.of_object(name, value)

    def of_object(self, name, value):
        found = []
        if is_closed(type(value)):
            found += self.of_closed(name, value)
        if isinstance(value, MUTABLE) and not is_closed(type(value), but=("builtins", "numpy")):
            found += self.of_container(name, value)
        if isinstance(value, tuple):
            found += elements(name, enumerate(value))
        if not is_closed(type(value)):
            found += self.of_instance(name, value)
        return found

    def of_tensor(self, name, value):
        """The hooks of a tensor, its class, where it is the user's, and the attributes that users
        have set on it: all of them count as read.
        """
        kind, hooks = type(value), hooks_of(value)
        if (kind is Tensor and not own_dict(value) and not hooks) or not self.is_new(name, value):
            return ()
        found = [(f"a hook of {name}", hook) for hook in hooks]
        if kind is not Tensor or own_dict(value):
            holder = self.snapshots.take(value, name, TensorHolder)
            self.want(holder, holder.names)
            found += holder.before.items()
        return found if is_closed(kind) else [*found, (kind.__name__, kind)]

    def of_closed(self, name, value):
        """The functions of a compiled one, the submodules and hooks of a module, and the functions
        of the user's that another object of the library calls, such as hooks of an optimizer.
        """
        own = own_dict(value)
        if "__wrapped__" in own:
            return [(name, own["__wrapped__"])]
        if hasattr(type(value), "_reported"):
            self.snapshots.take(value, name, SettingsHolder)
            take_members(self.snapshots, value, name, own)
        for group in ("_parameters", "_buffers"):
            self.snapshots.members.update(map(id, own.get(group, {}).values()))
        return members(own) or functions_held(own)

    def of_container(self, name, value):
        is_array = isinstance(value, np.ndarray)
        size = value.size if is_array else len(value)
        if size > MOST_COMPARED and (not is_array or value.nbytes > MOST_BYTES_COMPARED):
            self.skipped[name] = f"{size} elements"
            return ()
        holder = self.snapshots.take(value, name)
        before, keys = holder.before, self.keys_of(name, value)
        if keys is not None:
            keys |= self.stored_items(name, holder)
            before = {key: before[key] for key in keys if key in before}
        if keys is None or keys:
            self.want(holder, ALL if keys is None else keys)
        if isinstance(value, ArrayHolder.kinds):
            holds_objects = is_array and value.dtype.hasobject
            return elements(name, enumerate(value.flat)) if holds_objects else ()
        return elements(name, before.items())

    def keys_of(self, name, value) -> frozenset | None:
        """The constant keys by which alone the code reads a dict; none where it only assigns items
        or appends to a list; None where it may read anything.
        """
        if self.learned is None or self.names & _DYNAMIC or isinstance(value, set):
            return None
        # each call repeats a change of the order by writing all elements anew
        if WHOLE in self.snapshots.take(value, name).changed:
            return None
        # an item is read by these keys alone if the code gets at it by its own key alone
        around = [name[:end] for end, letter in enumerate(name) if letter == "["]
        if any(self.keys.get(each) is None for each in around):
            return None
        # where elements are dropped, what is left depends on those that were there
        if isinstance(value, collections.deque) and value.maxlen is not None:
            return None
        keys = self.keys.get(name)
        return keys if isinstance(value, dict) or not keys else None

    def stored_items(self, name, holder) -> set:
        """The constant keys of items that the code sets to what they were."""
        stored = self.stored_keys.get(name, frozenset())
        if holder.is_sequence:
            size = len(holder.before)
            numbers = [key for key in stored if type(key) is int and -size <= key < size]
            stored = {key % size for key in numbers}
        return (stored & holder.before.keys()) - holder.changed

    def of_instance(self, name, value):
        kind = type(value)
        if is_value_class(kind):
            # its attributes never change, but they may hold what does
            return [(kind.__name__, kind), *own_dict(value).items()]
        holder, own = self.snapshots.take(value, name, InstanceHolder), own_dict(value)
        self.kinds.append((holder, "__class__", kind))
        found = members(own)
        if isinstance(own.get("_buffers"), dict):
            take_members(self.snapshots, value, name, own)
            self.snapshots.members.update(map(id, own["_parameters"].values()))
        if "__wrapped__" in own:
            found.append((name, own["__wrapped__"]))
        if not is_observable(kind):
            self.named.append((holder, holder.before))
        # its special methods are looked up past `__getattribute__`
        found.append((kind.__name__, kind))
        if not self.is_after:
            hidden = reported_when_set(kind)
            found += [each for each in holder.before.items() if each[0] not in hidden]
        return found

    def of_class(self, name, value):
        if is_closed(value) or is_of_library(value.__module__):
            return ()
        holder = self.snapshots.take(value, name)
        self.named.append((holder, holder.before))
        # the methods of a Function or a module are called by the library
        derives = any(is_closed(base, but=("builtins",)) for base in value.__mro__)
        methods = [
            (each, function)
            for each, member in holder.before.items()
            if derives or (each[:2] == "__" and each not in _NO_CALLS)
            for function in wrapped_functions(member)
        ]
        return [*methods, *[(each.__name__, each) for each in (*value.__bases__, type(value))]]

    def of_module(self, value):
        holder = self.snapshots.take(vars(value), value.__name__, GlobalsHolder)
        self.named.append((holder, holder.before))
        return ()

    # ---- functions

    def of_function(self, function):
        # the compiled function itself is entered even where it is part of an installed library
        # one that `exec` made may have no module
        is_library = "__name__" in function.__globals__ and is_of_library(function.__module__)
        if function is not self.root and is_library:
            return ()
        code = self.learn(function.__code__)
        module = self.snapshots.take(function.__globals__, str(function.__module__), GlobalsHolder)
        stored = set().union(*[each.stored_globals for each in code])
        wanted = set().union(*[each.globals for each in code])
        wanted |= stored & module.before.keys() - module.changed
        if "globals" in wanted:
            wanted |= set().union(*[each.strings for each in code]) & module.before.keys()
        self.want(module, wanted)
        found = [(each, module.before[each]) for each in wanted if each in module.before]
        imported = set().union(*[each.imports for each in code]) & sys.modules.keys()
        found += [(each, sys.modules[each]) for each in imported]
        for name, cell in named_cells(function):
            holder = self.snapshots.take(cell, name, CellHolder)
            is_stored = any(name in each.stored_cells for each in code) and not holder.changed
            if is_stored or any(name in each.cells for each in code):
                self.want(holder, [name])
                found += holder.before.items()
        defaults = self.snapshots.take(function, function.__name__, FunctionHolder)
        self.kinds.append((defaults, "__code__", function.__code__))
        if function.__defaults__ or function.__kwdefaults__:
            self.want(defaults, ["__defaults__", "__kwdefaults__"])
            found += defaults.before.items()
        if vars(function) or self.stored_names:
            attributes = self.snapshots.take(vars(function), function.__name__)
            self.named.append((attributes, attributes.before))
            found += [
                (function.__name__, attributes.before[each])
                for each in ("__wrapped__", "registry")  # the second of functools.singledispatch
                if each in attributes.before
            ]
        return found

    def learn(self, code) -> list[CodeNames]:
        """Collect the names in the code of a function; gives them."""
        all_code = list(codes(code, self.unseen))
        learned = [names_in(each) for each in all_code]
        for code, found in zip(all_code, learned, strict=True):
            self.names |= found.attributes | found.strings | found.globals | found.cells
            self.maybe_absent |= _maybe_absent(found, code)
            self.stored_names |= found.stored_attributes
            self.keys.update(dict.fromkeys(found.strings))
            for name, keys in found.keys.items():
                known = self.keys.get(name, frozenset())
                self.keys[name] = None if keys is None or known is None else known | keys
            for name, keys in found.stored_keys.items():
                self.stored_keys[name] = self.stored_keys.get(name, frozenset()) | keys
        return learned

    def named_values(self) -> list:
        """The values of what classes and modules hold under names in the code."""
        found = []
        for holder, before in self.named:
            # what was set to what it was must be that; all names of the code are many more
            bound = before.keys()
            names = bound & self.names | (bound & self.stored_names) - holder.changed
            is_instance = isinstance(holder, InstanceHolder)
            absent = (self.names if is_instance else self.maybe_absent) - before.keys()
            if isinstance(holder, ClassHolder):
                absent |= self.names & _inherited(holder.reference()) - before.keys()
            if is_instance and self.names & _DYNAMIC:
                self.want(holder, ALL)
            elif names or absent:
                self.want(holder, [*names, *absent])
            for name in names:
                value = before[name]
                found += [(name, each) for each in wrapped_functions(value) or (value,)]
                if isinstance(value, Tensor):
                    self.tensors[id(value)] = value
        return [
            (name, value)
            for name, value in found
            if not isinstance(value, OPAQUE) and _key(name, value) not in self.seen
        ]


def _inherited(kind) -> set[str]:
    """The names that a class has from bases of the user's: one of its own would hide them."""
    bases = [base for base in kind.__mro__[1:] if not is_closed(base)] if kind else []
    return set().union(*map(vars, bases))


def _maybe_absent(names: CodeNames, code) -> set[str]:
    """The names that code reads of an object which may lack them."""
    asked = names.strings if names.globals & _ASKING else frozenset()
    tried = names.attributes if code.co_exceptiontable else frozenset()
    return {name for name in asked | tried if name.isidentifier()}


def _key(name, value) -> tuple:
    # what the code reads of a container depends on the name by which it reaches it
    return id(value), type(value), name if isinstance(value, MUTABLE) else None


# code that names one of these may read any attribute or variable
_DYNAMIC = frozenset(["getattr", "attrgetter", "vars", "__dict__", "globals", "locals"])
_ASKING = frozenset(["getattr", "hasattr", "vars"])
# called when an object is created, shown or compared as a key, not by what reads its state
_NO_CALLS = ("__repr__", "__str__", "__hash__", "__del__", "__init_subclass__")
# the attributes of a module with submodules and hooks
_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


def elements(name, pairs) -> list:
    """The elements of a container, named after it: no variable in the code has such a name."""
    return [
        (f"{name}[{key!r}]" if isinstance(key, str | int) else f"{name}[]", each)
        for key, each in pairs
    ]


def members(own: dict) -> list:
    """The submodules and hooks of a module, from its attributes, and its tensors that have
    attributes or hooks; nothing of other objects.
    """
    if not isinstance(own.get("_modules"), dict):
        return []
    found = [*own["_modules"].items()]
    tensors = [*own.get("_parameters", {}).items(), *own.get("_buffers", {}).items()]
    found += [
        (name, tensor)
        for name, tensor in tensors
        if tensor is not None and (own_dict(tensor) or hooks_of(tensor))
    ]
    found += [(name, hook) for name in _HOOKS for hook in own.get(name, {}).values()]
    return found


_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)


def functions_held(own: dict) -> list:
    """The functions in the attributes of an object of the library, and in lists and dicts there:
    its own code calls them.
    """
    found = []
    for name, value in own.items():
        if isinstance(value, list | tuple | dict) and len(value) <= MOST_COMPARED:
            items = value.values() if isinstance(value, dict) else value
            found += [(name, item) for item in items if isinstance(item, _FUNCTIONS)]
        elif isinstance(value, _FUNCTIONS):
            found.append((name, value))
    return found


def wrapped_functions(member) -> list:
    """The Python functions in a member of a class: a method, or the parts of a property."""
    if isinstance(member, property):
        found = member.fget, member.fset, member.fdel
    elif isinstance(member, functools.cached_property):
        found = (member.func,)
    else:
        found = getattr(member, "__func__", member), getattr(member, "__wrapped__", None)
    return [each for each in found if isinstance(each, types.FunctionType)]


def is_closed(kind: type, but=()) -> bool:
    """Whether a class belongs to Python, NumPy, JAX or jaxgrad: its instances are not observed.

    Locks, queues and files are among them, whose state other threads change during a trace.
    """
    root = kind.__module__.partition(".")[0]
    is_python = root in sys.stdlib_module_names and root not in _DATA
    return (root in CLOSED or is_python) and root not in but and kind is not threading.local


# modules of Python whose instances hold the user's data, and the user's own script
_DATA = frozenset(
    ["__main__", "_weakrefset", "argparse", "array", "collections", "types", "weakref"]
)


def reported(kind: type):
    """The attributes whose reads a class reports by itself (capture/object_state.py)."""
    return getattr(kind, "_reported", ())


def reported_when_set(kind: type):
    """The attributes that a class reports by itself when they are set."""
    return getattr(kind, "_reported_when_set", reported(kind))


def is_observable(kind: type) -> bool:
    """Whether reads of the attributes of instances can be observed: not of classes in C."""
    return bool(kind.__flags__ & HEAP_TYPE) and not kind.__flags__ & _IMMUTABLE_TYPE


_IMMUTABLE_TYPE = 1 << 8
