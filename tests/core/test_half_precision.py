"""Formulas in half precision: computed in float32 and rounded once, over the range of the dtypes.

The oracle is the closed form in double precision. Slopes that are formulas of the result start from
the result in half precision, as in PyTorch.
"""

import math

import ml_dtypes
import numpy
import pytest
from helpers.checks import count

import jaxgrad
import jaxgrad.autograd.forward_ad as forward_ad
import jaxgrad.nn.functional as F

DTYPES = {"float16": numpy.dtype(numpy.float16), "bfloat16": numpy.dtype(ml_dtypes.bfloat16)}

erfc = numpy.vectorize(math.erfc)


def sigmoid(x):
    return numpy.exp(-numpy.logaddexp(0, -x))


def normal_cdf(x):
    return 0.5 * erfc(-x / math.sqrt(2))


def mish_slope(x, _):
    tanh = numpy.tanh(numpy.logaddexp(0, x))
    return tanh + x * sigmoid(x) * (1 - tanh * tanh)


def inside(x):
    return numpy.clip(x / 6 + 0.5, 0, 1)


# name: operator, value, slope from the input and the rounded result; None if PyTorch rounds between
CASES = {
    "exp2": (jaxgrad.exp2, numpy.exp2, None),
    "expm1": (jaxgrad.expm1, numpy.expm1, None),
    "log2": (jaxgrad.log2, numpy.log2, None),
    "log10": (jaxgrad.log10, numpy.log10, None),
    "sigmoid": (jaxgrad.sigmoid, sigmoid, lambda x, y: y * (1 - y)),
    "tanh": (jaxgrad.tanh, numpy.tanh, lambda x, y: 1 - y * y),
    "acosh": (jaxgrad.acosh, numpy.arccosh, lambda x, y: 1 / numpy.sqrt((x - 1) * (x + 1))),
    "silu": (
        F.silu,
        lambda x: x * sigmoid(x),
        lambda x, y: sigmoid(x) * (1 + x * sigmoid(-x)),
    ),
    "gelu": (
        F.gelu,
        lambda x: x * normal_cdf(x),
        lambda x, y: normal_cdf(x) + x * numpy.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    ),
    "mish": (F.mish, lambda x: x * numpy.tanh(numpy.logaddexp(0, x)), mish_slope),
    "softplus": (
        lambda x: F.softplus(x, beta=3),
        lambda x: numpy.where(3 * x > 20, x, numpy.logaddexp(0, 3 * x) / 3),
        lambda x, y: numpy.where(3 * x > 20, 1, sigmoid(3 * x)),
    ),
    "logsigmoid": (F.logsigmoid, lambda x: -numpy.logaddexp(0, -x), lambda x, y: sigmoid(-x)),
    "elu": (
        lambda x: F.elu(x, alpha=1.75),
        lambda x: numpy.where(x > 0, x, 1.75 * numpy.expm1(numpy.minimum(x, 0))),
        lambda x, y: numpy.where(x > 0, 1, 1.75 * numpy.exp(numpy.minimum(x, 0))),
    ),
    "hardswish": (
        F.hardswish,
        lambda x: x * inside(x),
        lambda x, y: inside(x) + numpy.where(numpy.abs(x) < 3, x / 6, 0),
    ),
    "softsign": (F.softsign, lambda x: x / (1 + abs(x)), lambda x, y: (1 + abs(x)) ** -2.0),
    "glu": (
        lambda x: F.glu(jaxgrad.stack([jaxgrad.full_like(x, 1.5), x]), 0)[0],
        lambda x: 1.5 * sigmoid(x),
        lambda x, y: 1.5 * sigmoid(x) * sigmoid(-x),
    ),
    "logaddexp": (
        lambda x: jaxgrad.logaddexp(x, jaxgrad.full_like(x, -0.5)),
        lambda x: numpy.logaddexp(x, -0.5),
        None,
    ),
    "addcmul": (
        lambda x: jaxgrad.addcmul(jaxgrad.full_like(x, 1), x, jaxgrad.full_like(x, 0.75)),
        lambda x: 1 + 0.75 * x,
        lambda x, y: 0.75 + 0 * x,
    ),
    "lerp": (
        lambda x: jaxgrad.lerp(x, jaxgrad.full_like(x, 1), 0.3),
        lambda x: x + 0.3 * (1 - x),
        None,
    ),
    "smooth_l1": (
        lambda x: F.smooth_l1_loss(x, jaxgrad.full_like(x, 0.75), reduction="none", beta=0.75),
        lambda x: numpy.where(abs(x - 0.75) < 0.75, (x - 0.75) ** 2 / 1.5, abs(x - 0.75) - 0.375),
        lambda x, y: numpy.clip((x - 0.75) / 0.75, -1, 1),
    ),
    "huber": (
        lambda x: F.huber_loss(x, jaxgrad.full_like(x, 0.75), reduction="none", delta=0.75),
        lambda x: numpy.where(
            abs(x - 0.75) < 0.75, (x - 0.75) ** 2 / 2, 0.75 * (abs(x - 0.75) - 0.375)
        ),
        lambda x, y: numpy.clip(x - 0.75, -0.75, 0.75),
    ),
    "binary_cross_entropy": (
        lambda x: F.binary_cross_entropy(x, jaxgrad.full_like(x, 0.25), reduction="none"),
        lambda x: -0.25 * numpy.log(x) - 0.75 * numpy.log1p(-x),
        lambda x, y: (x - 0.25) / (x * (1 - x)),
    ),
}
# in one program XLA may compute the slope from the result before it is rounded
OF_RESULT = {"sigmoid", "tanh"}
DOMAINS = {"log2": (1e-4, 1e4), "log10": (1e-4, 1e4), "acosh": (1.01, 1e4)}
DOMAINS |= {
    "glu": (-10, 5),
    "binary_cross_entropy": (0.001, 0.99),
    "softsign": (-99, 99),
    "exp2": (-14, 14),
}


