"""Files of nvprof, which are SQLite data bases."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3

from ..profiler_util import EventList, FunctionEvent

# nvprof's number of a call that launches a kernel
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
    """Read the ranges and kernels of a file of nvprof.

    Returns a list of ranges (id, name, start, end), and a list of kernels (range, call, name,
    duration) launched in them. Raises AssertionError for a call that is not a launch.
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
    """Read a file that nvprof wrote.

    path: the file.
    Returns an EventList with an event for each range. Raises what `parse_nvprof_trace` raises.

    >>> import sqlite3
    >>> try:
    ...     jaxgrad.autograd.profiler.load_nvprof("no/such/file")
    ... except sqlite3.OperationalError as error:
    ...     print(error)
    unable to open database file
    """
    return EventList(parse_nvprof_trace(path))


def parse_nvprof_trace(path) -> list[FunctionEvent]:
    """Read the ranges of a file that nvprof wrote.

    path: the file.
    Returns a list of FunctionEvents with their kernels, sorted by start. Raises AssertionError for
    a call that is not a launch, RuntimeError for ranges with the same number.

    >>> import sqlite3
    >>> try:
    ...     jaxgrad.autograd.profiler.parse_nvprof_trace("no/such/file")
    ... except sqlite3.OperationalError as error:
    ...     print(error)
    unable to open database file
    """
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
    """A set of keys that refuses duplicates.

    >>> unique = jaxgrad.autograd.profiler.EnforceUnique()
    >>> unique.see("range", 1)
    """

    def __init__(self):
        self.seen = set()

    def see(self, *key):
        """Add a key. Raises RuntimeError if it is in the set."""
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)
