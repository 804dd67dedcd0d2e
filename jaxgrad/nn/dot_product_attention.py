"""Scaled dot-product attention."""

from __future__ import annotations

import math
import warnings

from .. import ops
from ..core import dtypes
from ..core.promotion import broadcast_shapes
from ..core.tracebacks import users_stacklevel
from ..frontend.factories import like
from ..frontend.random import default_generator, drawn_below, follows_torch, new_counter
from ..ops.autocast import lowered
from ..rules import attention as rules
from ..tape import version_counter
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from . import attention
from .dropout import dropout


@api_boundary
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return `softmax(query @ key.mT * scale + mask) @ value`.

    query: (..., L, E); key: (..., S, E); value: (..., S, V), floating point; the result is (..., L,
    V). attn_mask: broadcasts to (..., L, S); booleans say which keys take part, floats are added to
    the scores. is_causal: query i attends to the keys 0 to i. dropout_p: the dropout probability of
    the weights, in training and evaluation. scale: `1 / sqrt(E)` by default. enable_gqa: dimension
    -3 of query may be a multiple of that of key and value (grouped heads). A row whose keys are all
    masked gives 0. The memory of the call and of its gradient grows with S, not with L * S, where
    they are large; dropout by PyTorch's random numbers needs a byte for each weight besides.
    Raises RuntimeError for `attn_mask` together with `is_causal`,
    and for dtypes or shapes that do not fit. `nn.attention.sdpa_kernel` chooses the implementation.
    Source: Vaswani et al., "Attention Is All You Need", 2017.

    >>> x = jaxgrad.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    >>> F.scaled_dot_product_attention(x, x, x, is_causal=True)[0, 0]
    tensor([1., 0.])
    """
    query, key, value, attn_mask = lowered(query, key, value, attn_mask)
    _check(query, key, value, attn_mask, is_causal)
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    heads = query, key, value
    if enable_gqa:
        _check_groups(query, key, value)
    if _is_fused(query, key, value, attn_mask, dropout_p):
        if not enable_gqa:
            _check_heads(query, key, value)
        return _fused(*heads, attn_mask, dropout_p, is_causal, scale)
    if enable_gqa:
        heads = query, _repeat_heads(key, query), _repeat_heads(value, query)
    return _composed(*heads, attn_mask, dropout_p, is_causal, scale)


def _fused(query, key, value, attn_mask, dropout_p, is_causal, scale):
    options = {"attn_mask": attn_mask, "scale": scale}
    if not dropout_p:
        call = ops._scaled_dot_product_flash_attention_for_cpu
        return call(query, key, value, 0.0, is_causal, **options)[0]
    shape, keep = _shape_of_weights(query, key), 1 - dropout_p
    if follows_torch(default_generator, query):
        drawn = drawn_below(keep, shape, like("dropout", query, {}))
    else:
        drawn = new_counter("dropout", query, math.prod(shape))
    call = ops._attention_with_dropout
    return call(query, key, value, drawn, keep, is_causal, **options)[0]


def _shape_of_weights(query, key):
    """The shape of the weights of query and key of one rank, whose heads may be grouped."""
    batches = broadcast_shapes("attention", query.shape[:-3], key.shape[:-3])
    heads = max(query.shape[-3:-2], key.shape[-3:-2])
    return *batches, *heads, query.shape[-2], key.shape[-2]


def _composed(query, key, value, attn_mask, dropout_p, is_causal, scale):
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else math.inf
    # Each factor takes the root of the scale, so that float16 products do not overflow.
    root = math.sqrt(abs(scale))
    scores = (query * root) @ (key * math.copysign(root, scale)).transpose(-2, -1)
    if is_causal:
        attn_mask = scores.new_ones(scores.shape[-2:], dtype=dtypes.bool).tril()
    return dropout(attention_weights(scores, attn_mask, is_causal), dropout_p) @ value


def attention_weights(
    scores: Tensor, mask: Tensor | None, every_row_attends: bool = False
) -> Tensor:
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


def _check(query, key, value, attn_mask, is_causal):
    name = "Expected query, key, and value to"
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            f"{name} all be  at least 2 dimensional, but got query.dim: {query.ndim} key.dim: "
            f"{key.ndim} and value.dim: {value.ndim} instead."
        )
    if not query.dtype is key.dtype is value.dtype:
        kinds = [tensor.dtype.scalar_type.lower() for tensor in (query, key, value)]
        raise RuntimeError(
            f"{name} have the same dtype, but got query.dtype: {kinds[0]} key.dtype: {kinds[1]} "
            f"and value.dtype: {kinds[2]} instead."
        )
    if not query.dtype.is_floating_point:
        raise RuntimeError(f"expected scalar type Float but found {query.dtype.scalar_type}")
    if attn_mask is None:
        return
    if is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )
    if attn_mask.dtype not in (dtypes.bool, dtypes.float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {attn_mask.dtype.scalar_type.lower()} and  query.dtype: "
            f"{query.dtype.scalar_type.lower()} instead."
        )
    if attn_mask.ndim < 2:
        raise IndexError(
            f"Dimension out of range: attn_mask has at least 2 dimensions, but got {attn_mask.ndim}"
        )


def _is_fused(query, key, value, attn_mask, dropout_p) -> bool:
    """Whether one operator computes the call, of those that `sdpa_kernel` allows."""
    flash, math_ = attention.SDPBackend.FLASH_ATTENTION, attention.SDPBackend.MATH
    enabled = attention.enabled()
    if flash not in enabled and math_ not in enabled:
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely due to "
            "turning off both the math kernel and the fused kernels."
        )
    if dropout_p and flash in enabled and math_ in enabled:
        return _drops_in_blocks(query, key, value, dropout_p)
    if flash in enabled and not dropout_p:
        # without the fused operator PyTorch saves scaled copies of query and key
        return not version_counter.strict.get() or _is_fused_in_pytorch(
            query, key, value, attn_mask
        )
    if math_ not in enabled:
        warnings.warn(
            "Flash attention kernel not used because: it does not support non-zero dropout.",
            stacklevel=users_stacklevel(),
        )
        raise RuntimeError("No available kernel.  Aborting execution.")
    return False


def _drops_in_blocks(query, key, value, dropout_p) -> bool:
    """Whether dropout is part of one operator: there are so many weights that they are not made at
    once.
    """
    if dropout_p == 1 or {tensor.ndim for tensor in (query, key, value)} != {query.ndim}:
        return False
    *outer, queries, keys = sizes = _shape_of_weights(query, key)
    if not all(type(size) is int for size in sizes) or value.shape[:-2] != key.shape[:-2]:
        return False
    return rules.block_rows(math.prod(outer), queries, keys) < queries


def _is_fused_in_pytorch(query, key, value, attn_mask) -> bool:
    """Whether PyTorch 2.13 computes the call by one operator on a CPU."""
    heads = query, key, value
    return (
        all(tensor.ndim == 4 and tensor.stride(-1) == 1 for tensor in heads)
        and len({tensor.shape[-1] for tensor in heads}) == 1
        and len({tensor.shape[:2] for tensor in heads}) == 1
        and 0 not in (query.shape[2], key.shape[2])
        and (attn_mask is None or not attn_mask.requires_grad)
    )


def _check_heads(query, key, value):
    """The heads broadcast, unless `enable_gqa` says that they are grouped."""
    heads = {tensor.shape[-3] for tensor in (query, key, value) if tensor.ndim > 2}
    if len(heads - {1}) > 1:
        one, two = sorted(heads - {1})[:2]
        raise RuntimeError(
            f"The size of tensor a ({one}) must match the size of tensor b ({two}) at "
            "non-singleton dimension 1: pass enable_gqa=True for grouped heads"
        )


def _check_groups(query, key, value):
    if min(query.ndim, key.ndim, value.ndim) < 3:
        raise IndexError(
            "Dimension out of range (expected to be in range of [-2, 1], but got -3): enable_gqa "
            "takes tensors with heads, (..., H, L, E)"
        )
    for tensor in (key, value):
        if not tensor.shape[-3] or query.shape[-3] % tensor.shape[-3]:
            raise RuntimeError(
                "Number of heads in key and value must divide the number of heads in query, but "
                f"got {tensor.shape[-3]} and {query.shape[-3]}"
            )


def _repeat_heads(tensor, query):
    """Repeat the heads of key or value to match those of query."""
    times = query.shape[-3] // tensor.shape[-3]
    parts = (*tensor.shape[:-2], times, *tensor.shape[-2:])
    return tensor.unsqueeze(-3).expand(parts).flatten(-4, -3)
