"""Rules of primitives that compute an element of the result from one of every operand.

An operand of rank 0 goes with operands of any shape. NumPy and ml_dtypes compute float16 and
bfloat16 in float32 and round once, so that most primitives are a ufunc, whatever the dtype.
"""

from __future__ import annotations

import functools
from math import prod

import numpy
from jax import lax

from .dtypes import BFLOAT16, arithmetic, kind_of, widened
from .equation import NotOnHostError

UFUNCS = {
    "add": numpy.add,
    "add_any": numpy.add,
    "sub": numpy.subtract,
    "neg": numpy.negative,
    "abs": numpy.absolute,
    "square": numpy.square,
    "sqrt": numpy.sqrt,
    "cbrt": numpy.cbrt,
    "exp": numpy.exp,
    "expm1": numpy.expm1,
    "log": numpy.log,
    "sin": numpy.sin,
    "cos": numpy.cos,
    "tan": numpy.tan,
    "asin": numpy.arcsin,
    "acos": numpy.arccos,
    "atan": numpy.arctan,
    "sinh": numpy.sinh,
    "cosh": numpy.cosh,
    "tanh": numpy.tanh,
    "asinh": numpy.arcsinh,
    "acosh": numpy.arccosh,
    "atanh": numpy.arctanh,
    "floor": numpy.floor,
    "ceil": numpy.ceil,
    "is_finite": numpy.isfinite,
    "nextafter": numpy.nextafter,
    "eq": numpy.equal,
    "ne": numpy.not_equal,
    "lt": numpy.less,
    "le": numpy.less_equal,
    "gt": numpy.greater,
    "ge": numpy.greater_equal,
    "and": numpy.bitwise_and,
    "or": numpy.bitwise_or,
    "xor": numpy.bitwise_xor,
    "not": numpy.invert,
    "shift_left": numpy.left_shift,
    "real": numpy.real,
    "imag": numpy.imag,
}


# What is added to a complex operand so that it lies on XLA's side of the branch cut, where NumPy
# asks for the sign of a zero.
SIDES = {
    "sqrt": complex(-0.0, 0.0),
    "asin": complex(-0.0, 0.0),
    "acos": complex(-0.0, 0.0),
    "acosh": complex(-0.0, 0.0),
    "asinh": complex(0.0, -0.0),
}


# What NumPy computes in single precision with errors of up to 3 units in the last place: these are
# computed in double precision and rounded. Encodings of time, for example, are sines of frequencies
# times hundreds, and so have hundreds of times the error of the `exp` that makes the frequencies.
DOUBLED = frozenset(("exp", "expm1", "log", "cbrt", "tan", "asin", "acos", "atan", "cosh"))

# those that compute with the bits of an operand
EXACT_BITS = frozenset(("nextafter", "and", "or", "xor", "not", "shift_left"))


def in_single(ufunc, equation):
    """A ufunc for an equation. Of bfloat16 it computes in single precision and rounds once, as
    ml_dtypes does in loops that take up to ten times as long.
    """
    if equation.inputs[0].dtype != BFLOAT16:
        return ufunc
    single, dtype = numpy.float32, equation.outputs[0].dtype

    def compute(*operands):
        result = ufunc(*[operand.astype(single) for operand in operands])
        return result.astype(BFLOAT16) if dtype == BFLOAT16 else result

    return compute


def rounded_once(ufunc, dtype):
    """A ufunc of one operand; of single precision it computes in double precision and rounds."""
    if dtype != numpy.float32:
        return ufunc
    return lambda operand: ufunc(operand, dtype=numpy.float64).astype(dtype)


@arithmetic(*UFUNCS)
def _ufunc(equation):
    ufunc, side = UFUNCS[equation.name], SIDES.get(equation.name)
    if equation.name in DOUBLED:
        ufunc = rounded_once(ufunc, equation.outputs[0].dtype)
    if equation.name not in EXACT_BITS:
        ufunc = in_single(ufunc, equation)
    if side is None or kind_of(equation.outputs[0].dtype) != "c":
        return ufunc
    return lambda operand: ufunc(operand + side)


# ---- Arithmetic


