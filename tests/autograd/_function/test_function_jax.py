"""Functions under JAX's transformations: which of the author's rules runs, in every nesting.

The rules are deliberately not the derivative of the value, so that it is seen which one ran.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.functions import function

import jaxgrad as torch
from jaxgrad.autograd import Function
from jaxgrad.autograd.function import once_differentiable
from jaxgrad.tape.tensor import wrap


class Inner(Function):
    """Squares; backward says 11 x, jvp 13 x."""

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 11 * x * grad

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 13 * x * tangent


class Outer(Inner):
    """Cubes; backward says 7 times the square, jvp 5 times, which is `Inner` in both."""

    @staticmethod
    def forward(x):
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 7 * Inner.apply(x) * grad

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 5 * Inner.apply(x) * tangent


def with_tensors(x):
    return Outer.apply(wrap(x))._array


def grad_of(f):
    return jax.grad(f)


def vjp_of(f):
    return lambda x: jax.vjp(f, x)[1](jnp.ones_like(x))[0]


def jvp_of(f):
    return lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1]


def linearized(f):
    return lambda x: jax.linearize(f, x)[1](jnp.ones_like(x))


def batched(f):
    return lambda x: jax.vmap(f)(jnp.stack([x, x]))[1]


def unbatched(f):
    return lambda x: jax.vmap(lambda i: f(x))(jnp.arange(2))[1]


def scanned(f):
    return lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]


def branched(f):
    return lambda x: jax.lax.cond(x > 0, f, lambda x: x, x)


REVERSE = {"grad": grad_of, "vjp": vjp_of, "jacrev": jax.jacrev}
FORWARD = {"jvp": jvp_of, "jacfwd": jax.jacfwd, "linearize": linearized}
WRAPPERS = {
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "vmap": batched,
    "unbatched": unbatched,
    "scan": scanned,
    "cond": branched,
}
DERIVATIVES = REVERSE | FORWARD


def orders(names, count):
    """All sequences of `count` derivatives, the innermost first."""
    return list(itertools.product(names, repeat=count))


def expected(order, x=2.0):
    """The expected numbers: each of the first two derivatives by the rule of its mode."""
    rules = [(7, 5), (11, 13), (1, 1)]
    chosen = [pair[name in FORWARD] for pair, name in zip(rules, order, strict=False)]
    return math.prod(chosen) * x ** (3 - len(order))


def derivative(f, order):
    for name in order:
        f = DERIVATIVES[name](f)
    return f


@pytest.mark.row("G25")
@pytest.mark.slow
@pytest.mark.parametrize("f", [Outer.apply, with_tensors], ids=["arrays", "tensors"])
@pytest.mark.parametrize("order", [(), *orders(DERIVATIVES, 1)], ids="-".join)
def test_first_derivatives_and_the_value_under_jax(f, order):
    assert derivative(f, order)(jnp.array(2.0)) == expected(order)
    assert jax.jit(derivative(f, order))(2.0) == expected(order)


@pytest.mark.slow
@pytest.mark.parametrize("order", orders(DERIVATIVES, 2), ids="-".join)
def test_second_derivatives(order):
    assert derivative(Outer.apply, order)(2.0) == expected(order)


@pytest.mark.slow
@pytest.mark.parametrize("order", orders(["grad", "jvp"], 3), ids="-".join)
def test_third_derivatives(order):
    assert derivative(Outer.apply, order)(2.0) == expected(order)


@pytest.mark.row("G25")
@pytest.mark.slow
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("order", orders(["grad", "jvp"], 2), ids="-".join)
def test_a_function_inside_of_other_transformations(order, place, wrapper):
    """The transformation wraps the function, its first derivative, or its second."""
    f = Outer.apply
    for number, name in enumerate([*order, None]):
        f = WRAPPERS[wrapper](f) if number == place else f
        f = f if name is None else DERIVATIVES[name](f)
    assert f(2.0) == expected(order)


@pytest.mark.row("G25")
@pytest.mark.slow
@pytest.mark.parametrize("pair", orders(WRAPPERS, 2), ids="-".join)
def test_a_function_inside_of_two_other_transformations(pair):
    first, second = (WRAPPERS[name] for name in pair)
    assert first(jax.grad(second(Outer.apply)))(2.0) == 28
    assert first(jvp_of(second(Outer.apply)))(2.0) == 20


@pytest.mark.slow
@pytest.mark.parametrize("order", orders(DERIVATIVES, 3), ids="-".join)
def test_third_derivatives_in_every_way(order):
    assert derivative(Outer.apply, order)(2.0) == expected(order)


@pytest.mark.slow
def test_hessian():
    def f(x):
        return Outer.apply(x).sum()

    x = jnp.array([1.0, 2.0, 3.0])
    assert jax.hessian(f)(x).tolist() == jnp.diag(7 * 13 * x).tolist()  # forward over reverse
    assert jax.jacrev(jax.jacfwd(f))(x).tolist() == jnp.diag(5 * 11 * x).tolist()


@pytest.mark.slow
def test_third_derivatives_of_a_sum():
    """PyTorch's nested jacfwd through a Function gives zeros for two of three entries."""

    class Cube(Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grad

        @staticmethod
        def jvp(ctx, tangent):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * tangent

    def f(x):
        return (Cube.apply(x) ** 2).sum()

    def true(x):
        return (x**6).sum()

    x = jnp.array([1.0, 2.0, 3.0])
    for modes in itertools.product([jax.jacfwd, jax.jacrev], repeat=3):
        ours, theirs = f, true
        for mode in modes:
            ours, theirs = mode(ours), mode(theirs)
        numpy.testing.assert_allclose(ours(x), theirs(x), rtol=1e-5)


@pytest.mark.row("G25")
@pytest.mark.slow
def test_vmap_of_a_gradient_and_the_reverse():
    x = jnp.array([1.0, 2.0, 3.0])
    assert jax.vmap(jax.grad(Outer.apply))(x).tolist() == [7, 28, 63]
    assert jax.grad(lambda x: jax.vmap(Outer.apply)(x).sum())(x).tolist() == [7, 28, 63]
    assert jax.vmap(jvp_of(Outer.apply))(x).tolist() == [5, 20, 45]
    assert jax.vmap(jax.vmap(jax.grad(Outer.apply)))(x.reshape(3, 1)).tolist() == [[7], [28], [63]]


@pytest.mark.row("G25")
@pytest.mark.slow
def test_a_function_in_a_loop():
    def f(x):
        return jax.lax.scan(lambda c, _: (Inner.apply(c), c), x, None, length=3)[0]

    # (x^2)^2)^2 by the chain rule: 11 times each value on the way
    assert jax.grad(f)(2.0) == (11 * 2) * (11 * 4) * (11 * 16)
    assert jvp_of(f)(2.0) == (13 * 2) * (13 * 4) * (13 * 16)
    assert jax.jit(jax.grad(jax.checkpoint(f)))(2.0) == (11 * 2) * (11 * 4) * (11 * 16)


# ---- arguments and results of every kind


@pytest.mark.row("G08")
def test_arguments_that_are_no_arrays():
    F = function(
        torch,
        lambda ctx, x, power, name, flags: x**power,
        lambda ctx, grad: (grad * 7, None, None, None),
    )
    x = jnp.array([1.0, 2.0])
    f = jax.jit(lambda x: F.apply(x, 3, "cube", {"unhashable": [1]}).sum())
    assert f(x) == 9 and jax.grad(f)(x).tolist() == [7, 7]


@pytest.mark.row("G08")
def test_tensors_and_arrays_together():
    F = function(torch, lambda ctx, x, y: x * y, lambda ctx, grad: (grad * 7, grad * 11))
    x, y = jnp.array([1.0, 2.0]), torch.tensor([3.0, 4.0])
    product = F.apply(x, y)
    assert isinstance(product, torch.Tensor) and product.tolist() == [3, 8]
    gradient = jax.grad(lambda x: F.apply(x, y)._array.sum())(x)
    assert gradient.tolist() == [7, 7]


@pytest.mark.row("G08")
@pytest.mark.slow
def test_arrays_in_lists_and_dicts_have_no_gradient():
    def forward(ctx, x, several):
        ctx.factor = several["factors"][0]
        return x * several["factors"][0] * several["shift"]

    F = function(torch, forward, lambda ctx, grad: (grad * 7 * ctx.factor, None))

    def f(x):
        return F.apply(x, {"factors": [x * 2], "shift": 1.0, "tensor": wrap(x)}).sum()

    x = jnp.array([1.0, 2.0])
    assert f(x) == 10
    for g in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.checkpoint(f))):
        assert g(x).tolist() == [14, 28]
    assert jax.vmap(jax.grad(f))(jnp.stack([x, x]))[1].tolist() == [14, 28]
    assert jax.hessian(f)(x).tolist() == [[14, 0], [0, 14]]  # by the rule, which reads the factor