def numbers_of(dtype, low=-10.0, high=10.0):
    """All numbers of a dtype between the bounds, those next to zero left out."""
    numbers = numpy.arange(1 << 16, dtype=numpy.uint16).view(dtype)
    with numpy.errstate(invalid="ignore"):
        wide = numbers.astype(numpy.float64)
    return numbers[(wide >= low) & (wide <= high) & (abs(wide) > 1e-3)]


def check_rounded_once(result, exact, dtype):
    """Within 0.75 units in the last place, since float32 rounds too; denormal numbers left out."""
    digits = {"float16": 10, "bfloat16": 7}[dtype.name]
    _, exponents = numpy.frexp(exact)
    units = numpy.exp2(exponents - 1.0 - digits)
    normal = abs(exact) > 2.0**-14
    wrong = normal & ~(abs(result.astype(numpy.float64) - exact) <= 0.75 * units)
    assert not wrong.any(), (result[wrong][:3], exact[wrong][:3], wrong.mean())


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_half_precision_is_rounded_once(name, dtype):
    operator, value, slope = CASES[name]
    numbers = numbers_of(dtype, *DOMAINS.get(name, ()))
    x = jaxgrad.asarray(numbers).requires_grad_()
    wide = numbers.astype(numpy.float64)
    y = operator(x)
    result = y.detach().numpy()
    check_rounded_once(result, value(wide), dtype)
    if slope is not None:
        exact = slope(wide, result.astype(numpy.float64))
        y.backward(jaxgrad.ones_like(y))
        check_rounded_once(x.grad.numpy(), exact, dtype)
    if slope is not None and name not in OF_RESULT:
        with forward_ad.dual_level():
            dual = operator(forward_ad.make_dual(x.detach(), jaxgrad.ones_like(x)))
            tangent = forward_ad.unpack_dual(dual).tangent
        check_rounded_once(tangent.numpy(), exact, dtype)
    count("half precision")
