"""Multi-head attention, and the layers of a transformer encoder."""

from __future__ import annotations

import copy
import math

from .. import ops
from ..core import dtypes
from . import functional, init
from .attention import attention_weights, scaled_dot_product_attention
from .containers import ModuleList
from .dropout import dropout
from .functional import linear
from .layers import Dropout, Linear, parameter
from .module import Module
from .normalization_layers import LayerNorm
from .padding import pad


class MultiheadAttention(Module):
    """Attention in `num_heads` parts of the features: `concat(head_1, ..., head_h) @ W_out`, where
    `head_i = attention(query @ W_q[i], key @ W_k[i], value @ W_v[i])`.

    query: (L, N, embed_dim), (L, embed_dim), or with `batch_first` (N, L, embed_dim); key and value
    likewise with length S and `kdim`, `vdim` features. Returns a tensor of the shape of query, and
    the weights (N, L, S), averaged over the heads unless `average_attn_weights=False`, or None.
    key_padding_mask: (N, S); attn_mask: (L, S) or (N * num_heads, L, S); True excludes a key,
    floats are added to the scores. A fully masked row has weights 0. Raises AssertionError,
    RuntimeError or ValueError for shapes that do not fit. Source: Vaswani et al., "Attention Is All
    You Need", 2017.

    >>> attend = jaxgrad.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = jaxgrad.ones(3, 5, 8)
    >>> [tuple(each.shape) for each in attend(x, x, x)]
    [(3, 5, 8), (3, 5, 5)]
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
        add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
        vdim: int | None = None, batch_first: bool = False, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise AssertionError(
                f"embed_dim must be divisible by num_heads: {embed_dim} by {num_heads}"
            )
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.head_dim, self.batch_first = embed_dim // num_heads, batch_first
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.add_zero_attn, options = add_zero_attn, (device, dtype)
        names = "q_proj_weight", "k_proj_weight", "v_proj_weight"
        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = parameter((3 * embed_dim, embed_dim), *options)
        else:
            self.register_parameter("in_proj_weight", None)
        for name, features in zip(names, (embed_dim, self.kdim, self.vdim), strict=True):
            separate = self.in_proj_weight is None
            weight = parameter((embed_dim, features), *options) if separate else None
            self.register_parameter(name, weight)
        bias_in = parameter((3 * embed_dim,), *options) if bias else None
        self.register_parameter("in_proj_bias", bias_in)
        self.out_proj = Linear(embed_dim, embed_dim, bias, *options)
        for name in ("bias_k", "bias_v"):
            extra = parameter((1, 1, embed_dim), *options) if add_bias_kv else None
            self.register_parameter(name, extra)
        self._reset_parameters()

    def _reset_parameters(self):
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
            init.xavier_normal_(self.bias_v)

    def forward(
        self, query, key, value, key_padding_mask=None, need_weights: bool = True, attn_mask=None,
        average_attn_weights: bool = True, is_causal: bool = False,
    ):  # fmt: skip
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        inputs, is_batch = self._batch_first(query, key, value)
        inputs = self._append_bias_and_zeros(*self._project(*inputs))
        query, key, value = map(self._split_heads, inputs)
        if key_padding_mask is not None and not is_batch:
            key_padding_mask = key_padding_mask.unsqueeze(0)
        mask = self._mask(key_padding_mask, attn_mask, query, key)
        weights, p = None, self.dropout if self.training else 0.0
        if need_weights:
            scores = (query * math.sqrt(1 / self.head_dim)) @ key.transpose(-2, -1)
            weights = dropout(attention_weights(scores, mask), p)
            result = weights @ value
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            result = scaled_dot_product_attention(query, key, value, mask, p)
        result = self.out_proj(result.transpose(1, 2).flatten(2))
        if not is_batch:
            return result.squeeze(0), None if weights is None else weights.squeeze(0)
        return result if self.batch_first else result.transpose(0, 1), weights

    def _batch_first(self, *inputs):
        """Return the inputs as (N, L, features), and whether they had a batch dimension."""
        if inputs[0].ndim not in (2, 3) or len({each.ndim for each in inputs}) > 1:
            raise AssertionError(
                "query, key and value should all be unbatched 2D or batched 3D tensors, but "
                f"received {', '.join(f'{each.ndim}-D' for each in inputs)} tensors"
            )
        if inputs[0].shape[-1] != self.embed_dim:
            raise AssertionError(
                f"was expecting embedding dimension of {self.embed_dim}, but got "
                f"{inputs[0].shape[-1]}"
            )
        if inputs[0].ndim == 2:
            return [each.unsqueeze(0) for each in inputs], False
        if self.batch_first:
            return inputs, True
        # Self-attention passes one tensor three times; `_project` recognizes it by identity.
        transposed = {id(each): each.transpose(0, 1) for each in inputs}
        return [transposed[id(each)] for each in inputs], True

    def _project(self, query, key, value):
        """Apply the input projections."""
        if self.in_proj_weight is not None and query is key is value:
            return linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        weights = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        if self.in_proj_weight is not None:
            weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return [
            linear(each, weight, bias)
            for each, weight, bias in zip((query, key, value), weights, biases, strict=True)
        ]

    def _append_bias_and_zeros(self, query, key, value):
        """Append `bias_k`, `bias_v` and a row of zeros to key and value, as the constructor was
        told.
        """
        shape = key.shape[0], 1, self.embed_dim
        if self.bias_k is not None:
            key = ops.cat([key, self.bias_k.expand(shape)], 1)
            value = ops.cat([value, self.bias_v.expand(shape)], 1)
        if self.add_zero_attn:
            key = ops.cat([key, key.new_zeros(shape)], 1)
            value = ops.cat([value, value.new_zeros(shape)], 1)
        return query, key, value

    def _split_heads(self, tensor):
        return tensor.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _mask(self, key_padding_mask, attn_mask, query, key):
        """Return what is added to the scores (N, num_heads, L, S), or None."""
        added = (self.bias_k is not None) + self.add_zero_attn
        batch, length, source = query.shape[0], query.shape[2], key.shape[2] - added
        mask = None
        if attn_mask is not None:
            expected = (length, source)
            if attn_mask.ndim == 3:
                expected = (batch * self.num_heads, *expected)
            if tuple(attn_mask.shape) != expected:
                raise RuntimeError(
                    f"The shape of the {attn_mask.ndim}D attn_mask is {attn_mask.shape}, but "
                    f"should be {expected}."
                )
            mask = _additive("attn_mask", attn_mask, query.dtype)
            if attn_mask.ndim == 3:
                mask = mask.unflatten(0, (batch, self.num_heads))
        if key_padding_mask is not None:
            expected = (batch, source)
            if tuple(key_padding_mask.shape) != expected:
                raise AssertionError(
                    f"key_padding_mask: expected shape {expected}, but got "
                    f"{tuple(key_padding_mask.shape)}"
                )
            padding = _additive("key_padding_mask", key_padding_mask, query.dtype)
            padding = padding.unsqueeze(1).unsqueeze(1)
            mask = padding if mask is None else mask + padding
        return mask if mask is None or not added else pad(mask, (0, added))


def _additive(name, mask, dtype):
    """Return a mask to add to the scores: -inf where a boolean mask is True."""
    if mask.dtype is dtypes.bool:
        return mask.new_zeros(mask.shape, dtype=dtype).masked_fill(mask, -math.inf)
    if not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return mask


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, each with a residual connection and LayerNorm.

    `x = norm1(x + attention(x)); x = norm2(x + linear2(activation(linear1(x))))`; with `norm_first`
    each norm applies to the input of its block instead. src: (S, N, d_model), (S, d_model), or with
    `batch_first` (N, S, d_model); the result has its shape. src_mask, src_key_padding_mask: as for
    `MultiheadAttention`. activation: "relu", "gelu" or a function; RuntimeError for another string.
    Source: Vaswani et al., "Attention Is All You Need", 2017.

    >>> layer = jaxgrad.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(jaxgrad.ones(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation="relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, batch_first=batch_first, **options
        )
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, **options)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, **options)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        if isinstance(activation, str):
            if activation not in ("relu", "gelu"):
                raise RuntimeError(f"activation should be relu/gelu, not {activation}")
            activation = getattr(functional, activation)
        self.activation = activation

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal: bool = False):
        x, masks = src, (src_mask, src_key_padding_mask)
        if self.norm_first:
            x = x + self._attend(self.norm1(x), *masks)
            return x + self._feed_forward(self.norm2(x))
        x = self.norm1(x + self._attend(x, *masks))
        return self.norm2(x + self._feed_forward(x))

    def _attend(self, x, mask, padding):
        result, _ = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False
        )
        return self.dropout1(result)

    def _feed_forward(self, x):
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """`num_layers` deep copies of `encoder_layer`, applied in sequence, then `norm` if it is given.

    src: as for `TransformerEncoderLayer`; the result has its shape. mask, src_key_padding_mask:
    passed to every layer. enable_nested_tensor, mask_check: accepted, without effect.

    >>> layer = jaxgrad.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> encoder = jaxgrad.nn.TransformerEncoder(layer, 2)
    >>> encoder(jaxgrad.ones(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None,
        enable_nested_tensor: bool = True, mask_check: bool = True,
    ):  # fmt: skip
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal: bool | None = None):
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)
