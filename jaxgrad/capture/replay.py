"""Replay: a traced function runs again, on given arrays in place of its inputs.

Its side effects are undone at the end. JAX differentiates the replay where derivatives of higher
order are asked for, and anomaly detection replays to find the operator that produced a NaN.
"""

from __future__ import annotations

import contextlib
import math

import jax

from ..core.aval import aval_of, traced_aval, users_setting
from ..draws.python_runs import PythonReplay, taking_in
from ..state.code import UNSET
from ..state.guards import AttributeValue, ContentGuard, StateGuard
from ..state.holder import DictHolder, LibraryHolder, Place
from ..state.reads import Change
from ..tape import dual_level, settings
from ..tape.node import Node
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor, edge_of, held, hold, leaf_state, set_tracked, wrap
from .argument_containers import ArgumentContainers, ArgumentEffect, Leaves
from .graph_input import ArgumentInput, ExampleNumber, scopes_around
from .joined_memory import join_again
from .observation import Observation
from .outputs import OutputSpec
from .places import (
    CapturedAttributes,
    NumberGuard,
    PinnedTensorGuard,
    PlaceSource,
    SameTensorGuard,
    TensorsGuard,
    put_leaves,
)
from .pullback import TracedPass
from .scope import CaptureScope
from .side_effects import StateEffect, TensorEffect


