"""Second derivatives of Functions that save an intermediate are right or refused.

PyTorch's are silently wrong (pytorch#76185, #104040). The oracle is the derivative of x^3, in
closed form.
"""

import functools

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.as_torch import as_torch, error, leaf
from helpers.functions import function, square

import jaxgrad as torch
from jaxgrad.autograd import Function, forward_ad

X = [0.7, 1.3]
WEIGHTS = [1.0, -2.0]


def vector():
    return torch.tensor(X, dtype=torch.float64, requires_grad=True)


def second(F, *args):
    """The derivative of the weighted first derivative, by the tape, compiled, and by JAX."""
    weights = torch.tensor(WEIGHTS, dtype=torch.float64)

    def tape(x):
        (first,) = torch.autograd.grad(F.apply(x, *args).sum(), x, create_graph=True)
        return torch.autograd.grad((first * weights).sum(), x)[0]

    yield "tape", lambda: tape(vector()).tolist()
    yield "compiled", lambda: torch.jit(tape)(vector()).tolist()

    def slope(x):
        first = jax.grad(lambda x: F.apply(x, *args).sum())(x)
        return (first * jnp.array(WEIGHTS)).sum()

    for name, mode in (("grad", jax.grad), ("jacfwd", jax.jacfwd)):
        yield name, lambda mode=mode: with_wide_types(mode(slope))


def with_wide_types(f):
    with jax.enable_x64(True):
        return f(jnp.array(X)).tolist()


EXPECTED = [6 * x * w for x, w in zip(X, WEIGHTS, strict=True)]


def cube(keep, slope=lambda kept: 3 * kept):
    """x^3, whose backward reads the square that `keep(x)` returns as its one saved tensor."""

    def forward(ctx, x):
        ctx.save_for_backward(keep(x))
        return x**3

    return function(torch, forward, lambda ctx, grad: slope(ctx.saved_tensors[0]) * grad)


# ---- what is saved by save_for_backward


def in_a_buffer(x):
    buffer = torch.zeros(2, dtype=x.dtype)
    buffer.copy_(x)
    return buffer.mul_(buffer)


def item_by_item(x):
    buffer = torch.zeros(2, dtype=x.dtype)
    buffer[0], buffer[1] = x[0] ** 2, x[1] ** 2
    return buffer


def in_a_view(x):
    buffer = torch.zeros(4, dtype=x.dtype)
    buffer[:2] = x * x
    return buffer[:2]


def under(mode):
    def keep(x):
        with mode():
            return x * x

    return keep


def by_another_function(x):
    return square(torch).apply(x)


def by_one_that_saves_an_intermediate(x):
    def forward(ctx, x):
        ctx.save_for_backward(x * x / x)
        return x * x

    return function(torch, forward, lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad).apply(x)


RIGHT = {
    "an intermediate": lambda x: x * x,
    "a view of one": lambda x: (x * x).view(2, 1).squeeze(1),
    "a copy of one": lambda x: (x * x).clone(),
    "a buffer written to": in_a_buffer,
    "a buffer written to item by item": item_by_item,
    "a view written to": in_a_view,
    "under no_grad": under(torch.no_grad),
    "under enable_grad": under(torch.enable_grad),
    "of another Function": by_another_function,
    "of one that saves one itself": by_one_that_saves_an_intermediate,
}


@pytest.mark.row("G21")
@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_the_second_derivative_of_a_saved_intermediate_is_right(name):
    for way, derivative in second(cube(RIGHT[name])):
        numpy.testing.assert_allclose(derivative(), EXPECTED, rtol=1e-12, err_msg=way)


@pytest.mark.row("G21")
def test_what_pytorch_gives_for_a_saved_intermediate():
    """The case of pytorch#76185 in the words of its report: the derivative of sinh."""

    def forward(ctx, x):
        up, down = x.exp(), (-x).exp()
        ctx.save_for_backward(up, down)
        return (up - down) / 2

    def backward(ctx, grad):
        up, down = ctx.saved_tensors
        return grad * (up + down) / 2

    F = function(torch, forward, backward)
    x = vector()
    (first,) = torch.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    (second_derivative,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second_derivative.sum(), x)
    numpy.testing.assert_allclose(second_derivative.tolist(), numpy.sinh(X), rtol=1e-12)
    numpy.testing.assert_allclose(third.tolist(), numpy.cosh(X), rtol=1e-12)


