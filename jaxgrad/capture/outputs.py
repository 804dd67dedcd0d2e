"""The outputs of a traced program. A run makes the results of the function from them, and repeats
what the function changed.
"""

from __future__ import annotations

import jax

from ..cached import cached_property
from ..compiled.placement import wrap_all
from ..core import executor
from ..state.guards import getter
from ..tape import pytree
from ..tape.drawn_array import compute_of
from ..tape.sparse_tensor import drop_padding, is_sparse
from ..tape.tensor import (
    Tensor,
    grad_of,
    is_tracked,
    leaf_state,
    node_or_mark,
    output_number,
    recorded_node,
)
from .captured import CapturedTensor
from .places import ContainerSource
from .rebuilt import Objects
from .shared_memory import SharedMemory, refuse_overlaps
from .side_effects import OutputTensor, ProgramRun, SideEffect, TensorEffect, TensorEffects

LEAF = jax.tree.structure(0)


class Outputs:
    """The outputs and side effects of a program.

    `created`: the tensors that a run creates; `results`: the results of the function, leaf by leaf,
    of this `structure`; `effects`: the side effects; `roots`: how many outputs have a history;
    `count`: how many outputs are the function's own; `shared`: how created tensors share memory;
    `grads`: by the number of a created tensor the number of its `.grad`; `retaining`: the numbers
    of created tensors that retain their `.grad`; `separate`: the guard on captured tensors that
    must not share memory; `places`: the containers from outside that a run needs, as they are when
    it begins; `undefined`: of each derivative that may not exist the number of a flag among the
    outputs, and the error.
    """

    joined: frozenset[int] = frozenset()  # the numbers of captured tensors whose memory is joined

    def __init__(self):
        self.created: list[OutputTensor] = []
        self.effects: list = []
        self.grads: dict[int, int] = {}
        self.has_numbers = self.has_attributes = False
        self.retaining: list[int] = []
        self.shared, self.separate = (), None
        self.places: list[ContainerSource] = []
        self.undefined: list[tuple[int, str]] = []

    @property
    def written(self) -> set[int]:
        """The numbers of the captured tensors that are written to."""
        effects = [effect for effect in self.effects if isinstance(effect, TensorEffect)]
        return {effect.number for effect in effects if effect.value is not None}

    @property
    def sources(self) -> set[int]:
        """The numbers of the captured tensors with which created ones share memory."""
        sources = [memory.source for memory in self.shared]
        return {number for kind, number in sources if kind == "captured"}

    @cached_property
    def replaced(self) -> frozenset[int]:
        """The numbers of the captured tensors that leave their memory to those that share it."""
        return frozenset(e.number for e in self.tensor_effects.effects if e.place is not None)

    def run(self, arrays, tensors, nodes, escaped=(), numbers=None, containers=()):
        """A run, with the tensors that it creates.

        tensors: the captured tensors; nodes: one for each output with a history; escaped: by number
        the tensors that tracing created, at the call that traced; numbers: the numbers that the
        call takes in, by input; containers: the containers among its arguments. Raises LinAlgError
        where a derivative does not exist.
        """
        for number, message in self.undefined:
            executor.refuse_undefined(message, arrays[number])
        if self.plain is None:
            created = [value.new_tensor(arrays, nodes) for value in self.created]
        else:
            take, avals, tracked, marks, output_nrs, rooted = self.plain
            if rooted:
                marks = [*marks]
                for place, root in rooted:
                    marks[place] = nodes[root]
            created = wrap_all(take(arrays), avals, tracked, marks, output_nrs)
        if escaped:
            for number, tensor in escaped.items():
                self.created[number].give_to(tensor, arrays, nodes)
                created[number] = tensor
            drop_padding(escaped.values())
        for shared in self.shared:
            shared.attach(arrays, tensors, created)
        for number, grad in self.grads.items():
            leaf_state(created[number]).grad = created[grad]
        places = [source.value() for source in self.places]
        run = ProgramRun(arrays, tensors, nodes, created, numbers, (containers, places))
        for new_tensor, output in (
            zip(created, self.created, strict=True) if self.has_attributes else ()
        ):
            vars(new_tensor).update(
                {name: run.value(result) for name, result in output.attributes.items()}
            )
        return run

    @cached_property
    def plain(self):
        """If all created tensors are plain, the arguments of `wrap` for them: a function that gives
        their arrays, then their abstract values, whether they are tracked, their marks in place of
        nodes, and their output numbers; and the places and roots of those that have a history.
        """
        created = self.created
        if not all(output.is_plain for output in created):
            return None
        of = [(o.output, o.aval, o.tracked, o.mark, o.root or 0) for o in created]
        outputs, *rest = zip(*of, strict=True) if of else [()] * 5
        rooted = [(place, o.root) for place, o in enumerate(created) if o.root is not None]
        return getter(outputs), *rest, rooted

    @cached_property
    def tensor_effects(self) -> TensorEffects:
        return TensorEffects(
            [effect for effect in self.effects if isinstance(effect, TensorEffect)]
        )

    @cached_property
    def object_effects(self) -> list[SideEffect]:
        return [effect for effect in self.effects if isinstance(effect, SideEffect)]

    def apply(self, run: ProgramRun):
        """Apply the side effects of a run, or the remaining ones after an interrupt."""
        if not run.applied:
            self.tensor_effects.apply(run)
        for shared in self.shared:
            shared.follow_source(run.created)
        for number in range(run.applied - 1, len(self.object_effects)):
            self.object_effects[number].apply(run, number + 2)

    @cached_property
    def only(self) -> OutputTensor | None:
        """The single result, if a call returns one plain tensor and has no effects."""
        is_one = self.structure == LEAF and self.results == [("created", 0)]
        has_more = self.effects or self.shared or self.grads or self.has_attributes
        has_more = has_more or self.undefined
        if not is_one or has_more or len(self.created) > 1:
            return None
        (output,) = self.created
        return output if output.is_plain and output.root is None else None

    def result_of(self, run: ProgramRun):
        """The function's result."""
        for number in self.retaining:
            run.created[number].retain_grad()
        if self.structure == LEAF:
            kind, value = result = self.results[0]
            return run.created[value] if kind == "created" else run.value(result)
        return jax.tree.unflatten(self.structure, list(map(run.value, self.results)))


