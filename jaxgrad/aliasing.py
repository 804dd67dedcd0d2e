"""Tensors that share memory, on arrays that never change.

Tensors that alias one another share a `Storage`: the value of its owner, and the number of the last
write. Each has an `Alias`, which says where in the storage it lies and up to which write it has
read. A write gives one tensor a new array and a new place in the graph, and is left pending; when
another alias is read, it is carried into the tensor that both were cut from, by a recorded program,
and the reader is cut anew. So values and gradients are those of the same program without writes.

Where a tensor lies is a chain of `Step`s, each a call of a view operator. There are two kinds of
chain: a view is cut from its root, with which it shares values and history; a detached tensor is a
root of its own, with a history of its own, and shares values alone.
"""

from __future__ import annotations

import threading
import weakref

import jax

from . import avals, execution, versions, views
from .modes import INFERENCE, PLAIN, RECORD, mode, switch
from .nodes import Node
from .recording import apply
from .tensor import INFERENCE_TENSOR, LeafState, Tensor, current, wrap
from .versions import counter_of
from .writing import Step, Write, after, chain, in_order, same

# How a view came to be, which decides whether grad mode lets it be written to.
USUAL, ONE_OF_SEVERAL, NO_GRAD, NO_GRAD_SEVERAL, INFERENCE_MODE = range(5)

# Reading brings pending writes in, which threads must not do to one storage at once.
lock = threading.RLock()


class Storage:
    """What aliases share.

    `array`, `aval`: the value of the owner, the tensor that was there first, before the `pending`
    write; `epoch`: the number of the last write.
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
    a root itself; base: PyTorch's `_base`; steps: from the root to it; place: of a root, the steps
    from the storage's owner to it; seen: the write up to which it has read; made: how; followed: of
    a root the last write that was recorded, of a view that of its root when it was made; before: a
    tensor that took over what the handle was, before `t_` or `data` made it something else.
    """

    __slots__ = (
        "base", "before", "followed", "made", "place", "root", "seen", "steps", "storage",
    )  # fmt: skip

    def __init__(self, storage, root=None, base=None, steps=None, made=USUAL):
        self.storage, self.root, self.base, self.steps, self.made = storage, root, base, steps, made
        self.seen = storage.epoch
        self.followed = 0 if root is None else root.followed
        self.place = self.before = None

    def refresh(self, tensor):
        """Bring into a tensor, which has this alias, what was written to others."""
        with lock:
            settle(self.storage)
            if self.seen == self.storage.epoch:
                return
            if self.root is not None:
                _cut_anew(tensor, self, root_of(self))
            else:
                _put(tensor, _look(self.storage, self.place))
            self.seen = self.storage.epoch


def root_of(alias: Alias) -> Tensor:
    """The tensor that a view was cut from."""
    tensor = alias.before if alias.base is None else alias.base
    while tensor._alias is not alias.root:
        tensor = tensor._alias.before
    return tensor


# how aliases come to be


def watch(call):
    """Have the results of a view operator's call share memory with its input."""
    if views.is_view(call) and call.attach is None:
        several = _attach_several if views.is_several(call) else _attach_one
        call.attach = _detach if views.is_detached(call) else several(views.alone(call))
    return call


def _attach_one(call):
    def attach(leaves, results):
        source, (made,) = leaves[0], results
        alias = source._alias or begin(source)
        root = alias if alias.root is None else alias.root
        base = source if alias.base is None else alias.base
        how = alias.made
        if not how and mode.get() is not RECORD:
            how = _outside_of_grad_mode(source, results, USUAL)
        numbers = _data(leaves) if len(leaves) > 1 else ()
        made._alias = Alias(alias.storage, root, base, Step(call, numbers, alias.steps), how)
        made._counter = source._counter

    return attach


def _attach_several(call):
    pieces = [views.piece(call, call.outputs, i) for i in range(len(call.outputs))]

    def attach(leaves, results):
        source = leaves[0]
        alias = source._alias or begin(source)
        root = alias if alias.root is None else alias.root
        base = source if alias.base is None else alias.base
        how = alias.made or ONE_OF_SEVERAL
        if not alias.made and mode.get() is not RECORD:
            how = _outside_of_grad_mode(source, results, ONE_OF_SEVERAL)
        for made, (each, numbers) in zip(results, pieces, strict=True):
            step = Step(each, numbers, alias.steps)
            made._alias = Alias(alias.storage, root, base, step, how)
            made._counter = source._counter

    return attach


def _outside_of_grad_mode(source, results, usual):
    """How a view that is not recorded came to be."""
    if mode.get() < INFERENCE:
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
            tensor._alias = Alias(Storage(tensor._raw, tensor._aval))
    return tensor._alias


def detached(tensor: Tensor) -> Tensor:
    """A tensor with the same memory and version and without history."""
    made = wrap(current(tensor)._raw, tensor._aval)
    if tensor._node is INFERENCE_TENSOR:
        made._node = INFERENCE_TENSOR
    _detach((tensor,), (made,))
    return made


def _detach(leaves, results):
    (source,), (tensor,) = leaves, results
    alias = source._alias or begin(source)
    place = alias.place if alias.root is None else alias.root.place
    tensor._raw, tensor._counter = source._raw, source._counter
    tensor._alias = Alias(alias.storage)
    tensor._alias.place = after(place, alias.steps)


# writing


