"""A process that loads batches: `run` is what it executes.

It gets the indices of batches from a pipe and sends batches back. A thread of its own receives, so
that the parent never waits to send; when the parent ends or hangs up, the worker ends too.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
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

from ....core import dtypes, executor
from ....core.tracebacks import hide_frames
from ....frontend.generator import default_generator
from ....names.missing import missing_in
from ..sampler import seeded
from . import messages
from .collate import (
    as_leaf,
    collate,
    converted,
    default_collate,
    default_collate_fn_map,
    default_convert,
    functions_of,
)
from .fetch import Parts, fetcher


class WorkerInfo(NamedTuple):
    """The facts about a worker: its number, how many there are, its seed, its dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return `id`, `num_workers`, `seed` and `dataset` of the worker process that calls it.

    None in the main process. An iterable dataset yields its part by them.

    >>> jaxgrad.utils.data.get_worker_info()
    """
    return _worker_info


class Work(NamedTuple):
    """The work of a worker: the parts of batches, the user's `worker_init_fn`, and the functions
    that the user has added to `default_collate_fn_map`.
    """

    parts: Parts
    initialize: Any
    functions: dict


class Setting(NamedTuple):
    """The arguments with which a worker is started.

    `work`: the work, which a forked worker shares with the parent's memory, and another worker
    inherits where it cannot be sent; `refusal`: why a forked worker cannot compute. `by_value`:
    whether objects are sent with the functions and classes of the user's script. `modules`: the
    modules to import first; `environment`, `default_dtype`: the parent's.
    """

    number: int
    count: int
    base_seed: int
    work: Work | messages.Received | None
    refusal: str
    by_value: bool
    modules: tuple[str, ...]
    environment: dict[str, str]
    default_dtype: dtypes.dtype


class Failure(NamedTuple):
    """An exception of a worker: its class, where that can be sent, and its text."""

    kind: type
    text: str

    def throw(self):
        """Raise it again: RuntimeError where its class takes more than a text."""
        text = _Verbatim(self.text) if issubclass(self.kind, KeyError) else self.text
        try:
            error = self.kind(text)
        except Exception:
            error = RuntimeError(text)
        try:
            raise error
        finally:
            del error  # whose traceback leads to this frame, and to the loop's iterator


class _Verbatim(str):
    """A text that KeyError shows as it is, with its lines."""

    def __repr__(self):
        return str(self)


class ToTensor:
    """A NumPy array that is a tensor once the parent has received it."""

    def __init__(self, array):
        self.array = array


reduction.register(ToTensor, lambda sent: (as_leaf, (sent.array,)))


class End:
    """In place of a batch: an iterable dataset has no more samples."""


def _for_parent(function, is_own_map):
    """A `collate_fn` that leaves it to the parent to make tensors of arrays: XLA, which would do it
    here, has threads that slow down each worker.
    """
    if function is default_convert:
        return functools.partial(converted, convert=ToTensor)
    if function is default_collate and not is_own_map:
        return functools.partial(collate, collate_fn_map=functions_of(ToTensor))
    return function


def failure_of(error: Exception, where: str, by_value=False) -> Failure:
    """An exception as it is sent to the parent."""
    kind = type(error)
    hide_frames(error)
    text = f"Caught {kind.__name__} {where}.\nOriginal {''.join(traceback.format_exception(error))}"
    try:
        messages.serialized(kind, by_value)
    except Exception:  # a class of a function: the parent cannot have it
        kind = RuntimeError
    return Failure(kind, text)


def run(setting: Setting, connection, unused):
    """Serve until the parent hangs up. unused: the parent's ends of pipes, which a forked process
    has copies of.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it as well, and ends this one
    for end in unused:
        end.close()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, EOFError):
        parts = error = None
        try:
            parts = _begin(setting, connection)
        except Exception as raised:
            error = raised
        tasks: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
        _serve(setting, parts, error, connection, tasks)
    # what is left in the pipe is of no use to a parent that has gone
    connection.close()


def _receive(connection, tasks):
    with contextlib.suppress(EOFError, OSError):
        while True:
            tasks.put(messages.receive(connection))
    tasks.put(None)


def _begin(setting: Setting, connection) -> Parts:
    global _worker_info
    seed = setting.base_seed + setting.number
    random.seed(seed)
    default_generator.manual_seed(seed)
    np.random.seed(_generate_state(setting.base_seed, setting.number))
    parts, initialize, functions = _own_work(setting, connection)
    default_collate_fn_map.update(functions)
    parts = parts._replace(collate=_for_parent(parts.collate, bool(functions)))
    _worker_info = WorkerInfo(setting.number, setting.count, seed, parts.dataset)
    if hasattr(parts.dataset, "_divide"):  # of pipes of data
        parts.dataset._divide(setting.count, setting.number)
    if initialize is not None:
        initialize(setting.number)
    return parts


def _own_work(setting, connection) -> Work:
    if isinstance(setting.work, Work):
        executor.refuse_forked(setting.refusal)
        return setting.work
    received = setting.work or messages.receive(connection)
    os.environ.clear()
    os.environ.update(setting.environment)
    dtypes.set_default_dtype(setting.default_dtype)
    for name in setting.modules:
        importlib.import_module(name)
    # an accelerator belongs to the process that trains
    os.environ["JAX_PLATFORMS"] = "cpu"
    jax.config.update("jax_platforms", "cpu")
    return received.value()


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The four words that seed NumPy's generator in a worker."""
    words = worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0
    return np.random.SeedSequence(words).generate_state(4).tolist()


def _fetcher(parts, seed):
    if seed is not None:  # of pipes of data, in the same order in all workers
        parts.dataset._set_seeds(seeded(seed))
    return fetcher(parts)


def _serve(setting, parts, error, connection, tasks):
    where, by_value = f"in DataLoader worker process {setting.number}", setting.by_value
    fetch, iteration = None, None
    while (task := tasks.get()) is not None:
        try:
            if error is not None:
                raise error
            asked, indices = task.value()
            if asked != iteration:
                fetch, iteration = _fetcher(parts, asked[1]), asked
            batch = fetch(indices)
        except Exception as raised:
            is_end = isinstance(raised, StopIteration) and parts.is_iterable
            batch = End() if is_end else failure_of(raised, where, by_value)
        try:
            content = messages.serialized(batch, by_value)
        except Exception as raised:  # a sample that cannot be sent
            content = messages.serialized(failure_of(raised, where, by_value), by_value)
        messages.send(connection, task.number, content)


__getattr__ = missing_in(__name__)
