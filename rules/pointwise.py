"""Elementwise functions: exponential, trigonometric, rounding, bounds, complex numbers, copies."""

import builtins
import functools
import math
import warnings

import jax.numpy as jnp
from jax import lax

from jaxgrad.core import branch_cuts, dtypes, promotion
from jaxgrad.core.primitive import op

# marks a family of elementwise operators, whose results have the strides of their operands
POINTWISE = True

_real = promotion.without(dtypes.COMPLEX)
_inexact = promotion.without(dtypes.BOOLEAN, dtypes.INTEGRAL)
_real_inexact = promotion.without(dtypes.BOOLEAN, dtypes.INTEGRAL, dtypes.COMPLEX)


def _in_single(function):
    return promotion.floating(promotion.in_single(function))


def conj(self):
    return lax.conj(self) if jnp.iscomplexobj(self) else self


conj.returns_self = True
conj_physical = conj


def with_real(self, value):
    """`self` with the real part `value`."""
    return lax.complex(value, lax.imag(self)) if jnp.iscomplexobj(self) else value


def with_imag(self, value):
    """`self` with the imaginary part `value`."""
    return lax.complex(lax.real(self), value)


# ---- exponentials and logarithms

exp = promotion.floating(lax.exp)
exp2 = _in_single(lax.exp2)
expm1 = _in_single(lax.expm1)
log = promotion.floating(lax.log)
log1p = promotion.floating(lax.log1p)
log2 = _in_single(jnp.log2)
log10 = _in_single(jnp.log10)
sigmoid = _in_single(lax.logistic)


@promotion.common
@promotion.in_single
def sigmoid_backward(grad_output, output):
    return grad_output * conj((1 - output) * output)


@promotion.floating
@_real
def xlogy(self, other):
    product = self * lax.log(other)
    return jnp.where(jnp.isnan(other), jnp.nan, jnp.where(self == 0, 0, product))


def xlogy_backward(grad, self, other):
    """`grad * log(other)`; 0 where `self` is 0 and `other <= 0`: there the value is 0 by
    definition.
    """
    self, other = promotion.unify_floating(self, other)
    defined = (self == 0) & (other <= 0)
    return jnp.where(defined, 0, grad * lax.log(jnp.where(defined, 1, other)))


@promotion.common
@promotion.in_single
@_inexact
def logaddexp(self, other):
    return log_of_sum(self, other)


def log_of_sum(self, other):
    """`log(exp(self) + exp(other))`; for complex numbers with the imaginary part of the larger one,
    which the logarithm alone would bring between -pi and pi.
    """
    if not jnp.iscomplexobj(self):
        return jnp.logaddexp(self, other)
    is_least = self.real < other.real
    least, greatest = jnp.where(is_least, self, other), jnp.where(is_least, other, self)
    value = greatest + lax.log1p(lax.exp(least - greatest))
    is_same = jnp.isinf(greatest.real) & (least.real == greatest.real)
    return jnp.where(is_same, jnp.logaddexp(self, other), value)


@promotion.common
@promotion.in_single
@_real_inexact
def logaddexp2(self, other):
    return jnp.logaddexp2(self, other)


@promotion.floating
@promotion.in_single
@_real
def _logit(self, *, low, high):
    bounded = jnp.where(self < low, low, jnp.where(self > high, high, self)).astype(self.dtype)
    return lax.log(bounded / (1 - bounded))


def logit(self, eps=None):
    low, high = _bounds_of_logit(eps, jnp.inf)
    return _logit(self, low=low, high=high)


def _bounds_of_logit(eps, distance):
    """`eps` and `1 - eps`; without a bound, which a negative `eps` means too, numbers at that
    distance from 0 and 1.
    """
    if eps is None:
        return -distance, 1 + distance
    return jnp.where(eps < 0, -distance, eps), jnp.where(eps < 0, 1 + distance, 1 - eps)


def logit_backward(grad, self, eps):
    """`grad / (x * (1 - x))`; NaN outside of [0, 1], with `eps` 0 outside of [eps, 1 - eps]."""
    low, high = _bounds_of_logit(eps, 0)
    inside = (self >= low) & (self <= high)
    safe = jnp.where(inside, self, 0.5)
    outside = jnp.nan if eps is None else jnp.where(eps < 0, jnp.nan, 0)
    return jnp.where(inside, grad / (safe * (1 - safe)), outside)


