"""Rules of primitives that move elements."""

from __future__ import annotations

import numpy

from .equation import NotOnHostError, rule


@rule("copy", "copy_p", "stop_gradient", "optimization_barrier")
def _identity(equation):
    if len(equation.outputs) == 1 and equation.name != "optimization_barrier":
        return lambda operand: operand
    return lambda *operands: [*operands]


@rule("transpose")
def _transpose(equation):
    order = equation.params["permutation"]
    return lambda operand: operand.transpose(order)


@rule("reshape", "squeeze", "expand_dims")
def _reshape(equation):
    if equation.params.get("dimensions") is not None and equation.name == "reshape":
        raise NotOnHostError("reshape of a transposed array")
    shape = equation.outputs[0].shape
    return lambda operand: operand.reshape(shape)


@rule("broadcast_in_dim")
def _broadcast_in_dim(equation):
    (operand, *_), shape = equation.inputs, equation.outputs[0].shape
    extents = [1] * len(shape)
    for dim, extent in zip(equation.params["broadcast_dimensions"], operand.shape, strict=True):
        extents[dim] = extent
    if tuple(extents) == shape:
        return lambda operand: operand.reshape(shape)
    return lambda operand: numpy.broadcast_to(operand.reshape(extents), shape)


@rule("dim_as_value")
def _dim_as_value(equation):
    value = numpy.asarray(equation.params["dim"], equation.outputs[0].dtype)
    return lambda: value
