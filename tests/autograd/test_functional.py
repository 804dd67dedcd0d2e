"""autograd.functional, row by row of PyTorch's behaviour."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.as_torch import as_torch, error, leaf, parameters

import jaxgrad

JACOBIANS = (
    {},
    {"vectorize": True},
    {"vectorize": True, "strategy": "forward-mode"},
)
HESSIANS = (
    {},
    {"vectorize": True},
    {"vectorize": True, "outer_jacobian_strategy": "forward-mode"},
)


def points(torch):
    """Three tensors, of which the first requires grad."""
    x = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([3.0, 4.0], dtype=torch.float64)
    matrix = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], dtype=torch.float64)
    return x, y, matrix


def cubes(x):
    return (x**3).sum()


def product(x, y):
    return (x * x * y).sum()


def plain(result):
    """Without `requires_grad`: PyTorch's forward mode leaves its results attached."""
    return result.detach() if hasattr(result, "detach") else tuple(map(plain, result))


def name_of(result):
    """How results are nested."""
    return (
        [name_of(part) for part in result] if isinstance(result, tuple) else type(result).__name__
    )


# ---- jacobian


@pytest.mark.row("J01")
@pytest.mark.slow
@as_torch
def test_signatures_of_autograd_functional(torch):
    names = ("jacobian", "hessian", "vjp", "jvp", "vhp", "hvp")
    functions = [getattr(torch.autograd.functional, name) for name in names]
    return (
        [parameters(function) for function in functions],
        sorted(torch.autograd.functional.__all__),
    )


@pytest.mark.row("J01")
@pytest.mark.slow
@as_torch
def test_jacobian_of_inputs_and_outputs(torch):
    x, y, matrix = points(torch)
    jacobian = torch.autograd.functional.jacobian
    functions = (
        (torch.exp, x),
        (lambda x: x.sum(), x),
        (lambda x: matrix @ x, x),
        (lambda x: (x * y, x.sum()), x),
        (lambda x: (x * y,), x),
        (lambda x, y: x * y, (x, y)),
        (lambda x, y: (x * y, x.sum()), (x, y)),
        (lambda x: x * y, (x,)),
        (lambda x, m: (m * x, m.t() @ m), (x, matrix)),
    )
    return [
        plain(jacobian(function, inputs, **options))
        for function, inputs in functions
        for options in JACOBIANS
    ]


@pytest.mark.row("J01")
@pytest.mark.slow
@as_torch
def test_nesting_of_results(torch):
    x, y, _ = points(torch)
    functions = (
        (lambda x: x * y, x),
        (lambda x: x * y, (x,)),
        (lambda x: (x * y,), x),
        (lambda x: (x * y,), (x,)),
        (lambda x, y: (x * y, x), (x, y)),
    )
    jacobian = torch.autograd.functional.jacobian
    return [
        name_of(jacobian(function, inputs, vectorize=vectorize))
        for function, inputs in functions
        for vectorize in (False, True)
    ]


@pytest.mark.row("J01")
def test_forward_mode_gives_tuples():
    # PyTorch gives lists
    x, y, _ = points(jaxgrad)
    options = JACOBIANS[2]
    jacobian = functools.partial(jaxgrad.autograd.functional.jacobian, **options)
    assert name_of(jacobian(lambda x: x * y, x)) == "Tensor"
    assert name_of(jacobian(lambda x: (x * y,), (x,))) == [["Tensor"]]
    assert name_of(jacobian(lambda x, y: (x * y, x), (x, y))) == [["Tensor"] * 2] * 2
    assert not jacobian(torch_square, x).requires_grad


def torch_square(x):
    return x * x


@pytest.mark.row("J01")
@as_torch
def test_flags_of_jacobian(torch):
    x, _, _ = points(torch)
    jacobian = functools.partial(torch.autograd.functional.jacobian, torch.exp, x)
    forward = functools.partial(jacobian, strategy="forward-mode")
    only = "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented"
    return (
        error(
            functools.partial(jacobian, strategy="sideways"),
            words='Expected strategy to be either "forward-mode" or "reverse-mode"',
        ),
        error(forward, words=only),
        error(
            functools.partial(forward, vectorize=True, create_graph=True),
            words='`create_graph=True` and `strategy="forward-mode"` are not supported together',
        ),
        error(
            functools.partial(forward, create_graph=True),
            words='`create_graph=True` and `strategy="forward-mode"` are not supported together',
        ),
        error(
            functools.partial(forward, vectorize=True, strict=True),
            words='`strict=True` and `strategy="forward-mode"` are not supported together',
        ),
        error(
            functools.partial(jacobian, vectorize=True, strict=True),
            words="`strict=True` and `vectorized=True` are not supported together",
        ),
    )