# ---- trigonometric and hyperbolic functions

sin = promotion.floating(lax.sin)
cos = promotion.floating(lax.cos)
tan = promotion.floating(lax.tan)
asin = promotion.floating(branch_cuts.along(lax.asin, real=True))
acos = promotion.floating(branch_cuts.along(lax.acos, conjugate=True))
atan = promotion.floating(lax.atan)
sinh = promotion.floating(lax.sinh)
cosh = promotion.floating(lax.cosh)
tanh = promotion.floating(lax.tanh)
asinh = promotion.floating(branch_cuts.along(lax.asinh, real=True))
acosh = _in_single(branch_cuts.along(lax.acosh))
atanh = promotion.floating(lax.atanh)
atan2 = promotion.floating(_real(lax.atan2))


@promotion.common
@promotion.in_single
def tanh_backward(grad_output, output):
    return grad_output * conj(1 - output * output)


@promotion.in_single
def acosh_backward(grad, self):
    """`grad / sqrt(self ** 2 - 1)`, in factors that do not overflow."""
    size = self if jnp.iscomplexobj(self) else lax.abs(self)
    # added to the real part alone: 1 + 0j would make an imaginary -0, the side of the cut, 0
    below, above = (with_real(size, real(size) + step) for step in (-1, 1))
    return grad * conj(lax.rsqrt(below) * lax.rsqrt(above))


@promotion.in_single
def asinh_backward(grad, self):
    """`grad / sqrt(self ** 2 + 1)`; the square of 256 overflows in float16."""
    return grad * conj(lax.rsqrt(1 + self * self))


@promotion.floating
@promotion.in_single
def sinc(self):
    angle = jnp.where(self == 0, 1, math.pi * self)
    return jnp.where(self == 0, 1, lax.sin(angle) / angle)


@promotion.in_single
def sinc_backward(grad, self):
    """`grad * (cos(p) - sin(p) / p) / x` with `p = pi * x`; near 0, where that loses digits and has
    no second derivative, the Taylor series.
    """
    angle = math.pi * self
    is_small = lax.abs(angle) < 1
    safe = jnp.where(is_small, 1, angle)
    slope = (op.cos(safe) - op.sin(safe) / safe) / safe
    near = jnp.where(is_small, angle, 0)
    # the sum of (-1) ** k * 2k / (2k + 1)! * p ** (2k - 1)
    terms = [(-1) ** k * 2 * k / math.factorial(2 * k + 1) for k in range(1, 11)]
    series = near * functools.reduce(lambda total, c: total * near**2 + c, reversed(terms))
    return grad * conj(math.pi * jnp.where(is_small, series, slope))


def atan2_backward(grad, self, other):
    """The gradients `grad * other / r ** 2` and `-grad * self / r ** 2`; 0 at the origin.

    Two divisions by `r` neither overflow nor underflow, as `r ** 2` can.
    """
    origin = (self == 0) & (other == 0)
    x = jnp.where(origin, 1, other)
    radius = op.hypot(self, x)
    slopes = (x / radius / radius, -(self / radius) / radius)
    return tuple(jnp.where(origin, 0, grad * slope) for slope in slopes)


@promotion.common
@promotion.in_single
@_real_inexact
def hypot(self, other):
    return jnp.hypot(self, other)


# ---- error functions

erf = promotion.floating(_real(lax.erf))
erfc = promotion.floating(_real(lax.erfc))
erfinv = promotion.floating(_real(lax.erf_inv))

# ---- Bessel functions


@promotion.floating
@promotion.in_single
@_real
def i0(self):
    return lax.bessel_i0e(self) * lax.exp(lax.abs(self))


@promotion.in_single
def i0_backward(grad, self):
    """`grad` times the modified Bessel function of order 1."""
    return grad * (lax.bessel_i1e(self) * lax.exp(op.abs(self)))


# ---- bounds


