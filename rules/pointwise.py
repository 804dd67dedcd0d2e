"""Operators that act on each element by itself, and what their formulas call."""

import builtins
import functools
import math
import warnings

import jax.numpy as jnp
from jax import lax

from jaxgrad import dtypes, promotion
from jaxgrad.primitive import op

# ---- which dtypes an operator has


def _refuse(name, array, *categories):
    """Raises PyTorch's error where the dtype of `array` is of one of the categories."""
    dtype = dtypes.from_numpy(array.dtype)
    if dtype.category in categories:
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{dtype.scalar_type}': {name} is not defined for "
            f"{dtype!r}; convert the operands first"
        )


def _without(*categories):
    """A decorator: the operator has no meaning for operands of these categories."""

    def decorate(function):
        @functools.wraps(function)
        def checked(*operands, **keywords):
            _refuse(function.__name__, operands[0], *categories)
            return function(*operands, **keywords)

        return checked

    return decorate


_real = _without(dtypes.COMPLEX)
_numeric = _without(dtypes.BOOLEAN)
_real_numeric = _without(dtypes.BOOLEAN, dtypes.COMPLEX)
_inexact = _without(dtypes.BOOLEAN, dtypes.INTEGRAL)


def _is_number(scalar):
    """Whether the value of a Scalar argument is known while tracing."""
    return isinstance(scalar, bool | int | float | complex)


def _conjugate(value):
    """The conjugate of an array or of a Scalar argument."""
    if _is_number(value):
        return value.conjugate()
    return lax.conj(value) if jnp.iscomplexobj(value) else value


def _category(value):
    return promotion.result_type(value).category


# ---- arithmetic


@promotion.common
def _sum(self, other):
    return lax.bitwise_or(self, other) if self.dtype == bool else lax.add(self, other)


def _times(tensor, scalar):
    """`tensor * scalar` in the dtype of the tensor; nothing where the scalar is one."""
    if _is_number(scalar) and scalar == 1:
        return tensor
    return mul(tensor, promotion.cast(scalar, dtypes.from_numpy(tensor.dtype)))


def _check_alpha(dtype, alpha):
    category = _category(alpha)
    if category == dtypes.BOOLEAN and dtype.category != dtypes.BOOLEAN:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if category > max(dtype.category, dtypes.INTEGRAL):
        operands, kind = "non-complex", "complex"
        if category == dtypes.FLOATING:
            operands, kind = "integral", "floating point"
        raise RuntimeError(
            f"For {operands} input tensors, argument alpha must not be a {kind} number."
        )


def add(self, other, alpha=1):
    dtype = promotion.result_type(self, other)
    if not (_is_number(alpha) and alpha == 1):
        _check_alpha(dtype, alpha)
        other = _times(promotion.cast(other, dtype), alpha)
    return _sum(self, other)


_DIFFERENCE = (
    "Subtraction, the `-` operator, with {} is not supported. Use the `^` or `logical_xor()` "
    "operator instead.",
    "Subtraction, the `-` operator, with {} is not supported. If you are trying to invert a mask, "
    "use the `~` or `logical_not()` operator instead.",
)


def sub(self, other, alpha=1):
    booleans = [_category(operand) == dtypes.BOOLEAN for operand in (self, other)]
    if any(booleans):
        what = "two bool tensors" if all(booleans) else "a bool tensor"
        raise RuntimeError(_DIFFERENCE[not all(booleans)].format(what))
    dtype = promotion.result_type(self, other)
    if not (_is_number(alpha) and alpha == 1):
        _check_alpha(dtype, alpha)
        other = _times(promotion.cast(other, dtype), alpha)
    return _difference(self, other)


_difference = promotion.common(lax.sub)


def rsub(self, other, alpha=1):
    return sub(other, self, alpha)


@promotion.common
def mul(self, other):
    return lax.bitwise_and(self, other) if self.dtype == bool else lax.mul(self, other)


def scaled(grad, scalar):
    """The gradient of `x` in `scalar * x`."""
    return grad if _is_number(scalar) and scalar == 1 else grad * _conjugate(scalar)


def div(self, other, *, rounding_mode=None):
    if rounding_mode is None:
        return _quotient(self, other)
    if rounding_mode == "trunc":
        return _divide_trunc(self, other)
    if rounding_mode == "floor":
        return floor_divide(self, other)
    raise RuntimeError(
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
        f"'{rounding_mode}'"
    )


_quotient = promotion.floating(lax.div)


def _is_integer(array):
    return jnp.issubdtype(array.dtype, jnp.integer)


