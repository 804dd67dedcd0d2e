"""Methods that a sparse tensor has in place of a dense one's. A method that reads the array of a
dense tensor is refused.
"""

from __future__ import annotations

import numpy as np

from .. import ops
from ..autograd._engine.tensor_hooks import HookMethods
from ..core import dtypes
from ..core.device import device_of, preserve_format
from ..core.tracebacks import shows_users_frames
from ..frontend.printing import arrays as printing
from ..frontend.to import CONVERSIONS
from ..storage.inplace_check import permit
from ..tape.mode import RECORD, current_mode
from ..tape.sparse_tensor import SparseTensor, gradient_of, is_sparse, sparse, values_for, values_of
from ..tape.tensor import (
    Tensor,
    current,
    held,
    is_concrete,
    is_tracked,
    name_of_node,
    node_or_mark,
    set_node,
    set_tracked,
)
from ..tape.version_counter import counter_of
from . import _elements, _pattern, _products, _refusals, _replacing, _shapes, _types


class SparseMethods:
    """Methods of `SparseTensor`."""

    __hash__ = object.__hash__
    device = property(lambda self: device_of(held(current(self))))
    T = property(lambda self: _shapes.permute(self, range(self.ndim)[::-1]))
    mT = property(lambda self: _shapes.transpose(self, -2, -1))
    mH = property(lambda self: ops.conj(_shapes.transpose(self, -2, -1)))
    H = property(lambda self: ops.conj(_shapes.t(self)))
    real = property(lambda self: _elements.elementwise("real", self) if self.is_complex() else self)
    imag = property(lambda self: _elements.elementwise("imag", self))
    is_sparse_csr = is_nested = property(lambda self: False)
    _base = property(lambda self: None)

    def _is_view(self) -> bool:
        return False

    @shows_users_frames
    def clone(self, *, memory_format=None):
        if memory_format is not None:
            raise RuntimeError(f"unsupported memory format option {memory_format}")
        return _elements.elementwise("clone", self)

    @shows_users_frames
    def detach(self):
        return _elements.detach(self)

    @shows_users_frames
    def detach_(self):
        if is_tracked(self) and node_or_mark(self) is not None:
            set_node(self, None)
        set_tracked(self, False)
        return self

    @shows_users_frames
    def to(self, *args, **kwargs):
        source = values_of(self)
        if kwargs.get("memory_format", preserve_format) not in (None, preserve_format):
            raise RuntimeError(
                "to(options): COO only supports memory format Preserve, but got "
                f"{kwargs.pop('memory_format')} instead."
            )
        if args and is_sparse(args[0]):
            args = (args[0].device, args[0].dtype, *args[1:])
        values = source.to(*args, **kwargs)
        if values.is_meta != source.is_meta:
            raise NotImplementedError(
                "to(): a sparse tensor moves to the device meta in no version yet: to_dense() first"
            )
        return self if values is source else _elements.like(self, values)

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

    @property
    def data(self):
        """The tensor without its history, on the same memory."""
        return _elements.detach(self)

    @data.setter
    def data(self, source):
        if not is_sparse(source) or source.layout is not self.layout:
            raise RuntimeError(
                "set_data: a sparse tensor takes the data of a tensor of its layout, not of layout "
                f"{getattr(source, 'layout', type(source).__name__)}"
            )
        self._set_pattern("data=", source.detach(), _replacing.give_pattern)

    def _set_pattern(self, name, source, give=_replacing.write_pattern):
        """Give the tensor other elements and sizes; give: how, which tells if it is a write."""
        why = _replacing.unchangeable(self, current_mode.get() is RECORD and is_tracked(source))
        if why:
            raise RuntimeError(f"{name} changes the pattern of a sparse tensor {why}")
        give(self, source)
        return self

    @shows_users_frames
    def sparse_resize_(self, size, sparse_dim, dense_dim):
        """Give the tensor other sizes: it keeps its elements, whose numbers of dimensions must be
        the same.
        """
        _replacing.check_resize(self, size, sparse_dim, dense_dim)
        return self._set_pattern(
            "sparse_resize_", _replacing.resized(self.detach(), size, sparse_dim)
        )

    @shows_users_frames
    def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
        """Give the tensor other sizes and numbers of dimensions, and no elements."""
        if len(size) != sparse_dim + dense_dim:
            _replacing.check_resize(self, size, sparse_dim, dense_dim)
        return self._set_pattern(
            "sparse_resize_", _replacing.without_elements(self, size, sparse_dim)
        )

    @shows_users_frames
    def resize_as_sparse_(self, other):
        """Give the tensor the sizes of another sparse one; it keeps its elements."""
        _refusals.need_sparse("resize_as_sparse_", other)
        count = _pattern.sparse_dims(other)
        if self.shape == other.shape and _pattern.sparse_dims(self) == count:
            return self
        return self.sparse_resize_(tuple(other._sizes), count, other.ndim - count)

    @shows_users_frames
    def resize_as_(self, the_template, *, memory_format=None):
        return self.resize_as_sparse_(the_template)

    @shows_users_frames
    def _coalesced_(self, coalesced):
        """Set whether the indices count as sorted and distinct, which is not checked."""
        self._coalesced = bool(coalesced)
        counter_of(self).count()
        return self

    @shows_users_frames
    def t_(self):
        return self._set_pattern("t_", _shapes.t(self))

    @shows_users_frames
    def transpose_(self, dim0, dim1):
        return self._set_pattern("transpose_", _shapes.transpose(self, dim0, dim1))

    swapaxes_ = swapdims_ = transpose_

    @shows_users_frames
    def narrow_copy(self, dim, start, length):
        return _shapes.narrow_copy(self, dim, start, length)

    @shows_users_frames
    def smm(self, mat):
        return _products.smm(self, mat)

    @shows_users_frames
    @_products.takes_old_sspaddmm
    def sspaddmm(self, mat1, mat2, *, beta=1, alpha=1):
        return _products.sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)

    saddmm = sspaddmm

    def type(self, dtype=None, non_blocking=False):
        if dtype is None:
            return f"torch.sparse.{self.dtype.scalar_type}Tensor"
        if isinstance(dtype, str) and dtype.startswith("torch.sparse."):
            dtype = _types.TYPES[dtype.removeprefix("torch.sparse.")]
        return self.to(getattr(dtype, "dtype", dtype))

    @shows_users_frames
    def new(self, *arguments, device=None):
        return _types.make(self.dtype, *arguments, device=device)

    @property
    def nbytes(self):
        raise RuntimeError(
            "nbytes is not defined for sparse tensors: add those of indices() and values()"
        )

    def stride(self, dim=None):
        return (0,) * self.ndim if dim is None else 0

    def storage_offset(self):
        return 0

    def __dlpack__(self, **arguments):
        raise BufferError("Can't export tensors with layout other than torch.strided")

    def data_ptr(self):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    tolist = data_ptr

    def is_conj(self):
        return False

    is_neg = is_pinned = is_conj

    def __setitem__(self, index, value):
        raise TypeError("Cannot assign to a sparse tensor")

    @shows_users_frames
    def copy_(self, src, non_blocking=False):
        permit("copy_", self, self.requires_grad or getattr(src, "requires_grad", False))
        _replacing.replace(self, _elements.copy(self, src))
        return self

    @shows_users_frames
    def zero_(self):
        permit("zero_", self, self.requires_grad)
        return _replacing.clear(self, _elements.zero(self))

    def is_contiguous(self, memory_format=None):
        return False

    def contiguous(self, memory_format=None):
        raise RuntimeError(
            "contiguous: unsupported memory format option Contiguous: tensors of layout "
            f"{self.layout} have no strides"
        )

    @shows_users_frames
    def numpy(self, *, force=False):
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def __bool__(self):
        if self.numel() != 1:
            count = "more than one value" if self.numel() else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {count} is ambiguous")
        return bool(_elements.to_dense(self))

    @shows_users_frames
    def __iter__(self):
        return iter(_shapes.unbind(self))

    @shows_users_frames
    def __getitem__(self, index):
        return _shapes.index(self, index)

    @shows_users_frames
    def select(self, dim, index):
        return _shapes.select(self, dim, index)

    @shows_users_frames
    def item(self):
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return _elements.to_dense(self.detach()).item()

    def __deepcopy__(self, memo):
        if self.grad_fn is not None:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment."
            )
        clone = _elements.like(self, ops.clone(values_of(self).detach()))
        memo[id(self)] = clone.requires_grad_(self.requires_grad)
        if self.grad is not None:
            clone.grad = self.grad.detach()
        return clone

    def __copy__(self):
        return _elements.like(self, values_of(self))

    def __reduce_ex__(self, protocol):
        part = self.detach()
        parts = part._indices(), part._values(), tuple(self._sizes), self.is_coalesced()
        return _rebuilt, (*parts, self.requires_grad)

    def __repr__(self):
        if not (is_concrete(values_of(self)) and is_concrete(self._indices_held)):
            unknown = "<no data, on meta>" if values_of(self).is_meta else "<traced>"
            return (
                f"tensor({unknown}, shape={list(self.shape)}, dtype={self.dtype}, "
                "layout=torch.sparse_coo)"
            )
        values, size = np.asarray(held(current(self))), tuple(self.shape)
        parts = {"indices": (np.asarray(self._indices_held._array), dtypes.int64)}
        return printing.sparse_tensor_str(
            parts | {"values": (values, self.dtype)},
            self.dtype,
            size,
            self.layout,
            self._indices_held.shape[1],
            self._requires_grad,
            name_of_node(self),
        )

    def _repr_html_(self):
        return None  # the text is enough