@pytest.mark.row("G10")
@pytest.mark.slow
def test_several_outputs_under_jax():
    F = function(
        torch,
        lambda ctx, x: (x * 2, "word", x * 3, None, x.argmax()),
        lambda ctx, g, word, h, none, index: g * 7 + h * 11,
    )
    x = jnp.array([1.0, 2.0])
    first, word, second, none, index = F.apply(x)
    assert (first.tolist(), word, second.tolist(), none, int(index)) == (
        [2, 4],
        "word",
        [3, 6],
        None,
        1,
    )
    assert jax.grad(lambda x: F.apply(x)[0].sum())(x).tolist() == [7, 7]
    assert jax.jit(jax.grad(lambda x: (F.apply(x)[0] + 2 * F.apply(x)[2]).sum()))(x).tolist() == [
        29,
        29,
    ]
    tangents = jax.jvp(lambda x: F.apply(x)[::2], (x,), (x,))[1]
    assert [tangent.tolist() for tangent in tangents[:2]] == [[7, 14], [11, 22]]


@pytest.mark.row("G11")
def test_an_input_returned_as_it_is():
    F = function(torch, lambda ctx, x: x, lambda ctx, grad: grad * 7)
    x = jnp.array([1.0, 2.0])
    assert jax.grad(lambda x: F.apply(x).sum())(x).tolist() == [7, 7]


