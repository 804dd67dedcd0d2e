"""A tangent follows its tensor through every call, or an error says that it cannot."""

import copy
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers import hangs

import jaxgrad
import jaxgrad.nn.functional as F
from jaxgrad.autograd import forward_ad as fwAD

VALUES = numpy.array([[0.3, -1.2, 0.8], [1.7, 0.4, -0.6]])
TANGENTS = numpy.array([[1.0, 0.5, -2.0], [0.25, -1.0, 3.0]])


def dual(values=VALUES, tangents=TANGENTS, **options):
    return fwAD.make_dual(jaxgrad.tensor(values, **options), jaxgrad.tensor(tangents))


def tangent(tensor):
    return fwAD.unpack_dual(tensor).tangent


def differences(function, values, tangents, step=1e-6):
    """The derivative along the tangents of a function of a tensor."""
    ends = [function(jaxgrad.tensor(values + sign * step * tangents)) for sign in (1, -1)]
    return (ends[0].numpy() - ends[1].numpy()) / (2 * step)


WEIGHT, CLASSES = jaxgrad.tensor([0.2, 0.5, 0.3], dtype=jaxgrad.float64), jaxgrad.tensor([2, 0])
POSITIVE = jaxgrad.tensor(numpy.abs(VALUES[::-1]))

WAYS = {
    # functions that are no operator of the table
    "reflected": lambda x: 2**x + 3 / (x + 4) + 5 - x,
    "reflected with arrays": lambda x: jaxgrad.ones(2, dtype=jaxgrad.float64) @ x,
    "transposes": lambda x: x.T @ x.mT.H,
    "iterated": lambda x: sum(row * i for i, row in enumerate(x, 1)),
    "real and imaginary": lambda x: (x * (2 + 3j)).real + (x * 1j).imag,
    "where": lambda x: x.where(x > 0, x * x),
    "masked": lambda x: x.masked_select(x > 0).sum() + x[x < 0].prod() + x[[1, 0], 1:].sum(),
    "indexed": lambda x: x[..., None, 1] * x[1, 0] + x[jaxgrad.tensor(1), 2] + x[-1:, ::2].sum(),
    "numerical gradient": lambda x: jaxgrad.gradient(x, dim=1)[0],
    "numerical gradient, uneven": lambda x: jaxgrad.gradient(x, spacing=[x[:, 0].exp()], dim=0)[0],
    "conversions": lambda x: jaxgrad.asarray(x.to("cpu", copy=True).cpu(), copy=True).type_as(x),
    "casts": lambda x: x.to(jaxgrad.complex128).real.to(jaxgrad.float64),
    "memory formats": lambda x: (
        x.t().contiguous() @ x.clone(memory_format=jaxgrad.contiguous_format)
    ),
    "strides": lambda x: x.as_strided((2, 2), (3, 2)) * x.t().as_strided((2, 2), (1, 2), 1),
    "reshaped": lambda x: x.reshape(3, -1).view(-1)[1:4].flatten() * x.T.ravel()[:3],
    # composites of torch.nn.functional
    "softmin": lambda x: F.softmin(x, 1),
    "softmax in a dtype": lambda x: F.softmax(x, dim=0, dtype=jaxgrad.float64),
    "selu, celu": lambda x: F.selu(x) + F.celu(x, 2.0) + F.relu6(x * 5) + F.elu(x, inplace=False),
    "gelu and others": lambda x: F.gelu(x) + F.silu(x) + F.softplus(x) + F.logsigmoid(x),
    "in place": lambda x: F.relu_(F.leaky_relu(F.elu_(x * 1) + 0.1, inplace=True)),
    "mse_loss, weighted": lambda x: F.mse_loss(x, POSITIVE, weight=POSITIVE),
    "mse_loss to itself": lambda x: F.mse_loss(x, x.flip(0), reduction="sum"),
    "l1_loss": lambda x: F.smooth_l1_loss(x, POSITIVE, beta=0) + F.l1_loss(POSITIVE, x),
    "kl_div": lambda x: F.kl_div(x, x.softmax(1), reduction="batchmean"),
    "nll_loss": lambda x: F.nll_loss(x, CLASSES, weight=WEIGHT),
    "cross_entropy": lambda x: F.cross_entropy(x, CLASSES, WEIGHT, label_smoothing=0.2),
    "cross_entropy of probabilities": lambda x: F.cross_entropy(x, x.sigmoid()),
    "binary cross entropy": lambda x: F.binary_cross_entropy_with_logits(
        x, x.sigmoid(), weight=POSITIVE, pos_weight=WEIGHT
    ),
}


