"""What `import jaxgrad` changes in the process, and what it leaves alone."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import hangs

import jaxgrad

CONFIG_IS_KEPT = """
import jax
before = dict(jax.config.values)
import jaxgrad
after = {name: jax.config.values[name] for name in before}
changed = sorted(name for name in before if before[name] != after[name])
assert not changed, changed
"""

IMPORTED = """
import jax, sys
before = {*sys.modules}
import jaxgrad
files = {name for name in {*sys.modules} - before if getattr(sys.modules[name], "__file__", None)}
print(*sorted(files))
"""

# a program that uses no operator, no backward pass and no compiled function needs none of these
LATE = """
    yaml _yaml jax.extend optax
    jaxgrad.table.checks jaxgrad.table.descriptions jaxgrad.table.formula jaxgrad.table.grammar
    jaxgrad.table.reader jaxgrad.table.rule jaxgrad.table.schema
    jaxgrad.core.communication jaxgrad.core.derivative_rules jaxgrad.core.disk_cache
    jaxgrad.core.file_cache jaxgrad.core.host_kernel
    jaxgrad.core.overloads jaxgrad.core.shape_check jaxgrad.core.tangent_map
    jaxgrad.ops.autocast jaxgrad.ops.documentation
    jaxgrad.autograd._function jaxgrad.autograd._gradcheck jaxgrad.autograd._inspect
    jaxgrad.autograd.forward_ad jaxgrad.autograd.function jaxgrad.autograd.functional
    jaxgrad.frontend.printing.arrays jaxgrad.frontend.random
    jaxgrad.frontend.storages
"""
PACKAGES = "autograd cached core frontend functions late names ops rules state storage table tape"

COMPILED_AS_A_WHOLE = """
import sys
import jaxgrad as torch
assert "jaxgrad.func" not in sys.modules
x, codes = torch.ones(2), []
def f(x):
    return x.sin()
for call in range(41):
    if call in (0, 40):
        sys.setprofile(lambda frame, event, argument: codes.append(frame.f_code))
    torch.autograd.functional.jacobian(f, x)
    sys.setprofile(None)
    is_run = f.__code__ in codes
    assert is_run or call, "the first call runs it"
    codes.clear()
assert not is_run
"""


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=hangs.LIMIT, **options
    )


@pytest.mark.slow
def test_import_changes_no_setting_of_jax():
    child = run("-W", "error", "-c", CONFIG_IS_KEPT)
    assert child.returncode == 0, child.stderr


def test_import_leaves_to_its_first_use_what_few_programs_use():
    child = run("-c", IMPORTED)
    assert child.returncode == 0, child.stderr
    imported = child.stdout.split()
    late = tuple(f"{name}." for name in LATE.split())
    assert [name for name in imported if f"{name}.".startswith(late)] == []
    packages = {name.split(".")[1] for name in imported if name.startswith("jaxgrad.")}
    assert packages == set(PACKAGES.split())


@pytest.mark.slow
def test_functions_of_autograd_are_compiled_as_a_whole_though_func_is_imported_late():
    child = run("-c", COMPILED_AS_A_WHOLE)
    assert child.returncode == 0, child.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "import jaxgrad.nn.functional as F; F.relu",
        "from jaxgrad import nn; nn.Linear",
        "from jaxgrad.autograd import Function, gradcheck, function; function.once_differentiable",
        "import jaxgrad.autograd.gradcheck as check; check.__name__ == 'gradcheck' or 1 / 0",
        "from jaxgrad.autograd.gradcheck import GradcheckError; GradcheckError.__mro__",
        "import jaxgrad.autograd.forward_ad as fwAD; fwAD.make_dual",
        "import jaxgrad as torch; torch.jit.ScriptModule",
        "import jaxgrad as torch; torch.autograd.forward_ad.dual_level",
        "import jaxgrad as torch; torch.autograd.anomaly_mode.detect_anomaly",
        "import jaxgrad as torch; torch.random.fork_rng, torch.tracing.number",
        "import jaxgrad as torch; torch.compiler.reset, torch.jit.trace",
        "import jaxgrad as torch; torch.func.vmap, torch.utils.hooks, torch.default_generator",
    ],
)
def test_what_is_imported_late_has_its_names(line):
    child = run("-W", "error", "-c", line)
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
    text = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
    newest = re.search(r"^## (?!Unreleased)(\S+) - \d{4}-\d\d-\d\d$", text, re.MULTILINE)
    assert newest[1] == jaxgrad.__version__


def test_dir_offers_what_users_call():
    offered = set(dir(jaxgrad))
    assert {"sin", "sin_", "absolute", "tensor", "Tensor", "float32", "jit", "save"} <= offered
    assert {"amp", "autograd", "func", "nn", "ops", "optim", "random", "utils"} <= offered
    assert not [name for name in offered if not hasattr(jaxgrad, name)]


def test_dir_does_not_offer_the_core_or_formulas_of_gradients():
    packages = {"capture", "compiled", "core", "draws", "frontend", "rules", "state", "storage"}
    packages |= {"table", "tape", "cli"}
    assert not set(dir(jaxgrad)) & (packages | {"importlib", "methods"})
    assert not [name for name in dir(jaxgrad) if name.endswith("_backward")]


def test_dir_of_ops_has_the_operators_and_load():
    offered = set(dir(jaxgrad.ops))
    assert {"sin", "sin_", "absolute", "_softmax", "tanh_backward", "load"} <= offered
    assert not offered & {"Library", "library", "jax", "inspect", "dispatch"}
    assert not [name for name in offered if not jaxgrad.ops.has(name)]