def _conversion(dtype):
    def convert(self, memory_format=preserve_format):
        return self if self.dtype is dtype else self.to(dtype, memory_format=memory_format)

    return convert


for _name, _dtype in CONVERSIONS.items():
    setattr(SparseMethods, _name, _conversion(_dtype))


def _rebuilt(indices, values, size, is_coalesced, requires_grad):
    """A sparse tensor of what was pickled."""
    tensor = sparse(values, indices, size, is_coalesced)
    return tensor.requires_grad_() if requires_grad else tensor


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
        *("new_zeros", "new_empty", "new_ones", "new_full", "new_tensor", "is_quantized", "is_xpu"),
        *("is_ipu", "is_maia", "is_mkldnn", "is_mps", "is_mtia", "is_vulkan", "is_xla"),
        *("__float__", "__int__", "__complex__", "__index__", "cuda"),
        "is_complex",
        "is_signed",
        "is_inference",
        "__len__",
        *("__div__", "__idiv__", "module_load"),
        "__rtruediv__",
        "__rpow__",
        "__rmatmul__",
        "_version",
        "is_cpu",
        "is_cuda",
        "is_meta",
        "get_device",
        "is_leaf",
        "layout",
        "is_sparse",
        "retain_grad",
        "register_post_accumulate_grad_hook",
        "__format__",
        "_backward_hooks",
        "_post_accumulate_grad_hooks",
        "cpu",
        "sum_to_size",
        "type_as",
        *("resolve_conj", "resolve_neg"),
        "name",
    ]
)


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
            refusal = _refusals.refused(name)
            setattr(SparseTensor, name, refusal if callable(member) else property(refusal))
    for name in names:
        setattr(SparseTensor, name, vars(SparseMethods)[name])
    SparseTensor._array = property(_refusals.refused("_array"))
