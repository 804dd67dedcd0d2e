"""What functions of `nn.functional` consist of, whose calls a graph has as one node, and which
PyTorch writes of operators.
"""

from __future__ import annotations

import math

from ..core.dtypes import float32, int64
from ..core.symbolic_extents import has_symbolic
from ..frontend.factories import arange
from ..linalg import vector_norm
from ..nn import functional


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    if out is not None:
        return NotImplemented
    return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)


def softsign(input):
    return input / (input.abs() + 1)


def tanhshrink(input):
    return input - input.tanh()


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    return NotImplemented if dim is None else (-input).softmax(dim, dtype=dtype)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    square, around = input.mul(input), (size // 2, (size - 1) // 2)
    if input.ndim == 3:
        square = functional.pad(square.unsqueeze(1), (0, 0, *around))
        square = functional.avg_pool2d(square, (size, 1), stride=1).squeeze(1)
    else:
        shape = input.shape
        square = square.view(shape[0], 1, shape[1], shape[2], -1)
        square = functional.pad(square, (0, 0, 0, 0, *around))
        square = functional.avg_pool3d(square, (size, 1, 1), stride=1).squeeze(1).view(shape)
    return input / square.mul(alpha).add(k).pow(beta)


def _mean_or_sum(loss, reduction):
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    if not hasattr(var, "ndim") or var.shape != input.shape:
        return NotImplemented
    var = var.clamp(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    return _mean_or_sum(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    if size_average is not None or reduce is not None:
        return NotImplemented
    kind = "sum" if reduction == "batchmean" else reduction
    loss = functional.kl_div(input, target, reduction=kind, log_target=log_target)
    return loss / input.shape[0] if reduction == "batchmean" and input.ndim else loss


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    if input.ndim != 2 or max_norm is not None or padding_idx is not None:
        return NotImplemented
    rows = functional.embedding(input, weight)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    if mode == "max":
        return rows.amax(1)
    return rows.mean(1) if mode == "mean" else rows.sum(1)


def interpolate(input, size=None, scale_factor=None, mode="nearest", *options, **by_name):
    if mode != "nearest-exact" or any((*options, *by_name.values())) or has_symbolic(input.shape):
        return NotImplemented
    count = input.ndim - 2
    sizes = [size] * count if isinstance(size, int) else size
    scales = scale_factor if isinstance(scale_factor, list | tuple) else [scale_factor] * count
    for dim, scale in enumerate(scales, 2):
        extent = input.shape[dim]
        length = int(extent * scale) if sizes is None else sizes[dim - 2]
        step = extent / length if scale is None else 1 / scale
        places = (arange(length, device=input.device).to(float32) + 0.5) * step
        input = input.index_select(dim, places.to(int64).clamp(max=extent - 1))
    return input


def weight_norm(v, g, dim=0):
    dims = [other for other in range(v.ndim) if other != dim % v.ndim]
    return v * (g / vector_norm(v, 2, dims, True))


# by their names in nn.functional, and torch._weight_norm
CALLS = {
    f"functional.{name}": function
    for name, function in (
        *(("normalize", normalize), ("softsign", softsign), ("tanhshrink", tanhshrink)),
        *(("softmin", softmin), ("local_response_norm", local_response_norm)),
        ("_weight_norm", weight_norm),
        *(("embedding_bag", embedding_bag), ("interpolate", interpolate)),
        *(("gaussian_nll_loss", gaussian_nll_loss), ("kl_div", kl_div)),
    )
}
