"""The models of tests/models against the installed PyTorch, with new weights and data in each run.

make oracle     (SEED=17 repeats a run: a failure names its seed)
"""

import os
import secrets

import models
import pytest
from helpers import checks

# of PyTorch
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")

SEED = int(os.environ.get("SEED") or 1 + secrets.randbelow(2**30))


@pytest.mark.parametrize("name", models.NAMES)
def test_training_equals_pytorchs(name):
    expected, _ = models.run(name, "torch", seed=SEED)
    for mode in models.MODES:
        result, traces = models.run(name, mode=mode, seed=SEED)
        wrong = models.differences(expected, result)
        assert not wrong, "\n".join([f"SEED={SEED} {mode}", *wrong])
        assert traces == 1
        checks.count("models")
