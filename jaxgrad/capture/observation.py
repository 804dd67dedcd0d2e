"""Observation: which state a function reads and changes while it is traced.

Before the function runs, a walk takes a snapshot of all state that its code can reach
(capture/state_walk.py). While it runs, the reads of attributes are observed: the classes of the
instances that it meets have a `__getattribute__` that notes them. Afterwards what was read becomes
guards, what was changed becomes side effects, and everything is put back.
"""

from __future__ import annotations

import functools
import sys
import threading
import warnings
import weakref
from typing import NamedTuple

from ..core.tracebacks import is_internal, users_stacklevel
from ..tape import mode, pytree
from ..tape.hooks import shared
from ..tape.object_walk import UNSET
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor
from ..tape.traced_hooks import hooks_of
from . import tensor_attributes
from .guards import AttributeValue, Guard, is_value_class
from .holders import (
    CapturedAttributes,
    CellHolder,
    Holder,
    InstanceHolder,
    KindGuard,
    MemberHolder,
    SettingsHolder,
    StateGuard,
    TensorHolder,
    own_dict,
    reference_to,
)
from .members import BoundGuard
from .places import (
    NumberGuard,
    PinnedTensorGuard,
    Place,
    PlaceSource,
    SameTensorGuard,
    TensorsGuard,
    containers_in,
    has_tensors,
    is_rebound,
    part_tree,
)
from .reachable import NewObjects, python_function
from .state_walk import (
    ALL,
    Snapshots,
    StateWalk,
    is_closed,
    is_observable,
    reported,
    reported_when_set,
)

# under which an object may have a snapshot; None: that of its own class
KINDS_OF_HOLDERS = (None, InstanceHolder, CellHolder, SettingsHolder)


