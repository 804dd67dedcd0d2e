"""Means and quantiles, differences and integrals."""

from __future__ import annotations

import numbers

import numpy as np

from .. import ops
from ..core import dtypes
from ..frontend import factories
from ..tape import mode
from ..tape.tensor import Tensor, is_concrete
from ..tape.torch_function import api_boundary
from .out import takes_exact_out, takes_out

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@takes_out
def nanmean(input: Tensor, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """Return the mean of the elements that are not NaN.

    input: a floating-point tensor of any shape.
    dim: an int or several, the dimensions to reduce; None means all. keepdim: keep them with
    extent 1. dtype: the dtype of the result. Raises RuntimeError for integers.

    >>> jaxgrad.nanmean(jaxgrad.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5000)
    """
    if input.dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{input.dtype.scalar_type}"
        )
    count = input.detach().isnan().logical_not().sum(dim, keepdim)
    return ops.nansum(input, dim, keepdim, dtype=dtype).div(count)


# quantiles


@takes_exact_out
def quantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return the quantiles of all elements, or of each row along a dimension; NaN if one is.

    input: a float32 or float64 tensor of any shape, not empty.
    q: the quantiles from 0 to 1, a number or a tensor of shape () or (n,) of the dtype of input;
    for (n,) the result has a first dimension more. dim: the dimension to reduce; None means all.
    keepdim: keep it with extent 1. interpolation: between the two nearest elements: "linear",
    "midpoint", or one of them: "lower", "higher", "nearest".

    Raises RuntimeError for other arguments.

    >>> jaxgrad.quantile(jaxgrad.tensor([1.0, 2.0, 4.0]), 0.75)
    tensor(3.)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


@takes_exact_out
def nanquantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return the quantiles of the elements that are not NaN; NaN if there are none.

    Arguments, results and errors are those of `quantile`.

    >>> jaxgrad.nanquantile(jaxgrad.tensor([1.0, float("nan"), 4.0]), 0.5)
    tensor(2.5000)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)


def _quantile(name, input, q, dim, keepdim, interpolation):
    if mode.casting.get():
        input, q = map(_single, (input, q))
    q = _checked_q(name, input, q, interpolation)
    ordered = _ordered(input, dim, keepdim)
    ranks = _ranks(ordered, q if q.ndim else q.unsqueeze(0), name.startswith("nan"))
    rounding = {"lower": ops.floor, "higher": ops.ceil, "nearest": ops.round}
    ranks = rounding.get(interpolation, lambda ranks: ranks)(ranks)
    below = ranks.to(dtypes.int64)
    values = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        between = ranks - below if interpolation == "linear" else factories.full_like(ranks, 0.5)
        values = values.lerp(ordered.gather(-1, ops.ceil(ranks).to(dtypes.int64)), between)
    # in place, since the result is no view in PyTorch
    return (
        values.squeeze_(-1) if not q.ndim else values.unsqueeze_(0).transpose_(0, -1).squeeze_(-1)
    )


def _single(value):
    """A tensor of half precision as float32, as autocast has it for quantiles."""
    is_half = isinstance(value, Tensor) and value.dtype in (dtypes.float16, dtypes.bfloat16)
    return value.to(dtypes.float32) if is_half else value


def _checked_q(name, input, q, interpolation):
    """The quantiles as a tensor, after the checks of all arguments."""
    is_number = isinstance(q, numbers.Real)
    if is_number and not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
    if is_number:
        q = factories.full((), q, dtype=input.dtype, device=input.device)
    checks = (
        (input.numel() > 0, "input tensor must be non-empty"),
        (q.ndim <= 1, f"q must be a scalar or 1D tensor, not of the shape {list(q.shape)}"),
        (
            input.dtype in (dtypes.float32, dtypes.float64),
            f"input tensor must be either float or double dtype, not {input.dtype}",
        ),
        (q.dtype == input.dtype, f"q tensor must be same dtype as the input tensor: {q.dtype}"),
        (
            interpolation in INTERPOLATIONS,
            "interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
            f"{interpolation}",
        ),
        (is_number or _is_in_range(q), "q values must be in the range [0, 1]"),
    )
    for holds, words in checks:
        if not holds:
            raise RuntimeError(f"{name}() {words}")
    return q


def _is_in_range(q):
    """Whether the quantiles are known to be no others; in a trace they are not looked at."""
    if not is_concrete(q):
        return True
    known = np.asarray(q.detach()._array)
    return bool(((known >= 0) & (known <= 1)).all())


def _ordered(input, dim, keepdim):
    """The elements sorted along the last dimension, which is the one to reduce."""
    if dim is None or not input.ndim:
        _wrapped(dim or 0, max(input.ndim, 1))
        ordered = ops.sort(input.flatten()).values
        return ordered.reshape((1,) * input.ndim + ordered.shape) if keepdim else ordered
    dim = _wrapped(dim, input.ndim)
    ordered = ops.sort(input.unsqueeze(-1).transpose(dim, -1)).values
    return ordered if keepdim else ordered.squeeze(dim)


def _ranks(ordered, q, ignores_nan):
    """The places of the quantiles among the sorted elements, between two of them."""
    is_nan = ordered.detach().isnan()
    if ignores_nan:
        ranks = q * (is_nan.logical_not().sum(-1, keepdim=True) - 1)
        return ranks.masked_fill(ranks < 0, 0)
    last = ordered.shape[-1] - 1
    return ops.masked_fill(q * last, is_nan.any(-1, keepdim=True), last)


# differences and integrals


