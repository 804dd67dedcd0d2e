"""Forward mode: dual tensors, which have tangents at levels.

The root of a view chain holds the tangents. A view's tangent is cut from the root's on demand, and
a write through a view writes its tangent into the root's. A tangent at one level may have tangents
at outer levels.

An operator on duals runs its program, and for each level the program of its tangent (`TangentOf`).
That program is recorded like any other, so tangents have gradients and gradients have tangents. The
`Aval` of a tensor says whether it may have tangents, so operators on other tensors do not look.
"""

from __future__ import annotations

import copy
import functools

import jax

from ..core import elementary, executor, view_ops
from ..core.aval import with_dual, with_strides
from ..core.copy_slices import CopySlices
from ..core.primitive import Call
from ..core.program import Program, Reverse
from . import interception, record
from .dual_level import Level, Tangents, enabled, in_order, see_below, window
from .mode import INFERENCE, current_mode
from .node import ProgramNode
from .tensor import LeafState, Tensor, current, edge_of, held, leaf_state, tangents_of, wrap

# inlined: the accessors of tape/tensor.py


@functools.cache
def start():
    """Make operators look for tangents from now on."""
    interception.intercept(tangents=extended)


# what a tensor has


def levels_of(tensor: Tensor) -> list[Level]:
    """The visible levels at which a tensor has a tangent, the outermost first."""
    if not current(tensor)._aval.dual:
        return []
    held = tangents_of(tensor)
    return [] if held is None else held.seen()


def tangent(tensor: Tensor, level: Level) -> Tensor | None:
    """The tangent of a tensor at a level, None if it has none."""
    if not current(tensor)._aval.dual:
        return None
    held = tangents_of(tensor)
    value = None if held is None else held.of.get(level)
    alias = tensor._alias
    if value is None or (None if alias is None else alias.steps) is held.steps:
        return value
    return _cut(tensor, held, value)


def is_cut(tensor: Tensor) -> bool:
    """Whether the tangents of a tensor are cut from those of the root of its views."""
    held = tangents_of(tensor)
    return held is not None and bool(_beyond(tensor, held))


def _beyond(tensor, held):
    """The view calls from the holder of the tangents to a tensor, with their numbers."""
    steps, step = [], None if tensor._alias is None else tensor._alias.steps
    while step is not held.steps:
        steps.append(step)
        step = step.before
    return [(step.call, step.numbers) for step in reversed(steps)]


def _cut(tensor, held, whole):
    for call, numbers in _beyond(tensor, held):
        whole = record.apply(executor.prepare(call), [whole, *numbers])
    return whole


def mark(tensor: Tensor):
    """Update the `dual` flag of a tensor's `Aval`."""
    held = tangents_of(tensor)
    tensor._aval = with_dual(tensor._aval, held is not None and bool(held.of))


def give(tensor: Tensor, level: Level, value: Tensor | None):
    """Set the tangent of a tensor, and the part of its root's tangent; None clears it."""
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
    """A tensor as a tangent at `level`: it keeps only its own tangents at outer levels."""
    held = tangents_of(value)
    if held is None or all(other.number < level.number for other in tuple(held.of)):
        return value
    token = see_below(level)
    try:
        return _frozen(value)
    finally:
        window.reset(token)


def own_tangents(tensor: Tensor) -> Tangents:
    """Make a view, and the views cut from it, hold tangents separate from the root's."""
    tensor._aval = view_ops.plain(tensor._aval)
    held = tensor._alias.tangents = Tangents(tensor._aval, tensor._alias.steps)
    return held


def share(view: Tensor, alias, step):
    """Give a regenerated view the tangents that its alias holds at `step`, if it holds its own."""
    held = alias.tangents
    if held is not None and alias.root is not None and held.steps is step:
        view._alias.steps, view._alias.tangents = step, held
        mark(view)


def _begin(tensor):
    alias = tensor._alias
    if alias is None:
        held = leaf_state(tensor).tangents = Tangents(view_ops.plain(tensor._aval))
        return held
    # a view may be written to before its root has a tangent
    root = alias if alias.root is None else alias.root
    root.tangents = Tangents(root.storage.aval if root.place is None else _shown(root), root.steps)
    return root.tangents


def _shown(alias):
    return alias.place.call.outputs[0]


