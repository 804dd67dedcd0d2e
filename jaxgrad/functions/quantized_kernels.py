"""torch.ops.quantized: functions of quantized tensors.

Products and convolutions multiply integers exactly, in float64, and round once, as FBGEMM does:
`round((sum + bias / s) * (s / scale)) + zero_point` with the product s of the scales of input and
weight. All others compute with the numbers that the integers stand for, and round the result.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import dtypes, named_dtypes
from ..frontend.factories import arange, full
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import activation, convolution, embedding, normalization, pooling
from .quantization import INTEGERS, _again, _quantized, chosen_parameters, quantize_per_tensor


class PackedParams:
    """The weight, the bias and the options of a product or a convolution.

    weight: quantized; float32 for products in float16. bias: float32 or None. options: arguments of
    the convolution.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, **options):
        self._weight = weight
        self._bias = None if bias is None else bias.detach()
        self._options = options

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        return self._weight, self._bias

    weight, bias = lambda self: self._weight, lambda self: self._bias
    stride, padding = lambda self: self._options["stride"], lambda self: self._options["padding"]
    dilation, groups = lambda self: self._options["dilation"], lambda self: self._options["groups"]
    transpose = lambda self: self._options["transpose"]  # noqa: E731
    output_padding = lambda self: self._options["output_padding"]  # noqa: E731

    def __deepcopy__(self, memo):
        weight, bias = self._weight.clone(), self._bias
        return PackedParams(weight, None if bias is None else bias.clone(), **self._options)


def _centered(tensor):
    """The integers of a quantized tensor less its zero point, float64."""
    return tensor.int_repr().double() - tensor._parameters()[1]


def _scales(tensor):
    """The scale of a quantized tensor, float32: without dimensions, or one of each channel."""
    return (
        tensor._parameters()[0].reshape(-1) if tensor._axis is not None else tensor._parameters()[0]
    )


def _requantized(total, factor, bias, output, floor):
    """Sums of products of integers as a quantized tensor.

    factor, bias: in shapes that broadcast with `total`, bias None without one; output: dtype, scale
    and zero point of the result; floor: whether negative numbers become 0.
    """
    dtype, scale, zero_point = output
    steps = total.float()
    if bias is not None:
        steps = steps + bias / factor
    limits = dtypes.iinfo(INTEGERS[dtype])
    steps = (steps * (factor / full((), scale))).round() + zero_point
    least = max(zero_point, limits.min) if floor else limits.min
    return _quantized(steps.clamp(least, limits.max).to(INTEGERS[dtype]), dtype, scale, zero_point)


def _beside_channels(value, total, dim):
    """Values of the channels, or one for all, in a shape that broadcasts with a result."""
    if value is None or not value.ndim:
        return value
    shape = [1] * total.ndim
    shape[dim] = -1
    return value.reshape(shape)


# ---- products


def linear_prepack(W, B=None) -> PackedParams:
    """The arguments of `linear`: a weight of qint8, (out, in), and a bias of float32, (out,)."""
    if not W.is_quantized:
        raise RuntimeError(
            "linear_prepack: the weight must be quantized: torch.quantize_per_tensor"
        )
    return PackedParams(W, B)


def linear_prepack_fp16(W, B=None) -> PackedParams:
    """The arguments of `linear_dynamic_fp16`: the weight, float32, is rounded to float16."""
    with no_grad():
        bounds = dtypes.finfo(dtypes.float16)
        return PackedParams(W.detach().clamp(bounds.min, bounds.max).half().float(), B)


def linear_unpack(W_prepack: PackedParams):
    """The weight and the bias."""
    return W_prepack.unpack()


linear_unpack_fp16 = conv1d_unpack = conv2d_unpack = conv3d_unpack = linear_unpack
conv_transpose1d_unpack = conv_transpose2d_unpack = conv_transpose3d_unpack = linear_unpack


@no_grad()
def _linear(X, W_prepack, Y_scale_i, Y_zero_point_i, *, floor):
    weight, bias = W_prepack.unpack()
    total = ops.matmul(_centered(X), _centered(weight).t())
    factor = _scales(X) * _scales(weight)
    return _requantized(total, factor, bias, (X._dtype, Y_scale_i, Y_zero_point_i), floor)


@no_grad()
def _linear_dynamic(X, W_prepack, reduce_range=False, *, floor):
    weight, bias = W_prepack.unpack()
    centered, scale = _centered_by_range(X, reduce_range)
    total = ops.matmul(centered, _centered(weight).t())
    result = total.float() * (scale * _scales(weight))
    result = result if bias is None else result + bias
    return result.relu() if floor else result


