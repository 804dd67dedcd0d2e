"""Rounding to the numbers of a quantized tensor, with the mask of those in its range, with a scale
that is learned, and with one of recorded ranges.
"""

from __future__ import annotations

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..frontend.factories import full, ones_like
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from .quantization import chosen_parameters


def _steps(input, scale, start):
    """The integers that stand for the elements, before they are limited."""
    wide = input if input.dtype is dtypes.float64 else input.to(dtypes.float32)
    wide = wide * (1 / scale)
    return (wide + start).round() if start.is_floating_point() else wide.round() + start


def _in_range(input, scale, start, quant_min, quant_max):
    """Whether each element is within the range of the integers."""
    with no_grad():
        steps = _steps(input, scale, start)
        return (steps >= quant_min) & (steps <= quant_max)


def _of_channels(numbers, input, axis):
    """Numbers of channels in a shape that broadcasts with the tensor."""
    shape = [1] * input.ndim
    shape[axis] = input.size(axis)  # or raise
    return numbers.view(shape)


# ---- with a mask


@api_boundary
def fake_quantize_per_tensor_affine_cachemask(
    input: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """Return `fake_quantize_per_tensor_affine`, and the mask of elements within the range.

    input: floating point. Errors: those of `fake_quantize_per_tensor_affine`.

    >>> x = jaxgrad.tensor([0.3, 9.0])
    >>> jaxgrad.ops.fake_quantize_per_tensor_affine_cachemask(x, 0.5, 0, -2, 2)
    (tensor([0.5000, 1.0000]), tensor([ True, False]))
    """
    value = ops.fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)
    scale = full((), scale, dtype=dtypes.float32)
    zero_point = full((), zero_point, dtype=dtypes.int32)
    return value, _in_range(input, scale, zero_point, quant_min, quant_max)


@api_boundary
def _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    fake_quant_enabled: Tensor,
    quant_min: int,
    quant_max: int,
) -> tuple[Tensor, Tensor]:
    """The same with tensors of one element as scale and zero point.

    fake_quant_enabled: a tensor of one element; if it is 0, the elements stay as they are.
    """
    limits = quant_min, quant_max
    value = ops.fake_quantize_per_tensor_affine(input, scale, zero_point, *limits)
    mask = _in_range(input, scale.view(()), zero_point.view(()).int(), *limits)
    is_enabled = fake_quant_enabled.view(()) != 0
    return ops.where(is_enabled, value, input), mask | ~is_enabled


