"""Hooks and compiled functions: those that were there when a function was traced are part of its
program.

The hooks of an argument hold for the leaf that stands for it inside. What a pass inside reaches
beyond the arguments is noted with its hooks, so that a later change is seen and the function traced
anew.
"""

from __future__ import annotations

import contextvars
import weakref
from contextlib import contextmanager

import jax

from ..hooks import Hooks
from ..nodes import AccumulateGrad, Node, next_sequence_number
from ..tensor import LeafState, Tensor, current, edge_of, leaf_state

# what the function that is being traced around this place meets from outside
outside = contextvars.ContextVar("jaxgrad.outside", default=None)


class Within(Hooks):
    """The hooks of the leaf that stands for an argument: the argument's, and then its own."""

    __slots__ = ("outer",)

    def __init__(self, outer: Hooks):
        super().__init__()
        self.outer = outer

    def values(self):
        return [*self.outer.values(), *super().values()]

    def __iter__(self):
        yield from self.outer
        yield from super().__iter__()

    def __len__(self):
        return len(self.outer) + super().__len__()


def lists_of(tensor: Tensor) -> tuple[Hooks | None, ...]:
    """The hooks of a tensor, () where it never had any: those of its gradient, and of a leaf those
    for what was accumulated, its node's pre-hooks and post-hooks.
    """
    node, state = current(tensor)._node, tensor._leaf
    if isinstance(node, Node):
        hooks = node.extras and (node.extras.tensor_hooks or {}).get(tensor._nr)
        return () if hooks is None else (hooks,)
    if type(state) is not LeafState:
        return ()
    return state.hooks, state.post_hooks, *_of_node(state.node())


def _of_node(node):
    extras = node and node.extras
    return (extras.pre_hooks, extras.post_hooks) if extras else ()


def numbers_of(tensor: Tensor) -> tuple[tuple[int, ...], ...]:
    """What tells the hooks of a tensor from others; () where it has none."""
    return _numbers(lists_of(tensor))


def _numbers(lists):
    return tuple([tuple(hooks or ()) for hooks in lists]) if any(lists) else ()


def _numbers_at(place):
    """Those of a leaf, or of a node with those of the tensors that came out of it."""
    if isinstance(place, Tensor):
        return numbers_of(place)
    hooks = (place.extras and place.extras.tensor_hooks) or {}
    return _numbers([*map(hooks.get, sorted(hooks)), *_of_node(place)])


class Outside:
    """What a function that is being traced meets from outside.

    `met`: leaves and nodes, by their numbers, and what hooks they had.
    """

    def __init__(self):
        self.begun, self.met = next_sequence_number(), {}
        self.stand_ins: dict[int, list[AccumulateGrad]] = {}

    def share(self, lists, tensor: Tensor):
        """Have the hooks of an argument, as `lists_of` gives them, hold for its stand-in."""
        lists = [None if hooks is None else Within(hooks) for hooks in lists]
        state, node = leaf_state(tensor), edge_of(tensor)[0]
        for within in (hooks for hooks in lists if hooks is not None):
            # a leaf does not hold its node
            self.stand_ins.setdefault(id(within.outer), []).append(node)
        lists += [None] * (4 - len(lists))
        state.hooks, state.post_hooks = lists[:2]
        if lists[2] is not None or lists[3] is not None:
            node.more().pre_hooks, node.extras.post_hooks = lists[2:]

    def note(self, roots):
        """Note what a pass can reach that is not of this trace."""
        seen, stack = set(), [node for node, _ in roots]
        while stack:
            node = stack.pop()
            if node.sequence in seen:
                continue
            seen.add(node.sequence)
            stack.extend([edge[0] for edge in node.edges])
            is_leaf = type(node) is AccumulateGrad
            place = node.variable if is_leaf else node
            if node.sequence < self.begun or (is_leaf and not _is_traced(place)):
                self.met[id(place)] = weakref.ref(place), _numbers_at(place)

    @contextmanager
    def meeting(self):
        """Note what the passes within come to."""
        token = outside.set(self)
        try:
            yield
        finally:
            outside.reset(token)
            self.stand_ins.clear()

    def pass_on(self):
        """Have a trace that is under way around this place note what this one met."""
        if outside.get() is not None:
            outside.get().met.update(self.met)

    def has_changed(self) -> bool:
        """Whether hooks of what was met have been added or taken away."""
        for place, before in self.met.values():
            alive = place()
            if alive is not None and _numbers_at(alive) != before:
                return True
        return False


def _is_traced(tensor) -> bool:
    return isinstance(tensor._raw, jax.core.Tracer)


class OfArgument:
    """The hooks of an argument as they are when a trace is begun, which does not keep them."""

    def __init__(self, tensor: Tensor):
        lists = lists_of(tensor)
        self.numbers = _numbers(lists)
        self.lists = [None if hooks is None else weakref.ref(hooks) for hooks in lists]

    def share(self, outside: Outside, tensor: Tensor):
        """Have them hold for the leaf that stands for the argument."""
        outside.share([hooks and hooks() for hooks in self.lists], tensor)

    def is_over(self) -> bool:
        """Whether one of them was removed, so that they will not be these again."""
        present = [(hooks and hooks()) or () for hooks in self.lists]
        pairs = zip(self.numbers, present, strict=True)
        return not all(set(numbers).issubset(hooks) for numbers, hooks in pairs)
