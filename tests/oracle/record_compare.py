"""Records the run of tests/compare/faults/train.py under PyTorch.

make record PARTS=compare
"""

import json
import sys
import tempfile
from pathlib import Path

from helpers.compared_runs import CHECKOUT, PLACEHOLDER, RECORDED, SETTINGS

from jaxgrad.compare import children

DIGITS = 9  # of a number in single precision


def shortened(line):
    fields = json.loads(line)
    for name in ("sketch", "norm", "low", "high"):
        if name in fields:
            fields[name] = rounded(fields[name])
    return json.dumps(fields).replace(str(CHECKOUT), PLACEHOLDER)


def rounded(value):
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.{DIGITS}g}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        children.record("torch", sys.executable, {**SETTINGS, "log": str(log)})
        lines = map(shortened, log.read_text().splitlines())
        RECORDED.write_text("\n".join(lines) + "\n")
