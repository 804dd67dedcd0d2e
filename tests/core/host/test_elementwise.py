"""The host's rules of elementwise primitives, compared with XLA and with double precision."""

import jax
import numpy as np
import pytest
from helpers import checks
from helpers.host_rules_elementwise import (
    assert_near,
    by_wider_xla,
    by_xla,
    check,
    dtype_of,
    on_host,
)
from jax import lax

from jaxgrad.core.host.block import Block
from jaxgrad.core.host.equation import NotOnHostError

FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.5,
    -3.5,
    np.inf,
    -np.inf,
    np.nan,
    1e4,
    -1e4,
    0.4999,
    7.0,
]
COMPLEX_EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-3, 30.0, -40.0]

UNARY = {
    **{name: getattr(lax, name) for name in ["abs", "neg", "sign", "square", "sqrt", "rsqrt"]},
    **{name: getattr(lax, name) for name in ["exp", "exp2", "expm1", "log", "log1p", "logistic"]},
    **{name: getattr(lax, name) for name in ["sin", "cos", "tan", "asin", "acos", "atan"]},
    **{name: getattr(lax, name) for name in ["sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]},
    **{f"integer_pow {y}": lambda x, y=y: lax.integer_pow(x, y) for y in (0, 1, 2, 3, 7, -1, -3)},
}
REAL = {
    **{name: getattr(lax, name) for name in ["cbrt", "floor", "ceil", "is_finite"]},
    "round to even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "round away": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
}
BINARY = {
    **{name: getattr(lax, name) for name in ["add", "sub", "mul", "div", "eq", "ne", "max", "min"]},
    "add_any": lambda x, y: jax.vjp(lambda z: (z, z), x)[1]((x, y)),
    "complex": lambda x, y: lax.complex(x, y) if x.dtype.name in SINGLES else x,
}
SINGLES = "float32", "float64"
ORDERED = {name: getattr(lax, name) for name in ["lt", "le", "gt", "ge", "rem"]}
REAL_PAIRS = {name: getattr(lax, name) for name in ["atan2", "nextafter", "pow"]}
TOTAL = {
    name: getattr(lax, f"{name}_p").bind
    for name in ("eq_to", "le_to", "lt_to")
    if hasattr(lax, f"{name}_p")
}
# the accuracy of XLA itself, in ulp
XLA_ULPS = {"float16": 1, "bfloat16": 1, "float32": 16, "float64": 128}


def random(size, seed=0):
    return np.random.default_rng(seed).normal(size=size)


def floats(dtype, seed=0):
    """Edge values and random ones, of either sign and of several orders of magnitude."""
    sizes = np.exp(2 * random(40, seed + 1))
    return np.concatenate([EDGES, random(40, seed), random(40, seed) * sizes]).astype(dtype)


def pairs(numbers):
    """All pairs of the first numbers, and some of the others."""
    first, second = np.meshgrid(numbers[:15], numbers[:15])
    return (
        np.concatenate([first.ravel(), numbers[15:]]),
        np.concatenate([second.ravel(), numbers[:14:-1]]),
    )


def complex_numbers(dtype):
    edges = [complex(real, imag) for real in COMPLEX_EDGES for imag in COMPLEX_EDGES]
    return np.concatenate([edges, random(40) + 1j * random(40, 1)]).astype(dtype)


def integers(dtype):
    dtype = np.dtype(dtype)
    limits = np.iinfo(dtype)
    edges = [limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1, 2, 3, 7, 8, 15, 31, 33]
    edges += [63, 64, 100]
    rng = np.random.default_rng(0)
    numbers = rng.integers(limits.min, limits.max, 40, dtype, endpoint=True)
    signed = [-1, -2, -7] if limits.min else [5, 6, 9]
    return np.concatenate([np.array(edges + signed, dtype), numbers])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*UNARY, *REAL])
