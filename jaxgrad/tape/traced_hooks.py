"""Hooks and traced functions: the hooks present when a function is traced are part of its program.

Inside, a captured tensor has its hooks from outside and those that the function registers, which
are removed afterwards. `OuterNodes` records the hooks of outer nodes that a pass reaches through
captured tensors, so that a guard detects later changes.
"""

from __future__ import annotations

import contextvars
import weakref
from contextlib import contextmanager

from . import mode
from .hooks import Hooks
from .node import AccumulateGrad, Extras, Node, next_sequence_number
from .tensor import (
    LeafState,
    Tensor,
    current,
    known_leaf_state,
    node_or_mark,
    output_number,
    recorded_node,
)
from .traversal import nodes_from

# the OuterNodes of the function that is being traced in this context
outer_nodes = contextvars.ContextVar("jaxgrad.outer_nodes", default=None)


class ScopedHooks(Hooks):
    """The hooks of a captured tensor: those from outside, then those registered inside."""

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

    # `if hooks:` asks for the length, so hooks from outside count
    def __len__(self):
        return len(self.outer) + super().__len__()


class GoneHooks(Hooks):
    """Stands for hooks of which one is gone: a pass that calls them raises RuntimeError."""

    __slots__ = ()

    def __len__(self):
        return 1

    def values(self):
        raise RuntimeError(
            "a function compiled by jaxgrad.jit runs again for a derivative, and a hook that its "
            "backward pass has called is removed: remove it afterwards"
        )


def hook_lists(tensor: Tensor) -> tuple[Hooks | None, ...]:
    """The lists of a tensor's hooks, () if it never had any: the hooks of its gradient; for a leaf
    also its post-accumulate hooks, and the pre-hooks and post-hooks of its node.
    """
    return _hook_lists(current(tensor))


def _hook_lists(tensor):
    node = recorded_node(tensor)
    if node is not None:
        hooks = hooks_at(node, output_number(tensor))
        return () if hooks is None else (hooks,)
    return _hook_lists_of_leaf(known_leaf_state(tensor))


def hooks_of(tensor: Tensor) -> list:
    """The hooks of a tensor, which this does not read: a trace does not capture it."""
    return [hook for hooks in _hook_lists(tensor) if hooks for hook in hooks.values()]


def _hook_lists_of_leaf(state) -> tuple[Hooks | None, ...]:
    if type(state) is not LeafState:
        return ()
    return state.hooks, state.post_hooks, *_own_hook_lists(state.node())


def hooks_at(node: Node, output_nr: int) -> Hooks | None:
    """The hooks of the gradient of an output of a node."""
    return node.extras and (node.extras.tensor_hooks or {}).get(output_nr)


def _own_hook_lists(node):
    extras = node and node.extras
    return (extras.pre_hooks, extras.post_hooks) if extras else ()


def hook_ids(tensor: Tensor) -> tuple[tuple[int, ...], ...]:
    """The ids of a tensor's hooks, list by list; () if it has none."""
    return _ids(hook_lists(tensor))


def hook_ids_of_leaf(state) -> tuple[tuple[int, ...], ...]:
    """`hook_ids` of a leaf, given its `_leaf`."""
    return _ids(_hook_lists_of_leaf(state))


def weak_hook_lists(tensor: Tensor) -> list[tuple]:
    """Weak references to the nonempty lists of a tensor's hooks, each with the ids in it."""
    return [(weakref.ref(hooks), frozenset(hooks)) for hooks in hook_lists(tensor) if hooks]


def _ids(lists):
    return tuple([tuple(hooks or ()) for hooks in lists]) if any(lists) else ()


def hooks_of_node(node: Node) -> list:
    """A node's hooks and the hooks of its output tensors."""
    lists = [*((node.extras and node.extras.tensor_hooks) or {}).values(), *_own_hook_lists(node)]
    return [hook for hooks in lists if hooks for hook in hooks.values()]