class Pending:
    """A write that its root, held weakly, has not seen yet.

    `place`: of the root in the storage; `steps`: from the root to what was written, whose new value
    is `value`, a tensor that nobody else has; `follow`: whether the graph follows it.
    """

    __slots__ = ("follow", "place", "root", "steps", "value")

    def __init__(self, root, steps, value, follow):
        self.root, self.place = weakref.ref(root), root._alias.place
        self.steps, self.value, self.follow = steps, value, follow


def assign(target: Tensor, made: Tensor, follow: bool):
    """Give a tensor, which is current, the value of another, and its history if `follow`."""
    if target._aval.mode == avals.IMMEDIATE and isinstance(made._raw, jax.core.Tracer):
        _refuse_leak(target)
    alias = target._alias
    if alias is None:
        take(target, made, follow)
    else:
        with lock:
            _assign_alias(target, alias, made, follow)
    counter_of(target).count()
    if versions.watching and follow and isinstance(made._node, versions.CheckedNode):
        made._node.written(made, target)


def _refuse_leak(target):
    if execution.is_traced():
        raise RuntimeError(
            f"a tensor of shape {list(target.shape)} from outside of the function that is being "
            "compiled would be written to: pass it as an argument and return its new value"
        )


def _assign_alias(target, alias, made, follow):
    storage, pending = alias.storage, alias.storage.pending
    root = target if alias.root is None else root_of(alias)
    carried = follow
    if pending is not None and pending.root() is root and same(pending.steps, alias.steps):
        carried = follow or pending.follow
    else:
        settle(storage)
    take(target, made, follow)
    storage.epoch += 1
    alias.seen = storage.epoch
    if follow and target._tracked:
        root._alias.followed = storage.epoch
    if alias.steps is None and alias.place is None:
        storage.array, storage.pending = target._raw, None
    else:
        storage.pending = Pending(root, alias.steps, snapshot(target), carried)


def snapshot(tensor: Tensor) -> Tensor:
    """The tensor as it is now, for nobody to write to."""
    return wrap(tensor._raw, tensor._aval, tensor._tracked, tensor._node, tensor._nr)


def take(target: Tensor, made: Tensor, follow: bool):
    """A tensor's new array; if `follow` its new history too, along which a kept gradient goes."""
    _put(target, made._raw)
    if not follow:
        return
    before, output_nr = target._node, target._nr
    if isinstance(before, Node) and before.retained is not None:
        kept = before.retained.get(output_nr)
        if kept is not None and kept() is target and isinstance(made._node, Node):
            before.retained = {k: v for k, v in before.retained.items() if k != output_nr}
            made._node.retain(made._nr, target)
    target._node, target._nr, target._tracked = made._node, made._nr, made._tracked


def _put(tensor, array):
    tensor._raw = array
    shown = tensor._aval
    if shown.mode == avals.IMMEDIATE and isinstance(array, jax.core.Tracer):
        mode_now = avals.mode_of(array)
        tensor._aval = avals.aval(shown.shape, shown.dtype, mode_now, shown.strides)


def settle(storage: Storage):
    """Carry the pending write into its root and into the storage."""
    pending = storage.pending
    if pending is None:
        return
    root, value = pending.root(), pending.value
    if root is None:
        storage.array = _carried(storage, after(pending.place, pending.steps), value)
    else:
        if pending.steps is not None:
            _carry_into(root, pending)
            root._alias.seen = storage.epoch
        place = root._alias.place
        storage.array = root._raw if place is None else _carried(storage, place, root)
    storage.pending = None


def _carry_into(root, pending):
    calls, numbers = chain(pending.steps)
    inputs = [snapshot(root), pending.value, *numbers]
    program = Write.of(root._aval, pending.value._aval, calls)
    before = switch(RECORD if pending.follow else PLAIN)
    try:
        take(root, apply(execution.prepare(program), inputs), pending.follow)
    finally:
        switch(before)


def _carried(storage, place, value):
    """The storage's array with the value of a tensor at a place."""
    calls, numbers = chain(place)
    program = Write.of(storage.aval, value._aval, calls)
    return execution.prepare(program).kernel(storage.array, value._raw, *numbers)


# reading


def _look(storage, place):
    """What is at a place of a storage."""
    array = storage.array
    for call, numbers in in_order(place):
        array = execution.prepare(call).kernel(array, *numbers)
    return array


def _cut_anew(tensor, alias, root):
    """A view's value and history from those of its root."""
    untold = alias.made >= NO_GRAD
    before = switch(PLAIN if untold else RECORD)
    try:
        made = cut(alias, alias.steps)
    finally:
        switch(before)
    take(tensor, made, not untold)
    if untold and root._alias.followed > alias.followed:
        tensor._tracked, tensor._leaf = True, _Severed(alias.made)


def cut(alias: Alias, steps: Step | None) -> Tensor:
    """What some of the steps lead to, from the root of a view's alias on."""
    made = current(root_of(alias))
    for call, numbers in in_order(steps):
        made = apply(execution.prepare(call), [made, *numbers])
    return made


class _Severed(LeafState):
    """In the place of a leaf's state, of a view of which nobody can say what its history is."""

    __slots__ = ("made",)

    def __init__(self, made):
        self.made, self.grad = made, None

    def node(self):
        raise RuntimeError(
            f"A view was created in {WHERE[self.made]} mode and its base or another view of its "
            f"base has been modified inplace with grad mode enabled. {AMBIGUOUS}"
        )


WHERE = {NO_GRAD: "no_grad", NO_GRAD_SEVERAL: "no_grad", INFERENCE_MODE: "inference"}
AMBIGUOUS = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the no_grad block (if you "
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
