"""`func.vmap`: a function of one example as a function of many.

The function is traced once, for one example, as `jaxgrad.jit` traces (tracing.py): what it reads
from outside is an input that all examples share. JAX maps what comes out, the forward program and
the backward one, so a call is one node of the tape, and tensors from outside keep their gradients.
Outside of a trace the mapped program is compiled and kept, as a compiled function's is.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from .. import avals, execution, modes, ops
from ..compiling import Trace
from ..jit import Jitted
from ..joint import depending
from ..outcomes import UNCHANGED, Outcome
from ..places import Argument, Place
from ..programs import bare, is_bare
from ..replaying import replay
from ..tensor import Tensor, current, wrap
from ..tracing import ArgumentInput, Scope, TensorInput

RANDOMNESS = ("error", "different", "same")


def vmap(func, in_dims=0, out_dims=0, randomness: str = "error", *, chunk_size: int | None = None):
    """The function that `func`, of one example, is of many, along a dimension of its arguments.

    in_dims: the dimension of each argument, None for one that all examples share: an int, or a tree
    of them in the structure of the arguments. Arguments by name are shared. out_dims: where the
    dimension is in each result. randomness: "error" where `func` draws random numbers, "different"
    ones for each example, or the "same" for all. chunk_size: so many examples at once.

    Tensors that `func` reaches by itself are shared, and have gradients; a pass inside of it, by
    `autograd.grad` or `backward`, is that of one example. Raises ValueError for dimensions that are
    not there or of unequal sizes, RuntimeError for random numbers under "error", for a result that
    is no tensor, and for a write to a tensor that is shared.

    >>> jaxgrad.func.vmap(jaxgrad.dot)(jaxgrad.ones(3, 2), jaxgrad.tensor([[1.0, 2.0]] * 3))
    tensor([3., 3., 3.])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. "
            f"Got {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    mapped = functools.cache(lambda dims: Mapped(func, dims, randomness))

    @functools.wraps(func, updated=())
    def call(*args, **kwargs):
        leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=_is_tensor)
        dims = _dims(func, in_dims, args, kwargs, leaves)
        size = _size(leaves, dims)
        if chunk_size is None or size <= chunk_size:
            return _laid_out(func, mapped(dims)(*args, **kwargs), out_dims)
        parts = []
        for start in range(0, size, chunk_size):
            part = [
                leaf if dim is None else ops.narrow(leaf, dim, start, min(chunk_size, size - start))
                for leaf, dim in zip(leaves, dims, strict=True)
            ]
            given, named = jax.tree.unflatten(structure, part)
            parts.append(mapped(dims)(*given, **named))
        joined = jax.tree.map(lambda *pieces: ops.cat(pieces), *parts, is_leaf=_is_tensor)
        return _laid_out(func, joined, out_dims)

    return call


