"""Holders: the Python objects whose contents a traced function may read and change.

A holder is an instance, a class, a dict, a list, a set, a NumPy array, a closure variable, or the
globals of a function. Capture takes a snapshot of each that the function reaches, guards on what it
reads (capture/observation.py), and replays what it changes after each call. Verification puts back
what a run changes, and compares it with what another run changes (capture/saved_state.py).
"""

from __future__ import annotations

import array
import functools
import itertools
import operator
import threading
import types
import weakref
from collections import deque
from collections.abc import Sequence
from contextvars import ContextVar

import numpy as np

from ..tape import object_walk
from ..tape.object_walk import UNSET, dict_class, named_cells, own_items, slot_values, slots_of
from ..tape.tensor import Tensor
from .guards import AttributeValue, Guard, is_same_plain_value, show_change

# a larger container or array is not compared at each call: the user is warned
MOST_COMPARED, MOST_BYTES_COMPARED = 10_000, 2**22


class Holder:
    """An object with state, and its contents before the function ran.

    `name`: the variable, attribute or item by which the function reached it first; `before`: what
    its names were bound to; `read`: the names that it has read, or `reads_all`; `written`: those of
    attributes it has set; `changed`: those it has bound to others or `removed`; `rebound`: anew.
    """

    is_sequence, is_ordered = False, False  # whether the names are numbers, and keep their order
    suffix = ".{}"  # what leads from the object to what a name is bound to, in code

    def __init__(self, target, name: str):
        self.name, self.reference = name, reference_to(target)
        self.before, self.read, self.rebound = self.contents(target), set(), set()
        self.written: set = set()
        self.changed: set = set()
        self.removed, self.reads_all = set(), False

    # ---- what each kind of holder defines

    @staticmethod
    def mapping(target):
        """The contents in a form that `[name]` reads."""
        return target

    def contents(self, target) -> dict:
        """By name what is held."""
        return dict(self.mapping(target))

    def bind(self, target, name, value):
        self.mapping(target)[name] = value

    def unbind(self, target, name):
        del self.mapping(target)[name]

    def difference(self, old: dict, new: dict) -> tuple[dict, list]:
        """What makes new contents of old ones: the names to bind, with their values, after those to
        remove.
        """
        bound = {n: value for n, value in new.items() if old.get(n, UNSET) is not value}
        removed = [name for name in old if name not in new]
        if not self.is_ordered or all(map(operator.is_, old, new)):
            return bound, removed
        # names that were removed and bound again come last
        rest = iter(old)
        late = itertools.dropwhile(lambda name: any(name is each for each in rest), new)
        last = {name: new[name] for name in late}
        bound = {name: value for name, value in bound.items() if name not in last} | last
        return bound, removed + [name for name in last if name in old]

    # ---- what is common to them

    def path(self, name) -> str:
        """How code gets at what a name is bound to."""
        return f"{self.name}{self.suffix.format(name)}".removeprefix(".")

    def now(self) -> dict:
        """The contents of now; nothing where the object is gone."""
        target = self.reference()
        return {} if target is None else self.contents(target)

    def value(self, name):
        """What a name is bound to now; UNSET where it is not."""
        return self.now().get(name, UNSET)

    def changes(self, before=None) -> tuple[dict, list]:
        """The names that were bound since, with their values, and those that were removed.
        before: what they were bound to, if it is not `self.before`.
        """
        target = self.reference()
        if target is None:
            return {}, []
        return self.difference(self.before if before is None else before, self.contents(target))

    def put(self, target, bound: dict, removed):
        """Bind names, and remove others."""
        for name in removed:
            if name in self.contents(target):
                self.unbind(target, name)
        for name, value in bound.items():
            self.bind(target, name, value)

    def restore(self, besides=()):
        """Bind all names but `besides` to what they were bound to before."""
        target = self.reference()
        if target is not None:
            bound, removed = self.difference(self.contents(target), self.before)
            bound = {name: value for name, value in bound.items() if name not in besides}
            removed = [name for name in removed if name not in besides]
            if bound or removed:
                self.put(target, bound, removed)

    def guard(self) -> Guard:
        """A guard on all contents."""
        return StateGuard(self)


