"""JAX's 64-bit types in compiled functions: JAX's own functions follow the user's setting, and
jaxgrad's operators compute as they do uncompiled.
"""

import jax
import jax.numpy as jnp
import numpy
import pytest
from jax.tree_util import tree_leaves

import jaxgrad as torch
from jaxgrad.nn.functional import conv1d, cross_entropy, dropout, max_pool1d
from jaxgrad.utils.checkpoint import checkpoint

func = torch.func


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x * float(jnp.arange(3).dtype.itemsize)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient * float(jnp.zeros(2).dtype.itemsize)

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 2 * x * tangent * float(jnp.zeros(2).dtype.itemsize)


def passed(function):
    """The gradient that a pass inside accumulates, in a tensor from outside."""

    def call(x):
        weight.grad = None
        function(x * weight).sum().backward()
        return weight.grad.clone()

    return call


def hooked(x):
    x.register_hook(lambda gradient: gradient * float(jnp.arange(3).dtype.itemsize))
    return x.sin()


def bytes_of_floats():
    return jnp.zeros(2).dtype.itemsize


index = torch.tensor([2, 0, 1])
weight = torch.tensor([0.5, 1.5, 2.5], dtype=torch.float64, requires_grad=True)
rate = {"rate": 0.1}

# what the code of a user calls of JAX
OF_JAX = {
    "arange": lambda x: torch.tensor(jnp.arange(3)),
    "zeros": lambda x: torch.tensor(jnp.zeros(2)),
    "number": lambda x: torch.tensor(jnp.sin(1.5)),
    "promotion": lambda x: torch.tensor(jnp.arange(3) * 1.5),
    "random": lambda x: torch.tensor(jax.random.normal(jax.random.key(0), (3,))),
    "jit": lambda x: torch.tensor(jax.jit(lambda a: jnp.argsort(a) / 2)(jnp.arange(3))),
    "operand": lambda x: x * torch.tensor(jnp.linspace(0, 1, 3)),
    "from_jax": lambda x: torch.from_jax(lambda a: jnp.arange(3) + 0 * a.sum().astype(int))(x),
    "hook": passed(hooked),
    "function": passed(Square.apply),
    "checkpoint": passed(lambda x: checkpoint(hooked, x, use_reentrant=False)),
    "cond": lambda x: torch.cond(x.sum() > 1, lambda a: a * bytes_of_floats(), lambda a: a, (x,)),
    "scan": lambda x: torch.scan(lambda c, a: (c + a * bytes_of_floats(), c), x[0], x),
    "vmap": lambda x: func.vmap(lambda a: a * bytes_of_floats())(x),
    "vmap of a function": lambda x: func.vmap(Square.apply)(x),
    "gradients": lambda x: func.grad(lambda a: Square.apply(a).sum())(x),
    "tangents": lambda x: func.jvp(Square.apply, (x,), (x,)),
}

# operators on 64-bit tensors
OF_TENSORS = {
    "dtypes": lambda x: x.float().double().to(torch.int32).long() * 2**40,
    "numbers": lambda x: (x * 2.5, x + torch.tensor([2**40, 1, 2]), torch.full((2,), 2**40)),
    "arrays": lambda x: x * numpy.array([1.5, 2.5, 3.5]),
    "factories": lambda x: torch.arange(3) * torch.linspace(0, 1, 3, dtype=torch.float64) + x,
    "alike": lambda x: torch.full_like(x, 2.5) + torch.zeros_like(x),
    "random": lambda x: torch.randn(3, dtype=torch.float64) + torch.randint(0, 10, (3,)),
    "permutation": lambda x: x[torch.randperm(3)],
    "dropout": lambda x: dropout(x, 0.5),
    "complex": lambda x: (x + 2j * x).exp(),
    "indices": lambda x: (x.argmax(), max_pool1d(x[None, None], 2, return_indices=True)),
    "convolution": lambda x: conv1d(x[None, None], x[None, None, :2]),
    "target": lambda x: cross_entropy(x[None], index[:1]),
    "write": lambda x: x.clone().index_put_((index,), x * 2.5)[1:].mul_(3.5),
    "pass": passed(lambda x: x.sin() * 2.5 + x.cumsum(0)),
    "while": lambda x: torch.while_loop(lambda a: (a < 99).all(), lambda a: (a * 2.5,), (x,))[0],
    "loop": lambda x: torch.fori_loop(0, 3, lambda k, a: a * 2.5 + k, x),
    "draws": lambda x: torch.scan(lambda c, a: (c + torch.rand(()), c * a), x[0], x),
    "slope": lambda x: func.grad(lambda x: torch.scan(lambda c, a: (c * a, c), x[0], x)[0])(x),
    "hessian": lambda x: func.hessian(lambda a: (a * a).prod() * 2.5)(x),
    "jacobian": lambda x: func.jacfwd(lambda a: a.sin().cumsum(0) * 2.5)(x),
    "rate": lambda x: x * (torch.tracing.number(lambda: rate["rate"]) * 2.5 - 1) ** 2,
}


