"""Convolutions: errors, dtypes and edges as PyTorch has them; the names of early PyTorch; gradients
that are asked for in part.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals
from jax.test_util import check_grads
from jaxgrad.rules import convolution as rules

import jaxgrad
import jaxgrad.nn.functional as F
from jaxgrad import ops

CONVOLUTION = "torch.convolution(zeros(1, 2, 4), zeros(3, 2, 2), None, [1], [0], [1], False, [0]"
TRANSPOSED = "F.conv_transpose2d(zeros(1, 2, 4, 4), zeros(2, 3, 3, 3)"

REFUSED = [
    ("F.conv2d(zeros(4), zeros(3, 2, 3, 3))", RuntimeError, "Expected 3D (unbatched) or 4D"),
    ("F.conv2d([1.0], zeros(3, 2, 3, 3))", TypeError, "conv2d()"),
    ("F.conv2d(zeros(1, 2, 4, 4), zeros(3, 2, 3))", RuntimeError, "a list of 1 values to match"),
    ("F.conv2d(zeros(1, 2, 4, 4), zeros(()))", RuntimeError, "at least three dimensions"),
    (
        "F.conv2d(zeros(1, 4, 4, 4), zeros(3, 2, 3, 3))",
        RuntimeError,
        "Given groups=1, weight of size [3, 2, 3, 3], expected input[1, 4, 4, 4] to have 2",
    ),
    (
        "F.conv_transpose2d(zeros(1, 4, 4, 4), zeros(3, 2, 3, 3))",
        RuntimeError,
        "Given transposed=1, weight of size [3, 2, 3, 3], expected input[1, 4, 4, 4] to have 3",
    ),
    (
        "F.conv1d(zeros(1, 2, 4), zeros(3, 2, 2), zeros(4))",
        RuntimeError,
        "expected bias to be 1-dimensional with 3 elements, but got bias of size [4] instead",
    ),
    (f"{CONVOLUTION}, 0)", RuntimeError, "non-positive groups is not supported"),
    (f"{CONVOLUTION}, 2)", RuntimeError, "expected weight to be divisible by 2 at dimension 0"),
    (f"{CONVOLUTION}, 5)", RuntimeError, "expected weight to be at least 5 at dimension 0"),
    (
        "torch.convolution(zeros(2, 4), zeros(3, 2, 2), None, [1], [0], [1], False, [0], 1)",
        RuntimeError,
        "Expected 3-dimensional input for 3-dimensional weight [3, 2, 2], but got 2-dimensional",
    ),
    (
        "F.conv1d(zeros(1, 2, 4), zeros(3, 2, 2), dilation=0)",
        RuntimeError,
        "dilation should be greater than zero",
    ),
    (
        "F.conv1d(zeros(1, 2, 4), zeros(3, 2, 2).double())",
        RuntimeError,
        "expected scalar type Float but found Double",
    ),
    (
        "F.conv1d(zeros(1, 2, 4), zeros(3, 2, 2), zeros(3).double())",
        RuntimeError,
        "should be the same",
    ),
    ("F.conv1d(zeros(1, 1, 4).bool(), zeros(1, 1, 2).bool())", NotImplementedError, "'Bool'"),
    (
        "F.conv1d(zeros(1, 2, 4), zeros(3, 2, 5))",
        RuntimeError,
        "Calculated padded input size per channel: (",
    ),
    (f"{TRANSPOSED}, padding=3)", RuntimeError, "Output size is too small"),
    (f"{TRANSPOSED}, output_padding=1)", RuntimeError, "must be smaller than either stride or"),
    (f"{TRANSPOSED}, output_padding=-1)", RuntimeError, "negative output_padding is not supported"),
    (
        "torch.ops.aten.convolution_backward(zeros(1, 3, 4), zeros(1, 2, 4), zeros(3, 2, 2), None, "
        "[1], [0], [1], False, [0], 1, [True, True, True])",
        RuntimeError,
        "3",
    ),
    ("F.conv_tbc(zeros(4, 2), zeros(3, 2, 3), zeros(3))", RuntimeError, "Input must have 3 dims"),
    (
        "F.conv_tbc(zeros(4, 1, 2), zeros(3, 2), zeros(3))",
        RuntimeError,
        "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.",
    ),
    ("F.conv_tbc(zeros(4, 1, 2), zeros(3, 2, 3), zeros(4))", RuntimeError, "Bias size must equal"),
    ("F.conv_tbc(zeros(1, 1, 2), zeros(3, 2, 3), zeros(3))", RuntimeError, "negative dimension -1"),
    ("F.conv_tbc(zeros(4, 1, 3), zeros(3, 2, 3), zeros(3))", RuntimeError, "Input dim 2 (input ch"),
    ("F.unfold(zeros(1, 1, 1, 4, 4), 2)", RuntimeError, "Expected 3D or 4D (batch mode) tensor"),
    (
        "F.unfold(zeros(1, 1, 4, 4), 5)",
        RuntimeError,
        "sliding blocks as (0, 0), but its components",
    ),
    ("F.unfold(zeros(1, 1, 4, 4), (2,))", RuntimeError, "expected kernel_size equals to 2, but"),
    (
        "F.unfold(zeros(1, 1, 4, 4), 2, stride=0)",
        RuntimeError,
        "stride should be greater than zero",
    ),
    ("F.unfold(zeros(1, 1, 4, 4), 2, padding=-1)", RuntimeError, "padding should be non-negative"),
    ("F.fold(zeros(8), (4, 4), 2)", RuntimeError, "Expected 2D or 3D (batch mode) tensor"),
    (
        "F.fold(zeros(1, 7, 9), (4, 4), 2)",
        RuntimeError,
        "to be divisible by the product of kernel_size, but got input.size(1)=7",
    ),
    (
        "F.fold(zeros(1, 8, 8), (4, 4), 2)",
        RuntimeError,
        "sliding blocks 3 * 3 = 9, but got input.size(2)=8.",
    ),
]

ANSWERS = [
    (
        "F.conv1d(tensor([[1.0, 2.0, 4.0]]).half(), tensor([[[-1.0, 1.0]]]).half())",
        "float16",
        [[1.0, 2.0]],
    ),
    (
        "F.conv_transpose1d(tensor([[1.0, 2.0]]).bfloat16(), tensor([[[3.0, 1.0]]]).bfloat16())",
        "bfloat16",
        [[3.0, 7.0, 2.0]],
    ),
    ("F.conv1d(tensor([[1, 2]]), tensor([[[3, 1]]]), padding=1)", "int64", [[1, 5, 6]]),
    ("F.conv_transpose1d(tensor([[1, 2]]), tensor([[[3, 1]]]))", "int64", [[3, 7, 2]]),
    ("F.conv1d(tensor([[1.0, 2.0]]), tensor([[[3.0, 1.0]]]), padding='same')", "float32", [[5, 6]]),
    ("F.unfold(tensor([[[1.0, inf]]]), (1, 2)).flatten()", "float32", [1, numpy.inf]),
    ("F.fold(tensor([[True, False]]), (1, 2), 1)", "bool", [[[True, False]]]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call.replace("ops.aten", "ops"), error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


def leaf(*shape, first=0):
    """Small whole numbers, with which every kernel is exact."""
    numbers = numpy.sin(1.3 * (numpy.arange(numpy.prod(shape)) + first) ** 2 + 0.7)
    return jaxgrad.tensor(numpy.round(16 * numbers).reshape(shape), requires_grad=True)


# edges


def test_an_empty_batch_has_the_weight_gradient_zero():
    for function, shape in ((F.conv2d, (0, 3, 2, 3)), (F.conv_transpose2d, (0, 2, 4, 5))):
        x, weight = leaf(0, 2, 3, 4), leaf(3, 2, 2, 2) if function is F.conv2d else leaf(2, 2, 2, 2)
        y = function(x, weight)
        y.sum().backward()
        assert (tuple(y.shape), tuple(x.grad.shape)) == (shape, (0, 2, 3, 4))
        assert weight.grad.shape == weight.shape and not weight.grad.any()
    count("closed forms", 2)


def test_no_channels_add_up_to_the_bias():
    """PyTorch's result has no channels."""
    result = F.conv1d(jaxgrad.zeros(1, 0, 3), jaxgrad.zeros(2, 0, 2), jaxgrad.tensor([1.0, 2.0]))
    assert result.tolist() == [[[1.0, 1.0], [2.0, 2.0]]]
    count("closed forms")


