"""Derivatives of sampled functions, by finite differences."""

from __future__ import annotations

import numbers

from .. import ops
from ..core import dtypes, promotion
from ..core.pytorch_tensors import type_name
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary


@api_boundary
def gradient(input: Tensor, *, spacing=1, dim=None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Estimate the derivatives of a sampled function by finite differences: central differences
    inside, one-sided ones at the ends.

    input: the values, a tensor of any shape.
    spacing: the distance of neighbouring points, a number, or a list with one number or one 1-d
    tensor of coordinates for each dimension.
    dim: the dimensions, an int or a list of ints; all by default.
    edge_order: the order of the differences at the ends, 1 or 2.

    Returns for each dimension a tensor of the shape of `input`. Inside, the derivative is that of
    the parabola through three neighbours.

    Raises RuntimeError if the lengths do not fit or a dimension has fewer than `edge_order` + 1
    points, IndexError for a dimension that does not exist, TypeError for other types.

    >>> jaxgrad.gradient(jaxgrad.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    >>> jaxgrad.gradient(jaxgrad.tensor([1.0, 4.0, 16.0]), spacing=[jaxgrad.tensor([1, 2, 4])])
    (tensor([3., 4., 6.]),)
    """
    if not isinstance(input, Tensor):
        kind = type_name(input)
        raise TypeError(f"gradient(): argument 'input' (position 1) must be Tensor, not {kind}")
    if edge_order not in (1, 2):
        raise RuntimeError(
            f"torch.gradient only supports edge_order=1 and edge_order=2, not {edge_order!r}."
        )
    if input.dtype is dtypes.uint8:
        raise RuntimeError(
            "torch.gradient does not support uint8 input, whose differences wrap around: convert "
            "it first"
        )
    dims = _dims(input, dim)
    steps = _steps(input, spacing, dims, has_dim=dim is not None)
    return tuple(_along(input, d, step, edge_order) for d, step in zip(dims, steps, strict=True))


def _dims(input, dim) -> list[int]:
    chosen = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    for dimension in chosen:
        if not isinstance(dimension, int):
            raise TypeError(f"gradient(): dim must be int or ints, not {type(dimension).__name__}")
        if not -input.ndim <= dimension < input.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-input.ndim}, "
                f"{input.ndim - 1}], but got {dimension})"
            )
    dims = [dimension % input.ndim for dimension in chosen]
    for dimension in dims:
        if dims.count(dimension) > 1:
            raise RuntimeError(f"dim {dimension} appears multiple times in the list of dims")
    return dims


def _steps(input, spacing, dims, has_dim):
    """The distance of points, or their coordinates, for each dimension."""
    if spacing is None or _is_number(spacing):
        return [1 if spacing is None else spacing] * len(dims)
    if not isinstance(spacing, tuple | list):
        raise TypeError(
            "gradient(): spacing is a number, or a list with a number or a tensor of coordinates "
            f"for each dimension, not {type(spacing).__name__}"
        )
    spacing = list(spacing)
    if len(spacing) != len(dims):
        expected = (
            "a scalar or it's spacing and dim arguments to have the same length, but got a spacing "
            f"argument of length {len(spacing)} and a dim argument of length {len(dims)}."
            if has_dim
            else f"a scalar, or a list of length equal to 'self.dim() = {input.ndim}', since dim "
            f"argument was not given, but got a list of length {len(spacing)}"
        )
        raise RuntimeError(f"torch.gradient expected spacing to be unspecified, {expected}")
    for step, dim in zip(spacing, dims, strict=True):
        _check_step(step, dim, input.shape[dim])
    return spacing


def _is_number(value) -> bool:
    return isinstance(value, numbers.Number) or (isinstance(value, Tensor) and not value.ndim)


def _check_step(step, dim, size):
    if _is_number(step):
        return
    if not isinstance(step, Tensor):
        raise TypeError(f"gradient(): spacing must be numbers or tensors, not {type_name(step)}")
    if step.ndim != 1:
        raise RuntimeError(
            "torch.gradient expected each element of spacing to have one dimension, but got an "
            f"element with {step.ndim} dimensions!"
        )
    if step.shape[0] != size:
        raise RuntimeError(
            f"torch.gradient got {step.shape[0]} coordinates for dimension {dim}, which has size "
            f"{size}"
        )


def _along(values, dim, step, edge_order):
    size = values.shape[dim]
    if size < edge_order + 1:
        raise RuntimeError(
            "torch.gradient expected each dimension size to be at least edge_order+1, which is "
            f"{edge_order + 1}, but dimension {dim} has size {size}"
        )

    def part(start, length=1):
        return values.narrow(dim, start, length)

    if isinstance(step, Tensor) and not step.ndim and step.dtype.is_floating_point:
        step = step.to(promotion.result_type(values, 1.0))  # a number, whatever its dtype
    if _is_number(step):
        pieces = _evenly(part, size, step, edge_order)
    else:
        # coordinates that are integers are divided by one another
        kind = step.dtype if step.dtype.category >= dtypes.FLOATING else dtypes.get_default_dtype()
        steps = (step[1:] - step[:-1]).to(kind).reshape(-1, *[1] * (values.ndim - 1 - dim))
        pieces = _unevenly(part, size, steps, dim, edge_order)
    return ops.cat(pieces, dim)


def _evenly(part, size, step, edge_order):
    inner = (part(2, size - 2) - part(0, size - 2)) / (2 * step)
    last = size - 1
    if edge_order == 1:
        return (part(1) - part(0)) / step, inner, (part(last) - part(last - 1)) / step
    # the factors are floats, so that integers do not wrap around
    begin = part(1) * 2.0 - part(0) * 1.5 - part(2) * 0.5
    end = part(last) * 1.5 - part(last - 1) * 2.0 + part(last - 2) * 0.5
    return begin / step, inner, end / step


def _unevenly(part, size, steps, dim, edge_order):
    """Differentiate the parabola through three neighbours at the middle one.

    The ends use the same parabola (`edge_order` 2) or the line through two points.
    """
    count = size - 1
    slopes = (part(1, count) - part(0, count)) / steps
    before, after = slopes.narrow(dim, 0, count - 1), slopes.narrow(dim, 1, count - 1)
    step_before, step_after = steps[:-1], steps[1:]
    both = step_before + step_after
    inner = (before * step_after + after * step_before) / both
    begin, end = slopes.narrow(dim, 0, 1), slopes.narrow(dim, count - 1, 1)
    if edge_order == 2:
        bend = (after - before) / both
        begin = begin - bend.narrow(dim, 0, 1) * steps[:1]
        end = end + bend.narrow(dim, count - 2, 1) * steps[-1:]
    return begin, inner, end
