"""The initial state of optimizers: tensors of one value, placed as the parameters are."""

from __future__ import annotations

import contextlib
import contextvars

from jax.sharding import NamedSharding, PartitionSpec

from ..capture import scope
from ..core import dtypes, elementary
from ..core.aval import META, Aval, meta_array, with_strides
from ..core.device import device_of_jax
from ..core.meta_array import MetaArray
from ..frontend import factories
from ..tape import mode as modes
from ..tape.tensor import Tensor, abstract_value, set_abstract_value, wrap
from .new_optimizers import is_new

# whether the optimizer whose state begins was made by the function that is being traced
_is_inside = contextvars.ContextVar("jaxgrad.state_is_inside", default=False)


def outside_of_trace():
    """A context in which new tensors are no part of the trace under way."""
    is_here = modes.scope.get() is None or _is_inside.get()
    return contextlib.nullcontext() if is_here else scope.outside()


@contextlib.contextmanager
def beginning(optimizer):
    """Create the state of an optimizer in the block."""
    token = _is_inside.set(is_new(optimizer))
    try:
        yield
    finally:
        _is_inside.reset(token)


def new_counter(begin: float = 0.0) -> Tensor:
    """A tensor without dimensions, in the dtype of step counters."""
    wide = dtypes.get_default_dtype() is dtypes.float64
    with outside_of_trace():
        kind = dtypes.float64 if wide else dtypes.float32
        return factories.full((), begin, dtype=kind, device=device_of_jax())


def filled(param: Tensor, value, shape=None) -> Tensor:
    """A tensor like a parameter, of one value. shape: another shape."""
    current = modes.scope.get()
    captured = None if current is None else current.captured.get(id(param))
    # a tracer stands for a tensor on meta too
    seen = abstract_value(param) if captured is None else captured.aval
    place = "meta" if seen.mode == META else device_of_jax()
    # what is pending has no sharding
    array = param._value if captured is None else captured.snapshot.array
    sharding = getattr(array, "sharding", None)
    with outside_of_trace():
        if isinstance(sharding, NamedSharding):
            tensor = wrap(sharded_full(shape, seen, value, sharding))
        else:
            size = tuple(shape or param.shape)
            tensor = factories.full(size, value, dtype=param.dtype, device=place)
    if shape is not None:
        return tensor
    set_abstract_value(tensor, with_strides(abstract_value(tensor), abstract_value(param).strides))
    return tensor


def sharded_full(shape, like: Aval, value, sharding: NamedSharding):
    """An array of one value, sharded as a parameter is; of another shape, whole on each device."""
    if shape is not None:
        sharding = NamedSharding(sharding.mesh, PartitionSpec())
    size = tuple(shape or like.shape)
    if like.mode == META:
        return MetaArray(meta_array(size, like.dtype).aval, sharding)
    return elementary.filled_over(size, like.dtype, value, sharding)
