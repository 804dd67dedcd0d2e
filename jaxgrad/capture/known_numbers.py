"""The numbers of tensors that depend on no argument and no changing state: `bool(mask.any())` of a
constant, `x[mask]` with a mask from outside.

A tracer of JAX's has the equation that computes it, and so leads back to constants and inputs. If
all of these inputs are captured tensors, the equations are evaluated while the function is traced,
and a guard compares the numbers of these tensors at each call. Nothing is recorded until code asks.
"""

from __future__ import annotations

import sys
import weakref

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive, set_current_trace

from ..core import executor
from ..core.aval import has_numbers
from ..core.jax_internals import (
    current_trace,
    equation_behind,
    is_equation,
    lowered,
    operands_of,
    result_behind,
    results_of,
)
from ..core.jaxprs import is_pure
from ..state.holder import MOST_BYTES_COMPARED
from ..state.ownership import is_internal
from .graph_input import scopes_around

# An input found while tracing: an equation without operands, which becomes a parameter of the
# program afterwards. `number`: its position among the inputs.
input_p = Primitive("graph_input")
input_p.def_abstract_eval(lambda *, number, aval: aval)


class Numbers:
    """Numbers that code looked at while it was traced; `array()` gives them."""

    def __init__(self, array):
        self._array = array

    def array(self):
        return self._array


class PinnedNumbers(Numbers):
    """The numbers of a captured tensor, which a guard compares with those of each call. An array
    that is too large to compare must be the same one.
    """

    def __init__(self, array):
        self.reference, self.copy = weakref.ref(array), None
        if array.nbytes <= MOST_BYTES_COMPARED and array.is_fully_addressable:
            self.copy = np.array(array)

    def array(self):
        known = self.reference()
        if known is not None and not known.is_deleted():
            return known
        with jax.ensure_compile_time_eval(), jax.enable_x64(True):
            return jnp.asarray(self.copy)

    def holds(self, array) -> bool:
        """Whether an array of the same shape and dtype has these numbers."""
        if self.reference() is array:
            return True
        if self.copy is None or self.copy.tobytes() != np.asarray(array).tobytes():
            return False
        self.reference = weakref.ref(array)  # the next call may find it again
        return True


# ---- what code asks for, and what a replay repeats


def answer(scope, array, may_pin=True):
    """The numbers of an array, for code in a scope that looks at them. Of a tracer: the numbers
    that it stands for, or the tracer itself if they are not known.

    may_pin: whether they may come from captured tensors, whose numbers a guard compares from then
    on.
    """
    scopes = list(scopes_around(scope))
    replay = next(
        (open_scope for open_scope in scopes if open_scope.traced_answers is not None), None
    )
    lines, numbers = _lines(), None
    if replay is not None and not replay.is_in_passes:
        turn = len(replay.answers.get(lines, ()))
        known = replay.traced_answers.get(lines, ())
        numbers = known[turn] if turn < len(known) else None
    elif isinstance(array, jax.core.Tracer):
        numbers = Evaluation(scopes, may_pin).numbers(array)
    for open_scope in scopes:
        open_scope.answers.setdefault(lines, []).append(numbers)
    return numbers.array() if isinstance(array, jax.core.Tracer) and numbers is not None else array


def is_in_jax(scope) -> bool:
    """Whether JAX traces around a scope."""
    with set_current_trace(scope.around[0]):
        return executor.is_traced()


def _lines() -> tuple:
    """The lines that ask, from jaxgrad's to the user's. A replay asks in the same ones."""
    frame, lines = sys._getframe(2), []
    while frame is not None:
        lines.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back if is_internal(frame) else None
    return tuple(lines)


DEPENDS = "It depends on {}. "
WRITTEN = "a tensor of shape {} that the function writes to, so that it changes at each call"

CHANGING = (
    "{name}, compiled by jaxgrad.jit, looks at the numbers of a tensor of shape {shape} (read at "
    "{line}) and changes them, so it would have to be traced at every call: keep them in a Python "
    "number, or use jaxgrad.where in place of an if"
)
# how often numbers that a function looks at and changes may have changed from trace to trace, as
# those of a flag that is set once
MOST_CHANGES = 1


class ChangingNumbers:
    """The captured tensors whose numbers a function looks at and changes, each with the number of
    times that the numbers have changed from one trace to the next.
    """

    def __init__(self):
        self.known: list[tuple] = []

    def note(self, program):
        """Note the tensors of a program. Raises RuntimeError if their numbers change with every
        trace.
        """
        written, pairs = program.output.written, []
        for captured in program.captured:
            is_changed = captured.number in written or captured.is_of_place
            if captured.pinned is not None and is_changed:
                pairs.append((captured, self.changes(captured)))
        self.known = pairs
        for captured, changes in pairs:
            if changes > MOST_CHANGES:
                error = RuntimeError(
                    CHANGING.format(
                        name=program.name, shape=list(captured.aval.shape), line=captured.line
                    )
                )
                error.place = captured.line
                raise error

    def changes(self, captured) -> int:
        for known, count in self.known:
            if captured.has_same_source(known):
                return count + (not known.pinned.holds(captured.pinned.array()))
        return 0


# ---- evaluation


class Unknown(Exception):
    """A tracer depends on more than constants and captured tensors; the text says on what."""


