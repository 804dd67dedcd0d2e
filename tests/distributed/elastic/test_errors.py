"""The error that ends a process, as PyTorch writes it."""

import json
import sys

import pytest

from jaxgrad.distributed.elastic.multiprocessing.errors import record


@record
def main(kind):
    if kind == "error":
        raise ValueError("bad")
    if isinstance(kind, int):
        sys.exit(kind)
    return kind


def test_the_file_has_the_error(tmp_path, monkeypatch):
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))
    with pytest.raises(ValueError, match="bad"):
        main("error")
    message = json.loads(path.read_text())["message"]
    assert message["message"] == "ValueError: bad"
    assert sorted(message["extraInfo"]) == ["py_callstack", "timestamp"]
    assert message["extraInfo"]["py_callstack"].startswith("Traceback (most recent call last):")


def test_without_a_file(monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
    with pytest.raises(ValueError, match="bad"):
        main("error")
    assert main("fine") == "fine" and main(0) is None
    with pytest.raises(SystemExit):
        main(1)


def test_a_handler_of_the_user():
    calls = []

    class Handler:
        def initialize(self):
            calls.append("initialize")

        def record_exception(self, error):
            calls.append(repr(error))

    def fail():
        raise KeyError("k")

    with pytest.raises(KeyError):
        record(fail, Handler())()
    assert calls == ["initialize", "KeyError('k')"]
