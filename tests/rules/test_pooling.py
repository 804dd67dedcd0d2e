"""Pooling: errors, dtypes and edge cases as in PyTorch, and what PyTorch's answers cannot show."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad
from jaxgrad.nn import functional as F

IMAGE = "zeros(1, 1, 4, 4)"
INDICES = "zeros(1, 1, 2, 2, dtype=torch.int64)"
REFUSED = [
    (
        "F.avg_pool2d(zeros(1, 2, 2), 2, out=zeros(1, 1, 1).double())",
        RuntimeError,
        "to have dtype",
    ),
    ("F.max_pool2d(zeros(4, 4), 2)", RuntimeError, "3D or 4D (batch mode) tensor expected"),
    ("F.max_pool2d(zeros(2, 0, 4, 4), 2)", RuntimeError, "with optional 0 dim batch size"),
    (f"F.max_pool2d({IMAGE}, 5)", RuntimeError, "Calculated output size: (1x0x0)"),
    (f"F.max_pool2d({IMAGE}, 2, 0)", RuntimeError, "stride should not be zero"),
    (f"F.max_pool2d({IMAGE}, 2, 1, 2)", RuntimeError, "at most half of effective kernel size"),
    (f"F.max_pool2d({IMAGE}, 3, 1, 2, 3)", RuntimeError, "smaller than or equal to half of kernel"),
    (f"F.max_pool2d({IMAGE}, 2, 1, 0, 0)", RuntimeError, "dilation should be greater than zero"),
    (f"F.max_pool2d({IMAGE}, (1, 2, 3))", RuntimeError, "kernel_size must either be a single int"),
    (f"F.max_pool2d({IMAGE}, 2.5)", TypeError, "argument 'kernel_size' (position 2) must be"),
    (f"F.max_pool2d({IMAGE}.bool(), 2)", NotImplementedError, "not implemented for 'Bool'"),
    ("torch.max_pool1d(zeros(2, 2), 5, 1)", RuntimeError, "Invalid computed output size: -2"),
    ("torch.max_pool1d(zeros(2, 2), 1, 0)", RuntimeError, "stride must be greater than zero"),
    ("torch.max_pool1d(zeros(2, 2), 0)", RuntimeError, "kernel_size must be greater than zero"),
    ("F.max_pool2d(zeros(0, 1, 49), 2, 50, -1)", RuntimeError, "pad must be non-negative"),
    ("F.max_pool3d(zeros(2, 1, 0, 1, 2), 1)", RuntimeError, "dimensions to have positive length"),
    ("torch.max_pool1d(zeros(4), 2)", RuntimeError, "max_pool1d: Expected 2D or 3D (batch mode)"),
    ("torch.max_pool1d(zeros(1, 4), (1, 2))", RuntimeError, "kernel_size must be an int, list of"),
    (f"F.avg_pool2d({IMAGE}, 2, divisor_override=0)", RuntimeError, "divisor must be not zero"),
    (f"F.avg_pool2d({IMAGE}.int(), 2)", NotImplementedError, "not implemented for 'Int'"),
    ("torch.avg_pool1d(zeros(4), 2)", RuntimeError, "Expected 2 to 3 dimensions, but got 1-dim"),
    ("F.adaptive_avg_pool2d(zeros(4, 4), 2)", RuntimeError, "Expected 3D or 4D tensor, but got"),
    (f"F.adaptive_avg_pool2d({IMAGE}, -1)", RuntimeError, "must be greater than or equal to 0"),
    (f"F.adaptive_avg_pool2d({IMAGE}, (1, 2, 3))", RuntimeError, "output_size must be 2"),
    ("F.adaptive_avg_pool2d(zeros(4), (None, 2))", ValueError, "dimension should be at least 3"),
    (f"F.adaptive_max_pool2d({IMAGE}.long(), 2)", NotImplementedError, "implemented for 'Long'"),
    (f"F.fractional_max_pool2d({IMAGE}, 3, 3)", RuntimeError, "too large relative to input"),
    (
        f"F.fractional_max_pool2d({IMAGE}, 2)",
        ValueError,
        "either an output_size or an output_ratio",
    ),
    (
        f"F.fractional_max_pool2d({IMAGE}, 2, 2, _random_samples=zeros(1, 1, 3))",
        RuntimeError,
        "Expect _random_samples.size(2) equals to 2; got 3.",
    ),
    (
        f"F.max_unpool2d(zeros(1, 1, 2, 2), {INDICES} + 16, 2)",
        RuntimeError,
        "Found an invalid max index: 16 (output volumes are of size 4x4)",
    ),
    (
        "F.max_unpool2d(zeros(1, 1, 2, 2), zeros(1, 1, 2, 2), 2)",
        RuntimeError,
        "elements in indices should be type int64 but got: Float",
    ),
    (
        f"F.max_unpool2d(zeros(1, 1, 2, 2), {INDICES}, 2, output_size=(9, 9))",
        ValueError,
        "(dim 0 must be between 2 and 6)",
    ),
    (f"F.lp_pool2d({IMAGE}, 0, 2)", ZeroDivisionError, "by zero"),
]

PADDED = "full((1, 3, 3), -inf), 3, 2, 1, 1, True, True"
ANSWERS = [
    (
        "F.avg_pool2d(tensor([[[1.0, 5.0], [3.0, 3.0]]]), 2, out=torch.empty(0))",
        "float32",
        [[[3.0]]],
    ),
    # the first of equal elements, the last NaN, and no padding where all is -inf
    (f"F.max_pool2d({PADDED})[1]", "int64", [[[0, 1], [3, 4]]]),
    (
        "F.max_pool2d(full((1, 4, 4), -inf), 2, 2, 1, 2, return_indices=True)[1]",
        "int64",
        [[[5, 5], [5, 5]]],
    ),
    (
        "F.max_pool2d(tensor([[[nan, 1.0], [nan, 2.0]]]), 2, return_indices=True)[1]",
        "int64",
        [[[2]]],
    ),
    ("F.max_pool1d(tensor([[nan] * 3 + [1.0] * 20]), 20, return_indices=True)[1]", "int64", [[2]]),
    (
        "F.max_pool1d(tensor([[1.0] * 25]), 20, 5, 5, return_indices=True)[1]",
        "int64",
        [[0, 0, 5, 10]],
    ),
    ("F.adaptive_max_pool1d(tensor([[nan, 2.0, nan, 2.0, 2.0]]), 2, True)[1]", "int64", [[2, 2]]),
    ("F.max_pool2d(tensor([[[-3, -2], [-9, -5]]]), 2, 2, 1)", "int64", [[[-3, -2], [-9, -5]]]),
    ("F.max_pool2d(tensor([[[7, 200]]], dtype=torch.uint8), (1, 2))", "uint8", [[[200]]]),
    ("F.avg_pool2d(tensor([[[-3, -4]]]), (1, 2))", "int64", [[[-3]]]),
    ("F.avg_pool1d(full((1, 2), 60000.0, dtype=torch.float16), 2)", "float16", [[60000.0]]),
    # an infinity is in its own bin alone
    ("F.adaptive_avg_pool1d(tensor([[inf, 1.0, 1.0]]), 2)", "float32", [[numpy.inf, 1.0]]),
    ("F.adaptive_avg_pool2d(zeros(1, 2, 3), (0, 2))", "float32", numpy.zeros((1, 0, 2))),
    ("F.max_pool2d(zeros(0, 1, 4, 4), 2)", "float32", numpy.zeros((0, 1, 2, 2))),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


def test_max_pool1d_is_max_pool2d_of_one_row():
    x = jaxgrad.tensor([[1.0, 5.0, 3.0]], requires_grad=True)
    names, node = [], F.max_pool1d(x, 2).grad_fn
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    assert names[:3] == ["SqueezeBackward1", "MaxPool2DWithIndicesBackward0", "UnsqueezeBackward0"]
    count("composed")


TIES = numpy.round(2 * numpy.sin(numpy.arange(30.0) ** 2)).reshape(1, 5, 6)


@pytest.mark.slow
@pytest.mark.parametrize("dilation", [1, 2])
def test_second_derivatives_of_max_pooling_with_ties(dilation):
    """A square of maxima is one of the elements at their indices, to every order."""

    def pooled(x):
        options = 2, 1, 0, dilation, False
        return jaxgrad.ops.max_pool2d_with_indices(x, *options)[0]

    def loss(x):
        return (pooled(x) ** 3).sum()

    x = jnp.asarray(TIES)
    with jax.enable_x64(True):
        index = jaxgrad.ops.max_pool2d_with_indices(x, 2, 1, 0, dilation, False)[1].ravel()
        expected = numpy.zeros((30, 30))
        numpy.add.at(expected, (index, index), 6 * TIES.ravel()[index])
        modes = jax.jacfwd, jax.jacrev
        for outer in modes:
            for inner in modes:
                hessian = outer(inner(loss))(x).reshape(30, 30)
                numpy.testing.assert_allclose(hessian, expected)
                count("second order")


@pytest.mark.slow
def test_a_window_of_padding_alone_has_no_index():
    """PyTorch gives it the index of another element, which then gets its gradient."""
    x = jaxgrad.tensor([[[3.0, 4.0, 5.0]]], requires_grad=True)
    best, indices = jaxgrad.ops.max_pool2d_with_indices(x, (1, 2), 1, (0, 1), (1, 4), True)
    alone = best == -numpy.inf
    assert alone.any() and (indices[alone] == -1).all() and (indices[~alone] >= 0).all()
    assert (best[~alone] == x.ravel()[indices[~alone]]).all()
    jaxgrad.where(alone, best, 0 * best).sum().backward()
    assert x.grad.ravel().tolist() == [0.0, 0.0, 0.0]
    count("padding")


def test_roi_pooling_of_an_image_that_is_not_there():
    rois = jaxgrad.tensor([[1.0, 0.0, 0.0, 1.0, 1.0]])
    with pytest.raises(RuntimeError, match="a region is of image 1, of 1 images"):
        jaxgrad.ops.RoiPooling2d_forward(jaxgrad.zeros(1, 1, 2, 2), rois, 1, 1, 1.0)
    count("errors")


@pytest.mark.slow
def test_roi_pooling_of_negative_and_empty_regions():
    """The old code began the maximum at a small positive number."""
    image = jaxgrad.full((1, 1, 2, 2), -3.0, requires_grad=True)
    rois = jaxgrad.tensor([[0.0, 0.0, 0.0, 2.0, 2.0], [0.0, 5.0, 5.0, 6.0, 6.0]])
    maxima, indices = jaxgrad.ops.RoiPooling2d_forward(image, rois, 1, 1, 1.0)
    assert maxima.ravel().tolist() == [-3.0, 0.0] and indices.ravel().tolist() == [0, -1]
    maxima.sum().backward()
    assert image.grad.ravel().tolist() == [1.0, 0.0, 0.0, 0.0]
    count("regions")


def test_maxima_of_no_channels():
    pool = jaxgrad.nn.functional.adaptive_max_pool2d
    assert pool(jaxgrad.ones(0, 4, 3), 2).shape == (0, 2, 2)
    assert jaxgrad.nn.functional.adaptive_max_pool1d(jaxgrad.ones(0, 4), 3).shape == (0, 3)
    for shape in ((2, 0, 3), (1, 0, 4, 3)):
        with pytest.raises(RuntimeError, match="non-zero size for non-batch dimensions"):
            pool(jaxgrad.ones(shape), 2)
