"""`jaxgrad doctor` tells what there is, and the first thing that is wrong."""

import subprocess
import sys

import jax
import pytest

from jaxgrad import cli, doctor


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXGRAD_CACHE", str(tmp_path / "cache"))


def test_all_is_well(capsys, tmp_path):
    assert cli.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert f"{sys.version.split()[0]}, {sys.executable}" in printed
    assert f"jax {jax.__version__}" in printed
    assert "of x * x * x at 2 is 12" in printed
    assert f"{tmp_path / 'cache'}: 0 files" in printed
    assert printed.endswith("nothing is wrong\n")


def test_a_reader_that_leaves():
    program = f"{sys.executable} -m jaxgrad doctor | true; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def of_old_jax(monkeypatch, tmp_path):
    monkeypatch.setattr(jax, "__version__", "0.9.0")


def of_no_device(monkeypatch, tmp_path):
    def devices():
        raise RuntimeError("Unable to initialize backend 'tpu'")

    monkeypatch.setattr(jax, "devices", devices)


def of_an_idle_driver(monkeypatch, tmp_path):
    (tmp_path / "nvidia-smi").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def of_a_cache_of_others(monkeypatch, tmp_path):
    (tmp_path / "shared").mkdir(mode=0o777)
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setenv("JAXGRAD_CACHE", str(tmp_path / "shared"))


def of_disabled_jit(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "CHECKS", (disabled_settings,))


def disabled_settings():
    with jax.disable_jit():
        return doctor.settings()


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (of_old_jax, "wrong: jaxgrad is not tested with JAX 0.9.0: pip install 'jax>=0.10.2"),
        (of_no_device, "wrong: JAX has no device: unset JAX_PLATFORMS"),
        (of_an_idle_driver, "wrong: there is a driver of NVIDIA, and JAX uses the CPU alone"),
        (of_a_cache_of_others, "wrong: each process compiles anew: set JAXGRAD_CACHE"),
        (of_disabled_jit, "wrong: JAX_DISABLE_JIT is set"),
    ],
)
def test_the_first_thing_that_is_wrong(damage, complaint, monkeypatch, tmp_path, capsys):
    damage(monkeypatch, tmp_path)
    assert cli.main(["doctor"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith(complaint)