class Observation:
    """What a traced function reads and changes of Python objects.

    `holders`: the snapshots; `existing`: the ids of those of objects that existed before it ran;
    `kept`: by id containers, functions and classes that did;
    `inputs`: by holder and name the symbolic numbers that stand there while it runs; `own`: the ids
    of objects whose contents each call compares by itself, None unless functions share the program;
    afterwards `names`: all names in the code, and `skipped`: what is too large to compare.
    """

    def __init__(self, function, arguments, rebound=(), number=None):
        """arguments: those that are no tensors; rebound: ids of holders with names; the number that
        one has there becomes an input, made by `number(read, key)`.
        """
        self.rebound, self.number = rebound, number
        self.roots = [("an argument", each) for each in arguments] + [("function", function)]
        self.roots += [("a hook", hook) for hooks in shared for hook in hooks.values()]
        self.root = python_function(function)
        self.own: dict | None = None
        self.names, self.skipped = set(), {}
        self.holders: list[Holder] = []
        self.existing: set[int] = set()
        self.kept: dict[int, object] = {}
        self.inputs: dict[tuple, Varying] = {}
        self.classes: list[type] = []
        self.reads: set[tuple] = set()
        self.is_open = False
        self.snapshots = Snapshots(self.add)

    # ---- while the function runs

    def open(self):
        self.take(*self.roots, existing=True)
        tensor_attributes.observe(self)
        self.is_open = True

    def take(self, *roots, existing: bool):
        """Take snapshots of the state behind these. existing: whether it existed before."""
        known, walk = len(self.holders), StateWalk(self.snapshots, self.root)
        walk.walk(*roots)
        if existing:
            self.existing.update(map(id, self.holders[known:]))
            self.kept.update((id(value), value) for value in walk.kept)

    def has_existed(self, value) -> bool:
        """Whether a container, a function or an instance existed before the function ran."""
        if isinstance(value, Tensor):
            return False
        if id(value) in self.kept:
            return True
        holders = [self.snapshots.get(value, kind) for kind in KINDS_OF_HOLDERS]
        return any(id(holder) in self.existing for holder in holders if holder is not None)

    def has_aliases(self, value) -> bool:
        """Whether a list or dict in a result is there twice, or in what the function binds too."""
        inner, leaves = [], []
        part_tree(value, inner, leaves)
        if not inner:
            return False
        bound = [holder.value(name) for holder in self.holders for name in holder.changed]
        elsewhere = set(map(id, NewObjects(self.has_existed).walk(*leaves, *bound)))
        return len(set(map(id, inner))) < len(inner) or not elsewhere.isdisjoint(map(id, inner))

    def add(self, holder: Holder, target):
        """Take in a new holder: observe its class, and make numbers that vary inputs."""
        self.holders.append(holder)
        if type(holder) in (InstanceHolder, SettingsHolder) and is_observable(type(target)):
            self.classes.append(type(target))
            observe(type(target), self)
        # another call may have another tensor in the place of this one
        before = {} if isinstance(holder, TensorHolder) else holder.before
        for name, value in before.items():
            if type(value) in (int, float) and (id(target), name) in self.rebound:
                place = Place(holder, name)
                made = self.inputs[holder, name] = self.number(place.value, place.key)
                place.put(made)

    def record_read(self, instance, name):
        """Record that an attribute of an instance was read, or found to be missing."""
        kind = type(instance)
        if name in reported(kind):
            return self.report(instance)
        if is_value_class(kind):
            return None
        holder_kind = SettingsHolder if is_closed(kind) else InstanceHolder
        holder = self.snapshots.get(instance, holder_kind)
        if holder is None:
            if _is_own_of_library(kind):
                return None
            # created by the function, or reached in a way that the walk does not see
            holder = self.snapshots.take(instance, kind.__name__, holder_kind)
        if name == "__dict__":
            holder.read |= holder.before.keys() - set(reported(kind))
            holder.reads_all |= holder_kind is InstanceHolder and not reported(kind)
            return self.report(instance)
        # what a method of the user's reads past the hook is not seen
        holder.reads_all |= holder_kind is InstanceHolder and _reads_in_its_own_way(kind)
        is_missing = name not in holder.before
        # what the function itself has set is not read from outside
        if holder.before.get(name, UNSET) is holder.value(name):
            holder.read.add(name)
            if type(holder) is SettingsHolder and not is_missing:
                # before the function changes it: the first walk does not enter these
                self.take((name, holder.before[name]), existing=id(holder) in self.existing)
        if is_missing:
            self.record_class_read(kind, name)
        return None

    def report(self, instance):
        """Let an instance report what it holds, where its class has such attributes."""
        report = getattr(type(instance), "_report", None)
        if report is not None:
            report(instance)

    def record_write(self, instance, name):
        """Record that an attribute of an instance is set."""
        holder_kind = SettingsHolder if is_closed(type(instance)) else InstanceHolder
        holder = self.snapshots.get(instance, holder_kind)
        if holder is not None and name not in reported_when_set(type(instance)):
            holder.written.add(name)

    # ---- attributes of tensors

    def holder_of_tensor(self, tensor) -> TensorHolder:
        return self.snapshots.take(tensor, "a tensor", TensorHolder)

    def meet_tensor(self, tensor):
        """Take in the hooks of a tensor and the attributes that users have set on it; all count as
        read.
        """
        self.meet_hooks(hooks_of(tensor))
        if own_dict(tensor) or type(tensor) is not Tensor:
            self.take(("a tensor", tensor), existing=True)
            holder = self.holder_of_tensor(tensor)
            holder.read |= holder.names

    def meet_hooks(self, hooks):
        """Take in the state behind hooks from outside, which the function may run."""
        roots = [("a hook", hook) for hook in hooks]
        if roots:
            self.roots += roots
            self.take(*roots, existing=True)

    def record_missing(self, tensor, name):
        """Record that an attribute was looked up that a tensor does not have."""
        scope = mode.scope.get()
        if not scope.is_created_here(tensor):
            self.holder_of_tensor(tensor).read.add(name)

    def record_attribute_write(self, tensor, name):
        """Record that an attribute is about to be set on a tensor."""
        scope = mode.scope.get()
        if not scope.is_created_here(tensor):
            self.holder_of_tensor(tensor).written.add(name)

    def record_class_read(self, kind, name):
        """Record the class that gives an attribute to its instances, and those that might: all of
        them where none does, and the attribute is missing or `__getattr__` gives it.
        """
        for base in kind.__mro__:
            if not is_closed(base):
                self.snapshots.take(base, base.__name__).read.add(name)
            if name in vars(base):
                break

    # ---- afterwards

    def attributes_read(self, instance) -> dict | None:
        """The attributes of an instance that the function has read, with their values of before;
        None where not all reads are observed.
        """
        kind = type(instance)
        # a module reads its own parameters past what is observed
        holder = None if reported(kind) else self.snapshots.get(instance, InstanceHolder)
        if holder is None or not is_observable(kind) or is_closed(kind):
            return None
        return {name: holder.before[name] for name in holder.read & holder.before.keys()}

    def close(self):
        """End the observation of classes."""
        self.is_open = False
        while self.classes:
            release(self.classes[-1], self)
            self.classes.pop()
        tensor_attributes.release(self)

    def rebound_tensors(self) -> list[tuple[Tensor, PlaceSource]]:
        """The tensors at rebound places, and where each call finds others."""
        found = []
        for holder, name in self.rebound_places():
            value = holder.before[name]
            inner = [value] if isinstance(value, Tensor) else pytree.flatten(value)[0]
            for number, each in enumerate(inner):
                if isinstance(each, Tensor):
                    leaf = None if each is value else number
                    found.append((each, PlaceSource(Place(holder, name), leaf, type(each))))
        return found

    def same_tensors(self, captured, tensors) -> list[Guard]:
        """Guards on rebound places that have a captured tensor which another source finds."""
        numbers = {id(tensor): number for number, tensor in enumerate(tensors)}
        found = [(numbers.get(id(tensor)), source) for tensor, source in self.rebound_tensors()]
        return [
            SameTensorGuard(source, number)
            for number, source in found
            if number is not None and not source.is_same(captured[number].source)
        ]

    def rebound_places(self) -> list[tuple]:
        """The holders and names that some compiled function binds to other tensors."""
        return [
            (holder, name)
            for holder in self.holders
            if holder.reference() is not None and not self.is_own(holder)
            for name, value in holder.before.items()
            if is_rebound(holder, name) and has_tensors(value)
        ]

    def is_own(self, holder) -> bool:
        return self.own is not None and id(holder.reference()) in self.own

    def changes(self) -> list[Change]:
        """What the function has changed."""
        return [each for each in map(self.change_of, self.holders) if each is not None]

    def change_of(self, holder) -> Change | None:
        inputs = {name: value for (known, name), value in self.inputs.items() if known is holder}
        bound, removed = holder.changes(holder.before | inputs)
        holder.changed, holder.removed = {*bound, *removed}, {*removed} & holder.before.keys()
        # where an attribute was set to what it was, nothing has to be done: as long as it is that
        holder.read |= holder.written & holder.before.keys() - holder.changed
        if not (bound or removed):
            return None
        is_instance = isinstance(holder, InstanceHolder)
        hidden = reported_when_set(type(holder.reference())) if is_instance else ()
        removed = [name for name in removed if name not in hidden]
        bound = {name: value for name, value in bound.items() if name not in hidden}
        return Change(holder, bound, removed) if bound or removed else None

    def restore(self):
        """Put all state back to what it was before the function ran."""
        for holder in self.holders:
            holder.restore(reported_when_set(type(holder.reference())))

    def forget_created(self):
        """Let go of objects that the function has created and nothing else holds any more: the
        tensors in them do not outlive it.
        """
        late = [each for each in self.holders if id(each) not in self.existing]
        alone = late
        while alone:  # what one of them held may be alone afterwards
            alone = list(filter(_is_alone, late))
            for each in alone:
                each.reference, each.before = _gone, {}

    def guards(self, unseen, captured, numbers) -> list[Guard]:
        """Guards on what was read. unseen: code objects whose reads do not count; captured: the
        captured tensors; numbers: of those that may be others at each call, by id.
        """
        rebound = self.rebound_places()
        ignored = [*self.inputs, *rebound]
        # objects that are gone were created by the function
        used = [each for each in self.holders if each.read or each.reads_all]
        read = [each for each in used if each.reference() is not None]
        roots = self.roots + [
            (name, each.before[name]) for each in read for name in each.read & each.before.keys()
        ]
        learned = StateWalk(self.snapshots, self.root, is_after=True, unseen=unseen)
        learned.walk(*roots)
        walk = StateWalk(self.snapshots, self.root, True, unseen, learned)
        for holder in read:
            walk.want(holder, ALL if holder.reads_all else holder.read)
        walk.walk(*roots)
        self.names, self.skipped = walk.names, walk.skipped
        if self.own is None:
            warn_of_skipped(walk.skipped)
        guards: list[Guard] = [
            NumberGuard(Place(holder, name), value.kind)
            for (holder, name), value in self.inputs.items()
        ]
        guards += [TensorsGuard(Place(*each), each[0].before[each[1]]) for each in rebound]
        for holder, names in walk.wanted.values():
            if self.is_own(holder):
                continue
            skipped = {name for known, name in ignored if known is holder}
            number = numbers.get(id(holder.reference()))
            if number is not None and isinstance(holder, TensorHolder):
                guards.append(CapturedAttributes(holder, names, number))
            elif ALL in names:
                guards.append(StateGuard(holder, None, skipped) if skipped else holder.guard())
            elif names - skipped:
                guards.append(StateGuard(holder, names - skipped))
        guards += self.changed_names(rebound)
        guards += self.pinned_tensors(guards)
        known = {*map(id, captured), *[id(tensor) for tensor, _ in self.rebound_tensors()]}
        return guards + self.kind_guards(walk, known)

    def changed_names(self, rebound) -> list[Guard]:
        """Guards on names that the function removes, and on what members of modules were that it
        binds to something else: modules report changes by others, and none of its own.
        """
        existing = [each for each in self.holders if id(each) in self.existing]
        changed = [each for each in existing if each.changed and each.reference() is not None]
        guards = []
        for holder in changed:
            if self.is_own(holder):
                continue
            guards += [BoundGuard(holder)] if holder.removed else []
            if isinstance(holder, MemberHolder):
                names = holder.changed.difference(n for owner, n in rebound if owner is holder)
                guards += [StateGuard(holder, names)] if names else []
        return guards

    def pinned_tensors(self, guards) -> list[Guard]:
        """Guards on rebound places whose tensor is also at a place that is not: the trace took both
        for one tensor. guards: those on other places.
        """
        places = self.rebound_places()
        # what is in a rebound container is not at a place of its own
        inside = set().union(*[containers_in(holder.before[name]) for holder, name in places])
        at_places = [
            tensor
            for guard in guards
            if isinstance(guard, StateGuard) and id(guard.holder()) not in inside
            for tensor in guard.tensors()
        ]
        buffers = [
            tensor
            for holder in self.holders
            if isinstance(holder, MemberHolder)
            for name, tensor in holder.before.items()
            if not is_rebound(holder, name)
        ]
        pinned = self.snapshots.members.union(map(id, [*at_places, *buffers]))
        return [
            PinnedTensorGuard(source, tensor)
            for tensor, source in self.rebound_tensors()
            if id(tensor) in pinned
        ]

    def kind_guards(self, walk, known) -> list[Guard]:
        """Guards on the code of functions, the class of instances and the abstract value of
        tensors that are not known as inputs: the function may have read their shape.
        """
        kinds = [
            AttributeValue(holder.reference, *kind)
            for holder, *kind in walk.kinds
            if holder.reference() is not None and not self.is_own(holder)
        ]
        tensors = [tensor for tensor in walk.tensors.values() if id(tensor) not in known]
        return kinds + [KindGuard(weakref.ref(tensor), "_aval", tensor._aval) for tensor in tensors]

    def release(self):
        """Drop what only tracing needs: snapshots hold tensors, and functions do."""
        for holder in self.holders:
            holder.before = None
        self.roots = self.root = self.snapshots = self.number = self.kept = None


