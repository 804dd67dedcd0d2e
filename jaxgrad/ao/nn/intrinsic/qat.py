"""torch.ao.nn.intrinsic.qat: layers made of several, which round their weights in training."""

from __future__ import annotations

from .... import nn, ops
from ....autograd.grad_mode import no_grad
from ....frontend.factories import zeros
from ....names.not_provided import names_of
from ....nn.utils import fusion
from ..qat import layers
from . import fused

__all__ = [
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearBn1d",
    "LinearReLU",
    "freeze_bn_stats",
    "update_bn_stats",
]


class _WithReLU:
    """What layers with a relu have beside those that they derive from."""

    def forward(self, input):
        return super().forward(input).relu()

    def to_float(self):
        """The layer of `ao.nn.intrinsic` with the parameters."""
        return fused_with_relu(super().to_float())


def fused_with_relu(layer):
    """A convolution or linear layer and a relu, as one."""
    kind = getattr(fused, type(layer).__name__.replace("Conv", "ConvReLU"), fused.LinearReLU)
    return kind(layer, nn.ReLU()).train(layer.training)


class LinearReLU(_WithReLU, layers.Linear):
    """`ao.nn.qat.Linear` and a relu."""

    _FLOAT_MODULE = fused.LinearReLU


class ConvReLU1d(_WithReLU, layers.Conv1d):
    """`ao.nn.qat.Conv1d` and a relu."""

    _FLOAT_MODULE = fused.ConvReLU1d


class ConvReLU2d(_WithReLU, layers.Conv2d):
    """`ao.nn.qat.Conv2d` and a relu."""

    _FLOAT_MODULE = fused.ConvReLU2d


class ConvReLU3d(_WithReLU, layers.Conv3d):
    """`ao.nn.qat.Conv3d` and a relu."""

    _FLOAT_MODULE = fused.ConvReLU3d


class _Normalized:
    """What layers with batch normalization `bn` have beside those that they derive from.

    They round `weight * bn.weight / sqrt(bn.running_var + bn.eps)`, the weight of the layer that
    `convert` makes of both, and divide the result by the same factor before they normalize it.
    """

    _norm: type

    def __init__(self, *arguments, eps=1e-5, momentum=0.1, freeze_bn=False, **options):
        super().__init__(*arguments, **options)
        self.freeze_bn = False
        rounds = self._modules.pop("weight_fake_quant")
        self.bn = self._norm(self.weight.shape[0], eps, momentum, True, True)
        self.weight_fake_quant = rounds  # after `bn`, as in PyTorch's files
        if freeze_bn:
            self.freeze_bn_stats()

    def forward(self, input):
        factor = self.bn.weight / ops.sqrt(self.bn.running_var + self.bn.eps)
        of_rows = (-1, *(1,) * (self.weight.ndim - 1))
        weight = self.weight_fake_quant(self.weight * factor.reshape(of_rows))
        # a bias would be divided, too
        result = self._product(input, weight, zeros(len(weight), dtype=weight.dtype))
        of_channels = (-1, *(1,) * (self.weight.ndim - 2))
        result = result / factor.reshape(of_channels)
        if self.bias is not None:
            result = result + self.bias.reshape(of_channels)
        return self.bn(result)

    def train(self, mode=True):
        """Set the mode; that of `bn` only if its statistics are not frozen."""
        self.training = mode
        if not self.freeze_bn:
            for part in self.children():
                part.train(mode)
        return self

    def freeze_bn_stats(self):
        """Normalize by the running statistics from here on, in training too."""
        self.freeze_bn, self.bn.training = True, False
        return self

    def update_bn_stats(self):
        """Normalize by the statistics of the inputs again, and record them."""
        self.freeze_bn, self.bn.training = False, True
        return self

    def reset_running_stats(self):
        self.bn.reset_running_stats()

    def reset_bn_parameters(self):
        """Draw the parameters of `bn` anew, and forget its statistics."""
        self.bn.reset_running_stats()
        with no_grad():
            nn.init.uniform_(self.bn.weight)
            nn.init.zeros_(self.bn.bias)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer with the parameters of one of `ao.nn.intrinsic` that has a `qconfig`."""
        layer = super().from_float(mod)
        norm = mod[1]
        layer.bn.eps, layer.bn.momentum = norm.eps, norm.momentum
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(layer.bn, name, getattr(norm, name))
        return layer.train(mod.training)

    def to_float(self):
        """The layer of `nn` that does what this one and its `bn` do in evaluation mode."""
        is_linear, norm = self.weight.ndim == 2, self.bn
        fuse = fusion.fuse_linear_bn_weights if is_linear else fusion.fuse_conv_bn_weights
        statistics = norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
        parameters = fuse(self.weight, self.bias, *statistics)
        return self._layer_of(*parameters).train(self.training)


class LinearBn1d(_Normalized, layers.Linear):
    """`ao.nn.qat.Linear` with batch normalization.

    in_features, out_features, bias, eps, momentum: as in `nn.Linear` and `nn.BatchNorm1d`.
    freeze_bn: whether running statistics are used in training. qconfig: has the module that rounds
    the weight.
    """

    _FLOAT_MODULE, _norm = fused.LinearBn1d, nn.BatchNorm1d

    def __init__(
        self,
        in_features,
        out_features,
        bias=True,
        eps=1e-5,
        momentum=0.1,
        freeze_bn=False,
        qconfig=None,
    ):
        options = {"eps": eps, "momentum": momentum, "freeze_bn": freeze_bn, "qconfig": qconfig}
        super().__init__(in_features, out_features, bias, **options)


class _NormalizedConvolution(_Normalized):
    """The arguments of convolutions with batch normalization."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=None,
        padding_mode="zeros",
        eps=1e-5,
        momentum=0.1,
        freeze_bn=False,
        qconfig=None,
    ):
        places = in_channels, out_channels, kernel_size, stride, padding, dilation, groups
        options = {"eps": eps, "momentum": momentum, "freeze_bn": freeze_bn, "qconfig": qconfig}
        super().__init__(*places, bool(bias), padding_mode, **options)
        self.reset_bn_parameters()


