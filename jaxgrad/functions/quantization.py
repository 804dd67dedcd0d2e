"""Quantized tensors: made of numbers, moved, compared, and asked for their integers and scales.

A `QuantizedTensor` is a handle on its integers. Its class overrides all functions: those that move
elements move the integers, and comparisons compare the numbers that they stand for. While no class
overrides functions, it is the tensor of its integers.
"""

from __future__ import annotations

import operator

import numpy

from .. import ops
from ..core import dtypes, named_dtypes
from ..frontend.factories import full
from ..frontend.legacy_methods import OF_QUANTIZED
from ..frontend.printing import arrays
from ..frontend.tensor_data import tensor as new_tensor
from ..tape import torch_function
from ..tape.tensor import Tensor, abstract_value
from ..tape.torch_function import api_boundary

INTEGERS = {
    named_dtypes.quint8: dtypes.uint8,
    named_dtypes.qint8: dtypes.int8,
    named_dtypes.qint32: dtypes.int32,
    named_dtypes.quint4x2: dtypes.uint8,
}
_OF_FOUR_BITS = named_dtypes.quint4x2


class qscheme:
    """How the integers of a quantized tensor stand for numbers: `per_tensor_affine` and others."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


per_tensor_affine = qscheme("per_tensor_affine")
per_channel_affine = qscheme("per_channel_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")

SCHEMES = (
    *(per_tensor_affine, per_channel_affine, per_tensor_symmetric, per_channel_symmetric),
    per_channel_affine_float_qparams,
)


def _moving(name):
    """A method that gives the elements other places."""
    return lambda tensor, *args, **kwargs: _moved(getattr(Tensor, name), (tensor, *args), kwargs)


def _of_integers(name):
    """A method that says of the integers what holds for the numbers."""

    def method(tensor, *args):
        with torch_function.DisableTorchFunctionSubclass():
            return getattr(Tensor, name)(tensor, *args)

    return method


class QuantizedTensor(Tensor):
    """A tensor of numbers `(integer - zero_point) * scale`; `quantize_per_tensor` makes it.

    >>> x = jaxgrad.quantize_per_tensor(jaxgrad.tensor([0.26, 1.0]), 0.1, 10, jaxgrad.quint8)
    >>> x.int_repr(), x.dequantize()
    (tensor([13, 20], dtype=torch.uint8), tensor([0.3000, 1.0000]))
    """

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return _call(func, args, kwargs or {})

    @property
    def dtype(self):
        return self._dtype if torch_function.classes_override.get() else abstract_value(self).dtype

    is_quantized = property(lambda self: True)
    clone, contiguous, cpu, flatten, reshape, __getitem__ = map(
        _moving, ("clone", "contiguous", "cpu", "flatten", "reshape", "__getitem__")
    )
    detach, repeat, index_select = map(_moving, ("detach", "repeat", "index_select"))
    flip, roll = map(_moving, ("flip", "roll"))
    # integers are in the order of the numbers
    max, min, sort, topk = map(_moving, ("max", "min", "sort", "topk"))
    size, dim, numel, stride = map(_of_integers, ("size", "dim", "numel", "stride"))
    __len__, is_contiguous = map(_of_integers, ("__len__", "is_contiguous"))
    element_size, is_floating_point = map(_of_integers, ("element_size", "is_floating_point"))

    def qscheme(self) -> qscheme:
        """`per_tensor_affine`; with a scale for each index along an axis `per_channel_affine`, or
        `per_channel_affine_float_qparams` if zero points are no integers.
        """
        if self._axis is None:
            return per_tensor_affine
        is_float = self._zero_point.is_floating_point()
        return per_channel_affine_float_qparams if is_float else per_channel_affine

    def int_repr(self) -> Tensor:
        """The integers, in a tensor of their own. Of 4 bits two are in one of uint8, the first of
        them in the lower half.
        """
        integers = self._integers()
        if self._dtype is not _OF_FOUR_BITS:
            return integers
        flat = integers.flatten()
        odd = flat[1::2]
        return flat[::2] + 16 * ops.cat([odd, odd.new_zeros(flat.numel() % 2)])

    def _integers(self):
        with torch_function.DisableTorchFunctionSubclass():
            return ops.clone(self).contiguous()

    def dequantize(self) -> Tensor:
        """The numbers, float32."""
        scale, zero_point = self._parameters()
        return (self._integers().to(dtypes.float32) - zero_point) * scale

    def _parameters(self):
        """Scales and zero points in shapes that broadcast with the integers."""
        if self._axis is None:
            return full((), self._scale), self._zero_point
        shape = [1] * self.ndim
        shape[self._axis] = -1
        scale, zero_point = self._scale.to(dtypes.float32), self._zero_point
        return scale.view(shape), zero_point.view(shape).to(dtypes.float32)

    def q_scale(self) -> float:
        """The scale. Raises RuntimeError for one of each channel, as `q_zero_point` does."""
        return self._of_whole("q_scale", self._scale)

    def q_zero_point(self) -> int:
        """The integer that stands for 0."""
        return self._of_whole("q_zero_point", self._zero_point)

    def _of_whole(self, name, value):
        if self._axis is not None:
            raise RuntimeError(
                f"Expected quantizer->qscheme() == kPerTensorAffine to be true: {name}"
            )
        return value

    def q_per_channel_scales(self) -> Tensor:
        """The scale of each channel, float64. Raises RuntimeError for one of the whole tensor."""
        return self._of_channels(self._scale)

    def q_per_channel_zero_points(self) -> Tensor:
        """The zero point of each channel, int64."""
        return self._of_channels(self._zero_point)

    def q_per_channel_axis(self) -> int:
        """The dimension of the channels."""
        return self._of_channels(self._axis)

    def _of_channels(self, value):
        if self._axis is None:
            raise RuntimeError("Expected quantizer->qscheme() == kPerChannelAffine to be true")
        return value

    def equal(self, other) -> bool:
        return self.qscheme() is other.qscheme() and self.dequantize().equal(other.dequantize())

    def copy_(self, src, non_blocking=False):
        """Write numbers, which are rounded; of a quantized tensor the integers."""
        source = src if isinstance(src, QuantizedTensor) else _again(self, src)
        with torch_function.DisableTorchFunctionSubclass():
            ops.copy_(self, source)
        return self

    def fill_(self, value):
        return self.copy_(full(self.shape, float(value)))

    def __setitem__(self, index, value):
        self[index].copy_(value if isinstance(value, Tensor) else full((), float(value)))

    def item(self) -> float:
        return self.dequantize().item()

    def tolist(self):
        return self.dequantize().tolist()

    def to(self, *args, **kwargs):
        target = [*args, *kwargs.values()]
        if any(isinstance(value, dtypes.dtype) and value is not self._dtype for value in target):
            raise RuntimeError("empty_quantized not supported: take x.dequantize().to(dtype)")
        return self

    def type(self, dtype=None, non_blocking=False):
        name = f"torch.quantized.{self._dtype.scalar_type}Tensor"
        return name if dtype is None else self.to(dtype)

    def numpy(self, *, force=False):
        raise TypeError(f"Got unsupported ScalarType {self._dtype.scalar_type}: take int_repr()")

    def requires_grad_(self, requires_grad=True):
        if requires_grad:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        return self

    def __repr__(self):
        array = self.dequantize().numpy()
        suffixes = [f"size={tuple(self.shape)}", f"dtype={self._dtype}"]
        suffixes += [f"quantization_scheme={self.qscheme()}", f"scale={self._scale}"]
        suffixes.append(f"zero_point={self._zero_point}")
        if self._axis is not None:
            suffixes.append(f"axis={self._axis}")
        return arrays.with_suffixes(f"tensor({arrays.body(array, dtypes.float32)}", suffixes)

    def __format__(self, specification):
        return object.__format__(self, specification)

    def __deepcopy__(self, memo):
        return _like(self._integers(), self)


def _quantized(integers: Tensor, dtype, scale, zero_point, axis=None) -> QuantizedTensor:
    """The quantized tensor of integers, a tensor without other references."""
    torch_function.activate()
    integers.__class__ = QuantizedTensor
    integers._dtype, integers._scale, integers._zero_point = dtype, scale, zero_point
    integers._axis = axis
    return integers


def _like(integers, tensor, axis=None):
    return _quantized(
        integers, tensor._dtype, tensor._scale, tensor._zero_point, axis or tensor._axis
    )


def _again(tensor, numbers):
    """Numbers with the scale and the dtype of a quantized tensor."""
    if tensor._axis is None:
        return quantize_per_tensor(numbers, tensor._scale, tensor._zero_point, tensor._dtype)
    return quantize_per_channel(
        numbers, tensor._scale, tensor._zero_point, tensor._axis, tensor._dtype
    )


# ---- making them


def _integers(dtype):
    if dtype not in INTEGERS:
        kind = getattr(dtype, "scalar_type", type(dtype).__name__)
        raise RuntimeError(
            f"ScalarType {kind} is not supported in new_qtensor: it is quint8, qint8, qint32 or "
            "quint4x2"
        )
    return INTEGERS[dtype]


def limits_of(dtype) -> tuple[int, int]:
    """The least and the greatest integer of a dtype."""
    if dtype is _OF_FOUR_BITS:
        return 0, 15
    limits = dtypes.iinfo(_integers(dtype))
    return limits.min, limits.max


def _check(name, input, zero_point, dtype):
    least, greatest = limits_of(dtype)
    if input.dtype is not dtypes.float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {input.dtype.scalar_type}")
    for number, word in ((max(zero_point), "above upper"), (-min(zero_point), "below lower")):
        bound = greatest if word.startswith("above") else -least
        if number > bound:
            raise RuntimeError(f"{name} zero_point {zero_point[0]} is {word} bound.")


def _rounded(input, scale, zero_point, dtype):
    """The integers nearest to numbers, of two the even one."""
    least, greatest = limits_of(dtype)
    steps = (input.detach() * (1 / scale) + zero_point).round()
    # as in PyTorch, no number is the greatest one
    return _bounded(steps.nan_to_num(greatest, greatest, least), dtype)


def _bounded(steps, dtype):
    """Whole numbers as the integers of a dtype."""
    return steps.double().clamp(*limits_of(dtype)).to(INTEGERS[dtype])


@api_boundary
def quantize_per_tensor(input, scale, zero_point, dtype):
    """Round numbers to `(integer - zero_point) * scale`.

    input: float32 of any shape, or a list of such tensors, with a scale and a zero point for each.
    scale, zero_point: numbers, or tensors of one element. dtype: `quint8`, `qint8`, `qint32` or
    `quint4x2`.
    The result has no gradient. Raises RuntimeError for other dtypes, and for a zero point that is
    no integer of the dtype.

    >>> x = jaxgrad.tensor([0.26, 30.0])
    >>> jaxgrad.quantize_per_tensor(x, 0.1, 10, jaxgrad.quint8).int_repr()
    tensor([ 13, 255], dtype=torch.uint8)
    """
    if isinstance(input, tuple | list):
        parts = zip(input, scale.tolist(), zero_point.tolist(), strict=True)
        return tuple(quantize_per_tensor(*part, dtype) for part in parts)
    scale, zero_point = float(scale), int(zero_point)
    _check("quantize_tensor_per_tensor_affine", input, [zero_point], dtype)
    integers = _rounded(input, full((), scale), zero_point, dtype)
    return _quantized(integers, dtype, scale, zero_point)


@api_boundary
def quantize_per_channel(input, scales, zero_points, axis, dtype):
    """Round numbers with a scale and a zero point for each index along a dimension.

    input: float32. scales, zero_points: of shape (channels,); zero points of a floating point dtype
    may be any numbers. axis: the dimension of the channels. dtype, errors: as for
    `quantize_per_tensor`; `quint4x2` needs zero points of a floating point dtype, else
    NotImplementedError.

    >>> x = jaxgrad.ones(2, 1)
    >>> scales, zeros = jaxgrad.tensor([0.1, 0.5]), jaxgrad.tensor([0, 1])
    >>> jaxgrad.quantize_per_channel(x, scales, zeros, 0, jaxgrad.qint8).int_repr().tolist()
    [[10], [3]]
    """
    axis = axis % input.ndim
    if scales.shape != (input.shape[axis],) or zero_points.shape != scales.shape:
        raise RuntimeError(
            "length of scales must equal to channel, and so of zero_points: "
            f"{list(scales.shape)} and {list(zero_points.shape)} for {input.shape[axis]} channels"
        )
    is_float = zero_points.is_floating_point()
    if dtype is _OF_FOUR_BITS and not is_float:
        raise NotImplementedError(
            "\"quantize_tensor_per_channel_affine\" not implemented for 'QUInt4x2': zero_points "
            "must have a floating point dtype"
        )
    bounded = [0] if is_float else zero_points.tolist()
    _check("quantize_tensor_per_channel_affine", input, bounded, dtype)
    shape = [1] * input.ndim
    shape[axis] = -1
    scale, zero_point = scales.to(dtypes.float32).view(shape), zero_points.view(shape)
    integers = _rounded(input, scale, zero_point, dtype)
    return _of_channels(integers, dtype, scales, zero_points, axis)


@api_boundary
def quantize_per_tensor_dynamic(input, dtype, reduce_range=False):
    """Round numbers with the scale and the zero point that their range asks for.

    input: float32. dtype: `quint8` or `qint8`. reduce_range: whether one bit is left unused.

    >>> jaxgrad.quantize_per_tensor_dynamic(jaxgrad.tensor([0.0, 127.5]), jaxgrad.quint8).q_scale()
    0.5
    """
    limits = dtypes.iinfo(_integers(dtype))
    low, high = (limits.min // 2, limits.max // 2) if reduce_range else (limits.min, limits.max)
    parameters = chosen_parameters(*ops.aminmax(input.detach()), low, high)
    return quantize_per_tensor(input, *parameters, dtype)


def chosen_parameters(least, greatest, low, high, symmetric=False):
    """The scales and the zero points for ranges of numbers, float64 tensors.

    least, greatest: the bounds of the ranges; low, high: the integers that stand for them.
    symmetric: whether ranges with numbers on both sides of 0 are those of as many integers on each.
    """
    least, greatest = least.double().clamp(max=0.0), greatest.double().clamp(min=0.0)
    scale = (greatest - least) / (high - low)
    is_symmetric = (least < 0) & (greatest > 0) & symmetric
    if symmetric:
        half = (high - low) // 2
        steps = ops.maximum(-least / (half + 1), greatest / half)
        scale = ops.where(is_symmetric, steps * (2 * half + 1) / (high - low), scale)
    has_none = (scale.float() == 0) | (1 / scale.float()).isinf()
    scale = ops.where(has_none, 0.1, scale)
    below, above = least / scale, greatest / scale
    is_from_low = abs(low) - below.abs() < abs(high) - above.abs()
    start = ops.where(is_from_low, low - below, high - above).clamp(low, high).round()
    start = ops.where(is_symmetric, float(round((low + high) / 2)), start)
    return scale.clamp(min=_LEAST_SCALE), start


# PyTorch's, a number of float32, for kernels that round scales to half precision
_LEAST_SCALE = 6.0999998822808266e-05


@api_boundary
def dequantize(input):
    """Return the numbers of a quantized tensor, float32; of a list of tensors, a tuple.

    >>> x = jaxgrad.quantize_per_tensor(jaxgrad.ones(2), 0.5, 0, jaxgrad.qint8)
    >>> jaxgrad.dequantize(x)
    tensor([1., 1.])
    """
    if isinstance(input, tuple | list):
        return tuple(dequantize(part) for part in input)
    return input.dequantize() if isinstance(input, QuantizedTensor) else input.to(dtypes.float32)


def _empty_affine_quantized(size, *, scale=1.0, zero_point=0, dtype, **options):
    """A quantized tensor of this shape; its numbers are 0."""
    return quantize_per_tensor(full(tuple(size), 0.0), scale, zero_point, dtype)


def _make_per_tensor_quantized_tensor(input, scale, zero_point):
    """The quantized tensor of these integers."""
    return _quantized(ops.clone(input), _dtype_of(input), float(scale), int(zero_point))


def _make_per_channel_quantized_tensor(input, scale, zero_point, axis):
    """The quantized tensor of these integers, with a scale for each channel."""
    return _of_channels(ops.clone(input), _dtype_of(input), scale, zero_point, axis)


def _of_channels(integers, dtype, scale, zero_point, axis):
    """The quantized tensor of these integers; with float zero points both parameters are float."""
    if zero_point.is_floating_point():
        return _quantized(integers, dtype, scale.float(), zero_point.float(), axis)
    return _quantized(integers, dtype, scale.double(), zero_point.long(), axis)


def _dtype_of(integers):
    return next(dtype for dtype, stored in INTEGERS.items() if stored is integers.dtype)


# ---- functions of them

_COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def _call(function, args, kwargs):
    name = function.__name__
    if getattr(operator, name.strip("_"), None) in _COMPARISONS:
        return function(*map(_number, args), **kwargs)
    if _is_view(function):
        return _moved(function, args, kwargs)
    if function is dequantize and isinstance(args[0], tuple | list):
        return tuple(map(dequantize, args[0]))
    if isinstance(args[0], tuple | list):
        return _joined(function, *args, **kwargs)
    method = vars(QuantizedTensor).get(name)
    if method is not None:
        return method(*args, **kwargs)
    compute = getattr(_OfNumbers, name.removesuffix("_"), None)
    if compute is None:
        raise _missing(name)
    return _computed(compute, function, *args, **kwargs)


def _missing(name):
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'QuantizedCPU' backend: call it on "
        "tensor.dequantize(), and quantize the result"
    )


def _of_integers(function, tensor, *args, **kwargs):
    """Of functions that multiply their result by a factor if their input is multiplied by one, and
    of those that move elements.
    """
    steps = function(tensor.int_repr().double() - tensor._zero_point, *args, **kwargs)
    return _like(_bounded((steps + tensor._zero_point).round(), tensor._dtype), tensor)


def _of_same_scale(function, tensor, *args, **kwargs):
    return _again(tensor, function(tensor.dequantize(), *args, **kwargs))


def _in_range(width, start):
    """Of functions that have a range: its width, and the place of 0 in it, of 256."""

    def compute(function, tensor, *args, **kwargs):
        limits = dtypes.iinfo(INTEGERS[tensor._dtype])
        count = limits.max - limits.min + 1
        zero_point = limits.min + start * count // 256
        result = function(tensor.dequantize(), *args, **kwargs)
        return quantize_per_tensor(result, width / count, zero_point, tensor._dtype)

    return staticmethod(compute)


class _OfNumbers:
    """How functions of numbers are computed of a quantized tensor, as by PyTorch's kernels."""

    relu = avg_pool2d = avg_pool3d = adaptive_avg_pool2d = adaptive_avg_pool3d = _of_integers
    max_pool1d = max_pool2d = max_pool3d = _of_integers
    pixel_shuffle = pixel_unshuffle = channel_shuffle = _of_integers
    relu6 = hardtanh = clamp = leaky_relu = elu = threshold = mean = interpolate = _of_same_scale
    pad = dropout = masked_fill = _of_same_scale
    sigmoid = hardsigmoid = _in_range(1, 0)
    tanh = _in_range(2, 128)


