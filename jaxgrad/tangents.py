"""Forward mode: tensors that have tangents, level by level.

A tensor's tangents are its root's: those of a view are cut out of them when they are asked for, and
those of what is written through a view are put into them. A level is one derivative; of two that
are entered one inside the other, the inner one's tangents may have tangents at the outer.

An operator with tangents is the operator itself, and for each level the program of its tangent
(`TangentOf`), recorded as any other: so tangents have gradients, and gradients have tangents. The
`Aval` of a tensor says whether it may have some, so that operators on others need not ask.
"""

from __future__ import annotations

import contextvars
import copy

import jax

from . import avals, execution, recording, views
from .modes import INFERENCE, mode
from .nodes import ProgramNode
from .primitive import Call
from .programs import Program
from .tensor import Tensor, current, leaf_state, wrap
from .writing import Write

# the levels that are entered here and now, the outermost first
levels = contextvars.ContextVar("jaxgrad.forward_levels", default=())

# whether operators compute tangents, here and now
enabled = contextvars.ContextVar("jaxgrad.forward_enabled", default=True)


class Level:
    """One derivative that is being taken."""


class Tangents:
    """The tangents of a root: by level a tensor of its shape and dtype.

    `aval`: the root's; `steps`: where among the views of its storage it stands, None at the
    beginning.
    """

    __slots__ = ("aval", "of", "steps")

    def __init__(self, aval, steps=None):
        self.aval, self.steps, self.of = aval, steps, {}

    @property
    def live(self) -> bool:
        """Whether there are any at a level that is entered."""
        return any(level in self.of for level in levels.get())


def start():
    """Have operators look for tangents from now on."""
    recording.with_tangents = extended


# what a tensor has


def tangents_of(tensor: Tensor) -> Tangents | None:
    """The tangents of what a tensor was cut from."""
    alias = tensor._alias
    if alias is None:
        return None if tensor._leaf is None else tensor._leaf.tangents
    if alias.tangents is None and alias.root is not None:
        return alias.root.tangents
    return alias.tangents


def tangent(tensor: Tensor, level: Level) -> Tensor | None:
    """The tangent of a tensor at a level, None where it stands still."""
    if not current(tensor)._aval.dual:
        return None
    held = tangents_of(tensor)
    found = None if held is None else held.of.get(level)
    return found if found is None else _cut(tensor, held, found)


def is_dual(tensor: Tensor) -> bool:
    """Whether a tensor has a tangent at a level that is entered."""
    return current(tensor)._aval.dual and any(
        tangent(tensor, level) is not None for level in levels.get()
    )


def _beyond(tensor, held):
    """The calls that lead from where tangents are held to a tensor, with their numbers."""
    found, step = [], None if tensor._alias is None else tensor._alias.steps
    while step is not held.steps:
        found.append(step)
        step = step.before
    return [(step.call, step.numbers) for step in reversed(found)]


def _cut(tensor, held, whole):
    for call, numbers in _beyond(tensor, held):
        whole = recording.apply(execution.prepare(call), [whole, *numbers])
    return whole


def mark(tensor: Tensor):
    """Note in a tensor's `Aval` whether it may have tangents."""
    held = tangents_of(tensor)
    tensor._aval = avals.with_dual(tensor._aval, held is not None and held.live)


def give(tensor: Tensor, level: Level, value: Tensor | None):
    """Set the tangent of a tensor, and of what it was cut from; None has it stand still."""
    held = tangents_of(tensor)
    if held is None:
        held = _begin(tensor)
    calls = _beyond(tensor, held)
    if calls:
        _write(held, level, calls, value, tensor)
    elif value is None:
        held.of.pop(level, None)
    else:
        held.of[level] = _laid_out(value, held.aval)
    mark(tensor)


def own(tensor: Tensor) -> Tangents:
    """Let a view hold tangents of its own, and those that are cut from it."""
    held = Tangents(views.plain(tensor._aval), tensor._alias.steps)
    tensor._alias.tangents = held
    return held


def _begin(tensor):
    alias = tensor._alias
    if alias is None:
        held = leaf_state(tensor).tangents = Tangents(views.plain(tensor._aval))
        return held
    # a view may be written to before anybody gave its root a tangent
    root = alias if alias.root is None else alias.root
    root.tangents = Tangents(root.storage.aval if root.place is None else _shown(root), root.steps)
    return root.tangents


def _shown(alias):
    return alias.place.call.outputs[0]


def _write(held, level, calls, value, tensor):
    """Put the tangent of a view into that of what it was cut from."""
    whole = held.of.get(level)
    if whole is None and value is None:
        return
    whole = _zeros(held.aval) if whole is None else whole
    value = _zeros(tensor._aval) if value is None else value
    program = Write.of(whole._aval, value._aval, tuple([call for call, _ in calls]))
    numbers = [number for _, given in calls for number in given]
    held.of[level] = recording.apply(execution.prepare(program), [whole, value, *numbers])


