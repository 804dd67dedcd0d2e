"""`vmap` by chunks."""

from __future__ import annotations

import functools

from ..func import grad as grad
from ..func import grad_and_value as grad_and_value
from ..func import vmap as vmap
from ..func.vmap import size_of_batch
from ..names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)


def chunk_vmap(func, in_dims=0, out_dims=0, randomness: str = "error", chunks: int = 2):
    """Return `vmap` of a function that computes the examples in so many chunks.

    chunks: their number, 1 or more. Other arguments, results and errors as for `vmap`.

    >>> jaxgrad._functorch.apis.chunk_vmap(jaxgrad.sum, chunks=2)(jaxgrad.ones(3, 2))
    tensor([2., 2., 2.])
    """

    @functools.wraps(func, updated=())
    def call(*args, **kwargs):
        size = size_of_batch(func, in_dims, args, kwargs)
        mapped = vmap(func, in_dims, out_dims, randomness, chunk_size=max(-(-size // chunks), 1))
        return mapped(*args, **kwargs)

    return call
