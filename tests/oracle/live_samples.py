"""vmap, jit and second derivatives with the samples that tests/test_operators.py leaves out."""

import pathlib
import sys

import pytest
import recorded

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import test_operators

pytestmark = test_operators.pytestmark
KNOWN = {id(sample) for _, sample in test_operators.FIRST}
REST = [each for each in recorded.SAMPLES if id(each[1]) not in KNOWN]
rest = pytest.mark.parametrize(("family", "sample"), REST, ids=[f"{f}-{s}" for f, s in REST])


@rest
def test_batched_and_compiled(family, sample):
    test_operators.test_batched_and_compiled(family, sample)


@rest
def test_second_order(family, sample):
    test_operators.test_second_order(family, sample)