def _zeros(aval):
    return wrap(execution.filled(aval, 0))


def _laid_out(value, aval):
    """A tangent that shows the strides of what it is the tangent of."""
    if value._aval.strides == aval.strides:
        return value
    alone = Write.of(aval, aval, ())
    made = recording.apply(execution.prepare(alone), [value, value])
    made._aval = avals.with_strides(made._aval, aval.strides)
    return made


def assign(target: Tensor, made: Tensor):
    """Give a tensor that was written to the tangents of its new value."""
    for level in levels.get():
        give(target, level, tangent(made, level))
    mark(target)


# operators


class TangentOf(Program):
    """The tangents of a program's outputs: from its inputs, and the tangents of those that `mask`
    names. JAX derives it, and meets the forward formulas of the operators.
    """

    def __init__(self, program: Program, mask):
        self.program, self.mode = program, program.mode
        self.moving = tuple(i for i, flag in enumerate(mask) if flag)
        self.inputs = (*program.inputs, *(program.inputs[i] for i in self.moving))
        self.name = f"{program.name}Tangent"

    def function(self, *arrays):
        program, count = self.program, len(self.program.inputs)
        inputs, tangents = arrays[:count], arrays[count:]

        def outputs(*moving):
            replaced = list(inputs)
            for position, array in zip(self.moving, moving, strict=True):
                replaced[position] = array
            results = program.function(*replaced)
            return tuple(results[i] for i in program.differentiable_outputs)

        return jax.jvp(outputs, tuple(inputs[i] for i in self.moving), tangents)[1]


def extended(program: Program, leaves) -> Program:
    """A program that computes tangents too, where a leaf may have some."""
    if program.extends or not any(isinstance(e, Tensor) and e._aval.dual for e in leaves):
        return program
    if program.extension is None:
        execution.prepare(program)
        # so that the copy has them too, and shares what is found of reverses and tangents
        assert program.outputs is not None and program.reverses is not None
        assert program.tangents is not None and program.single is not None
        made = copy.copy(program)
        made.extends, made.attach = True, _attach(program)
        execution.adopt(made, program.unobserved)
        program.extension = made
    return program.extension


def _attach(program):
    """What gives the results of a program their tangents."""
    is_view = isinstance(program, Call) and views.is_view(program)
    still = is_view and views.is_detached(program)

    def attach(leaves, results):
        if program.attach is not None:
            program.attach(leaves, results)
        if is_view and mode.get() < INFERENCE and enabled.get():
            for made in () if still else results:
                mark(made)
            return
        for made in results:
            made._aval = views.plain(made._aval)
        if mode.get() < INFERENCE and enabled.get():
            _move(program, leaves, results)

    return attach


def _move(program, leaves, results):
    entered = levels.get()
    for number, level in enumerate(entered):
        moving = {
            i: tangent(leaf, level)
            for i, leaf in enumerate(leaves)
            if isinstance(leaf, Tensor) and leaf._aval.dual and program.tracked[i]
        }
        moving = {i: each for i, each in moving.items() if each is not None}
        if moving and program.differentiable_outputs:
            token = levels.set(entered[:number])
            try:
                found = _tangents(program, leaves, moving)
            finally:
                levels.reset(token)
            for position, value in zip(program.differentiable_outputs, found, strict=True):
                give(results[position], level, value)
    nodes = [made._node for made in results if isinstance(made._node, ProgramNode)]
    if nodes:
        _keep(nodes[0], leaves, results)


def _tangents(program, leaves, moving):
    mask = tuple([i in moving for i in range(len(leaves))])
    derived = program.tangents.get(mask)
    if derived is None:
        derived = program.tangents.setdefault(mask, TangentOf(program, mask))
    try:
        found = recording.apply(execution.prepare(derived), [*leaves, *moving.values()])
    except NotImplementedError as error:
        raise NotImplementedError(
            f"Trying to use forward AD with {program.name} that does not support it because it has "
            f"not been implemented yet: {error}"
        ) from error
    return (found,) if derived.single else found


# nodes


def _keep(node, leaves, results):
    """Have a node keep the tangents of what it has saved."""
    reverse = node.reverse
    saved = [leaves[i] for i in reverse.saved_inputs] + [results[i] for i in reverse.saved_outputs]
    found = [kept(each) if isinstance(each, Tensor) else None for each in saved]
    if any(each is not None for each in found):
        node.more().tangents = found


def kept(tensor: Tensor) -> Tangents | None:
    """The tangents of a tensor as it is now; None where there are none."""
    found = Tangents(views.plain(tensor._aval))
    for level in levels.get():
        value = tangent(tensor, level)
        if value is not None:
            found.of[level] = value
    return found if found.of else None


def restore(tensor: Tensor, held: Tangents | None) -> Tensor:
    """A tensor that nobody else has, with tangents that were kept."""
    if held is not None:
        leaf_state(tensor).tangents = held
        mark(tensor)
    return tensor
