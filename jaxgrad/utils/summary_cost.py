"""The multiply-adds of a jaxpr: those of its matrix products and convolutions."""

from __future__ import annotations

import math
import re
from collections import Counter

from jax.extend.core import Var

from ..core import aval as avals
from ..core.program import Program

PRODUCTS = ("dot_general", "conv_general_dilated")
# a result passes these unchanged on the way to the addition of a bias
_MOVES = ("convert_element_type", "reshape", "transpose", "squeeze", "broadcast_in_dim")
_TAG = re.compile(r"layer(\d+)_of_summary")


def tag(number: int) -> str:
    """The name of the scope in which the operations of a layer are traced."""
    return f"layer{number}_of_summary"


def by_layer(jaxpr) -> Counter:
    """The multiply-adds of each tagged layer, by its number, without those of the layers inside of
    it; those of no layer count for layer 0.
    """
    found = Counter()
    _add(jaxpr, found, 0)
    return found


def of_program(program) -> int:
    """The multiply-adds of an operator; 0 for computations that have no program."""
    if not isinstance(program, Program):
        return 0
    jaxpr, _ = program.trace(*map(avals.struct_of, program.inputs))
    return sum(by_layer(jaxpr.jaxpr).values())


def _add(jaxpr, found, layer, times=1):
    """Add the multiply-adds of a jaxpr, which runs so many times, to those of its layers."""
    products = set()
    for equation in jaxpr.eqns:
        tags = _TAG.findall(str(equation.source_info.name_stack))
        inner = int(tags[-1]) if tags else layer
        found[inner] += times * _of_equation(equation, products)
        repeats = times * equation.params["length"] if equation.primitive.name == "scan" else times
        _add_largest(_jaxprs(equation), found, inner, repeats)


def _add_largest(jaxprs, found, layer, times):
    """Add those of the branch that costs most: an equation of another kind has one jaxpr, or such
    as are small beside it.
    """
    costs = []
    for jaxpr in jaxprs:
        costs.append(Counter())
        _add(jaxpr, costs[-1], layer, times)
    found.update(max(costs, key=Counter.total, default={}))


def _jaxprs(equation):
    for value in equation.params.values():
        for each in value if isinstance(value, tuple | list) else (value,):
            each = getattr(each, "jaxpr", each)
            if hasattr(each, "eqns"):
                yield each


def _of_equation(equation, products) -> int:
    """Those of one equation. products: the variables so far that are a product or its moved
    elements; an addition to one is that of a bias.
    """
    name, result = equation.primitive.name, equation.outvars[0]
    inputs = [each for each in equation.invars if isinstance(each, Var)]
    if name in PRODUCTS:
        products.add(result)
        return _of_product(equation, result.aval.size)
    if products.isdisjoint(inputs):
        return 0
    if name in _MOVES:
        products.add(result)
    return result.aval.size if name == "add" else 0


def _of_product(equation, size) -> int:
    """Each element of the result is a sum of so many products."""
    left, right = (each.aval.shape for each in equation.invars)
    if equation.primitive.name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        return size * math.prod(left[dim] for dim in contracted)
    channel = equation.params["dimension_numbers"].rhs_spec[0]
    return size * math.prod(right) // max(1, right[channel])
