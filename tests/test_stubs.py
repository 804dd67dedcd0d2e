"""The stubs: current, complete, and what type checkers make of programs by them.

A checker sees a copy of the stubs alone, so that nothing else of jaxgrad can help them.
"""

import ast
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import stubs
from helpers.hangs import LIMIT

import jaxgrad
from jaxgrad import ops

HERE = Path(__file__).parent
PACKAGE = Path(jaxgrad.__file__).parent
# most of these two are functions of JAX, which has no types for what they call
OF_JAX = ("ring_attention.py", "pipeline.py")
EXAMPLES = sorted(
    path for path in (HERE.parent / "docs" / "examples").glob("*.py") if path.name not in OF_JAX
)
ACCEPTED, REFUSED = HERE / "typing" / "accepted.py", HERE / "typing" / "refused.py"


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A folder with the stubs as a package of their own."""
    folder = tmp_path_factory.mktemp("stubs")
    for source in [*PACKAGE.rglob("*.pyi"), PACKAGE / "py.typed"]:
        copy = folder / "jaxgrad" / source.relative_to(PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    return folder


def mypy(copied, *files):
    """The mistakes that mypy finds in files and in the stubs: (name of the file, line)."""
    options = ["--strict", "--no-error-summary", "--no-pretty", "--cache-dir=cache"]
    environment = os.environ | {"MYPYPATH": str(copied)}
    command = [sys.executable, "-m", "mypy", *options, "jaxgrad", *files]
    output = run(command, env=environment, cwd=copied)
    matches = re.findall(r"^(.+?):(\d+): error: (.*)$", output, re.MULTILINE)
    assert matches or not output.strip(), output
    return {(Path(path).name, int(line)): message for path, line, message in matches}


def pyright(copied, *files):
    """The mistakes that pyright finds in files and in the stubs: (name of the file, line)."""
    environment = os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    command = [sys.executable, "-m", "pyright", "--outputjson", "jaxgrad"]
    command += ["--pythonpath", sys.executable]
    command += [shutil.copy(file, copied) for file in files]
    report = json.loads(run(command, env=environment, cwd=copied))
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
@pytest.mark.checkout
def test_stubs_are_current_and_none_is_left_over():
    expected = stubs.stubs()
    changed = [str(path) for path, text in expected.items() if path.read_text() != text]
    assert changed == [], "run make stubs"
    assert sorted(PACKAGE.rglob("*.pyi")) == sorted(expected)


@pytest.mark.parametrize("module", [jaxgrad, ops], ids=["jaxgrad", "jaxgrad.ops"])
def test_every_public_name_is_declared(module):
    tree = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text())
    declared = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            declared |= {alias.asname for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            declared.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            declared.add(node.target.id)
    public = {name for name in dir(module) if name[0] != "_"}
    loaded = {name for name in public if isinstance(getattr(module, name), ops.Namespace)}
    assert public - loaded <= declared  # other tests load tables of their own


@pytest.mark.slow
def test_every_member_of_a_tensor_is_declared():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text())
    (tensor,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    declared = {node.name for node in tensor.body if isinstance(node, ast.FunctionDef)}
    declared |= {node.target.id for node in tensor.body if isinstance(node, ast.AnnAssign)}
    assert {name for name in dir(jaxgrad.Tensor) if name[0] != "_"} <= declared


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_accepted_script_runs():
    runpy.run_path(str(ACCEPTED))


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_checker_accepts_the_stubs_and_a_script_and_finds_mistakes(copied, checker):
    mistakes = checker(copied, ACCEPTED, REFUSED)
    assert mistakes.keys() == lines_with_mistakes(REFUSED), mistakes


@pytest.mark.slow
@pytest.mark.checkout
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_checker_accepts_the_examples(copied, checker):
    assert EXAMPLES
    assert checker(copied, *EXAMPLES) == {}
