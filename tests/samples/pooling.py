"""Pooling. Values are far apart, but for ties, which are kinks."""

from samples import Int, S, T, samples_of

TIES = T(values=[[[1.0, 2.0, 2.0], [2.0, 1.0, 2.0], [2.0, 2.0, 1.0]]])

CORNERS, APART = Int(values=[[[1, 1], [4, 8]]]), Int(values=[[[1, 0], [4, 8]]])
IN_VOLUME = Int(values=[[[[1, 1], [4, 8]]]])
SAMPLES_2D = T(2, 1, 2, low=0, high=1, constant=True)
SAMPLES_OF_TWO = T(1, 2, 2, low=0, high=1, constant=True)
SAMPLES_3D = T(1, 2, 3, low=0, high=1, constant=True)
REGIONS = T(
    values=[[0.0, 0.0, 0.0, 7.0, 6.0], [1.0, 3.0, 1.0, 9.0, 9.0], [0.0, 2.0, 2.0, 3.0, 8.0]],
    constant=True,
)

SAMPLES = [
    S("ops.max_pool2d_with_indices", T(2, 2, 3, 4), 2),
    S("ops.max_pool2d_with_indices", T(1, 5, 4), (3, 2), (2, 1), (1, 0), (1, 2), True),
    S("ops.max_pool2d_with_indices", T(1, 4, 4), 3, 1, 1),
    S("ops.max_pool2d_with_indices", T(0, 1, 2, 2), 2),
    S("ops.max_pool2d_with_indices", TIES, 2, 1, kink=True),
    S("ops.max_pool3d_with_indices", T(1, 2, 3, 2, 4), (1, 2, 2)),
    S("ops.max_pool3d_with_indices", T(1, 3, 3, 2), (2, 3, 1), 2, (1, 1, 0), (2, 1, 1), True),
    S("ops.avg_pool2d", T(2, 2, 3, 4), 2),
    S("ops.avg_pool2d", T(1, 5, 4), (3, 2), (2, 1), (1, 1), True, False),
    S("ops.avg_pool2d", T(1, 5, 4), 3, 2, 1, True),
    S("ops.avg_pool2d", T(1, 5, 4), 2, 3, 0, divisor_override=3),
    S("ops.avg_pool3d", T(1, 2, 3, 2, 4), (1, 2, 2)),
    S("ops.avg_pool3d", T(1, 3, 3, 2), (2, 3, 1), 2, (1, 1, 0), True, False, 5),
    *samples_of(
        "ops.max_pool2d_with_indices_backward",
        T(1, 2, 2),
        T(1, 3, 3),
        (2, 2),
        (1, 1),
        (0, 0),
        (1, 1),
        False,
        Int(values=[[[1, 1], [4, 8]]]),
    ),
    *samples_of(
        "ops.max_pool3d_with_indices_backward",
        T(1, 1, 2, 2),
        T(1, 1, 3, 3),
        (1, 2, 2),
        (1, 1, 1),
        (0, 0, 0),
        (1, 1, 1),
        False,
        Int(values=[[[[1, 1], [4, 8]]]]),
    ),
    S(
        "ops.avg_pool2d_backward",
        T(1, 2, 2),
        T(1, 3, 3),
        (2, 2),
        (2, 2),
        (1, 1),
        False,
        False,
        None,
    ),
    S("ops.avg_pool2d_backward", T(1, 2, 2), T(1, 3, 4), (2, 3), (1, 1), (0, 0), False, True, 5),
    S("ops.avg_pool2d_backward", T(1, 3, 3), T(1, 4, 4), (3, 3), (2, 2), (1, 1), True, False, None),
    S(
        "ops.avg_pool3d_backward",
        *(T(1, 1, 3, 3), T(1, 1, 4, 4), (1, 3, 3), (1, 2, 2), (0, 1, 1), True, False, None),
    ),
    S(
        "ops.avg_pool3d_backward",
        T(1, 1, 2, 2),
        T(1, 1, 3, 4),
        (1, 2, 3),
        (1, 1, 1),
        (0, 0, 0),
        False,
        True,
        None,
    ),
    # to a given size
    S("ops._adaptive_avg_pool2d", T(1, 2, 5, 4), (3, 2)),
    S("ops._adaptive_avg_pool2d", T(2, 3, 2), (5, 1)),
    S("ops._adaptive_avg_pool3d", T(1, 1, 4, 3, 2), (2, 2, 3)),
    S("ops._adaptive_avg_pool3d", T(2, 2, 3, 2), (1, 1, 1)),
    S("ops._adaptive_avg_pool2d_backward", T(1, 2, 3, 2), T(1, 2, 5, 4)),
    S("ops._adaptive_avg_pool2d_backward", T(1, 4, 1), T(1, 2, 2)),
    S("ops._adaptive_avg_pool3d_backward", T(1, 2, 2, 1), T(1, 3, 4, 2)),
    S("ops.adaptive_max_pool2d", T(1, 2, 5, 4), (3, 2)),
    S("ops.adaptive_max_pool2d", T(2, 3, 2), (5, 1)),
    S("ops.adaptive_max_pool2d", TIES, 2, kink=True),
    S("ops.adaptive_max_pool3d", T(1, 1, 4, 3, 2), (2, 2, 3)),
    *samples_of("ops.adaptive_max_pool2d_backward", T(1, 2, 2), T(1, 3, 3), CORNERS),
    *samples_of("ops.adaptive_max_pool3d_backward", T(1, 1, 2, 2), T(1, 1, 3, 3), IN_VOLUME),
    S("ops.fractional_max_pool2d", T(2, 1, 5, 4), (2, 1), (3, 3), SAMPLES_2D),
    S("ops.fractional_max_pool2d", T(2, 5, 4), (2, 2), (1, 3), SAMPLES_OF_TWO),
    S("ops.fractional_max_pool3d", T(1, 2, 4, 3, 5), (2, 1, 2), (2, 2, 3), SAMPLES_3D),
    *samples_of(
        "ops.fractional_max_pool2d_backward", T(1, 2, 2), T(1, 3, 3), (2, 2), (2, 2), CORNERS
    ),
    *samples_of(
        "ops.fractional_max_pool3d_backward",
        T(1, 1, 2, 2),
        T(1, 1, 3, 3),
        (1, 2, 2),
        (1, 2, 2),
        IN_VOLUME,
    ),
    # the inverse of max pooling
    S("ops.max_unpool2d", T(1, 2, 2), APART, (3, 3)),
    S("ops.max_unpool2d", T(2, 1, 1, 2), Int(values=[[[[3, 0]]], [[[1, 2]]]]), (2, 2)),
    S("ops.max_unpool3d", T(1, 1, 2, 2), Int(values=[[[[1, 0], [4, 7]]]]), (2, 2, 2), 1, 0),
    S("ops.max_unpool2d_backward", T(1, 3, 3), T(1, 2, 2), CORNERS, (3, 3)),
    # of regions
    S("ops.RoiPooling2d_forward", T(2, 2, 4, 4), REGIONS, 2, 3, 0.5),
    # composed of these
    S("max_pool1d", T(2, 5), 2),
    S("nn.functional.max_pool1d", T(1, 2, 6), 3, 2, 1, 1, True, return_indices=True),
    S("max_pool1d_with_indices", T(2, 5), 2, 1),
    S("max_pool2d", T(1, 3, 4), (3, 2), 1),
    S("max_pool3d", T(1, 2, 3, 2), (1, 2, 2), 1),
    S("avg_pool1d", T(1, 2, 5), 2, 1, 1, True, False),
    S("adaptive_avg_pool1d", T(2, 5), 3),
    S("adaptive_max_pool1d", T(2, 5), 3),
    *samples_of("nn.functional.adaptive_avg_pool2d ops.adaptive_avg_pool2d", T(1, 3, 4), (1, 1)),
    S("nn.functional.adaptive_avg_pool2d", T(1, 3, 4), (None, 3)),
    *samples_of(
        "nn.functional.adaptive_avg_pool3d ops.adaptive_avg_pool3d", T(1, 2, 3, 2), (1, 1, 1)
    ),
    S("nn.functional.adaptive_avg_pool3d", T(1, 1, 2, 3, 2), 2),
    *samples_of("nn.functional.lp_pool1d", T(2, 5, low=0.1), 3, 2, 1),
    *samples_of("nn.functional.lp_pool2d", T(1, 3, 4), 2.0, (2, 3), ceil_mode=True),
    *samples_of("nn.functional.lp_pool2d", T(1, 3, 4), float("inf"), 2),
    *samples_of("nn.functional.lp_pool3d", T(1, 2, 3, 2), 2, (1, 2, 2)),
    S("nn.functional.max_unpool1d", T(1, 2, 2), Int(values=[[[1, 2], [0, 4]]]), 2, output_size=[5]),
    S("nn.functional.max_unpool2d", T(1, 1, 2), Int(values=[[[3, 2]]]), (3, 1), 3, (1, 0)),
    S("nn.functional.max_unpool3d", T(1, 1, 1, 2), Int(values=[[[[3, 6]]]]), 2),
]
