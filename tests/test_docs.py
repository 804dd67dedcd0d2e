"""The blocks of every page run, in order, each page in its own namespace. Links lead to files.
The examples of public docstrings run too.
"""

import doctest
import importlib
import pathlib
import pkgutil
import re

import pytest

import jaxgrad

CHECKOUT = pathlib.Path(__file__).parents[1]
PAGES = sorted(
    str(path.relative_to(CHECKOUT))
    for pattern in ("*.md", "docs/**/*.md", "tests/**/*.md")
    for path in CHECKOUT.glob(pattern)
)
LINK = re.compile(r"\]\((?!https?://)([^)#]+)")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# what an example may use without importing it
KNOWN = {"jaxgrad": jaxgrad, "F": jaxgrad.nn.functional}
# these do something when they are imported, and have no examples
STARTING = ("__main__", "compat.installed")
MODULES = [
    "jaxgrad",
    *(
        m.name
        for m in pkgutil.walk_packages(jaxgrad.__path__, "jaxgrad.")
        if not m.name.endswith(STARTING)
    ),
]


@pytest.mark.checkout
@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page, tmp_path, monkeypatch):
    path = CHECKOUT / page
    monkeypatch.chdir(tmp_path)
    text, namespace = path.read_text(), {}
    for block in BLOCK.finditer(text):
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(path), "exec"), namespace)


@pytest.mark.checkout
@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    path = CHECKOUT / page
    links = LINK.findall(BLOCK.sub("", path.read_text()))
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    # the examples are code of a user, and not of the module
    for test in finder.find(module, name, extraglobs={**KNOWN, "__name__": "__main__"}):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
