"""Normalization by statistics that are known, on quantized tensors."""

from __future__ import annotations

from .... import nn
from ....functions import quantized_kernels as kernels
from ....names.not_provided import names_of
from .linear import first_of_fused
from .quantize import QuantizedLayer, output_parameters


class _Normalization(QuantizedLayer):
    """The parameters of a layer of `nn`, with a scale and a zero point of the result."""

    def _get_name(self):
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer with the parameters of one of `nn`, for the range of its observer."""
        scale, zero_point = output_parameters(mod)
        source = first_of_fused(mod)
        layer = cls(*(getattr(source, name) for name in cls._arguments), eps=source.eps)
        for name in ("weight", "bias", "running_mean", "running_var"):
            if hasattr(source, name):
                setattr(layer, name, getattr(source, name))
        layer.scale, layer.zero_point = scale, zero_point
        return layer.eval()


class _BatchNorm(_Normalization, nn.modules.batchnorm._BatchNorm):
    _arguments = ("num_features",)
    _kernel = staticmethod(kernels.batch_norm)

    def __init__(self, num_features, eps=1e-5, momentum=0.1, device=None, dtype=None):
        super().__init__(num_features, eps=eps, momentum=momentum)
        self.scale, self.zero_point = 1.0, 0
        self.eval()

    def forward(self, input):
        parameters = self.weight, self.bias, self.running_mean, self.running_var
        return self._kernel(input, *parameters, self.eps, self.scale, self.zero_point)


class BatchNorm2d(_BatchNorm):
    """`nn.BatchNorm2d` on quantized tensors."""


class BatchNorm3d(_BatchNorm):
    """`nn.BatchNorm3d` on quantized tensors."""


class BNReLU2d(BatchNorm2d):
    """`BatchNorm2d` and a relu, rounded once."""

    _kernel = staticmethod(kernels.batch_norm_relu)


class BNReLU3d(BatchNorm3d):
    """`BatchNorm3d` and a relu, rounded once."""

    _kernel = staticmethod(kernels.batch_norm_relu)


class LayerNorm(_Normalization, nn.LayerNorm):
    """`nn.LayerNorm` on quantized tensors."""

    _arguments = ("normalized_shape",)

    def __init__(self, normalized_shape, weight=None, bias=None, scale=1.0, zero_point=0, eps=1e-5):
        super().__init__(normalized_shape, eps=eps)
        self.scale, self.zero_point = scale, zero_point
        if weight is not None:
            self.weight, self.bias = weight, bias

    def forward(self, input):
        parameters = self.normalized_shape, self.weight, self.bias, self.eps
        return kernels.layer_norm(input, *parameters, self.scale, self.zero_point)


class GroupNorm(_Normalization, nn.GroupNorm):
    """`nn.GroupNorm` on quantized tensors."""

    _arguments = ("num_groups", "num_channels")

    def __init__(
        self,
        num_groups,
        num_channels,
        weight=None,
        bias=None,
        scale=1.0,
        zero_point=0,
        eps=1e-5,
    ):
        super().__init__(num_groups, num_channels, eps)
        self.scale, self.zero_point = scale, zero_point
        if weight is not None:
            self.weight, self.bias = weight, bias

    def forward(self, input):
        parameters = self.num_groups, self.weight, self.bias, self.eps
        return kernels.group_norm(input, *parameters, self.scale, self.zero_point)


class _InstanceNorm(_Normalization, nn.modules.instancenorm._InstanceNorm):
    """Normalizes by the statistics of each sample; weight and bias are those of a layer of `nn`."""

    _arguments = ("num_features",)

    def __init__(
        self,
        num_features,
        weight,
        bias,
        scale,
        zero_point,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self.weight, self.bias = weight, bias
        self.scale, self.zero_point = scale, zero_point

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        scale, zero_point = output_parameters(mod)
        return cls(
            mod.num_features, mod.weight, mod.bias, scale, zero_point, mod.eps, affine=mod.affine
        )

    def forward(self, input):
        parameters = self.weight, self.bias, self.eps
        return kernels.instance_norm(input, *parameters, self.scale, self.zero_point)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """`nn.InstanceNorm1d` on quantized tensors."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """`nn.InstanceNorm2d` on quantized tensors."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """`nn.InstanceNorm3d` on quantized tensors."""


__getattr__, __dir__ = names_of(__name__)
