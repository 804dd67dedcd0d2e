"""`make accelerator` runs to its end on a CPU, and finds what is wrong."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from helpers import hangs

from accelerator import numerics, run
from accelerator.page import page

CPU = jax.devices("cpu")[0]


@pytest.fixture(scope="module")
def problems():
    return {problem.sample.name: problem for problem in numerics.first_samples()}


def damaged(problem, arrays, cotangents, device):
    """What an accelerator would give whose first number is wrong by a hundredth."""
    results = numerics_computed(problem, arrays, cotangents, device)
    if arrays[0].dtype != np.float64:
        results[0].flat[0] += 0.01
    return results


numerics_computed = numerics.computed


@pytest.mark.parametrize("name", numerics.DTYPES)
def test_numbers_of_a_right_operator_have_no_difference(name, problems):
    assert numerics.compared(problems["sin"], name, CPU, CPU) is None


def test_a_wrong_number_is_told_with_its_operator(monkeypatch, problems):
    """A device that is wrong where the CPU is right; the CPU itself is asked too."""

    class Accelerator:
        platform = "tpu"

    def computed(problem, arrays, cotangents, device):
        on = damaged if isinstance(device, Accelerator) else numerics_computed
        return on(problem, arrays, cotangents, CPU)

    monkeypatch.setattr(numerics, "computed", computed)
    row = numerics.compared(problems["sin"], "float32", Accelerator(), CPU)
    assert row["operator"].startswith("sin(")
    assert row["difference"] == pytest.approx(0.01, rel=1e-2)
    assert row["on the CPU"] < 1e-6


def test_what_the_cpu_gets_as_wrong_is_one_of_the_dtype(monkeypatch, problems):
    monkeypatch.setattr(numerics, "computed", damaged)
    row = numerics.compared(problems["sin"], "float32", CPU, CPU)
    assert row == {"of the dtype": True}


def test_a_call_that_only_the_accelerator_refuses_is_a_difference(monkeypatch, problems):
    def computed(problem, arrays, cotangents, device):
        if device is None:
            raise NotImplementedError("no kernel")
        return numerics_computed(problem, arrays, cotangents, CPU)

    monkeypatch.setattr(numerics, "computed", computed)
    row = numerics.compared(problems["sin"], "float32", None, CPU)
    assert row["raised"] == "NotImplementedError: no kernel"


@pytest.mark.parametrize(
    ("wanted", "result", "difference"),
    [
        ([1.0, 2.0], [1.0, 2.5], 0.25),
        ([0.1], [0.2], 0.1),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan], [1.0], np.inf),
        ([np.inf], [-np.inf], np.inf),
        ([1.0], [np.nan], np.inf),
        ([[1.0]], [1.0], np.inf),
    ],
)
def test_differences_are_relative_to_the_largest_number_or_one(wanted, result, difference):
    error = numerics.difference([np.array(wanted)], [np.array(result)])
    assert error == pytest.approx(difference)


def test_a_report_is_right_only_if_all_ended_and_nothing_differs():
    right = {"ended early": "", "seconds": 1.0, "programs": 3, "differences": []}
    report = {"machine": {"platform": "cpu", "device": "cpu"}, "parts": {"programs": right}}
    assert run.is_right(report)
    assert "No accelerator" in page(report)
    for wrong in ({"differences": ["seed 3"]}, {"ended early": "exit status 1: no driver"}):
        changed = report | {"parts": {"programs": right | wrong}}
        assert not run.is_right(changed)
        assert next(iter(wrong.values()))[0] in page(changed)


@pytest.mark.slow
@pytest.mark.checkout
def test_the_command_writes_a_report(tmp_path):
    """Every part begins; a few seconds do not reach all."""
    command = [sys.executable, run.__file__, "--minutes", "0.5", "--folder", str(tmp_path)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=hangs.LIMIT)
    report = json.loads((tmp_path / "accelerator-report.json").read_text())
    assert child.returncode == 0, json.dumps(report["parts"])[:4000]
    assert report["machine"]["platform"] == "cpu"
    assert list(report["parts"]) == list(run.PARTS)
    assert report["parts"]["numerics"]["by dtype"]["float32"]["compared"] > 0
    assert report["parts"]["programs"]["programs"] > 0
    assert report["parts"]["scripts"]["trained"]
    assert "No accelerator" in (tmp_path / "accelerator-report.md").read_text()


def extra(folder, programs=(), environment=(), **files):
    """What is installed with JAX on a machine with some programs and files of devices."""
    for name, text in {"bin": None, "dev": None, "pci": None, **files}.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(exist_ok=True) if text is None else path.write_text(text)
    for name, text in programs:
        path = folder / "bin" / name
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
        path.chmod(0o755)
    places = {"DEV": str(folder / "dev"), "PCI": str(folder / "pci")}
    places["PATH"] = str(folder / "bin")
    for name in ("cat", "grep", "head", "ls", "sed", "tr"):
        (folder / "bin" / name).symlink_to(shutil.which(name))
    script = Path(__file__).parent / "extra_of_jax"
    result = subprocess.run(
        ["/bin/sh", str(script)], env=places | dict(environment), capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_what_is_installed_with_jax(tmp_path):
    """By the driver of NVIDIA, the device of AMD, and the ways in which TPUs show."""
    for version, expected in (("12.8", "[cuda12]"), ("13.0", "[cuda13]")):
        text = f"GPU 0: NVIDIA H200\n| Driver Version: 580.65   CUDA Version: {version} |"
        assert extra(tmp_path / version, [("nvidia-smi", text)]) == expected
    parts = {
        "nothing": ({}, ""),
        "kfd": ({"dev__kfd": ""}, "[rocm7-local]"),
        "accel": ({"dev__accel0": ""}, "[tpu]"),
        "v5e": ({"pci__0__vendor": "0x1ae0\n", "pci__0__device": "0x0063\n"}, "[tpu]"),
        "card": ({"pci__0__vendor": "0x1ae0\n", "pci__0__device": "0x0042\n"}, ""),
    }
    for name, (files, expected) in parts.items():
        assert extra(tmp_path / name, **files) == expected, name
    assert extra(tmp_path / "named", environment=[("TPU_NAME", "local")]) == "[tpu]"
