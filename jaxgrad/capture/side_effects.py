"""What a traced function returns and changes: the outputs of its program, and the side effects that
are replayed after each call.
"""

from __future__ import annotations

import copy
from functools import partial

import jax

from ..storage.alias import assign, retaining
from ..storage.commit import Before, set_all
from ..storage.creation_meta import Severed
from ..storage.inplace_check import alias_of_other
from ..tape import version_counter
from ..tape.node import Node
from ..tape.settings import Lasting
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import (
    INFERENCE_TENSOR,
    Tensor,
    current,
    grad_of,
    has_tangent,
    held,
    hold,
    leaf_state,
    wrap,
)
from ..tape.version_counter import counter_of
from . import RunsUncompiled
from .captured import CapturedTensor, outside_aval

# inlined: the accessors of tape/tensor.py

UNCHANGED = object()


class OutputTensor:
    """The value of a tensor at the end of a run.

    `output`: the number of its array among the outputs of the program; `aval`, `tracked`: its
    abstract value and requires_grad; `root`: its number among the outputs with a history, else
    None; `mark`: the mark of an inference tensor in place of a node; `severed`: its leaf state, for
    a view whose history is not known; `kind`: its class; `attributes`: the attributes that the user
    has set on it, as results.
    """

    __slots__ = ("attributes", "aval", "kind", "mark", "output", "root", "severed", "tracked")

    def __init__(self, outputs, tensor: Tensor):
        if has_tangent(tensor):
            raise RunsUncompiled(f"{outputs.scope.name} gives a tensor with a tangent")
        if tensor.is_meta:
            raise RunsUncompiled(f"{outputs.scope.name} gives a tensor on the device meta")
        self.output = outputs.add_array(held(current(tensor)))
        self.kind, self.attributes = Tensor if is_sparse(tensor) else type(tensor), {}
        self.aval, self.tracked, self.root = outside_aval(tensor), tensor._tracked, None
        self.mark = INFERENCE_TENSOR if tensor._node is INFERENCE_TENSOR else None
        self.severed = tensor._leaf if isinstance(tensor._leaf, Severed) else None
        if self.tracked and isinstance(tensor._node, Node):
            edge = tensor._node, tensor._nr
            self.root = outputs.root_number(edge, self.aval, held(tensor))

    @property
    def is_plain(self) -> bool:
        """Whether it is a `Tensor` without the state of a leaf."""
        return self.severed is None and self.kind is Tensor

    def new_tensor(self, arrays, nodes) -> Tensor:
        node = self.mark if self.root is None else nodes[self.root]
        tensor = wrap(arrays[self.output], self.aval, self.tracked, node, self.root or 0)
        if self.severed is not None:
            tensor._leaf = copy.copy(self.severed)
        if self.kind is not Tensor:
            tensor.__class__ = self.kind
        return tensor

    def give_to(self, tensor: Tensor, arrays, nodes):
        """Give the value to a tensor without aliases."""
        hold(tensor, arrays[self.output], self.aval)
        tensor._alias = None
        if self.root is not None:
            tensor._node, tensor._nr = nodes[self.root], self.root


class ProgramRun:
    """One call of a program: its output arrays, the captured tensors, the nodes of the outputs with
    a history, the tensors that the call creates, the numbers that it takes in, by input, and the
    containers among its arguments and at places.

    `applied`: how many steps of the effects are done: the effects on tensors are the first step,
    and each effect on an object is a further one.
    """

    __slots__ = (
        "applied",
        "arrays",
        "containers",
        "created",
        "nodes",
        "numbers",
        "places",
        "rebuilt",
        "tensors",
    )

    def __init__(self, arrays, tensors, nodes, created, numbers, containers):
        self.arrays, self.tensors, self.nodes, self.created = arrays, tensors, nodes, created
        self.containers, self.places = containers
        self.numbers, self.applied, self.rebuilt = numbers, 0, {}

    def value(self, result):
        """The value of a result of the function, or of a `.grad`: see `OutputSpec.result`."""
        kind, value = result
        if kind == "created":
            return self.created[value]
        if kind == "captured":
            return self.tensors[value]
        if kind == "number":
            return value(self.numbers)
        if kind == "argument":
            return self.containers[value]
        if kind == "place":
            return self.places[value]
        if kind == "object":
            return value.rebuild(self.value, self.rebuilt)
        if kind == "tree":
            return jax.tree.unflatten(value[0], list(map(self.value, value[1])))
        return self.arrays[value] if kind == "array" else value


