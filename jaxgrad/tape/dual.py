"""Forward mode: tensors that have tangents, level by level.

A tensor's tangents are its root's: those of a view are cut out of them when they are asked for, and
those of what is written through a view are put into them. The tangents at a level may have tangents
at outer ones.

An operator with tangents is the operator itself, and for each level the program of its tangent
(`TangentOf`), recorded as any other: so tangents have gradients, and gradients have tangents. The
`Aval` of a tensor says whether it may have some, so that operators on others need not ask.
"""

from __future__ import annotations

import copy
import functools

import jax

from ..core import executor, view_ops
from ..core.aval import with_dual, with_strides
from ..core.copy_slices import Write
from ..core.primitive import Call
from ..core.program import Program, Reverse
from . import interception, record
from .dual_level import Level, Tangents, enabled, in_order, see_below, window
from .mode import INFERENCE, current_mode
from .node import ProgramNode
from .tensor import LeafState, Tensor, current, edge_of, leaf_state, tangents_of, wrap


@functools.cache
def start():
    """Have operators look for tangents from now on."""
    interception.intercept(tangents=extended)


# what a tensor has


def levels_of(tensor: Tensor) -> list[Level]:
    """The levels seen from here at which a tensor has tangents, the outermost first."""
    if not current(tensor)._aval.dual:
        return []
    held = tangents_of(tensor)
    return [] if held is None else held.seen()


def tangent(tensor: Tensor, level: Level) -> Tensor | None:
    """The tangent of a tensor at a level, None where it stands still."""
    if not current(tensor)._aval.dual:
        return None
    held = tangents_of(tensor)
    found = None if held is None else held.of.get(level)
    alias = tensor._alias
    if found is None or (None if alias is None else alias.steps) is held.steps:
        return found
    return _cut(tensor, held, found)


def _beyond(tensor, held):
    """The calls that lead from where tangents are held to a tensor, with their numbers."""
    found, step = [], None if tensor._alias is None else tensor._alias.steps
    while step is not held.steps:
        found.append(step)
        step = step.before
    return [(step.call, step.numbers) for step in reversed(found)]


def _cut(tensor, held, whole):
    for call, numbers in _beyond(tensor, held):
        whole = record.apply(executor.prepare(call), [whole, *numbers])
    return whole


def mark(tensor: Tensor):
    """Note in a tensor's `Aval` whether it may have tangents."""
    held = tangents_of(tensor)
    tensor._aval = with_dual(tensor._aval, held is not None and bool(held.of))


def give(tensor: Tensor, level: Level, value: Tensor | None):
    """Set the tangent of a tensor, and of what it was cut from; None has it stand still."""
    held = tangents_of(tensor)
    if held is None:
        held = _begin(tensor)
    if value is not None and value._aval.dual:
        value = below(value, level)
    calls = _beyond(tensor, held)
    if calls:
        _write(held, level, calls, value, tensor)
    else:
        held.set(level, None if value is None else _laid_out(value, held.aval))
    mark(tensor)


def below(value: Tensor, level: Level) -> Tensor:
    """A tensor as a tangent at a level: without tangents of its own but for outer levels."""
    held = tangents_of(value)
    if held is None or all(other.number < level.number for other in tuple(held.of)):
        return value
    token = see_below(level)
    try:
        return _frozen(value)
    finally:
        window.reset(token)


def own(tensor: Tensor) -> Tangents:
    """Let a view hold tangents of its own, and those that are cut from it; it has none yet."""
    tensor._aval = view_ops.plain(tensor._aval)
    held = tensor._alias.tangents = Tangents(tensor._aval, tensor._alias.steps)
    return held


def share(made: Tensor, alias, step):
    """Let a view that was cut anew up to a step of an alias have the tangents that are held there,
    if the alias has such of its own.
    """
    held = alias.tangents
    if held is not None and alias.root is not None and held.steps is step:
        made._alias.steps, made._alias.tangents = step, held
        mark(made)


def _begin(tensor):
    alias = tensor._alias
    if alias is None:
        held = leaf_state(tensor).tangents = Tangents(view_ops.plain(tensor._aval))
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
    held.set(level, record.apply(executor.prepare(program), [whole, value, *numbers]))


def _zeros(aval):
    return wrap(executor.filled(aval, 0))


def _laid_out(value, aval):
    """A tangent that shows the strides of what it is the tangent of."""
    if value._aval.strides == aval.strides:
        return value
    alone = Write.of(aval, aval, ())
    made = record.apply(executor.prepare(alone), [value, value])
    show(made, aval.strides)
    return made


def show(made: Tensor, strides):
    """Have a tensor that nobody else has yet show strides, and its tangents likewise."""
    made._aval = with_strides(made._aval, strides)
    held = None if made._leaf is None else made._leaf.tangents
    if held is not None:
        held.aval = view_ops.plain(made._aval)
        for value in list(held.of.values()):
            show(value, strides)


def assign(target: Tensor, made: Tensor):
    """Give a tensor that was written to the tangents of its new value; where none are computed, it
    keeps those that it has.
    """
    if enabled.get() and current_mode.get() < INFERENCE:
        for level in in_order({*levels_of(target), *levels_of(made)}):
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
    if program.extends:
        return program
    for leaf in leaves:
        if isinstance(leaf, Tensor) and leaf._aval.dual:
            return program.extension or _extend(program)
    return program


