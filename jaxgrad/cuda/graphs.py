"""Graphs of CUDA, as torch.cuda.graphs: a compiled function is one program, which is what they are
for.

What records the kernels of a block has no counterpart: XLA runs a block as it is written.
"""

from __future__ import annotations

import itertools
from typing import Any

from ..names.missing import missing_in
from ..nn.compile import compile
from ..nn.module import Module
from ..tape.pytree import flatten
from ..tape.tensor import Tensor

_pools = itertools.count(1)

_NO_GRAPH = (
    "jaxgrad has no CUDAGraph: XLA records no kernels of a block. Write the block as a function "
    "and compile it, step = torch.compile(step): a call of it replays one program"
)


def make_graphed_callables(
    callables: Any,
    sample_args: tuple,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool=None,
) -> Any:
    """Compile functions or modules; a call of one runs one program, and its gradient another.

    callables: a function, a module, or a tuple of them; modules are compiled in place. sample_args:
    a tuple of tensors, the arguments of a call, or a tuple of such tuples. The other arguments have
    no effect: a program is compiled at its first call, and serves arguments of any shape. Raises
    AssertionError for sample arguments other than tensors.

    >>> square = jaxgrad.cuda.make_graphed_callables(lambda x: x * x, (jaxgrad.ones(2),))
    >>> square(jaxgrad.tensor([2.0, 3.0]))
    tensor([4., 9.])
    """
    if not isinstance(callables, tuple):
        return _graphed(callables, sample_args)
    return tuple(itertools.starmap(_graphed, zip(callables, sample_args, strict=True)))


def _graphed(function, arguments):
    if not all(isinstance(argument, Tensor) for argument in flatten(arguments)[0]):
        raise AssertionError(
            "make_graphed_callables: sample_args for each callable must contain only Tensors. "
            "Other types are not allowed"
        )
    if not isinstance(function, Module):
        return compile(function)
    function.compile()
    return function


def graph_pool_handle() -> tuple[int, int]:
    """Return a name for memory that graphs share; JAX's allocator shares all.

    >>> jaxgrad.cuda.graph_pool_handle() == jaxgrad.cuda.graph_pool_handle()
    False
    """
    return 0, next(_pools)


class CUDAGraph:
    """Raises NotImplementedError: XLA records no kernels. Compile the block as a function.

    >>> try:
    ...     jaxgrad.cuda.CUDAGraph()
    ... except NotImplementedError as error:
    ...     print("torch.compile" in str(error))
    True
    """

    def __init__(self, keep_graph: bool = False):
        raise NotImplementedError(_NO_GRAPH)


class graph:
    """Raises NotImplementedError, as `CUDAGraph` does.

    >>> try:
    ...     jaxgrad.cuda.graph(None)
    ... except NotImplementedError as error:
    ...     print("torch.compile" in str(error))
    True
    """

    def __init__(
        self,
        cuda_graph: CUDAGraph | None,
        pool=None,
        stream=None,
        capture_error_mode: str = "global",
    ):
        raise NotImplementedError(_NO_GRAPH)


__getattr__ = missing_in(__name__)