@pytest.mark.row("J01")
@pytest.mark.slow
@as_torch
def test_create_graph_of_jacobian(torch):
    x, y, _ = points(torch)
    answers = []
    for vectorize in (False, True):
        options = {"create_graph": True, "vectorize": vectorize}
        jacobian = functools.partial(torch.autograd.functional.jacobian, **options)
        (of_x, of_y), _ = jacobian(lambda x, y: (x**3 * y, y), (x, y))
        linear = jacobian(lambda x: x * 2, x).requires_grad
        second = torch.autograd.grad(of_x.sum() + of_y.sum(), x)
        answers.append((of_x, of_y, linear, second, jacobian(lambda y: y * y, y).requires_grad))
    return answers


@pytest.mark.row("J01")
@pytest.mark.slow
@as_torch
def test_dtypes_of_jacobian(torch):
    x = leaf(torch, 1.0, 2.0)
    y = torch.tensor([3.0, 4.0], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian
    reverse = [jacobian(lambda x, y: (x * y, x), (x, y), **options) for options in JACOBIANS[:2]]
    whole = [jacobian(lambda x: x > 1, x, **options) for options in JACOBIANS]
    partly = [jacobian(lambda x: (x > 1, x * 2), x, **options) for options in JACOBIANS[:2]]
    integers = error(jacobian, lambda x: x * 2, torch.tensor([1, 2]), words="only Tensors of")
    forward = jacobian(lambda x, y: x * y, (x, y), **JACOBIANS[2])
    return reverse, whole, partly, integers, plain(forward)


@pytest.mark.row("J01")
@pytest.mark.slow
@as_torch
def test_complex_jacobian(torch):
    z, y = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128), points(torch)[1]
    jacobian = torch.autograd.functional.jacobian
    loop = [jacobian(lambda z: z.abs(), z), error(jacobian, lambda z: z * z, z)]
    reverse = [
        jacobian(function, point, vectorize=True)
        for function, point in (
            (lambda z: z * z, z),
            (lambda z: z.abs(), z),
            (lambda z: z.conj() * z, z),
            (lambda y: y * (1 + 2j), y),
        )
    ]
    forward = [
        jacobian(function, point, **JACOBIANS[2])
        for function, point in ((lambda z: z * z, z), (lambda z: z.abs(), z), (lambda y: y * 2j, y))
    ]
    return loop, reverse, forward


@pytest.mark.row("J01")
@as_torch("""
    tensor([[2.0, -0.0], [0.0, -6.0]], dtype=float64)
    None
    None
    True
    False
""")
def test_nothing_of_the_users_is_touched(torch):
    x, y, _ = points(torch)
    weight = leaf(torch, 2.0, 3.0, dtype=torch.float64)
    with torch.no_grad():
        jacobian = torch.autograd.functional.jacobian(lambda x: x * x * weight, x)
    return jacobian, x.grad, weight.grad, x.requires_grad, y.requires_grad


@pytest.mark.row("J01")
@pytest.mark.slow
@pytest.mark.parametrize("options", JACOBIANS)
def test_jacobian_of_empty_tensors(options):
    # PyTorch has an answer for some of these alone
    jacobian = functools.partial(jaxgrad.autograd.functional.jacobian, **options)
    none, x = jaxgrad.zeros(0, 3), jaxgrad.ones(2)
    assert jacobian(lambda x: x * x, none).shape == (0, 3, 0, 3)
    assert jacobian(lambda x: x.sum(), none).shape == (0, 3)
    assert jacobian(lambda x: x[:0], x).shape == (0, 2)
    empty, eye = jacobian(lambda x: (x[:0], x), x)
    assert empty.shape == (0, 2) and eye.tolist() == [[1, 0], [0, 1]]


