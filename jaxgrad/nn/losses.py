"""Less common losses: functions with names of reductions around operators."""

from __future__ import annotations

from .. import ops
from ..functions import losses
from ..functions.losses import reduced
from ..functions.other import pairwise_distance
from ..tape.tensor import is_concrete
from ..tape.torch_function import api_boundary
from . import functional
from .functional import _reduction, _warn_if_broadcast


@api_boundary
def binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction: str = "mean"
):
    """Return `-weight * (t * log(x) + (1 - t) * log(1 - x))`, `x = input`, `t = target`, reduced.

    input, target: probabilities of one shape, floating point. weight: broadcasts to `input`.
    reduction: "none", "mean" or "sum". Logarithms are clamped at -100;
    `binary_cross_entropy_with_logits` is more precise.
    Raises ValueError if the shapes of `input` and `target` differ.

    >>> F.binary_cross_entropy(jaxgrad.tensor([0.5]), jaxgrad.tensor([1.0]))
    tensor(0.6931)
    """
    number = _reduction(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. Please ensure they have the same size."
        )
    return ops.binary_cross_entropy(input, target, weight, number)


@api_boundary
def huber_loss(input, target, reduction: str = "mean", delta: float = 1.0, weight=None):
    """Return `d**2 / 2` where `d = |input - target| <= delta`, else `delta * (d - delta / 2)`;
    reduced.

    input, target: floating-point tensors of one shape. weight: the factor of each element, of the
    shape of `input`; the mean divides by the number of elements. reduction: "none", "mean" or
    "sum". Raises RuntimeError unless `delta` is positive, ValueError for another shape of `weight`.
    Source: Huber, "Robust Estimation of a Location Parameter", 1964.

    >>> F.huber_loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 5.0]), reduction="none")
    tensor([0.0000, 2.5000])
    """
    _warn_if_broadcast(input, target)
    number = _reduction(reduction)
    if weight is None:
        return ops.huber_loss(input, target, number, delta)
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    return reduced(ops.huber_loss(input, target, 0, delta) * weight, number)


@api_boundary
def margin_ranking_loss(
    input1,
    input2,
    target,
    margin: float = 0,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
):
    """Return `max(0, margin - target * (input1 - input2))`, reduced.

    input1, input2: floating-point scores. target: 1 where input1 should be greater, -1 where less.
    All three broadcast. reduction: "none", "mean" or "sum". Raises RuntimeError for tensors of
    different numbers of dimensions.

    >>> one, two = jaxgrad.tensor([1.0]), jaxgrad.tensor([2.0])
    >>> F.margin_ranking_loss(one, two, jaxgrad.tensor([1.0]))
    tensor(1.)
    """
    number = _reduction(reduction, size_average, reduce)
    tensors = {"input1": input1, "input2": input2, "target": target}
    if len({tensor.ndim for tensor in tensors.values()}) > 1:
        shapes = ", ".join(f"{role}: {tensor.shape}" for role, tensor in tensors.items())
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"{shapes} "
        )
    return losses.margin_ranking_loss(input1, input2, target, margin, number)


@api_boundary
def cosine_embedding_loss(
    input1,
    input2,
    target,
    margin: float = 0,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
):
    """Return `1 - cos(input1, input2)` for the target 1, `max(0, cos - margin)` for -1; reduced.

    input1, input2: (N, D) or (D,), floating point. target: (N,) or no dimensions, 1 or -1.
    reduction: "none", "mean" or "sum".

    >>> x = jaxgrad.tensor([[3.0, 4.0]])
    >>> F.cosine_embedding_loss(x, x, jaxgrad.tensor([-1]), margin=0.25)
    tensor(0.7500)
    """
    number = _reduction(reduction, size_average, reduce)
    return losses.cosine_embedding_loss(input1, input2, target, margin, number)


