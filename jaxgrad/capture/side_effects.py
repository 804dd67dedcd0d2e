"""What a traced function returns and changes: the outputs of its program, and the side effects that
are replayed after each call.
"""

from __future__ import annotations

import copy
from functools import partial

import jax

from ..cached import cached_property
from ..storage.alias import assign
from ..storage.commit import Before, set_all
from ..storage.creation_meta import Severed
from ..storage.inplace_check import alias_of_other
from ..tape import pytree, version_counter
from ..tape.node import Node
from ..tape.sparse_tensor import is_sparse
from ..tape.symbolic_number import Varying
from ..tape.tensor import (
    INFERENCE_TENSOR,
    Tensor,
    current,
    has_tangent,
    held,
    hold,
    leaf_state,
    wrap,
)
from ..tape.version_counter import counter_of
from .captured import CapturedTensor, outside_aval
from .guards import grad_of
from .holders import getter
from .placement import wrap_all
from .rebuilt import Objects
from .scope import CaptureScope, RunsUncompiled
from .shared_memory import SharedMemory

UNCHANGED = object()
LEAF = jax.tree.structure(0)


class OutputTensor:
    """The value of a tensor at the end of a run.

    `output`: the number of its array among the outputs of the program; `aval`, `tracked`: its
    abstract value and requires_grad; `root`: its number among the outputs with a history, else
    None; `mark`: in place of a node, for one of inference mode; `severed`: its leaf state, for a
    view whose history is not known; `kind`: its class; `attributes`: what the user has set on it,
    as results.
    """

    __slots__ = ("attributes", "aval", "kind", "mark", "output", "root", "severed", "tracked")

    def __init__(self, outputs: OutputSpec, tensor: Tensor):
        if has_tangent(tensor):
            raise RunsUncompiled(f"{outputs.scope.name} gives a tensor with a tangent")
        if tensor.is_meta:
            raise RunsUncompiled(f"{outputs.scope.name} gives a tensor on the device meta")
        self.output = outputs.add_array(held(current(tensor)))
        self.kind, self.attributes = type(tensor), {}
        self.aval, self.tracked, self.root = outside_aval(tensor), tensor._tracked, None
        self.mark = INFERENCE_TENSOR if tensor._node is INFERENCE_TENSOR else None
        self.severed = tensor._leaf if isinstance(tensor._leaf, Severed) else None
        if self.tracked and isinstance(tensor._node, Node):
            edge = tensor._node, tensor._nr
            self.root = outputs.root_number(edge, self.aval, held(tensor))

    @property
    def is_plain(self) -> bool:
        """Whether it is a `Tensor` without a history or the state of a leaf."""
        return self.root is None and self.severed is None and self.kind is Tensor

    def new_tensor(self, arrays, nodes) -> Tensor:
        if self.root is not None:
            made = wrap(arrays[self.output], self.aval, True, nodes[self.root], self.root)
        else:
            made = wrap(arrays[self.output], self.aval, self.tracked, self.mark)
        if self.severed is not None:
            made._leaf = copy.copy(self.severed)
        if self.kind is not Tensor:
            made.__class__ = self.kind
        return made

    def give_to(self, tensor: Tensor, arrays, nodes):
        """Give the value to a tensor without aliases."""
        hold(tensor, arrays[self.output], self.aval)
        tensor._alias = None
        if self.root is not None:
            tensor._node, tensor._nr = nodes[self.root], self.root


class ProgramRun:
    """One call of a program: its output arrays, the captured tensors, the nodes of the outputs with
    a history, the tensors that the call creates, and the numbers that it takes in, by input.

    `applied`: 0, then 1 once the effects on tensors are applied, and one more for each on objects.
    """

    __slots__ = ("applied", "arrays", "created", "nodes", "numbers", "rebuilt", "tensors")

    def __init__(self, arrays, tensors, nodes, created, numbers):
        self.arrays, self.tensors, self.nodes, self.created = arrays, tensors, nodes, created
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
        if kind == "object":
            return value.rebuild(self.value, self.rebuilt)
        if kind == "tree":
            structure, results = value
            return jax.tree.unflatten(structure, list(map(self.value, results)))
        return self.arrays[value] if kind == "array" else value


