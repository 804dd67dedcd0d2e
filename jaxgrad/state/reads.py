"""Reads: which state a function reads and changes while it runs.

Before it runs, a walk takes a snapshot of all state that its code can reach (state/walk.py). While
it runs, the classes of the instances that it meets have a `__getattribute__` that notes the reads.
Afterwards the reads become guards, the changes become side effects, and everything is put back.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from typing import NamedTuple

from . import holder as kinds
from .code import UNSET
from .guards import AttributeValue, BoundGuard, Guard, StateGuard
from .holder import Holder, InstanceHolder, MemberHolder, ReportingHolder
from .objects import reference_to
from .ownership import (
    is_closed,
    is_internal,
    is_observable,
    is_value_class,
    reported,
    reported_when_set,
)
from .snapshot import Leaves, Snapshots
from .walk import ALL, StateWalk

# under which an object may have a snapshot; None: that of its own class
_KINDS = (None, InstanceHolder, kinds.CellHolder, ReportingHolder, kinds.LibraryHolder)


class Reads:
    """The Python state that a function reads and changes.

    `holders`: the snapshots; `existing`: the ids of objects that existed before it ran, and `kept`
    by id the containers, functions and classes among these; `is_open`: whether it runs. roots:
    pairs of a name and an object from which it reaches state; root: the function whose code runs,
    or None.
    """

    def __init__(self, roots, root, classes: ObservedClasses, leaves: Leaves | None = None):
        self.roots, self.root = list(roots), root
        self.holders: list[Holder] = []
        self.existing: set[int] = set()
        self.kept: dict[int, object] = {}
        self.observed, self.classes = classes, []
        self.noted: set[tuple] = set()
        self.is_open = False
        self.snapshots = Snapshots(leaves, self.add, self.meet)

    # ---- while the function runs

    def open(self):
        self.take(*self.roots, existing=True)
        self.is_open = True

    def take(self, *roots, existing: bool):
        """Take snapshots of the state behind these values. existing: whether it existed before."""
        known, walk = len(self.holders), StateWalk(self.snapshots, self.root)
        walk.walk(*roots)
        if existing:
            self.existing.update(map(id, self.holders[known:]))
            self.kept.update((id(value), value) for value in walk.kept)

    def take_roots(self, roots: list):
        """Take in more roots, which the function has met."""
        if roots:
            self.roots += roots
            self.take(*roots, existing=True)

    def has_existed(self, value) -> bool:
        """Whether a container, a function or an instance existed before the function ran."""
        if isinstance(value, self.snapshots.leaves.kind):
            return False
        if id(value) in self.kept:
            return True
        holders = [self.snapshots.get(value, kind) for kind in _KINDS]
        return any(id(holder) in self.existing for holder in holders if holder is not None)

    def add(self, holder: Holder, target):
        """Take in a new holder: observe its class."""
        self.holders.append(holder)
        if type(holder) in (InstanceHolder, ReportingHolder) and is_observable(type(target)):
            self.classes.append(type(target))
            self.observed.observe(type(target), self)

    def meet(self, value):
        """Take note of a value that a walk comes to."""

    def record_read(self, instance, name):
        """Record that an attribute of an instance was read, or that it is missing."""
        kind = type(instance)
        if name in reported(kind):
            return self.report(instance)
        if is_value_class(kind):
            return None
        holder_kind = ReportingHolder if is_closed(kind) else InstanceHolder
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
        if self.value_at_start(holder, name) is holder.value(name):
            holder.read.add(name)
            if type(holder) is ReportingHolder and not is_missing:
                # before the function changes it: the first walk does not enter these
                self.take((name, holder.before[name]), existing=id(holder) in self.existing)
        if is_missing:
            self.record_class_read(kind, name)
        return None

    def report(self, instance):
        """Let an instance report the reads of its attributes, if its class has such attributes."""
        report = getattr(type(instance), "_report", None)
        if report is not None:
            report(instance)

    def record_write(self, instance, name):
        """Record that an attribute of an instance is set."""
        kind = ReportingHolder if is_closed(type(instance)) else InstanceHolder
        holder = self.snapshots.get(instance, kind)
        if holder is not None and name not in reported_when_set(type(instance)):
            holder.written.add(name)

    def record_class_read(self, kind, name):
        """Record the class that gives an attribute to its instances, and the classes that might."""
        for base in kind.__mro__:
            if not is_closed(base):
                self.snapshots.take(base, base.__name__).read.add(name)
            if name in vars(base):
                break

    # ---- afterwards

    def close(self):
        """End the observation of classes."""
        self.is_open = False
        while self.classes:
            self.observed.release(self.classes[-1], self)
            self.classes.pop()

    def value_at_start(self, holder, name):
        """The value of a name when the function began to run; UNSET if it was not bound."""
        return holder.before.get(name, UNSET)

    def settled(self, value):
        """The value that each call binds for a value that the function has bound."""
        return value

    def contents_at_start(self, holder) -> dict:
        """The contents of a holder when the function began to run."""
        return holder.before

    def changes(self) -> list[Change]:
        """The changes that the function has made."""
        return [change for change in map(self.change_of, self.holders) if change is not None]

    def change_of(self, holder) -> Change | None:
        bound, removed = holder.changes(self.contents_at_start(holder))
        holder.changed, holder.removed = {*bound, *removed}, {*removed} & holder.before.keys()
        # where an attribute was set to what it was, or to something and deleted again, nothing has
        # to be done: as long as it is that
        holder.read |= holder.written - holder.changed
        if not (bound or removed):
            return None
        is_instance = isinstance(holder, InstanceHolder)
        hidden = reported_when_set(type(holder.reference())) if is_instance else ()
        removed = [name for name in removed if name not in hidden]
        bound = {name: self.settled(value) for name, value in bound.items() if name not in hidden}
        return Change(holder, bound, removed) if bound or removed else None

    def restore(self):
        """Put all state back as it was before the function ran."""
        for holder in self.holders:
            holder.restore(reported_when_set(type(holder.reference())))

    def forget_created(self):
        """Release the objects, and leaves in them, that the function has created and
        left behind.
        """
        late = [holder for holder in self.holders if id(holder) not in self.existing]
        alone = late
        while alone:  # what one of them held may be alone afterwards
            alone = list(filter(_is_alone, late))
            for holder in alone:
                holder.reference, holder.before = (lambda: None), {}  # as if it were gone

    def release(self):
        """Drop what only tracing needs: snapshots hold leaves, and functions do."""
        for holder in self.holders:
            holder.before = holder.stored = None
        self.roots = self.root = self.snapshots = self.kept = None


class ReadGuards:
    """The guards on the state that a function has read.

    `walk`: over all read state, by the names in the code; unseen: code objects whose reads do not
    count.
    """

    def __init__(self, reads: Reads, unseen=()):
        self.reads = reads
        # objects that are gone were created by the function
        alive = [holder for holder in reads.holders if holder.reference() is not None]
        holders = [holder for holder in alive if holder.read or holder.reads_all]
        roots = reads.roots + [
            (name, holder.before[name])
            for holder in holders
            for name in holder.read & holder.before.keys()
        ]
        first = StateWalk(reads.snapshots, reads.root, is_after=True, unseen=unseen)
        first.walk(*roots)
        self.walk = StateWalk(reads.snapshots, reads.root, True, unseen, first.code)
        for holder in holders:
            self.walk.want(holder, ALL if holder.reads_all else holder.read)
        self.walk.walk(*roots)

    def all(self) -> list[Guard]:
        """Guards on places, on the code of functions and on the class of instances."""
        guards = [
            self.guard_of(holder, names)
            for holder, names in self.walk.wanted.values()
            if self.is_guarded(holder)
        ]
        guards += [
            AttributeValue(holder.reference, attribute, value)
            for holder, attribute, value in self.walk.kinds
            if holder.reference() is not None and self.is_guarded(holder)
        ]
        return [guard for guard in (*guards, *self.changed_names()) if guard is not None]

    def changed_names(self):
        """Yield guards on names that the function removes, and on the members of modules, which
        code also replaces in their dicts, as `functional_call` does.
        """
        for holder in self.reads.holders:
            is_old = id(holder) in self.reads.existing and holder.reference() is not None
            if not (is_old and self.is_guarded(holder)):
                continue
            if holder.removed:
                yield BoundGuard(holder)
            if isinstance(holder, MemberHolder):
                yield self.guard_of(holder, holder.before.keys() | holder.changed)

    def is_guarded(self, holder) -> bool:
        """Whether the contents of a holder are compared at each call."""
        return True

    def exchanged_names(self, holder) -> set:
        """The names of a holder at which each call may find another value."""
        return set()

    def guard_of(self, holder, names) -> Guard | None:
        """The guard on names of a holder, or on all of them; None if nothing is compared."""
        exchanged = self.exchanged_names(holder)
        if ALL in names:
            return StateGuard(holder, None, exchanged) if exchanged else holder.guard()
        return StateGuard(holder, names - exchanged) if names - exchanged else None


class Change(NamedTuple):
    """A change of a holder by a function: the names that it binds, with values, and removes."""

    holder: Holder
    bound: dict
    removed: list


def _is_alone(holder) -> bool:
    """Whether only a holder and its earlier contents refer to the object."""
    if isinstance(holder.reference, weakref.ref):
        return holder.reference() is None and bool(holder.before)
    return sys.getrefcount(holder.reference()) == _ALONE


# how many references to an object are counted that only a strong one of a holder keeps
_ALONE = sys.getrefcount(reference_to([])())


# ---- the classes that are observed


class ObservedClasses:
    """The classes whose instances report the attributes that are read and set.

    current: gives the `Reads` that is open in this thread or task, or None.
    """

    def __init__(self, current):
        self.current = current
        # The ids of the observers of each class: by the id, and not by their number, an end counts
        # once, and counts nothing where an interrupt came before the beginning.
        self.observers: dict[type, set[int]] = {}
        self.lock = threading.Lock()

    def observe(self, kind: type, reads):
        """Let the instances of a class report reads of their attributes, until `release`."""
        with self.lock:
            self.observers.setdefault(kind, set()).add(id(reads))
            if not _is_installed(kind):
                _uninstall(kind)
                _install(kind, self.current)

    def release(self, kind: type, reads):
        """End one observation of a class; without observations the class is as before."""
        with self.lock:
            observers = self.observers.get(kind, set())
            observers.discard(id(reads))
            if not observers:
                _uninstall(kind)
                self.observers.pop(kind, None)


@functools.lru_cache(maxsize=4096)
def _reads_in_its_own_way(kind) -> bool:
    """Whether a class of the user's has a `__getattribute__`."""
    methods = [vars(base).get("__getattribute__") for base in kind.__mro__ if not is_closed(base)]
    return any(getattr(method, "replaced_method", method) is not None for method in methods)


