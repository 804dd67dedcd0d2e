"""Programs of many examples: a function is traced for one, and JAX maps what comes out.

Forward and backward program are mapped apart, so what the backward one keeps is kept for all
examples, and the gradient of what they share is summed.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .. import ops
from ..capture.captured import Argument, Place
from ..capture.compiled_program import Trace
from ..capture.graph_input import ArgumentInput, TensorInput
from ..capture.partition import depending
from ..capture.replay import replay, results
from ..capture.scope import Scope
from ..capture.side_effects import UNCHANGED, Outcome
from ..core import executor
from ..core.aval import INLINE32, mode_of, traced_aval, with_dual, with_shape
from ..core.program import Program, bare, is_bare
from ..tape.record import apply
from ..tape.tensor import Tensor, current, is_moving, wrap

# what PyTorch says, by what asked for the numbers of an example
_SHAPES = "vmap: We do not support batching operators that can output dynamic shape. "
WORDS = {
    "item()": "vmap: It looks like you're calling .item() on a Tensor. ",
    "bool()": "vmap: It looks like you're attempting to use a Tensor in some "
    "data-dependent control flow. ",
} | dict.fromkeys(("nonzero()", "masked_select()", "indexing with a boolean mask"), _SHAPES)


class MappedScope(Scope):
    """The scope of one example."""

    is_inner, words = True, WORDS

    def __init__(self, name, randomness):
        super().__init__(name)
        self.randomness, self.example = randomness, None

    def meet_part(self, tensor: Tensor, source: Argument, dim: int) -> Tensor:
        """What stands for one example of an argument."""
        shape = tensor.shape[:dim] + tensor.shape[dim + 1 :]
        made = wrap(None, with_shape(tensor._aval, shape), tensor._tracked)
        place = Place(made, source, len(self.places))
        with self.surroundings():
            place.expect(tensor)
        self.places[id(made)] = place
        struct = jax.ShapeDtypeStruct(tuple(shape), tensor.dtype.numpy)
        place.array = made._raw = self.input(struct, TensorInput(place))
        made._aval = traced_aval(made._aval, made._raw)
        return made

    def draw(self, generator):
        if self.randomness == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use "
                "the 'same' or 'different' randomness flags on vmap or perform the randomness "
                "operation out of vmap"
            )
        if self.parent is None:
            words = super().draw(generator)
        else:
            with self.surroundings():
                words = generator.next_key()
        if self.randomness == "same":
            return words
        return jnp.asarray(words).at[3].set(self.example.astype(jnp.uint32) + 1)


class Example(ArgumentInput):
    """The number of the example."""

    def __init__(self, size):
        self.size, self.key = size, ("example",)

    def array(self, leaves):
        return jnp.arange(self.size)


class MappedOutcome(Outcome):
    """What is there after one example: results alone, each a tensor of its own."""

    def name(self, value):
        if isinstance(value, Tensor):
            return "fresh", self.keep(ops.alias(value) if self.scope.is_outside(value) else value)
        if not isinstance(value, jax.Array):
            raise ValueError(
                f"vmap({self.scope.name}, ...): `{self.scope.name}` must only return Tensors, got "
                f"type {type(value)}."
            )
        return super().name(value)


class Whole(Program):
    """All results of a mapped function, as JAX differentiates them."""

    def __init__(self, trace, inputs):
        self.trace, self.name, self.inputs = trace, trace.name, tuple(inputs)
        self.mode = max([aval.mode for aval in inputs])

    def function(self, *arrays):
        run = jax.vmap(
            lambda *one: results(self.trace, one),
            in_axes=tuple(self.trace.axes[: len(arrays)]),
            axis_size=self.trace.size,
        )
        return run(*arrays)


def size_of(leaves, dims) -> int:
    """How many examples there are."""
    return next(leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None)


class MappedTrace(Trace):
    """A program of many examples."""

    is_inner, outcome_class = True, MappedOutcome

    def __init__(self, mapped, leaves, structure, is_inline=False):
        self.dims, self.size = mapped.dims, size_of(leaves, mapped.dims)
        arrays = [leaf._raw if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self.is_narrow = any(
            isinstance(array, jax.Array) and mode_of(array) == INLINE32 for array in arrays
        )
        self.is_bare = not is_inline or is_bare()
        super().__init__(mapped, leaves, structure)

    def scope(self):
        return MappedScope(self.name, self.jitted.randomness)

    def wide(self):
        return jax.enable_x64(not self.is_narrow)

    def rules(self):
        return bare() if self.is_bare else jax.named_scope(self.name)

    def arguments(self, scope, leaves):
        given, self.positions = [], {}
        if scope.randomness == "different":
            scope.example = scope.input(jax.ShapeDtypeStruct((), jnp.int32), Example(self.size))
        for position, (leaf, dim) in enumerate(zip(leaves, self.dims, strict=True)):
            if isinstance(leaf, Tensor) and dim is not None:
                leaf = scope.meet_part(leaf, Argument(position), dim)
                self.positions[len(scope.places) - 1] = [position]
            elif isinstance(leaf, Tensor):
                self.positions.setdefault(scope.meet(leaf, Argument(position)).number, []).append(
                    position
                )
            elif isinstance(leaf, jax.Array):
                shape = leaf.shape if dim is None else leaf.shape[:dim] + leaf.shape[dim + 1 :]
                struct = jax.ShapeDtypeStruct(shape, leaf.dtype)
                leaf = scope.input(struct, ArgumentInput(position))
            given.append(leaf)
        return given

    def outcome_of(self, scope, held):
        outcome = super().outcome_of(scope, held)
        places = list(scope.places.values())
        self.out_axes = {}
        for change in outcome.changes:
            dim = self.dim_of(places[change.number])
            self.refuse_shared(scope, places[change.number], change, dim)
            change.slot = UNCHANGED  # the .grad of what stands for one example
            change.tracked = places[change.number].tracked
            if change.value is not None:
                change.value.aval = self.with_examples(change.value.aval, dim)
                self.out_axes[change.value.output] = dim
        for value in outcome.fresh:
            value.aval = self.with_examples(value.aval, 0)
        outcome.live = [
            (edge, self.with_examples(aval, 0), array) for edge, aval, array in outcome.live
        ]
        return outcome

    def with_examples(self, aval, dim):
        shape = tuple(aval.shape)
        return with_shape(aval, (*shape[:dim], self.size, *shape[dim:]))

    def refuse_shared(self, scope, place, change, dim):
        """Raises RuntimeError where a tensor that all examples share would be another for each."""
        if dim is None:
            what = "written to" if change.slot is UNCHANGED else "given a .grad"
            raise RuntimeError(
                f"vmap: inplace arithmetic is not possible on a tensor of shape "
                f"{list(place.aval.shape)} that all examples of {scope.name} share, and that is "
                f"{what} by each: return the value, use autograd.grad in place of backward(), or "
                "map along a dimension of the tensor"
            )

    def dim_of(self, place):
        """The dimension along which the tensor in a place is mapped, None where it is not."""
        if not isinstance(place.source, Argument):
            return None
        return self.dims[place.source.position]

    def axis(self, source):
        if source.place is not None:
            return self.dim_of(source.place)
        if isinstance(source, Example):
            return 0
        return self.dims[source.position] if isinstance(source, ArgumentInput) else None

    def forward(self, run, order):
        self.refuse_survivors()
        self.axes = [*map(self.axis, order), *[None] * len(self.constants)]
        axes = [self.out_axes.get(number, 0) for number in range(self.outcome.count)]
        if self.pullback is not None:
            pairs = zip(self.split.inputs, self.axes, strict=True)
            mapped = depending(self.split.equations, [v for v, axis in pairs if axis is not None])
            rest = self.split.outputs[self.outcome.count :]
            axes += [0 if variable in mapped else None for variable in rest]
        self.split_axes = axes
        mapped_run = jax.vmap(run, in_axes=tuple(self.axes), out_axes=axes, axis_size=self.size)
        constants, alone = self.constants, self.alone()

        def program(*arrays):
            if alone:
                self.check_alone(run, alone, [*arrays, *constants])
            return mapped_run(*arrays, *constants)

        self.plain = program
        return program

    def alone(self) -> list[int]:
        """The outputs that are to have no dimension for examples."""
        numbers = jax.tree.unflatten(self.outcome.structure, range(len(self.outcome.results)))
        dims = self.jitted.out_dims_of(numbers)
        pairs = zip(self.outcome.results, dims, strict=True)
        chosen = [named for named, dim in pairs if dim is None]
        fresh = self.outcome.fresh
        return [fresh[value].output if kind == "fresh" else value for kind, value in chosen]

    def check_alone(self, run, alone, arrays):
        """Raises ValueError where an output that is to be one for all examples depends on them."""

        def chosen(*one):
            outputs = run(*one)
            return [outputs[number] for number in alone]

        every = jax.vmap(chosen, in_axes=tuple(self.axes), out_axes=None, axis_size=self.size)
        try:
            jax.eval_shape(every, *arrays)
        except ValueError:
            name = self.name
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None: "
                "a result that depends on the example has one value for each"
            ) from None

    def refuse_survivors(self):
        if self.survivors:
            raise RuntimeError(
                f"vmap: {self.name} leaves behind a tensor of one example: return it instead"
            )

    def backward(self, gradients, residuals):
        axes = [0] * len(gradients)
        for flag, number in self.split.kept:
            axes.append(self.split_axes[number] if flag else self.axes[number])
        run = jax.vmap(self.split.backward, in_axes=tuple(axes), axis_size=self.size)
        found = run(*gradients, *residuals)
        return [
            self.joined(array, self.dim_of(self.places[number]))
            for array, number in zip(found, self.pullback.places, strict=True)
        ]

    def joined(self, array, dim):
        """The gradient of an input, from those of the examples."""
        return array.sum(0) if dim is None else jnp.moveaxis(array, 0, dim)

    def replayed(self, inputs, gradients=None, wanted=()):
        count = len(inputs)

        def one(*arrays):
            given = None if gradients is None else arrays[count:]
            return replay(self, arrays[:count], given, wanted)

        axes = [*self.axes[:count], *[0] * len(gradients or ())]
        run = jax.vmap(one, in_axes=tuple(axes), axis_size=self.size)
        found = run(*inputs, *(gradients or ()))
        if gradients is None:
            return found
        return tuple(
            [
                self.joined(array, self.dim_of(self.places[number]))
                for array, number in zip(found, wanted, strict=True)
            ]
        )

    def __call__(self, leaves, tensors):
        if any(map(is_moving, tensors)):
            return self.moving(leaves, tensors)
        return super().__call__(leaves, tensors)

    def moving(self, leaves, tensors):
        """The results where a tensor has a tangent: that of the whole program is taken."""
        if self.outcome.changes:
            raise RuntimeError(
                f"vmap: {self.name} writes to an argument, and is given a tensor with a tangent of "
                "forward mode: return the new value instead"
            )
        others = [wrap(jnp.asarray(source.array(leaves))) for source in self.others]
        given = [*tensors, *others]
        program = Whole(self, [with_dual(current(tensor)._aval, False) for tensor in given])
        made = apply(executor.prepare(program), given)
        made = [made] if program.single else list(made)
        named = [made[value] if kind == "fresh" else value for kind, value in self.outcome.results]
        return jax.tree.unflatten(self.outcome.structure, named)

    def inline(self, leaves):
        """Run it as a part of the trace that is under way."""
        tensors = self.locate(leaves)
        if any(map(is_moving, tensors)):
            return self.moving(leaves, tensors)
        inputs = [current(tensor)._raw for tensor in tensors]
        inputs += [source.array(leaves) for source in self.others]
        arrays = self.plain(*inputs)
        nodes = () if self.pullback is None else self.nodes(tensors, inputs, arrays)
        return self.outcome.apply(arrays, tensors, nodes)