@pytest.mark.row("J01")
@pytest.mark.slow
@pytest.mark.parametrize("options", JACOBIANS)
def test_jacobian_equals_that_of_jax(options):
    a, b = numpy.random.default_rng(0).normal(size=(2, 3, 40))

    def function(torch, x, y):
        return torch.sin(x) @ y.T, (x * y).sum(0)

    inputs = jaxgrad.tensor(a), jaxgrad.tensor(b)
    jacobian = jaxgrad.autograd.functional.jacobian(
        functools.partial(function, jaxgrad), inputs, **options
    )
    with jax.enable_x64(True):
        expected = jax.jacrev(functools.partial(function, jnp), (0, 1))(a, b)
        as_arrays = jax.tree.map(lambda t: t.numpy(), jacobian, is_leaf=jaxgrad.is_tensor)
        chex.assert_trees_all_close(as_arrays, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.row("J01")
@pytest.mark.slow
@pytest.mark.parametrize("options", JACOBIANS)
def test_jacobian_compiled(options):
    x, y, _ = points(jaxgrad)

    def jacobian(x, y):
        def function(x, y):
            return x.sin() * y, (x * y).sum()

        return jaxgrad.autograd.functional.jacobian(function, (x, y), **options)

    eager, compiled = jacobian(x, y), jaxgrad.jit(jacobian)(x, y)
    for ours, expected in zip(sum(compiled, ()), sum(eager, ()), strict=True):
        numpy.testing.assert_allclose(ours.numpy(), expected.numpy(), rtol=1e-13)


# ---- hessian


@pytest.mark.row("J02")
@pytest.mark.slow
@as_torch
def test_hessian_of_inputs(torch):
    x, y, matrix = points(torch)
    hessian = torch.autograd.functional.hessian
    functions = (
        (cubes, x),
        (cubes, (x,)),
        (product, (x, y)),
        (lambda x: cubes(x).reshape(1, 1), x),
        (lambda m: (m.exp() * m).sum(), matrix),
        (lambda x, y: cubes(x) + y.sum(), (x, y)),
    )
    return [
        plain(hessian(function, inputs, **options))
        for function, inputs in functions
        for options in HESSIANS
    ]


@pytest.mark.row("J02")
@as_torch
def test_errors_of_hessian(torch):
    x, _, _ = points(torch)
    hessian = torch.autograd.functional.hessian
    other = functools.partial(hessian, cubes, x, outer_jacobian_strategy="forward-mode")
    return (
        error(
            hessian,
            torch.exp,
            x,
            words="The Tensor returned by the function given to hessian should contain a single",
        ),
        error(
            hessian,
            lambda x: (cubes(x), cubes(x)),
            x,
            words="The function given to hessian should return a single Tensor",
        ),
        error(
            hessian,
            lambda x: (cubes(x),),
            x,
            words="The function given to hessian should return a single Tensor",
        ),
        error(hessian, lambda x: 3.0, x),
        error(
            functools.partial(hessian, cubes, x, outer_jacobian_strategy="sideways"),
            words='Expected strategy to be either "forward-mode" or "reverse-mode"',
        ),
        error(other, words="forward-over-reverse Hessian isonly implemented"),
        error(
            functools.partial(other, vectorize=True, create_graph=True),
            words='`create_graph=True` and `strategy="forward-mode"` are not supported together',
        ),
        error(
            functools.partial(other, vectorize=True, strict=True),
            words='`strict=True` and `strategy="forward-mode"` are not supported together',
        ),
        error(
            functools.partial(hessian, cubes, x, vectorize=True, strict=True),
            words="`strict=True` and `vectorized=True` are not supported together",
        ),
    )


@pytest.mark.row("J02")
@pytest.mark.slow
@as_torch
def test_create_graph_of_hessian(torch):
    x, y, _ = points(torch)
    derivatives = []
    for vectorize in (False, True):
        options = {"create_graph": True, "vectorize": vectorize}
        of_x, of_y = torch.autograd.functional.hessian(product, (x, y), **options)
        third = torch.autograd.grad(of_x[0].sum() + of_x[1].sum(), x)
        derivatives.append((of_x, plain(of_y), third))
    return derivatives


@pytest.mark.row("J02")
@pytest.mark.slow
@pytest.mark.parametrize("options", HESSIANS)
def test_hessian_compiled_equals_that_of_jax(options):
    numbers = numpy.random.default_rng(0).normal(size=3)

    def function(torch, x):
        return torch.sin(x[:-1] * x[1:]).sum() * x[0]

    def hessian(x):
        of_x = functools.partial(function, jaxgrad)
        return jaxgrad.autograd.functional.hessian(of_x, x, **options)

    x = jaxgrad.tensor(numbers)
    with jax.enable_x64(True):
        expected = jax.hessian(functools.partial(function, jnp))(numbers)
    for result in (hessian(x), jaxgrad.jit(hessian)(x)):
        numpy.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-14)


