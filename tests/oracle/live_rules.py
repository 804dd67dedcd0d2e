"""The tables of tests/rules (REFUSED, ANSWERS) against the installed PyTorch."""

import importlib.util
from pathlib import Path

import pytest
import torch
from helpers import pytorch_answers

# PyTorch warns of calls that it answers all the same
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

RULES = Path(__file__).resolve().parents[1] / "rules"


def table(name):
    """The rows of that name in all files, as parameters with the file and the call for an id."""
    rows = []
    for path in sorted(RULES.glob("test_*.py")):
        specification = importlib.util.spec_from_file_location(f"rules_{path.stem}", path)
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        cases = getattr(module, name, ())
        rows += [pytest.param(*row, id=f"{path.stem}-{row[0]}") for row in cases]
    return rows


@pytest.mark.parametrize(("call", "error", "words"), table("REFUSED"))
def test_refusals(call, error, words):
    pytorch_answers.check_refusal(torch, call, error, words)


@pytest.mark.parametrize(("call", "dtype", "values"), table("ANSWERS"))
def test_answers(call, dtype, values):
    pytorch_answers.check_answer(torch, call, dtype, values)