def _computed(compute, function, *args, inplace=False, **kwargs):
    result = compute(function, *args, **kwargs)
    writes = inplace or function.__name__.endswith("_")
    return args[0].copy_(result) if writes else result


def _number(value):
    return value.dequantize() if isinstance(value, QuantizedTensor) else value


def _joined(function, parts, *args, **kwargs):
    """`cat` and `stack`: the numbers of all with the scale of the first."""
    if function.__name__ not in ("cat", "stack"):
        raise _missing(function.__name__)
    first = parts[0]
    parts = [first, *(_again(first, part.dequantize()) for part in parts[1:])]
    return _moved(function, (parts, *args), kwargs, first)


def _moved(function, args, kwargs, like=None):
    """The result of a function that gives the elements other places."""
    like = args[0] if like is None else like
    has_scales = like._axis is not None
    if has_scales and function.__name__ not in ("clone", "detach", "contiguous"):
        return _moved_channels(function, args, kwargs)
    with torch_function.DisableTorchFunctionSubclass():
        result = function(*args, **kwargs)
    return _as_quantized(result, like)


def _is_view(function) -> bool:
    overloads = getattr(getattr(function, "operator", None), "overloads", None)
    return overloads is not None and overloads.primitives[0].rule.is_view


def _moved_channels(function, args, kwargs):
    """The same for a tensor with a scale for each channel. The channels of the elements, moved as
    the elements are, show the axis; what has one channel has one scale.
    """
    like, arguments = args[0], args[1:]
    if not _is_view(function) and function.__name__ != "__getitem__":
        raise _no_channels(function)
    numbers = numpy.arange(like.shape[like._axis], dtype="int32")
    numbers = numbers.reshape([-1 if dim == like._axis else 1 for dim in range(like.ndim)])
    channels = new_tensor(numpy.broadcast_to(numbers, like.shape).copy())
    with torch_function.DisableTorchFunctionSubclass():
        result = function(like, *arguments, **kwargs)
        places = function(channels, *arguments, **kwargs)
    if isinstance(result, tuple | list):
        pairs = zip(result, places, strict=True)
        return type(result)(_of_places(part, place, like, function) for part, place in pairs)
    return _of_places(result, places, like, function)