def _centered_by_range(x, reduce_range):
    """Numbers as integers of 8 bits less their zero point, and the scale, for their range."""
    if x.dtype is not dtypes.float32:
        raise RuntimeError(f"expected scalar type Float but found {x.dtype.scalar_type}")
    bound = 127 if reduce_range else 255
    scale, zero_point = chosen_parameters(*ops.aminmax(x.detach()), 0, bound)
    scale = scale.float()
    # FBGEMM's way to quantize what it multiplies
    steps = (x.detach() * (1 / scale) + zero_point.float()).round().clamp(0, bound)
    return steps.double() - zero_point, scale


@no_grad()
def _linear_dynamic_fp16(X, W_prepack, *, floor):
    result = ops.linear(X, *W_prepack.unpack())
    return result.relu() if floor else result


# ---- convolutions


def _conv_prepack(dims, transpose):
    def prepack(weight, bias, stride, padding, *others) -> PackedParams:
        output_padding = others[0] if transpose else [0] * dims
        dilation, groups = others[transpose:]
        options = {"stride": list(stride), "padding": list(padding), "dilation": list(dilation)}
        options |= {"groups": groups, "transpose": transpose, "output_padding": output_padding}
        return PackedParams(weight, bias, **options)

    prepack.__doc__ = f"The arguments of `conv{dims}d`: a weight of qint8, and options."
    return prepack


def _convolved(x, packed, dims):
    """Sums of products of integers, and the weight's scales beside them."""
    options = packed._options
    places = [options[name] for name in ("stride", "padding")]
    if options["transpose"]:
        function = getattr(convolution, f"conv_transpose{dims}d")
        places += [options["output_padding"], options["groups"], options["dilation"]]
    else:
        function = getattr(convolution, f"conv{dims}d")
        places += [options["dilation"], options["groups"]]
    total = function(x, _centered(packed._weight), None, *places)
    channel = total.ndim - dims - 1
    return total, *(
        _beside_channels(value, total, channel) for value in (_scales(packed._weight), packed._bias)
    )


def _conv(dims, floor):
    @no_grad()
    def conv(qx, packed_weight, output_scale, output_zero_point):
        total, scales, bias = _convolved(_centered(qx), packed_weight, dims)
        output = qx._dtype, output_scale, output_zero_point
        return _requantized(total, _scales(qx) * scales, bias, output, floor)

    return conv


def _conv_dynamic(dims):
    @no_grad()
    def conv_dynamic(qx, packed_weight, reduce_range=False):
        centered, scale = _centered_by_range(qx, reduce_range)
        total, scales, bias = _convolved(centered, packed_weight, dims)
        result = total.float() * (scale * scales)
        return result if bias is None else result + bias

    return conv_dynamic


# ---- embeddings


class PackedEmbedding:
    """The table of an embedding, a quantized tensor with a scale and a zero point for each row."""

    def __init__(self, weight: Tensor):
        scale, start = weight.q_per_channel_scales(), weight.q_per_channel_zero_points()
        kept = dtypes.float16 if weight._dtype is named_dtypes.quint4x2 else dtypes.float32
        self._weight, self._integers = weight, weight._integers()
        self._scale = scale.to(dtypes.float32).to(kept)
        self._shift = (-start.to(dtypes.float32) * scale.to(dtypes.float32)).to(kept)

    def rows(self, indices) -> Tensor:
        """The rows at some indices, float32."""
        scale, shift = (
            part[indices].to(dtypes.float32).unsqueeze(-1) for part in (self._scale, self._shift)
        )
        return self._integers[indices].to(dtypes.float32) * scale + shift

    def unpack(self) -> Tensor:
        return self._weight

    def __deepcopy__(self, memo):
        return PackedEmbedding(self._weight.clone())


def embedding_bag_prepack(weight) -> PackedEmbedding:
    """The table of `embedding_byte` and its like: of quint8 or quint4x2, with a scale and a zero
    point for each row.
    """
    if not weight.is_quantized or weight._dtype not in (named_dtypes.quint8, named_dtypes.quint4x2):
        raise RuntimeError(
            "embedding_bag_prepack currently only supports per_channel_affine_float_qparams "
            f"weights of quint8 and quint4x2: quantize_per_channel makes them, not {weight.dtype}"
        )
    return PackedEmbedding(weight)