QUICK = ("transposes", "masked", "conversions", "in place", "cross_entropy")
EVERY = [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in WAYS]


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_tangents_go_along(name):
    way = WAYS[name]
    with fwAD.dual_level():
        slopes = tangent(way(dual())).numpy()
    expected = differences(way, VALUES, TANGENTS)
    numpy.testing.assert_allclose(slopes, expected, rtol=1e-7, atol=1e-8)


DROPS = {
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "Variable": jaxgrad.autograd.Variable,
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "tensor": lambda x: jaxgrad.tensor(x.numpy()),
    "new_tensor": lambda x: x.new_tensor(x.tolist()),
    "numbers": lambda x: jaxgrad.full((2,), x[0, 0].item()),
    "like": lambda x: jaxgrad.full_like(x, 2.0) + jaxgrad.ones_like(x) + x.new_zeros(2, 3),
    "random": lambda x: jaxgrad.rand_like(x) + jaxgrad.randn_like(x),
    "integers": lambda x: x.argmax() + x.long().sum() + (x > 0).sum(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DROPS)
@pytest.mark.filterwarnings("ignore:To copy construct")
def test_what_is_another_tensor_has_none(name):
    """As in PyTorch: these give new numbers."""
    with fwAD.dual_level():
        x = dual()
        result = DROPS[name](x)
        assert tangent(result) is None and not (result * 1.0)._aval.dual
        assert tangent(x).tolist() == TANGENTS.tolist()


REFUSES = {
    "jnp": lambda x: jnp.sin(x),
    "an array of JAX": lambda x: jnp.ones((2, 3)) * jnp.asarray(x),
    "jax.jit": jax.jit(lambda x: x * 2),
    "jax.vmap": jax.vmap(lambda x: x * 2),
    "jax.grad": jax.grad(lambda x: (x * 2).sum()._array),
    "jax.tree.map": lambda x: jax.tree.map(lambda leaf: leaf, {"x": [x]}),
    "block_until_ready": jax.block_until_ready,
    "func.grad of arrays": lambda x: jaxgrad.func.grad(lambda a: (a * x).sum())(jnp.ones((2, 3))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSES)
def test_what_would_lose_a_tangent_is_refused(name):
    refused = pytest.raises(RuntimeError, match="has a tangent of forward mode, which would be")
    with fwAD.dual_level():
        x = fwAD.make_dual(jaxgrad.ones(2, 3), jaxgrad.ones(2, 3)) * 1
        with refused:
            REFUSES[name](x)
        with fwAD.dual_level(), refused:
            REFUSES[name](x)
    if name != "func.grad of arrays":
        REFUSES[name](x)  # it has no tangent any longer


NUMBERS = {
    "alpha": lambda x: jaxgrad.add(jaxgrad.ones(2), 1, alpha=x),
    "full": lambda x: jaxgrad.full((2,), x),
    "range": lambda x: jaxgrad.arange(0, x, 0.5),
    "clamp": lambda x: jaxgrad.add(jaxgrad.ones(2), jaxgrad.ones(2), alpha=x),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_cannot_move(name):
    with fwAD.dual_level():
        x = fwAD.make_dual(jaxgrad.tensor(1.0), jaxgrad.tensor(1.0))
        with pytest.raises(TypeError, match=r"tangent would be lost|must be Number, not Tensor"):
            NUMBERS[name](x)
        NUMBERS[name](x.detach())


@pytest.mark.slow
def test_scalars_that_are_tensors_in_their_own_right_move():
    with fwAD.dual_level():
        x = fwAD.make_dual(jaxgrad.tensor(2.0), jaxgrad.tensor(1.0))
        y = jaxgrad.zeros(3)
        y.fill_(x)
        assert tangent(y).tolist() == [1, 1, 1]
        y.masked_fill_(jaxgrad.tensor([True, False, True]), x * 3)
        assert tangent(y).tolist() == [3, 1, 3]
        y[1:] = x * 5
        assert tangent(y).tolist() == [3, 5, 5]
        assert tangent(jaxgrad.where(y > 7, y, x)).tolist() == [1, 5, 5]


# ---- devices

TWO_DEVICES = """
import jaxgrad as torch
from jaxgrad.autograd import forward_ad as fwAD
x = torch.tensor([1.0, 2.0], requires_grad=True)
with fwAD.dual_level():
    y = fwAD.make_dual(x, torch.tensor([3.0, 4.0])).to("cpu:1")
    slope = fwAD.unpack_dual(y).tangent
    assert slope.tolist() == [3, 4] and slope.device == y.device == torch.device("cpu:1")
    z = fwAD.unpack_dual(y * y).tangent
    assert z.tolist() == [6, 16] and z.device == y.device
    (gradient,) = torch.autograd.grad((y * y).sum(), x)
    assert gradient.device == torch.device("cpu")
    moved = fwAD.unpack_dual(gradient).tangent
    assert moved.tolist() == [6, 8] and moved.device == gradient.device
assert torch.autograd.grad(z.sum(), x)[0].tolist() == [6, 8]
"""


@pytest.mark.slow
def test_a_tangent_moves_to_the_device_of_its_tensor():
    settings = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", TWO_DEVICES],
        capture_output=True,
        text=True,
        timeout=hangs.LIMIT,
        env=os.environ | settings,
    )
    assert child.returncode == 0, child.stderr


# ---- func.grad, and passes that are batched


@pytest.mark.slow
def test_func_grad_of_a_dual():
    def value(x):
        return (x**3).sum()

    with fwAD.dual_level():
        x = dual()
        gradient, at = jaxgrad.func.grad_and_value(value)(x)
        cube = 3 * VALUES**2
        numpy.testing.assert_allclose(gradient.numpy(), cube, rtol=1e-12)
        numpy.testing.assert_allclose(tangent(gradient), 6 * VALUES * TANGENTS, rtol=1e-12)
        numpy.testing.assert_allclose(tangent(at).item(), (cube * TANGENTS).sum(), rtol=1e-12)
        closed = jaxgrad.func.grad(lambda y: (y * y * x).sum())(jaxgrad.tensor(VALUES))
        numpy.testing.assert_allclose(tangent(closed), 2 * VALUES * TANGENTS, rtol=1e-12)


def test_func_grad_of_a_dual_whose_tangent_requires_grad():
    t = jaxgrad.tensor(2.0, requires_grad=True)
    with fwAD.dual_level():
        x = fwAD.make_dual(jaxgrad.tensor(3.0), t)
        slope = tangent(jaxgrad.func.grad(lambda x: x**3)(x))
        assert slope.item() == 36
        assert jaxgrad.autograd.grad(slope, t)[0].item() == 18


FUNCTIONALS = {
    "jacobian": (2 * VALUES, TANGENTS * 2),
    "vjp": (2 * VALUES, TANGENTS * 2),
    "jvp": ((2 * VALUES).sum(), (TANGENTS * 2).sum()),
    "hessian": (2 * numpy.eye(6), numpy.zeros((6, 6))),
    "hvp": (2 * numpy.ones((2, 3)), numpy.zeros((2, 3))),
    "vhp": (2 * numpy.ones((2, 3)), numpy.zeros((2, 3))),
}


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"create_graph": True}, {"vectorize": True}], ids=str)
@pytest.mark.parametrize("name", FUNCTIONALS)
def test_functions_of_a_dual(name, options):
    if "vectorize" in options and name not in ("jacobian", "hessian"):
        options = {}
    values, slopes = FUNCTIONALS[name]
    vectors = {"vjp": [], "jacobian": [], "hessian": []}
    with fwAD.dual_level():
        x = dual()
        arguments = vectors.get(name, [jaxgrad.ones(2, 3, dtype=jaxgrad.float64)])
        call = getattr(jaxgrad.autograd.functional, name)
        result = call(lambda x: (x * x + 1j).real.sum(), x, *arguments, **options)
        result = result[1] if isinstance(result, tuple) else result
        moved = jaxgrad.zeros_like(result) if tangent(result) is None else tangent(result)
        assert "create_graph" in options or not moved.requires_grad
        for ours, wanted in ((result, values), (moved, slopes)):
            ours = ours.detach().numpy().reshape(numpy.shape(wanted))
            numpy.testing.assert_allclose(ours, wanted, rtol=1e-12, atol=1e-12)