# ---- products


@pytest.mark.row("J03")
@as_torch
def test_vjp_of_inputs_and_outputs(torch):
    x, y, _ = points(torch)
    vjp, ones = torch.autograd.functional.vjp, torch.ones(2, dtype=torch.float64)
    return (
        vjp(cubes, x),
        vjp(lambda x: x * x, x, y),
        vjp(lambda x: x * x, x, (y,)),
        vjp(lambda x: (x * x, x.sum()), x, (y, ones.sum())),
        vjp(lambda x, y: x * y, (x, y), y),
        vjp(lambda x: (cubes(x),), x),
        vjp(lambda x: x.sum().reshape(1), x),
        vjp(lambda x, other: (x * 2, y), (x, y), (y, y)),
        vjp(lambda x: x * x, x, ones.float()),
        vjp(lambda x: (x > 0).sum(), x),
        vjp(lambda x: y * 2, x, y),
    )


@pytest.mark.row("J03")
@as_torch
def test_v_of_another_kind_for_vjp(torch):
    x, y, _ = points(torch)
    needs = "The vector v can only be None if the user-provided function returns a single Tensor"
    ones = torch.ones(3, dtype=torch.float64)
    vjp, both = torch.autograd.functional.vjp, lambda x: (x * x, x.sum())
    return (
        error(vjp, torch.exp, x, words=needs),
        error(vjp, lambda x: (cubes(x), cubes(x)), x, words=needs),
        error(vjp, torch.exp, x, ones),
        error(vjp, lambda x: (torch.exp(x),), x, (ones,)),
        error(vjp, torch.exp, x, (y, y)),
        error(vjp, both, x, y),
        error(vjp, both, x, (y, y)),
        error(vjp, torch.exp, x, y * 1j, words="For complex Tensors, both grad_output and output"),
    )


@pytest.mark.row("J03")
@as_torch("""
    tensor([0.125, -1.0], dtype=float64, requires_grad=True)
    tensor([1.5, 9.0], dtype=float64, requires_grad=True)
    [tensor([6.75, -15.0], dtype=float64), tensor([0.75, 3.0], dtype=float64)]
    [tensor([9.0, 16.0], dtype=float64, requires_grad=True),
     tensor([18.0, 32.0], dtype=float64, requires_grad=True)]
    [[tensor([1.0, -2.0], dtype=float64, requires_grad=True), tensor([3.0, 4.0], dtype=float64)],
     [tensor([6.0, 8.0], dtype=float64), tensor([0.0, 0.0], dtype=float64)]]
""")
def test_create_graph_of_vjp(torch):
    x, y, _ = points(torch)
    v = leaf(torch, 2.0, 3.0, dtype=torch.float64)
    vjp = functools.partial(torch.autograd.functional.vjp, create_graph=True)
    value, gradient = vjp(lambda x: x**3, x, v)
    second = torch.autograd.grad(gradient.sum() + value.sum(), (x, v))
    inner = vjp(lambda y: y * y, y, y)
    return value, gradient, second, inner, vjp(lambda x, other: (x * 2, y), (x, y), (y, y))


@pytest.mark.row("J04")
@as_torch
def test_jvp_of_inputs_and_outputs(torch):
    x, y, _ = points(torch)
    jvp, one = torch.autograd.functional.jvp, torch.tensor([3.0])
    return (
        jvp(lambda x: x * x, one),
        jvp(lambda x: x * x, (one,)),
        jvp(lambda x: x * x, x, y),
        jvp(lambda x: (x * x, x.sum()), x, y),
        jvp(lambda x: (x * x,), x, (y,)),
        jvp(lambda x, y: x * y, (x, y), (y, y)),
        jvp(lambda x, other: (x * 2, y), (x, y), (y, y)),
        jvp(lambda x: y * 2, x, y),
        jvp(torch.sign, x, y),
    )


