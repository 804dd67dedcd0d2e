"""Scaled dot-product attention."""

from __future__ import annotations

import math

from .. import ops
from ..core import dtypes
from ..core.tracebacks import api_boundary
from ..ops.autocast import lowered
from .dropout import dropout


@api_boundary
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
):  # fmt: skip
    """Return `softmax(query @ key.T * scale + mask) @ value`.

    query: (..., L, E); key: (..., S, E); value: (..., S, V), floating point; the result is (..., L,
    V). attn_mask: broadcasts to (..., L, S); booleans say which keys take part, floats are added to
    the scores. is_causal: query i attends to the keys 0 to i. dropout_p: the dropout probability of
    the weights, in training and evaluation. scale: `1 / sqrt(E)` by default. enable_gqa: dimension
    -3 of query may be a multiple of that of key and value (grouped heads). A row whose keys are all
    masked gives 0. Raises RuntimeError for `attn_mask` together with `is_causal`. Source: Vaswani
    et al., "Attention Is All You Need", 2017.

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
        key, value = _repeat_heads(key, query), _repeat_heads(value, query)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    # Each factor takes the root of the scale, so that float16 products do not overflow.
    root = math.sqrt(abs(scale))
    scores = (query * root) @ (key * math.copysign(root, scale)).transpose(-2, -1)
    if is_causal:
        attn_mask = scores.new_ones(scores.shape[-2:], dtype=dtypes.bool).tril()
    return dropout(attention_weights(scores, attn_mask, is_causal), dropout_p) @ value


def attention_weights(scores, mask, every_row_attends: bool = False):
    """Return the softmax of each row of scores under a mask; a fully masked row gives zeros.

    every_row_attends: no row is fully masked, so the check for such rows is left out.
    """
    if mask is None:
        return ops.softmax(scores, -1)
    is_bool = mask.dtype is dtypes.bool
    scores = ops.where(mask, scores, -math.inf) if is_bool else scores + mask
    if every_row_attends:
        return ops.softmax(scores, -1)
    masked = (scores == -math.inf).all(-1, True)
    return ops.where(masked, 0, ops.softmax(ops.where(masked, 0, scores), -1))


def _repeat_heads(tensor, query):
    """Repeat the heads of key or value to match those of query."""
    times, rest = divmod(query.shape[-3], tensor.shape[-3])
    if rest:
        raise RuntimeError(
            f"Number of heads in key and value must divide the number of heads in query, but got "
            f"{tensor.shape[-3]} and {query.shape[-3]}"
        )
    parts = (*tensor.shape[:-2], times, *tensor.shape[-2:])
    return tensor.unsqueeze(-3).expand(parts).flatten(-4, -3)
