"""Gradients on four devices equal those on one."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from helpers import hangs

import jaxgrad

PROGRAM = Path(__file__).parent / "on_four_devices.py"


@functools.cache
def printed():
    """The program's output in a process whose one processor stands for four devices."""
    flags = "--xla_force_host_platform_device_count=4"
    child = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM)],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_CPU_ENABLE_ASYNC_DISPATCH": "false"},
        capture_output=True,
        text=True,
        timeout=hangs.LIMIT,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


TRAININGS = "momentum", "Adam", "Adam, spread", "momentum, normalized", "momentum, explicit"


@pytest.mark.slow
@pytest.mark.row("S09")
@pytest.mark.parametrize("training", TRAININGS)
def test_a_compiled_step_on_rows_that_are_spread_over_devices(training):
    """Parameters, their gradients and what the optimizer keeps stay on all devices, whole, or as
    spread as the parameters are."""
    step = printed()[training]
    assert step["difference"] < 1e-6
    assert step["state stays"] and step["tensors"] > 8
    assert step["results are in rows"]


@pytest.mark.slow
@pytest.mark.row("S09")
@pytest.mark.parametrize("check_vma", [True, False])
def test_averages_in_a_shard_map_are_the_gradient_of_the_whole(check_vma):
    """Derivatives by the tape inside it and by JAX around it, to second order."""
    differences = printed()[f"gradients, {check_vma}"]
    assert len(differences) == 4 and max(differences.values()) < 1e-6


@pytest.mark.slow
def test_a_recurrent_network_in_a_shard_map_has_the_gradient_of_the_whole():
    assert max(printed()["recurrent"]) < 1e-6


@pytest.mark.slow
def test_operators_in_a_shard_map_have_the_gradient_of_the_whole():
    """With loops and constants in them, to second order."""
    differences = printed()["inside"]
    assert len(differences) == 11
    assert max(map(max, differences.values())) < 1e-4, differences


@pytest.mark.slow
def test_devices_of_jax_wherever_a_device_is_taken():
    assert printed()["devices of JAX"] == ["cpu:3"] * 12 + ["cpu"]


@pytest.mark.slow
def test_new_tensors_are_where_they_were_made():
    first, second = printed()["new tensors"]
    assert first == second
    assert first[2:] == ["cpu", "cpu:2", "cpu", "cpu", "cpu"]


def test_a_device_of_jax_is_a_device_of_tensors():
    (device, *_) = jax.devices()
    x = jaxgrad.ones(2, device=device)
    assert x.device == jaxgrad.device(device) == jaxgrad.ones(1).to(device).device
    assert jaxgrad.from_numpy(x.numpy()).device == x.device
