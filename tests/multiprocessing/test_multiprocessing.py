"""torch.multiprocessing in this process; tests/compat/programs/processes.py starts others."""

import multiprocessing
import subprocess
import sys

import pytest
from helpers import hangs

import jaxgrad
from jaxgrad import multiprocessing as mp
from jaxgrad.multiprocessing import _contexts


def test_the_start_method_of_the_program(start_method):
    assert mp.get_start_method(allow_none=True) is None and mp.get_start_method() == "spawn"
    assert type(mp.get_context()) is _contexts.Spawn
    # what Python decides for when it starts a process
    assert multiprocessing.get_start_method() == "fork" and mp.get_start_method() == "spawn"
    with pytest.raises(RuntimeError, match="context has already been set"):
        mp.set_start_method("forkserver")
    mp.set_start_method("forkserver", force=True)
    assert type(mp.get_context()) is _contexts.ForkServer and mp.get_start_method() == "forkserver"
    assert mp.get_context("fork") is multiprocessing.get_context("fork")
    with pytest.raises(ValueError, match="cannot find context for 'thread'"):
        mp.get_context("thread")


@pytest.mark.slow
def test_tensors_with_a_history_are_not_sent():
    code = """
import jaxgrad.multiprocessing as mp
pipe, x = mp.get_context("spawn").SimpleQueue(), jaxgrad.ones(2, requires_grad=True)
pipe.put(x)
print(pipe.get())
pipe.put(x * 2)
"""
    command = [sys.executable, "-c", f"import jaxgrad{code}"]
    child = subprocess.run(command, capture_output=True, text=True, timeout=hangs.LIMIT)
    assert child.stdout == "tensor([1., 1.], requires_grad=True)\n"
    assert "Cowardly refusing to serialize non-leaf tensor which requires_grad" in child.stderr


def test_names_of_sharing():
    assert mp.get_sharing_strategy() == "file_descriptor"
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(AssertionError, match="invalid sharing strategy 'disk', expected one of"):
        mp.set_sharing_strategy("disk")
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(RuntimeError, match="processes cannot share it; send the values"):
        jaxgrad.ones(1).share_memory_()


def test_names_of_processes_without_the_import_hook():
    process = mp.Process(target=print, name="mine")
    assert process.name == "mine" and type(_contexts.named("x")) is str
    assert mp.cpu_count() == multiprocessing.cpu_count() and mp.current_process().name
    with pytest.raises(AttributeError, match="has no attribute 'Proces'"):
        _ = mp.Proces


def test_errors_of_processes_have_what_pytorch_gives_them():
    raised = mp.ProcessRaisedException("text", error_index=1, pid=7)
    assert (raised.msg, raised.error_index, raised.error_pid) == ("text", 1, 7)
    exited = mp.ProcessExitedException("text", 0, 7, exit_code=-9, signal_name="SIGKILL")
    assert (exited.exit_code, exited.signal_name, exited.pid) == (-9, "SIGKILL", 7)
    assert isinstance(exited, mp.ProcessException)
