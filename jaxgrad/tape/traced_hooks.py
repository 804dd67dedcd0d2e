"""Hooks and compiled functions: those that were there when a function was traced are part of its
program.

Inside, the hooks of a tensor from outside are those that it had, and those that are registered
inside, which are gone afterwards. What a pass reaches beyond such tensors is noted with its hooks,
so that a later change is seen and the function traced anew.
"""

from __future__ import annotations

import contextvars
import weakref
from contextlib import contextmanager

from .hooks import Hooks
from .node import AccumulateGrad, Extras, Node, next_sequence_number
from .tensor import LeafState, Tensor, current
from .traversal import nodes_from

# what the function that is being traced around this place meets from outside
outside = contextvars.ContextVar("jaxgrad.outside", default=None)


class Within(Hooks):
    """The hooks of a tensor from outside: its own, and then those registered inside."""

    __slots__ = ("outer",)

    def __init__(self, outer: Hooks):
        super().__init__()
        self.outer = outer

    def values(self):
        return [*self.outer.values(), *super().values()]

    def pop(self, number, *default):
        if number in self.outer:
            return self.outer.pop(number)
        return super().pop(number, *default)

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


def kept_weakly(tensor: Tensor) -> list[tuple]:
    """The lists of a tensor's hooks that are not empty, which are not kept, and their numbers."""
    return [(weakref.ref(hooks), tuple(hooks)) for hooks in lists_of(tensor) if hooks]


def _numbers(lists):
    return tuple([tuple(hooks or ()) for hooks in lists]) if any(lists) else ()


def _numbers_at(place):
    """Those of a leaf, or of a node with those of the tensors that came out of it."""
    if isinstance(place, Tensor):
        return numbers_of(place)
    hooks = (place.extras and place.extras.tensor_hooks) or {}
    return _numbers([*map(hooks.get, sorted(hooks)), *_of_node(place)])


class Lists:
    """The hooks of a tensor while a function that it is from outside of is being traced."""

    def __init__(self, tensor: Tensor):
        node, state = tensor._node, tensor._leaf
        self.node = node if isinstance(node, Node) else None
        self.state = state if type(state) is LeafState else None
        if self.node is None and self.state is not None:
            self.node = self.state.node()
        self.hooks = self.state and (self.state.hooks, self.state.post_hooks)
        self.extras = self.node and self.node.extras
        self.values = self.extras and [getattr(self.extras, name) for name in Extras.__slots__]
        self.within: list[Within] = []

    def enter(self, tensor: Tensor):
        """Have hooks that are registered from now on hold inside alone."""
        if self.state is not None:
            self.state.hooks, self.state.post_hooks = map(self.share, self.hooks)
        if self.extras is None:
            return
        if tensor._node is self.node:
            hooks = self.extras.tensor_hooks or {}
            self.extras.tensor_hooks = {number: self.share(hooks[number]) for number in hooks}
        self.extras.pre_hooks = self.share(self.extras.pre_hooks)
        self.extras.post_hooks = self.share(self.extras.post_hooks)

    def share(self, hooks):
        if hooks is not None:
            hooks = Within(hooks)
            self.within.append(hooks)
        return hooks

    def leave(self):
        """Have the hooks be what they were."""
        if self.state is not None:
            self.state.hooks, self.state.post_hooks = self.hooks
        if self.node is not None:
            self.node.extras = self.extras
        if self.extras is not None:
            for name, value in zip(Extras.__slots__, self.values, strict=True):
                setattr(self.extras, name, value)

    def mute(self):
        """Have only those that were registered inside be called."""
        for hooks in self.within:
            hooks.outer = Hooks()


class Outside:
    """What a function that is being traced meets from outside.

    `met`: nodes by their `id`, and what hooks they had; `is_run`: whether a pass runs one of them.
    """

    def __init__(self):
        self.begun, self.met, self.is_run = next_sequence_number(), {}, False

    def note(self, roots, runs):
        """Note what a pass can reach that is not of this trace; `runs(node)`: if it runs it."""
        for node in nodes_from([node for node, _ in roots]):
            if node.sequence < self.begun and type(node) is not AccumulateGrad:
                self.met[id(node)] = weakref.ref(node), _numbers_at(node)
                self.is_run = self.is_run or runs(node)

    @contextmanager
    def meeting(self):
        """Note what the passes within come to."""
        token = outside.set(self)
        try:
            yield
        finally:
            outside.reset(token)

    def has_changed(self) -> bool:
        """Whether hooks of what was met have been added or taken away."""
        for place, before in self.met.values():
            alive = place()
            if alive is not None and _numbers_at(alive) != before:
                return True
        return False