@promotion.common
@_real_numeric
def _divide_trunc(self, other):
    quotient = lax.div(self, other)
    return quotient if _is_integer(self) else trunc(quotient)


@promotion.common
@_real_numeric
def floor_divide(self, other):
    if _is_integer(self):
        quotient = lax.div(self, other)
        inexact = lax.ne(lax.rem(self, other), lax.full_like(other, 0))
        return quotient - (inexact & (lax.lt(self, _zero(self)) != lax.lt(other, _zero(self))))
    return _floor_quotient(self, other)


def _zero(array):
    return array.dtype.type(0)


def _floor_quotient(self, other):
    """The floor of the exact quotient, which the quotient's rounding may have passed."""
    rest = lax.rem(self, other)
    quotient = lax.div(lax.sub(self, rest), other)
    opposite = (rest != 0) & ((other < 0) != (rest < 0))
    quotient = jnp.where(opposite, quotient - 1, quotient)
    floored = jnp.floor(quotient)
    nearest = jnp.where(quotient - floored > 0.5, floored + 1, floored)
    exact = jnp.where(quotient == 0, jnp.copysign(0, self / other), nearest)
    return jnp.where(other == 0, self / other, exact)


def div_self_backward(grad, other, rounding_mode):
    """A rounded quotient is constant wherever it has a derivative."""
    return grad / _conjugate(other) if rounding_mode is None else jnp.zeros_like(grad)


def div_other_backward(grad, self, other, rounding_mode):
    if rounding_mode is not None:
        return jnp.zeros_like(grad)
    return -grad * _conjugate(self / other / other)


def remainder_backward(grad, self, other):
    """The gradient of the divisor: minus the quotient, which is constant but at its jumps."""
    return -grad * floor_divide(self, other)


@promotion.common
@_real_numeric
def remainder(self, other):
    rest = lax.rem(self, other)
    zero = _zero(rest)
    opposite = lax.ne(rest, zero) & lax.ne(lax.lt(rest, zero), lax.lt(other, zero))
    return jnp.where(opposite, rest + other, rest)


@promotion.common
@_real_numeric
def fmod(self, other):
    return lax.rem(self, other)


@promotion.common
def neg(self):
    if self.dtype == bool:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return lax.neg(self)


def positive(self):
    if self.dtype == bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


abs = promotion.common(_numeric(lax.abs))
reciprocal = promotion.floating(lax.reciprocal)


def _sign(self):
    zero = _zero(self)
    above, below = (compare(self, zero).astype(self.dtype) for compare in (lax.gt, lax.lt))
    return lax.sub(above, below)


@promotion.common
def sign(self):
    if jnp.iscomplexobj(self):
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
            "torch.sgn instead."
        )
    return self if self.dtype == bool else _sign(self)


def sgn(self):
    return lax.sign(self) if jnp.iscomplexobj(self) else sign(self)


def sgn_backward(grad, self):
    """The derivative of z / |z|: what of the gradient is at a right angle to z, over |z|."""
    if not jnp.iscomplexobj(self):
        return jnp.zeros_like(grad)
    size = op.abs(self)
    safe_size = jnp.where(size == 0, 1, size)
    direction = op.sgn(self)
    along = jnp.real(grad * jnp.conj(direction)) * direction
    return jnp.where(size == 0, 0, (grad - along) / safe_size)


# ---- powers


def pow(self, exponent):
    dtype = promotion.result_type(self, exponent)
    if dtype.category == dtypes.BOOLEAN and not _is_number(exponent) and not _is_number(self):
        raise NotImplementedError("\"pow\" not implemented for 'Bool': convert to integers first")
    return (
        _power_of_number(self, exponent, dtype) if _is_number(exponent) else _power(self, exponent)
    )


def _power_of_number(self, exponent, dtype):
    array = promotion.cast(self, dtype)
    if dtype.category == dtypes.INTEGRAL and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if dtype.category == dtypes.BOOLEAN:
        return _power(self, exponent)
    if exponent == 0.5 or exponent == -0.5:
        return lax.sqrt(array) if exponent > 0 else lax.rsqrt(array)
    if not isinstance(exponent, complex) and exponent == int(exponent) and -32 <= exponent <= 32:
        return lax.integer_pow(array, int(exponent))
    return _power(self, exponent)


@promotion.common
def _power(self, exponent):
    if self.dtype == bool:
        return self | ~exponent
    if not _is_integer(self):
        return lax.pow(self, exponent)
    power = jnp.power(self, jnp.maximum(exponent, 0))
    unit = jnp.where(lax.abs(self) == 1, jnp.where(exponent % 2 == 0, 1, self), 0)
    return jnp.where(exponent < 0, unit, power).astype(self.dtype)


