"""The blocks of a Jacobian, from rows, from one batched backward pass, or from batched tangents.

A Jacobian is a list with an entry for each output, which is a list of blocks, one for each input,
of the shape of the output followed by that of the input.
"""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp

from .. import autograd, ops
from ..core import elementary, executor
from ..core.aval import with_shape
from ..core.bounded_cache import bounded
from ..core.jax_internals import JOINS_TRACE
from ..tape.tensor import Tensor, abstract_value, check_no_tangent, wrap
from . import forward_ad

# Rows are stacked this many at a time, because XLA compiles programs of many operands slowly.
AT_ONCE = 32


def zeros_like(tensor: Tensor) -> Tensor:
    """Zeros of the shape and dtype of a tensor."""
    return wrap(elementary.filled(abstract_value(tensor), 0))


def block_of_zeros(output, tensor) -> Tensor:
    """A block of zeros."""
    shape = (*output.shape, *tensor.shape)
    return wrap(elementary.filled(with_shape(abstract_value(tensor), shape), 0))


def one_hot(like: Tensor, index: int) -> Tensor:
    """A tensor of zeros with a one at a flat index."""
    if like.is_meta:
        return zeros_like(like)
    with jax.enable_x64(True):
        flat = jnp.zeros(like.shape.numel(), like.dtype.numpy)
        one = flat.at[index].set(1).reshape(like.shape)
        return wrap(elementary.moved_beside(like._value, one))


def basis(tensors) -> list:
    """The basis vectors of the product of the spaces of several tensors.

    Returns for each tensor its components of all basis vectors, along a new first dimension.
    """
    sizes = [tensor.shape.numel() for tensor in tensors]
    total = sum(sizes)
    if any(tensor.is_meta for tensor in tensors):
        shapes = [(total, *tensor.shape) for tensor in tensors]
        return [zeros_like(t).expand(shape) for t, shape in zip(tensors, shapes, strict=True)]
    with jax.enable_x64(True):
        kernels = [
            _basis_kernel(total, tuple(tensor.shape), start, tensor.dtype.numpy)
            for tensor, start in zip(tensors, starts(sizes), strict=True)
        ]
        return [
            wrap(elementary.moved_beside(tensor._value, kernel()))
            for tensor, kernel in zip(tensors, kernels, strict=True)
        ]


@bounded()
def _basis_kernel(total, shape, start, dtype):
    """A compiled function that gives the components in one of the spaces."""

    def components():
        return jnp.eye(total, math.prod(shape), -start, dtype).reshape(total, *shape)

    return jax.jit(components, inline=JOINS_TRACE)


def starts(sizes):
    """The position at which each of several parts begins."""
    return list(itertools.accumulate(sizes, initial=0))[:-1]


def stacked(rows: list) -> Tensor:
    """Tensors of one shape, along a new first dimension."""
    groups = [rows[i : i + AT_ONCE] for i in range(0, len(rows), AT_ONCE)]
    pieces = [ops.stack(group) for group in groups]
    while len(pieces) > 1:
        groups = [pieces[i : i + AT_ONCE] for i in range(0, len(pieces), AT_ONCE)]
        pieces = [ops.cat(group) for group in groups]
    return pieces[0]


def of_rows(output, inputs, rows) -> list:
    """The blocks of an output, from the gradients of each of its elements; None counts as zero."""
    columns = list(zip(*rows, strict=True)) or [(None,)] * len(inputs)
    return [
        block_of_zeros(output, tensor)
        if column[0] is None
        else stacked(column).reshape((*output.shape, *tensor.shape))
        for tensor, column in zip(inputs, columns, strict=True)
    ]


def by_one_pass(outputs, inputs, create_graph) -> list:
    """The blocks of all outputs, from one batched backward pass."""
    moving = [output for output in outputs if output.requires_grad and output.numel()]
    batches = [None] * len(inputs)
    if moving:
        batches = autograd.grad(
            moving,
            inputs,
            basis(moving),
            create_graph=create_graph,
            allow_unused=True,
            is_grads_batched=True,
        )
    blocks, start = [], 0
    for output in outputs:
        size = output.numel() if output.requires_grad else 0
        blocks.append(
            [
                _cut(batch if size else None, start, output, tensor)
                for tensor, batch in zip(inputs, batches, strict=True)
            ]
        )
        start += size
    return blocks


def _cut(batch, start, output, tensor):
    if batch is None:
        return block_of_zeros(output, tensor)
    rows = batch.narrow(0, start, output.numel())
    return rows.reshape((*output.shape, *tensor.shape))


def by_forward_mode(function, inputs) -> list:
    """The blocks of all outputs, from one call of a function with a batch of tangents.

    function: from tensors to a tuple of tensors.
    """

    def along(*directions):
        with forward_ad.dual_level():
            pairs = zip(inputs, map(wrap, directions), strict=True)
            outputs = function(*[forward_ad.make_dual(*pair) for pair in pairs])
            tangents = [forward_ad.unpack_dual(output).tangent for output in outputs]
            pairs = zip(outputs, tangents, strict=True)
            return [zeros_like(o)._array if t is None else _array(t) for o, t in pairs]

    with jax.enable_x64(True):
        columns = executor.mapped(along, [tensor._array for tensor in basis(inputs)], out_axis=-1)
    sizes = [tensor.numel() for tensor in inputs]
    parts = list(zip(starts(sizes), sizes, inputs, strict=True))
    return [
        [
            whole.narrow(-1, start, size).reshape((*whole.shape[:-1], *tensor.shape))
            for start, size, tensor in parts
        ]
        for whole in map(wrap, columns)
    ]


def _array(tangent):
    return check_no_tangent(tangent, "jacobian(strategy='forward-mode')")._array
