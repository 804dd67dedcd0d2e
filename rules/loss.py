"""Losses of elements or rows, reduced to their mean or sum.

`reduction` is 0 for no reduction, 1 for the mean, 2 for the sum.
"""

import typing

import jax
import jax.numpy as jnp
import numpy
from jax import lax
from jax.scipy import special
from jaxgrad.rules import activation, arithmetic

from jaxgrad.core import dtypes, promotion
from jaxgrad.core.dtypes import BOOLEAN, COMPLEX, INTEGRAL

MEAN, SUM = 1, 2


def apply_loss_reduction(losses, reduction):
    """The mean or the sum of the losses, or the losses themselves."""
    if reduction == MEAN:
        return jnp.mean(losses)
    return jnp.sum(losses) if reduction == SUM else losses


def loss_reduction_backward(gradients, reduction):
    """The gradients of elementwise losses, divided by their number if the loss is the mean."""
    return gradients * (1 / max(gradients.size, 1)) if reduction == MEAN else gradients


def _operands(name, *tensors):
    """The tensors in their common dtype. Raises RuntimeError if it is not real floating point."""
    present = promotion.unify(*tensors)
    promotion.refuse(name, present[0], BOOLEAN, INTEGRAL, COMPLEX)
    promotion.broadcast_shapes(name, *(tensor.shape for tensor in present if tensor is not None))
    return present


def _check_kept(name, kept, other):
    """Raise RuntimeError where losses of two tensors cannot be kept in the dtype of the first."""
    kept_dtype, common = dtypes.from_numpy(kept.dtype), promotion.result_type(kept, other)
    if kept_dtype.category < common.category:
        raise RuntimeError(
            f"result type {common.scalar_type} can't be cast to the desired output type "
            f"{kept_dtype.scalar_type}: {name} takes floating point targets; convert them with "
            f".to({common!r})"
        )


# distances


def mse_loss(self, target, reduction):
    self, target = _operands("mse_loss", self, target)
    return apply_loss_reduction(jnp.square(self - target), reduction)


def mse_loss_backward(grad_output, self, target, reduction):
    return loss_reduction_backward(2 * (self - target) * grad_output, reduction)


def l1_loss(self, target, reduction):
    arithmetic.refuse_booleans(self, target)
    self, target = promotion.unify(self, target)
    promotion.broadcast_shapes("l1_loss", self.shape, target.shape)
    losses = jnp.abs(self - target)
    if reduction == MEAN:
        promotion.refuse("mean", losses, INTEGRAL)
    return apply_loss_reduction(losses, reduction)


def l1_loss_backward(grad_output, self, target, reduction):
    """`grad_output * sign(self - target)`, which is 0 where both are equal."""
    difference = self - target
    return loss_reduction_backward(grad_output * _sign(difference), reduction)


def _sign(difference):
    if not jnp.iscomplexobj(difference):
        return arithmetic.sgn(difference)  # 0 of NaN
    length = jnp.abs(difference)
    return jnp.where(length == 0, 0, difference / jnp.where(length == 0, 1, length))


@promotion.in_single
def smooth_l1_loss(self, target, reduction, beta):
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta, got {beta}")
    self, target = _operands("smooth_l1_loss", self, target)
    distance = jnp.abs(self - target)
    if beta == 0:
        return apply_loss_reduction(distance, reduction)
    near = distance * distance * (0.5 / beta)
    return apply_loss_reduction(jnp.where(distance < beta, near, distance - 0.5 * beta), reduction)


@promotion.in_single
def smooth_l1_loss_backward(grad_output, self, target, reduction, beta):
    difference = self - target
    near = grad_output * difference / beta if beta else 0
    far = jnp.where(difference < 0, -grad_output, grad_output)
    # with beta=0 PyTorch's gradient is -1 where both are equal; 0 is that of l1_loss
    is_far = jnp.abs(difference) >= beta if beta else jnp.abs(difference) > 0  # not of NaN
    return loss_reduction_backward(jnp.where(is_far, far, near), reduction)


