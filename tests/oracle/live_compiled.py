"""Random programs of state, compiled and uncompiled, and with the installed PyTorch.

make oracle     (`--seed N` repeats a run: a failure names the seed of its program, and shows it)
"""

import pytest
import torch
from capture import programs
from helpers import checks
from oracle.seed import SEED, TAKES_ALL

PARTS = 20
PROGRAMS = 5000 if TAKES_ALL else 1000
FIRST = SEED * PROGRAMS % 2**31  # the seed of each program must be one that NumPy takes


@pytest.mark.parametrize("part", range(PARTS))
def test_programs(part):
    count = PROGRAMS // PARTS
    for number in range(part * count, (part + 1) * count):
        try:
            programs.check_seed(FIRST + number, torch=torch, verify=number % 10 == 0)
        except AssertionError as error:
            raise AssertionError(f"SEED={SEED}\n{error}") from None
        checks.count("programs")
