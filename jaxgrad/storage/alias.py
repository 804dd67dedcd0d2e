"""Functionalization: tensors that share memory, on arrays that never change.

Tensors that alias one another share a `Storage`, which holds the value of its owner and counts the
writes. Each has an `Alias`: its place in the storage, and the last write that it has read. A write
gives one tensor a new array and leaves a pending write behind. When another alias is read, `settle`
carries the pending write into the storage, and the reader is regenerated from it. The graph changes
at once, since its nodes need no arrays: the root gets the node of the write (CopySlices), and the
view gets the node of a cut from the root. So values and gradients equal those of the same program
without writes.

A place is a chain of `ViewStep`s, each a call of a view operator. A view shares value and history
with the root of its chain. A detached tensor is a root with its own history and shares only values.
"""

from __future__ import annotations

import copy
import weakref

import jax

from ..core import executor, host_values, spread, view_ops
from ..core.aval import is_concrete, traced_aval
from ..core.copy_slices import CopySlices, ViewStep, chain, in_order, same
from ..core.pending import Pending
from ..core.program import stop_gradient
from ..core.unrecorded import unrecorded, with_derivatives_of
from ..tape import (
    dual,
    handle_lock,
    interception,
    mode,
    node_annotations,
    untracked_reason,
    version_counter,
)
from ..tape.mode import INFERENCE, RECORD, current_mode, switch
from ..tape.node import Node, ProgramNode
from ..tape.record import apply, is_differentiated, leaves_out
from ..tape.symbolic_number import Varying
from ..tape.tensor import (
    DERIVED,
    INFERENCE_TENSOR,
    Tensor,
    current,
    edge_of,
    held,
    known_edge_of,
    wrap,
)
from ..tape.version_counter import counter_of
from .address import address_of
from .creation_meta import (
    INFERENCE_MODE,
    NO_GRAD,
    NO_GRAD_SEVERAL,
    ONE_OF_SEVERAL,
    USUAL,
    Severed,
    origin_of,
    view_of_view,
)

# inlined: the accessors of tape/tensor.py


class Storage:
    """The memory that aliases share.

    array, aval: the value of the owner, the first tensor, or of a row of all elements once `relay`
    made it one; pending: a write that the array does not include yet, as (place, new array, its
    abstract value); epoch: the number of the last write; home: the memory whose address code has
    asked for (address.py); owner: the abstract value of the owner, and the step that cuts it from
    the row, None until there is a row; untyped: a weak reference to the storage as users see it.
    """

    __slots__ = ("__weakref__", "array", "aval", "epoch", "home", "owner", "pending", "untyped")

    def __init__(self, array, aval):
        self.array, self.aval = array, aval
        self.epoch, self.pending, self.home, self.owner, self.untyped = 0, None, None, None, None

    def __deepcopy__(self, memo):
        with handle_lock.lock:
            settle(self)
            copied = Storage(self.array, self.aval)
            copied.owner = self.owner
            return copied

    def relay(self, array, aval, step: ViewStep):
        """Hold the elements as a row, or as a row of another length. step: the call of `as_strided`
        that cuts the owner from a row. All aliases read again, at their places in the row.
        """
        with handle_lock.lock:
            settle(self)
            owner = self.owner or (self.aval, step)
            self.owner, self.array, self.aval = owner, array, aval
            self.epoch += 1

    @property
    def address(self) -> int:
        """Where the first element is, or would be where the owner has strides; 0 without bytes.
        Raises RuntimeError where no one memory has the bytes.
        """
        with handle_lock.lock:
            settle(self)
            return address_of(self)


