"""Modules that round to the numbers of a quantized tensor while a model trains."""

from __future__ import annotations

from ... import ops
from ...core import dtypes, named_dtypes
from ...frontend.tensor_data import tensor as new_tensor
from ...functions.quantization import (
    chosen_parameters,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_symmetric,
)
from ...names.not_provided import names_of
from ...nn.module import Module
from ...tape.tensor import current, is_concrete
from .observer import (
    OF_CHANNELS,
    RANGES,
    FixedQParamsObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    ObserverBase,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)


class FakeQuantizeBase(Module):
    """The base of modules that round in training; buffers switch rounding and recording."""

    def __init__(self):
        super().__init__()
        for name in ("fake_quant_enabled", "observer_enabled"):
            self.register_buffer(name, new_tensor([1], dtype=dtypes.uint8))

    def calculate_qparams(self, **options):
        raise NotImplementedError(f"{type(self).__name__} has no calculate_qparams")

    def enable_fake_quant(self, enabled: bool = True) -> None:
        self.fake_quant_enabled[0] = int(enabled)

    def disable_fake_quant(self):
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        self.observer_enabled[0] = int(enabled)

    def disable_observer(self):
        self.enable_observer(False)

    with_args = classmethod(ObserverBase.with_args.__func__)


class FakeQuantize(FakeQuantizeBase):
    """Records the range of its input by an observer, and rounds to the numbers of a quantized
    tensor of that range: `scale * (clamp(round(x / scale + zero_point), quant_min, quant_max) -
    zero_point)`. The gradient is that of the identity within the range, and 0 outside.

    observer: the class of the observer, quant_min, quant_max and observer_kwargs its arguments.

    >>> module = jaxgrad.ao.quantization.FakeQuantize(quant_min=0, quant_max=3)
    >>> module(jaxgrad.tensor([0.0, 0.4, 1.0, 3.0]))
    tensor([0., 0., 1., 3.])
    """

    def __init__(
        self,
        observer=MovingAverageMinMaxObserver,
        quant_min=None,
        quant_max=None,
        is_dynamic=False,
        **observer_kwargs,
    ):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            kind = observer_kwargs.get("dtype", named_dtypes.quint8)
            for name, value in (("quant_min", quant_min), ("quant_max", quant_max)):
                low, high = RANGES[kind][0] if kind in RANGES else (value, value)
                if not low <= value <= high:
                    raise AssertionError(f"{name} out of bound: {value} is no {kind}")
            observer_kwargs |= {"quant_min": quant_min, "quant_max": quant_max}
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = observer(**observer_kwargs)
        source = self.activation_post_process
        self.quant_min, self.quant_max = source.quant_min, source.quant_max
        self.is_dynamic, self.dtype, self.qscheme = is_dynamic, source.dtype, source.qscheme
        is_float = self.qscheme is per_channel_affine_float_qparams
        integers = dtypes.float32 if is_float else dtypes.int32
        self.register_buffer("scale", new_tensor([1.0]))
        self.register_buffer("zero_point", new_tensor([0], dtype=integers))
        self.ch_axis = getattr(source, "ch_axis", -1)
        self.is_per_channel = self.qscheme in OF_CHANNELS

    def calculate_qparams(self):
        return self.activation_post_process.calculate_qparams()

    def _parameters_to_use(self):
        return self.calculate_qparams()

    def forward(self, X):
        if is_concrete(current(self.observer_enabled)):
            if self.observer_enabled.item() == 1:
                self._observe(X)
            return self._rounded(X) if self.fake_quant_enabled.item() == 1 else X
        # a program that is exported serves both values of the switches
        buffers = [*self.buffers()]
        before = [buffer.clone() for buffer in buffers]
        self._observe(X)
        is_observing = self.observer_enabled[0] == 1
        for buffer, value in zip(buffers, before, strict=True):
            buffer.copy_(ops.where(is_observing, buffer, value))
        return ops.where(self.fake_quant_enabled[0] == 1, self._rounded(X), X)

    def _observe(self, X):
        """Update the range, and the scale and zero point that follow from it."""
        self.activation_post_process(X.detach())
        for name, value in zip(("scale", "zero_point"), self._parameters_to_use(), strict=True):
            buffer = getattr(self, name)
            if buffer.shape != value.shape:
                buffer.resize_(value.shape)
            buffer.copy_(value)

    def _rounded(self, X):
        limits = self.quant_min, self.quant_max
        if self.is_per_channel:
            arguments = self.scale, self.zero_point, self.ch_axis, *limits
            return ops.fake_quantize_per_channel_affine(X, *arguments)
        return ops.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, *limits)

    def extra_repr(self) -> str:
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, quant_min={self.quant_min}, "
            f"quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict, prefix, *args):
        for name in ("scale", "zero_point"):
            value = state_dict.get(prefix + name)
            if value is not None:
                getattr(self, name).resize_(value.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)


