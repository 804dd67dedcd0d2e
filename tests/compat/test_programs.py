"""Programs and packages for PyTorch, unmodified, each in a process of its own."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.answers import beside, load
from tensorboard.backend.event_processing import event_accumulator

from jaxgrad.cli import main

PROGRAMS = Path(__file__).parent / "programs"
RECORDED = load(beside(__file__))


def run(*arguments, check=True):
    command = [sys.executable, "-m", "jaxgrad", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=check)


@pytest.mark.slow
def test_a_training_script_gives_the_numbers_of_pytorch():
    """What `python train.py --epochs 6` prints with PyTorch 2.13."""
    told = json.loads(run("run", PROGRAMS / "train.py", "--epochs", 6).stdout)
    losses = [
        *(1.2125017538895555, 1.0601343286906795, 0.8861993320396822, 0.8069192793811846),
        *(0.7294843031212993, 0.6954340849419068),
    ]
    np.testing.assert_allclose(told["losses"], losses, rtol=1e-12)
    assert (told["correct"], told["rate"]) == (35, 0.0125)


def differences(theirs, ours, precision, where=""):
    """Where what two programs printed differs: numbers by more than a relative precision."""
    if isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() == ours.keys():
        pairs = [(theirs[key], ours[key], f"{where}.{key}") for key in theirs]
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        places = (f"{where}[{number}]" for number in range(len(theirs)))
        pairs = list(zip(theirs, ours, places, strict=True))
    elif type(theirs) is type(ours) is float:
        is_close = math.isclose(theirs, ours, rel_tol=precision, abs_tol=1e-3 * precision)
        return [] if is_close else [f"{where}: {ours} for {theirs}"]
    else:
        return [] if theirs == ours else [f"{where}: {ours!r} for {theirs!r}"]
    return [
        text for one, other, place in pairs for text in differences(one, other, precision, place)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines",
    [
        ["gan", "char_rnn", "vae", "transformer", "reinforce"],
        ["unet", "maml", "dqn", "style", "scripted"],
        ["classify", "classify -j 2 --compile", "classify --amp", "ode --adjoint"],
    ],
)
def test_programs_give_the_numbers_of_pytorch(lines):
    """Those that record_programs.py has recorded. In half precision PyTorch rounds elsewhere."""
    command = [sys.executable, "-W", "ignore", PROGRAMS.parent / "in_turn.py", *lines]
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    for line, printed in zip(lines, json.loads(told.stdout), strict=True):
        recorded = RECORDED[line.removesuffix(" -j 2 --compile")]
        if "--amp" in line:
            # means near zero have no digits in common
            assert differences(recorded["history"], printed["history"], 5e-3, line) == []
        else:
            assert differences(recorded, printed, 1e-4, line) == []


@pytest.mark.slow
def test_a_program_resumes_from_its_checkpoint(tmp_path):
    path = tmp_path / "checkpoint.pt"
    first = ["run", PROGRAMS / "classify.py", "--checkpoint", path, "--stop-after", 2]
    assert len(json.loads(run(*first).stdout)["history"]) == 2
    assert {file.name for file in tmp_path.iterdir()} == {path.name, "checkpoint_best.pt"}
    told = json.loads(run("run", PROGRAMS / "classify.py", "--resume", path).stdout)
    assert differences(RECORDED["classify"], told, 1e-4) == []


@pytest.mark.slow
def test_a_program_writes_for_tensorboard(tmp_path):
    """What TensorBoard's own reader finds in its files."""
    told = json.loads(run("run", PROGRAMS / "classify.py", "--logdir", tmp_path).stdout)

    def scalars(folder, tag):
        events = event_accumulator.EventAccumulator(str(folder)).Reload()
        return [(event.step, event.value) for event in events.Scalars(tag)]

    for folder, tag, column in (
        (tmp_path, "train/loss", 0),
        (tmp_path / "val_loss", "val", 1),
        (tmp_path / "val_acc1", "val", 2),
    ):
        expected = [(epoch, np.float32(row[column])) for epoch, row in enumerate(told["history"])]
        assert scalars(folder, tag) == expected
    events = event_accumulator.EventAccumulator(str(tmp_path), {"histograms": 0}).Reload()
    assert [event.histogram_value.num for event in events.Histograms("fc")] == [32, 32, 32]


@pytest.mark.slow
def test_packages_that_look_for_torch_find_it():
    told = json.loads(run("run", PROGRAMS / "probes.py").stdout)
    told_why = ("from", "module that is not there", "attribute", "from a module", "no module")
    lines = {name: told.pop(name) for name in (*told_why, "from the compiler", "use")}
    assert told == {
        "found": True,
        "module": True,
        "missing": True,
        "distribution": "2.13.0",
        "version": ["2.13.0", True, None],
        "same": True,
        "variable": True,
        "layers": [True, [2, 2], False],
        "final": "typing.Final[int]",
        "mark": None,
        "names": ["torch.nothing", "no"],
        "star": [[True] * 5, [False] * 6, 3, 2, 2],
        "listed": [["torch"], None],
        "spec": ["torch", True, "torch"],
        "place": True,
        "modules": [True] * 5,
    }
    assert lines["from"] is None
    assert lines["use"].startswith("torch.quantized_gru is not provided")
    assert lines["module that is not there"].startswith("cannot import 'nothing' from 'torch'")
    assert lines["from a module"] == (
        "cannot import 'Liner' from 'torch.nn': not provided by jaxgrad; did you mean 'Linear'?"
    )
    assert lines["from the compiler"].startswith("cannot import 'nothing' from 'torch.jit': not p")
    assert lines["no module"] == "cannot import 'relu' from 'torch.nn.functional': it is no module"
    assert lines["attribute"].endswith("not provided by jaxgrad; did you mean 'Linear'?")


