"""Tensors from outside that a traced function has met: what they were, where they are found again,
and what they must be for its program to serve.
"""

from __future__ import annotations

import weakref

from ..tape import traced_hooks
from ..tape.dual import mark
from ..tape.node import Node
from ..tape.source_location import place_of_caller
from ..tape.tensor import INFERENCE_TENSOR, Tensor, current, is_moving, known_edge_of


class Source:
    """Where a tensor comes from that a trace has met: how it is found again at a later call."""

    def find(self, leaves, tensors) -> Tensor | None:
        """The tensor, given the arguments and the tensors of the places before it."""
        raise NotImplementedError

    def is_gone(self) -> bool:
        """Whether there will be no such tensor any more."""
        return False


class Argument(Source):
    def __init__(self, position: int):
        self.position = position

    def find(self, leaves, tensors):
        return leaves[self.position]


class Outside(Source):
    """A tensor that the function reaches by itself, as long as somebody holds it."""

    def __init__(self, tensor: Tensor):
        self.tensor = weakref.ref(tensor)

    def find(self, leaves, tensors):
        return self.tensor()

    def is_gone(self):
        return self.tensor() is None


class GradientOf(Source):
    """The `.grad` of the tensor of another place."""

    def __init__(self, owner: Place):
        self.owner = owner.number

    def find(self, leaves, tensors):
        leaf = tensors[self.owner]._leaf
        return None if leaf is None else leaf.grad


class Before:
    """What a tensor was when a trace first met it."""

    __slots__ = ("alias", "counter", "fields", "grad", "hooks", "leaf")

    def __init__(self, tensor: Tensor):
        self.fields = (
            tensor._raw, tensor._aval, tensor._node, tensor._nr, tensor._tracked
        )  # fmt: skip
        self.alias, self.leaf, self.counter = tensor._alias, tensor._leaf, tensor._counter
        self.grad = getattr(tensor._leaf, "grad", None)
        self.hooks = traced_hooks.Lists(tensor)

    def restore(self, tensor: Tensor):
        tensor._raw, tensor._aval, tensor._node, tensor._nr, tensor._tracked = self.fields
        tensor._alias, tensor._counter = self.alias, self.counter
        if self.leaf is None:
            tensor._leaf = None
        else:
            tensor._leaf = self.leaf
            if hasattr(self.leaf, "grad"):
                self.leaf.grad = self.grad
        self.hooks.leave()


class Place:
    """A tensor from outside that a trace has met.

    `number`: among the places; `source`: how it is found at a later call; `aval`, `tracked`,
    `kind`, `hooks`: what it must be then, and `pinned` its array, where its numbers were looked
    at; `line`: the source line that first read it; `before`: what it was; `array`: what the handle
    held at first inside of the trace; `edge`: where its gradient goes; `reads_slot`, `writes_slot`:
    whether its `.grad` was read, and whether it was set before it was read; `ignores_slot`: whether
    that is no matter, as where the function is run again.
    """

    def __init__(self, tensor: Tensor, source: Source, number: int):
        self.tensor, self.source, self.number = tensor, source, number
        self.line, self.array = place_of_caller(), None
        self.edge = known_edge_of(tensor) if tensor._tracked else None
        self.before = Before(tensor)
        self.aval, self.tracked, self.kind = tensor._aval, tensor._tracked, kind_of(tensor)
        self.hooks = traced_hooks.numbers_of(tensor)
        self.reference = self.source.tensor if self.is_outside else None
        self.lists = traced_hooks.kept_weakly(tensor)
        self.pinned = self.history = None
        self.is_moving = is_moving(tensor)
        self.has_slot = self.before.grad is not None
        self.reads_slot = self.writes_slot = self.ignores_slot = False

    def fix_history(self):
        """Have the program serve for this history alone, of which a pass has made constants."""
        if self.kind is Node:
            self.history = weakref.ref(self.before.fields[2])

    def expect(self, tensor: Tensor):
        """Have another tensor be what is looked for, of which that in the place is a part."""
        self.aval, self.tracked, self.kind = tensor._aval, tensor._tracked, kind_of(tensor)
        self.hooks, self.lists = traced_hooks.numbers_of(tensor), traced_hooks.kept_weakly(tensor)
        self.has_slot = _gradient(tensor) is not None

    def settle(self) -> Place:
        """The place itself, without what it knows of the tensor that was in it."""
        self.tensor = self.before = self.edge = self.array = None
        return self

    def is_over(self) -> bool:
        """Whether no tensor can be in this place any more."""
        return self.source.is_gone() or any(
            not set(numbers).issubset(hooks() or ()) for hooks, numbers in self.lists
        )

    @property
    def is_outside(self) -> bool:
        """Whether the function reaches the tensor by itself."""
        return isinstance(self.source, Outside)

    def suits(self, tensor: Tensor) -> bool:
        """Whether a tensor that was found can be in this place: `refusal` in a hurry."""
        if tensor._alias is not None or tensor._aval.dual or self.pinned is not None:
            return self.refusal(tensor) is None
        if tensor._aval is not self.aval or tensor._tracked is not self.tracked:
            return False
        leaf = tensor._leaf
        if tensor._node is not None or self.kind is not None or self.hooks:
            return self.refusal(tensor) is None
        if leaf is None:
            return not (self.reads_slot and self.has_slot)
        if self.reads_slot and (leaf.grad is not None) is not self.has_slot:
            return False
        if leaf.hooks or leaf.post_hooks or leaf.node() is not None:
            return self.refusal(tensor) is None
        return True

    def refusal(self, tensor: Tensor | None) -> str | None:
        """Why a tensor that was found cannot be in this place; None where it can."""
        if tensor is None:
            return "it is gone"
        if current(tensor)._aval.dual:
            mark(tensor)
        if tensor._aval is not self.aval:
            return f"it was {self.aval}, and is {tensor._aval}"
        if self.pinned is not None and self.pinned() is not tensor._raw:
            return "its numbers were looked at, and have changed"
        if tensor._tracked is not self.tracked:
            return f"requires_grad was {self.tracked}, and is {tensor._tracked}"
        if kind_of(tensor) is not self.kind:
            return "it was a leaf, and is none" if self.kind is None else "it has another history"
        if self.history is not None and self.history() is not tensor._node:
            return "a pass went on into its history, which is another one now"
        if self.reads_slot and (_gradient(tensor) is not None) is not self.has_slot:
            return f"its grad was {'there' if self.has_slot else 'None'}, and is not now"
        quiet = tensor._leaf is tensor._node is None
        if (() if quiet else traced_hooks.numbers_of(tensor)) != self.hooks:
            return "its hooks have changed"
        return None


def kind_of(tensor: Tensor):
    """None for a leaf, `Node` for a tensor with a history, and what marks an inference tensor."""
    node = tensor._node
    return (
        Node if isinstance(node, Node) else INFERENCE_TENSOR if node is INFERENCE_TENSOR else None
    )


def _gradient(tensor):
    return getattr(tensor._leaf, "grad", None)
