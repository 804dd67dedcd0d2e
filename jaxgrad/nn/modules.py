"""The modules of torch.nn.modules: here the classes of all of them are in `jaxgrad.nn`.

>>> isinstance(jaxgrad.nn.BatchNorm2d(3), jaxgrad.nn.modules.batchnorm._BatchNorm)
True
"""

from __future__ import annotations

from .. import nn
from ..core.missing_names import MissingName
from . import (
    convolution_layers,
    lazy,
    loss_layers,
    normalization_layers,
    resampling_layers,
    tuples,
)

# PyTorch's base classes, which programs ask for by isinstance
_BASES = {
    "_BatchNorm": normalization_layers._BatchNorm,
    "_InstanceNorm": normalization_layers._InstanceNorm,
    "_NormBase": normalization_layers._RunningNorm,
    "_ConvNd": convolution_layers._Convolution,
    "_ConvTransposeNd": convolution_layers._Transposed,
    "_Loss": loss_layers.Loss,
    "_ConstantPadNd": resampling_layers._ConstantPad,
    "LazyModuleMixin": lazy.LazyModuleMixin,
}

_MODULES = frozenset(
    (
        *("activation", "adaptive", "batchnorm", "channelshuffle", "container", "conv", "distance"),
        *("dropout", "flatten", "fold", "instancenorm", "lazy", "linear", "loss", "normalization"),
        *("padding", "pixelshuffle", "pooling", "rnn", "sparse", "transformer", "upsampling"),
    )
)

__path__ = []  # as of a package


class _Layers:
    """One of the modules."""

    def __init__(self, name):
        self.__name__, self.__path__ = f"{__name__}.{name}", []

    def __getattr__(self, name):
        return _layer(name)


def _layer(name):
    if name in _BASES:
        return _BASES[name]
    if name in ("F", "Module") or (name[:1].isupper() and hasattr(nn, name)):
        return nn.functional if name == "F" else getattr(nn, name)
    raise MissingName("jaxgrad.nn", name)


def __getattr__(name):
    if name == "utils":
        return tuples
    if name == "module":
        return nn.module
    return _Layers(name) if name in _MODULES else _layer(name)
