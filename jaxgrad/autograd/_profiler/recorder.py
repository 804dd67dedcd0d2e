"""Recorders of a profile: what runs in the contexts that entered them, with times.

JAX runs kernels asynchronously. While a profile records, each operator waits for its results, so
that its record has its own time; the whole takes longer than without a profile.
"""

from __future__ import annotations

import contextvars
import functools
import sys
import threading
import weakref
from time import perf_counter_ns

import jax

from ...core import elementary, executor, jax_internals
from ...core.program import Program, Reverse
from ...tape.node import AccumulateGrad
from .._engine.observers import Watch
from .events import BACKWARD, USER

_lock = threading.Lock()

# the sinks of this context: `Recorder`, `Annotator`
_sinks = contextvars.ContextVar("jaxgrad.profiles", default=())


def sinks() -> tuple:
    """The active sinks of this context."""
    all_sinks = _sinks.get()
    return tuple([sink for sink in all_sinks if sink.live]) if all_sinks else ()


def enter(sink):
    """Add a sink to this context, and to contexts copied from it, until `leave`."""
    with _lock:
        if not watch.count:
            jax.monitoring.register_event_duration_secs_listener(_compiling)
        watch.start()
    _sinks.set((*sinks(), sink))


def leave(sink):
    """Remove a sink."""
    sink.live = False
    _sinks.set(sinks())
    with _lock:
        watch.stop()
        if not watch.count:
            jax.monitoring.unregister_event_duration_listener(_compiling)


class ProfiledCall:
    """A call that is about to run.

    program, arrays: the program of a kernel or of a node, and its inputs.
    node: the node that runs, if any.
    recorded: whether the run of the node is itself recorded.
    note: the additional text of a label.
    """

    __slots__ = ("arrays", "name", "node", "note", "program", "recorded", "scope")

    def __init__(
        self, name, program=None, arrays=(), scope=0, node=None, recorded=False, note=None
    ):
        self.name, self.program, self.arrays, self.scope = name, program, arrays, scope
        self.node, self.recorded, self.note = node, recorded, note


class Record:
    """The measurements of a call."""

    __slots__ = (
        *("begun", "call", "device", "dtypes", "ended", "frames", "nbytes", "number", "sequence"),
        *("shapes", "thread"),
    )


class Recorder:
    """The sink of a profile: it keeps a record for each call.

    shapes: whether to record the shapes of inputs.
    stack: whether to record the calls that led to a record.
    memory: whether to record the bytes of results.
    """

    def __init__(self, shapes=False, stack=False, memory=False):
        self.shapes, self.stack, self.memory = shapes, stack, memory
        self.live = True
        self.events: list[Record] = []
        self.freed: list[tuple] = []  # (when, bytes, thread, device)
        self._threads: dict[int, int] = {}
        self._open: dict[int, list[Record]] = {}
        self._last: dict[int, Record] = {}
        self._arrays: dict[int, weakref.ref] = {}
        self.begun = perf_counter_ns()

    def thread(self) -> int:
        """A small number for the current thread."""
        return self._threads.setdefault(threading.get_ident(), len(self._threads) + 1)

    def begin(self, call: ProfiledCall) -> Record | None:
        """Begin the record of a call; returns None for the kernel of the node that runs."""
        thread = self.thread()
        around = self._open.setdefault(thread, [])
        if around and _is_run_of(around[-1].call, call):
            around[-1].call.program = call.program
            return None
        event = Record()
        event.call, event.thread, event.number = call, thread, len(self.events) + len(around)
        event.frames = _frames(None if self.stack else 1)
        is_numbered = call.node is not None and type(call.node) is not AccumulateGrad
        event.sequence = call.node.sequence if is_numbered else -1
        event.shapes, event.dtypes = _described(call) if self.shapes else (None, None)
        event.nbytes, event.device = 0, None
        around.append(event)
        event.begun = perf_counter_ns()
        return event

    def end(self, event: Record | None, arrays):
        """End a record; `arrays` are the results of the call."""
        time, thread = perf_counter_ns(), self.thread()
        around = self._open[thread]
        if self.memory and (event or around):
            self._account(event or around[-1], arrays)
        if event is None:
            return
        event.ended = time
        around.remove(event)
        event.call.arrays = event.call.node = None  # else the profile keeps them alive
        self.events.append(event)
        self._last[thread] = event

    def drop(self, event: Record | None):
        """Discard a record, because its call was part of a trace."""
        if event is not None:
            self._open[self.thread()].remove(event)

    def recorded(self, node):
        """Assign a new node to the last call, if that recorded it."""
        last = self._last.get(self.thread())
        if last is not None and last.sequence < 0 and _records(last.call, node):
            last.sequence = node.sequence

    def compiled(self, name, seconds):
        """Record that JAX has traced, lowered or compiled something in this thread."""
        time, thread = perf_counter_ns(), self.thread()
        around = self._open.get(thread)
        earliest = around[-1].begun if around else self.begun
        event = Record()
        event.call, event.thread, event.number = ProfiledCall(name), thread, len(self.events)
        event.begun, event.ended = max(time - int(seconds * 1e9), earliest), time
        event.frames = () if around else _frames(1)
        event.sequence, event.shapes, event.dtypes = -1, None, None
        event.nbytes, event.device = 0, None
        self.events.append(event)

    def _account(self, event, arrays):
        for array in arrays:
            if id(array) in self._arrays:
                continue
            event.nbytes += array.nbytes
            event.device = next(iter(array.devices())).platform
            lost = functools.partial(self._lost, id(array), array.nbytes, event.device)
            self._arrays[id(array)] = weakref.ref(array, lost)

    def _lost(self, key, nbytes, device, _):
        self._arrays.pop(key, None)
        if self.live:
            self.freed.append((perf_counter_ns(), nbytes, self.thread(), device))

    def close(self):
        """Forget the arrays and calls that records still refer to."""
        self._arrays.clear()
        self._last.clear()


