"""Observation: the Python state that a function reads and changes while it is traced, and the
tensors and numbers there.

`state.reads` observes Python objects. This module adds the places whose tensors and numbers are
inputs of the program, the attributes that users set on tensors, and hooks.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import warnings
import weakref

import jax

from ..core.tracebacks import users_stacklevel
from ..draws.stand_ins import is_iterator, original, put_stand_ins
from ..state.code import codes as parts_of_code
from ..state.code import names_in, python_function
from ..state.guards import Guard, StateGuard
from ..state.holder import (
    Holder,
    InstanceHolder,
    LeafHolder,
    LibraryHolder,
    MemberHolder,
    Place,
    SetHolder,
    is_late,
)
from ..state.objects import own_dict
from ..state.ownership import is_closed, is_internal, is_observable, is_of_library, reported, root
from ..state.reads import Change, ObservedClasses, ReadGuards, Reads
from ..state.snapshot import Leaves
from ..tape import interception, mode, pytree
from ..tape.hooks import shared
from ..tape.sparse_tensor import SparseTensor
from ..tape.symbolic_number import Varying
from ..tape.tensor import PLAIN_TENSORS, Tensor, abstract_value
from ..tape.traced_hooks import hooks_of
from .places import (
    CapturedAttributes,
    ContainerSource,
    KindGuard,
    NumberGuard,
    PinnedTensorGuard,
    PlaceSource,
    SameContainers,
    SameTensorGuard,
    TensorsGuard,
    containers_in,
    is_exchangeable,
    is_rebound,
    items_of,
    part_tree,
)
from .reachable import NewObjects


class TensorHolder(LeafHolder):
    """The attributes that users set on a tensor."""

    leaf = Tensor


class Tensors(Leaves):
    """Tensors, as walks over state see them."""

    kind, opaque, holder = Tensor, (jax.Array,), TensorHolder

    def functions(self, leaf):
        return hooks_of(leaf)


class MethodHolder(LibraryHolder):
    """The methods of tensors that code names; `Tensor` has a thousand, and other code names it."""

    def __init__(self, names):
        self.names = names & vars(Tensor).keys()
        super().__init__(Tensor, "Tensor")

    def contents(self, target):
        attributes = {name: value for name, value in vars(target).items() if name in self.names}
        return {name: value for name, value in attributes.items() if not is_late(value)}


class MethodGuard(StateGuard):
    """The methods of tensors that code names: all of them are compared in one step."""

    methods = vars(Tensor)

    def __init__(self, names):
        holder = MethodHolder(names)
        super().__init__(holder, holder.before)
        self.kind = LibraryHolder  # which a replay takes

    def check(self, *call):
        try:
            is_same = self.read_strong(self.methods) == self.values  # by identity first
        except KeyError:
            return False
        return is_same and (not self.weak or super().check())


def methods_of_users() -> list[tuple]:
    """The functions of the user's that are methods of tensors."""
    functions = [pair for pair in vars(Tensor).items() if type(pair[1]) is types.FunctionType]
    return [pair for pair in functions if not is_of_library(pair[1].__module__)]


TENSORS = Tensors()
CLASSES = ObservedClasses(mode.open_observation)


