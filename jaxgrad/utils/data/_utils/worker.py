"""A process that loads batches: `run` is what it executes.

It gets the indices of batches from a pipe and sends batches back. A thread of its own receives, so
that the parent never waits to send; when the parent ends or drops the pipe, the worker ends too.
"""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import random
import signal
import threading
import traceback
from multiprocessing import reduction
from typing import Any, NamedTuple

import jax
import numpy as np

from ....core import executor
from ....frontend.generator import default_generator
from ....frontend.tensor_data import from_numpy
from .collate import default_collate, join
from .fetch import Parts, fetcher


class WorkerInfo(NamedTuple):
    """What a worker knows of itself: its number, how many there are, its seed, its dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return `id`, `num_workers`, `seed` and `dataset` of the worker process that calls it.

    None in the main process. An iterable dataset yields its part by them.

    >>> jaxgrad.utils.data.get_worker_info()
    """
    return _info


class Setting(NamedTuple):
    """What a worker is started with besides its parts."""

    number: int
    count: int
    base_seed: int
    initialize: Any  # the user's worker_init_fn


class Failure(NamedTuple):
    """An exception of a worker: its class, where that can be sent, and its text."""

    kind: type
    text: str

    def throw(self):
        """Raise it again: RuntimeError where its class takes more than a text."""
        text = _Verbatim(self.text) if issubclass(self.kind, KeyError) else self.text
        try:
            error = self.kind(text)
        except TypeError:
            error = RuntimeError(text)
        raise error


class _Verbatim(str):
    """A text that KeyError shows as it is, with its lines."""

    def __repr__(self):
        return str(self)


class ToTensor:
    """A NumPy array that is a tensor once the parent has received it."""

    def __init__(self, array):
        self.array = array


reduction.register(ToTensor, lambda sent: (from_numpy, (sent.array,)))


class End:
    """In place of a batch: an iterable dataset has no more samples."""


_join_for_parent = functools.partial(join, made=ToTensor)


def failure_of(error: Exception, where: str) -> Failure:
    """An exception as it is sent to the parent."""
    kind = type(error)
    text = f"Caught {kind.__name__} {where}.\nOriginal {''.join(traceback.format_exception(error))}"
    try:
        reduction.ForkingPickler.dumps(kind)
    except Exception:  # a class of a function: the parent cannot have it
        kind = RuntimeError
    return Failure(kind, text)


def run(setting: Setting, parts, connection, unused):
    """Serve until the parent closes the pipe.

    parts: `Parts`, or their serialized form; unused: the ends of pipes that a forked process has of
    its parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it as well, and ends this one
    for each in unused:
        each.close()
    tasks: queue.SimpleQueue = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
    try:
        parts = _begin(setting, parts)
        error = None
    except Exception as raised:
        error = raised
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, EOFError):
        _serve(setting, parts, error, connection, tasks)
    # what is left in the pipe is of no use to a parent that has gone
    connection.close()


def _receive(connection, tasks):
    with contextlib.suppress(EOFError, OSError):
        while True:
            tasks.put(connection.recv())
    tasks.put(None)


def _begin(setting: Setting, parts) -> Parts:
    global _info
    if isinstance(parts, Parts):
        executor.refuse_forked()  # they were not sent: this process is forked
    else:
        # an accelerator belongs to the process that trains
        os.environ["JAX_PLATFORMS"] = "cpu"
        jax.config.update("jax_platforms", "cpu")
    seed = setting.base_seed + setting.number
    random.seed(seed)
    default_generator.manual_seed(seed)
    numpy_seed = np.random.SeedSequence([setting.base_seed, setting.number])
    np.random.seed(numpy_seed.generate_state(4))
    if not isinstance(parts, Parts):
        parts, initialize = reduction.ForkingPickler.loads(parts)
        setting = setting._replace(initialize=initialize)
    if parts.collate is default_collate:
        # arrays are joined without XLA, which threads of its own would slow down in each worker
        parts = parts._replace(collate=_join_for_parent)
    _info = WorkerInfo(setting.number, setting.count, seed, parts.dataset)
    if setting.initialize is not None:
        setting.initialize(setting.number)
    return parts


def _serve(setting, parts, error, connection, tasks):
    where = f"in DataLoader worker process {setting.number}"
    fetch, epoch = None, None
    while (task := tasks.get()) is not None:
        number, asked, indices = task
        try:
            if error is not None:
                raise error
            if asked != epoch:
                fetch, epoch = fetcher(parts), asked
            batch = fetch(indices)
        except StopIteration:
            batch = End()
        except Exception as raised:
            batch = failure_of(raised, where)
        try:
            message = reduction.ForkingPickler.dumps((number, batch))
        except Exception as raised:  # a sample that cannot be sent
            message = reduction.ForkingPickler.dumps((number, failure_of(raised, where)))
        connection.send_bytes(message)
