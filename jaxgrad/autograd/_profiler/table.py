"""Events as a text table with PyTorch's columns."""

from __future__ import annotations

import math

from ... import html

COLUMN = 12  # the width of a numeric column
GAP = "  "


def duration(microseconds, unit=None) -> str:
    """A time as text, in "s", "ms" or "us"; by default in the unit that fits."""
    if unit is None:
        unit = "s" if microseconds >= 1e6 else "ms" if microseconds >= 1e3 else "us"
    return f"{microseconds / {'s': 1e6, 'ms': 1e3}.get(unit, 1):.3f}{unit}"


def share(part, whole) -> str:
    """A part of a whole, in per cent."""
    return f"{part * 100 / whole:.2f}%" if whole else "NaN"


def size(nbytes) -> str:
    """A number of bytes as text."""
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(nbytes) >= 1024**power:
            return f"{nbytes / 1024**power:.2f} {unit}"
    return f"{nbytes} B"


class _Column:
    """A column of the table.

    shown: a function from an event to the text of its cell.
    """

    def __init__(self, title, shown, width=COLUMN, left=False):
        self.title, self.shown, self.width, self.left = title, shown, width, left

    def cell(self, text) -> str:
        return text.ljust(self.width) if self.left else text.rjust(self.width)


def _times(events, unit):
    """The columns of times on the CPU."""
    total = sum(event.self_cpu_time_total for event in events)

    def time(name):
        return lambda event: duration(getattr(event, name), unit)

    def percent(name):
        return lambda event: share(getattr(event, name), total)

    return [
        _Column("Self CPU %", percent("self_cpu_time_total")),
        _Column("Self CPU", time("self_cpu_time_total")),
        _Column("CPU total %", lambda e: "0" if e.is_async else percent("cpu_time_total")(e)),
        _Column("CPU total", time("cpu_time_total")),
        _Column("CPU time avg", time("cpu_time")),
    ]


def _directions(events, unit):
    """The columns of forward and backward time, for sums by line."""
    if not hasattr(events[0], "forward_time_total"):
        return []
    return [
        _Column("Forward", lambda event: duration(event.forward_time_total, unit)),
        _Column("Backward", lambda event: duration(event.backward_time_total, unit)),
    ]


def _device_times(events, unit):
    if not any(event.self_device_time_total > 0 for event in events):
        return []
    device = str(events[0].use_device).upper()
    total = sum(event.self_device_time_total for event in events)
    return [
        _Column(f"Self {device}", lambda event: duration(event.self_device_time_total, unit)),
        _Column(f"Self {device} %", lambda event: share(event.self_device_time_total, total)),
        _Column(f"{device} total", lambda event: duration(event.device_time_total, unit)),
        _Column(f"{device} time avg", lambda event: duration(event.device_time, unit)),
    ]


def _memory(events):
    columns = [
        _Column("CPU Mem", lambda event: size(event.cpu_memory_usage)),
        _Column("Self CPU Mem", lambda event: size(event.self_cpu_memory_usage)),
    ]
    if events[0].use_device and any(event.self_device_memory_usage > 0 for event in events):
        device = events[0].use_device.upper()
        columns += [
            _Column(f"{device} Mem", lambda event: size(event.device_memory_usage)),
            _Column(f"Self {device} Mem", lambda event: size(event.self_device_memory_usage)),
        ]
    return columns


def _flops(events):
    counts = [event.flops for event in events if event.flops]
    if not counts:
        return []
    power = min(int(math.log10(max(min(counts), 1)) / 3), 5)
    unit = ("", "K", "M", "G", "T", "P")[power]

    def shown(event):
        return f"{event.flops / 1000**power:.3f}" if event.flops else "--"

    return [_Column(f"Total {unit}FLOPs", shown)]


def _width(texts, most) -> int:
    widest = max(map(len, texts), default=0) + 4
    return widest if most is None else min(widest, most)


def _cut(text, width) -> str:
    return text if len(text) < width - 3 else text[: width - 3] + "..."


def _cut_front(text, width) -> str:
    return text if len(text) <= width else "..." + text[len(text) - width + 3 :]