@arithmetic("mul")
def _mul(equation):
    if equation.inputs[0].dtype != equation.outputs[0].dtype:
        raise NotOnHostError("mul with a result of another dtype")
    return in_single(numpy.multiply, equation)


@arithmetic("div")
def _div(equation):
    dtype = equation.outputs[0].dtype
    if kind_of(dtype) in "fc":
        return in_single(numpy.divide, equation)
    ones = numpy.invert(dtype.type(0))

    def divide(dividend, divisor):
        multiple = dividend - numpy.fmod(dividend, divisor)
        return numpy.where(divisor == 0, ones, numpy.floor_divide(multiple, divisor))

    return divide


@arithmetic("rem")
def _rem(equation):
    if kind_of(equation.outputs[0].dtype) == "f":
        return numpy.fmod

    def remainder(dividend, divisor):
        return numpy.where(divisor == 0, dividend, numpy.fmod(dividend, divisor))

    return remainder


@arithmetic("mulhi")
def _mulhi(equation):
    dtype = equation.outputs[0].dtype
    width = 8 * dtype.itemsize
    if width == 64:
        return _high_of_64_signed if dtype.kind == "i" else _high_of_64
    double = numpy.dtype(f"{dtype.kind}{2 * dtype.itemsize}")

    def high_half(first, second):
        product = numpy.multiply(first, second, dtype=double)
        return numpy.right_shift(product, width).astype(dtype)

    return high_half


def _high_of_64(first, second):
    """The upper 64 bits of the product of unsigned numbers, from the products of their halves."""
    low_bits = numpy.uint64(0xFFFFFFFF)
    first_low, first_high = first & low_bits, numpy.right_shift(first, 32)
    second_low, second_high = second & low_bits, numpy.right_shift(second, 32)
    middle = first_high * second_low + numpy.right_shift(first_low * second_low, 32)
    other = first_low * second_high + (middle & low_bits)
    return first_high * second_high + numpy.right_shift(middle, 32) + numpy.right_shift(other, 32)


def _high_of_64_signed(first, second):
    high = _high_of_64(first.view(numpy.uint64), second.view(numpy.uint64)).view(numpy.int64)
    return high - numpy.where(first < 0, second, 0) - numpy.where(second < 0, first, 0)


@arithmetic("max", "min")
def _extreme(equation):
    is_max = equation.name == "max"
    if kind_of(equation.outputs[0].dtype) != "c":
        return in_single(numpy.maximum if is_max else numpy.minimum, equation)
    precedes = numpy.greater if is_max else numpy.less

    def first_of(first, second):
        by_imaginary = first.real == second.real
        is_first = numpy.where(
            by_imaginary, precedes(first.imag, second.imag), precedes(first.real, second.real)
        )
        return numpy.where(is_first, first, second)

    return first_of


@arithmetic("clamp")
def _clamp(equation):
    if kind_of(equation.outputs[0].dtype) == "c":
        raise NotOnHostError("clamp of complex numbers")
    return lambda low, operand, high: numpy.minimum(numpy.maximum(operand, low), high)


@arithmetic("sign")
def _sign(equation):
    kind = kind_of(equation.outputs[0].dtype)
    if kind != "f":
        return _complex_sign if kind == "c" else numpy.sign
    # the sign of -0.0 is -0.0
    return lambda operand: numpy.copysign(numpy.sign(operand), operand)


def _complex_sign(operand):
    size = numpy.abs(operand)
    size = numpy.where(size == 0, 1, size)
    result = numpy.empty(operand.shape, operand.dtype)
    result.real, result.imag = operand.real / size, operand.imag / size
    return result


@arithmetic("round")
def _round(equation):
    method = equation.params["rounding_method"]
    if method == lax.RoundingMethod.TO_NEAREST_EVEN:
        return numpy.rint
    if method != lax.RoundingMethod.AWAY_FROM_ZERO:
        raise NotOnHostError(f"round by {method}")

    def round_away(operand):
        whole = numpy.trunc(operand)
        is_up = numpy.abs(operand - whole) >= 0.5
        return whole + numpy.copysign(is_up.astype(operand.dtype), operand)

    return round_away


