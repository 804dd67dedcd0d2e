"""Products of matrices and vectors: errors, empty sums, integers and half precision as PyTorch has
them; and how many products a call compiles to."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.modes import eager
from helpers.pytorch_answers import answers, check_answer, check_refusal, primitives, refusals

import jaxgrad
from jaxgrad import ops

REFUSED = [
    (
        "torch.addr(full((2, 2), 1), tensor([1, 2]), tensor([1, 2]), beta=0.5)",
        RuntimeError,
        "For integral input tensors, argument beta must not be a floating point number.",
    ),
    (
        "torch.addr(full((2, 2), 1), tensor([1, 2]), tensor([1, 2]), alpha=1.5)",
        RuntimeError,
        "For integral input tensors, argument alpha must not be a floating point number.",
    ),
    (
        "torch.mm(zeros(2, 3), zeros(2, 3))",
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
    ),
    ("torch.mm(zeros(3), zeros(3, 3))", RuntimeError, "self must be a matrix"),
    ("torch.mm(zeros(2, 3), zeros(3))", RuntimeError, "mat2 must be a matrix"),
    (
        "torch.mm(zeros(2, 3), zeros(3, 2, dtype=torch.int64))",
        RuntimeError,
        "to have the same dtype, but got",
    ),
    (
        "F.linear(zeros(2, 3), zeros(2, 3, dtype=torch.float64))",
        RuntimeError,
        "expected m1 and m2 to have the same dtype, but got: float != double",
    ),
    (
        "F.linear(zeros(2, 3), zeros(2, 3, dtype=torch.float64), zeros(2))",
        RuntimeError,
        "mat1 and mat2 must have the same dtype, but got Float and Double",
    ),
    (
        "torch.bmm(zeros(1, 2, 3), zeros(1, 3, 2, dtype=torch.float64))",
        RuntimeError,
        "expected scalar type Float but found Double",
    ),
    (
        "torch.matmul(zeros(1, 2, 3), zeros(1, 3, 2, dtype=torch.float64))",
        RuntimeError,
        "expected scalar type Float but found Double",
    ),
    (
        "torch.vdot(zeros(1), zeros(3, dtype=torch.float64))",
        RuntimeError,
        "dot : expected both vectors to have same dtype, but found Float and Double",
    ),
    (
        "torch.dot(zeros(3), zeros(3, dtype=torch.float64))",
        RuntimeError,
        "expected both vectors to have same dtype, but found Float and Double",
    ),
    (
        "torch.addmm(zeros(2, 2), zeros(2, 3), zeros(3, 2, dtype=torch.float64))",
        RuntimeError,
        "self and mat2 must have the same dtype, but got Float and Double",
    ),
    (
        "torch.mv(zeros(2, 3), zeros(3, dtype=torch.float64))",
        RuntimeError,
        "addmv input tensors must have the same dtype, but got",
    ),
    (
        "torch.mm(zeros(2, 3, dtype=torch.bool), zeros(3, 2, dtype=torch.bool))",
        NotImplementedError,
        "not implemented for 'Bool'",
    ),
    (
        "torch.mv(zeros(2, 3), zeros(2))",
        RuntimeError,
        "size mismatch, got input (2), mat (2x3), vec (2)",
    ),
    (
        "torch.dot(zeros(3), zeros(2))",
        RuntimeError,
        "inconsistent tensor size, expected tensor [3] and src [2] to have the same number of",
    ),
    (
        "torch.dot(zeros(3, 1), zeros(3))",
        RuntimeError,
        "1D tensors expected, but got 2D and 1D tensors",
    ),
    (
        "torch.vdot(zeros(3), zeros(2))",
        RuntimeError,
        "inconsistent tensor size, expected tensor [3] and src [2] to have the same number of",
    ),
    (
        "torch.outer(zeros(3, 1), zeros(2))",
        RuntimeError,
        "outer: Expected 1-D argument self, but got 2-D",
    ),
    ("torch.bmm(zeros(2, 3), zeros(2, 3, 3))", RuntimeError, "batch1 must be a 3D tensor"),
    ("torch.bmm(zeros(2, 3, 4), zeros(2, 3))", RuntimeError, "batch2 must be a 3D tensor"),
    (
        "torch.bmm(zeros(2, 3, 4), zeros(3, 4, 5))",
        RuntimeError,
        "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [3, 4]",
    ),
    (
        "torch.matmul(tensor(1.0), zeros(3))",
        RuntimeError,
        "both arguments to matmul need to be at least 1D, but they are 0D and 1D",
    ),
    (
        "torch.matmul(zeros(2, 3), zeros(2))",
        RuntimeError,
        "size mismatch, got input (2), mat (2x3), vec (2)",
    ),
    (
        "torch.matmul(zeros(3), zeros(2))",
        RuntimeError,
        "inconsistent tensor size, expected tensor [3] and src [2] to have the same number of",
    ),
    (
        "torch.matmul(zeros(3), zeros(2, 3))",
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (1x3 and 2x3)",
    ),
    (
        "torch.matmul(zeros(2, 2, 3), zeros(3, 3, 2))",
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton",
    ),
    (
        "torch.matmul(zeros(2, 2, 3), zeros(2, 2, 2))",
        RuntimeError,
        "Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [2, 2]",
    ),
    (
        "F.linear(zeros(2, 3), zeros(4, 2))",
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)",
    ),
    (
        "F.linear(zeros(2, 3), zeros(1, 4, 3))",
        RuntimeError,
        "t() expects a tensor with <= 2 dimensions, but self is 3D",
    ),
    (
        "F.linear(zeros(2, 3), zeros(4, 3), zeros(3))",
        RuntimeError,
        "The expanded size of the tensor (4) must match the existing size (3) at non-singleton",
    ),
    (
        "torch.addmm(zeros(3), zeros(2, 3), zeros(3, 2))",
        RuntimeError,
        "The expanded size of the tensor (2) must match the existing size (3) at non-singleton",
    ),
    (
        "torch.addmm(zeros(2, 2), zeros(3), zeros(3, 2))",
        RuntimeError,
        "mat1 must be a matrix, got 1-D tensor",
    ),
    (
        "torch.addmm(zeros(1, 2, 2), zeros(2, 3), zeros(3, 2))",
        RuntimeError,
        "the number of sizes provided (2) must be greater or equal to the number of dimensions",
    ),
    (
        "torch.addmv(zeros(3), zeros(2, 3), zeros(3))",
        RuntimeError,
        "size mismatch, got input (3), mat (2x3), vec (3)",
    ),
    (
        "torch.addmv(zeros(2), zeros(3), zeros(3))",
        RuntimeError,
        "vector + matrix @ vector expected, got 1, 1, 1",
    ),
    (
        "torch.baddbmm(zeros(3), zeros(2, 3, 4), zeros(2, 4, 5))",
        RuntimeError,
        "The expanded size of the tensor (5) must match the existing size (3) at non-singleton",
    ),
    (
        "torch.addbmm(zeros(5), zeros(2, 3, 4), zeros(3, 4, 5))",
        RuntimeError,
        "batch1 and batch2 must have same number of batches, got 2 and 3",
    ),
    (
        "torch.addr(zeros(4), zeros(2), zeros(3))",
        RuntimeError,
        "The expanded size of the tensor (3) must match the existing size (4) at non-singleton",
    ),
]

ANSWERS = [
    # a factor 0 drops NaN for matrices alone
    ("torch.addr(zeros(1, 1), tensor([nan]), tensor([1.0]), alpha=0)", "float32", [[numpy.nan]]),
    # sums over no element
    ("torch.mm(zeros(2, 0), zeros(0, 3))", "float32", [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
    ("torch.mv(zeros(2, 0), zeros(0))", "float32", [0.0, 0.0]),
    ("torch.dot(zeros(0), zeros(0))", "float32", 0.0),
    ("torch.matmul(zeros(3), zeros(0, 3, 2))", "float32", numpy.zeros((0, 2))),
    ("torch.bmm(zeros(0, 2, 3), zeros(0, 3, 2))", "float32", numpy.zeros((0, 2, 2))),
    # integers are exact and wrap round
    (
        "torch.mm(tensor([[1, 2]], dtype=torch.int8), tensor([[100], [100]], dtype=torch.int8))",
        "int8",
        [[44]],
    ),
    ("torch.matmul(tensor([[2**53 + 1]]), tensor([[1]]))", "int64", [[9007199254740993]]),
    ("torch.dot(tensor([2**62]), tensor([4]))", "int64", 0),
    (
        "torch.addmm(tensor([[1]]), tensor([[2]]), tensor([[3]]), beta=1.9, alpha=2.9)",
        "int64",
        [[13]],
    ),
    (
        "torch.outer(tensor([True, False]), tensor([True, True]))",
        "bool",
        [[True, True], [False, False]],
    ),
    ("torch.outer(tensor([1]), tensor([2.5]))", "float32", [[2.5]]),
    ("torch.addr(tensor([[True]]), tensor([True]), tensor([False]))", "bool", [[True]]),
    # half precision adds up in float32
    (
        "torch.mm(full((1, 1000), 1.0, dtype=torch.bfloat16), full((1000, 1), 1.0, "
        "dtype=torch.bfloat16))",
        "bfloat16",
        [[1000.0]],
    ),
    (
        "torch.mm(full((1, 4), 300.0, dtype=torch.float16), full((4, 1), 300.0, "
        "dtype=torch.float16))",
        "float16",
        [[numpy.inf]],
    ),
    (
        "torch.mv(full((1, 4000), 1.0, dtype=torch.float16), full((4000,), 1.0, "
        "dtype=torch.float16))",
        "float16",
        [4000.0],
    ),
    # which factor is conjugated
    ("torch.vdot(tensor([1j]), tensor([1j]))", "complex64", (1 + 0j)),
    ("torch.dot(tensor([1j]), tensor([1j]))", "complex64", (-1 + 0j)),
    # a factor of zero drops what it multiplies
    ("torch.addmm(tensor([[nan]]), tensor([[1.0]]), tensor([[2.0]]), beta=0)", "float32", [[2.0]]),
    ("torch.addmm(tensor([[1.0]]), tensor([[nan]]), tensor([[2.0]]), alpha=0)", "float32", [[1.0]]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("mm", [(2, 3), (2, 3)]),
        ("bmm", [(1, 2, 3), (1, 2, 3)]),
        ("linear", [(2, 3), (4, 2)]),
        ("matmul", [(2, 3), (2, 3)]),
    ],
)
def test_an_error_of_shapes_names_the_operator(name, shapes):
    with pytest.raises(RuntimeError, match=name):
        getattr(ops, name)(*map(jaxgrad.zeros, shapes))
    count("errors")


# programs


def products(function, *shapes):
    """How many products a function and its gradients compile to."""
    arrays = [jnp.ones(shape) for shape in shapes]

    def gradients(*arrays):
        value, pull = jax.vjp(function, *arrays)
        return pull(jnp.ones_like(value))

    return [*primitives(jax.make_jaxpr(gradients)(*arrays))].count("dot_general")


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (ops.mm, [(2, 3), (3, 4)]),
        (ops.linear, [(5, 2, 3), (4, 3)]),
        (ops.matmul, [(5, 2, 3), (3, 4)]),
        (ops.matmul, [(2, 3), (5, 3, 4)]),
        (ops.matmul, [(5, 1, 2, 3), (6, 3, 4)]),
    ],
    ids=["mm", "linear", "batch times matrix", "matrix times batch", "batches that broadcast"],
)
def test_each_gradient_is_one_product(function, shapes):
    assert products(function, *shapes) == 3  # one is the value
    count("programs")


@pytest.mark.parametrize("shapes", [[(5, 2, 3), (3, 4)], [(5, 1, 2, 3), (1, 6, 3, 4)]])
def test_a_product_of_batches_repeats_no_factor_in_memory(shapes):
    first, second = (jnp.ones(shape) for shape in shapes)
    names = {*primitives(jax.make_jaxpr(ops.matmul)(first, second))}
    assert "dot_general" in names and "broadcast_in_dim" not in names
    count("programs")


def test_gradients_of_complex_factors_are_conjugate():
    x = jaxgrad.tensor([[1 + 2j]], requires_grad=True)
    y = jaxgrad.tensor([[3 - 1j]], requires_grad=True)
    (x @ y).backward(jaxgrad.tensor([[1j]]))
    assert (x.grad.item(), y.grad.item()) == (1j * (3 + 1j), 1j * (1 - 2j))
    count("closed forms", 2)


@pytest.mark.slow
def test_trilinear_has_complex_gradients():
    # PyTorch refuses complex numbers
    draw = numpy.random.RandomState(0)
    factors = [
        jaxgrad.tensor(draw.randn(*shape) + 1j * draw.randn(*shape), requires_grad=True)
        for shape in ((2, 3), (4, 3, 2), (2, 2))
    ]

    def function(*factors):
        return ops._trilinear(*factors, [1, 3], [0], [1, 2], [2, 3])

    assert jaxgrad.autograd.gradcheck(function, factors, check_forward_ad=True)
    assert jaxgrad.autograd.gradgradcheck(function, factors)
    count("derivatives", 2)


GROUPED = [((8, 4), (3, 4, 5)), ((3, 6, 4), (4, 8)), ((6, 8), (8, 5)), ((3, 6, 4), (3, 4, 5))]


def grouped_products(first, second, ends):
    """The products by NumPy: of slices where a factor is a matrix, whose rest is zero."""
    starts = [0, *ends[:-1]]
    slices = [slice(*bounds) for bounds in zip(starts, ends, strict=True)]
    if first.ndim == second.ndim == 3:
        return first @ second
    if first.ndim == second.ndim == 2:
        return numpy.stack([first[:, part] @ second[part] for part in slices])
    result = numpy.zeros((first.shape[-2], second.shape[-1]))
    for group, part in enumerate(slices):
        if first.ndim == 2:
            result[part] = first[part] @ second[group]
        else:
            result[:, part] = first[group] @ second[:, part]
    return result


@pytest.mark.parametrize("shapes", GROUPED)
@pytest.mark.parametrize("ends", [[2, 5, 7], [0, 8, 8]])
@pytest.mark.parametrize("executor", ["host", "compiled"])
def test_grouped_mm(shapes, ends, executor):
    draw = numpy.random.default_rng(0)
    arrays = [draw.standard_normal(shape) for shape in shapes]
    factors = [jaxgrad.tensor(array, requires_grad=True) for array in arrays]
    is_batched = all(array.ndim == 3 for array in arrays)
    offsets = None if is_batched else jaxgrad.tensor(ends, dtype=jaxgrad.int32)

    def function(first, second):
        return jaxgrad.nn.functional.grouped_mm(first, second, offs=offsets)

    with eager(executor):
        product = function(*factors).detach().numpy()
        numpy.testing.assert_allclose(product, grouped_products(*arrays, ends), atol=1e-12)
        assert jaxgrad.autograd.gradcheck(function, factors, check_forward_ad=True)
        turned = [(factor * (1 + 0.5j)).detach().requires_grad_() for factor in factors]
        assert jaxgrad.autograd.gradcheck(function, turned)
        assert jaxgrad.autograd.gradgradcheck(function, factors)


def test_grouped_mm_with_other_offsets_compiles_nothing():
    """The routing of a mixture of experts changes in each step; shapes of products do not."""
    traces = []

    def note(event, _seconds, **_):
        if "trace" in event or "compile" in event:
            traces.append(event)

    rows = jaxgrad.ones(8, 4, requires_grad=True)
    experts = jaxgrad.ones(3, 4, 5, requires_grad=True)

    def step(ends):
        offsets = jaxgrad.tensor(ends, dtype=jaxgrad.int32)
        jaxgrad.nn.functional.grouped_mm(rows, experts, offs=offsets).sum().backward()
        return experts.grad.tolist()

    step([1, 2, 8])
    step([1, 2, 8])  # adds to the gradient
    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        for first in range(8):
            step([first, first + 1, 8])
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert not traces


def test_errors_of_grouped_mm():
    first, second = jaxgrad.ones(8, 4), jaxgrad.ones(3, 4, 5)
    ends = jaxgrad.tensor([1, 2, 8], dtype=jaxgrad.int32)
    call = jaxgrad.nn.functional.grouped_mm
    with pytest.raises(RuntimeError, match="Have to provide offsets"):
        call(first, second)
    with pytest.raises(RuntimeError, match="Offsets have to be int32"):
        call(first, second, offs=ends.long())
    with pytest.raises(RuntimeError, match="batch sizes have to match"):
        call(first, second, offs=ends[:2])
    with pytest.raises(RuntimeError, match="contraction dimension"):
        call(first[:, :3], second, offs=ends)
    with pytest.raises(RuntimeError, match="Bias not supported"):
        call(first, second, offs=ends, bias=jaxgrad.ones(3, 5))


def test_factors_of_booleans_are_booleans():
    true = jaxgrad.tensor([True])
    matrix = jaxgrad.tensor([[True]])
    assert jaxgrad.addr(matrix, true, ~true, beta=-1).tolist() == [[True]]
    assert jaxgrad.addr(matrix, true, true, beta=-1, alpha=-1).tolist() == [[True]]
    assert jaxgrad.addr(matrix, true, true, beta=0, alpha=0).tolist() == [[False]]