@pytest.mark.row("J04")
@as_torch
def test_v_of_another_kind_for_jvp(torch):
    x, y, _ = points(torch)
    jvp, ones = torch.autograd.functional.jvp, torch.ones(3, dtype=torch.float64)
    needs = "v can only be None if the input to the user-provided function is a single Tensor with"
    return (
        error(jvp, torch.exp, x, words=needs),
        error(jvp, lambda x, y: x * y, (x, y), words=needs),
        error(jvp, torch.exp, x, ones),
        error(jvp, torch.exp, x, (y, y)),
        error(jvp, lambda x, y: x * y, (x, y), y),
        error(jvp, lambda x, y: x * y, (x, y), (y, ones)),
    )


@pytest.mark.row("J04")
@as_torch("""
    tensor([0.125, -1.0], dtype=float64, requires_grad=True)
    tensor([2.25, 12.0], dtype=float64, requires_grad=True)
    [tensor([9.75, -21.0], dtype=float64)]
    [tensor([9.0, 16.0], dtype=float64, requires_grad=True),
     tensor([3.0, -8.0], dtype=float64, requires_grad=True)]
    [tensor([6.0, 8.0], dtype=float64), tensor([0.0, 0.0], dtype=float64)]
""")
def test_create_graph_of_jvp(torch):
    x, y, _ = points(torch)
    jvp = functools.partial(torch.autograd.functional.jvp, create_graph=True)
    value, tangent = jvp(lambda x: x**3, x, y)
    second = torch.autograd.grad(tangent.sum() + value.sum(), x)
    return value, tangent, second, jvp(lambda y: y * y, y, x), jvp(lambda x: y * 2, x, y)


@pytest.mark.row("J04")
@pytest.mark.slow
@as_torch
def test_complex_jvp(torch):
    z = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128)
    v = torch.tensor([2 - 1j, 1j], dtype=torch.complex128)
    return [
        (function(lambda z: z * z, z, v), function(lambda z: z * z.conj() + z.exp(), z, v))
        for function in (torch.autograd.functional.vjp, torch.autograd.functional.jvp)
    ]


def cube_with(torch, backward):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, gradient):
            return backward(ctx.saved_tensors[0], gradient)

    return Cube.apply


@pytest.mark.row("J04")
@as_torch("""
    [tensor([0.125, -1.0], dtype=float64), tensor([2.25, 12.0], dtype=float64)]
    [tensor([0.125, -1.0], dtype=float64), tensor([0.0, 0.0], dtype=float64)]
    tensor([[0.75, 0.0], [0.0, 3.0]], dtype=float64)
    [tensor(-0.875, dtype=float64), tensor([9.0, -24.0], dtype=float64)]
    tensor([[3.0, -0.0], [0.0, -6.0]], dtype=float64)
""")
def test_jvp_of_a_function_without_jvp(torch):
    x, y, _ = points(torch)
    cube = cube_with(torch, lambda x, gradient: 3 * x**2 * gradient)
    zero = cube_with(torch, lambda x, gradient: torch.zeros_like(x))
    functional, total = torch.autograd.functional, lambda x: cube(x).sum()
    return (
        functional.jvp(cube, x, y),
        functional.jvp(zero, x, y),
        functional.jacobian(cube, x),
        functional.hvp(total, x, y),
        functional.hessian(total, x),
    )


@pytest.mark.row("J04")
def test_a_backward_that_detaches():
    # PyTorch gives zeros
    x, y, _ = points(jaxgrad)
    cube = cube_with(jaxgrad, lambda x, gradient: 3 * x.detach() ** 2 * gradient.detach())
    with pytest.raises(RuntimeError, match="jvp: the gradient with respect to input 1 was not rec"):
        jaxgrad.autograd.functional.jvp(lambda y, x: y * 2 + cube(x), (y, x), (y, y))


