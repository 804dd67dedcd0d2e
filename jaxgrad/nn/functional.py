"""Activations and losses as functions, with PyTorch's names, arguments and defaults.

Less common functions live in modules of their own, imported at their first use.

>>> import jaxgrad.nn.functional as F
>>> logits = jaxgrad.tensor([[2.0, 0.0], [0.0, 2.0]])
>>> F.cross_entropy(logits, jaxgrad.tensor([0, 1]))
tensor(0.1269)
"""

from __future__ import annotations

import importlib
import warnings

from .. import functions, ops
from ..core.missing_names import MissingName, offered
from ..core.tracebacks import users_stacklevel
from ..tape.torch_function import api_boundary

# Names that are imported at their first use, by the module that defines them.
_NAMES = {
    "activations": ("gumbel_softmax hardsigmoid hardswish mish rrelu selu softsign tanhshrink"),
    "dot_product_attention": "scaled_dot_product_attention",
    "convolution": ("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"),
    "dropout": "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout",
    "embedding": "embedding embedding_bag one_hot",
    "folding": "fold unfold",
    "grouped_products": "grouped_mm",
    "losses": (
        "binary_cross_entropy cosine_embedding_loss ctc_loss gaussian_nll_loss "
        "hinge_embedding_loss huber_loss linear_cross_entropy margin_ranking_loss "
        "multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss poisson_nll_loss "
        "soft_margin_loss triplet_margin_loss triplet_margin_with_distance_loss"
    ),
    "normalization": (
        "batch_norm group_norm instance_norm layer_norm local_response_norm normalize rms_norm"
    ),
    "multi_head_attention": "multi_head_attention_forward",
    "padding": "pad",
    "resampling": (
        "affine_grid grid_sample interpolate upsample upsample_bilinear upsample_nearest"
    ),
    "pooling": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
        "adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices "
        "adaptive_max_pool3d adaptive_max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d "
        "fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d "
        "fractional_max_pool3d_with_indices lp_pool1d lp_pool2d lp_pool3d max_pool1d "
        "max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d "
        "max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d"
    ),
}
_LAZY = {name: module for module, names in _NAMES.items() for name in names.split()}

