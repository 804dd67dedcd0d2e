"""Margin losses of classes: how far the score of a target lies above those of other classes.

`reduction` is 0 for no reduction, 1 for the mean, 2 for the sum. The scores are (n, c), or (c,) for
one sample. The slope of a margin that is met exactly is 0.
"""

import jax.numpy as jnp
import numpy
from jax import lax
from jaxgrad.rules import loss

from jaxgrad.core import dtypes, promotion
from jaxgrad.core.dtypes import BOOLEAN, COMPLEX, INTEGRAL


def _check_scores(name, self):
    promotion.refuse(name, self, BOOLEAN, INTEGRAL, COMPLEX)
    if self.ndim > 2 or (self.ndim and not self.shape[-1]):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(self.shape)}: {name}"
        )


def _check_long(name, target):
    if target.dtype not in (jnp.int64, jnp.int32):
        kind = dtypes.from_numpy(target.dtype).scalar_type
        raise RuntimeError(f"expected scalar type Long but found {kind}: the target of {name}")


def _rows(tensor):
    """Scores or labels of one sample as the only row of a matrix."""
    return jnp.reshape(tensor, (-1, tensor.shape[-1]) if tensor.ndim else (1, 1))


def _averaged(gradients, reduction, count):
    return gradients / max(count, 1) if reduction == loss.MEAN else gradients


# one class


@promotion.in_single
def multi_margin_loss(self, target, p, margin, weight, reduction):
    """`sum(weight[y] * max(0, margin - x[y] + x[j]) ** p) / c` over the classes j other than y."""
    _check_multi_margin(self, target, p, weight)
    excess, factor = _excess(self, target, margin, weight)
    powers = excess if p == 1 else excess * excess
    losses = jnp.sum(powers * factor, 1) / max(self.shape[-1] if self.ndim else 1, 1)
    if reduction:
        total = jnp.sum(losses)
        return _averaged(total, reduction, losses.size)
    return jnp.reshape(losses, target.shape)


@promotion.in_single
def multi_margin_loss_backward(grad_output, self, target, p, margin, weight, reduction):
    excess, factor = _excess(self, target, margin, weight)
    slope = (excess > 0).astype(excess.dtype) if p == 1 else 2 * excess
    slope = slope * factor / excess.shape[1]
    grad = grad_output if reduction else jnp.reshape(grad_output, (-1, 1))
    gradients = _less_target(slope, target) * grad
    return jnp.reshape(_averaged(gradients, reduction, len(slope)), self.shape)


@promotion.in_single
def multi_margin_loss_double_backward(
    grad, grad_output, self, target, p, margin, weight, reduction
):
    """The gradient of `self` in `multi_margin_loss_backward`."""
    excess, factor = _excess(self, target, margin, weight)
    bend = jnp.where(excess > 0, 2 * factor / excess.shape[1], 0) * (p == 2)
    rows = _rows(grad)
    along = bend * (rows - _of_target(rows, target))
    outer = grad_output if reduction else jnp.reshape(grad_output, (-1, 1))
    gradients = _less_target(along, target) * outer
    return jnp.reshape(_averaged(gradients, reduction, len(along)), self.shape)


def _excess(self, target, margin, weight):
    """`max(0, margin - x[y] + x[j])`, 0 for y itself, and the weight of each target as a column."""
    rows = _rows(self)
    excess = jnp.maximum(margin - _of_target(rows, target) + rows, 0)
    factor = 1 if weight is None else jnp.take(weight, jnp.reshape(target, (-1, 1)), mode="clip")
    return jnp.where(_is_target(rows, target), 0, excess), factor


def _is_target(rows, target):
    classes = lax.broadcasted_iota(target.dtype, rows.shape, 1)
    return classes == jnp.reshape(target, (-1, 1))


def _of_target(rows, target):
    """The score of each target as a column, NaN where there is no such class."""
    column = jnp.reshape(jnp.where(target < 0, rows.shape[1], target), (-1, 1))
    return jnp.take_along_axis(rows, column, 1, mode="fill")


