"""What `import jaxgrad` changes in the process, and what it leaves alone."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import hangs
import pytest

import jaxgrad

CONFIG_IS_KEPT = """
import jax
before = dict(jax.config.values)
import jaxgrad
after = {name: jax.config.values[name] for name in before}
changed = sorted(name for name in before if before[name] != after[name])
assert not changed, changed
import sys
assert "jaxgrad.distributions" not in sys.modules  # imported at its first use
"""


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=hangs.LIMIT, **options
    )


def test_import_changes_no_setting_of_jax():
    child = run("-W", "error", "-c", CONFIG_IS_KEPT)
    assert child.returncode == 0, child.stderr


def test_import_starts_no_backend():
    # A backend of this name cannot start, and JAX says so at the first use of any.
    environment = os.environ | {"JAX_PLATFORMS": "no_such_backend"}
    child = run("-c", "import jaxgrad", env=environment)
    assert child.returncode == 0, child.stderr
    child = run("-c", "import jaxgrad, jax; jax.devices()", env=environment)
    assert "no_such_backend" in child.stderr


def test_an_uninstalled_checkout_says_how_to_install_it(tmp_path):
    # In a checkout rules/ is not inside jaxgrad/, and -S hides whatever is installed.
    source = Path(jaxgrad.__file__).parent
    shutil.copytree(
        source, tmp_path / "jaxgrad", ignore=shutil.ignore_patterns("rules", "__pycache__")
    )
    child = run("-S", "-c", "import jaxgrad", cwd=tmp_path)
    assert child.returncode == 1
    expected = "ImportError: this checkout of jaxgrad is not installed: run pip install -e . in it"
    assert child.stderr.splitlines()[-1] == expected


def test_version_is_the_installed_distributions():
    assert jaxgrad.__version__ == importlib.metadata.version("jaxgrad")


@pytest.mark.checkout
def test_version_is_the_newest_in_the_changelog():
    text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text()
    newest = re.search(r"^## (?!Unreleased)(\S+) - \d{4}-\d\d-\d\d$", text, re.MULTILINE)
    assert newest[1] == jaxgrad.__version__


def test_dir_offers_what_users_call():
    offered = set(dir(jaxgrad))
    assert {"sin", "sin_", "absolute", "tensor", "Tensor", "float32", "jit", "save"} <= offered
    assert {"amp", "autograd", "func", "nn", "ops", "optim", "random", "utils"} <= offered
    assert not [name for name in offered if not hasattr(jaxgrad, name)]


def test_dir_does_not_offer_the_core_or_formulas_of_gradients():
    packages = {"capture", "core", "frontend", "rules", "storage", "table", "tape", "cli"}
    assert not set(dir(jaxgrad)) & (packages | {"importlib", "methods"})
    assert not [name for name in dir(jaxgrad) if name.endswith("_backward")]


def test_dir_of_ops_has_the_operators_and_load():
    offered = set(dir(jaxgrad.ops))
    assert {"sin", "sin_", "absolute", "_softmax", "tanh_backward", "load"} <= offered
    assert not offered & {"Library", "library", "jax", "inspect", "dispatch"}
    assert not [name for name in offered if not hasattr(jaxgrad.ops, name)]
