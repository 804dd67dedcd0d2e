"""The tracing of a function for one example, which makes a batched program."""

from __future__ import annotations

import itertools
import weakref

import jax
import jax.numpy as jnp

from ..cached import cached_property
from ..capture.captured import HeldSource
from ..capture.dependence import depends_on
from ..capture.graph_input import ArgumentInput, ExampleNumber, scopes_around
from ..capture.guards import SeparateMemory
from ..capture.outputs import OutputSpec
from ..capture.side_effects import UNCHANGED, OutputTensor, TensorEffect
from ..capture.trace import Trace
from ..capture.tracing import Tracing
from ..core.aval import INLINE32, META, Aval, mode_of, tracing, with_strides
from ..core.program import bare, is_bare
from ..draws.seed_effects import RunningEffect, SeedEffect
from ..storage.inplace_check import share_elements
from ..storage.sole_owner import is_shared
from ..tape import pytree
from ..tape.tensor import Tensor, held
from .batched_program import LEFT_BEHIND, BatchedProgram
from .batched_view import Batched, view_of
from .example_scope import SHARED, ExampleScope
from .examples import Examples


class ExampleOutput(OutputSpec):
    """The outputs of one example. By `batch` they become those of all examples.

    `moved`: puts the mapped dimensions of results where `out_dims` says; `created_dims`,
    `captured_dims`, `root_dims`: by number where these dimensions are, None for a captured tensor
    that the examples share.
    """

    shares_memory = False
    views = ()  # the results that are views of captured tensors

    def result(self, value):
        if not isinstance(value, Tensor) or self.scope.is_outside(value):
            return super().result(value)
        number = self.add_created(value)
        # a replay computes values alone
        view = view_of(self.scope, number, value) if isinstance(self.scope, ExampleScope) else None
        if view is not None:
            self.views = *self.views, view
        return "created", number

    def batch(self, examples: Examples, moved, is_in_front):
        """Turn the outputs of one example into those of all.

        is_in_front: whether the mapped dimensions of all results stay in front.
        """
        self.size, self.moved, self.is_in_front = examples.size, moved, is_in_front
        self.captured_dims = list(map(examples.dim_of, self.scope.captured.values()))
        self.created_dims = [0] * len(self.created)
        batched_aval = examples.batched_aval
        for value in self.created:
            # also of one that no example changes, such as `zeros_like(x)`: users write to it
            value.aval = batched_aval(value.aval, 0)
        self.root_dims = [0] * len(self.roots)
        self.roots = [(edge, batched_aval(aval, 0), array) for edge, aval, array in self.roots]

    def batch_written(self, value: OutputTensor, dim: int, aval: Aval):
        """Let the value of a written argument have its mapped dimension where the argument has it.

        aval: the abstract value of all examples.
        """
        value.aval = aval
        if value.root is not None:
            edge, _, array = self.roots[value.root]
            self.root_dims[value.root], self.roots[value.root] = dim, (edge, aval, array)

    @cached_property
    def is_in_place(self) -> bool:
        """Whether the mapped dimensions of all results are where they have to be."""
        is_captured = any(kind == "captured" for kind, _ in self.results)
        return self.is_in_front and not (self.views or is_captured)

    @cached_property
    def only(self):
        return super().only if self.is_in_place else None

    def result_of(self, run):
        if self.is_in_place:
            return super().result_of(run)
        for number in self.retaining:
            run.created[number].retain_grad()
        return self.results_of(run.created, self.created_dims, run.tensors, run.value)

    def results_of(self, created, dims, captured, value_of):
        """The results of a call, from its tensors.

        dims: the mapped dimensions of the created ones. value_of: gives a result of another kind.
        """
        size = self.size
        batches = [Batched(tensor, dim, size) for tensor, dim in zip(created, dims, strict=True)]
        for view in self.views:
            batches[view.number] = view.of(captured[view.source], batches[view.number])
        pairs = zip(captured, self.captured_dims, strict=False)
        kinds = {"created": batches, "captured": [Batched(t, dim, size) for t, dim in pairs]}
        leaves = [
            kinds[kind][value] if kind in kinds else value_of((kind, value))
            for kind, value in self.results
        ]
        return self.moved(jax.tree.unflatten(self.structure, leaves))