def test_a_jacobian_by_forward_mode_of_a_dual():
    """Its tangents are JAX's batch, which has no tangent itself."""
    by_forward = {"vectorize": True, "strategy": "forward-mode"}
    with fwAD.dual_level(), pytest.raises(RuntimeError, match="has a tangent of forward mode"):
        jaxgrad.autograd.functional.jacobian(lambda x: x * x, dual(), **by_forward)


@pytest.mark.slow
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_that_are_batched_have_tangents(create_graph):
    x = jaxgrad.tensor(VALUES[0], requires_grad=True)
    with fwAD.dual_level():
        y = fwAD.make_dual(x, jaxgrad.tensor(TANGENTS[0]))
        rows = jaxgrad.eye(3, dtype=jaxgrad.float64)
        (gradients,) = jaxgrad.autograd.grad(
            y**2, x, rows, is_grads_batched=True, create_graph=create_graph
        )
        assert numpy.allclose(gradients.detach(), numpy.diag(2 * VALUES[0]))
        assert numpy.allclose(tangent(gradients).detach(), numpy.diag(2 * TANGENTS[0]))


@pytest.mark.slow
def test_a_batch_of_tangents_of_one_tensor():
    """As autograd.functional computes a Jacobian by forward mode."""
    x = jaxgrad.tensor(VALUES)
    base = jaxgrad.zeros(2, 3, dtype=jaxgrad.float64)

    def along(direction):
        with fwAD.dual_level():
            y = fwAD.make_dual(x, jaxgrad.tensor(direction))
            z = y.sin() * y[0]
            z[0].mul_(y[1])
            z[:, 1] = 2.0
            copied = base.clone()
            copied[1].copy_(z[0])
            return tangent(z)._array, tangent(copied.sum())._array

    def theirs(x):
        z = jnp.sin(x) * x[0]
        z = z.at[0].multiply(x[1]).at[:, 1].set(2.0)
        return z, z[0].sum()

    directions = numpy.stack([TANGENTS, TANGENTS[::-1], VALUES])
    with jax.enable_x64(True):
        tangents = jax.vmap(along)(jnp.asarray(directions))
        expected = jax.vmap(lambda d: jax.jvp(theirs, (jnp.asarray(VALUES),), (d,))[1])(directions)
    for ours, wanted in zip(tangents, expected, strict=True):
        numpy.testing.assert_allclose(ours, wanted, rtol=1e-12)
    assert not x._aval.dual and not base._aval.dual