class FixedQParamsFakeQuantize(FakeQuantize):
    """`FakeQuantize` with the scale and zero point of a `FixedQParamsObserver`.

    observer: makes the observer; it must have `scale` and `zero_point`.
    """

    def __init__(self, observer):
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(f"{type(self).__name__}'s observer must be a FixedQParamsObserver")
        self._observer_ctr = observer
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point

    def calculate_qparams(self):
        return self.scale, self.zero_point


def _switch(name):
    """A function for `Module.apply` that calls a method of the modules that round."""

    def switch(mod):
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()

    switch.__name__ = name
    switch.__doc__ = f"Call `{name}` of a module that rounds: for `model.apply`."
    return switch


disable_fake_quant, enable_fake_quant = map(_switch, ("disable_fake_quant", "enable_fake_quant"))
disable_observer, enable_observer = map(_switch, ("disable_observer", "enable_observer"))

default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    dtype=named_dtypes.quint8,
    reduce_range=True,
)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=named_dtypes.qint8,
    qscheme=per_tensor_symmetric,
    reduce_range=False,
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=named_dtypes.qint8,
    qscheme=per_channel_symmetric,
    reduce_range=False,
    ch_axis=0,
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    is_dynamic=True,
    dtype=named_dtypes.quint8,
    averaging_constant=1,
)
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=per_channel_affine_float_qparams,
    dtype=named_dtypes.quint8,
    quant_min=0,
    quant_max=255,
    ch_axis=0,
    averaging_constant=1,
)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=per_channel_affine_float_qparams,
    ch_axis=0,
    dtype=named_dtypes.quint4x2,
    averaging_constant=1,
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
# the names of these two in older programs
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """`FakeQuantize` with an observer of moving averages, which PyTorch runs as one operator: in
    training its scale is that of `quantize_per_tensor_dynamic` for the recorded range.
    """

    def __init__(self, observer=MovingAverageMinMaxObserver, *arguments, **options):
        super().__init__(observer, *arguments, **options)
        if not isinstance(self.activation_post_process, _MOVING):
            raise AssertionError(
                "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver, got "
                f"{type(self.activation_post_process).__name__}"
            )
        for name in ("fake_quant_enabled", "observer_enabled"):
            self.register_buffer(name, new_tensor([1], dtype=dtypes.int64))
        self.is_symmetric_quant = self.qscheme in (per_tensor_symmetric, per_channel_symmetric)

    def _parameters_to_use(self):
        source = self.activation_post_process
        ranges = source.min_val.reshape(-1), source.max_val.reshape(-1)
        limits = self.quant_min, self.quant_max
        return chosen_parameters(*ranges, *limits, self.is_symmetric_quant)

    def extra_repr(self) -> str:
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, scale={self.scale}, "
            f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min={self.quant_min}, "
            f"quant_max={self.quant_max}, qscheme={self.qscheme}, "
            f"reduce_range={self.activation_post_process.reduce_range}"
        )


_MOVING = (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
_FUSED = {"quant_min": -128, "quant_max": 127, "dtype": named_dtypes.qint8}
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=named_dtypes.quint8
)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, qscheme=per_tensor_symmetric, **_FUSED
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, qscheme=per_channel_symmetric, **_FUSED
)

__getattr__, __dir__ = names_of(__name__)