class TensorEffect:
    """What a function changes of a captured tensor.

    `number`: that of the captured tensor; `value`: an OutputTensor where it was written to, else
    None; `writes`: how often, for its version; `tracked`: its requires_grad; `grad`: its `.grad`,
    as a result, or UNCHANGED. `known`: the abstract value and requires_grad at the start of a call;
    `place`: the number of a created tensor whose place in memory it takes, as by `data=` or `t_`;
    `past`: of a view with hooks of its own, the number of its root without these.
    """

    __slots__ = ("grad", "known", "number", "past", "place", "tracked", "value", "writes")

    def __init__(self, outputs: OutputSpec, captured: CapturedTensor):
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
        if is_written and snapshot.alias is not None and not captured.is_moved:
            self.refuse_new_shape(outputs.scope.name, captured)
        if is_written and captured.is_hooked_view and tensor._alias is not None:
            raise refused_view(outputs.scope.name, captured)

    def record_grad(self, outputs: OutputSpec, captured: CapturedTensor):
        """Record the `.grad`. Where the function sets it unread, a later call may find another one,
        so it counts as changed.
        """
        grad = grad_of(current(captured.tensor))
        if grad is not captured.snapshot.grad or captured.writes_grad:
            self.grad = outputs.result(grad)

    def refuse_new_shape(self, name, captured: CapturedTensor):
        """Raises RuntimeError where a view, or a tensor with views, was given another shape."""
        if self.place is not None or not self.writes:
            raise RuntimeError(
                f"{name}, compiled by jaxgrad.jit, gives another shape or history to a tensor of "
                f"shape {list(captured.aval.shape)} that shares its memory (t_, unsqueeze_, "
                "detach_ and the like): do that outside of the function"
            )

    def is_needed(self, captured: CapturedTensor) -> bool:
        is_kept = self.value is None and self.grad is UNCHANGED and not self.writes
        return not is_kept or self.tracked is not captured.tracked

    @property
    def is_plain(self) -> bool:
        """Whether at most the array of the tensor changes, and its `.grad`."""
        is_in_place = self.value is None or (self.value.root is None and self.place is None)
        return (
            is_in_place
            and self.tracked is self.known[1]
            and bool(self.writes) == (self.value is not None)
        )

    def changes(self, run) -> list[tuple]:
        """What sets the tensor: objects, their attributes, and the values of these."""
        tensor, value, found = run.tensors[self.number], self.value, []
        if self.place is not None:
            alias = alias_of_other(tensor, run.created[self.place])
            found.append((tensor, "_alias", alias))
        if value is not None and (tensor._alias is None or self.place is not None):
            found += [(tensor, "_raw", run.arrays[value.output]), (tensor, "_aval", value.aval)]
            if value.root is not None:
                found += [(tensor, "_node", run.nodes[value.root]), (tensor, "_nr", value.root)]
        if self.writes:
            counter = counter_of(tensor)
            found.append((counter, "value", counter.value + self.writes))
            if counter.places is not None:
                places = [version_counter.place_of_caller()] * self.writes
                found.append((counter, "places", counter.places + places))
        found.append((tensor, "_tracked", self.tracked))
        if self.grad is not UNCHANGED:
            found.append((leaf_state(tensor), "grad", run.value(self.grad)))
        return found

    def write_shared(self, run):
        """Write to a tensor that shares its memory; `changes` has the rest."""
        tensor, value = run.tensors[self.number], self.value
        made = value.new_tensor(run.arrays, run.nodes)
        if self.past is not None:
            made._node, made._nr = run.nodes[self.past], self.past
        assign(tensor, made, value.root is not None)
        if self.past is not None:
            tensor._node, tensor._nr = run.nodes[value.root], value.root
        # `assign` counts one, and `writes` includes it
        counter_of(tensor).value -= 1


def refused_view(name, captured: CapturedTensor) -> RuntimeError:
    """The error for a view with hooks that was written to and has views of its own: what a write
    through these leaves unchanged has a gradient that passes none of the hooks.
    """
    return RuntimeError(
        f"{name}, compiled by jaxgrad.jit, writes to a view of shape {list(captured.aval.shape)} "
        "that has hooks, and makes views of it: register the hooks after the call, or write "
        "outside of the function"
    )


