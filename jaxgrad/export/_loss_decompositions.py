"""What losses and distances consist of: a part of the table of `_decompositions`."""

from __future__ import annotations

import math

from .. import ops
from ._memory import viewed

aten = ops.aten


def _reduced(loss, reduction):
    """The mean or the sum of a loss. reduction: 0 for none, 1 for the mean, 2 for the sum."""
    if reduction == 0:
        return loss
    return aten.mean.default(loss) if reduction == 1 else aten.sum.dim_IntList(loss, [])


def mse_loss(self, target, reduction=1):
    return _reduced(aten.square.default(aten.sub.Tensor(self, target)), reduction)


def l1_loss(self, target, reduction=1):
    return _reduced(aten.abs.default(aten.sub.Tensor(self, target)), reduction)


def smooth_l1_loss(self, target, reduction=1, beta=1.0):
    if not beta:
        return l1_loss(self, target, reduction)
    distance = aten.abs.default(aten.sub.Tensor(self, target))
    is_near = aten.lt.Scalar(distance, beta)
    near = aten.div.Tensor(aten.mul.Tensor(aten.square.default(distance), 0.5), beta)
    far = aten.sub.Tensor(distance, 0.5 * beta)
    return _reduced(aten.where.self(is_near, near, far), reduction)


def huber_loss(self, target, reduction=1, delta=1.0):
    distance = aten.abs.default(aten.sub.Tensor(self, target))
    is_near = aten.lt.Scalar(distance, delta)
    near = aten.mul.Tensor(aten.mul.Tensor(distance, 0.5), distance)
    far = aten.mul.Tensor(aten.sub.Tensor(distance, 0.5 * delta), delta)
    return _reduced(aten.where.self(is_near, near, far), reduction)


def binary_cross_entropy(self, target, weight=None, reduction=1):
    def limited(logarithms):
        least = aten.full.default([], -100, dtype=self.dtype, device=self.device)
        return aten.maximum.default(logarithms, least)

    absent = aten.sub.Tensor(target, 1)
    absent = aten.mul.Tensor(absent, limited(aten.log1p.default(aten.neg.default(self))))
    loss = aten.sub.Tensor(absent, aten.mul.Tensor(target, limited(aten.log.default(self))))
    return _reduced(loss if weight is None else aten.mul.Tensor(loss, weight), reduction)


def soft_margin_loss(self, target, reduction=1):
    product = aten.mul.Tensor(aten.neg.default(target), self)
    return _reduced(aten.log1p.default(aten.exp.default(product)), reduction)


def binary_cross_entropy_with_logits(self, target, weight=None, pos_weight=None, reduction=1):
    factor = None
    if pos_weight is not None:
        factor = aten.mul.Tensor(aten.sub.Tensor(pos_weight, 1), target)
        factor = aten.add.Tensor(factor, 1)
    loss = aten.mul.Tensor(aten.sub.Tensor(1, target), self)
    curve = aten.log_sigmoid.default(self)
    curve = curve if factor is None else aten.mul.Tensor(curve, factor)
    loss = aten.sub.Tensor(loss, curve)
    return _reduced(loss if weight is None else aten.mul.Tensor(loss, weight), reduction)


def nll_loss(self, target, weight=None, reduction=1, ignore_index=-100):
    if not self.ndim:
        return NotImplemented
    dim = min(self.ndim - 1, 1)

    def counted(values):
        """The numbers of targets that are not ignored, and zeros."""
        is_counted = aten.ne.Scalar(target, ignore_index)
        return aten.where.self(
            is_counted, values, aten.scalar_tensor.default(0, dtype=values.dtype)
        )

    if weight is not None:
        shape = [1, weight.shape[0], *[1] * (self.ndim - 2)]
        weight = viewed(weight, shape) if dim else weight
        self = aten.mul.Tensor(self, weight)
    places = aten.unsqueeze.default(counted(target), dim)
    chosen = aten.squeeze.dims(aten.gather.default(self, dim, places), [dim])
    loss = counted(aten.neg.default(chosen))
    if reduction != 1:
        return _reduced(loss, reduction)
    if weight is None:
        weights = aten.ne.Scalar(target, ignore_index)
        count = aten._to_copy.default(aten.sum.dim_IntList(weights, []), dtype=self.dtype)
        return aten.div.Tensor(aten.sum.dim_IntList(loss, []), count)
    wide = aten.expand.default(weight, [*self.shape])
    weights = counted(aten.squeeze.dims(aten.gather.default(wide, dim, places), [dim]))
    total = aten.sum.dim_IntList(weights, [])
    return aten.div.Tensor(aten.sum.dim_IntList(loss, []), total)


def cross_entropy_loss(
    self, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0
):
    dim = min(self.ndim - 1, 1)
    logs = aten._log_softmax.default(self, dim, False)
    if target.is_floating_point():
        return _against_probabilities(logs, target, weight, reduction, label_smoothing, dim)
    loss = nll_loss(logs, target, weight, reduction, ignore_index)
    if not label_smoothing:
        return loss
    if weight is not None:
        return NotImplemented
    smooth = aten.neg.default(aten.sum.dim_IntList(logs, [dim]))
    is_ignored = aten.eq.Scalar(target, ignore_index)
    smooth = aten.masked_fill.Scalar(smooth, is_ignored, 0.0)
    if reduction == 1:
        count = aten.sum.default(aten.bitwise_not.default(is_ignored))
        smooth = aten.div.Tensor(aten.sum.default(smooth), count)
    else:
        smooth = _reduced(smooth, reduction)
    share = label_smoothing / self.shape[dim]
    return aten.add.Tensor(
        aten.mul.Tensor(loss, 1 - label_smoothing), aten.mul.Tensor(smooth, share)
    )