@api_boundary
def fake_quantize_per_channel_affine_cachemask(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """Return `fake_quantize_per_channel_affine`, and the mask of elements within the range.

    Errors: those of `fake_quantize_per_channel_affine`.

    >>> x, scale = jaxgrad.tensor([[0.3], [9.0]]), jaxgrad.tensor([0.5, 4.0])
    >>> start = jaxgrad.zeros(2, dtype=jaxgrad.int32)
    >>> jaxgrad.ops.fake_quantize_per_channel_affine_cachemask(x, scale, start, 0, -1, 1)[1]
    tensor([[ True],
            [False]])
    """
    limits = quant_min, quant_max
    value = ops.fake_quantize_per_channel_affine(input, scale, zero_point, axis, *limits)
    scale, zero_point = (_of_channels(numbers, input, axis) for numbers in (scale, zero_point))
    return value, _in_range(input, scale, zero_point, *limits)


# ---- learned scales


def _learnable(input, scale, zero_point, quant_min, quant_max, grad_factor):
    """The elements rounded to multiples of `scale`; with the derivatives of Learned Step Size
    Quantization (Esser et al., 2020), as in PyTorch.
    """
    if quant_min > quant_max:
        raise RuntimeError(
            f"`quant_min` should be less than or equal to `quant_max`, not {quant_min} and "
            f"{quant_max}"
        )
    with no_grad():
        start = zero_point.round().clamp(quant_min, quant_max)
        steps = (input * (1 / scale)).round() + start
        is_inside = (steps >= quant_min) & (steps <= quant_max)
        is_above = steps > quant_max  # NaN is below, as in PyTorch
        limited = ops.where(is_inside, steps, ops.where(is_above, quant_max, quant_min))
        value = (limited - start) * scale
        of_scale = ops.where(is_inside, (value - input) / scale, limited - start) * grad_factor
        of_start = ops.where(is_inside, 0.0, -scale) * grad_factor
    passed = ops.where(is_inside, input, 0.0)
    # each difference is 0, and has the derivative that its factor says
    result = value.to(input.dtype) + (passed - passed.detach())
    result = result + of_scale * (scale - scale.detach())
    return (result + of_start * (zero_point - zero_point.detach())).to(input.dtype)


@api_boundary
def _fake_quantize_learnable_per_tensor_affine(
    input, scale, zero_point, quant_min, quant_max, grad_factor=1.0
):
    """The elements rounded to multiples of a scale, which has a gradient, as the zero point has.

    input: floating point. scale, zero_point: float32 of shape (1,). grad_factor: a factor of both
    gradients.
    """
    scale, zero_point = scale.view(()), zero_point.view(())
    return _learnable(input, scale, zero_point, quant_min, quant_max, grad_factor)


@api_boundary
def _fake_quantize_learnable_per_channel_affine(
    input, scale, zero_point, axis, quant_min, quant_max, grad_factor=1.0
):
    """The same with a scale and a zero point for each index along `axis`."""
    scale, zero_point = (_of_channels(numbers, input, axis) for numbers in (scale, zero_point))
    return _learnable(input, scale, zero_point, quant_min, quant_max, grad_factor)


# ---- recorded ranges


@api_boundary
def fused_moving_avg_obs_fake_quant(
    input: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Tensor:
    """Record the range of a tensor, and round it to the numbers of a quantized tensor of the
    recorded range: `FusedMovingAvgObsFakeQuantize` as one function.

    input: floating point. observer_on, fake_quant_on: tensors of one element, which switch both
    parts. running_min, running_max: the averages of the bounds, infinite at first; scale,
    zero_point: what follows from them. All four are written, of shape (1,) or (channels,).
    averaging_const: the weight of a new range. ch_axis, per_row_fake_quant: the dimension of the
    channels, and whether there are any. symmetric_quant: as for `per_tensor_symmetric`.

    >>> low, high = jaxgrad.tensor([jaxgrad.inf]), jaxgrad.tensor([-jaxgrad.inf])
    >>> written = low, high, jaxgrad.ones(1), jaxgrad.zeros(1, dtype=jaxgrad.int32)
    >>> x, on = jaxgrad.tensor([0.0, 0.4, 1.0, 3.0]), jaxgrad.tensor([1])
    >>> jaxgrad.fused_moving_avg_obs_fake_quant(x, on, on, *written, 0.1, 0, 3, 0)
    tensor([0., 0., 1., 3.])
    """
    if not input.numel():
        return input.clone()
    return _fused_moving_avg_obs_fq_helper(
        *(input, observer_on, fake_quant_on, running_min, running_max, scale, zero_point),
        *(averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant, symmetric_quant),
    )[0]


@api_boundary
def _fused_moving_avg_obs_fq_helper(
    input,
    observer_on,
    fake_quant_on,
    running_min,
    running_max,
    scale,
    zero_point,
    averaging_const,
    quant_min,
    quant_max,
    ch_axis,
    per_row_fake_quant=False,
    symmetric_quant=False,
) -> tuple[Tensor, Tensor]:
    """Return `fused_moving_avg_obs_fake_quant`, and the mask of elements within the range."""
    if ch_axis >= input.ndim:
        raise RuntimeError(
            "Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim(): "
            f"{ch_axis} for {input.ndim} dimensions"
        )
    is_observing, is_rounding = observer_on.item() == 1, fake_quant_on.item() == 1
    limits = quant_min, quant_max
    with no_grad():
        if is_observing:
            rows = input.movedim(ch_axis, 0).flatten(1) if per_row_fake_quant else input.view(1, -1)
            for running, bound in ((running_min, rows.amin(1)), (running_max, rows.amax(1))):
                _average(running, bound, averaging_const)
        if is_rounding:
            chosen = chosen_parameters(running_min, running_max, *limits, symmetric_quant)
            for parameter, value in zip((scale, zero_point), chosen, strict=True):
                parameter.resize_(value.shape).copy_(value)
    if not is_rounding:
        return input.clone(), ones_like(input, dtype=dtypes.bool)
    if per_row_fake_quant:
        parameters = scale, zero_point, ch_axis
        return fake_quantize_per_channel_affine_cachemask(input, *parameters, *limits)
    parameters = scale, zero_point, fake_quant_on
    return _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(input, *parameters, *limits)


def _average(running, bound, weight):
    """Move a running bound towards a new one; an infinite one becomes the new one."""
    if not running.numel():
        running.resize_(bound.shape).fill_(float("inf"))
    running.copy_(ops.where(running.isinf(), bound, running + weight * (bound - running)))
