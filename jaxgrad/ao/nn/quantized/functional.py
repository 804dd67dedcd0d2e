"""torch.ao.nn.quantized.functional: functions of quantized tensors.

Arguments are those of `nn.functional`; `scale` and `zero_point` are those of the result.
"""

from __future__ import annotations

from .... import nn
from ....core import named_dtypes
from ....functions import quantized_kernels as kernels
from ....names.not_provided import names_of

F = nn.functional


def _check(name, *tensors):
    """Raise ValueError for tensors that are not quantized."""
    if not all(tensor.is_quantized for tensor in tensors):
        raise ValueError(
            f"Input to 'quantized.{name}' must be quantized!: torch.quantize_per_tensor does that"
        )


def _of_same_scale(name):
    """The function of `nn.functional`, whose result has the scale of its input."""

    def function(input, *args, **options):
        _check(name, input)
        return getattr(F, name)(input, *args, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`nn.functional.{name}` of a quantized tensor, with its scale."
    return function


avg_pool2d, avg_pool3d = map(_of_same_scale, ("avg_pool2d", "avg_pool3d"))
adaptive_avg_pool2d = _of_same_scale("adaptive_avg_pool2d")
adaptive_avg_pool3d = _of_same_scale("adaptive_avg_pool3d")
max_pool1d, max_pool2d = map(_of_same_scale, ("max_pool1d", "max_pool2d"))
interpolate, hardtanh, threshold = map(_of_same_scale, ("interpolate", "hardtanh", "threshold"))
hardsigmoid = _of_same_scale("hardsigmoid")


def clamp(input, min_, max_):
    """The elements limited to [min_, max_], with the scale of the input."""
    _check("clamp", input)
    return input.clamp(min_, max_)


def _result(input, scale, zero_point):
    """The scale and zero point of a result, without them those of the input."""
    if scale is None or zero_point is None:
        return input.q_scale(), input.q_zero_point()
    return scale, zero_point


def linear(input, weight, bias=None, scale=None, zero_point=None):
    """`input @ weight.T + bias`, of a quantized weight of qint8 and a bias of float32.

    >>> x = jaxgrad.quantize_per_tensor(jaxgrad.ones(1, 2), 0.5, 0, jaxgrad.quint8)
    >>> weight = jaxgrad.quantize_per_tensor(jaxgrad.ones(1, 2), 0.1, 0, jaxgrad.qint8)
    >>> jaxgrad.ao.nn.quantized.functional.linear(x, weight, None, 0.5, 0).int_repr()
    tensor([[4]], dtype=torch.uint8)
    """
    _check("linear", input, weight)
    packed = kernels.linear_prepack(weight, bias)
    return kernels.linear(input, packed, *_result(input, scale, zero_point))


def _convolution(dims):
    def convolution(
        input,
        weight,
        bias,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        padding_mode="zeros",
        scale=1.0,
        zero_point=0,
        dtype=named_dtypes.quint8,
    ):
        name = f"conv{dims}d"
        _check(name, input, weight)
        if padding_mode != "zeros":
            raise NotImplementedError(f"{name}: only zero-padding is supported, not {padding_mode}")
        if input.dtype is not named_dtypes.quint8 or weight.dtype is not named_dtypes.qint8:
            raise NotImplementedError(
                f"{name}: only torch.quint8 is supported for activation tensor, and torch.qint8 "
                f"for weight tensor, not {input.dtype} and {weight.dtype}"
            )
        places = (
            (value,) * dims if isinstance(value, int) else value
            for value in (stride, padding, dilation)
        )
        packed = getattr(kernels, f"{name}_prepack")(weight, bias, *places, groups)
        return getattr(kernels, name)(input, packed, scale, zero_point)

    convolution.__name__ = convolution.__qualname__ = f"conv{dims}d"
    convolution.__doc__ = (
        f"`nn.functional.conv{dims}d` of a quantized input of quint8 and a weight of qint8."
    )
    return convolution


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))


def hardswish(input, scale, zero_point):
    """`nn.functional.hardswish` of a quantized tensor."""
    _check("hardswish", input)
    return kernels.hardswish(input, scale, zero_point)


def elu(input, scale, zero_point, alpha=1.0):
    """`nn.functional.elu` of a quantized tensor."""
    _check("elu", input)
    return kernels.elu(input, scale, zero_point, alpha)


def celu(input, scale, zero_point, alpha=1.0):
    """`nn.functional.celu` of a quantized tensor."""
    _check("celu", input)
    return kernels.celu(input, scale, zero_point, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False, scale=None, zero_point=None):
    """`nn.functional.leaky_relu` of a quantized tensor."""
    _check("leaky_relu", input)
    result = kernels.leaky_relu(input, negative_slope, inplace, *_result(input, scale, zero_point))
    return input.copy_(result) if inplace else result


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The older name of `interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input, size=None, scale_factor=None):
    """`interpolate` between four elements, with `align_corners`."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def upsample_nearest(input, size=None, scale_factor=None):
    """`interpolate` by the nearest element."""
    return interpolate(input, size, scale_factor, "nearest")


__getattr__, __dir__ = names_of(__name__)
