"""How many comparisons the tests made, family by family.

A test that compares many things says so with `count("pointwise", 12)`. conftest.py adds the
counts of all workers up, and a complete run fails when it made fewer than expected_checks.json
says. `pytest --record-checks` writes that file anew.
"""

import json
from collections import Counter
from pathlib import Path

EXPECTED = Path(__file__).with_name("expected_checks.json")

totals = Counter()


def count(family, number=1):
    """Adds `number` executed comparisons to `family`."""
    totals[family] += number


def expected():
    return json.loads(EXPECTED.read_text())


def record():
    EXPECTED.write_text(json.dumps(totals, indent=2, sort_keys=True) + "\n")


def shortfalls():
    """One line for every family that was compared less often than expected."""
    return [
        f"{family}: {totals[family]} checks were made, {number} are expected"
        for family, number in expected().items()
        if totals[family] < number
    ]