class Change(NamedTuple):
    """What a function changes of a holder: the names that it binds, with their values, and those
    that it removes.
    """

    holder: Holder
    bound: dict
    removed: list

    def numbers(self) -> set[tuple]:
        """The names that were and are bound to numbers, each with the id of the holder."""
        before, key = self.holder.before, id(self.holder.reference())
        return {
            (key, name)
            for name, value in self.bound.items()
            if type(before.get(name)) in (int, float)
            and type(value) in (int, float, Varying)
            and value is not before[name]
        }


def _is_alone(holder) -> bool:
    """Whether nothing but a holder and its contents of before refers to the object."""
    if isinstance(holder.reference, weakref.ref):
        return holder.reference() is None and bool(holder.before)
    return sys.getrefcount(holder.reference()) == _ALONE


def _gone():
    """In place of a reference to an object that is gone."""


# how many references to an object are counted that only a strong one of a holder keeps
_ALONE = sys.getrefcount(reference_to([])())


def warn_of_skipped(skipped: dict):
    for name, size in skipped.items():
        warnings.warn(
            f"{name}, which a function compiled by jaxgrad.jit can reach, has {size}: too many to "
            "compare at each call, so the function is not traced again when they change. Pass what "
            "it needs as an argument",
            stacklevel=users_stacklevel(),
        )


