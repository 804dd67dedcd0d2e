"""`jaxgrad compare` with runs that are written here in place of those of processes."""

import sys

import numpy as np
import pytest
from helpers.compared_runs import Script

from jaxgrad import cli
from jaxgrad.compare import children, command

X = np.linspace(1, 2, 5)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("import torch\ntorch.ones(2)\ntorch.nonexistent\n")
    return str(path)


def written(library, factor=1.0, losses=(2.0, 1.0), error=None, ticks=()):
    """The run of a library that computes `factor` times too much."""
    script = Script(library)
    script.call("mul", 1, [X.astype(np.float32)], [(X * factor).astype(np.float32)])
    for loss in losses:
        script.write("loss", value=loss, place=["script.py", 2, "main"])
    for tick, time in enumerate(ticks):
        script.write("tick", of="step" if tick else "begin", time=time, memory=2_000_000)
    place = ["script.py", 3, "main"]
    problem = error and {"type": error, "text": f"{error}: no", "place": place}
    script.write("end", error=problem, status=0)
    return script.run()


@pytest.fixture
def processes(monkeypatch):
    """Lets the command get runs: by library, and by whether they are in double precision."""

    def install(**runs):
        def run_under(library, python, settings, shows_output=False):
            precision = "double" if settings.get("double") else "single"
            return runs.get(f"{library}_{precision}") or runs[library]

        monkeypatch.setattr(command, "run_under", run_under)
        monkeypatch.setattr(command, "python_of_torch", lambda asked: "python")

    return install


def compare(capsys, *arguments):
    status = cli.main(["compare", "--no-times", *arguments])
    return status, capsys.readouterr().out


def test_equal_runs(processes, script, capsys):
    processes(torch=written("torch"), jaxgrad=written("jaxgrad"))
    status, text = compare(capsys, script)
    assert status == 0
    assert text.startswith("equal: 3 records differ by at most 0.0e+00 of their norms\n")
    assert "loss, last step   1" in text and "missing names     " in text
    assert "torch.nonexistent" in text


def test_runs_that_differ(processes, script, capsys):
    processes(torch=written("torch"), jaxgrad=written("jaxgrad", 1.01))
    status, text = compare(capsys, script)
    assert status == 1
    assert text.startswith("first difference: script.py:1, in forward\n")
    assert "call mul: inputs equal, output not" in text
    assert "output differs by 9.9e-03 of its norm" in text
    assert "--double tells a fault from rounding" in text


@pytest.mark.parametrize(
    ("factor", "status", "words"),
    [(1.0, 0, "is rounding"), (1.01, 1, "a fault, since the libraries differ there too")],
)
def test_double_precision_decides(factor, status, words, processes, script, capsys):
    processes(
        torch_single=written("torch", 1.005),
        jaxgrad_single=written("jaxgrad", 0.995),
        torch_double=written("torch"),
        jaxgrad_double=written("jaxgrad", factor),
    )
    answer, text = compare(capsys, "--double", script)
    assert answer == status and words in text


def test_a_script_that_stops_under_one_library(processes, script, capsys):
    processes(torch=written("torch"), jaxgrad=written("jaxgrad", error="TypeError"))
    status, text = compare(capsys, script)
    assert status == 1
    assert "under jaxgrad the script stops at script.py:3, in main: TypeError: no" in text
    assert "equal up to there" in text


def test_a_script_that_stops_under_both(processes, script, capsys):
    runs = {library: written(library, error="ValueError") for library in ("torch", "jaxgrad")}
    processes(**runs)
    status, text = compare(capsys, script)
    assert status == 0
    assert text.startswith(
        "under both libraries the script stops at script.py:3, in main: ValueError: no\n"
        "equal up to there: 3 records"
    )


def test_a_script_that_exits_before_any_operator(processes, script, capsys):
    runs = {}
    for library in ("torch", "jaxgrad"):
        log = Script(library)
        log.write("end", error=None, status=2)
        runs[library] = log.run()
        runs[library].message = f"no --epochs for {library}"
    processes(**runs)
    status, text = compare(capsys, script)
    assert status == 1
    assert "no operator of the library ran\n" in text
    assert "  under PyTorch it exits with 2: no --epochs for torch\n" in text
    assert "  under jaxgrad it exits with 2: no --epochs for jaxgrad\n" in text