def test_functions_of_floats(name, dtype):
    function = {**UNARY, **REAL}[name]
    with jax.enable_x64(True):
        numbers = floats(dtype_of(dtype))
        tiny = 1e-37 if dtype != "float64" else 0
        check(function, numbers, ulps=XLA_ULPS[dtype], tiny=tiny, oracle=by_wider_xla)


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "uint32"])
def test_clamp(dtype):
    with jax.enable_x64(True):
        numbers = (floats if dtype in FLOATS else integers)(dtype_of(dtype))[:14]
        operands = [grid.ravel() for grid in np.meshgrid(numbers, numbers, numbers)]
        check(lax.clamp, *operands)
        check(lambda x: lax.clamp(x.dtype.type(1), x, x.dtype.type(3)), numbers)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_complex_numbers(name, dtype):
    with jax.enable_x64(True):
        ulps = 8 if dtype == "complex64" else 4096
        check(UNARY[name], complex_numbers(dtype), ulps=ulps, tiny=1e-37, oracle=by_wider_xla)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*BINARY, *ORDERED, *REAL_PAIRS])
def test_functions_of_two_floats(name, dtype):
    function = {**BINARY, **ORDERED, **REAL_PAIRS}[name]
    with jax.enable_x64(True):
        operands = pairs(floats(dtype_of(dtype)))
        ulps = XLA_ULPS[dtype] if name in ("atan2", "pow") else 0
        if dtype == "bfloat16" or dtype == "float16":
            ulps = 1
        check(function, *operands, ulps=ulps, tiny=1e-37 if dtype != "float64" else 0)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", [name for name in BINARY if name != "complex"])
def test_functions_of_two_complex_numbers(name, dtype):
    with jax.enable_x64(True):
        check(BINARY[name], *pairs(complex_numbers(dtype)), ulps=8)


def test_max_of_complex_numbers_takes_the_second_if_the_first_is_nan():
    numbers = np.array([complex(x, y) for x in EDGES for y in EDGES], np.complex64)
    check(lambda x, y: (lax.max(x, y), lax.min(x, y)), *pairs(numbers))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_powers_of_complex_numbers(dtype):
    with jax.enable_x64(True):
        base, exponent = pairs(complex_numbers(dtype)[30:])
        (expected,) = by_wider_xla(lax.pow, base, exponent)
        is_usual = (np.abs(expected) < 1e30) & (np.abs(expected) > 1e-30)
        assert is_usual.sum() > 100
        base, exponent = base[is_usual], exponent[is_usual]
        check(lax.pow, base, exponent, ulps=4096, oracle=by_wider_xla)


