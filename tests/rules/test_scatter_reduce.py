"""Reductions at indices: errors and dtypes as PyTorch has them, derivatives of a product at zeros,
and what PyTorch has wrong or lacks.
"""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad
from jaxgrad import ops

I00 = "tensor([0, 0])"

REFUSED = [
    (
        f"torch.scatter_reduce(zeros(2), 0, {I00}, zeros(2), 'add')",
        RuntimeError,
        "reduce argument must be either sum, prod, mean, amax or amin, got add",
    ),
    (
        f"torch.scatter_reduce(zeros(2), 0, {I00}, zeros(2, dtype=torch.float64), 'sum')",
        RuntimeError,
        "Expected self.dtype to be equal to src.dtype",
    ),
    (
        "torch.scatter_reduce(zeros(2), 0, tensor([2]), zeros(1), 'sum')",
        RuntimeError,
        "index 2 is out of bounds for dimension 0 with size 2",
    ),
    (
        f"torch.scatter_reduce(tensor([True]), 0, {I00}, tensor([True, False]), 'mean')",
        NotImplementedError,
        "not implemented for 'Bool'",
    ),
    (
        f"torch.scatter_reduce(tensor([1j]), 0, {I00}, tensor([1j, 1j]), 'amax')",
        NotImplementedError,
        "not implemented for 'ComplexFloat'",
    ),
    (
        f"torch.scatter(zeros(2), 0, {I00}, zeros(2), reduce='mean')",
        RuntimeError,
        "reduce argument must be either add or multiply",
    ),
    (
        "torch.scatter(zeros(2), 0, tensor([2]), zeros(1), reduce='add')",
        RuntimeError,
        "index 2 is out of bounds for dimension 0 with size 2",
    ),
    (
        "zeros(2).scatter_(0, tensor([-1]), 3.0, reduce='multiply')",
        RuntimeError,
        "index -1 is out of bounds for dimension 0 with size 2",
    ),
    (
        f"torch.index_reduce(zeros(2), 0, {I00}, zeros(2), 'sum')",
        RuntimeError,
        "Expected reduce to be one of prod, mean, amax or amin but got sum.",
    ),
    (
        f"torch.index_reduce(zeros(2), 0, {I00}, zeros(3), 'prod')",
        RuntimeError,
        "Number of indices (2) should be equal to",
    ),
    (
        f"torch.index_reduce(zeros(2), 0, {I00}, zeros(2, dtype=torch.float64), 'prod')",
        RuntimeError,
        "self (Float) and source (Double) must have the same scalar type",
    ),
    (
        f"torch.index_reduce(tensor([True]), 0, {I00}, tensor([True, False]), 'prod')",
        NotImplementedError,
        "not implemented for 'Bool'",
    ),
]

