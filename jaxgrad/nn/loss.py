"""Losses: as functions with names of reductions around operators, and as layers that call them.

`reduction`: "none" keeps the loss of each element (or sample), "mean" and "sum" reduce to a tensor
without dimensions. `size_average` and `reduce` are PyTorch's deprecated spelling of it.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .. import ops
from ..core import dtypes
from ..core.device import DeviceLike
from ..core.tracebacks import users_stacklevel
from ..functions import loss as losses
from ..functions.distance import pairwise_distance
from ..functions.loss import reduced
from ..tape.tensor import Tensor, is_concrete
from ..tape.torch_function import api_boundary, names_defaults
from . import functional
from .distance import PairwiseDistance
from .function_layer import FunctionLayer
from .linear import Linear
from .module import Module

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _reduction(reduction, size_average=None, reduce=None):
    """Return the number of a reduction; `size_average` and `reduce` are its deprecated spelling."""
    if size_average is not None or reduce is not None:
        reduction = deprecated_reduction(size_average, reduce)
    return number_of(reduction)


def number_of(reduction: str) -> int:
    """The number of a reduction. Raises ValueError for what is none."""
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=users_stacklevel(),
        )
        reduction = "mean"
    if reduction not in _REDUCTIONS:
        known = ", ".join(map(repr, _REDUCTIONS))
        raise ValueError(f"{reduction} is not a valid value for reduction: choose one of {known}")
    return _REDUCTIONS[reduction]


def deprecated_reduction(size_average, reduce, warns: bool = True) -> str:
    """The reduction that two deprecated arguments stand for."""
    reduces, averages = reduce is None or bool(reduce), size_average is None or bool(size_average)
    reduction = "none" if not reduces else "mean" if averages else "sum"
    if warns:
        warnings.warn(
            "size_average and reduce args will be deprecated, "
            f"please use reduction='{reduction}' instead.",
            stacklevel=users_stacklevel(),
        )
    return reduction


def _warn_if_broadcast(input, target):
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=users_stacklevel(),
        )


def _weighted(loss, input, target, weight, reduction, *arguments):
    """Return the weighted elementwise loss; its mean divides by the sum of the weights."""
    if weight is None:
        return loss(input, target, reduction, *arguments)
    if weight.shape != input.shape:
        raise ValueError(
            "Weights and input must have the same size. "
            f"They have {list(weight.shape)} and {list(input.shape)}"
        )
    losses = loss(input, target, 0, *arguments) * weight
    if reduction == _REDUCTIONS["mean"]:
        return losses.sum() / weight.sum()
    return losses.sum() if reduction else losses


@names_defaults
@api_boundary
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean squared error: `(input - target) ** 2`, reduced.

    input, target: floating-point or complex tensors of one shape; other shapes broadcast with a
    warning. weight: the factor of each element, of the shape of `input`; the mean then divides by
    `weight.sum()`. reduction: "none", "mean" or "sum". Raises ValueError for another reduction or
    shape of `weight`.

    >>> F.mse_loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 4.0]))
    tensor(2.)
    """
    _warn_if_broadcast(input, target)
    reduction = _reduction(reduction, size_average, reduce)
    return _weighted(ops.mse_loss, input, target, weight, reduction)


@names_defaults
@api_boundary
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean absolute error: `|input - target|`, reduced; the gradient at 0 is 0.

    Arguments and errors are those of `mse_loss`.

    >>> F.l1_loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 4.0]))
    tensor(1.)
    """
    _warn_if_broadcast(input, target)
    reduction = _reduction(reduction, size_average, reduce)
    return _weighted(ops.l1_loss, input, target, weight, reduction)


@names_defaults
@api_boundary
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return `d**2 / (2 * beta)` where `d = |input - target| < beta`, else `d - beta / 2`; reduced.

    input, target: floating-point tensors of one shape. beta: not negative; 0 gives `l1_loss`.
    reduction: "none", "mean" or "sum".
    Source: Girshick, "Fast R-CNN", 2015.

    >>> F.smooth_l1_loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 4.0]), reduction="none")
    tensor([0.0000, 1.5000])
    """
    _warn_if_broadcast(input, target)
    reduction = _reduction(reduction, size_average, reduce)
    if beta == 0:
        return ops.l1_loss(input, target, reduction)
    return ops.smooth_l1_loss(input, target, reduction, beta)


