"""Convolutions with weights of 8 bits."""

from __future__ import annotations

from .... import nn
from ....core import named_dtypes
from ....frontend.factories import zeros
from ....functions import quantized_kernels as kernels
from ....names.not_provided import names_of
from ..intrinsic import fused
from .linear import check_module, empty_weight, first_of_fused, weight_observer
from .quantize import QuantizedLayer, convolution_arguments, quantized_weight


def _extents(value, dims):
    return tuple(value) if isinstance(value, tuple | list) else (value,) * dims


class _Convolution(QuantizedLayer):
    """The base of quantized convolutions. Arguments: those of `nn.Conv2d`."""

    _dims, transposed, _end = 2, False, ""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
        output_padding=0,
    ):
        super().__init__()
        if padding_mode not in ("zeros", "reflect") or (
            padding_mode == "reflect" and self.transposed
        ):
            raise ValueError(
                f"'padding_mode' {padding_mode} is not supported by quantized convolution"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.padding_mode = padding_mode
        values = {"kernel_size": kernel_size, "stride": stride, "padding": padding}
        values |= {"dilation": dilation, "output_padding": output_padding}
        for name, value in values.items():
            setattr(self, name, _extents(value, self._dims))
        ends = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        weight = empty_weight([ends[0], ends[1] // groups, *self.kernel_size], named_dtypes.qint8)
        self.set_weight_bias(weight, zeros(out_channels) if bias else None)
        self.scale, self.zero_point = 1.0, 0

    def _get_name(self):
        return f"Quantized{type(self).__name__}"

    def set_weight_bias(self, w, b):
        form = "conv_transpose" if self.transposed else "conv"
        prepack = getattr(kernels, f"{form}{self._dims}d_prepack")
        is_reflected = self.padding_mode == "reflect"
        places = [self.stride, (0,) * self._dims if is_reflected else self.padding]
        places += [self.output_padding] * self.transposed + [self.dilation, self.groups]
        self._packed_params = prepack(w, b, *places)

    def weight(self):
        return self._packed_params.unpack()[0]

    def bias(self):
        return self._packed_params.unpack()[1]

    def forward(self, input):
        if input.ndim != self._dims + 2:
            raise ValueError(
                f"Input shape must be `(N, C, ...)` of {self._dims + 2} dimensions: "
                f"{tuple(input.shape)}"
            )
        if self.padding_mode == "reflect":
            ends = [extent for extent in reversed(self.padding) for _ in range(2)]
            input = nn.functional.pad(input, ends, mode="reflect")
        form = "conv_transpose" if self.transposed else "conv"
        kernel = getattr(kernels, f"{form}{self._dims}d{self._end}")
        return kernel(input, self._packed_params, self.scale, self.zero_point)

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}"
        )
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if getattr(self, name) != (usual,) * self._dims:
                text += f", {name}={getattr(self, name)}"
        text += f", groups={self.groups}" if self.groups != 1 else ""
        return text + (", bias=False" if self.bias() is None else "")

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"], destination[prefix + "bias"] = self._packed_params.unpack()

    def _load_from_state_dict(self, state_dict, prefix, *others):
        weight, bias = (state_dict.pop(prefix + name) for name in ("weight", "bias"))
        self.set_weight_bias(weight, bias)
        super()._load_from_state_dict(state_dict, prefix, *others)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of one of `nn` with a `qconfig` and an observer, or of one of `ao.nn.qat`."""
        check_module(cls, mod)
        observer = getattr(mod, "activation_post_process", None)
        source = first_of_fused(mod)
        layer = cls(**convolution_arguments(source))
        weight = quantized_weight(source.weight, weight_observer(mod, source))
        layer.set_weight_bias(weight, source.bias)
        if observer is not None:
            scale, zero_point = observer.calculate_qparams()
            layer.scale, layer.zero_point = float(scale), int(zero_point)
        return layer


def _form(name, float_module, dims, end="", transposed=False):
    """The class of a convolution in some dimensions."""
    members = {"_FLOAT_MODULE": float_module, "_dims": dims, "_end": end}
    members |= {"transposed": transposed, "__module__": __name__}
    members["__doc__"] = f"`nn.{float_module.__name__}` on quantized tensors."
    return type(name, (_Convolution,), members)


Conv1d = _form("Conv1d", nn.Conv1d, 1)
Conv2d = _form("Conv2d", nn.Conv2d, 2)
Conv3d = _form("Conv3d", nn.Conv3d, 3)
ConvTranspose1d = _form("ConvTranspose1d", nn.ConvTranspose1d, 1, transposed=True)
ConvTranspose2d = _form("ConvTranspose2d", nn.ConvTranspose2d, 2, transposed=True)
ConvTranspose3d = _form("ConvTranspose3d", nn.ConvTranspose3d, 3, transposed=True)
ConvReLU1d = _form("ConvReLU1d", fused.ConvReLU1d, 1, "_relu")
ConvReLU2d = _form("ConvReLU2d", fused.ConvReLU2d, 2, "_relu")
ConvReLU3d = _form("ConvReLU3d", fused.ConvReLU3d, 3, "_relu")

__getattr__, __dir__ = names_of(__name__)
