"""Functions that are written anew at each call, and share their programs.

`vmap(lambda x: x @ w)(batch)` in a loop finds the program of the first call by the key of the
function (func/opened_function.py), as it finds that of an earlier call by the guards of `jit`.
The tensors that the function holds are the first arguments of the program.
"""

from __future__ import annotations

import contextvars
import copy
import itertools
import types
from collections.abc import Callable
from typing import NamedTuple

import jax

from ..capture import RunsUncompiled
from ..capture.captured import HeldSource
from ..capture.graph_input import NumberInput
from ..capture.guards import ProgramCache
from ..capture.reachable import StateReach
from ..capture.side_effects import TensorEffect
from ..capture.tracing import Tracing
from ..compiled.jit import CompiledFunction
from ..core import deferred, executor
from ..core.bounded_cache import ENTRY, BoundedCache, Clock, Weight
from ..state.code import global_names
from ..state.objects import PLAIN
from ..tape import (
    dual_level,
    interception,
    mode,
    node_annotations,
    source_location,
    version_counter,
)
from ..tape.mode import transforms
from ..tape.pytree import flatten, is_tensor
from ..tape.tensor import Tensor
from .batched_program import ARRAYS
from .batched_tracing import BatchedTracing
from .mapped_function import BatchedFunction, is_in_trace
from .opened_function import CannotBeOpenedError, OpenedFunction, Rebuilder

# code that shows something or keeps a record runs at each call, and so does code that looks at
# functions or frames as objects
_RUNS_EACH_TIME = frozenset(
    [
        "print",
        "pprint",
        "input",
        "breakpoint",
        "write",
        "warn",
        "debug",
        "info",
        "warning",
        "error",
        "critical",
        "exception",
        "exec",
        "eval",
        "cell_contents",
        "__closure__",
        "__code__",
        "__defaults__",
        "__kwdefaults__",
        "__globals__",
        "_getframe",
        "currentframe",
    ]
)

# the kinds of results that are arrays or tensors of the call
TENSORS = (*ARRAYS, "captured")

# as many recorded backward passes as a function that is compiled as a whole may hold
MOST_PASSES = 8

WEIGHT = Weight(1, ENTRY.bytes)

# after so many calls a function is compiled as a whole
CALLS = 32

_functions = BoundedCache(Clock("programs"), lambda function: WEIGHT)

# the call that is going on in this context
_call = contextvars.ContextVar("jaxgrad.shared_call", default=None)


class Call(NamedTuple):
    """A call of a shared function: the function taken apart, and what runs it unshared."""

    opened: OpenedFunction
    unshared: Callable
    is_whole: bool = False


def mapped(function, dims, out_dims, randomness, unshared, args, kwargs):
    """The results of a mapped function.

    dims, out_dims, randomness: as for BatchedFunction; unshared: the function with programs of its
    own.
    """
    try:
        opened = OpenedFunction(function, dims, out_dims, randomness)
    except CannotBeOpenedError:
        return unshared(*args, **kwargs)
    shared = _functions.get(opened.key) or _functions.find(opened.key)
    if shared is None:
        shared_map = SharedMap(opened, dims, copy.deepcopy(out_dims), randomness)
        shared = _functions.keep(opened.key, shared_map)
        _functions.clock.count(WEIGHT)
    if shared.is_refused:
        return unshared(*args, **kwargs)
    return shared.run(Call(opened, unshared), args, kwargs)


def called(function, args):
    """The result of a function that the tape runs eagerly. Once functions of its key have been
    called often, it is compiled as a whole.

    Where many backward passes are recorded one after the other (`refuse_passes`), it is not.
    """
    leaves, _ = flatten(args)
    if not _may_be_compiled(leaves):
        return function(*args)
    calls = CALLS if deferred.REPEATS is None else deferred.REPEATS
    return _shared_call(function, args, calls, "called")


def compiled(function, args):
    """The result of a function that is compiled as a whole, with programs that later functions of
    its key share. Inside of a trace, and where it cannot be compiled, it is simply called.
    """
    if is_in_trace(flatten(args)[0]):
        return function(*args)
    return _shared_call(function, args, 0, "compiled")


