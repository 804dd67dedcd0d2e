"""What operators consist of: the table by which `run_decompositions` writes core operators.

The functions have the arguments of the overloads for which they stand. They call operators of aten
alone, and return NotImplemented for arguments with which the operator stays as it is.
"""

from __future__ import annotations

import math

from .. import ops
from ..core import dtypes
from ..core.device import contiguous_format
from ..core.symbolic_extents import is_symbolic
from . import _loss_decompositions, _recurrent_decompositions, _resampling_decompositions
from ._einsum_decomposition import einsum
from ._memory import viewed

aten = ops.aten


def _permuted(input, *dims):
    return aten.permute.default(input, [dim % input.ndim for dim in dims])


def _swapped(input, dim0, dim1):
    dims = [*range(input.ndim)]
    if not dims:
        return input
    dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return aten.permute.default(input, dims)


def _unsqueezed(input, *dims):
    for dim in dims:
        input = aten.unsqueeze.default(input, dim)
    return input


def _as(dtype, input):
    return (
        input
        if dtype is None or dtype == input.dtype
        else aten._to_copy.default(input, dtype=dtype)
    )


# ---- products


def linear(input, weight, bias=None):
    if weight.ndim != 2:
        return NotImplemented
    sizes = [math.prod(input.shape[:-1]), input.shape[-1]]
    if bias is None:
        columns = aten.permute.default(weight, [1, 0])
        result = aten.mm.default(viewed(input, sizes), columns)
    else:
        rows = viewed(input, sizes)
        result = aten.addmm.default(bias, rows, aten.permute.default(weight, [1, 0]))
    return viewed(result, [*input.shape[:-1], weight.shape[0]])


def dot(self, tensor):
    return aten.sum.dim_IntList(aten.mul.Tensor(self, tensor), [])


def mv(self, vec):
    return aten.sum.dim_IntList(aten.mul.Tensor(self, vec), [1])


def matmul(self, other):
    if self.ndim == 0 or other.ndim == 0:
        return NotImplemented
    if self.ndim == 1 and other.ndim == 1:
        return dot(self, other)
    if self.ndim == 1:
        return aten.squeeze.dims(matmul(aten.unsqueeze.default(self, 0), other), [-2])
    if other.ndim == 1:
        if self.ndim == 2:
            return mv(self, other)
        return aten.squeeze.dims(matmul(self, aten.unsqueeze.default(other, 1)), [-1])
    if self.ndim == 2 and other.ndim == 2:
        return aten.mm.default(self, other)
    if other.ndim == 2:
        rows = viewed(self, [math.prod(self.shape[:-1]), self.shape[-1]])
        return viewed(aten.mm.default(rows, other), [*self.shape[:-1], other.shape[1]])
    return _batched_product(self, other)


def _batched_product(self, other):
    batch = _broadcast(self.shape[:-2], other.shape[:-2])
    if self.ndim == other.ndim == 3 and [*self.shape[:1]] == [*other.shape[:1]]:
        return aten.bmm.default(self, other)
    factors = []
    for factor in (self, other):
        shape = [*batch, *factor.shape[-2:]]
        expanded = aten.expand.default(factor, shape)
        factors.append(viewed(expanded, [math.prod(batch), *factor.shape[-2:]]))
    return viewed(aten.bmm.default(*factors), [*batch, self.shape[-2], other.shape[-1]])


def _broadcast(first, second) -> list:
    """The shape of two that are broadcast."""
    count = max(len(first), len(second))
    pairs = zip(
        [*[1] * (count - len(first)), *first], [*[1] * (count - len(second)), *second], strict=True
    )
    return [b if not is_symbolic(a) and a == 1 else a for a, b in pairs]


def outer(self, vec2):
    return aten.mul.Tensor(aten.unsqueeze.default(self, 1), vec2)


def baddbmm(self, batch1, batch2, beta=1, alpha=1):
    product = aten.bmm.default(batch1, batch2)
    return aten.add.Tensor(_times(self, beta), _times(product, alpha))


def _times(input, factor):
    return input if factor == 1 else aten.mul.Tensor(input, factor)


# ---- convolutions and pooling


