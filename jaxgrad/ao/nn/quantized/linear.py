"""Linear layers with weights of 8 bits."""

from __future__ import annotations

from .... import nn
from ....core import dtypes, named_dtypes
from ....frontend.factories import zeros
from ....functions import quantized_kernels as kernels
from ....functions.quantization import quantize_per_tensor
from ....names.not_provided import names_of
from ....nn.module import Module
from ..intrinsic import fused
from .quantize import QuantizedLayer, output_parameters, quantized_weight


class LinearPackedParams(Module):
    """The weight, quantized or of float16, and the bias of a layer."""

    _version = 3

    def __init__(self, dtype=named_dtypes.qint8):
        super().__init__()
        self.dtype = dtype
        self.set_weight_bias(empty_weight([1, 1], dtype), None)

    def set_weight_bias(self, weight, bias):
        is_float = self.dtype is dtypes.float16
        pack = kernels.linear_prepack_fp16 if is_float else kernels.linear_prepack
        self._packed_params = pack(weight, bias)

    def _weight_bias(self):
        return self._packed_params.unpack()

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict, prefix, metadata, strict, *lists):
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight_bias(*state_dict.pop(prefix + "_packed_params"))
        super()._load_from_state_dict(state_dict, prefix, metadata, False, *lists)

    def __repr__(self):
        return repr(self._weight_bias())


def empty_weight(shape, dtype):
    """Zeros of a weight's dtype: qint8, or float32 for float16."""
    if dtype not in (named_dtypes.qint8, dtypes.float16):
        raise RuntimeError(f"Unsupported dtype specified for quantized Linear: {dtype}")
    weight = zeros(shape)
    return quantize_per_tensor(weight, 1.0, 0, dtype) if dtype is named_dtypes.qint8 else weight


class Linear(QuantizedLayer):
    """`nn.Linear` on quantized tensors.

    in_features, out_features, bias_: as in `nn.Linear`. dtype: of the weight. Attributes scale and
    zero_point are those of the result; `weight()` and `bias()` give the numbers.

    >>> layer = jaxgrad.ao.nn.quantized.Linear(2, 1)
    >>> weight = jaxgrad.quantize_per_tensor(jaxgrad.tensor([[1.0, 2.0]]), 0.1, 0, jaxgrad.qint8)
    >>> layer.set_weight_bias(weight, jaxgrad.tensor([0.5]))
    >>> x = jaxgrad.quantize_per_tensor(jaxgrad.ones(1, 2), 0.5, 0, jaxgrad.quint8)
    >>> layer(x).int_repr()
    tensor([[4]], dtype=torch.uint8)
    """

    _version = 3
    _FLOAT_MODULE = nn.Linear
    _kernel = staticmethod(kernels.linear)

    def __init__(self, in_features, out_features, bias_=True, dtype=named_dtypes.qint8):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        weight = empty_weight([out_features, in_features], dtype)
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(weight, zeros(out_features) if bias_ else None)
        self.scale, self.zero_point = 1.0, 0

    def _get_name(self):
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"scale={self.scale}, zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    def forward(self, x):
        return self._kernel(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def weight(self):
        return self._packed_params._weight_bias()[0]

    def bias(self):
        return self._packed_params._weight_bias()[1]

    def set_weight_bias(self, w, b):
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of one of `nn` with a `qconfig` and an observer, or of one of `ao.nn.qat`."""
        check_module(cls, mod)
        scale, zero_point = output_parameters(mod)
        source = first_of_fused(mod)
        observer = weight_observer(mod, source, use_precomputed_fake_quant)
        if observer.dtype is not named_dtypes.qint8:
            raise AssertionError(
                f"Weight observer must have dtype torch.qint8, got {observer.dtype}"
            )
        layer = cls(source.in_features, source.out_features)
        layer.set_weight_bias(quantized_weight(source.weight, observer), source.bias)
        layer.scale, layer.zero_point = scale, zero_point
        return layer


def check_module(cls, mod):
    """Raise AssertionError for a module that a class is not made of."""
    kinds = (cls._FLOAT_MODULE, getattr(cls, "_QAT_MODULE", None))
    is_known = isinstance(mod, cls._FLOAT_MODULE) or hasattr(mod, "weight_fake_quant")
    if not is_known:
        raise AssertionError(
            f"nnq.{cls.__name__}.from_float only works for {kinds[0].__name__}, but got: "
            f"{type(mod).__name__}"
        )
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined.")


def weight_observer(mod, source, use_precomputed_fake_quant=False):
    """The observer of a weight, or the module that rounds it, which has recorded its range."""
    has_one = hasattr(mod, "weight_fake_quant")
    observer = mod.weight_fake_quant if has_one else mod.qconfig.weight()
    if not use_precomputed_fake_quant:
        observer(source.weight)
    return observer


def dynamic_weight(weight, qconfig):
    """A weight for products with a quantized input: of qint8, or float32 for float16."""
    observer = qconfig.weight()
    if observer.dtype not in (named_dtypes.qint8, dtypes.float16):
        raise AssertionError(
            "The only supported dtypes for dynamic quantized linear are qint8 and float16, got: "
            f"{observer.dtype}"
        )
    observer(weight)
    is_float = observer.dtype is dtypes.float16
    return weight.detach().float() if is_float else quantized_weight(weight, observer)


def packed(weight, bias):
    """The arguments of a product, of a quantized weight or one of numbers."""
    pack = kernels.linear_prepack if weight.is_quantized else kernels.linear_prepack_fp16
    return pack(weight, bias)


def product(x, params):
    """`x @ weight.T + bias`, of an input that is quantized to 7 bits as in PyTorch, or in half
    precision.
    """
    if params._weight.is_quantized:
        return kernels.linear_dynamic(x, params, True)
    return kernels.linear_dynamic_fp16(x, params)


def first_of_fused(mod):
    """The layer of a fused one, with the batch normalization that it trains with as a part of it;
    of other layers of `ao.nn.qat` the module itself.
    """
    mod = mod.to_float() if hasattr(mod, "bn") else mod
    return mod[0] if isinstance(mod, fused._FusedModule) else mod


class LinearReLU(Linear):
    """`Linear` and a relu, rounded once."""

    _FLOAT_MODULE = fused.LinearReLU
    _kernel = staticmethod(kernels.linear_relu)

    def _get_name(self):
        return "QuantizedLinearReLU"


__getattr__, __dir__ = names_of(__name__)
