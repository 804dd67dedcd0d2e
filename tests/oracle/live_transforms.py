"""All nestings of three of grad, jvp, vmap and jit, with each function, against JAX."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "func"))

from test_transforms import FUNCTIONS, NESTINGS, check


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("names", NESTINGS, ids=" of ".join)
def test_three_transformations(names, function):
    check(names, function)
