"""Abstract values: what is known of an array without looking at it.

An `Aval` is interned: two arrays of the same shape and dtype share one object, so that a cache can
be keyed by its identity. It also says who runs an operator on the array: `IMMEDIATE` for a concrete
array, `INLINE` for a tracer of JAX with 64-bit types on, `INLINE32` for one with them off.
"""

from __future__ import annotations

import jax

from . import dtypes

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
    """Shape, dtype and executor of an array. Made by `aval` only; compared by identity."""

    __slots__ = ("differentiable", "dtype", "mode", "shape", "struct", "wide")

    def __init__(self, shape, dtype, mode):
        self.shape = Size(shape)
        self.dtype = dtype
        self.mode = mode
        self.struct = jax.ShapeDtypeStruct(shape, dtype.numpy)
        self.differentiable = dtype.is_floating_point or dtype.is_complex
        # 64 bits per real number: such a call runs with JAX's 64-bit types switched on
        self.wide = dtype.itemsize == (16 if dtype.is_complex else 8)

    ndim = property(lambda self: len(self.shape))

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)}"


_interned: dict[tuple, Aval] = {}


def aval(shape, dtype, mode=IMMEDIATE) -> Aval:
    """The one `Aval` of a shape (tuple of ints), a jaxgrad dtype and an executor."""
    key = (shape, dtype, mode)
    found = _interned.get(key)
    if found is None:
        found = _interned.setdefault(key, Aval(shape, dtype, mode))
    return found


def mode_of(array) -> int:
    """Which executor serves this array."""
    if not isinstance(array, jax.core.Tracer):
        return IMMEDIATE
    return INLINE if jax.config.read("jax_enable_x64") else INLINE32


def aval_of(array) -> Aval:
    """The `Aval` of a JAX array or tracer."""
    return aval(array.shape, dtypes.from_numpy(array.dtype), mode_of(array))


def scalar_type(value) -> type | None:
    """The Python number type that a weakly typed 0-d JAX value stands for, else None."""
    if getattr(value, "weak_type", False) and value.ndim == 0:
        return type(value.dtype.type(0).item())
    return None