class Alias:
    """The place of a tensor in the memory that it shares.

    root: the alias of the tensor that it was cut from, None for a root; base: PyTorch's `_base`;
    steps: the view calls from the root; place: the view calls from the storage's array; seen: the
    last write that it has read; creation: how it was created (creation_meta.py); followed: the last
    recorded write of a root, or the write up to which a view's history is current; written: the
    last write to a root and its views; before: the tensor that stands for the handle before `t_` or
    `data=` changed it; tangents: those of a root, or of a view that holds its own.
    """

    __slots__ = (
        "_place",
        "_whole",
        "base",
        "before",
        "creation",
        "followed",
        "root",
        "seen",
        "steps",
        "storage",
        "tangents",
        "written",
    )

    def __init__(self, storage, place=None, root=None, base=None, steps=None, creation=USUAL):
        self.tangents = None
        self.storage, self.root, self.base = storage, root, base
        self._place, self._whole = place, storage.aval  # its place is a part of it
        self.steps, self.creation, self.before = steps, creation, None
        self.seen = self.written = storage.epoch
        self.followed = 0 if root is None else root.followed

    @property
    def place(self) -> ViewStep | None:
        storage = self.storage
        if self._whole is not storage.aval:
            whole, step = storage.owner
            first = chain_from(storage.aval, step) if self._whole is whole else None
            self._place = chain_from(storage.aval, self._place, first)
            self._whole = storage.aval
        return self._place

    def refresh(self, tensor):
        """Bring the tensor of this alias up to date with the writes to other aliases."""
        with handle_lock.lock:
            settle(self.storage)
            # another thread brought it up to date while this one waited for the lock
            if self.seen == self.storage.epoch:
                return
            # history first: a view of a root that left the graph leaves it too
            if self.root is not None and self.root.followed > self.followed:
                _follow_root(tensor, self)
            array, root = _look(self.storage, self.place), self.root or self
            if interception.read is not None and is_differentiated():
                # a write to another root of the memory changes the value, and no derivative
                if root.written != self.storage.epoch:
                    _refuse_tangents(root.written > self.seen)
                    array = with_derivatives_of(array, tensor._raw)
                # the history of the memory is that of another tensor, unless a write moved this one
                if not tensor._tracked:
                    array = unrecorded(array)
                elif root.followed <= self.seen:
                    array = unrecorded(array, tensor._raw)
            _put(tensor, array)
            self.seen = self.storage.epoch
            dual.mark(tensor)


def root_of(alias: Alias) -> Tensor:
    """The root tensor of a view."""
    tensor = alias.before if alias.base is None else alias.base
    while tensor._alias is not alias.root:
        tensor = tensor._alias.before
    return tensor


def handle_at(tensor: Tensor | None, alias: Alias) -> Tensor | None:
    """The handle that has an alias which a tensor has now or had before `t_` or `data=`; None if it
    is gone, or has lost the alias in a trace.
    """
    while tensor is not None and tensor._alias is not alias:
        tensor = None if tensor._alias is None else tensor._alias.before
    return tensor


def known_offset_of(tensor: Tensor) -> int | None:
    """The number of elements of the storage before the first element of a tensor; None if a view
    was taken at a traced index.
    """
    behind = _bytes_before(None if tensor._alias is None else tensor._alias.place)
    return None if behind is None else behind // tensor._aval.dtype.itemsize


def offset_of_argument(tensor: Tensor) -> int:
    """The number of elements of the storage before the argument of a transform for which the tensor
    or its base stands; 0 for other tensors.
    """
    alias = tensor._alias
    leaf = (tensor if alias is None or alias.base is None else alias.base)._leaf
    return 0 if leaf is None or leaf.argument is None else leaf.argument.storage_offset()


def offset_of(place: ViewStep | None) -> int | None:
    """As `known_offset_of`, in bytes, for a place in a storage."""
    return _bytes_before(place)


def _bytes_before(step):
    behind = 0
    for call, numbers in in_order(step):
        if any(isinstance(number, jax.core.Tracer) for number in numbers):
            return None
        # a compiled function may have computed a number
        _, elements = view_ops.layout(call, [int(number) for number in numbers])
        itemsize = call.outputs[0].dtype.itemsize
        if view_ops.is_rounded(call):
            behind = behind // call.inputs[0].dtype.itemsize * itemsize
        behind += elements * itemsize
    return behind


