"""A test whether a function of arrays is linear, by its jaxpr.

Each value of the jaxpr is zero, constant, linear in the inputs, or something else. The tables below
say how the primitives that linear functions are made of map these states. Any other primitive makes
"something else" from a value that is not constant, so the test has no false positives.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from ...core.jax_internals import INNER, extent_of_carry

ZERO, CONSTANT, LINEAR, OTHER = range(4)

# primitives that are linear in the first operand; the others are indices and shapes
MOVES = ("broadcast_in_dim", "dynamic_slice", "expand_dims", "gather", "reshape", "rev", "slice")
PARTS = ("conj", "convert_element_type", "copy", "copy_p", "imag", "real", "split", "squeeze")
SUMS = ("cumsum", "div", "fft", "neg", "psum", "reduce_sum", "reduce_window_sum", "transpose")
PLACES = ("device_put", "optimization_barrier", "scatter-mul", "scatter_mul", "sharding_constraint")
FIRST = frozenset((*MOVES, *PARTS, *SUMS, *PLACES))
# primitives that are linear in these operands together
TOGETHER = {
    "add": (0, 1),
    "add_any": (0, 1),
    "sub": (0, 1),
    "complex": (0, 1),
    "pad": (0, 1),
    "dynamic_update_slice": (0, 1),
    "scatter": (0, 2),
    "scatter-add": (0, 2),
    "scatter_add": (0, 2),
}
# primitives that are linear in each of two operands
PRODUCTS = frozenset(["mul", "dot_general", "conv_general_dilated"])


def is_linear(function, *zeros) -> bool:
    """Whether a function of arrays is linear in them.

    zeros: arrays of the shapes and dtypes of its arguments.
    """
    program = jax.make_jaxpr(function)(*zeros)
    states = _run(program.jaxpr, program.consts, [LINEAR] * len(zeros))
    return all(state in (ZERO, LINEAR) for state in states)


def _of_constant(value):
    if isinstance(value, jax.core.Tracer) or not np.issubdtype(jnp.result_type(value), np.number):
        return CONSTANT
    return CONSTANT if np.any(np.asarray(value)) else ZERO


def _run(program, constants, input_states):
    """The states of the outputs of a jaxpr, from those of its inputs."""
    states = dict(zip(program.constvars, map(_of_constant, constants), strict=True))
    states |= zip(program.invars, input_states, strict=True)

    def state_of(atom):
        return _of_constant(atom.val) if isinstance(atom, Literal) else states[atom]

    for equation in program.eqns:
        operands = list(map(state_of, equation.invars))
        states |= zip(equation.outvars, _outputs(equation, operands), strict=True)
    return list(map(state_of, program.outvars))


def _outputs(equation, operands) -> list:
    name, count = equation.primitive.name, len(equation.outvars)
    inner = next((equation.params[key] for key in INNER if key in equation.params), None)
    if name == "scan":
        return _scanned(equation, operands)
    if name == "cond":
        return _chosen(equation, operands)
    if inner is not None and name != "while":
        return _run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), operands)
    return [_output(name, equation, operands)] * count


def _output(name, equation, operands):
    moving = [state for state in operands if state >= LINEAR]
    together = _together(name, len(operands))
    if not moving:
        nothing = [state == ZERO for state in operands]
        is_zero = any(nothing) if name in PRODUCTS else all(nothing[i] for i in together)
        return ZERO if together and operands and is_zero else CONSTANT
    if OTHER in moving:
        return OTHER
    if name in PRODUCTS:
        return LINEAR if len(moving) == 1 else OTHER
    fits = all(
        state in (ZERO, LINEAR) if i in together else state < LINEAR
        for i, state in enumerate(operands)
    )
    inexact = jnp.issubdtype(equation.outvars[0].aval.dtype, np.inexact)
    return LINEAR if fits and inexact else OTHER


def _together(name, count) -> tuple[int, ...]:
    """The positions of the operands in which, taken together, a primitive is linear."""
    if name == "select_n":
        return tuple(range(1, count))
    if name == "concatenate" or name in PRODUCTS:
        return tuple(range(count))
    return TOGETHER.get(name, (0,) if name in FIRST else ())


def _either(first, second):
    """The state of a value that is the first or the second."""
    if first == second:
        return first
    states = {first, second}
    if OTHER in states or states == {CONSTANT, LINEAR}:
        return OTHER
    return max(states)


def _chosen(equation, operands):
    if operands[0] >= LINEAR:
        return [OTHER] * len(equation.outvars)
    branches = equation.params["branches"]
    by_branch = [_run(branch.jaxpr, branch.consts, operands[1:]) for branch in branches]
    return [_joined(states) for states in zip(*by_branch, strict=True)]


def _joined(states):
    joined, *rest = states
    for state in rest:
        joined = _either(joined, state)
    return joined


def _scanned(equation, operands):
    body, sizes = equation.params["jaxpr"], extent_of_carry(equation.params)
    if sizes is None:
        return [OTHER] * len(equation.outvars)
    consts, end = sizes
    carried = operands[consts:end]
    while True:
        input_states = [*operands[:consts], *carried, *operands[end:]]
        states = _run(getattr(body, "jaxpr", body), getattr(body, "consts", ()), input_states)
        joined = list(map(_either, carried, states))
        if joined == carried:
            return [*carried, *states[len(carried) :]]
        carried = joined
