"""Initialization of parameters, as torch.nn.init: each function overwrites and returns its tensor.

`fan_in` is `shape[1]` and `fan_out` is `shape[0]`, each times the product of the other sizes.
`generator`: a `jaxgrad.Generator`, the default one if None. On the device meta nothing is drawn.
"""

from __future__ import annotations

import functools
import math
import warnings

import jax.numpy as jnp
import numpy as np

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core.tracebacks import users_stacklevel
from ..frontend import random
from ..frontend.array_creation import from_host
from ..frontend.generator import Generator
from ..late import LateModule
from ..names.missing import missing_in
from ..tape.tensor import Tensor, concrete, is_concrete, wrap
from ..tape.torch_function import api_boundary

samplers = LateModule("jaxgrad.functions.random")  # it takes longer than the rest

_LINEAR = ("linear", *(f"conv{way}{n}d" for way in ("", "_transpose") for n in (1, 2, 3)))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the gain of weights before an activation that keeps the variance of its input.

    nonlinearity: "linear", "conv1d" to "conv_transpose3d", "sigmoid", "tanh", "relu", "leaky_relu"
    or "selu". param: the slope of leaky_relu. Raises ValueError for another name or slope. Source:
    He et al., "Delving Deep into Rectifiers", 2015, equation 15, for relu and leaky_relu.

    >>> jaxgrad.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in _LINEAR or nonlinearity == "sigmoid":
        return 1
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity not in gains:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return gains[nonlinearity]


@api_boundary
@no_grad()
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill `tensor` from the uniform distribution U(a, b).

    >>> bool((jaxgrad.nn.init.uniform_(jaxgrad.empty(3), 2, 3) >= 2).all())
    True
    """
    return tensor.uniform_(a, b, generator=generator)


@api_boundary
@no_grad()
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill `tensor` from the normal distribution N(mean, std**2).

    >>> jaxgrad.nn.init.normal_(jaxgrad.empty(3), mean=2.0, std=0.0)
    tensor([2., 2., 2.])
    """
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill `tensor` from N(mean, std**2) truncated to [a, b], by inversion of the distribution
    function.

    Warns if `mean` is more than two `std` outside of [a, b].

    >>> bool((jaxgrad.nn.init.trunc_normal_(jaxgrad.empty(9), std=5.0).abs() <= 2).all())
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    return samplers.truncated_normal_(tensor, mean, std, a, b, generator)