class Observation(Reads):
    """The Python state that a function reads and changes while it is traced.

    `inputs`: by holder and name the symbolic numbers that stand there while it runs; `own_parts`:
    the ids of objects whose contents each call compares by itself, None unless functions share the
    program.
    """

    def __init__(self, function, arguments, rebound=(), number=None, own_parts=None, drawn=None):
        """arguments: those that are no tensors; rebound: ids of holders with names; the number that
        one has there becomes an input, made by `number(read, key)`; drawn: takes in what the
        function draws, None where nothing does.
        """
        roots = [("an argument", argument) for argument in arguments] + [("function", function)]
        roots += [("a hook", hook) for hooks in shared for hook in hooks.values()]
        roots += methods_of_users()
        super().__init__(roots, python_function(function), CLASSES, TENSORS)
        self.rebound, self.number, self.own_parts = rebound, number, own_parts
        self.inputs: dict[tuple, Varying] = {}
        # what was put in the place of generators and iterators, and the trace that takes it in
        self.stand_ins: dict[tuple, object] = {}
        self.drawn = drawn

    # ---- while the function runs

    def open(self):
        super().open()
        _observed.replace(self)

    def close(self):
        super().close()
        _observed.restore(self)

    def has_existed(self, value):
        if self.drawn is not None and is_iterator(type(value)):
            # it goes on where the trace has left it
            self.drawn.is_once |= original(value) is value
            return True
        return super().has_existed(value)

    def attributes_read(self, instance) -> dict | None:
        """The attributes of an instance that the function has read, with the values from before;
        None if not all reads are observed.
        """
        kind = type(instance)
        # a module reads its own parameters past what is observed
        holder = None if reported(kind) else self.snapshots.get(instance, InstanceHolder)
        if holder is None or not is_observable(kind) or is_closed(kind):
            return None
        return {name: holder.before[name] for name in holder.read & holder.before.keys()}

    def add(self, holder: Holder, target):
        """Take in a new holder: observe its class, and make numbers that vary inputs."""
        super().add(holder, target)
        if self.drawn is not None:
            placed = put_stand_ins(holder, self.drawn)
            self.stand_ins |= {(holder, name): value for name, value in placed.items()}
        # another call may have another tensor in the place of this one
        before = {} if isinstance(holder, TensorHolder) else holder.before
        for name, value in before.items():
            if type(value) in (int, float) and (id(target), name) in self.rebound:
                place = Place(holder, name)
                self.inputs[holder, name] = self.number(place.value, place.key)
                place.put(self.inputs[holder, name])

    def release(self):
        super().release()
        self.number = self.drawn = None  # they have the scope, which refers to the observation

    def meet(self, value):
        if self.drawn is not None:
            self.drawn.meet(value)

    def value_at_start(self, holder, name):
        return self.stand_ins.get((holder, name), super().value_at_start(holder, name))

    def settled(self, value):
        return original(value)

    def contents_at_start(self, holder):
        placed = self.inputs | self.stand_ins
        return holder.before | {
            name: value for (known, name), value in placed.items() if known is holder
        }

    def has_aliases(self, value) -> bool:
        """Whether a container occurs twice in a result, or in a result and in a place that the
        function assigns.
        """
        inner, leaves = [], []
        part_tree(value, inner, leaves)
        if not inner:
            return False
        bound = [holder.value(name) for holder in self.holders for name in holder.changed]
        elsewhere = set(map(id, NewObjects(self.has_existed).walk(*leaves, *bound)))
        return len(set(map(id, inner))) < len(inner) or not elsewhere.isdisjoint(map(id, inner))

    def begin(self, instance, **attributes):
        """Treat attributes that the function has just set as present before: state that begins
        outside of the trace at its first use.
        """
        holder = self.snapshots.get(instance, InstanceHolder)
        if holder is not None:
            holder.before |= attributes

    # ---- attributes and hooks of tensors

    def holder_of_tensor(self, tensor) -> TensorHolder:
        return self.snapshots.take(tensor, "a tensor", TensorHolder)

    def meet_tensor(self, tensor):
        """Take in the hooks of a tensor and the attributes that users have set on it; all count as
        read.
        """
        self.meet_hooks(hooks_of(tensor))
        if own_dict(tensor) or type(tensor) not in PLAIN_TENSORS:
            self.take(("a tensor", tensor), existing=True)
            holder = self.holder_of_tensor(tensor)
            holder.read |= holder.names

    def meet_hooks(self, hooks):
        """Take in the state behind hooks from outside, which the function may run."""
        self.take_roots([("a hook", hook) for hook in hooks])

    def record_missing(self, tensor, name):
        """Record that an attribute was looked up that a tensor does not have."""
        scope = mode.scope.get()
        if not scope.is_created_here(tensor):
            self.holder_of_tensor(tensor).read.add(name)

    def record_attribute_write(self, tensor, name):
        """Record that an attribute is about to be set on a tensor."""
        scope = mode.scope.get()
        if not scope.is_created_here(tensor):
            scope.capture(tensor)  # each call may find another one
            self.holder_of_tensor(tensor).written.add(name)

    def changes(self):
        changes = {id(change.holder): change for change in super().changes()}
        # Assigned what they had already: where each call may find another tensor, that may be one
        # from elsewhere, and only happened to be the same.
        for holder, name in self.rebound_places():
            is_kept = name not in holder.changed and not holder.is_sequence
            if is_kept and (name in holder.written or name in self.assigned):
                known = changes.get(id(holder), Change(holder, {}, []))
                bound = known.bound | {name: holder.before[name]}
                changes[id(holder)] = known._replace(bound=bound)
        return list(changes.values())

    @functools.cached_property
    def assigned(self) -> set:
        """The names and keys that the code of the function assigns."""
        functions = [self.root, *self.kept.values()]
        codes = [f.__code__ for f in functions if isinstance(f, types.FunctionType)]
        names = [names_in(part) for code in codes for part in parts_of_code(code)]
        stored = [n.stored_attributes | n.stored_globals | n.stored_cells for n in names]
        return set().union(*stored, *[keys for n in names for keys in n.stored_keys.values()])

    # ---- tensors at places that compiled functions bind anew

    def rebound_tensors(self) -> list[tuple[Tensor, PlaceSource]]:
        """The tensors at rebound places, and where each call finds others."""
        pairs = []
        for holder, name in self.rebound_places():
            value = holder.before[name]
            leaves = [value] if isinstance(value, Tensor) else pytree.flatten(value)[0]
            for number, leaf in enumerate(leaves):
                if isinstance(leaf, Tensor):
                    position = None if leaf is value else number
                    pairs.append((leaf, PlaceSource(Place(holder, name), position, type(leaf))))
        return pairs

    def same_tensors(self, captured, tensors) -> list[Guard]:
        """Guards on rebound places with a captured tensor that another source finds."""
        numbers = {id(tensor): number for number, tensor in enumerate(tensors)}
        pairs = [(numbers.get(id(tensor)), source) for tensor, source in self.rebound_tensors()]
        return [
            SameTensorGuard(source, number)
            for number, source in pairs
            if number is not None and not source.is_same(captured[number].source)
        ]

    def rebound_places(self) -> list[tuple]:
        """The holders and names that some compiled function binds to other tensors."""
        return [
            (holder, name)
            for holder in self.holders
            if holder.reference() is not None and not self.is_own(holder)
            for name, value in holder.before.items()
            if is_rebound(holder, name) and is_exchangeable(value)
        ]

    def exchanged_containers(self, changes) -> dict[int, ContainerSource]:
        """By id the containers for which each call may find another one: those at places that this
        function changes or another one assigns.
        """
        places = self.rebound_places()
        for holder, bound, _ in changes:
            values = [(name, holder.before.get(name)) for name in bound]
            places += [(holder, name) for name, value in values if is_exchangeable(value)]
        return {
            id(container): ContainerSource(Place(holder, name), keys)
            for holder, name in places
            if not isinstance(holder, SetHolder)
            for keys, container in containers_in(holder.before[name], self.items_at_start)
            if not isinstance(container, tuple)
        }

    def items_at_start(self, container) -> dict:
        """The items of a tuple, list or dict by key, when the function began to run."""
        holder = self.snapshots.get(container)
        return items_of(container) if holder is None else holder.before

    def is_own(self, holder) -> bool:
        return self.own_parts is not None and id(holder.reference()) in self.own_parts


