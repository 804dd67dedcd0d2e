"""Random programs of views, writes and operators against the same programs without in-place writes.

Values, gradients, strides and errors are compared with the functional interpretation always, and
with PyTorch where it is installed and answers; some also twice differentiated, or compiled. `make
oracle` runs 2,000 other programs (tests/oracle/live_programs.py).
"""

import importlib.util

import hypothesis
import pytest
from helpers import checks
from hypothesis import HealthCheck
from storage import programs
from storage.compare import check, check_compiled, check_twice

HAS_TORCH = importlib.util.find_spec("torch") is not None


def programs_of(number, is_slow=True, **strategies):
    """Runs a function on this many random programs; one check, since some may be drawn twice."""
    settings = hypothesis.settings(max_examples=number, suppress_health_check=list(HealthCheck))

    def decorate(function):
        def test():
            settings(hypothesis.given(draws=programs.drawn_steps, **strategies)(function))()
            checks.count("aliasing")

        test.__name__ = function.__name__
        return pytest.mark.slow(test) if is_slow else test

    return decorate


@programs_of(15, is_slow=False, backwards=hypothesis.strategies.booleans())
def test_a_few_random_programs_equal_the_model(draws, backwards):
    check(draws, backwards, HAS_TORCH)


@programs_of(135, backwards=hypothesis.strategies.booleans())
def test_random_programs_equal_the_model(draws, backwards):
    check(draws, backwards, HAS_TORCH)


@programs_of(40)
def test_second_derivatives_of_random_programs(draws):
    check_twice(draws)


@programs_of(25)
def test_random_programs_compiled(draws):
    check_compiled(draws)
