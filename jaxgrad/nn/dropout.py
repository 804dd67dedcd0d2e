"""Dropout: elements, or whole channels, set to zero at random."""

from __future__ import annotations

import math
import warnings

from .. import ops
from ..core import dtypes
from ..frontend import factories, random


def _kept(input, p, shape):
    """Which elements of a shape to keep: each with probability `1 - p`."""
    if not input._aval.differentiable:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {input.dtype.scalar_type}"
            ": dropout takes floating point or complex tensors"
        )
    options = factories.like("dropout", input, {"dtype": dtypes.float32})
    return random.rand(*shape, **options) >= p


def _idle(input, p, training) -> bool:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return not training or p == 0 or not input.numel()


def _drop(input, p, training, inplace, shape):
    """The input with zeros, and the rest enlarged to keep the mean."""
    if _idle(input, p, training):
        return input
    kept = _kept(input, p, shape)
    scale = 1 / (1 - p) if p < 1 else 1.0
    if inplace:
        return input.mul_(scale).masked_fill_(kept.logical_not(), 0)
    return ops.where(kept, input * scale, 0)


def dropout(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """`input` with each element set to 0 with probability `p`, and the rest divided by `1 - p`.

    As it is where not `training`. Raises ValueError where `p` is no probability.

    >>> dropped = F.dropout(jaxgrad.ones(1000), 0.2)
    >>> sorted(set(dropped.tolist())), F.dropout(jaxgrad.ones(2), 0.2, training=False)
    ([0.0, 1.25], tensor([1., 1.]))
    """
    return _drop(input, p, training, inplace, input.shape)


def _drop_channels(name, dimensions, input, p, training, inplace):
    usual = dimensions + 2
    if input.ndim not in (usual - 1, usual):
        warnings.warn(
            f"{name}: Received a {input.ndim}-D input to {name}, which is deprecated and will "
            f"result in an error in a future release: it drops channels of {usual}-D input",
            stacklevel=3,
        )
    leading = input.shape[: 1 if input.ndim == usual - 1 and dimensions > 1 else 2]
    shape = (*leading, *[1] * (input.ndim - len(leading)))
    return _drop(input, p, training, inplace, shape)


def dropout1d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """`dropout` of whole channels of input (N, C, L) or (C, L)."""
    return _drop_channels("dropout1d", 1, input, p, training, inplace)


def dropout2d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """`dropout` of whole channels of input (N, C, H, W) or (C, H, W).

    >>> F.dropout2d(jaxgrad.ones(1, 1, 2, 2)).sum().item() in (0.0, 8.0)
    True
    """
    return _drop_channels("dropout2d", 2, input, p, training, inplace)


def dropout3d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """`dropout` of whole channels of input (N, C, D, H, W) or (C, D, H, W)."""
    return _drop_channels("dropout3d", 3, input, p, training, inplace)


# what selu leads to far on the negative side
_LOWEST = -1.7580993408473766


def alpha_dropout(input, p: float = 0.5, training: bool = False, inplace: bool = False):
    """`dropout` that keeps the mean and the variance of what `selu` gives: what is dropped becomes
    its lowest value.

    >>> F.alpha_dropout(jaxgrad.ones(2), training=False)
    tensor([1., 1.])
    """
    if _idle(input, p, training):
        return input
    if p == 1:
        return input.zero_() if inplace else input * 0
    scale = 1 / math.sqrt((_LOWEST**2 * p + 1) * (1 - p))
    kept = _kept(input, p, input.shape)
    shift = -scale * _LOWEST * p
    made = ops.where(kept, input, _LOWEST) * scale + shift
    return input.copy_(made) if inplace else made
