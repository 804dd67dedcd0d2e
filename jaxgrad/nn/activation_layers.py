"""Activations as modules: each calls the function of `functional` with what it was made with."""

from __future__ import annotations

from typing import ClassVar

from . import activations, functional, init
from .layers import parameter
from .module import Module


class Activation(Module):
    """A function of one tensor, and the arguments that it is called with.

    `arguments`: their names and defaults, in the order in which the class takes them; `hidden`:
    those that are shown only where they are not what they are by default.
    """

    function = None
    arguments: ClassVar[dict] = {}
    hidden = ("inplace",)

    def __init__(self, *args, **kwargs):
        super().__init__()
        names = list(self.arguments)
        if len(args) > len(names):
            raise TypeError(
                f"{type(self).__name__}() takes {names}, but {len(args)} arguments were given"
            )
        given = dict(zip(names, args, strict=False))
        for name in kwargs:
            if name not in names or name in given:
                raise TypeError(f"{type(self).__name__}() got an unexpected argument {name!r}")
        for name, value in (self.arguments | given | kwargs).items():
            setattr(self, name, value)

    def forward(self, input):
        return type(self).function(input, **{name: getattr(self, name) for name in self.arguments})

    def extra_repr(self):
        shown = {name: getattr(self, name) for name in self.arguments}
        return ", ".join(
            f"{name}={value!r}" for name, value in shown.items() if name not in self.hidden or value
        )


def _made(name, function, hidden=("inplace",), **arguments):
    """The class of an activation."""
    listed = ", ".join(f"{each}={value!r}" for each, value in arguments.items())
    described = f"`functional.{getattr(function, '__name__', name.lower())}` as a module"
    members = {
        "__doc__": f"{described}: {name}({listed}).",
        "__module__": __name__,
        "function": staticmethod(function),
        "arguments": arguments,
        "hidden": hidden,
    }
    return type(name, (Activation,), members)


ReLU = _made("ReLU", functional.relu, inplace=False)
ReLU6 = _made("ReLU6", functional.relu6, inplace=False)
SELU = _made("SELU", functional.selu, inplace=False)
SiLU = _made("SiLU", functional.silu, inplace=False)
Mish = _made("Mish", activations.mish, inplace=False)
Hardsigmoid = _made("Hardsigmoid", activations.hardsigmoid, inplace=False)
Hardswish = _made("Hardswish", activations.hardswish, inplace=False)
ELU = _made("ELU", functional.elu, alpha=1.0, inplace=False)
CELU = _made("CELU", functional.celu, alpha=1.0, inplace=False)
LeakyReLU = _made("LeakyReLU", functional.leaky_relu, negative_slope=0.01, inplace=False)
Hardtanh = _made("Hardtanh", functional.hardtanh, min_val=-1.0, max_val=1.0, inplace=False)
GELU = _made("GELU", functional.gelu, approximate="none")
GLU = _made("GLU", activations.glu, dim=-1)
Softplus = _made("Softplus", functional.softplus, beta=1.0, threshold=20.0)
Hardshrink = _made("Hardshrink", activations.hardshrink, lambd=0.5)
Softshrink = _made("Softshrink", activations.softshrink, lambd=0.5)
Sigmoid = _made("Sigmoid", functional.sigmoid)
Tanh = _made("Tanh", functional.tanh)
LogSigmoid = _made("LogSigmoid", functional.logsigmoid)
Softsign = _made("Softsign", activations.softsign)
Tanhshrink = _made("Tanhshrink", activations.tanhshrink)
Softmax = _made("Softmax", functional.softmax, dim=None)
Softmin = _made("Softmin", functional.softmin, dim=None)
LogSoftmax = _made("LogSoftmax", functional.log_softmax, dim=None)


class Threshold(Activation):
    """`functional.threshold` as a module: Threshold(threshold, value, inplace=False)."""

    function = staticmethod(functional.threshold)
    arguments: ClassVar[dict] = {"threshold": None, "value": None, "inplace": False}

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__(threshold, value, inplace)


class Softmax2d(Module):
    """`softmax` over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input):
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return functional.softmax(input, -3)


class PReLU(Module):
    """`functional.prelu` with a weight that is learned, for all or for each channel.

    >>> jaxgrad.nn.PReLU()(jaxgrad.tensor([-4.0])).item()
    -1.0
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = parameter((num_parameters,), device, dtype, init)

    def reset_parameters(self):
        init.constant_(self.weight, self.init)

    def forward(self, input):
        return activations.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"