def square(self):
    return pow(self, 2)


def pow_self_backward(grad, self, exponent):
    """x ** 0 is constant at x = 0 too, where 0 * x ** -1 is not a number."""
    if _is_number(exponent):
        return jnp.zeros_like(grad) if exponent == 0 else grad * _slope(self, exponent)
    flat = (exponent == 0) & ((self == 0) | jnp.isnan(self))
    return jnp.where(flat, 0, grad * _slope(jnp.where(flat, 1, self), exponent))


def _slope(self, exponent):
    return _conjugate(exponent * op.pow(self, exponent - 1))


def pow_exponent_backward(grad, self, exponent, result):
    """0 ** y does not change with y where it is finite."""
    flat = (self == 0) & (jnp.real(exponent) >= 0)
    return jnp.where(flat, 0, grad * _conjugate(result * log(jnp.where(flat, 1, self))))


sqrt = promotion.floating(lax.sqrt)
rsqrt = promotion.floating(lax.rsqrt)

# ---- exponentials and logarithms

exp = promotion.floating(lax.exp)
exp2 = promotion.floating(lax.exp2)
expm1 = promotion.floating(lax.expm1)
log = promotion.floating(lax.log)
log1p = promotion.floating(lax.log1p)
log2 = promotion.floating(jnp.log2)
log10 = promotion.floating(jnp.log10)
sigmoid = promotion.floating(lax.logistic)


def sigmoid_backward(grad_output, output):
    return grad_output * _conjugate((1 - output) * output)


@promotion.floating
@_real
def xlogy(self, other):
    product = self * lax.log(other)
    return jnp.where(jnp.isnan(other), jnp.nan, jnp.where(self == 0, 0, product))


def xlogy_backward(grad, self, other):
    """The gradient of x in x log y: log y, save 0 where x log y is 0 by definition."""
    defined = (self == 0) & (other <= 0)
    return jnp.where(defined, 0, grad * log(jnp.where(defined, 1, other)))


@promotion.common
@_inexact
def logaddexp(self, other):
    return jnp.logaddexp(self, other)


# ---- trigonometric and hyperbolic functions

sin = promotion.floating(lax.sin)
cos = promotion.floating(lax.cos)
tan = promotion.floating(lax.tan)
asin = promotion.floating(lax.asin)
acos = promotion.floating(lax.acos)
atan = promotion.floating(lax.atan)
sinh = promotion.floating(lax.sinh)
cosh = promotion.floating(lax.cosh)
tanh = promotion.floating(lax.tanh)
asinh = promotion.floating(lax.asinh)
acosh = promotion.floating(lax.acosh)
atanh = promotion.floating(lax.atanh)
atan2 = promotion.floating(_real(lax.atan2))


def tanh_backward(grad_output, output):
    return grad_output * _conjugate(1 - output * output)


def atan2_backward(grad, self, other):
    """Gradients of both, zero at the origin; neither square over- or underflows."""
    origin = (self == 0) & (other == 0)
    x = jnp.where(origin, 1, other)
    radius = op.hypot(self, x)
    slopes = (x / radius / radius, -(self / radius) / radius)
    return tuple(jnp.where(origin, 0, grad * slope) for slope in slopes)


@promotion.common
@_real
@_inexact
def hypot(self, other):
    return jnp.hypot(self, other)


# ---- error functions

erf = promotion.floating(_real(lax.erf))
erfc = promotion.floating(_real(lax.erfc))
erfinv = promotion.floating(_real(lax.erf_inv))

# ---- bounds


def _bounded(self, lower, upper):
    present = [bound for bound in (lower, upper) if bound is not None]
    if not present:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    return _clamped(self, lower, upper)


@promotion.common
def _clamped(self, lower, upper):
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


def clamp_backward(grad, self, lower, upper):
    """A value at a bound moves with the input."""
    inside = jnp.ones(grad.shape, bool)
    if lower is not None:
        inside &= self >= lower
    if upper is not None:
        inside &= self <= upper
    return jnp.where(inside, grad, 0)


def clamp_min_backward(grad, self, lower, upper):
    """The gradient of the lower bound; where the bounds cross the upper one is the result."""
    chosen = self < lower
    return jnp.where(chosen if upper is None else chosen & (lower < upper), grad, 0)


def clamp_max_backward(grad, self, lower, upper):
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


