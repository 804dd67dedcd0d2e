"""Results of `vmap` that are views of its arguments, as in PyTorch.

A mapped program computes the values of all results. One that is a view of an example, by strides
alone, is instead cut from the whole argument, so that writes to one show in the other.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import ops
from ..core.aval import strides_of
from ..core.copy_slices import in_order
from ..core.view_ops import is_strided
from ..frontend.memory_methods import offset_of as offset_in_memory
from ..frontend.memory_methods import strided_view
from ..storage.alias import offset_of, root_of
from ..tape.tensor import Tensor, alias_of


class Batched:
    """A tensor of `size` examples, whose dimension `dim` is mapped; None if they share it."""

    def __init__(self, tensor: Tensor, dim: int | None, size: int):
        self.tensor, self.dim, self.size = tensor, dim, size

    def moved(self, dim: int | None) -> Tensor:
        """The tensor with its mapped dimension at another place; the same object if it is there.
        None: without that dimension, along which all values are equal.
        """
        tensor, place = self.tensor, self.dim
        if dim is None:
            return tensor if place is None else ops.select(tensor, place, 0)
        if place is None:
            single = ops.unsqueeze(tensor, dim)
            shape = list(single.shape)
            shape[dim] = self.size
            return single.expand(shape)
        is_there = place in (dim, dim + tensor.ndim)
        return tensor if is_there else ops.movedim(tensor, place, dim)


class BatchedView(NamedTuple):
    """A result that is a view of an argument: its number among the created tensors, that of the
    argument among the captured ones, whose dimension `dim` is mapped, or None; the shape, the
    strides and the offset of one example, and the names of view operators that follow.
    """

    number: int
    source: int
    dim: int | None
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    names: tuple[str, ...]

    def of(self, argument: Tensor, computed: Batched) -> Batched:
        """The result as a view of the argument of a call, or as computed where the strides do not
        lead to it from what the argument shows.
        """
        shape, strides, dim = self.shape, self.strides, None
        if self.dim is not None:
            shape = argument.shape[self.dim], *shape
            strides, dim = (argument.stride(self.dim), *strides), 0
        offset = offset_in_memory(argument) + self.offset
        view = strided_view(argument, shape, strides, offset)
        if view is None:
            return computed
        for name in self.names:
            view = getattr(ops, name)(view)
        return Batched(view, dim, computed.size)


def view_of(scope, number: int, output: Tensor) -> BatchedView | None:
    """How a result of one example is a view of a captured tensor by strides; None if it is not.

    scope: that of the example. number: that of the result among the created tensors.
    """
    alias = alias_of(output)
    if alias is None or alias.root is None:
        return None
    captured = scope.captured.get(id(root_of(alias)))
    if captured is None:
        return None
    dim = scope.mapped.dim_of(captured)
    step, names = alias.steps, []
    # those of complex numbers concern the last dimensions of one example and of all alike
    while step is not None and not is_strided(step.call) and _is_of_complex(step.call):
        names.append(step.call.primitive.name)
        step = step.before
    start = offset_of(step)
    is_plain = all(is_strided(call) for call, _ in in_order(step))
    if start is None or not is_plain:
        return None
    example = captured.aval if dim is None else scope.batches[id(captured.tracer)][2]
    shown = example if step is None else step.call.outputs[0]
    offset, strides = start // shown.dtype.itemsize, strides_of(shown)
    names = tuple(reversed(names))
    return BatchedView(number, captured.number, dim, shown.shape, strides, offset, names)


def _is_of_complex(call) -> bool:
    """Whether a call without other arguments makes a view of or as complex numbers."""
    is_alone = len(call.structure) == 1
    return is_alone and (call.inputs[0].dtype.is_complex or call.outputs[0].dtype.is_complex)
