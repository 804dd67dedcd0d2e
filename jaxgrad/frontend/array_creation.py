"""New arrays, for the factories and the random numbers.

By default numpy fills an array and JAX puts it on the device, which takes 35 microseconds. XLA
takes 4, but 15,000 more to compile a program for the shape. So JAX computes only large arrays,
arrays of a frequent shape and arrays inside a trace.
"""

from __future__ import annotations

import functools
import math
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np

from ..core import aval as avals
from ..core import deferred, elementary, executor, fork, promotion
from ..core.bounded_cache import bounded
from ..core.device import (
    as_device,
    chosen_place,
    device_of_jax,
    has_accelerator,
    is_cpu,
    jax_device,
    may_differ,
)
from ..core.executor import is_traced
from ..core.host_values import HostValues
from ..core.pending import Pending
from ..core.pytorch_tensors import type_name
from ..tape.mode import is_inference_mode_enabled
from ..tape.tensor import INFERENCE_TENSOR, Tensor, current, is_on_meta, wrap

# above this many bytes, copying an array to a device takes longer than compiling a program for it
LARGE = 1 << 24

# after this many requests for one shape, compiling a program for it pays off
FREQUENT = 1000
_requests: Counter = Counter()


def from_host(values: np.ndarray, device=None) -> jax.Array:
    """Put numpy values on `device`; in a trace, make them a constant.

    JAX may read `values` later and may keep them, so the caller must own them.
    """
    if fork.is_forked:
        return values  # to copy it, JAX would wait for threads that are not there
    if is_traced():
        with avals.types_of_trace():
            return jnp.asarray(_narrowed(values))
    with jax.enable_x64(True):
        # jnp.asarray compiles for each new shape
        return jax.device_put(values, other_device(device))


def from_host_beside(tensor: Tensor, values: np.ndarray) -> Tensor:
    """A tensor of numpy values, on the device that another tensor was moved to."""
    return wrap(elementary.moved_beside(current(tensor)._value, from_host(values)))


# an accelerator is given values at once, while Python goes on
_has_accelerator = functools.cache(has_accelerator)


def taken_over(values: np.ndarray, device=None):
    """The value of a new tensor from numpy values that belong to it alone: an array on `device`, or
    the values, which become an array when an operator reads them.
    """
    if not _stays_on_host(device):
        return from_host(values, device)
    return deferred.pending(avals.aval_of(values), HostValues(values))


def computed_late(compute, shape, dtype, device=None):
    """`taken_over` for the values of a shape and a numpy dtype that `compute()` gives, which is
    called when they are read; see `HostValues.late`.
    """
    if executor.observers or not _stays_on_host(device):
        return taken_over(compute(), device)
    # NumPy reserves the memory for a moment: an error for want of it belongs to this line
    return deferred.pending(avals.aval_of(np.empty(shape, dtype)), HostValues.late(compute))


def _stays_on_host(device) -> bool:
    """Whether a new tensor may hold values that NumPy has."""
    return (
        other_device(device) is None
        and deferred.mode == "deferred"
        and not (fork.is_forked or _has_accelerator() or is_traced())
        and jax.config.jax_default_device is None
    )


def _narrowed(values):
    """The values in the dtype that JAX has for theirs while its 64-bit types are off."""
    target = promotion.available(avals.dtypes.from_numpy(values.dtype))
    if target == values.dtype:
        return values
    narrow = values.astype(target)
    if (narrow != values).any():
        raise RuntimeError(
            f"values of {values.dtype} that need 64 bits cannot be a constant of a trace with "
            "JAX's x64 mode off: use jaxgrad.jit in place of jax.jit"
        )
    return narrow


def build(function, numbers, shape, dtype, device=None):
    """The value of a new tensor, `function(shape, dtype, module, *numbers)`, where `module` is
    numpy or jax.numpy.

    Raises RuntimeError for a shape of 2**63 bytes or more.
    """
    avals.check_bytes(shape, dtype)
    if is_traced():
        with avals.types_of_trace():
            return function(shape, promotion.available(dtype), jnp, *numbers)
    times = 1 + math.prod(shape) * dtype.itemsize // LARGE
    if fork.is_forked or not is_frequent(function, shape, dtype, times=times):
        return taken_over(np.asarray(function(shape, dtype.numpy, np, *numbers)), device)
    array = compiled(function, shape, dtype.numpy, jnp)(*numbers)
    return array if other_device(device) is None else on_device(array, device)


def is_frequent(*request, times=1) -> bool:
    """Count a request as so many; True if it is frequent enough to compile a program for it."""
    if len(_requests) > 4096:
        _requests.clear()
    _requests[request] += times
    return _requests[request] > FREQUENT


@bounded()
def compiled(function, *fixed):
    """`function`, compiled with its first arguments fixed."""
    return executor.compiled(functools.partial(function, *fixed), wide=True)


def device_of(device) -> jax.Device | None:
    """JAX's device for a `device` argument."""
    return None if device is None else jax_device(as_device(device))


def other_device(device) -> jax.Device | None:
    """JAX's device for a `device` argument, None for its default device.

    An array that is committed to the default device would make `jax.jit` compile a second time.
    """
    wanted = None if device is None else as_device(device)
    return None if wanted is None or wanted == device_of_jax() else jax_device(wanted)


def beside(tensor: Tensor):
    """The device of a constant that meets a tensor: meta for a tensor on meta, else JAX's default
    device, from which JAX moves the constant if it must.
    """
    return tensor.device if is_on_meta(tensor) else device_of_jax()


def along(other: Tensor, tensor: Tensor) -> Tensor:
    """A tensor where another one is, if that is the device meta, or if this one is on the CPU:
    indices, sizes of batches and values that are assigned go along, as in PyTorch.
    """
    if is_on_meta(tensor) or (may_differ() and _may_go(other, tensor)):
        return other.to(tensor.device)
    return other


def _may_go(other, tensor) -> bool:
    """Whether a tensor was moved to the CPU, and the other one to one other device."""
    source, target = (chosen_place(current(x)._value) for x in (other, tensor))
    are_chosen = None not in (source, target)
    return are_chosen and source != target and is_cpu(source) and len(target) == 1


def on_device(array, device):
    """Move an array to a device, if one is given and no trace is open.

    A traced program runs on one device.
    """
    target = device_of(device)
    if target is None or isinstance(array, jax.core.Tracer):
        return array
    with jax.enable_x64(True):
        return jax.device_put(array, target)


def finish(array, requires_grad=False) -> Tensor:
    """The leaf that holds a new array."""
    if type(requires_grad) is not bool and not isinstance(requires_grad, np.bool_ | None):
        raise TypeError(f"argument 'requires_grad' must be bool, not {type_name(requires_grad)}")
    aval = avals.aval_of(array)
    if requires_grad and not aval.differentiable:
        raise RuntimeError(
            "Only Tensors of floating point and complex dtype can require gradients, "
            f"and {aval.dtype} is neither: give dtype=torch.float32"
        )
    if type(array) is not Pending and avals.is_concrete(aval.mode) and is_traced():
        # a constant of the trace: the trace may write to it
        aval = avals.make_aval(aval.shape, aval.dtype, avals.mode_of_trace())
    mark = INFERENCE_TENSOR if is_inference_mode_enabled() and not requires_grad else None
    return wrap(array, aval, bool(requires_grad), mark)