class InstanceHolder(Holder):
    """The attributes of an instance, slots included."""

    def __init__(self, target, name):
        self.slots = slots_of(type(target))
        self.is_ordered = not self.slots
        if self.slots:
            self.mapping = functools.partial(_attributes, self.slots)
        super().__init__(target, name)

    @staticmethod
    def mapping(target):
        return own_dict(target)

    def contents(self, target):
        return _attributes(self.slots, target)

    def bind(self, target, name, value):
        # past `__setattr__`, which may compute, refuse or count
        if name in self.slots:
            self.slots[name].__set__(target, value)
        else:
            own_dict(target)[name] = value

    def unbind(self, target, name):
        if name in self.slots:
            self.slots[name].__delete__(target)
        else:
            del own_dict(target)[name]


def _attributes(slots, target) -> dict:
    # the snapshot must not count as a read
    return {**slot_values(target, slots), **own_dict(target)}


class TensorHolder(InstanceHolder):
    """The attributes that users set on a tensor."""

    def __init__(self, target, name):
        self.slots, self.is_ordered = {}, True
        Holder.__init__(self, target, name)
        # an attribute of a user's class is seen until the tensor gets its own
        kinds = type(target).__mro__
        classes = kinds[: kinds.index(Tensor)]
        self.names = self.before.keys() | {name for kind in classes for name in vars(kind)}


class SettingsHolder(InstanceHolder):
    """The attributes of a module, an optimizer or a scheduler of jaxgrad, which reads them itself:
    the reads of other code are observed.
    """


class MemberHolder(Holder):
    """The buffers of a module."""

    @staticmethod
    def mapping(target):
        return own_dict(target)["_buffers"]


class ClassHolder(Holder):
    """The attributes of a class."""

    @staticmethod
    def mapping(target):
        return vars(target)

    def contents(self, target):
        # without the hook of an observation, and what Python adds by itself
        return {n: value for n, value in vars(target).items() if n not in _ADDED}

    def bind(self, target, name, value):
        type.__setattr__(target, name, value)

    def unbind(self, target, name):
        type.__delattr__(target, name)


_ADDED = (
    "__getattribute__", "__setattr__", "__dict__", "__weakref__", "__doc__", "__annotations__",
)  # fmt: skip


class DictHolder(Holder):
    """The items of a dict."""

    is_ordered, suffix = True, "[{!r}]"

    # past what subclasses do when an item is read or set; an OrderedDict keeps its order elsewhere
    mapping = staticmethod(own_items)

    def bind(self, target, name, value):
        dict_class(target).__setitem__(target, name, value)

    def unbind(self, target, name):
        dict_class(target).__delitem__(target, name)


class ProxyHolder(DictHolder):
    """The items of a dict, through a view that cannot change them."""

    mapping = staticmethod(Holder.mapping)

    def put(self, target, bound, removed):
        pass  # what changed the dict itself is recorded there


class GlobalsHolder(DictHolder):
    """The globals of a module."""

    suffix = ".{}"

    def contents(self, target):
        # without what Python adds where it warns
        return {n: value for n, value in target.items() if n != "__warningregistry__"}


class SequenceHolder(Holder):
    """The elements of a list or a deque."""

    is_sequence = True
    suffix = "[{}]"

    def contents(self, target):
        return dict(enumerate(target))

    def difference(self, old, new):
        # elements that were only added are added again to whatever a later call finds
        if len(new) >= len(old) and all(map(operator.is_, old.values(), new.values())):
            return dict(itertools.islice(new.items(), len(old), None)), []
        return new, [WHOLE]

    def bind(self, target, name, value):
        if name < len(target):
            target[name] = value
        else:
            target.append(value)

    def put(self, target, bound, removed):
        if removed:
            target.clear()
        target.extend(bound.values())


WHOLE = object()


class SetHolder(Holder):
    """The elements of a set, each by itself."""

    suffix = "[{!r}]"

    def contents(self, target):
        return {each: each for each in target}

    def difference(self, old, new):
        return {n: n for n in new if n not in old}, [name for name in old if name not in new]

    def bind(self, target, name, value):
        target.add(value)

    def unbind(self, target, name):
        target.discard(name)

    def guard(self):
        return ContentGuard(self, set(self.before), operator.eq)


class ArrayHolder(Holder):
    """The elements of a NumPy array or an `array.array`, or the bytes of a bytearray."""

    kinds = np.ndarray, bytearray, array.array
    suffix = ""

    def contents(self, target):
        return {None: target[:] if isinstance(target, array.array) else target.copy()}

    def difference(self, old, new):
        return ({}, []) if _bytes(old[None]) == _bytes(new[None]) else (new, [])

    def bind(self, target, name, value):
        if not isinstance(target, np.ndarray):
            target[:] = value
        elif target.flags.writeable:  # else it changes with the array that owns the memory
            target[...] = value

    def guard(self):
        known = _bytes(self.before[None])
        return ContentGuard(self, known, lambda target, known: _bytes(target) == known)