def changed_numbers(change: Change) -> set[tuple]:
    """The names that were and are bound to numbers, each with the id of the holder."""
    before, key = change.holder.before, id(change.holder.reference())
    return {
        (key, name)
        for name, value in change.bound.items()
        if type(before.get(name)) in (int, float)
        and type(value) in (int, float, Varying)
        and value is not before[name]
    }


class ObservationGuards(ReadGuards):
    """The guards on the Python state that a traced function has read.

    captured: the captured tensors; exchanged: by id the numbers of captured tensors that may be
    others at each call; unseen: code objects whose reads do not count. `names`: all names in the
    code; `skipped`: containers that are too large to compare, with their names.
    """

    reads: Observation

    def __init__(self, observation: Observation, captured, exchanged, unseen=()):
        super().__init__(observation, unseen)
        self.exchanged, self.captured = exchanged, set(map(id, captured))
        self.names, self.skipped = self.walk.code.names, self.walk.skipped
        self.places = observation.rebound_places()

    def all(self):
        numbers = self.reads.inputs.items()
        guards: list[Guard] = [
            NumberGuard(Place(holder, name), value.kind) for (holder, name), value in numbers
        ]
        guards += [
            TensorsGuard(Place(holder, name), holder.before[name], self.captured)
            for holder, name in self.places
        ]
        read = super().all()
        guards += read + self.pinned_tensors(read) + self.kinds_of_tensors()
        return guards + self.same_containers(read) + self.methods(read)

    def methods(self, guards) -> list[Guard]:
        """The guard on the methods of tensors. guards: those on others, on `Tensor` too where the
        code names it.
        """
        states = [guard for guard in guards if isinstance(guard, StateGuard)]
        methods = MethodGuard(self.names)
        is_guarded = any(guard.holder() is Tensor for guard in states)
        return [] if is_guarded or not (methods.strong or methods.weak) else [methods]

    def same_containers(self, guards) -> list[Guard]:
        """The guard on the identity of containers at rebound places. guards: those on others."""
        sources, ids = [], set()
        for holder, name in self.places:
            for keys, container in containers_in(holder.before[name]):
                if not isinstance(container, tuple):
                    sources.append(ContainerSource(Place(holder, name), keys))
                    ids.add(id(container))
        states = [guard for guard in guards if isinstance(guard, StateGuard)]
        # what is in one of them is found where it is
        states = [guard for guard in states if id(guard.holder()) not in ids]
        pinned = ids.intersection(id(v) for guard in states for v in guard.strong.values())
        return [SameContainers(sources, pinned)] if len(sources) > 1 or pinned else []

    def is_guarded(self, holder):
        return not self.reads.is_own(holder)

    def exchanged_names(self, holder):
        places = [*self.reads.inputs, *self.places]
        return {name for known, name in places if known is holder}

    def guard_of(self, holder, names):
        number = self.exchanged.get(id(holder.reference()))
        if number is not None and isinstance(holder, TensorHolder):
            return CapturedAttributes(holder, names, number)
        return super().guard_of(holder, names)

    def pinned_tensors(self, guards) -> list[Guard]:
        """Guards on rebound places whose tensor is also at a place that is not rebound: the trace
        took both for one tensor. guards: the guards on other places.
        """
        # what is in a rebound container is not at a place of its own
        values = [holder.before[name] for holder, name in self.places]
        inside = {id(inner) for value in values for _, inner in containers_in(value)}
        at_places = [
            value
            for guard in guards
            if isinstance(guard, StateGuard) and id(guard.holder()) not in inside
            for value in guard.objects()
        ]
        buffers = [
            tensor
            for holder in self.reads.holders
            if isinstance(holder, MemberHolder)
            for name, tensor in holder.before.items()
            if not is_rebound(holder, name)
        ]
        members = self.reads.snapshots.members
        pinned = members.union(map(id, [*at_places, *buffers]))
        return [
            PinnedTensorGuard(source, tensor)
            for tensor, source in self.reads.rebound_tensors()
            if id(tensor) in pinned
        ]

    def kinds_of_tensors(self) -> list[Guard]:
        """Guards on the abstract value of tensors that are not known as inputs: the function may
        have read their shape.
        """
        known = self.captured | {id(tensor) for tensor, _ in self.reads.rebound_tensors()}
        tensors = [tensor for tensor in self.walk.leaves.values() if id(tensor) not in known]
        return [
            KindGuard(weakref.ref(tensor), "_aval", abstract_value(tensor)) for tensor in tensors
        ]


