"""Two layers as one."""

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
    words = " and ".join(kind.__name__ for kind in kinds)
    text = f"{words}, one after the other."
    return type(name, (_FusedModule,), {"kinds": kinds, "__doc__": text, "__module__": __name__})


LinearReLU = _fused("LinearReLU", nn.Linear, nn.ReLU)
ConvReLU1d = _fused("ConvReLU1d", nn.Conv1d, nn.ReLU)
ConvReLU2d = _fused("ConvReLU2d", nn.Conv2d, nn.ReLU)
ConvReLU3d = _fused("ConvReLU3d", nn.Conv3d, nn.ReLU)
BNReLU2d = _fused("BNReLU2d", nn.BatchNorm2d, nn.ReLU)
BNReLU3d = _fused("BNReLU3d", nn.BatchNorm3d, nn.ReLU)

__getattr__, __dir__ = names_of(__name__)