def _columns(events, memory, flops, widths, unit):
    """The columns that these events fill."""
    source, name, shapes = widths
    name_width = _width([event.key for event in events], name)
    columns = [_Column("Name", lambda event: _cut(event.key, name_width), name_width)]
    if any(event.overload_name for event in events):
        overload = _Column("Overload Name", lambda event: event.overload_name or "", name_width)
        columns.append(overload)
    columns += _directions(events, unit) + _times(events, unit) + _device_times(events, unit)
    columns += _memory(events) if memory else []
    columns.append(_Column("# of Calls", lambda event: str(event.count)))
    if any(event.node_id not in (-1, None) for event in events):
        columns.append(_Column("Node ID", lambda event: str(event.node_id)))
    if any(event.input_shapes for event in events):
        wide = _width([str(event.input_shapes) for event in events], shapes)
        shown = _Column("Input Shapes", lambda event: str(event.input_shapes)[:wide], wide)
        columns.append(shown)
    entries = [entry for event in events for entry in event.stack or ()]
    if entries:
        width = _width(entries, source)

        def innermost(event):
            return _cut_front(event.stack[0], width) if event.stack else ""

        columns.append(_Column("Source Location", innermost, width, left=True))
    return columns + (_flops(events) if flops else [])


def _rest_of_stack(columns, event):
    """Yield a line for each outer call of an event's stack, then an empty line."""
    place = next((c for c in columns if c.title == "Source Location"), None)
    if place is None:
        return
    for entry in [*(event.stack or ())[1:], ""]:
        cells = [c.cell(_cut_front(entry, c.width) if c is place else "") for c in columns]
        yield GAP.join(cells) + GAP


def html_table(events, row_limit=100, profile_memory=False, with_flops=False) -> str:
    """The table of events as HTML, without the outer calls of stacks."""
    if not events:
        return ""
    columns = _columns(events, profile_memory, with_flops, (None, None, None), None)
    shown = events[:row_limit]
    rows = [[column.shown(event) for column in columns] for event in shown]
    texts = ("Name", "Overload Name", "Input Shapes", "Source Location")
    numbers = [at for at, column in enumerate(columns) if column.title not in texts]
    total = sum(event.self_cpu_time_total for event in events)
    footer = f"Self CPU time total: {duration(total, None)}"
    if len(events) > len(shown):
        footer += f" ({len(events) - len(shown):,} more rows)"
    return html.table([column.title for column in columns], rows, numbers) + html.line(footer)


def table(
    events,
    row_limit=100,
    profile_memory=False,
    with_flops=False,
    max_src_column_width=75,
    max_name_column_width=55,
    max_shapes_column_width=80,
    header=None,
    top_level_events_only=False,
    time_unit=None,
) -> str:
    """The table of events, see EventList.table; empty without events."""
    if not events:
        return ""
    widths = max_src_column_width, max_name_column_width, max_shapes_column_width
    columns = _columns(events, profile_memory, with_flops, widths, time_unit)
    rule = GAP.join("-" * column.width for column in columns) + GAP
    double = "=" * (len(rule) - len(GAP))
    lines = [] if header is None else [double, header]
    if top_level_events_only:
        lines += [double, "This report only display top-level ops statistics"]
    titles = GAP.join(column.cell(column.title) for column in columns) + GAP
    lines += [rule, titles, rule]
    shown = [e for e in events if not (top_level_events_only and e.cpu_parent is not None)]
    for event in shown if row_limit < 0 else shown[:row_limit]:
        lines.append(GAP.join(column.cell(column.shown(event)) for column in columns) + GAP)
        lines += _rest_of_stack(columns, event)
    total = sum(event.self_cpu_time_total for event in events)
    lines += [rule, f"Self CPU time total: {duration(total, time_unit)}"]
    on_device = sum(event.self_device_time_total for event in events)
    if on_device > 0:
        device = str(events[0].use_device).upper()
        lines.append(f"Self {device} time total: {duration(on_device, time_unit)}")
    return "\n".join(lines) + "\n"
