"""Derivatives, vmap and jit with the samples that tests/ops/test_operators.py leaves out, and
nestings of forward mode with those that tests/autograd/test_forward_ad_operators.py does.
"""

import pathlib
import sys

import pytest
from helpers import recorded
from oracle.seed import drawn

# Not `from autograd import`: PyPI has a package of that name.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ops"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "autograd"))

import test_forward_ad_operators
import test_operators

pytestmark = test_operators.pytestmark


def parametrized(samples):
    ids = [f"{family}-{sample}" for family, sample in samples]
    return pytest.mark.parametrize(("family", "sample"), samples, ids=ids)


def others_than(chosen):
    """Of the samples that are not among parameters of tests, some."""
    known = {id(param.values[1]) for param in chosen}
    return drawn([pair for pair in recorded.SAMPLES if id(pair[1]) not in known], 30)


@parametrized(others_than(test_forward_ad_operators.SOME))
def test_tangents(family, sample):
    test_forward_ad_operators.test_tangents_of_every_operator(family, sample)


@parametrized([pair for pair in others_than(test_forward_ad_operators.NESTED) if not pair[1].kink])
def test_nestings_of_forward_mode(family, sample):
    test_forward_ad_operators.test_nestings_of_forward_mode_over_every_operator(family, sample)


@parametrized(others_than(test_operators.FIRST_ORDER))
def test_first_order(family, sample):
    test_operators.test_first_order(family, sample)


@parametrized(others_than(test_operators.SECOND_ORDER))
def test_batched_and_compiled(family, sample):
    test_operators.test_batched_and_compiled(family, sample)


@parametrized(others_than(test_operators.SECOND_ORDER))
def test_second_order(family, sample):
    test_operators.test_second_order(family, sample)