@pytest.mark.row("J05")
@pytest.mark.slow
@as_torch
def test_vhp_and_hvp(torch):
    x, y, matrix = points(torch)
    one = torch.tensor([3.0])
    return [
        (
            product_with(cubes, one),
            product_with(cubes, x, y),
            product_with(cubes, (x,), (y,)),
            product_with(cubes, (x,), y),
            product_with(product, (x, y), (y, y)),
            product_with(lambda x: x.sum(), x, y),
            product_with(lambda x: y.sum(), x, y),
            product_with(lambda x: cubes(x).reshape(1), x, y),
            product_with(lambda m: (m.exp() * m).sum(), matrix, matrix),
        )
        for product_with in (torch.autograd.functional.vhp, torch.autograd.functional.hvp)
    ]


@pytest.mark.row("J05")
@as_torch
def test_errors_of_vhp_and_hvp(torch):
    x, y, _ = points(torch)
    ones = torch.ones(3, dtype=torch.float64)
    needs = "v can only be None if the input to the user-provided function is a single Tensor with"
    single, prefix = "should return a single Tensor", "The Tensor returned by the function given to"
    return [
        (
            error(product_with, cubes, x, words=needs),
            error(product_with, cubes, x, ones),
            error(product_with, torch.exp, x, y, words=f"{prefix} {name} should contain a single"),
            error(product_with, lambda x: (cubes(x),), x, y, words=f"given to {name} {single}"),
            error(product_with, lambda x: (x.sum(), 1), x, y),
            error(product_with, lambda x: 3.0, x, y),
        )
        for name, product_with in (
            ("vhp", torch.autograd.functional.vhp),
            ("hvp", torch.autograd.functional.hvp),
        )
    ]


@pytest.mark.row("J05")
@pytest.mark.slow
@as_torch
def test_create_graph_of_vhp_and_hvp(torch):
    x, y, _ = points(torch)
    answers = []
    for product_with in (torch.autograd.functional.vhp, torch.autograd.functional.hvp):
        value, products = product_with(product, (x, y), (y, y), create_graph=True)
        third = torch.autograd.grad(products[0].sum() + products[1].sum() + value, x)
        answers.append((value, products, third, product_with(cubes, y, y, create_graph=True)))
    return answers


@pytest.mark.row("J05")
@pytest.mark.slow
def test_products_are_those_of_the_hessian():
    x, _, matrix = points(jaxgrad)
    functional, v = jaxgrad.autograd.functional, matrix.sin()

    def function(m):
        return ((m * x).exp() * m.roll(1, 0)).sum()

    whole = functional.hessian(function, matrix).numpy().reshape(6, 6)
    expected = (whole @ v.numpy().ravel()).reshape(3, 2)
    for product_with in (functional.vhp, functional.hvp):
        numpy.testing.assert_allclose(product_with(function, matrix, v)[1].numpy(), expected)


# ---- strict


@pytest.mark.row("J06")
@as_torch
def test_strict_refuses_independent_outputs(torch):
    x, y, _ = points(torch)
    functional = torch.autograd.functional
    jacobian = functools.partial(functional.jacobian, strict=True)
    vjp = functools.partial(functional.vjp, strict=True)
    jvp = functools.partial(functional.jvp, strict=True)
    plain, unused = (lambda x: y * 2), (lambda x, other: x * 2)
    both = lambda x, other: (x * 2, y)  # noqa: E731
    other = lambda x: x.detach().requires_grad_() * 2  # noqa: E731
    return (
        jacobian(torch.exp, x),
        error(jacobian, plain, x),
        error(jacobian, unused, (x, y)),
        error(jacobian, other, x),
        error(functools.partial(jacobian, create_graph=True), lambda x: x * 2, x),
        vjp(torch.exp, x, y),
        error(vjp, plain, x, y),
        error(vjp, unused, (x, y), y),
        error(vjp, both, (x, y), (y, y)),
        error(vjp, other, x, y),
        error(functools.partial(vjp, create_graph=True), lambda x: x * 2, x, y),
        vjp(lambda x: x * 2, x, y),
        jvp(torch.exp, x, y),
        error(jvp, plain, x, y),
        error(jvp, unused, (x, y), (y, y)),
        error(jvp, both, (x, y), (y, y)),
        error(jvp, other, x, y),
        error(functools.partial(jvp, create_graph=True), lambda x: x * 2, x, y),
    )


