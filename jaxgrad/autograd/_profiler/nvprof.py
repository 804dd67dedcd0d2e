"""The files that nvprof writes, which are data bases of SQLite."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3

from ..profiler_util import EventList, FunctionEvent

# nvprof's numbers of a call that launches a kernel
_LAUNCH = 211

_RANGES = """
    SELECT begun.id, begun.name, begun.timestamp, ended.timestamp
    FROM CUPTI_ACTIVITY_KIND_MARKER AS begun
    JOIN CUPTI_ACTIVITY_KIND_MARKER AS ended ON begun.id = ended.id
    WHERE begun.name != 0 AND ended.name = 0
"""
_KERNELS = """
    SELECT begun.id, call._id_, call.cbid, kernel.name, kernel.start, kernel.end
    FROM CUPTI_ACTIVITY_KIND_MARKER AS begun
    JOIN CUPTI_ACTIVITY_KIND_MARKER AS ended ON begun.id = ended.id
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS call
        ON begun.timestamp < call.start AND call.end < ended.timestamp
    JOIN CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL AS kernel
        ON kernel.correlationId = call.correlationId
"""


def read_nvprof(path):
    """The ranges that a file of nvprof's has, as (id, name, start, end), and for the kernels that
    were launched within them (range, call, name, duration). Raises AssertionError for a call that
    is no launch.
    """
    where = f"{pathlib.Path(path).absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(where, uri=True)) as connection:
        strings = dict(connection.execute("SELECT _id_, value FROM StringTable"))
        ranges = list(connection.execute(_RANGES))
        kernels = list(connection.execute(_KERNELS))
    for _, _, kind, *_ in kernels:
        if kind != _LAUNCH:
            raise AssertionError(f"Expected cbid to be {_LAUNCH}, but got {kind}")
    named = [(number, strings[name], start, end) for number, name, start, end in ranges]
    return named, [(r, call, name, end - start) for r, call, _, name, start, end in kernels]


def load_nvprof(path) -> EventList:
    """The events of a file that nvprof wrote."""
    return EventList(parse_nvprof_trace(path))


def parse_nvprof_trace(path) -> list[FunctionEvent]:
    """The ranges of a file that nvprof wrote, as events with their kernels."""
    ranges, kernels = read_nvprof(path)
    unique, events = EnforceUnique(), {}
    for number, name, start, end in ranges:
        unique.see(number)
        events[number] = FunctionEvent(number, name, 0, start, end, node_id=0)
    unique = EnforceUnique()
    for number, call, name, duration in kernels:
        unique.see(number, call)
        events[number].append_kernel(name, 0, duration)
    return sorted(events.values(), key=lambda event: event.time_range.start)


class EnforceUnique:
    """Raises RuntimeError for a key that it has seen before.

    >>> unique = jaxgrad.autograd.profiler.EnforceUnique()
    >>> unique.see("range", 1)
    """

    def __init__(self):
        self.seen = set()

    def see(self, *key):
        """Note a key. Raises RuntimeError where it is not new."""
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)
