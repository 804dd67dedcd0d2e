"""The package of Python state by itself: it knows neither JAX nor tensors."""

import ast
import sys
from pathlib import Path

import pytest

import jaxgrad.state

PACKAGE = Path(jaxgrad.state.__file__).parent
# of other packages than Python's
ALLOWED = {"numpy"}


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            yield f"{'.' * node.level}{node.module or ''}"


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.stem)
def test_the_package_imports_only_itself_python_and_numpy(path):
    names = [name for name in imports_of(path) if not (name[0] == "." and name[1:2] != ".")]
    packages = {name.partition(".")[0] for name in names}
    assert packages <= ALLOWED | sys.stdlib_module_names


def test_the_package_has_at_most_2500_lines():
    assert sum(len(path.read_text().splitlines()) for path in PACKAGE.glob("*.py")) <= 2500