def huber_loss(self, target, reduction, delta):
    """The loss has the dtype of `self`."""
    if not delta > 0:  # NaN too
        raise RuntimeError(
            f"huber_loss does not support non-positive values for delta, got {delta}"
        )
    _operands("huber_loss", self, target)
    _check_kept("huber_loss", self, target)
    return _huber_loss(self, target, reduction, delta).astype(self.dtype)


@promotion.in_single
def _huber_loss(self, target, reduction, delta):
    distance = jnp.abs(self - target)
    near, far = 0.5 * distance * distance, delta * (distance - 0.5 * delta)
    return apply_loss_reduction(jnp.where(distance <= delta, near, far), reduction)


@promotion.in_single
def huber_loss_backward(grad_output, self, target, reduction, delta):
    """`grad_output` times the difference, limited to `delta` and `-delta`."""
    difference = self - target
    far = jnp.where(difference < 0, -delta, delta)
    slope = jnp.where(jnp.abs(difference) > delta, far, difference)  # NaN of NaN
    return loss_reduction_backward(slope * grad_output, reduction)


@promotion.in_single
def huber_loss_double_backward(grad, self, target, reduction, delta):
    """The gradient of `self` in `huber_loss_backward`; `grad` is multiplied by `grad_output`."""
    near = jnp.abs(self - target) <= delta
    return loss_reduction_backward(jnp.where(near, grad, 0), reduction)


@promotion.in_single
def kl_div(self, target, reduction, *, log_target):
    promotion.refuse("kl_div", target, BOOLEAN, INTEGRAL)
    promotion.refuse("kl_div", self, BOOLEAN, INTEGRAL)
    self, target = _operands("kl_div", self, target)
    if log_target:
        return apply_loss_reduction(jnp.exp(target) * (target - self), reduction)
    return apply_loss_reduction(special.xlogy(target, target) - target * self, reduction)


def kl_div_self_backward(grad, shape, target, reduction, log_target):
    """The gradient of `self`, whose shape is given; the mean divides by the size of both."""
    slope = -grad * (jnp.exp(target) if log_target else target)
    whole = jnp.broadcast_to(slope, jnp.broadcast_shapes(slope.shape, shape))
    return loss_reduction_backward(whole, reduction)


def kl_div_target_backward(grad, self, target, reduction, log_target):
    """The gradient of `target`; NaN at 0, as in PyTorch, although the value there is 0."""
    if log_target:
        slope = jnp.exp(target) * (target - self + 1)
    else:
        slope = jnp.where(target == 0, jnp.nan, jnp.log(target) + 1 - self)
    return loss_reduction_backward(grad * slope, reduction)


def kl_div_backward(grad_output, self, target, reduction):
    """The gradient of `self` in `kl_div` of early PyTorch, which is 0 for a target that is not
    positive.
    """
    gradients = kl_div_self_backward(grad_output, self.shape, target, reduction, False)
    return jnp.where(target > 0, gradients, 0)


# classes


def class_axis(self):
    """The dimension of the classes: the second, or the only one of a single row."""
    return min(self.ndim - 1, 1)


def nll_loss(self, target, weight, reduction, ignore_index):
    return nll_loss_forward(self, target, weight, reduction, ignore_index)[0]


def nll_loss_forward(self, target, weight, reduction, ignore_index):
    promotion.refuse("nll_loss", self, BOOLEAN, INTEGRAL, COMPLEX)
    _check_target("nll_loss", self, target, weight)
    _check_weight_dtype(self, weight)
    classes = _classes(target, ignore_index)
    weights = _class_weights(self, classes, weight)
    losses = jnp.where(classes < 0, 0, -_picked(self, classes) * weights)
    total = jnp.sum(weights)
    if reduction == MEAN:
        return jnp.sum(losses) / total, total
    total = total if reduction == SUM else jnp.zeros_like(total)
    return apply_loss_reduction(losses, reduction), total


