"""Values that a function draws from outside at each call: random numbers of Python and NumPy, the
time, elements of iterators.

While a function is traced, such a call is an *event*: it is made, and noted (`DrawnTrace`). A
number that it gives is an input of the program. A test of such a number (`if random.random() < p`)
is a *check*. At each later call the guard `DrawnGuard` makes the events again, in their order, and
the program serves if every check has the same result as in the trace. If one differs, the
`EventLog` of the call keeps the events up to there: the next program, a new trace or the uncompiled
function takes them from the log, so that nothing is drawn twice.
"""

from __future__ import annotations

import contextlib
import copy
import operator

import jax
import numpy as np

from ..capture.graph_input import ArgumentInput, GraphInput, NumberInput
from ..capture.places import PlaceSource
from ..state.guards import Guard
from ..state.holder import Place
from ..tape import mode, pytree
from ..tape.drawn_array import DrawnArray
from ..tape.symbolic_number import Varying, fits
from ..tape.tensor import Tensor, held, restore_state, state_of
from .drawn_steps import (
    TAKING,
    Check,
    Derived,
    Event,
    Plan,
    form_of,
    is_array,
    known_value,
    parts_in,
    released,
)
from .event_log import EventLog

READS = (
    "an iterator or a queue that a function compiled by jaxgrad.jit reads needs a tensor that the "
    "function has written to before: take the element outside, and pass it in"
)
WRITES = (
    "an iterator or a queue that a function compiled by jaxgrad.jit reads writes to a tensor that "
    "the function reads too: take the element outside, and pass it in"
)


class DrawnInput(GraphInput):
    """A number that an event has given."""

    is_read = is_number = True
    description = "what Python draws"

    def __init__(self, guard: DrawnGuard, slot: int):
        self.guard, self.slot, self.key = guard, slot, ("drawn", slot)

    def array(self, leaves):
        return self.guard.slots[self.slot]


class DrawnGuard(Guard):
    """The guard with the events and checks of a program. Checking it makes the events.

    `steps`: events and checks; `slots`: the results of the events in the last check; `values`: the
    numbers of inputs at that call, for computations from them; `why`: the step whose result
    differed; `answers`: the results that code got in the trace, in order: of events, and of checks
    or their errors; `replayed`: by slot the tensors of a replay; `before`: the guards that are
    checked before anything is drawn, if drawn tensors are among the captured ones, with None for
    the drawn ones.
    """

    __slots__ = ("answers", "before", "log", "replayed", "slots", "steps", "values", "why")

    is_performed = True

    def __init__(self, log: EventLog):
        self.log, self.steps, self.answers = log, [], []
        self.slots, self.why, self.before, self.replayed = [], None, (), {}
        self.values = InputValues(())

    @property
    def looks(self) -> bool:
        """Whether the program serves only some values of its draws."""
        events = [step.forms for step in self.steps if isinstance(step, Event)]
        is_compared = any(type(form) is tuple for forms in events for form in forms)
        return is_compared or any(isinstance(step, Check) for step in self.steps)

    def check(self, leaves, tensors):
        log, self.why = self.log, None
        known: list = []
        for guard in self.before:
            if guard is None:
                known.append(None)
            elif not guard.check(leaves, known):
                return False
        log.position, self.slots = 0, []
        self.values = InputValues(leaves)
        for step in self.steps:
            if not step.perform(self, log):
                self.why = step
                return False
        return True

    def reason(self, leaves, tensors):
        if self.why is None:
            return self.reason_before(leaves)
        if isinstance(self.why, Check):
            return f"a drawn number was looked at ({self.why.function.__name__}), and is another"
        name = self.why.name if isinstance(self.why, Event) else "NumPy"
        return f"{name} gave something else"

    def reason_before(self, leaves) -> str:
        """Why nothing was drawn; empty where something was."""
        known: list = []
        for guard in self.before:
            if guard is None:
                known.append(None)
            elif not guard.check(leaves, known):
                return guard.reason(leaves, known)
        return ""


class DrawnSource(PlaceSource):
    """A tensor of a class among what an event gives."""

    def __init__(self, guard: DrawnGuard, slot: int, kind: type):
        self.guard, self.slot, self.kind = guard, slot, kind

    def find(self, leaves, tensors):
        slots = self.guard.slots
        tensor = slots[self.slot] if self.slot < len(slots) else None
        return tensor if type(tensor) is self.kind else None

    def is_same(self, other):
        is_drawn = isinstance(other, DrawnSource)
        return is_drawn and other.guard is self.guard and other.slot == self.slot

    def put(self, tensor):
        """Use a tensor in its place in a replay."""
        self.guard.replayed[self.slot] = tensor


class DrawnOnce(Guard):
    """The last guard of a program that draws and serves one call: its draws belong to this call."""

    __slots__ = ("log",)
    is_performed, looks = True, False

    def __init__(self, log: EventLog):
        self.log = log

    def check(self, leaves, tensors):
        self.log.clear()
        return True

    def reason(self, leaves, tensors):
        return ""


