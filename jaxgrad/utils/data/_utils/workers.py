"""The worker processes of a DataLoader as their parent has them: how they start and end."""

from __future__ import annotations

import contextlib
import importlib.machinery
import multiprocessing
import os
import queue
import sys
import threading
import time
import warnings
import weakref
from multiprocessing import connection as connections
from multiprocessing.context import BaseContext, set_spawning_popen
from typing import Any, NamedTuple

import jax

from ....core import dtypes
from ....core.device import default_device, jax_device
from . import messages
from .collate import added_functions
from .fetch import parts_of
from .pin_memory import place_of
from .worker import Setting, Work, failure_of, run

# how long a worker may take to end by itself before it is ended
PATIENCE = 5.0

GONE = object()
"""In place of a batch: the worker has ended."""


class Worker:
    """A process, the parent's end of its pipe, and how many batches it was asked for."""

    def __init__(self, process, connection):
        self.process, self.connection, self.load = process, connection, 0


class Crew:
    """The workers of one iteration, or of all iterations of a loader where they persist. They end
    when the crew is dropped.

    A thread receives what they send, so that batches go to the device while the program computes.
    `processes`: those of the workers, also after their end. `arrived`: a queue of what came: the
    worker, the number of the batch, the batch. `asked`: how many batches the workers were asked
    for; `epoch`: the number of the iteration that they serve, `shared_seed`: that of the pipes of
    data in it.
    """

    def __init__(self, loader, base_seed: int):
        self.asked, self.epoch, self.shared_seed = 0, 0, None
        self.workers, launch = start(loader, base_seed)
        self.processes = [worker.process for worker in self.workers]
        self.by_value = launch.by_value
        self.arrived: queue.SimpleQueue = queue.SimpleQueue()
        place = place_of(loader) or jax_device(default_device())
        arguments = list(self.workers), self.arrived, place
        receiver = threading.Thread(target=_receive, args=arguments, daemon=True)
        receiver.start()
        self.shut_down = weakref.finalize(self, stop, self.workers, receiver, os.getpid())

    def ask(self, worker: Worker, indices) -> int:
        """Ask a worker for a batch, and return its number. Raises OSError where it has ended."""
        iteration = self.epoch, self.shared_seed
        content = messages.serialized((iteration, indices), self.by_value)
        messages.send(worker.connection, self.asked, content)
        worker.load += 1
        self.asked += 1
        return self.asked - 1


def start(loader, base_seed: int) -> tuple[list[Worker], Launch]:
    """Start the workers of a loader."""
    work = Work(parts_of(loader), loader.worker_init_fn, added_functions())
    launch = launch_of(work, loader.multiprocessing_context)
    common = (
        *(base_seed, launch.work, launch.refusal, launch.by_value, _hook()),
        *(dict(os.environ), dtypes.get_default_dtype()),
    )
    workers: list[Worker] = []
    try:
        for number in range(loader.num_workers):
            _add(workers, launch.context, Setting(number, loader.num_workers, *common))
        if launch.sent is not None:
            _send_to_all(workers, launch.sent)
    except BaseException:
        stop([worker for worker in workers if worker.process is not None], None, os.getpid())
        raise
    return workers, launch


def _add(workers, context, setting):
    is_fork = isinstance(setting.work, Work)
    here, there = context.Pipe()
    workers.append(Worker(None, here))
    unused = [worker.connection for worker in workers] if is_fork else []
    process = context.Process(target=run, args=(setting, there, unused), daemon=True)
    # JAX warns of forks, in which it cannot be used
    with warnings.catch_warnings(action="ignore") if is_fork else without_script():
        process.start()
    there.close()
    workers[-1].process = process


def _send_to_all(workers, content):
    with contextlib.closing(messages.Message(0, content)) as message:
        for worker in workers:
            with contextlib.suppress(OSError):  # it has ended, as the receiver will find
                message.send(worker.connection)


def _receive(workers, arrived, device):
    working = {worker.connection: worker for worker in workers}
    while working:
        for connection in connections.wait(working):
            number, batch = _received(connection, device)
            arrived.put((working[connection], number, batch))
            if batch is GONE:
                del working[connection]


def _received(connection, device) -> tuple:
    """The number of a batch and the batch, whose tensors are on a device of JAX's."""
    try:
        message = messages.receive(connection)
    except (EOFError, OSError):
        return None, GONE
    try:
        with jax.default_device(device):
            return message.number, message.value()
    except Exception as error:
        return message.number, failure_of(error, "while a batch of a worker was received")


