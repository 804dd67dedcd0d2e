"""`python -m jaxgrad run`: a program with jaxgrad as its torch."""

from __future__ import annotations

import os
import runpy
import sys

from .import_hook import install


def run(program: str, arguments: list[str], is_module: bool = False):
    """Run a Python file, or a module by its name, as `python` does, with jaxgrad as its torch.

    An error ends the process, with the traceback that `python` shows.
    """
    install()
    sys.argv = [program, *arguments]
    path = os.path.abspath(program)
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(path)
    try:
        if is_module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(path, run_name="__main__")
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_globals["__name__"] in ("runpy", __name__):
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.exit(1)
