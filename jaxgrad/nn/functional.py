"""Activations and losses as functions, with PyTorch's names, arguments and defaults.

>>> import jaxgrad.nn.functional as F
>>> logits = jaxgrad.tensor([[2.0, 0.0], [0.0, 2.0]])
>>> F.cross_entropy(logits, jaxgrad.tensor([0, 1]))
tensor(0.1269)
"""

from __future__ import annotations

import importlib
import warnings

from .. import ops

# what fewer programs use, by the module where it is, which is then imported
_NAMES = {
    "activations": (
        "glu hardshrink hardsigmoid hardswish mish prelu softshrink softsign tanhshrink"
    ),
    "attention": "scaled_dot_product_attention",
    "convolution": ("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"),
    "dropout": "alpha_dropout dropout dropout1d dropout2d dropout3d",
    "embedding": "embedding one_hot",
    "losses": (
        "binary_cross_entropy cosine_embedding_loss cosine_similarity gaussian_nll_loss "
        "hinge_embedding_loss huber_loss margin_ranking_loss pairwise_distance poisson_nll_loss "
        "soft_margin_loss triplet_margin_loss"
    ),
    "normalization": "batch_norm group_norm instance_norm layer_norm normalize rms_norm",
    "padding": "pad",
    "pooling": (
        "adaptive_avg_pool1d adaptive_avg_pool2d avg_pool1d avg_pool2d avg_pool3d max_pool1d "
        "max_pool2d max_pool3d"
    ),
}
_LATER = {name: module for module, names in _NAMES.items() for name in names.split()}


# operators under their names here, which are made when they are first used
_OPERATORS = {name: name for name in ("gelu", "linear", "sigmoid", "softplus", "tanh")}
_OPERATORS["logsigmoid"] = "log_sigmoid"