def _less_target(slope, target):
    """The slopes of the other classes, and minus their sum for the target."""
    total = jnp.sum(slope, 1, keepdims=True)
    return jnp.where(_is_target(slope, target), -total, slope)


def _check_multi_margin(self, target, p, weight):
    _check_scores("multi_margin_loss", self)
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported by multi_margin_loss, not {p}")
    rows, count = _rows(self).shape
    if target.ndim > 1 or target.size != rows:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
            f"samples (batch size). Expected target size [{rows}], but got {list(target.shape)}. "
            f"Input has shape {list(self.shape)}."
        )
    if weight is not None and weight.shape != (count,):
        raise RuntimeError(
            f"inconsistent weight size, expected {count} but got {list(weight.shape)}: "
            "multi_margin_loss"
        )
    _check_long("multi_margin_loss", target)


def _refuse_other_targets(self, target, p, margin, weight, reduction):
    classes = numpy.asarray(target)
    count = self.shape[-1] if self.ndim else 1
    if ((classes < 0) | (classes >= count)).any():
        raise RuntimeError(f"target out of range: multi_margin_loss of {count} classes")


multi_margin_loss.precondition = _refuse_other_targets


# several classes


def multilabel_margin_loss_forward(self, target, reduction):
    """`sum(max(0, 1 - x[y] + x[j])) / c` over the labels y before the first -1, and the other
    classes j; and whether each class is a label, as a number.
    """
    _check_multilabel(self, target)
    rows = _rows(self)
    counts, is_target = _labels(rows, target)
    wide = rows.astype(jnp.float32) if rows.dtype.itemsize == 2 else rows
    margins = jnp.maximum(1 - wide[:, :, None] + wide[:, None, :], 0)
    pairs = jnp.where(is_target[:, None, :], 0, counts[:, :, None])
    losses = jnp.sum(margins * pairs, (1, 2)) / rows.shape[1]
    losses = jnp.where(_are_labels(target, rows.shape[1]), losses, jnp.nan)
    flags = jnp.reshape(is_target.astype(self.dtype), self.shape)
    if reduction:
        losses = _averaged(jnp.sum(losses), reduction, len(rows))
    else:
        losses = jnp.reshape(losses, self.shape[:-1])
    return losses.astype(self.dtype), flags


@promotion.in_single
def multilabel_margin_loss_backward(grad_output, self, target, reduction, is_target):
    rows = _rows(self)
    counts, labels = _labels(rows, target)
    short = (1 - rows[:, :, None] + rows[:, None, :]) > 0
    pairs = jnp.where(short & ~labels[:, None, :], counts[:, :, None], 0)
    slope = (jnp.sum(pairs, 1) - jnp.sum(pairs, 2)) / rows.shape[1]
    grad = grad_output if reduction else jnp.reshape(grad_output, (-1, 1))
    return jnp.reshape(_averaged(slope * grad, reduction, len(rows)), self.shape)


def _labels(rows, target):
    """How often each class is a label of each row, and whether it is."""
    labels = _rows(target)
    before = jnp.cumsum(labels < 0, 1) == 0
    classes = lax.broadcasted_iota(labels.dtype, (1, 1, rows.shape[1]), 2)
    counts = jnp.sum((labels[:, :, None] == classes) & before[:, :, None], 1)
    return counts.astype(rows.dtype), counts > 0


def _are_labels(target, count):
    return jnp.all((_rows(target) >= -1) & (_rows(target) < count), 1)


def _check_multilabel(self, target):
    _check_scores("multilabel_margin_loss", self)
    if target.shape != self.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: "
            f"{list(self.shape)}: multilabel_margin_loss"
        )
    _check_long("multilabel_margin_loss", target)


def _refuse_other_labels(self, target, reduction):
    labels = numpy.asarray(target)
    count = self.shape[-1] if self.ndim else 1
    if ((labels < -1) | (labels >= count)).any():
        raise RuntimeError(
            "argument #2 'target' is out of range: the labels of multilabel_margin_loss count from "
            f"0 to {count - 1}, and -1 ends them"
        )


multilabel_margin_loss_forward.precondition = _refuse_other_labels