@api_boundary
def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
):
    """Return `max(0, margin + d(anchor, positive) - d(anchor, negative))`, reduced.

    anchor, positive, negative: (N, D) or (D,), floating point; d is `pairwise_distance` with `p`
    and `eps`. swap: use the smaller of `d(anchor, negative)` and `d(positive, negative)`.
    reduction: "none", "mean" or "sum". Raises ValueError unless `margin` is positive. Source:
    Balntas et al., "Learning Shallow Convolutional Feature Descriptors with Triplet Losses", 2016.

    >>> x, y = jaxgrad.tensor([[0.0]]), jaxgrad.tensor([[3.0]])
    >>> F.triplet_margin_loss(x, y, x)
    tensor(4.0000)
    """
    number = _reduction(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return losses.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


@api_boundary
def poisson_nll_loss(
    input,
    target,
    log_input: bool = True,
    full: bool = False,
    size_average=None,
    eps: float = 1e-8,
    reduce=None,
    reduction: str = "mean",
):
    """Return the negative log-likelihood of counts under Poisson distributions, reduced.

    `exp(input) - target * input`, or without `log_input` `input - target * log(input + eps)`, for
    floating-point tensors that broadcast. full: add Stirling's approximation of `log(target!)`
    where `target > 1`. reduction: "none", "mean" or "sum".

    >>> F.poisson_nll_loss(jaxgrad.tensor([0.0]), jaxgrad.tensor([2.0]))
    tensor(1.)
    """
    number = _reduction(reduction, size_average, reduce)
    return losses.poisson_nll_loss(input, target, log_input, full, eps, number)


@api_boundary
def gaussian_nll_loss(
    input, target, var, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
):
    """Return `(log(v) + (input - target)**2 / v) / 2`, `v = max(var, eps)`, reduced.

    input: means; target: of the same shape; var: variances of that shape, with a last dimension 1
    or without it, or a number. full: add `log(2 * pi) / 2`. reduction: "none", "mean" or "sum". The
    gradient ignores the clamp of `var`. Source: Nix and Weigend, "Estimating the Mean and Variance
    of the Target Probability Distribution", 1994.

    >>> F.gaussian_nll_loss(jaxgrad.zeros(1), jaxgrad.tensor([2.0]), jaxgrad.ones(1))
    tensor(2.)
    """
    number = _reduction(reduction)
    var = _variances(var, input)
    # The value is clamped, its gradient is not.
    var = var.detach().clamp_min(eps) + (var - var.detach())
    error = input - target
    likelihoods = (var.log() + error * error / var) * 0.5
    if full:
        likelihoods = likelihoods + 0.9189385332046727  # log(2 pi) / 2
    return reduced(likelihoods, number)


def _variances(var, input):
    """Variances that broadcast to `input`, of which at most one dimension differs."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError(f"var has negative entry/entries: gaussian_nll_loss got {var}")
        return input.new_full(input.shape, var)
    if is_concrete(var) and bool((var.detach() < 0).any()):
        raise ValueError("var has negative entry/entries: gaussian_nll_loss")
    if var.shape == input.shape:
        return var
    if var.shape == input.shape[:-1]:
        return var.unsqueeze(-1)
    pairs = zip(input.shape, var.shape, strict=False)
    others = [extent for wanted, extent in pairs if wanted != extent]
    if var.ndim != input.ndim or sum(others) != 1:
        raise ValueError(
            f"var is of incorrect size: {list(var.shape)} for an input of {list(input.shape)}"
        )
    return var


@api_boundary
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction: str = "mean"):
    """Return `log(1 + exp(-target * input))`, reduced.

    input: floating point. target: 1 or -1, of the same shape. reduction: "none", "mean" or "sum".

    >>> F.soft_margin_loss(jaxgrad.tensor([0.0]), jaxgrad.tensor([1.0]))
    tensor(0.6931)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.soft_margin_loss(input, target, number)


@api_boundary
def hinge_embedding_loss(
    input, target, margin: float = 1.0, size_average=None, reduce=None, reduction: str = "mean"
):
    """Return `input` for the target 1 and `max(0, margin - input)` for -1, reduced.

    input: distances, floating point. target: of the same shape. reduction: "none", "mean" or "sum".

    >>> F.hinge_embedding_loss(jaxgrad.tensor([0.25, 0.25]), jaxgrad.tensor([1.0, -1.0]))
    tensor(0.5000)
    """
    number = _reduction(reduction, size_average, reduce)
    return losses.hinge_embedding_loss(input, target, margin, number)


@api_boundary
def multi_margin_loss(
    input,
    target,
    p: int = 1,
    margin: float = 1.0,
    weight=None,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
):
    """Return `sum(weight[y] * max(0, margin - x[y] + x[j]) ** p) / C` over classes j != y; reduced.

    input: scores x, (N, C) or (C,), floating point. target: the classes y, int64, (N,) or without
    dimensions. weight: (C,). reduction: "none", "mean" or "sum". Raises ValueError unless `p` is 1
    or 2, RuntimeError for a target outside [0, C). Source: Weston and Watkins, "Support Vector
    Machines for Multi-Class Pattern Recognition", 1999.

    >>> F.multi_margin_loss(jaxgrad.tensor([[0.1, 0.3, 0.2]]), jaxgrad.tensor([0]))
    tensor(0.7667)
    """
    number = _reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    return ops.multi_margin_loss(input, target, int(p), margin, weight, number)


@api_boundary
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction: str = "mean"):
    """Return `sum(max(0, 1 - x[y] + x[j])) / C` over the labels y and the other classes j; reduced.

    input: scores x, (N, C) or (C,), floating point. target: labels, int64, of the same shape; the
    first -1 of a row ends its labels. reduction: "none", "mean" or "sum".
    Raises RuntimeError for a label outside [-1, C) and for other shapes.

    >>> scores = jaxgrad.tensor([0.1, 0.2, 0.4, 0.8])
    >>> F.multilabel_margin_loss(scores, jaxgrad.tensor([3, 0, -1, 1]))
    tensor(0.8500)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.multilabel_margin_loss_forward(input, target, number)[0]


@api_boundary
def multilabel_soft_margin_loss(
    input, target, weight=None, size_average=None, reduce=None, reduction: str = "mean"
):
    """Return the mean over classes of the binary cross entropy of logits, reduced over samples.

    input: logits (..., C), floating point. target: 0 or 1, of the same shape. weight: (C,).
    reduction: "none", "mean" or "sum".

    >>> F.multilabel_soft_margin_loss(jaxgrad.zeros(1, 2), jaxgrad.tensor([[0.0, 1.0]]))
    tensor(0.6931)
    """
    number = _reduction(reduction, size_average, reduce)
    entropy = -(target * ops.log_sigmoid(input) + (1 - target) * ops.log_sigmoid(-input))
    entropy = entropy if weight is None else entropy * weight
    return reduced(entropy.sum(-1) / input.shape[-1], number)


@api_boundary
def triplet_margin_with_distance_loss(
    anchor,
    positive,
    negative,
    *,
    distance_function=None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
):
    """Return `max(0, margin + d(anchor, positive) - d(anchor, negative))`, reduced.

    anchor, positive, negative: tensors of as many dimensions. distance_function: d, a function of
    two tensors, `pairwise_distance` if it is None. swap: use the smaller of `d(anchor, negative)`
    and `d(positive, negative)`. reduction: "none", "mean" or "sum".
    Raises ValueError unless `margin` is positive, RuntimeError for other numbers of dimensions.

    >>> x, y = jaxgrad.tensor([[0.0]]), jaxgrad.tensor([[3.0]])
    >>> distance = lambda a, b: (a - b).abs().sum(-1)
    >>> F.triplet_margin_with_distance_loss(x, y, x, distance_function=distance)
    tensor(4.)
    """
    number = _reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    losses.check_triplet(anchor, positive, negative)
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), number)


@api_boundary
def ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
):
    """Return the negative log-likelihood of label sequences whose times are not known, reduced.

    reduction: "none", "mean" (of the losses divided by their numbers of labels) or "sum". The other
    arguments and errors are those of `jaxgrad.ctc_loss`.

    >>> even = jaxgrad.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
    >>> F.ctc_loss(even, jaxgrad.tensor([[1]]), [2], [1])     # 3 of 4 paths
    tensor(0.2877)
    """
    number = _reduction(reduction)
    return losses.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity
    )


@api_boundary
def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options=None,
):
    """Return `cross_entropy(linear(input, linear_weight, linear_bias), target)`.

    input: (D,) or (N, D). linear_weight: (C, D), or (C, d1, ..., D) for a loss of several
    dimensions, with a batched input. linear_bias: (C,) or (C, d1, ...). ignore_index: -100 if it is
    None; not with class probabilities. options: has no effect; PyTorch computes in chunks with it.
    The other arguments and errors are those of `cross_entropy`.
    Raises RuntimeError for other shapes.

    >>> F.linear_cross_entropy(jaxgrad.ones(1, 3), jaxgrad.zeros(2, 3), jaxgrad.tensor([1]))
    tensor(0.6931)
    """
    shape = _logits_shape(input, linear_weight, linear_bias)
    if target.shape == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = ops.linear(input, linear_weight.flatten(0, -2), bias).reshape(shape)
    ignore_index = -100 if ignore_index is None else ignore_index
    return functional.cross_entropy(
        logits,
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )


def _logits_shape(input, weight, bias):
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if weight.ndim < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {weight.ndim}"
        )
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {weight.shape[-1]}, respectively"
        )
    outputs = tuple(weight.shape[:-1])
    if bias is not None and tuple(bias.shape) != outputs:
        raise RuntimeError(f"expected linear_bias shape {outputs}, got {tuple(bias.shape)}")
    if len(outputs) > 1 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires "
            f"batched input, (N, {weight.shape[-1]}), got unbatched input with shape "
            f"{tuple(input.shape)}"
        )
    return (*input.shape[:-1], *outputs)