def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    classes = _classes(target, ignore_index)
    gradients = -grad_output * _class_weights(self, classes, weight)
    if reduction == MEAN:
        gradients = gradients / total_weight
    axis = class_axis(self)
    gradients, classes = jnp.expand_dims(gradients, axis), jnp.expand_dims(classes, axis)
    # all of a row whose target is no class is NaN
    has_gradient = _is_class(self, classes) | (classes >= self.shape[axis])
    return jnp.where(has_gradient, gradients, 0)


def nll_loss_backward_self(grad, self, target, weight, reduction, ignore_index):
    """The gradient of `self` in `nll_loss`; it depends on the shape and dtype of `self` only."""
    total = jnp.sum(_class_weights(self, _classes(target, ignore_index), weight))
    return nll_loss_backward(grad, self, target, weight, reduction, ignore_index, total)


def _classes(target, ignore_index):
    """The target as int32: -1 where it is ignored, the greatest int32 where it is no class."""
    target = target.astype(jnp.int32) if target.dtype.itemsize < 4 else target
    no_class = jnp.where(target < 0, jnp.iinfo(jnp.int32).max, target)
    return jnp.where(target == ignore_index, -1, no_class).astype(jnp.int32)


def _is_class(self, classes):
    """Whether each element of `self` belongs to the target class of its row.

    classes: of the shape of `self`, with one element along the dimension of the classes.
    """
    return lax.broadcasted_iota(jnp.int32, self.shape, class_axis(self)) == classes


def _picked(tensor, classes):
    """The element of each row at its class; NaN where there is no such class."""
    axis = class_axis(tensor)
    indices = jnp.expand_dims(jnp.maximum(classes, 0), axis)
    return jnp.squeeze(jnp.take_along_axis(tensor, indices, axis, mode="fill"), axis)


def _class_weights(self, classes, weight):
    """The weight of each target, 0 where it is ignored, NaN where it is no class: under a trace
    nothing can raise, and so neither the loss nor a gradient passes for a number.
    """
    if weight is None:
        weights = jnp.where(classes < self.shape[class_axis(self)], 1, jnp.nan)
    else:
        weights = jnp.take(weight, jnp.maximum(classes, 0), mode="fill")
    return jnp.where(classes < 0, 0, weights.astype(self.dtype))


def _check_target(name, self, target, weight):
    """Raise for a target of classes that does not fit the shape of `self`."""
    if not self.ndim and name == "cross_entropy":
        raise IndexError(
            "Dimension out of range (expected to be in range of [-1, 0], but got 1): "
            "cross_entropy needs a dimension of classes"
        )
    if not self.ndim:
        raise ValueError(f"Expected 1 or more dimensions (got 0): {name} needs one of classes")
    axis = class_axis(self)
    if axis and target.shape[:1] != self.shape[:1]:
        batch = target.shape[0] if target.ndim else 0
        raise ValueError(
            f"Expected input batch_size ({self.shape[0]}) to match target batch_size ({batch})."
        )
    expected = [*self.shape[:axis], *self.shape[axis + 1 :]]
    if self.ndim < 3 and target.ndim > 1:
        is_column = target.shape[1:] == (1,)
        what = "drop its last dimension by squeeze(1)" if is_column else "it holds a class a row"
        raise RuntimeError(
            "0D or 1D target tensor expected, multi-target not supported: the target of "
            f"{name} has shape {list(target.shape)}; {what}"
        )
    if list(target.shape) != expected:
        raise RuntimeError(
            f"Expected target size {expected}, got {list(target.shape)}: {name} of an input of "
            f"shape {list(self.shape)} has its classes along dimension {axis}"
        )
    if not (promotion.is_long(target.dtype) or target.dtype == dtypes.uint8.numpy):
        kind = dtypes.from_numpy(target.dtype).scalar_type
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {kind}: {name} takes classes; "
            "convert the target with .long()"
        )
    _check_weight(self, weight)


