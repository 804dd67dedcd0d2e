"""Verification: a call of a compiled function runs the function uncompiled too, and compares.

The uncompiled run comes first, on the real objects. An `Outcome` records its effects, and all that
the run changed is put back (compiled/saved_state.py). Then the compiled call runs, and its outcome
must be the same: results, tensors, gradients, draws of generators, and Python objects.
"""

from __future__ import annotations

import contextvars
import functools
import math
import os
import types
import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..capture.input_names import leaf_names
from ..capture.pullback import TracedPass
from ..core import dtypes
from ..core.aval import has_numbers
from ..draws.frozen import FrozenReads, put_back_after_errors
from ..draws.python_runs import Unrepeatable, run_with_log
from ..state.code import UNSET
from ..state.guards import StateGuard
from ..state.holder import ArrayHolder, parts_of
from ..state.objects import PLAIN
from ..tape import handle_lock, pytree
from ..tape.node import Node
from ..tape.tensor import (
    Tensor,
    current,
    edge_of,
    grad_of,
    held,
    is_tracked,
    recorded_node,
    version_of,
    wrap,
)
from . import one_shot
from .saved_state import SavedState, is_closed

# how many reasons there are for functions to run uncompiled: comparisons that are going on, and the
# stance "force_eager"; and whether one is going on in this context
running, within = 0, contextvars.ContextVar("jaxgrad.within_uncompiled", default=False)


def add_reasons(count: int):
    """Count more reasons for functions to run uncompiled, or fewer."""
    global running
    running += count


VARIABLE = "JAXGRAD_JIT_VERIFY"

# how many differences and constants a message lists
MOST_LISTED = 8

# by how many times a value may differ from what rounding makes of it
MOST_MOVES = 10

# attributes in which modules, optimizers and schedulers note that they are traced
INTERNAL = frozenset(["_changes", "_is_traced", "_opt_called", "_stepping"])


def interval(verify) -> int:
    """The number of calls from one verified call to the next; 0 for none. None asks the
    environment. Raises ValueError for anything but None and an int of at least 0.
    """
    what, value = "verify", verify
    if verify is None:
        what, value = VARIABLE, os.environ.get(VARIABLE, "0")
        value = int(value) if value.isdecimal() else value
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(
            f"{what}={value!r}: give the number of calls from one that is verified to the next, "
            "such as 1 for all; 0 verifies none"
        )
    return value


def verified(compiled, call, args, kwargs):
    """The result of `call(*args, **kwargs)`, a call of a compiled function. Raises RuntimeError
    where the uncompiled function does something else; then everything is as before the call.
    """
    # it would use up iterators
    one_shot.refuse_arguments(compiled.function, *pytree.flatten((args, kwargs)))
    # other threads see the state of before or of after both runs
    with handle_lock.changing():
        state = SavedState(compiled.function, args, kwargs)

        def outcome() -> Outcome:
            try:
                # in a context of its own, for modes that it sets and leaves
                context = contextvars.copy_context()
                return context.run(uncompiled, state, compiled, args, kwargs)
            finally:
                state.put_back()

        log, reads = compiled.cache.log, FrozenReads(compiled.function)
        log.clear()
        try:
            expected = outcome()
        except Unrepeatable:
            return call(*args, **kwargs)
        drawn = [*log.entries]
        with state.numbers.open(), put_back_after_errors(reads):
            result = call(*args, **kwargs)
        with put_back_after_errors(state), put_back_after_errors(reads):
            differences = expected.differences(Outcome(state, result))
            if differences:
                log.entries = drawn
                after = refuse_differences(
                    compiled, state, expected, differences, outcome, args, kwargs
                )
                log.clear()
                state.put_back(after)
            return result


def refuse_differences(compiled, state, expected, differences, outcome, args, kwargs):
    """Raise RuntimeError for the differences of a call that rounding does not explain; gives the
    state after the call, for `put_back`.
    """
    after = state.current()
    state.put_back()
    repeated = expected.differences(outcome())
    state.disturb()
    differences = beyond_rounding(differences, repeated, expected.differences(outcome()))
    if differences:
        text = message(compiled, differences, repeated, args, kwargs)
        raise RuntimeError(text) from expected.error
    return after


def beyond_rounding(differences, repeated, disturbed) -> list[Difference]:
    """The differences that rounding does not explain.

    repeated: the differences of another uncompiled run; disturbed: the differences of an uncompiled
    run from values that differ in their last bits. An optimizer may turn a gradient that is zero
    except for rounding into a step of full length: this run shows how far such a value moves.
    """
    moves = {difference.name: difference.size for difference in disturbed}
    unsteady = {difference.name for difference in repeated}
    return [
        difference
        for difference in differences
        if difference.name in unsteady
        or not difference.size <= MOST_MOVES * moves.get(difference.name, -1)
    ]


