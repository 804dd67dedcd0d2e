"""Traces: the inputs, outputs, side effects and guards of a traced function. Its program is
compiled and replayed from them.
"""

from __future__ import annotations

import functools
import weakref
from typing import NamedTuple

import jax

from ..draws.python_runs import guards_with_draws
from ..state.guards import Guard
from ..state.merged_guards import merged_checks
from ..tape.tensor import Tensor
from .captured import CapturedTensor
from .graph_input import GraphInput, number_readers
from .guards import (
    DistinctTensors,
    NodeHooks,
    ReachedArgument,
    RepeatedArgument,
    key_of,
    read_guard,
)
from .joined_memory import is_viewed
from .observation import ObservationGuards, warn_of_skipped
from .outputs import OutputSpec
from .pullback import Pullback
from .reachable import reachable_tensors


class TracedArguments:
    """The arguments of the call that was traced, without tensors: a program outlives the call, and
    must not keep the memory of its arguments. Objects are held weakly.

    `structure`: of the arguments; `varying`: the positions of numbers that are inputs; `positions`:
    by the number of a captured tensor its positions among the arguments; `sees_containers`: whether
    calls change containers among them; `uses_containers`: whether this function changes or returns
    them.
    """

    def __init__(self, name: str, leaves, structure, varying):
        self.name, self.structure, self.varying = name, structure, varying
        self.sees_containers = self.uses_containers = False
        self.positions: dict[int, list[int]] = {}
        self.weak_leaves = list(map(_weakly, leaves))
        self.weak_objects = [leaf for leaf in self.weak_leaves if isinstance(leaf, weakref.ref)]

    @property
    def leaves(self) -> list:
        """The arguments; None in the place of tensors. Raises RuntimeError where an object among
        them is gone.
        """
        if self.has_expired():
            raise RuntimeError(
                f"{self.name}, compiled by jaxgrad.jit, runs again for a derivative, and an object "
                "among its arguments is gone: keep a reference to it, or to the result of the call"
            )
        return [leaf() if isinstance(leaf, weakref.ref) else leaf for leaf in self.weak_leaves]

    def has_expired(self) -> bool:
        """Whether an object among them is gone."""
        return any(reference() is None for reference in self.weak_objects)


def _weakly(leaf):
    """An argument as a trace keeps it: no tensor, an object without a value weakly."""
    if isinstance(leaf, Tensor | jax.Array):
        return None
    key = key_of(leaf)[1]
    reference = getattr(key, "reference", key)
    return reference if isinstance(reference, weakref.ref) else leaf


class Modes(NamedTuple):
    """The conditions under which a function was traced: the user's setting of JAX's 64-bit types;
    whether it is a part of another program, and whether that program is being traced and observes
    all state; the values of the lasting settings, such as the grad mode and autocast.
    """

    enable_x64: bool
    is_inner: bool
    is_inline: bool
    settings: list


class Trace:
    """The inputs, outputs and guards that tracing a function has shown. It never changes.

    `function`: the compiled function; `captured`: the captured tensors, whose arrays are the first
    inputs; `groups`: the joined memories among these; `other_inputs`: the inputs that follow;
    `output`: outputs and side effects; `pullback`: the passes from outputs with a history;
    `constants`: the arrays that are part of the program; `equations`: their number; `answers`: the
    numbers that the function looked at; `guards`: when the program serves again, and `checks` the
    same merged; `reached`: by the number of an argument that the function also reaches by itself a
    weak reference to it; `escaped`: a description of a tensor that the function leaves behind, or
    None.
    """

    __slots__ = (
        *("answers", "arguments", "captured", "checks", "constants", "equations", "escaped"),
        *("function", "groups", "guards", "modes"),
        *("other_inputs", "output", "pullback", "reached"),
    )

    def __init__(self, tracing, guards: list[Guard], reached):
        """tracing: the `Tracing` that has come to its end."""
        self.function, self.arguments, self.modes = tracing.jitted, tracing.arguments, tracing.modes
        self.captured: list[CapturedTensor] = tracing.captured
        self.groups = tracing.groups
        self.other_inputs: list[GraphInput] = tracing.other_inputs
        self.output: OutputSpec = tracing.output
        self.pullback: Pullback | None = tracing.pullback
        self.constants, self.answers = tracing.closed.consts, tracing.scope.answers
        self.equations, self.escaped = tracing.equations, tracing.escaped
        self.guards, self.checks, self.reached = guards, merged_checks(guards), reached

    @property
    def name(self) -> str:
        return self.arguments.name

    def has_expired(self) -> bool:
        """Whether an object that it needs is gone: a tensor, an argument, a hook, or an object that
        must be in its place.
        """
        parts = self.arguments, *self.captured, *self.guards
        return any(part.has_expired() for part in parts)


class TraceGuards:
    """The guards of a trace, in their order."""

    def reached_arguments(self, tensors) -> dict[int, weakref.ref]:
        """The arguments that the function also reaches by itself. Such a tensor was captured once,
        as the argument. With another argument the function would read two tensors, and the program
        one.
        """
        numbers = [c.number for c in self.captured if c.position is not None or is_viewed(c)]
        reached = [tensors[number] for number in numbers]
        reachable = reachable_tensors(self.roots(), reached, self.observation.attributes_read)
        pairs = zip(numbers, reached, strict=True)
        return {number: weakref.ref(tensor) for number, tensor in pairs if id(tensor) in reachable}

    def guards(self, tensors, reached) -> list[Guard]:
        """When the program serves again."""
        exchanged = self.exchanged(tensors)
        several = [pair for pair in self.arguments.positions.items() if len(pair[1]) > 1]
        unseen = number_readers(self.other_inputs)
        observed = ObservationGuards(self.observation, tensors, exchanged, unseen)
        guards = [
            # first, since each appends its tensor to `tensors`, which the guards after it read
            *self.captured,
            *self.distinct(tensors),
            *([] if self.output.separate is None else [self.output.separate]),
            *[RepeatedArgument(number, positions) for number, positions in several],
            *[ReachedArgument(number, tensors[number]) for number in reached],
            *[NodeHooks(node, ids) for node, ids in self.scope.outer.hook_ids.values()],
            *self.scope.objects.guards(functools.partial(read_guard, exchanged)),
            *self.observation.same_tensors(self.captured, tensors),
            *self.state_guards(observed),
            *self.containers.guards(self.output.effects),
        ]
        return guards_with_draws(self.drawn, guards, self.scope.derived)

    def state_guards(self, guards: ObservationGuards) -> list[Guard]:
        """The guards on Python objects, after a warning of what is too large to compare."""
        warn_of_skipped(guards.skipped)
        return guards.all()

    def distinct(self, tensors) -> list[DistinctTensors]:
        """The guard that the tensors are different objects, if they might not be."""
        others = [captured.number for captured in self.captured if captured.is_exchanged]
        handles = frozenset(map(id, tensors)).difference([id(tensors[n]) for n in others])
        return [DistinctTensors(tensors, handles, others)] if len(tensors) > 1 else []

    def exchanged(self, tensors) -> dict[int, int]:
        """The numbers of the captured tensors in whose place a call may have others, by id."""
        numbers = [captured.number for captured in self.captured if captured.is_exchanged]
        return {id(tensors[number]): number for number in numbers}

    def roots(self) -> list:
        """The objects from which the function may reach a tensor that is also an argument."""
        return [*self.arguments.leaves, self.function]

    def own_parts(self):
        """The ids of objects whose contents need no guard; None for a function of the user's."""
        return None
