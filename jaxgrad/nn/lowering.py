"""Operators of this package that are functions of JAX."""

from __future__ import annotations

import jax

from ..frontend.jax_interop import from_jax


def operator(function):
    """Make a function of JAX arrays an operator; integers in it have 64 bits, as in PyTorch."""
    with jax.enable_x64(True):
        return from_jax(function)
