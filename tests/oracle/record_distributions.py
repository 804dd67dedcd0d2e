"""Record in distributions.json what PyTorch's distributions give: numbers and gradients of the
cases of distribution_cases.py, all divergences, and what the tests marked `as_recorded` return.

python tests/oracle/record_distributions.py     (needs torch 2.13; the tests read the recording)
"""

import importlib.util
import json
import sys
import warnings
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import torch  # noqa: E402
from as_torch import described  # noqa: E402
from distribution_cases import (  # noqa: E402
    CASES,
    DIVERGENCES,
    RECORDING,
    answers,
    divergence,
    precise_bessel,
    wrong_keys,
)


def bodies(path):
    """The tests of a file that are marked `as_recorded`, by name."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return {n: test.recorded for n, test in vars(module).items() if hasattr(test, "recorded")}


def all_answers():
    found = {}
    for name, case in CASES.items():
        found[name] = answers(torch, case)
        for key in wrong_keys(name):
            del found[name][key]
    return found


def all_divergences():
    registered = torch.distributions.kl._KL_REGISTRY
    pairs = sorted((p.__name__, q.__name__) for p, q in registered)
    return {
        f"{p} {q}": divergence(torch, p, q)
        for p, q in pairs
        if p in DIVERGENCES and q in DIVERGENCES
    }


def main():
    # some of its constants are tensors of the default dtype
    torch.set_default_dtype(torch.float64)
    torch.distributions.von_mises._log_modified_bessel_fn = precise_bessel(torch)
    recorded = {"answers": all_answers(), "divergences": all_divergences()}
    torch.set_default_dtype(torch.float32)
    recorded["tests"] = {}
    for path in sorted((TESTS / "distributions").glob("test_*.py")):
        for name, body in bodies(path).items():
            assert name not in recorded["tests"], name
            recorded["tests"][name] = described(body(torch))
    sections = []
    for section, entries in recorded.items():
        lines = (f"{json.dumps(name)}: {json.dumps(told)}" for name, told in entries.items())
        sections.append(f"{json.dumps(section)}: {{\n" + ",\n".join(lines) + "\n}")
    RECORDING.write_text("{\n" + ",\n".join(sections) + "\n}\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