@names_defaults
@api_boundary
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return the Kullback-Leibler divergence `target * (log(target) - input)`, reduced.

    input: log-probabilities, floating point. target: probabilities of the same shape, or with
    `log_target` log-probabilities. reduction: "none", "sum", "mean" (divides by the number of
    elements, with a warning) or "batchmean" (divides by `input.shape[0]`, the definition).
    Raises ValueError for another reduction.
    Source: Kullback and Leibler, "On Information and Sufficiency", 1951.

    >>> half = jaxgrad.tensor([[0.5, 0.5]])
    >>> F.kl_div(jaxgrad.tensor([[-1.0, -1.0]]), half, reduction="batchmean")
    tensor(0.3069)
    """
    if reduction == "batchmean":
        summed = ops.kl_div(input, target, _REDUCTIONS["sum"], log_target=log_target)
        return summed / input.shape[0] if input.ndim else summed
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.",
            stacklevel=users_stacklevel(),
        )
    reduction = _reduction(reduction, size_average, reduce)
    return ops.kl_div(input, target, reduction, log_target=log_target)


@names_defaults
@api_boundary
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood `-weight[target] * input[n, target[n]]`, reduced.

    input: log-probabilities (C,), (N, C) or (N, C, d1, ...), floating point. target: class indices,
    int64, of the shape of `input` without C. weight: (C,); the mean divides by the sum of the
    weights used. ignore_index: a target that contributes nothing. reduction: "none", "mean" or
    "sum". Raises IndexError for a target outside [0, C), ValueError for another reduction.

    >>> F.nll_loss(jaxgrad.tensor([[-1.0, -2.0], [-3.0, -4.0]]), jaxgrad.tensor([0, 1]))
    tensor(2.5000)
    """
    reduction = _reduction(reduction, size_average, reduce)
    target = _class_of_one_example(input, target)
    return ops.nll_loss(input, target, weight, reduction, ignore_index)


@names_defaults
@api_boundary
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return `nll_loss(log_softmax(input, 1), target)`.

    input: unnormalized logits (C,), (N, C) or (N, C, d1, ...), floating point. target: class
    indices as for `nll_loss`, or class probabilities of the shape of `input`. label_smoothing: in
    [0, 1], the part of each target that is spread evenly over all classes (Szegedy et al.,
    "Rethinking the Inception Architecture", 2015). The other arguments and errors are those of
    `nll_loss`.

    >>> F.cross_entropy(jaxgrad.tensor([[0.0, 0.0]]), jaxgrad.tensor([1]))
    tensor(0.6931)
    """
    reduction = _reduction(reduction, size_average, reduce)
    _check_order(input, target)
    target = _class_of_one_example(input, target)
    return ops.cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)


def _check_order(input, target):
    """Raise NotImplementedError for classes where scores are expected."""
    is_integral = getattr(input, "dtype", None) is dtypes.int64
    if is_integral and isinstance(target, Tensor) and target.is_floating_point():
        raise NotImplementedError(
            "\"cross_entropy\" not implemented for 'Long': the scores come first, and the classes "
            "second: cross_entropy(input, target)"
        )


def _class_of_one_example(input, target):
    """The target without dimensions where `input` is one example and the target a list of one."""
    shapes = getattr(input, "shape", ()), getattr(target, "shape", ())
    is_list = [len(shape) for shape in shapes] == [1, 1] and shapes[1] != shapes[0]
    if is_list and len(target) != 1:
        raise ValueError(
            f"For 1D input, 1D target must have size 1, but got target size: {len(target)}"
        )
    return target.reshape(()) if is_list else target


@names_defaults
@api_boundary
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the binary cross entropy of `target` and `sigmoid(input)`, reduced.

    `-weight * (pos_weight * t * log(s) + (1 - t) * log(1 - s))` with `t = target`, `s =
    sigmoid(input)`, computed without overflow.

    input: logits of any shape, floating point. target: probabilities `t` of the same shape. weight:
    broadcasts to `input`. pos_weight: the factor of the positive class, broadcasts to `input`.
    reduction: "none", "mean" or "sum".
    Raises ValueError if the shapes of `input` and `target` differ.

    >>> F.binary_cross_entropy_with_logits(jaxgrad.tensor([0.0]), jaxgrad.tensor([1.0]))
    tensor(0.6931)
    """
    if target.shape != input.shape:
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    reduction = _reduction(reduction, size_average, reduce)
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


