"""Models as their papers have them (models/), trained for three steps as PyTorch trains them."""

import models
import pytest
from helpers import answers, checks

CASES = [(name, mode) for name in models.NAMES for mode in models.MODES]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(*case, marks=[] if case == ("vae", "eager") else [pytest.mark.slow])
        for case in CASES
    ],
)
def test_training_equals_pytorchs(name, mode):
    result, traces = models.run(name, mode=mode)
    expected = answers.load(models.path_of(name))
    wrong = models.differences(expected, result)
    assert not wrong, "\n".join(wrong)
    assert traces == 1
    checks.count("models", 1 + len(result["gradients"]) + len(result["state"]))


def test_every_recording_has_its_model():
    recorded = sorted(answers.TESTS.glob("models/*.json"))
    assert recorded == [models.path_of(name) for name in models.NAMES]
