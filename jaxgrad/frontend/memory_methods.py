"""A tensor's memory as PyTorch code sees it: versions, bases, strides, addresses, and the methods
that make a tensor show other memory.

XLA lays out arrays in its own way; the numbers here are those that PyTorch would report.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import strides as layouts
from ..core.aval import is_concrete, strides_of
from ..core.device import contiguous_format, memory_format, preserve_format
from ..core.named_dtypes import complex32
from ..core.pytorch_tensors import type_name
from ..core.view_ops import is_strided
from ..late import LateModule
from ..storage.alias import (
    Storage,
    begin,
    cut,
    detached,
    flags_of,
    known_offset_of,
    offset_of_argument,
)
from ..storage.inplace_check import move, permit, turn
from ..tape import dual, interception, mode, untracked_reason
from ..tape.mode import RECORD, current_mode, switch
from ..tape.node import NotImplementedNode
from ..tape.noted_reads import noted_read
from ..tape.sparse_tensor import SparseTensor, by_layout, implementation, is_sparse
from ..tape.tensor import (
    Tensor,
    abstract_value,
    alias_of,
    current,
    has_tangent,
    kind_of,
    may_require_grad,
    set_node,
    set_tracked,
    version_of,
)
from ..tape.torch_function import api_boundary
from ..tape.version_counter import counter_of
from .factory_options import size_of

conversions = LateModule("jaxgrad.frontend.to")
storages = LateModule("jaxgrad.frontend.storages")
storage_tensors = LateModule("jaxgrad.frontend.storage_tensors")

NO_DERIVATIVE_OF_SET = (
    "derivative for set_ is not implemented: the tensor shows the memory of one that requires "
    "grad; give it `detach()` of that one, or use the source itself"
)
DETACH_VIEW = (
    "Can't detach views in-place. Use detach() instead. If you are using "
    "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as True, "
    "gradients are views of DDP buckets, and hence detach_() cannot be called on these gradients."
)


def _storage_of(tensor) -> Storage:
    return (alias_of(tensor) or begin(tensor)).storage


def _base_of(tensor) -> Tensor | None:
    alias = alias_of(tensor)
    return None if alias is None else alias.base


def _has_base(tensor) -> bool:
    return _base_of(tensor) is not None


def offset_of(tensor: Tensor) -> int:
    """The number of elements of the storage before the first element of a tensor."""
    offset, base = noted_read(tensor, known_offset_of), _base_of(tensor)
    if base is not None and offset is not None and mode.scope.get() is not None:
        # that in the base, which the function may have got as a view
        offset += noted_read(base, known_offset_of) or 0
    if offset is None:
        raise RuntimeError(
            f"the offset of a view of shape {list(tensor.shape)} in its storage is not known: it "
            "was taken at an index that is being traced. storage_offset, data_ptr and as_strided "
            "need an int as index"
        )
    return offset


def _offset_outside(tensor: Tensor) -> int:
    """The number of elements of the storage before the argument of a transform that a tensor inside
    of it stands for or is an example of, or a view of one.
    """
    scope, base = mode.scope.get(), _base_of(tensor)
    offset = noted_read(tensor, offset_of_argument)
    return (
        offset if scope is None else offset + scope.offset_outside(tensor if base is None else base)
    )


@api_boundary
def as_strided(input: Tensor, size, stride, storage_offset: int | None = None) -> Tensor:
    """Return a view of the memory of a tensor with the given strides.

    input: a tensor of any dtype. size, stride: lists of ints of one length, counted in elements.
    storage_offset: the first element; that of `input` if it is None.

    Raises RuntimeError if the view would reach memory that the base of the tensor does not show.

    >>> jaxgrad.as_strided(jaxgrad.arange(6.0), (2, 2), (3, 1), 1)
    tensor([[1., 2.],
            [4., 5.]])
    """
    if is_sparse(input):
        implementation().refuse("as_strided")
    if storage_offset is None:
        return _at_strides(input, size, stride, offset_of(input))
    before = _offset_outside(input)
    if 0 <= storage_offset < before:
        raise RuntimeError(
            f"as_strided from element {storage_offset} on can access memory outside of `tensor`: "
            f"the argument of the transform around begins at element {before} of its storage"
        )
    return _at_strides(input, size, stride, storage_offset - before)


def _at_strides(input, size, stride, offset) -> Tensor:
    """A view of the memory of a tensor from an offset on."""
    whole = _whole(input)
    start = offset - offset_of(whole)
    if not _shows(whole, tuple(size), tuple(stride), start):
        view = _between_gaps(whole, size, stride, start)
        return _of_memory(input, size, stride, offset) if view is None else view
    if abstract_value(whole).strides is not None:
        whole = whole.permute(sorted(range(whole.ndim), key=lambda dim: -whole.stride(dim)))
    if whole.requires_grad and not input.requires_grad:  # a view that was not recorded
        with no_grad():
            return ops.as_strided(whole, size, stride, start)
    return ops.as_strided(whole, size, stride, start)


def _shows(whole, size, stride, start) -> bool:
    """Whether a tensor shows all elements at strides from `start` on in its part of memory, or
    nothing shows them.
    """
    if not layouts.is_dense(whole.shape, whole.stride()):
        return False
    is_valid = len(size) == len(stride) and min((*size, *stride), default=0) >= 0
    is_inside = is_valid and start >= 0 and start + layouts.reach(size, stride) <= whole.numel()
    return is_inside or _storage_of(whole).aval.shape.numel() == whole.numel()


def strided_view(tensor: Tensor, size, stride, offset: int) -> Tensor | None:
    """A view by strides with the history of a tensor; None where neither it nor its base shows the
    elements. There may be gaps between its elements, as in an example of a `vmap`.
    """
    whole = _whole(tensor)
    start = offset - offset_of(whole)
    if _shows(whole, tuple(size), tuple(stride), start):
        return _at_strides(tensor, size, stride, offset)
    return _between_gaps(whole, size, stride, start)


def _between_gaps(whole, size, stride, start) -> Tensor | None:
    """A view by strides in the memory of a tensor whose elements have gaps between them; None where
    it does not show all elements of the view.
    """
    is_valid = len(size) == len(stride) and min((*size, *stride, start), default=0) >= 0
    if not is_valid or not whole.numel() or layouts.overlaps(whole.shape, whole.stride()):
        return None
    ordered = whole.permute(sorted(range(whole.ndim), key=lambda dim: -whole.stride(dim)))
    place = layouts.in_order(ordered.shape, ordered.stride(), size, stride, start)
    return None if place is None else ops.as_strided(ordered, size, *place)


def _of_memory(tensor, size, stride, offset):
    """The elements at strides of a memory that no tensor of the history shows."""
    if tensor.requires_grad or has_tangent(tensor):
        raise RuntimeError(
            f"as_strided of a tensor of shape {list(tensor.shape)} with strides {tensor.stride()} "
            "that requires grad or has a tangent, to elements of its memory that neither it nor "
            "its base shows: they have no history. Call it on detach(), or on the tensor that "
            "shows them all"
        )
    memory = _storage_of(tensor)
    if not is_concrete(memory.aval.mode):
        _check_gaps(memory.aval, size, stride, offset)
    row = storage_tensors.memory_row(memory, tensor.dtype)
    with no_grad():
        return detached(ops.as_strided(row, size, stride, offset))


@api_boundary
def as_strided_scatter(input: Tensor, src: Tensor, size, stride, storage_offset=None) -> Tensor:
    """Return a copy of a tensor with other values at strides of its memory.

    input: a tensor of any dtype, whose strides the copy has if it has no gaps in memory. src: the
    values, of the shape `size`. size, stride, storage_offset: as for `as_strided`.

    Raises RuntimeError for elements that the tensor does not show.

    >>> x = jaxgrad.zeros(2, 2)
    >>> jaxgrad.as_strided_scatter(x, jaxgrad.ones(2), (2,), (3,))
    tensor([[1., 0.],
            [0., 1.]])
    """
    start = 0
    if storage_offset is not None:
        if storage_offset < 0:
            raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}: it is from 0")
        start = storage_offset - _offset_outside(input) - offset_of(input)
    shape, strides, before = input.shape, input.stride(), max(-start, 0)
    if abstract_value(input).strides is None and not before:
        return ops.as_strided_scatter(input, src, size, stride, start)
    if layouts.is_dense(shape, strides) and not before:
        order = sorted(range(len(shape)), key=lambda dim: -strides[dim])
        places = sorted(range(len(shape)), key=order.__getitem__)
        ordered = ops.as_strided_scatter(input.permute(order), src, size, stride, start)
        return ops.clone(ordered.permute(places))
    row = input.new_zeros(before + layouts.reach(shape, strides))
    row = ops.as_strided_scatter(row, input, shape, strides, before)
    row = ops.as_strided_scatter(row, src, size, stride, start + before)
    return ops.clone(ops.as_strided(row, shape, strides, before))


def _check_gaps(shown, size, stride, offset):
    """Raise RuntimeError for strides that reach a gap between the elements of a memory which a
    trace has of a view alone, such as one example of a `vmap`.
    """
    strides, count = strides_of(shown), layouts.reach(shown.shape, strides_of(shown))
    if layouts.is_dense(shown.shape, strides) or offset + layouts.reach(size, stride) > count:
        return
    places = np.zeros(count, bool)
    np.lib.stride_tricks.as_strided(places, shown.shape, strides)[...] = True
    if not np.lib.stride_tricks.as_strided(places[offset:], size, stride).all():
        raise RuntimeError(
            f"result = tensor.as_strided({list(size)}, {list(stride)}, {offset}) can access memory "
            f"outside of `tensor`, whose strides are {strides}, which is not known inside of vmap "
            "or of a compiled function. Write it by other views, or call it outside"
        )


def _whole(tensor):
    """The tensor that shows the most memory in this dtype and shares the tensor's history and
    tangents.
    """
    alias, base = alias_of(tensor), _base_of(tensor)
    is_leaf = tensor.requires_grad and (tensor.is_leaf or not (base is None or base.requires_grad))
    if base is None or is_leaf:
        return tensor
    if alias.tangents is not None and has_tangent(tensor):
        last = alias.tangents.steps
    else:
        last, leaves = alias.steps, _leaves_by_step()
        while last is not None and is_strided(last.call):
            if id(last) in leaves:
                return leaves[id(last)]
            last = last.before
        if last is None:
            return base
    return tensor if alias.steps is last else cut(alias, last)


def _leaves_by_step() -> dict:
    """What the transforms around differentiate with respect to, of tensors with a history, by the
    identity of the last step from the base: the base does not depend on it.
    """
    levels = mode.transform_levels.get()
    leaves = [leaf for level in levels for leaf in getattr(level, "leaves", ())]
    return {id(alias_of(leaf).steps): leaf for leaf in leaves if alias_of(leaf) is not None}


@api_boundary
def clone(input: Tensor, *, memory_format=preserve_format) -> Tensor:
    """Return a copy, through which gradients flow.

    input: a tensor of any shape and dtype. memory_format: that of the copy; the tensor's own by
    default. Raises RuntimeError for `channels_last` unless there are 4 dimensions, and for
    `channels_last_3d` unless there are 5.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> jaxgrad.clone(x).grad_fn.name()
    'CloneBackward0'
    >>> jaxgrad.clone(x.expand(3, 2), memory_format=jaxgrad.contiguous_format).stride()
    (2, 1)
    """
    if memory_format in (None, preserve_format):
        return ops.clone(input)
    memory_format.check("clone", input.shape)
    copy = ops.clone(input)
    dual.show(copy, memory_format.strides(input.shape))
    return copy


@api_boundary
def is_conj(input: Tensor) -> bool:
    """Return whether the tensor shows the conjugate of its memory.

    input: a tensor of any shape and dtype; False unless it is complex.

    >>> z = jaxgrad.tensor([1 + 2j])
    >>> jaxgrad.is_conj(z), jaxgrad.is_conj(z.conj())
    (False, True)
    """
    return noted_read(input, _flags_of)[0]


@api_boundary
def is_neg(input: Tensor) -> bool:
    """Return whether the tensor shows the negative of its memory.

    input: a tensor of any shape and dtype.

    >>> z = jaxgrad.tensor([1 + 2j])
    >>> jaxgrad.is_neg(z.imag), jaxgrad.is_neg(z.conj().imag)
    (False, True)
    """
    return noted_read(input, _flags_of)[1]


def _flags_of(tensor) -> tuple[bool, bool]:
    alias = alias_of(tensor)
    return (False, False) if alias is None else flags_of(alias.place) or (False, False)


@api_boundary
def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself, or a copy if it shows the conjugate of its memory.

    input: a tensor of any shape and dtype.

    >>> z = jaxgrad.tensor([1 + 2j])
    >>> jaxgrad.resolve_conj(z) is z, jaxgrad.resolve_conj(z.conj())._is_view()
    (True, False)
    """
    return input.clone() if is_conj(input) else input


