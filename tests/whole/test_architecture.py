"""The files and the names by which docs/architecture.md answers questions exist."""

import ast
import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs/architecture.md").read_text()
ANSWERS = re.findall(r"^\| ([A-Z][^|]*\?) \| (.*) \|$", PAGE, re.MULTILINE)
CODE, FILE = re.compile(r"`([^`]+)`"), re.compile(r"[\w./]+\.(?:py|yml|yaml)")
# `name` in `file.py`
NAME_IN_FILE = re.compile(r"`([\w.]+)`(?: and `([\w.]+)`)? in `([\w./]+\.py)`")

pytestmark = pytest.mark.checkout


def file_of(name, files):
    """The file of a name; one without a folder stands beside the first one of the answer."""
    folders = [CHECKOUT / "jaxgrad", CHECKOUT]
    if files and "/" not in name:
        folders = [file.parent for file in files[:1]]
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def files_of(answer):
    """The files that an answer names; None for one that is missing."""
    files = []
    for name in filter(FILE.fullmatch, CODE.findall(answer)):
        files.append(file_of(name, list(filter(None, files))))
    return files


def names_defined(path):
    """The classes, functions, variables and attributes of a module; members as `Class.name` too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
        if isinstance(node, ast.ClassDef):
            members = [m for m in ast.walk(node) if isinstance(m, ast.FunctionDef)]
            names.update(f"{node.name}.{member.name}" for member in members)
            stored = [m for m in ast.walk(node) if isinstance(getattr(m, "ctx", None), ast.Store)]
            attributes = [m.attr for m in stored if isinstance(m, ast.Attribute)]
            names.update(f"{node.name}.{attribute}" for attribute in attributes)
    return names


def test_there_are_questions():
    assert len(ANSWERS) > 40


@pytest.mark.parametrize(("question", "answer"), ANSWERS, ids=[q for q, _ in ANSWERS])
def test_the_files_and_names_of_an_answer_exist(question, answer):
    assert None not in files_of(answer)
    for *names, file in NAME_IN_FILE.findall(answer):
        defined = names_defined(file_of(file, []))
        assert [name for name in names if name and name not in defined] == []


def test_a_wrong_answer_is_noticed():
    assert files_of("`capture/nowhere.py`") == [None]
    assert "Executable.donated" not in names_defined(CHECKOUT / "jaxgrad/compiled/executable.py")
