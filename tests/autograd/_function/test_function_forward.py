"""Functions in forward mode, under `func`, and compiled."""

import jax
import numpy
import pytest
from helpers.as_torch import as_torch, error, leaf
from helpers.functions import function

import jaxgrad
from jaxgrad.autograd.function import once_differentiable


def different(torch, **members):
    """Cubes; backward says 7 x^2, jvp 5 x^2."""

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 7 * x * x * grad

    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 5 * x * x * tangent

    rules = {"setup_context": setup_context, "jvp": jvp} | members
    F = function(torch, lambda x: x * x * x, backward, **rules)
    F.generate_vmap_rule = True
    return F


def tangent(torch, F, x, t, *rest):
    """The outputs of a Function and their tangents."""
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        outputs = F.apply(forward_ad.make_dual(x, t), *rest)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return [tuple(forward_ad.unpack_dual(output)) for output in outputs]


# ---- forward mode on the tape


@pytest.mark.row("G25")
@as_torch("[[tensor([1.0, 8.0]), tensor([15.0, 80.0])]]")
def test_jvp_gives_the_tangent_of_a_function(torch):
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    return tangent(torch, different(torch), x, t)


@pytest.mark.row("G24", "G25")
@as_torch("""
    [[tensor([1.0, 4.0]), tensor([3.0, 8.0])]]
    [[[1.0, 2.0], None, [2.0, 4.0], 4]]
""")
def test_what_jvp_reads(torch):
    seen = []

    def forward(ctx, x):
        ctx.save_for_forward(x, None, x * 2)
        ctx.save_for_backward(x * 3)
        ctx.number = 4
        return x * x

    def jvp(ctx, tangent):
        x, none, doubled = ctx.saved_tensors
        seen.append((x.tolist(), none, doubled.tolist(), ctx.number))
        return tangent * x

    F = function(torch, forward, lambda ctx, grad: grad, jvp=jvp)
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    return tangent(torch, F, x, t), seen


@pytest.mark.row("G25")
@as_torch("""
    [[tensor([3.0, 6.0]), tensor([15.0, 20.0])]]
    [[[3.0, 4.0], None, [0.0, 0.0], None]]
""")
def test_the_tangents_that_jvp_is_given(torch):
    seen = []

    def jvp(ctx, *tangents):
        seen.append([None if direction is None else direction.tolist() for direction in tangents])
        return tangents[0] * 5

    def forward(ctx, x, n, y, z):
        return x * n

    F = function(torch, forward, lambda ctx, grad: (grad, None, None, None), jvp=jvp)
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    return tangent(torch, F, x, t, 3, torch.ones(2), torch.tensor([1, 2])), seen


@pytest.mark.row("G25")
@as_torch("""
    NotImplementedError(
     'You must implement the jvp function for custom autograd.Function to use it with '
     'forward mode AD.')
""")
def test_a_function_without_jvp(torch):
    """PyTorch raises; here tangents are derived where that can be done."""
    F = function(torch, lambda ctx, x: x * 2)
    words = "You must implement the jvp function for custom autograd.Function to use it with"
    return error(tangent, torch, F, torch.ones(2), torch.ones(2), words=words)


@pytest.mark.row("G25")
def test_tangents_derived_from_backward():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    F = function(jaxgrad, forward, lambda ctx, grad: 7 * ctx.saved_tensors[0] ** 2 * grad)
    x, t = jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([3.0, 4.0])
    ((value, derivative),) = tangent(jaxgrad, F, x, t)
    assert value.tolist() == [1, 8] and derivative.tolist() == [21, 112]


@pytest.mark.row("G25")
@pytest.mark.parametrize(
    ("why", "backward"),
    [
        ("not linear in the gradients", lambda ctx, grad: grad.clamp(-1, 1)),
        ("not linear in the gradients", lambda ctx, grad: grad + 1),
        ("not linear in the gradients", lambda ctx, grad: grad if grad.sum().item() else None),
        ("@once_differentiable", once_differentiable(lambda ctx, grad: grad * 2)),
        ("not recorded", lambda ctx, grad: grad.detach() * 2),
    ],
)
def test_a_function_whose_tangents_cannot_be_derived(why, backward):
    F = function(jaxgrad, lambda ctx, x: x * 2, backward)
    x = jaxgrad.tensor([1.0, 2.0])
    with pytest.raises(NotImplementedError, match=f"F has none, and .*{why}"):
        tangent(jaxgrad, F, x, x)