class Replay(CaptureScope):
    """A scope whose inputs are given arrays, by the keys of the inputs of the first trace.

    `tensors`: the captured tensors, by number; `edges`: where their gradients arrive, None for
    tensors that do not require grad at the start.
    """

    def __init__(self, trace, inputs):
        super().__init__(trace.name)
        self.is_differentiated = True
        self.modes, self.traced_answers = trace.modes, trace.answers
        self.is_inner = trace.modes.is_inner
        keys = [("tensor", captured.number) for captured in trace.captured]
        keys += [source.key for source in trace.other_inputs]
        self.input_arrays = dict(zip(keys, inputs, strict=True))
        self.numbered = [
            (source.size, self.input_arrays[source.key])
            for source in trace.other_inputs
            if isinstance(source, ExampleNumber)
        ]
        pairs = zip(trace.captured, inputs, strict=False)  # whose arrays are the first inputs
        self.pinned_numbers = {id(a): c.pinned for c, a in pairs if c.pinned is not None}
        self.members = {cut.number for group in trace.groups for cut in group.cuts}
        self.known: dict[int, int] = {}
        # by the key of a place: it, and the tensors of the container there by the number of a leaf
        self.inside: dict[tuple, tuple[Place, dict]] = {}
        self.tensors: list[Tensor] = []
        self.edges: list = []

    @contextlib.contextmanager
    def open(self):
        """As for any scope, with the setting of 64-bit types and the grad mode at the time of
        tracing: the pass that asks runs in one of its own. Levels of forward mode entered inside
        are visible, even where the replay is a part of the derivative at another level.
        """
        tokens = dual_level.window.set((0, math.inf)), dual_level.enabled.set(True)
        try:
            x64, kept = users_setting(self.modes.enable_x64), settings.put_back(self.modes.settings)
            with kept, super().open(), x64:
                yield self
        finally:
            dual_level.window.reset(tokens[0])
            dual_level.enabled.reset(tokens[1])

    def close(self):
        # what the function does to optimizers, modules and nodes from outside is not observed
        self.take_back()
        super().close()

    def capture(self, tensor, source=None):
        if id(tensor) not in self.captured and id(tensor) not in self.known:
            raise RuntimeError(
                f"{self.name}, compiled by jaxgrad.jit, runs again for a derivative and reads a "
                f"tensor of shape {list(tensor.shape)} from outside that it did not read when it "
                "was traced"
            )
        return super().capture(tensor, source)

    def require_joined(self, captured, is_of_memory):
        """Does nothing: the changes of the function are put back, and no call repeats them."""

    def draw(self, generator, request):
        keys = ("generator", id(generator)), self.seeded.next_key(moves=False)
        if self.is_inner and not any(key in self.input_arrays for key in keys):
            raise RuntimeError(
                f"{self.name} under func.vmap draws random numbers, so it cannot be differentiated "
                "twice: draw them outside, and pass them in"
            )
        return super().draw(generator, request)

    @property
    def examples(self):
        return [*super().examples, *self.numbered]

    def add_input(self, array, source):
        if source.captured is None:
            return self.input_arrays[source.key]
        return self.input_arrays["tensor", self.known[id(source.captured.tensor)]]

    def number(self, read, key=None):
        array = self.input_arrays.get(("number", key))
        if array is None:
            return super().number(read, key)
        return Varying.of_input(array, key)

    def prepare(self, trace):
        """Give the captured tensors the given arrays; gives the function's arguments."""
        leaves, arguments = list(trace.arguments.leaves), trace.arguments
        for captured in trace.captured:
            # an argument that the function also reaches by itself must be that very handle
            reference = trace.reached.get(captured.number)
            if reference is None or reference() is None:  # nor does the function reach it any more
                reference = captured.reference
            if captured.is_of_place:
                pinned = pinned_tensor(trace.guards, captured.source)
                is_alone = pinned is None
                tensor = self.stand_in(captured) if is_alone else self.recapture(captured, pinned)
                self.put(captured.source, tensor)
            elif reference is None:
                tensor = self.stand_in(captured)
            else:
                tensor = self.recapture(captured, reference())
            self.tensors.append(tensor)
            self.edges.append(edge_of(tensor) if captured.tracked else None)
            for position in arguments.positions.get(captured.number, ()):
                leaves[position] = tensor
        join_again(self, trace.groups, list(self.captured.values()))
        for guard in trace.guards:
            if isinstance(guard, SameTensorGuard):
                self.put(guard.source, self.tensors[guard.number])
            elif isinstance(guard, CapturedAttributes):
                guard.give_to(self.tensors[guard.number])
        self.fill_containers()
        for other in trace.other_inputs:
            if isinstance(other, ArgumentInput):
                array = self.input_arrays[other.key]
                is_number = other.position in arguments.varying
                number = Varying.of_input(array, other) if is_number else None
                leaves[other.position] = other.value(array) if number is None else number
        return leaves

    def put(self, source: PlaceSource, tensor):
        """Put a tensor at a place; in a container there, together with the other tensors."""
        if source.leaf is None:
            source.put(tensor)
            return
        _, tensors = self.inside.setdefault(source.place.key, (source.place, {}))
        tensors[source.leaf] = tensor

    def fill_containers(self):
        """Put containers with their tensors at places. They count as present before."""
        for place, tensors in self.inside.values():
            container = put_leaves(place, tensors)
            if self.observation is not None:
                self.observation.take((place.name, container), existing=True)

    def recapture(self, captured, tensor):
        """Capture a tensor that the function reaches by itself, with the given array."""
        if tensor is None:
            raise RuntimeError(
                f"{self.name}, compiled by jaxgrad.jit, runs again for a derivative, and a tensor "
                f"of shape {list(captured.aval.shape)} that it read from outside is gone"
            )
        self.known[id(tensor)] = captured.number
        again = self.capture(tensor)
        # which may have another shape by now
        again.tracer = self.input_arrays["tensor", captured.number]
        hold(tensor, again.tracer, self.shown(captured))
        again.snapshot.hooks.keep({number for ids in captured.hooks for number in ids})
        # as at the time of tracing; the end of the scope puts the handle back
        again.ignores_grad = True
        set_tracked(tensor, captured.tracked)
        if captured.reads_grad:
            # where tracing found a gradient, `stand_in` sets it afterwards
            leaf_state(tensor).grad = None
        return tensor

    def shown(self, captured):
        """The abstract value of a captured tensor in the replay."""
        array = self.input_arrays["tensor", captured.number]
        # one of many examples, unless it gets its place in joined memory afterwards
        is_part = array.shape != captured.aval.shape and captured.number not in self.members
        # with the strides of the tensor, which decide what calls are views
        return aval_of(array) if is_part else traced_aval(captured.aval, array)

    def stand_in(self, captured):
        """A new tensor in place of a captured one that the function does not reach by itself."""
        array, shown = self.input_arrays["tensor", captured.number], self.shown(captured)
        tensor = wrap(array, shown, captured.tracked)
        if captured.kind is Node:  # no leaf, since the function may write to it
            tensor = wrap(array, shown, True, *edge_of(tensor))
        if captured.of_class is not Tensor:
            tensor.__class__ = captured.of_class
        if captured.marked is not None:
            leaf_state(tensor).kind = captured.marked
        self.known[id(tensor)] = captured.number
        for scope in scopes_around(self):
            scope.record_created(tensor)  # no input of theirs
        # captured, so that what the function writes to it is an output as in the trace
        self.capture(tensor)
        if captured.grad_owner is not None:
            leaf_state(self.tensors[captured.grad_owner]).grad = tensor
        return tensor


