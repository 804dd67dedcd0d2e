"""Abstract values: the properties of an array that do not depend on its elements.

An `Aval` is interned: arrays of the same shape and dtype share one object, so that caches can use
its identity as key. Its `mode` names the executor: `IMMEDIATE` for a concrete array, `SPREAD` for
one whose shards are in several processes, `INLINE` for a tracer with 64-bit types on, `INLINE32`
for a tracer with them off, `META` for an array without data.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
import operator
import threading
import weakref

import jax
import numpy as np

from . import bounded_cache, dtypes, pending, world
from .meta_array import NO_DATA, MetaArray
from .pending import Pending
from .strides import contiguous
from .symbolic_extents import extents_of

# a program runs in the mode of its inputs that is the last of these
IMMEDIATE, SPREAD, INLINE, INLINE32, META = 0, 1, 2, 3, 4


def _extent(value, place: int):
    """An element of a size: an int, or a size that varies."""
    if isinstance(value, bool) or hasattr(type(value), "__array__"):
        try:
            return operator.index(value)
        except TypeError:
            pass
    elif hasattr(type(value), "__add__") and not isinstance(
        value, float | complex | str | list | tuple
    ):
        return value
    kind = type(value).__name__
    raise TypeError(f"torch.Size() takes an iterable of 'int' (item {place} is {kind!r})")


class Size(tuple):
    """The shape of a tensor: a tuple of ints. Slices and sums of sizes are sizes too. Raises
    TypeError for elements that are no integers.

    >>> jaxgrad.zeros(2, 3).shape + (4,)
    torch.Size([2, 3, 4])
    >>> jaxgrad.Size((2, 3)).numel()
    6
    """

    __slots__ = ()

    def __new__(cls, extents=()):
        size = tuple.__new__(cls, extents)
        for extent in size:
            if type(extent) is not int:
                return tuple.__new__(cls, map(_extent, size, range(len(size))))
        return size

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

    def __radd__(self, other):
        return Size((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count):
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __getitem__(self, index):
        item = tuple.__getitem__(self, index)
        return tuple.__new__(Size, item) if isinstance(index, slice) else item


class Aval:
    """Shape, dtype, executor and strides of an array; `make_aval` makes it, identity compares it.

    strides: those that PyTorch would have, None for contiguous ones (XLA chooses the real memory
    layout); dual: whether the tensor may have tangents.
    """

    __slots__ = (
        "__weakref__",
        "differentiable",
        "dtype",
        "dual",
        "is_real_scalar",
        "mode",
        "shape",
        "strides",
        "struct",
        "wide",
    )

    def __init__(self, shape, dtype, mode, strides, dual):
        check_bytes(shape, dtype)
        self.shape = Size(extents_of(shape))
        self.dtype = dtype
        self.mode = mode
        self.strides = strides
        self.dual = dual
        # made once: abstract evaluation asks for it at each new program
        self.struct = jax.ShapeDtypeStruct(shape, dtype.numpy)
        self.differentiable = dtype.is_floating_point or dtype.is_complex
        # a backward pass from it needs no given gradient
        self.is_real_scalar = dtype.is_floating_point and self.shape.numel() == 1
        # 64 bits per real number: a call on it runs with JAX's 64-bit types on
        self.wide = dtype.itemsize == (16 if dtype.is_complex else 8)

    ndim = property(lambda self: len(self.shape))

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)}"


def check_bytes(shape, dtype):
    """Raise RuntimeError for an array of 2**63 bytes or more, at which XLA ends the process.

    shape: extents; symbolic ones, as in `jax.export`, are not checked.
    """
    numbers = all(isinstance(extent, int) for extent in shape)
    if numbers and math.prod(shape) * dtype.itemsize >= 2**63:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)}: "
            f"an array of {dtype} must have fewer than 2**63 bytes"
        )


class LargeInteger(int):
    """Stands for a Python int of 33 to 64 bits among the inputs of a program, which then computes
    with JAX's 64-bit types on. The number itself stays an `int`.
    """


def struct_of(aval_or_type):
    """The argument of abstract evaluation for an input of a program: an `Aval`, or a type of
    number.

    Any number of the type will do: shapes and dtypes do not depend on its value.
    """
    if not isinstance(aval_or_type, Aval):
        return aval_or_type(0)
    # where JAX's 64-bit types are off, an array keeps its 64 bits, and a ShapeDtypeStruct does not
    is_narrow = aval_or_type.mode == INLINE32
    return (
        jax.core.ShapedArray(aval_or_type.shape, aval_or_type.dtype.numpy)
        if is_narrow
        else aval_or_type.struct
    )


def joint_mode(name: str, inputs, crosses_devices: bool = False, mixes: bool = False) -> int:
    """The executor of a program of these inputs: that of arrays without data if one has none.

    crosses_devices: whether the others are copied to the device of the first; mixes: whether arrays
    of this process may meet those that span processes. Raises RuntimeError
    where an array without data meets one that has data and dimensions, or one of this process one
    that spans processes; NotImplementedError where data is to come from an array that has none.
    """
    avals = [aval for aval in inputs if isinstance(aval, Aval)]
    modes = {aval.mode for aval in avals}
    mode = max(modes, default=IMMEDIATE)
    if mode == SPREAD and len(modes) > 1 and not mixes:
        _refuse_mixed(name, avals)
    if mode != META or len(modes) == 1:
        return mode
    if crosses_devices and avals[0].mode != META:
        raise NotImplementedError(
            f"{NO_DATA} {name}() copies from a tensor of the device meta to {avals[0]!r}"
        )
    others = [aval for aval in avals if aval.mode != META and aval.shape]
    if others and not crosses_devices:
        raise RuntimeError(
            f"{name}: Expected all tensors to be on the same device, but found at least two "
            f"devices: one tensor is on meta, and {others[0]!r} is not on the expected device. "
            'Only data without dimensions may meet meta: move this tensor there by to("meta"), or '
            "give a module data by to_empty() or load_state_dict(assign=True)"
        )
    return mode


MIXED = (
    "{name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor "
    "before calling distributed operators! {local!r} is a tensor of this process alone, and "
    "{spread!r} a DTensor of several processes: DTensor.from_local(tensor, device_mesh, "
    "placements) says which part of a DTensor this process has, and to_local() gives the part of "
    "one"
)


def _refuse_mixed(name, avals):
    """Raise RuntimeError where an array of this process with dimensions meets one of several."""
    local = [aval for aval in avals if aval.mode == IMMEDIATE and aval.shape]
    if local:
        spread = next(aval for aval in avals if aval.mode == SPREAD)
        raise RuntimeError(MIXED.format(name=name, local=local[0], spread=spread))


def is_mixed(inputs) -> bool:
    """Whether there are both arrays of this process and arrays that span processes."""
    modes = {aval.mode for aval in inputs if isinstance(aval, Aval)}
    return {IMMEDIATE, SPREAD} <= modes


def is_concrete(mode: int) -> bool:
    """Whether an array of this executor has values: it is neither a tracer nor without data."""
    return mode <= SPREAD


def is_wide(aval_or_type) -> bool:
    """Whether an input or output of a program has 64 bits per real number."""
    return aval_or_type.wide if isinstance(aval_or_type, Aval) else aval_or_type is LargeInteger


# plans are found by the identity of abstract values, so equal ones must be one object
_interned: weakref.WeakValueDictionary[tuple, Aval] = weakref.WeakValueDictionary()
# reentrant, as a collection may run finalizers anywhere
_interning = threading.RLock()
# of concrete arrays, by shape and numpy dtype
_concrete = bounded_cache.BoundedCache(bounded_cache.kernels, lambda aval: bounded_cache.ENTRY)


def make_aval(shape, dtype, mode=IMMEDIATE, strides=None, dual=False) -> Aval:
    """The interned `Aval` of a shape (tuple of ints), a jaxgrad dtype, a mode and strides."""
    key = (shape, dtype, mode, strides, dual)
    aval = _interned.get(key)
    if aval is None:
        # one object for each layout: the usual strides are None
        if strides is not None and strides == contiguous(shape):
            return make_aval(shape, dtype, mode, None, dual)
        candidate = Aval(shape, dtype, mode, strides, dual)
        with _interning:
            aval = _interned.setdefault(key, candidate)
    return aval


def with_strides(aval: Aval, strides) -> Aval:
    """The same abstract value with other strides; None means contiguous."""
    return make_aval(aval.shape, aval.dtype, aval.mode, strides, aval.dual)


def with_mode(aval: Aval, mode: int) -> Aval:
    """The same abstract value with another executor."""
    return make_aval(aval.shape, aval.dtype, mode, aval.strides, aval.dual)


def with_dual(aval: Aval, dual: bool) -> Aval:
    """The same abstract value with the flag `dual` set or cleared."""
    if aval.dual == dual:
        return aval
    return make_aval(aval.shape, aval.dtype, aval.mode, aval.strides, dual)


def with_shape(aval: Aval, shape) -> Aval:
    """The same dtype and mode with another shape, contiguous."""
    return make_aval(tuple(shape), aval.dtype, aval.mode)


def strides_of(aval: Aval) -> tuple[int, ...]:
    """The strides of an abstract value, in elements."""
    return contiguous(aval.shape) if aval.strides is None else aval.strides


# whether the open trace is that of a function that jaxgrad compiles: its code runs with the user's
# setting of JAX's 64-bit types, and its program has them in any case
wide_trace = contextvars.ContextVar("jaxgrad.wide_trace", default=False)


def mode_of_trace() -> int:
    """The executor of the open trace."""
    return INLINE if wide_trace.get() or jax.config.read("jax_enable_x64") else INLINE32


def types_of_trace():
    """A context manager that switches JAX's 64-bit types on, if programs of the trace have them."""
    return jax.enable_x64(True) if wide_trace.get() else contextlib.nullcontext()


