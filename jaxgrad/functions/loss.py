"""The losses of torch itself. All but two are composed of other operators.

`reduction` is a number here: 0 for the loss of each element or sample, 1 for the mean, 2 for the
sum. Its default is 0, as PyTorch's is, although its schemas say 1: PyTorch's bindings read the
default `at::Reduction::Mean` of a schema as 0. torch.nn.functional has the same losses with names
of reductions. Under autocast they compute in float32.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from .. import ops
from ..autograd import enable_grad, grad
from ..core import dtypes
from ..frontend.array_creation import along, beside
from ..frontend.tensor_data import tensor
from ..ops.autocast import widened
from ..tape.tensor import Tensor, is_concrete
from ..tape.torch_function import api_boundary
from .arguments import check_tensor
from .distance import pairwise_distance

_EPSILON = 1e-12  # added to squared lengths


def reduced(losses, reduction):
    """Losses after a reduction, given by its number."""
    reduction = operator.index(reduction)
    if reduction == 1:
        return losses.mean()
    return losses.sum() if reduction == 2 else losses


@api_boundary
def kl_div(
    input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False
) -> Tensor:
    """Return `target * (log(target) - input)` of log-probabilities `input`, reduced.

    input, target: floating-point tensors that broadcast. log_target: whether `target` are
    logarithms too.

    >>> half = jaxgrad.tensor([0.5, 0.5])
    >>> jaxgrad.kl_div(half.log(), half)
    tensor([0., 0.])
    """
    return ops.kl_div(input, target, reduction, log_target=log_target)


@api_boundary
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 0,
) -> Tensor:
    """Return the cross entropy of `sigmoid(input)` and the probabilities `target`, reduced.

    input, target: floating-point tensors of one shape. weight: factors of the losses; pos_weight:
    factors of the positive part, of each class. Both broadcast.

    >>> jaxgrad.binary_cross_entropy_with_logits(jaxgrad.zeros(2), jaxgrad.ones(2))
    tensor([0.6931, 0.6931])
    """
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


@api_boundary
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """Return `max(0, margin - target * (input1 - input2))`, reduced.

    input1, input2: floating-point scores. target: 1 where input1 should be greater, -1 where less.
    All three broadcast.

    >>> one, two = jaxgrad.tensor([1.0]), jaxgrad.tensor([2.0])
    >>> jaxgrad.margin_ranking_loss(one, two, jaxgrad.tensor([1.0]))
    tensor([1.])
    """
    input1, input2, target = widened(input1, input2, target)
    margin = float(margin) if isinstance(margin, int) else margin  # integers give floats
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@api_boundary
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """Return `1 - cos(input1, input2)` for the target 1, `max(0, cos - margin)` for -1; reduced.

    input1, input2: (N, D) or (D,), floating point. target: (N,) or no dimensions, 1 or -1.
    Raises RuntimeError for other numbers of dimensions.

    >>> x = jaxgrad.tensor([[3.0, 4.0]])
    >>> jaxgrad.cosine_embedding_loss(x, x, jaxgrad.tensor([-1]), margin=0.25)
    tensor([0.7500])
    """
    input1, input2, target = widened(input1, input2, target)
    if target.ndim > 1:
        raise RuntimeError(
            "0D or 1D target tensor expected, multi-target not supported: cosine_embedding_loss "
            f"takes 1 or -1 for each row, and got a target of shape {list(target.shape)}"
        )
    dim = target.ndim
    if input1.ndim != dim + 1 or input2.ndim != dim + 1:
        raise RuntimeError(
            f"{dim}D target tensor expects {dim + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    squares = [(vectors * vectors).sum(dim) + _EPSILON for vectors in (input1, input2)]
    cosine = (input1 * input2).sum(dim) / (squares[0] * squares[1]).sqrt()
    like_one = ops.where(target == 1, 1 - cosine, 0)
    unlike = ops.where(target == -1, (cosine - margin).clamp_min(0), 0)
    return reduced(like_one + unlike, reduction)


@api_boundary
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0
) -> Tensor:
    """Return `input` for the target 1 and `max(0, margin - input)` for -1, reduced.

    input: distances, floating point. target: 1 or -1; both broadcast. The sum of both for another
    target. Distances that are integers give integers, for which a margin is cut to one.

    >>> jaxgrad.hinge_embedding_loss(jaxgrad.tensor([0.25, 0.25]), jaxgrad.tensor([1.0, -1.0]))
    tensor([0.2500, 0.7500])
    """
    input, target = widened(input, target)
    if input.dtype.category < dtypes.FLOATING:
        margin = int(margin)
    unlike = ops.where(target != 1, (margin - input).clamp_min(0), 0)
    return reduced(unlike + ops.where(target != -1, input, 0), reduction)


@api_boundary
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """Return `max(0, margin + d(anchor, positive) - d(anchor, negative))`, reduced.

    anchor, positive, negative: (N, D) or (D,), floating point; d is `pairwise_distance` with `p`
    and `eps`. swap: use the smaller of `d(anchor, negative)` and `d(positive, negative)`. Raises
    RuntimeError for tensors of different numbers of dimensions. Source: Balntas et al., "Learning
    Shallow Convolutional Feature Descriptors with Triplet Losses", 2016.

    >>> x, y = jaxgrad.tensor([[0.0]]), jaxgrad.tensor([[3.0]])
    >>> jaxgrad.triplet_margin_loss(x, y, x)
    tensor([4.0000])
    """
    anchor, positive, negative = widened(anchor, positive, negative)
    check_triplet(anchor, positive, negative)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = ops.minimum(far, pairwise_distance(positive, negative, p, eps))
    near = pairwise_distance(anchor, positive, p, eps)
    return reduced((margin + near - far).clamp_min(0), reduction)


def check_triplet(anchor, positive, negative):
    """Raise RuntimeError for tensors of different numbers of dimensions."""
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
            f"{negative.ndim}D inputs"
        )


@api_boundary
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """Return the negative log-likelihood of counts under Poisson distributions, reduced.

    `exp(input) - target * input`, or without `log_input` `input - target * log(input + eps)`, for
    floating-point tensors that broadcast. full: add Stirling's approximation of `log(target!)`
    where `target > 1`.

    >>> zero, two = jaxgrad.tensor([0.0]), jaxgrad.tensor([2.0])
    >>> jaxgrad.poisson_nll_loss(zero, two, True, False, 1e-8, 1)
    tensor(1.)
    """
    input, target = widened(input, target)
    losses = input.exp() - target * input
    if not log_input:
        losses = input - target * (input + eps).log()
    if full:
        is_more = target > 1
        # the logarithm of 0 would make the gradient NaN
        count = ops.where(is_more, target, 2.0)
        stirling = count * count.log() - count + (count * (2 * math.pi)).log() * 0.5
        losses = losses + ops.where(is_more, stirling, 0).to(losses.dtype)
    return reduced(losses, reduction)


# connectionist temporal classification


@api_boundary
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths,
    target_lengths,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """Return the negative log-likelihood of label sequences whose times are not known, reduced.

    log_probs: (T, B, C) or (T, C), logarithms of the probabilities of labels, float32 or float64.
    targets: labels other than `blank`, (B, S), or those of all samples in a row. input_lengths,
    target_lengths: how many times and labels each sample has, (B,) or a list. blank: the label that
    stands for none. reduction: the mean (1) divides each loss by its number of labels first.
    zero_infinity: samples with more labels than fit get the loss 0 and no gradient, not infinity.

    The gradient is that of the value: for log-probabilities that are a `log_softmax`, it is
    PyTorch's behind it. Raises RuntimeError for other shapes, dtypes and lengths, IndexError for a
    label outside [0, C). Source: Graves et al., "Connectionist Temporal Classification", 2006.

    >>> even = jaxgrad.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
    >>> jaxgrad.ctc_loss(even, jaxgrad.tensor([[1]]), [2], [1])     # 3 of 4 paths
    tensor([0.2877])
    """
    for role, value in (("log_probs", log_probs), ("targets", targets)):
        check_tensor("ctc_loss", value, f"argument {role!r}")
    (log_probs,) = widened(log_probs)
    input_lengths, target_lengths = (
        _lengths(lengths, log_probs) for lengths in (input_lengths, target_lengths)
    )
    is_batched = log_probs.ndim != 2
    losses, _ = ops._ctc_loss(
        log_probs if is_batched else log_probs.unsqueeze(1),
        _in_rows(targets.to(dtypes.int64), target_lengths),
        input_lengths,
        target_lengths,
        blank,
        zero_infinity,
    )
    if zero_infinity:
        losses = ops.where(losses == math.inf, 0, losses)
    if reduction == 1:
        return (losses / target_lengths.clamp_min(1)).mean()
    losses = reduced(losses, reduction)
    return losses.squeeze(0) if reduction == 0 and not is_batched else losses


def _lengths(lengths, log_probs):
    """Lengths as an integer tensor, so that others need no new program."""
    if not isinstance(lengths, Tensor | list | tuple):
        raise TypeError(
            "ctc_loss() received an invalid combination of arguments: lengths are a tensor or a "
            f"list of ints, not {type(lengths).__name__}"
        )
    if not isinstance(lengths, Tensor):
        return tensor(list(lengths), dtype=dtypes.int64, device=beside(log_probs))
    return along(lengths if lengths.ndim else lengths.unsqueeze(0), log_probs)


_ROUNDING = 8  # programs are compiled for multiples of so many labels


def _in_rows(targets, lengths):
    """Labels in a row as one row for each sample, if their values are known.

    As long as the row for all samples, each would cost as much as all.
    """
    known = targets.ndim == 1 and is_concrete(targets) and is_concrete(lengths)
    if not known or lengths.is_floating_point():
        return targets
    labels, counts = np.asarray(targets._array), np.asarray(lengths._array)
    if counts.ndim != 1 or (counts < 0).any() or counts.sum() != labels.size:
        return targets
    longest = -(-counts.max(initial=0) // _ROUNDING) * _ROUNDING
    places = (np.cumsum(counts) - counts)[:, None] + np.arange(longest)
    padded = np.append(labels, 0)[np.minimum(places, labels.size)]
    return tensor(padded, dtype=dtypes.int64, device=targets.device)


@api_boundary
def _cudnn_ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank, deterministic, zero_infinity=False
):
    """Return the losses of `ctc_loss` for each sample and their gradient, on any device.

    The arguments are those of `ctc_loss`; `deterministic` has no meaning here. The gradient is
    that of the sum of the losses and has none itself.
    """
    options = input_lengths, target_lengths, blank, 0, zero_infinity
    losses = ctc_loss(log_probs, targets, *options)
    with enable_grad():
        leaf = log_probs.detach().requires_grad_()
        (gradient,) = grad(ctc_loss(leaf, targets, *options).sum(), leaf)
    return losses, gradient


_ctc_loss = ops._ctc_loss
