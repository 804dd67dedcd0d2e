"""PyTorch's private module of `vmap`."""

from __future__ import annotations

import jax

from ..frontend.factories import arange
from ..func.example_scope import ExampleScope
from ..func.vmap import name_of as _get_name
from ..func.vmap import vmap as vmap
from ..names.not_provided import names_of
from ..tape import mode
from ..tape.pytree import flatten, map_leaves

__all__ = ["_get_name", "get_chunk_sizes", "restore_vmap", "vmap", "vmap_impl"]
__getattr__, __dir__ = names_of(__name__)


def vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs):
    """Call `vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)` with arguments."""
    return vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)(*args, **kwargs)


def get_chunk_sizes(total_elems: int, chunk_size: int) -> list[int]:
    """The sizes of the chunks of so many examples: the last one may be smaller.

    >>> jaxgrad._functorch.vmap.get_chunk_sizes(7, 3)
    [3, 3, 1]
    """
    return [min(chunk_size, total_elems - start) for start in range(0, total_elems, chunk_size)]


def restore_vmap(func, in_dims, batch_size: int, randomness: str):
    """Return a function that maps `func` over a dimension of its arguments, and gives its results
    with their mapped dimensions: 0, or None for a result that all examples share.

    in_dims: a tuple with the mapped dimension of each argument or a pytree of them, or None; all of
    them may be None. batch_size: the number of examples. randomness: as for `vmap`.

    >>> from jaxgrad._functorch.vmap import restore_vmap
    >>> add = restore_vmap(lambda x, y: (x + y, y * 2), (0, None), 3, "error")
    >>> add(jaxgrad.zeros(3), jaxgrad.ones(2))[1]
    (0, None)
    """

    def one(_, args, kwargs):
        results = func(*args, **kwargs)
        return results, map_leaves(_is_of_example, results)

    def inner(*args, **kwargs):
        numbers = arange(batch_size)  # `vmap` needs one mapped argument
        mapped = vmap(one, (0, tuple(in_dims), None), (0, None), randomness)
        results, are_mapped = mapped(numbers, args, kwargs)
        leaves, structure = flatten(results)
        dims = [0 if is_mapped else None for is_mapped in flatten(are_mapped)[0]]
        values = [leaf if dim == 0 else leaf[0] for leaf, dim in zip(leaves, dims, strict=True)]
        return jax.tree.unflatten(structure, values), jax.tree.unflatten(structure, dims)

    return inner


def _is_of_example(value) -> bool:
    """Whether a result differs from example to example, in the `vmap` that is going on."""
    scope = mode.scope.get()
    return not isinstance(scope, ExampleScope) or scope.is_batched(value)