@pytest.mark.slow
def test_einops_with_its_layers():
    code = """
import jaxgrad.compat
jaxgrad.compat.install()
import json, torch
from einops import einsum, pack, rearrange, reduce, repeat
from einops.layers.torch import EinMix, Rearrange, Reduce
x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
found = [rearrange(x, "a b c -> c (a b)"), repeat(x, "a b c -> a b (c k)", k=2)]
found += [einsum(x, x, "a b c, a d c -> a b d"), pack([x, x[:, :1]], "a * c")[0]]
net = torch.nn.Sequential(Rearrange("a b c -> a (b c)"), Reduce("a b -> a", "max"))
found += [net(x), torch.compile(net)(x)]
(reduce(x, "a b c -> a c", "mean") ** 2).sum().backward()
shape = EinMix("a b c -> a b d", weight_shape="c d", bias_shape="d", c=4, d=5)(x).shape
print(json.dumps([*(each.tolist() for each in found), x.grad.tolist(), shape]))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    x = np.arange(24.0).reshape(2, 3, 4)
    expected = [
        x.reshape(6, 4).T,
        x.repeat(2, axis=2),
        x @ x.transpose(0, 2, 1),
        np.concatenate([x, x[:, :1]], axis=1),
        x.max(axis=(1, 2)),
        x.max(axis=(1, 2)),
        np.broadcast_to(2 * x.mean(axis=1, keepdims=True) / 3, x.shape),
        [2, 3, 5],
    ]
    for one, other in zip(json.loads(told.stdout), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.slow
def test_processes():
    """What `python processes.py` prints with PyTorch 2.13, but for the method that is not named."""
    told = json.loads(run("run", PROGRAMS / "processes.py").stdout)
    failures = told.pop("failures")
    assert failures[0] == ["ProcessRaisedException", "ValueError: no 1", None, None]
    # either process may end first
    assert failures[1][1] in [f"process {i} terminated with exit code 3" for i in (0, 1)]
    assert failures[2][1] in [f"process {i} terminated with signal SIGKILL" for i in (0, 1)]
    assert failures[1][::2] == ["ProcessExitedException", 3] and failures[1][3] is None
    assert failures[2][::2] == ["ProcessExitedException", -9] and failures[2][3] == "SIGKILL"
    assert told == {
        "methods": [None, "spawn"],
        "spawn": [[0, 0.0], [1, 3.0]],
        "later": [False, 1, True, 0],
        "process": [[1.0, 1.0], "worker"],
        "pool": [[1.0]],
        "forkserver": [3, 6.0],
    }


SCRIPT = """
import json, os, sys
import torch, beside
def fail():
    return torch.zeros(2) @ torch.zeros(3)
print(json.dumps([sys.argv[1:], __file__, __name__, sys.path[0], sys.modules["__main__"].__file__]))
ending = sys.argv[-1]
if ending == "status":
    sys.exit(3)
if ending == "text":
    sys.exit("over")
if ending == "error":
    fail()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("is_module", "ending", "status", "error"),
    [
        (True, "status", 3, ""),
        (False, "text", 1, "over\n"),
        (False, "error", 1, None),
        (True, "error", 1, None),
    ],
)
def test_programs_run_as_python_runs_them(tmp_path, is_module, ending, status, error):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "script.py").write_text(SCRIPT)
    (folder / "beside.py").touch()
    program = ["-m", "script"] if is_module else [Path("folder", "script.py")]
    command = [sys.executable, "-m", "jaxgrad", "run", *program, "-x", "--json", ending]
    where = folder if is_module else tmp_path
    told = subprocess.run(command, capture_output=True, text=True, cwd=where)
    path = str(folder / "script.py")
    assert json.loads(told.stdout) == [
        ["-x", "--json", ending],
        path,
        "__main__",
        str(folder),
        path,
    ]
    assert told.returncode == status
    if error is not None:
        assert told.stderr == error
    else:  # the traceback begins in the program
        lines = told.stderr.splitlines()
        assert lines[1].startswith(f'  File "{path}", line 13, in <module>')
        assert "in fail" in told.stderr and "runpy" not in told.stderr


@pytest.mark.slow
def test_modules_run_by_name():
    told = run("run", "-m", "json.tool", "--help")
    assert "usage: " in told.stdout


@pytest.mark.slow
def test_a_program_that_does_not_exist():
    told = run("run", "nothing.py", check=False)
    assert told.returncode == 2
    assert told.stderr == "jaxgrad run: nothing.py: no such file\n"


@pytest.mark.slow
def test_pytorch_itself_is_refused():
    code = """
import sys, types
sys.modules["torch"] = types.ModuleType("torch")
import jaxgrad.compat
jaxgrad.compat.install()
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.returncode == 1
    assert "PyTorch itself has been imported already" in told.stderr.splitlines()[-1]


def test_a_missing_program_is_told_in_one_line(capsys):
    assert main(["run", "nothing.py"]) == 2
    assert capsys.readouterr().err == "jaxgrad run: nothing.py: no such file\n"


def test_run_without_a_program(capsys):
    with pytest.raises(SystemExit):
        main(["run"])
    assert capsys.readouterr().err.endswith("arguments are required: PROGRAM\n")
