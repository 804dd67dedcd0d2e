"""2,000 random programs of views and in-place writes, against the installed PyTorch too.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import hypothesis
import pytest
from helpers import checks
from hypothesis import HealthCheck
from oracle.seed import SEED
from storage import programs
from storage.compare import check

PARTS = 20
PROGRAMS = 2000


@pytest.mark.parametrize("part", range(PARTS))
def test_programs(part):
    @hypothesis.seed(SEED * PARTS + part)
    @hypothesis.settings(
        max_examples=PROGRAMS // PARTS,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(draws=programs.drawn_steps, backwards=hypothesis.strategies.booleans())
    def run(draws, backwards):
        check(draws, backwards, with_torch=True)
        checks.count("aliasing")

    try:
        run()
    except AssertionError as error:
        raise AssertionError(f"SEED={SEED}\n{error}") from None
