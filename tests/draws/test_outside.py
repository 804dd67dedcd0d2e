"""What a compiled function reads of files, folders, sockets, processes, other threads and shared
memory is what the same lines read uncompiled.
"""

import contextlib
import ctypes
import glob
import importlib
import mmap
import multiprocessing
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from multiprocessing import shared_memory

import numpy as np
import pytest

import jaxgrad as torch

X = torch.ones(1)
SECOND, COUNT = "second", 3


def results(read, change, compile):
    """What calls give, each after a change of what is read, and the function. change: takes the
    number of the call.
    """
    f = compile(lambda x: x * read())
    values = []
    for number in range(1, COUNT + 1):
        change(number)
        values.append(f(X).item())
    return values, f


def compare(read, change):
    """The compiled function, which gives what the uncompiled one does."""
    expected, _ = results(read, change, lambda f: f)
    values, compiled = results(read, change, torch.jit)
    assert values == expected and len(set(values)) > 1
    return compiled


# ---- what can be asked again: each call asks, and the program serves where the answer is the same


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder in which the file "second" is there after the second of three changes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first").write_text("1")
    return tmp_path


def turn(folder):
    def change(number):
        if number == 2:
            (folder / SECOND).write_text("22")
        else:
            (folder / SECOND).unlink(missing_ok=True)

    return change


