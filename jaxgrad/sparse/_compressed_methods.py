"""Methods of tensors in compressed layouts, in place of those in coordinate format."""

from __future__ import annotations

import numpy as np

from ..core.tracebacks import shows_users_frames
from ..frontend.printing import arrays as printing
from ..storage.inplace_check import permit
from ..tape.sparse_tensor import CompressedTensor, Compression, is_compressed, sparse, values_of
from ..tape.tensor import Tensor, current, held, is_concrete, name_of_node
from . import _compressed, _elements, _layouts, _refusals, _replacing, _tensor_methods


class CompressedMethods:
    """Methods of `CompressedTensor`."""

    __hash__ = object.__hash__
    is_sparse_csr = property(lambda self: self.layout is _layouts.sparse_csr)
    T = property(lambda self: self.t())
    mT = property(lambda self: _compressed.call("transpose", (self, -2, -1), {}))
    mH = property(lambda self: self.mT.conj())
    H = property(lambda self: self.t().conj())

    @shows_users_frames
    def select(self, dim, index):
        batch, place = _compressed.batch_dims(self), _elements.wrapped(dim, self.ndim)
        if batch and batch <= place < batch + 2:
            raise RuntimeError(
                "select(): selecting sparse dimensions is not supported for batched sparse "
                "compressed tensors."
            )
        part = _elements_of(self).select(dim, index)
        if place >= batch + 2:
            return _compressed.in_layout_of(self, part)
        return _compressed.part(self, part)

    @shows_users_frames
    def __getitem__(self, index):
        return _compressed.part(self, _elements_of(self)[index])

    @shows_users_frames
    def __iter__(self):
        return iter(self.unbind())

    @shows_users_frames
    def unbind(self, dim=0):
        return tuple(_compressed.part(self, one) for one in _elements_of(self).unbind(dim))

    @shows_users_frames
    def item(self):
        return _elements_of(self).item()

    @shows_users_frames
    def copy_(self, src, non_blocking=False):
        permit("copy_", self, self.requires_grad or getattr(src, "requires_grad", False))
        _check_copied(self, src)
        values = values_of(src).to(self.dtype).clone()
        _replacing.replace(self, _compressed.like(src, values))
        return self

    @shows_users_frames
    def zero_(self):
        permit("zero_", self, self.requires_grad)
        return _replacing.clear(self, _compressed.zero(self))

    @shows_users_frames
    def fill_(self, value):
        permit("fill_", self, self.requires_grad)
        _replacing.replace(self, _compressed.like(self, values_of(self).clone().fill_(value)))
        return self

    @shows_users_frames
    def normal_(self, mean=0.0, std=1.0, *, generator=None):
        permit("normal_", self, self.requires_grad)
        drawn = values_of(self).detach().clone().normal_(mean, std, generator=generator)
        _replacing.replace(self, _compressed.like(self, drawn))
        return self

    @shows_users_frames
    def resize_(self, *size, memory_format=None):
        if memory_format is not None:
            raise RuntimeError(f"unsupported memory format option {memory_format}")
        size = size if size and isinstance(size[0], int) else tuple(size[0])
        return self._set_pattern("resize_", _compressed.resized(self.detach(), size))

    @shows_users_frames
    def resize_as_sparse_(self, other):
        _compressed.check_same_layout(self, other)
        return self._set_pattern("resize_as_sparse_", _compressed.shaped_as(self, other))

    def untyped_storage(self):
        raise NotImplementedError("Cannot access storage of SparseCsrTensorImpl")

    storage = untyped_storage

    nbytes = property(lambda self: self.numel() * self.element_size())

    @shows_users_frames
    def sparse_mask(self, mask):
        return _tensor_methods.sparse_mask(self, mask)

    def is_contiguous(self, memory_format=None):
        raise RuntimeError(f"Sparse {_refusals.short(self)} tensors do not have is_contiguous")

    def stride(self, dim=None):
        raise RuntimeError(f"Sparse {_refusals.short(self)} tensors do not have strides")

    @shows_users_frames
    def numpy(self, *, force=False):
        name = _compressed.name_of(self)
        raise TypeError(
            f"can't convert {name} layout tensor to numpy. Use Tensor.to_dense() first."
        )

    def type(self, dtype=None, non_blocking=False):
        if dtype is None:
            return f"torch.sparse_csr.{self.dtype.scalar_type}Tensor"
        return self.to(getattr(dtype, "dtype", dtype))

    def __reduce_ex__(self, protocol):
        part = self.detach()
        indices = part._coalesced.indices, part._indices_held
        return _rebuilt, (
            *indices,
            part.values(),
            tuple(self._sizes),
            self.layout,
            self.requires_grad,
        )

    def __repr__(self):
        indices = self._coalesced.indices, self._indices_held
        if not all(map(is_concrete, (*indices, values_of(self)))):
            return (
                f"tensor(<traced>, shape={list(self.shape)}, dtype={self.dtype}, "
                f"layout={self.layout})"
            )
        is_rows = self.layout in _layouts.ROWS
        names = ("crow_indices", "col_indices") if is_rows else ("ccol_indices", "row_indices")
        parts = {
            name: (np.asarray(i._array), i.dtype) for name, i in zip(names, indices, strict=True)
        }
        parts["values"] = np.asarray(held(current(self))), self.dtype
        return printing.sparse_tensor_str(
            parts,
            self.dtype,
            tuple(self.shape),
            self.layout,
            self._nnz(),
            self._requires_grad,
            name_of_node(self),
        )


def _check_copied(self, src):
    copied = "copy_: copy of sparse compressed tensors having different"
    if not is_compressed(src) or src.layout is not self.layout:
        raise RuntimeError(
            f"{copied} layouts is not supported. self layout is {_compressed.name_of(self)} and "
            f"src layout is {_compressed.name_of(src)}"
        )
    if src.shape != self.shape:
        raise RuntimeError(
            f"copy_: expected shapes of self and src to match along dimension, but got "
            f"{list(self.shape)} and {list(src.shape)}"
        )
    if src._nnz() != self._nnz():
        raise RuntimeError(
            "copy_: only sparse compressed tensors with the same number of specified elements "
            "are supported."
        )
    blocks = _compressed.block_of(self), _compressed.block_of(src)
    if blocks[0] != blocks[1]:
        raise RuntimeError(
            f"{copied} block sizes is not supported. self and src block sizes are {blocks[0]} and "
            f"{blocks[1]}"
        )


def _elements_of(tensor: CompressedTensor) -> Tensor:
    return _elements.coalesce(_compressed.as_coo(tensor))


def _rebuilt(compressed, plain, values, size, layout, requires_grad):
    """A tensor of what was pickled."""
    tensor = sparse(values, plain, size, Compression(compressed, layout))
    return tensor.requires_grad_() if requires_grad else tensor


# methods that tensors in coordinate format alone have
ONLY_COORDINATES = (
    "sparse_resize_ sparse_resize_and_clear_ resize_as_ _coalesced_ t_ "
    "transpose_ swapaxes_ swapdims_ narrow_copy smm sspaddmm saddmm new"
)


def install():
    """Give `CompressedTensor` its methods."""
    for name in ONLY_COORDINATES.split():
        setattr(CompressedTensor, name, _refusals.refused(name))
    hidden = {*vars(type("", (), {}))} - {"__hash__"}
    for name, member in vars(CompressedMethods).items():
        if name not in hidden:
            setattr(CompressedTensor, name, member)
