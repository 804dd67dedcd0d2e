"""Multi-head attention as a module."""

from __future__ import annotations

from . import init
from .layers import Linear, parameter
from .module import Module
from .multi_head_attention import multi_head_attention_forward


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that PyTorch shows in a MultiheadAttention."""


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
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device=None,
        dtype=None,
    ):
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
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.add_zero_attn, options = add_zero_attn, (device, dtype)
        names = "q_proj_weight", "k_proj_weight", "v_proj_weight"
        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter((3 * embed_dim, embed_dim), *options)
        else:
            self.register_parameter("in_proj_weight", None)
        for name, features in zip(names, (embed_dim, self.kdim, self.vdim), strict=True):
            separate = self.in_proj_weight is None
            weight = parameter((embed_dim, features), *options) if separate else None
            self.register_parameter(name, weight)
        bias_in = parameter((3 * embed_dim,), *options) if bias else None
        self.register_parameter("in_proj_bias", bias_in)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, *options)
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
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights: bool = True,
        attn_mask=None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ):
        is_transposed = self.batch_first and query.ndim == 3
        if is_transposed:
            # `multi_head_attention_forward` recognizes self-attention by identity
            views = {id(x): x.transpose(0, 1) if x.ndim == 3 else x for x in (query, key, value)}
            query, key, value = (views[id(x)] for x in (query, key, value))
        result, weights = multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            not self._qkv_same_embed_dim,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return result.transpose(0, 1) if is_transposed else result, weights

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """Return one mask of floats or None, and 1 for key_padding_mask alone, 2 with attn_mask.

        query: (N, L, E). attn_mask: (L, L) or (N * num_heads, L, L); key_padding_mask: (N, L); both
        floats. The mask is (N, num_heads, L, L), or key_padding_mask.
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length = query.shape[:2]
        shape = (batch, self.num_heads, length, length)
        merged = attn_mask.view(shape) if attn_mask.ndim == 3 else attn_mask.expand(shape)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length)
        return merged, 2