def _is_installed(kind) -> bool:
    # the one that is installed last
    return hasattr(vars(kind).get("__setattr__"), "replaced_method")


def _uninstall(kind):
    for name in ("__getattribute__", "__setattr__"):
        installed = vars(kind).get(name)
        if not hasattr(installed, "replaced_method"):
            continue
        if installed.replaced_method is None:
            type.__delattr__(kind, name)
        else:
            type.__setattr__(kind, name, installed.replaced_method)


def _install(kind, current):
    read, write = kind.__getattribute__, kind.__setattr__
    is_own = is_closed(kind)  # what jaxgrad itself reads is reported

    def __getattribute__(self, name):
        reads = current()
        if reads is None or name == "__class__" or (is_own and _is_called_by_library()):
            return read(self, name)
        key = id(self), kind, name
        if key not in reads.noted and not (name == "__dict__" and _is_called_by_library()):
            reads.noted.add(key)
            reads.record_read(self, name)
        return read(self, name)

    def __setattr__(self, name, value):
        reads = current()
        if reads is not None and not (is_own and _is_called_by_library()):
            reads.record_write(self, name)
        write(self, name, value)

    for function in (__getattribute__, __setattr__):
        function.replaced_method = vars(kind).get(function.__name__)
    for function in (__getattribute__, __setattr__):
        type.__setattr__(kind, function.__name__, function)


def _is_own_of_library(kind) -> bool:
    """Whether jaxgrad or JAX reads an instance of a class of Python's, such as a weak dict."""
    frame = sys._getframe(3)
    while frame.f_back is not None and frame.f_globals.get("__name__") == kind.__module__:
        frame = frame.f_back
    return frame.f_globals.get("__name__") != kind.__module__ and is_internal(frame)


def _is_called_by_library() -> bool:
    """Whether the function that reads an attribute is jaxgrad's."""
    return sys._getframe(2).f_globals.get("__name__", "").partition(".")[0] == "jaxgrad"
