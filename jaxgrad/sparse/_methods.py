"""Methods of tensors about sparse layouts: those that every tensor has, and those that a sparse
tensor has in place of a dense one's. A method that reads the array of a dense tensor is refused.
"""

from __future__ import annotations

import numpy as np

from .. import ops
from ..autograd._engine.tensor_hooks import HookMethods
from ..core.device import device_of, sparse_coo
from ..core.tracebacks import shows_users_frames
from ..frontend.printing import arrays as printing
from ..frontend.to import CONVERSIONS
from ..storage.alias import assign, detached
from ..storage.inplace_check import permit
from ..tape import interception
from ..tape.mode import RECORD, current_mode
from ..tape.record import finish
from ..tape.sparse_tensor import (
    SparseTensor,
    gradient_of,
    is_sparse,
    sparse,
    values_for,
    values_of,
)
from ..tape.tensor import (
    Tensor,
    concrete,
    current,
    has_tangent,
    held,
    is_concrete,
    is_tracked,
    known_counter,
    name_of_node,
    node_or_mark,
    restore_state,
    set_node,
    set_tracked,
    state_of,
)
from . import _operators, _pattern


def _needs_sparse(name: str, tensor: Tensor, layout="sparse coordinate tensor layout"):
    if not is_sparse(tensor):
        raise RuntimeError(f"{name} expected {layout} but got Strided")


# ---- of every tensor


@shows_users_frames
def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout=None) -> Tensor:
    """Return the tensor in layout `sparse_coo`, with the elements that are not zero.

    sparse_dim: the number of sparse dimensions, by default all; the other dimensions stay dense.
    layout: `torch.sparse_coo` or None. The gradient of the result lies on its pattern. Raises
    RuntimeError for a number of dimensions that the tensor has not, and in a trace, where the
    number of elements is not known: use `sparse_mask` there.

    >>> jaxgrad.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse().indices()
    tensor([[0],
            [1]])
    """
    if layout not in (None, sparse_coo):
        raise NotImplementedError(f"to_sparse: there is no layout {layout!r} in jaxgrad")
    wanted = self.ndim if sparse_dim is None else sparse_dim
    if is_sparse(self):
        if sparse_dim not in (None, _pattern.sparse_dims(self)):
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with another sparse_dim"
            )
        return self
    if not 0 <= wanted <= self.ndim or (wanted == 0 and self.ndim):
        raise RuntimeError(
            f"sparse_dim argument must be in >0 and <={self.ndim} range, but {wanted} is given"
        )
    array = np.asarray(concrete(self, "to_sparse()"))
    is_kept = (array != 0).reshape(*array.shape[:wanted], -1).any(-1)
    indices = np.stack(np.nonzero(is_kept)) if wanted else np.zeros((0, int(is_kept)), np.int64)
    indices = _pattern.as_indices(indices)
    operator = ops._coo_to_sparse if sparse_dim is None else ops._coo_to_sparse_dim
    return sparse(operator(self, indices), indices, self.shape, True)


@shows_users_frames
def to_sparse_coo(self: Tensor) -> Tensor:
    """Return the tensor in layout `sparse_coo`; see `to_sparse`.

    >>> jaxgrad.tensor([0.0, 2.0]).to_sparse_coo().values()
    tensor([2.])
    """
    return to_sparse(self)


@shows_users_frames
def to_dense(self: Tensor, dtype=None, *, masked_grad: bool | None = None) -> Tensor:
    """Return the tensor in layout `strided`; a dense tensor itself.

    dtype: converts, unless it is None. masked_grad: the gradient of a sparse tensor lies on its
    pattern, so False raises NotImplementedError. Elements at equal indices are added.

    >>> jaxgrad.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,)).to_dense()
    tensor([0., 5., 0.])
    """
    if masked_grad is False:
        raise NotImplementedError("to_dense: gradients of sparse tensors lie on their patterns")
    dense = _operators.to_dense(self) if is_sparse(self) else self
    return dense if dtype is None else dense.to(dtype)