def warn_of_skipped(skipped: dict):
    for name, size in skipped.items():
        warnings.warn(
            f"{name}, which a function compiled by jaxgrad.jit can reach, has {size}: too many to "
            "compare at each call, so the function is not traced again when they change. Pass what "
            "it needs as an argument",
            stacklevel=users_stacklevel(),
        )


# ---- the attributes that users set on tensors (`p.no_decay = True`)

# While an observation is open, the class `Tensor` notes the attributes that are set, and those that
# are looked up and missing. Those that a tensor has are not observed, which would cost each access
# of a tensor's own state: of a tensor that the function meets, all of them count as read.

# the slots and properties of tensors, which are no attributes of the user
SLOTS = frozenset(
    name
    for kind in (*Tensor.__mro__, SparseTensor)
    for name, member in vars(kind).items()
    if inspect.isdatadescriptor(member)
)


def _getattr(tensor, name):
    frame = sys._getframe(1)
    is_users = not (is_internal(frame) or root(frame) == "numpy" or name.startswith("__"))
    observation = mode.open_observation() if is_users else None
    if observation is not None:
        observation.record_missing(tensor, name)
    # raises what it raised before
    return object.__getattribute__(tensor, name)


def _setattr(tensor, name, value):
    _note_write(tensor, name)
    object.__setattr__(tensor, name, value)


def _delattr(tensor, name):
    _note_write(tensor, name)
    object.__delattr__(tensor, name)


def _note_write(tensor, name):
    observation = None if name in SLOTS else mode.open_observation()
    if observation is not None:
        observation.record_attribute_write(tensor, name)


_observed = interception.Members()
for _function in (_getattr, _setattr, _delattr):
    _observed.add(Tensor, f"_{_function.__name__}__", _function)
