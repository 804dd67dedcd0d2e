"""400 random programs of Functions, hooks and in-place writes, against the installed PyTorch too.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import warnings

import hypothesis
import numpy
import pytest
import torch
from helpers import checks
from helpers import function_programs as programs
from hypothesis import HealthCheck
from oracle.seed import SEED

import jaxgrad

PARTS = 8
PROGRAMS = 400


def outcome(library, planned):
    """Value, derivatives and the order of hooks, or the beginning of an error."""
    x = library.tensor(programs.START, dtype=library.float64, requires_grad=True)
    try:
        *results, order = programs.derivatives(library, planned, x)
    except RuntimeError as error:
        return str(error)[:60]
    return [result.tolist() for result in results], order


@pytest.mark.parametrize("part", range(PARTS))
def test_programs(part):
    @hypothesis.seed(SEED * PARTS + part)
    @hypothesis.settings(
        max_examples=PROGRAMS // PARTS,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(drawn=programs.steps)
    def run(drawn):
        # PyTorch's second derivatives of saved intermediates are wrong
        planned = programs.plan(drawn, intermediates=False, meeting_hooks=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = outcome(torch, planned)
            with jaxgrad.autograd.graph.strict_versions():
                ours = outcome(jaxgrad, planned)
        same_outcome(ours, theirs, f"SEED={SEED} {planned}")
        checks.count("functions")

    run()


def same_outcome(ours, theirs, where):
    if isinstance(theirs, str):
        assert ours == theirs, where
        return
    numpy.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9, atol=1e-10, err_msg=where)
    assert ours[1] == theirs[1], where
