"""The processes that run a script under PyTorch and under jaxgrad."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .run import Run, read

RECORDER = Path(__file__).parent / "recorder"
PACKAGE = RECORDER.parents[1]
# under PyTorch the recorder is a package of its own: jaxgrad need not be installed there
ALONE = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location(
    "jaxgrad_recorder", {path!r} + "/__init__.py", submodule_search_locations=[{path!r}]
)
module = importlib.util.module_from_spec(spec)
sys.modules["jaxgrad_recorder"] = module
spec.loader.exec_module(module)
sys.path[:] = [path for path in sys.path if path]
importlib.import_module("jaxgrad_recorder.run").main(sys.argv[1])
"""


class CannotRun(Exception):
    """A library that cannot run any script, in a sentence for the user."""


def python_of_torch(asked: str | None) -> str:
    """The Python that has PyTorch. Raises CannotRun where there is none."""
    path = Path(asked or ".venv-torch/bin/python")
    if not path.exists():
        raise CannotRun(
            f"{path}: no such file; make an environment that has PyTorch, by python3 -m venv "
            ".venv-torch && .venv-torch/bin/python -m pip install torch numpy, or say by "
            "--torch-python PATH which Python has it"
        )
    test = subprocess.run(
        [str(path), "-c", "import torch, numpy"], capture_output=True, text=True, check=False
    )
    if test.returncode:
        why = (test.stderr.strip().splitlines() or ["no reason"])[-1]
        raise CannotRun(f"{path} cannot import torch and numpy: {why}")
    return str(path)


def run_under(library: str, python: str | None, settings: dict, shows_output: bool = False) -> Run:
    """Run a script under a library, and read its log.

    python: the Python that has PyTorch; this one for jaxgrad. settings: those of recorder/run.py,
    but for the log.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        result = record(library, python, {**settings, "log": log}, shows_output)
        run = read_log(library, log)
    run.message = (result.stderr or "").strip().rpartition("\n")[-1]
    if not run.end:  # neither the script's end nor an error of Python
        text = run.message or f"the process ended with status {result.returncode}"
        run.end = {"error": {"type": "", "text": text, "place": last_place(run)}, "status": 1}
    return run


def record(library, python, settings: dict, shows_output: bool = False):
    """Run a script under a library, whose log goes to the file `log` of the settings, and return
    the process, which has ended.
    """
    text = json.dumps({**settings, "library": library})
    command = [python, "-c", ALONE.format(path=str(RECORDER)), text]
    if library == "jaxgrad":
        command = [sys.executable, "-m", "jaxgrad.compare.recorder", text]
    output = None if shows_output else subprocess.PIPE
    variables = environment(library, settings)
    return subprocess.run(
        command, env=variables, stdout=output, stderr=output, text=True, check=False
    )


def read_log(library: str, path: str) -> Run:
    if not os.path.exists(path):
        return Run(library)
    with open(path) as file:
        lines = (line for line in file if line.endswith("\n"))
        return read(library, lines)


def last_place(run: Run):
    places = [record.place for record in run.records if record.place]
    return places[-1] if places else None


def environment(library: str, settings: dict) -> dict:
    variables = dict(os.environ)
    if library == "jaxgrad":
        paths = [str(PACKAGE.parent), *filter(None, [variables.get("PYTHONPATH")])]
        variables["PYTHONPATH"] = os.pathsep.join(paths)
    elif not settings.get("times"):
        # PyTorch's reference is what it computes uncompiled
        variables["TORCHDYNAMO_DISABLE"] = "1"
    return variables
