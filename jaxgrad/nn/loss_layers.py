"""Loss layers: each calls a loss of `functional`, which documents its arguments and formula.

All but `CosineSimilarity` take `reduction`: "none" keeps the loss of each element (or sample),
"mean" and "sum" reduce to a tensor without dimensions. `size_average` and `reduce` are PyTorch's
deprecated spelling of it.
"""

from __future__ import annotations

from . import functional, losses
from .function_layer import FunctionLayer
from .module import Module

REDUCTION = {"size_average": None, "reduce": None, "reduction": "mean"}


class Loss(FunctionLayer, **REDUCTION):
    """A function of an input and targets, with `reduction`; its weights are buffers. A subclass of
    a program defines `forward`.
    """

    def __init__(self, *args, **kwargs):
        options = self._bind(args, kwargs)
        deprecated = options.get("size_average"), options.get("reduce")
        if deprecated != (None, None):
            number = functional._reduction(options["reduction"], *deprecated)
            reduction = list(functional._REDUCTIONS)[number]
            options |= {"size_average": None, "reduce": None, "reduction": reduction}
        super().__init__(**options)

    def _set_option(self, name, value):
        if name.endswith("weight"):
            self.register_buffer(name, value)
        else:
            super()._set_option(name, value)


class WeightedLoss(Loss, weight=None, **REDUCTION):
    """A loss of classes, which may have a weight for each."""


class MSELoss(Loss, function=functional.mse_loss, **REDUCTION):
    """Compute the mean squared error; see `functional.mse_loss`.

    >>> jaxgrad.nn.MSELoss()(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 4.0]))
    tensor(2.)
    """


class L1Loss(Loss, function=functional.l1_loss, **REDUCTION):
    """Compute the mean absolute error; see `functional.l1_loss`.

    >>> jaxgrad.nn.L1Loss()(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 4.0]))
    tensor(1.)
    """


class SmoothL1Loss(Loss, function=functional.smooth_l1_loss, **REDUCTION, beta=1.0):
    """Compute the error that is quadratic below `beta` and linear above; see
    `functional.smooth_l1_loss`.

    >>> loss = jaxgrad.nn.SmoothL1Loss(reduction="sum")
    >>> loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 4.0]))
    tensor(1.5000)
    """


class HuberLoss(Loss, function=losses.huber_loss, reduction="mean", delta=1.0):
    """Compute the Huber loss, `delta` times the smooth L1 loss; see `functional.huber_loss`.

    >>> loss = jaxgrad.nn.HuberLoss(reduction="sum")
    >>> loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 5.0]))
    tensor(2.5000)
    """


class KLDivLoss(Loss, function=functional.kl_div, **REDUCTION, log_target=False):
    """Compute the Kullback-Leibler divergence; see `functional.kl_div`.

    >>> half = jaxgrad.tensor([[0.5, 0.5]])
    >>> jaxgrad.nn.KLDivLoss(reduction="batchmean")(jaxgrad.tensor([[-1.0, -1.0]]), half)
    tensor(0.3069)
    """


class NLLLoss(
    WeightedLoss,
    function=functional.nll_loss,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
):
    """Compute the negative log-likelihood of class indices; see `functional.nll_loss`.

    >>> jaxgrad.nn.NLLLoss()(jaxgrad.tensor([[-1.0, -2.0], [-3.0, -4.0]]), jaxgrad.tensor([0, 1]))
    tensor(2.5000)
    """


