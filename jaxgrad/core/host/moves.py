"""Rules of primitives that move elements."""

from __future__ import annotations

import math

import numpy

from .equation import NotOnHostError, rule

# A broadcast operand of fewer bytes is copied, which is faster than the view that NumPy makes.
COPIED = 1 << 14


@rule(
    "copy",
    "copy_p",
    "jaxgrad_unrecorded",
    "layout_constraint",
    "name",
    "pvary",
    "sharding_constraint",
    "stop_gradient",
)
def _identity(_equation):
    return lambda operand, *_: operand


@rule("optimization_barrier")
def _identities(_equation):
    return lambda *operands: [*operands]


@rule("device_put")
def _device_put(equation):
    if any(device is not None for device in equation.params["devices"]):
        raise NotOnHostError("device_put to a device")
    return lambda *operands: [*operands]


@rule("platform_index")
def _platform_index(equation):
    platforms = equation.params["platforms"]
    for index, names in enumerate(platforms):
        if names is None or "cpu" in names:
            return lambda: numpy.int32(index)
    raise NotOnHostError("platform_index without the CPU")


@rule("transpose")
def _transpose(equation):
    order = equation.params["permutation"]
    return lambda operand: operand.transpose(order)


@rule("reshape", "squeeze", "expand_dims")
def _reshape(equation):
    shape = equation.outputs[0].shape
    order = equation.params.get("dimensions") if equation.name == "reshape" else None
    if order is not None:
        return lambda operand: operand.transpose(order).reshape(shape)
    return lambda operand: operand.reshape(shape)


@rule("broadcast_in_dim")
def _broadcast_in_dim(equation):
    (operand, *_), (shape, dtype) = equation.inputs, equation.outputs[0]
    extents = [1] * len(shape)
    for dim, extent in zip(equation.params["broadcast_dimensions"], operand.shape, strict=True):
        extents[dim] = extent
    extents = tuple(extents)
    if extents == shape:
        return lambda operand, *_: operand.reshape(shape)
    if math.prod(shape) * dtype.itemsize > COPIED:
        return lambda operand, *_: numpy.broadcast_to(operand.reshape(extents), shape)
    # a scalar needs no dimensions to be broadcast
    is_scalar = not operand.shape

    def copied(operand, *_):
        result = numpy.empty(shape, dtype)
        result[...] = operand if is_scalar else operand.reshape(extents)
        return result

    return copied


@rule("slice")
def _slice(equation):
    params = equation.params
    starts, limits = params["start_indices"], params["limit_indices"]
    steps = params["strides"] or (1,) * len(starts)
    index = tuple(map(slice, starts, limits, steps))
    return lambda operand: operand[index]


@rule("split")
def _split(equation):
    axis, end, indices = equation.params["axis"], 0, []
    for size in equation.params["sizes"]:
        indices.append((*[slice(None)] * axis, slice(end, end + size)))
        end += size
    return lambda operand: [operand[index] for index in indices]


@rule("rev")
def _rev(equation):
    flipped = equation.params["dimensions"]
    rank = len(equation.inputs[0].shape)
    index = tuple([slice(None, None, -1 if dim in flipped else None) for dim in range(rank)])
    return lambda operand: operand[index]


@rule("concatenate")
def _concatenate(equation):
    axis = equation.params["dimension"]
    return lambda *operands: numpy.concatenate(operands, axis)


@rule("stack")
def _stack(equation):
    (shape, dtype), axis = equation.outputs[0], equation.params["axis"]
    before = (slice(None),) * axis

    def stack(*operands):
        result = numpy.empty(shape, dtype)
        for place, operand in enumerate(operands):
            result[(*before, place)] = operand
        return result

    return stack


@rule("unstack")
def _unstack(equation):
    axis, count = equation.params["axis"], len(equation.outputs)
    indices = [(*[slice(None)] * axis, place) for place in range(count)]
    return lambda operand: [operand[index] for index in indices]


@rule("tile")
def _tile(equation):
    (operand,), (shape, dtype), reps = equation.inputs, equation.outputs[0], equation.params["reps"]
    if len(reps) != len(operand.shape):
        raise NotOnHostError("tile with added dimensions")
    repeated = [n for pair in zip(reps, operand.shape, strict=True) for n in pair]
    extents = [n for extent in operand.shape for n in (1, extent)]

    def tile(operand):
        result = numpy.empty(repeated, dtype)
        result[...] = operand.reshape(extents)
        return result.reshape(shape)

    return tile


def _padded(extent, config, new_extent) -> tuple[slice, slice]:
    """The elements of one dimension that padding keeps, and where they are in the result."""
    low, _, interior = config
    step = interior + 1
    begin = max(0, -(low // step))
    end = max(begin, min(extent, -((low - new_extent) // step)))
    start = low + begin * step
    return slice(begin, end), slice(start, max(start, start + (end - begin) * step), step)


@rule("pad")
def _pad(equation):
    (operand, _), (shape, dtype) = equation.inputs, equation.outputs[0]
    configs = equation.params["padding_config"]
    pairs = [*map(_padded, operand.shape, configs, shape)]
    kept, places = (tuple([pair[side] for pair in pairs]) for side in (0, 1))
    if all(low <= 0 and high <= 0 and not interior for low, high, interior in configs):
        return lambda operand, _: operand[kept]

    def pad(operand, value):
        result = numpy.empty(shape, dtype)
        result[...] = value
        result[places] = operand[kept]
        return result

    return pad


@rule("dim_as_value")
def _dim_as_value(equation):
    value = numpy.asarray(equation.params["dim"], equation.outputs[0].dtype)
    return lambda: value
