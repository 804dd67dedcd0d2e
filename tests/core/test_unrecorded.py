"""What is computed while grad mode is off has no gradient, in derivatives of any order, wherever a
function is compiled, mapped or a part of control flow. Closed forms, of scalar functions.
"""

import pytest

import jaxgrad as torch

POINTS = [1.0, -2.0]


def through_constant(x):
    """x^2 k, where k = 2x is a constant."""
    with torch.no_grad():
        k = x * 2
    return x * x * k


def in_inference_mode(x):
    with torch.inference_mode():
        k = x * 2
    return x * x * k.clone()


def written_to(x):
    """z^3, where z = 2x has the history of x."""
    z = x * 1
    with torch.no_grad():
        z.mul_(2)
    return z**3


def written_to_through_view(x):
    z = x * 1
    with torch.no_grad():
        z.view(-1).mul_(2)
    return z**3


def written_through_data(x):
    z = x * 1
    z.data.mul_(2)
    return z**3


def detached_before_a_write(x):
    """x^2 k, where k shows the memory of 2x."""
    z = x * 1
    k = z.detach()
    z.mul_(2)
    return x * x * k


def detached_and_written_to(x):
    k = (x * 1).data
    k.mul_(2)
    return x * x * k


def written_to_in_parts(x):
    """z^3, where z = 2x has the history of 4x where x is positive, else of x."""
    z = x * 1
    with torch.no_grad():
        z.view(-1).mul_(2)
    z.view(x.shape).mul_(torch.where(x > 0, 4, 1))
    with torch.no_grad():
        z.mul_(torch.where(x > 0, 1 / 4, 1))
    return z**3


def written_to_by_another_history(x):
    """z^3, where z = 2x has the history of x, and its memory that of 2x."""
    z = x * 1
    d = z.detach()
    d.copy_(2 * x)
    return z**3 + d - 2 * x.detach()


def inner_pass(x):
    """x^2 g, where g = 3x^2 comes from a pass that is not recorded."""
    with torch.enable_grad():
        (g,) = torch.autograd.grad((x**3).sum(), x)
    return x * x * g


def recorded_inner_pass(x):
    """x^2 3x^2."""
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return x * x * g


