"""A profile by the lines of the code that was profiled."""

from __future__ import annotations

import linecache
import os

from .events import BACKWARD, SUMS, FunctionEventAvg


def by_lines(events) -> list:
    """For each line of source the sum of the events that it called, the most time first.

    Each is an average as `key_averages` gives them, whose key is the line; of its own time,
    `forward_time_total` was taken by operators and `backward_time_total` by the nodes that these
    recorded.
    """
    sums: dict[tuple, LineAverage] = {}
    for event in events:
        place = place_of(event)
        if place is not None:
            sums.setdefault(place, LineAverage(place)).add_event(event)
    return sorted(sums.values(), key=lambda found: found.self_cpu_time_total, reverse=True)


def place_of(event) -> tuple[str, int] | None:
    """The file and line that an event belongs to; of what is inside of another, that of the other
    unless it has one itself."""
    while event is not None and event.place is None:
        event = event.cpu_parent
    return None if event is None else event.place


def is_backward(event) -> bool:
    """Whether an event is the run of a node, or inside of one."""
    while event is not None:
        if event.scope == BACKWARD:
            return True
        event = event.cpu_parent
    return False


class LineAverage(FunctionEventAvg):
    """The events of one line of source, summed up."""

    def __init__(self, place):
        super().__init__()
        file, number = place
        source = linecache.getline(file, number).strip()
        self.key = f"{os.path.basename(file)}:{number}" + (f"  {source}" if source else "")
        self.place, self.node_id = place, -1
        self.forward_time_total = self.backward_time_total = 0

    def add_event(self, event):
        own = event.self_cpu_time_total
        if is_backward(event):
            self.backward_time_total += own
        else:
            self.forward_time_total += own
        self.use_device = event.use_device
        self.flops += event.flops or 0
        # the total of what is inside of an event of the same line is part of that event's
        inside = event.cpu_parent is not None and place_of(event.cpu_parent) == self.place
        for name in SUMS:
            if name.startswith("self_") or not inside:
                setattr(self, name, getattr(self, name) + getattr(event, name))