class InputValues(dict):
    """The values of inputs at a call, by input, read when they are needed."""

    __slots__ = ("leaves",)

    def __init__(self, leaves):
        super().__init__()
        self.leaves = leaves

    def __missing__(self, source):
        self[source] = value = source.array(self.leaves)
        return value


def is_repeatable(source) -> bool:
    """Whether an input may be read twice in a call: it is an argument, or what a place holds."""
    if isinstance(source, NumberInput):
        return isinstance(getattr(source.read, "__self__", None), Place)
    return isinstance(source, ArgumentInput | DrawnInput)


# ---- while a function runs


class DrawnRun:
    """The events of a run of the uncompiled function, taken from the log or added to it."""

    def __init__(self, log: EventLog):
        self.log, self.opaque = log, None
        log.position = 0

    def event(self, owner, name, run, args, kwargs):
        with self.outside():
            return self.log.perform((id(owner), name), lambda: run(owner, *args, **kwargs))

    @contextlib.contextmanager
    def outside(self):
        """What runs in the block is no part of the function."""
        token = mode.drawn_run.set(None)
        try:
            yield
        finally:
            mode.drawn_run.reset(token)

    def reading(self):
        """What runs in the block runs at each call."""
        return self.outside()

    def refuse(self, why: str):
        """Note that the function reads what no event repeats."""

    def outcome(self, function, operands):
        """The result of a look at symbolic numbers; here none of them were drawn."""
        return NotImplemented

    def array_of(self, convert, data, *options):
        """An array of what was drawn: here nothing is symbolic."""
        return None

    def computes(self, operands) -> bool:
        """Whether computations with these values are noted."""
        return False

    @contextlib.contextmanager
    def open(self):
        token = mode.drawn_run.set(self)
        try:
            yield self
        finally:
            mode.drawn_run.reset(token)


class SymbolicRun(DrawnRun):
    """A run in which draws may be symbolic."""

    def array_of(self, convert, data, *options):
        """`convert(data, *options)` as an input of the program; None where nothing in the data was
        drawn.
        """
        if not is_drawn(parts_in(data)):
            return None
        return self.input_of(self.derived(convert, (data, *options), {}))

    def computes(self, operands):
        return is_drawn(parts_in(operands))


class DrawnTrace(SymbolicRun):
    """The events of a function that is traced in a scope.

    `guard`: collects the events; `is_symbolic`: whether numbers become inputs; `tensors`: by id the
    tensors among the elements of iterators, and where each call finds others; `opaque`: why the
    program cannot be used again, None if it can; `is_once`: whether another trace can be.
    """

    def __init__(self, scope, cache):
        super().__init__(cache.log)
        self.cache, log, is_symbolic = cache, cache.log, cache.has_symbolic_draws
        self.scope, self.guard, self.is_symbolic = scope, DrawnGuard(log), is_symbolic
        self.tensors: dict[int, tuple] = {}
        self.is_once = False

    @contextlib.contextmanager
    def outside(self):
        with super().outside(), self.scope.unobserved(), self.scope.outer_trace():
            yield

    @contextlib.contextmanager
    def handles(self, name):
        """The code of an iterator gets the captured tensors as they are outside."""
        captured = self.scope.captured.values() if name in TAKING else ()
        captured = [capture for capture in captured if held(capture.tensor) is capture.tracer]
        inside = [state_of(capture.tensor) for capture in captured]
        for capture in captured:
            restore_state(capture.tensor, capture.snapshot.state)
        try:
            yield
            if any(held(capture.tensor) is not capture.snapshot.array for capture in captured):
                raise RuntimeError(WRITES)
        except jax.errors.UnexpectedTracerError:
            raise RuntimeError(READS) from None
        finally:
            for capture, state in zip(captured, inside, strict=True):
                restore_state(capture.tensor, state)

    def refuse(self, why):
        self.opaque = self.opaque or why

    def event(self, owner, name, run, args, kwargs):
        event = Event(owner, name, run, Plan(args, kwargs))
        known_args, known_kwargs = event.plan.known()
        if any(not is_constant(leaf) for leaf in event.plan.leaves):
            self.refuse(f"{name} depends on values of the trace")
        self.guard.steps.append(event)
        try:
            with self.outside(), self.handles(name):
                key = id(owner), name
                value = self.log.perform(key, lambda: run(owner, *known_args, **known_kwargs))
        except Exception as error:
            event.error = type(error)
            self.guard.answers.append((None, error))
            raise
        return self.answer(event, value)

    def answer(self, event, value):
        """The value that code gets for the result of an event."""
        leaves = [value]
        if event.name in TAKING and isinstance(value, tuple | list | dict):
            leaves, event.structure = pytree.flatten(value)
        event.first = len(self.guard.slots)
        self.guard.slots += leaves
        drawn = [self.answer_leaf(event, n, leaf) for n, leaf in enumerate(leaves, event.first)]
        self.guard.answers.append((event, None))
        return drawn[0] if event.structure is None else jax.tree.unflatten(event.structure, drawn)

    def answer_leaf(self, event, slot, value):
        kind = type(value)
        if kind in (int, float) and self.is_symbolic and fits(value, kind):
            event.forms.append(kind)
            source = DrawnInput(self.guard, slot)
            self.cache.has_drawn = True
            return Varying.of_input(self.scope.add_input(value, source), source, value)
        if isinstance(value, Tensor):
            event.forms.append(Tensor)
            self.tensors[id(value)] = value, DrawnSource(self.guard, slot, kind)
            return value
        if isinstance(value, np.ndarray | np.generic) and self.is_symbolic:
            event.forms.append(form_of(value))
            self.cache.has_drawn = True
            return DrawnArray(self, slot, value)
        # the code may change it
        event.forms.append((copy.copy(value) if isinstance(value, _CHANGEABLE) else value,))
        return value

    def derived(self, function, args, kwargs):
        """What NumPy makes of what was drawn."""
        plan = Plan(args, kwargs)
        if any(not is_constant(leaf) for leaf in plan.leaves):
            self.refuse("it computes by NumPy with values of the trace")
        known_args, known_kwargs = plan.known()
        value = function(*known_args, **known_kwargs)
        step = Derived(function, plan)
        leaves, step.structure = jax.tree.flatten(value, is_leaf=is_array)
        first = len(self.guard.slots)
        self.guard.slots += leaves
        self.guard.steps.append(step)
        results = [self.answer_leaf(step, n, leaf) for n, leaf in enumerate(leaves, first)]
        self.guard.answers.append(((step, first), None))
        return jax.tree.unflatten(step.structure, results)

    def input_of(self, array: DrawnArray):
        """An array as an input of the program."""
        source = DrawnInput(self.guard, array._slot)
        source.is_number = False
        return self.scope.add_input(array._value, source)

    def computed(self, array: DrawnArray):
        """How a call finds an array among its inputs."""
        source = DrawnInput(self.guard, array._slot)
        self.scope.add_input(array._value, source)
        return operator.itemgetter(source)

    def compute_of(self, array: DrawnArray):
        """How a call finds an array among what it has drawn."""
        guard, slot = self.guard, array._slot
        return lambda values: guard.slots[slot]

    def outcome(self, function, operands):
        """The result of a look at numbers that depend on draws; NotImplemented if they depend on
        other inputs, whose numbers are not known.
        """
        numbers = [operand for operand in operands if type(operand) is Varying]
        origins = origins_of(operands)
        if not is_drawn(operands):
            return NotImplemented
        if not all(map(is_repeatable, origins)) or any(number.value is None for number in numbers):
            return NotImplemented
        result = function(*map(known_value, operands))
        self.guard.steps.append(Check(function, [*map(released, operands)], result))
        self.guard.answers.append((None, result))
        return result

    def close(self):
        """Let go of the tracers, once all is known."""
        for step in self.guard.steps:
            if isinstance(step, Event | Derived):
                step.plan.release()
        for _, error in self.guard.answers:
            if isinstance(error, Exception):
                error.with_traceback(None)  # whose frames hold tensors


