"""Helpers of the tests of profiles."""

import jaxgrad
from jaxgrad.autograd import profiler


def names(prof):
    """The events of operators, nodes and labels, without what JAX compiles on the way."""
    return [e.name for e in prof.function_events if not e.name.startswith("jax::")]


def named(prof, name):
    events = [event for event in prof.function_events if event.name == name]
    assert events, f"no {name} among {names(prof)}"
    return events


def square(x):
    """Runs some operators forward and backward."""
    y = (x * x).sin()
    y.sum().backward()
    return y


def profiled(function=square, **options):
    x = jaxgrad.ones(3, 4).requires_grad_()
    with profiler.profile(**options) as prof:
        function(x)
    return prof