@pytest.mark.row("G20", "G21")
@as_torch("""
    [tensor(3.2974425414002564, dtype=float64, requires_grad=True),
     tensor(1.6487212707001282, dtype=float64, requires_grad=True)]
    [tensor(3.2974425414002564, dtype=float64), tensor(1.6487212707001282, dtype=float64)]
    [tensor(1.6487212707001282, dtype=float64)]
""")
def test_second_derivatives_of_saved_inputs_and_outputs(torch):
    def forward(ctx, x, y):
        z = x.exp() * y
        ctx.save_for_backward(x, y, z)
        return z

    def backward(ctx, grad):
        x, _, z = ctx.saved_tensors
        return grad * z, grad * x.exp()

    x, y = leaf(torch, 0.5, dtype=torch.float64), leaf(torch, 2.0, dtype=torch.float64)
    z = function(torch, forward, backward).apply(x, y)
    first = torch.autograd.grad(z, [x, y], create_graph=True)
    second = torch.autograd.grad(first[0], [x, y], retain_graph=True)
    return first, second, torch.autograd.grad(first[1], x)


@pytest.mark.row("G20")
@as_torch("tensor(1200.0)")
def test_a_saved_input_is_protected_and_an_attribute_is_not(torch):
    """A saved value stays (or PyTorch raises); an attribute shows what was written to it."""

    def forward(ctx, x):
        ctx.x = x.detach()
        return x**3

    F = function(torch, forward, lambda ctx, grad: 3 * ctx.x**2 * grad)
    x = leaf(torch, 2.0)
    y = F.apply(x)
    with torch.no_grad():
        x.mul_(10)
    y.backward()
    return x.grad


@pytest.mark.row("G20")
def test_a_saved_input_keeps_the_value_it_had():
    x = leaf(torch, 2.0)
    y = cube(lambda x: x, lambda x: 3 * x * x).apply(x)
    with torch.no_grad():
        x.mul_(10)
    y.backward()
    assert x.grad.item() == 12


@pytest.mark.row("G20")
@pytest.mark.slow
@pytest.mark.parametrize("slope", ["an output", "an input", "the copy of an input"])
def test_attributes_that_have_a_history(slope):
    def forward(ctx, x):
        y = x**3
        ctx.kept = {"an output": y, "an input": x, "the copy of an input": x}[slope]
        return y

    def backward(ctx, grad):
        kept = ctx.kept
        return 3 * (kept ** (2 / 3) if slope == "an output" else kept**2) * grad

    for way, derivative in second(function(torch, forward, backward)):
        numpy.testing.assert_allclose(derivative(), EXPECTED, rtol=1e-12, err_msg=way)


# ---- what is kept as an attribute


class Box:
    def __init__(self, content):
        self.content = content

    def method(self):
        return self.content


KEPT = {
    "itself": (lambda y: y, lambda kept: kept),
    "a list": (lambda y: [y], lambda kept: kept[0]),
    "a tuple of lists": (lambda y: ([y],), lambda kept: kept[0][0]),
    "a dict": (lambda y: {"y": {"y": y}}, lambda kept: kept["y"]["y"]),
    "an object": (Box, lambda kept: kept.content),
    "a function": (lambda y: lambda: y, lambda kept: kept()),
    "a method": (lambda y: Box(y).method, lambda kept: kept()),
    "a partial": (lambda y: functools.partial(torch.mul, y), lambda kept: kept(1.0)),
}


@pytest.mark.row("G21")
@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_an_intermediate_kept_as_an_attribute_is_refused(name):
    keep, read = KEPT[name]

    def forward(ctx, x):
        ctx.kept, ctx.x = keep(x * x), x
        return x**3

    def backward(ctx, grad):
        return (3 * read(ctx.kept) + 0 * ctx.x) * grad

    F = function(torch, forward, backward)
    x = vector()
    F.apply(x).sum().backward()
    numpy.testing.assert_allclose(x.grad.tolist(), [3 * v * v for v in X], rtol=1e-12)
    words = "keeps an intermediate result of its forward as ctx.kept, and its history is not known"
    with pytest.raises(RuntimeError, match=words):
        torch.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    words = "as ctx.kept, and its tangent is not known"
    with pytest.raises(RuntimeError, match=words), forward_ad.dual_level():
        y = F.apply(forward_ad.make_dual(x, torch.ones_like(x))).sum()
        torch.autograd.grad(y, x)