def flags_of(place: ViewStep | None) -> tuple[bool, bool] | None:
    """Whether views lead to the conjugate of the memory, and whether to the negative; None if that
    is not all.
    """
    is_conj = is_neg = False
    for call, _ in in_order(place):
        name, source, target = call.primitive.name, call.inputs[0].dtype, call.outputs[0].dtype
        if name == "conj":
            is_conj ^= source.is_complex
        elif name == "_neg_view":
            is_neg ^= True
        elif source is not target and not view_ops.is_rounded(call):
            if (is_conj and name not in ("real", "imag")) or is_neg:
                return None
            is_conj, is_neg = False, is_conj and name == "imag"
    return is_conj, is_neg


# creating aliases


def watch(call):
    """Make the results of a view operator's call share memory with its input."""
    if "parts" in call.primitive.rule.tags:
        call.attach = _attach_parts(call)
    elif view_ops.is_view(call) and call.attach is None:
        several = _attach_several if view_ops.is_several(call) else _attach_one
        if not view_ops.is_detached(call):
            call.attach = several(view_ops.alone(call))
        else:
            call.attach = _detach if call.primitive.name == "detach" else _attach_detached(call)
    return call


def _attach_one(call):
    is_wider = call.outputs[0].dtype.itemsize > call.inputs[0].dtype.itemsize
    is_wider = is_wider and not view_ops.is_rounded(call)

    def attach(leaves, results):
        source, (view,) = leaves[0], results
        alias = source._alias or begin(source)
        if is_wider:
            _check_alignment(call, alias.place)
        root = alias if alias.root is None else alias.root
        base = source if alias.base is None else alias.base
        how = alias.creation
        if current_mode.get() is not RECORD:
            how = _outside_of_grad_mode(source, results, how, how)
        numbers = _data(leaves) if len(leaves) > 1 else ()
        view._alias = _further(alias, call, numbers, root, base, how)
        view._counter = source._counter
        if source._node is INFERENCE_TENSOR:
            view._node = INFERENCE_TENSOR

    return attach


def _check_bits(call, place):
    """Raise RuntimeError for the bytes of a tensor that shows what is not in its memory."""
    is_conj, is_neg = flags_of(place) or (False, False)
    if is_conj or is_neg:
        kind = "conjugate view tensors" if is_conj else "tensors with negative bit set"
        raise RuntimeError(
            f"torch.Tensor.view is not supported for {kind} when converting to a different dtype: "
            f"take resolve_{'conj' if is_conj else 'neg'}() of the one of shape "
            f"{list(call.inputs[0].shape)} first"
        )


def _check_alignment(call, place):
    """Raise RuntimeError for a view as wider elements that begins inside of one of them."""
    old, new = call.inputs[0].dtype, call.outputs[0].dtype
    offset, ratio = (_bytes_before(place) or 0) // old.itemsize, new.itemsize // old.itemsize
    if not offset % ratio:
        return
    if call.primitive.name == "view_as_complex":
        raise RuntimeError(
            "Tensor must have a storage_offset divisible by 2: view_as_complex got one of shape "
            f"{list(call.inputs[0].shape)} at the offset {offset}; take its clone()"
        )
    raise RuntimeError(
        f"self.storage_offset() must be divisible by {ratio} to view {old.scalar_type} as "
        f"{new.scalar_type} (different element sizes), but got {offset}: take its clone()"
    )


def _attach_several(call):
    pieces = [view_ops.piece(call, call.outputs, i) for i in range(len(call.outputs))]
    for piece, _ in pieces:
        watch(piece)  # a piece may be regenerated

    def attach(leaves, results):
        source = leaves[0]
        alias = source._alias or begin(source)
        root = alias if alias.root is None else alias.root
        base = source if alias.base is None else alias.base
        how = alias.creation or ONE_OF_SEVERAL
        if current_mode.get() is not RECORD:
            how = _outside_of_grad_mode(source, results, how, ONE_OF_SEVERAL)
        for view, (piece, numbers) in zip(results, pieces, strict=True):
            view._alias = _further(alias, piece, numbers, root, base, how)
            view._counter = source._counter
            if source._node is INFERENCE_TENSOR:
                view._node = INFERENCE_TENSOR

    return attach