@pytest.mark.row("G12")
@pytest.mark.slow
def test_integers_under_jax():
    def forward(ctx, x, index):
        ctx.index = index
        return x[index], index + 1

    def backward(ctx, grad, none):
        return torch.zeros(3).index_add(0, ctx.index, grad * 7), None

    F = function(torch, forward, backward)
    x, index = jnp.array([1.0, 2.0, 3.0]), jnp.array([0, 0, 2])
    assert jax.grad(lambda x: F.apply(x, index)[0].sum())(x).tolist() == [14, 0, 7]
    grads = jax.grad(lambda x, i: F.apply(x, i)[0].sum(), argnums=(0, 1), allow_int=True)(x, index)
    assert grads[1].dtype == jax.dtypes.float0
    assert jax.jvp(lambda x: F.apply(x, index)[0], (x,), (x,))[1].tolist() == [7, 7, 21]


@pytest.mark.row("G16")
@pytest.mark.slow
def test_a_gradient_that_is_summed():
    F = function(torch, lambda ctx, x: x * torch.ones(2, 3), lambda ctx, grad: grad * 7)
    x = jnp.array([1.0, 2.0, 3.0])
    assert jax.grad(lambda x: F.apply(x).sum())(x).tolist() == [14, 14, 14]
    assert jax.grad(lambda x: F.apply(x).sum())(2.0) == 42


@pytest.mark.row("G17")
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes_of_gradients_under_jax(dtype):
    F = function(torch, lambda ctx, x: x * 2, lambda ctx, grad: grad.double() * 7)
    with jax.enable_x64(True):
        x = jnp.array([1.0, 2.0], dtype)
        gradient = jax.grad(lambda x: F.apply(x).sum())(x)
        assert gradient.dtype == dtype and gradient.tolist() == [7, 7]
        assert jvp_of(F.apply)(x).dtype == dtype