def _against_probabilities(logs, target, weight, reduction, label_smoothing, dim):
    if label_smoothing:
        target = aten.mul.Tensor(target, 1 - label_smoothing)
        target = aten.add.Tensor(target, label_smoothing / logs.shape[dim])
    product = aten.mul.Tensor(logs, target)
    if weight is not None:
        shape = [1, weight.shape[0], *[1] * (logs.ndim - 2)] if dim else [weight.shape[0]]
        product = aten.mul.Tensor(product, viewed(weight, shape))
    if not reduction:
        return aten.neg.default(aten.sum.dim_IntList(product, [dim]))
    loss = aten.neg.default(aten.sum.default(product))
    if reduction == 2:
        return loss
    return aten.div.Tensor(loss, math.prod(logs.shape) // logs.shape[dim])


def kl_div(self, target, reduction=1, *, log_target=False):
    if log_target:
        difference = aten.sub.Tensor(target, self)
        loss = aten.mul.Tensor(aten.exp.default(target), difference)
    else:
        product = aten.mul.Tensor(target, self)
        loss = aten.sub.Tensor(aten.xlogy.Tensor(target, target), product)
    return _reduced(loss, reduction)


def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    if log_input:
        product = target * input
        loss = aten.exp.default(input) - product
    else:
        loss = input - target * aten.log.default(input + eps)
    if full:
        terms = target * aten.log.default(target) - target
        terms = terms + 0.5 * aten.log.default(target * (2 * math.pi))
        loss = loss + aten.masked_fill.Scalar(terms, aten.le.Scalar(target, 1), 0)
    return _reduced(loss, reduction)


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=1):
    difference = input1 - input2
    loss = aten.neg.default(target) * difference
    return _reduced(aten.clamp_min.default(aten.add.Tensor(loss, margin), 0), reduction)


def hinge_embedding_loss(self, target, margin=1.0, reduction=1):
    zeros = aten.zeros_like.default(self)
    beyond = aten.clamp_min.default(aten.rsub.Scalar(self, margin), 0)
    outside = aten.where.self(aten.ne.Scalar(target, 1), beyond, zeros)
    inside = aten.where.self(aten.ne.Scalar(target, -1), self, zeros)
    return _reduced(outside + inside, reduction)


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=1):
    dim = target.ndim
    if input1.ndim != dim + 1:
        return NotImplemented

    def product(first, second):
        return aten.sum.dim_IntList(first * second, [dim])

    first = aten.add.Tensor(product(input1, input1), 1e-12)
    second = aten.add.Tensor(product(input2, input2), 1e-12)
    cosine = product(input1, input2) / aten.sqrt.default(first * second)
    zeros = aten.zeros_like.default(cosine)
    near = aten.rsub.Scalar(cosine, 1)
    far = aten.clamp_min.default(aten.sub.Tensor(cosine, margin), 0)
    near = aten.where.self(aten.eq.Scalar(target, 1), near, zeros)
    far = aten.where.self(aten.eq.Scalar(target, -1), far, zeros)
    return _reduced(near + far, reduction)


def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1
):
    near = aten.pairwise_distance.default(anchor, positive, p, eps)
    far = aten.pairwise_distance.default(anchor, negative, p, eps)
    if swap:
        far = aten.minimum.default(far, aten.pairwise_distance.default(positive, negative, p, eps))
    loss = aten.sub.Tensor(aten.add.Tensor(near, margin), far)
    return _reduced(aten.clamp_min.default(loss, 0), reduction)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    difference = aten.add.Tensor(aten.sub.Tensor(x1, x2), eps)
    return aten.linalg_vector_norm.default(difference, p, [difference.ndim - 1], keepdim)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    if x1.shape != x2.shape or x1.dtype != x2.dtype:
        return NotImplemented
    norms = [
        aten.clone.default(aten.linalg_vector_norm.default(x, 2, [dim], True)) for x in (x1, x2)
    ]
    least = aten.scalar_tensor.default(eps, dtype=x1.dtype)
    first, second = (aten.clamp.Tensor(norm, least) for norm in norms)
    product = aten.mul.Tensor(aten.div.Tensor(x1, first), aten.div.Tensor(x2, second))
    return aten.sum.dim_IntList(product, [dim])


def xlogy(self, other):
    product = aten.mul.Tensor(self, aten.log.default(other))
    product = aten.where.self(aten.eq.Scalar(self, 0), aten.scalar_tensor.default(0.0), product)
    return aten.where.self(aten.isnan.default(other), aten.scalar_tensor.default(math.nan), product)


_BY_NAME = (
    *(huber_loss, binary_cross_entropy, soft_margin_loss, mse_loss, l1_loss, smooth_l1_loss),
    *(binary_cross_entropy_with_logits, cross_entropy_loss, kl_div, poisson_nll_loss),
    *(margin_ranking_loss, hinge_embedding_loss, cosine_embedding_loss, triplet_margin_loss),
    *(pairwise_distance, cosine_similarity),
)
FUNCTIONS = {f"{function.__name__}.default": function for function in _BY_NAME}
FUNCTIONS |= {"nll_loss_nd.default": nll_loss, "xlogy.Tensor": xlogy}
