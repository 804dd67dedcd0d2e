"""Resampling, padding, places of grids, and shuffles."""

from samples import Int, S, T, samples_of

N1, N2, N3 = (2, 1, 3), (1, 2, 2, 3), (1, 1, 2, 3, 2)
SCALES = 1.1, 2.6, 1.9

NEAREST = [
    *samples_of("ops.upsample_nearest1d ops._upsample_nearest_exact1d", T(*N1), [5]),
    *samples_of("ops.upsample_nearest2d ops._upsample_nearest_exact2d", T(*N2), [5, 2]),
    *samples_of("ops.upsample_nearest3d ops._upsample_nearest_exact3d", T(*N3), [3, 2, 5]),
    *samples_of("ops.upsample_nearest2d ops._upsample_nearest_exact2d", T(*N2), [5, 7], 2.7, 2.3),
    *samples_of(
        "ops.upsample_nearest3d ops._upsample_nearest_exact3d",
        *(T(*N3), [3, 5, 3], *SCALES),
    ),
    S("ops.upsample_nearest2d_backward", T(1, 2, 5, 2), [5, 2], N2),
    S("ops._upsample_nearest_exact2d_backward", T(1, 2, 5, 2), [5, 2], N2),
    *samples_of(
        "ops.upsample_nearest2d_backward ops._upsample_nearest_exact2d_backward",
        *(T(1, 2, 5, 7), [5, 7], N2, 2.7, 2.3),
    ),
    *samples_of(
        "ops.upsample_nearest1d_backward ops._upsample_nearest_exact1d_backward",
        *(T(2, 1, 5), [5], N1),
    ),
    *samples_of(
        "ops.upsample_nearest3d_backward ops._upsample_nearest_exact3d_backward",
        *(T(1, 1, 3, 2, 5), [3, 2, 5], N3),
    ),
    *samples_of(
        "ops.upsample_nearest3d_backward ops._upsample_nearest_exact3d_backward",
        *(T(1, 1, 3, 5, 3), [3, 5, 3], N3, *SCALES),
    ),
]

LINEAR_2D = "ops.upsample_bilinear2d ops.upsample_bicubic2d"
SMOOTH = "ops._upsample_bilinear2d_aa ops._upsample_bicubic2d_aa"
BACKWARD_2D = " ".join(f"{name}_backward" for name in f"{LINEAR_2D} {SMOOTH}".split())

LINEAR = [
    S("ops.upsample_linear1d", T(*N1), [5], False),
    S("ops.upsample_linear1d", T(*N1), [5], True),
    S("ops.upsample_linear1d", T(*N1), [1], True),
    S("ops.upsample_linear1d", T(*N1), [7], False, 2.4),
    S("ops.upsample_trilinear3d", T(*N3), [3, 2, 5], False),
    S("ops.upsample_trilinear3d", T(*N3), [3, 2, 1], True),
    S("ops.upsample_trilinear3d", T(*N3), [3, 5, 3], False, *SCALES),
    *samples_of(f"{LINEAR_2D} {SMOOTH}", T(*N2), [5, 2], False),
    *samples_of(f"{LINEAR_2D} {SMOOTH}", T(1, 1, 5, 3), [2, 4], True),
    *samples_of(f"{LINEAR_2D} {SMOOTH}", T(*N2), [4, 7], False, 2.2, 2.5),
    # more taps than one expression sums
    *samples_of(SMOOTH, T(1, 1, 12, 2), [2, 2], False),
    S("ops._upsample_lanczos2d_aa", T(1, 1, 5, 3), [2, 4], False, 0.45, 1.5),
    S("ops.upsample_bilinear2d", T(1, 1, 2, 1), [12, 3], False),
    *samples_of(BACKWARD_2D, T(1, 2, 5, 2), [5, 2], N2, False),
    *samples_of(BACKWARD_2D, T(1, 2, 4, 7), [4, 7], N2, False, 2.2, 2.5),
    S("ops._upsample_lanczos2d_aa_backward", T(1, 1, 2, 4), [2, 4], [1, 1, 5, 3], False),
    S("ops._upsample_lanczos2d_aa_backward", T(1, 1, 2, 4), [2, 4], [1, 1, 5, 3], False, 0.45, 1.5),
    S("ops.upsample_linear1d_backward", T(2, 1, 5), [5], N1, True),
    S("ops.upsample_trilinear3d_backward", T(1, 1, 3, 2, 5), [3, 2, 5], N3, False),
    S("ops.upsample_trilinear3d_backward", T(1, 1, 3, 5, 3), [3, 5, 3], N3, False, *SCALES),
]

INTERPOLATE = "nn.functional.interpolate"
INTERPOLATIONS = [
    S(INTERPOLATE, T(*N2), scale_factor=2.3),
    S(INTERPOLATE, T(*N2), (3, 5), mode="bilinear"),
    S(INTERPOLATE, T(*N2), scale_factor=(1.7, 2.3), mode="bicubic", align_corners=True),
    S(INTERPOLATE, T(*N1), scale_factor=2.6, mode="linear", recompute_scale_factor=True),
    S(INTERPOLATE, T(*N3), 3, mode="trilinear"),
    S(INTERPOLATE, T(*N2), 2, mode="bilinear", antialias=True),
]