ANSWERS = [
    # a mean of integers is rounded down
    (f"torch.scatter_reduce(tensor([0, 1]), 0, {I00}, tensor([-5, -6]), 'mean')", "int64", [-4, 1]),
    (f"torch.index_reduce(tensor([0, 1]), 0, {I00}, tensor([-5, -3]), 'mean')", "int64", [-3, 1]),
    # without self a reduction of integers and bools has a start too
    (
        f"torch.scatter_reduce(tensor([9, 1]), 0, {I00}, tensor([-5, -6]), 'amax', "
        "include_self=False)",
        "int64",
        [-5, 1],
    ),
    (
        f"torch.scatter_reduce(tensor([False]), 0, {I00}, tensor([True, True]), 'amin', "
        "include_self=False)",
        "bool",
        [True],
    ),
    (
        f"torch.scatter_reduce(tensor([True]), 0, {I00}, tensor([True, False]), 'prod')",
        "bool",
        [False],
    ),
    (
        f"torch.scatter_reduce(tensor([0.0]), 0, {I00}, tensor([nan, 2.0]), 'amax')",
        "float32",
        [numpy.nan],
    ),
    (
        f"torch.scatter_reduce(tensor([1j]), 0, {I00}, tensor([1j, 2.0]), 'prod')",
        "complex64",
        [-2.0],
    ),
    (
        f"torch.scatter(tensor([2.0, 1.0]), 0, {I00}, 3.0, reduce='multiply')",
        "float32",
        [18.0, 1.0],
    ),
    (f"torch.scatter(tensor([2, 1]), 0, {I00}, tensor([3, 4]), reduce='add')", "int64", [9, 1]),
    (f"tensor([2, 1]).scatter_(0, {I00}, 3, reduce='add')", "int64", [8, 1]),
    (f"tensor([2, 1]).scatter_reduce_(0, {I00}, tensor([3, 4]), 'prod')", "int64", [24, 1]),
    (f"torch.scatter_reduce(tensor([2, 1]), 0, {I00}, tensor([3, 4]), 'max')", "int64", [4, 1]),
    (f"tensor([2, 1]).index_reduce_(0, {I00}, tensor([3, 4]), 'amin')", "int64", [2, 1]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


@pytest.mark.slow
@pytest.mark.parametrize("zeros", [1, 2])
def test_products_have_exact_second_derivatives_at_zeros(zeros):
    """PyTorch raises with more than one zero."""
    index = jnp.zeros(3, jnp.int32)
    numbers = jnp.arange(1.0, 5.0).at[:zeros].set(0.0)

    def scattered(numbers):
        return ops.scatter_reduce(numbers[:1], 0, index, numbers[1:], "prod")[0]

    hessian = jax.jit(jax.hessian(scattered))(numbers)
    numpy.testing.assert_allclose(hessian, jax.hessian(jnp.prod)(numbers), rtol=1e-6)
    count("derivatives")


def gradients(torch, function, *tensors):
    leaves = [torch.tensor(values, requires_grad=True) for values in tensors]
    function(*leaves).sum().backward()
    return [leaf.grad.tolist() for leaf in leaves]


@pytest.mark.slow
def test_a_value_that_does_not_count_takes_no_share_of_the_gradient():
    """PyTorch halves the gradient of `src` where the excluded element of `self` is equal to it."""
    index = jaxgrad.tensor([0, 0])
    for reduce in ("amax", "amin"):
        result = gradients(
            jaxgrad,
            lambda x, y, r=reduce: x.scatter_reduce(0, index, y, r, include_self=False),
            [3.0, 5.0],
            [3.0, 3.0],
        )
        assert result == [[0.0, 1.0], [0.5, 0.5]]


@pytest.mark.slow
def test_a_source_larger_than_the_index_gets_zeros_behind_it():
    """PyTorch raises for the gradient."""
    index = jaxgrad.tensor([[0, 0]])
    for reduce, expected in (("sum", [1.0, 1.0]), ("prod", [2.0, 1.5]), ("amax", [0.0, 1.0])):
        result = gradients(
            jaxgrad,
            lambda x, y, r=reduce: x.scatter_reduce(1, index, y, r),
            [[1.0, 1.0]],
            [[1.5, 2.0, 7.0], [7.0, 7.0, 7.0]],
        )
        assert result[1] == [[*expected, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.slow
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean"])
def test_complex_numbers_have_gradients(reduce):
    """PyTorch has none."""
    x = jaxgrad.tensor([1 + 2j, 0.5j], dtype=jaxgrad.complex128, requires_grad=True)
    y = jaxgrad.tensor([2 - 1j, 0.25 + 1j, 3j], dtype=jaxgrad.complex128, requires_grad=True)
    index = jaxgrad.tensor([0, 0, 1])
    for keep in (True, False):
        assert jaxgrad.autograd.gradcheck(
            lambda x, y, k=keep: x.scatter_reduce(0, index, y, reduce, include_self=k),
            (x, y),
            check_forward_ad=True,
        )
        count("derivatives")


@pytest.mark.slow
def test_scatter_with_reduce_has_gradients():
    """PyTorch has none."""
    index = jaxgrad.tensor([0, 0])
    x, y = [2.0, 3.0], [4.0, 5.0]
    add, multiply = ({"reduce": name} for name in ("add", "multiply"))
    assert gradients(jaxgrad, lambda x, y: x.scatter(0, index, y, **add), x, y) == [[1, 1], [1, 1]]
    result = gradients(jaxgrad, lambda x, y: x.scatter(0, index, y, **multiply), x, y)
    assert result == [[20, 1], [10, 8]]
    assert gradients(jaxgrad, lambda x: x.scatter(0, index, 3.0, **multiply), x) == [[9, 1]]


@pytest.mark.slow
def test_an_index_out_of_bounds_under_a_trace_is_dropped():
    index = jnp.array([1, 7])
    source = jnp.array([2.0, 5.0])
    for reduce, expected in (("sum", 3.0), ("prod", 2.0), ("mean", 1.5), ("amax", 2.0)):
        function = jax.jit(lambda x, y, r=reduce: ops.scatter_reduce(x, 0, index, y, r))
        assert function(jnp.ones(3), source).tolist() == [1.0, expected, 1.0]
        gradient = jax.grad(
            lambda y, r=reduce: ops.scatter_reduce(jnp.ones(3), 0, index, y, r).sum()
        )
        assert jax.jit(gradient)(source)[1] == 0
        count("programs")
