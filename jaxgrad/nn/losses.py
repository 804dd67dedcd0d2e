"""Losses composed of operators."""

from __future__ import annotations

import functools

from .. import ops
from ..autograd import Function
from ..core.tracebacks import api_boundary
from ..ops.autocast import widened
from .activations import in_single
from .functional import _reduction, _warn_if_broadcast
from .normalization import vector_norm


def _reduce(losses, reduction):
    """Apply a reduction, given by its number."""
    if reduction == 0:
        return losses
    return losses.mean() if reduction == 1 else losses.sum()


class _BinaryCrossEntropy(Function):
    """The binary cross entropy of each element.

    As in PyTorch, its logarithms are clamped at -100, and its gradient ignores the clamp.
    """

    @staticmethod
    def forward(ctx, input, target):
        ctx.save_for_backward(input, target)
        log_p, log_q = input.log().clamp_min(-100), (-input).log1p().clamp_min(-100)
        return (target - 1) * log_q - target * log_p

    @staticmethod
    def backward(ctx, gradient):
        input, target = ctx.saved_tensors
        input_grad = target_grad = None
        if ctx.needs_input_grad[0]:
            variance = ((1 - input) * input).clamp_min(1e-12)
            input_grad = gradient * (input - target) / variance
        if ctx.needs_input_grad[1]:
            log_p, log_q = input.log().clamp_min(-100), (-input).log1p().clamp_min(-100)
            target_grad = gradient * (log_q - log_p)
        return input_grad, target_grad


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
    reduction = _reduction(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. Please ensure they have the same size."
        )
    input, target, weight = widened(input, target, weight)
    losses = in_single(_BinaryCrossEntropy.apply)(input, target)
    return _reduce(losses if weight is None else losses * weight, reduction)


def _huber(delta, input, target):
    error = input - target
    distance = error.abs()
    return ops.where(distance <= delta, error * error * 0.5, (distance - 0.5 * delta) * delta)


@api_boundary
def huber_loss(input, target, reduction: str = "mean", delta: float = 1.0, weight=None):
    """Return `d**2 / 2` where `d = |input - target| <= delta`, else `delta * (d - delta / 2)`;
    reduced.

    input, target: floating-point tensors of one shape. weight: broadcasts to `input`. reduction:
    "none", "mean" or "sum". Raises RuntimeError unless `delta` is positive.
    Source: Huber, "Robust Estimation of a Location Parameter", 1964.

    >>> F.huber_loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 5.0]), reduction="none")
    tensor([0.0000, 2.5000])
    """
    _warn_if_broadcast(input, target)
    number = _reduction(reduction)
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta: {delta}")
    input, target, weight = widened(input, target, weight)
    losses = in_single(functools.partial(_huber, delta))(input, target)
    return _reduce(losses if weight is None else losses * weight, number)


@api_boundary
def margin_ranking_loss(
    input1, input2, target, margin: float = 0, size_average=None, reduce=None,
    reduction: str = "mean",
):  # fmt: skip
    """Return `max(0, margin - target * (input1 - input2))`, reduced.

    input1, input2: floating-point scores. target: 1 where input1 should be greater, -1 where less.
    All three broadcast. reduction: "none", "mean" or "sum".

    >>> one, two = jaxgrad.tensor([1.0]), jaxgrad.tensor([2.0])
    >>> F.margin_ranking_loss(one, two, jaxgrad.tensor([1.0]))
    tensor(1.)
    """
    number = _reduction(reduction, size_average, reduce)
    input1, input2, target = widened(input1, input2, target)
    return _reduce((margin - target * (input1 - input2)).clamp_min(0), number)


@api_boundary
def cosine_similarity(x1, x2, dim: int = 1, eps: float = 1e-8):
    """Return `x1 . x2 / (max(|x1|, eps) * max(|x2|, eps))` along `dim`.

    x1, x2: floating-point tensors that broadcast; the result lacks `dim`.

    >>> F.cosine_similarity(jaxgrad.tensor([[3.0, 4.0]]), jaxgrad.tensor([[6.0, 0.0]]))
    tensor([0.6000])
    """
    one, two = (each / ops.clamp_min(vector_norm(each, 2, dim), eps) for each in (x1, x2))
    return (one * two).sum(dim)


