"""Anomaly mode: its settings, its search for NaN and Inf, and its messages."""

from __future__ import annotations

import contextvars
import functools
import linecache
import re
import sys
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...core.aval import has_numbers
from ...core.pending import value_of
from ...core.program import Program, Reverse
from ...tape.mode import current_pass, is_grad_enabled
from ...tape.node import FREED, AccumulateGrad
from .._engine.observers import Watch
from . import anomaly_origins
from .anomaly_origins import Origin

TRACEBACK, PARENT = "traceback_", "parent_"  # PyTorch's keys in a node's metadata


class AnomalySettings(NamedTuple):
    """Whether anomaly mode is on, and what it searches for."""

    enabled: bool = False
    check_nan: bool = True
    check_inf: bool = False
    check_forward: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The values that count as anomalies: "nan", "inf", both or none."""
        return ("nan",) * self.check_nan + ("inf",) * self.check_inf


class AnomalyScope:
    """Settings and where they apply: in all threads, or in a `with` block.

    owner: the context manager of the block.
    outer: the scope of the block around it.
    live: whether the block has not ended.
    """

    def __init__(self, owner=None, outer=None):
        self.owner, self.outer, self.live = owner, outer, True
        self.settings = AnomalySettings()

    def set(self, wanted: AnomalySettings):
        before, self.settings = self.settings, wanted
        if wanted.enabled and not before.enabled:
            anomalies.start()
        elif before.enabled and not wanted.enabled:
            anomalies.stop()


everywhere = AnomalyScope()
_here = contextvars.ContextVar("jaxgrad.anomaly_mode", default=None)


def current_scope() -> AnomalyScope:
    """The scope whose settings apply in this context."""
    scope = _here.get()
    while scope is not None and not scope.live:
        scope = scope.outer
    return everywhere if scope is None else scope


def settings() -> AnomalySettings:
    """The settings that apply in this context."""
    return current_scope().settings


def enter(owner, wanted: AnomalySettings):
    """Apply settings in this context until `leave(owner)`."""
    scope = AnomalyScope(owner, _here.get())
    scope.set(wanted)
    _here.set(scope)
    owner.__dict__.setdefault("entered", []).append(scope)


def leave(owner):
    """End the settings that `owner` entered last."""
    scope = _here.get()
    while scope is not None and not (scope.owner is owner and scope.live):
        scope = scope.outer
    # A generator may be closed in another context than the one in which it entered.
    scope = owner.entered[-1] if scope is None else scope
    owner.entered.remove(scope)
    scope.set(AnomalySettings())
    scope.live = False
    current = current_scope()
    _here.set(None if current is everywhere else current)


class Visit(NamedTuple):
    """A node that runs now, the gradients that arrived at it, and the arrays that it had saved.

    texts: by kind, the origin of the first anomaly that the user's code computed meanwhile.
    """

    node: Any
    gradients: list
    saved: Any
    texts: dict[str, str]


_visit = contextvars.ContextVar("jaxgrad.visited_node", default=None)


class _Anomalies(Watch):
    def wanted(self):
        return settings().enabled

    def kernel(self, program, kernel, *arrays):
        held = settings()
        if not (held.enabled and held.kinds):
            return kernel(*arrays)
        if hasattr(program, "run_operators"):
            return _compiled(program, kernel, arrays, held)
        results = kernel(*arrays)
        if isinstance(program, Program) and not isinstance(program, Reverse):
            _look(program, arrays, (results,) if program.single else results, held)
        return results

    def node(self, node):
        if not self.wanted():
            return
        anomaly_origins.recorded(node)
        lines, visit = lines_of_caller(), _visit.get()
        # the hooks of a leaf may raise, and its node has no call of its own
        leaves = [leaf for leaf, _ in node.edges if isinstance(leaf, AccumulateGrad)]
        for holder in (node, *[leaf for leaf in leaves if not _noted(leaf, TRACEBACK)]):
            holder.metadata[TRACEBACK] = lines
            if visit is not None:
                holder.metadata[PARENT] = visit.node

    def visit(self, run, proceed, node, gradients):
        before = _visit.get()
        _visit.set(Visit(node, gradients, _saved(node), {}))
        try:
            proceed(node, gradients)
        except Exception as error:
            _report(node, error)
            raise
        finally:
            _visit.set(before)

    def results(self, run, node, results):
        kinds = settings().kinds
        if not kinds:
            return
        supply = iter([results] if len(node.edges) == 1 else results)
        for position, (target, _) in enumerate(node.next_functions):
            if target is None:
                continue
            gradient = next(supply)
            if run.is_to_all or run.will_run(target):
                _refuse(kinds, gradient, position, node)

    def sum(self, node, first, second, total):
        for kind in settings().kinds:
            if _holds(total, kind) and not _holds(first, kind) and not _holds(second, kind):
                # what a leaf has noted is the first of its uses
                place = "" if isinstance(node, AccumulateGrad) else _recorded(node)
                raise RuntimeError(
                    f"The sum of gradients that go to '{node.name()}' returned {kind} values, "
                    f"although neither term contains any, as inf - inf does.{place}"
                )


anomalies = _Anomalies()


def _saved(node):
    """The arrays that a node has saved; empty for the node of a Function."""
    try:
        saved = node.saved if node.reverse is not None else ()
    except (AssertionError, RuntimeError):  # overwritten: the node raises the error itself
        return ()
    return () if saved is FREED else saved


# ---- the search


def _holds(value, kind) -> bool:
    """Whether an array, a tensor or a number contains a NaN, or an Inf; False where there are no
    numbers.
    """
    array = value_of(getattr(value, "_array", value))
    if not has_numbers(array):
        return False
    if isinstance(array, int | float | complex):
        return bool(_NUMPY[kind](array))
    if array is None or not jnp.issubdtype(array.dtype, jnp.inexact):
        return False
    if _is_at_hand(array):
        return bool(_NUMPY[kind](np.asarray(array)).any())
    with jax.enable_x64(True):
        return bool(_anywhere(kind)(array))


def _any_holds(values, kind) -> bool:
    return any(_holds(value, kind) for value in values)


def _is_at_hand(array) -> bool:
    """Whether numpy can read an array without a copy, which is five times as fast."""
    return array.is_fully_addressable and next(iter(array.devices())).platform == "cpu"


_NUMPY = {"nan": np.isnan, "inf": np.isinf}


@functools.cache
def _anywhere(kind):
    test = {"nan": jnp.isnan, "inf": jnp.isinf}[kind]
    return jax.jit(lambda array: test(array).any())


def _look(program, inputs, results, held):
    """Note which operator made the first anomaly of each result.

    Raises RuntimeError with `check_forward` for an operator whose inputs have none.
    """
    visit, origins = _visit.get(), {}
    # what a backward pass records, as with create_graph, is a forward pass for the next one
    is_forward = current_pass.get() is None or is_grad_enabled()
    for kind in held.kinds:
        positions = [i for i, result in enumerate(results) if _holds(result, kind)]
        if not positions:
            continue
        is_new = not _any_holds(inputs, kind)
        origin = _origin_here(program, kind) if is_new else anomaly_origins.of(inputs, kind)
        if is_new and is_forward and held.check_forward:
            raise RuntimeError(
                f"Function '{origin.operator}' returned {kind} values in its {positions[0]}th "
                f"output, and no input contains any. It was called at {origin.place}."
            )
        if visit is not None and kind not in visit.texts:
            where = f"While it ran, the first {kind}" if is_new else _FORWARD.format(kind)
            visit.texts[kind] = origin.sentence(where) if origin else ""
        if is_forward and origin:
            origins[kind] = origin
            for i in positions:
                anomaly_origins.keep(results[i], origin)
    anomaly_origins.computed(program, origins)


_FORWARD = "The first {} of the forward pass"


def _origin_here(program, kind) -> Origin:
    return Origin(kind, _operator(program), _place(lines_of_caller()))


def _operator(program) -> str:
    """The name of an operator, as users call it."""
    primitive = getattr(program, "primitive", None)
    return program.name if primitive is None else primitive.name.lstrip("_")


def _refuse(kinds, gradient, position, node):
    for kind in kinds:
        if _holds(gradient, kind):
            raise RuntimeError(
                f"Function '{node.name()}' returned {kind} values in its {position}th output."
                f"{_recorded(node)} {_cause(node, kind)}{_origin(node, kind)}"
            )


def _recorded(node) -> str:
    lines = _noted(node, TRACEBACK)
    place = _place(lines) if lines else _noted(node, "place")
    return f" It belongs to the call at {place}." if place else ""


def _cause(node, kind) -> str:
    """A sentence that says whether gradients, saved arrays or the node itself caused an anomaly."""
    visit = _visit.get()
    for word in dict.fromkeys([kind, "inf"]):
        arrived, saved = (_any_holds(vs, word) for vs in (visit.gradients, visit.saved))
        if arrived or saved:
            what = " and ".join(["what had arrived"] * arrived + ["what it had saved"] * saved)
            return f"W{what[1:]} held {word}."
    hook = " or one of its hooks" * bool(node.extras and node.extras.post_hooks)
    maker = "its backward" if node.reverse is None else "its formula"
    seen = "What had arrived" if node.reverse is None else "What had arrived and what it had saved"
    how = {"nan": "0 * inf or 0 / 0", "inf": "1 / 0"}[kind]
    return f"{seen} held neither nan nor inf: {maker}{hook} made it, for example by {how}."


def _origin(node, kind) -> str:
    """A sentence that names the operator which the anomaly comes from; empty if none is known."""
    visit = _visit.get()
    saved = anomaly_origins.of(visit.saved, kind)
    if saved is None and visit.texts.get(kind):
        return visit.texts[kind]
    origin = saved or anomaly_origins.of_node(node, kind)
    return origin.sentence(_FORWARD.format(kind)) if origin else ""


def _compiled(step, kernel, arrays, held):
    """Run a compiled function; if its results have an anomaly, run it operator by operator."""
    kept = step.copy_donated(arrays)
    results = kernel(*arrays)
    kinds = [kind for kind in held.kinds if _any_holds(results, kind)]
    if not kinds:
        return results
    text = f"{step.name}, compiled by jaxgrad.jit, returned {kinds[0]} values"
    try:
        with anomaly_origins.collected() as origins:
            again = step.run_operators(kept)
    except Exception as error:
        error.add_note(f"{text}, and was run again, operator by operator, to find this.")
        raise
    for kind in kinds:
        _share(kind, results, again, [origin for origin in origins if origin.kind == kind])
    shown = [kind for kind in kinds if _any_holds(results[: len(again)], kind)]
    if shown and not any(_any_holds(again, kind) for kind in shown):
        _warn(
            f"{text}, and run again, operator by operator, it did not. A Python value that it "
            "reads may have changed since it was compiled"
        )
    return results


def _share(kind, results, again, origins):
    """Give the results of a compiled function the origins of those of its run by operators."""
    for number, result in enumerate(results):
        if not _holds(result, kind):
            continue
        origin = anomaly_origins.of(again[number : number + 1], kind)
        # that run does not give what only the node saves: one operator in question must be it
        if number >= len(again) and len(origins) == 1:
            (origin,) = origins
        if origin is not None:
            anomaly_origins.keep(result, origin)


# ---- messages


def lines_of_caller() -> list[str]:
    """The stack of the code that called jaxgrad, outermost call first, as PyTorch formats it."""
    lines, frame = [], sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in ("jaxgrad", "jax"):
            code, number = frame.f_code, frame.f_lineno
            source = linecache.getline(code.co_filename, number, frame.f_globals).strip()
            shown = f"    {source}\n" if source else ""
            lines.append(f'  File "{code.co_filename}", line {number}, in {code.co_name}\n{shown}')
        frame = frame.f_back
    return lines[::-1]


_LINE = re.compile(r'  File "(.*)", line (\d+), in .*\n(?:    (.*)\n)?')


def _place(lines) -> str:
    """The innermost line of a stack, for a message."""
    match = _LINE.fullmatch(lines[-1]) if lines else None
    if match is None:
        return "an unknown place"
    file, number, source = match.groups()
    return f"{file}:{number}" + (f", `{source}`" if source else "")


def _noted(node, name):
    extras = node.extras
    return None if extras is None else (extras.metadata or {}).get(name)


def _report(node, error):
    """Warn that a node has failed, with the stacks of the calls that recorded it."""
    text, led = f"Error detected in {node.name()}. ", "caused the error"
    unknown = " Enable detect anomaly during forward pass for more information."
    while node is not None:
        lines = _noted(node, TRACEBACK)
        if lines:
            text += f"Traceback of forward call that {led}:\n" + "".join(lines)
        else:
            text += f"No forward pass information available.{unknown}"
        try:
            _warn(text)
        except UserWarning:  # warnings are errors here, and must not take the place of the error
            error.add_note(text)
            print(text, file=sys.stderr)
        node, unknown = _noted(node, PARENT), ""
        if node is not None:
            text = f"\n\nPrevious calculation was induced by {node.name()}. "
            led = "induced the previous calculation"


def _warn(message):
    """Warn, at the line that called jaxgrad."""
    place = _LINE.fullmatch((lines_of_caller() or [""])[-1])
    file, number = (place[1], int(place[2])) if place else (__file__, 1)
    warnings.warn_explicit(message, UserWarning, file, number)