@api_boundary
def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor itself, or a copy if it shows the negative of its memory.

    input: a tensor of any shape and dtype.

    >>> x = jaxgrad.tensor([1 + 2j]).conj().imag
    >>> jaxgrad.resolve_neg(x).is_neg(), jaxgrad.resolve_neg(x.abs()) is x
    (False, False)
    """
    return input.clone() if is_neg(input) else input


def _inplace_view(name, arguments, shape, function=None):
    """A method that makes a tensor show a view of itself, by `function` or the operator.

    arguments, shape: an example, the shape of `zeros(2, 1)` after the call.
    """

    def method(self, *args, **kwargs):
        functional = function or getattr(ops, name[:-1])
        permit(name, self, self.requires_grad, overlapping=True)
        before = current_mode.get()
        # under no_grad too: the gradient of a computed tensor arrives in the new shape
        mode = before if self.is_leaf else RECORD
        try:
            switch(mode)
            turn(self, lambda tensor: functional(tensor, *args, **kwargs), mode is RECORD)
        finally:
            current_mode.set(before)
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"""Apply `{name[:-1]}` in place: the tensor shows the view from now on.

    Arguments and errors as for `{name[:-1]}`. Raises RuntimeError for a leaf that requires grad.

    >>> jaxgrad.zeros(2, 1).{name}({arguments}).shape
    torch.Size({shape})
    """
    return by_layout(method)


def _writes(tensor) -> int:
    return version_of(tensor)


def show(tensor: Tensor, source: Tensor):
    """Make a tensor show the memory of another, wherever that is; its history stays.

    Raises RuntimeError as `data=` does.
    """
    if tensor.requires_grad and not may_require_grad(source):
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or complex "
            f"dtype, not {source.dtype}"
        )
    held = dual.kept(tensor)
    if held is not None and (tensor.shape, tensor.dtype) != (source.shape, source.dtype):
        raise RuntimeError(
            f"data of a tensor of {abstract_value(tensor)!r} set to {abstract_value(source)!r}: it "
            "has a tangent of forward mode, which must fit. Set it on the primal from "
            "forward_ad.unpack_dual"
        )
    move(tensor, detached(source))
    if complex32 in (tensor.dtype, source.dtype):
        tensor.__class__ = type(source) if source.dtype is complex32 else _plain_class(tensor)
    dual.restore(tensor, held)


def _plain_class(tensor):
    kind = kind_of(tensor)
    return kind if kind is not None and kind.heading else Tensor


def _check_source(tensor, source, storage_offset, size):
    """Raise TypeError or RuntimeError for a source that `set_` does not take."""
    is_storage = storages.is_storage(source)
    is_known = is_storage or source is None or isinstance(source, Tensor)
    if not is_known or (storage_offset is None) is not (size is None):
        raise TypeError(
            "set_() received an invalid combination of arguments: it takes a tensor or a storage, "
            "alone or with storage_offset, size and stride, not "
            f"{type_name(source)}"
        )
    if isinstance(source, Tensor) and source.dtype is not tensor.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source.dtype} to a tensor of type {tensor.dtype}"
        )
    is_typed = is_storage and isinstance(source, storages.TypedStorage)
    if is_typed and source.dtype is not tensor.dtype:
        raise RuntimeError(
            f"Expected a Storage of type {tensor.dtype.scalar_type} or an UntypedStorage, but got "
            f"type {source.dtype.scalar_type} for argument 1 'storage'"
        )


def _laid_out(source, size, stride, offset):
    """The elements at strides of a tensor's memory, which is enlarged where it is too small."""
    stride = layouts.contiguous(size) if stride is None else tuple(stride)
    is_valid = offset >= 0 and len(size) == len(stride) and min((*size, *stride), default=0) >= 0
    if is_valid and math.prod(size):
        _enlarge(_storage_of(source), offset + layouts.reach(size, stride), source.dtype)
    return _of_memory(source.detach(), size, stride, offset)