def embedding_bag_unpack(weight: PackedEmbedding):
    """The table."""
    return weight.unpack()


@no_grad()
def embedding_byte(weight: PackedEmbedding, indices, pruned_weights=False):
    """The rows of a table at some indices, float32."""
    return weight.rows(indices)


@no_grad()
def embedding_bag_byte(
    weight: PackedEmbedding,
    indices,
    offsets=None,
    scale_grad_by_freq=False,
    mode=0,
    pruned_weights=False,
    per_sample_weights=None,
    compressed_indices_mapping=None,
    include_last_offset=False,
):
    """The sums of the rows of bags, float32; mode 1: their means, 2: their maxima.

    Arguments: those of `nn.functional.embedding_bag`. Raises NotImplementedError for pruned tables.
    """
    if pruned_weights or compressed_indices_mapping is not None:
        raise NotImplementedError("quantized::embedding_bag_byte: jaxgrad has no pruned tables")
    if offsets is None:
        if indices.ndim != 2:
            raise RuntimeError("embedding_bag expects offsets to be set for 1D indices.")
        offsets = arange(0, indices.numel(), indices.shape[1])
        include_last_offset = False
    if per_sample_weights is not None:
        per_sample_weights = per_sample_weights.flatten()
    indices = indices.flatten()
    places = arange(indices.numel(), dtype=indices.dtype)
    return embedding.embedding_bag(
        weight.rows(indices),
        places,
        offsets.to(places.dtype),
        mode=mode,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
    )[0]


embedding_4bit, embedding_bag_4bit = embedding_byte, embedding_bag_byte


# ---- what is computed with numbers


def _by_numbers(function: Callable, operands: int, floor: bool = False) -> Callable:
    """A function of quantized tensors from one of numbers: the last two arguments after the
    operands are the scale and the zero point of the result.
    """

    @no_grad()
    def computed(*args, **options):
        tensors, rest = args[:operands], args[operands:]
        result = function(*(_numbers(tensor) for tensor in tensors), *rest[2:], **options)
        result = result.relu() if floor else result
        return quantize_per_tensor(result, *rest[:2], tensors[0]._dtype)

    return computed


def _numbers(value):
    if isinstance(value, list | tuple):
        return [part.dequantize() for part in value]
    return value.dequantize()


def _same_scale(function):
    """A function of a quantized tensor whose result has its scale."""

    @no_grad()
    def computed(qx, *args, **options):
        return _again(qx, function(qx.dequantize(), *args, **options))

    return computed


def _beside_number(function, floor):
    """`add_scalar`, `mul_scalar`: the scale and the zero point change so that few integers do."""

    @no_grad()
    def computed(qa, b):
        result = function(qa, float(b))
        return result.relu() if floor else result

    return computed


def _with_number_added(x, number):
    limits = dtypes.iinfo(INTEGERS[x._dtype])
    steps = round(number / x._scale)
    start, scale = x._zero_point - steps, x._scale
    if limits.min <= start <= limits.max:
        return _quantized(x.int_repr(), x._dtype, scale, start)
    bound, high = (limits.min, limits.max) if start < limits.min else (limits.max, limits.min)
    wide = (high - start) / (high - bound) * scale
    return quantize_per_tensor(x.dequantize() + steps * scale, wide, bound, x._dtype)


def _with_number_multiplied(x, number):
    limits = dtypes.iinfo(INTEGERS[x._dtype])
    if number == 0:
        return _quantized(x.int_repr() * 0, x._dtype, 1.0, 0)
    if number > 0:
        return _quantized(x.int_repr(), x._dtype, x._scale * number, x._zero_point)
    integers = (limits.min + limits.max) - x.int_repr().int()
    start = limits.min + limits.max - x._zero_point
    integers = integers.to(INTEGERS[x._dtype])
    return _quantized(integers, x._dtype, x._scale * -number, start)


def _normalized(floor):
    @no_grad()
    def batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point):
        numbers = qx.dequantize()
        result = normalization.batch_norm(numbers, weight, bias, mean, var, False, 0.0, eps)
        result = result.relu() if floor else result
        return quantize_per_tensor(result, output_scale, output_zero_point, qx._dtype)

    return batch_norm


batch_norm = batch_norm1d = batch_norm2d = batch_norm3d = _normalized(False)
batch_norm_relu = batch_norm1d_relu = batch_norm2d_relu = batch_norm3d_relu = _normalized(True)


