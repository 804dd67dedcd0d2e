"""Losses. The number after the tensors of an `ops.` is the reduction: 0 none, 1 mean, 2 sum."""

from samples import Int, S, T, samples_of

INF = float("inf")
REDUCTIONS = ("none", "mean", "sum")
DISTANCES = "ops.mse_loss ops.l1_loss ops.smooth_l1_loss ops.kl_div"
PAIRS = f"{DISTANCES} ops.binary_cross_entropy_with_logits"
CLASSES = "nn.functional.nll_loss nn.functional.cross_entropy"
EDGES = [0.0, 1.0, -1.0, 2.0]
TWO = T(values=2.0, constant=True)
WEIGHT = T(5, low=0.2, high=2, constant=True)


WEIGHTS = T(4, low=0.2, high=2, constant=True)
LABELS = Int(values=[[1, 2, 0, -1], [0, -1, 3, 1]])
SPEECH = T(5, 2, 3, form="normalized")


def reductions(names, *args, **kwargs):
    """The same sample with each reduction by its name."""
    return [s for r in REDUCTIONS for s in samples_of(names, *args, reduction=r, **kwargs)]


def positive(*shape):
    return T(*shape, low=0.1, high=0.9)


SAMPLES = [
    # pairs of numbers
    *reductions("nn.functional.mse_loss", T(2, 3), T(2, 3)),
    *reductions("nn.functional.l1_loss", T(2, 3), T(2, 3)),
    *reductions("nn.functional.smooth_l1_loss", T(2, 3), T(2, 3), beta=1.1),
    *samples_of("ops.kl_div", T(2, 3), positive(2, 3), 1),
    *samples_of("ops.kl_div", T(2, 3), T(2, 3), 1, log_target=True),
    S("nn.functional.kl_div", T(2, 3), T(2, 3), reduction="sum", log_target=True),
    *reductions("nn.functional.binary_cross_entropy_with_logits", T(2, 3), positive(2, 3)),
    S("nn.functional.kl_div", T(2, 3), positive(2, 3), reduction="batchmean"),
    *samples_of(DISTANCES, T(2, 3), positive(3), reduction=2),
    *samples_of(DISTANCES, T(2, 1), positive(3), reduction=0),
    S("ops.kl_div", T(2, 3), positive(3), reduction=1),
    S("ops.kl_div", T(3), positive(2, 3), reduction=1),
    S("ops.kl_div", T(2, 3), T(3), 1, log_target=True),
    *samples_of(PAIRS, T(), positive(), reduction=2),
    *samples_of(PAIRS, T(0, 3), positive(0, 3), reduction=2),
    *samples_of(PAIRS, T(0, 3), positive(0, 3), reduction=1, kink=True),
    *samples_of(DISTANCES, T(2), positive(2), 2),
    *samples_of("ops.mse_loss ops.l1_loss ops.smooth_l1_loss", T(2), Int(2), reduction=2),
    *samples_of("nn.functional.mse_loss nn.functional.l1_loss", input=T(2), target=T(2)),
    *reductions("nn.functional.mse_loss", T(2), T(2), weight=positive(2)),
    S("nn.functional.l1_loss", T(2), T(2), weight=positive(2)),
    S("nn.functional.l1_loss", T(2, 3), T(2, 3), complex=True),
    S("nn.functional.l1_loss", T(values=EDGES), T(values=[0.0, 1.0, 0.0, 0.0]), kink=True),
    S("nn.functional.smooth_l1_loss", T(values=EDGES), T(values=[0.0] * 4), kink=True),
    S("nn.functional.smooth_l1_loss", T(2, 3), T(2, 3), beta=0),
    S("nn.functional.smooth_l1_loss", T(values=EDGES), T(values=[0.0] * 4), beta=0, kink=True),
    S("ops.smooth_l1_loss", T(2, 3), T(2, 3), 1, 0.0),
    S("nn.functional.kl_div", T(values=[-1.0]), T(values=[0.0]), reduction="sum", kink=True),
    S("ops.mse_loss_backward", T(), T(2, 3), T(2, 3), 1),
    S("ops.mse_loss_backward", T(2, 3), T(2, 3), T(2, 3), 0),
    S("ops.mse_loss_backward", T(), T(2, 3), T(2, 3), 2),
    S("ops.smooth_l1_loss_backward", T(), T(2, 3), T(2, 3), 1, 1.1),
    S("ops.smooth_l1_loss_backward", T(2, 3), T(2, 3), T(2, 3), 0, 1.1),
    S("ops.smooth_l1_loss_backward", T(), T(2, 3), T(2, 3), 2, 1.1),
    S("ops.smooth_l1_loss_backward", T(4), T(values=EDGES), T(values=[0.0] * 4), 0, 1.0, kink=True),
    *reductions(
        "nn.functional.binary_cross_entropy_with_logits",
        T(2, 3),
        positive(2, 3),
        weight=T(3, low=0.2, constant=True),
        pos_weight=T(3, low=0.2, constant=True),
    ),
    S(
        "nn.functional.binary_cross_entropy_with_logits",
        T(values=[-800.0, 0.0, 800.0]),
        T(values=[0.0, 1.0, 0.5]),
        kink=True,
    ),
    *reductions("nn.functional.binary_cross_entropy", positive(2, 3), positive(2, 3)),
    S("nn.functional.binary_cross_entropy", positive(2, 3), positive(2, 3), T(3, constant=True)),
    S(
        "nn.functional.binary_cross_entropy",
        T(values=[0.0, 1.0, 0.0, 1.0], constant=True),
        T(values=[0.0, 1.0, 0.7, 0.2], constant=True),
    ),
    S("ops.binary_cross_entropy_backward", T(), positive(2, 3), positive(2, 3), None, 1),
    *reductions("nn.functional.huber_loss", T(2, 3), T(2, 3), delta=0.7),
    S("nn.functional.huber_loss", T(values=EDGES), T(values=[0.0] * 4), "none", kink=True),
    S("nn.functional.huber_loss", T(2), T(2), weight=positive(2)),
    S("ops.huber_loss_backward", T(), T(2, 3), T(2, 3), 1, 0.7),
    *reductions("nn.functional.soft_margin_loss", T(2, 3), Int(values=[[1, -1, 1], [-1, 1, 1]])),
    S("ops.soft_margin_loss_backward", T(), T(2, 3), T(2, 3, constant=True), 1),
    *samples_of("ops.l1_loss_backward ops.kl_div_backward", T(), T(2, 3), positive(2, 3), 1),
    *samples_of("ops.l1_loss_backward ops.kl_div_backward", T(2, 3), T(2, 3), positive(2, 3), 0),
    S("ops.l1_loss_backward", T(), T(2, 3), T(2, 3), 1, complex="only"),
    # margins
    *reductions("nn.functional.multi_margin_loss", T(3, 4), Int(3, high=4)),
    S("nn.functional.multi_margin_loss", T(3, 4), Int(3, high=4), 2, 1.3, WEIGHTS),
    S("nn.functional.multi_margin_loss", T(4), Int(high=4), p=2, reduction="none"),
    S("nn.functional.multi_margin_loss", T(values=[[1.0, 2.0]]), Int(values=[1]), kink=True),
    S("ops.multi_margin_loss_backward", T(), T(3, 4), Int(3, high=4), 2, 1.3, WEIGHTS, 1),
    S("ops.multi_margin_loss_backward", T(3), T(3, 4), Int(3, high=4), 1, 1.3, None, 0),
    *reductions("nn.functional.multilabel_margin_loss", T(2, 4), LABELS),
    S("ops.multilabel_margin_loss_forward", T(4), Int(values=[3, 3, -1, 1]), 1),
    S(
        "ops.multilabel_margin_loss_backward",
        T(2, constant=True),
        T(2, 4, constant=True),
        LABELS,
        0,
        T(values=[[1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]], constant=True),
    ),
    S("nn.functional.multilabel_soft_margin_loss", T(2, 3), positive(2, 3), T(3, constant=True)),
    *samples_of("nn.functional.margin_ranking_loss", T(3), T(3), Int(values=[1, -1, 1]), 0.7),
    S("cosine_embedding_loss", T(3, 2), T(3, 2), Int(values=[1, -1, 1]), 0.2, 2),
    S("hinge_embedding_loss", T(3), Int(values=[1, -1, 1]), 0.7, 0),
    S("poisson_nll_loss", T(3), Int(values=[0, 1, 3]), True, True, 1e-8, 0),
    S("triplet_margin_loss", T(2, 3), T(2, 3), T(2, 3), swap=True),
    S("nn.functional.triplet_margin_with_distance_loss", T(2, 3), T(2, 3), T(2, 3)),
    # sequences of labels
    S("nn.functional.ctc_loss", SPEECH, Int(values=[[1, 1], [2, 1]]), [5, 5], [2, 2]),
    S(
        "nn.functional.ctc_loss",
        SPEECH,
        Int(values=[[1, 1], [2, 7]]),
        Int(values=[5, 4]),
        Int(values=[2, 1]),
        reduction="sum",
    ),
    S("nn.functional.ctc_loss", SPEECH, Int(values=[0, 1, 0]), [5, 3], [2, 1], 2, "none"),
    S("nn.functional.ctc_loss", T(3, 3, form="normalized"), Int(values=[1]), [3], [1]),
    S(
        "nn.functional.ctc_loss",
        SPEECH,
        Int(values=[[1, 1], [2, 1]]),
        [2, 5],
        [2, 0],
        reduction="none",
        zero_infinity=True,
    ),
    S("ops._ctc_loss", SPEECH, Int(values=[[1, 1], [2, 1]]), [5, 5], [2, 2]),
    S("ctc_loss", SPEECH, Int(values=[[2], [1]]), [5, 5], [1, 1], 0, 0),
    # classes
    *reductions(CLASSES, T(4, 5), Int(4, high=5)),
    *reductions(CLASSES, T(4, 5), Int(4, high=5), weight=WEIGHT),
    *samples_of(CLASSES, T(4, 5), Int(values=[1, -100, 4, -100]), weight=WEIGHT),
    *samples_of(CLASSES, T(4, 5), Int(values=[2, 0, 2, 4]), ignore_index=2, reduction="none"),
    *samples_of(CLASSES, T(2, 5, 3), Int(2, 3, high=5), weight=WEIGHT),
    *samples_of(CLASSES, T(2, 3, 2, 2), Int(2, 2, 2, high=3), ignore_index=0, reduction="sum"),
    *samples_of(CLASSES, T(1, 3, 2, 1, 2), Int(1, 2, 1, 2, high=3), reduction="none"),
    *samples_of(CLASSES, T(5), Int(high=5), weight=WEIGHT),
    *reductions(CLASSES, T(0, 3), Int(0, high=3), kink=True),
    *reductions(CLASSES, T(2, 3), Int(values=[-100, -100]), kink=True),
    *samples_of(CLASSES, T(3, 4), Int(3, high=4, dtype="uint8")),
    *samples_of(CLASSES, input=T(3, 4), target=Int(3, high=4)),
    *samples_of("ops.nll_loss ops.cross_entropy_loss", T(4, 5), Int(4, high=5)),
    *samples_of("ops.nll_loss ops.cross_entropy_loss", T(4, 5), Int(4, high=5), WEIGHT, 2, 1),
    *reductions("nn.functional.cross_entropy", T(4, 5), Int(4, high=5), label_smoothing=0.2),
    *reductions(
        "nn.functional.cross_entropy",
        T(4, 5),
        Int(values=[1, -100, 4, 0]),
        weight=WEIGHT,
        label_smoothing=0.2,
    ),
    *reductions("nn.functional.cross_entropy", T(2, 3), positive(2, 3)),
    *reductions(
        "nn.functional.cross_entropy",
        T(2, 5),
        positive(2, 5),
        weight=T(5, low=0.2, high=2),
        label_smoothing=0.2,
    ),
    S("nn.functional.cross_entropy", T(2, 3, 2), positive(2, 3, 2), label_smoothing=0.1),
    S("nn.functional.cross_entropy", T(3), positive(3)),
    S("nn.functional.cross_entropy", T(0, 3), positive(0, 3), kink=True),
    S("nn.functional.cross_entropy", T(values=[[-INF, 0.0, 1.0]]), Int(values=[1]), kink=True),
    S("nn.functional.cross_entropy", T(values=[[-INF, 0.0, 1.0]]), Int(values=[0]), kink=True),
    S("nn.functional.cross_entropy", T(values=[[1e4, 0.0, -1e4]]), Int(values=[0]), kink=True),
    S("nn.functional.cross_entropy", T(values=[[-INF, -INF]]), Int(values=[0]), kink=True),
    *samples_of("ops.nll_loss_forward", T(4, 5), Int(4, high=5), WEIGHT, 1, -100),
    *samples_of("ops.nll_loss_forward", T(4, 5), Int(4, high=5), None, 2, 3),
    *samples_of("ops.nll_loss_forward", T(4, 5), Int(4, high=5), WEIGHT, 0, -100),
    S("ops.nll_loss_forward", T(5), Int(high=5), None, 1, -100),
    *samples_of("ops.nll_loss2d_forward", T(2, 5, 2, 2), Int(2, 2, 2, high=5), WEIGHT, 1, -100),
    S("ops.nll_loss2d", T(2, 5, 2, 2), Int(2, 2, 2, high=5), WEIGHT, 0),
    S("ops.nll_loss2d", T(2, 3, 1, 2), Int(values=[[[0, 1]], [[2, 1]]]), None, 2, 1),
    S("ops.nll_loss_backward", T(4), T(4, 5), Int(4, high=5), WEIGHT, 0, -100, T(constant=True)),
    S("ops.nll_loss_backward", T(), T(4, 5), Int(4, high=5), WEIGHT, 2, 3, T(constant=True)),
    S(
        "ops.nll_loss_backward",
        T(),
        T(2, 3),
        Int(values=[1, 2]),
        None,
        1,
        0,
        T(values=2.0, constant=True),
    ),
    S(
        "ops.nll_loss2d_backward",
        T(2, 2, 2),
        T(2, 3, 2, 2),
        Int(2, 2, 2, high=3),
        None,
        0,
        -100,
        T(constant=True),
    ),
    S("nn.functional.one_hot", Int(2, 3, high=4), 5),
    S("nn.functional.one_hot", Int(values=[0, 2]), num_classes=3),
    S("nn.functional.one_hot", Int(values=[0, 2]), dynamic=True),
    S("nn.functional.one_hot", Int(high=3), 3),
    S("nn.functional.one_hot", Int(0), 3),
]