@api_boundary
def cosine_embedding_loss(
    input1, input2, target, margin: float = 0, size_average=None, reduce=None,
    reduction: str = "mean",
):  # fmt: skip
    """Return `1 - cos(input1, input2)` for the target 1, `max(0, cos - margin)` for -1; reduced.

    input1, input2: (N, D) or (D,), floating point. target: (N,) or no dimensions, 1 or -1.
    reduction: "none", "mean" or "sum".

    >>> x = jaxgrad.tensor([[3.0, 4.0]])
    >>> F.cosine_embedding_loss(x, x, jaxgrad.tensor([-1]), margin=0.25)
    tensor(0.7500)
    """
    number = _reduction(reduction, size_average, reduce)
    input1, input2, target = widened(input1, input2, target)
    cosine = cosine_similarity(input1, input2, -1)
    negative = ops.where(target == -1, (cosine - margin).clamp_min(0), 0)
    return _reduce(ops.where(target == 1, 1 - cosine, negative), number)


@api_boundary
def triplet_margin_loss(
    anchor, positive, negative, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
    swap: bool = False, size_average=None, reduce=None, reduction: str = "mean",
):  # fmt: skip
    """Return `max(0, margin + d(anchor, positive) - d(anchor, negative))`, reduced.

    anchor, positive, negative: (N, D) or (D,), floating point; d is `pairwise_distance` with `p`
    and `eps`. swap: use the smaller of `d(anchor, negative)` and `d(positive, negative)`.
    reduction: "none", "mean" or "sum". Source: Balntas et al., "Learning Shallow Convolutional
    Feature Descriptors with Triplet Losses", 2016.

    >>> x, y = jaxgrad.tensor([[0.0]]), jaxgrad.tensor([[3.0]])
    >>> F.triplet_margin_loss(x, y, x)
    tensor(4.0000)
    """
    number = _reduction(reduction, size_average, reduce)
    anchor, positive, negative = widened(anchor, positive, negative)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = ops.minimum(far, pairwise_distance(positive, negative, p, eps))
    near = pairwise_distance(anchor, positive, p, eps)
    return _reduce((margin + near - far).clamp_min(0), number)


@api_boundary
def pairwise_distance(x1, x2, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
    """Return the p-norm of `x1 - x2 + eps` along the last dimension.

    x1, x2: (..., D), floating point, that broadcast; the result is (...,), or (..., 1) with
    `keepdim`.

    >>> F.pairwise_distance(jaxgrad.tensor([3.0, 4.0]), jaxgrad.zeros(2))
    tensor(5.0000)
    """
    result = vector_norm(x1 - x2 + eps, p, -1)
    return result if keepdim else result.squeeze(-1)


@api_boundary
def poisson_nll_loss(
    input, target, log_input: bool = True, full: bool = False, size_average=None,
    eps: float = 1e-8, reduce=None, reduction: str = "mean",
):  # fmt: skip
    """Return the negative log-likelihood of counts under Poisson distributions, reduced.

    `exp(input) - target * input`, or without `log_input` `input - target * log(input + eps)`, for
    floating-point tensors that broadcast. full: add Stirling's approximation of `log(target!)`
    where `target > 1`. reduction: "none", "mean" or "sum".

    >>> F.poisson_nll_loss(jaxgrad.tensor([0.0]), jaxgrad.tensor([2.0]))
    tensor(1.)
    """
    number = _reduction(reduction, size_average, reduce)
    input, target = widened(input, target)
    losses = input.exp() - target * input
    if not log_input:
        losses = input - target * (input + eps).log()
    if full:
        is_more = target > 1
        safe = ops.where(is_more, target, 2.0)
        stirling = safe * safe.log() - safe + (safe * 6.283185307179586).log() * 0.5
        losses = losses + ops.where(is_more, stirling, 0)
    return _reduce(losses, number)


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
    if isinstance(var, float):
        var = input.new_full(input.shape, var)
    if var.ndim == input.ndim - 1:
        var = var.unsqueeze(-1)
    # The value is clamped, its gradient is not.
    var = var.detach().clamp_min(eps) + (var - var.detach())
    error = input - target
    losses = (var.log() + error * error / var) * 0.5
    if full:
        losses = losses + 0.9189385332046727  # log(2 pi) / 2
    return _reduce(losses, number)


@api_boundary
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction: str = "mean"):
    """Return `log(1 + exp(-target * input))`, reduced.

    input: floating point. target: 1 or -1, of the same shape. reduction: "none", "mean" or "sum".

    >>> F.soft_margin_loss(jaxgrad.tensor([0.0]), jaxgrad.tensor([1.0]))
    tensor(0.6931)
    """
    number = _reduction(reduction, size_average, reduce)
    input, target = widened(input, target)
    return _reduce(-ops.log_sigmoid(target * input), number)


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
    input, target = widened(input, target)
    negative = ops.where(target == -1, (margin - input).clamp_min(0), 0)
    return _reduce(negative + ops.where(target == 1, input, 0), number)