@names_defaults
@api_boundary
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
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


@names_defaults
@api_boundary
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Return `d**2 / 2` where `d = |input - target| <= delta`, else `delta * (d - delta / 2)`;
    reduced.

    input, target: floating-point tensors of one shape. weight: the factor of each element, of the
    shape of `input`; the mean divides by the number of elements. reduction: "none", "mean" or
    "sum". Raises RuntimeError unless `delta` is positive, ValueError for another shape of `weight`.
    Source: Huber, "Robust Estimation of a Location Parameter", 1964.

    >>> F.huber_loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 5.0]), reduction="none")
    tensor([0.0000, 2.5000])
    """
    _check_delta(delta)
    _warn_if_broadcast(input, target)
    number = _reduction(reduction)
    if weight is None:
        return ops.huber_loss(input, target, number, delta)
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    return reduced(ops.huber_loss(input, target, 0, delta) * weight, number)


def _check_delta(delta):
    if not isinstance(delta, int | float):
        raise TypeError(f"delta must be a float or int, got: {type(delta)}")


@names_defaults
@api_boundary
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
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


@names_defaults
@api_boundary
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return `1 - cos(input1, input2)` for the target 1, `max(0, cos - margin)` for -1; reduced.

    input1, input2: (N, D) or (D,), floating point. target: (N,) or no dimensions, 1 or -1.
    reduction: "none", "mean" or "sum".

    >>> x = jaxgrad.tensor([[3.0, 4.0]])
    >>> F.cosine_embedding_loss(x, x, jaxgrad.tensor([-1]), margin=0.25)
    tensor(0.7500)
    """
    number = _reduction(reduction, size_average, reduce)
    return losses.cosine_embedding_loss(input1, input2, target, margin, number)


@names_defaults
@api_boundary
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
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


@names_defaults
@api_boundary
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of counts under Poisson distributions, reduced.

    `exp(input) - target * input`, or without `log_input` `input - target * log(input + eps)`, for
    floating-point tensors that broadcast. full: add Stirling's approximation of `log(target!)`
    where `target > 1`. reduction: "none", "mean" or "sum".

    >>> F.poisson_nll_loss(jaxgrad.tensor([0.0]), jaxgrad.tensor([2.0]))
    tensor(1.)
    """
    number = _reduction(reduction, size_average, reduce)
    return losses.poisson_nll_loss(input, target, log_input, full, eps, number)


@names_defaults
@api_boundary
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
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
    if isinstance(var, Tensor) and not (var.is_floating_point() or var.is_complex()):
        raise RuntimeError(
            "result type Float can't be cast to the desired output type: gaussian_nll_loss takes "
            f"var as floats, not as {var.dtype}"
        )
    if isinstance(var, float | int):
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


@names_defaults
@api_boundary
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return `log(1 + exp(-target * input))`, reduced.

    input: floating point. target: 1 or -1, of the same shape. reduction: "none", "mean" or "sum".

    >>> F.soft_margin_loss(jaxgrad.tensor([0.0]), jaxgrad.tensor([1.0]))
    tensor(0.6931)
    """
    number = _reduction(reduction, size_average, reduce)
    return ops.soft_margin_loss(input, target, number)


