"""Tensors without data that stand for the values of nodes: `node.meta["val"]`."""

from __future__ import annotations

from ..core.aval import META, make_aval
from ..core.device import device
from ..core.dtypes import as_dtype
from ..core.meta_array import MetaArray
from ..tape.tensor import Tensor, abstract_value, current, wrap
from ..tape.torch_function import disabled


class FakeTensor(Tensor):
    """The shape, dtype, strides and device of the value of a node.

    Its extents are ints, or sizes that vary.
    """

    __slots__ = ()
    __torch_function__ = disabled

    @property
    def device(self) -> device:
        """The device on which the module was exported."""
        return device("cpu")

    def __repr__(self):
        dtype = "" if str(self.dtype) == "torch.float32" else f", dtype={self.dtype}"
        return f"FakeTensor(..., size=({_listed(self.shape)}){dtype})"


def _listed(shape) -> str:
    return f"{shape[0]}," if len(shape) == 1 else ", ".join(map(str, shape))


def fake_of(tensor: Tensor) -> FakeTensor:
    """The stand-in of a tensor."""
    aval = abstract_value(current(tensor))
    return fake(tuple(aval.shape), aval.dtype, aval.strides)


def fake_like(struct) -> FakeTensor:
    """Stands for an array of JAX; it has a shape and a dtype, and no data."""
    return fake(tuple(struct.shape), as_dtype(struct.dtype))


def fake(shape: tuple, dtype, strides=None) -> FakeTensor:
    """A stand-in of a shape, a dtype and strides."""
    meta = make_aval(shape, dtype, META, strides)
    stand_in = wrap(MetaArray(meta), meta)
    stand_in.__class__ = FakeTensor
    return stand_in