def _bytes(target) -> bytes:
    return bytes(target) if isinstance(target, bytearray) else target.tobytes()


class CellHolder(Holder):
    """A closure variable, by its name."""

    suffix = ""

    def contents(self, target):
        try:
            return {self.name: target.cell_contents}
        except ValueError:
            return {}

    mapping = contents

    def bind(self, target, name, value):
        target.cell_contents = value

    def unbind(self, target, name):
        del target.cell_contents


class ContextHolder(Holder):
    """A `contextvars.ContextVar`, by its name."""

    suffix = ""

    def contents(self, target):
        value = target.get(UNSET)
        return {} if value is UNSET else {target.name: value}

    mapping = contents

    def bind(self, target, name, value):
        target.set(value)

    def unbind(self, target, name):
        pass  # once it is set it cannot be unset


class FunctionHolder(Holder):
    """The defaults of a function."""

    def contents(self, target):
        return {"__defaults__": target.__defaults__, "__kwdefaults__": target.__kwdefaults__}

    mapping = contents

    def bind(self, target, name, value):
        setattr(target, name, value)


KINDS = (
    (Tensor, TensorHolder),
    (dict, DictHolder),
    (types.MappingProxyType, ProxyHolder),
    (ContextVar, ContextHolder),
    (list, SequenceHolder),
    (deque, SequenceHolder),
    (set, SetHolder),
    (ArrayHolder.kinds, ArrayHolder),
    (types.CellType, CellHolder),
    (types.FunctionType, FunctionHolder),
    (type, ClassHolder),
)


def holder_of(target, name) -> Holder:
    """A snapshot of an object with state."""
    for kind, holder in KINDS:
        if isinstance(target, kind):
            return holder(target, name)
    return InstanceHolder(target, name)


def parts_of(target, name):
    """Yield all that holds the state of an object, each with its name and the kind of its holder:
    the object as a container and as an instance, and the variables of a function.
    """
    yield from [(target, name, holder) for kind, holder in KINDS if isinstance(target, kind)]
    if isinstance(target, types.FunctionType):
        yield from [(cell, variable, CellHolder) for variable, cell in named_cells(target)]
        yield target.__globals__, "", GlobalsHolder
    kind = type(target)
    if not isinstance(target, type) and (kind.__dictoffset__ or slots_of(kind)):
        yield target, name, InstanceHolder


def own_dict(target) -> dict:
    try:
        return object.__getattribute__(target, "__dict__")
    except AttributeError:
        return vars(target) if type(target) is threading.local else {}


def reference_to(target):
    """A weak reference; a strong one to what takes none. Both are called in C."""
    try:
        return weakref.ref(target)
    except TypeError:
        return functools.partial(operator.getitem, (target,), 0)


# ---- guards