QUESTIONS = {
    "exists": lambda: pathlib.Path(SECOND).exists(),
    "isfile": lambda: os.path.isfile(SECOND),
    "access": lambda: os.access(SECOND, os.R_OK),
    "stat": lambda: os.stat(SECOND if os.path.exists(SECOND) else "first").st_size,
    "getsize": lambda: os.path.getsize(SECOND) if os.path.lexists(SECOND) else 7,
    "listdir": lambda: len(os.listdir()),
    "sorted": lambda: len(sorted(os.listdir(".")).pop()),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_files_and_folders_are_looked_at_in_each_call(name, folder):
    compiled = compare(QUESTIONS[name], turn(folder))
    # the third call finds what the first one did
    assert compiled.count == 2


@pytest.mark.filterwarnings("ignore:.*it goes through a folder")  # in later versions of Python
def test_the_paths_in_a_folder(folder):
    compare(lambda: len([*pathlib.Path().iterdir()]), turn(folder))


def test_a_missing_file_is_missing_in_each_call(folder):
    def size():
        try:
            return os.stat(SECOND).st_size
        except FileNotFoundError:
            return 5

    assert compare(size, turn(folder)).count == 2


def test_a_list_of_names_that_the_function_changes(folder):
    def names():
        entries = os.listdir()
        entries.append("another")
        return len(entries)

    assert compare(names, turn(folder)).count == 2


def test_the_working_folder(folder):
    (folder / "inner").mkdir()

    def change(number):
        os.chdir(folder / "inner" if number == 2 else folder)

    assert compare(lambda: len(os.getcwd()), change).count == 2


def test_what_another_thread_has_done():
    event = threading.Event()
    compiled = compare(event.is_set, lambda number: (event.set if number == 2 else event.clear)())
    assert compiled.count == 2


# ---- memory that others write to is compared


def structure():
    class Row(ctypes.Structure):
        _fields_ = (("number", ctypes.c_int),)

    row = Row(1)
    return lambda: row.number, lambda number: setattr(row, "number", number)


def item_of(buffer):
    return lambda: buffer[0], lambda number: buffer.__setitem__(0, number)


def value_of(holder):
    return lambda: holder.value, lambda number: setattr(holder, "value", number)


def shared():
    memory = shared_memory.SharedMemory(create=True, size=4)
    memory.unlink()  # it is there as long as this process has it
    return lambda: memory.buf[0], lambda number: memory.buf.__setitem__(0, number)


BUFFERS = {
    "memoryview": lambda: item_of(memoryview(bytearray(2))),
    "slice": lambda: item_of(memoryview(bytearray(4))[::2]),
    "mmap": lambda: item_of(mmap.mmap(-1, 4)),
    "ctypes array": lambda: item_of((ctypes.c_int * 2)(1, 2)),
    "ctypes number": lambda: value_of(ctypes.c_double(1)),
    "structure": structure,
    "of processes": lambda: value_of(multiprocessing.Value("i", 1)),
    "shared memory": shared,
}


@pytest.mark.parametrize("name", BUFFERS)
def test_memory_that_is_written_outside(name):
    assert compare(*BUFFERS[name]()).count == COUNT


@pytest.mark.parametrize("name", ["memoryview", "mmap", "ctypes array", "ctypes number"])
def test_memory_that_the_function_writes(name):
    seen = []
    for compile in (lambda f: f, torch.jit):
        read, write = BUFFERS[name]()

        def add(x, read=read, write=write):
            write(read() + 2)
            return x * read()

        f = compile(add)
        seen.append(([f(X).item() for _ in range(COUNT)], read()))
    assert seen[0] == seen[1]


def test_a_buffer_that_is_closed():
    view = memoryview(bytearray(b"\1\2"))
    f = torch.jit(lambda x: x * view[0])
    assert f(X).item() == 1
    view.release()
    with pytest.raises(ValueError, match="released memoryview"):
        f(X)


# ---- what no program can repeat: the function runs uncompiled, and says why


@pytest.fixture
def closing():
    with contextlib.ExitStack() as stack:
        yield stack


def of_socket(closing):
    near, far = map(closing.enter_context, socket.socketpair())
    return lambda: near.recv(1)[0], lambda number: far.send(bytes([number]))


def of_pipe(closing):
    end, begin = os.pipe()
    for descriptor in (end, begin):
        closing.callback(os.close, descriptor)
    return lambda: os.read(end, 1)[0], lambda number: os.write(begin, bytes([number]))


def of_connection(closing):
    near, far = map(closing.enter_context, multiprocessing.Pipe())
    return near.recv, far.send


def of_folder(read):
    def make(_):
        folder = pathlib.Path(tempfile.mkdtemp())
        return lambda: read(folder), lambda number: (folder / f"{number}").write_text("1")

    return make


def of_file(write, read):
    def make(_):
        path = pathlib.Path(tempfile.mkdtemp()) / "number"
        return lambda: read(path), lambda number: write(path, number)

    return make


def write_array(path, number):
    with open(path, "wb") as file:
        np.save(file, np.array(number))


UNREPEATABLE = {
    "socket": (of_socket, "it reads from a socket"),
    "pipe": (of_pipe, "it reads from a file"),
    "connection": (of_connection, "it reads from another process"),
    "scandir": (of_folder(lambda folder: len([*os.scandir(folder)])), "it goes through a folder"),
    "glob": (of_folder(lambda folder: len(glob.glob(f"{folder}/*"))), "it goes through a folder"),
    "walk": (of_folder(lambda folder: len(next(os.walk(folder))[2])), "it goes through a folder"),
    "load": (
        of_file(lambda path, n: torch.save(torch.tensor(n), path), lambda path: torch.load(path)),
        "it loads a file",
    ),
    "numpy": (of_file(write_array, lambda path: int(np.load(path))), "it opens a file"),
    "process": (
        of_file(
            lambda path, n: path.write_text(str(n)),
            lambda path: int(subprocess.check_output(["cat", path])),
        ),
        "it starts a process",
    ),
}


@pytest.mark.parametrize("name", UNREPEATABLE)
@pytest.mark.unverified
def test_what_is_read_once_is_read_in_each_call(name, closing):
    make, why = UNREPEATABLE[name]
    expected, _ = results(*make(closing), lambda f: f)
    with pytest.warns(UserWarning, match=f"runs uncompiled from now on, because {why}"):
        values, _ = results(*make(closing), torch.jit)
    assert values == expected == [1, 2, 3]


def test_names_that_are_the_only_ones():
    for read in (lambda: uuid.uuid1().int % 1009, lambda: hash(tempfile.mktemp()) % 1009):
        with pytest.warns(UserWarning, match="it makes a name that is the only one"):
            values, _ = results(read, lambda number: None, torch.jit)
        assert len(set(values)) > 1


def test_a_function_that_prints_is_compiled(tmp_path, monkeypatch):
    # as for the output of a program that goes to a file
    with open(tmp_path / "output", "w") as output, open(tmp_path / "log", "w") as log:
        monkeypatch.setattr(sys, "stdout", output)

        @torch.jit
        def f(x):
            print("traced")
            log.write("traced\n")
            return x * 2

        assert [f(X).item() for _ in range(COUNT)] == [2] * COUNT and f.count == 1
    for name in ("output", "log"):
        assert (tmp_path / name).read_text() == "traced\n"


def test_imports_and_warnings_read_files_of_their_own(tmp_path, monkeypatch):
    (tmp_path / "reads_a_file.py").write_text(
        "import os, pathlib\nSIZE = len(pathlib.Path(__file__).read_text()) + len(os.listdir())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    @torch.jit
    def f(x):
        return x * importlib.import_module("reads_a_file").SIZE

    first = f(X)
    assert torch.equal(f(X), first) and f.count == 1


def test_other_threads_read_as_before(tmp_path):
    path = tmp_path / "number"
    path.write_text("1")
    seen = []

    def look():
        seen.append((path.read_text(), path.exists()))

    @torch.jit
    def f(x):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        return x * 2

    f(X)
    assert seen == [("1", True)] and f.count == 1


def test_executables_are_read_from_disk_while_tracing(tmp_path):
    """An uncompiled call inside of the trace reads its executable."""
    code = (
        "import numpy as np, jaxgrad as torch\n"
        "torch.set_eager('compiled')\n"
        "layer = torch.nn.Linear(3, 3)\n"
        "layer.load_state_dict(layer.state_dict())\n"
        "f = torch.compile(torch.no_grad()(lambda x: layer(x).softmax(-1)))\n"
        "print(f(torch.from_numpy(np.zeros((2, 3), np.float32))).sum().round().item())\n"
    )
    for _ in range(2):
        result = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            env={**os.environ, "JAXGRAD_CACHE": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert (result.stdout, result.stderr) == ("2.0\n", "")
