"""Tensors that share memory, on arrays that never change.

Tensors that alias one another share a `Storage`: the value of its owner, and the number of the last
write. Each has an `Alias`, which says where in the storage it lies and up to which write it has
read. A write gives one tensor a new array, left pending: when another alias is read, it is
carried into the storage, and the reader is cut anew. The graph follows at once, as its nodes need
no arrays: what a view was cut from gets the node of a write, and the view that of a cut from there.
So values and gradients are those of the same program without writes.

Where a tensor lies is a chain of `Step`s, each a call of a view operator. There are two kinds of
chain: a view is cut from its root, with which it shares values and history; a detached tensor is a
root of its own, with a history of its own, and shares values alone.
"""

from __future__ import annotations

import threading

import jax

from ..core import executor, view_ops
from ..core.aval import IMMEDIATE, traced_aval
from ..core.copy_slices import Step, Write, chain, in_order, same
from ..core.program import still
from ..tape import dual, interception, node_annotations, untracked_reason, version_counter
from ..tape.mode import INFERENCE, RECORD, current_mode, switch
from ..tape.node import Node, ProgramNode
from ..tape.record import apply
from ..tape.tensor import DERIVED, INFERENCE_TENSOR, Tensor, current, edge_of, known_edge_of, wrap
from ..tape.version_counter import counter_of
from .creation_meta import INFERENCE_MODE, NO_GRAD, NO_GRAD_SEVERAL, ONE_OF_SEVERAL, USUAL, Severed

# Reading brings pending writes in, which threads must not do to one storage at once.
lock = threading.RLock()


class Storage:
    """What aliases share.

    `array`, `aval`: the value of the owner, the tensor that was there first; `pending`: a write
    that it does not have yet, the place, its new array and what that shows; `epoch`: the number of
    the last write.
    """

    __slots__ = ("_address", "array", "aval", "epoch", "pending")

    def __init__(self, array, aval):
        self.array, self.aval = array, aval
        self.epoch, self.pending, self._address = 0, None, None

    @property
    def address(self) -> int:
        """Where the memory begins, for code that asks: a number that no other storage has."""
        with lock:
            if self._address is None:
                self._address = _reserve(self.aval.shape.numel() * self.aval.dtype.itemsize)
        return self._address


_free = 1 << 20