def _is_run_of(around: ProfiledCall, call: ProfiledCall) -> bool:
    """Whether a call is the kernel of the node whose run is around it."""
    node = around.node
    return node is not None and node.reverse is call.program is not None and not around.recorded


def _records(call: ProfiledCall, node) -> bool:
    """Whether a call has recorded a node."""
    if node.reverse is None:
        return f"{call.name}Backward" == node.name()
    return node.reverse.program in (call.program, getattr(call.program, "compact", None))


def _described(call: ProfiledCall):
    """The shapes and dtypes of the inputs of a call; those of a number are `[]` and "Scalar"."""
    arrays = [getattr(value, "_array", value) for value in call.arrays]
    shapes = [list(getattr(array, "shape", ())) for array in arrays]
    return shapes, [str(getattr(array, "dtype", "Scalar")) for array in arrays]


_NOT_THE_USERS = frozenset(["jaxgrad", "jax", "contextlib", "functools", "threading"])


def _frames(count):
    """The innermost calls outside of jaxgrad, at most `count`, each as a code object and a line."""
    calls, frame = [], sys._getframe(2)
    while frame is not None and len(calls) != count:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _NOT_THE_USERS:
            calls.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(calls)


# ---- what the sinks see


class _Profiles(Watch):
    nearest = True

    def wanted(self):
        return bool(sinks()) and not executor.is_traced()

    def kernel(self, program, kernel, *arrays):
        active_sinks = sinks()
        if not active_sinks:
            return kernel(*arrays)
        inputs = arrays if isinstance(program, Program) else getattr(program, "inputs", ()) or ()
        call = ProfiledCall(name_of(program), program, inputs)
        return run(active_sinks, call, kernel, arrays)

    def node(self, node):
        for sink in sinks():
            sink.recorded(node)

    def visit(self, run_, proceed, node, gradients):
        needed = getattr(run_, "needed", None)
        if needed is not None and node.sequence not in needed:
            proceed(node, gradients)
            return
        name = node.name()
        if type(node) is AccumulateGrad:
            name = "torch::autograd::AccumulateGrad"
        call = ProfiledCall(name, None, gradients, BACKWARD, node, run_.tensors)
        run(sinks(), call, proceed, (node, gradients))


def run(active_sinks, call: ProfiledCall, function, args):
    """Call `function(*args)`, wait for its results, and show the call to sinks."""
    begun = [(sink, sink.begin(call)) for sink in active_sinks]
    results, arrays, traced = None, (), False
    try:
        results = function(*args)
        arrays = _arrays(results)
        traced = any(isinstance(array, jax.core.Tracer) for array in arrays)
        for array in () if traced else arrays:
            array.block_until_ready()
    finally:
        for sink, event in reversed(begun):
            sink.drop(event) if traced else sink.end(event, arrays)
    return results


def _arrays(results):
    """The JAX arrays in the results of a call."""
    if isinstance(results, jax.Array):
        return (results,)
    return [leaf for leaf in jax.tree.leaves(results) if isinstance(leaf, jax.Array)]


watch = _Profiles()

_PHASES = {
    jax_internals.TRACE_EVENT: "jax::trace",
    jax_internals.LOWER_EVENT: "jax::lower",
    jax_internals.COMPILE_EVENT: "jax::compile",
}


def _compiling(event, duration, **_):
    if event in _PHASES:
        for sink in sinks():
            sink.compiled(_PHASES[event], duration)


def name_of(program) -> str:
    """The name of a program in PyTorch's profiles."""
    if isinstance(program, Reverse):
        return program.name
    primitive = getattr(program, "primitive", None)
    if primitive is not None:
        return f"aten::{_PUBLIC.get(primitive.name, primitive.name)}"
    if isinstance(program, elementary.Added | elementary.Filled):
        return f"aten::{program.name}"
    if isinstance(program, executor.NamedKernel):
        return f"aten::{program.name}" if program.inputs is None else program.name
    if hasattr(program, "run_operators"):
        return f"jaxgrad.jit::{program.name}"
    return _OTHERS.get(program.name, program.name)


_PUBLIC = {"_select": "select", "_slice": "slice", "_fill_diagonal": "fill_diagonal_"}
_OTHERS = {"ToCopy": "aten::_to_copy", "CopySlices": "aten::copy_"}


class Annotator:
    """A sink that annotates JAX's own traces.

    shapes: whether to add the shapes of inputs.
    """

    def __init__(self, shapes=False):
        self.shapes, self.live = shapes, True

    def begin(self, call: ProfiledCall):
        words = [call.name]
        if call.node is not None:
            words.append(f"stashed seq = {call.node.sequence}")
        if self.shapes:
            words.append(f"sizes = {_described(call)[0]}")
        annotation = jax.profiler.TraceAnnotation(", ".join(words))
        annotation.__enter__()
        return annotation

    def end(self, annotation, arrays):
        annotation.__exit__(None, None, None)

    def drop(self, annotation):
        annotation.__exit__(None, None, None)

    def recorded(self, node):
        """Do nothing: the annotation of the call that recorded the node has ended."""

    def compiled(self, name, seconds):
        """Do nothing: JAX's traces show compilations."""


class Label:
    """A call named by the user, which lasts from `__enter__` to `__exit__`."""

    def __init__(self, name, note):
        self.call, self.begun = ProfiledCall(name, scope=USER, note=note), ()

    def __enter__(self):
        self.begun = [(sink, sink.begin(self.call)) for sink in sinks()]

    def __exit__(self, *exception):
        for sink, event in reversed(self.begun):
            sink.end(event, ())
