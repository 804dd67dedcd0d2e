"""The pages of the operators and the command `jaxgrad ops`."""

import re

import pytest

from commands import cards
from jaxgrad import coverage
from jaxgrad.cli import main

# the modules whose names are all there, but for those that have a reason
COMPLETE = (
    *("torch", "torch.Tensor", "torch.linalg", "torch.fft", "torch.special"),
    *("torch.signal.windows", "torch.random", "torch.autograd", "torch.autograd.graph"),
    *("torch.autograd.functional", "torch.autograd.forward_ad", "torch.func", "torch.amp"),
    "torch.distributions",
)


@pytest.mark.slow
@pytest.mark.checkout
def test_pages_are_written():
    pages = cards.pages()
    names = [cards.API / name for name in ("coverage.md", "placeholders.md")]
    there = {*(cards.API / "operators").glob("*.md"), *names}
    assert there == pages.keys(), "run python tests/commands/cards.py"
    stale = [path.name for path, text in pages.items() if path.read_text() != text]
    assert not stale, "run python tests/commands/cards.py"


@pytest.mark.slow
@pytest.mark.checkout
def test_every_public_placeholder_has_a_row():
    """Its module's row says what to use, and not only that PyTorch has it."""
    page = (cards.API / "placeholders.md").read_text()
    rows = dict(re.findall(r"^\| `(.*?)` \| (.*) \|$", page, re.MULTILINE))
    for module, names in coverage.placeholders().items():
        for name in names:
            assert f"`{name}`" in rows[module], (
                f"{module}.{name}: run python tests/commands/cards.py"
            )


@pytest.mark.parametrize("space", COMPLETE)
def test_the_names_of_a_module_are_there(space):
    names = [name for name in coverage.torch_names() if name.space == space]
    assert names and [name.name for name in names if not (name.reason or name.is_there)] == []


def test_a_missing_name_is_found():
    assert coverage.find("torch.nn.Linear") is not None
    assert coverage.find("torch.autograd.functional.jacobian") is not None
    assert coverage.find("torch.nn.Lineare") is coverage.find("torch.nothing.at_all") is None


def test_every_operator_has_a_card(capsys):
    assert main(["ops"]) == 0
    assert {"sin", "ops._softmax"} <= {
        line.split()[0] for line in capsys.readouterr().out.splitlines()
    }


def test_card_of_an_operator(capsys):
    assert main(["ops", "torch.sin", "absolute_"]) == 0
    sin, absolute = capsys.readouterr().out.split("abs: ")
    assert "SinBackward0" in sin and "grad * self.cos().conj()" in sin
    assert "Tensor.absolute" in absolute or "absolute" in absolute


def test_card_of_an_unknown_operator(capsys):
    assert main(["ops", "sinn"]) == 1
    assert "no operator sinn; did you mean" in capsys.readouterr().err


def test_missing_names(capsys):
    assert main(["ops", "--missing"]) == 0
    assert capsys.readouterr().out == "all names that are planned are there\n"


def test_missing_names_are_listed_by_module(monkeypatch):
    names = [("torch", "sin", ""), ("torch.fft", "nothing", ""), ("torch.fft", "left", "no use")]
    monkeypatch.setattr(coverage, "torch_names", lambda: [coverage.Name(*row) for row in names])
    assert coverage.report() == "torch.fft: nothing"
