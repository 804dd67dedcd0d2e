"""Find the operator of a function whose derivative is wrong.

One more call of the function is observed, and the derivative of each of its operators is compared
with finite differences by itself.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy

from ...core import executor
from ...core.aval import is_concrete
from ...core.program import Program
from .._function.call import FunctionNode
from . import precision
from .problem import directions, nodes, product, quotient


def culprit(problem, settings, mode) -> str:
    """Sentences that name the cause of a mismatch; empty if none is found."""
    pairs = zip(problem.values(problem.chosen), problem.values(problem.chosen), strict=True)
    if not all(numpy.array_equal(*pair, equal_nan=True) for pair in pairs):
        return f"Called twice with the same inputs {problem.name} gives different values."
    calls = [(program, arrays) for program, arrays in _observed(problem) if _moves(program)]
    narrow = [program for program, _ in calls if not _is_double(program)]
    for program, arrays in calls:
        if program not in narrow and _is_wrong(program, arrays, settings, mode):
            shapes = ", ".join(
                str(list(array.shape)) for array in arrays if hasattr(array, "shape")
            )
            return f"By itself the derivative of {program.name} is wrong, for shapes {shapes}."
    coarse = precision.of_ends(problem, settings) or precision.of_operators(narrow)
    if coarse:
        return coarse
    functions = {node.name() for node in nodes(problem.outputs) if _is_function(node)}
    if functions:
        return f"Every operator is right by itself; look at {', '.join(sorted(functions))}."
    return ""


def _observed(problem) -> list:
    calls = []

    def observer(program, kernel, *arrays):
        calls.append((program, arrays))
        return kernel(*arrays)

    executor.observe(observer)
    try:
        problem.call(problem.inputs)
    finally:
        executor.unobserve(observer)
    return calls


def _is_function(node) -> bool:
    return isinstance(node, FunctionNode)


def _moves(program) -> bool:
    """Whether a program has a derivative, and arrays to compute it with."""
    if not isinstance(program, Program) or not is_concrete(program.mode):
        return False
    return any(program.tracked) and bool(program.differentiable_outputs)


def _is_double(program) -> bool:
    """Whether a program has double precision throughout."""
    moving = [i for i, flag in zip(program.inputs, program.tracked, strict=True) if flag]
    results = [program.outputs[i] for i in program.differentiable_outputs]
    return all(precision.is_double(aval.dtype) for aval in (*moving, *results))


def _is_wrong(program, arrays, settings, mode) -> bool:
    generator = numpy.random.default_rng(0)
    wanted = [i for i, flag in enumerate(program.tracked) if flag]
    along = directions([program.inputs[i] for i in wanted], generator)
    weights = directions([program.outputs[i] for i in program.differentiable_outputs], generator)
    slopes = _slopes(program, arrays, wanted, along, settings.eps)
    numerical = sum(map(product, weights, slopes))
    derivative = _pulled if mode == "reverse" else _pushed
    analytical = derivative(program, arrays, wanted, along, weights)
    return settings.tolerance.excess(numpy.array(analytical), numpy.array(numerical)) > 0


def _slopes(program, arrays, wanted, along, eps):
    values = []
    for sign in (1, -1):
        moved_arrays = list(arrays)
        for i, direction in zip(wanted, along, strict=True):
            moved_arrays[i] = _array(numpy.asarray(moved_arrays[i]) + sign * eps * direction)
        values.append(_values(program, moved_arrays))
    return [quotient(*pair, 2 * eps) for pair in zip(*values, strict=True)]


def _values(program, arrays):
    results = executor.prepare(program).kernel.compute(*arrays)
    results = [results] if program.single else results
    return [numpy.asarray(results[i]) for i in program.differentiable_outputs]


def _pulled(program, arrays, wanted, along, weights):
    reverse = executor.prepare(program.reverse(tuple(program.tracked)))
    results = program.kernel.compute(*arrays)
    results = [results] if program.single else results
    saved = [arrays[i] for i in reverse.saved_inputs] + [results[i] for i in reverse.saved_outputs]
    gradients = reverse.kernel.compute(*map(_array, weights), *saved)
    gradients = [gradients] if reverse.single else gradients
    return sum(product(gradient, v) for gradient, v in zip(gradients, along, strict=True))


def _pushed(program, arrays, wanted, along, weights):
    def function(*moving):
        inputs = list(arrays)
        for i, array in zip(wanted, moving, strict=True):
            inputs[i] = array
        results = program.function(*inputs)
        return [results[i] for i in program.differentiable_outputs]

    with jax.enable_x64(True):
        moving = [jnp.asarray(arrays[i]) for i in wanted]
        tangents = jax.jvp(function, moving, list(map(_array, along)))[1]
    return sum(map(product, weights, tangents))


def _array(array):
    with jax.enable_x64(True):
        return jnp.asarray(array)