def _attach_parts(call):
    """Attach tensors that show parts of a memory, each with a history and a version of its own."""
    pieces = [view_ops.piece(call, call.outputs, i) for i in range(len(call.outputs))]

    def attach(leaves, results):
        source = leaves[0]
        alias = source._alias or begin(source)
        for tensor, (piece, numbers) in zip(results, pieces, strict=True):
            held = None if tensor._leaf is None else tensor._leaf.tangents
            tensor._alias = Alias(alias.storage, ViewStep(piece, numbers, alias.place))
            tensor._alias.tangents = held

    return attach


def _further(alias, call, numbers, root, base, how):
    """The alias of the view that a call cuts from a tensor."""
    steps = place = ViewStep(call, numbers, alias.steps)
    if alias.place is not alias.steps:
        # steps begin at the root, and the place at the owner: they differ below a detached view
        place = ViewStep(call, numbers, alias.place)
    view_alias = Alias(alias.storage, place, root, base, steps, how)
    if alias.root is not None:
        view_alias.tangents = alias.tangents
    return view_alias


def _outside_of_grad_mode(source, results, how, usual):
    """The creation meta of a view that is not recorded; how: the creation meta of its source."""
    if current_mode.get() < INFERENCE:
        unrecorded = NO_GRAD if usual == USUAL else NO_GRAD_SEVERAL
    elif source._node is INFERENCE_TENSOR:
        unrecorded = usual
    else:
        unrecorded = INFERENCE_MODE
        for view in results:
            view._node = None  # a view of a normal tensor is a normal tensor
    return unrecorded or how


def _data(leaves):
    # of a symbolic number its array, which tells whether two views have one place
    numbers = [leaf for leaf in leaves[1:] if not isinstance(leaf, Tensor)]
    return [number._array if type(number) is Varying else number for number in numbers]


def chain_from(shown, place: ViewStep | None, step: ViewStep | None = None) -> ViewStep | None:
    """The calls of a place on a source of another abstract value, after a step if there is one."""
    shown = shown if step is None else step.call.outputs[0]
    for call, numbers in in_order(place):
        again = call.primitive.call(call.structure, (shown, *call.inputs[1:]))
        numbers = [n if isinstance(n, jax.core.Tracer) else int(n) for n in numbers]
        shown, step = again.outputs[0], ViewStep(watch(again), numbers, step)
    return step


def copy_place(source: Tensor, clone: Tensor, memo: dict):
    """Give the copy of a tensor its place in the copied memory, which `memo` has or gets."""
    counter_of(clone)  # for its views; as in PyTorch, copies that share memory count by themselves
    clone._alias = Alias(copy.deepcopy(source._alias.storage, memo), source._alias.place)


def begin(tensor: Tensor) -> Alias:
    """The alias of a tensor, created for one that has not shared its memory."""
    with handle_lock.lock:
        if tensor._alias is None:
            # views take over the counter, so it must exist before the first of them
            counter_of(tensor)
            alias = Alias(Storage(tensor._raw, view_ops.plain(tensor._aval)))
            alias.tangents = None if tensor._leaf is None else tensor._leaf.tangents
            tensor._alias = alias
    return tensor._alias


def detached(tensor: Tensor) -> Tensor:
    """A tensor with the same memory and version, without history."""
    handle = wrap(current(tensor)._raw, view_ops.plain(tensor._aval))
    if tensor._node is INFERENCE_TENSOR:
        handle._node = INFERENCE_TENSOR
    _detach((tensor,), (handle,))
    if interception.is_noted:
        untracked_reason.note_detached(tensor, handle)
    return handle


