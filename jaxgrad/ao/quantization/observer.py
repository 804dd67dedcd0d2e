"""Observers: modules that return their input, and record the range of its elements."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict

from ... import ops
from ...core import dtypes, named_dtypes
from ...core.tracebacks import users_stacklevel
from ...frontend.factories import full, linspace, zeros
from ...frontend.tensor_data import tensor as new_tensor
from ...functions.quantization import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from ...names.not_provided import names_of
from ...nn.module import Module
from ...tape.tensor import current, is_concrete
from . import histogram_search

_EPS = 2.0**-23  # the distance of 1 from the next float32

# the smallest and largest integer of a dtype, and those that fit with one bit less
RANGES = {
    dtypes.uint8: ((0, 255), (0, 127)),
    dtypes.int8: ((-128, 127), (-64, 63)),
    dtypes.int16: ((-(2**15), 2**15 - 1), (-(2**15), 2**15 - 1)),
    dtypes.int32: ((-(2**31), 2**31 - 1), (-(2**31), 2**31 - 1)),
    dtypes.uint16: ((0, 2**16 - 1), (0, 2**16 - 1)),
}
RANGES |= {
    named_dtypes.quint8: RANGES[dtypes.uint8],
    named_dtypes.qint8: RANGES[dtypes.int8],
    named_dtypes.qint32: RANGES[dtypes.int32],
    named_dtypes.quint4x2: ((0, 15), (0, 15)),
}
_UNSIGNED = (dtypes.uint8, named_dtypes.quint8)
_SYMMETRIC = (per_tensor_symmetric, per_channel_symmetric)
OF_TENSORS = (per_tensor_affine, per_tensor_symmetric)
OF_CHANNELS = (per_channel_affine, per_channel_symmetric, per_channel_affine_float_qparams)


class PartialClass:
    """A class with some of the arguments of its constructor, which `with_args` makes."""

    def __init__(self, make: functools.partial):
        self.p = make

    def __call__(self, *args, **options):
        return self.p(*args, **options)

    def __repr__(self):
        return f"{self.p!r}{{}}"  # as PyTorch's, with the arguments that are made at the call

    def with_args(self, **options) -> PartialClass:
        return PartialClass(functools.partial(self.p, **options))


class ObserverBase(Module):
    """The base of observers: `forward` records, `calculate_qparams` returns scale and zero point.

    dtype: that of the integers. is_dynamic: whether ranges are those of a call alone.
    """

    def __init__(self, dtype, is_dynamic: bool = False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    def calculate_qparams(self, **options):
        raise NotImplementedError(f"{type(self).__name__} has no calculate_qparams")

    @classmethod
    def with_args(cls, **options) -> PartialClass:
        """The class with these arguments of its constructor: call it to make an observer.

        >>> jaxgrad.ao.quantization.MinMaxObserver.with_args(dtype=jaxgrad.qint8)().dtype
        torch.qint8
        """
        return PartialClass(functools.partial(cls, **options))


class UniformQuantizationObserverBase(ObserverBase):
    """An observer for integers at equal distances.

    qscheme: how they stand for numbers. reduce_range: one bit less. quant_min, quant_max: the
    integers in place of those of the dtype. eps: the smallest scale. Raises NotImplementedError for
    another qscheme, AssertionError for a range that does not fit the dtype.
    """

    _schemes = OF_TENSORS + OF_CHANNELS

    def __init__(
        self,
        dtype=named_dtypes.quint8,
        qscheme=per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **options,
    ):
        super().__init__(dtype, is_dynamic, **options)
        if qscheme not in self._schemes:
            raise NotImplementedError(
                f"{type(self).__name__}'s qscheme only support {self._schemes}, not {qscheme}"
            )
        if dtype not in RANGES:
            raise AssertionError(
                f"Default Observer only works for qint8, quint8 and quint4x2 data type, not {dtype}"
            )
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.factory_kwargs = factory_kwargs or {}
        self.register_buffer("eps", new_tensor([eps], **self.factory_kwargs))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            self._check_range(quant_min, quant_max)
        if reduce_range and qscheme in _SYMMETRIC and dtype is named_dtypes.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")
        self.quant_min, self.quant_max = self._range(quant_min, quant_max)

    def _check_range(self, quant_min, quant_max):
        if not quant_min <= 0 <= quant_max:
            raise AssertionError("Used-specified quantization range must include 0.")
        if quant_min >= quant_max:
            raise AssertionError("qmin must be strictly less than qmax for user-specified range.")
        length, (low, high) = quant_max - quant_min + 1, RANGES[self.dtype][0]
        if self.dtype not in _UNSIGNED and length > high - low + 1:
            raise AssertionError(
                f"quantization range [{quant_min}, {quant_max}] has more numbers than {self.dtype}"
            )

    def _range(self, quant_min, quant_max):
        if not self.has_customized_qrange:
            return RANGES[self.dtype][bool(self.reduce_range)]
        divisor = 2 if self.reduce_range else 1
        return quant_min // divisor, quant_max // divisor

    def _parameters_of(self, min_val, max_val):
        """Scale and zero point for a range, or for the range of each channel."""
        # in a program that is exported the numbers are not known
        is_known = is_concrete(current(min_val))
        if not min_val.numel() or (is_known and not (min_val <= max_val).all()):
            if min_val.numel() and not (min_val.isinf() & max_val.isinf()).all():
                raise AssertionError(f"min {min_val} should be less than max {max_val}")
            warnings.warn(
                "must run observer before calling calculate_qparams. Returning default values.",
                stacklevel=users_stacklevel(),
            )
            return full((1,), 1.0), zeros(1, dtype=dtypes.int64)
        low, high = min_val.clamp(max=0.0), max_val.clamp(min=0.0)
        steps, eps = float(self.quant_max - self.quant_min), self.eps.to(low.device)
        if self.qscheme in _SYMMETRIC:
            scale = ops.maximum(ops.maximum(-low, high) / (steps / 2), eps)
            zero_point = self._middle() * scale.new_ones(scale.shape, dtype=dtypes.int64)
        elif self.qscheme is per_channel_affine_float_qparams:
            scale = (max_val - min_val) / steps
            scale = ops.where(scale > eps, scale, scale.new_ones(scale.shape))
            zero_point = -min_val / scale
        else:
            scale = ops.maximum((high - low) / steps, eps)
            zero_point = self.quant_min - ops.round(low / scale).to(dtypes.int32)
            zero_point = zero_point.clamp(self.quant_min, self.quant_max)
        return scale.reshape(-1), zero_point.reshape(-1)

    def _middle(self):
        """The integer that stands for 0 in a symmetric scheme."""
        if self.dtype in _UNSIGNED:
            return (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
        return 2**15 if self.dtype is dtypes.uint16 else 0

    def reset_min_max_vals(self):
        """Forget what was recorded."""
        raise NotImplementedError(f"{type(self).__name__} records no range")


def _smaller(before, value):
    return ops.minimum(before, value)


def _larger(before, value):
    return ops.maximum(before, value)


class MinMaxObserver(UniformQuantizationObserverBase):
    """Records the least and the greatest element of all inputs.

    Arguments and errors: those of `UniformQuantizationObserverBase`.

    >>> observer = jaxgrad.ao.quantization.MinMaxObserver()
    >>> observer(jaxgrad.tensor([-1.0, 4.1])).shape
    torch.Size([2])
    >>> observer.calculate_qparams()
    (tensor([0.0200]), tensor([50], dtype=torch.int32))
    """

    _schemes = OF_TENSORS

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.register_buffer("min_val", new_tensor(float("inf"), **self.factory_kwargs))
        self.register_buffer("max_val", new_tensor(float("-inf"), **self.factory_kwargs))

    def forward(self, x_orig):
        if x_orig.numel():
            self._record(*ops.aminmax(x_orig.detach().to(self.min_val.dtype)))
        return x_orig

    def _record(self, low, high):
        self.min_val.copy_(_smaller(self.min_val, low))
        self.max_val.copy_(_larger(self.max_val, high))

    def calculate_qparams(self):
        return self._parameters_of(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self):
        self.min_val.copy_(new_tensor(float("inf")))
        self.max_val.copy_(new_tensor(float("-inf")))


def _averaged(before, value, weight):
    """A moving average, which begins with the first value."""
    return ops.where(before.isinf(), value, before + weight * (value - before))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Records moving averages of the least and the greatest element of the inputs.

    averaging_constant: the weight of a new input. Other arguments and errors: those of
    `UniformQuantizationObserverBase`.

    >>> observer = jaxgrad.ao.quantization.MovingAverageMinMaxObserver(averaging_constant=0.5)
    >>> for x in ([0.0, 1.0], [0.0, 2.0]):
    ...     _ = observer(jaxgrad.tensor(x))
    >>> observer.max_val
    tensor(1.5000)
    """

    def __init__(
        self,
        averaging_constant=0.01,
        dtype=named_dtypes.quint8,
        qscheme=per_tensor_affine,
        **options,
    ):
        self.averaging_constant = averaging_constant
        super().__init__(dtype, qscheme, **options)
        self.averaging_constant = averaging_constant

    def _record(self, low, high):
        self.min_val.copy_(_averaged(self.min_val, low, self.averaging_constant))
        self.max_val.copy_(_averaged(self.max_val, high, self.averaging_constant))


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Records the least and the greatest element of every channel of all inputs.

    ch_axis: the dimension of the channels. Other arguments and errors: those of
    `UniformQuantizationObserverBase`.

    >>> observer = jaxgrad.ao.quantization.PerChannelMinMaxObserver()
    >>> _ = observer(jaxgrad.tensor([[1.0, 2.0], [3.0, -4.0]]))
    >>> observer.min_val, observer.max_val
    (tensor([ 1., -4.]), tensor([2., 3.]))
    """

    _schemes = OF_CHANNELS

    def __init__(self, ch_axis=0, dtype=named_dtypes.quint8, qscheme=per_channel_affine, **options):
        super().__init__(dtype, qscheme, **options)
        self.ch_axis = ch_axis
        self.register_buffer("min_val", new_tensor([]))
        self.register_buffer("max_val", new_tensor([]))

    def forward(self, x_orig):
        if not x_orig.numel():
            return x_orig
        rows = x_orig.detach().to(self.min_val.dtype).transpose(0, self.ch_axis).flatten(1)
        low, high = ops.aminmax(rows, dim=1)
        if not self.min_val.numel():
            self.min_val.resize_(low.shape).copy_(low)
            self.max_val.resize_(high.shape).copy_(high)
        else:
            self._record(low, high)
        return x_orig

    _record = MinMaxObserver._record

    def calculate_qparams(self):
        return self._parameters_of(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict, prefix, *args):
        for name in ("min_val", "max_val"):
            value = state_dict.get(prefix + name)
            if value is not None:
                getattr(self, name).resize_(value.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def reset_min_max_vals(self):
        self.min_val, self.max_val = new_tensor([]), new_tensor([])


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Records moving averages of the least and the greatest element of every channel.

    averaging_constant: the weight of a new input. Other arguments: those of
    `PerChannelMinMaxObserver`.

    >>> observer = jaxgrad.ao.quantization.MovingAveragePerChannelMinMaxObserver(0.5)
    >>> for x in ([[1.0], [2.0]], [[3.0], [4.0]]):
    ...     _ = observer(jaxgrad.tensor(x))
    >>> observer.max_val
    tensor([2., 3.])
    """

    def __init__(
        self,
        averaging_constant=0.01,
        ch_axis=0,
        dtype=named_dtypes.quint8,
        qscheme=per_channel_affine,
        **options,
    ):
        super().__init__(ch_axis, dtype, qscheme, **options)
        self.averaging_constant = averaging_constant

    _record = MovingAverageMinMaxObserver._record


