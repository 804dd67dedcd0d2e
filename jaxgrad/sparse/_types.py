"""`torch.sparse.FloatTensor` and the other types of sparse tensors of early PyTorch."""

from __future__ import annotations

from ..core.aval import Size
from ..core.pytorch_tensors import type_name
from ..frontend.legacy_types import DTYPES
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import Tensor
from ..tape.warn_once import warn_once
from ._construction import sparse_coo_tensor


class SparseType(type):
    """The class of the types of sparse tensors by dtype, which their tensors are not made of: all
    are of the class `Tensor`.
    """

    def __call__(cls, *arguments, device=None) -> Tensor:
        _warn(arguments)
        return make(cls.dtype, *arguments, device=device)

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and is_sparse(instance) and instance.dtype is cls.dtype

    def __repr__(cls):
        return f"<class 'torch.sparse.{cls.__name__}'>"


def make(dtype, *arguments, device=None) -> Tensor:
    """A sparse tensor of its parts, or one of a dtype by its sizes."""
    if len(arguments) > 1 and isinstance(arguments[0], Tensor):
        return sparse_coo_tensor(*arguments, device=device)
    (sizes,) = arguments if len(arguments) == 1 else [arguments]
    if not isinstance(sizes, int | list | tuple):
        raise TypeError(
            f"new() received an invalid combination of arguments - got "
            f"({type_name(sizes)}), but expected sizes, or indices, values and sizes"
        )
    if isinstance(sizes, list) or (isinstance(sizes, tuple) and sizes is not arguments):
        sizes = _size(sizes)
    size = (sizes,) if isinstance(sizes, int) else tuple(sizes) or (0,)
    return sparse_coo_tensor(size, dtype=dtype, device=device)


def _warn(arguments):
    parts = ("indices", "values", "shape")[: len(arguments)]
    is_of_parts = len(arguments) > 1 and isinstance(arguments[0], Tensor)
    form = ", ".join(parts) if is_of_parts else "shape"
    old, new = f"{form}, *, device=", f"{form}, dtype=, device="
    if not arguments:
        old, new = "", "(0,), dtype="
    warn_once(
        f"torch.sparse.SparseTensor({old}) is deprecated.  Please use "
        f"torch.sparse_coo_tensor({new})"
    )


def _size(sequence) -> Size:
    """A size as a size. Raises TypeError for the elements of a dense tensor."""
    if isinstance(sequence, Size):
        return sequence
    raise TypeError(
        "torch.sparse.SparseTensor(sequence) only accepts sizes. Please use "
        "torch.sparse_coo_tensor() or construct a strided tensor and convert it to sparse via "
        "to_sparse."
    )


def _type_of(name: str, dtype) -> SparseType:
    source = f"jaxgrad.eye(2, dtype=jaxgrad.{dtype.name}).to_sparse()"
    text = (
        f"The type of sparse tensors of {dtype}. A call makes one of indices, values and a size, "
        f"or by its sizes.\n\n>>> isinstance({source}, jaxgrad.sparse.{name})\nTrue\n"
    )
    return SparseType(name, (), {"dtype": dtype, "__module__": "torch.sparse", "__doc__": text})


TYPES = {name: _type_of(name, dtype) for name, dtype in DTYPES.items() if name != "BoolTensor"}
