"""`vmap` over Functions and operators that compute by NumPy: example by example, as in PyTorch."""

import numpy as np
import pytest
from helpers.numpy_product import product_of

import jaxgrad as torch
from jaxgrad import func, tensor
from jaxgrad.func import shared_function

Product = product_of(torch)


class Unmapped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.tensor(2 * x.numpy())


def square(x):
    return Product.apply(x, x)


x = tensor([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]])
y = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

sparse = tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
counts = tensor([[1, 2], [2, 1]])

# PyTorch's answers
CASES = {
    "vmap": (lambda: torch.vmap(Product.apply)(x, y), [[3, 2, 6], [2, -5, 24]]),
    "a shared argument": (
        lambda: torch.vmap(Product.apply, (0, None))(x, y[0]),
        [[3, 2, 6], [0.5, -2, 12]],
    ),
    "out_dims": (
        lambda: torch.vmap(Product.apply, (1, 0), 1)(x, y.t()),
        [[3, 2, 6], [2, -5, 24]],
    ),
    "vmap of vmap": (lambda: torch.vmap(torch.vmap(square))(x), [[9, 1, 4], [0.25, 1, 16]]),
    "chunks": (lambda: torch.vmap(square, chunk_size=1)(x), [[9, 1, 4], [0.25, 1, 16]]),
    "vmap of grad": (
        lambda: torch.vmap(func.grad(lambda x: square(x).sum()))(x),
        [[6, 2, 4], [1, -2, 8]],
    ),
    "grad of vmap": (
        lambda: func.grad(lambda x: torch.vmap(square)(x).sum())(x),
        [[6, 2, 4], [1, -2, 8]],
    ),
    "the second derivative": (
        lambda: torch.vmap(torch.vmap(func.grad(func.grad(square))))(x),
        [[2, 2, 2], [2, 2, 2]],
    ),
    "jacrev": (lambda: func.jacrev(square)(x[0]), [[6, 0, 0], [0, 2, 0], [0, 0, 4]]),
    "jacfwd": (lambda: func.jacfwd(square)(x[0]), [[6, 0, 0], [0, 2, 0], [0, 0, 4]]),
    "hessian": (
        lambda: func.hessian(lambda x: square(x).sum())(x[0]),
        [[2, 0, 0], [0, 2, 0], [0, 0, 2]],
    ),
    "jvp of vmap": (
        lambda: func.jvp(torch.vmap(square), (x,), (y,))[1],
        [[6, 4, 12], [4, -10, 48]],
    ),
    "argwhere": (lambda: torch.vmap(torch.argwhere)(sparse), [[[0], [2]], [[1], [2]]]),
    "argwhere in two levels": (
        lambda: torch.vmap(torch.vmap(torch.argwhere))(torch.stack([sparse, sparse])),
        [[[[0], [2]], [[1], [2]]]] * 2,
    ),
    "argwhere of a gradient": (
        lambda: torch.vmap(lambda s: func.grad(lambda t: (t * s).sum())(s).argwhere())(sparse),
        [[[0], [2]], [[1], [2]]],
    ),
    "repeat_interleave": (
        lambda: torch.vmap(torch.repeat_interleave)(x[:, :2], counts),
        [[3, 1, 1], [0.5, 0.5, -1]],
    ),
    "repeat_interleave of a shared tensor": (
        lambda: torch.vmap(lambda n: torch.repeat_interleave(x[0, :2], n), out_dims=1)(counts),
        [[3, 3], [1, 3], [1, 1]],
    ),
    "the gradient of repeat_interleave": (
        lambda: torch.vmap(func.grad(lambda t, n: t.repeat_interleave(n).sum()))(x[:, :2], counts),
        [[1, 2], [2, 1]],
    ),
    "places of repeat_interleave": (
        lambda: torch.vmap(torch.repeat_interleave)(counts),
        [[0, 1, 1], [0, 0, 1]],
    ),
    "bincount": (lambda: torch.vmap(torch.bincount)(counts), [[0, 1, 1], [0, 1, 1]]),
    "vmap of jvp": (
        lambda: torch.vmap(lambda x, y: func.jvp(square, (x,), (y,))[1])(x, y),
        [[6, 4, 12], [4, -10, 48]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_that_compute_by_numpy(name):
    call, expected = CASES[name]
    assert call().tolist() == expected


def test_backward_through_the_loop():
    z = x.clone().requires_grad_()
    torch.vmap(square)(z).sum().backward()
    assert z.grad.tolist() == [[6, 2, 4], [1, -2, 8]]


def test_an_operator_without_a_fake():
    @torch.library.custom_op("example_loop::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return torch.tensor(2 * np.asarray(x))

    assert torch.vmap(doubled)(x).tolist() == [[6, 2, 4], [1, -2, 8]]


def test_a_function_without_a_rule_raises():
    with pytest.raises(RuntimeError, match="needs the numbers of a tensor"):
        torch.vmap(Unmapped.apply)(x)


@pytest.mark.parametrize("name", ["nonzero", "unique", "unique_consecutive"])
def test_operators_whose_results_have_any_shape(name):
    # PyTorch refuses them even where all examples have one shape
    with pytest.raises(RuntimeError, match="We do not support batching operators"):
        torch.vmap(getattr(torch, name))(sparse)


def test_results_of_several_shapes():
    with pytest.raises(RuntimeError, match="equal size"):
        torch.vmap(torch.argwhere)(x.relu())


@pytest.mark.parametrize("randomness", ["error", "same", "different"])
def test_random_numbers_of_the_examples(randomness):
    def drawn(x):
        return square(x) * 0 + torch.rand(3)

    mapped = torch.vmap(drawn, randomness=randomness)
    if randomness == "error":
        with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
            mapped(x)
        return
    first, second = mapped(x)
    assert first.equal(second) is (randomness == "same")


def test_a_function_without_a_module():
    function = eval("lambda x: 2 * x", {})  # its namespace has no name
    assert function.__module__ is None or function.__module__ == "builtins"
    assert torch.vmap(function)(x).tolist() == [[6, 2, 4], [1, -2, 8]]


def test_a_second_call_is_not_traced_again(monkeypatch):
    mapped = torch.vmap(square)
    first = mapped(x)
    monkeypatch.setattr(shared_function, "mapped", None)
    assert mapped(x).equal(first)