@names_defaults
@api_boundary
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return `input` for the target 1 and `max(0, margin - input)` for -1, reduced.

    input: distances, floating point. target: of the same shape. reduction: "none", "mean" or "sum".

    >>> F.hinge_embedding_loss(jaxgrad.tensor([0.25, 0.25]), jaxgrad.tensor([1.0, -1.0]))
    tensor(0.5000)
    """
    number = _reduction(reduction, size_average, reduce)
    return losses.hinge_embedding_loss(input, target, margin, number)


@names_defaults
@api_boundary
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
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


@names_defaults
@api_boundary
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
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


@names_defaults
@api_boundary
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over classes of the binary cross entropy of logits, reduced over samples.

    input: logits (..., C), floating point. target: 0 or 1, of the same shape. weight: (C,).
    reduction: "none", "mean" or "sum".

    >>> F.multilabel_soft_margin_loss(jaxgrad.zeros(1, 2), jaxgrad.tensor([[0.0, 1.0]]))
    tensor(0.6931)
    """
    number = _reduction(reduction, size_average, reduce)
    entropy = -(target * ops.log_sigmoid(input) + (1 - target) * ops.log_sigmoid(-input))
    entropy = entropy if weight is None else entropy * weight
    return reduced(entropy.sum(input.ndim - 1) / input.shape[-1], number)


@names_defaults
@api_boundary
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
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


@names_defaults
@api_boundary
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
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


@names_defaults
@api_boundary
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
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
    return cross_entropy(
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


# layers


_REDUCTION = {"size_average": None, "reduce": None, "reduction": "mean"}


class _Loss(FunctionLayer, **_REDUCTION):
    """A function of an input and targets, with `reduction`; its weights are buffers. A subclass of
    a program defines `forward`.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        options = self._bind(args, kwargs)
        deprecated = options.get("size_average"), options.get("reduce")
        if isinstance(options.get("size_average"), Tensor):
            name = type(self).__name__
            raise RuntimeError(
                "Boolean value of Tensor with more than one value is ambiguous: a loss takes "
                f"tensors when it is called: nn.{name}()(input, target)"
            )
        if deprecated != (None, None):
            number = _reduction(options["reduction"], *deprecated)
            reduction = list(_REDUCTIONS)[number]
            options |= {"size_average": None, "reduce": None, "reduction": reduction}
        super().__init__(**options)

    def _set_option(self, name, value):
        if name.endswith("weight"):
            self.register_buffer(name, value)
        else:
            super()._set_option(name, value)


class _WeightedLoss(_Loss, weight=None, **_REDUCTION):
    """A loss of classes, which may have a weight for each."""


class MSELoss(_Loss, function=mse_loss, **_REDUCTION):
    """Compute the mean squared error; see `functional.mse_loss`.

    >>> jaxgrad.nn.MSELoss()(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 4.0]))
    tensor(2.)
    """


class L1Loss(_Loss, function=l1_loss, **_REDUCTION):
    """Compute the mean absolute error; see `functional.l1_loss`.

    >>> jaxgrad.nn.L1Loss()(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 4.0]))
    tensor(1.)
    """


class SmoothL1Loss(_Loss, function=smooth_l1_loss, **_REDUCTION, beta=1.0):
    """Compute the error that is quadratic below `beta` and linear above; see
    `functional.smooth_l1_loss`.

    >>> loss = jaxgrad.nn.SmoothL1Loss(reduction="sum")
    >>> loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 4.0]))
    tensor(1.5000)
    """


class HuberLoss(_Loss, function=huber_loss, reduction="mean", delta=1.0):
    """Compute the Huber loss, `delta` times the smooth L1 loss; see `functional.huber_loss`.

    >>> loss = jaxgrad.nn.HuberLoss(reduction="sum")
    >>> loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 5.0]))
    tensor(2.5000)
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        _check_delta(self.delta)


class KLDivLoss(_Loss, function=kl_div, **_REDUCTION, log_target=False):
    """Compute the Kullback-Leibler divergence; see `functional.kl_div`.

    >>> half = jaxgrad.tensor([[0.5, 0.5]])
    >>> jaxgrad.nn.KLDivLoss(reduction="batchmean")(jaxgrad.tensor([[-1.0, -1.0]]), half)
    tensor(0.3069)
    """


