"""Embeddings with a module that rounds their table: `weight_fake_quant`, of the `qconfig`."""

from __future__ import annotations

from .... import nn
from ....functions.quantization import per_channel_affine_float_qparams
from ....names.not_provided import names_of
from ._float_layers import check_float_layer


class _RoundsTable:
    """What these layers have beside those of `nn` that they derive from."""

    _FLOAT_MODULE: type
    _arguments: tuple[str, ...]

    def __init__(self, num_embeddings, embedding_dim, *arguments, qconfig=None, **options):
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        scheme = qconfig.weight().qscheme
        if scheme is not per_channel_affine_float_qparams:
            raise AssertionError(
                "Embedding weights requires a qscheme of torch.per_channel_affine_float_qparams "
                f"Got {scheme}"
            )
        super().__init__(num_embeddings, embedding_dim, *arguments, **options)
        self.qconfig, self.weight_fake_quant = qconfig, qconfig.weight()

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer with the table of one of `nn` that has a `qconfig`."""
        check_float_layer(cls, mod)
        options = {name: getattr(mod, name) for name in cls._arguments}
        return cls(**options, _weight=mod.weight, qconfig=mod.qconfig).train(mod.training)

    def to_float(self):
        """The layer of `nn` with the table."""
        options = {name: getattr(self, name) for name in self._arguments}
        layer = self._FLOAT_MODULE(**options, _weight=self.weight.detach())
        return layer.train(self.training)


class Embedding(_RoundsTable, nn.Embedding):
    """`nn.Embedding` with a rounded table."""

    _FLOAT_MODULE = nn.Embedding
    _arguments = ("num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type")
    _arguments += ("scale_grad_by_freq", "sparse")

    def forward(self, input):
        weight = self.weight_fake_quant(self.weight)
        options = self.padding_idx, self.max_norm, self.norm_type
        return nn.functional.embedding(
            input, weight, *options, self.scale_grad_by_freq, self.sparse
        )


class EmbeddingBag(_RoundsTable, nn.EmbeddingBag):
    """`nn.EmbeddingBag` with a rounded table."""

    _FLOAT_MODULE = nn.EmbeddingBag
    _arguments = ("num_embeddings", "embedding_dim", "max_norm", "norm_type")
    _arguments += ("scale_grad_by_freq", "mode", "sparse", "include_last_offset", "padding_idx")

    def forward(self, input, offsets=None, per_sample_weights=None):
        weight = self.weight_fake_quant(self.weight)
        options = self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse
        return nn.functional.embedding_bag(
            input,
            weight,
            offsets,
            *options,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )


__getattr__, __dir__ = names_of(__name__)