def _shared_call(function, args, calls, way):
    """The result of a function, compiled as a whole after so many calls of functions of its key."""
    try:
        opened = OpenedFunction(function, way)
    except CannotBeOpenedError:
        return function(*args)
    shared = _functions.get(opened.key) or _functions.find(opened.key)
    if shared is None:
        shared = _functions.keep(opened.key, SharedCall(opened))
        _functions.clock.count(WEIGHT)
    shared.calls += 1
    if shared.is_refused or shared.calls <= calls:
        return function(*args)
    return shared.run(Call(opened, function, is_whole=True), args, {})


def _may_be_compiled(leaves) -> bool:
    is_seen = interception.is_general or interception.created is not None or _are_nodes_noted()
    is_nested = transforms.get() or dual_level.is_any_begun() or is_in_trace(leaves)
    return (
        deferred.mode == "deferred"
        and not (is_seen or executor.observers or is_nested)
        and all(
            not leaf.requires_grad if isinstance(leaf, Tensor) else type(leaf) in PLAIN
            for leaf in leaves
        )
    )


def _are_nodes_noted() -> bool:
    """Whether somebody observes or annotates new nodes."""
    is_noted = source_location.lines.get() or node_annotations.packing.get() is not None
    return bool(node_annotations.observers or is_noted or version_counter.strict.get())


def refuse_passes(count: int):
    """Raise RunsUncompiled where a function is compiled as a whole: recorded backward passes, one
    after the other, would make a large program.
    """
    call = _call.get()
    is_whole = call is not None and call.is_whole and mode.scope.get() is not None
    if is_whole and count > MOST_PASSES:
        raise RunsUncompiled("each row of the Jacobian is recorded")


class Shared:
    """The common part of functions of one key: a kind of compiled function whose first arguments
    are the tensors that the functions hold.

    `is_refused`: whether they share no programs: what they do, such as a change of their own
    variables, would be lost.
    """

    def __init__(self, opened, *settings):
        name = _name(opened.function)
        self.count_of_tensors = len(opened.tensors)
        self.rebuilder = Rebuilder(opened.key, name)
        super().__init__(self.call_rebuilt, *settings)
        self.rename(name)
        self.is_refused = False

    __call__ = CompiledFunction.__call__  # never a part of a trace
    draws_anew = False  # what draws runs at each call

    def run(self, call: Call, args, kwargs):
        token = _call.set(call)
        try:
            return self(*call.opened.tensors, *args, **kwargs)
        finally:
            _call.reset(token)

    def call_rebuilt(self, *args, **kwargs):
        """A call in a replay, when the function that was traced may be gone."""
        tensors, arguments = args[: self.count_of_tensors], args[self.count_of_tensors :]
        return self.rebuilder.build(tensors)(*arguments, **kwargs)

    def traced_function(self):
        return _call.get().opened.function

    def observed_function(self):
        # without tensors, which are those of the replay: the function changes none of its parts
        return self.rebuilder.build([None] * self.count_of_tensors)

    def uncompiled(self, args, kwargs):
        call = _call.get()
        token = _call.set(None)
        try:
            return call.unshared(*args[self.count_of_tensors :], **kwargs)
        finally:
            _call.reset(token)

    def may_freeze(self, reads, tracing, leaves, structure):
        # the user did not ask to compile
        may_serve = tracing.may_serve and not any(reads.messages(tracing))
        self.is_refused |= not may_serve
        return may_serve

    def count_traces(self, program, had_program, leaves, structure):
        # what differs at each call makes it slower to look for a program
        self.traces_in_a_row = self.traces_in_a_row + 1 if had_program else 0
        self.is_refused |= self.traces_in_a_row >= self.most_in_a_row or bool(program.trace.escaped)


class SharedMap(Shared, BatchedFunction):
    """The programs of all mapped functions of one key."""

    def __init__(self, opened, dims, out_dims, randomness):
        all_dims = (*[None] * len(opened.tensors), *dims)
        super().__init__(opened, _name(opened.function), all_dims, out_dims, randomness)

    def run_traced(self, leaves, structure, varying):
        return SharedBatchedTracing(self, leaves, structure)

    def may_freeze(self, reads, tracing, leaves, structure):
        self.is_refused |= bool(tracing.printed)
        return super().may_freeze(reads, tracing, leaves, structure) and not self.is_refused


