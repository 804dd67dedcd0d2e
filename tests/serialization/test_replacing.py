"""A file at a path is replaced whole or not at all: errors, a full disk, SIGKILL."""

import io
import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

import jaxgrad
from jaxgrad.serialization import _archive

FORMATS = "safetensors", "pt"


def old_and_new(path):
    """Two objects, after the first has been saved at the path."""
    jaxgrad.save({"x": jaxgrad.ones(1000)}, path)
    return path.read_bytes(), {"x": jaxgrad.zeros(1000)}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch, form, kind, where):
    path = tmp_path / "model"
    before, new = old_and_new(path)

    def fails(*_):
        raise kind("no space left")

    monkeypatch.setattr(os, where, fails)
    with pytest.raises(kind, match="no space left"):
        jaxgrad.save(new, path, format=form)
    monkeypatch.undo()
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]
    jaxgrad.save(new, path, format=form)
    assert jaxgrad.load(path)["x"].sum().item() == 0 and os.listdir(tmp_path) == [path.name]


def test_an_error_in_the_middle_of_writing(tmp_path, monkeypatch):
    path = tmp_path / "model"
    before, new = old_and_new(path)
    write = _archive.ArchiveWriter.add

    def fails(self, name, data):
        if name.endswith("data/0"):
            raise MemoryError("in the middle")
        write(self, name, data)

    monkeypatch.setattr(_archive.ArchiveWriter, "add", fails)
    with pytest.raises(MemoryError):
        jaxgrad.save(new, path, format="pt")
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]


def test_what_cannot_be_saved_is_known_before_anything_is_written(tmp_path):
    path = tmp_path / "model"
    before, new = old_and_new(path)
    for form in FORMATS:
        with pytest.raises(TypeError):
            jaxgrad.save([new, lambda: 1], path, format=form)
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]


SAVES = """
import os, sys, time
import jaxgrad

def waits(*_):
    print("writing", flush=True)
    time.sleep(3600)

os.fsync = waits
jaxgrad.save({"x": jaxgrad.zeros(1000)}, sys.argv[1], format=sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
@pytest.mark.parametrize("form", FORMATS)
def test_a_process_that_is_killed_leaves_the_old_file(tmp_path, form):
    path = tmp_path / "model"
    before, _ = old_and_new(path)
    child = subprocess.Popen(
        [sys.executable, "-c", SAVES, str(path), form], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "writing\n"
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    # the new one was beside it
    (begun,) = set(os.listdir(tmp_path)) - {path.name}
    assert begun.startswith("model.") and begun.endswith(".tmp")
    assert path.read_bytes() == before and jaxgrad.load(path)["x"].sum().item() == 1000


def test_the_file_and_its_folder_are_on_the_disk(tmp_path, monkeypatch):
    kinds, sync = [], os.fsync

    def noted(descriptor):
        kinds.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    jaxgrad.save([1], tmp_path / "model")
    assert kinds == [False, True]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "model"
    path.write_bytes(b"")
    path.chmod(mode)
    jaxgrad.save({"x": jaxgrad.ones(3)}, path)
    assert stat.S_IMODE(path.stat().st_mode) == mode and jaxgrad.load(path)["x"].tolist() == [1] * 3


def test_a_link_is_followed(tmp_path):
    path, link = tmp_path / "model", tmp_path / "latest"
    jaxgrad.save([1], path)
    link.symlink_to(path)
    jaxgrad.save([2], link)
    assert link.is_symlink() and jaxgrad.load(path) == [2]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_is_written_to_and_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: jaxgrad.save([jaxgrad.ones(2)], path, format="pt"))
    writer.start()
    (read,) = jaxgrad.load(path)
    writer.join()
    assert read.tolist() == [1, 1] and stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_takes_a_part_at_a_time(form):
    class Slow(io.BytesIO):
        def write(self, data):
            return super().write(bytes(data[:100]))

    file = Slow()
    jaxgrad.save(jaxgrad.arange(1000), file, format=form)
    file.seek(0)
    assert jaxgrad.load(file).tolist() == list(range(1000))