# ---- the classes that are observed

# the ids of the observations of each class: by the id, and not by their number, an end counts once,
# and counts nothing where an interrupt came before the beginning
_observed: dict[type, set[int]] = {}
_lock = threading.Lock()


def observe(kind: type, observation):
    """Let the instances of a class report reads of their attributes, until `release`."""
    with _lock:
        _observed.setdefault(kind, set()).add(id(observation))
        if not _is_installed(kind):
            _uninstall(kind)
            _install(kind)


def release(kind: type, observation):
    """End the observation of a class; one without any is as it was."""
    with _lock:
        observations = _observed.get(kind, set())
        observations.discard(id(observation))
        if not observations:
            _uninstall(kind)
            _observed.pop(kind, None)


@functools.lru_cache(maxsize=4096)
def _reads_in_its_own_way(kind) -> bool:
    """Whether a class of the user's has a `__getattribute__`."""
    methods = [vars(base).get("__getattribute__") for base in kind.__mro__ if not is_closed(base)]
    return any(getattr(method, "own", method) is not None for method in methods)


def _is_installed(kind) -> bool:
    # the one that is installed last
    return hasattr(vars(kind).get("__setattr__"), "own")


def _uninstall(kind):
    for name in ("__getattribute__", "__setattr__"):
        installed = vars(kind).get(name)
        if not hasattr(installed, "own"):
            continue
        if installed.own is None:
            type.__delattr__(kind, name)
        else:
            type.__setattr__(kind, name, installed.own)