def _detach(leaves, results):
    (source,), (tensor,) = leaves, results
    # another thread's write must not come between the array and its place
    with handle_lock.lock:
        tensor._raw = stop_gradient(current(source)._raw)
        place_detached(tensor, source, ())


def _attach_detached(call):
    """Attach a view that leaves the graph and has another array than its source."""
    is_wider = call.outputs[0].dtype.itemsize > call.inputs[0].dtype.itemsize

    def attach(leaves, results):
        (source,), (tensor,) = leaves, results
        with handle_lock.lock:
            if source._alias is not None:
                _check_bits(call, source._alias.place)
            if is_wider:
                _check_alignment(call, None if source._alias is None else source._alias.place)
            place_detached(tensor, source, [(call, ())])
            tensor._alias.seen -= 1  # another thread may have written since the array was computed

    return attach


def place_detached(tensor: Tensor, source: Tensor, steps):
    """Give a tensor the memory of another at the place that view calls lead to, as a root.

    steps: the calls in order, each with its numbers.
    """
    alias = source._alias or begin(source)
    place = alias.place
    for call, numbers in steps:
        place = ViewStep(call, numbers, place)
    tensor._alias, tensor._counter = Alias(alias.storage, place), source._counter
    tensor._alias.written = -1  # the memory has the tangents of the source


def place_inside(tensor: Tensor, alias: Alias):
    """Give a tensor an alias, with the value and the history at that place."""
    settle(alias.storage)
    tensor._alias, alias.seen = alias, alias.storage.epoch
    if alias.root is not None and alias.root.followed > alias.followed:
        _follow_root(tensor, alias)
    _put(tensor, _look(alias.storage, alias.place))


def with_history(tensor: Tensor) -> Tensor:
    """The tensor itself, with its present history; its value may be out of date."""
    alias = tensor._alias
    if alias is not None and alias.root is not None and alias.root.followed > alias.followed:
        with handle_lock.lock:
            _follow_root(tensor, alias)
    return tensor


def place_view(tensor: Tensor, source: Tensor, steps, creation: int):
    """Make a tensor a view of another by view calls, as `watch` does when they run.

    steps: as for `place_detached`; creation: how the calls alone make a view.
    """
    alias = source._alias or begin(source)
    root = alias if alias.root is None else alias.root
    base, how = source if alias.base is None else alias.base, view_of_view(alias.creation, creation)
    for call, numbers in steps:
        alias = _further(alias, call, numbers, root, base, how)
    tensor._alias, tensor._counter = alias, source._counter


# writing


def assign(target: Tensor, value: Tensor, follow: bool):
    """Give an up-to-date tensor the value of another, and its history if `follow`."""
    refuse_leak(target, value)
    if spread.meshes:
        value = _placed_as(value, target)
    alias = target._alias
    if alias is None:
        if target._tracked and interception.read is not None and leaves_out():
            value = wrap(unrecorded(value._raw, target._raw), value._aval)  # it keeps its history
        take(target, value, follow)
    else:
        with handle_lock.lock:
            try:
                _assign_alias(target, alias, value, follow)
            except KeyboardInterrupt:
                # once more comes to the same, and half of it would part the aliases
                _assign_alias(target, alias, value, follow)
                raise
    counter_of(target).count()
    if follow and value._tracked and mode.written.get() is not None:
        mode.written.get().extend(map(weakref.ref, (target, _root(target))))
    if interception.is_noted:
        untracked_reason.note_written(target, value)
    if value._aval.dual or target._aval.dual:
        dual.assign(target, value)
    # a Function's forward may hide an input in a buffer that it writes to and saves
    if value._node is DERIVED:
        _mark(target)
    if version_counter.watching and follow and isinstance(value._node, version_counter.CheckedNode):
        value._node.written(value, target)