def _extend(program):
    executor.prepare(program)
    for name in ("outputs", "single", "reverses", "tangents"):
        getattr(program, name)  # so that the copy has it too: the last two are shared
    made = copy.copy(program)
    made.extends, made.attach = True, _attach(program)
    program.extension = executor.adopt(made, program.unobserved)
    return program.extension


def _attach(program):
    """What gives the results of a program their tangents. Those that share memory have them."""

    def attach(leaves, results):
        shares = program.attach is not None
        if shares:
            program.attach(leaves, results)
            for made in results:
                mark(made)
        if current_mode.get() >= INFERENCE or not enabled.get():
            return
        if not shares:
            _move(program, leaves, results)
        for made in results:
            if isinstance(made._node, ProgramNode):
                _keep(made._node, leaves, results)
                break

    return attach


def _move(program, leaves, results):
    found, outermost = _moving(program, leaves), True
    if not program.differentiable_outputs:
        return
    for level in in_order(found):
        token = see_below(level)
        try:
            moving = {i: tangent(leaves[i], level) for i in found[level]}
            if any(value is None for value in moving.values()):
                continue  # another thread has ended the level just now
            values = _tangents(program, leaves, moving, outermost)
        finally:
            window.reset(token)
        for position, value in zip(program.differentiable_outputs, values, strict=True):
            _begin_with(results[position], level, value)
        outermost = False


def _moving(program, leaves) -> dict:
    """By level the positions of the leaves that have a tangent there."""
    found, (low, high) = {}, window.get()
    for position, leaf in enumerate(leaves):
        if not (isinstance(leaf, Tensor) and leaf._aval.dual):
            continue
        held = tangents_of(leaf)
        if held is None or not held.of:
            mark(leaf)  # its levels have ended
            continue
        for level in tuple(held.of) if program.tracked[position] else ():
            if low <= level.number < high:
                found.setdefault(level, []).append(position)
    return found


def _begin_with(made, level, value):
    """Give a tensor that nobody else has yet a tangent that nobody else has."""
    shown = made._aval
    if value._aval.strides != shown.strides:
        show(value, shown.strides)
    leaf = made._leaf
    if leaf is None:
        leaf = made._leaf = LeafState()
    if leaf.tangents is None:
        leaf.tangents = Tangents(shown)
        made._aval = with_dual(shown, True)
    leaf.tangents.set(level, value)


def _tangents(program, leaves, moving, outermost):
    """The tangents of the differentiable outputs, of those of the inputs by position.

    outermost: whether the inputs have none at outer levels.
    """
    mask, given = tuple([i in moving for i in range(len(leaves))]), list(moving.values())
    if program.is_linear:
        return [record.apply(program, given)]
    program = program.compact
    derived = program.tangents.get(mask)
    if derived is None:
        derived = program.tangents.setdefault(mask, executor.prepare(TangentOf(program, mask)))
    alone = outermost and not any(value._aval.dual for value in given)
    try:
        values = (_apply_alone if alone else record.apply)(derived, [*leaves, *given])
    except NotImplementedError as error:
        raise NotImplementedError(
            f"Trying to use forward AD with {operator_of(program)} that does not support it "
            f"because it has not been implemented yet. {error}"
        ) from error
    return (values,) if derived.single else values


def _apply_alone(program, leaves):
    """`recording.apply`, for which no tangents are looked for."""
    arrays = [leaf._array if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    mask = tuple([isinstance(leaf, Tensor) and leaf._tracked for leaf in leaves])
    return record.finish(program, leaves, arrays, mask)


def operator_of(program: Program) -> str:
    """The name of the operator that a program is, or is derived from."""
    if isinstance(program, Call):
        return program.primitive.name
    if isinstance(program, TangentOf):
        return operator_of(program.program)
    if isinstance(program, Reverse):
        return f"{operator_of(program.program)}_backward"
    return program.name


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
    found = Tangents(view_ops.plain(tensor._aval))
    for level in levels_of(tensor):
        value = tangent(tensor, level)
        found.set(level, None if value is None else _frozen(value))
    return found if found.of else None


def _frozen(value):
    """A tensor as it is now, with its history and its tangents, for nobody to write to."""
    place = (True, *edge_of(value)) if current(value)._tracked else ()
    return restore(wrap(value._raw, view_ops.plain(value._aval), *place), kept(value))


def apart(tensor: Tensor, deeply: bool = False) -> Tensor:
    """The same memory outside of the graph of reverse mode, which moves as the tensor does; with
    `deeply` its tangents are outside too.
    """
    held = kept(tensor)
    for level, value in list(held.of.items()) if deeply and held is not None else ():
        held.set(level, apart(value, True))
    return restore(tensor.detach(), held)


def is_recorded(tensor: Tensor) -> bool:
    """Whether a tensor requires grad, or a tangent that it has."""
    held = tangents_of(tensor) if tensor._aval.dual else None
    within = () if held is None else list(held.of.values())
    return tensor._requires_grad or any(map(is_recorded, within))


def restore(tensor: Tensor, held: Tangents | None) -> Tensor:
    """A tensor that nobody else has, with tangents that were kept."""
    if held is not None:
        mine = Tangents(held.aval)
        for level, value in list(held.of.items()):
            mine.set(level, value)
        if tensor._alias is None:
            leaf_state(tensor).tangents = mine
        else:
            mine.steps, tensor._alias.tangents = tensor._alias.steps, mine
        mark(tensor)
    return tensor
