"""Measures what docs/figures.md shows, and writes it: `make figures`.

`make figures ARGUMENTS="training eager"` measures these parts, in place of what the file had of
their charts. Parts are in the order of their importance; one that fails leaves its charts as they
were. `--quick` measures fewer rounds. The last lines say how long each part took.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import page

HERE = Path(__file__).parent
FILE = page.DOCS / "figures" / "figures.json"
GROWTH = (
    ("operator", "10000", "--megabytes", "200"),
    ("shapes", "700", "--megabytes", "300"),
    *(("compiled", "5000"), ("numbers", "20000"), ("structures", "2000")),
)
DEVICES = [f"{way}:{model}" for model in ("mlp", "transformer") for way in ("ddp", "fsdp", "keep")]
LAUNCH = ("-m", "jaxgrad", "launch", "--nproc", "2")


def run(part):
    return [(f"{HERE}/run.py", part)]


# by part: the arguments of Python, for each process that it takes
PARTS = {
    **{part: run(part) for part in ("training", "table", "eager", "networks", "step", "calls")},
    "families": [(f"{HERE}/families.py",)],
    **{part: run(part) for part in ("start", "scripts", "new_shapes", "packages", "gpt2")},
    "distributed": [
        (f"{HERE}/distributed.py", *DEVICES),
        (*LAUNCH, f"{HERE}/distributed.py", *(row for row in DEVICES if "keep" not in row)),
    ],
    "attention": [(f"{HERE}/attention.py",)],
    "convolution": [(f"{HERE}/convolution.py", "--cpu")],
    **{part: run(part) for part in ("import", "writes", "watching", "functions", "forward")},
    "loading": run("loading"),
    "growth": [(f"{HERE}/growth.py", *arguments) for arguments in GROWTH],
}
# by name alone, since it takes a quarter of an hour and has no peer
ASKED_FOR = {"growth"}
# these parts measure one operator each
IMMEDIATE = {"eager", "writes", "watching", "functions", "forward"}
PACKAGES = {"HIPS autograd": "autograd"}


def processor():
    """The name of the processor."""
    if os.path.exists("/proc/cpuinfo"):
        match = re.search("model name.*: (.*)", Path("/proc/cpuinfo").read_text())
        return match[1] if match else platform.machine()
    return platform.processor() or platform.machine()


def busy():
    """The seconds that all cores have computed, None where the system does not say."""
    if not os.path.exists("/proc/stat"):
        return None
    user, nice, system, _, _, *interrupts = Path("/proc/stat").read_text().split()[1:9]
    return sum(map(int, (user, nice, system, *interrupts))) / os.sysconf("SC_CLK_TCK")


def clocks():
    """Seconds that the processes of this one have computed, and seconds."""
    times = os.times()
    return times.children_user + times.children_system, times.elapsed


def machine(others):
    """In words. others: the share of the cores that other programs used, where it is known."""
    name = f"{processor()} with {os.cpu_count()} cores"
    return name if others is None else f"{name}, {others:.0%} of them used by other programs"


def versions(subjects):
    packages = {"jaxgrad": "jaxgrad", "jax": "jax"}
    for name in ("torch", "HIPS autograd", "mlx"):
        if any(subject.startswith(name) for subject in subjects):
            packages[name] = PACKAGES.get(name, name)
    return {"Python": platform.python_version()} | {
        name: importlib.metadata.version(package).partition("+")[0]
        for name, package in packages.items()
    }


def joined(lines):
    """The charts of what figures.note wrote, which may be a row at a time."""
    charts = {}
    for line in lines:
        chart = json.loads(line)
        kept = charts.setdefault((chart["section"], chart["title"]), chart)
        for row, values in chart["rows"].items():
            kept["rows"].setdefault(row, {}).update(values)
    return list(charts.values())


def measure(part, environment):
    """The charts of a part."""
    if part in IMMEDIATE:
        environment = environment | {"JAXGRAD_EAGER": "immediate"}
    if part == "growth":  # it saves time and changes no size
        environment = environment | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    before = busy(), *clocks()
    with tempfile.NamedTemporaryFile("r") as file:
        for arguments in PARTS[part]:
            command = [sys.executable, *arguments]
            subprocess.run(command, env=environment | {"FIGURES": file.name}, check=True)
        charts = joined(file)
    others = None
    if before[0] is not None:
        after = busy(), *clocks()
        all_cores, process, elapsed = (b - a for a, b in zip(before, after, strict=True))
        others = max(0.0, all_cores - process) / elapsed / os.cpu_count()
    for chart in charts:
        subjects = {subject for row in chart["rows"].values() for subject in row}
        chart["date"] = datetime.date.today().isoformat()
        chart["machine"], chart["versions"] = machine(others), versions(subjects)
        chart["command"] = f'make figures ARGUMENTS="{part}"'
    return charts


def merge(new):
    """Put charts into the file, in place of those of their sections and titles."""
    old = json.loads(FILE.read_text()) if FILE.exists() else []
    charts = {(chart["section"], chart["title"]): chart for chart in old}
    charts |= {(chart["section"], chart["title"]): chart for chart in new}
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text(list(charts.values())))


def text(charts):
    """JSON with a row a line."""
    texts = []
    for chart in charts:
        lines = [f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in chart.items() if k != "rows"]
        rows = (f"      {json.dumps(k)}: {json.dumps(v)}" for k, v in chart["rows"].items())
        rows = ",\n".join(rows)
        texts.append("  {\n" + ",\n".join([*lines, f'    "rows": {{\n{rows}\n    }}']) + "\n  }")
    return "[\n" + ",\n".join(texts) + "\n]\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "parts",
        nargs="*",
        choices=[*PARTS, []],
        metavar="PART",
        help=f"by default all but growth: {', '.join(PARTS)}",
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    options = parser.parse_args()
    environment = os.environ | ({"QUICK": "1"} if options.quick else {})
    taken = {}
    parts = options.parts or [part for part in PARTS if part not in ASKED_FOR]
    for part in parts:
        begun = time.perf_counter()
        try:
            merge(measure(part, environment))
        except subprocess.CalledProcessError as error:
            print(f"{part}: {error}", file=sys.stderr)
        else:
            taken[part] = time.perf_counter() - begun
        page.write()
    for part, duration in taken.items():
        print(f"{part:<14}{duration:6.0f} s")
    sys.exit(len(taken) < len(parts))


if __name__ == "__main__":
    main()