class ApartInMemory(SeparateMemory):
    """The arguments that are written to show no element that another captured tensor shows, and
    those in `alone` share their memory with no tensor at all.
    """

    def check(self, leaves, tensors):
        return self.is_separate(tensors)

    def is_separate(self, tensors):
        pairs = itertools.product(self.written, range(len(tensors)))
        is_apart = all(a == b or not share_elements(tensors[a], tensors[b]) for a, b in pairs)
        return is_apart and not any(is_shared(tensors[number]) for number in self.alone)


class BatchedTracing(Tracing):
    """The trace of a mapped function, for one example. is_inline: whether it is part of an open
    trace. `printed`: has an element for each tensor that the function printed.
    """

    is_inner, output_class, executable_class = True, ExampleOutput, BatchedProgram
    sees_containers = False

    def __init__(self, mapped, leaves, structure, is_inline=False):
        self.examples, self.printed = Examples(leaves, mapped.dims), []
        arrays = [held(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self.is_narrow = any(
            isinstance(array, jax.Array) and mode_of(array) == INLINE32 for array in arrays
        )
        self.is_inline, self.is_bare = is_inline, not is_inline or is_bare()
        super().__init__(mapped, leaves, structure)

    def new_scope(self):
        return ExampleScope(self.name, self.jitted.randomness, self.examples, self.printed)

    def wide(self):
        return tracing(not self.is_narrow)

    def rules(self):
        return bare() if self.is_bare else jax.named_scope(self.name)

    def traced_leaves(self, leaves):
        scope, inputs, positions = self.scope, [], self.arguments.positions
        examples = {}
        if scope.randomness == "different":
            number = ExampleNumber(self.examples.size)
            scope.example = scope.add_input(jax.ShapeDtypeStruct((), jnp.int32), number)
        for position, (whole, dim) in enumerate(zip(leaves, self.examples.dims, strict=True)):
            source, leaf = self.source_of(position), whole
            if isinstance(leaf, Tensor) and dim is not None:
                # one example of a tensor that is given twice: a write to it shows in both
                leaf = examples.get((id(whole), dim))
                leaf = scope.capture_slice(whole, source, dim) if leaf is None else leaf
                number = scope.captured[id(leaf)].number
                examples[id(whole), dim] = leaf
                positions.setdefault(number, []).append(position)
            elif isinstance(leaf, Tensor):
                number = scope.capture(leaf, source).number
                positions.setdefault(number, []).append(position)
            elif isinstance(leaf, jax.Array):
                shape = leaf.shape if dim is None else leaf.shape[:dim] + leaf.shape[dim + 1 :]
                struct = jax.ShapeDtypeStruct(shape, leaf.dtype)
                leaf = scope.add_input(struct, ArgumentInput(position))
            inputs.append(leaf)
        return inputs

    def source_of(self, position):
        # code may look at the numbers of an argument that all examples share
        is_shared = self.examples.dims[position] is None
        return HeldSource(position) if is_shared else super().source_of(position)

    def take_captured(self):
        super().take_captured()
        if any(captured.aval.mode == META for captured in self.captured):
            raise RuntimeError(
                f"vmap: Expected all tensors to be on the same device, but {self.name} maps "
                "tensors with data, and reads one on meta"
            )

    def output_of(self, held):
        self.jitted.check_results(held[0])
        output, captured = super().output_of(held), list(self.scope.captured.values())
        output.batch(self.examples, self.jitted.moved, self.jitted.is_in_front)
        for effect in output.effects:
            self.batch_effect(captured[effect.number], effect, output)
        self.refuse_overlaps(captured, output)
        return output

    def refuse_overlaps(self, captured, output):
        """Raise RuntimeError if the function writes to an argument whose memory it also reads by
        another tensor, which would show the old values.
        """
        written = [effect.number for effect in output.effects if effect.value is not None]
        if not written:
            return
        moved = [] if output.separate is None else output.separate.alone
        output.separate = ApartInMemory(written, moved)
        if not output.separate.is_separate([self.scope.whole_of(one) for one in captured]):
            raise RuntimeError(
                f"vmap: {self.name} writes to an argument that shares its memory with another "
                "tensor that it reads: give it a clone() of one"
            )

    def attribute_effects(self):
        # the enclosing program has these side effects itself
        return [] if self.is_inline else super().attribute_effects()

    def add_effects(self, changes):
        super().add_effects(changes)
        bound = [value for change in changes for value in change.bound.values()]
        leaves = itertools.chain(*[pytree.flatten(value)[0] for value in bound])
        is_outside = self.scope.is_outside
        if any(isinstance(leaf, Tensor) and not is_outside(leaf) for leaf in leaves):
            raise RuntimeError(LEFT_BEHIND.format(self.name))
        for effect in self.output.effects:
            is_state = isinstance(effect, SeedEffect | RunningEffect)
            if is_state and effect.output is not None:
                self.examples.written_axes[effect.output] = None

    def batch_effect(self, captured, effect: TensorEffect, output: OutputSpec):
        """Turn a side effect on one example into one on the batched argument."""
        dim = self.examples.dim_of(captured)
        if dim is None and self.is_shared_write(effect, output):
            self.examples.written_axes[effect.value.output] = None
            return
        self.refuse_shared(captured, effect, dim)
        effect.grad = UNCHANGED  # the .grad of one example is not that of the argument
        effect.tracked = captured.tracked
        if effect.value is not None:
            effect.tracked |= effect.value.root is not None
            self.examples.written_axes[effect.value.output] = dim
            reference, dim, shown, steps = self.scope.batches[id(captured.tracer)]
            is_elsewhere = captured.is_elsewhere_than(shown)
            aval = self.examples.batched_aval(effect.value.aval, dim)
            output.batch_written(
                effect.value, dim, aval if is_elsewhere else with_strides(aval, steps)
            )
            if is_elsewhere:
                self.move(reference(), dim, captured, effect, output)

    def is_shared_write(self, effect: TensorEffect, output: OutputSpec) -> bool:
        """Whether all examples write the same constant to a tensor that they share."""
        value = effect.value
        if effect.grad is not UNCHANGED or value is None:
            return False
        array, scopes = output.arrays[value.output], [*scopes_around(self.scope)]
        if depends_on(array, self.scope.is_mapped, scopes):
            return False
        if value.root is not None:
            raise NotImplementedError(
                f"vmap: {self.name} writes a value that requires grad to a tensor of shape "
                f"{list(array.shape)} that its examples share: write it outside of the vmap"
            )
        return True

    def refuse_shared(self, captured, effect, dim):
        """Raise RuntimeError if the examples would change a tensor that they share."""
        if dim is None:
            shape = list(captured.aval.shape)
            if effect.grad is UNCHANGED:
                raise RuntimeError(SHARED.format(self.name, shape))
            raise RuntimeError(
                f"vmap: all examples of {self.name} share a tensor of shape {shape}, and each "
                "gives it a .grad: use autograd.grad instead of backward()"
            )

    def move(self, whole, dim, captured, effect: TensorEffect, output: OutputSpec):
        """Let the whole argument take another shape or memory in place, as each example does."""
        why = None
        if is_shared(whole):
            why = "shares its memory with another tensor: clone() it first"
        elif dim and effect.value.aval.shape != captured.aval.shape:
            why = f"is mapped along dimension {dim}: map dimension 0"
        if why is not None:
            raise RuntimeError(
                f"vmap: {self.name} gives each example another shape or memory in place (t_, "
                f"unsqueeze_, data= and the like), and the argument, of shape "
                f"{list(whole.shape)}, {why}"
            )
        if dim or self.scope.parent is not None:
            # strides of one example do not tell where its views are in the memory that is left
            output.views = tuple(view for view in output.views if view.source != effect.number)
        effect.place = len(output.created)
        output.created.append(effect.value)
        output.created_dims.append(0)
        output.separate = SeparateMemory([], [effect.number])

    def run_inline(self, leaves):
        """Run as part of the open trace."""
        tensors, shared = self.tensors_of(leaves), []
        for captured in self.captured:
            is_whole = self.examples.dim_of(captured) is None
            shared += [captured.number] if captured.position is not None and is_whole else []
        # the function may reach them by itself too
        trace = Trace(self, [], {number: weakref.ref(tensors[number]) for number in shared})
        return self.executable(trace, tensors, leaves).run_inline(leaves, tensors)
