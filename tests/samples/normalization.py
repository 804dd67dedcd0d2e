"""Normalization of features, groups of channels and batches, and of weights."""

from samples import S, T, samples_of

MEAN, VARIANCE = T(2, constant=True), T(2, low=0.5, constant=True)
ALL = [True, True, True]
# three samples whose channels have means 1 and 3, and with eps 1/3 deviations 1 and sqrt(3)
BATCH, THIRD = T(values=[[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]]), 1 / 3
CENTER, INVERSE = T(values=[1.0, 3.0], constant=True), T(values=[1.0, 3**-0.5], constant=True)
CENTERS = T(values=[[1.0], [3.0]], constant=True)
INVERSES = T(values=[[1.0], [3**-0.5]], constant=True)

SAMPLES = [
    S("nn.functional.batch_norm", T(3, 2, 2), None, None, T(2), T(2), True),
    S("nn.functional.batch_norm", T(3, 2, 2), MEAN, VARIANCE, T(2), T(2)),
    S("nn.functional.batch_norm", T(3, 2), None, None, training=True, eps=0.1),
    S("nn.functional.batch_norm", T(3, 2, 1, 2), MEAN, VARIANCE, None, T(2), eps=0.1),
    S("nn.functional.batch_norm", T(2, 2, 1, 1, 2), None, None, T(2), training=True),
    S("batch_norm", T(3, 2), T(2), T(2), None, None, True, 0.2, 0.1, True),
    S("native_batch_norm", T(3, 2), T(2), T(2), None, None, True, 0.1, 0.1),
    S("native_batch_norm", T(3, 2), T(2), None, MEAN, VARIANCE, False, 0.1, 0.1),
    # the saved statistics count as functions of the input, so no finite differences
    S(
        *("ops.native_batch_norm_backward", T(3, 2), BATCH, T(2), None, None, CENTER, INVERSE),
        *(True, THIRD, ALL),
        kink=True,
    ),
    S(
        *("ops.native_batch_norm_backward", T(3, 2, 2), T(3, 2, 2), T(2), MEAN, VARIANCE),
        *(None, None, False, 0.1, ALL),
    ),
    S("nn.functional.layer_norm", T(2, 3, 4), (4,), T(4), T(4)),
    S("nn.functional.layer_norm", T(2, 2, 3), (2, 3), eps=0.1),
    S("nn.functional.layer_norm", T(3), (3,), T(3)),
    S("nn.functional.layer_norm", T(0, 3), (3,), T(3), T(3), kink=True),
    S("layer_norm", T(2, 3), [3], None, T(3)),
    S("native_layer_norm", T(2, 3), [3], T(3), T(3), 0.1),
    S("native_layer_norm", T(2, 1, 3), [1, 3], None, None, 0.1),
    S(
        *("ops.native_layer_norm_backward", T(2, 3), T(values=[[0.0, 1.0, 2.0], [1.0, 3.0, 5.0]])),
        *([3], CENTERS, INVERSES, T(3), T(3), ALL),
        kink=True,
    ),
    S("nn.functional.rms_norm", T(2, 3), (3,), T(3), complex=True),
    S("nn.functional.rms_norm", T(2, 2, 3), (2, 3), eps=0.1),
    S("rms_norm", T(3), [3], None, 0.1),
    S("ops._fused_rms_norm", T(2, 3), [3], T(3), 0.1),
    S("nn.functional.group_norm", T(2, 4, 3), 2, T(4), T(4)),
    S("nn.functional.group_norm", T(3, 2), 1, eps=0.1),
    S("nn.functional.group_norm", T(0, 4, 2), 2, T(4), kink=True),
    S("group_norm", T(1, 2, 2, 2), 2, T(2), T(2)),
    S("native_group_norm", T(2, 4, 3), T(4), T(4), 2, 4, 3, 2, 0.1),
    S("native_group_norm", T(2, 2), None, None, 2, 2, 1, 1, 0.1),
    S("nn.functional.instance_norm", T(2, 2, 3), None, None, T(2), T(2)),
    S("nn.functional.instance_norm", T(2, 2, 3)),
    S("nn.functional.instance_norm", T(2, 2, 1, 2), MEAN, VARIANCE, T(2), use_input_stats=False),
    S("instance_norm", T(1, 2, 3), T(2), T(2), None, None, True, 0.1, 0.1, True),
    S("nn.functional.local_response_norm", T(2, 3, 2), 2, 0.5),
    S("nn.functional.local_response_norm", T(1, 4, 2, 2), 3, 0.5, beta=0.5, k=2.0),
    *samples_of("_weight_norm ops._weight_norm_interface", T(2, 3, 2), T(2, 1, 1), 0),
    S("_weight_norm", T(2, 3), T(1, 3), 1),
    S("_weight_norm", T(2, 3), T(1), -1),
    S("_weight_norm", T(2, 3, 2), T(1, 3, 1), 1),
]
