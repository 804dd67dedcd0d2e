"""The rounding errors of difference quotients in less than double precision."""

from __future__ import annotations

import jax.numpy as jnp
import numpy

from ...core import dtypes

DOUBLE = ("float64", "complex128")


def is_double(dtype) -> bool:
    return numpy.dtype(dtype.numpy).name in DOUBLE


def of_ends(problem, settings) -> str:
    """A sentence about the least precise of the inputs that move and of the outputs; empty if all
    have double precision.
    """
    inputs = [(f"Input {i}", problem.inputs[i]) for i in problem.moving]
    outputs = [(f"Output {i}", problem.all_outputs[i]) for i in problem.chosen]
    narrow = [end for end in (*inputs, *outputs) if not is_double(end[1].dtype)]
    if not narrow:
        return ""
    name, tensor = max(narrow, key=lambda end: _spacing(end[1].dtype))
    error = _spacing(tensor.dtype) / 2 * _size(problem.outputs) / settings.eps
    wide = dtypes.complex128 if tensor.dtype.is_complex else dtypes.float64
    cure = f"Pass inputs of dtype {wide}"
    if name.startswith("Output"):
        cure = "Compute in double precision throughout"
    text = f"{name} has dtype {tensor.dtype}"
    tolerance = settings.tolerance
    if error <= tolerance.allowed(1):
        return f"{text}, so no operator was checked by itself. {cure} to check them."
    return (
        f"{text}, whose rounding makes difference quotients with eps={settings.eps:g} wrong by "
        f"about {error:.1g}: they cannot be expected to agree within atol={tolerance.atol:g} and "
        f"rtol={tolerance.rtol:g}. {cure}."
    )


def of_operators(programs) -> str:
    """A sentence about operators that have less than double precision; empty for none."""
    names = dict.fromkeys(program.name for program in programs)
    if not names:
        return ""
    return (
        f"Computed in less than double precision, and not checked by itself: {', '.join(names)}. "
        "Difference quotients need double precision throughout."
    )


def _spacing(dtype) -> float:
    """The distance from 1 to the next number."""
    return float(jnp.finfo(dtype.numpy).eps)


def _size(tensors) -> float:
    """The largest absolute value, and 1 at least: rounding of intermediate results counts too."""
    magnitudes = [numpy.abs(numpy.asarray(tensor._array)).astype(float) for tensor in tensors]
    return max(1.0, *(numpy.fmax.reduce(magnitude, None, initial=1.0) for magnitude in magnitudes))
