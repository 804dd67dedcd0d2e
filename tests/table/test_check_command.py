"""The command `jaxgrad check`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import hangs

from jaxgrad.cli import known_names, main, names_in

HERE = Path(__file__).parent
SOUND = """
- name: f(Tensor self, Tensor other) -> Tensor
  forward: lax.add(self, other)
  self: grad
  other: grad
"""
WRONG = """
- name: f.Tensor(Tensor self, Tensor other) -> Tensor
  forward: lax.add(self, other)
  self: grat
  othr: grad
"""
MISTAKES = [
    "2:9: f.Tensor: the Tensor 'other' has no gradient; write a formula, `zeros`, "
    '`non_differentiable` or `not_implemented("why")`',
    "4:9: f.Tensor: in the formula of 'self': unknown name 'grat'; did you mean 'grad'?",
    "5:3: f.Tensor: 'othr' is neither an argument nor an output; did you mean 'other'?",
]


@pytest.fixture
def file(tmp_path):
    def write(text, name="t.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_sound(file, capsys):
    assert main(["check", file(SOUND)]) == 0
    assert capsys.readouterr() == ("", "")


def test_mistakes(file, capsys):
    path = file(WRONG)
    assert main(["check", path]) == 1
    output, errors = capsys.readouterr()
    assert output.splitlines() == [f"{path}:{mistake}" for mistake in MISTAKES]
    assert errors == ""


def test_several_files(file, capsys):
    paths = [file(SOUND, "a.yaml"), file(WRONG, "b.yaml"), file("- 3", "c.yaml")]
    assert main(["check", *paths]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [paths[1]] * 3 + [paths[2]]


def test_json(file, capsys):
    path = file(WRONG)
    assert main(["check", "--json", path]) == 1
    mistakes = json.loads(capsys.readouterr().out)
    assert len(mistakes) == 3
    assert mistakes[1] == {
        "path": path,
        "line": 4,
        "column": 9,
        "entry": "f.Tensor",
        "cause": "in the formula of 'self': unknown name 'grat'",
        "cure": "did you mean 'grad'?",
    }


def test_json_of_a_sound_file(file, capsys):
    assert main(["check", file(SOUND), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize("name", ["nowhere.yaml", "."])
def test_unreadable_file(name, file, tmp_path, capsys):
    path = str(tmp_path / name)
    assert main(["check", path, file(WRONG)]) == 2
    output, errors = capsys.readouterr()
    assert len(output.splitlines()) == 3  # the other file is checked all the same
    assert errors.startswith(f"jaxgrad check: {path}: ")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["check"], ["chekc", "x.yaml"], ["check", "--jsn", "x"]])
def test_wrong_usage(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: jaxgrad" in capsys.readouterr().err


def test_functions(file, capsys):
    table = file("- name: my_op(Tensor self) -> Tensor\n  self: my_helper(grad)\n")
    helpers = file("def my_op(x): ...\nmy_helper = print('read, not run')\n", "helpers.py")
    assert main(["check", table]) == 1
    assert "my_helper" in capsys.readouterr().out
    assert main(["check", table, "--functions", helpers]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("source", [None, "def f(:\n", "\0"])
def test_unreadable_functions(source, file, tmp_path, capsys):
    helpers = file(source, "helpers.py") if source else str(tmp_path / "nowhere.py")
    assert main(["check", file(SOUND), "--functions", helpers]) == 2
    assert capsys.readouterr().err.startswith("jaxgrad check: ")


def test_names_in_a_module(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(
        "import a\nfrom b import c, d as e\nf = g = 1\ndef h(): ...\n__all__ = []\n"
        "from typing import NamedTuple\nfrom os.path import join\nclass K: ...\ndef _i(): ...\n"
    )
    assert names_in(path) == {"c", "e", "f", "g", "h"}


def test_names_of_jaxgrad_are_known():
    functions, operators = known_names([])
    assert "sum_backward" in functions
    assert {"sin", "absolute"} <= operators
    assert not functions & {"NamedTuple", "OutOfBounds"}


def test_strange_paths_stay_on_one_line(tmp_path, capsys):
    path = tmp_path / "a\nb\u202e.yaml"
    path.write_text("- 3")
    assert main(["check", str(path)]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert "a\\nb\\u202e.yaml:1:3: entry 1: " in line


@pytest.mark.slow
def test_as_a_module(file):
    path = file(WRONG)
    command = [sys.executable, "-m", "jaxgrad", "check", path]
    result = subprocess.run(command, capture_output=True, text=True, timeout=hangs.LIMIT)
    assert result.returncode == 1
    assert result.stdout.splitlines() == [f"{path}:{mistake}" for mistake in MISTAKES]
