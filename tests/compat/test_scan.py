"""`jaxgrad scan` finds exactly the names that jaxgrad lacks."""

import json

import pytest

from jaxgrad import cli
from jaxgrad.compat import scan

PROGRAM = """\
import torch
import torch.nn as nn, os
import torch.nn.functional as F
from torch.optim import Adam, Adm
from torch import quantize_per_tensor as quantize
import torch.nowhere.deeper
from os import path

def function(torch_like, nn_like):
    x = torch.zeros(2).no_such_method()
    y = F.relu(x) + F.reluu(x) + nn.functional.softplus(x)
    torch.linalg.norm(x), torch.linalg.nrm(x), torch.float32.is_floating_point
    torch.onnx.export(x)
    return os.nothing, torch_like.nothing, nn.Module.nothing, nn.Module.__name__


class Net(nn.Module, nn.Modul):
    dtype = torch.float77
    run = torch.jit.script, torch.jit.nothing, torch.nn.modules.conv._ConvNd
"""

FOUND = [
    (4, "torch.optim.Adm", "did you mean 'Adam'?"),
    (5, "torch.quantize_per_tensor", "not provided by jaxgrad"),
    (6, "torch.nowhere", "not provided by jaxgrad"),
    (11, "torch.nn.functional.reluu", "did you mean 'relu'?"),
    (12, "torch.linalg.nrm", "did you mean 'norm'?"),
    (13, "torch.onnx.export", "not provided by jaxgrad: export the compiled program"),
    (14, "torch.nn.Module.nothing", "not provided by jaxgrad"),
    (17, "torch.nn.Modul", "did you mean 'Module'?"),
    (18, "torch.float77", "not provided by jaxgrad"),
    (19, "torch.jit.nothing", "not provided by jaxgrad"),
]


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_exactly_what_is_missing(program):
    found = scan.scan(program)
    assert [(each.line, each.name) for each in found] == [row[:2] for row in FOUND]
    for each, (_, _, text) in zip(found, FOUND, strict=True):
        assert text in each.why


def test_command(program, capsys):
    assert cli.main(["scan", str(program.parent)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{program}:4: torch.optim.Adm: not provided by jaxgrad")
    assert len(lines) == len(FOUND)
    assert cli.main(["scan", "--json", str(program)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in told] == [name for _, name, _ in FOUND]


def test_files_without_anything_missing(tmp_path, capsys):
    (tmp_path / "a.py").write_text("import torch\ntorch = object()\nprint(torch.nothing)\n")
    (tmp_path / "b.py").write_text("import jax\nfrom torch import *\nfrom torch.nn import Linear\n")
    assert cli.main(["scan", str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""


def test_files_that_cannot_be_read(tmp_path, program, capsys):
    (tmp_path / "broken.py").write_text("def :")
    assert cli.main(["scan", str(tmp_path), str(tmp_path / "nothing.py")]) == 2
    told = capsys.readouterr()
    assert "broken.py" in told.err and "nothing.py" in told.err
    assert len(told.out.splitlines()) == len(FOUND)  # the others are listed