def preferred(grad, tie, lost):
    """The gradient of one of two operands that are compared: half of it on a tie."""
    return jnp.where(lost, 0, jnp.where(tie, grad / 2, grad))


def prefers_greater(self, other):
    """Where `fmax` takes `self`."""
    return (self >= other) | jnp.isnan(other)


def prefers_less(self, other):
    """Where `fmin` takes `self`."""
    return (self <= other) | jnp.isnan(other)


# ---- rounding


def _rounding(name, rounded):
    def checked(self):
        if jnp.iscomplexobj(self):
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        _refuse(name, self, dtypes.BOOLEAN)
        return self if _is_integer(self) else rounded(self)

    return checked


ceil = _rounding("ceil", lax.ceil)
floor = _rounding("floor", lax.floor)
trunc = _rounding("trunc", jnp.trunc)
round = _rounding("round", lambda self: lax.round(self, lax.RoundingMethod.TO_NEAREST_EVEN))


@_inexact
@_real
def round_decimals(self, *, decimals):
    if decimals == 0:
        return round(self)
    scale = self.dtype.type(10.0 ** builtins.abs(decimals))
    return round(self * scale) / scale if decimals > 0 else round(self / scale) * scale


@_inexact
@_real
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


def finite_only(grad, self):
    """The gradient where the input is finite; of a complex one part by part."""
    if not jnp.iscomplexobj(self):
        return jnp.where(jnp.isfinite(self), grad, 0)
    parts = (jnp.where(jnp.isfinite(part(self)), part(grad), 0) for part in (jnp.real, jnp.imag))
    return lax.complex(*parts)


# ---- mixtures


def lerp(self, end, weight):
    for name, operand in (("end", end), ("weight", weight)):
        _check_same_dtype(self, name, operand)
    _refuse("lerp", self, dtypes.BOOLEAN, dtypes.INTEGRAL)
    return _lerp(self, end, weight)


def _check_same_dtype(self, name, operand):
    if getattr(operand, "ndim", 0) and operand.dtype != self.dtype:
        first, second = (dtypes.from_numpy(each.dtype) for each in (self, operand))
        raise RuntimeError(
            f"expected dtype {first.name} for `{name}` but got dtype {second.name}: lerp does not "
            "promote dtypes; convert one of them"
        )


@promotion.common
def _lerp(self, end, weight):
    """From the nearer end, so that both ends are exact."""
    difference = end - self
    near_end = lax.abs(weight) >= 0.5
    return jnp.where(near_end, end - difference * (1 - weight), self + weight * difference)


@promotion.common
def addcmul(self, tensor1, tensor2, *, value=1):
    return add(self, _times(mul(tensor1, tensor2), value))


@promotion.common
def addcdiv(self, tensor1, tensor2, *, value=1):
    if not jnp.issubdtype(self.dtype, jnp.inexact):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future release "
            "addcdiv will perform a true division of tensor1 and tensor2: write "
            "self + value * div(tensor1, tensor2), with a rounding_mode if you want integers"
        )
    return add(self, _times(lax.div(tensor1, tensor2), value))


def where(condition, self, other):
    if condition.dtype not in (bool, jnp.uint8):
        name = dtypes.from_numpy(condition.dtype).scalar_type
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {name}: "
            "compare it first"
        )
    arrays = promotion.broadcast("where", condition, *promotion.unify(self, other))
    return jnp.where(arrays[0].astype(bool), *arrays[1:])


# ---- complex numbers


def real(self):
    return lax.real(self) if jnp.iscomplexobj(self) else self


def imag(self):
    if not jnp.iscomplexobj(self):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return lax.imag(self)


def imag_backward(grad):
    return lax.complex(jnp.zeros_like(grad), grad)


def conj(self):
    return _conjugate(self)


@promotion.floating
def angle(self):
    if jnp.iscomplexobj(self):
        return lax.atan2(self.imag, self.real)
    return jnp.where(jnp.isnan(self), self, jnp.where(self < 0, math.pi, 0).astype(self.dtype))


def angle_backward(grad, self):
    """At a right angle to z, by 1 / |z|; zero at zero and for real numbers."""
    if not jnp.iscomplexobj(self):
        return jnp.zeros_like(grad)
    safe = jnp.where(self == 0, 1, self)
    return jnp.where(self == 0, 0, grad * 1j / _conjugate(safe))


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


def to_other(self, other, non_blocking=False, copy=False):
    return to(self, dtypes.from_numpy(other.dtype))


def type_as(self, other):
    return to(self, dtypes.from_numpy(other.dtype))