@pytest.mark.slow
def test_conv_tbc_of_complex_numbers_is_conv1d_with_other_layouts():
    x, weight, bias = (leaf(*shape) * (1 + 2j) for shape in ((4, 2, 2), (3, 2, 2), (2,)))
    inputs = [tensor.detach().requires_grad_() for tensor in (x, weight, bias)]
    one = F.conv_tbc(*inputs, 1)
    two = F.conv1d(inputs[0].permute(1, 2, 0), inputs[1].permute(2, 1, 0), inputs[2], padding=1)
    two = two.permute(2, 0, 1)
    grad = one.detach().conj()
    grads = [jaxgrad.autograd.grad(output, inputs, grad) for output in (one, two)]
    for result, expected in [(one, two), *zip(*grads, strict=True)]:
        numpy.testing.assert_allclose(result.detach().numpy(), expected.detach().numpy(), 1e-12)
    count("closed forms", 4)


# gradients that are asked for in part


def backward_of(grad, x, weight, mask):
    return ops.convolution_backward(grad, x, weight, None, [2], [1], [1], False, [0], 1, mask)


@pytest.mark.slow
def test_gradients_that_are_not_wanted_are_none():
    grad, x, weight = leaf(1, 3, 2), leaf(1, 2, 4), leaf(3, 2, 3)
    all_three = backward_of(grad, x, weight, [True] * 3)
    for mask in ([True, False, True], [False, True, False], [False, False, True]):
        gradients = backward_of(grad, x, weight, mask)
        assert [gradient is not None for gradient in gradients] == mask
        for one, other in zip(gradients, all_three, strict=True):
            assert one is None or jaxgrad.equal(one, other)
    compiled = jaxgrad.jit(backward_of)(grad, x, weight, [False, True, False])
    assert compiled[0] is compiled[2] is None and jaxgrad.allclose(compiled[1], all_three[1])
    count("closed forms", 4)


