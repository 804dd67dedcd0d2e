"""10,000 interrupts at random moments of what changes several tensors.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import pytest
from compiled import test_shared_state
from helpers import interrupts
from oracle.seed import SEED

TIMES = 10_000
SLOW = {"FirstCall": 100, "FirstCallOfTransform": 100, "Save": 2000}


@pytest.mark.parametrize("name", interrupts.JOBS)
def test_interrupts_at_random_moments(name):
    try:
        interrupts.interrupt(interrupts.JOBS[name], SLOW.get(name, TIMES), SEED)
    except AssertionError as error:
        raise AssertionError(f"SEED={SEED}\n{error}") from None


@pytest.mark.parametrize("work", [test_shared_state.accumulate, test_shared_state.train])
def test_threads_that_share_state(work):
    for _ in range(100):
        work()
