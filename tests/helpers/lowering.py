"""Programs lowered for platforms that are not there: JAX makes their StableHLO without a device."""

import jax
import jax.numpy as jnp
import numpy
from samples import families

from helpers.problems import Problem
from helpers.recorded import answers_of
from jaxgrad.tape.tensor import wrap

PLATFORMS = "cuda", "rocm", "tpu"

FAMILIES = families()


def first_problems():
    """The first sample of each operator over its first field, by the operator's name."""
    problems = {}
    for family, samples in FAMILIES.items():
        for sample in samples:
            if sample.name not in problems:
                answer = answers_of(family)[sample.id][sample.fields[0]]
                problems[sample.name] = Problem(sample, sample.fields[0], answer)
    return problems


def lower(function, *arrays, platforms=PLATFORMS):
    """A function of arrays, traced once and lowered for platforms."""
    with jax.enable_x64(True):
        return jax.jit(function).trace(*arrays).lower(lowering_platforms=platforms)


def narrowed(array, dtype):
    """The array with floats of a dtype in the place of float64, complex64 for complex128."""
    if array.dtype == numpy.complex128:
        return jnp.asarray(array, jnp.complex64)
    if array.dtype != numpy.float64:
        return jnp.asarray(array)
    if jnp.issubdtype(dtype, jnp.integer):
        array = numpy.clip(numpy.nan_to_num(array), *_limits(dtype))
    return jnp.asarray(array, dtype)


def _limits(dtype):
    limits = jnp.iinfo(dtype)
    return limits.min, limits.max


def value(problem, dtype):
    """The operator's outputs as a function of the arrays that a trace may know, and these."""
    with jax.enable_x64(True):
        arrays = [narrowed(array, dtype) for array in problem.arrays]
    varying = problem.varying

    def outputs(*varied):
        operands = list(arrays)
        for position, array in zip(varying, varied, strict=True):
            operands[position] = array
        return [wrapped._array for wrapped in problem.outputs(list(map(wrap, operands)))]

    return outputs, [arrays[i] for i in varying]


def derivatives(problem, dtype):
    """The gradient, the tangent and the derivative of the gradient along the inputs, and of the
    products of both: in reverse mode, forward mode, and in both nested; and the inputs.
    """
    outputs, arrays = value(problem, dtype)
    varying = problem.varying
    moving = [place for place, position in enumerate(varying) if position in problem.moving]

    def function(*moved):
        operands = list(arrays)
        for place, array in zip(moving, moved, strict=True):
            operands[place] = array
        results = outputs(*operands)
        return [results[i] for i in problem.differentiable]

    return of_all_orders(function), [arrays[i] for i in moving]


def of_all_orders(function):
    """The derivatives that `derivatives` names, of a function of arrays, which gives a list."""

    def gradient(*moved):
        results, pull = jax.vjp(function, *moved)
        return pull([jnp.ones_like(result) for result in results])

    def program(*moved):
        tangent = jax.jvp(function, moved, moved)
        forward_over_reverse = jax.jvp(gradient, moved, moved)
        pull = jax.vjp(gradient, *moved)[1]
        return tangent, forward_over_reverse, pull(moved)

    return program


def derivatives_of_call(call):
    """As `derivatives`, of a call of an operator, and ones as inputs."""
    arrays = [
        kind(1) if isinstance(kind, type) else jnp.ones(kind.shape, kind.dtype.numpy)
        for kind in call.inputs
    ]
    moving = [place for place, is_tracked in enumerate(call.tracked) if is_tracked]

    def function(*moved):
        operands = list(arrays)
        for place, array in zip(moving, moved, strict=True):
            operands[place] = array
        results = call.function(*operands)
        return [results[i] for i in call.differentiable_outputs]

    return of_all_orders(function), [arrays[i] for i in moving]