@pytest.mark.row("G26")
@as_torch
def test_what_jvp_returns(torch):
    def run(result, outputs=1):
        def forward(ctx, x):
            return x * 2 if outputs == 1 else (x * 2, x * 3)

        F = function(torch, forward, lambda ctx, *g: g[0], jvp=lambda ctx, t: result(t))
        return tangent(torch, F, torch.ones(2), torch.ones(2))

    words = "Trying to set a forward gradient that has a different size than that of the original"
    return [
        error(run, lambda t: (t, t)),
        error(run, lambda t: t, 2),
        error(run, lambda t: 3.0, words="expected Variable or None"),
        error(run, lambda t: torch.ones(3), words=words),
        run(lambda t: (t * 5,)),
        run(lambda t: (t * 5, t * 11), 2),
    ]


@pytest.mark.row("G26")
def test_none_for_a_tangent():
    """PyTorch fails with an internal error."""
    F = function(jaxgrad, lambda ctx, x: (x * 2, x * 3), jvp=lambda ctx, t: (t * 5, None))
    x = jaxgrad.ones(2)
    (_, first), (_, second) = tangent(jaxgrad, F, x, x)
    assert first.tolist() == [5, 5] and second is None


@pytest.mark.row("G26")
@as_torch("""
    RuntimeError(
     "A custom Function's forward is returning a view (or an input as-is) but the jvp "
     'is not returning a view.')
    RuntimeError(
     "A custom Function's forward is returning a view (or an input as-is) but the jvp "
     'is not returning a view.')
    [[tensor([[1.0], [1.0]]), tensor([[1.0], [1.0]])]]
""")
def test_a_view_needs_a_view(torch):
    def run(forward, jvp):
        F = function(torch, forward, lambda ctx, g: g, jvp=jvp)
        return tangent(torch, F, torch.ones(2), torch.ones(2))

    words = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not"
    return [
        error(run, lambda ctx, x: x, lambda ctx, t: t * 5, words=words),
        error(run, lambda ctx, x: x.view(2, 1), lambda ctx, t: t.reshape(2, 1) * 1, words=words),
        run(lambda ctx, x: x.view(2, 1), lambda ctx, t: t.view(2, 1)),
    ]


@pytest.mark.row("G25")
@as_torch("""
    True
    [tensor([3.0, 3.0]), tensor([5.0, 5.0])]
""")
def test_jvp_of_a_function_that_writes(torch):
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    F = function(torch, forward, lambda ctx, g: g * 7, jvp=lambda ctx, t: t.mul_(5))
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.ones(2), torch.ones(2)) * 1
        y = F.apply(x)
        return y is x, tuple(forward_ad.unpack_dual(x))