class HistogramObserver(UniformQuantizationObserverBase):
    """Records a histogram of the elements of all inputs; its scale is the one of least error.

    bins: their number. Other arguments and errors: those of `UniformQuantizationObserverBase`.

    >>> observer = jaxgrad.ao.quantization.HistogramObserver(bins=4)
    >>> _ = observer(jaxgrad.tensor([0.0, 1.0, 2.0, 2.0]))
    >>> observer.histogram
    tensor([1., 0., 1., 2.])
    """

    _schemes = OF_TENSORS
    _upsampling = 16  # parts of a bin that are moved to the bins of a wider range

    def __init__(self, bins=2048, *args, is_dynamic=False, **options):
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(*args, **options)
        self.bins = bins
        self.register_buffer("histogram", zeros(bins, **self.factory_kwargs))
        self.register_buffer("min_val", new_tensor(float("inf"), **self.factory_kwargs))
        self.register_buffer("max_val", new_tensor(float("-inf"), **self.factory_kwargs))
        low, high = RANGES[self.dtype][0]
        self.dst_nbins = high - low + 1

    def forward(self, x_orig):
        x = x_orig.detach()
        if x.numel() and x.isinf().any():
            warnings.warn(
                "torch.inf detected in input tensor, ignoring input", stacklevel=users_stacklevel()
            )
            x = x[~x.isinf()]
        if not x.numel():
            return x_orig
        before = self.min_val.item(), self.max_val.item()
        least, greatest = (bound.item() for bound in ops.aminmax(x))
        least, greatest = min(before[0], least), max(before[1], greatest)
        histogram = ops.histc(x, self.bins, least, greatest).to(self.histogram.dtype)
        if before[0] != float("inf"):
            histogram = histogram + self._moved(*before, least, greatest)
        self.histogram.copy_(histogram)
        self.min_val.fill_(least)
        self.max_val.fill_(greatest)
        return x_orig

    def _moved(self, least, greatest, to_least, to_greatest):
        """The histogram with the bins of a wider range."""
        if (least, greatest) == (to_least, to_greatest):
            return self.histogram
        if least == greatest:
            place = ops.histc(self.min_val.reshape(1), self.bins, to_least, to_greatest)
            return place * self.histogram.sum()
        parts = self.bins * self._upsampling
        middles = linspace(least, greatest, parts + 1)[:-1]
        middles = middles + 0.5 * ((self.max_val - self.min_val) / parts)
        bounds = linspace(to_least, to_greatest, self.bins + 1)
        places = (ops.bucketize(middles, bounds, right=True) - 1).clamp(0, self.bins - 1)
        weights = self.histogram.repeat_interleave(self._upsampling) / self._upsampling
        return places.bincount(weights, self.bins)

    def calculate_qparams(self):
        if self.min_val.item() == float("inf"):
            return self._parameters_of(self.min_val, self.max_val)
        start, end = histogram_search.best_bins(
            self.histogram.numpy(), self.max_val.item() - self.min_val.item(), self.dst_nbins
        )
        width = (self.max_val - self.min_val) / self.bins
        low, high = self.min_val + width * start, self.min_val + width * (end + 1)
        return self._parameters_of(low, high)

    extra_repr = MinMaxObserver.extra_repr