@api_boundary
@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill `tensor` with `val`.

    >>> jaxgrad.nn.init.constant_(jaxgrad.empty(2), 3.0)
    tensor([3., 3.])
    """
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with ones.

    >>> jaxgrad.nn.init.ones_(jaxgrad.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with zeros.

    >>> jaxgrad.nn.init.zeros_(jaxgrad.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def _copy_from_numpy(tensor: Tensor, numbers) -> Tensor:
    """Overwrite `tensor` with a NumPy array."""
    values = wrap(from_host(numbers.astype(np.float32), None))
    with no_grad():
        return tensor.copy_(values)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on the diagonal and zeros elsewhere.

    Raises ValueError unless `tensor` has two dimensions.

    >>> jaxgrad.nn.init.eye_(jaxgrad.empty(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    return _copy_from_numpy(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it maps as many channels as possible to themselves.

    tensor: (out, in, *kernel) of three to five dimensions. groups: initialize each group this way.
    Raises ValueError for another number of dimensions, or if `groups` does not divide `out`.

    >>> jaxgrad.nn.init.dirac_(jaxgrad.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    if tensor.is_meta:
        return tensor
    channels = tensor.shape[0] // groups
    numbers = np.zeros(tensor.shape)
    middle = tuple(size // 2 for size in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(channels, tensor.shape[1])):
            numbers[(group * channels + channel, channel, *middle)] = 1
    return _copy_from_numpy(tensor, numbers)


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    receptive_field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * receptive_field, tensor.shape[0] * receptive_field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill `tensor` from U(-a, a), `a = gain * sqrt(6 / (fan_in + fan_out))`.

    Raises ValueError for fewer than two dimensions.
    Source: Glorot and Bengio, "Understanding the Difficulty of Training Deep Networks", 2010.

    >>> bool((jaxgrad.nn.init.xavier_uniform_(jaxgrad.empty(3, 3)).abs() <= 1).all())
    True
    """
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` from N(0, std**2), `std = gain * sqrt(2 / (fan_in + fan_out))`.

    Errors and source are those of `xavier_uniform_`.

    >>> jaxgrad.nn.init.xavier_normal_(jaxgrad.empty(3, 3)).shape
    torch.Size([3, 3])
    """
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


@api_boundary
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill `tensor` from U(-b, b), `b = gain * sqrt(3 / fan)`.

    a: the slope of the leaky_relu after this layer. mode: "fan_in" keeps the variance of
    activations, "fan_out" that of gradients. nonlinearity: as for `calculate_gain`. Raises
    ValueError for fewer than two dimensions, another mode or nonlinearity; warns if `tensor` is
    empty. Source: He et al., "Delving Deep into Rectifiers", 2015.

    >>> bool((jaxgrad.nn.init.kaiming_uniform_(jaxgrad.empty(3, 6)).abs() <= 1).all())
    True
    """
    if not tensor.numel():
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=users_stacklevel())
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / fan)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill `tensor` from N(0, std**2), `std = gain / sqrt(fan)`.

    Arguments, errors and source are those of `kaiming_uniform_`.

    >>> jaxgrad.nn.init.kaiming_normal_(jaxgrad.empty(3, 6)).shape
    torch.Size([3, 6])
    """
    if not tensor.numel():
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(fan), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill `tensor`, flattened to two dimensions, with a random (semi-)orthogonal matrix times
    `gain`.

    The matrix is the factor Q of the QR decomposition of a normal matrix.
    Raises ValueError for fewer than two dimensions.
    Source: Saxe et al., "Exact Solutions to the Nonlinear Dynamics of Learning", 2013.

    >>> q = jaxgrad.nn.init.orthogonal_(jaxgrad.empty(2, 3))
    >>> bool(((q @ q.t() - jaxgrad.eye(2)).abs() < 1e-5).all())
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor.numel() or tensor.is_meta:
        return tensor
    rows = tensor.shape[0]
    drawn = tensor.new_empty(rows, tensor.numel() // rows).normal_(0, 1, generator=generator)
    if not is_concrete(drawn):
        return _traced_orthogonal(tensor, drawn, gain)
    numbers = np.asarray(concrete(drawn, "orthogonal_()"))
    wide = numbers.astype(jnp.promote_types(numbers.dtype, jnp.float32))
    q, r = np.linalg.qr(wide.T if rows < wide.shape[1] else wide)
    q = q * np.sign(np.diagonal(r))
    matrix = np.array(q.T if rows < wide.shape[1] else q, order="C")
    with no_grad():
        return tensor.copy_(wrap(from_host(matrix.reshape(tensor.shape)))).mul_(gain)


def _traced_orthogonal(tensor, drawn, gain):
    is_wide = drawn.shape[0] < drawn.shape[1]
    q, r = ops.linalg_qr(drawn.mT if is_wide else drawn)
    q = q * r.diagonal().sign()
    with no_grad():
        return tensor.copy_((q.mT if is_wide else q).reshape(tensor.shape)).mul_(gain)


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fill a matrix from N(0, std**2), and zero a fraction `sparsity` of each column.

    Raises ValueError unless `tensor` has two dimensions.
    Source: Martens, "Deep Learning via Hessian-Free Optimization", 2010.

    >>> int((jaxgrad.nn.init.sparse_(jaxgrad.empty(4, 1), sparsity=0.5) == 0).sum())
    2
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    rows, columns = tensor.shape
    count = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        if not columns:
            return tensor
        # drawn from the default generator, as in PyTorch
        places = ops.stack([random.randperm(rows)[:count] for _ in range(columns)], 1)
        return tensor.scatter_(0, places, 0.0)


# ---- the names of early PyTorch


def _older(function):
    """Return a function under its older name, without the underscore, which warns."""
    new = function.__name__
    old = new[:-1]

    @functools.wraps(function)
    def call(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = old
    example = "".join((function.__doc__ or "").partition(">>>")[1:])
    doc = f"Call `{new}`, the newer name, after a FutureWarning; see there."
    call.__doc__ = f"{doc}\n\n    {example}"
    return call


constant = _older(constant_)
dirac = _older(dirac_)
eye = _older(eye_)
kaiming_normal = _older(kaiming_normal_)
kaiming_uniform = _older(kaiming_uniform_)
normal = _older(normal_)
orthogonal = _older(orthogonal_)
sparse = _older(sparse_)
uniform = _older(uniform_)
xavier_normal = _older(xavier_normal_)
xavier_uniform = _older(xavier_uniform_)

# PyTorch's functions that fill a tensor without a record
_no_grad_uniform_, _no_grad_normal_, _no_grad_fill_ = uniform_, normal_, constant_
_no_grad_zero_ = zeros_


def _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=None):
    """`trunc_normal_`, all of whose numbers are needed."""
    return trunc_normal_(tensor, mean, std, a, b, generator)


__getattr__ = missing_in(__name__)