@pytest.mark.row("J06")
@as_torch
def test_strict_at_second_order(torch):
    x, y, _ = points(torch)
    functional = torch.autograd.functional
    hessian = functools.partial(functional.hessian, strict=True)
    linear, apart = (lambda x: x.sum()), (lambda x, y: cubes(x) + cubes(y))
    partly = lambda x, y: cubes(x) + y.sum()  # noqa: E731
    quadratic = lambda x: (x * x).sum()  # noqa: E731
    fused = lambda x, y: torch.addcmul(x, y, y).sum()  # noqa: E731
    words = "found that the jacobian of the user-provided function with respect to input"
    errors = [
        hessian(cubes, x),
        error(hessian, linear, x, words=f"{words} 0 is independent of the input"),
        error(hessian, lambda x: y.sum(), x),
        error(hessian, partly, (x, y), words=f"{words} 1 is independent of the input"),
        error(hessian, apart, (x, y)),
        error(hessian, fused, (x, y), words=f"{words} 0 is independent of the input"),
    ]
    for function in (functional.vhp, functional.hvp):
        product_with = functools.partial(function, strict=True)
        again = functools.partial(product_with, create_graph=True)
        errors += [
            product_with(cubes, x, y),
            again(cubes, x, y),
            product_with(apart, (x, y), (y, y)),
            error(product_with, linear, x, y, words=f"{words} 0 is independent of the input"),
            error(product_with, lambda x: y.sum(), x, y),
            error(product_with, partly, (x, y), (y, y), words=f"{words} 1 is independent"),
            error(product_with, lambda x, y: cubes(x), (x, y), (y, y)),
            error(product_with, fused, (x, y), (y, y), words=f"{words} 0 is independent"),
            error(again, quadratic, x, y),
        ]
    return errors


# ---- types


@pytest.mark.row("J07")
@as_torch
def test_types_of_inputs_and_results(torch):
    x, _, _ = points(torch)
    functional = torch.autograd.functional
    errors = [
        error(getattr(functional, name), cubes, wrong)
        for name in ("jacobian", "hessian", "vjp", "jvp", "vhp", "hvp")
        for wrong in (3.0, [x], None, (x, 3.0))
    ]
    errors += [
        error(getattr(functional, name), lambda x, wrong=wrong: wrong, x)
        for name in ("jacobian", "vjp", "jvp")
        for wrong in (3.0, [x], None, (x, 3))
    ]
    errors += [error(function, cubes, x, 3.0) for function in (functional.vjp, functional.jvp)]
    errors += [error(function, cubes, x, [x]) for function in (functional.vhp, functional.hvp)]
    return errors


# ---- inputs and outputs without dimensions


def detached(blocks):
    """The blocks without their history, which PyTorch keeps where the outer Jacobian is forward."""
    return list(map(detached, blocks)) if isinstance(blocks, tuple | list) else blocks.detach()


@pytest.mark.slow
@as_torch
def test_derivatives_of_inputs_without_dimensions(torch):
    functional = torch.autograd.functional
    x, y = (torch.tensor(value, dtype=torch.float64) for value in (2.0, 3.0))
    v = torch.tensor([1.0, 2.0], dtype=torch.float64)
    told = [functional.hessian(lambda x: x**4, x, create_graph=True)]
    for options in (
        {},
        {"vectorize": True},
        {"vectorize": True, "outer_jacobian_strategy": "forward-mode"},
    ):
        hessians = [
            functional.hessian(lambda x: x**3, x, **options),
            functional.hessian(lambda a, b: a**2 * b, (x, y), **options),
            functional.hessian(lambda a, b: (a**2 * b).sum(), (v, y), **options),
            functional.hessian(lambda a: (a**3).sum(), v[:1], **options),
        ]
        told.append(detached(hessians))
    for options in ({}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}):
        told += [
            functional.jacobian(lambda x: x**3, x, **options),
            functional.jacobian(lambda x: (x**3, v * x), x, **options),
            functional.jacobian(lambda x: x.sum(), v, **options),
        ]
    return told


def test_the_standard_basis_of_several_tensors():
    basis = jaxgrad.autograd.functional._construct_standard_basis_for
    tensors = jaxgrad.zeros(2), jaxgrad.zeros(()), jaxgrad.zeros(3, dtype=jaxgrad.float64)
    results = basis(tensors, (2, 1, 3))
    assert [result.dtype for result in results] == [tensor.dtype for tensor in tensors]
    assert jaxgrad.cat([result.float() for result in results], 1).equal(jaxgrad.eye(6))
