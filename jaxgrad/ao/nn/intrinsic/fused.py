"""Layers that follow one another, as one."""

from __future__ import annotations

from .... import nn
from ....names.not_provided import names_of


class _FusedModule(nn.Sequential):
    """The base of layers made of several; `kinds` are the classes of these."""

    kinds: tuple[type, ...] = ()

    def __init__(self, *modules):
        for module, kind in zip(modules, self.kinds, strict=True):
            if nn.utils.parametrize.type_before_parametrizations(module) is not kind:
                raise AssertionError(
                    f"Incorrect types for input modules: {type(self).__name__} takes "
                    f"{kind.__name__}, not {type(module).__name__}"
                )
        super().__init__(*modules)


def _fused(name, *kinds):
    words = [kind.__name__ for kind in kinds]
    text = f"{', '.join(words[:-1])} and {words[-1]}, one after the other."
    return type(name, (_FusedModule,), {"kinds": kinds, "__doc__": text, "__module__": __name__})


LinearReLU = _fused("LinearReLU", nn.Linear, nn.ReLU)
ConvReLU1d = _fused("ConvReLU1d", nn.Conv1d, nn.ReLU)
ConvReLU2d = _fused("ConvReLU2d", nn.Conv2d, nn.ReLU)
ConvReLU3d = _fused("ConvReLU3d", nn.Conv3d, nn.ReLU)
ConvBn1d = _fused("ConvBn1d", nn.Conv1d, nn.BatchNorm1d)
ConvBn2d = _fused("ConvBn2d", nn.Conv2d, nn.BatchNorm2d)
ConvBn3d = _fused("ConvBn3d", nn.Conv3d, nn.BatchNorm3d)
ConvBnReLU1d = _fused("ConvBnReLU1d", nn.Conv1d, nn.BatchNorm1d, nn.ReLU)
ConvBnReLU2d = _fused("ConvBnReLU2d", nn.Conv2d, nn.BatchNorm2d, nn.ReLU)
ConvBnReLU3d = _fused("ConvBnReLU3d", nn.Conv3d, nn.BatchNorm3d, nn.ReLU)
LinearBn1d = _fused("LinearBn1d", nn.Linear, nn.BatchNorm1d)
BNReLU2d = _fused("BNReLU2d", nn.BatchNorm2d, nn.ReLU)
BNReLU3d = _fused("BNReLU3d", nn.BatchNorm3d, nn.ReLU)

__getattr__, __dir__ = names_of(__name__)
