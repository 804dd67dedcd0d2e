"""Abstract values: what is known of an array without looking at it.

An `Aval` is interned: two arrays of the same shape and dtype share one object, so that a cache can
be keyed by its identity. It also says who runs an operator on the array: `IMMEDIATE` for a concrete
array, `INLINE` for a tracer of JAX with 64-bit types on, `INLINE32` for one with them off.
"""

from __future__ import annotations

import jax

from . import dtypes
from .strides import contiguous

IMMEDIATE, INLINE, INLINE32 = 0, 1, 2


class Size(tuple):
    """The shape of a tensor, a tuple of ints that prints and counts as torch's does.

    >>> Size((2, 3)).numel()
    6
    """

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        count = 1
        for extent in self:
            count *= extent
        return count

    def __repr__(self):
        return f"torch.Size({list(self)})"

    def __add__(self, other):
        return Size(tuple.__add__(self, other))

    def __getitem__(self, index):
        item = tuple.__getitem__(self, index)
        return Size(item) if isinstance(index, slice) else item


class Aval:
    """Shape, dtype and executor of an array, and the strides that it shows to PyTorch code.

    `strides` is None where they are the usual ones, row by row: how the array really lies is XLA's
    business. `dual`: whether the tensor may have tangents. Made by `aval` only; compared by
    identity.
    """

    __slots__ = (
        "differentiable", "dtype", "dual", "is_real_scalar", "mode", "shape", "strides", "struct",
        "wide",
    )  # fmt: skip

    def __init__(self, shape, dtype, mode, strides, dual):
        self.shape = Size(shape)
        self.dtype = dtype
        self.mode = mode
        self.strides = strides
        self.dual = dual
        self.struct = jax.ShapeDtypeStruct(shape, dtype.numpy)
        self.differentiable = dtype.is_floating_point or dtype.is_complex
        # a backward pass may start from it without a given gradient
        self.is_real_scalar = dtype.is_floating_point and self.shape.numel() == 1
        # 64 bits per real number: such a call runs with JAX's 64-bit types switched on
        self.wide = dtype.itemsize == (16 if dtype.is_complex else 8)

    ndim = property(lambda self: len(self.shape))

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)}"


_interned: dict[tuple, Aval] = {}
_concrete: dict[tuple, Aval] = {}  # those of concrete arrays, by shape and numpy dtype


def make_aval(shape, dtype, mode=IMMEDIATE, strides=None, dual=False) -> Aval:
    """The one `Aval` of a shape (tuple of ints), a jaxgrad dtype, an executor and strides."""
    key = (shape, dtype, mode, strides, dual)
    found = _interned.get(key)
    if found is None:
        if strides is not None and strides == contiguous(shape):
            return make_aval(shape, dtype, mode, None, dual)
        found = _interned.setdefault(key, Aval(shape, dtype, mode, strides, dual))
    return found


def with_strides(found: Aval, strides) -> Aval:
    """The same array showing other strides; None for the usual ones."""
    return make_aval(found.shape, found.dtype, found.mode, strides, found.dual)


def with_dual(found: Aval, dual: bool) -> Aval:
    """The same array, of a tensor that may have tangents or may not."""
    if found.dual == dual:
        return found
    return make_aval(found.shape, found.dtype, found.mode, found.strides, dual)


def with_shape(found: Aval, shape) -> Aval:
    """An array of another shape, else alike."""
    return make_aval(tuple(shape), found.dtype, found.mode)


def strides_of(found: Aval) -> tuple[int, ...]:
    """The strides that an array shows, in elements."""
    return contiguous(found.shape) if found.strides is None else found.strides


def mode_of(array) -> int:
    """Which executor serves this array."""
    if not isinstance(array, jax.core.Tracer):
        return IMMEDIATE
    return INLINE if jax.config.read("jax_enable_x64") else INLINE32


def traced_aval(found: Aval, array) -> Aval:
    """What a tensor shows whose array has become a tracer."""
    return make_aval(found.shape, found.dtype, mode_of(array), found.strides, found.dual)


def aval_of(array) -> Aval:
    """The `Aval` of a JAX array or tracer."""
    if isinstance(array, jax.core.Tracer):
        return make_aval(array.shape, dtypes.from_numpy(array.dtype), mode_of(array))
    key = array.shape, array.dtype
    found = _concrete.get(key)
    if found is None:
        found = _concrete[key] = make_aval(array.shape, dtypes.from_numpy(array.dtype))
    return found


def scalar_type(value) -> type | None:
    """The Python number type that a weakly typed 0-d JAX value stands for, else None."""
    if getattr(value, "weak_type", False) and value.ndim == 0:
        return type(value.dtype.type(0).item())
    return None