def _check_weight_dtype(self, weight):
    if weight is not None and weight.dtype != self.dtype:
        names = [dtypes.from_numpy(array.dtype).scalar_type for array in (self, weight)]
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}: nll_loss")


def _check_weight(self, weight):
    count = self.shape[class_axis(self)]
    if weight is not None and weight.shape != (count,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {count} classes or no classes but "
            f"got weight tensor of shape: {list(weight.shape)}"
        )


def _refuse_other_classes(self, target, weight, reduction, ignore_index, *_):
    """Raise IndexError for a target that is no class of `self`."""
    classes = numpy.asarray(target)
    if not self.ndim or classes.dtype.kind not in "iu":
        return
    count = self.shape[class_axis(self)]
    wrong = classes[(classes != ignore_index) & ((classes < 0) | (classes >= count))]
    if wrong.size:
        known = f"The {count} classes count from 0, and {ignore_index} is ignored."
        raise IndexError(f"Target {wrong[0]} is out of bounds. {known}")


nll_loss.precondition = nll_loss_forward.precondition = _refuse_other_classes
nll_loss2d = nll_loss
nll_loss2d_forward = nll_loss_forward
nll_loss2d_backward = nll_loss_backward


def cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing):
    promotion.refuse("cross_entropy", self, BOOLEAN, INTEGRAL, COMPLEX)
    _check_cross_entropy(self, target, weight, ignore_index, label_smoothing)
    axis, dtype = class_axis(self), self.dtype
    scores = activation.log_softmax_along(activation.upcast_half(self), axis)
    if _is_floating(target):
        dtype = promotion.result_type(self, target, *([] if weight is None else [weight])).numpy
        scores = scores.astype(jnp.promote_types(dtype, scores.dtype))
    else:
        _check_weight_dtype(self, weight)
        weight = None if weight is None else activation.upcast_half(weight)
        if not label_smoothing:
            return nll_loss(scores, target, weight, reduction, ignore_index).astype(self.dtype)
    weights = _Weights.of(scores, target, weight, ignore_index, label_smoothing)
    losses = weights.keep(-jnp.sum(weights.of_classes * scores, axis, keepdims=True))
    if reduction == MEAN:
        return (jnp.sum(losses) / weights.total).astype(dtype)
    return apply_loss_reduction(jnp.squeeze(losses, axis), reduction).astype(dtype)


cross_entropy_loss.precondition = _refuse_other_classes


def cross_entropy_loss_backward(
    grad, self, target, weight, reduction, ignore_index, label_smoothing
):
    """`grad * (softmax(self) * row_weight - class_weight)`, with the weights of `_Weights`."""
    axis = class_axis(self)
    probabilities = activation.softmax_along(activation.upcast_half(self), axis)
    weights = _Weights.of(probabilities, target, weight, ignore_index, label_smoothing)
    grad = grad / weights.total if reduction == MEAN else grad
    of_rows = grad if reduction else jnp.expand_dims(grad, axis)
    return weights.keep(of_rows * (probabilities * weights.of_rows - weights.of_classes))


