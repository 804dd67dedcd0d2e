"""Runs programs of tests/compat/programs one after the other, with jaxgrad as their torch, and
prints as JSON what each printed.

    python tests/compat/in_turn.py "classify --epochs 2" gan
"""

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path

import jaxgrad
from jaxgrad.compat import install

PROGRAMS = Path(__file__).parent / "programs"


def printed(line: str):
    """What a program prints. line: its name and arguments."""
    name, *arguments = line.split()
    sys.argv = [str(PROGRAMS / f"{name}.py"), *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as text:
        runpy.run_path(sys.argv[0], run_name="__main__")
    jaxgrad.set_default_dtype(jaxgrad.float32)
    return json.loads(text.getvalue())


if __name__ == "__main__":
    install()
    print(json.dumps([printed(line) for line in sys.argv[1:]]))