def pinned_tensor(guards, source):
    """The tensor at a rebound place that the function also reads from another name, if any."""
    for guard in guards:
        if isinstance(guard, PinnedTensorGuard) and guard.source.is_same(source):
            return guard.reference()
    return None


def replay(trace, inputs, passes=()):
    """The outputs with a history for these inputs; after passes, the gradients of the last pass.

    passes: for each pass a pair of cotangents, None for a missing one, and of the numbers of the
    inputs to differentiate with respect to. These are captured tensors, and from the second pass on
    also the cotangents of earlier passes, which come first, the latest pass foremost. The first
    pass starts from the outputs with a history, each further one from the gradients of the pass
    before.
    """
    scope = Replay(trace, inputs)
    with scope.open():
        roots = part_of(output_of(trace, scope), "roots")
        if not passes:
            return tuple([array for _, _, array in roots])
        # grad mode is off in the last pass, which JAX may differentiate
        scope.is_differentiated, scope.is_in_passes = False, True
        return run_passes(scope, [edge for edge, _, _ in roots], inputs, passes)


def run_passes(scope: Replay, roots, inputs, passes):
    """Run the passes of a replay from the edges `roots`."""
    arrays, tensors, edges = list(inputs), scope.tensors, scope.edges
    for number, (cotangents, wanted) in enumerate(passes, 1):
        # another pass differentiates this one
        is_recorded = number < len(passes)
        wrapped = [None if c is None else wrap(c, None, is_recorded) for c in cotangents]
        reached = [c if root is not None else None for root, c in zip(roots, wrapped, strict=True)]
        ends = [edges[n] or edge_of(tensors[n]) for n in wanted]
        gradients = TracedPass(roots, reached, ends, is_recorded).gradients
        if is_recorded:
            roots = [edge_of(g) if g is not None and g.requires_grad else None for g in gradients]
            present = [cotangent for cotangent in wrapped if cotangent is not None]
            arrays = [*map(held, present), *arrays]
            tensors, edges = [*present, *tensors], [*[None] * len(present), *edges]
    # programs have no None among their arrays
    zeros = jax.numpy.zeros_like
    pairs = zip(wanted, gradients, strict=True)
    return tuple([zeros(arrays[n]) if g is None else g._array for n, g in pairs])


def run_operators(trace, inputs):
    """The output arrays for these inputs, computed operator by operator."""
    scope = Replay(trace, inputs)
    scope.modes = scope.modes._replace(settings=settings.watched(scope.modes.settings))
    with scope.open():
        return part_of(output_of(trace, scope), "arrays")


def new_arrays(trace, inputs):
    """For these inputs the arrays of the tensors that the function creates, followed by those of
    the captured tensors that it writes to, in the order of the effects of the trace. JAX computes
    their tangents.
    """
    scope = Replay(trace, inputs)
    scope.is_forward = True
    with scope.open():
        output = output_of(trace, scope)
        values = {e.number: e.value for e in output.effects if isinstance(e, TensorEffect)}
        written = [values[effect.number] for effect in trace.output.tensor_effects.effects]
        numbers = [value.output for value in (*output.created, *written)]
        return tuple(map(part_of(output, "arrays").__getitem__, numbers))


def part_of(output: OutputSpec, name: str):
    """An attribute of the outputs of a replay; the outputs are no longer needed. They refer to one
    another, and would keep the tensors of the replay until a collection.
    """
    value = getattr(output, name)
    vars(output).clear()
    return value