class _Weights(typing.NamedTuple):
    """The weights of `-log(probability)` in the cross entropy.

    `of_classes`: the weight of each class in each row, with class weights, target and label
    smoothing; `of_rows`: their sums over classes; `total`: the divisor of the mean; `ignored`: the
    rows with an ignored target, or None.
    """

    of_classes: jax.Array
    of_rows: jax.Array
    total: jax.Array | float
    ignored: jax.Array | None

    @classmethod
    def of(cls, scores, target, weight, ignore_index, smoothing):
        if _is_floating(target):
            return cls.of_probabilities(scores, target, weight, smoothing)
        axis = class_axis(scores)
        classes = _classes(target, ignore_index)
        weights = _class_weights(scores, classes, weight)
        of_rows = jnp.expand_dims(weights, axis) * (1 - smoothing)
        is_class = _is_class(scores, jnp.expand_dims(classes, axis))
        of_classes = jnp.where(is_class, of_rows, 0)
        if smoothing:
            everywhere = _along_classes(scores, weight) * (smoothing / scores.shape[axis])
            of_rows = of_rows + jnp.sum(everywhere, axis, keepdims=True)
            of_classes = of_classes + everywhere
        return cls(of_classes, of_rows, jnp.sum(weights), jnp.expand_dims(classes < 0, axis))

    @classmethod
    def of_probabilities(cls, scores, target, weight, smoothing):
        axis = class_axis(scores)
        if smoothing:
            target = target * (1 - smoothing) + smoothing / scores.shape[axis]
        of_classes = target.astype(scores.dtype) * _along_classes(scores, weight)
        total = jnp.asarray(scores.size / max(scores.shape[axis], 1), scores.dtype)
        return cls(of_classes, jnp.sum(of_classes, axis, keepdims=True), total, None)

    def keep(self, numbers):
        """The numbers, with zeros in ignored rows."""
        return numbers if self.ignored is None else jnp.where(self.ignored, 0, numbers)


def _along_classes(scores, weight):
    """The class weights, or ones, in a shape that broadcasts to that of the scores."""
    axis = class_axis(scores)
    shape = [extent if i == axis else 1 for i, extent in enumerate(scores.shape)]
    if weight is None:
        return jnp.ones(shape, scores.dtype)
    return jnp.reshape(weight, shape).astype(scores.dtype)


def _is_floating(target):
    return jnp.issubdtype(target.dtype, jnp.floating)


def _check_cross_entropy(self, target, weight, ignore_index, label_smoothing):
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if target.shape != self.shape:
        return _check_target("cross_entropy", self, target, weight)
    if not _is_floating(target):
        kind = dtypes.from_numpy(target.dtype).scalar_type
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {kind}: "
            "cross_entropy reads a target of the input's shape as probabilities"
        )
    if ignore_index >= 0:
        raise RuntimeError(
            f"ignore_index is not supported for floating point target, got {ignore_index}"
        )
    _check_weight(self, weight)


# binary


def binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction):
    """The loss has the dtype of `target`, as where PyTorch writes it over `1 - target`."""
    name = "binary_cross_entropy_with_logits"
    promotion.refuse(name, self, BOOLEAN, INTEGRAL, COMPLEX)
    _operands(name, self, target, weight, pos_weight)
    _check_kept(name, target, self)
    losses = _losses_of_logits(self, target, weight, pos_weight, reduction)
    return losses.astype(target.dtype)


@promotion.in_single
def _losses_of_logits(self, target, weight, pos_weight, reduction):
    positive = _positive_weight(target, pos_weight) * activation.log_sigmoid(self)
    losses = (1 - target) * self - positive
    return apply_loss_reduction(_weighted(losses, weight), reduction)


@promotion.in_single
def binary_cross_entropy_with_logits_backward(grad, self, target, weight, pos_weight, reduction):
    """`grad * weight * (1 - target - positive_weight * sigmoid(-self))`: the gradient of `self`."""
    slope = 1 - target - _positive_weight(target, pos_weight) * lax.logistic(-self)
    return loss_reduction_backward(_weighted(grad * slope, weight), reduction)


def _positive_weight(target, pos_weight):
    return 1 if pos_weight is None else 1 + (pos_weight - 1) * target


def _weighted(losses, weight):
    return losses if weight is None else losses * weight


def binary_cross_entropy(self, target, weight, reduction):
    """`-weight * (target * log(self) + (1 - target) * log(1 - self))`, logarithms at least -100."""
    _check_probabilities(self, target, weight)
    return _losses_of_probabilities(self, target, weight, reduction).astype(self.dtype)


