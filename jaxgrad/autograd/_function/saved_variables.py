"""The tensors that a Function's call saves, and how it restores them with their history."""

from __future__ import annotations

import types

from ...core.view_ops import plain
from ...state.objects import ObjectWalk
from ...tape import node_annotations
from ...tape.dual import kept, restore
from ...tape.node import Node
from ...tape.tensor import (
    DERIVED,
    OWN_DTYPE,
    LeafState,
    Tensor,
    abstract_value,
    current,
    held,
    is_tracked,
    known_edge_of,
    may_have_tangents,
    node_or_mark,
    set_leaf_state,
    set_node,
    set_tracked,
    wrap,
)


class SavedVariable:
    """A saved tensor that is not an output of the call.

    derived: whether `forward` computed it from the inputs, so that its history was not recorded.
    tangents: its tangents when it was saved.
    """

    __slots__ = ("array", "aval", "derived", "edge", "packed", "source", "tangents")

    def __init__(self, tensor: Tensor):
        self.source, self.packed = current(tensor), None
        self.array, self.aval = held(tensor), abstract_value(tensor)
        self.derived = node_or_mark(tensor) is DERIVED
        self.edge = known_edge_of(tensor) if is_tracked(tensor) else None
        self.tangents = kept(tensor) if may_have_tangents(tensor) else None

    def pack(self, pair):
        """Pass the tensor through saved-tensor hooks and keep their result in its place."""
        self.packed = node_annotations.pack(pair, wrap(self.array, self.aval))
        self.source = self.array = None

    def tensor(self, ctx) -> Tensor:
        """The saved tensor: the same handle if it still holds the value, else a new one."""
        if self.packed is not None:
            return self.with_history(self.packed.tensor()._array, ctx)
        source = current(self.source)
        same_place = not is_tracked(source) or self.edge == known_edge_of(source)
        same_flag = is_tracked(source) == (self.edge is not None)
        if held(source) is self.array and same_flag and same_place:
            return source
        return self.with_history(self.array, ctx)

    def with_history(self, array, ctx):
        place = () if self.edge is None else (True, *self.edge)
        return restore(wrap(array, plain(self.aval), *place), self.tangents)


class SavedOutput(SavedVariable):
    """A saved output. Its history is the call, which it does not hold: that would be a cycle."""

    __slots__ = ("number", "tracked")

    def __init__(self, tensor: Tensor, number: int):
        self.source, self.packed, self.edge, self.derived = None, None, None, False
        self.array, self.aval = tensor._array, abstract_value(tensor)
        self.number, self.tracked, self.tangents = number, is_tracked(tensor), None

    def tensor(self, ctx):
        array = self.array if self.packed is None else self.packed.tensor()._array
        return self.with_history(array, ctx)

    def with_history(self, array, ctx):
        place = (True, ctx, self.number) if self.tracked else ()
        return restore(wrap(array, plain(self.aval), *place), self.tangents)


def sever(ctx):
    """Make intermediate results that are attributes of `ctx` refuse to be differentiated."""
    for name, tensor in _intermediates(ctx):
        set_node(tensor, None)
        set_tracked(tensor, True)
        set_leaf_state(tensor, _WithoutHistory(ctx.name(), name))


def refuse_attributes(ctx):
    """Raise RuntimeError if an attribute of `ctx` is an intermediate result without tangent."""
    for name, _ in _intermediates(ctx):
        raise RuntimeError(LOST.format(ctx.name(), name, "tangent"))


def _intermediates(ctx):
    return [
        (name, tensor)
        for name, value in vars(ctx).items()
        if name != "saved_for_forward"
        for tensor in _AttributeWalk().walk(value)
        if isinstance(tensor, Tensor) and node_or_mark(tensor) is DERIVED
    ]


class _AttributeWalk(ObjectWalk):
    """A walk over the objects that an attribute of a call holds through containers, objects and
    closures.
    """

    opaque, leaf = (Node, SavedVariable, type, types.ModuleType), Tensor


LOST = (
    "{} keeps an intermediate result of its forward as ctx.{}, and its {} is not known: the second "
    "derivative would be wrong. Pass it to ctx.save_for_backward instead"
)


class _WithoutHistory(LeafState):
    """The leaf state of an intermediate result whose history is unknown."""

    __slots__ = ("attribute", "owner")

    def __init__(self, owner, attribute):
        self.owner, self.attribute = owner, attribute
        self.grad = self.hooks = self.post_hooks = self.tangents = self.causes = self.kind = None
        self.grad_dtype = OWN_DTYPE

    def node(self):
        raise RuntimeError(LOST.format(self.owner, self.attribute, "history"))