def test_a_page(processes, script, capsys, tmp_path):
    page = tmp_path / "page.html"
    processes(torch=written("torch"), jaxgrad=written("jaxgrad", losses=(2.0, float("nan"))))
    compare(capsys, "--html", str(page), script)
    text = page.read_text()
    assert text.count("<svg") == 2 and text.count("<polyline") == 3
    assert "<script" not in text and "nan," not in text


def test_times(processes, script, capsys):
    runs = {
        "torch": written("torch", ticks=(0.0, 2.0, 2.5, 3.5)),
        "jaxgrad": written("jaxgrad", ticks=(0.0, 1.0, 1.25, 1.5)),
    }
    processes(**runs)
    assert cli.main(["compare", script]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line[:22].strip(): line[22:].split() for line in lines}
    assert rows["time of the first step"] == ["2.00", "s", "1.00", "s"]
    assert rows["time of a later step"] == ["750", "ms", "250", "ms"]
    assert rows["memory"] == ["2", "MB", "2", "MB"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.py"], "nothing.py: no such file"),
        (["--checkpoint", "nothing.pt", "SCRIPT"], "nothing.pt: no such file"),
        (["--html", "nowhere/page.html", "SCRIPT"], "nowhere/page.html: no such folder"),
        (["--torch-python", "nowhere", "SCRIPT"], "nowhere: no such file; make an environment"),
        (["--torch-python", "FALSE", "SCRIPT"], "cannot import torch and numpy: no"),
    ],
)
def test_misuse_is_one_sentence(arguments, words, script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    false = tmp_path / "false"
    false.write_text("#!/bin/sh\necho no >&2; exit 1\n")
    false.chmod(0o755)
    names = {"SCRIPT": script, "FALSE": str(false)}
    assert cli.main(["compare", *(names.get(word, word) for word in arguments)]) == 2
    text = capsys.readouterr().err
    assert text.startswith("jaxgrad compare: ") and words in text and text.count("\n") == 1


def test_a_number_of_steps_is_positive(script, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["compare", "--every", "0", script])
    assert end.value.code == 2 and "0 is no number of steps" in capsys.readouterr().err


def test_a_checkpoint_that_fits_no_module(processes, script, capsys):
    processes(torch=written("torch"), jaxgrad=written("jaxgrad"))
    assert cli.main(["compare", "--no-times", "--checkpoint", script, script]) == 2
    assert "no module of the script has the keys of this state" in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_that_dies_is_told(tmp_path):
    path = tmp_path / "dies.py"
    path.write_text("import os\nimport torch\ntorch.ones(2)\nos._exit(7)\n")
    settings = {"script": str(path), "arguments": [], "seed": 0}
    run = children.run_under("jaxgrad", sys.executable, settings)
    assert run.end["error"]["text"] == "the process ended with status 7"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("last_line", "error", "status"),
    [("sys.exit(3)", None, 3), ("sys.exit('text')", None, 1), ("1 / 0", "ZeroDivisionError", 1)],
)
def test_how_a_script_ends(last_line, error, status, tmp_path):
    path = tmp_path / "ends.py"
    path.write_text(f"import sys\nimport torch\n{last_line}\n")
    settings = {"script": str(path), "arguments": [], "seed": 0}
    end = children.run_under("jaxgrad", sys.executable, settings).end
    assert (end["error"] and end["error"]["type"], end["status"]) == (error, status)
    assert error is None or end["error"]["place"] == [str(path), 3, "<module>"]


def test_runs_without_operators_are_not_called_equal():
    runs = [Script(library).run() for library in ("torch", "jaxgrad")]
    lines, status = command.verdict(command.Comparison(*runs, 1e-5))
    assert status == command.DIFFERENT and lines[0].startswith("nothing was compared")
