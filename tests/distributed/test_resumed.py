"""A run that was killed and started again gives the losses of one that was not, to the bit."""

import functools

import pytest
from distributed.processes import found, run

pytestmark = pytest.mark.slow


@functools.cache
def whole(folder):
    return found("resumed.py", folder, "no", processes=2)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    return whole(tmp_path_factory.mktemp("whole") / "checkpoint")["losses"]


@pytest.mark.parametrize(("killed_at", "resumed_at"), [("25", 20), ("save", 10)])
def test_losses_after_a_kill(killed_at, resumed_at, wanted, tmp_path):
    """SIGKILL of one of two processes in the middle of a step, and of a save."""
    folder = tmp_path / "checkpoint"
    done = run("resumed.py", folder, killed_at, processes=2)
    assert done.returncode == 128 + 9 and "FOUND" not in done.stdout
    resumed = found("resumed.py", folder, "no", processes=2)
    # where the save was complete before the kill, the run goes on from there
    assert resumed["begin"] in (resumed_at, resumed_at + 10 * (killed_at == "save"))
    assert resumed["losses"] == wanted and len(wanted) == 40
