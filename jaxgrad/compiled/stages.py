"""The stages of `jax.jit`: traces and lowers a compiled function without a call.

The program is not filed, its side effects are not applied, and all state is put back.
"""

from __future__ import annotations

import operator

import jax

from ..capture.argument_containers import ArgumentEffect, Leaves, containers_of
from ..capture.joined_memory import PLACEHOLDER
from ..core import dtypes
from ..core.aval import make_aval
from ..core.meta_array import MetaArray
from ..core.tracebacks import shows_users_frames
from ..draws.frozen import FrozenReads
from ..late import LateModule
from ..tape import handle_lock, mode, pytree
from ..tape.tensor import Tensor, abstract_value, held, wrap
from . import one_shot

operation_times = LateModule("jaxgrad.compiled.operation_times")


def program_and_inputs(function, args, kwargs):
    """The program of a compiled function for these arguments, and its inputs: arrays, numbers, and
    a `jax.ShapeDtypeStruct` for each missing array. A struct among the arguments stands for a
    tensor.
    """
    if mode.scope.get() is not None:
        raise RuntimeError(
            f"{function.__name__} cannot be lowered inside of a function that jaxgrad.jit is "
            "tracing: do it outside"
        )
    leaves, structure = function.flatten(args, kwargs)
    one_shot.refuse_arguments(function.function, leaves, structure)
    known, leaves = leaves, Leaves(map(_as_argument, leaves))
    is_same = all(map(operator.is_, known, leaves)) and isinstance(known, Leaves)
    leaves.arguments = known.arguments if is_same else jax.tree.unflatten(structure, leaves)
    reads = FrozenReads(function.traced_function())
    with handle_lock.lock:
        try:
            tracing = function.tracing_of(leaves, structure, frozenset())
        finally:
            reads.put_back()
            function.cache.log.clear()
        tensors = tracing.tensors_of(leaves)
        program = tracing.executable(tracing.trace(), tensors, leaves)
        tracing.discard()
        tracing.observation.release()
    arrays = [*map(_example, tensors)]
    for number in program.members:
        arrays[number] = PLACEHOLDER
    return program, arrays + [source.example(leaves) for source in program.trace.other_inputs]


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
    written = {effect.number: effect.value for effect in effects if effect.value is not None}

    arguments = Leaves()
    arguments.arguments = pytree.map_leaves(_shape_of_argument, (args, kwargs))
    containers = containers_of(arguments)

    def shape_of(result):
        kind, value = result
        if kind == "tree":
            return jax.tree.unflatten(value[0], list(map(shape_of, value[1])))
        if kind == "object":
            return value.rebuild(shape_of, {})
        if kind == "captured" and value not in written:
            return _struct(program.trace.captured[value].aval)
        if kind in ("created", "captured"):
            return arrays[(output.created[value] if kind == "created" else written[value]).output]
        if kind == "argument":
            return containers[value]
        if kind == "place":
            return pytree.map_leaves(_shape_of_argument, output.places[value].value())
        if kind == "number":
            return jax.eval_shape(lambda: value(numbers))
        return arrays[value] if kind == "array" else value

    for effect in output.object_effects:
        if isinstance(effect, ArgumentEffect):
            bound = {name: shape_of(result) for name, result in effect.bound.items()}
            effect.holder.put(containers[effect.position], bound, effect.removed)
    return jax.tree.unflatten(output.structure, list(map(shape_of, output.results)))


def _shape_of_argument(leaf):
    return _struct(abstract_value(leaf)) if isinstance(leaf, Tensor) else leaf


def _struct(aval):
    return jax.ShapeDtypeStruct(tuple(aval.shape), aval.dtype.numpy)


class StagedFunction:
    """The stages of a compiled function, without a call."""

    @shows_users_frames
    def lower(self, *args, **kwargs):
        """The program for these arguments as JAX lowers it: a `jax.stages.Lowered`, with
        `.as_text()` and `.compile().cost_analysis()`. The function is traced, and not run.

        Its inputs have the names by which the function reaches them, as `model.0.weight`; its
        operations are in a scope of the operator's name, those of a gradient in one of the node's.
        A `jax.ShapeDtypeStruct` among the arguments stands for a tensor.

        >>> double = jaxgrad.jit(lambda x: x * 2)
        >>> "multiply" in double.lower(jaxgrad.ones(2)).as_text()
        True
        """
        return lower(self, args, kwargs)

    @shows_users_frames
    def trace(self, *args, **kwargs):
        """The program for these arguments: a `jax.stages.Traced`, with `.jaxpr` and `.lower()`;
        arguments as for `lower`.

        >>> len(jaxgrad.jit(lambda x: x * 2).trace(jaxgrad.ones(2)).jaxpr.eqns)
        1
        """
        return trace(self, args, kwargs)

    @shows_users_frames
    def profile(self, *args, **kwargs):
        """The time that XLA spends in each operator of the program for these arguments, and in each
        node of its backward passes: a list of `OperatorTime`, the longest first, which prints as a
        table. It compiles the program and runs it eleven times. No state changes. Small programs
        that NumPy runs in calls are timed as XLA runs them.

        Raises RuntimeError if `jax.profiler` is tracing.

        >>> step = jaxgrad.jit(lambda x: (x @ x).sin().sum())
        >>> times = step.profile(jaxgrad.ones(200, 200))
        >>> {"matmul", "sin"} <= {row.name for row in times}
        True
        """
        return operation_times.profile(*program_and_inputs(self, args, kwargs))

    @shows_users_frames
    def eval_shape(self, *args, **kwargs):
        """The result for these arguments, with a `jax.ShapeDtypeStruct` for each tensor; arguments
        as for `lower`. Nothing is computed.

        >>> jaxgrad.jit(lambda x: x @ x).eval_shape(jaxgrad.ones(2, 2))
        ShapeDtypeStruct(shape=(2, 2), dtype=float32)
        """
        return eval_shape(self, args, kwargs)
