"""Runs of a function during which draws become events of its program.

The states of generators and iterators before and after the run show draws that bypass the stand-ins
(draws/stand_ins.py). A program with such a draw serves one call.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import queue
import random
import threading
import time
import types
from collections.abc import Iterator

import numpy as np

from ..capture.guards import TensorGuard
from ..capture.observation import TENSORS
from ..capture.places import CapturedAttributes, DerivedNumbers
from ..state.code import python_function
from ..state.guards import AttributeValue, ContentGuard, ObjectRead, StateGuard
from ..state.snapshot import Snapshots
from ..state.walk import StateWalk
from ..tape import mode
from .drawn import DrawnOnce, DrawnReplay, DrawnRun, DrawnSource, DrawnTrace
from .drawn_steps import TAKING
from .event_log import EventLog
from .frozen import StateOf
from .python_reads import GENERATORS, NUMPYS, PYTHONS, replaced, replacements
from .stand_ins import is_output, put_stand_ins


class Movements:
    """The states of generators and iterators, which show whether anything but events has moved
    them.
    """

    def __init__(self):
        self.objects: dict[int, object] = {}
        self.states: dict[int, object] = {}
        replacements.take_in_modules()  # a run begins
        for generator in (PYTHONS, NUMPYS):
            self.meet(generator)

    def meet(self, value):
        """Take in an object from before the trace."""
        if id(value) not in self.objects:
            self.objects[id(value)] = value
            self.note(value)

    def note(self, value):
        """Record the present state of an object as its expected state."""
        if id(value) in self.objects:
            self.states[id(value)] = state_of(value)

    def is_moved(self, value) -> bool:
        known = id(value) in self.objects
        return known and self.states[id(value)] != state_of(value)

    def generators(self) -> list[tuple]:
        """The states of the generators, and these."""
        known = [value for value in self.objects.values() if isinstance(value, GENERATORS)]
        seeded = [
            generator for generator in known if not isinstance(generator, random.SystemRandom)
        ]
        return [(StateOf(generator), generator) for generator in seeded]

    def is_known(self, value) -> bool:
        return id(value) in self.objects


def state_of(value):
    """The state of a generator, an iterator, a queue or a file, in a form that compares."""
    try:
        if isinstance(value, random.Random):
            return None if isinstance(value, random.SystemRandom) else value.getstate()
        if isinstance(value, np.random.Generator):
            return repr(value.bit_generator.state)
        if isinstance(value, np.random.RandomState):
            return repr([e.tobytes() if hasattr(e, "tobytes") else e for e in value.get_state()])
        if isinstance(value, types.GeneratorType):
            frame = value.gi_frame
            return None if frame is None else frame.f_lasti
        if isinstance(value, itertools.count):
            return repr(value)
        if isinstance(value, io.IOBase):
            return None if value.closed or is_output(value) else value.tell()
        if isinstance(value, queue.Queue | queue.SimpleQueue):
            return _Size(value.qsize())
        return value.__length_hint__()
    except Exception:  # an object without such a state
        return None


class _Size(int):
    """The size of a queue. A greater size counts as equal, since elements may have been added."""

    __hash__ = None

    def __ne__(self, other):
        return int(other) < int(self)


MOVING = (
    *GENERATORS,
    Iterator,
    io.IOBase,
    queue.Queue,
    queue.SimpleQueue,
    threading.Event,
    threading.Thread,
)


class Owners:
    """The objects that a run draws from: those from before it, and their expected states."""

    movements: Movements

    def meet(self, value):
        if isinstance(value, MOVING):
            self.movements.meet(value)

    def is_own(self, value) -> bool:
        """Whether the function has made an object, whose draws are the same at each call."""
        if value is time or value is os or isinstance(value, random.SystemRandom):
            return False
        return not self.movements.is_known(value)

    @contextlib.contextmanager
    def reading(self):
        moving = [*self.movements.objects.values()]
        self.refuse_moved(moving)
        token = mode.drawn_run.set(None)
        try:
            yield
        finally:
            mode.drawn_run.reset(token)
            for value in moving:
                self.movements.note(value)

    def event(self, owner, name, run, args, kwargs):
        # an iterator may draw from any generator
        moving = [*self.movements.objects.values()] if name in TAKING else [owner]
        self.refuse_moved(moving)
        try:
            return super().event(owner, name, run, args, kwargs)
        finally:
            for value in moving:
                self.movements.note(value)

    def refuse_moved(self, values):
        """Note which of these objects anything but an event has moved."""
        for value in filter(self.movements.is_moved, values):
            self.refuse(f"it reads from a {type(value).__name__} in a way that is not seen")

    def finish(self):
        """End the run."""
        self.refuse_moved([*self.movements.objects.values()])


class PythonTrace(Owners, DrawnTrace):
    """The events of a trace, and the objects that it may move."""

    def __init__(self, scope, cache):
        super().__init__(scope, cache)
        self.movements = Movements()


class PythonReplay(Owners, DrawnReplay):
    """The events of a replay."""

    def __init__(self, scope, guard):
        super().__init__(scope, guard)
        self.movements = Movements()

    def finish(self):
        """Nothing moves here."""


class Unrepeatable(BaseException):
    """A run of a function cannot be undone."""


class PythonRun(Owners, DrawnRun):
    """The events of a run of the uncompiled function.

    is_undone: whether the run is to be undone; then it raises Unrepeatable if it cannot be;
    `opaque`: how it draws past the log.
    """

    def __init__(self, log: EventLog, is_undone: bool):
        super().__init__(log)
        self.movements, self.is_undone = Movements(), is_undone

    def event(self, owner, name, run, args, kwargs):
        is_new = self.log.position == len(self.log.entries)
        # the code of a generator may change other state
        if self.is_undone and is_new and name == "next" and type(owner) not in _PLAIN:
            raise Unrepeatable
        return super().event(owner, name, run, args, kwargs)

    def refuse(self, why):
        if self.is_undone:
            raise Unrepeatable

    def finish(self):
        moved = any(map(self.movements.is_moved, self.movements.objects.values()))
        self.opaque = "it draws past the log" if moved else None


_PLAIN = (type(iter([])), type(iter(())), type(iter(range(0))), itertools.count)


def run_with_log(function, roots, log: EventLog, call, is_undone=False):
    """`call()`, a run of the uncompiled function, whose events the log knows or takes in.

    roots: from where the function reaches generators and iterators, each with a name; is_undone:
    see PythonRun; where a run draws past the log, generators and the log are as they were.
    """
    run, placed, before = PythonRun(log, is_undone), {}, ()

    def put(holder, target):
        placed.update(
            {(holder, name): stand_in for name, stand_in in put_stand_ins(holder, run).items()}
        )

    snapshots = Snapshots(TENSORS, put, run.meet)
    try:
        StateWalk(snapshots, python_function(function)).walk(*roots)
        before = run.movements.generators() if is_undone else ()
        with replaced(run), run.open():
            return call()
    finally:
        for (holder, name), stand_in in placed.items():
            if holder.value(name) is stand_in:
                holder.bind(holder.reference(), name, stand_in.original)
        run.finish()
        if is_undone and run.opaque and before:
            log.clear()
            for state, generator in before:
                state.restore(generator)


# ---- in a program


def drawn_in(scope, compiled) -> PythonTrace | None:
    """Collects the events of the trace of a compiled function, to which the scope belongs from now
    on; None if the function runs again at each call, or is a part of another trace.
    """
    scope.belong_to(compiled)
    if scope.parent is not None or not compiled.draws_anew:
        return None
    return PythonTrace(scope, compiled.cache)


def opaque_of(tracing) -> tuple:
    """Why no later call can repeat the draws of a trace, None if it can, and whether another trace
    can; before the guards are recorded.
    """
    drawn = tracing.drawn
    return (None, False) if drawn is None else (drawn.opaque, drawn.is_once)


def looks_at_draws(program) -> bool:
    """Whether a program serves only some values of the drawn numbers."""
    return any(guard.is_performed and guard.looks for guard in program.trace.guards)


@contextlib.contextmanager
def taking_in(drawn: PythonTrace | None):
    """Collect the draws inside of the block."""
    if drawn is None:
        yield
        return
    try:
        with replaced(drawn), drawn.open():
            yield
        drawn.finish()
    finally:
        drawn.scope = None  # which knows the observation, and that this


def guards_with_draws(drawn: PythonTrace | None, guards: list, derived: list) -> list:
    """The guards of a program, with the guard on its draws last: a call draws once all other guards
    hold.

    derived: the numbers that are computed from those of inputs.
    """
    derived = [DerivedNumbers(derived)] if derived else []
    if drawn is None or not drawn.guard.steps:
        return [*guards, *derived]
    guard, once = drawn.guard, DrawnOnce(drawn.log)
    drawn.close()
    if not drawn.tensors:
        return [*guards, guard, *derived, once]
    # a drawn tensor is one of the captured ones, which guards find first
    guard.before = [
        early_guard for early_guard in map(_before_draws, guards) if early_guard is not False
    ]
    return [guard, *guards, *derived, once]


def _before_draws(guard):
    """A guard that holds before anything is drawn; None in place of one that finds a drawn tensor,
    False if it needs all tensors.
    """
    if isinstance(guard, TensorGuard):
        return None if isinstance(guard.source, DrawnSource) else guard
    is_of_state = isinstance(guard, StateGuard | AttributeValue | ObjectRead | ContentGuard)
    return guard if is_of_state and type(guard) is not CapturedAttributes else False