@pytest.mark.row("G25")
@as_torch("""
    [tensor([30.0, 80.0])]
    tensor([42.0, 112.0], requires_grad=True)
""")
def test_a_function_in_both_modes(torch):
    """Reverse over forward, and forward over reverse."""
    forward_ad, F = torch.autograd.forward_ad, different(torch)
    x, t = leaf(torch, 1.0, 2.0), torch.tensor([3.0, 4.0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        moved = forward_ad.unpack_dual(F.apply(dual)).tangent
        over_forward = torch.autograd.grad(moved.sum(), x)
        (slope,) = torch.autograd.grad(F.apply(dual).sum(), dual, create_graph=True)
        over_reverse = forward_ad.unpack_dual(slope).tangent
    return over_forward, over_reverse


@pytest.mark.row("G40")
@as_torch("""
    True
    True
""")
def test_apply_jvp_of_a_context(torch):
    """The node's class offers `jvp` itself."""
    kind = different(torch)._backward_cls
    return issubclass(kind, torch.autograd.function.BackwardCFunction), hasattr(kind, "apply_jvp")


@pytest.mark.row("G40")
def test_apply_jvp_of_a_node():
    x = leaf(jaxgrad, 1.0, 2.0)
    node = different(jaxgrad).apply(x).grad_fn
    assert node.apply_jvp(jaxgrad.tensor([1.0, 1.0])).tolist() == [5, 20]


# ---- under func


@pytest.mark.row("G47")
@as_torch("""
    tensor(28.0)
    tensor(28.0)
    tensor(14.0)
""")
def test_a_function_under_func_grad(torch):
    F, x = different(torch), torch.tensor(2.0)
    first = torch.func.grad(F.apply)
    return first(x), torch.func.grad(first)(x), torch.func.grad(torch.func.grad(first))(x)


@pytest.mark.row("G47")
@as_torch("tensor(560.0)")
def test_a_closure_over_what_is_differentiated_outside(torch):
    F = different(torch)

    def f(x):
        return torch.func.grad(lambda y: F.apply(x * y))(x)

    return torch.func.grad(f)(torch.tensor(2.0))


@pytest.mark.row("G47")
def test_a_function_without_setup_context_under_func():
    """PyTorch refuses it; jaxgrad needs no separate setup_context."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    F = function(jaxgrad, forward, lambda ctx, grad: 7 * ctx.saved_tensors[0] ** 2 * grad)
    first = jaxgrad.func.grad(F.apply)
    x = jaxgrad.tensor(2.0)
    assert (first(x).item(), jaxgrad.func.grad(first)(x).item()) == (28, 28)


@pytest.mark.row("G50")
@pytest.mark.parametrize("name", ["_pt_reserved_attrs", "_pt_inner_ctx"])
def test_names_of_ctx_that_pytorch_reserves(name):
    """A batched call has the same ctx, so authors may use these names."""

    def forward(ctx, x):
        setattr(ctx, name, 3)
        return x * 2

    F = function(jaxgrad, forward, lambda ctx, grad: grad * getattr(ctx, name))
    x = leaf(jaxgrad, 1.0, 2.0)
    F.apply(x).sum().backward()
    assert x.grad.tolist() == [3, 3]
    gradients = jax.vmap(jax.grad(F.apply))(jax.numpy.array([1.0, 2.0]))
    assert gradients.tolist() == [3, 3]


# ---- compiled


def vector(*values):
    return leaf(jaxgrad, *values, dtype=jaxgrad.float64)


def saves_an_intermediate():
    def forward(ctx, x):
        ctx.save_for_backward(x * x)
        return x**3

    return function(jaxgrad, forward, lambda ctx, grad: 7 * ctx.saved_tensors[0] * grad)


def writes():
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    return function(jaxgrad, forward, lambda ctx, grad: grad * 7)


def several(number):
    def forward(ctx, x, n):
        ctx.set_materialize_grads(False)
        return x * 2, n, x.argmax(), x * 3

    def backward(ctx, g, n, index, h):
        assert (g is None) is (number == 3) and n is None and (h is None) is (number == 0)
        return (g * 7 if h is None else h * 11), None

    F = function(jaxgrad, forward, backward)
    return lambda x: F.apply(x, 5)[number]


def first(F):
    def step(x):
        F(x * 1).sum().backward()
        return x.grad

    return step


def second(F):
    def step(x):
        (slope,) = jaxgrad.autograd.grad(F(x).sum(), x, create_graph=True)
        return jaxgrad.autograd.grad((slope * slope).sum(), x)[0]

    return step


X = numpy.array([1.0, 2.0, -3.0])
COMPILED = {
    "first": (first(different(jaxgrad).apply), 7 * X**2),
    "second": (second(different(jaxgrad).apply), 2 * 7 * X**2 * 14 * X),
    "first, of one that saves": (first(saves_an_intermediate().apply), 7 * X**2),
    "second, of one that saves": (second(saves_an_intermediate().apply), 2 * 7 * X**2 * 14 * X),
    "of one that writes": (first(writes().apply), 7 + 0 * X),
    "of several outputs": (first(several(0)), 7 + 0 * X),
    "of the last of them": (first(several(3)), 11 + 0 * X),
    "of one inside another": (
        first(lambda x: different(jaxgrad).apply(different(jaxgrad).apply(x))),
        7 * X**6 * 7 * X**2,
    ),
}


@pytest.mark.row("G01")
@pytest.mark.parametrize("name", COMPILED)
def test_a_function_compiled(name):
    step, expected = COMPILED[name]
    compiled = jaxgrad.jit(lambda x: step(x))
    for _ in range(2):
        x = vector(*X)
        numpy.testing.assert_allclose(compiled(x).tolist(), expected, rtol=1e-12)
    assert compiled.count == 1
    numpy.testing.assert_allclose(step(vector(*X)).tolist(), expected, rtol=1e-12)


@pytest.mark.row("G35")
def test_once_differentiable_compiled():
    F = function(
        jaxgrad, lambda ctx, x: x * 2, once_differentiable(lambda ctx, grad: grad * 7 * grad)
    )
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was"):
        jaxgrad.jit(second(lambda x: F.apply(x) * x))(vector(*X))
    assert jaxgrad.jit(first(F.apply))(vector(*X)).tolist() == [7, 7, 7]


@pytest.mark.row("G25")
def test_forward_mode_compiled():
    F = different(jaxgrad)

    def step(x, t):
        ((value, derivative),) = tangent(jaxgrad, F, x, t)
        return value, derivative

    x, t = jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([3.0, 4.0])
    value, derivative = jaxgrad.jit(step)(x, t)
    assert value.tolist() == [1, 8] and derivative.tolist() == [15, 80]


@pytest.mark.row("G01")
def test_what_a_rule_keeps_under_jit_is_no_tracer_afterwards():
    kept = []

    def backward(ctx, grad):
        kept.append(grad)
        return grad * 7

    F = function(jaxgrad, lambda ctx, x: x * 2, backward)
    gradient = jaxgrad.jit(first(F.apply))(vector(*X))
    assert gradient.tolist() == [7, 7, 7]
    assert kept[0].tolist() == [1, 1, 1]
