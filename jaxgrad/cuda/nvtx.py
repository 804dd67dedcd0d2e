"""Ranges of a profile, as torch.cuda.nvtx: those of jax.profiler, on every device."""

from __future__ import annotations

import contextlib
import itertools
import threading

import jax

from ..names.missing import missing_in

_open = threading.local()

# the ranges of `range_start`, by their numbers
_started: dict[int, jax.profiler.TraceAnnotation] = {}
_numbers = itertools.count(1)


def range_push(msg: str) -> int:
    """Begin a range inside of those that this thread has begun, and return how many these are.

    >>> jaxgrad.cuda.nvtx.range_push("step"), jaxgrad.cuda.nvtx.range_pop()
    (0, 0)
    """
    ranges = _open.__dict__.setdefault("ranges", [])
    ranges.append(jax.profiler.TraceAnnotation(msg))
    ranges[-1].__enter__()
    return len(ranges) - 1


def range_pop() -> int:
    """End the range that this thread has begun last, and return how many are left; -1 where there
    is none.

    >>> jaxgrad.cuda.nvtx.range_push("step"), jaxgrad.cuda.nvtx.range_pop()
    (0, 0)
    >>> jaxgrad.cuda.nvtx.range_pop()
    -1
    """
    ranges = _open.__dict__.get("ranges")
    if not ranges:
        return -1
    ranges.pop().__exit__(None, None, None)
    return len(ranges)


@contextlib.contextmanager
def range(msg: str, *args, **kwargs):
    """A block that is a range. args, kwargs: for `msg.format`.

    >>> with jaxgrad.cuda.nvtx.range("step {}", 3):
    ...     y = jaxgrad.ones(2) * 2
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


def range_start(msg: str) -> int:
    """Begin a range that any thread may end, and return its number for `range_end`.

    >>> number = jaxgrad.cuda.nvtx.range_start("loading")
    >>> jaxgrad.cuda.nvtx.range_end(number)
    """
    number = next(_numbers)
    _started[number] = jax.profiler.TraceAnnotation(msg)
    _started[number].__enter__()
    return number


def range_end(range_id: int):
    """End a range of `range_start`; nothing for one that has ended."""
    started = _started.pop(range_id, None)
    if started is not None:
        started.__exit__(None, None, None)


def mark(msg: str):
    """A range without a duration.

    >>> jaxgrad.cuda.nvtx.mark("epoch 1 ends")
    """
    with jax.profiler.TraceAnnotation(msg):
        pass


__getattr__ = missing_in(__name__)
