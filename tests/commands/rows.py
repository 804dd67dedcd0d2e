"""The page of rows: what torch.autograd and related modules offer, and the tests of each row.

python tests/commands/rows.py     writes docs/api/autograd_rows.md from autograd/rows.yaml and the
                                  tests, and prints the rows that have none

A test counts for the rows of its marker: `@pytest.mark.row("F03", "F04")`.
"""

import ast
import functools
from pathlib import Path

import yaml

TESTS = Path(__file__).resolve().parents[1]
ROWS = TESTS / "autograd" / "rows.yaml"
PAGE = TESTS.parent / "docs" / "api" / "autograd_rows.md"

MARKER = "pytest.mark.row"

HEAD = """\
# torch.autograd by feature

What PyTorch 2.13's `torch.autograd` offers, and `torch.func`, `torch.utils.checkpoint` and training
beside it, with the tests that compare jaxgrad with PyTorch. A remark says where the two differ:
where PyTorch errs, or where a call has no meaning on JAX and is accepted without effect. What a
line says can be tried as in PyTorch:

```python
import jaxgrad as torch

x = torch.tensor(2.0, requires_grad=True)
(slope,) = torch.autograd.grad(x**3, x, create_graph=True)
slope.backward()
print(slope.item(), x.grad)
```

```output
12.0 tensor(12.)
```
"""


def areas():
    return yaml.safe_load(ROWS.read_text())


def ids_of(function) -> list[str]:
    """The ids in the markers of a test."""
    markers = [node for node in function.decorator_list if isinstance(node, ast.Call)]
    return [
        ast.literal_eval(argument)
        for marker in markers
        if ast.unparse(marker.func) == MARKER
        for argument in marker.args
    ]


@functools.cache
def tests_of(path) -> list[ast.FunctionDef]:
    return [node for node in ast.parse(path.read_text(), path).body if is_test(node)]


def is_test(node):
    return isinstance(node, ast.FunctionDef) and node.name.startswith("test_")


def tests_by_row():
    """The tests of each id, as pairs of the file and the name."""
    tests = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for test in tests_of(path):
            for row in ids_of(test):
                tests.setdefault(row, []).append((path.relative_to(TESTS.parent), test.name))
    return tests


def page() -> str:
    tests, lines = tests_by_row(), [HEAD]
    for area in areas().values():
        lines += [
            f"## {area['area']}\n",
            "| row | what | tests | remark |",
            "| --- | --- | --- | --- |",
        ]
        for row, told in area["rows"].items():
            what, remark = (told, "") if isinstance(told, str) else told
            links = "<br>".join(f"[{name}](../../{path})" for path, name in tests.get(row, ()))
            lines.append(f"| {row.removeprefix('edge_')} | {what} | {links} | {remark} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def untested() -> list[str]:
    tests = tests_by_row()
    return [row for area in areas().values() for row in area["rows"] if row not in tests]


def unlisted() -> list[str]:
    """Ids in markers that are no row."""
    known = {row for area in areas().values() for row in area["rows"]}
    return [row for row in tests_by_row() if row not in known]


def main():
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
    print("without a test:", " ".join(untested()) or "none")


if __name__ == "__main__":
    main()