def _of_places(integers, places, like, function):
    places = places.numpy()
    held = numpy.unique(places).tolist()
    if len(held) == 1:
        scale, zero_point = like._scale[held[0]].item(), like._zero_point[held[0]].item()
        return _quantized(integers, like._dtype, scale, zero_point)
    for axis in range(places.ndim):
        line = numpy.moveaxis(places, axis, -1)
        if held and (line == line.reshape(-1, line.shape[-1])[0]).all():
            index = new_tensor(line.reshape(-1, line.shape[-1])[0])
            scales, zeros = like._scale[index], like._zero_point[index]
            return _quantized(integers, like._dtype, scales, zeros, axis)
    raise _no_channels(function)


def _no_channels(function):
    return NotImplementedError(
        f"{function.__name__}: not provided for quantized tensors with a scale for each channel"
    )


def _as_quantized(result, like):
    if isinstance(result, tuple | list):
        parts = [_as_quantized(part, like) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    if result is like or abstract_value(result).dtype is not abstract_value(like).dtype:
        return result
    return _like(result, like)


# ---- questions as functions


def _question(name):
    """A method of quantized tensors as a function."""

    @api_boundary
    def function(input):
        return getattr(input, name)()

    function.__name__ = name
    function.__doc__ = f"{OF_QUANTIZED[name]}. Raises NotImplementedError for other tensors."
    return function


int_repr, q_scale, q_zero_point = map(_question, ("int_repr", "q_scale", "q_zero_point"))
q_per_channel_scales = _question("q_per_channel_scales")
q_per_channel_zero_points = _question("q_per_channel_zero_points")
q_per_channel_axis = _question("q_per_channel_axis")
