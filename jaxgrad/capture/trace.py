"""Traces: what tracing a function has shown, from which its program is compiled, and replayed."""

from __future__ import annotations

import weakref
from typing import NamedTuple

import jax

from ..state.guards import Guard
from ..state.merged_guards import merged_checks
from ..tape.tensor import Tensor
from .captured import CapturedTensor
from .graph_input import GraphInput
from .guards import key_of
from .outputs import OutputSpec
from .pullback import Pullback


class TracedArguments:
    """The arguments of the call that was traced, without tensors: a program outlives the call, and
    must not keep the memory of its arguments. Objects are kept weakly.

    `structure`: that of the arguments; `varying`: the positions of numbers that are inputs;
    `positions`: by the number of a captured tensor its positions among the arguments;
    `sees_containers`: whether calls change containers among them; `uses_containers`: whether this
    function does, or gives them.
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
    """The modes in which a function was traced: the grad mode, autocast, and the user's setting of
    JAX's 64-bit types.
    """

    grad: int
    casting: object
    enable_x64: bool


class Trace:
    """What tracing a function has shown. It never changes.

    `function`: the compiled function; `captured`: the captured tensors, whose arrays are the first
    inputs; `groups`: the joined memories among these, and `members` the numbers of the tensors
    there; `other_inputs`: the inputs that follow; `output`: outputs and side effects; `pullback`:
    the passes from outputs with a history; `constants`: the arrays that are part of the program;
    `equations`: their number; `answers`: the numbers that the function looked at; `guards`: when
    the program serves again, and `checks` the same merged; `reached`: by the number of an argument
    that the function also reaches by itself a weak reference to it; `escaped`: a tensor that it
    leaves behind, described, or None; `is_inner`: whether it is a part of another program;
    `is_inline`: whether that is being traced, and observes all state.
    """

    __slots__ = (
        *("answers", "arguments", "captured", "checks", "constants", "equations", "escaped"),
        *("function", "groups", "guards", "is_inline", "is_inner", "members", "modes"),
        *("other_inputs", "output", "pullback", "reached"),
    )

    def __init__(self, tracing, guards: list[Guard], reached):
        """tracing: the `Tracing` that has come to its end."""
        self.function, self.arguments, self.modes = tracing.jitted, tracing.arguments, tracing.modes
        self.captured: list[CapturedTensor] = tracing.captured
        self.groups = tracing.groups
        self.members = [cut.number for group in tracing.groups for cut in group.cuts]
        self.other_inputs: list[GraphInput] = tracing.other_inputs
        self.output: OutputSpec = tracing.output
        self.pullback: Pullback | None = tracing.pullback
        self.constants, self.answers = tracing.closed.consts, tracing.scope.answers
        self.equations, self.escaped = tracing.equations, tracing.escaped
        self.is_inner, self.is_inline = tracing.is_inner, tracing.is_inline
        self.guards, self.checks, self.reached = guards, merged_checks(guards), reached

    @property
    def name(self) -> str:
        return self.arguments.name

    def has_expired(self) -> bool:
        """Whether a tensor that it needs is gone, an object among its arguments, or a hook that it
        runs.
        """
        return self.arguments.has_expired() or any(
            captured.has_expired() for captured in self.captured
        )