def _convolution(count: int):
    def convolution(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        stride, padding, dilation = (_all(count, v) for v in (stride, padding, dilation))
        return _convolved(count, input, weight, bias, stride, padding, dilation, groups=groups)

    return convolution


def _padded_convolution(count: int):
    def convolution(input, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
        stride, dilation = _all(count, stride), _all(count, dilation)
        extents = zip(dilation, weight.shape[2:], strict=True)
        totals = [step * (extent - 1) for step, extent in extents]
        totals = [0] * count if padding == "valid" else totals
        if any(total % 2 for total in totals):
            return NotImplemented
        padding = [total // 2 for total in totals]
        return _convolved(count, input, weight, bias, stride, padding, dilation, groups=groups)

    return convolution


def _transposed_convolution(count: int):
    def convolution(
        input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
    ):
        values = [_all(count, v) for v in (stride, padding, dilation, output_padding)]
        return _convolved(count, input, weight, bias, *values, transposed=True, groups=groups)

    return convolution


def _convolved(
    count, input, weight, bias, stride, padding, dilation, more=None, *, transposed=False, groups=1
):
    is_batch = input.ndim == count + 2
    batch = input if is_batch else aten.unsqueeze.default(input, 0)
    more = more or [0] * count
    options = stride, padding, dilation, transposed, more, groups
    result = aten.convolution.default(batch, weight, bias, *options)
    return result if is_batch else aten.squeeze.dims(result, [0])


def _all(count: int, value) -> list:
    """A value for each dimension."""
    values = [*value] if isinstance(value, list | tuple) else [value]
    return values * count if len(values) == 1 else values


def _max_pool(name: str):
    def max_pool(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        operator = getattr(aten, name).default
        return operator(self, kernel_size, stride, padding, dilation, ceil_mode)[0]

    return max_pool


def max_pool1d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    stride = stride or kernel_size
    sizes = [
        [first, *_all(1, value)]
        for first, value in ((1, kernel_size), (1, stride), (0, padding), (1, dilation))
    ]
    rows = aten.unsqueeze.default(self, -2)
    result = aten.max_pool2d_with_indices.default(rows, *sizes, ceil_mode)[0]
    return aten.squeeze.dims(result, [-2])


def avg_pool1d(self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True):
    sizes = [
        [first, *_all(1, value)]
        for first, value in ((1, kernel_size), (1, stride or kernel_size), (0, padding))
    ]
    rows = aten.unsqueeze.default(self, -2)
    result = aten.avg_pool2d.default(rows, *sizes, ceil_mode, count_include_pad)
    return aten.squeeze.dims(result, [-2])


def adaptive_avg_pool2d(self, output_size):
    if _all(2, output_size) == [1, 1]:
        return aten.mean.dim(self, [-1, -2], True)
    return aten._adaptive_avg_pool2d.default(self, output_size)


def adaptive_avg_pool1d(self, output_size):
    if _all(1, output_size) == [1]:
        return aten.mean.dim(self, [-1], True)
    rows = aten.unsqueeze.default(self, -2)
    result = aten._adaptive_avg_pool2d.default(rows, [1, *_all(1, output_size)])
    return aten.squeeze.dims(result, [-2])


# ---- normalization


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return aten.native_layer_norm.default(input, normalized_shape, weight, bias, eps)[0]


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    rows, channels, *extents = input.shape
    sizes = rows, channels, math.prod(extents)
    return aten.native_group_norm.default(input, weight, bias, *sizes, num_groups, eps)[0]


def batch_norm(
    input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled
):
    if training:
        if running_mean is not None:
            return NotImplemented  # it writes to them
        legit = aten._native_batch_norm_legit.no_stats
        return legit(input, weight, bias, True, momentum, eps)[0]
    if running_mean is None:
        return NotImplemented
    legit = aten._native_batch_norm_legit_no_training.default
    return legit(input, weight, bias, running_mean, running_var, momentum, eps)[0]


def instance_norm(
    input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled
):
    if running_mean is not None or not use_input_stats:
        return NotImplemented
    rows, channels, *extents = input.shape
    weight, bias = [t if t is None else aten.repeat.default(t, [rows]) for t in (weight, bias)]
    joined = viewed(input, [1, rows * channels, *extents])
    legit = aten._native_batch_norm_legit.no_stats
    return viewed(legit(joined, weight, bias, True, momentum, eps)[0], input.shape)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    if input.dtype.itemsize < 4:
        return NotImplemented
    eps = dtypes.finfo(input.dtype).eps if eps is None else eps
    dims = [*range(-len(normalized_shape), 0)]
    mean = aten.mean.dim(square(input), dims, True)
    result = aten.mul.Tensor(input, aten.rsqrt.default(aten.add.Tensor(mean, eps)))
    return result if weight is None else aten.mul.Tensor(result, weight)


def softmax(self, dim, dtype=None):
    return aten._softmax.default(_as(dtype, self), dim, False)


def log_softmax(self, dim, dtype=None):
    return aten._log_softmax.default(_as(dtype, self), dim, False)


def _safe_softmax(self, dim, dtype=None):
    result = aten._softmax.default(_as(dtype, self), dim, False)
    is_outside = aten.logical_not.default(aten.eq.Scalar(self, -math.inf))
    is_empty = aten.logical_not.default(aten.any.dim(is_outside, dim, True))
    return aten.where.self(is_empty, aten.full_like.default(result, 0.0), result)


def dropout(input, p, train):
    if not train or p == 0:
        return aten.clone.default(input)
    return aten.native_dropout.default(input, p, True)[0]


def scaled_dot_product_attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    *,
    scale=None,
    enable_gqa=False,
):
    if dropout_p:
        return NotImplemented
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = (repeat_interleave(t, groups, t.ndim - 3) for t in (key, value))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    root = math.sqrt(scale) if scale >= 0 else None
    if root is None:
        return NotImplemented
    query = aten.mul.Scalar(query, root)
    if is_causal:
        sizes = [query.shape[-2], key.shape[-2]]
        attn_mask = _triangle("le")(aten.full.default(sizes, True, device=query.device))
    if attn_mask is not None and not attn_mask.is_floating_point():
        numbers = (aten.scalar_tensor.default(n, dtype=query.dtype) for n in (0.0, -math.inf))
        attn_mask = aten.where.self(attn_mask, *numbers)
    scores = matmul(query, aten.mul.Scalar(_swapped(key, -2, -1), root))
    scores = scores if attn_mask is None else aten.add.Tensor(scores, attn_mask)
    result = matmul(_safe_softmax(scores, scores.ndim - 1), value)
    if result.ndim != 4:
        return result
    rows_first = aten.clone.default(_permuted(result, 2, 0, 1, 3), memory_format=contiguous_format)
    return _permuted(rows_first, 1, 2, 0, 3)


def grid_sampler(input, grid, *options):
    sampler = aten.grid_sampler_2d if input.ndim == 4 else aten.grid_sampler_3d
    return sampler.default(input, grid, *options)


# ---- shapes


def reshape(self, shape):
    return viewed(self, _sizes(self, shape))


def _sizes(input, shape) -> list:
    """A shape with a size in the place of -1."""
    shape = [*shape]
    places = [i for i, size in enumerate(shape) if not is_symbolic(size) and size == -1]
    if places:
        rest = [size for i, size in enumerate(shape) if i != places[0]]
        if _is_zero(math.prod(rest)):
            return shape
        shape[places[0]] = math.prod(input.shape) // math.prod(rest)
    return shape


def _is_zero(extent) -> bool:
    return not is_symbolic(extent) and extent == 0


def flatten(self, start_dim=0, end_dim=-1):
    if self.ndim == 0:
        return aten.view.default(self, [1])
    start, end = start_dim % self.ndim, end_dim % self.ndim
    shape = self.shape
    return viewed(self, [*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]])


def unflatten(self, dim, sizes):
    dim = dim % self.ndim
    places = [i for i, size in enumerate(sizes) if not is_symbolic(size) and size == -1]
    sizes = [*sizes]
    if places:
        rest = math.prod([size for i, size in enumerate(sizes) if i != places[0]])
        sizes[places[0]] = self.shape[dim] // rest
    return viewed(self, [*self.shape[:dim], *sizes, *self.shape[dim + 1 :]])


def transposed(self):
    return self if self.ndim < 2 else _permuted(self, 1, 0)


def movedim(self, source, destination):
    source, destination = _all(1, source), _all(1, destination)
    places = {d % self.ndim: s % self.ndim for s, d in zip(source, destination, strict=True)}
    rest = iter([dim for dim in range(self.ndim) if dim not in places.values()])
    return aten.permute.default(
        self, [places[dim] if dim in places else next(rest) for dim in range(self.ndim)]
    )


def split(self, split_size, dim=0):
    extent = self.shape[dim]
    if is_symbolic(extent) or is_symbolic(split_size) or not split_size:
        return NotImplemented
    sizes = [min(split_size, extent - start) for start in range(0, extent, split_size)]
    return aten.split_with_sizes.default(self, sizes or [0], dim)


def chunk(self, chunks, dim=0):
    extent = self.shape[dim]
    if is_symbolic(extent):
        return NotImplemented
    return split(self, -(-extent // chunks), dim) if extent else NotImplemented


def unbind(self, dim=0):
    extent = self.shape[dim]
    if is_symbolic(extent):
        return NotImplemented
    parts = [aten.slice.Tensor(self, dim, place, place + 1) for place in range(extent)]
    return [aten.squeeze.dims(part, [dim]) for part in parts]


def stack(tensors, dim=0):
    (first, *_), count = tensors, len(tensors)
    dim = dim % (first.ndim + 1)
    shape = [*first.shape[:dim], count, *first.shape[dim:]]
    if dim == first.ndim:  # elements of the last dimension lie side by side
        return aten.cat.default([aten.unsqueeze.default(tensor, dim) for tensor in tensors], dim)
    return aten.view.default(aten.cat.default([*tensors], dim), shape)


def _counted(extent, beside):
    return aten.arange.start_step(0, extent, 1, device=beside.device)


def roll(self, shifts, dims=()):
    shifts, dims = _all(1, shifts), _all(1, dims) if dims != () else []
    if not dims:
        flat = viewed(self, [math.prod(self.shape)])
        return viewed(roll(flat, shifts, [0]), self.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        extent = self.shape[dim]
        if is_symbolic(extent) or not extent:
            return NotImplemented
        places = _counted(extent, self)
        places = aten.add.Tensor(places, -shift % extent)
        self = aten.index_select.default(self, dim, aten.fmod.Scalar(places, extent))
    return self


def _triangle(compare: str):
    """The part of matrices where the number of the column minus that of the row compares so."""

    def triangle(self, diagonal=0):
        rows, columns = self.shape[-2:]
        across = aten.unsqueeze.default(_counted(columns, self), -2)
        down = aten.unsqueeze.default(_counted(rows, self), -1)
        kept = getattr(aten, compare).Scalar(aten.sub.Tensor(across, down), diagonal)
        if self.dtype.itemsize == 1 and not self.dtype.is_signed:
            return aten.logical_and.default(kept, self)
        return aten.where.self(kept, self, aten.scalar_tensor.default(0, dtype=self.dtype))

    return triangle


def narrow(self, dim, start, length):
    if is_symbolic(start) or start < 0:
        return NotImplemented
    return aten.slice.Tensor(self, dim, start, start + length)


def repeat_interleave(self, repeats, dim=None, *, output_size=None):
    if dim is None:
        return NotImplemented
    dim, shape = dim % self.ndim, self.shape
    copies = aten.unsqueeze.default(self, dim + 1)
    copies = aten.expand.default(copies, [*shape[: dim + 1], repeats, *shape[dim + 1 :]])
    return viewed(copies, [*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]])


def squeeze_dim(self, dim):
    return aten.squeeze.dims(self, [dim])


def squeeze(self):
    if any(map(is_symbolic, self.shape)):
        return NotImplemented
    return aten.squeeze.dims(self, [dim for dim, extent in enumerate(self.shape) if extent == 1])


def contiguous(self, memory_format=None):
    if self.is_contiguous():
        return self
    return aten.clone.default(self, memory_format=contiguous_format)


def pad(self, pad, mode="constant", value=None):
    if mode != "constant":
        return NotImplemented
    return aten.constant_pad_nd.default(self, pad, 0.0 if value is None else value)


def pixel_shuffle(self, upscale_factor):
    *batch, channels, rows, columns = self.shape
    factor, count = upscale_factor, len(batch)
    parts = viewed(self, [*batch, channels // factor**2, factor, factor, rows, columns])
    order = [*range(count), *[count + place for place in (0, 3, 1, 4, 2)]]
    parts = aten.permute.default(parts, order)
    return viewed(parts, [*batch, channels // factor**2, rows * factor, columns * factor])


# ---- elementwise functions


def silu(self):
    return aten.mul.Tensor(self, aten.sigmoid.default(self))


def hardsigmoid(self):
    return aten.div.Tensor(aten.clamp.default(aten.add.Tensor(self, 3), 0, 6), 6)


def hardswish(self):
    clamped = aten.clamp.default(aten.clamp.default(aten.add.Tensor(self, 3), 0), None, 6)
    return aten.div.Tensor(aten.mul.Tensor(self, clamped), 6)


def relu6(self):
    return aten.hardtanh.default(self, 0.0, 6.0)


def mish(self):
    curve = aten.log1p.default(aten.exp.default(self))
    curve = aten.where.self(aten.gt.Scalar(self, 20), self, curve)
    return aten.mul.Tensor(self, aten.tanh.default(curve))


def selu(self):
    return aten.elu.default(self, 1.6732632423543772, 1.0507009873554805)


def celu(self, alpha=1.0):
    return aten.elu.default(self, alpha, 1, 1 / alpha)


def softplus(self, beta=None, threshold=20):
    # as in PyTorch, a factor of 1 is written too where the call has it
    scaled = self if beta is None else aten.mul.Tensor(self, beta)
    curve = aten.log1p.default(aten.exp.default(scaled))
    curve = curve if beta is None else aten.div.Tensor(curve, beta)
    return aten.where.self(aten.gt.Scalar(scaled, threshold), self, curve)


def log_sigmoid(self):
    zero = aten.full.default([], 0, dtype=self.dtype, device=self.device)
    least = aten.minimum.default(zero, self)
    shrinking = aten.exp.default(aten.neg.default(aten.abs.default(self)))
    return aten.sub.Tensor(least, aten.log1p.default(shrinking))


def glu(self, dim=-1):
    extent = self.shape[dim]
    if is_symbolic(extent):
        return NotImplemented
    first = aten.slice.Tensor(self, dim, 0, extent // 2)
    second = aten.slice.Tensor(self, dim, extent // 2, extent)
    return aten.mul.Tensor(first, aten.sigmoid.default(second))


def softshrink(self, lambd=0.5):
    inside = aten.le.Scalar(aten.abs.default(self), lambd)
    sign = aten.mul.Tensor(aten.sign.default(self), lambd)
    return aten.where.self(inside, aten.mul.Tensor(self, 0), aten.sub.Tensor(self, sign))


def hardshrink(self, lambd=0.5):
    inside = aten.le.Scalar(aten.abs.default(self), lambd)
    return aten.where.self(inside, aten.full_like.default(self, 0), self)


def threshold(self, threshold, value):
    below = aten.le.Scalar(self, threshold)
    return aten.where.self(below, aten.full_like.default(self, value), self)


def prelu(self, weight):
    if weight.ndim == 1 and weight.shape[0] != 1 and self.ndim > 1:
        weight = aten.view.default(weight, [weight.shape[0], *[1] * (self.ndim - 2)])
    return aten.where.self(aten.gt.Scalar(self, 0), self, aten.mul.Tensor(weight, self))


def square(self):
    return aten.pow.Tensor_Scalar(self, 2)


def rsub(self, other, alpha=1):
    return aten.add.Tensor(aten.neg.default(_times(self, alpha)), other)


def addcmul(self, tensor1, tensor2, *, value=1):
    return aten.add.Tensor(self, _times(aten.mul.Tensor(tensor1, tensor2), value))


def addcdiv(self, tensor1, tensor2, *, value=1):
    return aten.add.Tensor(self, _times(aten.div.Tensor(tensor1, tensor2), value))


def lerp(self, end, weight):
    difference = aten.sub.Tensor(end, self)
    if hasattr(weight, "ndim"):
        return NotImplemented
    if weight < 0.5:
        return aten.add.Tensor(self, aten.mul.Tensor(difference, weight))
    return aten.sub.Tensor(end, aten.mul.Tensor(difference, 1 - weight))


def clamp_min(self, min):
    return aten.clamp.default(self, min)


def clamp_max(self, max):
    return aten.clamp.default(self, None, max)


def masked_fill(self, mask, value):
    if not hasattr(value, "ndim"):
        value = aten.scalar_tensor.default(value, dtype=self.dtype)
    return aten.where.self(mask, value, self)


def where(condition, self, other):
    dtype = (self if hasattr(self, "ndim") else other).dtype
    first, second = (
        value if hasattr(value, "ndim") else aten.scalar_tensor.default(value, dtype=dtype)
        for value in (self, other)
    )
    is_kept = dtype.is_floating_point and not any(isinstance(v, complex) for v in (self, other))
    return aten.where.self(condition, first, second) if is_kept else NotImplemented


def type_as(self, other):
    return _as(other.dtype, self)


def to(self, dtype=None, non_blocking=False, copy=False, memory_format=None, **options):
    if memory_format is not None:
        return NotImplemented
    if copy and (dtype is None or dtype == self.dtype):
        return aten.clone.default(self)
    return _as(dtype, self)


def new_filled(value):
    def new(self, size, dtype=None, layout=None, device=None, pin_memory=None):
        dtype, device = dtype or self.dtype, device or self.device
        return aten.full.default(size, value, dtype=dtype, device=device)

    return new


def new_full(self, size, fill_value, dtype=None, layout=None, device=None, pin_memory=None):
    return new_filled(fill_value)(self, size, dtype, device=device)


def filled(value):
    def new(size, dtype=None, layout=None, device=None, pin_memory=None):
        options = {"dtype": dtype, "device": device}
        return aten.full.default(size, float(value) if dtype is None else value, **options)

    return new


def like(value):
    def new(self, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        options = {} if dtype is None else {"dtype": dtype}
        return aten.full_like.default(self, value, **options)

    return new


# ---- reductions


def total(self, dtype=None):
    return aten.sum.dim_IntList(self, [], dtype=dtype)


def _variance(self, dim, correction, keepdim):
    return aten.var.correction(self, dim, correction=correction, keepdim=keepdim)


def var_dim(self, dim, unbiased=True, keepdim=False):
    return _variance(self, dim, int(unbiased), keepdim)


def var_all(self, unbiased=True):
    return _variance(self, None, int(unbiased), False)


def std(self, dim=None, *, correction=None, keepdim=False):
    return aten.sqrt.default(_variance(self, dim, 1 if correction is None else correction, keepdim))


def std_dim(self, dim, unbiased=True, keepdim=False):
    return aten.sqrt.default(_variance(self, dim, int(unbiased), keepdim))


def std_mean(self, dim=None, *, correction=None, keepdim=False):
    variance, mean = aten.var_mean.correction(self, dim, correction=correction, keepdim=keepdim)
    return aten.sqrt.default(variance), mean


def std_mean_dim(self, dim, unbiased=True, keepdim=False):
    return std_mean(self, dim, correction=int(unbiased), keepdim=keepdim)


def logsumexp(self, dim, keepdim=False):
    if not self.is_floating_point() or self.ndim == 0:
        return NotImplemented
    dims = [dim] if isinstance(dim, int) else [*dim]
    greatest = aten.amax.default(self, dims, True)
    is_infinite = aten.eq.Scalar(aten.abs.default(greatest), math.inf)
    zero = aten.scalar_tensor.default(0.0, dtype=self.dtype)
    greatest = aten.where.self(is_infinite, zero, greatest)
    kept = greatest if keepdim else aten.squeeze.dims(greatest, dims)
    terms = aten.exp.default(aten.sub.Tensor(self, greatest))
    return aten.add.Tensor(aten.log.default(aten.sum.dim_IntList(terms, dims, keepdim)), kept)


def std_all(self, unbiased=True):
    return aten.sqrt.default(_variance(self, None, int(unbiased), False))


COUNTS = (1, 2, 3)

# by the overload: those of an operator with one function stand together
FUNCTIONS = {
    "linear.default": linear,
    "matmul.default": matmul,
    "dot.default": dot,
    "mv.default": mv,
    "outer.default": outer,
    "ger.default": outer,
    "baddbmm.default": baddbmm,
    **{f"conv{count}d.default": _convolution(count) for count in COUNTS},
    **{f"conv{count}d.padding": _padded_convolution(count) for count in COUNTS},
    "conv_transpose1d.default": _transposed_convolution(1),
    **{f"conv_transpose{count}d.input": _transposed_convolution(count) for count in (2, 3)},
    "max_pool1d.default": max_pool1d,
    **{f"max_pool{n}d.default": _max_pool(f"max_pool{n}d_with_indices") for n in (2, 3)},
    "avg_pool1d.default": avg_pool1d,
    "adaptive_avg_pool1d.default": adaptive_avg_pool1d,
    "adaptive_avg_pool2d.default": adaptive_avg_pool2d,
    "layer_norm.default": layer_norm,
    "group_norm.default": group_norm,
    "batch_norm.default": batch_norm,
    "instance_norm.default": instance_norm,
    "rms_norm.default": rms_norm,
    "softmax.int": softmax,
    "log_softmax.int": log_softmax,
    "_safe_softmax.default": _safe_softmax,
    "dropout.default": dropout,
    "scaled_dot_product_attention.default": scaled_dot_product_attention,
    "reshape.default": reshape,
    "view_as.default": lambda self, other: viewed(self, other.shape),
    "expand_as.default": lambda self, other: aten.expand.default(self, [*other.shape]),
    "flatten.using_ints": flatten,
    "unflatten.int": unflatten,
    "transpose.int": _swapped,
    "swapaxes.default": _swapped,
    "swapdims.default": _swapped,
    "t.default": transposed,
    "movedim.int": movedim,
    "movedim.intlist": movedim,
    "split.Tensor": split,
    "chunk.default": chunk,
    "unbind.int": unbind,
    "stack.default": stack,
    "narrow.default": narrow,
    "repeat_interleave.self_int": repeat_interleave,
    "squeeze.dim": squeeze_dim,
    "squeeze.default": squeeze,
    "contiguous.default": contiguous,
    "pad.default": pad,
    "pixel_shuffle.default": pixel_shuffle,
    "silu.default": silu,
    "hardsigmoid.default": hardsigmoid,
    "hardswish.default": hardswish,
    "relu6.default": relu6,
    "mish.default": mish,
    "selu.default": selu,
    "celu.default": celu,
    "softplus.default": softplus,
    "log_sigmoid.default": log_sigmoid,
    "glu.default": glu,
    "softshrink.default": softshrink,
    "hardshrink.default": hardshrink,
    "threshold.default": threshold,
    "prelu.default": prelu,
    "square.default": square,
    "rsub.Scalar": rsub,
    "rsub.Tensor": rsub,
    "addcmul.default": addcmul,
    "addcdiv.default": addcdiv,
    "lerp.Scalar": lerp,
    "clamp_min.default": clamp_min,
    "clamp_max.default": clamp_max,
    "max.other": lambda self, other: aten.maximum.default(self, other),
    "min.other": lambda self, other: aten.minimum.default(self, other),
    "masked_fill.Scalar": masked_fill,
    "masked_fill.Tensor": masked_fill,
    "where.ScalarOther": where,
    "where.ScalarSelf": where,
    "type_as.default": type_as,
    "to.dtype": to,
    "to.dtype_layout": to,
    "detach.default": lambda self: aten.alias.default(self),
    "lift_fresh_copy.default": lambda self: aten.clone.default(self),
    "new_zeros.default": new_filled(0),
    "new_ones.default": new_filled(1),
    "new_full.default": new_full,
    "zeros.default": filled(0),
    "ones.default": filled(1),
    "zeros_like.default": like(0),
    "ones_like.default": like(1),
    "sum.default": total,
    "var.default": var_all,
    "var.dim": var_dim,
    "std.default": std_all,
    "std.dim": std_dim,
    "std.correction": std,
    "std_mean.dim": std_mean_dim,
    "std_mean.correction": std_mean,
    "logsumexp.default": logsumexp,
    "arange.default": lambda end, **options: aten.arange.start_step(0, end, 1, **options),
    "arange.start": lambda start, end, **options: aten.arange.start_step(start, end, 1, **options),
    "roll.default": roll,
    "tril.default": _triangle("le"),
    "triu.default": _triangle("ge"),
    "frac.default": lambda self: aten.sub.Tensor(self, aten.trunc.default(self)),
    "floor_divide.default": lambda self, other: aten.div.Tensor_mode(
        self, other, rounding_mode="floor"
    ),
    "einsum.default": einsum,
    "grid_sampler.default": grid_sampler,
    **_loss_decompositions.FUNCTIONS,
    **_recurrent_decompositions.FUNCTIONS,
    **_resampling_decompositions.FUNCTIONS,
}
