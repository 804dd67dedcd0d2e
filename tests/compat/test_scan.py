"""`jaxgrad scan` finds exactly the names that jaxgrad lacks."""

import json
from pathlib import Path

import pytest

from jaxgrad import cli
from jaxgrad.compat import scan

PROGRAM = """\
import torch
import torch.nn as nn, os
import torch.nn.functional as F
from torch.optim import Adam, Adm
from torch import quantized_gru as quantize
import torch.nowhere.deeper
from os import path

def function(torch_like, nn_like):
    x = torch.zeros(2).no_such_method()
    y = F.relu(x) + F.reluu(x) + nn.functional.softplus(x)
    torch.linalg.norm(x), torch.linalg.nrm(x), torch.float32.is_floating_point
    torch.onnx.ops.symbolic(x)
    return os.nothing, torch_like.nothing, nn.Module.nothing, nn.Module.__name__


class Net(nn.Module, nn.Modul):
    dtype = torch.float77
    run = torch.jit.script, torch.jit.nothing, torch.nn.modules.conv._ConvNd
"""

FINDINGS = [
    (4, "torch.optim.Adm", "unknown", "did you mean 'Adam'?"),
    (5, "torch.quantized_gru", "placeholder", "not provided by jaxgrad: "),
    (6, "torch.nowhere", "unknown", "PyTorch 2.13.0 has no such name"),
    (11, "torch.nn.functional.reluu", "unknown", "did you mean 'relu'?"),
    (12, "torch.linalg.nrm", "unknown", "did you mean 'norm'?"),
    (13, "torch.onnx.ops.symbolic", "placeholder", "by jaxgrad: torch.onnx.export converts"),
    (14, "torch.nn.Module.nothing", "missing", "not provided by jaxgrad"),
    (17, "torch.nn.Modul", "unknown", "did you mean 'Module'?"),
    (18, "torch.float77", "unknown", "PyTorch 2.13.0 has no such name"),
    (19, "torch.jit.nothing", "unknown", "PyTorch 2.13.0 has no such name"),
    (
        19,
        "torch.jit.script",
        "differs",
        "the code goes on to run as Python: torch.compile compiles it",
    ),
]

# what each line uses that is missing, or differs
LINES = [
    ("import torch as th", None),
    ("from torch import nn as n, optim", None),
    ("t = th.nn", None),
    ("t.Nothing", "torch.nn.Nothing"),
    ("t.Linear(1, 1, bia=False)", "torch.nn.Linear"),  # it has no such argument
    ("F = None", None),
    ("from torch.nn import functional as F", None),
    ("F.nothing", "torch.nn.functional.nothing"),
    ("def shadowed(th, *, n): return th.nothing, n.nothing", None),
    ("def inner(x): return th.nothing", "torch.nothing"),
    ("class Net(n.Module):", None),
    ("    optim = 3", None),
    ("    def forward(self, x): return optim.Nothing", "torch.optim.Nothing"),
    ("    def optim(self): return [optim.nothing for optim in [th]]", None),
    ("try: from torch.nowhere import part", None),
    ("except ImportError: part = None", None),
    ("part.deeper, th.nn.functional.deeper", "torch.nn.functional.deeper"),
    ("try: from torch.optim import Adam as Best", None),
    ("except (AttributeError, ImportError): pass", None),
    ("Best.nothing", "torch.optim.Adam.nothing"),
    ("try: th.nothing_yet", None),
    ("except AttributeError: th.nothing_else", "torch.nothing_else"),
    ("try: th.not_here", "torch.not_here"),
    ("except ValueError: pass", None),
    ('if hasattr(th, "new_function"): th.new_function(), th.new_function.member', None),
    ('getattr(th, "optional", None), getattr(th, "needed")', "torch.needed"),
    ("if th.cuda.is_available(): th.cuda.nothing()", "torch.cuda.nothing"),
    ("if typing.TYPE_CHECKING: from torch.nowhere import Kind", None),
    ("th.backends.cudnn.not_set_yet = True", None),
    ("th.backends.nowhere.benchmark = True", "torch.backends.nowhere"),
    ('th.load("x.pt", weights_only=True), th.load("x.pt")', None),
    ('th.load("x.pt", map_location="cpu", weights_only=False)', None),
    ('importlib.import_module("torch.elsewhere")', "torch.elsewhere"),
    ('importlib.import_module("other")', None),
    ("x = th.zeros(2, nothing=3).storage().nothing", None),  # operators, and what they return
    ("th.cat([x], axis=0), th.mean(x, keepdims=True), th.split(x, split_size_or_sections=2)", None),
    ("th.linalg.norm(x, axis=0), th.linalg.norm(x, axes=0)", "torch.linalg.norm"),
    ("lambda th: th.nothing", None),
    ("(lambda x: th.nothing_there)", "torch.nothing_there"),
    ("from torch.nn.functional import *", None),
    ("relu(x), print(x), softplu(x)", "torch.nn.functional.softplu"),
]


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_exactly_what_is_missing(program):
    findings = scan.scan(program)
    assert [(finding.line, finding.name, finding.kind) for finding in findings] == [
        row[:3] for row in FINDINGS
    ]
    for finding, (*_, text) in zip(findings, FINDINGS, strict=True):
        assert text in finding.why


