"""JAX's errors for want of memory with the class and the words that programs for PyTorch look for.

>>> import jax
>>> from jaxgrad.core.out_of_memory import OutOfMemoryError, mark
>>> error = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.")
>>> mark(error)
>>> isinstance(error, OutOfMemoryError), "memory: RESOURCE_EXHAUSTED" in str(error)
(True, True)
"""

from __future__ import annotations

import jax

from .device import accelerator

_SIGNS = "RESOURCE_EXHAUSTED", "Out of memory"


class OutOfMemoryError(jax.errors.JaxRuntimeError):
    """A device has too little memory. The words begin with PyTorch's and end with XLA's.

    >>> issubclass(jaxgrad.OutOfMemoryError, RuntimeError)
    True
    """

    __str__ = RuntimeError.__str__  # JAX's class shows the words that it was made with


def mark(error: jax.errors.JaxRuntimeError):
    """Make a `JaxRuntimeError` for want of memory an `OutOfMemoryError`; leave others."""
    words = str(error)
    if not any(sign in words for sign in _SIGNS):
        return
    place = accelerator()
    start = (
        "DefaultCPUAllocator: can't allocate memory"
        if place is None
        else f"{place.type.upper()} out of memory. XLA"
    )
    error.__class__ = OutOfMemoryError
    error.args = (f"{start}: {words}",)