class ConvBn1d(_NormalizedConvolution, layers.Conv1d):
    """`ao.nn.qat.Conv1d` with batch normalization.

    Arguments: those of `nn.Conv1d` and `nn.BatchNorm1d`, and those of `LinearBn1d`.
    """

    _FLOAT_MODULE, _norm = fused.ConvBn1d, nn.BatchNorm1d


class ConvBn2d(_NormalizedConvolution, layers.Conv2d):
    """`ao.nn.qat.Conv2d` with batch normalization.

    Arguments: those of `nn.Conv2d` and `nn.BatchNorm2d`, and those of `LinearBn1d`.
    """

    _FLOAT_MODULE, _norm = fused.ConvBn2d, nn.BatchNorm2d


class ConvBn3d(_NormalizedConvolution, layers.Conv3d):
    """`ao.nn.qat.Conv3d` with batch normalization.

    Arguments: those of `nn.Conv3d` and `nn.BatchNorm3d`, and those of `LinearBn1d`.
    """

    _FLOAT_MODULE, _norm = fused.ConvBn3d, nn.BatchNorm3d


class ConvBnReLU1d(_WithReLU, ConvBn1d):
    """`ConvBn1d` and a relu."""

    _FLOAT_MODULE = fused.ConvBnReLU1d


class ConvBnReLU2d(_WithReLU, ConvBn2d):
    """`ConvBn2d` and a relu."""

    _FLOAT_MODULE = fused.ConvBnReLU2d


class ConvBnReLU3d(_WithReLU, ConvBn3d):
    """`ConvBn3d` and a relu."""

    _FLOAT_MODULE = fused.ConvBnReLU3d


def freeze_bn_stats(mod):
    """Let a layer of this module normalize by its running statistics: for `model.apply`."""
    if isinstance(mod, _Normalized):
        mod.freeze_bn_stats()


def update_bn_stats(mod):
    """Let a layer of this module record statistics again: for `model.apply`."""
    if isinstance(mod, _Normalized):
        mod.update_bn_stats()


__getattr__, __dir__ = names_of(__name__)
