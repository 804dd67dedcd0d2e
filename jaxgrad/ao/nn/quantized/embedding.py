"""Embeddings with tables of 8 or 4 bits, and a scale for each row."""

from __future__ import annotations

from .... import nn
from ....core import named_dtypes
from ....frontend.factories import full, zeros
from ....functions import quantized_kernels as kernels
from ....functions.quantization import per_channel_affine_float_qparams, quantize_per_channel
from ....names.not_provided import names_of
from ....nn.module import Module
from .quantize import quantized_weight

_DTYPES = (named_dtypes.quint8, named_dtypes.quint4x2)


class EmbeddingPackedParams(Module):
    """The table of a layer."""

    _version = 1

    def __init__(self, num_embeddings, embedding_dim, dtype=named_dtypes.quint8):
        super().__init__()
        if dtype not in _DTYPES:
            raise NotImplementedError(
                "Unsupported dtype on dynamic quantized embedding! Supports quint8 and quint4x2, "
                f"not {dtype}"
            )
        self.dtype = dtype
        rows = full((num_embeddings,), 1.0), zeros(num_embeddings)
        table = zeros(num_embeddings, embedding_dim)
        self.set_weight(quantize_per_channel(table, *rows, 0, dtype))

    def set_weight(self, weight):
        self._packed_weight = kernels.embedding_bag_prepack(weight)

    def _weight(self):
        return self._packed_weight.unpack()

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_weight"] = self._weight()

    def _load_from_state_dict(self, state_dict, prefix, metadata, strict, *lists):
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight(state_dict.pop(prefix + "_packed_weight"))
        super()._load_from_state_dict(state_dict, prefix, metadata, False, *lists)

    def __repr__(self):
        return repr(self._weight())


class Embedding(Module):
    """`nn.Embedding` with a table of 8 or 4 bits; the result is float32.

    Arguments: those of `nn.Embedding`. dtype: of the table, `quint8` or `quint4x2`. `weight()` is
    the table, and `set_weight` sets it. Raises NotImplementedError for another dtype.

    >>> layer = jaxgrad.nn.Embedding.from_pretrained(jaxgrad.tensor([[0.0, 2.55], [1.0, 1.0]]))
    >>> layer.qconfig = jaxgrad.ao.quantization.float_qparams_weight_only_qconfig
    >>> layer = jaxgrad.ao.nn.quantized.Embedding.from_float(layer)
    >>> layer(jaxgrad.tensor([0]))
    tensor([[0.0000, 2.5500]])
    """

    _version = 1
    _FLOAT_MODULE = nn.Embedding

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        dtype=named_dtypes.quint8,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError(
                    f"Shape of weight {list(_weight.shape)} does not match num_embeddings and "
                    f"embedding_dim: {[num_embeddings, embedding_dim]}"
                )
            self.set_weight(_weight)

    def _get_name(self):
        return f"Quantized{type(self).__name__}"

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"dtype={self.dtype}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    def forward(self, indices):
        return kernels.embedding_byte(self._packed_params._packed_weight, indices)

    def set_weight(self, w):
        self._packed_params.set_weight(w)

    def weight(self):
        return self._packed_params._weight()

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of one of `nn` with a `qconfig`, or of one of `ao.nn.qat`."""
        observer = _row_observer(cls, mod, use_precomputed_fake_quant)
        weight = quantized_weight(mod.weight, observer)
        layer = cls(mod.num_embeddings, mod.embedding_dim, dtype=observer.dtype)
        layer.set_weight(weight)
        return layer


def _row_observer(cls, mod, use_precomputed_fake_quant):
    """The observer of a table, which has recorded the ranges of its rows."""
    if not isinstance(mod, cls._FLOAT_MODULE):
        raise AssertionError(
            f"nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got "
            f"{type(mod).__name__}"
        )
    if hasattr(mod, "weight_fake_quant"):
        observer = mod.weight_fake_quant
    elif getattr(mod, "qconfig", None):
        observer = mod.qconfig.weight()
    else:
        raise AssertionError("Embedding input float module must have qconfig defined")
    if getattr(observer, "qscheme", None) is not per_channel_affine_float_qparams:
        raise AssertionError(
            "Embedding quantization is only supported with float_qparams_weight_only_qconfig."
        )
    if observer.dtype not in _DTYPES:
        raise AssertionError(
            "The only supported dtype for nnq.Embedding is torch.quint8 and torch.quint4x2, got "
            f"{observer.dtype}"
        )
    if not use_precomputed_fake_quant:
        observer(mod.weight)
    return observer


class EmbeddingBag(Embedding):
    """`nn.EmbeddingBag` with a table of 8 or 4 bits; the result is float32.

    Arguments: those of `nn.EmbeddingBag`, and `dtype` as in `Embedding`.
    """

    _FLOAT_MODULE = nn.EmbeddingBag
    _MODES = ("sum", "mean", "max")

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="sum",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        dtype=named_dtypes.quint8,
    ):
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.include_last_offset = mode, include_last_offset
        self.pruned_weights = False

    def forward(
        self, indices, offsets=None, per_sample_weights=None, compressed_indices_mapping=None
    ):
        return kernels.embedding_bag_byte(
            self._packed_params._packed_weight,
            indices,
            offsets,
            mode=self._MODES.index(self.mode),
            pruned_weights=self.pruned_weights,
            per_sample_weights=per_sample_weights,
            compressed_indices_mapping=compressed_indices_mapping,
            include_last_offset=self.include_last_offset,
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of one of `nn` with a `qconfig`, or of one of `ao.nn.qat`."""
        layer = super().from_float(mod, use_precomputed_fake_quant)
        layer.mode, layer.include_last_offset = mod.mode, mod.include_last_offset
        return layer


__getattr__, __dir__ = names_of(__name__)
