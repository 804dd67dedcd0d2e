"""Activations: as functions, and as layers that call them.

Unless one says otherwise, the input has any shape and a floating-point dtype, and the output has
both. `inplace=True` overwrites the input.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

from .. import ops
from ..core import dtypes, promotion
from ..core.device import DeviceLike, contiguous_format
from ..core.tracebacks import users_stacklevel
from ..frontend.factories import empty_like, zeros_like
from ..functions import activation as activations
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary, names_defaults
from . import functional, init
from .function_layer import REQUIRED, FunctionLayer
from .module import Module
from .parameter import new_parameter


def _activation(name, inplace, input, *args):
    """Call the operator `name`, or its in-place variant."""
    return getattr(ops, f"{name}_" if inplace else name)(input, *args)


@names_defaults
@api_boundary
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `max(input, 0)` elementwise; the gradient at 0 is 0.

    input: any shape, real dtype; the result has both. inplace: overwrite `input`.
    Source: Nair and Hinton, "Rectified Linear Units Improve Restricted Boltzmann Machines", 2010.

    >>> F.relu(jaxgrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _activation("relu", inplace, input)


@api_boundary
def relu_(input: Tensor) -> Tensor:
    """Apply `relu` in place and return `input`.

    >>> F.relu_(jaxgrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return relu(input, inplace=True)


@api_boundary
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Apply `leaky_relu` in place and return `input`.

    >>> F.leaky_relu_(jaxgrad.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    return leaky_relu(input, negative_slope, inplace=True)


@api_boundary
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Apply `elu` in place and return `input`.

    >>> F.elu_(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return elu(input, alpha, inplace=True)


@api_boundary
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Apply `hardtanh` in place and return `input`.

    >>> F.hardtanh_(jaxgrad.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    return hardtanh(input, min_val, max_val, inplace=True)


@api_boundary
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Apply `celu` in place and return `input`.

    >>> F.celu_(jaxgrad.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    return celu(input, alpha, inplace=True)


@api_boundary
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Apply `threshold` in place and return `input`.

    >>> F.threshold_(jaxgrad.tensor([-1.0, 2.0]), 0.5, 7.0)
    tensor([7., 2.])
    """
    return _activation("threshold", True, input, threshold, value)


@names_defaults
@api_boundary
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return `input` where `input > threshold`, else `value`.

    input: any shape, real dtype; the result has both. inplace: overwrite `input`.
    The gradient is 0 where `value` is returned.

    >>> F.threshold(jaxgrad.tensor([-1.0, 2.0]), 0.5, 7.0)
    tensor([7., 2.])
    """
    return _activation("threshold", inplace, input, threshold, value)


@names_defaults
@api_boundary
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return `input` where it is positive, else `negative_slope * input`.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    The gradient at 0 is `negative_slope`.
    Source: Maas et al., "Rectifier Nonlinearities Improve Neural Network Acoustic Models", 2013.

    >>> F.leaky_relu(jaxgrad.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    return _activation("leaky_relu", inplace, input, negative_slope)


@names_defaults
@api_boundary
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Return `min(max(input, min_val), max_val)` elementwise; the gradient at both bounds is 0.

    input: any shape, real dtype; the result has both. inplace: overwrite `input`.
    Raises ValueError if `min_val > max_val`.

    >>> F.hardtanh(jaxgrad.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val: {min_val} > {max_val}")
    return _activation("hardtanh", inplace, input, min_val, max_val)


@names_defaults
@api_boundary
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `min(max(input, 0), 6)` elementwise; the gradient at 0 and 6 is 0.

    input: any shape, real dtype; the result has both. inplace: overwrite `input`.
    Source: Krizhevsky, "Convolutional Deep Belief Networks on CIFAR-10", 2010.

    >>> F.relu6(jaxgrad.tensor([-1.0, 7.0]))
    tensor([0., 6.])
    """
    return hardtanh(input, 0, 6, inplace)


@names_defaults
@api_boundary
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `input * sigmoid(input)` elementwise, also called swish.

    input: any shape, floating-point or complex dtype; the result has both. inplace: overwrite
    `input`. Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.

    >>> F.silu(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    return _activation("silu", inplace, input)


@names_defaults
@api_boundary
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return `input` where it is positive, else `alpha * (exp(input) - 1)`.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Source: Clevert et al., "Fast and Accurate Deep Network Learning by ELUs", 2015.

    >>> F.elu(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _activation("elu", inplace, input, alpha)


@names_defaults
@api_boundary
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return `max(0, input) + min(0, alpha * (exp(input / alpha) - 1))`, which has no kink at 0.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Raises RuntimeError if `alpha` is 0.
    Source: Barron, "Continuously Differentiable Exponential Linear Units", 2017.

    >>> F.celu(jaxgrad.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    return _activation("celu", inplace, input, alpha)


@names_defaults
@api_boundary
def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtypes.dtype | None = None
) -> Tensor:
    """Return `exp(input) / exp(input).sum(dim, keepdim=True)`, computed without overflow.

    input: any shape, floating-point dtype, converted to `dtype` first; the result has its shape.
    dim: the dimension that sums to 1; without it PyTorch's implicit choice and a warning.
    Raises IndexError if `dim` is out of range.

    >>> F.softmax(jaxgrad.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    dim = _implicit_dim("softmax", input) if dim is None else dim
    return ops.softmax(input, dim, dtype)


@names_defaults
@api_boundary
def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtypes.dtype | None = None
) -> Tensor:
    """Return `softmax(-input, dim)`.

    Arguments and errors are those of `softmax`.

    >>> F.softmin(jaxgrad.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    dim = _implicit_dim("softmin", input) if dim is None else dim
    return ops.softmax(-input, dim, dtype)


@names_defaults
@api_boundary
def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtypes.dtype | None = None
) -> Tensor:
    """Return `input - log(exp(input).sum(dim, keepdim=True))`, computed without overflow.

    Arguments and errors are those of `softmax`.

    >>> F.log_softmax(jaxgrad.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    dim = _implicit_dim("log_softmax", input) if dim is None else dim
    return ops.log_softmax(input, dim, dtype)


def _implicit_dim(name, input):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=users_stacklevel(),
    )
    return 0 if input.ndim in (0, 1, 3) else 1


def in_single(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`function`, which maps tensors to one tensor, computed in float32 where PyTorch would promote
    them to half precision, and rounded once: the tensor form of `promotion.in_single`.
    """

    @functools.wraps(function)
    def computed(*tensors):
        dtype = promotion.result_type(*tensors)
        if dtype not in (dtypes.float16, dtypes.bfloat16):
            return function(*tensors)
        return function(*(tensor.float() for tensor in tensors)).to(dtype)

    return computed


@in_single
def _softsign(input):
    return input / (input.abs() + 1)


@api_boundary
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `min(max(input + 3, 0), 6) / 6` elementwise, a piecewise linear sigmoid.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Source: Howard et al., "Searching for MobileNetV3", 2019.

    >>> F.hardsigmoid(jaxgrad.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _activation("hardsigmoid", inplace, input)


@api_boundary
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `input * hardsigmoid(input)` elementwise.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Source: Howard et al., "Searching for MobileNetV3", 2019.

    >>> F.hardswish(jaxgrad.tensor([-4.0, 1.5, 4.0]))
    tensor([-0.0000,  1.1250,  4.0000])
    """
    return _activation("hardswish", inplace, input)


@names_defaults
@api_boundary
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `input * tanh(softplus(input))` elementwise.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Source: Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019.

    >>> F.mish(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """
    return _activation("mish", inplace, input)


@api_boundary
def softsign(input: Tensor) -> Tensor:
    """Return `input / (1 + |input|)` elementwise.

    input: any shape, floating-point dtype; the result has both.
    Source: Glorot and Bengio, "Understanding the Difficulty of Training Deep Networks", 2010.

    >>> F.softsign(jaxgrad.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return _softsign(input)


@api_boundary
def tanhshrink(input: Tensor) -> Tensor:
    """Return `input - tanh(input)` elementwise.

    input: any shape, floating-point or complex dtype; the result has both.

    >>> F.tanhshrink(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """
    return input - input.tanh()


@names_defaults
@api_boundary
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `scale * elu(input, alpha)` with `scale = 1.0507...` and `alpha = 1.6733...`.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    >>> F.selu(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return activations.selu_(input) if inplace else activations.selu(input)


@names_defaults
@api_boundary
def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return `input` where it is positive, else `slope * input`, with a random slope.

    Each slope is drawn from the uniform distribution between `lower` and `upper`, or is their mean
    without `training`. input: any shape, floating-point dtype; the result has both. inplace:
    overwrite `input`. Raises RuntimeError if `lower` exceeds `upper`. Source: Xu et al., "Empirical
    Evaluation of Rectified Activations in Convolutional Network", 2015.

    >>> F.rrelu(jaxgrad.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    function = activations.rrelu_ if inplace else activations.rrelu
    return function(input, lower, upper, training)


@names_defaults
@api_boundary
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Return samples of a Gumbel-softmax distribution, or of classes with their gradient.

    logits: unnormalized log-probabilities of any shape, floating point; the result has both and
    sums to 1 along `dim`. tau: the temperature, positive. hard: return 1 at the greatest sample and
    0 elsewhere, with the gradient of the samples. eps: has no effect.
    Source: Jang et al., "Categorical Reparameterization with Gumbel-Softmax", 2017.

    >>> F.gumbel_softmax(jaxgrad.tensor([100.0, 0.0]), hard=True)
    tensor([1., 0.])
    """
    if eps != 1e-10:
        warnings.warn(
            "`eps` parameter is deprecated and has no effect.", stacklevel=users_stacklevel()
        )
    unfilled = empty_like(logits.detach(), memory_format=contiguous_format)
    noise = -unfilled.exponential_().log()
    soft = ops.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = soft.detach().argmax(dim, keepdim=True)
    one = zeros_like(soft.detach()).scatter(dim, chosen, 1.0)
    return one - soft.detach() + soft


# layers


class Activation(FunctionLayer):
    """A function of one tensor; `repr` shows its options, `inplace` only if it is set."""

    def extra_repr(self) -> str:
        options = {name: getattr(self, name) for name in self._names}
        return ", ".join(
            f"{name}={value!r}" for name, value in options.items() if name != "inplace" or value
        )


class ReLU(Activation, function=relu, inplace=False):
    """Compute `max(x, 0)`; see `functional.relu`.

    >>> jaxgrad.nn.ReLU()(jaxgrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """


class ReLU6(Activation, function=relu6, inplace=False):
    """Compute `min(max(x, 0), 6)`; see `functional.relu6`.

    >>> jaxgrad.nn.ReLU6()(jaxgrad.tensor([-1.0, 7.0]))
    tensor([0., 6.])
    """

    def __init__(self, inplace: bool = False):
        super().__init__(inplace)
        self.min_val, self.max_val = 0.0, 6.0


class SELU(Activation, function=selu, inplace=False):
    """Compute `scale * elu(x, alpha)` with the constants of self-normalizing networks; see
    `functional.selu`.

    >>> jaxgrad.nn.SELU()(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """


class SiLU(Activation, function=silu, inplace=False):
    """Compute `x * sigmoid(x)`; see `functional.silu`.

    >>> jaxgrad.nn.SiLU()(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """


class Mish(Activation, function=mish, inplace=False):
    """Compute `x * tanh(softplus(x))`; see `functional.mish`.

    >>> jaxgrad.nn.Mish()(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """


class Hardsigmoid(Activation, function=hardsigmoid, inplace=False):
    """Compute `min(max(x + 3, 0), 6) / 6`; see `functional.hardsigmoid`.

    >>> jaxgrad.nn.Hardsigmoid()(jaxgrad.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """


class Hardswish(Activation, function=hardswish, inplace=False):
    """Compute `x * min(max(x + 3, 0), 6) / 6`; see `functional.hardswish`.

    >>> jaxgrad.nn.Hardswish()(jaxgrad.tensor([-4.0, 1.5, 4.0]))
    tensor([-0.0000, 1.1250, 4.0000])
    """


class ELU(Activation, function=elu, alpha=1.0, inplace=False):
    """Compute `x` where it is positive, else `alpha * (exp(x) - 1)`; see `functional.elu`.

    >>> jaxgrad.nn.ELU()(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """


class CELU(Activation, function=celu, alpha=1.0, inplace=False):
    """Compute `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`; see `functional.celu`.

    >>> jaxgrad.nn.CELU(alpha=2.0)(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """


class LeakyReLU(Activation, function=leaky_relu, negative_slope=0.01, inplace=False):
    """Compute `x` where it is positive, else `negative_slope * x`; see `functional.leaky_relu`.

    >>> jaxgrad.nn.LeakyReLU(0.5)(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """


class RReLU(Activation, function=rrelu, lower=1 / 8, upper=1 / 3, inplace=False):
    """Compute `x` where it is positive, else `slope * x`; see `functional.rrelu`.

    The slopes are random while training, else their mean.

    >>> jaxgrad.nn.RReLU(0.1, 0.3).eval()(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input, training=self.training)


class Hardtanh(Activation, function=hardtanh, min_val=-1.0, max_val=1.0, inplace=False):
    """Compute `min(max(x, min_val), max_val)`; see `functional.hardtanh`.

    >>> jaxgrad.nn.Hardtanh()(jaxgrad.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ):
        limits = {"min_val": (min_val, min_value), "max_val": (max_val, max_value)}
        chosen = []
        for name, (value, old) in limits.items():
            if old is not None:
                warnings.warn(
                    f"keyword argument `{name}ue` is deprecated and renamed to `{name}`",
                    FutureWarning,
                    stacklevel=users_stacklevel(),
                )
            chosen.append(value if old is None else old)
        low, high = chosen
        if not high > low:
            raise AssertionError(f"max_val ({high}) must be greater than min_val ({low})")
        super().__init__(*chosen, inplace)


class GELU(Activation, function=ops.gelu, approximate="none"):
    """Compute `x * Phi(x)`, Phi the normal distribution function, or with `approximate="tanh"` its
    approximation; see `functional.gelu`.

    >>> jaxgrad.nn.GELU()(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """


class GLU(Activation, function=ops.glu, dim=-1):
    """Compute `a * sigmoid(b)`, a and b the halves of `x` along `dim`; see `functional.glu`.

    >>> jaxgrad.nn.GLU()(jaxgrad.tensor([3.0, 0.0]))
    tensor([1.5000])
    """


class Softplus(Activation, function=ops.softplus, beta=1.0, threshold=20.0):
    """Compute `log(1 + exp(beta * x)) / beta`, and `x` where `beta * x > threshold`; see
    `functional.softplus`.

    >>> jaxgrad.nn.Softplus()(jaxgrad.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """


class Hardshrink(Activation, function=ops.hardshrink, lambd=0.5):
    """Compute `x` where `|x| > lambd`, else 0; see `functional.hardshrink`.

    >>> jaxgrad.nn.Hardshrink()(jaxgrad.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(Activation, function=ops.softshrink, lambd=0.5):
    """Compute `sign(x) * max(|x| - lambd, 0)`; see `functional.softshrink`.

    >>> jaxgrad.nn.Softshrink()(jaxgrad.tensor([-1.0, 0.2]))
    tensor([-0.5000,  0.0000])
    """

    def extra_repr(self) -> str:
        return str(self.lambd)


class Sigmoid(Activation, function=ops.sigmoid):
    """Compute `1 / (1 + exp(-x))`; see `functional.sigmoid`.

    >>> jaxgrad.nn.Sigmoid()(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """


class Tanh(Activation, function=ops.tanh):
    """Compute `tanh(x)`; see `functional.tanh`.

    >>> jaxgrad.nn.Tanh()(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """


class LogSigmoid(Activation, function=ops.log_sigmoid):
    """Compute `log(1 / (1 + exp(-x)))`; see `functional.logsigmoid`.

    >>> jaxgrad.nn.LogSigmoid()(jaxgrad.tensor([0.0, 1.0]))
    tensor([-0.6931, -0.3133])
    """


class Softsign(Activation, function=softsign):
    """Compute `x / (1 + |x|)`; see `functional.softsign`.

    >>> jaxgrad.nn.Softsign()(jaxgrad.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """


class Tanhshrink(Activation, function=tanhshrink):
    """Compute `x - tanh(x)`; see `functional.tanhshrink`.

    >>> jaxgrad.nn.Tanhshrink()(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """


class Softmax(Activation, function=softmax, dim=None):
    """Compute `exp(x) / exp(x).sum(dim)`; see `functional.softmax`.

    >>> jaxgrad.nn.Softmax(dim=0)(jaxgrad.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """


class Softmin(Activation, function=softmin, dim=None):
    """Compute `exp(-x) / exp(-x).sum(dim)`; see `functional.softmin`.

    >>> jaxgrad.nn.Softmin(dim=0)(jaxgrad.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """


class LogSoftmax(Activation, function=log_softmax, dim=None):
    """Compute `x - log(exp(x).sum(dim))`; see `functional.log_softmax`.

    >>> jaxgrad.nn.LogSoftmax(dim=0)(jaxgrad.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """


class Threshold(
    Activation,
    function=threshold,
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

    def forward(self, input: Tensor) -> Tensor:
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

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = new_parameter((num_parameters,), device, dtype, init)

    def reset_parameters(self) -> None:
        """Set `weight` to `init`."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
