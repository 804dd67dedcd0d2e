"""`python -m jaxgrad run`: a program with jaxgrad as its torch."""

from __future__ import annotations

import os
import runpy
import sys

from .import_hook import install


def run(program: str, arguments: list[str], is_module: bool = False):
    """Run a Python file, or a module by its name, as `python` does, with jaxgrad as its torch."""
    install()
    sys.argv = [program, *arguments]
    if is_module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
        runpy.run_path(program, run_name="__main__")
