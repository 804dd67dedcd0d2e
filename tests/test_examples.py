"""The demo runs, learns, and its four variants agree; otherwise it exits with an error."""

import pathlib
import subprocess
import sys

import pytest

DEMO = pathlib.Path(__file__).parents[1] / "docs" / "examples" / "digits.py"


@pytest.mark.slow
@pytest.mark.checkout
@pytest.mark.parametrize("options", [[], ["--float64"]], ids=["float32", "float64"])
def test_demo(options, tmp_path):
    command = [sys.executable, str(DEMO), "--output", str(tmp_path), *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "largest difference between the weights of the four" in result.stdout
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
    boxes = (tmp_path / "graph.svg").read_text().count("<rect")
    assert boxes == 1 + 6 + 6  # the paper, operators, leaves
