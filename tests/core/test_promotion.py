"""Type promotion against PyTorch's, as tests/oracle/record_promotion.py recorded it."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers import checks
from helpers.answers import beside, load

from jaxgrad.core import dtypes, promotion

RECORDED = load(beside(__file__))
OPERANDS = RECORDED["operands"]
NUMBERS = {"bool": True, "int": 2, "float": 1.5, "complex": 1.5 + 2j}
FUNCTIONS = {
    "result_type": promotion.result_type,
    "add": promotion.common(jnp.add),
    "mul": promotion.common(jnp.multiply),
    "true_divide": promotion.floating(jnp.true_divide),
    "eq": promotion.comparison(jnp.equal),
}


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(params=RECORDED["defaults"])
def default(request):
    dtypes.set_default_dtype(getattr(dtypes, request.param))
    yield request.param
    dtypes.set_default_dtype(dtypes.float32)


def dtype_named(name):
    return getattr(dtypes, name)


def operand(name):
    if name in NUMBERS:
        return NUMBERS[name]
    dtype, ndim = name.rstrip("]").split("[")
    return numpy.ones((1,) * int(ndim), dtype_named(dtype).numpy)


def outcome(function, *operands):
    """The name of the result's dtype, or the error."""
    try:
        result = function(*operands)
    except RuntimeError as error:
        return error
    return str(result) if isinstance(result, bool) else dtype_name(result)


def dtype_name(result):
    return dtypes.as_dtype(getattr(result, "dtype", result)).name


def traced_outcomes(function, left):
    """With each operand on the right; under a trace, where nothing need be compiled."""
    operands = {name: operand(name) for name in OPERANDS}
    numbers = {name: operands.pop(name) for name in NUMBERS}
    results = []

    def run(traced):
        values = numbers | traced
        results.extend(outcome(function, values[left], values[right]) for right in OPERANDS)

    jax.eval_shape(run, operands)
    return results


WITHOUT_KERNELS = {"uint16", "uint32", "uint64"}  # PyTorch promotes to them, and cannot add them


def agrees(result, promoted, expected):
    """`promoted` is PyTorch's result_type, `expected` the dtype of its result."""
    if promoted == "complex32":
        # JAX's arrays have no complex32: frontend/half_complex.py computes what raises here
        return result == promoted or (
            isinstance(result, NotImplementedError) and "complex32" in str(result)
        )
    if promoted == "None":
        return "Promotion for uint16, uint32, uint64 types is not supported" in str(result)
    if expected == "None":
        return promoted in WITHOUT_KERNELS and result in (promoted, "bool")
    return result == expected


def mismatches(results, promoted, expected):
    rows = zip(OPERANDS, results, promoted, expected, strict=True)
    return [row for row in rows if not agrees(*row[1:])]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("left", OPERANDS)
def test_promotion_of_all_pairs_of_dtypes(default, function, left):
    recorded = RECORDED["defaults"][default]
    promoted, expected = (recorded[name][left].split() for name in ("result_type", function))
    results = traced_outcomes(FUNCTIONS[function], left)
    assert mismatches(results, promoted, expected) == []
    checks.count("promotion", len(expected))


def test_promotion_of_one_operand(default):
    row = RECORDED["defaults"][default]["sin"]
    sin = promotion.floating(jnp.sin)
    result_types = {name: jax.eval_shape(sin, operand(name)).dtype.name for name in row}
    # PyTorch has no sine of the wide unsigned, but would promote them as the other integers
    assert result_types == {name: default if row[name] == "None" else row[name] for name in row}
    checks.count("promotion", len(row))


@pytest.mark.parametrize("function", ["promote_types", "can_cast"])
@pytest.mark.parametrize("left", RECORDED["attributes"])
def test_promotion_of_dtypes_alone(function, left):
    expected = RECORDED[function][left].split()
    of_ours, first = getattr(promotion, function), dtype_named(left)
    results = [outcome(of_ours, first, dtype_named(right)) for right in RECORDED["attributes"]]
    pairs = zip(results, expected, strict=True)
    assert all(agrees(result, recorded, recorded) for result, recorded in pairs)
    checks.count("promotion", len(expected))


@pytest.mark.parametrize("kind", NUMBERS)
def test_weak_values_are_numbers(default, kind):
    weak = jnp.asarray(NUMBERS[kind])
    if kind != "bool":  # JAX has no weak booleans
        assert weak.weak_type
        pairs = [(operand(name), name) for name in OPERANDS if "complex" in name or "64" in name]
        for other, name in pairs:
            expected = RECORDED["defaults"][default]["result_type"][kind].split()
            assert promotion.result_type(weak, other).name == expected[OPERANDS.index(name)]
    assert promotion.cast(weak, dtypes.complex64).weak_type is False


@pytest.mark.parametrize("number", [numpy.float32(1.5), numpy.float64(1.5), numpy.float16(1.5)])
def test_numpy_scalars_are_numbers(number):
    assert promotion.result_type(jnp.ones(2, "float16"), number) is dtypes.float16
    assert promotion.result_type(jnp.ones(2, "int8"), number) is dtypes.float32
    (converted, _) = promotion.unify(number, jnp.ones(2, "bfloat16"))
    assert (converted.dtype, float(converted)) == (jnp.bfloat16, 1.5)