def _bounded(self, lower, upper):
    present = [bound for bound in (lower, upper) if bound is not None]
    if not present:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    return _clamp(self, lower, upper)


@promotion.common
def _clamp(self, lower, upper):
    if jnp.iscomplexobj(self):
        raise NotImplementedError("clamp is not supported for complex types")
    at_least = self if lower is None else lax.max(self, lower)
    return at_least if upper is None else lax.min(at_least, upper)


def clamp(self, min=None, max=None):
    return _bounded(self, min, max)


def clamp_min(self, min):
    return _bounded(self, min, None)


def clamp_max(self, max):
    return _bounded(self, None, max)


clamp.precondition = promotion.refuse_overflow
clamp_min.precondition = clamp_max.precondition = promotion.refuse_overflow


def clamp_backward(grad, self, lower, upper):
    """`grad` where the input is within the bounds or at one of them, else 0."""
    inside = jnp.ones(grad.shape, bool)
    if lower is not None:
        inside &= self >= lower
    if upper is not None:
        inside &= self <= upper
    return jnp.where(inside, grad, 0)


def clamp_backward_min(grad, self, lower, upper):
    """`grad` where the lower bound is the result; where the bounds cross it is the upper one."""
    chosen = self < lower
    return jnp.where(chosen if upper is None else chosen & (lower < upper), grad, 0)


def clamp_backward_max(grad, self, lower, upper):
    """`grad` where the upper bound is the result."""
    chosen = self > upper
    return jnp.where(chosen if lower is None else chosen | (upper < lower), grad, 0)


def _choice(name, choose):
    @functools.wraps(choose)
    def checked(self, other):
        if jnp.iscomplexobj(self):
            raise RuntimeError(f"{name} not implemented for complex tensors.")
        return choose(self, other)

    return promotion.common(checked)


maximum = _choice("maximum", lax.max)
minimum = _choice("minimum", lax.min)
fmax = _choice("fmax", jnp.fmax)
fmin = _choice("fmin", jnp.fmin)


def halve_ties(grad, tie, lost):
    """The gradient of an operand of `maximum` or `minimum`: half where `tie`, 0 where `lost`."""
    return jnp.where(lost, 0, jnp.where(tie, grad / 2, grad))


def fmax_selects_self(self, other):
    """Where `fmax` returns `self`."""
    return (self >= other) | jnp.isnan(other)


def fmin_selects_self(self, other):
    """Where `fmin` returns `self`."""
    return (self <= other) | jnp.isnan(other)


# ---- rounding


def _rounding(name, rounded):
    def checked(self):
        if jnp.iscomplexobj(self):
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        promotion.refuse(name, self, dtypes.BOOLEAN)
        return self if jnp.issubdtype(self.dtype, jnp.integer) else rounded(self)

    return checked


ceil = _rounding("ceil", lax.ceil)
floor = _rounding("floor", lax.floor)
trunc = _rounding("trunc", jnp.trunc)
round = _rounding("round", lambda self: lax.round(self, lax.RoundingMethod.TO_NEAREST_EVEN))


@promotion.in_single
@_real_inexact
def round_decimals(self, *, decimals):
    if decimals == 0:
        return round(self)
    scale = self.dtype.type(10.0 ** builtins.abs(decimals))
    return round(self * scale) / scale if decimals > 0 else round(self / scale) * scale


@_real_inexact
def frac(self):
    return self - trunc(self)


def nan_to_num(self, nan=None, posinf=None, neginf=None):
    if jnp.iscomplexobj(self):
        parts = (nan_to_num(part, nan, posinf, neginf) for part in (self.real, self.imag))
        return lax.complex(*parts)
    if not jnp.issubdtype(self.dtype, jnp.inexact):
        return self
    limits = jnp.finfo(self.dtype)
    finite = jnp.where(self == jnp.inf, limits.max if posinf is None else posinf, self)
    finite = jnp.where(self == -jnp.inf, limits.min if neginf is None else neginf, finite)
    return jnp.where(jnp.isnan(self), 0 if nan is None else nan, finite).astype(self.dtype)


