"""Calls of Python functions of PyTorch as calls of operators: `nn.functional.batch_norm` takes its
arguments in another order than `aten.batch_norm`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ..core import dtypes
from ..core.device import device, strided
from ..core.symbolic_extents import is_symbolic
from ..ops.aten import schemas
from ..tape.tensor import Tensor
from ._aten_binding import BoundCall, bound

# a name, arguments by position, arguments by name
Parts = tuple[str, tuple, dict]

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def call_of(function: Callable, args: tuple, kwargs: dict) -> BoundCall | None:
    """The call of an operator that a call of a public function is; None if there is none."""
    parts = _parts(function, args, kwargs)
    return None if parts is None else bound(*parts)


def _parts(function, args, kwargs) -> Parts | None:
    name = function.__name__
    if hasattr(function, "operator"):
        name = _operator_name(function)
        return OPERATORS[name](*args, **kwargs) if name in OPERATORS else (name, args, kwargs)
    space = function.__module__.rpartition(".")[2].partition("_")[0]
    if schemas(f"{space}_{name}"):
        return f"{space}_{name}", args, kwargs
    is_functional = _is_functional(function)
    changed = (FUNCTIONAL if is_functional else FUNCTIONS).get(name)
    if is_functional and changed is None and name.endswith("_loss"):
        return None  # the operator has a number for the reduction, and its arguments elsewhere
    if changed is not None:
        try:
            return changed(*args, **kwargs)
        except TypeError:  # other arguments than those that it knows
            return None
    return name, args, kwargs


def _is_functional(function) -> bool:
    return function.__module__.startswith("jaxgrad.nn.")


# PyTorch's names where functions and methods share an operator
_SPECIAL_METHODS = {
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
}


def _operator_name(function) -> str:
    name, operator = function.__name__, function.operator.name
    if name.startswith("__"):
        return _SPECIAL_METHODS.get(name, operator)
    if schemas(name):
        return name
    return f"{operator.removesuffix('_')}_" if name.endswith("_") else operator


# ---- functions of nn.functional


def _activation(name: str, *defaults):
    """An activation function with numbers as parameters, and a form in place."""

    def parts(input, *values, inplace=False, **by_name):
        numbers = {key: by_name.get(key, default) for key, default in defaults}
        count = len(values)
        rest = [*numbers.values()][count:]
        if len(values) > len(defaults):  # inplace by position
            *values, inplace = values
        return f"{name}_" if inplace else name, (input, *values, *rest), {}

    return parts


def _dropout(name: str):
    def parts(input, p=0.5, training=True, inplace=False):
        return f"{name}_" if inplace else name, (input, float(p), training), {}

    return parts


def _batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    args = input, weight, bias, running_mean, running_var, training, momentum, eps, False
    return "batch_norm", args, {}


def _instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    args = input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    return "instance_norm", args, {}


def _layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    return "layer_norm", (input, normalized_shape, weight, bias, eps, False), {}


def _group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    return "group_norm", (input, num_groups, weight, bias, eps, False), {}


def _max_pool(count: int):
    def parts(
        input,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        ceil_mode=False,
        return_indices=False,
    ):
        name = f"max_pool{count}d{'_with_indices' if return_indices else ''}"
        stride = [] if stride is None else stride
        return name, (input, kernel_size, stride, padding, dilation, ceil_mode), {}

    return parts


def _avg_pool(count: int):
    def parts(input, kernel_size, stride=None, *options, **by_name):
        stride = [] if stride is None else stride
        return f"avg_pool{count}d", (input, kernel_size, stride, *options), by_name

    return parts


def _adaptive(name: str, count: int):
    def parts(input, output_size, return_indices=False):
        if isinstance(output_size, list | tuple):
            sizes = [*input.shape[-count:]]
            output_size = [
                size if wanted is None else wanted
                for size, wanted in zip(sizes, output_size, strict=True)
            ]
        return f"{name}{count}d", (input, output_size), {}

    return parts


_MODES = ("nearest", "linear", "bilinear", "bicubic", "trilinear")


def _interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    count = input.ndim - 2
    if mode == "area":
        factors = scale_factor if isinstance(scale_factor, list | tuple) else [scale_factor] * count
        sizes = [size] * count if isinstance(size, int) else size
        sizes = sizes or [int(e * f) for e, f in zip(input.shape[2:], factors, strict=True)]
        return f"adaptive_avg_pool{count}d", (input, [*sizes]), {}
    if mode not in _MODES or antialias or recompute_scale_factor:
        return None
    if isinstance(size, int):
        size = [size] * count
    if isinstance(scale_factor, int | float):
        scale_factor = [float(scale_factor)] * count
    if scale_factor is not None:
        scale_factor = [float(scale) for scale in scale_factor]
    corners = () if mode == "nearest" else (bool(align_corners),)
    return f"upsample_{mode}{count}d", (input, size, *corners, scale_factor), {}


def _embedding(
    input,
    weight,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
    if max_norm is not None:
        return None
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx < 0:
        padding_idx += weight.shape[0]
    return "embedding", (weight, input, padding_idx, scale_grad_by_freq, sparse), {}


def _cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    reduced = _REDUCTIONS[reduction]
    args = input, target, weight, reduced, ignore_index, float(label_smoothing)
    return "cross_entropy_loss", args, {}


def _nll_loss(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
):
    return "nll_loss_nd", (input, target, weight, _REDUCTIONS[reduction], ignore_index), {}


def _loss(name: str, parameter: str | None = None, default=None):
    """A loss of an input and a target; parameter: the name of a further number."""

    def parts(input, target, size_average=None, reduce=None, reduction="mean", *values, **by_name):
        further = ()
        if parameter:
            first, *values = values or [by_name.pop(parameter, default)]
            further = (first,)
        if any(value is not None for value in (*values, *by_name.values())):
            return None  # weights
        return name, (input, target, _REDUCTIONS[reduction], *further), {}

    return parts


def _huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    if weight is not None:
        return None
    return "huber_loss", (input, target, _REDUCTIONS[reduction], delta), {}


def _binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    return "binary_cross_entropy", (input, target, weight, _REDUCTIONS[reduction]), {}


def _bce_with_logits(
    input,
    target,
    weight=None,
    size_average=None,
    reduce=None,
    reduction="mean",
    pos_weight=None,
):
    args = input, target, weight, pos_weight, _REDUCTIONS[reduction]
    return "binary_cross_entropy_with_logits", args, {}


def _kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    if reduction == "batchmean":
        return None
    return "kl_div", (input, target, _REDUCTIONS[reduction]), {"log_target": log_target}


def _poisson_nll_loss(
    input,
    target,
    log_input=True,
    full=False,
    size_average=None,
    eps=1e-8,
    reduce=None,
    reduction="mean",
):
    args = input, target, log_input, full, eps, _REDUCTIONS[reduction]
    return "poisson_nll_loss", args, {}


def _margin_loss(name: str, default: float):
    """A loss of two tensors with a margin, and a third tensor."""

    def parts(
        input1, input2, target, margin=default, size_average=None, reduce=None, reduction="mean"
    ):
        return name, (input1, input2, target, margin, _REDUCTIONS[reduction]), {}

    return parts


def _hinge_embedding_loss(
    input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"
):
    return "hinge_embedding_loss", (input, target, margin, _REDUCTIONS[reduction]), {}


def _triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    args = anchor, positive, negative, margin, float(p), eps, swap, _REDUCTIONS[reduction]
    return "triplet_margin_loss", args, {}


def _softmax(name: str):
    def parts(input, dim=None, _stacklevel=3, dtype=None):
        return None if dim is None else (name, (input, dim, dtype), {})

    return parts


def _pad(input, pad, mode="constant", value=None):
    return "pad", (input, pad, mode, value), {}


def _grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    modes = {"bilinear": 0, "nearest": 1, "bicubic": 2}
    paddings = {"zeros": 0, "border": 1, "reflection": 2}
    args = input, grid, modes[mode], paddings[padding_mode], bool(align_corners)
    return "grid_sampler", args, {}


def _unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    return "im2col", (input, kernel_size, dilation, padding, stride), {}


def _fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    return "col2im", (input, output_size, kernel_size, dilation, padding, stride), {}


_COUNTS = (1, 2, 3)

FUNCTIONAL: dict[str, Callable[..., Parts | None]] = {
    **{name: _activation(name) for name in ("relu", "relu6", "silu", "mish", "selu")},
    **{name: _activation(name) for name in ("hardswish", "hardsigmoid")},
    "leaky_relu": _activation("leaky_relu", ("negative_slope", 0.01)),
    "elu": _activation("elu", ("alpha", 1.0)),
    "celu": _activation("celu", ("alpha", 1.0)),
    "hardtanh": _activation("hardtanh", ("min_val", -1.0), ("max_val", 1.0)),
    "threshold": _activation("threshold", ("threshold", 0), ("value", 0)),
    "dropout": _dropout("dropout"),
    "alpha_dropout": _dropout("alpha_dropout"),
    "feature_alpha_dropout": _dropout("feature_alpha_dropout"),
    **{f"dropout{count}d": _dropout("feature_dropout") for count in (2, 3)},
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    **{f"max_pool{count}d": _max_pool(count) for count in _COUNTS},
    **{f"avg_pool{count}d": _avg_pool(count) for count in _COUNTS},
    **{f"adaptive_avg_pool{n}d": _adaptive("adaptive_avg_pool", n) for n in _COUNTS},
    **{f"adaptive_max_pool{n}d": _adaptive("adaptive_max_pool", n) for n in _COUNTS},
    "interpolate": _interpolate,
    "embedding": _embedding,
    "cross_entropy": _cross_entropy,
    "nll_loss": _nll_loss,
    "mse_loss": _loss("mse_loss"),
    "l1_loss": _loss("l1_loss"),
    "smooth_l1_loss": _loss("smooth_l1_loss", "beta", 1.0),
    "huber_loss": _huber_loss,
    "soft_margin_loss": _loss("soft_margin_loss"),
    "binary_cross_entropy": _binary_cross_entropy,
    "binary_cross_entropy_with_logits": _bce_with_logits,
    "kl_div": _kl_div,
    "poisson_nll_loss": _poisson_nll_loss,
    "margin_ranking_loss": _margin_loss("margin_ranking_loss", 0.0),
    "cosine_embedding_loss": _margin_loss("cosine_embedding_loss", 0.0),
    "triplet_margin_loss": _triplet_margin_loss,
    "hinge_embedding_loss": _hinge_embedding_loss,
    "softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "pad": _pad,
    "grid_sample": _grid_sample,
    "unfold": _unfold,
    "fold": _fold,
}


def _reduces_by_name(parts: Callable) -> Callable:
    """The same for calls without `size_average` and `reduce`, which decide the reduction too."""
    signature = inspect.signature(parts)
    if "size_average" not in signature.parameters:
        return parts

    def checked(*args, **kwargs):
        values = signature.bind(*args, **kwargs).arguments
        is_old = any(values.get(name) is not None for name in ("size_average", "reduce"))
        return None if is_old else parts(*args, **kwargs)

    return checked


FUNCTIONAL = {name: _reduces_by_name(parts) for name, parts in FUNCTIONAL.items()}


# ---- operators of jaxgrad's table that PyTorch calls otherwise


def _slice(self, dim, start, length, step):
    extent, end = self.shape[dim], start + length * step
    is_all = not is_symbolic(extent) and not is_symbolic(end) and end >= extent
    return "slice", (self, dim, start, LARGEST if is_all else end, step), {}


def _split(self, split_size_or_sections=None, dim=0, split_size=None):
    size = split_size if split_size_or_sections is None else split_size_or_sections
    return "split_with_sizes" if isinstance(size, list | tuple) else "split", (self, size, dim), {}


OPERATORS: dict[str, Callable[..., Parts | None]] = {
    "_select": lambda self, dim, index, *_: ("select", (self, dim, index), {}),
    "_slice": _slice,
    "split": _split,
}
LARGEST = 2**63 - 1


# ---- other functions


def _cast(dtype_name: str):
    def parts(self, memory_format=None):
        return "to", (self, getattr(dtypes, dtype_name)), {}

    return parts


def _to(self, *args, **kwargs):
    if len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
        return "to", (self, args[0]), {}
    dtype = kwargs.get("dtype") or next((a for a in args if isinstance(a, dtypes.dtype)), None)
    copies = {name: True for name in ("copy",) if kwargs.get(name)}
    if dtype is None or any(isinstance(a, str | device) for a in (*args, *kwargs.values())):
        place = {"layout": strided, "device": device("cpu")}
        return "to", (self,), {"dtype": dtype or self.dtype, **place, **copies}
    return "to", (self, dtype), copies


def _cpu(self, memory_format=None):
    return _to(self, "cpu")


def _einsum(equation, *operands):
    if not isinstance(equation, str):
        return None
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        (operands,) = operands
    return "einsum", (equation, [*operands]), {}


def _meshgrid(*tensors, indexing=None):
    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        (tensors,) = tensors
    by_name = {} if indexing is None else {"indexing": indexing}
    return "meshgrid", ([*tensors],), by_name


def _stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, *rest, **named):
    # with `center` it is the overload that pads
    args = input, n_fft, hop_length, win_length, window, center, *rest
    return "stft", args, {} if rest else {"pad_mode": "reflect", **named}


def _tensordot(a, b, dims=2, out=None):
    if out is not None or isinstance(dims, Tensor):
        return None
    if isinstance(dims, int):
        dims = [*range(a.ndim - dims, a.ndim)], [*range(dims)]
    dims = [[one] if isinstance(one, int) else [*one] for one in dims]
    return "tensordot", (a, b, *dims), {}


def _norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    if p in ("fro", None) and out is None:
        p = 2
    if not isinstance(p, int | float) or out is not None:
        return None
    return "linalg_vector_norm", (input, p, dim, keepdim), {"dtype": dtype}


def _arguments_in_list(name: str):
    def parts(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
            (tensors,) = tensors
        return name, ([*tensors],), {}

    return parts


FUNCTIONS: dict[str, Callable[..., Parts | None]] = {
    **{
        name: _cast(dtype)
        for name, dtype in (
            *(("float", "float32"), ("double", "float64"), ("half", "float16")),
            *(("long", "int64"), ("int", "int32"), ("short", "int16"), ("bool", "bool")),
            *(("bfloat16", "bfloat16"), ("cfloat", "complex64"), ("cdouble", "complex128")),
            *(("byte", "uint8"), ("char", "int8")),
        )
    },
    "to": _to,
    "cpu": _cpu,
    "data": lambda self: ("detach", (self,), {}),
    "einsum": _einsum,
    "meshgrid": _meshgrid,
    "norm": _norm,
    "stft": _stft,
    "tensordot": _tensordot,
    "broadcast_tensors": _arguments_in_list("broadcast_tensors"),
    "cartesian_prod": _arguments_in_list("cartesian_prod"),
    "block_diag": _arguments_in_list("block_diag"),
    "cdist": lambda x1, x2, p=2.0, compute_mode=None: ("cdist", (x1, x2, p), {}),
    "__invert__": lambda self: ("bitwise_not", (self,), {}),
    "__rpow__": lambda self, other: ("pow", (other, self), {}),
}
