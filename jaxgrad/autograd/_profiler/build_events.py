"""Conversion of a recorder's records to the events that users see."""

from __future__ import annotations

import weakref

import jax

from ...core.aval import struct_of
from ...core.program import Program
from .events import BACKWARD, MEMORY, USER, FunctionEvent

_flops: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


STEP = "ProfilerStep*"


def events_of(recorder, profile) -> list[FunctionEvent]:
    """The events of a recorder that has stopped, sorted by their start."""
    recorder.close()
    notes = sorted(recorder.events, key=lambda note: (note.begun, -note.ended))
    events = [_event(number, note, recorder, profile) for number, note in enumerate(notes, 1)]
    _place_backward(notes, events)
    return _with_freed(events, recorder, profile)


def _place_backward(notes, events):
    """Give the run of a node the stack and the source line of the operator that recorded the node.

    Kernels of the node get them too; what a user's `backward` calls keeps its own.
    """
    sources, around = {}, {}
    for note, event in zip(notes, events, strict=True):
        runs = around.setdefault(note.thread, [])
        while runs and runs[-1][0].ended < note.ended:
            runs.pop()
        source = sources.get(note.sequence)
        if note.call.scope == BACKWARD:
            runs.append((note, event))
            if source is not None:
                event.fwd_thread = source.thread
                event.stack, event.place = source.stack, source.place
        elif runs and _place(runs[-1][0]) == _place(note):
            event.stack, event.place = runs[-1][1].stack, runs[-1][1].place
        if note.call.scope != BACKWARD and note.sequence >= 0:
            sources.setdefault(note.sequence, event)


def _event(number, note, recorder, profile) -> FunctionEvent:
    call, on_cpu = note.call, note.device in (None, "cpu")
    event = FunctionEvent(
        id=number,
        # the steps of torch.profiler count as one name
        name=STEP if call.name.startswith(STEP[:-1] + "#") else call.name,
        thread=note.thread,
        start_us=_microseconds(note.begun, recorder),
        end_us=_microseconds(note.ended, recorder),
        overload_name="",
        fwd_thread=0,
        input_shapes=note.shapes or [],
        input_dtypes=note.dtypes or [],
        structured_input_shapes=note.shapes or [],
        concrete_inputs=[] if call.note is None else [call.note],
        kwinputs={},
        stack=_stack(note, recorder),
        scope=call.scope,
        use_device=profile.use_device,
        cpu_memory_usage=note.nbytes if on_cpu else 0,
        device_memory_usage=0 if on_cpu else note.nbytes,
        sequence_nr=note.sequence,
        flops=flops_of(call.program) if profile.with_flops else 0,
        trace_name=call.name,
        is_user_annotation=call.scope == USER,
        place=_place(note),
    )
    if profile.use_device and isinstance(call.program, Program):
        event.append_kernel(call.name, 0, event.cpu_time_total)
        event.is_legacy = True
    return event


def _microseconds(when, recorder):
    return (when - recorder.begun) / 1000


def _stack(note, recorder) -> list[str]:
    if not recorder.stack:
        return []
    return [f"{code.co_filename}({line}): {code.co_name}" for code, line in note.frames]


def _place(note):
    return (note.frames[0][0].co_filename, note.frames[0][1]) if note.frames else None


def _with_freed(events, recorder, profile) -> list[FunctionEvent]:
    """The events, with the memory freed during each event subtracted from it.

    Memory that was freed outside of all events gets an event of its own.
    """
    more, threads = [], {}
    for freed in recorder.freed:
        threads.setdefault(freed[2], []).append(freed)
    for thread, buffers in threads.items():
        inside = [event for event in events if event.thread == thread]
        for freed, around in _at(inside, buffers, recorder):
            if not around:
                number, time = len(events) + len(more) + 1, _microseconds(freed[0], recorder)
                around = [_freeing(number, thread, time, profile)]
                more += around
            for event in around:
                _take_off(event, *freed)
    return sorted(events + more, key=lambda e: (e.time_range.start, -e.time_range.end))


def _at(events, freed, recorder):
    """Yield each freed buffer with the events during which it was freed, in one sweep."""
    coming, around = iter(events), []
    event = next(coming, None)
    for buffer in sorted(freed):
        time = _microseconds(buffer[0], recorder)
        while event is not None and event.time_range.start <= time:
            around = [e for e in around if e.time_range.end >= event.time_range.start]
            around.append(event)
            event = next(coming, None)
        yield buffer, [e for e in around if e.time_range.end >= time]


def _freeing(number, thread, time, profile) -> FunctionEvent:
    event = FunctionEvent(number, MEMORY, thread, time, time, overload_name="")
    event.use_device, event.flops, event.input_shapes, event.stack = profile.use_device, 0, [], []
    return event


def _take_off(event, when, nbytes, thread, device):
    if device == "cpu":
        event.cpu_memory_usage -= nbytes
    else:
        event.device_memory_usage -= nbytes


def flops_of(program) -> int:
    """The floating point operations that XLA counts in a program; 0 if unknown."""
    if not isinstance(program, Program):
        return 0
    if program not in _flops:
        structs = list(map(struct_of, program.inputs))
        with jax.enable_x64(program.wide):
            cost = jax.jit(program.value).lower(*structs).cost_analysis()
        _flops[program] = int((cost or {}).get("flops", 0))
    return _flops[program]
