"""Patterns of sparse tensors: which elements are at equal indices, and where the elements of one
tensor are in another.

Indices that have values are compared by numpy. In a trace the number of elements is fixed, and what
would change it raises.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from ..core.aval import has_numbers
from ..tape.sparse_tensor import Padding, SparseTensor
from ..tape.tensor import Tensor, concrete, is_concrete, shown_array, wrap


def as_indices(array) -> Tensor:
    """A tensor of int64 indices."""
    with jax.enable_x64(True):
        return wrap(jnp.asarray(array, dtype=jnp.int64))


def known(tensor: SparseTensor) -> np.ndarray | None:
    """The indices as a numpy array; None in a trace."""
    indices = tensor._indices_held
    return np.asarray(indices._array) if is_concrete(indices) else None


def needed(tensor: SparseTensor, what: str) -> np.ndarray:
    """The indices as a numpy array. Raises RuntimeError in a trace, naming `what` needs them."""
    return np.asarray(concrete(tensor._indices_held, what))


def has_known(tensor: SparseTensor) -> bool:
    """Whether the indices are known, in a trace because they are constants."""
    return has_numbers(shown_array(tensor._indices_held))


def has_padding(tensor) -> bool:
    """Whether a tensor of a trace has more elements than it would have outside."""
    return isinstance(tensor._coalesced, Padding)


def is_known(tensor: SparseTensor) -> bool:
    """Whether the indices are known, of elements without padding."""
    return not has_padding(tensor) and has_known(tensor)


def present(tensor: SparseTensor) -> Tensor:
    """Which elements a tensor has besides padding."""
    if has_padding(tensor):
        return tensor._coalesced.present
    return as_mask(np.ones(nnz(tensor), bool))


def as_mask(array) -> Tensor:
    return wrap(jnp.asarray(array, dtype=bool))


def if_kept(tensor: SparseTensor, condition: bool):
    """The `is_coalesced` or `Padding` of a tensor, if a further condition must hold."""
    if has_padding(tensor):
        padding = tensor._coalesced
        return Padding(padding.present, padding.is_coalesced and condition)
    return tensor._coalesced and condition


def traced_distinct(tensor: SparseTensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`distinct` in a trace, with as many indices as there may be, and which of them are no
    padding.
    """
    count = min(nnz(tensor), math.prod(sparse_sizes(tensor)))
    with jax.enable_x64(True):
        indices, is_there = tensor._indices_held._array, present(tensor)._array
        if not count or not indices.shape[0]:
            numbers = jnp.zeros(nnz(tensor), jnp.int64)
            kept = indices[:, :count]
        else:
            kept, numbers = jnp.unique(indices, axis=1, return_inverse=True, size=count)
            numbers = numbers.reshape(-1)
        # the first of those that are there; the others hold 0
        places = jnp.where(is_there, jnp.arange(nnz(tensor)), nnz(tensor))
        first = jnp.full(count, nnz(tensor)).at[numbers].min(places)
        is_present = first < nnz(tensor)
        first = jnp.where(is_present, first, 0)
        return as_indices(kept), as_indices(first), wrap(numbers), wrap(is_present)


def linear(indices: np.ndarray, sizes) -> np.ndarray | None:
    """One number for each element, in the order of the indices; None beyond 64 bits."""
    if math.prod(sizes) >= 2**63:
        return None
    numbers = np.zeros(indices.shape[1], np.int64)
    for index, size in zip(indices, sizes, strict=True):
        numbers = numbers * size + index
    return numbers


def distinct(indices: np.ndarray, sizes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct indices in order, the position of the first element at each, and for each
    element the number of its index.
    """
    numbers = linear(indices, sizes)
    if numbers is None or not indices.shape[0]:
        results = np.unique(indices, axis=1, return_index=True, return_inverse=True)
        if not indices.shape[0]:
            count = min(indices.shape[1], 1)
            results = indices[:, :count], np.arange(count), np.zeros(indices.shape[1], np.int64)
        return results[0], results[1], results[2].reshape(-1)
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    return indices[:, first], first, inverse


def is_coalesced(indices: np.ndarray, sizes) -> bool:
    """Whether indices are sorted and distinct."""
    numbers = linear(indices, sizes)
    if numbers is not None:
        return bool((np.diff(numbers) > 0).all())
    kept, _, _ = distinct(indices, sizes)
    return kept.shape == indices.shape and bool((kept == indices).all())


def groups(tensor: SparseTensor, dims: list[int]) -> tuple[Tensor, int]:
    """For each element the number of its group, those with equal indices in `dims`, and how many
    groups there may be.
    """
    count, sizes = nnz(tensor), [tensor._sizes[dim] for dim in dims]
    indices = known(tensor)
    if indices is not None:
        kept, _, inverse = distinct(indices[dims], sizes)
        return as_indices(inverse), kept.shape[1]
    if not dims or not count:
        return as_indices(np.zeros(count, np.int64)), min(count, 1)
    if tensor._indices_held.is_meta:
        concrete(tensor._indices_held, "the pattern of a sparse tensor")  # raises
    with jax.enable_x64(True):
        chosen = tensor._indices_held._array[jnp.asarray(dims)]
        _, inverse = jnp.unique(chosen, axis=1, return_inverse=True, size=count)
        return wrap(inverse.reshape(-1)), count


def positions(tensor: SparseTensor, indices: np.ndarray) -> np.ndarray:
    """The position of the element of a coalesced tensor at each of the indices, the number of its
    elements where there is none.
    """
    present, sizes = needed(tensor, "a comparison of sparse patterns"), sparse_sizes(tensor)
    _, _, numbers = distinct(np.concatenate([present, indices], axis=1), sizes)
    place = np.full(numbers.max(initial=-1) + 1, present.shape[1])
    place[numbers[: present.shape[1]]] = np.arange(present.shape[1])
    return place[numbers[present.shape[1] :]]


def is_same(one: SparseTensor, other: SparseTensor) -> bool:
    """Whether both tensors have the same indices in the same order, as far as is known."""
    if one._indices_held is other._indices_held:
        return True
    if one._indices_held._array is other._indices_held._array:
        return True
    first, second = known(one), known(other)
    return first is not None and second is not None and np.array_equal(first, second)


def members(begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers from `begin` to `end` of each of several ranges, one range after another, and for
    each number the position of its range.
    """
    count = end - begin
    position = np.repeat(np.arange(len(begin)), count)
    offset = np.arange(len(position)) - np.repeat(np.cumsum(count) - count, count)
    return begin[position] + offset, position


def nnz(tensor: SparseTensor) -> int:
    """The number of elements that are stored."""
    return tensor._indices_held.shape[1]


def sparse_dims(tensor: SparseTensor) -> int:
    """The number of sparse dimensions."""
    return tensor._indices_held.shape[0]


def sparse_sizes(tensor: SparseTensor) -> tuple[int, ...]:
    """The sizes of the sparse dimensions."""
    return tuple(tensor._sizes[: sparse_dims(tensor)])


def words(shape) -> str:
    """A shape as messages on products have it: "2x3"."""
    return "x".join(map(str, shape))
