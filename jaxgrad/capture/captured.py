"""Captured tensors: tensors from outside that a traced function reads.

While the function is traced, the handle of a captured tensor holds a tracer. A `Snapshot` puts the
handle back afterwards; what remains is the guard on the tensor (capture/guards.py).
"""

from __future__ import annotations

import weakref

from ..tape import traced_hooks
from ..tape.node import Node
from ..tape.tensor import Tensor, is_moving, known_edge_of
from .guards import GradSource, HandleSource, TensorGuard, TensorSource


class Snapshot:
    """The state of a tensor when tracing captured it."""

    __slots__ = ("alias", "counter", "fields", "grad", "hooks", "leaf")

    def __init__(self, tensor: Tensor):
        self.fields = (
            tensor._raw, tensor._aval, tensor._node, tensor._nr, tensor._tracked
        )  # fmt: skip
        self.alias, self.leaf, self.counter = tensor._alias, tensor._leaf, tensor._counter
        self.grad = getattr(tensor._leaf, "grad", None)
        self.hooks = traced_hooks.HookSnapshot(tensor)

    @property
    def array(self):
        return self.fields[0]

    @property
    def node(self):
        return self.fields[2]

    def restore(self, tensor: Tensor):
        tensor._raw, tensor._aval, tensor._node, tensor._nr, tensor._tracked = self.fields
        tensor._alias, tensor._counter = self.alias, self.counter
        tensor._leaf = self.leaf
        if hasattr(self.leaf, "grad"):
            self.leaf.grad = self.grad
        self.hooks.restore()


class CapturedTensor(TensorGuard):
    """A tensor from outside that a traced function reads, and the guard on it.

    `number`: its position among the captured tensors of its scope; `writes_grad`: whether its
    `.grad` was set before it was read; `ignores_grad`: whether `.grad` is not an input, as when the
    function is replayed. Only while tracing: `tensor`; `snapshot`: its state before; `tracer`: what
    its handle held first; `edge`: where its gradient goes.
    """

    def __init__(self, tensor: Tensor, source: TensorSource, number: int):
        super().__init__(tensor, source)
        self.tensor, self.number, self.tracer = tensor, number, None
        self.edge = known_edge_of(tensor) if tensor._tracked else None
        self.snapshot = Snapshot(tensor)
        self.has_tangent = is_moving(tensor)
        self.writes_grad = self.ignores_grad = False

    def require_history(self):
        """Require the node that the tensor has: a pass made constants of its saved arrays."""
        if self.kind is Node:
            self.history = weakref.ref(self.snapshot.node)

    def release(self) -> CapturedTensor:
        """Drop what only tracing needs; gives the captured tensor itself."""
        self.tensor = self.snapshot = self.edge = self.tracer = None
        return self

    @property
    def is_outside(self) -> bool:
        """Whether the function reaches the tensor by itself, not as an argument or a `.grad`."""
        return isinstance(self.source, HandleSource)

    @property
    def position(self) -> int | None:
        """Its position among the arguments; None where it is not one."""
        return getattr(self.source, "position", None)

    @property
    def grad_owner(self) -> int | None:
        """The number of the captured tensor whose `.grad` it is; None for others."""
        return self.source.owner if isinstance(self.source, GradSource) else None
