"""The parent's side of worker processes: which of them loads which batch, and how they end."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import warnings
import weakref
from multiprocessing import connection as connections
from multiprocessing import reduction
from pathlib import Path

from .worker import End, Failure, Setting, run

# how long a worker may take to end by itself before it is ended
PATIENCE = 5.0


class Worker:
    """A process, the parent's end of its pipe, and how many batches it was asked for."""

    def __init__(self, process, connection):
        self.process, self.connection, self.load = process, connection, 0


class Pool:
    """The workers of one iteration, or of all iterations of a loader where they persist. They end
    when the pool is dropped.

    `sent`: how many batches they were asked for; `epoch`: the number of the iteration that they
    serve.
    """

    def __init__(self, loader, base_seed: int):
        self.sent = self.epoch = 0
        self.workers = start(loader, base_seed)
        self.stop = weakref.finalize(self, stop, self.workers, os.getpid())


class WorkersIterator:
    """The batches of one iteration, loaded by the workers of a pool."""

    def __init__(self, loader, pool: Pool):
        self._loader, self._pool = loader, pool
        pool.epoch += 1
        self._epoch, self._next, self._count = pool.epoch, pool.sent, 0
        self._ready: dict[int, object] = {}
        # batches of an iteration that was left may still come: they are not pending
        self._pending: set[int] = set()
        self._active, self._turn = list(pool.workers), 0
        self._indices = iter(loader._indices())
        self._assign()

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader._indices())

    def __next__(self):
        while True:
            batch = self._take()
            if batch is None:
                self._end()
                raise StopIteration
            (batch,) = batch
            if isinstance(batch, End):
                continue
            if isinstance(batch, Failure):
                batch.throw()
            self._count += 1
            self._loader._note_fetched(self._count)
            return batch

    def _take(self):
        """The next batch in a tuple; None after the last one."""
        if self._pool.epoch != self._epoch:
            raise RuntimeError(
                "another iteration of this DataLoader has begun, which its persistent workers serve"
            )
        is_first = True
        while self._is_next_missing():
            if not self._pending:
                return None
            self._receive(self._loader.timeout or None)
            is_first = False
        if is_first and self._pending:
            self._receive(0)  # what is there goes to the device while the caller computes
        number = self._next if self._loader.in_order else next(iter(self._ready))
        self._next += 1
        batch = self._ready.pop(number)
        self._assign()
        return (batch,)

    def _is_next_missing(self) -> bool:
        return self._next not in self._ready if self._loader.in_order else not self._ready

    # ---- asking workers for batches

    def _assign(self):
        most = self._loader.prefetch_factor
        while self._active and len(self._pending) + len(self._ready) < most * len(self._active):
            worker = self._active[self._turn % len(self._active)]
            indices = next(self._indices, self)
            if indices is self:
                self._active = []
                return
            try:
                worker.connection.send((self._pool.sent, self._epoch, indices))
            except OSError:
                self._raise_exited(worker)
            worker.load += 1
            self._turn += 1
            self._pending.add(self._pool.sent)
            self._pool.sent += 1

    # ---- receiving them

    def _receive(self, timeout):
        """Receive one batch from each worker that has one; wait for the first, but not longer than
        `timeout` seconds.
        """
        busy = {each.connection: each for each in self._pool.workers if each.load}
        found = connections.wait(busy, timeout)
        if not found and timeout:
            for each in self._pool.workers:
                each.process.terminate()  # it would go on until its batch is loaded
            self._end(is_over=True)
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        for each in found:
            self._receive_from(busy[each])

    def _receive_from(self, worker):
        try:
            number, batch = reduction.ForkingPickler.loads(worker.connection.recv_bytes())
        except (EOFError, OSError):
            self._raise_exited(worker)
        worker.load -= 1
        if number not in self._pending:
            return
        self._pending.remove(number)
        self._ready[number] = batch
        if isinstance(batch, End) and worker in self._active:
            self._active.remove(worker)

    def _raise_exited(self, worker):
        process = worker.process
        process.join(PATIENCE)
        self._end(is_over=True)
        raise RuntimeError(
            f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly, with exit code "
            f"{process.exitcode}. A negative code is the signal that ended it, such as -9 where "
            "memory ran out. A script whose workers are started anew needs `if __name__ == "
            '"__main__":` around what it runs'
        ) from None

    def _end(self, is_over=False):
        self._indices = iter(())
        self._pending, self._active = set(), []
        if is_over or not self._loader.persistent_workers:
            self._pool.stop()