@pytest.mark.slow
@pytest.mark.parametrize("wanted", range(3))
def test_derivatives_of_one_gradient_alone(wanted):
    mask = [position == wanted for position in range(3)]
    arrays = [tensor.detach().numpy() for tensor in (leaf(1, 3, 2), leaf(1, 2, 4), leaf(3, 2, 3))]
    with jax.enable_x64(True):
        one = jax.jit(lambda *arrays: backward_of(*arrays, mask)[wanted])
        check_grads(one, tuple(map(jnp.asarray, arrays)), 2, eps=1e-4)
    count("convolution", 4)


@pytest.mark.slow
def test_derivatives_of_the_gradients_of_conv_tbc():
    shapes = (4, 1, 2), (4, 1, 2), (3, 2, 2), (2,)
    with jax.enable_x64(True):
        arrays = [jnp.asarray(leaf(*shape).detach().numpy()) for shape in shapes]
        check_grads(jax.jit(partial(ops.conv_tbc_backward, pad=1)), arrays, 2, eps=1e-4)
    count("convolution", 4)


# lowerings, against XLA's convolution and JAX's own derivatives of it

GEOMETRIES = [
    # size, kernel, stride, padding, dilation, in, out, groups
    ((7,), (3,), (1,), (1,), (1,), 4, 4, 4),
    ((8,), (4,), (3,), (0,), (2,), 3, 6, 3),
    ((5, 6), (3, 2), (2, 1), (1, 0), (1, 1), 4, 4, 4),
    ((6, 5), (2, 3), (2, 3), (2, 1), (2, 1), 4, 6, 2),
    ((4, 5), (1, 1), (1, 1), (0, 0), (1, 1), 3, 2, 1),
    ((5, 4), (1, 1), (2, 3), (1, 0), (1, 1), 4, 2, 2),
    ((5, 5), (3, 3), (2, 2), (1, 1), (1, 1), 2, 3, 1),
    ((3, 4, 3), (2, 1, 2), (2, 1, 1), (1, 0, 0), (1, 1, 2), 2, 4, 2),
    ((5, 4, 3), (2, 3, 2), (2, 1, 2), (1, 0, 1), (2, 1, 1), 3, 2, 1),
    ((4, 3, 5), (3, 2, 2), (1, 2, 1), (2, 1, 0), (1, 1, 2), 2, 3, 1),
    ((3, 3), (2, 2), (1, 1), (0, 1), (1, 1), 164, 4, 2),
    ((2, 2), (3, 3), (1, 1), (1, 1), (1, 1), 3, 2, 1),
    ((3, 2), (4, 3), (2, 1), (2, 1), (1, 1), 2, 3, 1),
    ((4, 3), (2, 3), (2, 1), (1, 1), (1, 1), 8, 12, 4),
    ((5, 4), (3, 2), (2, 1), (1, 1), (1, 2), 3, 16, 1),
    ((6, 5), (2, 3), (3, 2), (0, 2), (1, 1), 2, 20, 1),
    ((5,), (3,), (1,), (1,), (1,), 6, 6, 3),
    ((2, 1), (1, 1), (1, 1), (0, 0), (1, 1), 6, 4, 1),
    ((3,), (1,), (2,), (1,), (1,), 12, 8, 2),
]
OTHER_DTYPES = ["float64", "complex128", "int32", "bfloat16"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("geometry", "dtype"),
    [(geometry, "float32") for geometry in GEOMETRIES]
    + [(GEOMETRIES[3], dtype) for dtype in OTHER_DTYPES]
    + [(GEOMETRIES[8], dtype) for dtype in OTHER_DTYPES],
)
@pytest.mark.parametrize(
    "limits", [{}, {"WINDOWS": 60}, *({"WINDOWS": 60, "MOST_TERMS": most} for most in (5, 9))]
)
def test_lowerings_equal_the_convolution_of_jax(geometry, dtype, limits, monkeypatch):
    for name, value in limits.items():
        monkeypatch.setattr(rules.lowerings, name, value)
    size, kernel, stride, padding, dilation, channels, out, groups = geometry
    generator = numpy.random.default_rng(0)

    def draw(shape):
        return jnp.asarray(generator.integers(-4, 5, shape), dtype)

    def of_jax(x, w):
        return jax.lax.conv_general_dilated(
            x,
            w,
            stride,
            [(p, p) for p in padding],
            rhs_dilation=dilation,
            feature_group_count=groups,
            precision="highest",
        )

    with jax.enable_x64(True):
        x, w = draw((2, channels, *size)), draw((out, channels // groups, *kernel))
        y = jax.jit(of_jax)(x, w)
        grad, numbers = draw(y.shape), (stride, padding, dilation, groups)
        results = jax.jit(
            lambda x, w, grad: (
                rules.correlate(x, w, *numbers),
                rules.input_gradient(grad, w, x.shape, *numbers),
                rules.weight_gradient(x, grad, w.shape, *numbers),
            )
        )(x, w, grad)
        # small whole numbers: float64 has all sums exactly
        wide = [
            array.astype("complex128" if x.dtype.kind == "c" else "float64") for array in (x, w)
        ]
        back = jax.linear_transpose(lambda x: of_jax(x, wide[1]), wide[0])
        back_of_weight = jax.linear_transpose(lambda w: of_jax(wide[0], w), wide[1])
        wide_grad = grad.astype(wide[0].dtype)
        expected = y, *back(wide_grad), *back_of_weight(wide_grad)
        for one, other in zip(results, expected, strict=True):
            assert (one.dtype, one.shape) == (x.dtype, other.shape)
            assert (one == other.astype(one.dtype)).all()
    count("lowerings", 3)


@pytest.mark.parametrize("groups", [1, 2])
def test_a_layer_and_its_gradients_are_three_convolutions(groups):
    def loss(x, weight, bias):
        return ops.convolution(x, weight, bias, [2], [1], [1], False, [0], groups).sum()

    x, weight, bias = map(jnp.ones, ((1, 2, 4), (4, 2 // groups, 3), (4,)))
    traced = jax.jit(jax.value_and_grad(loss, (0, 1, 2))).trace(x, weight, bias)
    program = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert program.count("stablehlo.convolution") == 3
    count("programs")


# the names of early PyTorch