class NLLLoss(
    _WeightedLoss,
    function=nll_loss,
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


class NLLLoss2d(NLLLoss):
    """`NLLLoss`, which replaces this name; warns that it is deprecated."""

    def __init__(self, *args: Any, **kwargs: Any):
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in "
            "replacement",
            FutureWarning,
            stacklevel=users_stacklevel(),
        )
        super().__init__(*args, **kwargs)


class CrossEntropyLoss(
    _WeightedLoss,
    function=cross_entropy,
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


class BCELoss(_WeightedLoss, function=binary_cross_entropy, weight=None, **_REDUCTION):
    """Compute the binary cross entropy of probabilities; see `functional.binary_cross_entropy`.

    >>> jaxgrad.nn.BCELoss()(jaxgrad.tensor([0.5]), jaxgrad.tensor([1.0]))
    tensor(0.6931)
    """


class BCEWithLogitsLoss(
    _Loss,
    function=binary_cross_entropy_with_logits,
    weight=None,
    **_REDUCTION,
    pos_weight=None,
):
    """Compute the binary cross entropy of logits; see
    `functional.binary_cross_entropy_with_logits`.

    >>> jaxgrad.nn.BCEWithLogitsLoss()(jaxgrad.tensor([0.0]), jaxgrad.tensor([1.0]))
    tensor(0.6931)
    """


class MarginRankingLoss(_Loss, function=margin_ranking_loss, margin=0, **_REDUCTION):
    """Compute `max(0, margin - y * (x1 - x2))`; see `functional.margin_ranking_loss`.

    >>> one, two = jaxgrad.tensor([1.0]), jaxgrad.tensor([2.0])
    >>> jaxgrad.nn.MarginRankingLoss()(one, two, jaxgrad.tensor([1.0]))
    tensor(1.)
    """


class CosineEmbeddingLoss(_Loss, function=cosine_embedding_loss, margin=0, **_REDUCTION):
    """Compute `1 - cos` for the label 1, `max(0, cos - margin)` for -1; see
    `functional.cosine_embedding_loss`.

    >>> x = jaxgrad.tensor([[3.0, 4.0]])
    >>> jaxgrad.nn.CosineEmbeddingLoss(margin=0.25)(x, x, jaxgrad.tensor([-1]))
    tensor(0.7500)
    """


class TripletMarginLoss(
    _Loss,
    function=triplet_margin_loss,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    **_REDUCTION,
):
    """Compute `max(0, margin + d(anchor, positive) - d(anchor, negative))`; see
    `functional.triplet_margin_loss`.

    >>> x, y = jaxgrad.tensor([[0.0]]), jaxgrad.tensor([[3.0]])
    >>> jaxgrad.nn.TripletMarginLoss()(x, y, x)
    tensor(4.0000)
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        _check_margin("TripletMarginLoss", self.margin)


def _check_margin(layer, margin):
    if margin <= 0:
        raise ValueError(f"{layer}: expected margin to be greater than 0, got {margin} instead")


class TripletMarginWithDistanceLoss(_Loss):
    """Compute the triplet loss of any distance; see `functional.triplet_margin_with_distance_loss`.

    distance_function: a function of two tensors or a module, `PairwiseDistance()` if it is None.
    Raises ValueError unless `margin` is positive.

    >>> x, y = jaxgrad.tensor([[0.0]]), jaxgrad.tensor([[3.0]])
    >>> jaxgrad.nn.TripletMarginWithDistanceLoss(margin=0.5)(x, y, x)
    tensor(3.5000)
    """

    distance_function: Callable[[Tensor, Tensor], Tensor]

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ):
        Module.__init__(self)
        _check_margin("TripletMarginWithDistanceLoss", margin)
        self.reduction = reduction
        self.distance_function = distance_function or PairwiseDistance()
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return functional.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class PoissonNLLLoss(
    _Loss,
    function=poisson_nll_loss,
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
    _Loss,
    function=gaussian_nll_loss,
    full=False,
    eps=1e-6,
    reduction="mean",
):
    """Compute the negative log-likelihood under normal distributions; see
    `functional.gaussian_nll_loss`.

    >>> jaxgrad.nn.GaussianNLLLoss()(jaxgrad.zeros(1), jaxgrad.tensor([2.0]), jaxgrad.ones(1))
    tensor(2.)
    """


class SoftMarginLoss(_Loss, function=soft_margin_loss, **_REDUCTION):
    """Compute `log(1 + exp(-y * x))`; see `functional.soft_margin_loss`.

    >>> jaxgrad.nn.SoftMarginLoss()(jaxgrad.tensor([0.0]), jaxgrad.tensor([1.0]))
    tensor(0.6931)
    """


class HingeEmbeddingLoss(_Loss, function=hinge_embedding_loss, margin=1.0, **_REDUCTION):
    """Compute `x` for the label 1, `max(0, margin - x)` for -1; see
    `functional.hinge_embedding_loss`.

    >>> jaxgrad.nn.HingeEmbeddingLoss()(jaxgrad.tensor([0.25, 0.25]), jaxgrad.tensor([1.0, -1.0]))
    tensor(0.5000)
    """


class MultiMarginLoss(
    _WeightedLoss, function=multi_margin_loss, p=1, margin=1.0, weight=None, **_REDUCTION
):
    """Compute the margin loss of one class for each sample; see `functional.multi_margin_loss`.

    Raises ValueError unless `p` is 1 or 2 and `weight` 1-D.

    >>> jaxgrad.nn.MultiMarginLoss()(jaxgrad.tensor([[0.1, 0.3, 0.2]]), jaxgrad.tensor([0]))
    tensor(0.7667)
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if self.weight is not None and self.weight.ndim != 1:
            raise ValueError(
                "MultiMarginLoss: expected weight to be None or 1D tensor, got "
                f"{self.weight.ndim}D instead"
            )


class MultiLabelMarginLoss(_Loss, function=multilabel_margin_loss, **_REDUCTION):
    """Compute the margin loss of several classes; see `functional.multilabel_margin_loss`.

    >>> loss = jaxgrad.nn.MultiLabelMarginLoss()
    >>> loss(jaxgrad.tensor([0.1, 0.2, 0.4, 0.8]), jaxgrad.tensor([3, 0, -1, 1]))
    tensor(0.8500)
    """


class MultiLabelSoftMarginLoss(
    _WeightedLoss, function=multilabel_soft_margin_loss, weight=None, **_REDUCTION
):
    """Compute the mean binary cross entropy of several classes; see
    `functional.multilabel_soft_margin_loss`.

    >>> jaxgrad.nn.MultiLabelSoftMarginLoss()(jaxgrad.zeros(1, 2), jaxgrad.tensor([[0.0, 1.0]]))
    tensor(0.6931)
    """


class CTCLoss(_Loss, function=ctc_loss, blank=0, reduction="mean", zero_infinity=False):
    """Compute the loss of label sequences whose times are not known; see `functional.ctc_loss`.

    >>> even = jaxgrad.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
    >>> jaxgrad.nn.CTCLoss()(even, jaxgrad.tensor([[1]]), [2], [1])
    tensor(0.2877)
    """


class LinearCrossEntropyLoss(Module):
    """Compute the cross entropy of the outputs of a linear layer; see
    `functional.linear_cross_entropy`.

    in_features, num_classes: the sizes of the layer `linear`. out_features: further dimensions of
    the loss. bias: whether the layer has one. The other arguments are those of `CrossEntropyLoss`.
    Raises RuntimeError for a `weight` or a `label_smoothing` that does not fit.

    >>> loss = jaxgrad.nn.LinearCrossEntropyLoss(3, 2)
    >>> loss(jaxgrad.zeros(4, 3), jaxgrad.tensor([0, 1, 1, 0]))
    tensor(0.6931, grad_fn=<NllLossBackward0>)
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ):
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        super().__init__()
        self.reduction = reduction
        self.register_buffer("weight", weight)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        rows = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return linear_cross_entropy(
            input,
            self.linear.weight.reshape((*shape, self.linear.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
