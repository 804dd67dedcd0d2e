"""Random imperative programs do the same compiled and uncompiled, call after call.

Here runs a sample; tests/oracle/live_compiled.py runs 5,000, and compares with PyTorch too.
"""

import pytest

from . import programs

QUICK, ALL = 2, 60


@pytest.mark.parametrize(
    "seed",
    [*range(QUICK), *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(QUICK, ALL)]],
)
def test_random_program(seed):
    programs.check_seed(seed)


def stale(function):
    """A function that gives its first result at every call, and changes nothing afterwards."""
    results = []

    def call(*args, **kwargs):
        if not results:
            results.append(function(*args, **kwargs))
        return results[0]

    return call


@pytest.mark.slow
def test_a_difference_is_found_and_made_small(monkeypatch):
    monkeypatch.setattr(programs.jaxgrad, "jit", stale)
    with pytest.raises(AssertionError, match="seed 3: compiled, ") as raised:
        programs.check_seed(3)
    assert len(str(raised.value).splitlines()) < 40
