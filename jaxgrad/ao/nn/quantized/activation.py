"""Activations whose result has a scale of its own."""

from __future__ import annotations

import warnings

from .... import nn
from ....core.named_dtypes import quint8
from ....core.tracebacks import users_stacklevel
from ....frontend.random import randn
from ....functions import quantized_kernels as kernels
from ....functions.quantization import quantize_per_tensor
from ....names.not_provided import names_of
from ....tape.tensor import Tensor
from .quantize import QuantizedLayer, output_parameters


class _Activation(QuantizedLayer):
    """The base. scale, zero_point: of the result."""

    _FLOAT_MODULE: type
    _arguments: tuple[str, ...] = ()

    def __init__(self, scale, zero_point, *arguments):
        super().__init__()
        self.scale, self.zero_point = scale, zero_point
        for name, value in zip(self._arguments, arguments, strict=True):
            setattr(self, name, value)

    def _get_name(self):
        return f"Quantized{type(self).__name__}"

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._arguments)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer for the range that the observer of one of `nn` has recorded."""
        values = [getattr(mod, name) for name in cls._arguments]
        return cls(*output_parameters(mod), *values)


class Hardswish(_Activation):
    """`nn.Hardswish` on quantized tensors."""

    def forward(self, input):
        return kernels.hardswish(input, self.scale, self.zero_point)


class ELU(_Activation):
    """`nn.ELU` on quantized tensors."""

    _arguments = ("alpha",)

    def __init__(self, scale, zero_point, alpha=1.0):
        super().__init__(scale, zero_point, alpha)

    # PyTorch keeps its scale and zero point out of files
    _save_to_state_dict = nn.Module._save_to_state_dict
    _load_from_state_dict = nn.Module._load_from_state_dict

    def forward(self, input):
        return kernels.elu(input, self.scale, self.zero_point, self.alpha)


class LeakyReLU(_Activation):
    """`nn.LeakyReLU` on quantized tensors."""

    _arguments = ("negative_slope",)

    def __init__(self, scale, zero_point, negative_slope=1e-2):
        super().__init__(scale, zero_point, negative_slope)

    def forward(self, input):
        return kernels.leaky_relu(input, self.negative_slope, False, self.scale, self.zero_point)


class PReLU(_Activation):
    """`nn.PReLU` on quantized tensors, with a quantized weight."""

    def __init__(self, output_scale, output_zero_point, num_parameters=1):
        super().__init__(output_scale, output_zero_point)
        self.num_parameters = num_parameters
        self.set_weight(quantize_per_tensor(randn(num_parameters), 1.0, 0, quint8))

    # PyTorch keeps its weight, scale and zero point out of files
    _save_to_state_dict = nn.Module._save_to_state_dict
    _load_from_state_dict = nn.Module._load_from_state_dict

    def set_weight(self, w: Tensor) -> None:
        """Take a quantized tensor as the weight."""
        self.weight = w

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer for the ranges that the observers of one of `nn` have recorded."""
        layer, weight = cls(*output_parameters(mod), mod.num_parameters), mod.weight.float()
        observer = mod.qconfig.weight()
        if observer.dtype is not quint8:
            warnings.warn(
                f"PReLU's weight observer should have dtype quint8 but got {observer.dtype}",
                stacklevel=users_stacklevel(),
            )
        observer(weight)
        scale, zero_point = observer.calculate_qparams()
        quantized = quantize_per_tensor(weight, float(scale), int(zero_point), quint8)
        layer.set_weight(quantized)
        return layer

    def forward(self, input):
        return kernels.prelu(input, self.weight, self.scale, self.zero_point)


class Sigmoid(_Activation):
    """`nn.Sigmoid` on quantized tensors."""

    def forward(self, input):
        return kernels.sigmoid(input, self.scale, self.zero_point)


class Softmax(_Activation):
    """`nn.Softmax` on quantized tensors."""

    _arguments = ("dim",)

    def __init__(self, dim=None, scale=1.0, zero_point=0):
        super().__init__(scale, zero_point, dim)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        return cls(mod.dim, *output_parameters(mod))

    def forward(self, input):
        return kernels.softmax(input, self.dim, self.scale, self.zero_point)


class ReLU6(nn.ReLU):
    """`nn.ReLU6` on quantized tensors."""

    def _get_name(self):
        return "QuantizedReLU6"

    def forward(self, input):
        return kernels.relu6(input, self.inplace)

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        return ReLU6(mod.inplace)


class Dropout(nn.Dropout):
    """Returns its input."""

    def _get_name(self):
        return "QuantizedDropout"

    def forward(self, input):
        return input

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        return cls(mod.p, mod.inplace)


__getattr__, __dir__ = names_of(__name__)