def output_of(trace, scope) -> OutputSpec:
    structure = trace.arguments.structure
    with of_trace(trace.guards), reinstated(trace, scope) as observation:
        leaves = Leaves(scope.prepare(trace))
        leaves.arguments = args, kwargs = jax.tree.unflatten(structure, leaves)
        seen = observation if trace.arguments.sees_containers else None
        containers = ArgumentContainers(leaves, leaves, structure, seen)
        scope.take_containers(containers)
        order = EffectOrder(trace, scope.tensors, containers)
        result = [trace.function.function(*args, **kwargs)]
        for captured in scope.captured.values():
            captured.snapshot.hooks.mute()  # the engine calls them on the gradient outside
        output = type(trace.output)(scope, result)
        # tensors that it leaves in objects, or that others are cut from, are outputs too
        for change in order.of(observation.changes() if observation is not None else []):
            containers.effect_of(output, change) or StateEffect(output, change)
        output.share_memory()
        if len(output.roots) != trace.output.roots:
            raise RuntimeError(
                f"{scope.name}, compiled by jaxgrad.jit, runs again for a derivative, and gives "
                f"{len(output.roots)} differentiable results in place of {trace.output.roots}: "
                "what it read has changed since it was called"
            )
        return output


class EffectOrder:
    """The order of the changes of a trace, which numbers its outputs. A replay meets objects in
    another order, and must find the same number for each change.

    `numbers`: by the changed object, the number of the effect and the names that it binds.
    """

    def __init__(self, trace, tensors, containers: ArgumentContainers):
        """tensors: those in the place of the captured ones; containers: those of the replay."""
        self.containers, self.numbers = containers, {}
        for number, effect in enumerate(trace.output.effects):
            if isinstance(effect, StateEffect):
                key = self.key_of_effect(effect, trace.output.places, tensors)
                self.numbers[key] = number, {name: n for n, name in enumerate(effect.bound)}

    def key_of_effect(self, effect: StateEffect, places, tensors):
        if isinstance(effect, ArgumentEffect):
            return effect.position
        if effect.place is not None:
            target = places[effect.place].value()
        elif effect.number is not None:
            target = tensors[effect.number]
        else:
            target = effect.holder.reference()
        return id(target), type(effect.holder)

    def of(self, changes) -> list[Change]:
        """Changes in the order of the trace."""
        known = [(self.numbers.get(self.key(change), (math.inf, {})), change) for change in changes]
        known.sort(key=lambda pair: pair[0][0])
        return [
            change._replace(bound=dict(sorted(change.bound.items(), key=_place_in(names))))
            for (_, names), change in known
        ]

    def key(self, change):
        position = self.containers.places.get(id(change.holder))
        target = id(change.holder.reference()), type(change.holder)
        return target if position is None else position


def _place_in(names: dict):
    return lambda item: names.get(item[0], math.inf)


@contextlib.contextmanager
def of_trace(guards):
    """Give objects their state from the time of the trace."""
    with attributes_of_trace(guards), members_of_trace(guards):
        yield


@contextlib.contextmanager
def attributes_of_trace(guards):
    """Give objects the attributes that they had in the trace: functions their code, instances their
    class, modules whether they train, parameter groups and the process their settings.
    """
    before = []
    try:
        for guard in guards:
            owner = guard.owner() if type(guard) is AttributeValue else None
            if owner is None or getattr(owner, guard.name, UNSET) is guard.value:
                continue
            is_inherited = isinstance(owner, type) and guard.name not in vars(owner)
            known = UNSET if is_inherited else getattr(owner, guard.name)
            before.append((owner, guard.name, known))
            put_attribute(owner, guard.name, guard.value)
        yield
    finally:
        for change in before:
            put_attribute(*change)


@contextlib.contextmanager
def members_of_trace(guards):
    """Give modules the submodules and hooks that they had in the trace."""
    reads = [guard for guard in guards if hasattr(guard, "contents_of_trace")]
    changed = [guard for guard in reads if guard.owner() is not None and not guard.check()]
    # dicts of the owner, with what is to be in them
    pairs = [pair for guard in changed for pair in guard.contents_of_trace()]
    holders = [(DictHolder(held, ""), held, known) for held, known in pairs]
    try:
        for holder, held, known in holders:
            holder.make(held, known)
        yield
    finally:
        for holder, *_ in holders:
            holder.restore()