def uncompiled(state, compiled, args, kwargs) -> Outcome:
    """The outcome of a function, run uncompiled."""
    within.set(True)
    add_reasons(1)
    result = error = None
    try:
        # the compiled call gives the same warnings
        with state.recording(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                returned = run_with_log(*drawing_run(compiled, args, kwargs), is_undone=True)
                result = one_shot.refuse_result(compiled.__name__, returned)
            except Unrepeatable:
                raise
            except Exception as raised:
                error = raised
            return Outcome(state, result, error)
    finally:
        add_reasons(-1)


def drawing_run(compiled, args, kwargs) -> tuple:
    """The arguments of `run_with_log` for the uncompiled runs of a call, which all get the same
    values from generators and clocks.
    """
    function, log = compiled.function, compiled.cache.log
    roots = [("an argument", leaf) for leaf in pytree.flatten((args, kwargs))[0]]
    roots.append(("function", function))
    return function, roots, log, functools.partial(function, *args, **kwargs)


def message(compiled, differences, repeated, args, kwargs) -> str:
    lines = "".join(
        f"\n  {difference.name}: {difference.text}" for difference in differences[:MOST_LISTED]
    )
    more = (
        f"\n  and {len(differences) - MOST_LISTED} more" if len(differences) > MOST_LISTED else ""
    )
    known = ", ".join(constants(compiled, args, kwargs)[:MOST_LISTED])
    known = f"Its program was traced with {known}. " if known else ""
    if repeated:
        known += "Uncompiled it does not repeat itself, as if it read a clock or random numbers. "
    return (
        f"{compiled.__name__}, compiled by jaxgrad.jit, and the same function uncompiled differ:"
        f"{lines}{more}\n{known}A program runs no Python code, and what it was traced with beside "
        "tensors, variables and attributes is a constant of it: pass such a value as an argument, "
        "or read it by jaxgrad.tracing.number. All state is as before the call"
    )


def constants(compiled, args, kwargs) -> list[str]:
    """The Python values that a call's program was traced with, as far as guards know them."""
    program, _ = compiled.cache.find(*pytree.flatten((args, kwargs)))
    guards = [] if program is None else program.trace.guards
    named = [(getattr(guard, "name", None), getattr(guard, "value", None)) for guard in guards]
    for guard in guards:
        if isinstance(guard, StateGuard):
            named += [(guard.label(name), value) for name, value in guard.strong.items()]
    return list(
        dict.fromkeys(
            f"{name} = {value!r}"
            for name, value in named
            if isinstance(name, str) and isinstance(value, PLAIN) and value is not None
        )
    )


# ---- what a run did


class Difference(NamedTuple):
    """A difference between two runs: its name, its description, and for numbers its size."""

    name: str
    text: str
    size: float = math.inf


class TensorValue:
    """A tensor at the end of a run. `version`: only for a tensor from before the run, since writes
    to a new tensor are not counted in a program.
    """

    def __init__(self, tensor: Tensor, is_new: bool):
        self.array, self.shape = held(current(tensor)), tuple(tensor.shape)
        self.dtype, self.requires_grad = tensor.dtype, is_tracked(tensor)
        self.is_leaf = recorded_node(tensor) is None
        self.version = 0 if is_new else version_of(tensor)
        self.has_grad = grad_of(tensor) is not None


class Copied:
    """A container or an object that a run made, with its contents by the suffix of their path."""

    def __init__(self, kind: type, held: dict):
        self.kind, self.held = kind, held


class Outcome:
    """The results and effects of a run.

    `error`: the error that it raised; `results`: the leaves of its result, with their `structure`;
    `tensors`: the tensors of the state, by id; `contents`: the changes in Python objects, by the
    number of a holder and the name in it; `gradients`: by id the gradients of the state's tensors,
    from the results with a history, whose names are `roots`.
    """

    def __init__(self, state: SavedState, result, error=None):
        self.state, self.error = state, error
        leaves, self.structure = pytree.flatten(result)
        self.saved = {id(holder.reference()) for holder in state.all()}
        self.tensors = {
            key: TensorValue(tensor, is_new=False) for key, tensor in list(state.tensors.items())
        }
        self.results = list(map(self.shown, leaves))
        self.contents = {
            (number, key): self.shown(present.get(key, UNSET))
            for number, holder in enumerate(state.holders)
            for present in [holder.current()]
            for key in dict.fromkeys([*holder.before, *present])
            if present.get(key, UNSET) is not holder.before.get(key, UNSET)
            and not is_internal(holder, key)
        }
        self.roots, self.gradients = {}, {}
        if error is None:
            self.pull(leaves)

    def shown(self, value, seen=None):
        """A value in the form in which it is compared: later changes do not change it.

        seen: the ids of the objects that have been copied with it.
        """
        seen = set() if seen is None else seen
        if isinstance(value, Tensor):
            return value if id(value) in self.tensors else TensorValue(value, is_new=True)
        if isinstance(value, ArrayHolder.kinds):
            return ArrayHolder(value, "").before[None]
        if isinstance(value, OPAQUE) or is_closed(type(value)):
            return value
        if id(value) in seen:
            return Copied(type(value), {})  # it holds itself, or was copied already
        seen.add(id(value))
        parts = list(parts_of(list(value) if isinstance(value, FIXED) else value, ""))
        if not parts or id(value) in self.saved:
            return value
        holders = [kind(target, name) for target, name, kind in parts]
        held = {
            holder.suffix.format(name): part
            for holder in holders
            for name, part in holder.before.items()
            if not is_internal(holder, name)
        }
        return Copied(type(value), {key: self.shown(part, seen) for key, part in held.items()})

    def pull(self, leaves):
        """Compute the gradients of everything with a new history."""
        tensors = self.state.tensors
        # a gradient goes no further from where the function has used up the graph
        edges = {key: edge for key, edge in self.state.edges.items() if not edge[0].is_freed}
        named = [(f"result {number}", leaf) for number, leaf in enumerate(leaves)]
        named += [(key, tensor) for key, tensor in tensors.items()]
        for name, tensor in named:
            if isinstance(tensor, Tensor) and recorded_node(current(tensor)) is not None:
                edge = edge_of(tensor)
                if edge not in edges.values():
                    self.roots[name] = edge, wrap(ramp(held(tensor)))
        if not self.roots or not edges:
            return
        try:
            run = TracedPass(*zip(*self.roots.values(), strict=True), list(edges.values()))
        except RuntimeError:  # of a graph that the function has used up
            return
        run.before.restore()  # the .grad of results that retain it
        arrays = [None if gradient is None else gradient._array for gradient in run.gradients]
        self.gradients = dict(zip(edges, arrays, strict=True))

    # ---- the comparison

    def differences(self, compiled: Outcome) -> list[Difference]:
        """How the outcome of the compiled call differs from this one, of the uncompiled."""
        if self.error is not None or compiled.error is not None:
            one, other = [
                "nothing" if outcome.error is None else type(outcome.error).__name__
                for outcome in (compiled, self)
            ]
            return [] if one == other else [Difference("raised", COMPARED.format(one, other))]
        if self.structure != compiled.structure:
            text = COMPARED.format(compiled.structure, self.structure)
            return [Difference("result", text)]
        names, triples = leaf_names("result", self.structure), []
        triples += zip(names, compiled.results, self.results, strict=True)
        for key, value in self.tensors.items():
            triples.append((self.state.names[key], compiled.tensors[key], value))
        for key in dict.fromkeys([*self.contents, *compiled.contents]):
            holder, name = self.state.holders[key[0]], key[1]
            before = self.shown(holder.before.get(name, UNSET))
            pair = compiled.contents.get(key, before), self.contents.get(key, before)
            triples.append((holder.path(name), *pair))
        # a history that only one of them has is a difference already; without gradients, the one
        # pass met a graph that was used up, which the other's need not be
        if self.roots.keys() == compiled.roots.keys() and compiled.gradients:
            for key, value in self.gradients.items():
                name = f"the gradient of the results by {self.state.names[key]}"
                triples.append((name, compiled.gradients.get(key), value))
        differences = [
            difference for triple in triples for difference in self.compare(compiled, *triple)
        ]
        return list({entry.name: entry for entry in reversed(differences)}.values())[::-1]

    def compare(self, compiled, name, one, other):
        """Yield the differences of two values in the form of `shown`, `one` of the compiled one."""
        one = compiled.tensors.get(id(one), one) if isinstance(one, Tensor) else one
        other = self.tensors.get(id(other), other) if isinstance(other, Tensor) else other
        if type(one) is not type(other):
            yield Difference(name, COMPARED.format(described(one), described(other)))
        elif isinstance(one, Copied) and one.kind is other.kind:
            for key in dict.fromkeys([*one.held, *other.held]):
                pair = one.held.get(key, UNSET), other.held.get(key, UNSET)
                yield from self.compare(compiled, f"{name}{key}", *pair)
        elif one is not other:
            difference = value_difference(one, other)
            if difference is not None:
                yield Difference(name, *difference)


COMPARED = "{} compiled, {} uncompiled"

OPAQUE = (type, types.ModuleType, types.FunctionType, types.MethodType, Node, jax.Array)

FIXED = (tuple, frozenset)


def is_internal(holder, name) -> bool:
    """Whether an attribute is no state of the user's: one that jaxgrad keeps for speed."""
    slot = getattr(holder, "slots", {}).get(name)
    return name in INTERNAL or (slot and slot.__objclass__.__module__.startswith("jaxgrad."))


def ramp(array):
    """Cotangents of the shape and dtype of an array, all different."""
    if not has_numbers(array):
        return array
    numbers = np.linspace(1, 2, array.size).reshape(array.shape)
    with jax.enable_x64(True):
        return jnp.asarray(numbers, array.dtype)


# ---- single values


def described(value) -> str:
    if isinstance(value, TensorValue):
        return f"a tensor of shape {list(value.shape)}"
    if value is UNSET:
        return "absent"
    if isinstance(value, Copied):
        return f"a {value.kind.__name__}"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return repr(value) if isinstance(value, (*PLAIN, dtypes.dtype)) else f"a {type(value).__name__}"


def value_difference(one, other) -> tuple | None:
    """How two values of one type differ, the first that of the compiled call: in words, and where
    they are numbers by how much.
    """
    if isinstance(one, TensorValue):
        return tensor_difference(one, other)
    if isinstance(one, np.ndarray | jax.Array):
        return array_difference(one, other)
    if isinstance(one, float | complex):
        return array_difference(np.asarray(one), np.asarray(other))
    # objects of libraries that have no equality and show nothing
    if type(one).__eq__ is object.__eq__ and not isinstance(one, Copied | dtypes.dtype):
        return None
    return None if one == other else (COMPARED.format(described(one), described(other)),)


def tensor_difference(one, other) -> tuple | None:
    def of(name):
        values = getattr(one, name), getattr(other, name)
        return None if values[0] == values[1] else (f"{name} {COMPARED.format(*values)}",)

    for name in ("shape", "dtype", "requires_grad", "is_leaf", "has_grad"):
        if of(name):
            return of(name)
    by_value = None if one.array is other.array else array_difference(one.array, other.array)
    return by_value or of("version")


# By the bytes of a real number what the results of one computation may differ by, compiled as a
# whole and operator by operator: XLA reorders sums and contracts products.
TOLERANCES = {1: 0.3, 2: 2e-2, 4: 1e-4, 8: 1e-9}


def array_difference(one, other) -> tuple | None:
    """How two arrays differ by more than rounding, the first that of the compiled call."""
    if one.shape != other.shape or one.dtype != other.dtype:
        pair = [f"{array.dtype}{list(array.shape)}" for array in (one, other)]
        return (COMPARED.format(*pair),)
    if not (has_numbers(one) or has_numbers(other)):
        return None
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype.kind in "SUMmO":
        return None if (one == other).all() else (COMPARED.format(one, other),)
    if one.dtype.kind in "biu":
        return _listed(one, other, one != other)
    is_complex = one.dtype.kind == "c"
    tolerance = TOLERANCES[one.dtype.itemsize // (1 + is_complex)]
    wide = np.complex128 if is_complex else np.float64
    one, other = one.astype(wide), other.astype(wide)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(all="ignore"):
        sizes = np.abs(np.stack([one, other]))
        largest = np.max(sizes, where=np.isfinite(sizes), initial=0)
        # the hundredth part of the tolerance, absolute: where large terms cancel
        allowed = tolerance * max(largest, 0.01)
        return _listed(one, other, ~same & ~(np.abs(one - other) <= allowed))


def _listed(one, other, differ) -> tuple | None:
    if not differ.any():
        return None
    with np.errstate(all="ignore"):
        if one.dtype.kind in "bui":
            one, other = one.astype(np.longdouble), other.astype(np.longdouble)
        sizes = np.abs(one - other)
    sizes = np.where(differ, np.where(np.isnan(sizes), np.inf, sizes), -1)
    place = np.unravel_index(np.argmax(sizes), sizes.shape)
    at = f" at {list(map(int, place))}" if place else ""
    values = COMPARED.format(one[place], other[place])
    text = f"largest difference {sizes[place]:g}{at}: {values}; shape {list(one.shape)}"
    return text, float(sizes[place])
