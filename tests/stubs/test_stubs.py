"""The stubs: complete, precise, and what type checkers make of programs by them.

A checker sees the stubs alone, so that nothing else of jaxgrad can help them.
"""

import ast
import fcntl
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
from helpers.hangs import LIMIT

import jaxgrad
from jaxgrad import ops, stubs
from jaxgrad.stubs.public_names import public_names

HERE = Path(__file__).parent
PACKAGE = Path(jaxgrad.__file__).parent
# most of these two are functions of JAX, which has no types for what they call
OF_JAX = ("ring_attention.py", "pipeline.py")
OF_TORCH = ("generate.py",)  # which imports torch, and runs under both
EXAMPLES = sorted(
    path
    for path in (HERE.parents[1] / "docs" / "examples").glob("*.py")
    if path.name not in (*OF_JAX, *OF_TORCH)
)
ACCEPTED, PRECISE, REFUSED = (HERE / f"{name}.py" for name in ("accepted", "precise", "refused"))

# what the public functions and methods of nn and optim return that no annotation can say
UNKNOWN = {
    # what a module is called with, what it returns and holds is up to its class
    *("Module.__call__", "Module.__getattr__", "Module.forward", "Module.get_extra_state"),
    *("AveragedModel.forward", "DataParallel.forward", "DistributedDataParallel.forward"),
    *("Sequential.forward", "data_parallel", "gather"),
    # containers of any values
    *("ParameterDict.__getitem__", "ParameterDict.get", "ParameterDict.pop"),
    *("ParameterDict.setdefault", "ParameterList.__getitem__", "StateLoader.copy"),
    "RNNBase.permute_hidden",  # a tensor, or two in an LSTM
}


WRITE = "import pathlib, sys, jaxgrad.stubs; jaxgrad.stubs.write(pathlib.Path(sys.argv[1]))"


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """A folder with the stubs as a package, which the first worker of the tests writes for all.

    A process of its own does: other tests load tables of theirs.
    """
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "stubs"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "jaxgrad" / "py.typed").exists():
            command = [sys.executable, "-c", WRITE, str(folder / "jaxgrad")]
            subprocess.run(command, check=True, timeout=LIMIT)
            shutil.copy(PACKAGE / "py.typed", folder / "jaxgrad")  # the last file: all are there
    return folder


@pytest.fixture
def folder(written, tmp_path):
    """A copy of it, for one test."""
    return shutil.copytree(written / "jaxgrad", tmp_path / "jaxgrad").parent


def mypy(folder, *files):
    """The mistakes that mypy finds in files and in the stubs: (name of the file, line)."""
    options = ["--strict", "--no-error-summary", "--no-pretty", "--cache-dir=cache"]
    environment = os.environ | {"MYPYPATH": str(folder)}
    command = [sys.executable, "-m", "mypy", *options, "jaxgrad", *files]
    output = run(command, env=environment, cwd=folder)
    matches = re.findall(r"^(.+?):(\d+): error: (.*)$", output, re.MULTILINE)
    assert matches or not output.strip(), output
    return {(Path(path).name, int(line)): message for path, line, message in matches}


def pyright(folder, *files):
    """The mistakes that pyright finds in files and in the stubs: (name of the file, line)."""
    environment = os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    command = [sys.executable, "-m", "pyright", "--outputjson", "jaxgrad"]
    command += ["--pythonpath", sys.executable]
    command += [shutil.copy(file, folder) for file in files]
    report = json.loads(run(command, env=environment, cwd=folder))
    assert report["summary"]["filesAnalyzed"] == len(stubs.MODULES) + len(files)
    return {
        (Path(mistake["file"]).name, mistake["range"]["start"]["line"] + 1): mistake["message"]
        for mistake in report["generalDiagnostics"]
        if mistake["severity"] == "error"
    }


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, **options).stdout


def lines_with_mistakes(path):
    lines = path.read_text().splitlines()
    return {(path.name, number) for number, line in enumerate(lines, 1) if "# mistake" in line}


@pytest.mark.slow
@pytest.mark.parametrize("module", [jaxgrad, ops], ids=["jaxgrad", "jaxgrad.ops"])
def test_every_public_name_is_declared(written, module):
    tree = ast.parse((written / "jaxgrad" / stubs.path_of(module.__name__)).read_text())
    declared = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            declared |= {alias.asname for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            declared.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            declared.add(node.target.id)
    public = {name for name in dir(module) if name[0] != "_"}
    # namespaces of operators: `ops.quantized`, and tables that other tests load
    kinds = ops.Namespace, types.ModuleType if module is ops else ops.Namespace
    loaded = {name for name in public if isinstance(getattr(module, name), kinds)}
    assert public - loaded <= declared


@pytest.mark.slow
def test_every_member_of_a_tensor_is_declared(written):
    tree = ast.parse((written / "jaxgrad" / "__init__.pyi").read_text())
    (tensor,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    declared = {node.name for node in tensor.body if isinstance(node, ast.FunctionDef)}
    declared |= {node.target.id for node in tensor.body if isinstance(node, ast.AnnAssign)}
    assert {name for name in dir(jaxgrad.Tensor) if name[0] != "_"} <= declared


def returning_any(tree, owner=""):
    """The functions and methods of a stub of which it does not say what they return."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from returning_any(node, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef) and getattr(node.returns, "id", "") == "Any":
            yield owner + node.name


@pytest.mark.slow
def test_nn_and_optim_say_what_they_return(written):
    files = [*(written / "jaxgrad" / "nn").rglob("*.pyi")]
    files += (written / "jaxgrad" / "optim").rglob("*.pyi")
    unknown = {name for file in files for name in returning_any(ast.parse(file.read_text()))}
    assert {name for name in unknown if not name.startswith("Lazy")} == UNKNOWN


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("script", [ACCEPTED, PRECISE], ids=["accepted", "precise"])
def test_a_script_that_checkers_accept_runs(script):
    runpy.run_path(str(script))


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_checker_accepts_the_stubs_and_scripts_and_finds_mistakes(folder, checker):
    mistakes = checker(folder, ACCEPTED, PRECISE, REFUSED)
    assert mistakes.keys() == lines_with_mistakes(REFUSED), mistakes


@pytest.mark.slow
@pytest.mark.checkout
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_checker_accepts_the_examples(folder, checker):
    assert EXAMPLES
    assert checker(folder, *EXAMPLES) == {}


def test_public_names_of_a_module():
    names = set(public_names(jaxgrad.hub))
    assert {"load", "list", "help", "get_dir", "set_dir"} <= names
    assert not {name for name in names if name.startswith("_")}
    assert stubs.path_of("jaxgrad.nn.init") == Path("nn/init.pyi")