def _reserve(size: int) -> int:
    global _free
    start, _free = _free, _free + -(-max(size, 1) // 64) * 64
    return start


class Alias:
    """A tensor's place among those that share its memory.

    root: the alias of the tensor that it was cut from and shares its history with, None where it is
    a root itself; base: PyTorch's `_base`; steps: from the root to it; place: from the storage's
    owner to it; seen: the write up to which it has read; made: how; followed: of a root the last
    write that was recorded, of a view that of its root up to which it has followed; before: a
    tensor that took over what the handle was, before `t_` or `data` made it something else;
    tangents: of a root its own, of a view those of a dual that it was cut from.
    """

    __slots__ = (
        "base", "before", "followed", "made", "place", "root", "seen", "steps", "storage",
        "tangents",
    )  # fmt: skip

    def __init__(self, storage, place=None, root=None, base=None, steps=None, made=USUAL):
        self.tangents = None
        self.storage, self.place, self.root, self.base = storage, place, root, base
        self.steps, self.made, self.before = steps, made, None
        self.seen = storage.epoch
        self.followed = 0 if root is None else root.followed

    def refresh(self, tensor):
        """Bring into a tensor, which has this alias, what was written to others."""
        with lock:
            settle(self.storage)
            if self.seen == self.storage.epoch:
                return
            if self.root is not None and self.root.followed > self.followed:
                _follow_root(tensor, self)
            _put(tensor, _look(self.storage, self.place))
            self.seen = self.storage.epoch
            dual.mark(tensor)


def root_of(alias: Alias) -> Tensor:
    """The tensor that a view was cut from."""
    tensor = alias.before if alias.base is None else alias.base
    while tensor._alias is not alias.root:
        tensor = tensor._alias.before
    return tensor


# how aliases come to be


def watch(call):
    """Have the results of a view operator's call share memory with its input."""
    if view_ops.is_view(call) and call.attach is None:
        several = _attach_several if view_ops.is_several(call) else _attach_one
        call.attach = _detach if view_ops.is_detached(call) else several(view_ops.alone(call))
    return call


def _attach_one(call):
    def attach(leaves, results):
        source, (made,) = leaves[0], results
        alias = source._alias or begin(source)
        root = alias if alias.root is None else alias.root
        base = source if alias.base is None else alias.base
        how = alias.made
        if how < NO_GRAD and current_mode.get() is not RECORD:
            how = _outside_of_grad_mode(source, results, how)
        numbers = _data(leaves) if len(leaves) > 1 else ()
        made._alias = _further(alias, call, numbers, root, base, how)
        made._counter = source._counter
        if source._node is INFERENCE_TENSOR:
            made._node = INFERENCE_TENSOR

    return attach


def _attach_several(call):
    pieces = [view_ops.piece(call, call.outputs, i) for i in range(len(call.outputs))]
    for each, _ in pieces:
        watch(each)  # one may be cut anew

    def attach(leaves, results):
        source = leaves[0]
        alias = source._alias or begin(source)
        root = alias if alias.root is None else alias.root
        base = source if alias.base is None else alias.base
        how = alias.made or ONE_OF_SEVERAL
        if how < NO_GRAD and current_mode.get() is not RECORD:
            how = _outside_of_grad_mode(source, results, ONE_OF_SEVERAL)
        for made, (each, numbers) in zip(results, pieces, strict=True):
            made._alias = _further(alias, each, numbers, root, base, how)
            made._counter = source._counter
            if source._node is INFERENCE_TENSOR:
                made._node = INFERENCE_TENSOR

    return attach


def _further(alias, call, numbers, root, base, how):
    """The alias of what a call cuts out of a tensor."""
    steps = place = Step(call, numbers, alias.steps)
    if alias.place is not alias.steps:
        place = Step(call, numbers, alias.place)
    made = Alias(alias.storage, place, root, base, steps, how)
    if alias.root is not None:
        made.tangents = alias.tangents
    return made


def _outside_of_grad_mode(source, results, usual):
    """How a view that is not recorded came to be."""
    if current_mode.get() < INFERENCE:
        return NO_GRAD if usual == USUAL else NO_GRAD_SEVERAL
    if source._node is INFERENCE_TENSOR:
        return usual
    for made in results:
        made._node = None  # a view of a usual tensor is one
    return INFERENCE_MODE


def _data(leaves):
    return [leaf for leaf in leaves[1:] if type(leaf) is not Tensor]


def begin(tensor: Tensor) -> Alias:
    """The alias of a tensor that shares memory with no other yet."""
    with lock:
        if tensor._alias is None:
            counter_of(tensor)
            alias = Alias(Storage(tensor._raw, view_ops.plain(tensor._aval)))
            alias.tangents = None if tensor._leaf is None else tensor._leaf.tangents
            tensor._alias = alias
    return tensor._alias


def detached(tensor: Tensor) -> Tensor:
    """A tensor with the same memory and version and without history."""
    made = wrap(current(tensor)._raw, view_ops.plain(tensor._aval))
    if tensor._node is INFERENCE_TENSOR:
        made._node = INFERENCE_TENSOR
    _detach((tensor,), (made,))
    if interception.is_noted:
        untracked_reason.note_detached(tensor, made)
    return made


def _detach(leaves, results):
    (source,), (tensor,) = leaves, results
    alias = source._alias or begin(source)
    tensor._raw, tensor._counter = still(source._raw), source._counter
    tensor._alias = Alias(alias.storage, alias.place)


# writing


def assign(target: Tensor, made: Tensor, follow: bool):
    """Give a tensor, which is current, the value of another, and its history if `follow`."""
    refuse_leak(target, made)
    alias = target._alias
    if alias is None:
        take(target, made, follow)
    else:
        with lock:
            _assign_alias(target, alias, made, follow)
    counter_of(target).count()
    if interception.is_noted:
        untracked_reason.note_written(target, made)
    if made._aval.dual or target._aval.dual:
        dual.assign(target, made)
    if made._node is DERIVED:
        _mark(target)
    if version_counter.watching and follow and isinstance(made._node, version_counter.CheckedNode):
        made._node.written(made, target)


def _mark(target):
    """Note that a tensor, and what it was cut from, now holds what depends on something."""
    root = target if target._alias is None or target._alias.root is None else root_of(target._alias)
    for tensor in (target, root):
        if tensor._node is None and not tensor._tracked:
            tensor._node = DERIVED


def refuse_leak(target: Tensor, made: Tensor):
    """Raises RuntimeError where a tensor from outside of a trace would get a value of the trace."""
    leaks = target._aval.mode == IMMEDIATE and isinstance(made._raw, jax.core.Tracer)
    if leaks and executor.is_traced():
        raise RuntimeError(
            f"a tensor of shape {list(target.shape)} from outside of the function that is being "
            "compiled would be written to: pass it as an argument and return its new value"
        )


def _assign_alias(target, alias, made, follow):
    storage, pending = alias.storage, alias.storage.pending
    if pending is not None and not same(pending[0], alias.place):
        settle(storage)
    take(target, made, follow and alias.root is None)
    storage.epoch += 1
    alias.seen = storage.epoch
    if alias.place is None:
        storage.array, storage.pending = target._raw, None
    else:
        storage.pending = (alias.place, target._raw, target._aval)
    if follow and alias.root is not None:
        _lead_through_root(target, alias, made)
    elif follow and target._tracked:
        alias.followed = storage.epoch


def snapshot(tensor: Tensor) -> Tensor:
    """The tensor as it is now, for nobody to write to."""
    return wrap(tensor._raw, tensor._aval, tensor._tracked, tensor._node, tensor._nr)


def take(target: Tensor, made: Tensor, follow: bool):
    """A tensor's new array, and its new history if `follow`."""
    _put(target, made._raw)
    if follow:
        _follow(target, made._node, made._nr, made._tracked)


def _follow(target, node, output_nr, tracked):
    """A tensor's new place in the graph, where a gradient that it keeps is kept from now on."""
    before, number = target._node, target._nr
    nodes = isinstance(before, Node) and isinstance(node, Node)
    if nodes and before.retained_at(number) is target:
        retained = before.extras.retained
        before.extras.retained = {k: v for k, v in retained.items() if k != number}
        node.retain(output_nr, target)
    target._node, target._nr, target._tracked = node, output_nr, tracked


def _lead_through_root(target, alias, made):
    """The new history of a view that was written to, and of its root: a write, and a cut from it.

    Nodes without a kernel: neither a write nor, as a rule, a cut keeps arrays.
    """
    root = root_of(alias)
    if not made._tracked and not root._tracked:
        return
    calls, numbers = chain(alias.steps)
    program = executor.prepare(Write.of(root._aval, target._aval, calls))
    mask = (root._tracked, made._tracked, *[False] * len(numbers))
    edges = [known_edge_of(tensor) for tensor in (root, made) if tensor._tracked]
    _follow(
        root, node_annotations.note(ProgramNode(program.reverse(mask), numbers, edges)), 0, True
    )
    alias.root.followed = alias.storage.epoch
    _follow_root(target, alias)


def _follow_root(target, alias):
    """A view's place in the graph after its root's has changed."""
    root = root_of(alias)
    alias.followed = alias.root.followed
    if alias.made >= NO_GRAD:
        target._leaf = Severed(target)
        target._node, target._tracked = None, True
        return
    if not root._tracked:  # it was taken out of the graph since
        _follow(target, None, 0, False)
        return
    edge = known_edge_of(root)
    for call, numbers in in_order(alias.steps):
        reverse = call.reverse((True, *[False] * len(numbers)))
        if 0 in reverse.saved_inputs or reverse.saved_outputs:
            edge = _recorded(alias)
            break
        kept = [numbers[i - 1] for i in reverse.saved_inputs]
        edge = (node_annotations.note(ProgramNode(reverse, kept, [edge])), 0)
    _follow(target, *edge, True)


def _recorded(alias):
    """The edge of a view whose gradient reads arrays, which are computed."""
    before = switch(RECORD)
    try:
        return edge_of(cut(alias, alias.steps))
    finally:
        switch(before)


def _put(tensor, array):
    tensor._raw = array
    shown = tensor._aval
    if shown.mode == IMMEDIATE and isinstance(array, jax.core.Tracer):
        tensor._aval = traced_aval(shown, array)


def settle(storage: Storage):
    """Carry the pending write into the storage."""
    if storage.pending is None:
        return
    place, value, shown = storage.pending
    calls, numbers = chain(place)
    program = executor.prepare(Write.of(storage.aval, shown, calls))
    storage.array = program.kernel(storage.array, value, *numbers)
    storage.pending = None


# reading


def _look(storage, place):
    """What is at a place of a storage."""
    array = storage.array
    for call, numbers in in_order(place):
        array = executor.prepare(call).kernel(array, *numbers)
    return array


def cut(alias: Alias, steps: Step | None) -> Tensor:
    """What some of the steps lead to, from the root of a view's alias on."""
    made, path = current(root_of(alias)), []
    while steps is not None:
        path.append(steps)
        steps = steps.before
    for step in reversed(path):
        made = apply(executor.prepare(step.call), [made, *step.numbers])
        dual.share(made, alias, step)
    return made
