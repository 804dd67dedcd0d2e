"""`func.vmap`: turn a function of one example into a function of many.

The function is traced once, for one example, as `jaxgrad.jit` traces (capture/scope.py): captured
tensors are inputs that all examples share. JAX maps the forward and the backward program, so a call
is one node of the tape, and gradients flow to captured tensors. Outside of a trace the program is
compiled and kept, like that of a compiled function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from .. import ops
from ..core.pytorch_tensors import class_of
from ..core.tracebacks import shows_users_frames
from ..tape.pytree import flatten, is_tensor
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import ReadsNumbers, Tensor
from . import shared_function
from .example_loop import generator_states, one_by_one
from .mapped_function import (
    OwnFunctions,
    check_results,
    is_in_trace,
    moved,
    spread,
    spread_out_dims,
)

RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that maps `func` over a dimension of its arguments.

    func: a function of one example, of tensors of any shapes and dtypes.
    in_dims: the mapped dimension of each argument, None for an argument that all examples share: an
    int, or a pytree of ints in the structure of the arguments. Keyword arguments are shared.
    out_dims: the position of the mapped dimension in each result, None for a result that does not
    depend on the example.
    randomness: "error", or whether the examples draw "different" random numbers or the "same".
    chunk_size: how many examples are computed at once; all by default.

    Captured tensors are shared, and gradients flow to them. A backward pass inside of `func`, by
    `autograd.grad` or `backward`, is that of one example.

    Raises ValueError for dimensions that do not exist or have different sizes, for a result that is
    not a tensor unless its `out_dims` is None, and for an `out_dims` of None if the result depends
    on the example; RuntimeError for random numbers under "error" and for a write to a shared
    tensor.

    >>> jaxgrad.func.vmap(jaxgrad.dot)(jaxgrad.ones(3, 2), jaxgrad.tensor([[1.0, 2.0]] * 3))
    tensor([3., 3., 3.])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. "
            f"Got {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    name = name_of(func)
    functions = OwnFunctions()

    def mapped(leaves, dims, args, kwargs):
        def unshared(*args, **kwargs):
            return functions.find(func, name, dims, out_dims, randomness)(*args, **kwargs)

        if is_in_trace(leaves):
            return unshared(*args, **kwargs)
        options = dims, out_dims, randomness
        return _of_batch(functions, unshared, func, name, options, args, kwargs)

    @functools.wraps(func, updated=())
    @shows_users_frames
    def call(*args, **kwargs):
        leaves, structure, dims = _opened(name, in_dims, args, kwargs)
        size = _size(leaves, dims)
        if any(map(is_sparse, leaves)):
            return one_by_one(func, name, dims, out_dims, randomness, args, kwargs, is_sparse)
        if any(is_tensor(leaf) and leaf.is_meta for leaf in leaves):
            return _without_data(func, name, leaves, structure, dims, size, out_dims)
        if chunk_size is None:
            return mapped(leaves, dims, args, kwargs)
        if size <= chunk_size:
            return _joined(name, [mapped(leaves, dims, args, kwargs)], out_dims)
        parts, states = _chunks(leaves, dims, size, chunk_size), generator_states(randomness)
        results = [
            mapped(part, dims, *jax.tree.unflatten(structure, part))
            for part, _ in zip(parts, states, strict=False)
        ]
        return _joined(name, results, out_dims)

    return call


def chunk_vmap(func, in_dims=0, out_dims=0, randomness: str = "error", chunks: int = 2):
    """Return `vmap` of a function that computes the examples in so many chunks.

    chunks: their number, 1 or more. Other arguments, results and errors as for `vmap`.

    >>> jaxgrad._functorch.apis.chunk_vmap(jaxgrad.sum, chunks=2)(jaxgrad.ones(3, 2))
    tensor([2., 2., 2.])
    """

    @functools.wraps(func, updated=())
    def call(*args, **kwargs):
        leaves, _, dims = _opened(name_of(func), in_dims, args, kwargs)
        size = _size(leaves, dims)
        mapped = vmap(func, in_dims, out_dims, randomness, chunk_size=max(-(-size // chunks), 1))
        return mapped(*args, **kwargs)

    return call


def name_of(func) -> str:
    """The name of a function in messages."""
    if isinstance(func, functools.partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return getattr(func, "__name__", repr(func))


def _of_batch(functions, unshared, func, name, options, args, kwargs):
    """The results of a program, or those of the examples if `func` reads their numbers."""
    if not functions.read_numbers:
        try:
            return shared_function.mapped(func, *options, unshared, args, kwargs)
        except ReadsNumbers:
            functions.read_numbers = True
    return one_by_one(func, name, *options, args, kwargs)


def _without_data(func, name, leaves, structure, dims, size, out_dims):
    """The results for tensors on the device meta, which have no numbers: those of one example, as
    often as there are examples.
    """
    one = [
        leaf if dim is None else ops.select(leaf, dim, 0) if size else leaf.sum(dim).to(leaf.dtype)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
    args, kwargs = jax.tree.unflatten(structure, one)
    returned = func(*args, **kwargs)
    check_results(name, out_dims, returned)
    results, shape = flatten(returned)
    batches = [
        result.expand(size, *result.shape).contiguous() if is_tensor(result) else result
        for result in results
    ]
    return moved(name, out_dims, jax.tree.unflatten(shape, batches))


def _chunks(leaves, dims, size, chunk_size):
    """Yield the leaves of the arguments for so many examples at once."""
    for start in range(0, size, chunk_size):
        yield [
            leaf if dim is None else ops.narrow(leaf, dim, start, min(chunk_size, size - start))
            for leaf, dim in zip(leaves, dims, strict=True)
        ]


def _joined(name, results, out_dims):
    """The results of all chunks."""
    leaves, (structure, *_) = zip(*map(flatten, results), strict=True)
    dims = spread_out_dims(name, out_dims, results[0])
    joined = map(_concatenated, zip(*leaves, strict=True), dims)
    return jax.tree.unflatten(structure, joined)


def _concatenated(parts, dim):
    is_mapped = isinstance(parts[0], Tensor) and dim is not None
    return ops.cat(parts, dim) if is_mapped else parts[0]


def _dims(name, in_dims, args, kwargs, is_whole=None) -> tuple:
    """The mapped dimension of each leaf of the arguments, or None; is_whole: as for `flatten`."""
    if not isinstance(in_dims, int | tuple):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int "
            f"or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you "
            "are trying to vmap over a function with no inputs. The latter is unsupported."
        )

    def is_part(value):
        return value is None or (is_whole is not None and is_whole(value))

    parts = flatten(args, is_part)[0]
    try:
        dims = (
            [in_dims] * len(parts) if isinstance(in_dims, int) else spread(in_dims, args, is_part)
        )
    except ValueError:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible "
            f"with the structure of `inputs`. in_dims has structure {jax.tree.structure(in_dims)} "
            f"but inputs has structure {flatten(args)[1]}."
        ) from None
    where = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    dims = [_dim(where, part, dim) for part, dim in zip(parts, dims, strict=True)]
    mapped = [dim for part, dim in zip(parts, dims, strict=True) if part is not None]
    return (*mapped, *[None] * len(flatten(kwargs, is_whole)[0]))


def _opened(name, in_dims, args, kwargs):
    """The leaves of the arguments, their structure, and the mapped dimension of each leaf. Sparse
    tensors are leaves if one of them is mapped.
    """
    leaves, structure = flatten((args, kwargs), is_sparse)
    if any(map(is_sparse, leaves)):
        dims = _dims(name, in_dims, args, kwargs, is_sparse)
        pairs = zip(leaves, dims, strict=True)
        if any(is_sparse(leaf) and dim is not None for leaf, dim in pairs):
            return leaves, structure, dims
        leaves, structure = flatten((args, kwargs))
    return leaves, structure, _dims(name, in_dims, args, kwargs)


def _dim(where, leaf, dim):
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but in_dim must be either an integer "
            "dimension or None."
        )
    if not isinstance(leaf, Tensor | jax.Array):
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but the input is of type {class_of(leaf)}. "
            "We cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -leaf.ndim <= dim < leaf.ndim:
        raise ValueError(
            f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of "
            f"dimensionality {leaf.ndim} so expected in_dim to satisfy "
            f"-{leaf.ndim} <= in_dim < {leaf.ndim}."
        )
    return dim % leaf.ndim


def _size(leaves, dims) -> int:
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError(
            "vmap: Expected at least one Tensor to vmap over, but in_dims is None for all inputs"
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0]