def _placed_as(value: Tensor, target: Tensor) -> Tensor:
    """A value to be written, sharded as the tensor that it replaces."""
    if host_values.is_new(target._raw):
        return value  # NumPy's values are on no mesh
    array = held(value)
    placed = spread.placed_as(array, held(target))
    if placed is array:
        return value
    return wrap(placed, value._aval, value._tracked, value._node, value._nr)


def _root(target):
    alias = target._alias
    return target if alias is None or alias.root is None else root_of(alias)


def _mark(target):
    """Mark a tensor and its root as dependent on a tensor that requires grad."""
    for tensor in (target, _root(target)):
        if tensor._node is None and not tensor._tracked:
            tensor._node = DERIVED


def refuse_leak(target: Tensor, value: Tensor):
    """Raise RuntimeError if a tensor from outside a trace would get a tracer as its value."""
    if not is_from_trace(value._raw):
        return
    # the memory, since a view by a traced index is traced even where its base is from outside
    shown = target._aval if target._alias is None else target._alias.storage.aval
    if is_concrete(shown.mode) and executor.is_traced():
        raise RuntimeError(
            f"a tensor of shape {list(target.shape)} from outside of the function that is being "
            "compiled would be written to: pass it as an argument and return its new value"
        )


def is_from_trace(value) -> bool:
    """Whether a value belongs to an open trace of JAX, or to a call that was noted in one."""
    return isinstance(value, jax.core.Tracer) or (type(value) is Pending and executor.is_traced())


def _assign_alias(target, alias, value, follow):
    storage, pending = alias.storage, alias.storage.pending
    # one write is pending at a time; another one to the same place replaces it
    if pending is not None and not same(pending[0], alias.place):
        settle(storage)
    written = value._raw
    if interception.read is not None and alias.root is not None:
        _refuse_tangents(alias.root.written != storage.epoch)
    if interception.read is not None and _keeps_history(target, value, follow):
        # the memory keeps its history, which a detached tensor that writes to it does not have
        old = _look(storage, alias.place) if storage.pending is None else storage.pending[1]
        written = unrecorded(written, old)
        value = wrap(written, value._aval) if target._tracked else value
    # a view's history goes through its root, below
    take(target, value, follow and alias.root is None)
    # every other alias is out of date from now on, and the writer is not
    storage.epoch += 1
    alias.seen = (alias.root or alias).written = storage.epoch
    if alias.place is None:
        storage.array, storage.pending = written, None
    else:
        storage.pending = (alias.place, written, target._aval)
    root = target if alias.root is None else root_of(alias)
    if alias.root is not None and follow and (value._tracked or root._tracked):
        _lead_through_root(target, alias, root, value)
    elif follow or not root._tracked:  # views of a tensor that has left the graph leave it too
        root._alias.followed = storage.epoch


def _refuse_tangents(is_of_other: bool):
    """Raise RuntimeError if a write to views of a tensor meets the tangents of another tensor."""
    scope = mode.scope.get()
    if is_of_other and scope is not None and scope.is_forward:
        raise RuntimeError(
            f"vmap: {scope.name} gets tangents of forward mode, and writes to a part of a tensor "
            "that shares its memory with a detached one: the two have different tangents. Use "
            "detach().clone(), or map the derivative: vmap of jvp in place of jvp of vmap"
        )


def _keeps_history(target, value, follow) -> bool:
    """Whether JAX differentiates this code, and a write is not recorded."""
    is_constant = follow and not value._tracked and not target._tracked
    return leaves_out() or (is_constant and is_differentiated())


def snapshot(tensor: Tensor) -> Tensor:
    """A copy of the handle, which later writes do not change."""
    return wrap(tensor._raw, tensor._aval, tensor._tracked, tensor._node, tensor._nr)


def forget(tensor: Tensor):
    """Cut a tensor off from its history; its value stays."""
    _follow(current(tensor), None, 0, False)


