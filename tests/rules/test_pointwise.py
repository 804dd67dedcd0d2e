"""What samples of arithmetic and pointwise operators cannot say: errors in PyTorch's words, and
derivatives that PyTorch lacks or has wrong, against closed forms."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from checks import count

import jaxgrad
from jaxgrad import ops

BOOLEANS, INTEGERS, COMPLEX = [True, False], [3, 4], [1 + 2j, 3j]
INFINITE = numpy.inf

REFUSED = [
    (
        "add",
        ([1.0, 2.0], [1.0, 2.0, 3.0]),
        RuntimeError,
        "must match the size of tensor b (3) at non-singleton dimension 0: add",
    ),
    (
        "mul",
        ([[1.0], [2.0]], [[1.0]] * 3),
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3) at",
    ),
    ("where", (BOOLEANS, [1.0], [1.0, 2.0, 3.0]), RuntimeError, "non-singleton dimension 0: where"),
    ("lt", ([1.0, 2.0], [1.0, 2.0, 3.0]), RuntimeError, "must match the size of tensor b (3)"),
    (
        "sub",
        (BOOLEANS, BOOLEANS),
        RuntimeError,
        "with two bool tensors is not supported. Use the `^` or",
    ),
    ("sub", (INTEGERS, BOOLEANS), RuntimeError, "with a bool tensor is not supported"),
    ("rsub", (BOOLEANS, 1), RuntimeError, "with a bool tensor is not supported"),
    (
        "neg",
        (BOOLEANS,),
        RuntimeError,
        "Negation, the `-` operator, on a bool tensor is not supported",
    ),
    ("positive", (BOOLEANS,), RuntimeError, "The `+` operator, on a bool tensor is not supported"),
    (
        "add",
        (INTEGERS, INTEGERS, {"alpha": 1.5}),
        RuntimeError,
        "For integral input tensors, argument alpha must not be a floating",
    ),
    (
        "add",
        (INTEGERS, INTEGERS, {"alpha": True}),
        RuntimeError,
        "Boolean alpha only supported for Boolean results",
    ),
    (
        "sub",
        ([1.0], [1.0], {"alpha": 1j}),
        RuntimeError,
        "For non-complex input tensors, argument alpha must not be",
    ),
    (
        "addcdiv",
        (INTEGERS, INTEGERS, INTEGERS),
        RuntimeError,
        "Integer division with addcdiv is no longer supported",
    ),
    (
        "div",
        ([1.0], [1.0], {"rounding_mode": "ceil"}),
        RuntimeError,
        "one of None, 'trunc', or 'floor' but found 'ceil'",
    ),
    ("div", (INTEGERS, [1, 0], {"rounding_mode": "floor"}), RuntimeError, "ZeroDivisionError"),
    ("floor_divide", (INTEGERS, 0), RuntimeError, "ZeroDivisionError"),
    ("remainder", (INTEGERS, 0), RuntimeError, "ZeroDivisionError"),
    ("fmod", (INTEGERS, [0, 1]), RuntimeError, "ZeroDivisionError"),
    ("pow", (INTEGERS, -1), RuntimeError, "Integers to negative integer powers are not allowed"),
    ("pow", (INTEGERS, -5), RuntimeError, "Integers to negative integer powers are not allowed"),
    ("pow", (BOOLEANS, BOOLEANS), NotImplementedError, "not implemented for 'Bool'"),
    (
        "remainder",
        (COMPLEX, COMPLEX),
        NotImplementedError,
        "\"remainder\" not implemented for 'ComplexFloat'",
    ),
    ("abs", (BOOLEANS,), NotImplementedError, "not implemented for 'Bool'"),
    (
        "sign",
        (COMPLEX,),
        NotImplementedError,
        "torch.sign is not intended to support complex numbers",
    ),
    ("lt", (COMPLEX, 1), NotImplementedError, "not implemented for 'ComplexFloat'"),
    ("bitwise_and", ([1.0], [1.0]), NotImplementedError, "not implemented for 'Float'"),
    ("bitwise_not", ([1.0],), NotImplementedError, "not implemented for 'Float'"),
    ("clamp", ([1.0],), RuntimeError, "At least one of 'min' or 'max' must not be None"),
    ("clamp", (COMPLEX, 0, 1), NotImplementedError, "clamp is not supported for complex types"),
    ("maximum", (COMPLEX, COMPLEX), RuntimeError, "maximum not implemented for complex tensors"),
    ("fmin", (COMPLEX, COMPLEX), RuntimeError, "fmin not implemented for complex tensors"),
    ("ceil", (COMPLEX,), NotImplementedError, "ceil is not supported for complex inputs"),
    ("floor", (BOOLEANS,), NotImplementedError, "not implemented for 'Bool'"),
    ("frac", (INTEGERS,), NotImplementedError, "\"frac\" not implemented for 'Long'"),
    ("round", (INTEGERS, {"decimals": 1}), NotImplementedError, "not implemented for 'Long'"),
    ("atan2", (COMPLEX, COMPLEX), NotImplementedError, "not implemented for 'ComplexFloat'"),
    ("hypot", (INTEGERS, INTEGERS), NotImplementedError, "not implemented for 'Long'"),
    ("erf", (COMPLEX,), NotImplementedError, "\"erf\" not implemented for 'ComplexFloat'"),
    ("lerp", (INTEGERS, INTEGERS, 0.5), NotImplementedError, "\"lerp\" not implemented for 'Long'"),
    (
        "lerp",
        ([1.0], [1j], 0.5),
        RuntimeError,
        "expected dtype float32 for `end` but got dtype complex64",
    ),
    ("imag", ([1.0],), RuntimeError, "imag is not implemented for tensors with non-complex dtypes"),
    (
        "where",
        ([1.0], [1.0], [1.0]),
        RuntimeError,
        "to be a boolean tensor, but got a tensor with dtype Float",
    ),
]


@pytest.mark.parametrize(("name", "arguments", "error", "words"), REFUSED)
def test_what_is_refused(name, arguments, error, words):
    keywords = arguments[-1] if isinstance(arguments[-1], dict) else {}
    positional = arguments[:-1] if keywords else arguments
    given = [jaxgrad.tensor(each) if isinstance(each, list) else each for each in positional]
    with pytest.raises(error) as caught:
        getattr(jaxgrad, name)(*given, **keywords)
    assert words in str(caught.value)
    count("errors")


def gradient(function, *numbers):
    with jax.enable_x64(True):
        points = [jnp.asarray(number) for number in numbers]
        return [each.tolist() for each in jax.grad(function, range(len(points)))(*points)]


@pytest.mark.slow
def test_gradients_that_torch_has_not():
    assert gradient(lambda x: ops.remainder(5.5, x), 2.0) == [-2.0]
    assert gradient(lambda x, y: ops.floor_divide(x, y), 5.5, 2.0) == [0.0, 0.0]
    assert gradient(lambda x: ops.floor_divide(x, 2), 5.5) == [0.0]
    count("closed forms", 3)


def test_nan_to_num_of_complex_numbers_part_by_part():
    z = jaxgrad.tensor([complex(numpy.nan, 2), complex(1, numpy.inf)], requires_grad=True)
    result = jaxgrad.nan_to_num(z, posinf=7.0)
    assert result.tolist() == [2j, 1 + 7j]
    result.backward(jaxgrad.tensor([3 + 4j, 5 + 6j]))
    assert z.grad.tolist() == [4j, 5 + 0j]
    count("closed forms", 2)


def test_where_of_real_and_complex():
    real = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    other = jaxgrad.tensor([1j, 2j], requires_grad=True)
    result = jaxgrad.where(jaxgrad.tensor([True, False]), real, other)
    result.backward(jaxgrad.tensor([3 + 4j, 5 + 6j]))
    assert (real.grad.tolist(), other.grad.tolist()) == ([3.0, 0.0], [0j, 5 + 6j])
    count("closed forms", 2)


def test_complex_to_real_drops_the_imaginary_part_with_a_warning():
    z = jaxgrad.tensor([1 + 2j], requires_grad=True)
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        x = z.to(jaxgrad.float32)
    x.backward(jaxgrad.tensor([3.0]))
    assert (x.tolist(), z.grad.tolist()) == ([1.0], [3 + 0j])
    count("closed forms", 2)


SECOND = {
    # d2/dx dy x ** y is 1 / x at y = 0, where PyTorch has 0
    "pow": (lambda x, y: ops.pow(x, y), (2.0, 0.0), [[0.0, 0.5], [0.5, numpy.log(2.0) ** 2]]),
    "square": (lambda x, y: ops.pow(x, 2) * y, (0.0, 1.0), [[2.0, 0.0], [0.0, 0.0]]),
    "abs": (lambda x, y: ops.abs(x) * y, (0.0, 1.0), [[0.0, 0.0], [0.0, 0.0]]),
    "atan2": (lambda x, y: ops.atan2(x, y), (0.0, 0.0), [[0.0, 0.0], [0.0, 0.0]]),
    "xlogy": (lambda x, y: ops.xlogy(x, y), (0.0, 2.0), [[0.0, 0.5], [0.5, 0.0]]),
    "maximum": (lambda x, y: ops.maximum(x * x, y), (1.0, 1.0), [[1.0, 0.0], [0.0, 0.0]]),
    "logaddexp": (lambda x, y: ops.logaddexp(x, y), (2e3, 0.0), [[0.0, 0.0], [0.0, 0.0]]),
    "remainder": (lambda x, y: ops.remainder(x, y), (5.5, 2.0), [[0.0, 0.0], [0.0, 0.0]]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_at_kinks(name):
    function, point, expected = SECOND[name]
    for outer in (jax.jacrev, jax.jacfwd):
        for inner in (jax.jacrev, jax.jacfwd):
            with jax.enable_x64(True):
                found = outer(lambda p, inner=inner: inner(lambda q: function(*q))(p))(
                    jnp.array(point)
                )
            numpy.testing.assert_allclose(found, expected, 1e-12, 1e-12)
            count("closed forms")


@pytest.mark.parametrize(
    ("name", "still", "expected"),
    [("mul", INFINITE, INFINITE), ("div", 0.0, INFINITE), ("add", INFINITE, 1.0)],
)
def test_an_operand_that_stands_still_adds_no_zero_times_infinity(name, still, expected):
    function = getattr(ops, name)
    assert jax.jvp(lambda x: function(x, still), (1.0,), (1.0,))[1] == expected
    count("closed forms")


@pytest.mark.parametrize(
    ("function", "primitives"),
    [
        (lambda x: ops.add(x, x), {"add"}),
        (lambda x: ops.sub(x, x, alpha=1), {"sub"}),
        (lambda x: ops.pow(x, 2), {"square", "integer_pow"}),
        (lambda x: ops.pow(x, 0.5), {"sqrt"}),
        (lambda x: ops.addcmul(x, x, x), {"add", "mul"}),
    ],
)
def test_usual_constants_cost_nothing(function, primitives):
    names = {equation.primitive.name for equation in flat(jax.make_jaxpr(function)(jnp.ones(3)))}
    assert names <= primitives
    count("programs")


def flat(jaxpr):
    """The equations of a jaxpr, those of inner ones in place of the call."""
    for equation in jaxpr.eqns:
        inner = equation.params.get("call_jaxpr") or equation.params.get("jaxpr")
        yield from flat(inner) if inner is not None else [equation]


def test_integer_division_by_zero_under_a_trace_is_not_checked():
    divide = jaxgrad.jit(lambda x, y: x // y)
    assert divide(jaxgrad.tensor([7]), jaxgrad.tensor([2])).tolist() == [3]
    divide(jaxgrad.tensor([7]), jaxgrad.tensor([0]))
    count("programs")
