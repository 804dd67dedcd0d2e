"""Arrays without data: tensors on the device `meta` hold only a shape and a dtype."""

from __future__ import annotations

import jax

NO_DATA = "Cannot copy out of meta tensor; no data!"

# PyTorch's errors for what a tensor on the device meta cannot do
_NO_ITEM = RuntimeError, "Tensor.item() cannot be called on meta tensors."
ON_META = {
    "item()": _NO_ITEM,
    "bool()": _NO_ITEM,
    "numpy()": (TypeError, "can't convert meta device type tensor to numpy."),
    "__dlpack__()": (BufferError, "Cannot pack tensors on meta."),
    "__dlpack_device__()": (ValueError, "Unknown device type meta for Dlpack."),
}


class MetaArray:
    """An array that has an abstract value and no elements.

    JAX takes it where a `jax.ShapeDtypeStruct` is enough, as in `jax.eval_shape`, and refuses it
    where it needs numbers.
    """

    __slots__ = ("__weakref__", "aval", "sharding")

    weak_type = False
    shape = property(lambda self: self.aval.shape)
    ndim = property(lambda self: len(self.aval.shape))
    size = property(lambda self: self.aval.shape.numel())
    dtype = property(lambda self: self.aval.dtype.numpy)

    def __init__(self, aval, sharding=None):
        """aval: that of the array, whose executor is that of the device `meta`; contiguous.
        sharding: how an array in its place is to lie on devices, None if that is open.
        """
        self.aval, self.sharding = aval, sharding

    @property
    def struct(self) -> jax.ShapeDtypeStruct:
        """The struct that stands for the array in traces of JAX."""
        if self.sharding is None:
            return self.aval.struct
        return jax.ShapeDtypeStruct(self.shape, self.dtype, sharding=self.sharding)

    def __repr__(self):
        return f"<no data, since the device is meta: {self.aval}>"

    def __array__(self, *_, **__):
        raise NotImplementedError(
            f"{NO_DATA} Numbers are needed of an array {self.aval} of the device meta, which has "
            "none"
        )

    def __bool__(self):
        return bool(self.__array__())

    def is_deleted(self) -> bool:
        """Whether a program has taken its memory, as for JAX's arrays: it has none."""
        return False
