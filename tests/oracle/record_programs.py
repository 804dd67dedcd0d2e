"""Records what the programs of tests/compat/programs print with PyTorch.

make record PARTS=programs
"""

import json
import subprocess
import sys
from pathlib import Path

from helpers.answers import beside, save

PROGRAMS = Path(__file__).parents[1] / "compat" / "programs"

# the lines that run them
LINES = (
    *("classify", "classify --amp", "gan", "char_rnn", "vae", "transformer", "unet", "maml", "dqn"),
    *("style", "scripted", "ode --adjoint", "reinforce"),
)


def printed(line: str) -> dict:
    name, *arguments = line.split()
    command = [sys.executable, "-W", "ignore", PROGRAMS / f"{name}.py", *arguments]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    results = {line: printed(line) for line in LINES}
    save(beside("compat/test_programs.py"), results, 1e-4)