class OutputSpec(Outputs):
    """The outputs and side effects of a traced function, read at the end of its scope.

    `arrays`: the outputs of the trace; `roots`: of each output with a history its edge, abstract
    value and array, later only their number; `numbers`: by id the numbers of the tensors that a run
    creates, and `kept` these tensors; `memory`: finds out how they share memory; `objects`: the
    objects that each run makes again, and those that it returns as they are.
    """

    # whether its tensors share memory with one another and with captured tensors
    shares_memory, memory_class = True, SharedMemory

    def __init__(self, scope, held: list):
        """held: a list with the result of the function, which is taken out of it."""
        super().__init__()
        self.scope, self.arrays, self.roots = scope, [], []
        self.kept, self.numbers = [], {}
        self.objects = Objects(self.result, scope.observation, self.shares_memory, scope.is_of_call)
        self.memory = None
        # Overwritten tensors come first: JAX gives an output the memory of the first donated input
        # of its shape and dtype, and XLA copies where that was another tensor's.
        effects = [self.effect_of(captured) for captured in scope.captured.values()]
        outputs, self.structure = self.leaves_of(held.pop())
        self.results = list(map(self.result, outputs))
        number = 0
        while number < len(scope.captured):  # recording a result or a `.grad` may capture it
            captured = list(scope.captured.values())[number]
            if number == len(effects):
                effects.append(self.effect_of(captured))
            effects[number].record_grad(self, captured)
            number += 1
        pairs = zip(effects, scope.captured.values(), strict=True)
        self.effects = [effect for effect, captured in pairs if effect.is_needed(captured)]
        refuse_overlaps(scope, self.written)

    def effect_of(self, captured: CapturedTensor) -> TensorEffect:
        return TensorEffect(self, captured)

    def add_array(self, array) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1

    def add_undefined(self, flags: list[tuple]):
        """Let runs raise for derivatives that do not exist: pairs of an error and a flag."""
        self.undefined = [(self.add_array(flag), message) for message, flag in flags]

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
        compute = compute_of(value)
        if compute is not None:
            self.has_numbers = True
            return "number", compute
        if not isinstance(value, Tensor):
            return self.object(value)
        if self.scope.is_outside(value):
            return "captured", self.scope.capture(value).number
        if is_sparse(value):
            return self.tree(value)
        return "created", self.add_created(value)

    def leaves_of(self, value) -> tuple:
        """The result of the function, leaf by leaf, and its structure. It counts as one leaf if a
        container in it has several names: a structure would have one container for each.
        """
        observation = self.scope.observation
        if self.shares_memory and observation is not None and observation.has_aliases(value):
            return [value], LEAF
        return pytree.flatten(value, self.objects.has_existed)

    def object(self, value) -> tuple:
        """Where a run finds an object: ("argument", its place) for a container among the arguments,
        ("place", number) for a container at a place where each call may find another one,
        ("object", its part) for an object that each run makes again, else ("constant", value).
        """
        if (position := self.scope.position_of(value)) is not None:
            return "argument", position
        if id(value) in self.scope.exchanged:
            return "place", self.place_number(self.scope.exchanged[id(value)])
        part = self.objects.part(value)
        return ("constant", value) if part is None else ("object", part)

    def place_number(self, source: ContainerSource) -> int:
        """The number of a place whose container a run needs."""
        known = [(place.place.key, place.keys) for place in self.places]
        key = source.place.key, source.keys
        if key not in known:
            self.places.append(source)
        return len(known) if key not in known else known.index(key)

    def tree(self, value) -> tuple:
        """Where a run finds a sparse tensor: ("tree", a structure, the results of its parts)."""
        leaves, structure = pytree.flatten(value)
        return "tree", (structure, list(map(self.result, leaves)))

    def add_output(self, tensor: Tensor) -> int:
        """Add a tensor to those that a call creates."""
        self.kept.append(tensor)  # while its id is in use
        number = self.numbers[id(tensor)] = len(self.created)
        output = OutputTensor(self, tensor)
        self.created.append(output)
        node = node_or_mark(tensor)
        if output.root is not None and node.retained_at(output_number(tensor)) is tensor:
            self.retaining.append(number)
        # last, since an attribute may be the tensor itself
        if vars(tensor) and self.scope.is_created_here(tensor):
            output.attributes = {name: self.result(value) for name, value in vars(tensor).items()}
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

    def share_memory(self):
        """Find out which tensors share memory, once all that objects hold are known."""
        if self.shares_memory:
            self.memory = self.memory_class(self)
            self.memory.find(self.kept)

    def refuse_leaves(self, tensors, leaves):
        """Raise RuntimeError if a tensor is one of these leaves, given by their ids: the node of a
        call sends gradients only to the inputs of the call.
        """
        for tensor in tensors:
            if id(tensor) in leaves:
                raise RuntimeError(
                    f"{self.scope.name}, compiled by jaxgrad.jit, leaves behind a leaf of shape "
                    f"{list(tensor.shape)} and a result that depends on it, which would not fill "
                    "its .grad: pass the leaf in, or compute its gradient inside of the function"
                )

    def finish(self, leaves=()) -> tuple[list, dict[int, Tensor]]:
        """End the scope; returns the outputs of the trace, and by number the tensors created in the
        trace that are still referenced.

        leaves: the ids of the created leaves on which outputs depend.
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
            node = recorded_node(tensor)
            if number is None and is_tracked(tensor) and node is not None:
                raise RuntimeError(
                    f"{scope.name}, compiled by jaxgrad.jit, leaves behind a tensor of shape "
                    f"{list(tensor.shape)} with a history (it was computed by "
                    f"{node.name()}): detach() it, or return it"
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
