"""A tensor's memory as PyTorch code sees it: versions, bases, strides, addresses, and the methods
that make a tensor show something else.

No array is really laid out so; the numbers are those that PyTorch would give.
"""

from __future__ import annotations

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import strides as layouts
from ..core import view_ops
from ..core.aval import Size, strides_of
from ..core.device import channels_last, contiguous_format, preserve_format
from ..core.tracebacks import api_boundary
from ..storage.alias import Storage, begin, cut, detached
from ..storage.inplace_check import move, permit, turn
from ..tape import dual, interception, untracked_reason
from ..tape.mode import RECORD, current_mode
from ..tape.tensor import Tensor, current, has_tangent

DETACH_VIEW = (
    "Can't detach views in-place. Use detach() instead. If you are using "
    "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as True, "
    "gradients are views of DDP buckets, and hence detach_() cannot be called on these gradients."
)


class UntypedStorage:
    """The memory that tensors share, of which there is a size and an address to be had."""

    def __init__(self, storage: Storage):
        self._storage = storage

    def data_ptr(self) -> int:
        """Where it begins: a number that is the same for tensors that alias, and for no others."""
        return self._storage.address

    def nbytes(self) -> int:
        return self._storage.aval.shape.numel() * self._storage.aval.dtype.itemsize

    size = __len__ = nbytes

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and self._storage is other._storage

    def __hash__(self):
        return id(self._storage)


def _storage_of(tensor) -> Storage:
    return (tensor._alias or begin(tensor)).storage


def _base_of(tensor) -> Tensor | None:
    return None if tensor._alias is None else tensor._alias.base


def offset_of(tensor: Tensor) -> int:
    """How many elements a tensor begins behind its storage."""
    step, behind = None if tensor._alias is None else tensor._alias.place, 0
    while step is not None:
        _, elements = view_ops.layout(step.call, step.numbers)
        behind += elements * step.call.outputs[0].dtype.itemsize
        step = step.before
    return behind // tensor.dtype.itemsize


@api_boundary
def as_strided(input: Tensor, size, stride, storage_offset: int | None = None) -> Tensor:
    """A view of the memory of a tensor, with any strides.

    Raises RuntimeError where it would reach beyond what the tensor's base shows of its memory.

    >>> jaxgrad.as_strided(jaxgrad.arange(6.0), (2, 2), (3, 1), 1)
    tensor([[1., 2.],
            [4., 5.]])
    """
    offset = offset_of(input) if storage_offset is None else storage_offset
    whole = _whole(input)
    if whole._aval.strides is not None:
        whole = whole.permute(sorted(range(whole.ndim), key=lambda dim: -whole.stride(dim)))
    if not whole.is_contiguous():
        raise RuntimeError(
            f"as_strided: a base of shape {list(whole.shape)} with strides {whole.stride()} has "
            "gaps in memory that it does not show: take it of the tensor that shows all"
        )
    return ops.as_strided(whole, size, stride, offset - offset_of(whole))


def _whole(tensor):
    """What shows all of a tensor's memory that shares its history, and its tangents."""
    alias, base = tensor._alias, _base_of(tensor)
    if base is None:
        return tensor
    if alias.tangents is None or not has_tangent(tensor):
        return base
    return tensor if alias.steps is alias.tangents.steps else cut(alias, alias.tangents.steps)


def is_conj(input: Tensor) -> bool:
    """Whether the tensor is the conjugate of the memory that it shows."""
    count, step = 0, None if input._alias is None else input._alias.steps
    while step is not None:
        count += step.call.primitive.name == "conj" and input.dtype.is_complex
        step = step.before
    return count % 2 == 1


def resolve_conj(input: Tensor) -> Tensor:
    """The tensor, with memory of its own where it shows the conjugate of another's.

    >>> z = jaxgrad.tensor([1 + 2j])
    >>> jaxgrad.resolve_conj(z) is z, jaxgrad.resolve_conj(z.conj())._is_view()
    (True, False)
    """
    return input.clone() if is_conj(input) else input