class StateGuard(Guard):
    """What names of a holder are bound to: the same objects, or equal plain values.

    It keeps no tensor and no instance alive. names: those that are compared; None: all, in their
    order. Where the holder gives a name another tensor at each call, `ignores` has that name.
    """

    def __init__(self, holder: Holder, names=None, ignores=()):
        before = holder.before
        self.name, self.holder, self.mapping = holder.name, holder.reference, holder.mapping
        self.is_sequence, self.bind, self.kind = holder.is_sequence, holder.bind, type(holder)
        # in the order of the contents, which a loop over them may depend on
        self.keys = list(before) if names is None else None
        wanted = before if names is None else names
        bound = [name for name in wanted if name in before and name not in ignores]
        self.absent = frozenset(wanted) - before.keys()
        self.weak = {name: weakref.ref(before[name]) for name in bound if _is_weak(before[name])}
        self.strong = {name: before[name] for name in bound if name not in self.weak}
        self.read_weak, self.read_strong = getter(self.weak), getter(self.strong)
        self.references, self.values = tuple(self.weak.values()), tuple(self.strong.values())

    def check(self, leaves, tensors):
        return self.holds(self.holder())

    def holds(self, target) -> bool:
        """Whether the names of an object are bound to what they were bound to."""
        if target is None:
            return False
        try:
            found = self.mapping(target)
            if self.keys is not None and not self.has_keys(found):
                return False
            if self.absent and any(map(found.__contains__, self.absent)):
                return False
            same = all(map(operator.is_, self.read_weak(found), map(_call, self.references)))
            values = self.read_strong(found)
        except (KeyError, IndexError, AttributeError):
            return False
        return same and (
            all(map(operator.is_, values, self.values))
            or all(map(is_same_plain_value, values, self.values))
        )

    def tensors(self) -> list[Tensor]:
        """The tensors that must be where they were."""
        values = *map(_call, self.references), *object_walk.tuple_parts(self.values)
        return [value for value in values if isinstance(value, Tensor)]

    def has_keys(self, found) -> bool:
        if len(found) != len(self.keys):
            return False
        # by identity first: keys may be tensors, whose `==` computes
        return (
            self.is_sequence
            or all(map(operator.is_, found, self.keys))
            or (all(map(is_same_plain_value, found, self.keys)))
        )

    def reason(self, leaves, tensors):
        return self.reason_of(self.holder())

    def reason_of(self, target) -> str:
        """Why the guard does not hold for an object."""
        found = {} if target is None else self.mapping(target)
        if self.keys is not None and not self.has_keys(found):
            return f"{self.name} has other elements"
        changed = [
            show_change(self.label(name), known, value)
            for name, known, value in self.differences(target)
            if not is_same_plain_value(value, known)
        ]
        return "; ".join(changed) or f"{self.name} is gone"

    def label(self, name) -> str:
        """How a name is shown."""
        return name if isinstance(name, str) else f"{self.name}[{name!r}]"

    def differences(self, target):
        """Yield the names whose values differ, with what they were and what they are."""
        known = self.strong | {name: each() for name, each in self.weak.items()}
        known |= dict.fromkeys(self.absent, UNSET)
        found = {} if target is None else self.mapping(target)
        found = dict(enumerate(found)) if isinstance(found, Sequence) else found
        for name, value in known.items():
            if found.get(name, UNSET) is not value:
                yield name, value, found.get(name, UNSET)

    def reinstate(self):
        """Bind the names to what they were bound to when the guard was made."""
        target = self.holder()
        for name, known, _ in () if target is None else list(self.differences(target)):
            if known is None and name in self.weak:
                continue  # an instance or a tensor that is gone
            if known is not UNSET:
                self.bind(target, name, known)


class CapturedAttributes(StateGuard):
    """The attributes of a captured tensor that may be another one at each call, as an argument."""

    def __init__(self, holder: TensorHolder, names, number: int):
        super().__init__(holder, names)
        self.number = number

    def check(self, leaves, tensors):
        return self.holds(tensors[self.number])

    def reason(self, leaves, tensors):
        return self.reason_of(tensors[self.number])

    def reinstate(self):
        pass  # a replay has a tensor of its own in the place of this one

    def give_to(self, tensor):
        """Give a tensor the attributes that the captured one had when the guard was made."""
        alive = {name: each() for name, each in self.weak.items() if each() is not None}
        vars(tensor).update(self.strong | alive)


_call = operator.call


def getter(names):
    """A function that reads several names of a mapping as a tuple."""
    names = tuple(names)
    if not names:
        return lambda found: ()
    if len(names) == 1:
        (name,) = names
        return lambda found: (found[name],)
    return operator.itemgetter(*names)


def _is_weak(value) -> bool:
    """Whether a guard refers weakly to a value: tensors and instances may hold much memory."""
    kind = type(value)  # isinstance would ask a proxy for its object, which may be gone
    if issubclass(kind, Tensor):
        return True
    if issubclass(kind, type | types.FunctionType | types.ModuleType):
        return False
    return kind.__weakrefoffset__ != 0  # negative from Python 3.12 on


class ContentGuard(Guard):
    """The contents of a set or an array, by equality."""

    __slots__ = ("holder", "is_same", "known", "name")

    def __init__(self, holder: Holder, known, is_same):
        self.holder, self.name, self.known, self.is_same = (
            holder.reference, holder.name, known, is_same,
        )  # fmt: skip

    def check(self, leaves, tensors):
        target = self.holder()
        return target is not None and self.is_same(target, self.known)

    def reason(self, leaves, tensors):
        return f"{self.name} has other elements"


class KindGuard(AttributeValue):
    """The abstract value of a tensor that is no input of the program."""

    __slots__ = ()

    def reason(self, leaves, tensors):
        tensor = self.owner()
        now = "is gone" if tensor is None else f"is {tensor._aval}"
        return f"a tensor that it reaches was {self.value}, and {now}"