def _write(held, level, calls, value, tensor):
    """Write the tangent of a view into the tangent of its root."""
    whole = held.of.get(level)
    if whole is None and value is None:
        return
    whole = _zeros(held.aval) if whole is None else whole
    value = _zeros(tensor._aval) if value is None else value
    program = CopySlices.of(whole._aval, value._aval, tuple([call for call, _ in calls]))
    numbers = [number for _, view_numbers in calls for number in view_numbers]
    held.set(level, record.apply(executor.prepare(program), [whole, value, *numbers]))


def _zeros(aval):
    return wrap(elementary.filled(aval, 0))


def _laid_out(value, aval):
    """A tangent with the strides of its primal."""
    if value._aval.strides == aval.strides:
        return value
    # a write to the whole tensor is a copy that is recorded and saves no array
    alone = CopySlices.of(aval, aval, ())
    clone = record.apply(executor.prepare(alone), [value, value])
    show(clone, aval.strides)
    return clone


def show(tensor: Tensor, strides):
    """Set the strides of a new tensor and of its tangents."""
    tensor._aval = with_strides(tensor._aval, strides)
    held = None if tensor._leaf is None else tensor._leaf.tangents
    if held is not None:
        held.aval = view_ops.plain(tensor._aval)
        for value in list(held.of.values()):
            show(value, strides)


def assign(target: Tensor, new_value: Tensor):
    """Give a tensor that was written to the tangents of its new value.

    It keeps its tangents where forward mode is disabled.
    """
    if enabled.get() and current_mode.get() < INFERENCE:
        for level in in_order({*levels_of(target), *levels_of(new_value)}):
            give(target, level, tangent(new_value, level))
    mark(target)


# operators


class TangentOf(Program):
    """The program of the tangents of a program's outputs.

    Its inputs are those of the program, then the tangents of the inputs where `mask` is true. JAX
    derives it with `jax.jvp`, which uses the forward formulas of the operators.
    """

    is_partial = True

    def __init__(self, program: Program, mask):
        self.program, self.mode, self.defers = program, program.mode, program.defers
        self.moving = tuple(i for i, flag in enumerate(mask) if flag)
        self.inputs = (*program.inputs, *(program.inputs[i] for i in self.moving))
        self.name = f"{program.name}Tangent"
        self.undefined = program.undefined_derivative

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
    """The program, extended by tangents if an input may have some."""
    if program.extends:
        return program
    for leaf in leaves:
        if isinstance(leaf, Tensor) and leaf._aval.dual:
            return program.extension or _extend(program)
    return program


def _extend(program):
    executor.prepare(program)
    for name in ("outputs", "single", "reverses", "tangents"):
        getattr(program, name)  # computed before the copy, which shares the last two
    extension = copy.copy(program)
    extension.extends, extension.attach = True, _attach(program)
    if program.undefined_derivative is not None:
        extension.is_partial, extension.reverses = True, {}
    extension.kernel, program.extension = program.kernel.copy_for(extension), extension
    return extension


def _attach(program):
    """Make the callback that gives results their tangents; views find them in their root."""
    shares = _shares_memory(program)
    is_view = shares and not _is_of_parts(program)

    def attach(leaves, results):
        is_followed = current_mode.get() < INFERENCE and enabled.get()
        if is_followed and not is_view:
            _move(program, leaves, results)
        if program.attach is not None:
            program.attach(leaves, results)
        if shares:
            for result in results:
                mark(result)
        if not is_followed:
            return
        for result in results:
            if isinstance(result._node, ProgramNode):
                _keep(result._node, leaves, results)
                break

    return attach


def _shares_memory(program):
    """Whether the results share memory with the inputs, and not only have gradients of a kind."""
    if not isinstance(program, Call) or program.attach is None:
        return program.attach is not None
    return view_ops.is_view(program) or _is_of_parts(program)


def _is_of_parts(program):
    """Whether the results show parts of a memory and have tangents of their own."""
    return isinstance(program, Call) and "parts" in program.primitive.rule.tags


def _move(program, leaves, results):
    positions, outermost = _moving(program, leaves), True
    if not program.differentiable_outputs:
        return
    for level in in_order(positions):
        token = see_below(level)
        try:
            moving = {i: tangent(leaves[i], level) for i in positions[level]}
            if any(value is None for value in moving.values()):
                continue  # another thread ended the level meanwhile
            values = _tangents(program, leaves, moving, outermost)
        finally:
            window.reset(token)
        for position, value in zip(program.differentiable_outputs, values, strict=True):
            _begin_with(results[position], level, value)
        outermost = False