def layer_norm(input, normalized_shape, weight, bias, eps, output_scale, output_zero_point):
    """Normalize over the last dimensions."""
    with no_grad():
        result = normalization.layer_norm(input.dequantize(), normalized_shape, weight, bias, eps)
    return quantize_per_tensor(result, output_scale, output_zero_point, input._dtype)


def group_norm(qx, num_groups, weight, bias, eps, output_scale, output_zero_point):
    """Normalize over groups of channels."""
    with no_grad():
        result = normalization.group_norm(qx.dequantize(), num_groups, weight, bias, eps)
    return quantize_per_tensor(result, output_scale, output_zero_point, qx._dtype)


def instance_norm(input, weight, bias, eps, output_scale, output_zero_point):
    """Normalize over the positions of each channel of each sample."""
    with no_grad():
        result = normalization.instance_norm(
            input.dequantize(), weight, bias, None, None, True, 0.1, eps
        )
    return quantize_per_tensor(result, output_scale, output_zero_point, input._dtype)


def prelu(qx, weight, output_scale, output_zero_point):
    """`where(x > 0, x, weight * x)`, of a quantized weight."""
    numbers = activation.prelu(qx.dequantize(), weight.dequantize())
    return quantize_per_tensor(numbers, output_scale, output_zero_point, qx._dtype)


def cat(qx, dim, scale=None, zero_point=None):
    """Join tensors; scale, zero_point: of the result, without them those of the first."""
    first = qx[0]
    if scale is None:
        scale, zero_point = first._scale, first._zero_point
    return quantize_per_tensor(ops.cat(_numbers(qx), dim), scale, zero_point, first._dtype)


def leaky_relu(qx, negative_slope, inplace, output_scale, output_zero_point):
    """`where(x > 0, x, negative_slope * x)`."""
    numbers = ops.leaky_relu(qx.dequantize(), negative_slope)
    return quantize_per_tensor(numbers, output_scale, output_zero_point, qx._dtype)


def relu6(qx, inplace=False):
    """`clamp(x, 0, 6)` with the scale of the input."""
    return _again(qx, qx.dequantize().clamp(0, 6))


def dropout(qx, output_scale, output_zero_point, p=0.5, training=False):
    """The input: a quantized model does not train."""
    return qx.clone()


def softmax(qx, dim, output_scale, output_zero_point):
    """Softmax along a dimension."""
    return quantize_per_tensor(
        qx.dequantize().softmax(dim), output_scale, output_zero_point, qx._dtype
    )


_FUNCTIONS = {"add": ops.add, "mul": ops.mul, "matmul": ops.matmul}
_UNARY = ("hardswish", "elu", "celu", "sigmoid")
_WITH_NUMBER = {"add": _with_number_added, "mul": _with_number_multiplied}


def _with_floor(function, floor):
    def product(*args, **options):
        return function(*args, **options, floor=floor)

    return product


def _define():
    """The functions that differ in a number of dimensions or in a relu at the end."""
    members = {}
    for floor in (False, True):
        end = "_relu" if floor else ""
        members[f"linear{end}"] = _with_floor(_linear, floor)
        members[f"linear{end}_dynamic"] = _with_floor(_linear_dynamic, floor)
        members[f"linear{end}_dynamic_fp16"] = _with_floor(_linear_dynamic_fp16, floor)
        for name, function in _FUNCTIONS.items():
            members[f"{name}{end}"] = _by_numbers(function, 2, floor)
        for name, function in _WITH_NUMBER.items():
            members[f"{name}_scalar{end}"] = _beside_number(function, floor)
        for dims in (1, 2, 3):
            members[f"conv{dims}d{end}"] = _conv(dims, floor)
    for dims in (1, 2, 3):
        members[f"conv{dims}d_prepack"] = _conv_prepack(dims, False)
        members[f"conv_transpose{dims}d_prepack"] = _conv_prepack(dims, True)
        members[f"conv_transpose{dims}d"] = _conv(dims, False)
        members[f"conv{dims}d_dynamic"] = _conv_dynamic(dims)
        members[f"conv_transpose{dims}d_dynamic"] = _conv_dynamic(dims)
    for name in _UNARY:
        members[name] = _by_numbers(getattr(ops, name), 1)
    for function in (pooling.max_pool1d, pooling.max_pool2d, ops.clamp):
        members[function.__name__] = _same_scale(function)
    for name, member in members.items():
        # graphs write calls by these
        member.__name__ = member.__qualname__ = name
        member.__module__ = "jaxgrad.ops.quantized"
    globals().update(members)


_define()

__getattr__ = missing_in(__name__)
