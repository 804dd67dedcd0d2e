"""Programs for CUDA where the first GPU is JAX's default device, as JAX has it; GPUs are pretended.
In PyTorch what was not moved is on the CPU: what runs there runs here.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import hangs

from jaxgrad.frontend.memory_stats import nested, with_pytorch_names

PROGRAM = Path(__file__).parent / "on_default_gpu.py"


@functools.cache
def printed():
    flags = "--xla_force_host_platform_device_count=3"
    child = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env=os.environ | {"XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        timeout=hangs.LIMIT,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


def test_what_was_not_moved_goes_along_to_the_cpu():
    results = printed()["beside the cpu"]
    assert results.pop("alone") == "cuda:0" and set(results.values()) == {"cpu"}, results
    assert len(results) == 7


def test_what_was_moved_to_the_default_device_stays_there():
    assert set(printed()["moved to a gpu"].values()) == {"Expected all tensors to be on the same d"}


def test_indices_on_the_cpu_read_and_write_a_tensor_on_a_gpu():
    """As in PyTorch: `y[place].square().sum()` has the gradient 2 * y in rows 2 and 0."""
    x, place, grad = printed()["indices"]
    assert (x, place) == ([[-1.0, 5.0], [7.0, 7.0], [5.0, -1.0]], "cuda:1")
    assert grad == [[0.0, 2.0], [0.0, 0.0], [8.0, 10.0]]


def test_losses_are_those_of_the_cpu():
    losses = printed()["losses"]
    total, counts, *places = losses.pop("cpu")
    assert places == ["cpu", "cpu"] and sum(counts) == 24
    for place, (gpu_total, gpu_counts, *gpu_places) in losses.items():
        assert gpu_total == pytest.approx(total, rel=1e-5) and gpu_counts == counts
        assert gpu_places == ["cuda:0" if place == "cuda" else place, "cpu"]


def test_wrapped_modules_take_batches_of_the_cpu():
    assert printed()["parallel"] == ["cuda:1", "cuda:0", "cuda:1", "cpu"]


def test_labels_on_one_gpu_meet_results_on_all():
    assert printed()["on a mesh"] == 4.0  # (1 + 1 - 0) ** 2


def test_the_runtime_of_cuda_and_pickles():
    assert printed()["runtime"] == [0, 0, True, "cuda:1"]


def test_counts_of_memory_have_pytorchs_names():
    stats = with_pytorch_names({"bytes_in_use": 8, "peak_bytes_in_use": 16, "num_allocs": 3})
    assert stats["allocated_bytes.all.current"] == stats["reserved_bytes.all.current"] == 8
    assert nested(stats)["allocated_bytes"]["all"] == {"current": 8, "peak": 16}
    assert nested(stats)["allocation"]["all"]["allocated"] == 3 and stats["bytes_in_use"] == 8
    assert with_pytorch_names(None) == {}
