"""Record what PyTorch answers: `make record`, and `make record PARTS="autograd printing"`.

python tests/oracle/record.py [PART...] [--operators NAME...]     (needs torch 2.13)

A part is a script beside this one: record_autograd.py is `autograd`. All of them run by default,
and with the names of operators record_operators.py alone. A file changes where PyTorch's answer
does, and not where another processor rounds another way (answers.kept).
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PARTS = sorted(path.stem.removeprefix("record_") for path in HERE.glob("record_*.py"))

# Messages show sets of strings, whose order follows the seed.
SETTINGS = os.environ | {"PYTHONPATH": str(HERE.parent), "PYTHONHASHSEED": "0"}


def record(part, arguments):
    print(f"recording {part}", flush=True)
    command = [sys.executable, HERE / f"record_{part}.py", *arguments]
    subprocess.run(command, env=SETTINGS, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    parser.add_argument("--operators", nargs="*", default=[], metavar="NAME")
    options = parser.parse_args()
    for part in options.parts or (["operators"] if options.operators else PARTS):
        record(part, options.operators if part == "operators" else [])


if __name__ == "__main__":
    main()
