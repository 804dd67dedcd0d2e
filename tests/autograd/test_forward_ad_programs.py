"""Random programs of views, writes and operators over duals (tests/storage/forward.py).

Their values and tangents are those that JAX finds of the same program without in-place. `make
oracle` compares other programs with the installed PyTorch too (tests/oracle/live_forward_ad.py).
"""

import hypothesis
import pytest
from helpers import checks
from hypothesis import HealthCheck
from storage import forward, programs

import jaxgrad


def programs_of(number, marks=(pytest.mark.slow,), **strategies):
    """Runs a function on this many random programs; one check, since some may be drawn twice."""
    settings = hypothesis.settings(max_examples=number, suppress_health_check=list(HealthCheck))

    def decorate(function):
        def test():
            settings(hypothesis.given(draws=programs.drawn_steps, **strategies)(function))()
            checks.count("forward mode")

        test.__name__ = function.__name__
        for mark in marks:
            test = mark(test)
        return test

    return decorate


@programs_of(1, marks=(), backwards=hypothesis.strategies.booleans())
def test_a_program_of_duals(draws, backwards):
    forward.check(jaxgrad, draws, backwards)


@programs_of(50, backwards=hypothesis.strategies.booleans())
def test_programs_of_duals(draws, backwards):
    forward.check(jaxgrad, draws, backwards)


@programs_of(25)
def test_programs_of_duals_of_two_levels(draws):
    forward.check_twice(jaxgrad, draws)


@programs_of(20, backwards=hypothesis.strategies.booleans())
def test_programs_of_duals_that_require_grad(draws, backwards):
    forward.check_with_gradients(jaxgrad, draws, backwards)


@programs_of(25)
def test_compiled_programs_of_duals(draws):
    forward.check_compiled(jaxgrad, draws)
