"""What functions of `nn.functional` consist of, whose calls a graph has as one node, and which
PyTorch writes of operators.
"""

from __future__ import annotations

import math

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


# by their names in nn.functional
CALLS = {
    f"functional.{name}": function
    for name, function in (
        *(("normalize", normalize), ("softsign", softsign), ("tanhshrink", tanhshrink)),
        *(("softmin", softmin), ("local_response_norm", local_response_norm)),
        *(("gaussian_nll_loss", gaussian_nll_loss), ("kl_div", kl_div)),
    )
}
