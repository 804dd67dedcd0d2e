"""How long each tutorial takes: by jaxgrad, and by PyTorch with the import line replaced.

    python tests/benchmarks/tutorials.py [NAME ...]      # neural_ode gan; all without names
    python tests/benchmarks/tutorials.py --cells NAME    # one run by jaxgrad, by statement

Each run is a process of its own, and the runs of a tutorial take turns, `ROUNDS` times. The time is
that of all statements of the script but its imports, and so includes compilation. The medians go
into docs/tutorials/times.tsv, whose other rows stay. PyTorch runs eagerly, with
TORCHDYNAMO_DISABLE=1, and compiled. It needs .venv-torch with matplotlib and scikit-learn.

Where a tutorial has several devices, PyTorch runs it with a process for each, and the row says so.
"""

import argparse
import ast
import csv
import datetime
import importlib.metadata
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
TUTORIALS = CHECKOUT / "docs" / "tutorials"
TABLE = TUTORIALS / "times.tsv"
HEADER = ("tutorial", "what", "seconds", "machine", "versions", "date")
LIMIT = 150  # seconds of one run
MARK = "seconds of the statements:"
PYTHONS = {"jaxgrad": CHECKOUT / ".venv/bin/python", "torch": CHECKOUT / ".venv-torch/bin/python"}
SUBJECTS = ("jaxgrad", "torch", "torch compiled")
IN_FOUR_PROCESSES = {"fsdp"}  # PyTorch runs these by torchrun


def for_torch(text):
    """A tutorial as a script for PyTorch."""
    text = text.replace("import jaxgrad as torch", "import torch")
    text = text.replace("from jaxgrad import", "from torch import")
    return re.sub(r"\bjaxgrad\.", "torch.", text)


def run(path, by_statement):
    """Run the script at `path` as `__main__` and print the time of what is no import."""
    sys.argv = [path]
    sys.path[0] = str(pathlib.Path(path).parent)
    scope = sys.modules["__main__"].__dict__
    scope["__file__"] = path
    total = 0.0
    for statement in ast.parse(pathlib.Path(path).read_text(), path).body:
        code = compile(ast.Module([statement], []), path, "exec")
        begun, used = time.perf_counter(), time.process_time()
        exec(code, scope)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        seconds = time.perf_counter() - begun
        total += seconds
        if by_statement and seconds > 0.05:
            first = ast.unparse(statement).splitlines()[0]
            busy = time.process_time() - used
            place = f"line {statement.lineno}: {first[:80]}"
            print(f"{seconds:8.2f} s, {busy:8.2f} of a processor  {place}", file=sys.stderr)
    print(MARK, total, flush=True)


def measure(name, subject, folder):
    """The seconds of one run, or why there are none, as a str."""
    script = TUTORIALS / f"{name}.py"
    environment = os.environ | {"MPLBACKEND": "Agg"}
    if subject != "jaxgrad":
        script = folder / f"{name}.py"
        script.write_text(for_torch((TUTORIALS / f"{name}.py").read_text()))
        environment["TORCHDYNAMO_DISABLE"] = "0" if subject == "torch compiled" else "1"
    command = [str(PYTHONS[subject.split()[0]])]
    if subject != "jaxgrad" and name in IN_FOUR_PROCESSES:
        environment["OMP_NUM_THREADS"] = "1"
        command += ["-m", "torch.distributed.run", "--nproc-per-node=4", "--no-python", *command]
    command += [__file__, "--script", str(script)]
    try:
        process = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return f"takes more than {LIMIT} s"
    except FileNotFoundError:
        return f"no {command[0]}"
    times = [float(line.split()[-1]) for line in process.stdout.splitlines() if MARK in line]
    if process.returncode == 0 and times:
        return max(times)
    return failure(process.stderr)


def failure(stderr):
    """The line of a traceback that says what went wrong."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"(\[rank\d\]: *)?[\w.]*(Error|Exception)\b", line)]
    what = (named or lines or ["no output"])[-1]
    if what == "AssertionError":  # a check of the page
        what = next((line for line in reversed(lines) if line.startswith("assert ")), what)
    return what[:200]


def machine():
    kind = platform.machine().replace("_", "-")
    return f"{len(os.sched_getaffinity(0))} cores of an {kind} server"


def versions(subject):
    """The versions that matter to a subject, as one str."""
    if subject == "jaxgrad":
        result = {package: importlib.metadata.version(package) for package in ("jaxgrad", "jax")}
        return ", ".join(f"{package} {version}" for package, version in result.items())
    code = "import importlib.metadata as m; print(m.version('torch'))"
    result = subprocess.run([PYTHONS["torch"], "-c", code], capture_output=True, text=True)
    return f"torch {result.stdout.strip().partition('+')[0]}"


def cell(times):
    """What the column `seconds` says: a median, or why a tutorial does not run."""
    failures = [entry for entry in times if isinstance(entry, str)]
    if failures:
        return "does not run: " + " ".join(failures[0].split())
    return f"{statistics.median(times):.1f}"


def rows_of(name, rounds):
    times = {subject: [] for subject in SUBJECTS}
    with tempfile.TemporaryDirectory() as folder:
        data = TUTORIALS / "data"
        if data.exists():
            (pathlib.Path(folder) / "data").symlink_to(data)
        for _ in range(rounds):
            for subject, runs in times.items():
                if not (runs and isinstance(runs[0], str)):  # what failed fails again
                    runs.append(measure(name, subject, pathlib.Path(folder)))
    today = datetime.date.today().isoformat()
    for subject, runs in times.items():
        what = subject
        if subject != "jaxgrad" and name in IN_FOUR_PROCESSES:
            what += ", four processes"
        row = (name, what, cell(runs), machine(), versions(subject), today)
        print("\t".join(row[:3]), "\t", runs, flush=True)
        yield row


def known_rows():
    """The rows of the table, without its header."""
    if not TABLE.exists():
        return []
    with TABLE.open(newline="") as file:
        return [tuple(row) for row in csv.reader(file, delimiter="\t")][1:]


def write(name, rows):
    """Replace the rows of one tutorial."""
    kept = [row for row in known_rows() if row[0] != name]
    merged = sorted([*kept, *rows], key=lambda row: row[0])
    with TABLE.open("w", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows([HEADER, *merged])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3, help="how often each one runs (3)")
    parser.add_argument("--cells", metavar="NAME", help="print the time of each statement")
    parser.add_argument("--script", metavar="PATH", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.script or options.cells:
        path = options.script or str(TUTORIALS / f"{options.cells}.py")
        return run(path, by_statement=bool(options.cells))
    for name in options.names or sorted(path.stem for path in TUTORIALS.glob("*.py")):
        write(name, list(rows_of(name, options.rounds)))


if __name__ == "__main__":
    main()