@shows_users_frames
def coalesce(self: Tensor) -> Tensor:
    """Return the sparse tensor with sorted and distinct indices, where equal ones are added.

    Raises RuntimeError for a dense tensor. In a trace, where the number of elements depends on
    indices that are not known, `values()`, `indices()` and the like of the result raise it.

    >>> jaxgrad.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,)).coalesce().values()
    tensor([5.])
    """
    _needs_sparse("coalesce", self)
    return _operators.merged(self)


@shows_users_frames
def is_coalesced(self: Tensor) -> bool:
    """Return whether the indices are known to be sorted and distinct.

    Raises RuntimeError for a dense tensor.

    >>> jaxgrad.eye(2).to_sparse().is_coalesced()
    True
    """
    _needs_sparse("is_coalesced", self)
    return _operators.is_coalesced(self)


@shows_users_frames
def indices(self: Tensor) -> Tensor:
    """Return the indices of a coalesced tensor, int64, of shape (sparse dimensions, elements).

    Raises RuntimeError for a tensor that is dense or not coalesced.

    >>> jaxgrad.eye(2).to_sparse().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    _needs_sparse("indices", self, "sparse tensor layout")
    self = _needs_coalesced("indices", self)
    return self._indices_held.detach()


@shows_users_frames
def values(self: Tensor) -> Tensor:
    """Return the values of a coalesced tensor, a view of shape (elements, *dense sizes).

    Gradients flow back to the sparse tensor. Raises RuntimeError for a tensor that is dense or not
    coalesced.

    >>> jaxgrad.eye(2).to_sparse().values()
    tensor([1., 1.])
    """
    _needs_sparse("values", self, "sparse tensor layout")
    self = _needs_coalesced("values", self)
    # on the sparse handle itself: the view shares its memory
    program, _ = ops._coo_values.operator.bind((values_of(self),), {})
    return finish(program, [self], (held(current(self)),), (is_tracked(self),))


def _needs_coalesced(name, tensor) -> SparseTensor:
    if _operators.is_coalesced(tensor):
        return _operators.counted(tensor, f"{name}()")
    raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")


@shows_users_frames
def _indices(self: Tensor) -> Tensor:
    """Return the indices of a sparse tensor, also of one that is not coalesced."""
    _needs_layout("_indices", self)
    return _operators.counted(self, "_indices()")._indices_held.detach()


@shows_users_frames
def _values(self: Tensor) -> Tensor:
    """Return the values of a sparse tensor without their history, on its memory."""
    _needs_layout("_values", self)
    return detached(_operators.counted(self, "_values()"))


@shows_users_frames
def _nnz(self: Tensor) -> int:
    """Return the number of elements that a sparse tensor stores."""
    _needs_layout("_nnz", self)
    return _pattern.nnz(_operators.counted(self, "_nnz()"))


def _needs_layout(name, tensor):
    if not is_sparse(tensor):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: the tensor is "
            "dense"
        )


@shows_users_frames
def sparse_dim(self: Tensor) -> int:
    """Return the number of sparse dimensions, 0 for a dense tensor.

    >>> jaxgrad.eye(2).to_sparse().sparse_dim(), jaxgrad.eye(2).sparse_dim()
    (2, 0)
    """
    return _pattern.sparse_dims(self) if is_sparse(self) else 0


@shows_users_frames
def dense_dim(self: Tensor) -> int:
    """Return the number of dense dimensions: those of each value.

    >>> jaxgrad.eye(2).to_sparse(1).dense_dim(), jaxgrad.eye(2).dense_dim()
    (1, 2)
    """
    return self.ndim - sparse_dim(self)


@shows_users_frames
def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """Return the elements of a tensor at the indices of a sparse one.

    mask: a sparse tensor of this shape; only its indices count. The gradient of a dense tensor is
    dense. Raises RuntimeError for another shape, NotImplementedError for a mask that is dense.

    >>> x = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.sparse_mask(jaxgrad.eye(2).to_sparse()).values()
    tensor([1., 4.])
    """
    _needs_layout("sparse_mask", mask)
    if self.shape != mask.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size "
            f"{list(self.shape)} but mask has size {list(mask.shape)}"
        )
    mask = _operators.merged(mask)
    if is_sparse(self):
        elements = _operators.elements_at(self, mask)
    else:
        elements = ops._coo_mask(self, mask._indices_held)
    return _operators.like_or_nothing(mask, elements)


# ---- of sparse tensors, in place of those of dense ones


def replace(target: SparseTensor, source: SparseTensor):
    """Give a sparse tensor the elements of another one of its shape."""
    is_recorded = current_mode.get() is RECORD
    if is_recorded and is_tracked(target) and not is_tracked(source):
        raise NotImplementedError(
            "a constant is written into a sparse tensor that requires grad: write in no_grad()"
        )
    if source._indices_held is target._indices_held:
        assign(target, values_of(source), is_recorded)
        return
    if target._is_grad:
        why = "of a .grad: assign the new gradient to .grad"
    elif is_tracked(target) and not is_recorded:
        why = "that requires grad, and its gradients lie on it: make a new tensor"
    elif interception.read is not None or has_tangent(target):
        why = "in a trace, or of one with a tangent: use the operator that returns a new tensor"
    else:
        give_pattern(target, source)
        return
    raise RuntimeError(f"a write in place changes the pattern of a sparse tensor {why}")


def give_pattern(target: SparseTensor, source: SparseTensor):
    """Give a sparse tensor the indices, the values and the history of another one."""
    current(source)
    counter = known_counter(target)
    restore_state(target, state_of(source))
    target._indices_held, target._coalesced = source._indices_held, source._coalesced
    if counter is not None:
        counter.count()


class SparseMethods:
    """Methods of `SparseTensor`."""

    __hash__ = object.__hash__
    device = property(lambda self: device_of(held(current(self))))
    data = property(lambda self: _operators.detach(self))
    T = property(lambda self: _operators.permute(self, range(self.ndim)[::-1]))
    mT = property(lambda self: _operators.transpose(self, -2, -1))

    def clone(self, *, memory_format=None):
        return _operators.elementwise("clone", self)

    @shows_users_frames
    def detach(self):
        return _operators.detach(self)

    @shows_users_frames
    def detach_(self):
        if is_tracked(self) and node_or_mark(self) is not None:
            set_node(self, None)
        set_tracked(self, False)
        return self

    @shows_users_frames
    def to(self, *args, **kwargs):
        source = values_of(self)
        values = source.to(*args, **kwargs)
        if values.is_meta != source.is_meta:
            raise NotImplementedError(
                "to(): a sparse tensor moves to the device meta in no version yet: to_dense() first"
            )
        return self if values is source else _operators.like(self, values)

    @shows_users_frames
    def requires_grad_(self, requires_grad: bool = True):
        Tensor.requires_grad_(self, requires_grad)
        return self

    @shows_users_frames
    def register_hook(self, hook):
        def on_values(gradient):
            replacement = hook(gradient_of(self, gradient))
            return None if replacement is None else values_for(self, replacement)

        if not callable(hook):
            return HookMethods.register_hook(self, hook)
        return HookMethods.register_hook(self, on_values)

    @shows_users_frames
    def sparse_resize_(self, size, sparse_dim, dense_dim):
        raise NotImplementedError("sparse_resize_: sparse tensors keep their sizes in jaxgrad")

    @shows_users_frames
    def resize_as_sparse_(self, other):
        raise NotImplementedError("resize_as_sparse_: sparse tensors keep their sizes in jaxgrad")

    @shows_users_frames
    def copy_(self, src, non_blocking=False):
        permit("copy_", self, self.requires_grad or src.requires_grad)
        replace(self, _operators.copy(self, src))
        return self

    @shows_users_frames
    def zero_(self):
        self._values().zero_()
        return self

    def is_contiguous(self, memory_format=None):
        return False

    def contiguous(self, memory_format=None):
        raise RuntimeError("contiguous: Tensors of layout torch.sparse_coo have no strides")

    @shows_users_frames
    def numpy(self, *, force=False):
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def __bool__(self):
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(_operators.to_dense(self))

    @shows_users_frames
    def __iter__(self):
        return iter(_operators.unbind(self))

    @shows_users_frames
    def __getitem__(self, index):
        if not isinstance(index, int) or isinstance(index, bool):
            _refused("__getitem__")(self)
        return _operators.select(self, 0, index)

    @shows_users_frames
    def select(self, dim, index):
        return _operators.select(self, dim, index)

    @shows_users_frames
    def item(self):
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return _operators.to_dense(self.detach()).item()

    def __deepcopy__(self, memo):
        if self.grad_fn is not None:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment."
            )
        clone = _operators.like(self, ops.clone(values_of(self).detach()))
        memo[id(self)] = clone.requires_grad_(self.requires_grad)
        if self.grad is not None:
            clone.grad = self.grad.detach()
        return clone

    def __copy__(self):
        return _operators.like(self, values_of(self))

    def __repr__(self):
        if not (is_concrete(values_of(self)) and is_concrete(self._indices_held)):
            unknown = "<no data, on meta>" if values_of(self).is_meta else "<traced>"
            return (
                f"tensor({unknown}, shape={list(self.shape)}, dtype={self.dtype}, "
                "layout=torch.sparse_coo)"
            )
        return printing.sparse_tensor_str(
            np.asarray(self._indices_held._array),
            np.asarray(held(current(self))),
            self.dtype,
            tuple(self.shape),
            self._requires_grad,
            name_of_node(self),
        )

    def _repr_html_(self):
        return None  # the text is enough


for _name, _dtype in CONVERSIONS.items():
    setattr(SparseMethods, _name, lambda self, dtype=_dtype: self.to(dtype))

# methods of dense tensors that hold for sparse ones: they read neither the array nor the strides
KEPT = frozenset(
    [
        "size",
        "dim",
        "ndimension",
        "numel",
        "nelement",
        "element_size",
        "itemsize",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "is_inference",
        "__len__",
        "__rtruediv__",
        "__rpow__",
        "__rmatmul__",
        "_version",
        "is_cpu",
        "is_cuda",
        "is_meta",
        "get_device",
        "type",
        "is_leaf",
        "layout",
        "is_sparse",
        "retain_grad",
        "register_post_accumulate_grad_hook",
        "__format__",
        "_backward_hooks",
        "_post_accumulate_grad_hooks",
        "cpu",
        "type_as",
        "name",
    ]
)


def _refused(name):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'SparseCPU' backend: {name} "
            "takes no tensors of layout torch.sparse_coo here. Call it on tensor.values(), or on "
            "tensor.to_dense()"
        )

    return refuse


def install(sources):
    """Give `SparseTensor` its methods, and refuse those that read the array of a dense tensor.

    sources: the classes with the methods of dense tensors.
    """
    names = {name for name in vars(SparseMethods) if name not in vars(type("", (), {}))}
    names |= {"__hash__", "__repr__"}
    for source in sources:
        for name, member in vars(source).items():
            if name in KEPT or name in names or name in vars(SparseTensor):
                continue
            if name in ("__module__", "__dict__", "__weakref__", "__doc__", "__qualname__"):
                continue
            refused = _refused(name)
            setattr(SparseTensor, name, property(refused) if not callable(member) else refused)
    for name in names:
        setattr(SparseTensor, name, vars(SparseMethods)[name])
    SparseTensor._array = property(_refused("_array"))
