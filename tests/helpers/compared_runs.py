"""Runs of tests/compare/faults/train.py, recorded as `jaxgrad compare` does, and runs that are
written in tests.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from jaxgrad.compare.recorder.summary import of_array
from jaxgrad.compare.run import read

CHECKOUT = Path(__file__).parents[2]
FAULTS = CHECKOUT / "tests" / "compare" / "faults"
RECORDED = FAULTS / "pytorch.jsonl"
SETTINGS = {"script": str(FAULTS / "train.py"), "arguments": [], "seed": 0}
PLACEHOLDER = "CHECKOUT"

# the lines with faults are marked by these words
NAMES = (
    *("epsilon", "weight", "bias", "momentum", "axis", "activation", "padding", "reduction"),
    *("term", "schedule"),
)

# records the script with each fault in one process, since an import of jaxgrad takes longest
ALL_FAULTS = """
import json, os, sys
from jaxgrad.compare.recorder.run import main
for settings in json.loads(sys.argv[1]):
    os.environ["FAULT"] = settings.pop("fault")
    sys.modules.pop("layers", None)
    main(json.dumps(settings))
"""


def lines_of(fault):
    """The lines of the library at which a fault stands."""
    lines = (FAULTS / "layers.py").read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if line.endswith(f"# fault: {fault}")]


def pytorch():
    """The run under PyTorch, from the file."""
    text = RECORDED.read_text().replace(PLACEHOLDER, str(CHECKOUT))
    return read("torch", text.splitlines(keepends=True))


def under_jaxgrad(faults):
    """The runs under jaxgrad with these faults."""
    with tempfile.TemporaryDirectory() as folder:
        logs = {fault: os.path.join(folder, fault) for fault in faults}
        settings = [
            {**SETTINGS, "library": "jaxgrad", "log": log, "fault": fault}
            for fault, log in logs.items()
        ]
        command = [sys.executable, "-c", ALL_FAULTS, json.dumps(settings)]
        subprocess.run(command, check=True, capture_output=True, cwd=CHECKOUT)
        return {
            fault: read("jaxgrad", Path(log).read_text().splitlines(keepends=True))
            for fault, log in logs.items()
        }


class Script:
    """Writes the log of a run: `call("relu", 3, [x], [y])` is a call at line 3 of a script."""

    def __init__(self, library="torch"):
        self.library, self.lines, self.step, self.count = library, [], 0, 0
        self.write("start", version="2.13.0")

    def write(self, kind, **fields):
        self.lines.append(json.dumps({"kind": kind, **fields}))
        self.count += 1
        return self.count - 1

    def digest(self, array):
        summary = of_array(array, str(array.dtype))
        self.lines.append(json.dumps(summary))
        return summary["digest"]

    def call(self, name, line, inputs, outputs, kind="call", **fields):
        fields["inputs"] = [self.digest(array) for array in inputs]
        fields["outputs"] = [self.digest(array) for array in outputs]
        fields["shapes"] = [[str(array.dtype), *array.shape] for array in outputs]
        place = ["script.py", line, "forward"]
        return self.write(kind, name=name, place=place, step=self.step, **fields)

    def gradient(self, of, array):
        self.write("gradient", of=of, position=0, outputs=[self.digest(array)])

    def run(self):
        return read(self.library, self.lines)
