"""The equations that the host executor runs, and the register of their rules.

A rule makes a function of NumPy arrays from an equation. All that depends on shapes, dtypes and
parameters alone is worked out once, when the rule is called, and the function only computes:

    @rule("transpose")
    def transpose(equation):
        order = equation.params["permutation"]
        return lambda operand: operand.transpose(order)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import numpy

from ...late import LateModule

jax_core = LateModule("jax.extend.core")


class Form(NamedTuple):
    """The shape and the dtype of an array."""

    shape: tuple[int, ...]
    dtype: numpy.dtype


class Equation(NamedTuple):
    """The call of a primitive of JAX.

    name: that of the primitive; params: its parameters, a `Block` (block.py) in place of each
    jaxpr; inputs, outputs: the forms of its operands and results.
    """

    name: str
    params: dict
    inputs: tuple[Form, ...]
    outputs: tuple[Form, ...]


class NotOnHostError(Exception):
    """The host has no rule for an equation, or not in this form; XLA computes it."""


# by the name of the primitive: makes, of an equation, a function of NumPy arrays that gives one
# array, or a list of arrays if the primitive has several results
RULES: dict[str, Callable[[Equation], Callable]] = {}

# the modules that have rules, imported when the first program runs
FAMILIES = (
    "moves",
    "elementwise",
    "conversions",
    "calls",
    "reductions",
    "special",
    "contractions",
    "convolution",
    "fourier",
    "windows",
    "control_flow",
    "indexing",
    "linear_algebra",
    "random_bits",
    "sorting",
)


def rule(*names: str):
    """A decorator that registers the rule of primitives."""

    def register(make):
        for name in names:
            RULES[name] = make
        return make

    return register


@functools.cache
def _import_rules():
    for family in FAMILIES:
        import_module(f".{family}", __package__)


def without_rules() -> list[str]:
    """The names of JAX's primitives that have no rule, in order."""
    _import_rules()
    known = vars(jax_core.primitives).values()
    names = {value.name for value in known if isinstance(value, jax_core.Primitive)}
    return sorted(names - RULES.keys())


def function_of(equation: Equation) -> Callable:
    """The function of NumPy arrays that computes an equation.

    Its operands have the forms of the equation, and so have its results. Where a form has no
    dimensions, both may be NumPy's scalars. The function writes to none of its operands, and a
    result may share memory with them. Raises NotOnHostError.
    """
    _import_rules()
    make = RULES.get(equation.name)
    if make is None:
        raise NotOnHostError(equation.name)
    return make(equation)
