"""Compare with PyTorch on new random inputs: `make oracle`.

python tests/oracle/run.py [NAME...] [--seed N] [--all] [--processes N]     (needs torch 2.13)

Without names it runs all scripts live_*.py; `sparse` names live_sparse.py. Each runs in a process
of its own, so one that fails, or crashes, stops no other. A line tells of each when it ends, with
the last lines of what it printed if it failed, and all lines come again at the end. The exit status
is 1 if one failed. The inputs are those of the seed: `--seed N` repeats those of another run. Where
the cases are the same in every run, and many, the seed draws a part of them; `--all` takes all.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from seed import SEED

HERE = Path(__file__).parent
NAMES = sorted(path.stem.removeprefix("live_") for path in HERE.glob("live_*.py"))
# these take minutes, so they start first
LONG = "samples", "compiled", "matrix", "forward_ad", "interrupts", "operators", "programs"

SHOWN = 60  # lines of a script that failed

SETTINGS = os.environ | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "0"}


def compare(name, seed):
    """Run a script: whether it succeeded, a line that says so, and what it printed."""
    path, started = HERE / f"live_{name}.py", time.monotonic()
    options = "-q", "-rfE", "--tb=short", "-p", "no:cacheprovider", "--seed", str(seed)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, path],
        env=SETTINGS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    seconds, printed = time.monotonic() - started, ended.stdout.rstrip()
    counts = re.findall(r"\d+ (?:passed|failed|errors?)\b", printed.rpartition("\n")[2])
    told = ", ".join(counts) or f"ended with status {ended.returncode}"
    outcome = "failed" if ended.returncode else "agrees"
    return not ended.returncode, f"{name:16} {outcome:7} {seconds:5.0f} s  {told}", printed


def run(names, seed, processes):
    """Run scripts, some at a time. Returns whether all succeeded."""
    lines, succeeded, started = [], True, time.monotonic()

    def show(name):
        nonlocal succeeded
        is_right, line, printed = compare(name, seed)
        succeeded &= is_right
        lines.append(line)
        tail = [] if is_right else printed.splitlines()[-SHOWN:]
        print("\n".join([line, *(f"    {text}" for text in tail)]), flush=True)

    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(show, sorted(names, key=lambda name: (LONG + (name,)).index(name))))
    print("\n".join(["", *sorted(lines)]))
    failed = sum(" failed " in line for line in lines)
    seconds = time.monotonic() - started
    print(f"\n{len(lines)} scripts, {failed} failed, in {seconds:.0f} s: --seed {seed}")
    return succeeded


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--seed", type=int, default=SEED, metavar="N")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), metavar="N")
    options = parser.parse_args()
    unknown = set(options.names).difference(NAMES)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: the scripts are {', '.join(NAMES)}")
    SETTINGS["ALL"] = str(int(options.all))
    print(f"random inputs: --seed {options.seed}", flush=True)
    sys.exit(not run(options.names or NAMES, options.seed, options.processes))


if __name__ == "__main__":
    main()
