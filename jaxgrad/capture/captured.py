"""Captured tensors: tensors from outside that a traced function reads.

While the function is traced, the handle of a captured tensor holds a tracer. A `Snapshot` puts the
handle back afterwards; what remains is the guard on the tensor (capture/guards.py).
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

from ..core import world
from ..core.aval import IMMEDIATE, SPREAD, make_aval, with_dual
from ..core.communication import is_global
from ..core.pending import value_of
from ..storage.alias import handle_at, snapshot
from ..storage.creation_meta import USUAL, Severed
from ..tape import traced_hooks
from ..tape.mode import RECORD, current_mode, switch
from ..tape.node import Node
from ..tape.tensor import (
    Tensor,
    abstract_value,
    alias_of,
    current,
    grad_of,
    has_tangent,
    held,
    is_tracked,
    kind_of,
    known_counter,
    known_edge_of,
    known_leaf_state,
    node_or_mark,
    output_number,
    restore_state,
    set_counter,
    set_leaf_state,
    set_node,
    state_of,
    wrap,
)
from .graph_input import ArgumentSource, GraphInput, HandleSource, TensorSource
from .guards import GradSource, TensorGuard, kind_of_history
from .known_numbers import PinnedNumbers
from .places import PlaceSource


class HeldSource(ArgumentSource):
    """A tensor that the function itself holds, which is passed as an argument."""


class Snapshot:
    """The state of a tensor when tracing captured it.

    `edge`: where its gradient goes; `root`: what it is a view of, None for none.
    """

    __slots__ = ("counter", "edge", "grad", "has_tangent", "hooks", "leaf", "root", "state")

    def __init__(self, tensor: Tensor):
        # the edge before any write: gradients of the function's input arrive there, while a write
        # in place moves the handle on
        is_known = is_tracked(tensor) and not isinstance(known_leaf_state(tensor), Severed)
        self.edge = known_edge_of(tensor) if is_known else None
        self.root, self.has_tangent = root_of_view(tensor), has_tangent(tensor)
        self.state, self.leaf = state_of(tensor), known_leaf_state(tensor)
        self.counter = known_counter(tensor)
        # not the property `grad`, which would report a read to the scope around
        self.grad = grad_of(tensor)
        self.hooks = traced_hooks.HookSnapshot(tensor)

    @property
    def array(self):
        return value_of(self.state[0])

    @property
    def alias(self):
        return self.state[5]

    @property
    def node(self):
        return self.state[2]

    def copy(self) -> Tensor:
        """A handle with the value and history of the tensor."""
        array, aval, node, output_nr, tracked, _ = self.state
        return wrap(array, aval, tracked, node, output_nr)

    def restore(self, tensor: Tensor):
        restore_state(tensor, self.state)
        set_leaf_state(tensor, self.leaf)
        set_counter(tensor, self.counter)
        # `.grad` lies in the leaf state itself, which the function may have changed
        if hasattr(self.leaf, "grad"):
            self.leaf.grad = self.grad
        self.hooks.restore()


class Moved(NamedTuple):
    """Marks a captured tensor that was given other memory. It has the storage that the tensor had
    until then, or None, and whether this storage had been written to.
    """

    storage: object
    is_written: bool


class CapturedTensor(TensorGuard):
    """A tensor from outside that a traced function reads, and the guard on it.

    `number`: its position among the captured tensors of its scope; `of_class`: its class; `marked`:
    the class that it is marked with, such as Parameter, or None; `writes_grad`: whether its `.grad`
    was set before it was read; `ignores_grad`: whether `.grad` is no input, as in a replay.

    These exist only while tracing: `tensor`; `snapshot`: its state before; `tracer`: the tracer
    that its handle held first; `entry`: its alias in the trace, if its memory is joined; `moved`: a
    `Moved` if it was given the memory of another tensor, else None; `led_past`: for a view that was
    written to, the node of its hooks and the edge behind that node.
    """

    def __init__(self, tensor: Tensor, source: TensorSource, number: int):
        super().__init__(tensor, source)
        self.tensor, self.number, self.tracer = tensor, number, None
        self.of_class, self.marked = type(tensor), kind_of(tensor)
        self.snapshot = Snapshot(tensor)
        self.writes_grad = self.ignores_grad = False
        self.moved, self.led_past, self.entry = None, (None, None), None

    def lead_past_hooks(self):
        """Give a written view a node for its hooks alone: the gradient of its root passes the
        write, and not the hooks of the view.
        """
        tensor, alias = current(self.tensor), self.snapshot.alias
        is_view = alias is not None and alias.root is not None
        node, number = node_or_mark(tensor), output_number(tensor)
        is_old = node is self.snapshot.node or node is self.led_past[0]
        if not is_view or is_old or not isinstance(node, Node):
            return
        before = switch(RECORD)
        try:
            output = snapshot(tensor)[...]
        finally:
            current_mode.set(before)
        self.led_past = node_or_mark(output), (node, number)
        set_node(tensor, node_or_mark(output), output_number(output))

    @property
    def is_hooked_view(self) -> bool:
        """Whether it was a view when it was captured, and the gradient of its history has hooks."""
        alias, node = self.snapshot.alias, self.snapshot.node
        is_view = alias is not None and alias.root is not None
        is_view = is_view and isinstance(node, Node)
        return is_view and bool(traced_hooks.hooks_at(*self.snapshot.edge))

    @property
    def may_refuse_writes(self) -> bool:
        """Whether it was a view that PyTorch may refuse to write to, by how it was created or by
        what it is a view of.
        """
        root = self.snapshot.root
        if root is None or not is_tracked(root):
            return self.creation != USUAL and is_tracked(self.tensor)
        return self.creation != USUAL or kind_of_history(root) is None

    @property
    def creation(self) -> int:
        """How it was created, if it was a view (storage/creation_meta.py)."""
        return USUAL if self.snapshot.alias is None else self.snapshot.alias.creation

    @property
    def is_elsewhere(self) -> bool:
        """Whether it shows other memory than at first, or the same in another shape."""
        return self.is_elsewhere_than(with_dual(self.aval, False))

    def is_elsewhere_than(self, shown) -> bool:
        """See `is_elsewhere`; shown: the abstract value of the tensor at first."""
        alias = alias_of(self.tensor)
        is_view = alias is not None and alias.root is not None
        return self.moved is not None or is_view or outside_aval(self.tensor) is not shown

    def record_moved(self, donor: Tensor):
        """Record that it is about to be given the memory of `donor`."""
        alias, other = alias_of(self.tensor), alias_of(donor)
        if alias is not None and other is not None and alias.storage is other.storage:
            return
        if self.moved is None:
            is_written = held(current(self.tensor)) is not self.tracer
            self.moved = Moved(alias and alias.storage, is_written)

    def pin(self):
        """Require the numbers that the tensor has: the function looked at them."""
        if self.pinned is None:
            self.pinned = PinnedNumbers(self.snapshot.array)

    def require_history(self):
        """Require the node that the tensor has: a pass made constants of its saved arrays."""
        if self.kind is Node:
            self.history = weakref.ref(self.snapshot.node)

    def release(self) -> CapturedTensor:
        """Drop what only tracing needs; gives the captured tensor itself."""
        # a program that held the tensor would keep it alive, and its guard could never expire
        self.tensor = self.snapshot = self.tracer = self.moved = self.led_past = None
        self.is_joined, self.entry = self.entry is not None, None
        return self

    def find_at(self, place: PlaceSource):
        """Find the tensor at a place from now on, where each call may find another one."""
        self.source, self.reference = place, None

    def has_same_source(self, other: CapturedTensor) -> bool:
        """Whether calls find it where they find a captured tensor of another program."""
        if self.is_of_place and other.is_of_place:
            return self.source.is_same(other.source)
        return self.reference is not None and self.reference is other.reference

    @property
    def is_exchanged(self) -> bool:
        """Whether a call may have another tensor in its place."""
        return not isinstance(self.source, HandleSource)

    @property
    def is_of_place(self) -> bool:
        return isinstance(self.source, PlaceSource)

    @property
    def is_outside(self) -> bool:
        """Whether the function reaches the tensor by itself, not as an argument or a `.grad`."""
        is_own = isinstance(self.source, HandleSource | PlaceSource | HeldSource)
        return is_own or getattr(self.source, "is_outside", False)

    @property
    def position(self) -> int | None:
        """Its position among the arguments; None where it is not one."""
        return getattr(self.source, "position", None)

    @property
    def grad_owner(self) -> int | None:
        """The number of the captured tensor whose `.grad` it is; None for others."""
        return self.source.owner if isinstance(self.source, GradSource) else None


class TensorInput(GraphInput):
    """The array of a captured tensor."""

    def __init__(self, captured: CapturedTensor):
        self.captured, self.key = captured, ("tensor", captured.number)
        self.description = self.description if captured.grad_owner is None else "a .grad"


def root_of_view(tensor: Tensor) -> Tensor | None:
    """The root of a view; None for other tensors, and where a trace has captured it."""
    alias = alias_of(tensor)
    return None if alias is None or alias.root is None else handle_at(alias.base, alias.root)


def outside_aval(tensor: Tensor):
    """The abstract value of a traced tensor in a call, where its array is concrete."""
    shown = abstract_value(tensor)
    mode = SPREAD if world.is_several() and is_global(held(tensor)) else IMMEDIATE
    return make_aval(tuple(shown.shape), shown.dtype, mode, shown.strides)