class TensorEffect:
    """The changes of a captured tensor by a function.

    `number`: the number of the captured tensor; `value`: an OutputTensor if it was written to, else
    None; `writes`: how often, for its version; `tracked`: its requires_grad; `grad`: its `.grad`,
    as a result, or UNCHANGED; `known`: the abstract value and requires_grad at the start of a call;
    `place`: the number of a created tensor whose place in memory it takes, as by `data=` or `t_`;
    `past`: for a view with hooks of its own, the number of its root without these hooks.
    """

    __slots__ = ("grad", "known", "number", "past", "place", "tracked", "value", "writes")
    sets_tracked = True

    def __init__(self, outputs, captured: CapturedTensor):
        tensor, snapshot = current(captured.tensor), captured.snapshot
        self.number, self.tracked = captured.number, tensor._tracked
        self.known = captured.aval, captured.tracked
        # arrays never change, so a write leaves the handle with another tracer or node
        is_written = held(tensor) is not captured.tracer or tensor._node is not snapshot.node
        self.value = self.place = self.past = None
        self.writes, self.grad = outputs.scope.write_count(captured), UNCHANGED
        if is_written and outputs.shares_memory and captured.is_elsewhere:
            self.place = outputs.add_output(tensor)
            self.value = outputs.created[self.place]
        elif is_written:
            self.value = OutputTensor(outputs, tensor)
            hooked, edge = captured.led_past
            if hooked is not None and tensor._node is hooked:
                self.past = outputs.root_number(edge, self.value.aval, held(tensor))
        if is_written and snapshot.alias is not None:
            outputs.scope.require_joined(captured, self.is_of_memory(captured))
        if is_written and captured.is_hooked_view and tensor._alias is not None:
            raise refused_view(outputs.scope.name, captured)

    def record_grad(self, outputs, captured: CapturedTensor):
        """Record the `.grad`. Where the function sets it unread, a later call may find another one,
        so it counts as changed.
        """
        grad = grad_of(current(captured.tensor))
        if grad is not captured.snapshot.grad or captured.writes_grad:
            self.grad = outputs.result(grad)

    def is_of_memory(self, captured: CapturedTensor) -> bool:
        """Whether a tensor that shares memory changes only in its array, and the change is
        permitted.
        """
        is_moved = captured.moved is not None or (self.place is None and self.writes > 0)
        return is_moved and not captured.may_refuse_writes

    def is_needed(self, captured: CapturedTensor) -> bool:
        is_kept = self.value is None and self.grad is UNCHANGED and not self.writes
        return not is_kept or self.tracked is not captured.tracked

    @property
    def is_plain(self) -> bool:
        """Whether only the array of the tensor and its `.grad` may change."""
        is_in_place = self.value is None or (self.value.root is None and self.place is None)
        return (
            is_in_place
            and self.tracked is self.known[1]
            and bool(self.writes) == (self.value is not None)
        )

    def changes(self, run) -> list[tuple]:
        """The objects, attributes and values by which the tensor is set."""
        tensor, value, changes = run.tensors[self.number], self.value, []
        if self.place is not None:
            placed = run.created[self.place]
            changes.append((tensor, "_alias", alias_of_other(tensor, placed)))
            # what a run creates of the memory counts writes with the tensor
            kept, counter = placed._counter, counter_of(tensor)
            for other in run.created if kept is not None else ():
                if other._counter is kept:
                    other._counter = counter
        if value is not None and (tensor._alias is None or self.place is not None):
            changes += [(tensor, "_raw", run.arrays[value.output]), (tensor, "_aval", value.aval)]
            if value.root is not None:
                changes += [(tensor, "_node", run.nodes[value.root]), (tensor, "_nr", value.root)]
        if self.writes:
            counter = counter_of(tensor)
            changes.append((counter, "value", counter.value + self.writes))
            if counter.places is not None:
                places = [version_counter.place_of_caller()] * self.writes
                changes.append((counter, "places", counter.places + places))
        if self.sets_tracked:
            changes.append((tensor, "_tracked", self.tracked))
        if self.grad is not UNCHANGED:
            changes.append((leaf_state(tensor), "grad", run.value(self.grad)))
        return changes

    def write_shared(self, run):
        """Write to a tensor that shares its memory; `changes` has the rest."""
        tensor, value = run.tensors[self.number], self.value
        new_tensor = value.new_tensor(run.arrays, run.nodes)
        if self.past is not None:
            new_tensor._node, new_tensor._nr = run.nodes[self.past], self.past
        assign(tensor, new_tensor, value.root is not None)
        if self.past is not None:
            tensor._node, tensor._nr = run.nodes[value.root], value.root
        # `assign` counts one, and `writes` includes it
        counter_of(tensor).value -= 1


def refused_view(name, captured: CapturedTensor) -> RuntimeError:
    """The error for a view that has hooks and views of its own and was written to: the gradient of
    the unwritten elements would pass none of the hooks.
    """
    return RuntimeError(
        f"{name}, compiled by jaxgrad.jit, writes to a view of shape {list(captured.aval.shape)} "
        "that has hooks, and makes views of it: register the hooks after the call, or write "
        "outside of the function"
    )