def results(function, x):
    torch.manual_seed(0)
    leaves = tree_leaves(function(x), is_leaf=torch.is_tensor)
    return [(leaf.dtype, leaf.tolist()) for leaf in leaves]


def assert_same(result, expected):
    assert [dtype for dtype, _ in result] == [dtype for dtype, _ in expected]
    for (dtype, values), (_, wanted) in zip(result, expected, strict=True):
        digits = 1e-12 if dtype in (torch.float64, torch.complex128) else 1e-6
        numpy.testing.assert_allclose(values, wanted, rtol=digits)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("name", OF_JAX)
def test_functions_of_jax_follow_the_users_setting(name, enabled, dtype):
    x, function = torch.tensor([1.0, 2.0, 3.0], dtype=dtype), OF_JAX[name]
    with jax.enable_x64(enabled):
        expected, compiled = results(function, x), torch.jit(function)
        assert_same(results(compiled, x), expected)
        assert_same(results(compiled, x), expected)
        assert jax.config.jax_enable_x64 is enabled


@pytest.mark.slow
@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("name", OF_TENSORS)
def test_operators_have_64_bit_types_in_any_case(name, enabled):
    x, function = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), OF_TENSORS[name]
    with jax.enable_x64(enabled):
        assert_same(results(torch.jit(function), x), results(function, x))


def test_another_setting_leads_to_a_trace():
    compiled = torch.jit(lambda x: x * torch.tensor(jnp.ones(3)))
    x = torch.ones(3)
    for enabled, dtype in [(False, torch.float32), (True, torch.float64), (False, torch.float32)]:
        with jax.enable_x64(enabled):
            assert compiled(x).dtype == dtype
    assert len(compiled.traces) == 2


@pytest.mark.slow
def test_a_replay_has_the_setting_of_the_trace():
    """Derivatives of higher order run the function again."""

    def function(x):
        return Square.apply(x) * x.double().sin().float() * bytes_of_floats()

    def second(function):
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        (first,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0].tolist()

    numpy.testing.assert_allclose(second(torch.jit(function)), second(function), rtol=1e-5)


def test_vmap_has_the_users_setting():
    x = torch.tensor([1.0, 2.0])
    for enabled, size in [(False, 4), (True, 8)]:
        with jax.enable_x64(enabled):
            result = func.vmap(lambda a: a * bytes_of_floats())(x)
        assert result.tolist() == [size, 2 * size]


def test_code_outside_of_the_trace_has_the_users_setting():
    seen = []

    def function(x):
        with torch.tracing.outside():
            seen.append(torch.tensor(jnp.arange(3)).dtype)
            seen.append((torch.ones(2, dtype=torch.float64) * 2.5).tolist())
        return x

    torch.jit(function)(torch.ones(1))
    assert seen == [torch.int32, [2.5, 2.5]]


@pytest.mark.slow
@pytest.mark.parametrize("enabled", [False, True])
def test_different_random_numbers_of_examples_under_both_settings(enabled):
    drawn = func.vmap(lambda a: a * torch.rand(2), randomness="different")

    def draw(function):
        torch.manual_seed(3)
        return function(torch.ones(3)).tolist()

    with jax.enable_x64(enabled):
        draws = [draw(function) for function in (drawn, torch.jit(lambda x: drawn(x)))]
    assert draws[0] == draws[1] == draw(drawn)
    assert draws[0][0] != draws[0][1]
