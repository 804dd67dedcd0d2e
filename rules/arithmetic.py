"""Arithmetic and powers of elements."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxgrad.core import branch_cuts, device_axes, dtypes, promotion
from jaxgrad.core.primitive import op

# marks a family of elementwise operators, whose results have the strides of their operands
POINTWISE = True

_numeric = promotion.without(dtypes.BOOLEAN)
_real_numeric = promotion.without(dtypes.BOOLEAN, dtypes.COMPLEX)


def _is_number(scalar):
    """Whether the value of a Scalar argument is known while tracing."""
    return isinstance(scalar, bool | int | float | complex)


def _is_one(scalar):
    return type(scalar) in (int, float) and scalar == 1


def _conjugate(value):
    """The conjugate of an array or of a Scalar argument."""
    if _is_number(value):
        return value.conjugate()
    return lax.conj(value) if jnp.iscomplexobj(value) else value


def _category(value):
    return promotion.result_type(value).category


# ---- arithmetic


@promotion.common
def _add(self, other):
    return lax.bitwise_or(self, other) if self.dtype == bool else lax.add(self, other)


def _times(tensor, scalar):
    """`tensor * scalar` in the dtype of the tensor."""
    if _is_one(scalar):
        return tensor
    return mul(tensor, promotion.cast(scalar, dtypes.from_numpy(tensor.dtype)))


def check_multiple(dtype, name, number):
    """Raise RuntimeError for a number of a higher category than the tensors that it multiplies."""
    category = _category(number)
    if category == dtypes.BOOLEAN and dtype.category != dtypes.BOOLEAN:
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if category > max(dtype.category, dtypes.INTEGRAL):
        operands, kind = "non-complex", "complex"
        if category == dtypes.FLOATING:
            operands, kind = "integral", "floating point"
        raise RuntimeError(
            f"For {operands} input tensors, argument {name} must not be a {kind} number."
        )


def _with_multiple(combine, self, other, alpha):
    """`combine(self, alpha * other)` in the dtype of both operands, to which alpha is rounded."""
    if type(alpha) is int and alpha == 1:
        return combine(self, other)
    dtype = promotion.result_type(self, other)
    check_multiple(dtype, "alpha", alpha)
    operands = [promotion.cast(operand, dtype) for operand in (self, other, alpha)]
    multiply = promotion.in_single(lambda self, other, alpha: combine(self, mul(other, alpha)))
    return multiply(*operands)


def add(self, other, alpha=1):
    return _with_multiple(_add, self, other, alpha)


def refuse_booleans(*operands):
    booleans = [_category(operand) == dtypes.BOOLEAN for operand in operands]
    if all(booleans):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    if any(booleans):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
            "to invert a mask, use the `~` or `logical_not()` operator instead."
        )


def sub(self, other, alpha=1):
    refuse_booleans(self, other)
    return _with_multiple(_difference, self, other, alpha)


_difference = promotion.common(lax.sub)


def rsub(self, other, alpha=1):
    return sub(other, self, alpha)


@promotion.with_exact_number
@promotion.common
@promotion.of_float8
def mul(self, other):
    return lax.bitwise_and(self, other) if self.dtype == bool else lax.mul(self, other)


def maybe_multiply(grad, scalar):
    """`grad` times the conjugate of `scalar`: the gradient of `x` in `scalar * x`."""
    return grad if _is_one(scalar) else mul(grad, _conjugate(scalar))


@promotion.common
@promotion.in_single
def addcmul(self, tensor1, tensor2, *, value=1):
    if self.dtype == bool:
        raise NotImplementedError(
            "\"addcmul_cpu_out\" not implemented for 'Bool': convert to another dtype first"
        )
    return add(self, _times(mul(tensor1, tensor2), value))


addcmul.precondition = promotion.refuse_large_factors


def addcdiv(self, tensor1, tensor2, *, value=1):
    if max(_category(tensor1), _category(tensor2)) <= dtypes.INTEGRAL:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future release "
            "addcdiv will perform a true division of tensor1 and tensor2: write "
            "self + value * div(tensor1, tensor2), with a rounding_mode if you want integers"
        )
    return _with_quotient(self, tensor1, tensor2, value=value)


@promotion.common
@promotion.in_single
def _with_quotient(self, tensor1, tensor2, *, value):
    return add(self, _times(lax.div(tensor1, tensor2), value))


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


_quotient = promotion.with_exact_number(promotion.floating(lax.div))


def _is_integer(array):
    return jnp.issubdtype(array.dtype, jnp.integer)


@promotion.with_exact_number
@promotion.common
@_real_numeric
def _divide_trunc(self, other):
    quotient = lax.div(self, other)
    return quotient if _is_integer(self) else jnp.trunc(quotient)


@promotion.with_exact_number
@promotion.common
@promotion.in_single
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
    """The floor of the exact quotient; rounding may lift the computed quotient above it."""
    rest = lax.rem(self, other)
    quotient = lax.div(lax.sub(self, rest), other)
    opposite = (rest != 0) & ((other < 0) != (rest < 0))
    quotient = jnp.where(opposite, quotient - 1, quotient)
    floored = jnp.floor(quotient)
    nearest = jnp.where(quotient - floored > 0.5, floored + 1, floored)
    exact = jnp.where(quotient == 0, jnp.copysign(0, self / other), nearest)
    return jnp.where(other == 0, self / other, exact)


def _refuse_zero(self, other, *_):
    """Refuse a zero divisor of integers, which have no infinity."""
    # in the dtype of the quotient, where a large number may wrap around to zero
    dtype = promotion.result_type(self, other).numpy
    if not np.all(np.asarray(other).astype(dtype)):
        raise RuntimeError(
            "ZeroDivisionError: integers are divided by zero; convert them to floating point, or "
            "replace the zeros with where"
        )


_refuse_zero.of_integers = True
div.precondition = floor_divide.precondition = _refuse_zero


def div_tensor_self_backward(grad, other, rounding_mode):
    """`grad / conj(other)`; 0 for a rounded quotient, which is piecewise constant."""
    return jnp.zeros_like(grad) if rounding_mode else _quotient(grad, _conjugate(other))


def div_tensor_other_backward(grad, self, other, rounding_mode):
    """`-grad * conj(self / other ** 2)`; 0 for a rounded quotient."""
    if rounding_mode is not None:
        return jnp.zeros_like(grad)
    return -grad * _conjugate(self / other / other)


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


remainder.precondition = fmod.precondition = _refuse_zero


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


positive.returns_self = True


abs = promotion.common(_numeric(jnp.abs))  # `lax.abs` refuses unsigned integers
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
    """The gradient of `z / |z|`: the part of `grad` perpendicular to z, divided by |z|."""
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
    return _power_of_number(self, exponent, dtype) if _is_number(exponent) else _pow(self, exponent)


def _refuse_negative(self, exponent):
    if not hasattr(exponent, "shape") and exponent < 0:
        raise RuntimeError(
            "Integers to negative integer powers are not allowed: convert to floating point first"
        )


def _check_exponent(self, exponent):
    """Refuse a number that cannot be the exponent of an integer."""
    _refuse_negative(self, exponent)
    if _is_number(exponent):
        promotion.checked_number(exponent, promotion.result_type(self, exponent))


_check_exponent.of_integers = True
pow.precondition = _check_exponent


_root = branch_cuts.along(lax.sqrt)
_SMALL_INTEGERS = frozenset(range(-32, 33))


def _power_of_number(self, exponent, dtype):
    array = promotion.cast(self, dtype)
    if dtype.category == dtypes.INTEGRAL:
        _refuse_negative(self, exponent)
    if dtype.category == dtypes.BOOLEAN:
        return _pow(self, exponent)
    if exponent == 0.5 or exponent == -0.5:
        return _root(array) if exponent > 0 else lax.rsqrt(array)
    if exponent in _SMALL_INTEGERS:
        return lax.integer_pow(array, int(exponent.real))
    return _pow(self, exponent)


@promotion.common
def _pow(self, exponent):
    if self.dtype == bool:
        return self | ~exponent
    if not _is_integer(self):
        return lax.pow(self, exponent)
    power = _integer_power(self, exponent)
    if jnp.issubdtype(self.dtype, jnp.unsignedinteger):
        return power
    unit = jnp.where(lax.abs(self) == 1, jnp.where(exponent % 2 == 0, 1, self), 0)
    return jnp.where(exponent < 0, unit, power).astype(self.dtype)


def _integer_power(base, exponent):
    """The power by repeated squaring, which wraps around as each product does; 1 for exponents
    below 0.
    """

    def is_unfinished(state):
        return jnp.any(state[2] > 0)

    def square_and_multiply(state):
        power, base, exponent = state
        return jnp.where(exponent % 2 == 1, power * base, power), base * base, exponent // 2

    # an exponent of -1 would stay at -1
    exponent = lax.max(exponent, _zero(exponent))
    shape = jnp.broadcast_shapes(base.shape, exponent.shape)
    start = jnp.ones(shape, base.dtype), base, exponent
    return device_axes.while_loop(is_unfinished, square_and_multiply, start)[0]


def square(self):
    return pow(self, 2)


def pow_backward_self(grad, self, exponent):
    """`grad * exponent * self ** (exponent - 1)`; 0 for the exponent 0, also at `self = 0`."""
    if _is_number(exponent):
        return jnp.zeros_like(grad) if exponent == 0 else grad * _slope(self, exponent)
    self, exponent = promotion.unify(self, exponent)
    flat = (exponent == 0) & ((self == 0) | jnp.isnan(self))
    return jnp.where(flat, 0, grad * _slope(jnp.where(flat, 1, self), exponent))


def _slope(self, exponent):
    return _conjugate(exponent * op.pow(self, exponent - 1))


@promotion.in_single
def pow_backward_exponent(grad, self, exponent, result):
    """`grad * result * log(self)`; 0 where `self` is 0 and the power is finite."""
    base = promotion.cast(self, dtypes.from_numpy(result.dtype))
    flat = (base == 0) & (jnp.real(exponent) >= 0)
    return jnp.where(flat, 0, grad * _conjugate(result * lax.log(jnp.where(flat, 1, base))))


sqrt = promotion.floating(_root)
rsqrt = promotion.floating(lax.rsqrt)
