"""Short programs as users of CUDA write them, on four pretended GPUs. The answers are PyTorch's, by
its documentation.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import hangs

PROGRAM = Path(__file__).parent / "idioms.py"

APART = "RuntimeError: Expected all tensors to be on the same device, but found at least two"
GRADIENT = "RuntimeError: attempting to assign a gradient"

ANSWERS = {
    "semantics": ["cuda:0"] * 3 + ["cuda:1"] * 4 + ["cuda:2"] * 2,
    "indices_of_devices": [1, -1, *[True] * 3, "cuda:2", "cuda:1", "cuda:1", "cuda:0"],
    "streams": [[["cuda:1"], True], 2, [0, True, 0.0], 1, "cuda:1"],
    "prefetching": 6.0,
    "threads": [["cuda:0"], ["cuda:1"], ["cuda:2"], ["cuda:3"], 0],
    "default_devices": [*["cuda:1"] * 4, "cuda:2", "cuda:2", "cpu", "cuda:3"],
    "names_of_types": [
        *("cuda:0", "cuda:0", "cuda:0", "cpu", "torch.cuda.HalfTensor"),
        *("torch.cuda.FloatTensor", "torch.cuda.LongTensor", "torch.FloatTensor"),
    ],
    "amp": [
        *("torch.float16", 8.0, "cuda:1", "cuda:1"),
        *("torch.bfloat16", 8.0, "cuda:1", "cuda:1"),
    ],
    "several_gpus": [[0, 1, 2, 3], [2, 1], [8, 2], "cuda:0"],
    "parts_of_a_model": ["cuda:1", "cuda:0", *["cuda:0", "cuda:0", "cuda:1", "cuda:1"] * 2],
    "moved_after_the_optimizer": ["cuda:1", "cuda:1", "cuda:1", "cpu"],
    "files": ["cpu", "cpu", "cuda:2", "cuda:3", "cuda:0", *["cuda:1"] * 4],
    "random_numbers": [True, "cuda:1", "cuda:1", 4, 4],
    "too_large": [True, 6.0, True],
    "properties": [1, True, 0, [0, 0]],
    "backends": [False, True, True, True, True],
    "accelerator": ["cuda", 4, 2, 1, True, "cuda:0"],
    "sizes_by_values": ["cuda:1"],
    # -log(3/4): three of four paths have the label
    "lengths_on_the_cpu": [[0.2877] * 3, "cuda:1", "cuda:1", "cuda:1", True],
    "saved_and_repeated": [[8.0, 8.0], "cuda:1", "cuda:1"],
}


@functools.cache
def printed(arrangement):
    flags = "--xla_force_host_platform_device_count=5"
    child = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM), arrangement],
        env=os.environ | {"XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        timeout=hangs.LIMIT,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


pytestmark = pytest.mark.parametrize(
    "arrangement", ["moved", pytest.param("default", marks=pytest.mark.slow)]
)


def test_answers(arrangement):
    results = {name: printed(arrangement)[name] for name in ANSWERS}
    assert results == ANSWERS
    assert printed(arrangement).keys() - ANSWERS.keys() == {"memory", "wrong_devices"}


def test_memory(arrangement):
    """JAX counts none for a CPU."""
    numbers, (title, *_, last), free = printed(arrangement)["memory"]
    assert (numbers, free) == ([0, 0, 0, 0], [0, 0])
    assert "PyTorch CUDA memory summary, device ID 1" in title and "counts no memory" in last


def test_wrong_devices(arrangement):
    first, second, *errors = printed(arrangement)["wrong_devices"]
    assert first.startswith(f"{GRADIENT} located on device with index '0' to a tensor located on")
    assert second.startswith(
        f"{GRADIENT} with device type 'cpu' to a tensor with device type 'cuda"
    )
    kinds = "RuntimeError: Invalid device", *["ValueError: Expected a cuda device"] * 2
    for error, start in zip(errors, [*kinds, *[APART] * 3], strict=True):
        assert error.startswith(start), error