class TensorEffects:
    """The changes of all captured tensors, which are set in one step."""

    def __init__(self, effects: list[TensorEffect]):
        self.effects, self.is_plain = effects, all(effect.is_plain for effect in effects)
        written = [effect for effect in effects if effect.value is not None]
        self.written = [(effect.number, effect.value.output, effect.writes) for effect in written]
        self.graded = [
            (effect.number, effect.grad) for effect in effects if effect.grad is not UNCHANGED
        ]
        names = [name for _ in written for name in ("_raw", "value")]
        self.names = [*names, *["grad" for _ in self.graded], "applied"]

    def apply(self, run: ProgramRun):
        """Set the tensors, and `applied` of the run."""
        if not self.is_plain:
            self.apply_each(run)
            return
        tensors, arrays, created = run.tensors, run.arrays, run.created
        targets, values = [], []
        for number, output, writes in self.written:
            tensor = tensors[number]
            counter = tensor._counter
            if tensor._alias is not None or counter is None or counter.places is not None:
                self.apply_each(run)
                return
            targets += tensor, counter
            values += arrays[output], counter.value + writes
        for number, (kind, value) in self.graded:
            tensor = tensors[number]
            targets.append(tensor._leaf or leaf_state(tensor))
            values.append(created[value] if kind == "created" else run.value((kind, value)))
        set_all([*targets, run], self.names, [*values, 1])

    def apply_each(self, run):
        """`apply` for all tensors: those that share memory are written to first."""
        before, retained = Before(), []
        try:
            for effect in self.effects:
                tensor = run.tensors[effect.number]
                if effect.value is not None and effect.value.root is not None:
                    node = retaining(tensor)
                    retained += [] if node is None else [(tensor, node, tensor._nr)]
                is_shared = effect.value is not None and tensor._alias is not None
                if is_shared and effect.place is None:
                    before.save(tensor)
                    effect.write_shared(run)
            changes = [change for effect in self.effects for change in effect.changes(run)]
            set_all(*zip(*changes, (run, "applied", 1), strict=True))
        except BaseException:
            if not run.applied:
                before.restore()
            raise
        for tensor, node, output_nr in retained:
            node.release(output_nr)
            if retaining(tensor) is not None:
                tensor._node.release(tensor._nr)
            tensor.retain_grad()


class SideEffect:
    """A change of Python objects by a traced function.

    `apply` repeats the change after each call, and then sets `applied` of the run to the number
    that it is given. Until then it may be called again.
    """

    __slots__ = ()

    def apply(self, run: ProgramRun, number: int):
        raise NotImplementedError(f"{type(self).__name__}.apply")


class AttributeEffect(SideEffect):
    """An attribute that a function sets."""

    __slots__ = ("name", "owner", "value")

    def __init__(self, owner, name: str, value):
        self.owner, self.name, self.value = owner, name, value

    def apply(self, run, number):
        owner = self.owner()
        if owner is not None and getattr(owner, self.name) is not self.value:
            setattr(owner, self.name, self.value)
        run.applied = number


class SettingEffect(SideEffect):
    """A setting that a function leaves changed."""

    __slots__ = ("setting", "value")

    def __init__(self, setting: Lasting, value):
        self.setting, self.value = setting, value

    def apply(self, run, number):
        if self.setting.get() != self.value:
            self.setting.put(self.value)
        run.applied = number


class StateEffect(SideEffect):
    """The names that a function binds and removes in a Python object, in the container at a place,
    or in the attributes of the captured tensor of a number.
    """

    __slots__ = ("bound", "holder", "number", "place", "removed")

    def __init__(self, outputs, change):
        self.holder, self.removed, self.number = change.holder, change.removed, None
        source = outputs.scope.exchanged.get(id(change.holder.reference()))
        self.place = None if source is None else outputs.place_number(source)
        self.bound = {name: outputs.result(value) for name, value in change.bound.items()}

    def exchange(self, captured: dict[int, CapturedTensor]):
        """Change the tensor that a call finds, if this is the state of an exchanged tensor.

        captured: the captured tensors, by id.
        """
        known = captured.get(id(self.holder.reference()))
        if known is not None and known.is_exchanged:
            self.number = known.number

    def target(self, run):
        """The changed object; None if it is gone."""
        if self.place is not None:
            return run.places[self.place]
        return self.holder.reference() if self.number is None else run.tensors[self.number]

    def apply(self, run, number):
        target = self.target(run)
        bound = {name: run.value(result) for name, result in self.bound.items()}
        if target is not None and self.holder.is_sequence and not self.removed:
            # not twice
            set_all([run], ["applied"], [number], [partial(target.extend, bound.values())])
            return
        if target is not None:
            self.holder.put(target, bound, self.removed)
        run.applied = number