def parsed(text):
    """The number that `repr` wrote."""
    if text in ("True", "False"):
        return text == "True"
    if "j" in text:
        return complex(text)
    return int(text) if text.lstrip("-").isdigit() else float(text)


def described(function, *arguments):
    """The repr of the result, or the error, as the recording has them."""
    try:
        return repr(function(*arguments))
    except (RuntimeError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"


def filled(number, dtype):
    return promotion.cast(promotion.checked_element(number, dtype, ()), dtype).item()


def beside(number, dtype):
    """The number as an operator with a tensor sees it."""
    converted, _ = promotion.unify(number, jnp.zeros(1, dtype.numpy))
    return converted


@pytest.mark.parametrize("number", RECORDED["conversions"])
def test_numbers_as_elements(number):
    for name, (expected, _) in RECORDED["conversions"][number].items():
        text = described(filled, parsed(number), dtype_named(name))
        assert text.startswith(expected) if "Error" in expected else text == expected, name
    checks.count("promotion", len(RECORDED["conversions"][number]))


@pytest.mark.parametrize("number", RECORDED["conversions"])
def test_numbers_as_operands(number):
    recorded = {name: pair[1] for name, pair in RECORDED["conversions"][number].items()}
    for name, expected in recorded.items():
        if expected is not None and not expected.startswith("complex32"):
            array = beside(parsed(number), dtype_named(name))
            assert f"{array.dtype.name} {array.item()!r}" == expected
            checks.count("promotion")


def test_numbers_of_more_than_64_bits():
    with pytest.raises(OverflowError, match="int too big to convert"):
        promotion.cast(2**64, dtypes.float32)


def test_complex_never_becomes_real_silently():
    values = jnp.asarray([1.0 + 1.0j, 2.0])
    words = "result type ComplexDouble can't be cast to the desired output type Float"
    for array in (values, numpy.asarray(values)):
        with pytest.raises(RuntimeError, match=words):
            promotion.cast(array, dtypes.float32)
    with pytest.raises(RuntimeError, match="without overflow"):
        promotion.cast(1j, dtypes.float32)


def test_complex_is_true_where_either_part_is():
    values = jnp.asarray([1j, 0, 1, float("nan")], jnp.complex64)
    # torch.tensor([1j, 0, 1, nan]).bool()
    assert promotion.cast(values, dtypes.bool).tolist() == [True, False, True, True]


def test_cast_returns_what_needs_no_conversion():
    values = jnp.ones(3, jnp.float16)
    assert promotion.cast(values, dtypes.float16) is values


def test_what_is_no_operand_passes_untouched():
    seen = promotion.common(lambda *arguments, **keywords: (*arguments, keywords))
    array, none, text, keywords = seen(jnp.ones(2, jnp.int8), None, "sum", alpha=2, dim=(0, 1))
    assert (array.dtype, none, text, keywords) == ("int8", None, "sum", {"alpha": 2, "dim": (0, 1)})


def test_decorated_functions_keep_their_names():
    for decorate in (promotion.common, promotion.floating, promotion.comparison):
        assert decorate(jnp.hypot).__name__ == "hypot"


def test_promotion_under_vmap_sees_the_dimensions_of_one_example():
    add = promotion.common(jnp.add)
    scalars, half = jnp.ones(3, jnp.float64), jnp.ones(3, jnp.float16)
    assert add(scalars, half).dtype == jnp.float64
    assert jax.vmap(add, in_axes=(0, None))(scalars, half).dtype == jnp.float16


@pytest.mark.parametrize("operands", [(), (None,), ("text",), ([1.0],)])
def test_promotion_without_operands_raises(operands):
    with pytest.raises((TypeError, ValueError), match="dtype"):
        promotion.result_type(*operands)


def test_64_bits_under_the_users_own_jit():
    add = promotion.common(jnp.add)

    @jax.jit
    def users(integers):
        total = add(integers, 1)
        assert promotion.cast(2, dtypes.int64).dtype == promotion.cast(True, dtypes.int64).dtype
        return promotion.cast(total, dtypes.int64), promotion.cast(total, dtypes.uint64)

    with jax.enable_x64(False):
        signed, unsigned = users(numpy.arange(3))
    assert (signed.dtype, unsigned.dtype) == ("int32", "uint32")
    assert signed.tolist() == [1, 2, 3]


@pytest.mark.parametrize("wide", [dtypes.float64, dtypes.complex128])
def test_float64_is_refused_while_x64_is_off(wide):
    double = jnp.ones(2, wide.numpy)
    with jax.enable_x64(False):
        assert promotion.cast(double, wide) is double
        for value in (1.5, jnp.ones(2)):
            with pytest.raises(RuntimeError, match=r"is not available.*enable_x64"):
                promotion.cast(value, wide)


def test_numbers_that_only_int64_holds_are_refused_while_x64_is_off():
    with jax.enable_x64(False), pytest.raises(RuntimeError, match="type int without overflow"):
        promotion.cast(2**40, dtypes.int64)


@pytest.mark.parametrize("function", [promotion.promote_types, promotion.can_cast])
def test_dtypes_are_needed(function):
    with pytest.raises(TypeError, match=r"\(position 1\) must be torch.dtype, not int"):
        function(1, 2)
    with pytest.raises(TypeError, match=r"\(position 2\) must be torch.dtype, not str"):
        function(dtypes.float32, "float32")