class Cut(torch.autograd.Function):
    """x^2, with the gradient 5xk, where k = x is a constant."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.no_grad():
            k = x * 1
        return 5 * grad * x * k


# each with its derivatives of order one to three
FUNCTIONS = {
    "constant": (through_constant, [lambda x: 4 * x**2, lambda x: 4 * x, lambda x: 0]),
    "inference": (in_inference_mode, [lambda x: 4 * x**2, lambda x: 4 * x, lambda x: 0]),
    "written": (written_to, [lambda x: 12 * x**2, lambda x: 12 * x, lambda x: 6]),
    "view": (written_to_through_view, [lambda x: 12 * x**2, lambda x: 12 * x, lambda x: 6]),
    "data": (written_through_data, [lambda x: 12 * x**2, lambda x: 12 * x, lambda x: 6]),
    "parts": (
        written_to_in_parts,
        [
            lambda x: 12 * x**2 * (4 if x > 0 else 1),
            lambda x: 12 * x * (16 if x > 0 else 1),
            lambda x: 6 * (64 if x > 0 else 1),
        ],
    ),
    "another": (
        written_to_by_another_history,
        [lambda x: 12 * x**2 + 2, lambda x: 12 * x, lambda x: 6],
    ),
    "detached": (detached_before_a_write, [lambda x: 4 * x**2, lambda x: 4 * x, lambda x: 0]),
    "detached, written": (
        detached_and_written_to,
        [lambda x: 4 * x**2, lambda x: 4 * x, lambda x: 0],
    ),
    "pass": (inner_pass, [lambda x: 6 * x**3, lambda x: 6 * x**2, lambda x: 0]),
    "recorded": (recorded_inner_pass, [lambda x: 12 * x**3, lambda x: 36 * x**2, lambda x: 72 * x]),
}


def by_cond(function):
    return lambda x: torch.cond(x.sum() < 9, function, torch.neg, (x,))


def by_scan(function):
    return lambda x: torch.scan(lambda n, point: (n + 1, function(point)), torch.tensor(0), x)[1]


def by_checkpoint(function):
    return lambda x: torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False)


def twice(first, second):
    return lambda function: first(second(function))


WAYS = {
    "eager": lambda function: function,
    "jit": torch.jit,
    "vmap": torch.func.vmap,
    "cond": by_cond,
    "scan": by_scan,
    "checkpoint": by_checkpoint,
    "jit of vmap": twice(torch.jit, torch.func.vmap),
    "vmap of jit": twice(torch.func.vmap, torch.jit),
    "jit of cond": twice(torch.jit, by_cond),
    "vmap of cond": twice(torch.func.vmap, by_cond),
    "jit of scan": twice(torch.jit, by_scan),
    "jit of checkpoint": twice(torch.jit, by_checkpoint),
    "scan of vmap": lambda function: by_scan(lambda x: torch.func.vmap(function)(x[None])[0]),
    "jit of scan of vmap": lambda function: torch.jit(
        by_scan(lambda x: torch.func.vmap(function)(x[None])[0])
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name, way):
    function, expected = FUNCTIONS[name]
    leaf = torch.tensor(POINTS, dtype=torch.float64, requires_grad=True)
    value = WAYS[way](function)(leaf * 1)
    for derivative in expected:
        wanted = [float(derivative(point)) for point in POINTS]
        if not value.requires_grad:
            assert wanted == [0, 0]
            continue
        (value,) = torch.autograd.grad(value.sum(), leaf, create_graph=True, materialize_grads=True)
        assert value.tolist() == wanted


@pytest.mark.parametrize("way", ["eager", "jit", "vmap", "jit of vmap", "vmap of jit"])
def test_functions_with_gradients_of_their_own(way):
    leaf = torch.tensor(POINTS, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(WAYS[way](Cut.apply)(leaf * 1).sum(), leaf, create_graph=True)
    assert first.tolist() == [5 * x * x for x in POINTS]
    assert torch.autograd.grad(first.sum(), leaf)[0].tolist() == [5 * x for x in POINTS]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_tangents_pass(way):
    """As in PyTorch: x^2 k with k = 2x has the tangent 6x^2, and the gradient of that leaves k out:
    of 2xtk + x^2 2t it is 2tk + 4xt.
    """
    function = WAYS[way](through_constant)
    x, t = [torch.tensor(values, dtype=torch.float64) for values in (POINTS, [1.0, 3.0])]
    assert torch.func.jvp(function, (x,), (t,))[1].tolist() == [6 * 1 * 1, 6 * 4 * 3]

    def tangent(x):
        return torch.func.jvp(function, (x,), (t,))[1].sum()

    expected = [
        (2 * step * 2 * at) + 4 * at * step for at, step in zip(POINTS, [1, 3], strict=True)
    ]
    assert torch.func.grad(tangent)(x).tolist() == expected


@pytest.mark.parametrize("way", ["eager", "jit", "vmap", "jit of vmap", "vmap of jit"])
def test_third_order_of_mixed_modes(way):
    """The tangent 2tk + 2x 2t of the gradient 2xk has the gradient 4t."""
    function = WAYS[way](through_constant)
    x, t = [torch.tensor(values, dtype=torch.float64) for values in (POINTS, [1.0, 3.0])]

    def tangent(x):
        gradient = torch.func.grad(lambda x: function(x).sum())
        return torch.func.jvp(gradient, (x,), (t,))[1].sum()

    assert torch.func.grad(tangent)(x).tolist() == [4.0, 12.0]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["eager", "jit", "vmap", "jit of vmap", "vmap of jit"])
@pytest.mark.parametrize("order", ["rf", "fr", "rfr", "rrf", "frf"])
def test_functions_that_save_what_they_compute(way, order):
    """x^4 by a Function that saves x^2 has all derivatives of x^4, in every nesting of modes."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x
            ctx.save_for_backward(x, square)
            ctx.save_for_forward(x, square)
            return square * square

        @staticmethod
        def backward(ctx, grad):
            x, square = ctx.saved_tensors
            return 4 * grad * x * square

        @staticmethod
        def jvp(ctx, tangent):
            x, square = ctx.saved_tensors
            return 4 * tangent * x * square

    derivative, one = WAYS[way](Square.apply), torch.ones(2, dtype=torch.float64)
    for mode in reversed(order):
        if mode == "r":
            derivative = torch.func.grad(lambda x, function=derivative: function(x).sum())
        else:
            derivative = lambda x, function=derivative: torch.func.jvp(function, (x,), (one,))[1]  # noqa: E731
    x = torch.tensor(POINTS, dtype=torch.float64)
    expected = 12 * x**2 if len(order) == 2 else 24 * x
    assert derivative(x).tolist() == expected.tolist()


def test_parameter_that_a_compiled_step_updates():
    """The update has no history: (2w)^3 x has the derivatives 3(2w)^2 x and 6(2w)x."""
    weight = torch.tensor(POINTS, dtype=torch.float64, requires_grad=True)

    @torch.jit
    def step(x):
        with torch.no_grad():
            weight.mul_(2)
        return (weight**3 * x).sum()

    loss = step(torch.tensor(5.0, dtype=torch.float64))
    (first,) = torch.autograd.grad(loss, weight, create_graph=True)
    assert first.tolist() == [3 * (2 * w) ** 2 * 5 for w in POINTS]
    assert torch.autograd.grad(first.sum(), weight)[0].tolist() == [6 * 2 * w * 5 for w in POINTS]


@pytest.mark.parametrize("recorded", [False, True])
def test_argument_that_a_compiled_function_writes_to(recorded):
    """(2x)^3 + (2x)^2 with the history of a write to x, and without it."""

    @torch.jit
    def function(x):
        with torch.set_grad_enabled(recorded):
            x.mul_(2)
        return x**3

    leaf = torch.tensor(POINTS, dtype=torch.float64, requires_grad=True)
    x = leaf * 1
    total, factor = function(x).sum() + (x * x).sum(), 2 if recorded else 1
    (first,) = torch.autograd.grad(total, leaf, create_graph=True)
    assert first.tolist() == [factor * (3 * (2 * w) ** 2 + 2 * 2 * w) for w in POINTS]
    expected = [factor**2 * (6 * 2 * w + 2) for w in POINTS]
    assert torch.autograd.grad(first.sum(), leaf)[0].tolist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("way", ["jit", "vmap", "jit of vmap"])
def test_once_differentiable(way):
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

    leaf = torch.tensor(POINTS, dtype=torch.float64, requires_grad=True)
    # its gradient is asked for with one that requires grad
    result = WAYS[way](lambda x: Once.apply(x) ** 2)(leaf * 1)
    (first,) = torch.autograd.grad(result.sum(), leaf, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        torch.autograd.grad(first.sum(), leaf)