@contextlib.contextmanager
def tracing(wide: bool):
    """Whether the trace that is open in the block has 64-bit types in any case."""
    token = wide_trace.set(wide)
    try:
        yield
    finally:
        wide_trace.reset(token)


@contextlib.contextmanager
def users_setting(enabled: bool):
    """Run a user's code under the user's setting of 64-bit types, inside of a program that may have
    switched them on.
    """
    wide = mode_of_trace() == INLINE
    with tracing(wide), jax.enable_x64(wide and enabled):
        yield


def mode_of(array) -> int:
    """The executor of this array."""
    if isinstance(array, jax.core.Tracer):
        pending.run()  # JAX traces: the calls that come next belong to the trace
        return mode_of_trace()
    if type(array) is MetaArray:
        return META
    return SPREAD if world.current is not None and world.spans(array) else IMMEDIATE


def meta_array(shape, dtype) -> MetaArray:
    """An array without data. Raises RuntimeError for 2**63 bytes or more."""
    return MetaArray(make_aval(tuple(shape), dtype, META))


def has_numbers(array) -> bool:
    """Whether an array has values: it is neither a tracer nor without data."""
    return not isinstance(array, jax.core.Tracer | MetaArray)


def traced_aval(aval: Aval, array) -> Aval:
    """The abstract value of a tensor after a tracer took the place of its array."""
    return with_mode(aval, mode_of(array))


