"""Linear layers that quantize their input at each call."""

from __future__ import annotations

from ..... import nn
from .....core import dtypes, named_dtypes
from .....names.not_provided import names_of
from ...intrinsic import fused
from .. import linear


class Linear(linear.Linear):
    """`nn.Linear` with a weight of 8 bits.

    Its input is quantized to 7 bits for the range of the call; the result is float32.

    >>> layer = jaxgrad.ao.nn.quantized.dynamic.Linear(2, 1)
    >>> weight = jaxgrad.quantize_per_tensor(jaxgrad.tensor([[1.0, 2.0]]), 0.1, 0, jaxgrad.qint8)
    >>> layer.set_weight_bias(weight, jaxgrad.tensor([0.5]))
    >>> layer(jaxgrad.tensor([[1.0, 1.27]]))
    tensor([[4.0400]])
    """

    _version = 4
    _FLOAT_MODULE = (nn.Linear, fused.LinearReLU)

    def __init__(self, in_features, out_features, bias_=True, dtype=named_dtypes.qint8):
        super().__init__(in_features, out_features, bias_, dtype)
        self.version = 4

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        text = f"in_features={self.in_features}, out_features={self.out_features}"
        text += f", dtype={self._packed_params.dtype}"
        is_quantized = self._packed_params.dtype is named_dtypes.qint8
        return text + (f", qscheme={self.weight().qscheme()}" if is_quantized else "")

    def forward(self, x):
        return linear.product(x, self._packed_params._packed_params).to(x.dtype)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of one of `nn` with a `qconfig`."""
        linear.check_module(cls, mod)
        source = linear.first_of_fused(mod)
        weight = linear.dynamic_weight(source.weight, mod.qconfig)
        dtype = named_dtypes.qint8 if weight.is_quantized else dtypes.float16
        layer = cls(source.in_features, source.out_features, dtype=dtype)
        layer.set_weight_bias(weight, source.bias)
        return layer


class LinearReLU(Linear):
    """`Linear` and a relu."""

    def _get_name(self):
        return "DynamicQuantizedLinearReLU"

    def forward(self, x):
        return super().forward(x).relu()


__getattr__, __dir__ = names_of(__name__)