# ---- Powers and other functions

# the integers below have a float32
EXACT = 1 << 24


@arithmetic("pow")
def _pow(equation):
    base, exponent = equation.inputs
    if exponent.dtype == base.dtype:
        return numpy.power
    return lambda base, exponent: numpy.power(base, exponent.astype(base.dtype))


@arithmetic("integer_pow")
def _integer_pow(equation):
    dtype, exponent = equation.outputs[0].dtype, equation.params["y"]
    kind = kind_of(dtype)
    direct = {0: numpy.ones_like, 1: numpy.positive, 2: numpy.square, -1: numpy.reciprocal}
    if exponent in direct:
        return direct[exponent]
    if kind == "f" and not 0 < exponent < 5 and abs(exponent) < EXACT:
        return widened(lambda base: numpy.power(base, base.dtype.type(exponent)), dtype)
    power = functools.partial(_repeated_product, exponent=abs(exponent))
    if exponent < 0:
        return lambda base: numpy.reciprocal(power(base))
    return widened(power, dtype)


def _repeated_product(base, exponent):
    product = None
    while True:
        if exponent & 1:
            product = base if product is None else product * base
        exponent >>= 1
        if not exponent:
            return product
        base = base * base


@arithmetic("exp2")
def _exp2(equation):
    dtype = equation.outputs[0].dtype
    if kind_of(dtype) != "c":
        return numpy.exp2
    # NumPy multiplies by log(2), an error that grows with the operand
    return lambda operand: numpy.exp2(operand.astype(numpy.complex128)).astype(dtype)


@arithmetic("rsqrt")
def _rsqrt(equation):
    dtype = equation.outputs[0].dtype
    return widened(lambda operand: numpy.reciprocal(numpy.sqrt(operand)), dtype)


@arithmetic("log1p")
def _log1p(equation):
    dtype = equation.outputs[0].dtype
    return _complex_log1p if kind_of(dtype) == "c" else rounded_once(numpy.log1p, dtype)


def _complex_log1p(operand):
    """log(1 + z), in double precision: the real part is small where |1 + z| is about 1."""
    real, imag = operand.real.astype(numpy.float64), operand.imag.astype(numpy.float64)
    size = numpy.hypot(1 + real, imag)
    near = 0.5 * numpy.log1p(real * (2 + real) + imag * imag)
    result = numpy.empty(operand.shape, operand.dtype)
    result.real = numpy.where((size > 0.5) & (size < 2), near, numpy.log(size))
    result.imag = numpy.arctan2(imag, 1 + real)
    return result


@arithmetic("logistic")
def _logistic(equation):
    form = equation.outputs[0]
    if kind_of(form.dtype) == "c":
        return _complex_logistic
    exponential = rounded_once(numpy.exp, form.dtype)
    if not form.shape:
        return widened(lambda operand: 1 / (1 + exponential(-operand)), form.dtype)

    def logistic(operand):
        result = exponential(numpy.negative(operand))
        numpy.add(result, 1, result)
        return numpy.reciprocal(result, result)

    return widened(logistic, form.dtype)


def _complex_logistic(operand):
    """1 / (1 + exp(-z)), where exp(-z) overflows exp(z) / (1 + exp(z))."""
    is_left = operand.real < 0
    power = numpy.exp(numpy.where(is_left, operand, -operand))
    return numpy.where(is_left, power, 1) / (1 + power)


@arithmetic("atan2")
def _atan2(equation):
    if kind_of(equation.outputs[0].dtype) == "c":
        raise NotOnHostError("atan2 of complex numbers")
    return numpy.arctan2


# ---- Choice and order


# So many elements and more are chosen by arithmetic with their bits: `numpy.where` branches at each
# of them, and takes three times as long where the condition is irregular.
MANY = 1 << 14