def stop(workers: list[Worker], owner: int):
    """End the workers: they end when their pipe is closed, and are ended if they take too long."""
    if os.getpid() != owner:
        return  # the copy of the parent's iterator in a forked process
    for each in workers:
        each.connection.close()
    end = time.monotonic() + PATIENCE
    for each in workers:
        each.process.join(max(end - time.monotonic(), 0.01))
        if each.process.is_alive():
            each.process.terminate()
            each.process.join(PATIENCE)
        if each.process.is_alive():
            each.process.kill()
    workers.clear()


# ---- starting


def start(loader, base_seed: int) -> list[Worker]:
    """Start the workers of a loader."""
    context, parts = chosen_method(loader)
    is_fork = context.get_start_method() == "fork"
    initialize = loader.worker_init_fn if is_fork else None
    workers: list[Worker] = []
    try:
        for number in range(loader.num_workers):
            here, there = context.Pipe()
            workers.append(Worker(None, here))
            unused = [each.connection for each in workers] if is_fork else []
            setting = Setting(number, loader.num_workers, base_seed, initialize)
            process = context.Process(target=run, args=(setting, parts, there, unused), daemon=True)
            with warnings.catch_warnings(action="ignore"):  # of JAX, which a fork may not use
                process.start()
            there.close()
            workers[-1].process = process
    except BaseException:
        stop([each for each in workers if each.process is not None], os.getpid())
        raise
    return workers


def chosen_method(loader) -> tuple:
    """The context that starts the workers, and the parts of batches in the form that it sends.

    A forked process cannot use XLA, whose threads it does not have, so that its samples must be
    NumPy's. So workers come from a fork server, without XLA's threads, wherever the dataset can be
    sent to them and the user's script can be imported there; else they are forked.
    """
    context = loader.multiprocessing_context
    if context is None and multiprocessing.get_start_method(allow_none=True) in _ANEW:
        context = multiprocessing.get_context()
    if context is not None and context.get_start_method() == "fork":
        return context, loader._parts()
    try:
        sent = bytes(reduction.ForkingPickler.dumps((loader._parts(), loader.worker_init_fn)))
    except Exception as error:
        if context is not None or "fork" not in multiprocessing.get_all_start_methods():
            error.add_note(
                "The dataset, the collate_fn and the worker_init_fn of a DataLoader are sent to "
                "its workers: define classes and functions at the top of a module"
            )
            raise
        return multiprocessing.get_context("fork"), loader._parts()
    if context is None and not _can_import_main(sent):
        return multiprocessing.get_context("fork"), loader._parts()
    return context or _fork_server(), sent


_ANEW = ("spawn", "forkserver")


def _can_import_main(sent: bytes) -> bool:
    """Whether a new process may import the user's script, and finds there what it was sent."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None:
        return b"__main__" not in sent  # an interactive session
    try:
        return getattr(main, "__spec__", None) is not None or "__name__" in Path(path).read_text()
    except OSError:
        return False


def _fork_server():
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # modules alone: the user's script may make tensors, which would start XLA in the server
    preloaded = ["jaxgrad.utils.data"]
    # under jaxgrad.compat the script's `import torch` must give jaxgrad there too
    if getattr(sys.modules.get("torch"), "__file__", None) == sys.modules["jaxgrad"].__file__:
        preloaded.append("jaxgrad.compat.installed")
    context.set_forkserver_preload(preloaded)
    return context