class Evaluation:
    """The evaluation of a tracer, for code in `scopes`, the innermost first.

    `pinned`: the captured tensors that it reads; `varying`: the inputs among its operands that are
    Python numbers, which another trace would make constants.
    """

    def __init__(self, scopes, may_pin: bool):
        self.scopes, self.root, self.may_pin = scopes, scopes[-1], may_pin
        self.pinned, self.varying = [], set()

    def numbers(self, tracer) -> Numbers | None:
        """The numbers of a tracer; None where they are not known."""
        if current_trace() is not self.scopes[0].trace:
            return None  # JAX may keep the trace inside, for later calls that no guard sees
        try:
            equations = self.equations_behind(tracer)
        except Unknown as unknown:
            self.scopes[0].why_refused = str(unknown)
            return None
        if self.varying:
            self.scopes[0].record_inspected(self.varying)
            return None
        for captured in self.pinned:
            captured.pin()
        source = self.input_behind(tracer)
        if source is not None and source.captured in self.pinned:
            return source.captured.pinned
        with jax.ensure_compile_time_eval(), jax.enable_x64(True):
            for equation in equations:
                self.evaluate(equation)
            numbers = Numbers(jnp.asarray(self.value(tracer)))
        self.forget_large(equations)
        return numbers

    def equations_behind(self, tracer) -> list:
        """The equations that compute a tracer and are not evaluated yet, in their order."""
        equations, seen, waiting = {}, set(), [(tracer, False)]
        while waiting:
            entry, is_ready = waiting.pop()
            if is_ready:
                equations[id(entry)] = entry
                continue
            source = self.source_of(entry)
            if isinstance(source, jax.core.Tracer):
                waiting.append((source, False))
            elif self.is_wanted(source) and id(source) not in seen:
                seen.add(id(source))
                waiting += [(source, True), *[(other, False) for other in operands_of(source)]]
        return list(equations.values())

    def is_wanted(self, source) -> bool:
        """Whether a tracer stands for an equation that must be evaluated."""
        is_new = is_equation(source) and id(source) not in self.root.evaluated
        if is_new and not is_pure(source):
            raise Unknown(DEPENDS.format(f"what runs at each call ({source.primitive})"))
        return is_new

    def source_of(self, tracer):
        """What a tracer stands for: an array, another tracer, or the equation that computes it."""
        if not isinstance(tracer, jax.core.Tracer):
            return tracer
        pins = (scope.pinned_numbers.get(id(tracer)) for scope in self.scopes)
        pin = next((pin for pin in pins if pin is not None), None)
        if pin is not None:
            return pin.array()
        constant = lowered(tracer)
        if constant is not tracer:
            return constant
        equation = equation_behind(tracer)
        if equation is None:
            raise Unknown  # an argument of a loop's body, or a tracer of another kind
        return self.input_value(tracer) if equation.primitive is input_p else equation

    def input_behind(self, tracer):
        """The input that a tracer is; None where it is none."""
        equation = equation_behind(tracer)
        if equation is None or equation.primitive is not input_p:
            return None
        number = equation.params["number"]
        for scope in self.scopes:
            if number < len(scope.tracers) and scope.tracers[number] is tracer:
                return scope.inputs[number]
        return None

    def input_value(self, tracer):
        """The array of an input that is a captured tensor."""
        source = self.input_behind(tracer)
        if source is not None and source.is_number:
            self.varying.add(source)
            return None
        captured = None if source is None else source.captured
        array = None if captured is None else captured.snapshot.array
        is_traced = isinstance(array, jax.core.Tracer)
        if array is None or not (is_traced or (captured.is_outside and has_numbers(array))):
            is_meta = array is not None and not is_traced and captured.is_outside
            known = "a tensor on the device meta" if is_meta else None
            description = known or getattr(source, "description", None)
            raise Unknown("" if description is None else DEPENDS.format(description))
        if not is_traced:
            self.require_pin(captured)
        return array

    def require_pin(self, captured):
        """Note that the numbers of a captured tensor are read. Raises Unknown where no guard may
        compare them, and where the function has written to it, so that they change at each call.
        """
        is_known = captured.pinned is not None
        if not is_known and (not self.may_pin or is_in_jax(self.root)):
            raise Unknown  # where JAX traces, a program has no guards
        for scope in self.scopes:
            if scope.captured.get(id(captured.tensor)) is captured and scope.write_count(captured):
                raise Unknown(DEPENDS.format(WRITTEN.format(list(captured.aval.shape))))
        self.pinned.append(captured)

    def value(self, tracer):
        """The array that a tracer stands for, whose equations are evaluated."""
        source = self.source_of(tracer)
        if isinstance(source, jax.core.Tracer):
            return self.value(source)
        if not is_equation(source):
            return source
        equation, results = self.root.evaluated[id(source)]
        return result_behind(tracer, equation, results)

    def evaluate(self, equation):
        """Evaluate an equation, and keep the results while the function is traced."""
        operands = [*map(self.value, operands_of(equation))]
        if equation.primitive is jax.lax.slice_p and isinstance(operands[0].dtype, np.dtype):
            # a loop over elements would compile a kernel for each of them
            results = [np.asarray(operands[0])[bounds_of(equation)]]
        else:
            results = results_of(equation, operands)
        self.root.evaluated[id(equation)] = equation, results

    def forget_large(self, equations):
        """Free results of equations that need much memory; they are computed again if needed."""
        for equation in equations:
            results = self.root.evaluated[id(equation)][1]
            if sum(result.nbytes for result in results) > MOST_BYTES_COMPARED:
                del self.root.evaluated[id(equation)]


def bounds_of(equation) -> tuple[slice, ...]:
    """The bounds of a `lax.slice`."""
    starts, limits = equation.params["start_indices"], equation.params["limit_indices"]
    strides = equation.params["strides"] or (None,) * len(starts)
    return tuple(map(slice, starts, limits, strides))
