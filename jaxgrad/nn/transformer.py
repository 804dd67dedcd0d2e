"""The transformer: encoder and decoder, and their layers."""

import copy
import math
import warnings
from collections.abc import Callable

from .. import ops
from ..core import dtypes
from ..core.device import DeviceLike
from ..core.tracebacks import users_stacklevel
from ..frontend import factories
from ..late import LateModule
from ..tape.tensor import Tensor
from . import activation as activations
from . import functional, init
from .containers import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .multi_head_attention import MultiheadAttention, additive, fast_path, requires_grad
from .normalization import LayerNorm

autocast_mode = LateModule("jaxgrad.amp.autocast_mode")


def _activation(activation):
    """Return the function that a string names."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(functional, activation)


def _kind(activation) -> int:
    """Return 1 for relu, 2 for gelu, 0 for another activation."""
    if activation is functional.relu or isinstance(activation, activations.ReLU):
        return 1
    return 2 * (activation is functional.gelu or isinstance(activation, activations.GELU))


def _clones(module, count):
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


class _Layer(Module):
    """A block of attention and a feed-forward network; residual connections around both."""

    last_dropout = "dropout2"  # of the feed-forward network
    linear1: Linear
    linear2: Linear
    dropout: Dropout
    activation: Callable[[Tensor], Tensor]

    def _add_feed_forward(self, d_model, width, dropout, norms, eps, **options):
        """Make the feed-forward network, and as many norms and dropouts as the layer has blocks."""
        self.linear1 = Linear(d_model, width, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(width, d_model, **options)
        for number in range(1, norms + 1):
            setattr(self, f"norm{number}", LayerNorm(d_model, eps, **options))
        for number in range(1, norms + 1):
            setattr(self, f"dropout{number}", Dropout(dropout))

    # subclasses override the blocks, as in PyTorch

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        """Self-attention, with dropout."""
        masks = key_padding_mask, False, attn_mask
        return self.dropout1(self.self_attn(x, x, x, *masks, is_causal=is_causal)[0])

    def _ff_block(self, x):
        """The feed-forward network, with dropout."""
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return getattr(self, self.last_dropout)(x)

    def _blocks(self, x, *functions):
        """Apply functions to x in sequence, each with its norm and residual connection."""
        for number, function in enumerate(functions, 1):
            norm = getattr(self, f"norm{number}")
            x = x + function(norm(x)) if self.norm_first else norm(x + function(x))
        return x


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, each with a residual connection and LayerNorm.

    `x = norm1(x + attention(x)); x = norm2(x + linear2(activation(linear1(x))))`; with `norm_first`
    each norm applies to the input of its block instead. src: (S, N, d_model), (S, d_model), or with
    `batch_first` (N, S, d_model); the result has its shape. src_mask, src_key_padding_mask,
    is_causal: as for `MultiheadAttention`. activation: "relu", "gelu" or a function; RuntimeError
    for another string. Source: Vaswani et al., "Attention Is All You Need", 2017.

    >>> layer = jaxgrad.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(jaxgrad.ones(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, batch_first=batch_first, **options
        )
        self.norm_first = norm_first
        self._add_feed_forward(d_model, dim_feedforward, dropout, 2, layer_norm_eps, **options)
        self.activation = _activation(activation)
        self.activation_relu_or_gelu = _kind(self.activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        padding = additive(
            src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask"
        )
        mask = additive(src_mask, "src_mask", src.dtype)

        def attend(x):
            return self._sa_block(x, mask, padding, is_causal=is_causal)

        return self._blocks(src, attend, self._ff_block)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to `memory` and a feed-forward network, each with a residual
    connection and LayerNorm.

    tgt: (T, N, d_model), (T, d_model), or with `batch_first` (N, T, d_model); the result has its
    shape. memory: likewise with length S. tgt_mask, tgt_key_padding_mask, tgt_is_causal: of the
    self-attention, as for `MultiheadAttention`; memory_mask, memory_key_padding_mask,
    memory_is_causal: of the attention to memory. The other arguments and errors are those of
    `TransformerEncoderLayer`. Source: Vaswani et al., "Attention Is All You Need", 2017.

    >>> layer = jaxgrad.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> layer(jaxgrad.ones(3, 5, 8), jaxgrad.ones(3, 7, 8)).shape
    torch.Size([3, 5, 8])
    """

    last_dropout = "dropout3"

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        attention = d_model, nhead, dropout
        self.self_attn = MultiheadAttention(*attention, batch_first=batch_first, **options)
        self.multihead_attn = MultiheadAttention(*attention, batch_first=batch_first, **options)
        self.norm_first = norm_first
        self._add_feed_forward(d_model, dim_feedforward, dropout, 3, layer_norm_eps, **options)
        self.activation = _activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x):
            return self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def attend_to_memory(x):
            return self._mha_block(
                x, memory, memory_mask, memory_key_padding_mask, memory_is_causal
            )

        return self._blocks(tgt, attend, attend_to_memory, self._ff_block)

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        """Attention to `mem`, with dropout."""
        masks = key_padding_mask, False, attn_mask
        return self.dropout2(self.multihead_attn(x, mem, mem, *masks, is_causal=is_causal)[0])


