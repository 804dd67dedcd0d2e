"""What the resampling of images consists of: a part of the table of `_decompositions`.

One dimension after the other is resampled, as sums of rows with weights.
"""

from __future__ import annotations

from .. import ops
from ..core.symbolic_extents import has_symbolic

aten = ops.aten


def _coordinates(extent, size, scale, align_corners, dtype, device):
    """Where the elements of a dimension lie in the one that is resampled."""
    places = aten.arange.start_step(0, size, 1, dtype=dtype, device=device)
    if align_corners:
        return aten.mul.Tensor(places, (extent - 1) / (size - 1) if size > 1 else 0.0)
    step = 1 / scale if scale else extent / size
    return aten.sub.Tensor(aten.mul.Tensor(aten.add.Tensor(places, 0.5), step), 0.5)


def _linear(fraction) -> list:
    """The weights of the two rows around a place."""
    return [aten.add.Tensor(aten.neg.default(fraction), 1), fraction]


_A = -0.75  # of the cubic of two pieces that PyTorch has


def _polynomial(x, *coefficients):
    """The polynomial of a number with these coefficients, the highest first."""
    first, *rest = coefficients
    result = aten.mul.Tensor(x, first)
    for coefficient in rest[:-1]:
        result = aten.mul.Tensor(aten.add.Tensor(result, coefficient), x)
    return aten.add.Tensor(result, rest[-1])


def _cubic(fraction) -> list:
    """The weights of the four rows around a place."""
    other = aten.add.Tensor(aten.neg.default(fraction), 1)
    outside = _A, -5 * _A, 8 * _A, -4 * _A
    inside = _A + 2, -(_A + 3), 0, 1
    return [
        _polynomial(aten.add.Tensor(fraction, 1), *outside),
        _polynomial(fraction, *inside),
        _polynomial(other, *inside),
        _polynomial(aten.add.Tensor(other, 1), *outside),
    ]


def _resampled(input, dim, size, scale, align_corners, weights_of):
    extent, is_linear = input.shape[dim], weights_of is _linear
    places = _coordinates(extent, size, scale, align_corners, input.dtype, input.device)
    places = aten.clamp.default(places, 0.0) if is_linear else places
    floor = aten.floor.default(places)
    weights = weights_of(aten.sub.Tensor(places, floor))
    first = aten._to_copy.default(floor, dtype=ops.aten.arange.start_step(0, 1, 1).dtype)
    shape = [size, *[1] * (input.ndim - dim - 1)]
    total = None
    for number, weight in enumerate(weights):
        shift = number if is_linear else number - 1
        rows = aten.clamp.default(aten.add.Tensor(first, shift), 0, extent - 1)
        part = aten.index_select.default(input, dim, rows)
        part = aten.mul.Tensor(part, aten.view.default(weight, shape))
        total = part if total is None else aten.add.Tensor(total, part)
    return total


def _upsample(weights_of):
    def upsample(input, output_size, align_corners, *scales):
        if len(scales) == 1 and isinstance(scales[0], list | tuple):
            scales = tuple(scales[0])
        scales = [*scales] if any(scales) else [None] * (input.ndim - 2)
        is_plain = input.is_floating_point() and input.dtype.itemsize >= 4
        if has_symbolic((*input.shape, *(output_size or ()))) or not is_plain:
            return NotImplemented
        for number, scale in enumerate(scales):
            dim = number + 2
            size = output_size[number] if output_size else int(input.shape[dim] * scale)
            input = _resampled(input, dim, size, scale, align_corners, weights_of)
        return input

    return upsample


FUNCTIONS = {
    f"{name}.{overload}": _upsample(weights_of)
    for name, weights_of in (
        ("upsample_linear1d", _linear),
        ("upsample_trilinear3d", _linear),
        ("upsample_bicubic2d", _cubic),
    )
    for overload in ("default", "vec")
}
