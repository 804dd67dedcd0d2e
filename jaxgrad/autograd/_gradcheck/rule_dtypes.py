"""The dtypes that the rules of user's Functions return, before they are made to fit.

A gradient is cast to its input's dtype, and a tangent to its output's, so what arrives is always
right; but a rule that returns another dtype computes in it.
"""

from __future__ import annotations

import contextlib
import functools

import numpy

from ...tape.tensor import Tensor
from ..function import BackwardCFunction, Function
from .problem import directions, nodes


def check(subject, settings):
    """Raises GradcheckError where a rule returns another dtype than that of what it is for."""
    found: list[str] = []
    generator = numpy.random.default_rng(6)
    functions = [n._forward_cls for n in nodes(subject.outputs) if isinstance(n, BackwardCFunction)]
    with contextlib.ExitStack() as stack:
        for function in set(functions):
            stack.enter_context(_watched(function, found))
        if settings.backward:
            subject.pull(directions(subject.outputs, generator))
            _refuse(found, "reverse", "Gradient has dtype mismatch", settings)
        if settings.forward:
            inputs = [subject.input(k) for k in range(len(subject.moving))]
            subject.push(directions(inputs, generator))
            _refuse(found, "forward", "Forward AD gradient has dtype mismatch", settings)


def _refuse(found, mode, said, settings):
    if found:
        raise settings.error(mode, f"{said}: {found[0]}")


@contextlib.contextmanager
def _watched(function, found):
    """While it lasts the rules of a Function note the wrong dtypes that they return in `found`."""
    rules = {
        "backward": _inputs_of,
        "vjp": _inputs_of,
        "jvp": lambda ctx: [None if aval is None else aval.dtype for aval in ctx.outputs()],
    }
    own = {name: vars(function)[name] for name in rules if name in vars(function)}
    for name, expected in rules.items():
        rule = getattr(function, name)
        if rule is not getattr(Function, name):
            setattr(function, name, staticmethod(_noting(rule, expected, name, found)))
    try:
        yield
    finally:
        for name in rules:
            if name in own:
                setattr(function, name, own[name])
            elif name in vars(function):
                delattr(function, name)


def _noting(rule, expected, name, found):
    @functools.wraps(rule)
    def noting(ctx, *given):
        results = rule(ctx, *given)
        several = results if isinstance(results, tuple) else (results,)
        for position, (result, dtype) in enumerate(zip(several, expected(ctx), strict=False)):
            if isinstance(result, Tensor) and dtype is not None and result.dtype != dtype:
                found.append(
                    f"{ctx._forward_cls.__name__}.{name} returned {result.dtype} at position "
                    f"{position}, where it is {dtype}"
                )
        return results

    return noting


def _inputs_of(ctx):
    """For each argument of a call the dtype of its gradient, None for one that has none."""
    edges, found = iter(ctx.edges), []
    for needed in ctx.needs_input_grad:
        node, output_nr = next(edges) if needed else (None, 0)
        found.append(None if node is None else node.outputs()[output_nr].dtype)
    return found