@pytest.mark.row("G17")
@pytest.mark.slow
def test_complex_gradients():
    """A gradient is PyTorch's, the conjugate of JAX's cotangent."""

    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        return grad * (2 * z).conj()

    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z

    F = function(torch, forward, backward)
    z, t = jnp.array([1 + 2j, 3 - 1j]), jnp.array([2 - 1j, 1j])

    def both(f):
        return *jax.vjp(f, z)[1](t), jax.jvp(f, (z,), (t,))[1]

    for ours, theirs in zip(both(F.apply), both(lambda z: z * z), strict=True):
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.row("G14")
@pytest.mark.slow
def test_none_for_a_gradient_under_jax():
    F = function(torch, lambda ctx, x, y: x * y, lambda ctx, grad: (None, grad * 7))
    x = jnp.array([1.0, 2.0])
    gradients = jax.grad(lambda x, y: F.apply(x, y).sum(), argnums=(0, 1))(x, x)
    assert [gradient.tolist() for gradient in gradients] == [[0, 0], [7, 7]]
    assert jax.jvp(F.apply, (x, x), (x, x))[1].tolist() == [7, 14]


@pytest.mark.row("G36")
def test_needs_input_grad_of_each_argument():
    seen = []

    def backward(ctx, grad):
        seen.append(ctx.needs_input_grad)
        return grad * 7, None, grad * 11

    F = function(torch, lambda ctx, x, n, y: x * y, backward)
    x = jnp.array([1.0, 2.0])
    jax.grad(lambda x: F.apply(x, 3, jnp.ones(2)).sum())(x)
    jax.grad(lambda y: F.apply(x, 3, y).sum())(x)
    jax.grad(lambda x, y: F.apply(x, 3, y).sum(), argnums=(0, 1))(x, x)
    assert seen == [(True, False, False), (False, False, True), (True, False, True)]


@pytest.mark.row("G30")
@pytest.mark.slow
def test_outputs_marked_as_not_differentiable():
    def forward(ctx, x):
        y = x * 3
        ctx.mark_non_differentiable(y)
        return x * 2, y

    F = function(torch, forward, lambda ctx, g, h: g * 7 + h * 1000)
    x = jnp.array([1.0, 2.0])
    assert jax.grad(lambda x: (F.apply(x)[0] * F.apply(x)[1]).sum())(x).tolist() == [21, 42]
    assert jax.jvp(F.apply, (x,), (x,))[1][1].tolist() == [0, 0]


@pytest.mark.row("G33")
@pytest.mark.parametrize("value", [True, False])
def test_undefined_gradients(value):
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(value)
        return x * 2, x * 3

    def backward(ctx, g, h):
        seen.append((g is None, h is None))
        return g * 7 if g is not None else h * 11

    def jvp(ctx, tangent):
        return tangent * 5, None

    F = function(torch, forward, backward, jvp=jvp)
    x = jnp.array([1.0, 2.0])
    assert jax.grad(lambda x: F.apply(x)[0].sum())(x).tolist() == [7, 7]
    gradient = jax.grad(lambda x: F.apply(x)[1].sum())(x).tolist()
    assert gradient == ([0, 0] if value else [11, 11])
    assert seen == ([(False, False)] * 2 if value else [(False, True), (True, False)])
    assert [tangent.tolist() for tangent in jax.jvp(F.apply, (x,), (x,))[1]] == [[5, 10], [0, 0]]


@pytest.mark.row("G33")
@pytest.mark.slow
@pytest.mark.parametrize("value", [True, False])
def test_undefined_tangents(value):
    seen = []

    def forward(ctx, x, n, y):
        ctx.set_materialize_grads(value)
        return x * y

    def jvp(ctx, *tangents):
        seen.append([None if tangent is None else tangent.tolist() for tangent in tangents])
        return tangents[0] * 5

    F = function(torch, forward, jvp=jvp)
    x = jnp.array([1.0, 2.0])
    assert jax.jvp(lambda x: F.apply(x, 3, x * 0 + 1), (x,), (x,))[1].tolist() == [5, 10]
    jax.jvp(lambda x: F.apply(x, 3, jnp.ones(2)), (x,), (x,))
    assert seen[1] == [[1, 2], None, [0, 0] if value else None]


