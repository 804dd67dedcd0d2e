"""The models of tests/models against the installed PyTorch, with new weights and data in each run.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import models
import pytest
from helpers import checks
from oracle.seed import SEED

# of PyTorch
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")


@pytest.mark.parametrize("name", models.NAMES)
def test_training_equals_pytorchs(name):
    expected, _ = models.run(name, "torch", seed=SEED)
    for mode in models.MODES:
        result, traces = models.run(name, mode=mode, seed=SEED)
        wrong = models.differences(expected, result)
        assert not wrong, "\n".join([f"SEED={SEED} {mode}", *wrong])
        assert traces == 1
        checks.count("models")
