"""`func.vmap`: a function of one example as a function of many.

The function is traced once, for one example, as `jaxgrad.jit` traces (capture/scope.py): what it
reads from outside is an input that all examples share. JAX maps what comes out, the forward program
and the backward one, so a call is one node of the tape, and tensors from outside keep their
gradients. Outside of a trace the mapped program is compiled and kept, as a compiled function's is.
"""

from __future__ import annotations

import functools

import jax

from .. import ops
from ..capture.jit import Jitted
from ..core import executor
from ..core.tracebacks import api_boundary
from ..tape import mode
from ..tape.tensor import Tensor, current
from .batched_program import MappedTrace

RANDOMNESS = ("error", "different", "same")


def vmap(func, in_dims=0, out_dims=0, randomness: str = "error", *, chunk_size: int | None = None):
    """The function that `func`, of one example, is of many, along a dimension of its arguments.

    in_dims: the dimension of each argument, None for one that all examples share: an int, or a tree
    of them in the structure of the arguments. Arguments by name are shared. out_dims: where the
    dimension is in each result, None for one that is the same for all. randomness: "error" where
    `func` draws random numbers, "different" ones for each example, or the "same" for all.
    chunk_size: so many examples at once.

    Tensors that `func` reaches by itself are shared, and have gradients; a pass inside of it, by
    `autograd.grad` or `backward`, is that of one example. Raises ValueError for dimensions that are
    not there or of unequal sizes, and for None where a result depends on the example; RuntimeError
    for random numbers under "error", for a result that is no tensor, and for a write to a tensor
    that is shared.

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
    mapped = functools.cache(lambda dims: Mapped(func, dims, out_dims, randomness))

    @functools.wraps(func, updated=())
    @api_boundary
    def call(*args, **kwargs):
        leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=_is_tensor)
        dims = _dims(func, in_dims, args, kwargs, leaves)
        size = _size(leaves, dims)
        if chunk_size is None or size <= chunk_size:
            return _laid_out(func, mapped(dims)(*args, **kwargs), out_dims)
        parts = []
        for start in range(0, size, chunk_size):
            part = [
                leaf if dim is None else ops.narrow(leaf, dim, start, min(chunk_size, size - start))
                for leaf, dim in zip(leaves, dims, strict=True)
            ]
            given, named = jax.tree.unflatten(structure, part)
            parts.append(mapped(dims)(*given, **named))
        joined = jax.tree.map(lambda *pieces: ops.cat(pieces), *parts, is_leaf=_is_tensor)
        return _laid_out(func, joined, out_dims)

    return call


def _dims(func, in_dims, args, kwargs, leaves) -> tuple:
    """For each leaf of the arguments the dimension along which it is mapped, or None."""
    if not isinstance(in_dims, int | tuple | list):
        raise ValueError(
            f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int "
            f"or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you "
            "are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    wanted = in_dims if isinstance(in_dims, int) else tuple(in_dims)
    try:
        spread = _spread(wanted, args)
    except ValueError:
        raise ValueError(
            f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible "
            f"with the structure of `inputs`. in_dims has structure {jax.tree.structure(wanted)} "
            f"but inputs has structure {jax.tree.structure(args, is_leaf=_is_tensor)}."
        ) from None
    dims = [*spread, *[None] * len(jax.tree.leaves(kwargs, is_leaf=_is_tensor))]
    where = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    return tuple([_dim(where, leaf, dim) for leaf, dim in zip(leaves, dims, strict=True)])


def _spread(dims, args) -> list:
    """The dimensions of all leaves, given those of trees of them."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(jax.tree.leaves(args, is_leaf=_is_tensor))
    if isinstance(dims, dict):
        if not isinstance(args, dict) or dims.keys() != args.keys():
            raise ValueError
        return [each for key in sorted(dims) for each in _spread(dims[key], args[key])]
    if not isinstance(args, tuple | list) or len(dims) != len(args):
        raise ValueError
    return [each for dim, arg in zip(dims, args, strict=True) for each in _spread(dim, arg)]


def _dim(where, leaf, dim):
    if dim is None:
        return None
    if not isinstance(leaf, Tensor | jax.Array):
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We "
            "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
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


def _laid_out(func, results, out_dims):
    """Results, whose first dimension counts examples, with that dimension where it is wanted."""
    leaves, structure = jax.tree.flatten(results, is_leaf=_is_tensor)
    dims = _out_dims(func, out_dims, results)
    return jax.tree.unflatten(structure, map(_placed, leaves, dims))


def _placed(leaf, dim):
    if dim is None:
        return ops.select(leaf, 0, 0)
    return leaf if dim == 0 else ops.movedim(leaf, 0, dim)


def _out_dims(func, out_dims, results) -> list[int | None]:
    """For each result where its dimension for examples is to be."""
    count = len(jax.tree.leaves(results, is_leaf=_is_tensor))
    if out_dims is None or isinstance(out_dims, int):
        return [out_dims] * count
    if not isinstance(out_dims, tuple | list | dict):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a "
            "python collection of ints representing where in the outputs the vmapped dimension "
            "should appear."
        )
    is_several = isinstance(results, tuple | list | dict)
    try:
        return _spread(out_dims, results if is_several else (results,))
    except ValueError:
        given, wanted = (
            jax.tree.structure(out_dims),
            jax.tree.structure(results, is_leaf=_is_tensor),
        )
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            f"with the structure of `outputs`. out_dims has structure {given} but outputs has "
            f"structure {wanted}."
        ) from None


def _name(func) -> str:
    return getattr(func, "__name__", repr(func))


def _is_tensor(value) -> bool:
    return isinstance(value, Tensor)


class Mapped(Jitted):
    """A function of many examples; `dims`: for each leaf of its arguments the dimension."""

    def __init__(self, function, dims, out_dims, randomness):
        super().__init__(function, (), ())
        self.dims, self.randomness = dims, randomness
        self.out_dims_of = functools.partial(_out_dims, function, out_dims)

    def __call__(self, *args, **kwargs):
        leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=_is_tensor)
        for leaf in filter(_is_tensor, leaves):
            current(leaf)
        arrays = [getattr(leaf, "_raw", leaf) for leaf in leaves]
        traced = any(isinstance(array, jax.core.Tracer) for array in arrays)
        if traced or mode.scope.get() is not None or executor.is_traced():
            return self.uncompiled(leaves, structure)
        return super().__call__(*args, **kwargs)

    def uncompiled(self, leaves, structure):
        return MappedTrace(self, leaves, structure, is_inline=True).inline(leaves)

    def new_trace(self, leaves, structure, varying):
        return MappedTrace(self, leaves, structure)
