"""The tables REFUSED and ANSWERS of all tests that have them, asked of PyTorch itself."""

import importlib.util
from pathlib import Path

import pytest
import torch
from helpers import pytorch_answers

# PyTorch warns of calls that it answers all the same
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

TESTS = Path(__file__).resolve().parents[1]


def table(kind):
    """The rows of that kind in all files, as parameters with the file and the call for an id."""
    rows = []
    for path in sorted(TESTS.rglob("test_*.py")):
        if "helpers.pytorch_answers" not in path.read_text():
            continue
        name = f"{path.parent.name}_{path.stem}"
        specification = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        cases = getattr(module, kind, ())
        rows += [pytest.param(*row, id=f"{path.stem}-{row[0]}") for row in cases]
    return rows


@pytest.mark.parametrize(("call", "error", "words"), table("REFUSED"))
def test_refusals(call, error, words):
    pytorch_answers.check_refusal(torch, call, error, words)


@pytest.mark.parametrize(("call", "dtype", "values"), table("ANSWERS"))
def test_answers(call, dtype, values):
    pytorch_answers.check_answer(torch, call, dtype, values)