def put_attribute(owner, name, value):
    """Set an attribute without running the code of the class. value: UNSET removes the attribute of
    a class.
    """
    if value is UNSET:
        type.__delattr__(owner, name)
    elif isinstance(owner, type):
        type.__setattr__(owner, name, value)
    else:
        getattr(type(owner), "reinstate", object.__setattr__)(owner, name, value)


class ReplayObservation(Observation):
    """The Python state that a replay reads and changes. `reinstated`: by holder and name the values
    that guards have bound; `at_places`: the values from before at the places where each call finds
    another object.
    """

    def reinstate(self, guards):
        """Bring back the state in which the function was traced: no change of the function."""
        places = [guard.place for guard in guards if isinstance(guard, TensorsGuard)]
        self.at_places = [(place, place.value()) for place in places]
        for guard in guards:
            self.take_holder(guard)
            guard.reinstate()
        # they can be reached again
        kept = [guard for guard in guards if isinstance(guard, StateGuard | TensorsGuard)]
        objects = [("a guard", value) for guard in kept for value in guard.objects()]
        self.take(*objects, existing=True)
        self.reinstated = {
            (change.holder, name): value
            for change in super().changes()
            for name, value in change.bound.items()
        }

    def take_holder(self, guard):
        """Take a snapshot of a holder that a guard binds; the function may no longer reach it."""
        if not isinstance(guard, StateGuard | ContentGuard):
            return
        target, kind = guard.holder(), getattr(guard, "kind", None)
        if target is not None and not any(self.snapshots.get(target, k) for k in (None, kind)):
            self.existing.add(id(self.snapshots.take(target, guard.name, kind)))
        if kind is LibraryHolder:  # it puts back what it binds
            self.snapshots.get(target, kind).stored.update(guard.strong, guard.weak, guard.absent)

    def changes(self):
        return [change._replace(bound=self.of_function(change)) for change in super().changes()]

    def of_function(self, change) -> dict:
        """The part of a change that differs from what guards have bound."""
        known = {name: self.reinstated.get((change.holder, name), self) for name in change.bound}
        return {name: value for name, value in change.bound.items() if value is not known[name]}

    def restore(self):
        super().restore()
        for place, value in self.at_places:  # of holders that are out of reach by now, too
            if value is not UNSET and place.value() is not value:
                place.put(value)

    def release(self):
        super().release()
        self.reinstated, self.at_places = {}, []


def refuse_gone(trace):
    """Raise RuntimeError where an object that the function read is gone."""
    for guard in trace.guards:
        if not isinstance(guard, StateGuard) or guard.holder() is None:
            continue
        names = [guard.label(name) for name, known in guard.weak.items() if known() is None]
        if names:
            raise RuntimeError(
                f"{trace.name}, compiled by jaxgrad.jit, runs again for a derivative, and what "
                f"{', '.join(names)} was when it was called is gone: keep a reference to it, or "
                "take the derivative before it changes"
            )


@contextlib.contextmanager
def reinstated(trace, scope):
    """Give Python objects the state in which the function was traced; put the earlier state back
    afterwards.
    """
    if trace.modes.is_inline:
        yield None  # the state of the trace around, which is still in progress
        return
    refuse_gone(trace)
    numbers = {guard.place.key for guard in trace.guards if isinstance(guard, NumberGuard)}
    function = trace.function.observed_function()
    guard = next((guard for guard in trace.guards if guard.is_performed), None)
    drawn = None if guard is None else PythonReplay(scope, guard)
    around, leaves = scope.observation, trace.arguments.leaves
    observation = ReplayObservation(function, leaves, numbers, scope.number, drawn=drawn)
    scope.observation = observation
    try:
        observation.open()
        observation.reinstate(trace.guards)
        with taking_in(drawn):
            yield observation
    finally:
        observation.restore()
        observation.close()
        observation.release()
        scope.observation = around  # passes of the replay follow
