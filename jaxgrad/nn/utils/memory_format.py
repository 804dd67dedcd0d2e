"""The memory format of the weights of convolutions."""

from __future__ import annotations

from ...autograd.grad_mode import no_grad
from ...core.device import memory_format as MemoryFormat
from ...names.missing import missing_in
from ..convolution import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..module import Module


def convert_conv2d_weight_memory_format(module: Module, memory_format: MemoryFormat) -> Module:
    """Convert the weights of convolutions of images, and return the module.

    module: a module; its descendants are converted too. memory_format: `channels_last` or
    `contiguous_format`. Their results have this format then, and that of all modules behind them
    which keep it. Parameters keep their identity.

    >>> layer = jaxgrad.nn.Conv2d(3, 4, 2)
    >>> convert = jaxgrad.nn.utils.convert_conv2d_weight_memory_format
    >>> convert(layer, jaxgrad.channels_last).weight.stride()
    (12, 1, 6, 3)
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Module, memory_format: MemoryFormat) -> Module:
    """Convert the weights of convolutions of volumes; see `convert_conv2d_weight_memory_format`.

    memory_format: `channels_last_3d` or `contiguous_format`.

    >>> layer = jaxgrad.nn.Conv3d(3, 4, 2)
    >>> convert = jaxgrad.nn.utils.convert_conv3d_weight_memory_format
    >>> convert(layer, jaxgrad.channels_last_3d).weight.stride()
    (24, 1, 12, 6, 3)
    """
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))


def _convert(module, memory_format, kinds):
    for layer in module.modules():
        if isinstance(layer, kinds):
            with no_grad():
                layer.weight.data = layer.weight.clone(memory_format=memory_format)
    return module


__getattr__ = missing_in(__name__)