@promotion.in_single
def _losses_of_probabilities(self, target, weight, reduction):
    log_p, log_q = _bounded_logarithms(self)
    losses = (target - 1) * log_q - target * log_p
    return apply_loss_reduction(_weighted(losses, weight), reduction)


def _bounded_logarithms(probability):
    return jnp.maximum(jnp.log(probability), -100), jnp.maximum(jnp.log1p(-probability), -100)


@promotion.in_single
def binary_cross_entropy_backward(grad_output, self, target, weight, reduction):
    """`grad_output * weight * (self - target) / max(self * (1 - self), 1e-12)`."""
    slope = (self - target) / jnp.maximum((1 - self) * self, 1e-12)
    return loss_reduction_backward(_weighted(grad_output * slope, weight), reduction)


@promotion.in_single
def binary_cross_entropy_target_backward(grad, self, target, weight, reduction):
    log_p, log_q = _bounded_logarithms(self)
    slope = jnp.broadcast_to(log_q - log_p, target.shape)
    return loss_reduction_backward(_weighted(grad * slope, weight), reduction)


def _check_probabilities(self, target, weight):
    promotion.refuse("binary_cross_entropy", self, BOOLEAN, INTEGRAL, COMPLEX)
    if target.dtype != self.dtype:
        kinds = [dtypes.from_numpy(tensor.dtype).scalar_type for tensor in (target, self)]
        raise RuntimeError(
            f"Found dtype {kinds[0]} but expected {kinds[1]}: binary_cross_entropy takes targets "
            "of the dtype of its input"
        )
    if target.shape != self.shape:
        raise RuntimeError(
            f"The size of tensor a {list(self.shape)} must match the size of tensor b "
            f"{list(target.shape)}: input and target of binary_cross_entropy"
        )
    together = self.shape if weight is None else _together(self.shape, weight.shape)
    if together != self.shape:
        raise RuntimeError(
            f"output with shape {list(self.shape)} doesn't match the broadcast shape "
            f"{list(together)}: binary_cross_entropy"
        )


def _together(*shapes):
    return promotion.broadcast_shapes("binary_cross_entropy", *shapes)


def _refuse_no_probabilities(self, target, weight, reduction):
    """Raise RuntimeError for numbers that are no probabilities."""
    for role, tensor in (("input", self), ("target", target)):
        values = numpy.asarray(tensor)
        # a NaN is no probability either
        if values.dtype.kind not in "iub" and not ((values >= 0) & (values <= 1)).all():
            hint = "; binary_cross_entropy_with_logits takes logits" if role == "input" else ""
            raise RuntimeError(
                f"all elements of {role} should be between 0 and 1: binary_cross_entropy takes "
                f"probabilities{hint}"
            )


binary_cross_entropy.precondition = _refuse_no_probabilities


def soft_margin_loss(self, target, reduction):
    """`log(1 + exp(-target * self))`, without overflow, in the dtype of `self`."""
    promotion.refuse("soft_margin_loss", self, COMPLEX)
    if not jnp.issubdtype(self.dtype, jnp.floating):
        kind = dtypes.from_numpy(self.dtype).scalar_type
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {kind}: soft_margin_loss"
        )
    together = promotion.broadcast_shapes("soft_margin_loss", self.shape, target.shape)
    if together != self.shape:
        raise RuntimeError(
            f"output with shape {list(self.shape)} doesn't match the broadcast shape "
            f"{list(together)}: soft_margin_loss"
        )
    return _soft_margin_loss(self, target, reduction).astype(self.dtype)


@promotion.in_single
def _soft_margin_loss(self, target, reduction):
    return apply_loss_reduction(jnp.logaddexp(-(target * self), 0), reduction)


@promotion.in_single
def soft_margin_loss_backward(grad_output, self, target, reduction):
    """`-target * grad_output * sigmoid(-target * self)`."""
    slope = target * lax.logistic(-(target * self))
    return loss_reduction_backward(-(slope * grad_output), reduction)
