"""500 random programs over duals (tests/storage/forward.py), against the installed PyTorch too.

PyTorch writes to tangents in place, as to values, so that one that is read and written at once
comes out wrong, and a view keeps the tangent that it had when its base is turned by `t_`: programs
of these two are left out.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import hypothesis
import jax
import pytest
import torch
from helpers import checks
from hypothesis import HealthCheck
from oracle.seed import SEED
from storage import forward, programs

import jaxgrad

PARTS = 5
PROGRAMS = 500

# PyTorch's own first use of forward mode compiles its decompositions with it
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


def apart(module, target, source):
    """The source, or its clone where it shares the memory of the target."""
    shared = target.untyped_storage().data_ptr() == source.untyped_storage().data_ptr()
    return source.clone() if shared else source


@pytest.mark.parametrize("part", range(PARTS))
def test_programs_of_duals(part, monkeypatch):
    monkeypatch.setattr(programs, "unaliased", apart)

    @hypothesis.seed(SEED * PARTS + part)
    @hypothesis.settings(
        max_examples=PROGRAMS // PARTS,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(draws=programs.drawn_steps)
    def run(draws):
        with jax.enable_x64(True):
            steps = forward.interpret(draws).steps
        forward.check(jaxgrad, draws)
        if not any(step.kind in programs.REARRANGING for step in steps):
            forward.check(torch, draws)
        checks.count("aliasing")

    try:
        run()
    except AssertionError as error:
        raise AssertionError(f"SEED={SEED}\n{error}") from None