@takes_out
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Return the differences of neighbours along a dimension, taken `n` times.

    input: a tensor of at least one dimension; booleans give whether they differ.
    prepend, append: put before and behind input, of its shape except along `dim`.

    Raises RuntimeError for other shapes and a negative `n`.

    >>> jaxgrad.diff(jaxgrad.tensor([1, 3, 2]))
    tensor([ 2, -1])
    """
    _check_diff(input, n, dim, prepend, append)
    if n == 0:
        return input.clone()
    parts = [part for part in (prepend, input, append) if part is not None]
    differences = input if len(parts) == 1 else ops.cat(parts, dim)
    subtract = ops.logical_xor if differences.dtype == dtypes.bool else ops.sub
    for _ in range(min(n, differences.shape[dim])):
        count = differences.shape[dim] - 1
        differences = subtract(differences.narrow(dim, 1, count), differences.narrow(dim, 0, count))
    return differences


def _check_diff(input, n, dim, prepend, append):
    if not input.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = _wrapped(dim, input.ndim)
    for part in (prepend, append):
        if part is None:
            continue
        if part.ndim != input.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        pairs = enumerate(zip(part.shape, input.shape, strict=True))
        if any(part_extent != extent and other != dim for other, (part_extent, extent) in pairs):
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input "
                "except along the differencing dimension, but they are "
                f"{list(part.shape)} and {list(input.shape)}"
            )


def _wrapped(dim, ndim):
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    return dim % ndim


@api_boundary
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx=None, dim: int = -1) -> Tensor:
    """Return the integral along a dimension by the trapezoidal rule.

    y: the values, of at least one dimension, not bool. x: where they are, (n,) for n values along
    `dim`, or of a shape that broadcasts with y; without it they are `dx` apart, 1 unless given.

    Raises RuntimeError for bool and for shapes that do not fit, TypeError for both x and dx.

    >>> jaxgrad.trapezoid(jaxgrad.tensor([1.0, 2.0, 4.0]))
    tensor(4.5000)
    """
    dim, widths = _widths("trapezoid", y, x, dx, dim)
    if not y.shape[dim]:
        shape = [extent for other, extent in enumerate(y.shape) if other != dim]
        return factories.zeros(shape, dtype=y.dtype, device=y.device)
    if x is None:
        ends = (y.select(dim, 0) + y.select(dim, -1)) * 0.5
        return (y.sum(dim) - ends) * widths
    return (_pairs(y, dim) * widths).sum(dim) / 2.0


@api_boundary
def trapz(y: Tensor, x: Tensor | None = None, *, dx=None, dim: int = -1) -> Tensor:
    """Return the integral along a dimension by the trapezoidal rule; another name of `trapezoid`.

    >>> jaxgrad.trapz(jaxgrad.tensor([1.0, 2.0, 4.0]), dx=2)
    tensor(9.)
    """
    return trapezoid(y, x, dx=dx, dim=dim)


@api_boundary
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx=None, dim: int = -1) -> Tensor:
    """Return the running integral along a dimension, with one element less than y.

    Arguments and errors are those of `trapezoid`.

    >>> jaxgrad.cumulative_trapezoid(jaxgrad.tensor([1.0, 2.0, 4.0]))
    tensor([1.5000, 4.5000])
    """
    dim, widths = _widths("cumulative_trapezoid", y, x, dx, dim)
    if x is None or not y.shape[dim]:
        return (_pairs(y, dim) * (widths / 2.0)).cumsum(dim)
    return (_pairs(y, dim) * widths).cumsum(dim) / 2.0


def _widths(name, y, x, dx, dim):
    """The dimension from 0, and the distances of the values: a number, or a tensor."""
    if x is not None and dx is not None:
        raise TypeError(f"{name}() received an invalid combination of arguments: both x and dx")
    if any(tensor is not None and tensor.dtype == dtypes.bool for tensor in (y, x)):
        raise RuntimeError(
            f"{name}: received a bool input for `{'y' if x is None else 'x` or `y'}`, but bool is "
            "not supported"
        )
    dim = _wrapped(dim, y.ndim)
    if x is None:
        return dim, 1 if dx is None else dx
    if not y.shape[dim]:
        return dim, 1
    if x.ndim == 1:
        if len(x) != y.shape[dim]:
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point: {len(x)} for "
                f"{y.shape[dim]}"
            )
        return dim, diff(x).reshape([-1 if other == dim else 1 for other in range(y.ndim)])
    if x.ndim < y.ndim:
        x = x.reshape([1] * (y.ndim - x.ndim) + list(x.shape))
    return dim, diff(x, dim=dim)


def _pairs(y, dim):
    """The sums of neighbours."""
    count = max(y.shape[dim] - 1, 0)
    return y.narrow(dim, 0, count) + y.narrow(dim, y.shape[dim] - count, count)


@api_boundary
def _segment_reduce(data: Tensor, reduce: str, **options) -> Tensor:
    """PyTorch's former name of `segment_reduce`."""
    return ops.segment_reduce(data, reduce, **options)


@api_boundary
def _aminmax(self, dim=None, keepdim=False):
    """Return the least and the greatest elements, as `aminmax` does."""
    return (*ops.aminmax(self, dim=dim, keepdim=keepdim),)


@api_boundary
def _is_all_true(self):
    """Return `self.all()`, for booleans."""
    return _whole("_is_all_true", self).all()


@api_boundary
def _is_any_true(self):
    """Return `self.any()`, for booleans."""
    return _whole("_is_any_true", self).any()


def _whole(name, tensor):
    if tensor.dtype is not dtypes.bool:
        raise RuntimeError(f"{name} expects a tensor of bool, but got {tensor.dtype}")
    return tensor


@api_boundary
def _logcumsumexp(self, dim):
    """Return `logcumsumexp(self, dim)`."""
    return ops.logcumsumexp(self, dim)
