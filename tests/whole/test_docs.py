"""The blocks of every page run, in order, each page in its own namespace, and print what stands
below them. Links lead to files, or to pages that `make docs` makes. The examples of public
docstrings run too.
"""

import contextlib
import doctest
import importlib
import io
import pathlib
import pkgutil
import re
import textwrap

import pytest

import jaxgrad
from jaxgrad import coverage
from jaxgrad.frontend import legacy_types, storages

CHECKOUT = pathlib.Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(CHECKOUT))
    for pattern in ("*.md", "docs/**/*.md", "tests/**/*.md")
    for path in CHECKOUT.glob(pattern)
)
LINK = re.compile(r"\]\((?!https?://)([^)#]+)(?:#([^)]*))?")
# a block in a list is indented
BLOCK = re.compile(
    r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```$"
    r"(?:\n+^(?P=indent)```output\n(?P<output>.*?)^(?P=indent)```$)?",
    re.MULTILINE | re.DOTALL,
)
PRINTED = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# what an example may use without importing it
KNOWN = {"jaxgrad": jaxgrad, "F": jaxgrad.nn.functional}
# these do something when they are imported, or need setuptools, and have no examples
STARTING = ("__main__", "compat.installed", "stubs.build_backend")
MODULES = [
    "jaxgrad",
    *(
        m.name
        for m in pkgutil.walk_packages(jaxgrad.__path__, "jaxgrad.")
        if not m.name.endswith(STARTING)
    ),
]


def pages_to_run():
    """All pages; those with many blocks are slow."""
    for page in PAGES:
        is_slow = len(BLOCK.findall((CHECKOUT / page).read_text())) > 6
        yield pytest.param(page, marks=[pytest.mark.slow] if is_slow else [])


@pytest.mark.checkout
@pytest.mark.parametrize("page", [*pages_to_run()])
def test_page_runs(page, tmp_path, monkeypatch):
    path = CHECKOUT / page
    monkeypatch.chdir(tmp_path)
    text, namespace = path.read_text(), {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line = text[: block.start("code")].count("\n")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = textwrap.dedent(block["code"])
            exec(compile("\n" * line + code, str(path), "exec"), namespace)
        if block["output"] is not None:
            wanted = textwrap.dedent(block["output"])
            assert_printed(wanted, printed.getvalue(), f"{page}, line {line + 1}")


def assert_printed(wanted, printed, place):
    """That a block printed what its page shows, in which `...` stands for anything."""
    is_right = doctest.OutputChecker().check_output(wanted, printed, PRINTED)
    assert is_right, f"{place}: the block printed\n{printed}\nand not\n{wanted}"


def test_a_wrong_output_fails():
    text = "```python\nprint(1)\nprint(2)\n```\n\n```output\n1\n...\n```\n"
    (block,) = BLOCK.finditer(text)
    assert block["code"] == "print(1)\nprint(2)\n" and block["output"] == "1\n...\n"
    assert_printed(block["output"], "1\n2\n", "a page")
    with pytest.raises(AssertionError, match="a page: the block printed"):
        assert_printed(block["output"], "2\n", "a page")


def test_a_block_in_a_list_is_run():
    (block,) = BLOCK.finditer("- An item:\n\n  ```python\n  print(1)\n  ```\n\n  text\n")
    assert block["code"] == "  print(1)\n"


@pytest.mark.checkout
@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    path = CHECKOUT / page
    links = LINK.findall(BLOCK.sub("", path.read_text()))
    assert [link for link in links if not leads_to_a_page(path.parent / link[0], link[1])] == []


def leads_to_a_page(target, anchor):
    """Whether a link's file exists, or its script, or the name whose reference it is to be."""
    target = target.resolve()
    if target.parent == CHECKOUT / "docs" / "reference":
        return target.stem == "index" or is_a_name(anchor or target.stem, target.stem)
    return target.exists() or (target.suffix == ".md" and target.with_suffix(".py").exists())


def is_a_name(name, namespace):
    known = coverage.find(name) is not None or name in {n.path for n in coverage.torch_names()}
    return known and name.startswith(namespace)


def test_links_to_pages_that_are_made_need_their_sources():
    docs = CHECKOUT / "docs"
    assert leads_to_a_page(docs / "reference" / "torch.func.md", "torch.func.grad")
    assert leads_to_a_page(docs / "reference" / "jaxgrad.md", "jaxgrad.from_jax")
    assert not leads_to_a_page(docs / "reference" / "torch.func.md", "torch.func.gradient")
    assert not leads_to_a_page(docs / "reference" / "torch.fun.md", "")
    assert not leads_to_a_page(docs / "tutorials" / "absent.md", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name, start_method):
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    # the examples are code of a user, and not of the module
    for test in finder.find(module, name, extraglobs={**KNOWN, "__name__": "__main__"}):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_examples_of_classes_that_a_function_makes():
    classes = [getattr(jaxgrad.cuda, name) for name in legacy_types.DTYPES]
    classes += [*legacy_types.TYPES.values(), *storages.TYPES.values(), jaxgrad.cuda.CudaError]
    runner = doctest.DocTestRunner(verbose=False)
    for kind in classes:
        test = doctest.DocTestParser().get_doctest(kind.__doc__, {**KNOWN}, repr(kind), None, 0)
        assert test.examples and runner.run(test).failed == 0