def nan_to_num_backward(grad, self):
    """`grad` where the input is finite, else 0; for complex numbers separately for each part."""
    if not jnp.iscomplexobj(self):
        return jnp.where(jnp.isfinite(self), grad, 0)
    parts = (jnp.where(jnp.isfinite(part(self)), part(grad), 0) for part in (jnp.real, jnp.imag))
    return lax.complex(*parts)


# ---- mixtures


def lerp(self, end, weight):
    _check_same_dtype(self, "end", end)
    if getattr(weight, "ndim", 0):  # a number of any dtype may be one
        _check_same_dtype(self, "weight", weight)
    promotion.refuse("lerp", self, dtypes.BOOLEAN, dtypes.INTEGRAL)
    return _lerp(self, end, weight)


def _check_same_dtype(self, name, operand):
    if operand.dtype != self.dtype:
        first, second = (dtypes.from_numpy(tensor.dtype) for tensor in (self, operand))
        raise RuntimeError(
            f"expected dtype {first.name} for `{name}` but got dtype {second.name}: lerp does not "
            "promote dtypes; convert one of them"
        )


@promotion.in_single
@promotion.common
def _lerp(self, end, weight):
    """Computed from the nearer end, so that both ends are exact."""
    difference = end - self
    near_end = lax.abs(weight) >= 0.5
    return jnp.where(near_end, end - difference * (1 - weight), self + weight * difference)


def where(condition, self, other):
    if condition.dtype not in (bool, jnp.uint8):
        name = dtypes.from_numpy(condition.dtype).scalar_type
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {name}: "
            "compare it first"
        )
    arrays = promotion.broadcast("where", condition, *promotion.unify(self, other))
    return jnp.where(arrays[0].astype(bool), *arrays[1:])


def _refuse_overflow(condition, self, other):
    promotion.refuse_overflow(self, other)


_refuse_overflow.of_integers = True
where.precondition = _refuse_overflow


# ---- complex numbers


def real(self):
    return lax.real(self) if jnp.iscomplexobj(self) else self


real.returns_self = True


def imag(self):
    if not jnp.iscomplexobj(self):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return lax.imag(self)


def imag_backward(grad):
    return lax.complex(jnp.zeros_like(grad), grad)


def view_as_real(self):
    """Real and imaginary part in a new last dimension of size 2."""
    if not jnp.iscomplexobj(self):
        raise RuntimeError(
            "view_as_real is only supported for complex tensors, but got one of dtype "
            f"{dtypes.from_numpy(self.dtype)}"
        )
    return jnp.stack([lax.real(self), lax.imag(self)], -1)


def view_as_complex(self):
    """The inverse of `view_as_real`."""
    dtype = dtypes.from_numpy(self.dtype)
    if dtype is dtypes.float16:
        raise dtypes.HalfComplexResult
    if dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a "
            f"tensor of scalar type: {dtype.scalar_type}"
        )
    if not self.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions: view_as_complex got 0-d")
    if self.shape[-1] != 2:
        raise RuntimeError(
            "Tensor must have a last dimension of size 2: view_as_complex got shape "
            f"{list(self.shape)}"
        )
    return lax.complex(self[..., 0], self[..., 1])


@promotion.floating
def angle(self):
    if jnp.iscomplexobj(self):
        return lax.atan2(self.imag, self.real)
    return jnp.where(jnp.isnan(self), self, jnp.where(self < 0, math.pi, 0).astype(self.dtype))


def angle_backward(grad, self):
    """`grad * i / conj(z)`; 0 at 0 and for real numbers."""
    if not jnp.iscomplexobj(self):
        return jnp.zeros_like(grad)
    safe = jnp.where(self == 0, 1, self)
    return jnp.where(self == 0, 0, grad * 1j / conj(safe))


# ---- copies


def clone(self, *, memory_format=None):
    return self


def to(self, dtype, non_blocking=False, copy=False):
    if jnp.iscomplexobj(self) and dtype.category < dtypes.COMPLEX:
        warnings.warn(
            "Casting complex values to real discards the imaginary part", UserWarning, stacklevel=2
        )
        self = self.real if dtype.category != dtypes.BOOLEAN else self
    return promotion.cast(self, dtype)
