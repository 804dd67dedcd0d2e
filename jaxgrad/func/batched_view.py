"""Results of `vmap` that share the memory of its arguments, as in PyTorch.

A mapped program computes the values of all results. One that shares the memory of an example, by
strides alone, is instead cut from the whole argument, so that writes to one show in the other.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.aval import strides_of
from ..core.copy_slices import in_order
from ..core.view_ops import is_strided
from ..frontend.memory_methods import offset_of as offset_in_memory
from ..frontend.memory_methods import strided_view
from ..frontend.storage_tensors import memory_row
from ..storage.alias import begin, detached, offset_of, place_detached, root_of
from ..tape import dual
from ..tape.tensor import (
    Tensor,
    abstract_value,
    alias_of,
    has_tangent,
    is_tracked,
    set_abstract_value,
)


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
    """A result that shares the memory of an argument: its number among the created tensors, that of
    the argument among the captured ones, whose dimension `dim` is mapped, or None; the shape, the
    strides, the offset and the dtype of one example, the names of view operators that follow,
    whether the history of the result is that of the argument, and whether it is a view.
    """

    number: int
    source: int
    dim: int | None
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: dtypes.dtype
    names: tuple[str, ...]
    has_history: bool
    is_view: bool

    def of(self, argument: Tensor, computed: Batched) -> Batched:
        """The result in the memory of the argument of a call, or as computed where the strides do
        not lead to it from what the argument shows.
        """
        # the dtype of the argument may be wider or narrower than that of the result
        factor, width = argument.dtype.itemsize, self.dtype.itemsize
        shape, strides, dim = self.shape, self.strides, None
        if self.dim is not None:
            shape = argument.shape[self.dim], *shape
            strides, dim = (argument.stride(self.dim) * factor // width, *strides), 0
        offset = offset_in_memory(argument) * factor // width + self.offset
        if self.has_history:
            view = strided_view(argument, shape, strides, offset)
        else:
            with no_grad():
                view = self.in_memory(argument.detach(), shape, strides, offset)
        if view is None:
            return computed
        for name in self.names:
            view = getattr(ops, name)(view)
        if not self.has_history and is_tracked(computed.tensor) and dim == computed.dim:
            # a part of `unsafe_split`, whose history is that of the computed values
            set_abstract_value(computed.tensor, abstract_value(view))
            place_detached(computed.tensor, view, ())
            return computed
        view = view if self.is_view else detached(view)
        if not self.has_history and has_tangent(computed.tensor):
            if dim != computed.dim:
                return computed
            dual.assign(view, computed.tensor)
        return Batched(view, dim, computed.size)

    def in_memory(self, argument, shape, strides, offset) -> Tensor | None:
        """A tensor without history, by strides in the memory of an argument without history."""
        if self.dtype is argument.dtype:
            return strided_view(argument, shape, strides, offset)
        row = memory_row(begin(argument).storage, self.dtype)
        return ops.as_strided(row, shape, strides, offset)


def view_of(scope, number: int, output: Tensor) -> BatchedView | None:
    """How a result of one example shares the memory of a captured tensor by strides; None if it
    does not.

    scope: that of the example. number: that of the result among the created tensors.
    """
    alias = alias_of(output)
    captured = None if alias is None else _captured_in(scope, alias)
    if captured is None:
        return None
    has_history = alias.root is not None and root_of(alias) is captured.tensor
    dim = scope.mapped.dim_of(captured)
    step, names = alias.steps if has_history else alias.place, []
    shown = abstract_value(output)  # with what `t_` did to the argument, which no view call tells
    # those of complex numbers concern the last dimensions of one example and of all alike
    while step is not None and not is_strided(step.call) and _is_of_complex(step.call):
        names.append(step.call.primitive.name)
        shown, step = step.call.inputs[0], step.before
    start, calls = offset_of(step), [call for call, _ in in_order(step)]
    if start is None or not all(is_strided(call) or _is_of_bytes(call) for call in calls):
        return None
    has_history = has_history and not any(map(_is_of_bytes, calls))
    shown = shown if step is None else step.call.outputs[0]
    offset, strides = start // shown.dtype.itemsize, strides_of(shown)
    layout, is_view = (shown.shape, strides, offset, shown.dtype), alias.root is not None
    names = tuple(reversed(names))
    return BatchedView(number, captured.number, dim, *layout, names, has_history, is_view)


def _captured_in(scope, alias):
    """The captured tensor that owns the memory of an alias."""
    if alias.root is not None:
        captured = scope.captured.get(id(root_of(alias)))
        if captured is not None:
            return captured
    for captured in scope.captured.values():
        other = alias_of(captured.tensor)
        if other is not None and other.storage is alias.storage and not offset_of(other.place):
            return captured
    return None


def _is_of_complex(call) -> bool:
    """Whether a call without other arguments makes a view of or as complex numbers."""
    is_alone = len(call.structure) == 1
    return is_alone and (call.inputs[0].dtype.is_complex or call.outputs[0].dtype.is_complex)


def _is_of_bytes(call) -> bool:
    """Whether a call shows the bytes of its source as elements of another dtype."""
    return call.primitive.name == "view" and call.inputs[0].dtype is not call.outputs[0].dtype