@pytest.mark.row("G21")
@pytest.mark.slow
def test_an_attribute_that_is_not_an_intermediate_is_no_reason_to_refuse():
    def forward(ctx, x):
        ctx.kept = [x.detach() * 2, torch.ones(2), Box(None), x.argmax(), 3.0, len]
        ctx.save_for_backward(x)
        return x**3

    F = function(torch, forward, lambda ctx, grad: 3 * ctx.saved_tensors[0] ** 2 * grad)
    for way, derivative in second(F):
        numpy.testing.assert_allclose(derivative(), EXPECTED, rtol=1e-12, err_msg=way)


# ---- what cannot be computed again


@pytest.mark.row("G21")
def test_a_random_intermediate_is_refused():
    def keep(x):
        return x * x * (1 + torch.rand(2, dtype=x.dtype))

    F, x = cube(keep), vector()
    F.apply(x).sum().backward()
    with pytest.raises(RuntimeError, match="running forward once more gave another"):
        torch.autograd.grad(F.apply(x).sum(), x, create_graph=True)


@pytest.mark.row("G21")
def test_random_numbers_beside_an_intermediate():
    def forward(ctx, x):
        ctx.save_for_backward(x * x, torch.rand(2))
        return x**3

    F = function(torch, forward, lambda ctx, grad: 3 * ctx.saved_tensors[0] * grad)
    x = vector()
    (first,) = torch.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    (second_derivative,) = torch.autograd.grad(first.sum(), x)
    numpy.testing.assert_allclose(second_derivative.tolist(), [6 * v for v in X], rtol=1e-12)


@pytest.mark.row("G21")
def test_a_forward_that_counts_its_calls_is_refused():
    calls = []

    def keep(x):
        calls.append(None)
        return x * x * len(calls)

    F, x = cube(keep), vector()
    with pytest.raises(RuntimeError, match="running forward once more gave another"):
        torch.autograd.grad(F.apply(x).sum(), x, create_graph=True)


@pytest.mark.row("G21")
def test_an_input_that_was_written_to_meanwhile():
    """Forward runs once more on its arguments."""
    x = vector()
    y = x * 1
    z = cube(lambda x: x * x).apply(y).sum()
    y.mul_(10)
    (first,) = torch.autograd.grad(z, x, create_graph=True)
    (second_derivative,) = torch.autograd.grad(first.sum(), x)
    numpy.testing.assert_allclose(second_derivative.tolist(), [6 * v for v in X], rtol=1e-12)


@pytest.mark.row("G21")
def test_a_forward_that_writes_to_its_input():
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(square)
        x.mul_(square)
        ctx.mark_dirty(x)
        return x

    F = function(torch, forward, lambda ctx, grad: 3 * ctx.saved_tensors[0] * grad)
    x = vector()
    (first,) = torch.autograd.grad(F.apply(x * 1).sum(), x, create_graph=True)
    (second_derivative,) = torch.autograd.grad(first.sum(), x)
    numpy.testing.assert_allclose(first.tolist(), [3 * v * v for v in X], rtol=1e-12)
    numpy.testing.assert_allclose(second_derivative.tolist(), [6 * v for v in X], rtol=1e-12)


@pytest.mark.row("G21")
@pytest.mark.slow
def test_arguments_that_are_no_tensors_are_given_again():
    def forward(ctx, x, power, names):
        ctx.save_for_backward(x ** (power - 1))
        ctx.power = power
        return x**power

    def backward(ctx, grad):
        return ctx.power * ctx.saved_tensors[0] * grad, None, None

    for way, derivative in second(function(torch, forward, backward), 3, {"unhashable": []}):
        numpy.testing.assert_allclose(derivative(), EXPECTED, rtol=1e-12, err_msg=way)


@pytest.mark.row("G21")
def test_a_saved_intermediate_with_setup_context():
    F = function(
        torch,
        lambda x: x**3,
        lambda ctx, grad: 3 * ctx.saved_tensors[0] * grad,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0] * inputs[0]),
    )
    for way, derivative in second(F):
        numpy.testing.assert_allclose(derivative(), EXPECTED, rtol=1e-12, err_msg=way)


# ---- modes


