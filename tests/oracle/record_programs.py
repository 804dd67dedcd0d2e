"""Records what the programs of tests/compat/programs print with PyTorch, in programs.json.

.venv-torch/bin/python tests/oracle/record_programs.py
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = HERE.parent / "compat" / "programs"

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
    found = {line: printed(line) for line in LINES}
    (HERE / "programs.json").write_text(json.dumps(found, indent=1) + "\n")
