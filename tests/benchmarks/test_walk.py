"""How many functions of jaxgrad a call runs: a reader follows them, and a user waits for them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

WALK = Path(__file__).parent / "walk.py"
MOST_CALLS = {"sum(sin(x)) and back": 60, "compiled step, warm": 45}


@pytest.fixture(scope="module")
def calls():
    """The number of calls by title, as `make walk` prints it."""
    usual = {name: value for name, value in os.environ.items() if name != "JAXGRAD_EAGER"}
    run = subprocess.run(
        [sys.executable, WALK], env=usual, capture_output=True, text=True, check=True
    )
    return {
        title.strip(): int(n)
        for title, n in re.findall(r"(.*?) +\d+ files.* (\d+) calls", run.stdout)
    }


@pytest.mark.parametrize("title", MOST_CALLS)
def test_a_warm_call_stays_short(calls, title):
    assert 0 < calls[title] <= MOST_CALLS[title]
