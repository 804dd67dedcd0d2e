"""Proves that a jaxpr is linear in some of its inputs, from its equations and without running it.

A jaxpr may be linear without a proof: one with a loop, or with a function of the host.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax.extend.core import Literal

from .jax_internals import CALLS
from .jaxprs import jaxprs_within, opened

# what is known of a value: it is the same for all linear inputs, it is 0, or it is linear in them
CONSTANT, ZERO, LINEAR = range(3)


class Unproven(Exception):
    """An equation whose result may not be linear."""


def words(text):
    return frozenset(text.split())


# linear in their first operand; over real numbers, as gradients are
OF_FIRST = words(
    """
    broadcast_in_dim conj convert_element_type copy cumsum div dynamic_slice expand_dims fft gather
    imag neg real reduce_sum reshape rev slice split squeeze transpose
    """
)
# linear in all operands together
SUMS = words("add add_any complex concatenate pad sub")
# linear in each of two operands, if the other is constant
PRODUCTS = words("conv_general_dilated dot_general mul")
# 0 stays 0
KEEP_ZERO = words("broadcast_in_dim convert_element_type copy neg reshape squeeze transpose")


def is_linear(closed, linear: list[bool]) -> bool:
    """Whether the results of a jaxpr are proven to be linear in the inputs with a flag."""
    states = [LINEAR if flag else CONSTANT for flag in linear]
    try:
        return CONSTANT not in results_of(closed, states)
    except Unproven:
        return False


def results_of(jaxpr, states) -> list[int]:
    """The states of the results of a jaxpr, from those of its inputs."""
    jaxpr = opened(jaxpr)
    known = dict(zip(jaxpr.invars, states, strict=True))

    def state(atom):
        if not isinstance(atom, Literal):
            return known.get(atom, CONSTANT)
        return ZERO if jnp.ndim(atom.val) == 0 and atom.val == 0 else CONSTANT

    for equation in jaxpr.eqns:
        results = results_of_equation(equation, list(map(state, equation.invars)))
        known |= zip(equation.outvars, results, strict=True)
    return list(map(state, jaxpr.outvars))


def results_of_equation(equation, states) -> list[int]:
    name, count = equation.primitive.name, len(equation.outvars)
    if name in CALLS:
        within = jaxprs_within(equation)
        if len(within) != 1 or len(opened(within[0]).invars) != len(states):
            raise Unproven(name)
        return results_of(within[0], states)
    if LINEAR not in states:
        return [ZERO if name in KEEP_ZERO and states[0] == ZERO else CONSTANT] * count
    if not is_linear_equation(equation, name, states):
        raise Unproven(name)
    return [LINEAR] * count


def is_linear_equation(equation, name, states) -> bool:
    """Whether the results of an equation are linear, some of whose operands are."""
    if name in OF_FIRST:
        dtype = equation.params.get("new_dtype")
        inexact = dtype is None or jnp.issubdtype(dtype, jnp.inexact)
        return LINEAR not in states[1:] and inexact
    if name in PRODUCTS:
        return states.count(LINEAR) == 1
    if name in SUMS:
        return CONSTANT not in states
    # these have operands that are constant, and others that add up
    constant, summed = {
        "select_n": (states[:1], states[1:]),
        "scatter-add": (states[1:2], [states[0], *states[2:]]),
        "dynamic_update_slice": (states[2:], states[:2]),
        "triangular_solve": (states[:1], states[1:]),
    }.get(name, (states, ()))
    return LINEAR not in constant and CONSTANT not in summed