def __getattr__(name):
    if name in _OPERATORS:
        found = getattr(ops, _OPERATORS[name])
    elif name in _LATER:
        found = getattr(importlib.import_module(f"{__package__}.{_LATER[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *_LATER, *_OPERATORS})


def _activated(name, inplace, input, *args):
    """An activation, or with `inplace` the one that overwrites its input."""
    return getattr(ops, f"{name}_" if inplace else name)(input, *args)


def relu(input, inplace: bool = False):
    """`input` where it is positive, else 0; its gradient at 0 is 0.

    >>> F.relu(jaxgrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _activated("relu", inplace, input)


def relu_(input):
    """`relu` that overwrites its input."""
    return relu(input, inplace=True)


def leaky_relu_(input, negative_slope: float = 0.01):
    """`leaky_relu` that overwrites its input."""
    return leaky_relu(input, negative_slope, inplace=True)


def elu_(input, alpha: float = 1.0):
    """`elu` that overwrites its input."""
    return elu(input, alpha, inplace=True)


def hardtanh_(input, min_val: float = -1.0, max_val: float = 1.0):
    """`hardtanh` that overwrites its input."""
    return hardtanh(input, min_val, max_val, inplace=True)


def selu_(input):
    """`selu` that overwrites its input."""
    return selu(input, inplace=True)


def celu_(input, alpha: float = 1.0):
    """`celu` that overwrites its input."""
    return celu(input, alpha, inplace=True)


def threshold_(input, threshold: float, value: float):
    """`threshold` that overwrites its input."""
    return _activated("threshold", True, input, threshold, value)


def threshold(input, threshold: float, value: float, inplace: bool = False):
    """`input` where it is above `threshold`, else `value`.

    >>> F.threshold(jaxgrad.tensor([-1.0, 2.0]), 0.5, 7.0)
    tensor([7., 2.])
    """
    return _activated("threshold", inplace, input, threshold, value)


def leaky_relu(input, negative_slope: float = 0.01, inplace: bool = False):
    """`input` where it is positive, else `negative_slope * input`.

    >>> F.leaky_relu(jaxgrad.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    return _activated("leaky_relu", inplace, input, negative_slope)


def hardtanh(input, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
    """`input` between `min_val` and `max_val`, else the nearer of the two.

    Raises ValueError where `min_val` is the greater one.

    >>> F.hardtanh(jaxgrad.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val: {min_val} > {max_val}")
    return _activated("hardtanh", inplace, input, min_val, max_val)


def relu6(input, inplace: bool = False):
    """`input` between 0 and 6.

    >>> F.relu6(jaxgrad.tensor([-1.0, 7.0]))
    tensor([0., 6.])
    """
    return hardtanh(input, 0, 6, inplace)


def silu(input, inplace: bool = False):
    """`input * sigmoid(input)`.

    >>> F.silu(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    return _activated("silu", inplace, input)


def elu(input, alpha: float = 1.0, inplace: bool = False):
    """`input` where it is positive, else `alpha * (exp(input) - 1)`.

    >>> F.elu(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _activated("elu", inplace, input, alpha)


# with these, outputs of mean 0 and variance 1 stay so through a layer of independent weights
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def selu(input, inplace: bool = False):
    """`elu` with the two constants of self-normalizing networks.

    >>> F.selu(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return _activated("elu", inplace, input, _SELU_ALPHA, _SELU_SCALE)


def celu(input, alpha: float = 1.0, inplace: bool = False):
    """`input` where it is positive, else `alpha * (exp(input / alpha) - 1)`, which has no kink.

    >>> F.celu(jaxgrad.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _activated("elu", inplace, input, alpha, 1, 1 / alpha)


def softmax(input, dim: int | None = None, _stacklevel: int = 3, dtype=None):
    """Positive numbers in proportion to `exp(input)` that sum to 1 along `dim`.

    dtype: `input` is converted to it first.

    >>> F.softmax(jaxgrad.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    dim = _implicit_dim("softmax", input, _stacklevel) if dim is None else dim
    return ops.softmax(input, dim, dtype)


def softmin(input, dim: int | None = None, _stacklevel: int = 3, dtype=None):
    """`softmax` of `-input`.

    >>> F.softmin(jaxgrad.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    dim = _implicit_dim("softmin", input, _stacklevel) if dim is None else dim
    return ops.softmax(-input, dim, dtype)


def log_softmax(input, dim: int | None = None, _stacklevel: int = 3, dtype=None):
    """The logarithm of `softmax`, which overflows nowhere.

    >>> F.log_softmax(jaxgrad.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    dim = _implicit_dim("log_softmax", input, _stacklevel) if dim is None else dim
    return ops.log_softmax(input, dim, dtype)


def _implicit_dim(name, input, stacklevel):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if input.ndim in (0, 1, 3) else 1


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _reduction(reduction, size_average=None, reduce=None):
    """The number of a reduction; `size_average` and `reduce` are how PyTorch spelled it before."""
    if size_average is not None or reduce is not None:
        reduction = _old_reduction(size_average is not False, reduce is not False)
        warnings.warn(
            "size_average and reduce args will be deprecated, "
            f"please use reduction='{reduction}' instead.",
            stacklevel=3,
        )
    if reduction not in _REDUCTIONS:
        known = ", ".join(map(repr, _REDUCTIONS))
        raise ValueError(f"{reduction} is not a valid value for reduction: it is one of {known}")
    return _REDUCTIONS[reduction]


def _old_reduction(size_average, reduce):
    if not reduce:
        return "none"
    return "mean" if size_average else "sum"


def _warn_of_broadcast(input, target):
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )


def _weighted(loss, input, target, weight, reduction, *arguments):
    """A loss of each element times its weight; their mean is over the sum of the weights."""
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


def mse_loss(input, target, size_average=None, reduce=None, reduction: str = "mean", weight=None):
    """The squared difference of each element, then `reduction`: "none", "mean" or "sum".

    >>> F.mse_loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 4.0]))
    tensor(2.)
    """
    _warn_of_broadcast(input, target)
    reduction = _reduction(reduction, size_average, reduce)
    return _weighted(ops.mse_loss, input, target, weight, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction: str = "mean", weight=None):
    """The absolute difference of each element, then `reduction`.

    >>> F.l1_loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 4.0]))
    tensor(1.)
    """
    _warn_of_broadcast(input, target)
    reduction = _reduction(reduction, size_average, reduce)
    return _weighted(ops.l1_loss, input, target, weight, reduction)


def smooth_l1_loss(
    input, target, size_average=None, reduce=None, reduction: str = "mean", beta: float = 1.0
):
    """A parabola where the difference is less than `beta`, straight beyond; then `reduction`.

    >>> F.smooth_l1_loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 4.0]), reduction="none")
    tensor([0.0000, 1.5000])
    """
    _warn_of_broadcast(input, target)
    reduction = _reduction(reduction, size_average, reduce)
    if beta == 0:
        return ops.l1_loss(input, target, reduction)
    return ops.smooth_l1_loss(input, target, reduction, beta)


def kl_div(
    input, target, size_average=None, reduce=None, reduction: str = "mean", log_target: bool = False
):
    """The Kullback-Leibler divergence from logarithms `input` to probabilities `target`.

    reduction: "none", "mean" (over the elements), "batchmean" (over the rows) or "sum".
    log_target: `target` is logarithms too.

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
            stacklevel=2,
        )
    reduction = _reduction(reduction, size_average, reduce)
    return ops.kl_div(input, target, reduction, log_target=log_target)


def nll_loss(
    input, target, weight=None, size_average=None, ignore_index: int = -100, reduce=None,
    reduction: str = "mean",
):  # fmt: skip
    """The negative of each row's log-probability of its class `target`, then `reduction`.

    input: (C,), (N, C) or (N, C, ...), of which the target lacks C. weight: one for each class,
    also in the mean. ignore_index: a target that counts nothing. Raises IndexError for a target
    that is no class.

    >>> F.nll_loss(jaxgrad.tensor([[-1.0, -2.0], [-3.0, -4.0]]), jaxgrad.tensor([0, 1]))
    tensor(2.5000)
    """
    reduction = _reduction(reduction, size_average, reduce)
    return ops.nll_loss(input, target, weight, reduction, ignore_index)


def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index: int = -100, reduce=None,
    reduction: str = "mean", label_smoothing: float = 0.0,
):  # fmt: skip
    """`nll_loss` of `log_softmax` along the classes.

    target: classes, or the probability of each class in the shape of `input`. label_smoothing: the
    part of each row that is shared out evenly among all classes.

    >>> F.cross_entropy(jaxgrad.tensor([[0.0, 0.0]]), jaxgrad.tensor([1]))
    tensor(0.6931)
    """
    reduction = _reduction(reduction, size_average, reduce)
    return ops.cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction: str = "mean",
    pos_weight=None,
):  # fmt: skip
    """The cross entropy of probabilities `target` and `sigmoid(input)`, then `reduction`.

    weight: of each element; pos_weight: of the positive class, along the last dimension.

    >>> F.binary_cross_entropy_with_logits(jaxgrad.tensor([0.0]), jaxgrad.tensor([1.0]))
    tensor(0.6931)
    """
    if target.shape != input.shape:
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    reduction = _reduction(reduction, size_average, reduce)
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)