def _choice(form):
    """The function that chooses between two arrays by an array of bools."""
    dtype = form.dtype
    bits = numpy.dtype(f"u{dtype.itemsize}") if dtype.itemsize <= 8 else None
    if bits is None or (prod(form.shape) < MANY and dtype != BFLOAT16):
        return lambda condition, otherwise, case: numpy.where(condition, case, otherwise)
    if prod(form.shape) < MANY:  # NumPy is slow at choosing values of a dtype that it does not know
        return lambda condition, otherwise, case: numpy.where(
            condition, case.view(bits), otherwise.view(bits)
        ).view(dtype)

    def choose(condition, otherwise, case):
        otherwise = otherwise.view(bits)
        all_or_none = numpy.negative(condition.view(numpy.uint8), dtype=bits)
        result = numpy.bitwise_xor(case.view(bits), otherwise)
        numpy.bitwise_and(result, all_or_none, out=result)
        return numpy.bitwise_xor(result, otherwise, out=result).view(dtype)

    return choose


@arithmetic("select_n")
def _select_n(equation):
    which = equation.inputs[0]
    if not which.shape and len(equation.inputs) > 1:
        last = len(equation.inputs) - 2
        return lambda index, *cases: cases[min(max(int(index), 0), last)]
    if len(equation.inputs) == 2:
        return lambda _, case: case
    if which.dtype == bool:
        return _choice(equation.outputs[0])

    def choose(index, *cases):
        result = cases[-1]
        for place in range(len(cases) - 2, -1, -1):
            result = numpy.where(index <= place, cases[place], result)
        return result

    return choose


@arithmetic("eq_to", "le_to", "lt_to")
def _total_order(equation):
    """Comparisons that order all floats: -nan, -inf, ..., -0.0, 0.0, ..., inf, nan."""
    compare = {"eq_to": numpy.equal, "le_to": numpy.less_equal, "lt_to": numpy.less}[equation.name]
    dtype = equation.inputs[0].dtype
    if kind_of(dtype) == "c":
        raise NotOnHostError(f"{equation.name} of complex numbers")
    if kind_of(dtype) != "f":
        return compare
    integer = numpy.dtype(f"i{dtype.itemsize}")
    sign_place, largest = 8 * dtype.itemsize - 1, numpy.iinfo(integer).max

    def ordinal(operand):
        bits = operand.view(integer)
        return bits ^ (numpy.right_shift(bits, sign_place) & largest)

    return lambda first, second: compare(ordinal(first), ordinal(second))


# ---- Bits


@arithmetic("shift_right_arithmetic", "shift_right_logical")
def _shift_right(equation):
    dtype = equation.outputs[0].dtype
    kind = "i" if equation.name == "shift_right_arithmetic" else "u"
    if dtype.kind == kind:
        return numpy.right_shift
    other, longest = numpy.dtype(f"{kind}{dtype.itemsize}"), 8 * dtype.itemsize - 1

    def shift(operand, distance):
        if kind == "i":  # the distance has no sign, so that it must not get one
            distance = numpy.minimum(distance, longest)
        return numpy.right_shift(operand.view(other), distance.view(other)).view(dtype)

    return shift


@arithmetic("population_count")
def _population_count(equation):
    dtype = equation.outputs[0].dtype
    unsigned = numpy.dtype(f"u{dtype.itemsize}")
    # NumPy counts the bits of the absolute value
    return lambda operand: numpy.bitwise_count(operand.view(unsigned)).astype(dtype)


@arithmetic("clz")
def _count_leading_zeros(equation):
    dtype = equation.outputs[0].dtype
    unsigned, width = numpy.dtype(f"u{dtype.itemsize}"), 8 * dtype.itemsize

    def count(operand):
        filled, distance = operand.view(unsigned), 1
        while distance < width:  # every bit below the highest one becomes 1
            filled = filled | numpy.right_shift(filled, distance)
            distance *= 2
        return numpy.subtract(width, numpy.bitwise_count(filled)).astype(dtype)

    return count


# ---- Complex numbers


@arithmetic("complex")
def _complex(equation):
    form = equation.outputs[0]

    def pair(real, imag):
        result = numpy.empty(form.shape, form.dtype)
        result.real, result.imag = real, imag
        return result

    return pair


@arithmetic("conj")
def _conj(equation):
    dtype = equation.outputs[0].dtype
    if equation.inputs[0].dtype != dtype:
        return lambda operand: operand.astype(dtype)
    return numpy.conjugate
