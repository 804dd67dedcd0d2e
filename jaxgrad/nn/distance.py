"""Layers of distances between vectors."""

from __future__ import annotations

from ..functions import distance
from ..tape.tensor import Tensor
from .function_layer import FunctionLayer
from .module import Module


class CosineSimilarity(FunctionLayer, function=distance.cosine_similarity, dim=1, eps=1e-8):
    """Compute `x1 . x2 / (|x1| |x2|)` along `dim`; see `functional.cosine_similarity`.

    >>> jaxgrad.nn.CosineSimilarity()(jaxgrad.tensor([[3.0, 4.0]]), jaxgrad.tensor([[6.0, 0.0]]))
    tensor([0.6000])
    """


class PairwiseDistance(Module):
    """Compute the p-norm of `x1 - x2 + eps` along the last dimension; see
    `functional.pairwise_distance`.

    >>> jaxgrad.nn.PairwiseDistance()(jaxgrad.tensor([3.0, 4.0]), jaxgrad.zeros(2))
    tensor(5.0000)
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return distance.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
