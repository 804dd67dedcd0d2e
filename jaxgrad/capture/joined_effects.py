"""Side effects on joined memory (capture/joined_memory.py) and on the tensors there."""

from __future__ import annotations

import contextlib

from ..storage.alias import handle_at
from ..tape import traced_hooks
from ..tape.node import Node
from ..tape.tensor import current, held
from . import RunsUncompiled, SharesMemory
from .captured import CapturedTensor, outside_aval
from .joined_memory import JoinedTensors, OwnerSource
from .outputs import OutputSpec
from .shared_memory import SharedMemory
from .side_effects import UNCHANGED, OutputTensor, TensorEffect, refused_view

# inlined: the accessors of tape/tensor.py


class OwnerEffect(TensorEffect):
    """The new value of a joined memory."""

    __slots__ = ()

    def __init__(self, outputs: OutputSpec, captured: CapturedTensor):
        owner = current(captured.tensor)
        self.number, self.known = captured.number, (captured.aval, False)
        self.value = self.place = self.past = None
        self.writes, self.grad, self.tracked = 0, UNCHANGED, False
        if held(owner) is not captured.tracer:
            self.value = OutputTensor(outputs, owner)

    def record_grad(self, outputs, captured):
        pass

    @property
    def is_plain(self):
        return False

    def changes(self, run):
        return []


class MemberEffect(TensorEffect):
    """The changes of a tensor that shows joined memory, except those of its value.

    `node`: the number of its node among the outputs with a history, None for none, or UNCHANGED;
    `follows`: whether this node is the history of its memory, which views of the memory follow;
    `sets_tracked`: whether it is a leaf whose requires_grad was set; `is_tracked`: the
    requires_grad that goes with the node; `loses_node`: whether it shows another part of memory,
    without its old history.
    """

    __slots__ = ("follows", "is_tracked", "loses_node", "node", "sets_tracked")

    def __init__(self, outputs: OutputSpec, captured: CapturedTensor):
        tensor, entry, snapshot = current(captured.tensor), captured.entry, captured.snapshot
        self.number, self.known = captured.number, (captured.aval, captured.tracked)
        self.value = self.place = self.past = None
        self.writes, self.grad = outputs.scope.write_count(captured), UNCHANGED
        self.tracked, self.node = tensor._tracked, UNCHANGED
        self.follows = entry.root is None and entry.followed > 0
        self.loses_node = captured.kind is Node and not isinstance(tensor._node, Node)
        self.sets_tracked = tensor._node is snapshot.node or tensor._alias is not entry
        if tensor._alias is not entry:
            self.place = outputs.add_output(tensor)
            self.value = outputs.created[self.place]
        if entry.root is None or has_left_root(tensor, entry):
            self.record_node(outputs, captured)
            self.follows |= entry.root is not None and self.node is not UNCHANGED
        elif tensor._node is not snapshot.node and has_hooks(tensor):
            # of a node that is made anew when the view is read after a call
            raise refused_view(outputs.scope.name, captured)

    def record_node(self, outputs, captured):
        """Record the history of the tensor that shows the memory as this tensor did at first."""
        handle = handle_at(captured.tensor, captured.entry)
        if handle is None:
            return
        current(handle)
        node, number = handle._node, handle._nr
        if (node, number) == (captured.snapshot.node, captured.snapshot.state[3]):
            return
        self.node, self.is_tracked = None, handle._tracked
        if isinstance(node, Node):
            self.node = outputs.root_number((node, number), outside_aval(handle), held(handle))

    def is_needed(self, captured):
        is_set = self.sets_tracked and self.tracked is not captured.tracked
        is_kept = self.value is None and self.grad is UNCHANGED and not self.writes
        return not is_kept or self.node is not UNCHANGED or is_set

    @property
    def is_plain(self):
        return False

    def changes(self, run):
        tensor = run.tensors[self.number]
        values, alias, handle = super().changes(run), tensor._alias, tensor
        if self.place is not None:
            # another handle shows the memory as this one did, where views of that exist
            shown = next(value for _, name, value in values if name == "_alias")
            handle = None if shown is None else handle_at(shown.before, alias)
            values += [(tensor, "_node", None), (tensor, "_nr", 0)] if self.loses_node else ()
        if self.node is not UNCHANGED and handle is not None:
            node = None if self.node is None else run.nodes[self.node]
            values += [(handle, "_node", node), (handle, "_nr", self.node or 0)]
            values.append((handle, "_tracked", self.is_tracked))
        if self.follows:
            values.append((alias, "followed", alias.storage.epoch))
        return values


def has_left_root(tensor, entry) -> bool:
    """Whether a view has a history that its root has no more."""
    root = handle_at(entry.before if entry.base is None else entry.base, entry.root)
    return tensor._tracked and root is not None and not root._tracked


def has_hooks(tensor) -> bool:
    """Whether the gradient of a computed tensor has hooks."""
    node = tensor._node
    return isinstance(node, Node) and bool(traced_hooks.hooks_at(node, tensor._nr))


class JoinedShared(SharedMemory):
    """Which tensors share memory after a call, where captured ones are joined."""

    def add_captured(self, captured):
        entry = captured.entry
        if entry is None:
            super().add_captured(captured)
            return
        if captured.tensor._counter is not None:
            self.counters[id(captured.tensor._counter)] = captured.number
        self.counts[id(entry.storage)] += 2  # the tensors outside show it, also unread ones
        self.roots[id(entry)] = "captured", captured.number
        if isinstance(captured.source, OwnerSource):
            self.donors[id(entry.storage)] = "captured", captured.number

    def separate(self) -> JoinedTensors:
        self.refuse_shared()
        written = [number for number in self.outputs.written if number not in self.outputs.joined]
        return JoinedTensors(written, list(self.alone), self.outputs.groups)


class JoinedOutput(OutputSpec):
    """The outputs and side effects of a function that joins memory."""

    memory_class = JoinedShared

    def __init__(self, scope, held):
        self.groups = list(scope.groups.values())
        members = [
            capture.number for capture in scope.captured.values() if capture.entry is not None
        ]
        self.joined = frozenset(members)
        super().__init__(scope, held)

    def effect_of(self, captured):
        if captured.entry is None:
            return super().effect_of(captured)
        is_owner = isinstance(captured.source, OwnerSource)
        return (OwnerEffect if is_owner else MemberEffect)(self, captured)


@contextlib.contextmanager
def joined_after_errors(scope):
    """Ask for another trace if the block fails and captured tensors share memory: the error may
    come from tracing them separately.
    """
    try:
        yield
    except Exception as error:
        aliases = [captured.snapshot.alias for captured in scope.captured.values()]
        storages = {alias.storage for alias in aliases if alias is not None}
        if (
            scope.joined is None
            or storages <= scope.joined
            or isinstance(error, SharesMemory | RunsUncompiled)
        ):
            raise
        raise SharesMemory(str(error), *storages) from error
