"""The samples of all families as problems, with what PyTorch answered (oracle/operators)."""

import json
from pathlib import Path

from problems import Problem
from samples import families

FOLDER = Path(__file__).parent / "oracle" / "operators"
CURE = "run python tests/oracle/record_operators.py"

FAMILIES = families()
SAMPLES = [(family, sample) for family, samples in FAMILIES.items() for sample in samples]


def recording(family):
    path = FOLDER / f"{family}.json"
    return json.loads(path.read_text()) if path.exists() else {}


RECORDED = {family: recording(family) for family in FAMILIES}


def problem(family, sample, field):
    """The sample over one of its fields. Raises LookupError if PyTorch was not asked."""
    answer = RECORDED[family].get(sample.id, {}).get(field)
    if answer is None:
        raise LookupError(f"{sample} over the {field} numbers is not recorded: {CURE}")
    return Problem(sample, field, answer)
