"""Processes, as torch.multiprocessing: Python's `multiprocessing`, to which tensors are sent by
value.

Where the program names no start method it is "spawn", since a forked process cannot compute with
tensors (JAX has threads). So the functions that processes run must be found by their names, and a
script needs `if __name__ == "__main__":`.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from ..frontend import sending  # noqa: F401  tensors with a history are refused
from ..names.missing import missing_in
from ..tape import settings
from ._contexts import Named, context_of, method_of_program, set_method
from .spawn import ProcessContext as ProcessContext
from .spawn import ProcessException as ProcessException
from .spawn import ProcessExitedException as ProcessExitedException
from .spawn import ProcessRaisedException as ProcessRaisedException
from .spawn import SpawnContext as SpawnContext
from .spawn import spawn as spawn
from .spawn import start_processes as start_processes

_STRATEGIES = {"file_system", "file_descriptor"}


def get_context(method: str | None = None):
    """Return the context of a start method: "fork", "spawn" or "forkserver"; by default that of the
    program. Raises ValueError for another method.

    >>> jaxgrad.multiprocessing.get_context().get_start_method()
    'spawn'
    """
    return context_of(method)


def get_start_method(allow_none: bool = False) -> str | None:
    """Return the start method of the program, "spawn" where it has named none; with `allow_none`
    None there.

    >>> jaxgrad.multiprocessing.get_start_method()
    'spawn'
    """
    if allow_none and multiprocessing.get_start_method(allow_none=True) is None:
        return None
    return method_of_program()


def set_start_method(method: str | None, force: bool = False):
    """Set the start method of the program. Raises RuntimeError where one has been set, unless
    `force`, and ValueError for an unknown one.

    >>> jaxgrad.multiprocessing.set_start_method("forkserver", force=True)
    >>> jaxgrad.multiprocessing.get_start_method()
    'forkserver'
    """
    multiprocessing.set_start_method(method, force=force)
    set_method(method)


class Process(Named, multiprocessing.Process):
    """A process that calls `target(*args, **kwargs)`; see Python's `multiprocessing.Process`.

    >>> process = jaxgrad.multiprocessing.Process(target=print, args=("hello",), name="greets")
    >>> process.name, process.is_alive()  # before `process.start()`
    ('greets', False)
    """

    @staticmethod
    def _Popen(process):
        return context_of(None).Process._Popen(process)


def _of_context(name: str, example: str, shown):
    """The function of a name, of the context of the program. example, shown: how it is used."""

    def make(*args, **kwargs):
        return getattr(context_of(None), name)(*args, **kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = (
        f"See Python's `multiprocessing.{name}`. The start method is that of the program."
        f"\n\n    >>> {example.format(f'jaxgrad.multiprocessing.{name}')}\n    {shown!r}"
    )
    return make


Array = _of_context("Array", '{}("i", [1, 2])[:]', [1, 2])
Barrier = _of_context("Barrier", "{}(2).parties", 2)
BoundedSemaphore = _of_context("BoundedSemaphore", "{}(2).acquire()", True)
Condition = _of_context("Condition", "{}().acquire()", True)
Event = _of_context("Event", "{}().is_set()", False)
JoinableQueue = _of_context("JoinableQueue", "{}().empty()", True)
Lock = _of_context("Lock", "{}().acquire()", True)
Manager = _of_context("Manager", "with {}() as it:\n    ...     it.list([1, 2])[:]", [1, 2])
Pool = _of_context("Pool", "with {}(1) as pool:\n    ...     pool.map(abs, [-1, 2])", [1, 2])
Queue = _of_context("Queue", "{}().empty()", True)
RLock = _of_context("RLock", "{}().acquire()", True)
Semaphore = _of_context("Semaphore", "{}(2).acquire()", True)
SimpleQueue = _of_context("SimpleQueue", "{}().empty()", True)
Value = _of_context("Value", '{}("d", 1.5).value', 1.5)


# ---- memory is not shared


def get_all_sharing_strategies() -> set[str]:
    """Return the names that `set_sharing_strategy` takes.

    >>> sorted(jaxgrad.multiprocessing.get_all_sharing_strategies())
    ['file_descriptor', 'file_system']
    """
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """Return what `set_sharing_strategy` has set, which has no effect.

    >>> jaxgrad.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return settings.get("sharing_strategy")


def set_sharing_strategy(new_strategy: str):
    """Keep the name of a way to share memory, without effect: tensors are sent by value. Raises
    AssertionError for an unknown one.

    >>> jaxgrad.multiprocessing.set_sharing_strategy("file_system")
    >>> jaxgrad.multiprocessing.get_sharing_strategy()
    'file_system'
    >>> jaxgrad.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    if new_strategy not in _STRATEGIES:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {sorted(_STRATEGIES)}"
        )
    settings.put("sharing_strategy", new_strategy)


__getattr__ = missing_in(__name__)
