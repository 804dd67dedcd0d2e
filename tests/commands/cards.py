"""The pages of the operators, docs/api/operators/<section>.md, and of the names of PyTorch,
docs/api/coverage.md and docs/api/placeholders.md.

python tests/commands/cards.py     writes them from the table, the samples and the names of PyTorch
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers import recorded

from jaxgrad import coverage
from jaxgrad.names.pytorch import instead_of
from jaxgrad.ops import cards
from jaxgrad.table import parse_schema

TESTS = Path(__file__).resolve().parents[1]
API = TESTS.parent / "docs" / "api"

HEAD = """\
# Operators: {}

For each operator: its signature, the nodes of its graph, the formulas of its derivatives, and what
it saves for them. `jaxgrad ops NAME` prints the same. Where a function has a kink, its gradient
there is PyTorch's.
"""

COVERAGE = """\
# Which of PyTorch's names are there

The public names of PyTorch 2.13, by module or class, and the operators of its first table of
derivatives, of the year 2018. Two commands answer the same for a name and for a program:

```sh
jaxgrad ops --missing          # the names that are to come
python -m jaxgrad scan src/    # the names that the files of a folder use and jaxgrad lacks
```

| module or class | there | to come | left out |
| --- | --- | --- | --- |
"""


PLACEHOLDERS = """\
# Names that are placeholders

Every module and name of PyTorch 2.13 can be imported. What jaxgrad does not provide is a
placeholder, which raises NotImplementedError when it is used. These are the ones without an
underscore, by the module that defines them, with what to use in their place; the table of
[names that are left out](coverage.md) has a reason for each that PyTorch documents.

```python
import jaxgrad as torch

try:
    torch.ao.quantization.qconfig_equals()
except NotImplementedError as error:
    print(error)
```

| module | what to use | placeholders |
| --- | --- | --- |
"""


def placeholders_page() -> str:
    rows = []
    for module, names in sorted(coverage.placeholders().items()):
        shown = ", ".join(f"`{name}`" for name in sorted(names))
        rows.append(f"| `{module}` | {instead_of(module)} | {shown} |")
    return PLACEHOLDERS + "\n".join(rows) + "\n"


def pages() -> dict[Path, str]:
    """The text of every page by its path."""
    texts = {API / "coverage.md": coverage_page(), API / "placeholders.md": placeholders_page()}
    by_section: dict[str, list[str]] = {}
    for name in cards.names():
        by_section.setdefault(cards.sections()[name], []).append(name)
    for section, names in by_section.items():
        path = API / "operators" / f"{file_name(section)}.md"
        texts[path] = "\n".join([HEAD.format(section), *map(card, names)])
    return texts


def file_name(section):
    return section.replace(",", "").replace(" ", "_")


def samples() -> dict[str, list]:
    """The samples of each operator, as pairs of the family and the sample."""
    by_operator: dict[str, list] = {}
    for family, sample in recorded.SAMPLES:
        for name in {sample.operator, sample.name.replace(".", "_")}:
            entry = cards.library.canonical(name)
            entry = cards.library.functional(entry) or entry
            by_operator.setdefault(entry, []).append((family, sample))
    return by_operator


SAMPLES = samples()


def card(name) -> str:
    contents = cards.card(name)
    lines = [f"## {contents.name}\n", f"{contents.sentence}\n", "| | |", "| --- | --- |"]
    lines += [f"| {title} | {in_cell(text)} |" for title, text in contents.rows]
    tested = SAMPLES.get(name, [])
    if tested:
        kinks = sum(bool(sample.kink) for _, sample in tested)
        at_kinks = f", {kinks} of them at kinks" if kinks else ""
        count = "1 input" if len(tested) == 1 else f"{len(tested)} inputs"
        text = f"value and derivatives, for {count}{at_kinks}"
        lines.append(f"| compared with PyTorch | {text} |")
    return "\n".join([*lines, ""])


def in_cell(text):
    return text.replace("|", "\\|")


def coverage_page() -> str:
    spaces: dict[str, list] = {}
    for name in coverage.torch_names():
        spaces.setdefault(name.space, []).append(name)
    rows, left_out, to_come = [], [], []
    for space, names in spaces.items():
        there = [name for name in names if name.is_there]
        out = [name for name in names if not (name.is_planned or name.is_there)]
        missing = [name for name in names if name.is_planned and not name.is_there]
        rows.append(f"| `{space}` | {len(there)} | {len(missing)} | {len(out)} |")
        left_out += [f"| `{name.path}` | {name.reason} |" for name in out]
        if missing:
            to_come.append(f"`{space}`: {', '.join(name.name for name in missing)}\n")
    schemas, missing = coverage.early_schemas(), coverage.missing_early_schemas()
    rows.append(
        f"| operators of the table of 2018 | {len(schemas) - len(missing)} | {len(missing)} | 0 |"
    )
    old = ", ".join(dict.fromkeys(parse_schema(text).name for text in missing))
    if old:
        to_come.append(f"`jaxgrad.ops`, of the table of 2018: {old}\n")
    return "\n".join(
        [
            COVERAGE + "\n".join(rows),
            *(["\n## To come\n", *to_come] if to_come else []),
            "\n## Left out\n\n| name | why |\n| --- | --- |",
            *left_out,
            "",
        ]
    )


def main():
    (API / "operators").mkdir(exist_ok=True)
    for path in (API / "operators").glob("*.md"):
        path.unlink()
    for path, text in pages().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