def _why_not_nested(layer) -> str:
    """Return why PyTorch would not skip padding in inference with such layers, or ""."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention, name = layer.self_attn, "encoder_layer.self_attn"
    reasons = {
        "encoder_layer.norm_first was True": layer.norm_first,
        f"{name}.batch_first was not True(use batch_first for better inference performance)": (
            not attention.batch_first
        ),
        f"{name}._qkv_same_embed_dim was not True": not attention._qkv_same_embed_dim,
        f"{name} was passed bias=False": attention.in_proj_bias is None,
        "encoder_layer.activation_relu_or_gelu was not True": not layer.activation_relu_or_gelu,
        "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps": (
            layer.norm1.eps != layer.norm2.eps
        ),
        f"{name}.num_heads is odd": attention.num_heads % 2,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


class TransformerEncoder(Module):
    """`num_layers` deep copies of `encoder_layer`, applied in sequence, then `norm` if it is given.

    src: as for `TransformerEncoderLayer`; the result has its shape. mask, src_key_padding_mask,
    is_causal: passed to every layer. enable_nested_tensor: in inference, if the padding of
    `src_key_padding_mask` is at the ends alone, the layers give 0 there, as in PyTorch, which skips
    the padding; a warning says which encoder_layer excludes that. mask_check: False takes for
    granted that padding is at the ends.

    >>> layer = jaxgrad.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> encoder = jaxgrad.nn.TransformerEncoder(layer, 2)
    >>> encoder(jaxgrad.ones(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    layers: ModuleList
    use_nested_tensor: bool

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        reason = _why_not_nested(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not reason
        if enable_nested_tensor and reason:
            warnings.warn(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                f"{reason}",
                stacklevel=users_stacklevel(),
            )

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        padding = additive(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask")
        mask = additive(mask, "mask", src.dtype)
        is_padded = self._is_padded(src, mask, padding)
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=padding, is_causal=bool(is_causal))
        if is_padded is not None:
            src = src.masked_fill(is_padded.unsqueeze(-1), 0.0)
        return src if self.norm is None else self.norm(src)

    def _is_padded(self, src, mask, padding):
        """Where the result is 0 since PyTorch leaves out the padding in inference, or None."""
        if not self.use_nested_tensor or padding is None or mask is not None or src.ndim != 3:
            return None
        first = self.layers[0]
        if first.training or src.is_nested or not fast_path.fastpath:
            return None
        if autocast_mode.is_autocast_enabled() or requires_grad(src, *first.parameters()):
            return None
        is_padded = padding != 0
        if not self.mask_check:
            return is_padded
        return is_padded & (is_padded[:, 1:] >= is_padded[:, :-1]).all()


class TransformerDecoder(Module):
    """`num_layers` deep copies of `decoder_layer`, applied in sequence, then `norm` if it is given.

    The arguments of a call are those of `TransformerDecoderLayer`, passed to every layer.

    >>> layer = jaxgrad.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> decoder = jaxgrad.nn.TransformerDecoder(layer, 2)
    >>> decoder(jaxgrad.ones(3, 5, 8), jaxgrad.ones(3, 7, 8)).shape
    torch.Size([3, 5, 8])
    """

    layers: ModuleList

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        masks = {
            "tgt_mask": tgt_mask,
            "memory_mask": memory_mask,
            "tgt_key_padding_mask": tgt_key_padding_mask,
            "memory_key_padding_mask": memory_key_padding_mask,
            "tgt_is_causal": bool(tgt_is_causal),
            "memory_is_causal": memory_is_causal,
        }
        for layer in self.layers:
            tgt = layer(tgt, memory, **masks)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of `src` and a decoder of `tgt` that attends to what the encoder gives.

    src: (S, N, d_model), (S, d_model), or with `batch_first` (N, S, d_model); tgt: likewise with
    length T; the result has the shape of tgt. The masks of a call, and the other arguments of the
    constructor, are those of `TransformerEncoderLayer` and `TransformerDecoderLayer`.
    custom_encoder, custom_decoder: modules in their place. Matrices are drawn by `xavier_uniform_`.
    Raises RuntimeError for batches or features that do not fit.
    Source: Vaswani et al., "Attention Is All You Need", 2017.

    >>> model = jaxgrad.nn.Transformer(8, 2, 1, 1, 16, custom_encoder=jaxgrad.nn.Identity())
    >>> model.decoder(jaxgrad.ones(5, 3, 8), jaxgrad.ones(7, 3, 8)).shape
    torch.Size([5, 3, 8])
    """

    encoder: Module
    decoder: Module

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable = functional.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__()
        arguments = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )
        options = {"bias": bias, "device": device, "dtype": dtype}
        if custom_encoder is None:
            layer, norm = (
                TransformerEncoderLayer(*arguments),
                LayerNorm(d_model, layer_norm_eps, **options),
            )
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is None:
            layer, norm = (
                TransformerDecoderLayer(*arguments),
                LayerNorm(d_model, layer_norm_eps, **options),
            )
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self):
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: DeviceLike | None = None, dtype: dtypes.dtype | None = None
    ) -> Tensor:
        """Return a causal mask (sz, sz): -inf above the diagonal, 0 elsewhere.

        >>> jaxgrad.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        mask = factories.full((sz, sz), -math.inf, device=device, dtype=dtype)
        return ops.triu(mask, 1)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