def _install(kind):
    read, write = kind.__getattribute__, kind.__setattr__
    is_own = is_closed(kind)  # what jaxgrad itself reads is reported

    def __getattribute__(self, name):
        observation = mode.open_observation()
        if observation is None or name == "__class__" or (is_own and _is_called_by_library()):
            return read(self, name)
        key = id(self), kind, name
        if key not in observation.reads and not (name == "__dict__" and _is_called_by_library()):
            observation.reads.add(key)
            observation.record_read(self, name)
        return read(self, name)

    def __setattr__(self, name, value):
        observation = mode.open_observation()
        if observation is not None:
            observation.record_write(self, name)
        write(self, name, value)

    for each in (__getattribute__, __setattr__):
        each.own = vars(kind).get(each.__name__)
    for each in (__getattribute__, __setattr__):
        type.__setattr__(kind, each.__name__, each)


def _is_own_of_library(kind) -> bool:
    """Whether jaxgrad or JAX reads an instance of a class of Python's, such as a weak dict."""
    frame = sys._getframe(3)
    while frame.f_back is not None and frame.f_globals.get("__name__") == kind.__module__:
        frame = frame.f_back
    return frame.f_globals.get("__name__") != kind.__module__ and is_internal(frame)


def _is_called_by_library() -> bool:
    """Whether the function that reads an attribute is jaxgrad's."""
    return sys._getframe(2).f_globals.get("__name__", "").partition(".")[0] == "jaxgrad"
