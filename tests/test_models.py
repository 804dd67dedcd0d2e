"""Models as their papers have them (models/), trained for three steps as PyTorch trains them."""

import checks
import models
import pytest

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
    found, traces = models.run(name, mode=mode)
    expected = models.recorded(name)
    wrong = models.differences(expected, found)
    assert not wrong, "\n".join(wrong)
    assert traces == 1
    checks.count("models", 1 + len(found["gradients"]) + len(found["state"]))


def test_every_recording_has_its_model():
    assert [path.stem for path in sorted(models.RECORDINGS.iterdir())] == models.NAMES
