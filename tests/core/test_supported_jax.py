"""The versions of JAX that jaxgrad is tested with: in the code and in pyproject.toml."""

import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import jax
import pytest

from jaxgrad.core import supported_jax

SUPPORTED = ["0.10.2", "0.10.3", "0.11.0", "0.11.2", "0.12.0", "0.12.0.1", "0.12.1.dev20261101"]
SUPPORTED += ["0.12.0rc1", "0.10.2.post1", "0.10.2+local.3", "0.12.9", "0.12.10"]
OTHERS = ["0.9.2", "0.10.1", "0.10.2rc1", "0.10.2.dev20260101", "0.4.38", "0.13.0", "0.13.1.2"]
OTHERS += ["0.13.0rc1", "0.13.0.dev20261101", "0.13.0.dev20261101+abc", "0.100.0", "1.0"]


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_supported_version_gives_no_warning(version):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        supported_jax.warn_of_others(version)


@pytest.mark.parametrize("version", OTHERS)
def test_another_version_gives_one_warning_of_one_sentence(version):
    with pytest.warns(UserWarning) as told:
        supported_jax.warn_of_others(version)
    (message,) = [str(warning.message) for warning in told]
    assert f"JAX {version} " in message and "install 'jax>=0.10.2,<0.13'" in message
    assert "\n" not in message and ". " not in message


def test_this_version_is_supported():
    assert supported_jax.is_supported(jax.__version__)


@pytest.mark.checkout
def test_pyproject_has_the_same_range():
    file = Path(__file__).parents[2] / "pyproject.toml"
    dependencies = tomllib.loads(file.read_text())["project"]["dependencies"]
    wanted = f">={supported_jax.FIRST},<{supported_jax.FIRST_UNTESTED}"
    assert {f"jax{wanted}", f"jaxlib{wanted}"} <= set(dependencies)
    assert len([entry for entry in dependencies if re.match(r"jax(lib)?\b", entry)]) == 2


IMPORT = """
import jax
jax.__version__ = "0.99.0"
import jaxgrad
import jaxgrad.nn
from jaxgrad import func
"""


def test_the_import_warns_once_at_the_line_of_the_user(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(IMPORT)
    options = ["-W", "always"]
    ran = subprocess.run([sys.executable, *options, script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    told = [line for line in ran.stderr.splitlines() if "not tested with JAX 0.99.0" in line]
    assert len(told) == 1 and told[0].startswith(f"{script}:4: "), ran.stderr
