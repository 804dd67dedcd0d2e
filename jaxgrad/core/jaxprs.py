"""The equations of jaxprs, inner jaxprs included, and whether a jaxpr has 64-bit types."""

from __future__ import annotations

import itertools

import jax
import numpy

from ..late import LateModule

jax_core = LateModule("jax.extend.core")

WIDE = frozenset(map(numpy.dtype, ("int64", "uint64", "float64", "complex128")))


def equations_of(jaxpr):
    """The equations of a jaxpr, and of the jaxprs in their parameters in place of the outer one."""
    for equation in opened(jaxpr).eqns:
        within = jaxprs_within(equation)
        if not within:
            yield equation
        for inner in within:
            yield from equations_of(inner)


def opened(jaxpr) -> jax_core.Jaxpr:
    """A jaxpr without its constants."""
    return jaxpr.jaxpr if isinstance(jaxpr, jax_core.ClosedJaxpr) else jaxpr


def jaxprs_within(equation) -> list:
    """The jaxprs in the parameters of an equation."""
    parameters = jax.tree.leaves(list(equation.params.values()), is_leaf=_is_jaxpr)
    return [parameter for parameter in parameters if _is_jaxpr(parameter)]


def _is_jaxpr(value) -> bool:
    return isinstance(value, jax_core.ClosedJaxpr | jax_core.Jaxpr)


def has_wide_types(jaxpr) -> bool:
    """Whether a value in a jaxpr has 64 bits. Without one it is the same with JAX's 64-bit types on
    and off.

    >>> jaxgrad.core.jaxprs.has_wide_types(jax.make_jaxpr(jax.numpy.sin)(jax.numpy.float32(1)))
    False
    """
    jaxpr = opened(jaxpr)
    atoms = [*jaxpr.invars, *jaxpr.constvars, *jaxpr.outvars]
    for equation in jaxpr.eqns:
        atoms += [*equation.invars, *equation.outvars]
        if any(map(has_wide_types, jaxprs_within(equation))):
            return True
    return any(getattr(atom.aval, "dtype", None) in WIDE for atom in atoms)


def is_pure(equation) -> bool:
    """Whether an equation may be evaluated once more: it has no effects, calls no Python code, and
    takes no memory.

    Leans on the names of JAX's primitives for callbacks, which all have "callback" in them, and on
    the parameter `donated_invars` of the call of a jitted function. If they change, code may run
    when a function is traced that should run at each call.
    """
    jaxprs = jax_core.jaxprs_in_params(equation.params)
    equations = [equation, *itertools.chain.from_iterable(map(equations_of, jaxprs))]
    calls_back = any("callback" in equation.primitive.name for equation in equations)
    return not (equation.effects or calls_back or any(equation.params.get("donated_invars", ())))
