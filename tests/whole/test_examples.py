"""The examples run, and their eager and compiled variants agree; else they exit with an error."""

import os
import pathlib
import subprocess
import sys

import pytest
from helpers.hangs import LIMIT

EXAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "examples"
DEMO = EXAMPLES / "digits.py"

# what PyTorch prints when it runs the same lines uncompiled
PYTORCH = {
    "gaussian_process --points 20 --steps 4": """\
loss 11.377 -4.058 -4.140 -4.141
scale 0.954843 length 0.847493 noise 0.059860
largest error 0.107817, largest deviation 0.068637
""",
    "spectral --points 16 --steps 40": """\
loss 2.06e+00 1.40e+00 9.21e-01 6.07e-01 3.94e-01 2.40e-01 1.35e-01
coefficient 0.1368 for 0.5, largest error 1.2190
""",
    "router --tokens 32 --steps 20": """\
loss 1.519508 1.160963 0.881225 0.707769 0.582962 0.492026 0.427024
shares of the experts 0.3469 0.1787 0.2282 0.2462
""",
    "graph_network --nodes 60 --steps 20": """\
loss 1.126309 1.013682 0.916904 0.818517 0.708686 0.595179 0.486548
382 entries of the matrix, 0.783 of the nodes in their community
""",
}


@pytest.mark.slow
@pytest.mark.checkout
@pytest.mark.parametrize("call", PYTORCH)
def test_example_prints_what_pytorch_prints(call):
    name, *options = call.split()
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == PYTORCH[call]


@pytest.mark.slow
@pytest.mark.checkout
@pytest.mark.parametrize("name", ["ring_attention", "pipeline"])
def test_example_on_four_devices(name):
    """It compares the losses and the weights with those of one device."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), "--steps", "20"]
    flags = "--xla_force_host_platform_device_count=4"
    result = subprocess.run(
        command,
        env=os.environ | {"XLA_FLAGS": flags, "JAX_CPU_ENABLE_ASYNC_DISPATCH": "false"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("losses and weights agree with those of one device\n")


@pytest.mark.slow
@pytest.mark.checkout
def test_digits_in_two_processes():
    """It ends with an error unless the network has learned."""
    command = [sys.executable, "-m", "jaxgrad", "launch", "--nproc", "2"]
    command += [str(EXAMPLES / "digits_distributed.py")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert result.returncode == 0, result.stderr
    assert "2 processes: accuracy 0.9" in result.stdout


@pytest.mark.slow
@pytest.mark.checkout
def test_language_model_goes_on_from_its_checkpoint(tmp_path):
    """Half of a run and the rest of it print the losses of the whole run."""
    path = EXAMPLES / "language_model.py"
    text = path.read_text()
    # a run that ends after 20 of 40 steps, with the learning rates of 40
    half = tmp_path / "half.py"
    half.write_text(text.replace("range(begin, options.steps)", "range(begin, 20)"))
    printed = []
    for program, folder in ((path, "a"), (half, "b"), (path, "b")):
        command = [sys.executable, "-W", "error", str(program), "--steps", "40"]
        command += ["--checkpoint", str(tmp_path / folder)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        assert result.returncode == 0, result.stderr
        printed.append([line for line in result.stdout.splitlines() if line.startswith("step")])
    whole, first, rest = printed
    assert first[-1].startswith("step  20") and rest[0].startswith("step  21")
    assert whole == first + rest[1:] and len(whole) == 5


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
    assert boxes == 6 + 6  # operators, leaves
