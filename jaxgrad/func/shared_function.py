"""Mapped functions that are written anew at each call, and share their programs.

`vmap(lambda x: x @ w)(batch)` in a loop finds the program of the first call by the key of the
function (capture/opened_function.py), as it finds that of an earlier call by the guards of `jit`.
The tensors that the function holds are the first arguments of the program.
"""

from __future__ import annotations

import contextvars
import copy
import itertools
import types

import jax

from ..capture.captured import HeldSource
from ..capture.graph_input import NumberInput
from ..capture.guards import PLAIN
from ..capture.jit import CompiledFunction
from ..capture.opened_function import CannotBeOpenedError, OpenedFunction, Rebuilder
from ..capture.reachable import StateReach
from ..capture.side_effects import TensorEffect
from ..core.bounded_cache import ENTRY, BoundedCache, Clock, Weight
from ..tape.object_walk import global_names
from ..tape.pytree import is_tensor
from .batched_program import ARRAYS, BatchedProgram
from .mapped_function import BatchedFunction

# code that shows something or keeps a record runs at each call, and so does code that looks at
# functions or frames as objects
_RUNS_EACH_TIME = frozenset(
    [
        "print", "pprint", "input", "breakpoint", "write", "warn", "debug", "info", "warning",
        "error", "critical", "exception", "exec", "eval", "cell_contents", "__closure__",
        "__code__", "__defaults__", "__kwdefaults__", "__globals__", "_getframe", "currentframe",
    ]
)  # fmt: skip

WEIGHT = Weight(1, ENTRY.bytes)

_functions = BoundedCache(Clock("programs"), lambda function: WEIGHT)

# the call that is going on in this context
_call = contextvars.ContextVar("jaxgrad.shared_call")


class Call:
    """A call of a mapped function: the function taken apart, and how it is mapped unshared."""

    def __init__(self, opened: OpenedFunction, unshared):
        self.opened, self.unshared = opened, unshared


def mapped(function, dims, out_dims, randomness, unshared, args, kwargs):
    """The results of a mapped function.

    dims, out_dims, randomness: as for BatchedFunction; unshared: gives the function with programs
    of its own.
    """
    try:
        opened = OpenedFunction(function, dims, out_dims, randomness)
    except CannotBeOpenedError:
        return unshared()(*args, **kwargs)
    found = _functions.get(opened.key) or _functions.find(opened.key)
    if found is None:
        name = getattr(function, "__name__", repr(type(function)))
        made = SharedFunction(opened, name, dims, copy.deepcopy(out_dims), randomness)
        found = _functions.keep(opened.key, made)
        _functions.clock.count(WEIGHT)
    if found.is_refused:
        return unshared()(*args, **kwargs)
    token = _call.set(Call(opened, unshared))
    try:
        return found(*opened.tensors, *args, **kwargs)
    finally:
        _call.reset(token)


class SharedFunction(BatchedFunction):
    """The programs of all mapped functions of one key.

    Its first arguments are the tensors of the function. `is_refused`: whether such functions share
    no programs: what they do, such as a change of their own variables, would be lost.
    """

    def __init__(self, opened, name, dims, out_dims, randomness):
        self.count_of_tensors = len(opened.tensors)
        self.rebuilder = Rebuilder(opened.key, name)
        all_dims = (*[None] * self.count_of_tensors, *dims)
        super().__init__(self.call_rebuilt, name, all_dims, out_dims, randomness)
        self.rename(name)
        self.is_refused = False

    __call__ = CompiledFunction.__call__  # never a part of a trace

    def call_rebuilt(self, *args, **kwargs):
        """A call in a replay, when the function that was traced may be gone."""
        tensors, given = args[: self.count_of_tensors], args[self.count_of_tensors :]
        return self.rebuilder.build(tensors)(*given, **kwargs)

    def traced_function(self):
        return _call.get().opened.function

    def observed_function(self):
        # without tensors, which are those of the replay: the function changes none of its parts
        return self.rebuilder.build([None] * self.count_of_tensors)

    def uncompiled(self, args, kwargs):
        return _call.get().unshared()(*args[self.count_of_tensors :], **kwargs)

    def new_program(self, leaves, structure, varying):
        return SharedProgram(self, leaves, structure, _call.get().opened)

    def may_freeze(self, reads, program, leaves, structure):
        may_serve = program.may_serve and super().may_freeze(reads, program, leaves, structure)
        self.is_refused |= not may_serve
        return may_serve

    def count_traces(self, program, had_program, leaves, structure):
        # what differs at each call makes it slower to look for a program
        self.traces_in_a_row = self.traces_in_a_row + 1 if had_program else 0
        self.is_refused |= self.traces_in_a_row >= self.most_in_a_row


class SharedProgram(BatchedProgram):
    """A program of a shared function. `may_serve`: whether it may serve other calls."""

    def __init__(self, shared, leaves, structure, opened):
        self.opened = opened
        super().__init__(shared, leaves, structure)
        self.weak_objects = [*self.weak_objects, *opened.others]

    def call_traced(self, args, kwargs):
        return self.function(*args[len(self.opened.tensors) :], **kwargs)

    def source_of(self, position):
        is_held = position < len(self.opened.tensors)
        return HeldSource(position) if is_held else super().source_of(position)

    def own_parts(self):
        return self.opened.own

    def roots(self):
        """From where the function reaches what it does not hold itself."""
        opened = self.opened
        named = [
            [each.__globals__[name] for name in global_names(each)] for each in opened.functions
        ]
        return [*self.leaves, *itertools.chain(*named), *[each() for each in opened.others]]

    def record_guards(self, tensors):
        self.may_serve = not (self.leaves_objects() or self.reaches_own())
        observation = self.observation
        super().record_guards(tensors)
        self.may_serve &= not (observation.skipped or observation.names & _RUNS_EACH_TIME)
        self.opened = None

    def leaves_objects(self) -> bool:
        """Whether the function changes Python objects, among which may be its own variables, or
        returns an object that it has made, which may hold some; or reads numbers by a function of
        its own.
        """
        constants = [value for kind, value in self.output.results if kind not in ARRAYS]
        return (
            any(not isinstance(each, TensorEffect) for each in self.output.effects)
            or any(isinstance(each, NumberInput) for each in self.other_inputs)
            or not all(map(_is_plain, constants))
        )

    def reaches_own(self) -> bool:
        """Whether the function reaches something that it holds in another way too: in another
        function it would be two objects.
        """
        own = self.opened.changing
        reach = StateReach(self.observation.attributes_read)
        for value in reach.walk(*self.roots()):
            cells = value.__closure__ or () if isinstance(value, types.FunctionType) else ()
            if id(value) in own or any(id(cell) in own for cell in cells):
                return True
        return len(reach.seen) >= reach.most


def _is_plain(value) -> bool:
    """Whether a result is the same for all functions of one key."""
    leaves = value.leaves if isinstance(value, Constants) else [value]
    return all(type(each) in PLAIN for each in leaves)


class Constants:
    """The leaves of a pytree, without the tensors among them."""

    def __init__(self, leaves, structure):
        self.structure = structure
        self.leaves = [None if is_tensor(each) else each for each in leaves]

    def with_tensors(self, tensors):
        supply = iter(tensors)
        leaves = [next(supply) if each is None else each for each in self.leaves]
        return jax.tree.unflatten(self.structure, leaves)
