"""Lists of events: tables, sums and files of them."""

from __future__ import annotations

import bisect
from collections import defaultdict
from typing import Any

from ..names.missing import missing_in
from ._profiler.chrome_trace import write_stacks, write_trace
from ._profiler.events import DeviceType as DeviceType
from ._profiler.events import FormattedTimesMixin as FormattedTimesMixin
from ._profiler.events import FunctionEvent as FunctionEvent
from ._profiler.events import FunctionEventAvg as FunctionEventAvg
from ._profiler.events import Interval as Interval
from ._profiler.events import Kernel as Kernel
from ._profiler.events import by_lines
from ._profiler.table import html_table, table

__all__ = [
    "EventList",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MemRecordsAcc",
]


class EventList(list):
    """A list of events, or of sums of events.

    >>> with jaxgrad.autograd.profiler.profile() as prof:
    ...     y = jaxgrad.ones(3)
    >>> events = prof.function_events
    >>> sorted(events.key_averages(), key=lambda event: event.key)[0].key
    'aten::ones'
    >>> events.supported_export_stacks_metrics()[0]
    'self_cpu_time_total'
    >>> events.table(row_limit=1).count("aten::ones")
    1
    """

    def __init__(self, *args, use_device=None, profile_memory=False, with_flops=False):
        super().__init__(*args)
        self._use_device, self._profile_memory = use_device, profile_memory
        self._with_flops, self._tree_built = with_flops, False

    def _like(self, events) -> EventList:
        return EventList(
            events,
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    def _build_tree(self):
        """Find for each event the event that it is directly inside of."""
        threads = defaultdict(list)
        for event in self:
            if event.is_timed:
                threads[event.thread, event.node_id].append(event)
        for events in threads.values():
            around: list[FunctionEvent] = []
            for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
                while around and around[-1].time_range.end < event.time_range.end:
                    around.pop()
                if around and event.time_range.start < around[-1].time_range.end:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)
        self._tree_built = True

    def __str__(self):
        return self.table()

    def _repr_html_(self):
        return html_table(list(self), 100, self._profile_memory, self._with_flops)

    @property
    def self_cpu_time_total(self):
        """The total time of all events, in microseconds; none counts twice."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
        time_unit=None,
    ) -> str:
        """The events as a text table, with a line for each.

        sort_by: the name of a metric, such as "self_cpu_time_total"; the largest comes first.
        row_limit: the largest number of rows, -1 for all.
        max_src_column_width, max_name_column_width, max_shapes_column_width: the largest widths,
            None for no limit.
        header: a title.
        top_level_events_only: leave out events that are inside of others.
        time_unit: "s", "ms" or "us"; by default the one that fits each number.

        Raises AttributeError for a `sort_by` that events do not have.
        """
        events = list(self)
        if sort_by is not None:
            name = _on_device(sort_by)
            events.sort(key=lambda event: getattr(event, name), reverse=True)
        shown = row_limit, self._profile_memory, self._with_flops
        widths = max_src_column_width, max_name_column_width, max_shapes_column_width
        return table(events, *shown, *widths, header, top_level_events_only, time_unit)

    def export_chrome_trace(self, path):
        """Write the events to a file for chrome://tracing or ui.perfetto.dev."""
        write_trace(path, self)

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics that `export_stacks` accepts."""
        kinds = ("cpu", "cuda", "xpu", "privateuse1")
        return [f"self_{kind}_time_total" for kind in kinds]

    def export_stacks(self, path: str, metric: str):
        """Write a line for each event that has a stack: its calls and a metric, for flame graphs.

        path: the file.
        metric: one of `supported_export_stacks_metrics()`.

        Raises ValueError for another one.
        """
        if metric not in self.supported_export_stacks_metrics():
            supported = self.supported_export_stacks_metrics()
            raise ValueError(f"metric should be one of: {supported}, but got {metric!r}")
        write_stacks(path, self, _on_device(metric))

    def key_averages(
        self,
        group_by_input_shapes=False,
        group_by_stack_n=0,
        group_by_overload_name=False,
        by_line=False,
    ) -> EventList:
        """The sums of the events of each name.

        group_by_input_shapes: distinguish the shapes of inputs.
        group_by_stack_n: distinguish this many calls of the stack.
        group_by_overload_name: distinguish overloads.
        by_line: sum by source line instead of by name. The run of a node counts for the line of the
            operator that recorded it.

        Returns an EventList of FunctionEventAvg. Raises AssertionError before `_build_tree`.
        """
        if not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages")
        if by_line:
            return self._like(by_lines(self))
        sums = defaultdict(FunctionEventAvg)
        for event in self:
            key = [event.key, event.node_id, event.device_type, event.is_user_annotation]
            key.append(event.overload_name if group_by_overload_name else None)
            key.append(str(event.input_shapes) if group_by_input_shapes else None)
            key += (event.stack or [])[: max(group_by_stack_n, 0)]
            sums[tuple(key)].add(event)
        for average in sums.values():
            average.stack = (average.stack or [])[:group_by_stack_n]
            average.input_shapes = average.input_shapes if group_by_input_shapes else ""
            average.overload_name = average.overload_name if group_by_overload_name else ""
        return self._like(sums.values())

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events, as a FunctionEventAvg."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total


def _on_device(name: str) -> str:
    for kind in ("cuda", "xpu", "privateuse1"):
        name = name.replace(kind, "device")
    return name


class MemRecordsAcc:
    """Memory records that can be searched by time.

    mem_records: pairs of a record, which has `start_ns()`, and a flag.

    >>> class Record:
    ...     def __init__(self, start):
    ...         self.start = start
    ...
    ...     def start_ns(self):
    ...         return self.start
    >>> index = jaxgrad.autograd.profiler_util.MemRecordsAcc([(Record(5), True), (Record(9), True)])
    >>> [record.start for record, _ in index.in_interval(0, 6)]
    [5]
    """

    def __init__(self, mem_records: list[tuple[Any, bool]]):
        self._records = sorted(mem_records, key=lambda record: record[0].start_ns())
        self._starts = [record[0].start_ns() for record in self._records]

    def in_interval(self, start_ns, end_ns):
        """An iterator over the records that start between two times, both included."""
        first = bisect.bisect_left(self._starts, start_ns)
        return iter(self._records[first : bisect.bisect_right(self._starts, end_ns)])


__getattr__ = missing_in(__name__)
