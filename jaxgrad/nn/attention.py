"""Attention: the mean of values, weighted by how well their keys fit a query."""

from __future__ import annotations

import math

from .. import ops
from ..core import dtypes
from ..ops.autocast import lowered
from .dropout import dropout


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
):  # fmt: skip
    """`softmax(query @ key.T * scale + mask) @ value`.

    query: (..., L, E); key: (..., S, E); value: (..., S, V); gives (..., L, V). attn_mask: (..., L,
    S), numbers that are added, or flags of what takes part. is_causal: each of L sees what comes
    before it. dropout_p: of the weights, always. scale: `1 / sqrt(E)` by default. enable_gqa: query
    may have a multiple of the heads, the third dimension from the end, of key and value. A row of
    which nothing takes part gives 0. Raises RuntimeError for a mask together with `is_causal`.

    >>> x = jaxgrad.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    >>> F.scaled_dot_product_attention(x, x, x, is_causal=True)[0, 0]
    tensor([1., 0.])
    """
    if attn_mask is not None and is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )
    query, key, value, attn_mask = lowered(query, key, value, attn_mask)
    if enable_gqa:
        key, value = _shared(key, query), _shared(value, query)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    # half of the scale for each, so that halves do not overflow
    half = math.sqrt(abs(scale))
    scores = (query * half) @ (key * math.copysign(half, scale)).transpose(-2, -1)
    if is_causal:
        attn_mask = scores.new_ones(scores.shape[-2:], dtype=dtypes.bool).tril()
    return dropout(weights_of(scores, attn_mask, is_causal), dropout_p) @ value


def weights_of(scores, mask, has_some: bool = False):
    """The softmax of each row of scores under a mask; zeros for a row of which nothing takes part,
    unless each is known to have some that does.
    """
    if mask is None:
        return ops.softmax(scores, -1)
    is_flags = mask.dtype is dtypes.bool
    scores = ops.where(mask, scores, -math.inf) if is_flags else scores + mask
    if has_some:
        return ops.softmax(scores, -1)
    nothing = (scores == -math.inf).all(-1, True)
    return ops.where(nothing, 0, ops.softmax(ops.where(nothing, 0, scores), -1))


def _shared(tensor, query):
    """The heads of keys or values, each as often as queries share it."""
    times, rest = divmod(query.shape[-3], tensor.shape[-3])
    if rest:
        raise RuntimeError(
            f"Number of heads in key and value must divide the number of heads in query, but got "
            f"{tensor.shape[-3]} and {query.shape[-3]}"
        )
    parts = (*tensor.shape[:-2], times, *tensor.shape[-2:])
    return tensor.unsqueeze(-3).expand(parts).flatten(-4, -3)
