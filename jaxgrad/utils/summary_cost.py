"""The multiply-adds of a jaxpr: those of its matrix products and convolutions."""

from __future__ import annotations

import math
import re
from collections import Counter

from jax.extend.core import Var

from ..core import aval as avals
from ..core.jax_internals import scopes_of
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
    totals = Counter()
    _add(jaxpr, totals, 0)
    return totals


def of_program(program) -> int:
    """The multiply-adds of an operator; 0 for computations that have no program."""
    if not isinstance(program, Program):
        return 0
    jaxpr, _ = program.trace(*map(avals.struct_of, program.inputs))
    return sum(by_layer(jaxpr.jaxpr).values())


def products_of(program) -> int:
    """The multiply-adds of an operator's products alone, without those with zeros that a
    convolution puts between elements.
    """
    jaxpr, _ = program.trace(*map(avals.struct_of, program.inputs))
    return _products(jaxpr.jaxpr)


def _products(jaxpr) -> int:
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name in PRODUCTS:
            total += min(_of_product(equation), _of_input(equation))
        else:
            times = equation.params["length"] if equation.primitive.name == "scan" else 1
            total += times * max(map(_products, _jaxprs(equation)), default=0)
    return total


def _add(jaxpr, totals, layer, times=1) -> set[int]:
    """Add the multiply-adds of a jaxpr, which runs so many times, to those of its layers. Returns
    which of its results are products.
    """
    products, broadcast = set(), set()
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        tags = _TAG.findall(scopes_of(equation))
        inner = int(tags[-1]) if tags else layer
        inputs = [operand for operand in equation.invars if isinstance(operand, Var)]
        if name in PRODUCTS:
            totals[inner] += times * _of_product(equation)
            products.add(equation.outvars[0])
        elif name == "add" and not products.isdisjoint(inputs):
            result = equation.outvars[0].aval
            is_bias = result.ndim == 1 or not broadcast.isdisjoint(inputs)
            totals[inner] += times * result.size if is_bias else 0
        elif name in _MOVES and not products.isdisjoint(inputs):
            products.add(equation.outvars[0])
        elif name == "broadcast_in_dim":
            broadcast.add(equation.outvars[0])
        else:
            repeats = times * equation.params["length"] if name == "scan" else times
            inside = _add_largest(_jaxprs(equation), totals, inner, repeats)
            products.update(equation.outvars[at] for at in inside)
    return {at for at, result in enumerate(jaxpr.outvars) if _is_among(result, products)}


def _is_among(result, products) -> bool:
    return isinstance(result, Var) and result in products


def _add_largest(jaxprs, totals, layer, times) -> set[int]:
    """Add the cost of the most expensive jaxpr: the branches of a condition are alternatives, and
    an equation of another kind has one jaxpr, or others that are small beside it.
    """
    costs = []
    for jaxpr in jaxprs:
        cost = Counter()
        costs.append((cost, _add(jaxpr, cost, layer, times)))
    largest, products = max(costs, key=lambda pair: pair[0].total(), default=({}, set()))
    totals.update(largest)
    return products


def _jaxprs(equation):
    for value in equation.params.values():
        for candidate in value if isinstance(value, tuple | list) else (value,):
            candidate = getattr(candidate, "jaxpr", candidate)
            if hasattr(candidate, "eqns"):
                yield candidate


def _of_product(equation) -> int:
    """Each element of the result is a sum of so many products."""
    size = equation.outvars[0].aval.size
    left, right = (operand.aval.shape for operand in equation.invars)
    if equation.primitive.name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        return size * math.prod(left[dim] for dim in contracted)
    channel = equation.params["dimension_numbers"].rhs_spec[0]
    return size * math.prod(right) // max(1, right[channel])


def _of_input(equation) -> float:
    """Each element of the input of a convolution is a factor of so many products."""
    if equation.primitive.name == "dot_general":
        return math.inf
    left, right = (operand.aval for operand in equation.invars)
    numbers, groups = equation.params["dimension_numbers"], equation.params["feature_group_count"]
    batches = equation.params["batch_group_count"]
    channels = right.shape[numbers.rhs_spec[1]] * groups
    return left.size * right.size // max(1, channels * batches)