# ---- hooks, retained and accumulated gradients, saved tensors


def test_hooks_get_gradients_that_have_tangents():
    x = jaxgrad.tensor(3.0, requires_grad=True)
    seen = {}
    x.register_hook(lambda g: seen.__setitem__("leaf", tangent(g).item()))
    x.register_post_accumulate_grad_hook(
        lambda p: seen.__setitem__("after", tangent(p.grad).item())
    )
    with fwAD.dual_level():
        y = fwAD.make_dual(x, jaxgrad.tensor(2.0))
        z = y**3
        z.retain_grad()
        y.register_hook(lambda g: g * 3)
        z.grad_fn.register_hook(lambda i, o: seen.__setitem__("node", tangent(i[0]).item()))
        z.grad_fn.register_prehook(lambda o: seen.__setitem__("before", tangent(o[0]).item()))
        (z * z).backward()
        # 6 y**5, and multiplied by the constant 3
        assert seen == {"before": 108, "node": 4860, "leaf": 14580, "after": 14580}
        assert (x.grad.item(), tangent(x.grad).item()) == (4374, 14580)
        assert (z.grad.item(), tangent(z.grad).item()) == (54, 108)


@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_accumulate_with_their_tangents():
    x = jaxgrad.tensor(3.0, requires_grad=True)
    for create_graph in (False, True):
        with fwAD.dual_level():
            y = fwAD.make_dual(x, jaxgrad.tensor(2.0))
            (y**2).backward()
            (y**3).backward(create_graph=create_graph)
            x.grad = x.grad.clone()
            assert (x.grad.item(), tangent(x.grad).item()) == (33, 40)
        assert tangent(x.grad) is None and x.grad.item() == 33
        x.grad = None


@pytest.mark.slow
def test_saved_tensors_hooks():
    packed = []

    def pack(tensor):
        packed.append(tensor)
        return tensor.numpy()

    x = jaxgrad.tensor(VALUES, requires_grad=True)
    with fwAD.dual_level():
        y = fwAD.make_dual(x, jaxgrad.tensor(TANGENTS))
        with jaxgrad.autograd.graph.saved_tensors_hooks(pack, jaxgrad.tensor):
            z = (y * y.exp()).sum()
        (gradient,) = jaxgrad.autograd.grad(z, x)
        expected = (2 + VALUES) * numpy.exp(VALUES) * TANGENTS
        numpy.testing.assert_allclose(tangent(gradient), expected, rtol=1e-12)
    assert packed


