"""Losses that are made of operators."""

from __future__ import annotations

from .. import ops
from ..autograd import Function
from ..ops.autocast import widened
from .functional import _reduction, _warn_if_broadcast
from .normalization import norm_along


def _reduced(losses, reduction):
    """Losses as they are, their mean or their sum, by the number of a reduction."""
    if reduction == 0:
        return losses
    return losses.mean() if reduction == 1 else losses.sum()


class _BinaryCrossEntropy(Function):
    """The cross entropy of each element. Its logarithms end at -100, and its gradient is as if they
    did not."""

    @staticmethod
    def forward(ctx, input, target):
        ctx.save_for_backward(input, target)
        ones, zeros = input.log().clamp_min(-100), (-input).log1p().clamp_min(-100)
        return (target - 1) * zeros - target * ones

    @staticmethod
    def backward(ctx, gradient):
        input, target = ctx.saved_tensors
        of_input = of_target = None
        if ctx.needs_input_grad[0]:
            spread = ((1 - input) * input).clamp_min(1e-12)
            of_input = gradient * (input - target) / spread
        if ctx.needs_input_grad[1]:
            of_target = gradient * ((-input).log1p().clamp_min(-100) - input.log().clamp_min(-100))
        return of_input, of_target


def binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction: str = "mean"
):
    """The cross entropy of probabilities `target` and `input`, then `reduction`.

    Raises RuntimeError where `input` is not between 0 and 1, if its numbers are known.
    `binary_cross_entropy_with_logits` is exact further out.

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
    losses = _BinaryCrossEntropy.apply(input, target)
    return _reduced(losses if weight is None else losses * weight, reduction)


def huber_loss(input, target, reduction: str = "mean", delta: float = 1.0, weight=None):
    """A parabola where the difference is less than `delta`, straight beyond; then `reduction`.

    >>> F.huber_loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 5.0]), reduction="none")
    tensor([0.0000, 2.5000])
    """
    _warn_if_broadcast(input, target)
    number = _reduction(reduction)
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta: {delta}")
    input, target, weight = widened(input, target, weight)
    apart = input - target
    distance = apart.abs()
    losses = ops.where(distance <= delta, apart * apart * 0.5, (distance - 0.5 * delta) * delta)
    return _reduced(losses if weight is None else losses * weight, number)


def margin_ranking_loss(
    input1, input2, target, margin: float = 0, size_average=None, reduce=None,
    reduction: str = "mean",
):  # fmt: skip
    """`max(0, margin - target * (input1 - input2))`: the first is to be greater where `target` is
    1, and less where it is -1; then `reduction`.

    >>> one, two = jaxgrad.tensor([1.0]), jaxgrad.tensor([2.0])
    >>> F.margin_ranking_loss(one, two, jaxgrad.tensor([1.0]))
    tensor(1.)
    """
    number = _reduction(reduction, size_average, reduce)
    input1, input2, target = widened(input1, input2, target)
    return _reduced((margin - target * (input1 - input2)).clamp_min(0), number)


def cosine_similarity(x1, x2, dim: int = 1, eps: float = 1e-8):
    """The cosine of the angle between vectors along `dim`; each is taken to be `eps` long at least.

    >>> F.cosine_similarity(jaxgrad.tensor([[3.0, 4.0]]), jaxgrad.tensor([[6.0, 0.0]]))
    tensor([0.6000])
    """
    one, two = (each / ops.clamp_min(norm_along(each, 2, dim), eps) for each in (x1, x2))
    return (one * two).sum(dim)


def cosine_embedding_loss(
    input1, input2, target, margin: float = 0, size_average=None, reduce=None,
    reduction: str = "mean",
):  # fmt: skip
    """1 less the cosine of two vectors where `target` is 1, and what it exceeds `margin` by where
    it is -1; then `reduction`.

    >>> x = jaxgrad.tensor([[3.0, 4.0]])
    >>> F.cosine_embedding_loss(x, x, jaxgrad.tensor([-1]), margin=0.25)
    tensor(0.7500)
    """
    number = _reduction(reduction, size_average, reduce)
    input1, input2, target = widened(input1, input2, target)
    cosine = cosine_similarity(input1, input2, -1)
    apart = ops.where(target == -1, (cosine - margin).clamp_min(0), 0)
    return _reduced(ops.where(target == 1, 1 - cosine, apart), number)


def triplet_margin_loss(
    anchor, positive, negative, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
    swap: bool = False, size_average=None, reduce=None, reduction: str = "mean",
):  # fmt: skip
    """How much nearer than `margin` an anchor is to a negative example than to a positive one; then
    `reduction`.

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
    return _reduced((margin + near - far).clamp_min(0), number)


def pairwise_distance(x1, x2, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
    """The p-norm of `x1 - x2 + eps` along the last dimension.

    >>> F.pairwise_distance(jaxgrad.tensor([3.0, 4.0]), jaxgrad.zeros(2))
    tensor(5.0000)
    """
    made = norm_along(x1 - x2 + eps, p, -1)
    return made if keepdim else made.squeeze(-1)


def poisson_nll_loss(
    input, target, log_input: bool = True, full: bool = False, size_average=None,
    eps: float = 1e-8, reduce=None, reduction: str = "mean",
):  # fmt: skip
    """The negative log-likelihood of counts `target` under Poisson distributions whose means, or
    with `log_input` the logarithms of them, are `input`; then `reduction`.

    full: with Stirling's approximation of the term that does not depend on `input`.

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
    return _reduced(losses, number)


def gaussian_nll_loss(
    input, target, var, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
):
    """The negative log-likelihood of `target` under normal distributions of mean `input` and
    variance `var`, at least `eps`; then `reduction`.

    >>> F.gaussian_nll_loss(jaxgrad.zeros(1), jaxgrad.tensor([2.0]), jaxgrad.ones(1))
    tensor(2.)
    """
    number = _reduction(reduction)
    if isinstance(var, float):
        var = input.new_full(input.shape, var)
    if var.ndim == input.ndim - 1:
        var = var.unsqueeze(-1)
    enough = var.detach().clamp_min(eps) + (var - var.detach())
    apart = input - target
    losses = (enough.log() + apart * apart / enough) * 0.5
    if full:
        losses = losses + 0.9189385332046727
    return _reduced(losses, number)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction: str = "mean"):
    """`log(1 + exp(-target * input))`, where targets are 1 and -1; then `reduction`.

    >>> F.soft_margin_loss(jaxgrad.tensor([0.0]), jaxgrad.tensor([1.0]))
    tensor(0.6931)
    """
    number = _reduction(reduction, size_average, reduce)
    input, target = widened(input, target)
    return _reduced(-ops.log_sigmoid(target * input), number)


def hinge_embedding_loss(
    input, target, margin: float = 1.0, size_average=None, reduce=None, reduction: str = "mean"
):
    """`input` where `target` is 1, and `max(0, margin - input)` where it is -1; then `reduction`.

    >>> F.hinge_embedding_loss(jaxgrad.tensor([0.25, 0.25]), jaxgrad.tensor([1.0, -1.0]))
    tensor(0.5000)
    """
    number = _reduction(reduction, size_average, reduce)
    input, target = widened(input, target)
    near = ops.where(target == -1, (margin - input).clamp_min(0), 0)
    return _reduced(near + ops.where(target == 1, input, 0), number)