_CHANGEABLE = (np.ndarray, list)


def is_constant(leaf) -> bool:
    """Whether an argument of an event is the same at each call, or is computed again."""
    if type(leaf) is Varying:
        return leaf.compute is not None and all(map(is_repeatable, leaf.origins))
    return not isinstance(leaf, Tensor | jax.Array)


class DrawnReplay(SymbolicRun):
    """The events of a function that is replayed: code gets the results of the trace."""

    def __init__(self, scope, guard: DrawnGuard):
        self.scope, self.opaque, self.guard = scope, None, guard
        self.answers = iter(guard.answers)

    def event(self, owner, name, run, args, kwargs):
        event, error = next(self.answers)
        if error is not None:
            raise error
        leaves = [self.leaf(n, form) for n, form in enumerate(event.forms, event.first)]
        return leaves[0] if event.structure is None else jax.tree.unflatten(event.structure, leaves)

    def leaf(self, slot, form):
        if form is Tensor:
            return self.guard.replayed[slot]
        if type(form) is tuple and len(form) > 1:
            return DrawnArray(self, slot, self.guard.slots[slot])
        if type(form) is tuple:
            return copy.copy(form[0]) if isinstance(form[0], _CHANGEABLE) else form[0]
        source = DrawnInput(self.guard, slot)
        return Varying.of_input(self.scope.input_arrays[source.key], source)

    def outcome(self, function, operands):
        return next(self.answers)[1] if is_drawn(operands) else NotImplemented

    def derived(self, function, args, kwargs):
        Plan(args, kwargs)  # which looks at what the trace has looked at
        (step, first), _ = next(self.answers)
        leaves = [self.leaf(n, form) for n, form in enumerate(step.forms, first)]
        return jax.tree.unflatten(step.structure, leaves)

    def input_of(self, array):
        return self.scope.input_arrays["drawn", array._slot]

    def computed(self, array):
        return None


def is_drawn(operands) -> bool:
    """Whether one of the operands depends on a draw."""
    is_array = any(type(operand) is DrawnArray for operand in operands)
    return is_array or any(isinstance(origin, DrawnInput) for origin in origins_of(operands))


def origins_of(operands) -> frozenset:
    """The inputs that operands depend on."""
    return frozenset().union(*[operand.origins for operand in operands if type(operand) is Varying])
