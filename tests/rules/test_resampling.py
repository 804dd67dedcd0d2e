"""Resampling, padding, grids and shuffles: errors, dtypes and edges as PyTorch has them; what is
not finite stays where it is; bytes; empty batches; compiled gradients without a scatter."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, primitives, refusals
from jax.test_util import check_grads

import jaxgrad
import jaxgrad.nn.functional as F
from jaxgrad import ops

IMAGE = "torch.arange(6.0).view(1, 1, 2, 3)"
SAMPLE = "F.grid_sample(zeros({}), zeros({}), align_corners=False)"
NO_PIXELS = "Input and output sizes should be greater than 0"
BICUBIC_3D = "torch.grid_sampler_3d(zeros(1, 1, 2, 2, 2), zeros(1, 1, 1, 1, 3), 2, 0, True)"

REFUSED = [
    (
        "torch.ops.aten._upsample_bilinear2d_aa.vec(zeros(1, 1, 3, 4), None, False, None)",
        RuntimeError,
        "Must specify exactly one of output_size and scale_factors",
    ),
    ("F.interpolate(zeros(1, 1, 3))", ValueError, "either size or scale_factor should be defined"),
    ("F.interpolate(zeros(1, 1, 3), 2, 2.0)", ValueError, "only one of size or scale_factor"),
    ("F.interpolate(zeros(1, 1, 3), (2, 2))", ValueError, "the same number of spatial dimensions"),
    ("F.interpolate(zeros(1, 1, 3), 2, align_corners=True)", ValueError, "can only be set with"),
    ("F.interpolate(zeros(1, 1, 3), 2, antialias=True)", ValueError, "Anti-alias option"),
    (
        "F.interpolate(zeros(1, 1, 3), 2, recompute_scale_factor=True)",
        ValueError,
        "recompute_scale_factor is not meaningful with an explicit size",
    ),
    (
        "F.interpolate(zeros(1, 1, 3), 2, mode='bilinear')",
        NotImplementedError,
        "Got 3D input, but bilinear mode needs 4D input",
    ),
    ("F.interpolate(zeros(1, 3), 2)", NotImplementedError, "Only 3D, 4D and 5D input Tensors"),
    ("F.interpolate(zeros(1, 1, 2, 2), 2, mode='lanczos')", ValueError, "requires antialias=True"),
    ("F.interpolate(zeros(1, 1, 3), 0)", RuntimeError, NO_PIXELS),
    ("F.interpolate(zeros(1, 1, 3), scale_factor=0.1)", RuntimeError, NO_PIXELS),
    ("F.interpolate(zeros(1, 0, 3), 2)", RuntimeError, "data tensor expected but got a tensor"),
    ("F.interpolate(tensor([[[1, 2]]]), 2)", NotImplementedError, "not implemented for 'Long'"),
    ("F.pad(zeros(2, 3), (1, 1), 'reflect', 1.0)", RuntimeError, "doesn't take in value argument"),
    ("F.pad(zeros(3), (1, 1), 'reflect')", NotImplementedError, "is not supported for 1D input"),
    ("F.pad(zeros(2, 3), (4, 0), 'circular')", RuntimeError, "wrapping around more than once"),
    ("F.pad(zeros(2, 0), (1, 1), 'replicate')", RuntimeError, "possibly 0 batch size and other"),
    ("F.pad(tensor([1], dtype=torch.uint8), (1, 1), value=300)", RuntimeError, "without overflow"),
    (
        "F.pad(tensor([[True]]), (1, 1), 'replicate')",
        NotImplementedError,
        "not implemented for 'Bool'",
    ),
    (
        SAMPLE.format("1, 1, 2, 2", "1, 1, 1, 3"),
        RuntimeError,
        "expected grid to have size 2 in last dimension",
    ),
    (
        SAMPLE.format("1, 1, 2, 2", "2, 1, 1, 2"),
        RuntimeError,
        "expected grid and input to have same batch size",
    ),
    (
        SAMPLE.format("1, 1, 0, 2", "1, 1, 1, 2"),
        RuntimeError,
        "expected input to have non-empty spatial dimensions",
    ),
    (BICUBIC_3D, RuntimeError, "bicubic interpolation only supports 4D input"),
    (
        "F.grid_sample(zeros(1, 1, 2, 2), zeros(1, 1, 1, 2), 'cubic')",
        ValueError,
        "expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: 'cubic'",
    ),
    (
        "F.affine_grid(zeros(1, 3, 3), (1, 1, 2, 2), align_corners=False)",
        ValueError,
        "Expected a batch of 2D affine matrices of shape Nx2x3",
    ),
    (
        "torch.affine_grid_generator(zeros(1, 2, 3), (1, 1, 2), True)",
        RuntimeError,
        "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.",
    ),
    ("F.pixel_shuffle(zeros(3, 2, 2), 2)", RuntimeError, "but input.size(-3)=3 is not divisible"),
    ("F.pixel_unshuffle(zeros(1, 3, 2), 2)", RuntimeError, "but input.size(-2)=3 is not divisible"),
    ("F.channel_shuffle(zeros(2, 2), 2)", RuntimeError, "expects input with > 2 dims"),
    ("F.channel_shuffle(zeros(1, 3, 1), 2)", RuntimeError, "must be divisible by groups"),
]

BYTES = "tensor([[[[0, 255, 7], [90, 13, 200]]]], dtype=torch.uint8)"
ROW = "tensor([[[[199, 15, 78, 163]]]], dtype=torch.uint8)"
NAN_GRID = "tensor([[[[nan, 0.0], [inf, 0.0]]]])"
NAN_POINTS = "tensor([[[[[nan, 0.0, 0.0]]]]])"

ANSWERS = [
    (
        "torch.ops.aten._upsample_bilinear2d_aa.vec(torch.arange(12.0).reshape(1, 1, 3, 4), None, "
        "False, [0.5, 0.75])",
        "float32",
        [[[[3.1571431159973145, 4.357142925262451, 5.557143211364746]]]],
    ),
    (
        "torch.ops.aten._upsample_bilinear2d_aa(torch.arange(12.0).reshape(1, 1, 3, 4), [1, 2], "
        "False, scale_factors=None)",
        "float32",
        [[[[4.714285850524902, 6.285714149475098]]]],
    ),
    # the places follow the ratio that is given, and not that of the sizes
    (
        "F.interpolate(torch.arange(5.0).view(1, 1, 5), scale_factor=1.3)",
        "float32",
        [[[0, 0, 1, 2, 3, 3]]],
    ),
    (
        f"F.interpolate({BYTES}, (3, 2), mode='bilinear')",
        "uint8",
        [[[[64, 69], [68, 111], [71, 153]]]],
    ),
    (
        f"F.interpolate({BYTES}, (1, 4), mode='bicubic', antialias=True)",
        "uint8",
        [[[[47, 103, 129, 105]]]],
    ),
    # the weights of the edge are added before they are rounded
    (
        "F.interpolate(tensor([[[[161, 17]]]], dtype=torch.uint8), (1, 3), mode='bicubic')",
        "uint8",
        [[[[173, 89, 5]]]],
    ),
    (
        f"F.interpolate({ROW}, (1, 3), mode='bicubic')",
        "uint8",
        [[[[171, 21, 152]]]],
    ),
    # infinities stay with their neighbours
    (
        "F.interpolate(tensor([[[inf, 1.0, 2.0]]]), 6, mode='linear').isfinite()",
        "bool",
        [[[False, False, False, True, True, True]]],
    ),
    ("F.pad(torch.arange(3), (1, 1), value=2.7)", "int64", [2, 0, 1, 2, 2]),
    ("F.pad(tensor([[1, 2, 3]]), (2, -1), 'reflect')", "int64", [[3, 2, 1, 2]]),
    # places that are no numbers
    (f"F.grid_sample({IMAGE}, {NAN_GRID}, align_corners=True)", "float32", [[[[numpy.nan] * 2]]]),
    (
        f"F.grid_sample({IMAGE}, {NAN_GRID}, 'bilinear', 'border', True)",
        "float32",
        [[[[1.5, 3.5]]]],
    ),
    (
        f"F.grid_sample({IMAGE}, {NAN_GRID}, 'nearest', 'reflection', True)",
        "float32",
        [[[[0, 0]]]],
    ),
    (
        f"F.grid_sample({IMAGE}[None], {NAN_POINTS}, 'bilinear', 'zeros', True)",
        "float32",
        [[[[[0]]]]],
    ),
    (
        f"F.grid_sample({IMAGE}[None], {NAN_POINTS}, 'bilinear', 'border', True)",
        "float32",
        [[[[[3.5]]]]],
    ),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


def test_a_result_of_width_1_has_a_row_for_each_row():
    # PyTorch repeats the first
    rows = F.interpolate(
        jaxgrad.arange(12.0).view(1, 1, 4, 3), (2, 1), mode="bilinear", antialias=True
    )
    numpy.testing.assert_allclose(rows.flatten().tolist(), [22 / 7, 55 / 7], 1e-6)
    count("answers")


@pytest.mark.slow
@pytest.mark.parametrize("shapes", [((0, 2, 3, 3), (0, 2, 2, 2)), ((1, 0, 3, 3), (1, 2, 2, 2))])
def test_grid_sample_of_empty_batches(shapes):
    image, grid = (jaxgrad.zeros(shape, requires_grad=True) for shape in shapes)
    sampled = F.grid_sample(image, grid, align_corners=False)
    assert sampled.shape == (*shapes[0][:2], 2, 2)
    sampled.sum().backward()
    assert image.grad.shape == image.shape and grid.grad.shape == grid.shape
    assert F.interpolate(jaxgrad.zeros(0, 2, 3), 5).shape == (0, 2, 5)
    count("answers")


def test_gradients_of_resampling_need_no_scatter():
    for call in (
        lambda x: ops.upsample_bicubic2d(x, (7, 2), False),
        lambda x: ops._upsample_nearest_exact2d(x, (7, 2)),
        lambda x: ops.reflection_pad2d(x, (1, 2, 1, 0)),
    ):
        gradient = jax.make_jaxpr(jax.grad(lambda x, call=call: call(x).sum()))
        names = set(primitives(gradient(jnp.ones((1, 1, 4, 4))).jaxpr))
        assert not any(name.startswith("scatter") for name in names), names
        count("derivatives")


@pytest.mark.slow
def test_second_derivatives_of_grid_sample():
    # PyTorch has none
    draw = numpy.random.RandomState(0).uniform
    image, grid = draw(-1, 1, (1, 2, 3, 4)), draw(-0.9, 0.9, (1, 2, 2, 2))
    grads = draw(-1, 1, (1, 2, 2, 2))
    with jax.enable_x64(True):
        for modes in ((0, 0, False), (2, 2, True), (0, 1, True)):
            check_grads(
                lambda *arrays, m=modes: ops.library.find("grid_sampler_2d_backward")(*arrays, *m),
                (grads, image, grid),
                order=1,
            )
            count("derivatives")


@pytest.mark.slow
def test_cudnn_names_of_grid_sampling_are_the_operators():
    image, grid = jaxgrad.rand(1, 2, 3, 4), jaxgrad.rand(1, 2, 2, 2)
    theta = jaxgrad.rand(2, 2, 3)
    pairs = [
        (ops.cudnn_grid_sampler(image, grid), F.grid_sample(image, grid, align_corners=True)),
        (
            jaxgrad.grid_sampler(image, grid, 1, 2, False),
            ops.grid_sampler_2d(image, grid, 1, 2, False),
        ),
        (ops.grid_sampler_2d(image, grid, 0, 1), ops.grid_sampler_2d(image, grid, 0, 1, True)),
        (
            ops.cudnn_affine_grid_generator(theta, 2, 1, 3, 4),
            F.affine_grid(theta, (2, 1, 3, 4), align_corners=True),
        ),
    ]
    for result, expected in pairs:
        assert result.tolist() == expected.tolist()
        count("answers")