def seen_aval(aval: Aval, array) -> Aval:
    """The abstract value of a result, corrected by a look at the array: a kernel of concrete inputs
    that runs under a trace returns a tracer.
    """
    is_traced = isinstance(array, jax.core.Tracer) and is_concrete(aval.mode)
    return traced_aval(aval, array) if is_traced else aval


def aval_of(array) -> Aval:
    """The `Aval` of a JAX array or tracer, or of an array without data."""
    if isinstance(array, jax.core.Tracer):
        return make_aval(array.shape, dtypes.from_numpy(array.dtype), mode_of(array))
    if type(array) is MetaArray or type(array) is Pending:
        return array.aval
    # keyed by what JAX's arrays have, so that a known kind takes one lookup
    key = array.shape, array.dtype
    if world.current is not None and world.spans(array):
        return make_aval(array.shape, dtypes.from_numpy(array.dtype), SPREAD)
    aval = _concrete.get(key)
    if aval is None:
        candidate = make_aval(array.shape, dtypes.from_numpy(array.dtype))
        aval = _concrete.keep(key, candidate)
    return aval


def is_key(value) -> bool:
    """Whether a value is a random key of JAX, as `jax.random.key` makes one."""
    # the types of numbers are NumPy's, and JAX's own test takes longer than all of this
    if not isinstance(value, jax.Array) or isinstance(value.dtype, np.dtype):
        return False
    return jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)


def has_seen_arrays() -> bool:
    """Whether there has been a concrete array, so that XLA runs."""
    return bool(_concrete)


def strong(array):
    """The array without JAX's weak type, which arrays made of Python numbers have."""
    if not array.weak_type:
        return array
    with types_of_trace():
        return jax.lax.convert_element_type(array, array.dtype)


def scalar_type(value) -> type | None:
    """The Python number type of a weakly typed 0-d JAX value, else None."""
    if getattr(value, "weak_type", False) and value.ndim == 0:
        return type(value.dtype.type(0).item())
    return None
