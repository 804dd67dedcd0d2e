"""Several processes that run one function, as torch.multiprocessing.spawn."""

from __future__ import annotations

import multiprocessing.connection
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path

from ..names.missing import missing_in
from ._contexts import context_of


class ProcessException(Exception):
    """The end of a process by an error. error_index: its number; error_pid: its id.

    >>> jaxgrad.multiprocessing.ProcessException("it failed", error_index=1, pid=4321).error_index
    1
    """

    def __init__(self, msg: str, error_index: int, pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid
        self.error_pid = pid


class ProcessRaisedException(ProcessException):
    """A process raised an error, whose traceback is the message.

    >>> import operator
    >>> try:
    ...     jaxgrad.multiprocessing.spawn(operator.truediv, args=(0,))  # 0 / 0 in process 0
    ... except jaxgrad.multiprocessing.ProcessRaisedException as error:
    ...     print(str(error).splitlines()[-1])
    ZeroDivisionError: division by zero
    """


class ProcessExitedException(ProcessException):
    """A process ended with an exit code or by a signal.

    exit_code: the code, or the negative number of the signal. signal_name: its name, or None.

    >>> import sys
    >>> try:
    ...     jaxgrad.multiprocessing.spawn(sys.exit, nprocs=2)  # process 1 exits with code 1
    ... except jaxgrad.multiprocessing.ProcessExitedException as error:
    ...     print(error.error_index, error.exit_code, error.signal_name)
    1 1 None
    """

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def _run(function, number, arguments, error_file):
    """The main function of a process."""
    try:
        function(number, *arguments)
    except KeyboardInterrupt:
        pass  # the parent is interrupted too, and tells
    except Exception:
        Path(error_file).write_text(traceback.format_exc(), errors="replace")
        sys.exit(1)


class ProcessContext:
    """Processes that `start_processes` has started.

    >>> import operator
    >>> context = jaxgrad.multiprocessing.start_processes(operator.add, (1,), nprocs=2, join=False)
    >>> while not context.join():
    ...     pass
    >>> [process.exitcode for process in context.processes]
    [0, 0]
    """

    def __init__(self, processes: list, error_files: list[str]):
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the ids of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends, and return whether all have.

        timeout: the most seconds to wait. grace_period: the seconds that others have to end where
        one failed, before they are ended.

        Raises ProcessRaisedException where a process raised an error, ProcessExitedException where
        it ended with another exit code than 0, after the others were ended.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout)
        failed = None
        for sentinel in ready:
            number = self.sentinels.pop(sentinel)
            self.processes[number].join()
            if self.processes[number].exitcode != 0:
                failed = number
                break
        if failed is None:
            return not self.sentinels
        self._end(grace_period)
        raise self._error(failed)

    def _end(self, grace_period):
        """End the other processes."""
        if grace_period is not None:
            until = time.monotonic() + grace_period
            for process in self.processes:
                process.join(max(0.0, until - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(30)
            if process.is_alive():
                process.kill()
                process.join()

    def _error(self, number) -> ProcessException:
        process, file = self.processes[number], Path(self.error_files[number])
        if file.exists():
            text = f"\n\n-- Process {number} terminated with the following error:\n"
            return ProcessRaisedException(text + file.read_text(), number, process.pid)
        code = process.exitcode
        if code >= 0:
            how = f"exit code {code}"
            name = None
        else:
            how = f"signal {_signal_name(-code)}"
            name = _signal_name(-code)
        text = f"process {number} terminated with {how}"
        return ProcessExitedException(text, number, process.pid, code, name)


class SpawnContext(ProcessContext):
    """The older name of ProcessContext, kept for PyTorch's code.

    >>> issubclass(jaxgrad.multiprocessing.SpawnContext, jaxgrad.multiprocessing.ProcessContext)
    True
    """


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"<Unknown signal {number}>"


def start_processes(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start processes that call `fn(number, *args)`, and wait for them.

    fn: a function of a module, which the processes import. args: sent to each by value. nprocs: how
    many there are; their numbers are 0 to nprocs - 1. join: whether to wait; if not, the processes
    are returned. daemon: whether they end with this process. start_method: "spawn", "forkserver" or
    "fork", whose processes cannot compute with tensors.

    Raises ProcessRaisedException with the traceback of the first process that failed, or
    ProcessExitedException; the others are ended.

    >>> import operator
    >>> jaxgrad.multiprocessing.start_processes(operator.add, (1,), nprocs=2)  # 0 + 1 and 1 + 1
    """
    context = context_of(start_method)
    folder = tempfile.mkdtemp(prefix="jaxgrad-spawn-")
    processes, files = [], [os.path.join(folder, str(number)) for number in range(nprocs)]
    for number, file in enumerate(files):
        arguments = (fn, number, args, file)
        processes.append(context.Process(target=_run, args=arguments, daemon=daemon))
        processes[-1].start()
    process_context = ProcessContext(processes, files)
    weakref.finalize(process_context, shutil.rmtree, folder, ignore_errors=True)
    if not join:
        return process_context
    while not process_context.join():
        pass
    return None


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start processes that are started anew, as `start_processes` does.

    >>> import operator
    >>> jaxgrad.multiprocessing.spawn(operator.mul, (3,), nprocs=2)  # 0 * 3 and 1 * 3
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)


__getattr__ = missing_in(__name__)
