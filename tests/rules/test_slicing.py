"""One place or a slice of a dimension: errors and places as PyTorch has them; gradients that pad
and do not scatter; and places that are data, so that a new place compiles nothing."""

import jax
import jax.numpy as jnp
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, primitives, refusals

import jaxgrad
from jaxgrad import ops

REFUSED = [
    ("torch.select(tensor(1.0), 0, 0)", IndexError, "select() cannot be applied to a 0-dim tensor"),
    (
        "torch.select(zeros(2, 3), 0, 2)",
        IndexError,
        "select(): index 2 out of range for tensor of size [2, 3] at dimension 0",
    ),
    (
        "torch.select(zeros(2, 3), 1, -4)",
        IndexError,
        "select(): index -4 out of range for tensor of size [2, 3] at dimension 1",
    ),
    (
        "torch.select(zeros(2, 3), 2, 0)",
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    (
        "torch.select_scatter(zeros(2, 3), zeros(2), 0, 0)",
        RuntimeError,
        "expected src to have a size equal to the slice of self. src size = [2], slice size =",
    ),
    (
        "torch.select_scatter(zeros(2, 3), zeros(3), 0, 2)",
        IndexError,
        "select(): index 2 out of range for tensor of size [2, 3] at dimension 0",
    ),
    (
        "torch.slice_scatter(zeros(2, 3), zeros(2, 2), 1, 0, 3)",
        RuntimeError,
        "expected src to have a size equal to the slice of self. src size = [2, 2], slice size",
    ),
    (
        "torch.slice_scatter(zeros(2, 3), zeros(2, 3), 1, 0, 3, 0)",
        RuntimeError,
        "slice step must be positive",
    ),
    (
        "torch.slice_scatter(zeros(2, 3), zeros(2, 3), 2)",
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    (
        "torch.narrow(tensor(1.0), 0, 0, 1)",
        RuntimeError,
        "narrow() cannot be applied to a 0-dim tensor",
    ),
    (
        "torch.narrow(zeros(3), 0, 4, 0)",
        IndexError,
        "start out of range (expected to be in range of [-3, 3], but got 4)",
    ),
    (
        "torch.narrow(zeros(3), 0, -4, 1)",
        IndexError,
        "start out of range (expected to be in range of [-3, 3], but got -4)",
    ),
    ("torch.narrow(zeros(3), 0, 0, -1)", RuntimeError, "narrow(): length must be non-negative"),
    (
        "torch.narrow(zeros(3), 0, 1, 3)",
        RuntimeError,
        "start (1) + length (3) exceeds dimension size (3)",
    ),
    (
        "torch.narrow(zeros(3), 1, 0, 1)",
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ),
]

ANSWERS = [
    # places that count from the end, and none
    ("torch.select(tensor([[1, 2], [3, 4]]), -1, -1)", "int64", [2, 4]),
    ("torch.narrow(tensor([1, 2, 3]), -1, -2, 1)", "int64", [2]),
    ("torch.narrow(tensor([1, 2, 3]), 0, 3, 0)", "int64", []),
    ("torch.narrow(tensor([1, 2, 3]), 0, tensor(1), 2)", "int64", [2, 3]),
    ("tensor([1, 2, 3])[2:1]", "int64", []),
    ("tensor([1, 2, 3, 4, 5])[-100:100:3]", "int64", [1, 4]),
    # what is written takes the dtype of what it is written to
    ("torch.select_scatter(tensor([1, 2, 3]), tensor(9.7), 0, 1)", "int64", [1, 9, 3]),
    ("torch.slice_scatter(tensor([1, 2, 3]), tensor([9.7, 8.2]), 0, 1, 3)", "int64", [1, 9, 8]),
    (
        "torch.select_scatter(tensor([[1, 2], [3, 4]]), tensor([9, 8]), 1, -1)",
        "int64",
        [[1, 9], [3, 8]],
    ),
    (
        "torch.slice_scatter(tensor([1, 2, 3, 4]), tensor([9, 8]), 0, None, None, 2)",
        "int64",
        [9, 2, 8, 4],
    ),
    ("torch.slice_scatter(tensor([1, 2, 3, 4]), tensor([9, 8]), 0, -2)", "int64", [1, 2, 9, 8]),
    ("torch.slice_scatter(tensor([1, 2, 3]), zeros(0), 0, 3, 1)", "int64", [1, 2, 3]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((jaxgrad.tensor(1.0),), r"slice\(\) cannot be applied to a 0-dim tensor"),
        ((jaxgrad.zeros(3), 0, 0, 3, -1), "slice step must be positive, but got -1"),
    ],
)
def test_slice_refuses_no_dimensions_and_steps_backwards(arguments, words):
    with pytest.raises((IndexError, RuntimeError), match=words):
        ops.slice(*arguments)
    count("errors")


def test_select_backward_refuses_a_place_beyond_the_dimension():
    with pytest.raises(IndexError, match="index 2 out of range for tensor of size"):
        ops.select_backward(jaxgrad.zeros(3), (2, 3), 0, 2)
    count("errors")


# derivatives


@pytest.mark.parametrize(
    ("read", "places"),
    [
        (lambda x: x[1::3], [1, 4]),
        (lambda x: x[-2:], [4, 5]),
        (lambda x: x[2], [2]),
        (lambda x: x.narrow(0, 1, 2), [1, 2]),
        (lambda x: x[4:2], []),
        (lambda x: x.select(0, -1), [5]),
    ],
    ids=["step", "end", "place", "narrow", "empty", "select"],
)
def test_the_gradient_is_zero_outside_the_slice(read, places):
    x = jaxgrad.ones(6, requires_grad=True)
    read(x).sum().backward()
    assert x.grad.tolist() == [float(place in places) for place in range(6)]
    count("closed forms")


def test_what_a_scatter_covers_passes_no_gradient_to_self():
    x = jaxgrad.ones(4, requires_grad=True)
    source = jaxgrad.zeros(2, requires_grad=True)
    written = jaxgrad.slice_scatter(x, source, 0, 1, 4, 2)
    written.backward(jaxgrad.tensor([1.0, 2.0, 3.0, 4.0]))
    assert (x.grad.tolist(), source.grad.tolist()) == ([1.0, 0.0, 3.0, 0.0], [2.0, 4.0])
    count("closed forms", 2)


# programs


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ops.slice(x, 0, 1, 6, 2),
        lambda x: ops.select(x, 0, 3),
        lambda x: ops.narrow(x, 0, 2, 3),
    ],
    ids=["slice", "select", "narrow"],
)
def test_the_gradient_pads_and_does_not_scatter(function):
    names = {*primitives(jax.make_jaxpr(jax.grad(lambda x: function(x).sum()))(jnp.ones(6)))}
    assert "pad" in names and not any("scatter" in name for name in names)
    count("programs")


@pytest.mark.parametrize("place", ["index", "start of a slice"])
def test_the_index_of_select_may_be_traced(place):
    x = jnp.arange(6.0)
    if place == "index":
        result = jax.jit(lambda x, i: ops._select(x, 0, i))(x, 4)
        assert result == 4.0
    else:
        result = jax.jit(lambda x, i: ops._slice(x, 0, i, 2, 2))(x, 1)
        assert result.tolist() == [1.0, 3.0]
    count("programs")