def stop(workers: list[Worker], receiver: threading.Thread | None, owner: int):
    """End the workers: they end when the parent hangs up, and are ended if they take too long."""
    if os.getpid() != owner:
        return  # the copy of the parent's iterator in a forked process
    for worker in workers:
        messages.hang_up(worker.connection)
    end = time.monotonic() + PATIENCE
    for worker in workers:
        worker.process.join(max(end - time.monotonic(), 0.01))
        if worker.process.is_alive():
            worker.process.terminate()
            worker.process.join(PATIENCE)
        if worker.process.is_alive():
            worker.process.kill()
    # it uses the connections; a collection of garbage in itself may have led here
    if receiver is not None and receiver is not threading.current_thread():
        receiver.join(PATIENCE)
    for worker in workers:
        worker.connection.close()
    workers.clear()


# ---- how they start


class Launch(NamedTuple):
    """How workers start: the context, and what they are sent, or else the work that is among their
    arguments, and why forked ones cannot compute.

    `by_value`: whether functions and classes of the user's script are sent.
    """

    context: BaseContext
    sent: messages.Serialized | None
    work: Work | Inherited | None = None
    refusal: str = ""
    by_value: bool = False


class Inherited:
    """Work with what a process can only inherit, such as the locks of multiprocessing: it is
    serialized each time that a process starts.
    """

    def __init__(self, work: Work):
        self.work = work

    def __reduce__(self):
        content = messages.serialized(self.work, by_value=True)
        buffers = [bytearray(buffer.raw()) for buffer in content.buffers]
        return messages.Received, (0, bytes(content.data), buffers)


class _Start:
    """In place of a process that starts, to try whether work can be inherited."""

    DupFd = duplicate_for_child = staticmethod(int)


def launch_of(work: Work, context: BaseContext | None) -> Launch:
    """How the workers of a loader start that has this context, None for the default.

    A forked process cannot use XLA, whose threads it does not have, so that its samples must be
    NumPy's. So workers come from a fork server, which has none of these threads, and are sent the
    dataset. Where that cannot be sent, they are forked.
    """
    if context is None and multiprocessing.get_start_method(allow_none=True) in _ANEW:
        context = multiprocessing.get_context()
    if context is not None and context.get_start_method() == "fork":
        refusal = _refusal("multiprocessing_context is 'fork': leave it out")
        return Launch(context, None, work, refusal)
    server = _fork_server() if context is None else context
    try:
        return _sent(work, server)
    except Exception as error:
        cure = (
            "its dataset, collate_fn or worker_init_fn cannot be sent to another process "
            f"({type(error).__name__}: {error}): open files and locks in the worker, and define "
            "classes and functions at the top level of a module"
        )
        if context is not None or "fork" not in multiprocessing.get_all_start_methods():
            error.add_note(cure)
            raise
        return Launch(multiprocessing.get_context("fork"), None, work, _refusal(cure))


_ANEW = ("spawn", "forkserver")


def _refusal(cure) -> str:
    return (
        "a worker of this DataLoader computes with tensors, and it is a fork of the main process, "
        "in which the threads of XLA are missing: make tensors of data alone (torch.tensor, "
        f"torch.from_numpy) and compute in NumPy. It is forked because {cure}"
    )


def _sent(work, context) -> Launch:
    """The launch of workers that are sent their work. Raises what its classes raise."""
    with contextlib.suppress(Exception):
        content = messages.serialized(work)
        data = bytes(content.data)
        if not any(name.encode() in data for name in messages.SCRIPTS):
            return Launch(context, content)
    try:
        return Launch(context, messages.serialized(work, by_value=True), by_value=True)
    except RuntimeError as error:
        if "inheritance" not in str(error):
            raise
    _try_inheritance(work)
    return Launch(context, None, Inherited(work), by_value=True)


def _try_inheritance(work):
    """Raise what the classes of work raise where a process inherits it."""
    set_spawning_popen(_Start)
    try:
        messages.serialized(work, by_value=True)
    finally:
        set_spawning_popen(None)


_lock = threading.Lock()


@contextlib.contextmanager
def without_script():
    """A block in which a process starts without importing the user's script."""
    main: Any = sys.modules["__main__"]
    with _lock:
        before = main.__spec__
        # multiprocessing takes a script of this name for one that the process has already
        main.__spec__ = importlib.machinery.ModuleSpec("__main__", None)
        try:
            yield
        finally:
            main.__spec__ = before


def _hook() -> tuple[str, ...]:
    """The module that a worker imports first, if `import torch` gives jaxgrad here."""
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    return ("jaxgrad.compat.installed",) if torch == sys.modules["jaxgrad"].__file__ else ()


def _fork_server() -> BaseContext:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # no script of the user's: it may make tensors, which would start XLA in the server
    context.set_forkserver_preload(["jaxgrad.utils.data", *_hook()])
    return context