PADS = [
    S("constant_pad_nd", T(2, 3), [1, 2, 0, -1], 7.5, complex=True),
    S("constant_pad_nd", T(3), [-1, 1]),
    S("constant_pad_nd", Int(2, 2), [1, 0], 2.5),
    S("ops.reflection_pad1d", T(2, 3), [2, 1], complex=True),
    S("ops.reflection_pad1d", T(1, 2, 4), [-1, 3]),
    S("ops.reflection_pad2d", T(1, 1, 2, 3), [2, 1, 0, 1]),
    S("ops.reflection_pad3d", T(1, 1, 2, 2, 3), [2, 1, 0, 1, 1, -1]),
    S("ops.replication_pad1d", T(2, 3), [2, 1], complex=True),
    S("ops.replication_pad1d", T(2, 1, 4), [-2, 3]),
    S("ops.replication_pad2d", T(1, 1, 2, 3), [3, 1, 0, 4]),
    S("ops.replication_pad3d", T(1, 1, 2, 1, 3), [2, 1, 0, 1, 1, -1]),
    *samples_of(
        "ops.reflection_pad1d_backward ops.replication_pad1d_backward",
        *(T(2, 6), T(2, 3, constant=True), [2, 1]),
        complex=True,
    ),
    *samples_of(
        "ops.reflection_pad2d_backward ops.replication_pad2d_backward",
        *(T(1, 1, 3, 6), T(1, 1, 2, 3, constant=True), [2, 1, 0, 1]),
    ),
    *samples_of(
        "ops.reflection_pad3d_backward ops.replication_pad3d_backward",
        *(T(1, 1, 2, 3, 6), T(1, 1, 2, 2, 3, constant=True), [2, 1, 0, 1, 1, -1]),
    ),
    S("nn.functional.pad", T(1, 2, 3), [1, 2], complex=True),
    S("nn.functional.pad", T(1, 2, 3), [1, 2], "reflect"),
    S("nn.functional.pad", T(1, 2, 2, 3), [1, 2, 1, 1], mode="replicate"),
]

# places inside and outside of the image
IMAGE, PLACES = T(1, 2, 3, 2), T(1, 2, 2, 2, low=-1.6, high=1.6)
VOLUME, POINTS = T(1, 1, 2, 3, 2), T(1, 1, 1, 3, 3, low=-1.6, high=1.6)
# reflected several times
FAR = T(1, 1, 4, 2, low=-3.2, high=3.2)
# on pixels, at and beyond the border
KINKS = T(values=[[[[-1, -1], [1, 1], [0, 1], [-3, 0.25]]]])

GRIDS = [
    S("grid_sampler_2d", IMAGE, PLACES, 0, 0, False),
    S("grid_sampler_2d", IMAGE, PLACES, 2, 0, True),
    S("grid_sampler_2d", IMAGE, PLACES, 0, 1, True),
    S("grid_sampler_2d", T(1, 1, 4, 3), FAR, 0, 2, False),
    S("grid_sampler_2d", T(1, 1, 4, 3), FAR, 0, 2, True),
    S("grid_sampler_2d", IMAGE, PLACES, 2, 1, False),
    S("grid_sampler_2d", IMAGE, PLACES, 2, 2, True),
    S("grid_sampler_2d", IMAGE, PLACES, 1, 0, False),
    S("grid_sampler_2d", IMAGE, PLACES, 1, 2, True),
    S("grid_sampler_2d", IMAGE, KINKS, 0, 0, True, kink=True),
    S("grid_sampler_2d", IMAGE, KINKS, 0, 1, True, kink=True),
    S("grid_sampler_2d", IMAGE, KINKS, 0, 2, True, kink=True),
    S("grid_sampler_2d", IMAGE, KINKS, 1, 1, True, kink=True),
    S("grid_sampler_3d", VOLUME, POINTS, 0, 0, False),
    S("grid_sampler_3d", VOLUME, POINTS, 0, 1, False),
    S("grid_sampler_3d", VOLUME, POINTS, 0, 2, True),
    S("grid_sampler_3d", VOLUME, POINTS, 1, 0, True),
    S("nn.functional.grid_sample", IMAGE, PLACES, "bicubic", "border", True),
    S("nn.functional.grid_sample", VOLUME, POINTS, align_corners=False),
    S("affine_grid_generator", T(2, 2, 3), (2, 1, 2, 3), False),
    S("affine_grid_generator", T(1, 2, 3), (1, 1, 1, 3), True),
    S("affine_grid_generator", T(1, 3, 4), (1, 1, 2, 3, 2), True),
    S("nn.functional.affine_grid", T(1, 2, 3), (1, 1, 2, 3), align_corners=False),
]

SHUFFLES = [
    S("pixel_shuffle", T(1, 4, 2, 1), 2, complex=True),
    S("nn.functional.pixel_shuffle", T(9, 1, 2), 3),
    S("pixel_unshuffle", T(1, 1, 2, 4), 2, complex=True),
    S("nn.functional.pixel_unshuffle", Int(1, 2, 2), 2),
    S("channel_shuffle", T(1, 6, 2), 3, complex=True),
    S("nn.functional.channel_shuffle", T(2, 4, 1, 2), 2),
    S("native_channel_shuffle", T(1, 6, 2, constant=True), 3),
]

SAMPLES = NEAREST + LINEAR + INTERPOLATIONS + PADS + GRIDS + SHUFFLES
