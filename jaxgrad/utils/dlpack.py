"""Tensors of other libraries by the DLPack protocol, as torch.utils.dlpack."""

from __future__ import annotations

from ..frontend.tensor_data import from_dlpack as from_dlpack
from ..names.missing import missing_in
from ..tape.tensor import Tensor


def to_dlpack(tensor: Tensor):
    """Return a capsule of the memory of a tensor, which the reader must not write to.

    Raises BufferError where JAX cannot share it, such as for a tensor that requires grad.

    >>> jaxgrad.from_dlpack(jaxgrad.ones(2))
    tensor([1., 1.])
    """
    return tensor.__dlpack__()


__getattr__ = missing_in(__name__)
