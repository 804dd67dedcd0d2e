"""The stages of `jax.jit`: what a compiled function is traced and lowered to, without a call.

The program is not filed, its side effects are not applied, and all state is put back.
"""

from __future__ import annotations

import jax

from ..core import dtypes
from ..core.aval import make_aval
from ..core.meta_array import MetaArray
from ..tape import handle_lock, mode
from ..tape.tensor import held, wrap
from . import one_shot
from .frozen import FrozenReads


def program_and_inputs(function, args, kwargs):
    """The program of a compiled function for these arguments, and its inputs: arrays, numbers, and
    a `jax.ShapeDtypeStruct` where there is no array. Such a struct among the arguments stands for a
    tensor.
    """
    if mode.scope.get() is not None:
        raise RuntimeError(
            f"{function.__name__} cannot be lowered inside of a function that jaxgrad.jit is "
            "tracing: do it outside"
        )
    leaves, structure = function.flatten(args, kwargs)
    one_shot.refuse_arguments(function.function, leaves, structure)
    leaves = list(map(_as_argument, leaves))
    reads = FrozenReads(function.traced_function())
    with handle_lock.lock:
        try:
            program = function.new_program(leaves, structure, frozenset())
        finally:
            reads.put_back()
            function.cache.log.clear()
        arrays = [*map(_example, program.take_tensors(leaves))]
        program.discard()
        program.observation.release()
    return program, arrays + [each.example(leaves) for each in program.other_inputs]


def _example(tensor):
    """The array of a tensor; a struct where it has no data."""
    array = held(tensor)
    return array.struct if type(array) is MetaArray else array


def _as_argument(leaf):
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    return wrap(leaf, make_aval(tuple(leaf.shape), dtypes.from_numpy(leaf.dtype)))


class WideTraced:
    """A `jax.stages.Traced` that is lowered with JAX's 64-bit types on, as it was traced."""

    def __init__(self, traced: jax.stages.Traced):
        self.traced = traced

    def lower(self, **options) -> jax.stages.Lowered:
        """See `jax.stages.Traced.lower`."""
        with jax.enable_x64(True):
            return self.traced.lower(**options)

    def __getattr__(self, name):
        return getattr(self.traced, name)


def trace(function, args, kwargs) -> WideTraced:
    """The program of a compiled function for these arguments, traced by JAX."""
    program, inputs = program_and_inputs(function, args, kwargs)
    with jax.enable_x64(True):
        return WideTraced(program.program.trace(*inputs))


def lower(function, args, kwargs):
    """The `jax.stages.Lowered` of a compiled function for these arguments."""
    program, inputs = program_and_inputs(function, args, kwargs)
    with jax.enable_x64(True):
        return program.program.lower(*inputs)


def eval_shape(function, args, kwargs):
    """The result of a compiled function, with a `jax.ShapeDtypeStruct` for each tensor, array, and
    number that varies.
    """
    program, inputs = program_and_inputs(function, args, kwargs)
    with jax.enable_x64(True):
        arrays = program.program.eval_shape(*inputs)
    output, numbers = program.output, program.numbers(inputs)
    effects = output.tensor_effects.effects
    written = {each.number: each.value for each in effects if each.value is not None}

    def shape_of(result):
        kind, value = result
        if kind == "tree":
            return jax.tree.unflatten(value[0], list(map(shape_of, value[1])))
        if kind == "object":
            return value.rebuild(shape_of, {})
        if kind == "captured" and value not in written:
            return _struct(program.captured[value].aval)
        if kind in ("created", "captured"):
            return arrays[(output.created[value] if kind == "created" else written[value]).output]
        if kind == "number":
            return jax.eval_shape(lambda: value(numbers))
        return arrays[value] if kind == "array" else value

    return jax.tree.unflatten(output.structure, list(map(shape_of, output.results)))


def _struct(aval):
    return jax.ShapeDtypeStruct(tuple(aval.shape), aval.dtype.numpy)