@pytest.mark.row("G35")
@pytest.mark.slow
def test_once_differentiable_refuses_second_derivatives():
    @once_differentiable
    def backward(ctx, grad):
        return 7 * ctx.saved_tensors[0] * grad

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    F = function(torch, forward, backward)
    x = jnp.array([1.0, 2.0])

    def slope(x):
        return jax.grad(lambda x: F.apply(x).sum())(x)

    assert slope(x).tolist() == jax.jit(slope)(x).tolist() == [7, 14]
    assert jax.vmap(slope)(x.reshape(2, 1)).tolist() == [[7], [14]]
    words = "trying to differentiate twice a function that was marked with @once_differentiable"
    for second in (jax.jacfwd(slope), jax.jacrev(slope), jax.jit(jax.jacfwd(slope))):
        with pytest.raises(RuntimeError, match=words):
            second(x)


@pytest.mark.row("G27")
def test_functions_that_write():
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    F = function(torch, forward, lambda ctx, grad: grad * 7)
    x = jnp.array([1.0, 2.0])
    assert F.apply(x).tolist() == [3, 6] and x.tolist() == [1, 2]
    assert jax.grad(lambda x: F.apply(x).sum())(x).tolist() == [7, 7]
    assert jax.jit(jax.value_and_grad(lambda x: F.apply(x).sum()))(x)[0] == 9


# ---- what is refused


@pytest.mark.row("G13")
@pytest.mark.slow
def test_wrong_gradients_are_refused():
    x = jnp.array([1.0, 2.0])

    def slope(gradients):
        F = function(torch, lambda ctx, x: x * 2, lambda ctx, grad: gradients(grad))
        return jax.grad(lambda x: F.apply(x).sum())(x)

    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 1, got 2\)"):
        slope(lambda grad: (grad, grad))
    with pytest.raises(RuntimeError, match="invalid gradient at index 0"):
        slope(lambda grad: torch.ones(3))
    with pytest.raises(RuntimeError, match="expected Variable or None"):
        slope(lambda grad: 1.5)
    with pytest.raises(RuntimeError, match="Expected isFloatingType"):
        slope(lambda grad: grad * 1j)


@pytest.mark.row("G02", "G25")
def test_rules_that_are_missing():
    x = jnp.array([1.0, 2.0])
    nothing = function(torch, lambda ctx, x: x * 2)
    assert nothing.apply(x).tolist() == [2, 4]
    with pytest.raises(NotImplementedError, match="either the backward or vjp method"):
        jax.grad(lambda x: nothing.apply(x).sum())(x)
    with pytest.raises(
        NotImplementedError, match="forward mode AD: F has none, and it has no backward"
    ):
        jax.jvp(nothing.apply, (x,), (x,))
    with pytest.raises(NotImplementedError, match="either the backward or vjp method"):
        jvp_alone = function(torch, lambda ctx, x: x * 2, jvp=lambda ctx, tangent: tangent * 5)
        jax.grad(lambda x: jvp_alone.apply(x).sum())(x)


@pytest.mark.row("G25")
@pytest.mark.slow
@pytest.mark.parametrize(
    "backward",
    [
        lambda g: g.clamp(-1, 1),
        torch.sign,
        lambda g: g * g,
        lambda g: g + 1,
        lambda g: g / g.sum(),
    ],
)
def test_no_tangents_are_derived_of_a_backward_that_is_not_linear(backward):
    F = function(torch, lambda ctx, x: x * 1, lambda ctx, grad: backward(grad))
    x = jnp.array([1.0, 2.0])
    expected = backward(torch.tensor([3.0, 0.5])).tolist()
    assert jax.vjp(F.apply, x)[1](jnp.array([3.0, 0.5]))[0].tolist() == expected
    with pytest.raises(NotImplementedError, match="F has none, and its backward is not linear"):
        jax.jvp(F.apply, (x,), (x,))


LINEAR = {
    "a product": lambda ctx, g: g * ctx.saved_tensors[0].cos(),
    "a sum": lambda ctx, g: g.sum().expand(3) * ctx.saved_tensors[0],
    "a mask": lambda ctx, g: torch.where(ctx.saved_tensors[0] > 1, g, 0.0 * g),
    "written to": lambda ctx, g: masked(g.clone(), ctx.saved_tensors[0]),
    "a matrix": lambda ctx, g: g @ (ctx.saved_tensors[0].unsqueeze(0) * torch.ones(3, 3)),
    "softmax": lambda ctx, g: ctx.saved_tensors[0] * (g - (g * ctx.saved_tensors[0]).sum()),
}