@pytest.mark.parametrize("exponent", ["int32", "uint8", "int64"])
@pytest.mark.parametrize("dtype", [*FLOATS, "complex64"])
def test_powers_with_integer_operands(dtype, exponent):
    with jax.enable_x64(True):
        base = np.resize([0.5, -0.5, 2.0, -2.0, -1.0, 0.0, 1.5], 77).astype(dtype_of(dtype))
        exponents = np.repeat([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 7).astype(exponent)
        check(lax.pow, base, exponents, ulps=1 if dtype in FLOATS else 32)


def test_a_large_odd_power_of_minus_one():
    odd = (1 << 24) + 1
    check(lambda x: lax.integer_pow(x, odd), np.float32([-1, 1, -1, 0, 2, -2, -1, 1]))


# ---- Integers and bits

WHOLE = {
    **{name: getattr(lax, name) for name in ["sign", "square", "population_count", "clz"]},
    "neg": lax.neg,
    "abs": lambda x: lax.abs(x) if np.issubdtype(x.dtype, np.signedinteger) else x,
    "not": lax.bitwise_not,
    "integer_pow": lambda x: lax.integer_pow(x, 11),
}
WHOLE_PAIRS = {
    **{
        name: getattr(lax, name)
        for name in ["add", "sub", "mul", "div", "rem", "max", "min", "eq", "ne", "lt", "le"]
    },
    **{name: getattr(lax, name) for name in ["gt", "ge", "shift_left", "shift_right_logical"]},
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    **TOTAL,
}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_integers(dtype):
    with jax.enable_x64(True):
        check(lambda x: [function(x) for function in WHOLE.values()], integers(dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_two_integers(dtype):
    with jax.enable_x64(True):
        first, second = (side.ravel() for side in np.meshgrid(integers(dtype), integers(dtype)))
        check(lambda x, y: [f(x, y) for f in WHOLE_PAIRS.values()], first, second)


if hasattr(lax, "mulhi"):  # since JAX 0.11

    @pytest.mark.parametrize("dtype", INTEGERS)
    def test_the_upper_half_of_a_product(dtype):
        width = 8 * np.dtype(dtype).itemsize
        with jax.enable_x64(True):
            first, second = (side.ravel() for side in np.meshgrid(integers(dtype), integers(dtype)))
            computed = on_host(lax.mulhi, first, second)[0]
        exact = [int(x) * int(y) >> width for x, y in zip(first, second, strict=True)]
        assert_near(computed, np.array(exact, dtype))


def test_functions_of_booleans():
    first, second = np.resize([True, False], 12), np.resize([True, True, False, False], 12)
    names = [
        "max",
        "min",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
    ]
    pair = [getattr(lax, name) for name in names] + [*TOTAL.values()]
    check(lambda x, y: [*(f(x, y) for f in pair), ~x], first, second)


@pytest.mark.parametrize("dtype", FLOATS)
def test_total_order(dtype):
    with jax.enable_x64(True):
        numbers = np.array([*EDGES, -np.nan], dtype_of(dtype))
        numbers = np.concatenate([numbers, -numbers])
        first, second = (side.ravel() for side in np.meshgrid(numbers, numbers))
        check(lambda x, y: [compare(x, y) for compare in TOTAL.values()], first, second)


# ---- Zeros, choices and forms of operands


@pytest.mark.parametrize("name", ["sign", "round to even", "round away", "floor", "sqrt", "neg"])
def test_the_sign_of_zero(name):
    numbers = np.float32([-0.0, 0.0, -0.25, 0.25, 0.5, -0.5])[:: -1 if name == "neg" else 1]
    numbers = numbers[:2] if name == "sqrt" else numbers
    function = {**UNARY, **REAL}[name]
    computed, expected = on_host(function, numbers)[0], by_xla(function, numbers)[0]
    assert np.array_equal(np.signbit(computed), np.signbit(expected))
    checks.count("host rules", numbers.size)


@pytest.mark.parametrize("dtype", ["bool", "int32", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("cases", [1, 2, 3, 40])
def test_select(cases, dtype):
    operands = [np.full(12, number % 7).astype(dtype_of(dtype)) for number in range(cases)]
    which = np.arange(-2, 10, dtype=np.int32)
    for index in [which, which % 2 == 0] if cases <= 2 else [which]:
        check(lax.select_n, index, *operands)
        for scalar in (index[0], index[-1]):
            (computed,) = on_host(lax.select_n, scalar, *operands)
            assert_near(computed, operands[min(max(int(scalar), 0), cases - 1)])


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float32", "int32", "complex64"])
def test_select_of_many(dtype):
    numbers = np.random.default_rng(0).choice(EDGES if dtype != "int32" else [1, -2, 3], (2, 130))
    first, second = numbers.astype(dtype_of(dtype))
    strided = np.broadcast_to(first, (130, 130)), np.broadcast_to(second, (130, 130)).T
    condition = np.random.default_rng(1).random((130, 130)) < 0.5
    (chosen,) = on_host(lax.select_n, condition, *strided)
    for place in np.ndindex(condition.shape):  # NaN and the signs of zeros too
        assert chosen[place].tobytes() == strided[int(condition[place])][place].tobytes()


@pytest.mark.parametrize("name", ["add", "div", "lt", "max", "pow"])
def test_an_operand_without_dimensions(name):
    numbers = floats(np.float32).reshape(-1, 5)
    jaxpr = jax.make_jaxpr(lambda x: getattr(lax, name)(x, np.float32(2)))(numbers)
    assert any(not equation.invars[-1].aval.shape for equation in jaxpr.eqns)
    function = lambda x: getattr(lax, name)(x, np.float32(2))  # noqa: E731
    assert_near(on_host(function, numbers)[0], by_xla(function, numbers)[0], 4)


def test_parts_of_complex_numbers():
    numbers = complex_numbers(np.complex64)
    check(lambda z: [lax.real(z), lax.imag(z), lax.conj(z), lax.complex(z.imag, z.real)], numbers)
    check(lax.conj, floats(np.float32))


@pytest.mark.parametrize(
    "function", [lax.add, lax.mul, lambda x, y: lax.select(x < y, x, y), lax.max]
)
def test_other_dtypes_are_refused(function):
    numbers = np.zeros(3, dtype_of("float8_e4m3fn"))
    block = Block(jax.make_jaxpr(function)(numbers, numbers))
    with pytest.raises(NotOnHostError, match="float8"):
        block.function  # noqa: B018


def test_other_forms_are_refused():
    numbers = np.ones(3, np.complex64)
    for function in (lambda z: lax.atan2(z, z), lambda z: lax.clamp(z, z, z)):
        block = Block(jax.make_jaxpr(function)(numbers))
        with pytest.raises(NotOnHostError, match="complex"):
            block.function  # noqa: B018


# ---- Accuracy

COUNT = 20_000


def uniform(low, high):
    return np.random.default_rng(0).uniform(low, high, COUNT)


def exponential(low, high):
    return np.exp(uniform(low, high))


SIGNED = exponential(-80, 80) * np.resize([1, -1], COUNT)
UNIT, NEAR = uniform(-1, 1), uniform(-20, 20)
RANGES = {
    **dict.fromkeys(("sin", "cos", "tan"), (NEAR, UNIT, 1000.0 * UNIT)),
    **{name: (uniform(-87, 88), UNIT) for name in ("exp", "expm1", "sinh", "cosh")},
    "exp2": (uniform(-125, 127), UNIT),
    "log": (exponential(-80, 80), 1 + UNIT / 3),
    "log1p": (exponential(-80, 80), UNIT, 1e-4 * UNIT),
    **{name: (exponential(-80, 80),) for name in ("sqrt", "rsqrt")},
    "cbrt": (SIGNED,),
    **dict.fromkeys(("asin", "acos", "atanh"), (UNIT, 0.001 * UNIT)),
    **dict.fromkeys(("atan", "asinh", "tanh"), (SIGNED, NEAR, UNIT)),
    "acosh": (1 + exponential(-8, 80),),
    "logistic": (uniform(-80, 40), UNIT),
}
EXACT = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


@pytest.mark.parametrize("name", RANGES)
def test_single_precision_is_accurate(name):
    numbers = np.concatenate(RANGES[name]).astype(np.float32)
    computed = on_host(getattr(lax, name), numbers)[0]
    assert_within_ulps(computed, EXACT.get(name, getattr(np, name, None))(numbers.astype(float)), 4)


@pytest.mark.parametrize("name", ["pow", "atan2", "div"])
def test_single_precision_of_two_operands_is_accurate(name):
    first = exponential(-20, 20).astype(np.float32)
    second = NEAR.astype(np.float32) / (10 if name == "pow" else 1)
    exact = {"pow": np.power, "atan2": np.arctan2, "div": np.divide}[name]
    expected = exact(first.astype(float), second.astype(float))
    assert_within_ulps(on_host(getattr(lax, name), first, second)[0], expected, 4)


@pytest.mark.parametrize("power", [-7, -2, 3, 4, 5, 11])
def test_integer_powers_in_single_precision_are_accurate(power):
    numbers = exponential(-7, 7).astype(np.float32)
    computed = on_host(lambda x: lax.integer_pow(x, power), numbers)[0]
    assert_within_ulps(computed, numbers.astype(float) ** power, 4)


@pytest.mark.parametrize(
    "name",
    ["exp", "expm1", "log", "log1p", "cbrt", "tan", "asin", "acos", "atan", "cosh", "logistic"],
)
def test_functions_in_single_precision_are_accurate(name):
    numbers = random(20_000).astype(np.float32)
    if name.startswith("log"):
        numbers = np.abs(numbers)
    if name in ("asin", "acos"):
        numbers = np.tanh(numbers)
    with jax.enable_x64(True):
        expected = by_xla(getattr(lax, name), numbers.astype(float))[0]
    computed = on_host(getattr(lax, name), numbers)[0]
    assert_within_ulps(computed, expected, 2 if name == "logistic" else 0.51)


def assert_within_ulps(computed, expected, ulps):
    assert np.isfinite(computed).all()
    spacing = np.spacing(np.abs(expected).astype(np.float32)).astype(float)
    assert (np.abs(computed - expected) / spacing).max() <= ulps
    checks.count("host rules", computed.size)