def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: none shows the negative of its memory."""
    return input


def _turning(name, function=None):
    """A method that turns a tensor into a view of it: that of `function`, or of the operator."""

    def method(self, *args, **kwargs):
        functional = function or getattr(ops, name[:-1])
        permit(name, self, self.requires_grad, overlapping=True)
        turn(self, lambda tensor: functional(tensor, *args, **kwargs), current_mode.get() is RECORD)
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{name[:-1]}`, of the tensor itself, which shows the view from now on."
    return method


class Methods:
    """Methods of `Tensor`; `frontend/methods.py` installs them."""

    @property
    def _version(self) -> int:
        """How often this memory was written to, through this tensor or another."""
        if self.is_inference():
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self._counter is None else self._counter.value

    @property
    def _base(self) -> Tensor | None:
        """The tensor that this is a view of, None if it is none, and for an inference tensor."""
        return None if self.is_inference() else _base_of(self)

    def _is_view(self) -> bool:
        return self._base is not None

    is_view = _is_view

    def stride(self, dim: int | None = None):
        """How many elements lie between neighbours in each dimension, or in one.

        >>> jaxgrad.zeros(2, 3).t().stride()
        (1, 3)
        """
        strides = strides_of(self._aval)
        if dim is None:
            return strides
        if not -self.ndim <= dim < self.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-self.ndim}, "
                f"{self.ndim - 1}], but got {dim})"
            )
        return strides[dim]

    def storage_offset(self) -> int:
        """How many elements of its storage come before the first of the tensor."""
        return offset_of(self)

    def is_contiguous(self, memory_format=contiguous_format) -> bool:
        """Whether the elements lie row by row, or as the memory format says.

        >>> jaxgrad.zeros(2, 3).t().is_contiguous()
        False
        """
        if self._aval.strides is None and memory_format is not channels_last:
            return True
        last = memory_format is channels_last
        test = layouts.is_channels_last if last else layouts.is_contiguous
        return test(self.shape, strides_of(self._aval))

    def contiguous(self, memory_format=contiguous_format) -> Tensor:
        """The tensor itself where it is contiguous, else a copy that is."""
        if self.is_contiguous(memory_format):
            return self
        return self.clone(memory_format=memory_format)

    def clone(self, *, memory_format=preserve_format) -> Tensor:
        """A copy, which stays in the graph.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> x.clone().grad_fn.name()
        'CloneBackward0'
        """
        made = ops.clone(self)
        if memory_format is not preserve_format:
            last = memory_format is channels_last
            strides = layouts.channels_last(self.shape) if last else None
            dual.show(made, strides)
        return made

    def untyped_storage(self) -> UntypedStorage:
        """The memory of the tensor: the same for all that alias it."""
        return UntypedStorage(_storage_of(self))

    def data_ptr(self) -> int:
        """The address of the first element: equal where two tensors begin at the same place."""
        return _storage_of(self).address + self.storage_offset() * self.dtype.itemsize

    def is_set_to(self, tensor: Tensor) -> bool:
        """Whether both show the same part of one memory."""
        same = _storage_of(self) is _storage_of(tensor) and self.shape == tensor.shape
        return same and self.data_ptr() == tensor.data_ptr() and self.stride() == tensor.stride()

    def detach(self) -> Tensor:
        """The same memory and version outside of the graph: the result does not require grad.

        >>> jaxgrad.ones(2, requires_grad=True).detach().requires_grad
        False
        """
        return detached(self)

    def detach_(self) -> Tensor:
        """Make the tensor a leaf that requires no grad. Raises RuntimeError for a view."""
        if self._is_view():
            raise RuntimeError(DETACH_VIEW)
        if interception.is_noted:
            untracked_reason.note_detached(self, self)
        if has_tangent(self):
            move(self, detached(self))  # what was cut from it goes on to move
        current(self)._tracked = False
        if not self.is_inference():
            self._node, self._nr = None, 0
        return self

    @property
    def data(self) -> Tensor:
        """The tensor outside of the graph, as `detach` gives it: the same memory and version."""
        return detached(self)

    @data.setter
    def data(self, source: Tensor):
        if not isinstance(source, Tensor):
            kind = type(source).__name__
            raise TypeError(f"data must be a Tensor, not {kind}: use torch.tensor to make one")
        if self.requires_grad and not source._aval.differentiable:
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex "
                f"dtype, not {source.dtype}"
            )
        held = dual.kept(self)
        if held is not None and (self.shape, self.dtype) != (source.shape, source.dtype):
            raise RuntimeError(
                f"data of a tensor of {self._aval!r} set to {source._aval!r}: it has a tangent of "
                "forward mode, which must fit. Set it on what forward_ad.unpack_dual gives"
            )
        move(self, detached(source))
        dual.restore(self, held)

    def set_(self, source: Tensor | None = None) -> Tensor:
        """Let the tensor show the memory of another. Raises RuntimeError where it requires grad,
        NotImplementedError where one of the two has a tangent of forward mode.
        """
        if has_tangent(self) or (source is not None and has_tangent(source)):
            raise NotImplementedError(
                "Trying to use forward AD with set_ that does not support it because it has not "
                "been implemented yet: call copy_, which takes the tangent along"
            )
        permit("set_", self, self.requires_grad, overlapping=True)
        move(self, detached(self.new_empty(0) if source is None else source))
        return self

    def resize_(self, *size, memory_format=None) -> Tensor:
        """Give the tensor another size; elements in memory order are kept, further ones are zero.

        Raises RuntimeError for a tensor that requires grad or has a tangent of forward mode, and
        for a view that would have to grow.
        """
        if self.requires_grad:
            raise RuntimeError("cannot resize variables that require grad")
        if has_tangent(self):
            raise RuntimeError("cannot resize variables that has a forward grad")
        size = tuple(size[0]) if size and isinstance(size[0], tuple | list) else size
        count, before = Size(size).numel(), self.numel()
        with no_grad():
            row = self.reshape(-1)
            if count > before:
                row = ops.cat([row, self.new_zeros(count - before)])
            move(self, row[:count].reshape(size).clone())
        return self

    def resize_as_(self, other: Tensor) -> Tensor:
        """`resize_` to the size of another tensor."""
        return self.resize_(tuple(other.shape))

    as_strided, is_conj = as_strided, is_conj
    resolve_conj, resolve_neg = resolve_conj, resolve_neg
    t_ = _turning("t_")
    transpose_ = _turning("transpose_")
    swapaxes_ = _turning("swapaxes_")
    swapdims_ = _turning("swapdims_")
    squeeze_ = _turning("squeeze_")
    unsqueeze_ = _turning("unsqueeze_")
    as_strided_ = _turning("as_strided_", as_strided)
