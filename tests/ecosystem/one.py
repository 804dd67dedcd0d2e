"""Run one program of tests/ecosystem/programs in this process, and write its results.

    one.py list OUT FILE [FILE ...]         the programs that files register, as JSON
    one.py run FILE KEY OUT [KEY OUT ...]   results to OUT.npz, times and the error to OUT.json

ECOSYSTEM_PATH names folders with packages, ECOSYSTEM_COMPILED has `train` compile its step.
"""

import importlib
import importlib.metadata
import json
import os
import random
import sys
import time
import traceback
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]
sys.path += os.environ.get("ECOSYSTEM_PATH", "").split(os.pathsep)

import harness  # noqa: E402
import numpy as np  # noqa: E402


def load(file):
    """The programs that a file registers, by their names."""
    path = Path(file)
    if str(path.parent) not in sys.path:
        sys.path[:0] = [str(path.parent)]
    importlib.import_module(path.stem)
    return harness.PROGRAMS


def complete_torch():
    """Define the operators that packages for PyTorch with CUDA have in libraries."""
    import vision_operators

    vision_operators.define()


def listed(entry, file):
    fields = ("package", "name", "compiled", "dtype", "tolerance", "module")
    try:
        version = importlib.metadata.version(entry.package)
    except importlib.metadata.PackageNotFoundError:
        version = "not installed"
    known = {field: getattr(entry, field) for field in fields}
    return known | {"version": version, "file": file}


def run(file, key, out):
    """Write what a program returns, or how it fails."""
    report = {}
    harness.times.clear()
    try:
        import torch

        entry = load(file)[key]
        importlib.import_module(entry.module)
        torch.set_default_dtype(getattr(torch, entry.dtype))
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        start = time.perf_counter()
        results = entry.function()
        report["seconds"] = time.perf_counter() - start
        report |= harness.times
        np.savez(f"{out}.npz", **{name: harness.as_array(v) for name, v in results.items()})
    except Exception as error:
        report["error"] = described(error)
        report["traceback"] = traceback.format_exc()
    unfinished = Path(f"{out}.part")
    unfinished.write_text(json.dumps(report, indent=1))
    unfinished.rename(f"{out}.json")  # the process that waits for it sees it whole


def described(error):
    """Type and first line of an error, and where in jaxgrad it was raised."""
    text = (str(error).splitlines() or [""])[0]
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if "/jaxgrad/" in frame.filename]
    place = ""
    if inside:
        path = inside[-1].filename.rsplit("/jaxgrad/", 1)[1]
        place = f"jaxgrad/{path}:{inside[-1].lineno}"
    return {"type": type(error).__name__, "message": text[:300], "place": place}


def main(command, *arguments):
    if command == "list":
        out, *files = arguments
        entries = {}
        for file in files:
            new = load(file).keys() - entries.keys()
            entries |= {key: listed(harness.PROGRAMS[key], file) for key in sorted(new)}
        Path(out).write_text(json.dumps(entries))
    else:
        complete_torch()
        file, *rest = arguments
        for key, out in zip(rest[::2], rest[1::2], strict=True):
            run(file, key, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
