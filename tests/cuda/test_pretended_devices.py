"""Programs that are written for CUDA, on four devices of the CPU that stand for GPUs."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import hangs

PROGRAM = Path(__file__).parent / "on_pretended_devices.py"


@functools.cache
def printed():
    flags = "--xla_force_host_platform_device_count=5"
    child = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env=os.environ | {"XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        timeout=hangs.LIMIT,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


def test_cuda_without_an_index_is_the_current_device_of_the_thread():
    devices = printed()["current"]
    assert devices[:6] == ["cuda:0", "cuda:1", "cuda:2", "cuda:3", 2, "cuda:1"]
    assert devices[6:] == ["cuda:0", "cuda:1", "cuda:3", "cuda:3", "cpu"]


def test_parameters_on_two_devices_are_trained_as_on_one():
    for on_cpu, on_two in printed()["losses"]:
        assert on_two == pytest.approx(on_cpu, rel=1e-6)
        assert on_cpu[-1] < on_cpu[0]


def test_mixed_precision_with_a_pinned_loader():
    on_cpu, on_gpu = printed()["mixed precision"]
    assert on_gpu == pytest.approx(on_cpu, rel=1e-6)


def test_frequent_calls_on_two_devices_stay_on_theirs():
    assert printed()["frequent"] == [["cpu", "cuda:1"]]


def test_a_step_copies_nothing_to_another_device_nor_to_the_host():
    """Copies to another device raise. An uncompiled `cross_entropy` reads its labels to check them,
    and nothing else is read.
    """
    counts = printed()["transfers"]
    with_labels = [counts.pop("convolution, Adagrad"), counts.pop("attention, AdamW")]
    assert with_labels == [[1, 0]] * 2
    assert len(counts) == 7 and set(map(tuple, counts.values())) == {(0, 0)}, counts
    assert printed()["reads are counted"] > 0


def test_batches_are_made_on_the_current_device():
    """Where PyTorch moves a pinned batch without waiting, nothing is left to be moved."""
    sums = [2 * (0 + 1 + 2 + 3) + 4.0, 2 * (4 + 5 + 6 + 7) + 4.0]
    assert printed()["loading"] == [
        ["cuda:1", True, sums, "cuda:1"],
        ["cuda:1", True, sums, "cuda:1"],
        ["cuda:2", True, sums, "cuda:2"],
        ["cpu", True, sums, "cpu"],
    ]


def test_copies_between_devices():
    results = printed()["between"]
    places = ["cuda:0", "cuda:1", "cuda:2", "cuda:1", "cuda:2", "cuda:1", "cpu", "cuda:0"]
    assert results["places"] == places
    assert results["numbers"] == [[0.0, 1.0, 6.0, 9.0], [4.0, 6.0], [1.0, 1.0, 3.0, 3.0]]
    assert results["peers"] is False and results["no peer"] is True
    assert results["shapes"] == "input 1 has invalid size: got (2,), but expected (1,)"


def test_settings_of_memory_and_of_reads():
    warned, fraction, modes, errors = printed()["settings"]
    assert (warned, fraction, modes) == (1, 0.75, [0, 1, 2, 0])
    assert errors[0].startswith("invalid value of debug_mode, expected one of `default`, `warn`")
    assert errors[1] == "Invalid fraction value: 1.5. Allowed range: 0~1"


def test_streams_and_what_is_not_known_of_a_device():
    assert printed()["streams"] == [[2, 2, 2], [0, 0], 0]


def test_gradients_are_on_the_device_of_what_they_are_of():
    *grads, places, dtype = printed()["gradients"]
    assert grads == [["cuda:2", [2, 1]], ["cuda:1", [12, 12]], ["cuda:1", [0, 0]]]
    assert places == ["cuda:1", "cuda:1", "torch.float32"] and dtype == "torch.float16"


def test_autocast_follows_the_lists_of_cuda_on_gpus():
    """As PyTorch's documentation lists them for CUDA, and for CPUs."""
    on_gpu, on_cpu, dots, large = printed()["autocast"]
    single = {"exp", "pow", "softmax", "sum", "norm", "layer_norm", "scatter_add"}
    assert {name for name, dtype in on_gpu.items() if dtype == "torch.float32"} == single
    alone = {"mv", "scatter_add"}
    assert {name for name, dtype in on_cpu.items() if dtype == "torch.float32"} == alone
    assert {*on_gpu.values(), *on_cpu.values()} == {"torch.float16", "torch.float32"}
    assert dots == "torch.float32" and large == 160_000


def test_moves_streams_and_settings():
    by_type, place, is_same, back, *rest = printed()["objects"]
    # the CPU is device 0 of JAX here
    assert (by_type, place, is_same, back) == ("cuda:0", "cuda:1", False, "cpu")
    assert rest == [True, False, -1, 1, True, "jaxgrad.cuda"]


def test_errors_of_devices():
    is_runtime_error, _, text = printed()["two devices"]
    assert is_runtime_error and "Expected all tensors to be on the same device" in text
    assert "cuda:1 and cuda:2" in text
    is_runtime_error, is_assertion, text = printed()["no device"]
    assert is_runtime_error and not is_assertion and "invalid device ordinal" in text


def test_two_devices_are_refused_before_anything_is_changed():
    """As PyTorch does: only `copy_` goes from one device to another."""
    errors, a, b, place = printed()["in place"]
    expected = "Expected all tensors to be on the same device, but found at least two devices, "
    assert [error == "written" for error in errors] == [False, False, True, False] * 3
    assert all(error.startswith(expected) for error in errors if error != "written")
    assert (a, b, place) == ([0.0, 4.0], [4.0, 4.0], "cuda:1")


def test_a_tensor_on_the_cpu_meets_one_on_a_gpu():
    results = printed()["with the cpu"]
    for name in "add", "add_", "linear", "cat":
        assert "found at least two devices, cuda:1 and cpu!" in results.pop(name)
    assert results == {
        "number": [[3.0, 3.0], "cuda:1"],
        "indices": [[1.0, 1.0, 1.0], "cuda:1"],
        "copy_": [[3.0, 3.0], "cpu"],
        "copy_ back": [[3.0, 3.0], "cuda:1"],
        "fill_": [[7.0, 7.0], "cuda:1"],
        "zeros_like": [[1.0, 1.0], "cuda:1"],
        "slice": [[3.0, 0.0], "cuda:1"],
    }
