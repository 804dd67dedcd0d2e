"""What formulas of random numbers need, for arrays of NumPy, arrays of JAX and tracers."""

from __future__ import annotations

from operator import attrgetter

import jax
import jax.numpy as jnp
import numpy as np

from ..late import LateModule

error_function = LateModule("jaxgrad.core.host.error_function")
scipy_special = LateModule("scipy.special")


def namespace(array):
    """NumPy for its own arrays, `jax.numpy` for those of JAX and for tracers."""
    return np if isinstance(array, np.ndarray) else jnp


def real(dtype):
    """The dtype of the parts of a complex number; a real dtype itself."""
    return np.dtype(jnp.finfo(dtype).dtype)


def complex_of(parts):
    """Complex numbers of an array of their two parts, (..., 2)."""
    if isinstance(parts, np.ndarray):
        kind = np.result_type(parts.dtype, np.complex64)
        return np.ascontiguousarray(parts).view(kind)[..., 0]
    return jax.lax.complex(parts[..., 0], parts[..., 1])


def erf_inv(x):
    """The inverse of the error function, by JAX or by NumPy."""
    if isinstance(x, np.ndarray):
        return error_function.erf_inv(x) if x.dtype == np.float32 else scipy_special.erfinv(x)
    return jax.lax.erf_inv(x)


def separately(array):
    """An operand that XLA does not fuse with what reads it."""
    is_of_host = isinstance(array, np.ndarray | np.generic)
    return array if is_of_host else jax.lax.optimization_barrier(array)


def at_least_single(dtype):
    """The dtype in which numbers of a floating-point or complex one are drawn. float16 has few
    numbers between 0 and 1, which give few and small normal numbers.
    """
    return max(real(dtype), np.dtype(np.float32), key=attrgetter("itemsize"))