@pytest.mark.row("G21")
def test_a_saved_intermediate_under_strict_versions():
    with torch.autograd.graph.strict_versions():
        for way, derivative in second(cube(lambda x: x * x)):
            numpy.testing.assert_allclose(derivative(), EXPECTED, rtol=1e-12, err_msg=way)
        kept = []

        def keep(x):
            kept.append(x * x)
            return kept[-1]

        x = vector()
        y = cube(keep).apply(x).sum()
        kept[0].add_(1)
        with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
            y.backward()
    kept.clear()


@pytest.mark.row("G21")
def test_an_intermediate_overwritten_after_forward():
    kept = []

    def keep(x):
        kept.append(x * x)
        return kept[-1]

    x = vector()
    y = cube(keep).apply(x).sum()
    kept[0].add_(1)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second_derivative,) = torch.autograd.grad(first.sum(), x)
    numpy.testing.assert_allclose(first.tolist(), [3 * v * v for v in X], rtol=1e-12)
    numpy.testing.assert_allclose(second_derivative.tolist(), [6 * v for v in X], rtol=1e-12)
    kept.clear()


@pytest.mark.row("G09")
@as_torch("""
    tensor(8.0)
    True
    True
    no_error
""")
def test_a_function_in_inference_mode(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x * x)
        return x**3

    F = function(torch, forward, lambda ctx, grad: 3 * ctx.saved_tensors[0] * grad)
    x = leaf(torch, 2.0)
    with torch.inference_mode():
        y = F.apply(x)
        inside = F.apply(y)
    return y, y.is_inference(), inside.is_inference(), error(F.apply, y)


@pytest.mark.row("G18")
@as_torch("""
    RuntimeError(
     'Inference tensors cannot be saved for backward. Please do not use Tensors created '
     'in inference mode in computation tracked by autograd. To work around this, you '
     'can make a clone to get a normal tensor and use it in autograd, or use '
     '`torch.no_grad()` instead of `torch.inference_mode()`.')
""")
def test_inference_tensors_that_are_saved(torch):
    with torch.inference_mode():
        tensor = torch.ones(2)

    def forward(ctx, x):
        ctx.save_for_backward(tensor)
        return x * 2

    F = function(torch, forward, lambda ctx, grad: grad * ctx.saved_tensors[0])
    x = leaf(torch, 1.0, 2.0)
    words = "Inference tensors cannot be saved for backward."
    return error(F.apply, x, words=words)


@pytest.mark.row("F19")
def test_saved_tensors_hooks_see_what_a_function_saves():
    packed = []

    def pack(tensor):
        packed.append(tensor.tolist())
        return packed[-1]

    def unpack(value):
        return torch.tensor(value, dtype=torch.float64)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        x = vector()
        y = cube(lambda x: x * x).apply(x).sum()
    y.backward()
    assert [v * v for v in X] in packed
    numpy.testing.assert_allclose(x.grad.tolist(), [3 * v * v for v in X], rtol=1e-12)


@pytest.mark.row("G21")
def test_a_saved_intermediate_under_saved_tensors_hooks():
    def tape():
        x = vector()
        (first,) = torch.autograd.grad(cube(lambda x: x * x).apply(x).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0]

    with torch.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda packed: packed[0]):
        numpy.testing.assert_allclose(tape().tolist(), [6 * v for v in X], rtol=1e-12)


# ---- inside of other Functions


class Outer(Function):
    """Its forward calls a Function that saves an intermediate, and so does its backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(RIGHT["of one that saves one itself"](x))
        return x**3

    @staticmethod
    def backward(ctx, grad):
        times = function(torch, lambda ctx, x: 3 * x, lambda ctx, g: 3 * g)
        return times.apply(ctx.saved_tensors[0]) * grad


@pytest.mark.row("G21")
@pytest.mark.slow
def test_functions_inside_of_functions():
    for way, derivative in second(Outer):
        numpy.testing.assert_allclose(derivative(), EXPECTED, rtol=1e-12, err_msg=way)


@pytest.mark.row("G21")
def test_forward_mode_over_a_saved_intermediate():
    F, x = cube(lambda x: x * x), vector()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.tensor(WEIGHTS, dtype=torch.float64))
        (first,) = torch.autograd.grad(F.apply(dual).sum(), dual, create_graph=True)
        tangent = forward_ad.unpack_dual(first).tangent
    numpy.testing.assert_allclose(tangent.tolist(), EXPECTED, rtol=1e-12)
