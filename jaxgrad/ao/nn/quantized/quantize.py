"""Where a quantized part of a model begins and ends."""

from __future__ import annotations

from ....core import dtypes
from ....frontend.tensor_data import tensor as new_tensor
from ....functions.quantization import (
    _make_per_channel_quantized_tensor,
    _make_per_tensor_quantized_tensor,
    limits_of,
    per_channel_affine_float_qparams,
    quantize_per_channel,
    quantize_per_tensor,
)
from ....names.not_provided import names_of
from ....nn.module import Module


class Quantize(Module):
    """Rounds its input to the numbers of a quantized tensor.

    scale, zero_point, dtype: of the result.

    >>> layer = jaxgrad.ao.nn.quantized.Quantize(0.5, 2, jaxgrad.quint8)
    >>> layer(jaxgrad.tensor([1.0, -3.0])).int_repr()
    tensor([4, 0], dtype=torch.uint8)
    """

    def __init__(self, scale, zero_point, dtype, factory_kwargs=None):
        super().__init__()
        self.register_buffer("scale", new_tensor([scale], **(factory_kwargs or {})))
        self.register_buffer("zero_point", new_tensor([zero_point], dtype=dtypes.int64))
        self.dtype = dtype

    def forward(self, X):
        return quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """The layer for the range that the observer of `mod` has recorded."""
        observer = _observer_of(mod)
        scale, zero_point = observer.calculate_qparams()
        return Quantize(scale.float().item(), zero_point.long().item(), observer.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(Module):
    """Gives the numbers of its input, float32."""

    def forward(self, Xq):
        return Xq.dequantize()

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        return DeQuantize()


def _observer_of(mod):
    if not hasattr(mod, "activation_post_process"):
        raise AssertionError(
            f"Module {type(mod).__name__} must have activation_post_process attribute"
        )
    return mod.activation_post_process


def output_parameters(mod) -> tuple[float, int]:
    """The scale and the zero point of what a layer gives, which its observer has recorded."""
    scale, zero_point = _observer_of(mod).calculate_qparams()
    return float(scale), int(zero_point)


def quantized_weight(weight, observer):
    """A weight of qint8 with the scale that an observer has recorded, or one of each channel."""
    scale, zero_point = observer.calculate_qparams()
    if not hasattr(observer, "ch_axis") or observer.ch_axis == -1:
        parameters = float(scale), int(zero_point)
        quantize, make = quantize_per_tensor, _make_per_tensor_quantized_tensor
    else:
        is_float = observer.qscheme is per_channel_affine_float_qparams
        zero_point = zero_point.float() if is_float else zero_point.long()
        parameters = scale.double(), zero_point, observer.ch_axis
        quantize, make = quantize_per_channel, _make_per_channel_quantized_tensor
    result = quantize(weight.detach().float(), *parameters, observer.dtype)
    if (observer.quant_min, observer.quant_max) == limits_of(observer.dtype):
        return result
    return make(result.int_repr().clamp(observer.quant_min, observer.quant_max), *parameters)


_PLACES = ("in_channels", "out_channels", "kernel_size", "stride", "padding")


def convolution_arguments(source) -> dict:
    """The arguments of the constructor of a convolution like `source`."""
    names = (*_PLACES, "dilation", "groups", "padding_mode")
    arguments = {name: getattr(source, name) for name in names}
    if source.transposed:
        arguments["output_padding"] = source.output_padding
    return {**arguments, "bias": source.bias is not None}


class QuantizedLayer(Module):
    """The base of layers with a `scale` and a `zero_point` of the result."""

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = new_tensor(self.scale)
        destination[prefix + "zero_point"] = new_tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, metadata, strict, *lists):
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, metadata, False, *lists)


__getattr__, __dir__ = names_of(__name__)