def test_what_was_saved_keeps_the_tangent_that_it_had():
    x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    direction = jaxgrad.tensor([3.0, 4.0])
    with fwAD.dual_level():
        y = fwAD.make_dual(x, direction)
        z, other = y * y, y * 1
        square = other * other
        direction.zero_()
        other.mul_(0)
        for output in (z, square):
            (gradient,) = jaxgrad.autograd.grad(output.sum(), x)
            assert gradient.tolist() == [2, 4]
            assert tangent(gradient).tolist() == [6, 8]


class Square(jaxgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        assert tangent(x) is None  # the tangent of a Function comes from backward or jvp
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient * ctx.saved_tensors[0]


def test_what_a_function_saved_keeps_the_tangent_that_it_had():
    x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    with fwAD.dual_level():
        y = fwAD.make_dual(x, jaxgrad.tensor([3.0, 4.0])) * 1
        z = Square.apply(y)
        y.mul_(0)
        (gradient,) = jaxgrad.autograd.grad(z.sum(), x)
        assert tangent(z).tolist() == [6, 16]
        assert tangent(gradient).tolist() == [6, 8]


# ---- compiled functions


@pytest.mark.slow
def test_forward_mode_in_a_compiled_function():
    @jaxgrad.jit
    def slopes(x, t):
        with fwAD.dual_level():
            y = fwAD.make_dual(x, t)
            base = jaxgrad.zeros_like(x)
            base[0].copy_(y[1] * y[0])
            loss = (base.exp() * y).sum()
            (gradient,) = jaxgrad.autograd.grad(loss, x)
            return tangent(loss), tangent(gradient), gradient

    def theirs(x):
        return (jnp.exp(jnp.zeros_like(x).at[0].set(x[1] * x[0])) * x).sum()

    x, t = jaxgrad.tensor(VALUES, requires_grad=True), jaxgrad.tensor(TANGENTS)
    with jax.checking_leaks():
        results = slopes(x, t)
    slopes(x, t)
    assert len(slopes.traces) == 1
    with jax.enable_x64(True):
        expected = jax.jvp(
            jax.value_and_grad(theirs), (jnp.asarray(VALUES),), (jnp.asarray(TANGENTS),)
        )
    (value_slope, gradient_slope), gradient = expected[1], expected[0][1]
    for ours, wanted in zip(results, (value_slope, gradient_slope, gradient), strict=True):
        numpy.testing.assert_allclose(ours.detach().numpy(), wanted, rtol=1e-10)


def test_a_compiled_function_and_tangents_from_outside():
    """Tangents of arguments, of captured tensors, and of duals made at an outer level."""
    weight = jaxgrad.tensor(5.0)
    with fwAD.dual_level():
        x = fwAD.make_dual(jaxgrad.tensor(2.0), jaxgrad.tensor(1.0))
        compiled = jaxgrad.jit(lambda y: y * x)
        assert tangent(compiled(jaxgrad.tensor(3.0))).item() == 3
        assert tangent(compiled(x)).item() == 4
        assert tangent(jaxgrad.jit(lambda x: x * weight)(x)).item() == 5
        function = jaxgrad.jit(lambda y: fwAD.make_dual(y, weight) * y)
        assert tangent(function(jaxgrad.tensor(3.0))).item() == 15
        product = jaxgrad.jit(lambda y: y * x.detach())(jaxgrad.tensor(3.0))
        assert product.item() == 6 and tangent(product) is None
    assert compiled(jaxgrad.tensor(3.0)).item() == 6 and len(compiled.traces) == 1


def test_a_compiled_function_inside_another_takes_duals():
    @jaxgrad.jit
    def inner(x):
        return x * x

    @jaxgrad.jit
    def outer(x):
        with fwAD.dual_level():
            return tangent(inner(fwAD.make_dual(x, jaxgrad.ones_like(x))))

    assert inner(jaxgrad.tensor(3.0)).item() == 9
    assert outer(jaxgrad.tensor(3.0)).item() == 6


@pytest.mark.slow
@pytest.mark.parametrize("order", ["level, jit", "jit, level"])
def test_forward_mode_first_or_compiled_first(order):
    @jaxgrad.jit
    def cube(x):
        return x**3 + x.sin()

    def by_level():
        with fwAD.dual_level():
            x = fwAD.make_dual(jaxgrad.tensor(2.0), jaxgrad.tensor(1.0))
            return tangent(cube.function(x)).item()

    compiled = []
    for way in order.split(", "):
        compiled.append(by_level() if way == "level" else cube(jaxgrad.tensor(2.0)).item())
    slope = compiled[order.split(", ").index("level")]
    numpy.testing.assert_allclose(slope, 12 + numpy.cos(2), rtol=1e-6)