def _enlarge(memory: Storage, count: int, dtype):
    """Give a memory room for so many elements of a dtype."""
    shown = memory.aval
    needed = -(-count * dtype.itemsize // shown.dtype.itemsize)
    if needed > layouts.reach(shown.shape, strides_of(shown)):
        storage_tensors.memory_row(memory, shown.dtype, needed)


def _strides_in(memory_format, size):
    memory_format.check("resize_", size)
    return layouts.channels_last(size) if memory_format.rank else layouts.contiguous(size)


def _resize(tensor, size, strides):
    needed = layouts.reach(size, strides)
    if alias_of(tensor) is None and needed > layouts.reach(tensor.shape, tensor.stride()):
        # nothing else shows the memory, so that the tensor needs no place in it
        with no_grad():
            row = storage_tensors.in_memory_order(tensor)
            row = ops.cat([row, row.new_zeros(needed - row.numel())])
            move(tensor, row.view(size) if strides == layouts.contiguous(size) else row)
            if tensor.shape == size:
                return
    offset, base = offset_of(tensor), _base_of(tensor)
    _enlarge(_storage_of(tensor), offset + needed, tensor.dtype)
    whole = None if base is None else _whole(tensor)
    if whole is base is not None and _shows(base, size, strides, offset - offset_of(base)):
        turn(tensor, lambda view: _at_strides(view, size, strides, offset), False)
    else:
        move(tensor, _of_memory(tensor, size, strides, offset))


class MemoryMethods:
    """Methods of `Tensor` about its memory; `frontend/methods.py` installs them."""

    @property
    def _version(self) -> int:
        """The number of writes to this memory, through this tensor or an alias.

        Raises RuntimeError for an inference tensor.
        """
        if self.is_inference():
            raise RuntimeError("Inference tensors do not track version counter.")
        scope = mode.scope.get()
        if scope is not None and scope.is_outside(self):
            scope.objects.guard(self, _writes)
        return _writes(self)

    @property
    def _base(self) -> Tensor | None:
        """The tensor that this is a view of; None for any other and for an inference tensor."""
        return None if self.is_inference() else _base_of(self)

    def _is_view(self) -> bool:
        """Return whether the tensor is a view of another.

        >>> jaxgrad.zeros(2, 3)[0]._is_view()
        True
        """
        return not self.is_inference() and noted_read(self, _has_base)

    @by_layout
    def stride(self, dim: int | None = None):
        """Return the strides in elements, as a tuple of ints, or the stride of one dimension.

        dim: an int. Raises IndexError if it does not exist.

        >>> jaxgrad.zeros(2, 3).t().stride()
        (1, 3)
        """
        strides = strides_of(abstract_value(self))
        if dim is None:
            return strides
        if not -self.ndim <= dim < self.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-self.ndim}, "
                f"{self.ndim - 1}], but got {dim})"
            )
        return strides[dim]

    @by_layout
    def storage_offset(self) -> int:
        """Return the number of elements of the storage before the tensor's first element.

        >>> jaxgrad.zeros(2, 3)[1].storage_offset()
        3
        """
        return offset_of(self) + _offset_outside(self)

    def is_contiguous(self, memory_format=contiguous_format) -> bool:
        """Return whether the strides are those of a memory format, row by row by default.

        memory_format: `contiguous_format`, `channels_last` or `channels_last_3d`.

        >>> jaxgrad.zeros(2, 3).t().is_contiguous()
        False
        """
        if isinstance(self, SparseTensor):  # no frame between: code calls it for each layer
            return self.is_contiguous(memory_format)
        rank = memory_format.rank
        if rank:
            shown = strides_of(abstract_value(self))
            return self.ndim == rank and layouts.is_channels_last(self.shape, shown)
        is_usual = abstract_value(self).strides is None
        return is_usual or layouts.is_contiguous(self.shape, self.stride())

    @api_boundary
    @by_layout
    def contiguous(self, memory_format=contiguous_format) -> Tensor:
        """Return the tensor itself if it is contiguous, else a contiguous copy.

        memory_format: as for `is_contiguous`. Raises RuntimeError for `preserve_format`.

        >>> jaxgrad.zeros(2, 3).t().contiguous().stride()
        (2, 1)
        """
        if self.is_contiguous(memory_format):
            return self
        if memory_format is preserve_format:
            raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
        return self.clone(memory_format=memory_format)

    @api_boundary
    @by_layout
    def untyped_storage(self) -> storages.UntypedStorage:
        """Return the memory of the tensor, which it shares with its aliases.

        >>> jaxgrad.zeros(4)[:2].untyped_storage().nbytes()
        16
        """
        return storages.untyped(_storage_of(self))

    @api_boundary
    @by_layout
    def storage(self) -> storages.TypedStorage:
        """Return the memory of the tensor as elements of its dtype.

        >>> jaxgrad.arange(4.0)[2:].storage().tolist()
        [0.0, 1.0, 2.0, 3.0]
        """
        storages._warn_typed_storage_removal()
        return self._typed_storage()

    @by_layout
    def _typed_storage(self) -> storages.TypedStorage:
        return storages.TypedStorage._of(_storage_of(self), self.dtype)

    @api_boundary
    def storage_type(self):
        """Return the type of storages of this dtype.

        >>> jaxgrad.zeros(1).storage_type() is jaxgrad.FloatStorage
        True
        """
        return storages.TYPES[self._typed_storage().pickle_storage_type()]

    @by_layout
    def data_ptr(self) -> int:
        """Return the address of the first element in the memory of the process, or of the device;
        the others are where `stride()` says. Aliases share it.

        The bytes there are the values at this moment, for reading alone. They are valid until the
        next write to the tensor, or its end. After a write ask again: the values are copied to the
        same address if nothing else reads there. 0 without elements, and on the device meta.

        Raises RuntimeError inside of a function that is being traced, and for an array on several
        devices: no one memory has the bytes.

        >>> import ctypes
        >>> x = jaxgrad.arange(4.0)
        >>> (ctypes.c_float * 2).from_address(x[2:].data_ptr())[:]
        [2.0, 3.0]
        """
        if not self.numel():
            return 0
        return _storage_of(self).address + self.storage_offset() * self.dtype.itemsize

    @by_layout
    def _fix_weakref(self):
        """Do nothing: a tensor of a weak reference is a tensor."""

    @property
    def _cdata(self) -> int:
        """The address of the Python object, which stands for PyTorch's address of its own: equal
        for one tensor alone, and not that of elements.

        >>> x = jaxgrad.zeros(1)
        >>> x._cdata == x._cdata, x._cdata == x.detach()._cdata
        (True, False)
        """
        return id(self)

    @by_layout
    def is_set_to(self, tensor: Tensor) -> bool:
        """Return whether both tensors show the same part of the same memory.

        >>> x = jaxgrad.zeros(4)
        >>> x.is_set_to(x.detach()), x.is_set_to(x[:2])
        (True, False)
        """
        same = _storage_of(self) is _storage_of(tensor) and self.shape == tensor.shape
        same = same and self.storage_offset() == tensor.storage_offset()
        return same and self.dtype is tensor.dtype and self.stride() == tensor.stride()

    @api_boundary
    @by_layout
    def detach(self) -> Tensor:
        """Return a tensor that shares the memory and the version, but not the history.

        The result does not require grad.

        >>> jaxgrad.ones(2, requires_grad=True).detach().requires_grad
        False
        """
        return detached(self)

    @api_boundary
    @by_layout
    def detach_(self) -> Tensor:
        """Make the tensor a leaf that does not require grad. Raises RuntimeError for a view.

        >>> (jaxgrad.ones(2, requires_grad=True) * 2).detach_().is_leaf
        True
        """
        if self._is_view():
            raise RuntimeError(DETACH_VIEW)
        if interception.is_noted:
            untracked_reason.note_detached(self, self)
        if has_tangent(self):
            move(self, detached(self))  # the views cut from it keep their tangents
        set_tracked(current(self), False)
        if not self.is_inference():
            set_node(self, None)
        return self

    @property
    @api_boundary
    def data(self) -> Tensor:
        """The result of `detach`; assigning a tensor makes this one show its memory.

        Raises TypeError for anything but a tensor, RuntimeError if the dtype cannot require grad
        and this tensor does, if one of both is on the device meta, or if a forward-mode tangent
        does not fit the new value.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> x.data = jaxgrad.zeros(3)
        >>> x
        tensor([0., 0., 0.], requires_grad=True)
        """
        return detached(self)

    @data.setter
    def data(self, source: Tensor):
        if not isinstance(source, Tensor):
            raise TypeError(
                f"Variable data has to be a tensor, but got {type_name(source)}: use torch.tensor "
                "to make one"
            )
        if self.is_meta != source.is_meta:
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
                f"incompatible tensor type: one is on {self.device}, the other on {source.device}. "
                "Modules move by to(), to_empty() and load_state_dict(assign=True)"
            )
        show(self, source)

    @data.deleter
    def data(self):
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    @by_layout
    def set_(self, source=None, storage_offset=None, size=None, stride=None) -> Tensor:
        """Make the tensor show the memory of another, or a storage, and return it.

        source: a tensor of this dtype; a storage, whose elements become a row; an empty tensor by
        default. storage_offset, size, stride: which elements of the memory, in elements; the
        strides of a contiguous tensor by default. A storage that is too small is enlarged.

        Raises RuntimeError for another dtype, if this tensor requires grad, or if one of both is on
        the device meta, and in the backward pass where the source requires grad, which is not
        followed; NotImplementedError if either has a forward-mode tangent.

        >>> jaxgrad.zeros(2).set_(jaxgrad.ones(3))
        tensor([1., 1., 1.])
        >>> jaxgrad.zeros(0).set_(jaxgrad.arange(4.0).storage(), 1, (2,), (2,))
        tensor([1., 3.])
        """
        _check_source(self, source, storage_offset, size)
        if has_tangent(self) or (isinstance(source, Tensor) and has_tangent(source)):
            raise NotImplementedError(
                "Trying to use forward AD with set_ that does not support it because it has not "
                "been implemented yet: call copy_, which takes the tangent along"
            )
        permit("set_", self, self.requires_grad, overlapping=True)
        if source is not None and source.device.type != self.device.type:
            raise RuntimeError(
                f'Attempted to set the storage of a tensor on device "{self.device}" to a storage '
                f'on different device "{source.device}". The devices must match'
            )
        if source is None:
            source = self.new_empty(0)
        elif not isinstance(source, Tensor):
            source = storage_tensors.row_of(source, self.dtype)
        if size is not None:
            offset = storage_offset + (offset_of(source) if isinstance(source, Tensor) else 0)
            source = _laid_out(source, tuple(size), stride, offset)
        is_followed = isinstance(source, Tensor) and source.requires_grad
        move(self, detached(source))
        if is_followed and current_mode.get() is RECORD:
            set_node(self, NotImplementedNode(abstract_value(self), NO_DERIVATIVE_OF_SET))
            set_tracked(self, True)
        counter_of(self).count()
        return self

    @by_layout
    def resize_(self, *size, memory_format=None, **named) -> Tensor:
        """Resize the tensor in place. It shows the elements of its memory in their order there; the
        memory is enlarged where it is too small, and new elements are 0.

        size: ints, or a list of ints. memory_format: `contiguous_format`, `channels_last` or
        `channels_last_3d`. Raises RuntimeError for a negative size, for a tensor that requires grad
        or has a forward-mode tangent, and for a format that does not fit the size.

        >>> jaxgrad.ones(2).resize_(3)
        tensor([1., 1., 0.])
        """
        size = size_of("resize_", size, named)
        if self.requires_grad:
            raise RuntimeError("cannot resize variables that require grad")
        if has_tangent(self):
            raise RuntimeError("cannot resize variables that has a forward grad")
        permit("resize_", self, False, overlapping=True)
        if min(size, default=0) < 0:
            raise RuntimeError(f"resize_(): the size {list(size)} has a negative extent")
        if memory_format is preserve_format:
            raise RuntimeError("Unsupported memory format Preserve: resize_ has no other tensor")
        strides = _strides_in(memory_format, size) if memory_format else layouts.contiguous(size)
        if size != self.shape or (memory_format and strides != self.stride()):
            _resize(self, size, strides)
            counter_of(self).count()
        return self

    @by_layout
    def resize_as_(self, the_template: Tensor, *, memory_format=None) -> Tensor:
        """Call `resize_` with the shape of another tensor.

        memory_format: as for `resize_`, and `preserve_format` for the strides of the other tensor.

        >>> jaxgrad.ones(2).resize_as_(jaxgrad.zeros(1))
        tensor([1.])
        """
        if not isinstance(the_template, Tensor):
            raise TypeError(
                "resize_as_(): argument 'the_template' (position 1) must be Tensor, not "
                f"{type_name(the_template)}"
            )
        if memory_format is preserve_format:
            memory_format = conversions.suggested_format(the_template)
        return self.resize_(the_template.shape, memory_format=memory_format)

    @api_boundary
    @by_layout
    def dim_order(self, *, ambiguity_check=False) -> tuple[int, ...]:
        """Return the dimensions in the order of memory, the outermost first.

        ambiguity_check: whether to raise RuntimeError where the strides fit several orders, or a
        list of memory formats, of which one settles it. Raises TypeError for anything else.

        >>> jaxgrad.zeros(2, 3).t().dim_order()
        (1, 0)
        """
        formats = ambiguity_check if isinstance(ambiguity_check, list) else []
        is_known = isinstance(ambiguity_check, bool | list)
        if not is_known or not all(isinstance(one, memory_format) for one in formats):
            raise TypeError(
                "The ambiguity_check argument must be a bool or a list of memory formats."
            )
        order = self._plain_order()
        is_checked = ambiguity_check is not False
        is_open = order is None and not layouts.has_one_order(self.shape, self.stride())
        if is_checked and (is_open or self._fits_several(formats)):
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the "
                f"given memory formats: its shape is {list(self.shape)}, its strides are "
                f"{self.stride()}"
            )
        return layouts.outermost_first(self.shape, self.stride()) if order is None else order

    def _plain_order(self) -> tuple[int, ...] | None:
        """The order of a tensor that is contiguous or channels last, and not both."""
        is_last = layouts.is_channels_last(self.shape, self.stride()) and self.ndim == 4
        if self.is_contiguous() == is_last:
            return None
        return (0, 2, 3, 1) if is_last else tuple(range(self.ndim))

    def _fits_several(self, formats) -> bool:
        strides = self.stride()
        is_open = 1 in self.shape or any(map(operator.eq, strides, strides[1:]))
        return is_open and sum(self.is_contiguous(one) for one in formats) != 1

    as_strided, as_strided_scatter = as_strided, as_strided_scatter
    clone, is_conj = clone, is_conj
    is_neg, resolve_conj, resolve_neg = is_neg, resolve_conj, resolve_neg
    t_ = _inplace_view("t_", "", [1, 2])
    transpose_ = _inplace_view("transpose_", "0, 1", [1, 2])
    swapaxes_ = _inplace_view("swapaxes_", "0, 1", [1, 2])
    swapdims_ = _inplace_view("swapdims_", "0, 1", [1, 2])
    squeeze_ = _inplace_view("squeeze_", "", [2])
    unsqueeze_ = _inplace_view("unsqueeze_", "0", [1, 2, 1])
    as_strided_ = _inplace_view("as_strided_", "(2,), (1,)", [2], as_strided)