class PlaceholderObserver(ObserverBase):
    """Records nothing; tells the dtype of a quantized model."""

    def __init__(
        self,
        dtype=dtypes.float32,
        custom_op_name="",
        compute_dtype=None,
        quant_min=None,
        quant_max=None,
        qscheme=None,
        eps=None,
        is_dynamic=False,
    ):
        super().__init__(dtype, is_dynamic or bool(compute_dtype))
        self.qscheme, self.eps, self.custom_op = qscheme or per_tensor_affine, eps, custom_op_name
        self.quant_min, self.quant_max = quant_min, quant_max

    def forward(self, x):
        return x

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for PlaceholderObserver")


class NoopObserver(ObserverBase):
    """Records nothing."""

    def __init__(self, dtype=dtypes.float16, custom_op_name=""):
        super().__init__(dtype)
        self.custom_op = custom_op_name

    def forward(self, x):
        return x

    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for NoopObserver")


class RecordingObserver(ObserverBase):
    """Keeps copies of the inputs; `get_tensor_value()` returns them."""

    def __init__(self, dtype=named_dtypes.quint8):
        super().__init__(dtype)
        self.tensor_val = []

    def forward(self, x):
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for RecordingObserver")

    def get_tensor_value(self) -> list:
        return self.tensor_val


