"""Run the bodies of tests that are PyTorch code with PyTorch, and record what they return.

python tests/oracle/record_autograd.py     (needs torch 2.13; the tests read autograd.json)
"""

import importlib.util
import json
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import torch  # noqa: E402
from as_torch import RECORDING, described  # noqa: E402


def bodies(path):
    """The tests of a file that PyTorch can run, by name."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return {name: test.body for name, test in vars(module).items() if hasattr(test, "body")}


def main():
    torch.set_warn_always(True)
    recorded = {}
    files = [path for path in TESTS.rglob("test_*.py") if "import as_torch" in path.read_text()]
    for path in sorted(files):
        for name, body in bodies(path).items():
            assert name not in recorded, name
            recorded[name] = described(body(torch))
            torch.set_grad_enabled(True)
    lines = (f"{json.dumps(name)}: {json.dumps(told)}" for name, told in sorted(recorded.items()))
    RECORDING.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