class CrossEntropyLoss(
    WeightedLoss,
    function=functional.cross_entropy,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """Compute the cross entropy of logits and classes; see `functional.cross_entropy`.

    >>> jaxgrad.nn.CrossEntropyLoss()(jaxgrad.tensor([[0.0, 0.0]]), jaxgrad.tensor([1]))
    tensor(0.6931)
    """


class BCELoss(WeightedLoss, function=losses.binary_cross_entropy, weight=None, **REDUCTION):
    """Compute the binary cross entropy of probabilities; see `functional.binary_cross_entropy`.

    >>> jaxgrad.nn.BCELoss()(jaxgrad.tensor([0.5]), jaxgrad.tensor([1.0]))
    tensor(0.6931)
    """


class BCEWithLogitsLoss(
    Loss,
    function=functional.binary_cross_entropy_with_logits,
    weight=None,
    **REDUCTION,
    pos_weight=None,
):
    """Compute the binary cross entropy of logits; see
    `functional.binary_cross_entropy_with_logits`.

    >>> jaxgrad.nn.BCEWithLogitsLoss()(jaxgrad.tensor([0.0]), jaxgrad.tensor([1.0]))
    tensor(0.6931)
    """


class MarginRankingLoss(Loss, function=losses.margin_ranking_loss, margin=0, **REDUCTION):
    """Compute `max(0, margin - y * (x1 - x2))`; see `functional.margin_ranking_loss`.

    >>> one, two = jaxgrad.tensor([1.0]), jaxgrad.tensor([2.0])
    >>> jaxgrad.nn.MarginRankingLoss()(one, two, jaxgrad.tensor([1.0]))
    tensor(1.)
    """


class CosineEmbeddingLoss(Loss, function=losses.cosine_embedding_loss, margin=0, **REDUCTION):
    """Compute `1 - cos` for the label 1, `max(0, cos - margin)` for -1; see
    `functional.cosine_embedding_loss`.

    >>> x = jaxgrad.tensor([[3.0, 4.0]])
    >>> jaxgrad.nn.CosineEmbeddingLoss(margin=0.25)(x, x, jaxgrad.tensor([-1]))
    tensor(0.7500)
    """


class TripletMarginLoss(
    Loss,
    function=losses.triplet_margin_loss,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    **REDUCTION,
):
    """Compute `max(0, margin + d(anchor, positive) - d(anchor, negative))`; see
    `functional.triplet_margin_loss`.

    >>> x, y = jaxgrad.tensor([[0.0]]), jaxgrad.tensor([[3.0]])
    >>> jaxgrad.nn.TripletMarginLoss()(x, y, x)
    tensor(4.0000)
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        _check_margin("TripletMarginLoss", self.margin)


def _check_margin(layer, margin):
    if margin <= 0:
        raise ValueError(f"{layer}: expected margin to be greater than 0, got {margin} instead")


class TripletMarginWithDistanceLoss(Loss):
    """Compute the triplet loss of any distance; see `functional.triplet_margin_with_distance_loss`.

    distance_function: a function of two tensors or a module, `PairwiseDistance()` if it is None.
    Raises ValueError unless `margin` is positive.

    >>> x, y = jaxgrad.tensor([[0.0]]), jaxgrad.tensor([[3.0]])
    >>> jaxgrad.nn.TripletMarginWithDistanceLoss(margin=0.5)(x, y, x)
    tensor(3.5000)
    """

    def __init__(
        self,
        *,
        distance_function=None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ):
        Module.__init__(self)
        _check_margin("TripletMarginWithDistanceLoss", margin)
        self.reduction = reduction
        self.distance_function = distance_function or PairwiseDistance()
        self.margin, self.swap = margin, swap

    def forward(self, anchor, positive, negative):
        return losses.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class PoissonNLLLoss(
    Loss,
    function=losses.poisson_nll_loss,
    log_input=True,
    full=False,
    size_average=None,
    eps=1e-8,
    reduce=None,
    reduction="mean",
):
    """Compute the negative log-likelihood of counts under Poisson distributions; see
    `functional.poisson_nll_loss`.

    >>> jaxgrad.nn.PoissonNLLLoss()(jaxgrad.tensor([0.0]), jaxgrad.tensor([2.0]))
    tensor(1.)
    """


class GaussianNLLLoss(
    Loss,
    function=losses.gaussian_nll_loss,
    full=False,
    eps=1e-6,
    reduction="mean",
):
    """Compute the negative log-likelihood under normal distributions; see
    `functional.gaussian_nll_loss`.

    >>> jaxgrad.nn.GaussianNLLLoss()(jaxgrad.zeros(1), jaxgrad.tensor([2.0]), jaxgrad.ones(1))
    tensor(2.)
    """


class SoftMarginLoss(Loss, function=losses.soft_margin_loss, **REDUCTION):
    """Compute `log(1 + exp(-y * x))`; see `functional.soft_margin_loss`.

    >>> jaxgrad.nn.SoftMarginLoss()(jaxgrad.tensor([0.0]), jaxgrad.tensor([1.0]))
    tensor(0.6931)
    """


class HingeEmbeddingLoss(Loss, function=losses.hinge_embedding_loss, margin=1.0, **REDUCTION):
    """Compute `x` for the label 1, `max(0, margin - x)` for -1; see
    `functional.hinge_embedding_loss`.

    >>> jaxgrad.nn.HingeEmbeddingLoss()(jaxgrad.tensor([0.25, 0.25]), jaxgrad.tensor([1.0, -1.0]))
    tensor(0.5000)
    """


class CosineSimilarity(FunctionLayer, function=functional.cosine_similarity, dim=1, eps=1e-8):
    """Compute `x1 . x2 / (|x1| |x2|)` along `dim`; see `functional.cosine_similarity`.

    >>> jaxgrad.nn.CosineSimilarity()(jaxgrad.tensor([[3.0, 4.0]]), jaxgrad.tensor([[6.0, 0.0]]))
    tensor([0.6000])
    """


class PairwiseDistance(Module):
    """Compute the p-norm of `x1 - x2 + eps` along the last dimension; see
    `functional.pairwise_distance`.

    >>> jaxgrad.nn.PairwiseDistance()(jaxgrad.tensor([3.0, 4.0]), jaxgrad.zeros(2))
    tensor(5.0000)
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1, x2):
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class MultiMarginLoss(
    WeightedLoss, function=losses.multi_margin_loss, p=1, margin=1.0, weight=None, **REDUCTION
):
    """Compute the margin loss of one class for each sample; see `functional.multi_margin_loss`.

    Raises ValueError unless `p` is 1 or 2 and `weight` 1-D.

    >>> jaxgrad.nn.MultiMarginLoss()(jaxgrad.tensor([[0.1, 0.3, 0.2]]), jaxgrad.tensor([0]))
    tensor(0.7667)
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if self.weight is not None and self.weight.ndim != 1:
            raise ValueError(
                "MultiMarginLoss: expected weight to be None or 1D tensor, got "
                f"{self.weight.ndim}D instead"
            )


class MultiLabelMarginLoss(Loss, function=losses.multilabel_margin_loss, **REDUCTION):
    """Compute the margin loss of several classes; see `functional.multilabel_margin_loss`.

    >>> loss = jaxgrad.nn.MultiLabelMarginLoss()
    >>> loss(jaxgrad.tensor([0.1, 0.2, 0.4, 0.8]), jaxgrad.tensor([3, 0, -1, 1]))
    tensor(0.8500)
    """


class MultiLabelSoftMarginLoss(
    WeightedLoss, function=losses.multilabel_soft_margin_loss, weight=None, **REDUCTION
):
    """Compute the mean binary cross entropy of several classes; see
    `functional.multilabel_soft_margin_loss`.

    >>> jaxgrad.nn.MultiLabelSoftMarginLoss()(jaxgrad.zeros(1, 2), jaxgrad.tensor([[0.0, 1.0]]))
    tensor(0.6931)
    """


class CTCLoss(Loss, function=losses.ctc_loss, blank=0, reduction="mean", zero_infinity=False):
    """Compute the loss of label sequences whose times are not known; see `functional.ctc_loss`.

    >>> even = jaxgrad.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
    >>> jaxgrad.nn.CTCLoss()(even, jaxgrad.tensor([[1]]), [2], [1])
    tensor(0.2877)
    """
