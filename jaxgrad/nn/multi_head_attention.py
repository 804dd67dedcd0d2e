"""Attention in several heads, with projections of its inputs and its output: function and layer."""

import math
import warnings

from .. import ops
from ..core import dtypes
from ..core.device import DeviceLike
from ..core.tracebacks import users_stacklevel
from ..late import LateModule
from ..tape.mode import is_grad_enabled
from ..tape.settings import flags
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary, names_defaults
from . import functional, init
from .dot_product_attention import attention_weights, scaled_dot_product_attention
from .dropout import dropout
from .linear import Linear
from .module import Module
from .padding import pad
from .parameter import new_parameter

autocast_mode = LateModule("jaxgrad.amp.autocast_mode")
fast_path = flags("torch.backends.mha", fastpath=True)


@names_defaults
@api_boundary
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return attention in `num_heads` parts of the features, and its weights or None.

    query: (L, N, E) or (L, E), with E = embed_dim_to_check; key and value likewise with length S.
    in_proj_weight: (3 * E, E), or with `use_separate_proj_weight` q_proj_weight, k_proj_weight and
    v_proj_weight, (E, features of each); in_proj_bias: (3 * E,) or None. bias_k, bias_v: (1, 1, E),
    one more key and value, or None. add_zero_attn: one more key and value of zeros. dropout_p: of
    the weights, if `training`. key_padding_mask: (N, S) or (S,); attn_mask: (L, S) or (N *
    num_heads, L, S); True excludes a key, floats are added to the scores. is_causal: a hint that
    attn_mask is causal. static_k, static_v: (N * num_heads, S, E / num_heads), used in place of the
    projections of key and value. The result has the shape of query; the weights, if `need_weights`,
    are (N, L, S), or (N, num_heads, L, S) unless `average_attn_weights`. A fully masked row has
    weights 0. Raises AssertionError or RuntimeError for shapes that do not fit.
    Source: Vaswani et al., "Attention Is All You Need", 2017.

    >>> x, eye = jaxgrad.ones(3, 2), jaxgrad.eye(2)
    >>> F.multi_head_attention_forward(
    ...     x, x, x, 2, 1, jaxgrad.cat([eye] * 3), None, None, None, False, 0.0, eye, None
    ... )[0][0]
    tensor([1., 1.])
    """
    is_batch = _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not is_batch:
        query, key, value = _map_inputs(lambda x: x.unsqueeze(1), query, key, value)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    key_padding_mask, attn_mask, is_causal = _masks(
        key_padding_mask, attn_mask, is_causal, need_weights, query.dtype
    )
    weights_in = q_proj_weight, k_proj_weight, v_proj_weight
    if not use_separate_proj_weight:
        weights_in = in_proj_weight
    _check_shapes(query, key, value, embed_dim_to_check, num_heads, weights_in)
    query, key, value = _project(query, key, value, weights_in, in_proj_bias)
    mask = _merged(query, key, num_heads, attn_mask, key_padding_mask)
    added = (bias_k is not None) + add_zero_attn
    key, value = _with_bias(key, value, bias_k, bias_v, static_k, static_v)
    query, key, value = (_split_heads(tensor, num_heads) for tensor in (query, key, value))
    key, value = _static("k", static_k, key), _static("v", static_v, value)
    if add_zero_attn:
        key, value = (pad(tensor, (0, 0, 0, 1)) for tensor in (key, value))
    mask = pad(mask, (0, added)) if mask is not None and added else mask
    arrays, dropout_p = (query, key, value, mask), dropout_p if training else 0.0
    result, weights = _attend(*arrays, dropout_p, is_causal, need_weights, average_attn_weights)
    result = ops.linear(result.permute(2, 0, 1, 3).flatten(2), out_proj_weight, out_proj_bias)
    if not is_batch:
        return result.squeeze(1), None if weights is None else weights.squeeze(0)
    return result, weights


def _map_inputs(function, query, key, value):
    """The function of the three, of one tensor that is passed several times only once: `_project`
    recognizes self-attention by identity.
    """
    results = {id(x): function(x) for x in (query, key, value)}
    return [results[id(x)] for x in (query, key, value)]


def _attend(query, key, value, mask, dropout_p, is_causal, need_weights, is_averaged):
    """The attention (N, num_heads, L, E / num_heads), and the weights if they are needed."""
    if not need_weights:
        is_causal = is_causal and mask is None
        return scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal), None
    scores = (query * math.sqrt(1 / query.shape[-1])) @ key.transpose(-2, -1)
    weights = dropout(attention_weights(scores, mask), dropout_p)
    return weights @ value, weights.mean(1) if is_averaged else weights


# projections


def _project(query, key, value, weights, bias):
    """`weights`: one for all, (3 * E, E), or one for each input."""
    is_packed, biases = not isinstance(weights, tuple), [None] * 3
    if is_packed and query is key is value:
        return ops.linear(query, weights, bias).chunk(3, -1)
    if bias is not None:
        biases = bias.chunk(3)
    weights = weights.chunk(3) if is_packed else weights
    return [ops.linear(*args) for args in zip((query, key, value), weights, biases, strict=True)]


def _with_bias(key, value, bias_k, bias_v, static_k, static_v):
    """Append `bias_k` and `bias_v`, if they are given."""
    if (bias_k is None) != (bias_v is None):
        one, other = ("k", "v") if bias_v is None else ("v", "k")
        raise AssertionError(f"bias_{one} is set but bias_{other} is None")
    if bias_k is None:
        return key, value
    for name, static in (("key", static_k), ("value", static_v)):
        if static is not None:
            raise AssertionError(f"bias cannot be added to static {name}.")
    batch = key.shape[1]
    pairs = (key, bias_k), (value, bias_v)
    return [ops.cat([tensor, bias.expand(1, batch, -1)]) for tensor, bias in pairs]


def _split_heads(tensor, num_heads):
    """(n, N, E) as (N, num_heads, n, E / num_heads)."""
    return tensor.unflatten(-1, (num_heads, -1)).permute(1, 2, 0, 3)


def _static(name, static, projected):
    """The tensor that replaces a projection, (N * num_heads, S, E / num_heads), if it is given."""
    if static is None:
        return projected
    batch, heads, _, features = projected.shape
    for dim, expected in ((0, batch * heads), (2, features)):
        if static.shape[dim] != expected:
            raise AssertionError(
                f"expecting static_{name}.size({dim}) of {expected}, but got {static.shape[dim]}"
            )
    return static.unflatten(0, (batch, heads))


# masks


def additive(
    mask: Tensor | None,
    name: str,
    dtype: dtypes.dtype,
    other: Tensor | None = None,
    other_name: str = "",
) -> Tensor | None:
    """Return a mask that is added to the scores: -inf where a boolean mask is True."""
    if mask is None:
        return None
    if mask.dtype is not dtypes.bool and not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype is not mask.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both "
            "instead.",
            stacklevel=users_stacklevel(),
        )
    if mask.dtype is dtypes.bool:
        return mask.new_zeros(mask.shape, dtype=dtype).masked_fill(mask, -math.inf)
    return mask


def _masks(key_padding_mask, attn_mask, is_causal, need_weights, dtype):
    """Both masks as floats, and whether attention is causal without them."""
    padding = additive(key_padding_mask, "key_padding_mask", dtype, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        return None, None, True
    return padding, additive(attn_mask, "attn_mask", dtype), False


def _merged(query, key, num_heads, attn_mask, key_padding_mask):
    """The mask that is added to the scores (N, num_heads, L, S), or None."""
    length, batch, source, mask = query.shape[0], query.shape[1], key.shape[0], None
    if attn_mask is not None:
        expected = (length, source)
        if attn_mask.ndim == 3:
            expected = (batch * num_heads, *expected)
        if tuple(attn_mask.shape) != expected:
            raise RuntimeError(
                f"The shape of the {attn_mask.ndim}D attn_mask is {attn_mask.shape}, but should be "
                f"{expected}."
            )
        mask = attn_mask
        if mask.ndim == 3:
            mask = mask.unflatten(0, (batch, num_heads))
    if key_padding_mask is not None:
        for dim, expected in enumerate((batch, source)):
            if key_padding_mask.shape[dim] != expected:
                raise AssertionError(
                    f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got "
                    f"{key_padding_mask.shape[dim]}"
                )
        padding = key_padding_mask.unsqueeze(1).unsqueeze(1)
        mask = padding if mask is None else mask + padding
    return mask


# checks


def _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads) -> bool:
    """Return whether the inputs have a batch dimension."""
    rank = query.ndim
    if rank not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
        )
    what = "For batched (3-D)" if rank == 3 else "For unbatched (2-D)"
    if key.ndim != rank or value.ndim != rank:
        raise AssertionError(
            f"{what} `query`, expected `key` and `value` to be {rank}-D but found {key.ndim}-D and "
            f"{value.ndim}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.ndim != rank - 1:
        raise AssertionError(
            f"{what} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{key_padding_mask.ndim}-D tensor instead"
        )
    if attn_mask is None:
        return rank == 3
    if attn_mask.ndim not in (2, 3):
        raise AssertionError(
            f"{what} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{attn_mask.ndim}-D tensor instead"
        )
    expected = (num_heads, query.shape[0], key.shape[0])
    if rank == 2 and attn_mask.ndim == 3 and tuple(attn_mask.shape) != expected:
        raise AssertionError(
            f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}"
        )
    return rank == 3


def _check_shapes(query, key, value, embed_dim, num_heads, weights):
    if query.shape[-1] != embed_dim:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim}, but got {query.shape[-1]}"
        )
    if embed_dim % num_heads:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if isinstance(weights, tuple):
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                f"{value.shape[:2]}"
            )
        for name, weight in zip("qkv", weights, strict=True):
            if weight is None:
                raise AssertionError(
                    f"use_separate_proj_weight is True but {name}_proj_weight is None"
                )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    elif weights is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")


def requires_grad(*tensors: Tensor) -> bool:
    """Whether operators on one of the tensors are recorded."""
    return is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


# layers


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

    kdim: int
    vdim: int
    head_dim: int
    out_proj: Linear

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
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
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
            self.in_proj_weight = new_parameter((3 * embed_dim, embed_dim), *options)
        else:
            self.register_parameter("in_proj_weight", None)
        for name, features in zip(names, (embed_dim, self.kdim, self.vdim), strict=True):
            separate = self.in_proj_weight is None
            weight = new_parameter((embed_dim, features), *options) if separate else None
            self.register_parameter(name, weight)
        bias_in = new_parameter((3 * embed_dim,), *options) if bias else None
        self.register_parameter("in_proj_bias", bias_in)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, *options)
        for name in ("bias_k", "bias_v"):
            extra = new_parameter((1, 1, embed_dim), *options) if add_bias_kv else None
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
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if query.is_nested or key.is_nested or value.is_nested:
            masks = key_padding_mask, attn_mask
            self._check_nested(query, key, value, masks)
            return self._of_nested(query, need_weights, average_attn_weights)
        is_transposed = self.batch_first and query.ndim == 3
        if is_transposed:
            # `multi_head_attention_forward` recognizes self-attention by identity
            views = {id(x): x.transpose(0, 1) if x.ndim == 3 else x for x in (query, key, value)}
            query, key, value = (views[id(x)] for x in (query, key, value))
        result, weights = functional.multi_head_attention_forward(
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

    def _of_nested(self, query, need_weights, average_attn_weights):
        """The attention of the components of a nested tensor to themselves, nested too."""
        dense, is_padded = query.to_padded_tensor(0.0), query.padding_mask()
        result, weights = self(
            *(dense, dense, dense, is_padded),
            need_weights=need_weights,
            average_attn_weights=average_attn_weights,
        )
        if weights is not None:  # those of the padding are 0
            rows = is_padded.unsqueeze(-1) if average_attn_weights else is_padded[:, None, :, None]
            weights = weights.masked_fill(rows, 0.0)
        return query.from_padded(result), weights

    def _check_nested(self, query, key, value, masks):
        """Raise AssertionError where PyTorch takes no nested tensors."""
        weight = self.in_proj_weight
        reasons = {
            "torch.backends.mha.get_fastpath_enabled() was not True": (not fast_path.fastpath),
            f"input not batched; expected query.dim() of 3 but got {query.ndim}": query.ndim != 3,
            "non-self attention was used (query, key, and value are not the same Tensor)": not (
                query is key is value
            ),
            "in_proj_weight was None": weight is None,
            "dtypes of query and self.in_proj_weight don't match": (
                weight is not None and query.dtype is not weight.dtype
            ),
            "training is enabled": self.training,
            "self.num_heads is not even": self.num_heads % 2,
            "batch_first was not True": not self.batch_first,
            "self.bias_k was not None": self.bias_k is not None,
            "add_zero_attn was enabled": self.add_zero_attn,
            "masks beside the lengths are not supported with NestedTensor input": any(
                mask is not None for mask in masks
            ),
            "autocast is enabled": autocast_mode.is_autocast_enabled(),
            "grad is enabled and at least one of query or the input/output projection weights or "
            "biases requires_grad": requires_grad(query, *self.parameters()),
        }
        for reason, holds in reasons.items():
            if holds:
                raise AssertionError(
                    "MultiheadAttention does not support NestedTensor outside of its fast path. "
                    f"The fast path was not hit because {reason}"
                )

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
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
