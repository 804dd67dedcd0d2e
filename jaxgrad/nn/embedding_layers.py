"""The layer of bags of embeddings."""

from __future__ import annotations

from ..autograd.grad_mode import no_grad
from ..tape.tensor import Tensor
from . import init
from .embedding import embedding_bag
from .layers import parameter
from .module import Module
from .parameter import Parameter


class EmbeddingBag(Module):
    """Sums, means or maxima of bags of a learned table's rows; see `functional.embedding_bag`.

    Indices (B, L), or (K,) with offsets (B,), become (B, embedding_dim).

    weight: (num_embeddings, embedding_dim), drawn from N(0, 1). padding_idx: a row of zeros that is
    left out. Errors are those of `functional.embedding_bag`; also AssertionError for a
    `padding_idx` outside the table.

    >>> table = jaxgrad.nn.EmbeddingBag(10, 3, mode="sum")
    >>> table(jaxgrad.tensor([[1, 2], [4, 5]])).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        if _weight is None:
            self.weight = parameter((num_embeddings, embedding_dim), device, dtype)
            self.reset_parameters()
        elif list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        else:
            self.weight = Parameter(_weight)
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset

    def reset_parameters(self):
        """Draw the table again, with zeros at `padding_idx`."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def forward(self, input, offsets=None, per_sample_weights=None):
        return embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self):
        shown = f"{self.num_embeddings}, {self.embedding_dim}"
        defaults = {"max_norm": None, "norm_type": 2, "scale_grad_by_freq": False}
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                shown += f", {name}={value}"
        shown += f", mode={self.mode!r}"
        return shown if self.padding_idx is None else f"{shown}, padding_idx={self.padding_idx}"

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options) -> EmbeddingBag:
        """Return a layer with the table `embeddings` (num_embeddings, embedding_dim).

        freeze: the table does not require grad. options: those of the constructor.
        Raises AssertionError unless `embeddings` has two dimensions.

        >>> table = jaxgrad.nn.EmbeddingBag.from_pretrained(jaxgrad.tensor([[1.0], [3.0]]))
        >>> table(jaxgrad.tensor([[0, 1]]))
        tensor([[2.]])
        """
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        result = cls(*embeddings.shape, _weight=embeddings, **options)
        result.weight.requires_grad_(not freeze)
        return result