def _dims(func, in_dims, args, kwargs, leaves) -> tuple:
    """For each leaf of the arguments the dimension along which it is mapped, or None."""
    if not isinstance(in_dims, int | tuple | list):
        raise ValueError(
            f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int "
            f"or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you "
            "are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    wanted = in_dims if isinstance(in_dims, int) else tuple(in_dims)
    try:
        spread = _spread(wanted, args)
    except ValueError:
        raise ValueError(
            f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible "
            f"with the structure of inputs: in_dims has structure {jax.tree.structure(wanted)} but "
            f"inputs have structure {jax.tree.structure(args, is_leaf=_is_tensor)}."
        ) from None
    dims = [*spread, *[None] * len(jax.tree.leaves(kwargs, is_leaf=_is_tensor))]
    return tuple([_dim(func, leaf, dim) for leaf, dim in zip(leaves, dims, strict=True)])


def _spread(dims, args) -> list:
    """The dimensions of all leaves, given those of trees of them."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(jax.tree.leaves(args, is_leaf=_is_tensor))
    if isinstance(dims, dict):
        if not isinstance(args, dict) or dims.keys() != args.keys():
            raise ValueError
        return [each for key in sorted(dims) for each in _spread(dims[key], args[key])]
    if not isinstance(args, tuple | list) or len(dims) != len(args):
        raise ValueError
    return [each for dim, arg in zip(dims, args, strict=True) for each in _spread(dim, arg)]


def _dim(func, leaf, dim):
    if dim is None:
        return None
    if not isinstance(leaf, Tensor | jax.Array):
        raise ValueError(
            f"vmap({_name(func)}, ...)(<inputs>): Got in_dim={dim} for an input but the input is "
            f"of type {type(leaf)}. We cannot vmap over non-Tensor arguments, please use None as the "
            "respective in_dim"
        )
    if not -leaf.ndim <= dim < leaf.ndim:
        raise ValueError(
            f"vmap({_name(func)}, ...)(<inputs>): Got in_dim={dim} for some input, but that input "
            f"is a Tensor of dimensionality {leaf.ndim} so expected in_dim to satisfy "
            f"-{leaf.ndim} <= in_dim < {leaf.ndim}."
        )
    return dim % leaf.ndim


def _size(leaves, dims) -> int:
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError(
            "vmap: at least one input must have a dimension to map along, all are None"
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0]


def _laid_out(func, results, out_dims):
    """Results, whose first dimension counts examples, with that dimension where it is wanted."""
    leaves, structure = jax.tree.flatten(results, is_leaf=_is_tensor)
    if isinstance(out_dims, int):
        dims = [out_dims] * len(leaves)
    else:
        try:
            dims = _spread(tuple(out_dims), results if isinstance(results, tuple) else (results,))
        except (ValueError, TypeError):
            raise ValueError(
                f"vmap({_name(func)}, ..., out_dims={out_dims}): out_dims is not compatible with "
                f"the structure of outputs, {structure}."
            ) from None
    placed = [
        leaf if dim in (0, None) else ops.movedim(leaf, 0, dim)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
    return jax.tree.unflatten(structure, placed)


def _name(func) -> str:
    return getattr(func, "__name__", repr(func))


def _is_tensor(value) -> bool:
    return isinstance(value, Tensor)


class Mapped(Jitted):
    """A function of many examples; `dims`: for each leaf of its arguments the dimension."""

    def __init__(self, function, dims, randomness):
        super().__init__(function, (), ())
        self.dims, self.randomness = dims, randomness

    def __call__(self, *args, **kwargs):
        leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=_is_tensor)
        for leaf in filter(_is_tensor, leaves):
            current(leaf)
        arrays = [getattr(leaf, "_raw", leaf) for leaf in leaves]
        traced = any(isinstance(array, jax.core.Tracer) for array in arrays)
        if traced or modes.scope.get() is not None or execution.is_traced():
            trace = self.new_trace(leaves, structure, ())
            return trace.inline(leaves)
        return super().__call__(*args, **kwargs)

    def new_trace(self, leaves, structure, varying):
        return MappedTrace(self, leaves, structure)


class MappedScope(Scope):
    """The scope of one example."""

    is_mapped = True

    def __init__(self, name, randomness):
        super().__init__(name)
        self.randomness, self.example = randomness, None

    def meet_part(self, tensor: Tensor, source: Argument, dim: int) -> Tensor:
        """What stands for one example of an argument."""
        shape = tensor.shape[:dim] + tensor.shape[dim + 1 :]
        made = wrap(None, avals.with_shape(tensor._aval, shape), tensor._tracked)
        place = Place(made, source, len(self.places))
        with self.surroundings():
            place.expect(tensor)
        self.places[id(made)] = place
        struct = jax.ShapeDtypeStruct(tuple(shape), tensor.dtype.numpy)
        place.array = made._raw = self.input(struct, TensorInput(place))
        made._aval = avals.traced(made._aval, made._raw)
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
            return "fresh", self.keep(ops.alias(value) if id(value) in self.scope.places else value)
        if not isinstance(value, jax.Array):
            raise ValueError(
                f"vmap({self.scope.name}, ...): `{self.scope.name}` must only return Tensors, got "
                f"type {type(value)} as a return."
            )
        return super().name(value)


class MappedTrace(Trace):
    """A program of many examples."""

    is_mapped = True

    def __init__(self, mapped, leaves, structure):
        self.dims, self.size = mapped.dims, _size(leaves, mapped.dims)
        self.is_inline = modes.scope.get() is not None or execution.is_traced()
        self.is_bare = not self.is_inline or is_bare()
        super().__init__(mapped, leaves, structure)

    def scope(self):
        return MappedScope(self.name, self.jitted.randomness)

    def wide(self):
        return jax.enable_x64(not self.is_inline or jax.config.jax_enable_x64)

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
        outcome = MappedOutcome(scope, held)
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
        return avals.with_shape(aval, (*shape[:dim], self.size, *shape[dim:]))

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
        self.axes = [*map(self.axis, order), *[None] * len(self.constants)]
        axes = [self.out_axes.get(number, 0) for number in range(self.outcome.count)]
        if self.pullback is not None:
            self.refuse_survivors()
            pairs = zip(self.split.inputs, self.axes, strict=True)
            mapped = depending(self.split.equations, [v for v, axis in pairs if axis is not None])
            rest = self.split.outputs[self.outcome.count :]
            axes += [0 if variable in mapped else None for variable in rest]
        self.split_axes = axes
        mapped_run = jax.vmap(run, in_axes=tuple(self.axes), out_axes=axes, axis_size=self.size)
        constants = self.constants

        def program(*arrays):
            return mapped_run(*arrays, *constants)

        self.plain = program
        return program

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

    def inline(self, leaves):
        """Run it as a part of the trace that is under way."""
        self.refuse_survivors()
        tensors = self.locate(leaves)
        inputs = [current(tensor)._raw for tensor in tensors]
        inputs += [source.array(leaves) for source in self.others]
        arrays = self.plain(*inputs)
        nodes = () if self.pullback is None else self.nodes(tensors, inputs, arrays)
        return self.outcome.apply(arrays, tensors, nodes)