def masked(grad, x):
    grad[x < 2] = 0
    return grad.mul_(3)


@pytest.mark.row("G25")
@pytest.mark.slow
@pytest.mark.parametrize("name", LINEAR)
def test_tangents_derived_from_backward(name):
    """The tangents are the transposed map: products agree for each pair of tangent and weight."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    F = function(torch, forward, LINEAR[name])
    x, t = jnp.array([1.0, 2.0, 3.0]), jnp.array([0.5, -1.0, 2.0])
    weights = jnp.array([3.0, 1.0, -2.0])
    tangent = jax.jvp(F.apply, (x,), (t,))[1]
    gradient = jax.vjp(F.apply, x)[1](weights)[0]
    numpy.testing.assert_allclose(tangent @ weights, gradient @ t, rtol=1e-5)
    forward_jacobian, reverse_jacobian = jax.jacfwd(F.apply)(x), jax.jacrev(F.apply)(x)
    numpy.testing.assert_allclose(forward_jacobian, reverse_jacobian, rtol=1e-5, atol=1e-6)
    jacobian = jax.jit(jax.vmap(lambda t: jax.jvp(F.apply, (x,), (t,))[1]))(jnp.eye(3))
    numpy.testing.assert_allclose(jacobian.T, reverse_jacobian, rtol=1e-5, atol=1e-6)


@pytest.mark.row("G20")
@pytest.mark.slow
def test_detach_inside_of_a_rule_stops_jaxs_derivative_too():
    def forward(ctx, x):
        ctx.save_for_backward(x, x.detach() * x)
        return x**3

    def backward(ctx, grad):
        x, square = ctx.saved_tensors
        return (2 * square + x.detach() ** 2) * grad

    F = function(torch, forward, backward)
    assert jax.grad(F.apply)(2.0) == 12
    assert jax.grad(jax.grad(F.apply))(2.0) == 4  # of 2 c x + c c, where c is detached
    assert jax.jacfwd(jax.grad(F.apply))(2.0) == 4


@pytest.mark.row("G20")
@pytest.mark.slow
def test_a_rule_that_saves_work_without_grad_mode_is_differentiated_by_jax():
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def slope(ctx, direction):
        (x,) = ctx.saved_tensors
        x = x if torch.is_grad_enabled() else x.detach()
        return 3 * x * x * direction

    F = function(torch, lambda x: x**3, slope, setup_context=setup_context, jvp=slope)
    for first, second in itertools.product((jax.grad, jax.jacfwd), repeat=2):
        assert second(first(F.apply))(2.0) == 12  # 6 x


@pytest.mark.slow
@pytest.mark.parametrize("detach", ["detach", "data", "alias"])
def test_detached_tensors_under_jax(detach):
    ways = {
        "detach": lambda x: x.detach(),
        "data": lambda x: x.data,
        "alias": lambda x: torch.detach(x.view(-1)[:]),
    }

    def f(x):
        x = wrap(x)
        return (ways[detach](x) * x).sum()._array

    x = jnp.array([1.0, 2.0])
    assert jax.grad(f)(x).tolist() == jax.jit(jax.grad(f))(x).tolist() == [1, 2]
    assert jax.jvp(f, (x,), (x,))[1] == 5


# ---- randomness


class Dropout(Function):
    @staticmethod
    def forward(ctx, x):
        mask = (torch.rand(64) > 0.5).to(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


@pytest.mark.row("G21")
@pytest.mark.slow
@pytest.mark.parametrize("wrapper", ["as it is", "vmap"])
def test_random_numbers_are_drawn_once_for_all_runs_of_forward(wrapper):
    f = {"as it is": Dropout.apply, **WRAPPERS}[wrapper]
    f = f if wrapper == "as it is" else f(Dropout.apply)
    x, first = jnp.ones(64), set()
    for _ in range(3):
        output, back = jax.vjp(f, x)
        numpy.testing.assert_array_equal(back(jnp.ones(64))[0], output)
        first.add(tuple(output.tolist()))
        output, tangent = jax.jvp(f, (x,), (x,))
        numpy.testing.assert_array_equal(output, tangent)
    assert len(first) == 3


@pytest.mark.row("G21")
def test_random_numbers_of_a_function_inside_of_another():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            output = Dropout.apply(Dropout.apply(x))
            ctx.save_for_backward(output)
            return output

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = jnp.ones(64)
    torch.manual_seed(0)
    output, back = jax.vjp(Twice.apply, x)
    numpy.testing.assert_array_equal(back(x)[0], output)
    torch.manual_seed(0)
    eager = Twice.apply(torch.ones(64))
    assert eager.tolist() == output.tolist()
    assert 5 < output.sum() < 30  # two masks, and not one


# ---- vmap


def batching(seen, rule=None, **members):
    """Doubles; its vmap records its arguments and puts the batch last."""

    def vmap(info, in_dims, x, factor):
        seen.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
        return x.movedim(in_dims[0], -1) * factor, -1

    return function(
        torch,
        lambda x, factor: x * factor,
        lambda ctx, grad: (grad * 7, None),
        setup_context=lambda ctx, inputs, output: None,
        vmap=rule or vmap,
        **members,
    )


@pytest.mark.row("G46")
@pytest.mark.slow
def test_a_vmap_rule_of_the_author():
    seen = []
    F = batching(seen)
    x = jnp.arange(6.0).reshape(2, 3)

    def f(x):
        return F.apply(x, 2)

    assert jax.vmap(f)(x).tolist() == (x * 2).tolist()
    assert seen == [(2, "error", (0, None), (2, 3))]
    assert jax.vmap(f, in_axes=1, out_axes=1)(x).tolist() == (x * 2).tolist()
    assert jax.vmap(f, in_axes=1)(x).tolist() == (x * 2).T.tolist()
    assert seen[1:] == [(3, "error", (0, None), (3, 2))] * 2
    assert jax.jit(jax.vmap(f))(x).tolist() == (x * 2).tolist()


@pytest.mark.row("G46")
@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_func_vmap_runs_the_rule_of_the_author(compiled):
    def rule(info, in_dims, x, factor):
        return x * factor + 100, in_dims[0]

    F = batching([], rule)
    x = torch.arange(6.0).reshape(2, 3)
    mapped = torch.func.vmap(lambda x: F.apply(x, 2))
    assert (torch.jit(mapped) if compiled else mapped)(x).tolist() == (x * 2 + 100).tolist()
    slope = torch.func.vmap(torch.func.grad(lambda x: F.apply(x, 2).sum()))(x)
    assert slope.tolist() == [[7.0] * 3] * 2


@pytest.mark.row("G46")
def test_the_rule_of_the_author_is_told_how_examples_draw():
    seen = []
    F = batching(seen)
    torch.func.vmap(lambda x: F.apply(x, 2), randomness="same")(torch.ones(2, 3))
    assert [randomness for _, randomness, _, _ in seen] == ["same"]


@pytest.mark.row("G46")
def test_vmap_of_vmap():
    F = batching([])
    x = jnp.arange(24.0).reshape(2, 3, 4)
    f = jax.vmap(jax.vmap(lambda x: F.apply(x, 2)), in_axes=1)
    assert f(x).tolist() == (x * 2).transpose(1, 0, 2).tolist()


@pytest.mark.row("G46")
@pytest.mark.slow
def test_vmap_and_derivatives():
    F = batching([])
    x = jnp.arange(6.0).reshape(2, 3)

    def f(x):
        return F.apply(x, 2)

    seven = jnp.full((2, 3), 7.0).tolist()
    assert jax.vmap(jax.grad(lambda x: f(x).sum()))(x).tolist() == seven
    assert jax.grad(lambda x: jax.vmap(f)(x).sum())(x).tolist() == seven
    assert jax.jvp(jax.vmap(f), (x,), (x,))[1].tolist() == (7 * x).tolist()
    assert jax.jacrev(f)(x[0]).tolist() == jax.jacfwd(f)(x[0]).tolist() == (7 * jnp.eye(3)).tolist()


@pytest.mark.row("G46")
def test_vmap_of_several_outputs():
    def vmap(info, in_dims, x, factor):
        return (x * factor, torch.ones(3) * factor, "word"), (in_dims[0], None, None)

    F = function(
        torch,
        lambda x, factor: (x * factor, torch.ones(3) * factor, "word"),
        lambda ctx, g, h, word: (g * 7, None),
        setup_context=lambda ctx, inputs, output: None,
        vmap=vmap,
    )
    x = jnp.arange(6.0).reshape(2, 3)
    first, second = jax.vmap(lambda x: F.apply(x, 2)[:2])(x)
    assert first.tolist() == (x * 2).tolist() and second.tolist() == [[2, 2, 2]] * 2


@pytest.mark.row("G46")
def test_what_vmap_of_a_function_refuses():
    x = jnp.arange(6.0).reshape(2, 3)
    both = batching([])
    both.generate_vmap_rule = True
    with pytest.raises(RuntimeError, match="has both generate_vmap_rule=True and an overridden"):
        jax.vmap(lambda x: both.apply(x, 2))(x)
    for wrong in (lambda info, dims, x, n: x, lambda info, dims, x, n: (x, 0, 1)):
        with pytest.raises(
            RuntimeError, match="Expected the vmap staticmethod to have two returns"
        ):
            jax.vmap(lambda x, wrong=wrong: batching([], wrong).apply(x, 2))(x)
    with pytest.raises(RuntimeError, match="give out_dims with the same structure"):
        few = batching([], lambda info, dims, x, n: ((x, x), (0,)))
        jax.vmap(lambda x: few.apply(x, 2))(x)


@pytest.mark.row("G46")
@pytest.mark.slow
@pytest.mark.parametrize("rule", [False, True])
def test_without_a_vmap_the_code_of_forward_is_batched(rule):
    F = function(torch, lambda ctx, x: x.sum() * x, lambda ctx, grad: grad * 7)
    F.generate_vmap_rule = rule
    x = jnp.arange(6.0).reshape(2, 3)
    assert jax.vmap(F.apply)(x).tolist() == (x.sum(1, keepdims=True) * x).tolist()
    assert jax.vmap(jax.grad(lambda x: F.apply(x).sum()))(x).tolist() == [[7] * 3] * 2


@pytest.mark.row("G46")
@pytest.mark.slow
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_gradients_in_batches(own, create_graph):
    seen = []

    def vmap(info, in_dims, x):
        seen.append((info.batch_size, in_dims))
        return x * 3, in_dims[0]

    members = {"vmap": vmap} if own else {}
    Times = function(
        torch,
        lambda x: x * 3,
        lambda ctx, grad: grad * 3,
        setup_context=lambda ctx, inputs, output: None,
        **members,
    )
    F = function(torch, lambda ctx, x: x * 2, lambda ctx, grad: Times.apply(grad))
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (gradients,) = torch.autograd.grad(
        F.apply(x), x, torch.eye(3), is_grads_batched=True, create_graph=create_graph
    )
    assert gradients.tolist() == [[3, 0, 0], [0, 3, 0], [0, 0, 3]]
    assert seen == ([(3, (0,))] if own and not create_graph else [])


def test_a_vmap_rule_gets_batches_inside_of_containers():
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(x, others):
            return x * others["a"] * others["b"][0]

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x, others):
            seen.append((in_dims, list(others["a"].shape), list(others["b"][0].shape)))
            return x * others["a"] * others["b"][0], 0

    x, y, z = torch.arange(1.0, 4), torch.arange(2.0, 5), torch.tensor(10.0)
    result = torch.func.vmap(lambda x, y: Product.apply(x, {"a": y, "b": [z, 1]}))(x, y)
    assert result.tolist() == [20, 60, 120]
    assert seen == [((0, {"a": 0, "b": [None, None]}), [3], [])]
    torch.func.vmap(lambda y: Product.apply(z, {"a": y, "b": (y,)}))(y)
    assert seen[1] == ((None, {"a": 0, "b": (0,)}), [3], [3])
