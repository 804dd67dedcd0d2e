"""Functions of JAX's as operators of this package."""

from __future__ import annotations

import jax

from ..frontend.jax_interop import from_jax


def operator(function):
    """A function of JAX arrays as an operator, in which integers have the 64 bits that they have in
    PyTorch."""
    with jax.enable_x64(True):
        return from_jax(function)