# Operators by their names here; an operator is made when it is first used.
_SAME = "conv_tbc gelu glu hardshrink linear sigmoid softplus softshrink tanh"
_OPERATORS = {name: name for name in _SAME.split()} | {"logsigmoid": "log_sigmoid"}
_SHUFFLES = ("channel_shuffle", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle")
_OPERATORS |= {name: name for name in _SHUFFLES}

# Names that `jaxgrad` has too.
_SHARED = ("bilinear", "cosine_similarity", "pairwise_distance", "pdist")
_SHARED += ("prelu", "rrelu_", "selu_")


__path__ = []  # as of a package: names that are absent can be imported


def __getattr__(name):
    if name == "__all__":
        return offered(__name__)
    if name in _OPERATORS:
        function = getattr(ops, _OPERATORS[name])
    elif name in _LAZY:
        function = getattr(importlib.import_module(f"{__package__}.{_LAZY[name]}"), name)
    elif name in _SHARED:
        function = functions.find(name)
    else:
        raise MissingName(__name__, name)
    globals()[name] = function
    return function


def __dir__():
    return sorted({*globals(), *_LAZY, *_OPERATORS, *_SHARED})


def _activation(name, inplace, input, *args):
    """Call the operator `name`, or its in-place variant."""
    return getattr(ops, f"{name}_" if inplace else name)(input, *args)


@api_boundary
def relu(input, inplace: bool = False):
    """Return `max(input, 0)` elementwise; the gradient at 0 is 0.

    input: any shape, real dtype; the result has both. inplace: overwrite `input`.
    Source: Nair and Hinton, "Rectified Linear Units Improve Restricted Boltzmann Machines", 2010.

    >>> F.relu(jaxgrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _activation("relu", inplace, input)


@api_boundary
def relu_(input):
    """Apply `relu` in place and return `input`.

    >>> F.relu_(jaxgrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return relu(input, inplace=True)


@api_boundary
def leaky_relu_(input, negative_slope: float = 0.01):
    """Apply `leaky_relu` in place and return `input`.

    >>> F.leaky_relu_(jaxgrad.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    return leaky_relu(input, negative_slope, inplace=True)


@api_boundary
def elu_(input, alpha: float = 1.0):
    """Apply `elu` in place and return `input`.

    >>> F.elu_(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return elu(input, alpha, inplace=True)


@api_boundary
def hardtanh_(input, min_val: float = -1.0, max_val: float = 1.0):
    """Apply `hardtanh` in place and return `input`.

    >>> F.hardtanh_(jaxgrad.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    return hardtanh(input, min_val, max_val, inplace=True)


@api_boundary
def celu_(input, alpha: float = 1.0):
    """Apply `celu` in place and return `input`.

    >>> F.celu_(jaxgrad.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    return celu(input, alpha, inplace=True)


@api_boundary
def threshold_(input, threshold: float, value: float):
    """Apply `threshold` in place and return `input`.

    >>> F.threshold_(jaxgrad.tensor([-1.0, 2.0]), 0.5, 7.0)
    tensor([7., 2.])
    """
    return _activation("threshold", True, input, threshold, value)


@api_boundary
def threshold(input, threshold: float, value: float, inplace: bool = False):
    """Return `input` where `input > threshold`, else `value`.

    input: any shape, real dtype; the result has both. inplace: overwrite `input`.
    The gradient is 0 where `value` is returned.

    >>> F.threshold(jaxgrad.tensor([-1.0, 2.0]), 0.5, 7.0)
    tensor([7., 2.])
    """
    return _activation("threshold", inplace, input, threshold, value)


@api_boundary
def leaky_relu(input, negative_slope: float = 0.01, inplace: bool = False):
    """Return `input` where it is positive, else `negative_slope * input`.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    The gradient at 0 is `negative_slope`.
    Source: Maas et al., "Rectifier Nonlinearities Improve Neural Network Acoustic Models", 2013.

    >>> F.leaky_relu(jaxgrad.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    return _activation("leaky_relu", inplace, input, negative_slope)


@api_boundary
def hardtanh(input, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
    """Return `min(max(input, min_val), max_val)` elementwise; the gradient at both bounds is 0.

    input: any shape, real dtype; the result has both. inplace: overwrite `input`.
    Raises ValueError if `min_val > max_val`.

    >>> F.hardtanh(jaxgrad.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val: {min_val} > {max_val}")
    return _activation("hardtanh", inplace, input, min_val, max_val)


@api_boundary
def relu6(input, inplace: bool = False):
    """Return `min(max(input, 0), 6)` elementwise; the gradient at 0 and 6 is 0.

    input: any shape, real dtype; the result has both. inplace: overwrite `input`.
    Source: Krizhevsky, "Convolutional Deep Belief Networks on CIFAR-10", 2010.

    >>> F.relu6(jaxgrad.tensor([-1.0, 7.0]))
    tensor([0., 6.])
    """
    return hardtanh(input, 0, 6, inplace)


@api_boundary
def silu(input, inplace: bool = False):
    """Return `input * sigmoid(input)` elementwise, also called swish.

    input: any shape, floating-point or complex dtype; the result has both. inplace: overwrite
    `input`. Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.

    >>> F.silu(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    return _activation("silu", inplace, input)


@api_boundary
def elu(input, alpha: float = 1.0, inplace: bool = False):
    """Return `input` where it is positive, else `alpha * (exp(input) - 1)`.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Source: Clevert et al., "Fast and Accurate Deep Network Learning by ELUs", 2015.

    >>> F.elu(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _activation("elu", inplace, input, alpha)


@api_boundary
def celu(input, alpha: float = 1.0, inplace: bool = False):
    """Return `max(0, input) + min(0, alpha * (exp(input / alpha) - 1))`, which has no kink at 0.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Raises RuntimeError if `alpha` is 0.
    Source: Barron, "Continuously Differentiable Exponential Linear Units", 2017.

    >>> F.celu(jaxgrad.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    return _activation("celu", inplace, input, alpha)


@api_boundary
def softmax(input, dim: int | None = None, _stacklevel: int = 3, dtype=None):
    """Return `exp(input) / exp(input).sum(dim, keepdim=True)`, computed without overflow.

    input: any shape, floating-point dtype, converted to `dtype` first; the result has its shape.
    dim: the dimension that sums to 1; without it PyTorch's implicit choice and a warning.
    Raises IndexError if `dim` is out of range.

    >>> F.softmax(jaxgrad.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    dim = _implicit_dim("softmax", input) if dim is None else dim
    return ops.softmax(input, dim, dtype)


@api_boundary
def softmin(input, dim: int | None = None, _stacklevel: int = 3, dtype=None):
    """Return `softmax(-input, dim)`.

    Arguments and errors are those of `softmax`.

    >>> F.softmin(jaxgrad.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    dim = _implicit_dim("softmin", input) if dim is None else dim
    return ops.softmax(-input, dim, dtype)


@api_boundary
def log_softmax(input, dim: int | None = None, _stacklevel: int = 3, dtype=None):
    """Return `input - log(exp(input).sum(dim, keepdim=True))`, computed without overflow.

    Arguments and errors are those of `softmax`.

    >>> F.log_softmax(jaxgrad.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    dim = _implicit_dim("log_softmax", input) if dim is None else dim
    return ops.log_softmax(input, dim, dtype)


def _implicit_dim(name, input):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=users_stacklevel(),
    )
    return 0 if input.ndim in (0, 1, 3) else 1


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _reduction(reduction, size_average=None, reduce=None):
    """Return the number of a reduction; `size_average` and `reduce` are its deprecated spelling."""
    if size_average is not None or reduce is not None:
        reduction = _deprecated_reduction(size_average is not False, reduce is not False)
        warnings.warn(
            "size_average and reduce args will be deprecated, "
            f"please use reduction='{reduction}' instead.",
            stacklevel=users_stacklevel(),
        )
    if reduction not in _REDUCTIONS:
        known = ", ".join(map(repr, _REDUCTIONS))
        raise ValueError(f"{reduction} is not a valid value for reduction: choose one of {known}")
    return _REDUCTIONS[reduction]


def _deprecated_reduction(size_average, reduce):
    if not reduce:
        return "none"
    return "mean" if size_average else "sum"


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


@api_boundary
def mse_loss(input, target, size_average=None, reduce=None, reduction: str = "mean", weight=None):
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


@api_boundary
def l1_loss(input, target, size_average=None, reduce=None, reduction: str = "mean", weight=None):
    """Return the mean absolute error: `|input - target|`, reduced; the gradient at 0 is 0.

    Arguments and errors are those of `mse_loss`.

    >>> F.l1_loss(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([1.0, 4.0]))
    tensor(1.)
    """
    _warn_if_broadcast(input, target)
    reduction = _reduction(reduction, size_average, reduce)
    return _weighted(ops.l1_loss, input, target, weight, reduction)


@api_boundary
def smooth_l1_loss(
    input, target, size_average=None, reduce=None, reduction: str = "mean", beta: float = 1.0
):
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


@api_boundary
def kl_div(
    input, target, size_average=None, reduce=None, reduction: str = "mean", log_target: bool = False
):
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


@api_boundary
def nll_loss(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index: int = -100,
    reduce=None,
    reduction: str = "mean",
):
    """Return the negative log-likelihood `-weight[target] * input[n, target[n]]`, reduced.

    input: log-probabilities (C,), (N, C) or (N, C, d1, ...), floating point. target: class indices,
    int64, of the shape of `input` without C. weight: (C,); the mean divides by the sum of the
    weights used. ignore_index: a target that contributes nothing. reduction: "none", "mean" or
    "sum". Raises IndexError for a target outside [0, C), ValueError for another reduction.

    >>> F.nll_loss(jaxgrad.tensor([[-1.0, -2.0], [-3.0, -4.0]]), jaxgrad.tensor([0, 1]))
    tensor(2.5000)
    """
    reduction = _reduction(reduction, size_average, reduce)
    return ops.nll_loss(input, target, weight, reduction, ignore_index)


@api_boundary
def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index: int = -100,
    reduce=None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
):
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
    return ops.cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)


@api_boundary
def binary_cross_entropy_with_logits(
    input,
    target,
    weight=None,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
    pos_weight=None,
):
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
