"""Mapped functions, which `func.vmap` returns: each keeps its programs."""

from __future__ import annotations

import functools

import jax

from ..capture.guards import ProgramCache
from ..compiled.jit import CompiledFunction
from ..core import executor
from ..tape import mode, torch_function
from ..tape.pytree import flatten, is_tensor
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import Tensor, current, is_traced
from .batched_tracing import BatchedTracing
from .batched_view import Batched
from .opened_function import Memory


class BatchedFunction(CompiledFunction):
    """A function of many examples. name: its name in messages; dims: the mapped dimension of each
    argument leaf.
    """

    draws_anew = False  # what draws runs at each call

    def __init__(self, function, name, dims, out_dims, randomness):
        super().__init__(function, (), ())
        # a program has no inputs for numbers that vary
        self.cache = ProgramCache(self.__name__, static=None)
        self.dims, self.randomness = dims, randomness
        self.out_dims_of = functools.partial(spread_out_dims, name, out_dims)
        self.moved, self.is_in_front = functools.partial(moved, name, out_dims), out_dims == 0
        self.check_results = functools.partial(check_results, name, out_dims)

    def __call__(self, *args, **kwargs):
        leaves, structure = flatten((args, kwargs))
        if is_in_trace(leaves):
            return self.run_inline(leaves, structure)
        return super().__call__(*args, **kwargs)

    def is_inside_uncompiled(self):
        return False  # its programs are no user's

    def stays_uncompiled(self, leaves, structure):
        return False

    def uncompiled(self, args, kwargs):
        return self.run_inline(*flatten((args, kwargs)))

    def run_inline(self, leaves, structure):
        return BatchedTracing(self, leaves, structure, is_inline=True).run_inline(leaves)

    def run_traced(self, leaves, structure, varying):
        return BatchedTracing(self, leaves, structure)

    def may_freeze(self, reads, tracing, leaves, structure):
        # the user did not ask to compile, so a function that reads the time, draws random numbers
        # or prints an example runs at each call
        return not (any(reads.messages(tracing)) or tracing.printed)


class OwnFunctions(Memory):
    """The mapped functions of one `vmap` with programs of their own, by dimensions. read_numbers:
    whether a call could not be traced, since it reads the numbers of an example.
    """

    def __init__(self):
        self.read_numbers = False
        self.functions: dict[tuple, BatchedFunction] = {}

    def find(self, function, name, dims, out_dims, randomness) -> BatchedFunction:
        if dims not in self.functions:
            self.functions[dims] = BatchedFunction(function, name, dims, out_dims, randomness)
        return self.functions[dims]


def is_in_trace(leaves) -> bool:
    """Whether a call with these argument leaves is a part of a trace, or is seen call by call by a
    mode: then no program of its own serves it.
    """
    for leaf in filter(is_tensor, leaves):
        current(leaf)
    traced = any(
        is_traced(leaf) if isinstance(leaf, Tensor) else isinstance(leaf, jax.core.Tracer)
        for leaf in leaves
    )
    is_part = mode.scope.get() is not None or executor.is_traced()
    return traced or is_part or bool(torch_function.modes.get())


def check_results(name, out_dims, results):
    """Raise ValueError for a result that is not a tensor, unless its `out_dims` is None."""
    leaves = flatten(results, is_none)[0]
    for leaf, dim in zip(leaves, spread_out_dims(name, out_dims, results, is_none), strict=True):
        if dim is not None and not isinstance(leaf, Tensor | jax.Array):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type "
                f"{type(leaf)}. Did you mean to set out_dims= to None for output?"
            )


def moved(name, out_dims, results):
    """The results with their mapped dimensions where `out_dims` says; they are in front, except
    those of `Batched` tensors.
    """
    leaves, structure = flatten(results, is_sparse)
    dims = spread_out_dims(name, out_dims, results, is_sparse)
    return jax.tree.unflatten(structure, map(_moved_leaf, leaves, dims))


def _moved_leaf(leaf, dim):
    if isinstance(leaf, Tensor | jax.Array):
        leaf = Batched(leaf, 0, len(leaf))
    return leaf.moved(dim) if isinstance(leaf, Batched) else leaf


def is_none(value) -> bool:
    """A leaf of arguments and results, which other pytrees leave out."""
    return value is None


def spread_out_dims(name, out_dims, results, is_whole=None) -> list[int | None]:
    """The position of the mapped dimension in each result, or None."""
    count = len(flatten(results, is_whole)[0])
    if out_dims is None or isinstance(out_dims, int):
        return [out_dims] * count
    if not all(dim is None or isinstance(dim, int) for dim in flatten(out_dims)[0]):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a "
            "python collection of ints representing where in the outputs the vmapped dimension "
            "should appear."
        )
    is_several = isinstance(results, tuple | list | dict)
    try:
        return spread(out_dims, results if is_several else (results,), is_whole)
    except ValueError:
        structure, wanted = (
            jax.tree.structure(out_dims),
            flatten(results)[1],
        )
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            f"with the structure of `outputs`. out_dims has structure {structure} but outputs has "
            f"structure {wanted}."
        ) from None


def spread(dims, args, is_whole=None) -> list:
    """The dimension of each leaf, from a prefix tree of dimensions; is_whole: as for `flatten`."""
    if not isinstance(dims, tuple | list | dict):
        return [dims] * len(flatten(args, is_whole)[0])
    are_dicts = isinstance(dims, dict) and isinstance(args, dict)  # of any kinds
    if not (are_dicts or type(dims) is type(args)) or len(dims) != len(args):
        raise ValueError
    if isinstance(dims, dict):
        if dims.keys() != args.keys():
            raise ValueError
        pairs = [(dims[key], args[key]) for key in args]
    else:
        pairs = zip(dims, args, strict=True)
    return [leaf_dim for dim, arg in pairs for leaf_dim in spread(dim, arg, is_whole)]
