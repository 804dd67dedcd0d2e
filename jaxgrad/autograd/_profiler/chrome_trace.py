"""Files of events for other programs: Chrome traces and flame graphs."""

from __future__ import annotations

import json
import os


def write_trace(path, events, base=0.0, metadata=None):
    """Write events in Chrome's trace format.

    It has a bar for each event, and an arrow from each operator to the run of the node that it
    recorded.
    base: the microseconds to add to their times.
    """
    process = os.getpid()
    records = [_name("process_name", process, 0, "jaxgrad")]
    for thread in sorted({event.thread for event in events}):
        records.append(_name("thread_name", process, thread, f"thread {thread}"))
    for event in events:
        if event.name != "[memory]":
            records.append(_bar(event, process, base))
    records += _arrows(events, process, base)
    document = {"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": records}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**document, **(metadata or {})}, file, default=str)


def _name(kind, process, thread, name):
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "ts": 0, "args": {"name": name}}


def _bar(event, process, base):
    args = {"External id": event.id}
    if event.sequence_nr >= 0:
        args["Sequence number"] = event.sequence_nr
        args["Fwd thread id"] = event.fwd_thread or 0
    more = {
        "Input Dims": event.input_shapes,
        "Input type": event.input_dtypes,
        "Concrete Inputs": event.concrete_inputs,
        "Call stack": ";".join(event.stack or ()),
        "Place": event.place and ":".join(map(str, event.place)),
        "Flops": event.flops,
    }
    args.update({name: value for name, value in more.items() if value})
    compiling = "jax" if event.name.startswith("jax::") else "cpu_op"
    return {
        "ph": "X",
        "cat": "user_annotation" if event.is_user_annotation else compiling,
        "name": event.trace_name or event.name,
        "pid": process,
        "tid": event.thread,
        "ts": base + event.time_range.start,
        "dur": event.time_range.elapsed_us(),
        "args": args,
    }


def _arrows(events, process, base):
    """Yield both ends of the arrow to each run of a node."""
    recorded = {}
    for event in events:
        if event.sequence_nr >= 0 and event.scope != 1:
            recorded.setdefault(event.sequence_nr, event)
    for number, event in enumerate([e for e in events if e.scope == 1], 1):
        source = recorded.get(event.sequence_nr)
        if source is None or source.time_range.start > event.time_range.start:
            continue
        shared = {"cat": "fwdbwd", "name": "fwdbwd", "id": number, "pid": process}
        for phase, end in (("s", source), ("f", event)):
            place = {"ph": phase, "tid": end.thread, "ts": base + end.time_range.start}
            yield {**shared, **place, **({"bp": "e"} if phase == "f" else {})}


_IN_NAMES = str.maketrans(" ;\t\n", "____")


def write_stacks(path, events, metric):
    """Write the stack of each event, outermost call first, and a metric of it in microseconds."""
    with open(path, "w", encoding="utf-8") as file:
        for event in events:
            value = int(getattr(event, metric))
            if event.stack and value > 0:
                calls = [entry.translate(_IN_NAMES) for entry in reversed(event.stack)]
                file.write(f"{';'.join(calls)} {value}\n")
