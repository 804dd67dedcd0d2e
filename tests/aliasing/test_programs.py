"""Random programs of views, writes and operators: jaxgrad's answers are those without in-place.

Values, gradients, strides and errors are compared with the functional interpretation always, and
with PyTorch where it is installed and answers; some also twice differentiated, or compiled. `make
oracle` runs 2,000 other programs (tests/oracle/live_programs.py).
"""

import importlib.util

import checks
import hypothesis
import pytest
from aliasing import programs
from aliasing.compare import check, check_compiled, check_twice
from hypothesis import HealthCheck

HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.mark.slow
@hypothesis.settings(max_examples=150, suppress_health_check=list(HealthCheck))
@hypothesis.given(draws=programs.drawn_steps, backwards=hypothesis.strategies.booleans())
def test_programs(draws, backwards):
    check(draws, backwards, HAS_TORCH)
    checks.count("aliasing")


@pytest.mark.slow
@hypothesis.settings(max_examples=40, suppress_health_check=list(HealthCheck))
@hypothesis.given(draws=programs.drawn_steps)
def test_second_derivatives(draws):
    check_twice(draws)
    checks.count("aliasing")


@pytest.mark.slow
@hypothesis.settings(max_examples=25, suppress_health_check=list(HealthCheck))
@hypothesis.given(draws=programs.drawn_steps)
def test_compiled(draws):
    check_compiled(draws)
    checks.count("aliasing")