def take(target: Tensor, value: Tensor, follow: bool):
    """Give a tensor the array of another, and its history if `follow`."""
    _put(target, value._raw)
    if follow:
        _follow(target, value._node, value._nr, value._tracked)


def retaining(tensor) -> Node | None:
    """The node that fills `.grad` of a tensor after `retain_grad`; None without that."""
    node = tensor._node
    is_retained = isinstance(node, Node) and node.retained_at(tensor._nr) is tensor
    return node if is_retained else None


def _follow(target, node, output_nr, tracked):
    """Move a tensor to another place in the graph, along with its retained gradient."""
    before = retaining(target)
    if before is not None and isinstance(node, Node):
        before.release(target._nr)
        node.retain(output_nr, target)
    target._node, target._nr, target._tracked = node, output_nr, tracked


def _lead_through_root(target, alias, root, value):
    """Record a write through a view: a write node for the root, and a cut from it for the view.

    No kernel runs: a write node saves no arrays, and a cut usually none.
    """
    calls, numbers = chain(alias.steps)
    program = executor.prepare(CopySlices.of(root._aval, target._aval, calls))
    mask = (root._tracked, value._tracked, *[False] * len(numbers))
    # `edge_of` would read the root, and so settle the write that has just become pending
    edges = [known_edge_of(tensor) for tensor in (root, value) if tensor._tracked]
    _follow(
        root, node_annotations.note(ProgramNode(program.reverse(mask), numbers, edges)), 0, True
    )
    alias.root.followed = alias.storage.epoch
    _follow_root(target, alias)


def _follow_root(target, alias):
    """Update a view's place in the graph after that of its root has changed."""
    root = root_of(alias)
    alias.followed = alias.root.followed
    if not root._tracked:
        if isinstance(target._node, Node):  # the root has left the graph since
            _follow(target, None, 0, False)
        return
    if alias.creation >= NO_GRAD:
        target._leaf = Severed(alias.creation, origin_of(target))
        target._node, target._tracked = None, True
        return
    edge = known_edge_of(root)
    for call, numbers in in_order(alias.steps):
        reverse = call.reverse((True, *[False] * len(numbers)))
        # the gradient of this cut reads arrays, which only a run of the calls gives
        if 0 in reverse.saved_inputs or reverse.saved_outputs:
            edge = _recorded(alias)
            break
        kept = [numbers[i - 1] for i in reverse.saved_inputs]
        edge = (node_annotations.note(ProgramNode(reverse, kept, [edge])), 0)
    _follow(target, *edge, True)


def _recorded(alias):
    """The edge of a view whose gradient reads arrays, by running its calls."""
    before = switch(RECORD)
    try:
        return edge_of(cut(alias, alias.steps))
    finally:
        current_mode.set(before)


def _put(tensor, array):
    tensor._raw = array
    shown = tensor._aval
    if is_concrete(shown.mode) and isinstance(array, jax.core.Tracer):
        tensor._aval = traced_aval(shown, array)


def settle(storage: Storage):
    """Carry the pending write into the array of the storage."""
    if storage.pending is None:
        return
    place, value, shown = storage.pending
    calls, numbers = chain(place)
    program = executor.prepare(CopySlices.of(storage.aval, shown, calls))
    # one scatter for all writes to this place
    storage.array = program.kernel.call(storage.array, value, *numbers)
    storage.pending = None


# reading


def _look(storage, place):
    """The array at a place of a storage."""
    array = storage.array
    for call, numbers in in_order(place):
        array = executor.prepare(call).kernel.call(array, *numbers)
    return array


def cut(alias: Alias, steps: ViewStep | None) -> Tensor:
    """The tensor that `steps` lead to, regenerated from the root of the alias."""
    tensor, path = current(root_of(alias)), []
    while steps is not None:
        path.append(steps)
        steps = steps.before
    for step in reversed(path):
        tensor = apply(executor.prepare(step.call), [tensor, *step.numbers])
        dual.share(tensor, alias, step)
    return tensor
