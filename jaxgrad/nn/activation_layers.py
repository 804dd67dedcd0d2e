"""Activation layers: each calls a function of `functional` elementwise or along a dimension.

Unless a class says otherwise, the input has any shape and a floating-point dtype, and the output
has both. `inplace=True` overwrites the input.
"""

from __future__ import annotations

from . import activations, functional, init
from .function_layer import REQUIRED, FunctionLayer
from .layers import parameter
from .module import Module


class Activation(FunctionLayer):
    """A function of one tensor; `repr` shows its options, `inplace` only if it is set."""

    def extra_repr(self):
        options = {name: getattr(self, name) for name in self._names}
        return ", ".join(
            f"{name}={value!r}" for name, value in options.items() if name != "inplace" or value
        )


class ReLU(Activation, function=functional.relu, inplace=False):
    """Compute `max(x, 0)`; see `functional.relu`.

    >>> jaxgrad.nn.ReLU()(jaxgrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """


class ReLU6(Activation, function=functional.relu6, inplace=False):
    """Compute `min(max(x, 0), 6)`; see `functional.relu6`.

    >>> jaxgrad.nn.ReLU6()(jaxgrad.tensor([-1.0, 7.0]))
    tensor([0., 6.])
    """


class SELU(Activation, function=activations.selu, inplace=False):
    """Compute `scale * elu(x, alpha)` with the constants of self-normalizing networks; see
    `functional.selu`.

    >>> jaxgrad.nn.SELU()(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """


class SiLU(Activation, function=functional.silu, inplace=False):
    """Compute `x * sigmoid(x)`; see `functional.silu`.

    >>> jaxgrad.nn.SiLU()(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """


class Mish(Activation, function=activations.mish, inplace=False):
    """Compute `x * tanh(softplus(x))`; see `functional.mish`.

    >>> jaxgrad.nn.Mish()(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """


class Hardsigmoid(Activation, function=activations.hardsigmoid, inplace=False):
    """Compute `min(max(x + 3, 0), 6) / 6`; see `functional.hardsigmoid`.

    >>> jaxgrad.nn.Hardsigmoid()(jaxgrad.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """


class Hardswish(Activation, function=activations.hardswish, inplace=False):
    """Compute `x * min(max(x + 3, 0), 6) / 6`; see `functional.hardswish`.

    >>> jaxgrad.nn.Hardswish()(jaxgrad.tensor([-4.0, 1.5, 4.0]))
    tensor([-0.0000, 1.1250, 4.0000])
    """


class ELU(Activation, function=functional.elu, alpha=1.0, inplace=False):
    """Compute `x` where it is positive, else `alpha * (exp(x) - 1)`; see `functional.elu`.

    >>> jaxgrad.nn.ELU()(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """


class CELU(Activation, function=functional.celu, alpha=1.0, inplace=False):
    """Compute `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`; see `functional.celu`.

    >>> jaxgrad.nn.CELU(alpha=2.0)(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """


class LeakyReLU(Activation, function=functional.leaky_relu, negative_slope=0.01, inplace=False):
    """Compute `x` where it is positive, else `negative_slope * x`; see `functional.leaky_relu`.

    >>> jaxgrad.nn.LeakyReLU(0.5)(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """


class RReLU(Activation, function=activations.rrelu, lower=1 / 8, upper=1 / 3, inplace=False):
    """Compute `x` where it is positive, else `slope * x`; see `functional.rrelu`.

    The slopes are random while training, else their mean.

    >>> jaxgrad.nn.RReLU(0.1, 0.3).eval()(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """

    def forward(self, input):
        return super().forward(input, training=self.training)


class Hardtanh(Activation, function=functional.hardtanh, min_val=-1.0, max_val=1.0, inplace=False):
    """Compute `min(max(x, min_val), max_val)`; see `functional.hardtanh`.

    >>> jaxgrad.nn.Hardtanh()(jaxgrad.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """


class GELU(Activation, function=functional.gelu, approximate="none"):
    """Compute `x * Phi(x)`, Phi the normal distribution function, or with `approximate="tanh"` its
    approximation; see `functional.gelu`.

    >>> jaxgrad.nn.GELU()(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """


class GLU(Activation, function=functional.glu, dim=-1):
    """Compute `a * sigmoid(b)`, a and b the halves of `x` along `dim`; see `functional.glu`.

    >>> jaxgrad.nn.GLU()(jaxgrad.tensor([3.0, 0.0]))
    tensor([1.5000])
    """


class Softplus(Activation, function=functional.softplus, beta=1.0, threshold=20.0):
    """Compute `log(1 + exp(beta * x)) / beta`, and `x` where `beta * x > threshold`; see
    `functional.softplus`.

    >>> jaxgrad.nn.Softplus()(jaxgrad.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """


class Hardshrink(Activation, function=functional.hardshrink, lambd=0.5):
    """Compute `x` where `|x| > lambd`, else 0; see `functional.hardshrink`.

    >>> jaxgrad.nn.Hardshrink()(jaxgrad.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """


class Softshrink(Activation, function=functional.softshrink, lambd=0.5):
    """Compute `sign(x) * max(|x| - lambd, 0)`; see `functional.softshrink`.

    >>> jaxgrad.nn.Softshrink()(jaxgrad.tensor([-1.0, 0.2]))
    tensor([-0.5000,  0.0000])
    """


class Sigmoid(Activation, function=functional.sigmoid):
    """Compute `1 / (1 + exp(-x))`; see `functional.sigmoid`.

    >>> jaxgrad.nn.Sigmoid()(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """


class Tanh(Activation, function=functional.tanh):
    """Compute `tanh(x)`; see `functional.tanh`.

    >>> jaxgrad.nn.Tanh()(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """


class LogSigmoid(Activation, function=functional.logsigmoid):
    """Compute `log(1 / (1 + exp(-x)))`; see `functional.logsigmoid`.

    >>> jaxgrad.nn.LogSigmoid()(jaxgrad.tensor([0.0, 1.0]))
    tensor([-0.6931, -0.3133])
    """


class Softsign(Activation, function=activations.softsign):
    """Compute `x / (1 + |x|)`; see `functional.softsign`.

    >>> jaxgrad.nn.Softsign()(jaxgrad.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """


class Tanhshrink(Activation, function=activations.tanhshrink):
    """Compute `x - tanh(x)`; see `functional.tanhshrink`.

    >>> jaxgrad.nn.Tanhshrink()(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """


class Softmax(Activation, function=functional.softmax, dim=None):
    """Compute `exp(x) / exp(x).sum(dim)`; see `functional.softmax`.

    >>> jaxgrad.nn.Softmax(dim=0)(jaxgrad.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """


class Softmin(Activation, function=functional.softmin, dim=None):
    """Compute `exp(-x) / exp(-x).sum(dim)`; see `functional.softmin`.

    >>> jaxgrad.nn.Softmin(dim=0)(jaxgrad.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """


class LogSoftmax(Activation, function=functional.log_softmax, dim=None):
    """Compute `x - log(exp(x).sum(dim))`; see `functional.log_softmax`.

    >>> jaxgrad.nn.LogSoftmax(dim=0)(jaxgrad.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """


class Threshold(
    Activation,
    function=functional.threshold,
    threshold=REQUIRED,
    value=REQUIRED,
    inplace=False,
):
    """Compute `x` where `x > threshold`, else `value`; see `functional.threshold`.

    >>> jaxgrad.nn.Threshold(0.5, 7.0)(jaxgrad.tensor([-1.0, 2.0]))
    tensor([7., 2.])
    """


class Softmax2d(Module):
    """Compute `softmax` over the channels of an input (N, C, H, W) or (C, H, W).

    Raises ValueError for an input of another number of dimensions.

    >>> jaxgrad.nn.Softmax2d()(jaxgrad.zeros(2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input):
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return functional.softmax(input, -3)


class PReLU(Module):
    """Compute `x` where it is positive, else `weight * x`, with a learned weight.

    num_parameters: 1, or the number of channels, the size of dimension 1 of the input. init: the
    first value of `weight`, of shape (num_parameters,). See `functional.prelu`.

    >>> jaxgrad.nn.PReLU()(jaxgrad.tensor([-4.0])).item()
    -1.0
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = parameter((num_parameters,), device, dtype, init)

    def reset_parameters(self):
        """Set `weight` to `init`."""
        init.constant_(self.weight, self.init)

    def forward(self, input):
        return functional.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"