class TensorEffects:
    """What a function changes of captured tensors: all of it is set in one step."""

    def __init__(self, effects: list[TensorEffect]):
        self.effects, self.is_plain = effects, all(each.is_plain for each in effects)
        written = [each for each in effects if each.value is not None]
        self.written = [(each.number, each.value.output, each.writes) for each in written]
        self.graded = [(each.number, each.grad) for each in effects if each.grad is not UNCHANGED]
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
        before = Before()
        try:
            for effect in self.effects:
                tensor = run.tensors[effect.number]
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


class SideEffect:
    """What a traced function changes in Python objects.

    `apply` changes it again after each call, and then sets `applied` of the run to the number that
    it is given. Before that it may be called again.
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


class StateEffect(SideEffect):
    """What a function binds and removes in a Python object, or of the attributes of the captured
    tensor of a number.
    """

    __slots__ = ("bound", "holder", "number", "removed")

    def __init__(self, outputs: OutputSpec, change, number: int | None):
        self.holder, self.removed, self.number = change.holder, change.removed, number
        self.bound = {name: outputs.result(value) for name, value in change.bound.items()}

    def apply(self, run, number):
        is_tensor = self.number is not None
        target = run.tensors[self.number] if is_tensor else self.holder.reference()
        bound = {name: run.value(result) for name, result in self.bound.items()}
        if target is not None and self.holder.is_sequence and not self.removed:
            # not twice
            set_all([run], ["applied"], [number], [partial(target.extend, bound.values())])
            return
        if target is not None:
            self.holder.put(target, bound, self.removed)
        run.applied = number


class OutputSpec:
    """The outputs and side effects of a traced function, read at the end of its scope.

    `arrays`: what the trace returns; `created`: the tensors created inside that exist afterwards;
    `results`: what the function returns, leaf by leaf; `effects`: the side effects; `roots`: of
    each output with a history its edge, abstract value and array, later only their number;
    `shared`: how created tensors share memory; `separate`: the guard on captured tensors that must
    not; `objects`: those that each run makes anew, and those that it gives as they are.
    """

    # whether its tensors share memory with one another and with captured tensors
    shares_memory = True

    def __init__(self, scope: CaptureScope, held: list):
        """held: a list with the result of the function, which is taken out of it."""
        self.scope, self.arrays, self.roots = scope, [], []
        self.created: list[OutputTensor] = []
        self.grads: dict[int, int] = {}
        self.has_numbers = self.has_attributes = False
        self.kept, self.numbers = [], {}
        self.objects = Objects(self.result, scope.observation, self.shares_memory)
        self.memory, self.shared, self.separate = None, (), None
        # Overwritten tensors come first: JAX gives an output the memory of the first donated input
        # of its shape and dtype, and XLA copies where that was another tensor's.
        effects = [TensorEffect(self, captured) for captured in scope.captured.values()]
        outputs, self.structure = self.leaves_of(held.pop())
        self.results = list(map(self.result, outputs))
        number = 0
        while number < len(scope.captured):  # recording a result or a `.grad` may capture it
            captured = list(scope.captured.values())[number]
            if number == len(effects):
                effects.append(TensorEffect(self, captured))
            effects[number].record_grad(self, captured)
            number += 1
        pairs = zip(effects, scope.captured.values(), strict=True)
        self.effects = [effect for effect, captured in pairs if effect.is_needed(captured)]
        self.refuse_overlaps()

    @property
    def written(self) -> set[int]:
        """The numbers of the captured tensors that are written to."""
        effects = [each for each in self.effects if isinstance(each, TensorEffect)]
        return {each.number for each in effects if each.value is not None}

    @property
    def sources(self) -> set[int]:
        """The numbers of the captured tensors with which created ones share memory."""
        return {each.source[1] for each in self.shared if each.source[0] == "captured"}

    @cached_property
    def replaced(self) -> frozenset[int]:
        """The numbers of the captured tensors that leave their memory to those that share it."""
        effects = [each for each in self.effects if isinstance(each, TensorEffect)]
        return frozenset(each.number for each in effects if each.place is not None)

    def add_array(self, array) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1

    def root_number(self, edge, aval, array) -> int:
        # handles at one place of the graph are one output with a history, and share a gradient
        for number, (known, _, _) in enumerate(self.roots):
            if known == edge:
                return number
        self.roots.append((edge, aval, array))
        return len(self.roots) - 1

    def result(self, value) -> tuple:
        """Where a run finds a result: ("array" | "captured" | "created", number), ("number", what
        computes it), or as `object`.
        """
        if isinstance(value, jax.Array):
            return "array", self.add_array(value)
        if isinstance(value, Varying) and value.compute is not None:
            self.has_numbers = True
            return "number", value.compute
        if not isinstance(value, Tensor):
            return self.object(value)
        if self.scope.is_outside(value):
            return "captured", self.scope.capture(value).number
        if is_sparse(value):
            return self.tree(value)
        return "created", self.add_created(value)

    def leaves_of(self, value) -> tuple:
        """What the function returns, leaf by leaf, and the structure. One leaf where containers in
        it have several names: a structure would have one for each.
        """
        observation = self.scope.observation
        if self.shares_memory and observation is not None and observation.has_aliases(value):
            return [value], LEAF
        return pytree.flatten(value, self.objects.has_existed)

    def object(self, value) -> tuple:
        """Where a run finds an object: ("object", its part) if it makes it anew, or itself."""
        part = self.objects.part(value)
        return ("constant", value) if part is None else ("object", part)

    def tree(self, value) -> tuple:
        """Where a run finds a sparse tensor: ("tree", a structure with the results)."""
        leaves, structure = pytree.flatten(value)
        return "tree", (structure, list(map(self.result, leaves)))

    def add_output(self, tensor: Tensor) -> int:
        """Add a tensor to those that a call creates."""
        self.kept.append(tensor)  # while its id is in use
        number = self.numbers[id(tensor)] = len(self.created)
        made = OutputTensor(self, tensor)
        self.created.append(made)
        # last, since an attribute may be the tensor itself
        if vars(tensor) and self.scope.is_created_here(tensor):
            made.attributes = {name: self.result(value) for name, value in vars(tensor).items()}
            self.has_attributes = True
        return number

    def add_created(self, tensor: Tensor) -> int:
        """The number of a tensor among those created inside."""
        number = self.numbers.get(id(tensor))
        if number is None:
            number = self.add_output(tensor)
            grad = grad_of(tensor)
            if is_sparse(grad):
                raise NotImplementedError(
                    f"{self.scope.name}, compiled by jaxgrad.jit, leaves behind a new tensor of "
                    f"shape {list(tensor.shape)} with a sparse .grad: return the gradient itself"
                )
            if grad is not None:
                self.grads[number] = self.add_created(grad)
        return number

    def refuse_overlaps(self):
        """Raises RuntimeError where two captured tensors share memory and one is written to."""
        written = self.written
        storages: dict[int, list[CapturedTensor]] = {}
        for captured in self.scope.captured.values():
            alias = captured.snapshot.alias
            if alias is not None:
                storages.setdefault(id(alias.storage), []).append(captured)
        for sharing in storages.values():
            if len(sharing) > 1 and written.intersection(each.number for each in sharing):
                shapes = " and ".join(str(list(each.aval.shape)) for each in sharing)
                raise RuntimeError(
                    f"{self.scope.name}, compiled by jaxgrad.jit, uses tensors from outside, of "
                    f"shapes {shapes}, that share memory, and writes to one of them: take the "
                    "views inside of the function, or clone() before it"
                )

    def share_memory(self):
        """Find out which tensors share memory, once all that objects hold are known."""
        if self.shares_memory:
            self.memory = SharedMemory(self)
            self.memory.find(self.kept)

    def refuse_leaves(self, tensors, leaves):
        """Raises RuntimeError where a tensor is one of these leaves, by their ids: the node of a
        call gives gradients to the inputs of the call alone.
        """
        for tensor in tensors:
            if id(tensor) in leaves:
                raise RuntimeError(
                    f"{self.scope.name}, compiled by jaxgrad.jit, leaves behind a leaf of shape "
                    f"{list(tensor.shape)} and a result that depends on it, which would not fill "
                    "its .grad: pass the leaf in, or compute its gradient inside of the function"
                )

    def finish(self, leaves=()) -> tuple[list, dict[int, Tensor]]:
        """End the scope; gives what the trace returns, and by number the tensors created inside
        that are still referenced.

        leaves: the ids of those created inside that the outputs depend on.
        """
        scope, memory, kept = self.scope, self.memory, self.kept
        self.kept, self.memory, self.objects, self.roots = None, None, None, len(self.roots)
        self.refuse_leaves(kept, leaves)
        del kept
        # before the search for escaped tensors: what only the handles held inside is gone with it
        scope.restore()
        escaped = {}
        for tensor in scope.escaped_tensors():
            self.refuse_leaves([tensor], leaves)
            number = self.numbers.get(id(tensor))
            if number is None and tensor._tracked and isinstance(tensor._node, Node):
                raise RuntimeError(
                    f"{scope.name}, compiled by jaxgrad.jit, leaves behind a tensor of shape "
                    f"{list(tensor.shape)} with a history (it was computed by "
                    f"{tensor._node.name()}): detach() it, or return it"
                )
            if number is None:
                number = len(self.created)
                self.created.append(OutputTensor(self, tensor))
                if memory is not None:
                    memory.add_escaped(number, tensor)
            escaped[number] = tensor
        if memory is not None:
            self.shared, self.separate = memory.shared(), memory.separate()
        arrays, self.count = self.arrays, len(self.arrays)
        self.numbers = self.scope = self.arrays = None
        return arrays, escaped

    def run(self, arrays, tensors, nodes, escaped=(), numbers=None) -> ProgramRun:
        """A run, with the tensors that it creates.

        tensors: the captured tensors; nodes: one for each output with a history; escaped: by number
        the tensors that tracing created, at the call that traced; numbers: the numbers that the
        call takes in, by input.
        """
        if self.plain is None:
            created = [value.new_tensor(arrays, nodes) for value in self.created]
        else:
            outputs, *rest = self.plain
            created = wrap_all(outputs(arrays), *rest)
        if escaped:
            for number, tensor in escaped.items():
                self.created[number].give_to(tensor, arrays, nodes)
                created[number] = tensor
        for shared in self.shared:
            shared.attach(arrays, tensors, created)
        for number, grad in self.grads.items():
            leaf_state(created[number]).grad = created[grad]
        run = ProgramRun(arrays, tensors, nodes, created, numbers)
        for made, output in zip(created, self.created, strict=True) if self.has_attributes else ():
            vars(made).update({name: run.value(each) for name, each in output.attributes.items()})
        return run

    @cached_property
    def plain(self):
        """For created tensors that all are plain, what `wrap` makes them of: a function that gives
        their arrays, then their abstract values, whether they are tracked, and their marks.
        """
        if not all(each.is_plain for each in self.created):
            return None
        of = [(each.output, each.aval, each.tracked, each.mark) for each in self.created]
        outputs, *rest = zip(*of, strict=True) if of else [()] * 4
        return getter(outputs), *rest

    @cached_property
    def tensor_effects(self) -> TensorEffects:
        return TensorEffects([each for each in self.effects if isinstance(each, TensorEffect)])

    @cached_property
    def object_effects(self) -> list[SideEffect]:
        return [each for each in self.effects if isinstance(each, SideEffect)]

    def apply(self, run: ProgramRun):
        """Apply the side effects of a run, or those that are left after an interrupt."""
        if not run.applied:
            self.tensor_effects.apply(run)
        for shared in self.shared:
            shared.follow_source(run.created)
        for number in range(run.applied - 1, len(self.object_effects)):
            self.object_effects[number].apply(run, number + 2)

    @cached_property
    def only(self) -> OutputTensor | None:
        """The plain tensor that is all that a call gives, if it gives no more."""
        is_one = self.structure == LEAF and self.results == [("created", 0)]
        has_more = self.effects or self.shared or self.grads or self.has_attributes
        is_plain = len(self.created) == 1 and self.created[0].is_plain
        return self.created[0] if is_one and is_plain and not has_more else None

    def result_of(self, run: ProgramRun):
        """The function's result."""
        if self.structure == LEAF:
            return run.value(self.results[0])
        return jax.tree.unflatten(self.structure, list(map(run.value, self.results)))