class ReuseInputObserver(ObserverBase):
    """Records nothing: the result of a layer has the scale of its input."""

    def __init__(self):
        super().__init__(named_dtypes.quint8, is_dynamic=False)

    def forward(self, x):
        return x

    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for ReuseInputObserver")


class FixedQParamsObserver(ObserverBase):
    """Records nothing; has a scale and a zero point of its constructor.

    >>> jaxgrad.ao.quantization.FixedQParamsObserver(0.5, 3).calculate_qparams()
    (tensor([0.5000]), tensor([3], dtype=torch.int32))
    """

    def __init__(
        self,
        scale,
        zero_point,
        dtype=named_dtypes.quint8,
        qscheme=per_tensor_affine,
        quant_min=0,
        quant_max=255,
        is_dynamic=False,
        **options,
    ):
        super().__init__(dtype, is_dynamic, **options)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", new_tensor([scale], dtype=dtypes.float32))
        self.register_buffer("zero_point", new_tensor([zero_point], dtype=dtypes.int32))

    def forward(self, X):
        return X

    def calculate_qparams(self):
        return self.scale, self.zero_point


def get_observer_state_dict(mod) -> OrderedDict:
    """The entries of `mod.state_dict()` that observers of layers have."""
    state = mod.state_dict()
    known = {name: value for name, value in state.items() if "activation_post_process" in name}
    result = OrderedDict(known)
    result._metadata = state._metadata
    return result


def load_observer_state_dict(mod, obs_dict) -> None:
    """Load what `get_observer_state_dict` gave into the observers of a module. Raises Exception for
    entries that are missing or that no observer has.
    """
    missing, unexpected = [], []
    for name, module in mod.named_modules():
        if isinstance(module, ObserverBase):
            arguments = (f"{name}.", {}, False, missing, unexpected, [])
            module._load_from_state_dict(obs_dict, *arguments)
    for word, names in (("Missing", missing), ("Unexpected", unexpected)):
        if names:
            raise Exception(f"{word} keys for observer {', '.join(names)} in state_dict")


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(
    dtype=named_dtypes.qint8, qscheme=per_tensor_symmetric
)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
_NARROW = {"dtype": named_dtypes.qint8, "quant_min": -127, "quant_max": 127, "eps": 2**-12}
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    qscheme=per_tensor_symmetric, **_NARROW
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    qscheme=per_channel_symmetric, **_NARROW
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=named_dtypes.quint8, qscheme=per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=named_dtypes.quint4x2, qscheme=per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=named_dtypes.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=named_dtypes.quint8, quant_min=0, quant_max=255
)
# the names of these two in older programs
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=named_dtypes.qint8, qscheme=per_channel_symmetric
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=named_dtypes.quint8, quant_min=0, quant_max=255, is_dynamic=True
)

__getattr__, __dir__ = names_of(__name__)