def node_hook_ids(node: Node) -> tuple[tuple[int, ...], ...]:
    """The ids of a node's hooks and of the hooks of its output tensors."""
    hooks = (node.extras and node.extras.tensor_hooks) or {}
    return _ids([*map(hooks.get, sorted(hooks)), *_own_hook_lists(node)])


class HookSnapshot:
    """The hooks of a tensor when tracing captured it."""

    def __init__(self, tensor: Tensor):
        self.node, state = recorded_node(tensor), known_leaf_state(tensor)
        self.state = state if type(state) is LeafState else None
        if self.node is None and self.state is not None:
            self.node = self.state.node()
        self.hooks = self.state and (self.state.hooks, self.state.post_hooks)
        self.extras = self.node and self.node.extras
        self.values = self.extras and [getattr(self.extras, name) for name in Extras.__slots__]
        self.scoped: list[ScopedHooks] = []

    def enter_scope(self, tensor: Tensor):
        """Limit hooks that are registered from now on to the trace."""
        if self.state is not None:
            self.state.hooks, self.state.post_hooks = map(self.scoped_copy, self.hooks)
        if self.extras is None:
            return
        if node_or_mark(tensor) is self.node:
            hooks = self.extras.tensor_hooks or {}
            self.extras.tensor_hooks = {nr: self.scoped_copy(hooks[nr]) for nr in hooks}
        self.extras.pre_hooks = self.scoped_copy(self.extras.pre_hooks)
        self.extras.post_hooks = self.scoped_copy(self.extras.post_hooks)

    def scoped_copy(self, hooks):
        if hooks is not None:
            hooks = ScopedHooks(hooks)
            self.scoped.append(hooks)
        return hooks

    def restore(self):
        if self.state is not None:
            self.state.hooks, self.state.post_hooks = self.hooks
        if self.node is not None:
            self.node.extras = self.extras
        if self.extras is not None:
            for name, value in zip(Extras.__slots__, self.values, strict=True):
                setattr(self.extras, name, value)

    def keep(self, ids: set):
        """Of the hooks from outside, call only those of the trace. A pass that would call a hook
        that is gone raises RuntimeError.
        """
        missing = ids.difference(*[hooks.outer for hooks in self.scoped])
        for hooks in self.scoped:
            kept = {number: hook for number, hook in hooks.outer.items() if number in ids}
            hooks.outer = GoneHooks() if missing else Hooks(kept)

    def mute(self):
        """Call only the hooks that were registered inside."""
        for hooks in self.scoped:
            hooks.outer = Hooks()


class OuterNodes:
    """The outer nodes that passes inside a traced function can reach.

    `hook_ids`: by id a weak reference to each node and the ids of its hooks; `is_run`: whether a
    pass runs one of them; `residuals`: their saved arrays, which a pass frees.
    """

    def __init__(self):
        self.begun, self.hook_ids, self.is_run = next_sequence_number(), {}, False
        self.residuals: list[tuple] = []

    def record(self, roots, runs):
        """Record the outer nodes that a pass can reach. `runs(node)`: whether it runs a node."""
        for node in nodes_from([node for node, _ in roots]):
            if node.sequence < self.begun and type(node) is not AccumulateGrad:
                self.hook_ids[id(node)] = weakref.ref(node), node_hook_ids(node)
                if mode.scope.get() is not None:
                    mode.scope.get().meet_hooks(hooks_of_node(node))
                self.is_run = self.is_run or runs(node)
                self.residuals += [(node, name, getattr(node, name)) for name in node._residuals]
                if node.extras is not None:
                    self.residuals.append((node.extras, "packed", node.extras.packed))

    def put_back(self):
        """Give the nodes their saved values from before the passes."""
        for owner, name, value in reversed(self.residuals):
            setattr(owner, name, value)

    @contextmanager
    def recording(self):
        """Record for the passes that run inside the block."""
        token = outer_nodes.set(self)
        try:
            yield
        finally:
            outer_nodes.reset(token)