class SharedCall(Shared, CompiledFunction):
    """The programs of all functions of one key that are compiled as a whole. `calls`: how many
    calls there were.
    """

    def __init__(self, opened):
        super().__init__(opened, (), ())
        self.cache = ProgramCache(self.__name__, static=None)
        self.calls = 0

    is_inside_uncompiled = BatchedFunction.is_inside_uncompiled
    stays_uncompiled = BatchedFunction.stays_uncompiled

    def run_traced(self, leaves, structure, varying):
        return SharedWholeTracing(self, leaves, structure)

    def traced(self, leaves, structure, had_program):
        try:
            program, tensors = super().traced(leaves, structure, had_program)
        except Exception:  # what cannot be traced, such as a look at numbers, runs uncompiled
            program = tensors = None
        self.is_refused |= program is None
        return program, tensors


class SharedTracing:
    """A trace of a shared function. `may_serve`: whether its program may serve other calls."""

    sees_containers = False

    def __init__(self, shared, leaves, structure):
        self.opened, self.may_serve = _call.get().opened, True
        super().__init__(shared, leaves, structure)
        self.arguments.weak_objects += self.opened.others

    def call(self, args, kwargs):
        return self.function(*args[len(self.opened.tensors) :], **kwargs)

    def source_of(self, position):
        is_held = position < len(self.opened.tensors)
        return HeldSource(position) if is_held else super().source_of(position)

    def own_parts(self):
        return self.opened.part_numbers

    def roots(self):
        """The objects through which the function reaches state that it does not hold itself."""
        opened = self.opened
        named = [
            [function.__globals__[name] for name in global_names(function)]
            for function in opened.functions
        ]
        others = [reference() for reference in opened.others]
        return [*self.arguments.leaves, *itertools.chain(*named), *others]

    def guards(self, tensors, reached):
        self.may_serve = not (self.leaves_objects() or self.reaches_own_parts())
        return super().guards(tensors, reached)

    def state_guards(self, guards):
        self.may_serve &= not (guards.skipped or guards.names & _RUNS_EACH_TIME)
        return guards.all()

    def leaves_objects(self) -> bool:
        """Whether the function changes Python objects, among which may be its own variables, or
        returns an object that it has made, which may hold some; or reads numbers by a function of
        its own.
        """
        return (
            any(not isinstance(effect, TensorEffect) for effect in self.output.effects)
            or any(isinstance(source, NumberInput) for source in self.other_inputs)
            or not all(itertools.starmap(_is_of_each_call, self.output.results))
        )

    def reaches_own_parts(self) -> bool:
        """Whether the function reaches something that it holds in another way too: in another
        function it would be two objects.
        """
        parts = self.opened.changing
        reach = StateReach(self.observation.attributes_read)
        for value in reach.walk(*self.roots()):
            cells = value.__closure__ or () if isinstance(value, types.FunctionType) else ()
            if id(value) in parts or any(id(cell) in parts for cell in cells):
                return True
        return len(reach.seen) >= reach.most


class SharedBatchedTracing(SharedTracing, BatchedTracing):
    """A trace of a shared mapped function."""


class SharedWholeTracing(SharedTracing, Tracing):
    """A trace of a shared function that is compiled as a whole."""

    def leaves_objects(self):
        return bool(self.output.effects) or super().leaves_objects()


def _name(function) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _is_of_each_call(kind, value) -> bool:
    """Whether a result is that of each call, or the same for all functions of one key."""
    leaves = value.leaves if isinstance(value, Constants) else [value]
    return kind in TENSORS or (kind == "constant" and all(type(leaf) in PLAIN for leaf in leaves))


class Constants:
    """The leaves of a pytree, without the tensors among them."""

    def __init__(self, leaves, structure):
        self.structure = structure
        self.leaves = [None if is_tensor(leaf) else leaf for leaf in leaves]

    def with_tensors(self, tensors):
        supply = iter(tensors)
        leaves = [next(supply) if leaf is None else leaf for leaf in self.leaves]
        return jax.tree.unflatten(self.structure, leaves)
