"""Programs over random worlds of Python state do the same compiled and uncompiled, call after call:
results, gradients, all state, and which names reach the same object (tests/capture/worlds).

`python tests/capture/worlds/run.py 0 20000` compares more of them.
"""

import pytest

from .worlds.check import seed_result

PROGRAMS, PARTS = 500, 20


@pytest.mark.unverified
@pytest.mark.parametrize("part", range(PARTS))
def test_generated_programs(part):
    for seed in range(part, PROGRAMS, PARTS):
        seed_result(seed)
