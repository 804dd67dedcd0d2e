"""On which inputs of a trace a value depends, by the equations behind its tracer."""

from __future__ import annotations

import jax

from ..core.jax_internals import CALLS, INNER, equation_behind, lowered, operands_of, result_behind
from ..core.jaxprs import opened
from .known_numbers import input_p


def depends_on(array, is_wanted, scopes) -> bool:
    """Whether an array depends on an input for which `is_wanted(scope, input)`.

    scopes: those of the traces that are open, the innermost first. What a captured tensor was in
    the trace around is followed there.
    """
    seen, waiting = set(), [array]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, jax.core.Tracer) or id(value) in seen:
            continue
        seen.add(id(value))
        constant, equation = lowered(value), equation_behind(value)
        if constant is not value:
            waiting.append(constant)
        elif equation is not None and equation.primitive is input_p:
            scope, source = _input(value, equation.params["number"], scopes)
            if scope is not None and is_wanted(scope, source):
                return True
            if scope is not None and source.captured is not None:
                waiting.append(scope.array_around(source.captured))
        elif equation is not None:
            number = result_behind(value, equation, range(len(equation.outvars)))
            operands = operands_of(equation)
            waiting += [operands[read] for read in _operands_of_result(equation, number)]
    return False


def _operands_of_result(equation, result: int) -> list[int]:
    """The numbers of the operands that a result of an equation depends on."""
    count = len(equation.invars)
    if equation.primitive.name not in CALLS:
        return list(range(count))
    jaxpr = opened(next(equation.params[name] for name in INNER if name in equation.params))
    wanted = {id(jaxpr.outvars[result])}
    for inner in reversed(jaxpr.eqns):
        for number, variable in enumerate(inner.outvars):
            if id(variable) in wanted:
                read = _operands_of_result(inner, number)
                wanted.update(id(inner.invars[operand]) for operand in read)
    return [n for n, variable in enumerate(jaxpr.invars) if id(variable) in wanted]


def _input(tracer, number, scopes):
    """The input that a tracer is, with the one of the scopes that it belongs to."""
    for scope in scopes:
        if number < len(scope.tracers) and scope.tracers[number] is tracer:
            return scope, scope.inputs[number]
    return None, None