def _moving(program, leaves) -> dict:
    """For each visible level, the positions of the inputs that have a tangent at it."""
    positions, (low, high) = {}, window.get()
    for position, leaf in enumerate(leaves):
        if not (isinstance(leaf, Tensor) and leaf._aval.dual):
            continue
        held = tangents_of(leaf)
        if held is None or not held.of:
            mark(leaf)  # its levels have ended
            continue
        for level in tuple(held.of) if program.tracked[position] else ():
            if low <= level.number < high:
                positions.setdefault(level, []).append(position)
    return positions


def _begin_with(tensor, level, value):
    """Give a new tensor a new tangent, without a copy."""
    shown = tensor._aval
    if value._aval.strides != shown.strides:
        show(value, shown.strides)
    leaf = tensor._leaf
    if leaf is None:
        leaf = tensor._leaf = LeafState()
    if leaf.tangents is None:
        leaf.tangents = Tangents(shown)
        tensor._aval = with_dual(shown, True)
    leaf.tangents.set(level, value)


def _tangents(program, leaves, moving, outermost):
    """The tangents of the differentiable outputs.

    moving: the tangents of the inputs, by position; outermost: whether the inputs have none at
    outer levels.
    """
    mask, tangents = tuple([i in moving for i in range(len(leaves))]), list(moving.values())
    if program.is_linear:
        return [record.apply(program, tangents)]
    program = program.compact
    derived = program.tangents.get(mask)
    if derived is None:
        derived = program.tangents.setdefault(mask, executor.prepare(TangentOf(program, mask)))
    alone = outermost and not any(value._aval.dual for value in tangents)
    try:
        values = (_apply_alone if alone else record.apply)(derived, [*leaves, *tangents])
    except NotImplementedError as error:
        raise NotImplementedError(
            f"Trying to use forward AD with {operator_of(program)} that does not support it "
            f"because it has not been implemented yet. {error}"
        ) from error
    return (values,) if derived.single else values


def _apply_alone(program, leaves):
    """`record.apply` without a look for tangents."""
    arrays = [leaf._value if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    mask = tuple([isinstance(leaf, Tensor) and leaf._tracked for leaf in leaves])
    return record.finish(program, leaves, arrays, mask)


def operator_of(program: Program) -> str:
    """The name of the operator that a program runs, or is derived from."""
    if isinstance(program, Call):
        return program.primitive.name
    if isinstance(program, TangentOf):
        return operator_of(program.program)
    if isinstance(program, Reverse):
        return f"{operator_of(program.program)}_backward"
    return program.name


# nodes


def _keep(node, leaves, results):
    """Store on a node the tangents of its saved tensors."""
    reverse = node.reverse
    saved = [leaves[i] for i in reverse.saved_inputs] + [results[i] for i in reverse.saved_outputs]
    snapshots = [kept(value) if isinstance(value, Tensor) else None for value in saved]
    if any(snapshot is not None for snapshot in snapshots):
        node.more().tangents = snapshots


def kept(tensor: Tensor) -> Tangents | None:
    """A snapshot of a tensor's tangents; None if it has none."""
    snapshot = Tangents(view_ops.plain(tensor._aval))
    for level in levels_of(tensor):
        value = tangent(tensor, level)
        snapshot.set(level, None if value is None else _frozen(value))
    return snapshot if snapshot.of else None


def _frozen(value):
    """A snapshot of a tensor with its history and tangents, which later writes do not change."""
    place = (True, *edge_of(value)) if current(value)._tracked else ()
    return restore(wrap(held(value), view_ops.plain(value._aval), *place), kept(value))


def apart(tensor: Tensor, deeply: bool = False) -> Tensor:
    """The detached tensor with the same tangents; with `deeply` its tangents are detached too."""
    held = kept(tensor)
    for level, value in list(held.of.items()) if deeply and held is not None else ():
        held.set(level, apart(value, True))
    return restore(tensor.detach(), held)


def is_recorded(tensor: Tensor) -> bool:
    """Whether a tensor or one of its tangents requires grad."""
    held = tangents_of(tensor) if tensor._aval.dual else None
    within = () if held is None else list(held.of.values())
    return tensor._requires_grad or any(map(is_recorded, within))


def restore(tensor: Tensor, held: Tangents | None) -> Tensor:
    """Give a new tensor the tangents of a snapshot; returns the tensor."""
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