def test_names_under_which_files_use_torch(tmp_path):
    path = tmp_path / "lines.py"
    path.write_text("\n".join(line for line, _ in LINES))
    names = {finding.line: finding.name for finding in scan.scan(path)}
    for number, (line, name) in enumerate(LINES, 1):
        assert names.pop(number, None) == name, line
    assert names == {}


def test_names_of_several_modules(tmp_path):
    """One of several that a file imports is enough."""
    path = tmp_path / "either.py"
    path.write_text(
        "try:\n    import torch.amp as amp\nexcept ImportError:\n    import torch.cuda.amp as amp\n"
        "amp.autocast, amp.nothing\n"
    )
    assert [(finding.line, finding.name) for finding in scan.scan(path)] == [
        (5, "torch.amp.nothing")
    ]


def test_notebooks_and_folders(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["import torch.nothing"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import torch\n", "!ls"]},
        {"cell_type": "code", "source": ["%%bash\n", "torch.nothing"]},
        {"cell_type": "code", "source": "if torch:\n    %time 3\ntorch.nothing"},
    ]
    for name in ("notes.ipynb", ".hidden/a.ipynb", "lib/site-packages/b.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"cells": cells}))
    (tmp_path / "latin.py").write_bytes(
        b"# -*- coding: latin-1 -*-\nimport torch  # \xe9\ntorch.no"
    )
    findings = [f for path in scan.files_in([str(tmp_path)]) for f in scan.scan(path)]
    assert [(finding.file, finding.line, finding.name) for finding in findings] == [
        (str(tmp_path / "latin.py"), 3, "torch.no"),
        (f"{tmp_path / 'notes.ipynb'}#4", 3, "torch.nothing"),
    ]


@pytest.mark.checkout
def test_programs_of_these_tests():
    """What PyTorch's programs in tests/compat use and jaxgrad lacks, to the line."""
    folder = Path(__file__).parent
    findings = [f for path in scan.files_in([str(folder)]) for f in scan.scan(path)]
    assert [(Path(finding.file).name, finding.name, finding.kind) for finding in findings] == [
        *[("scripted.py", "torch.jit.script", "differs")] * 3,
        ("scripted.py", "torch.jit.trace", "differs"),
    ]


def test_command(program, capsys):
    assert cli.main(["scan", str(program.parent)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{program}:4: torch.optim.Adm: PyTorch 2.13.0 has no")
    assert len(lines) == len(FINDINGS)
    assert cli.main(["scan", "--json", str(program)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [finding["name"] for finding in told] == [row[1] for row in FINDINGS]
    assert [finding["kind"] for finding in told] == [row[2] for row in FINDINGS]


def test_files_without_anything_missing(tmp_path, capsys):
    (tmp_path / "a.py").write_text("import torch\ntorch = object()\nprint(torch.nothing)\n")
    (tmp_path / "b.py").write_text("import jax\nfrom torch import *\nfrom torch.nn import Linear\n")
    assert cli.main(["scan", str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""


def test_files_that_cannot_be_read(tmp_path, program, capsys):
    (tmp_path / "broken.py").write_text("def :")
    (tmp_path / "deep.py").write_text("(" * 3000 + ")" * 3000)
    (tmp_path / "null.py").write_bytes(b"x = 1\0")
    (tmp_path / "unknown.py").write_bytes(b"x = '\xe9'")
    (tmp_path / "broken.ipynb").write_text("[")
    assert cli.main(["scan", str(tmp_path), str(tmp_path / "nothing.py")]) == 2
    told = capsys.readouterr()
    for name in ("broken.py", "deep.py", "null.py", "unknown.py", "broken.ipynb", "nothing.py"):
        assert name in told.err
    assert len(told.out.splitlines()) == len(FINDINGS)  # the others are listed
