"""Annotations of nodes: the source line that recorded them, the versions of the tensors that they
saved, and residuals packed by saved-tensor hooks.

Operators read `interception.is_noted` at every call and come here only if it is true.
"""

from __future__ import annotations

import contextvars
import functools
import threading
from typing import Any, NamedTuple

import jax

from ..core import promotion
from ..core.aval import Aval
from . import interception, source_location, version_counter
from .mode import current_mode, switch, with_grad
from .node import FREED, SECOND_TIME, Node, ProgramNode
from .tensor import Tensor, abstract_value, held, wrap

_lock = threading.Lock()

# called with every new node
observers: tuple = ()

# the hooks of the innermost saved_tensors_hooks that the current context has entered
packing = contextvars.ContextVar("jaxgrad.saved_tensors_hooks", default=None)


@functools.cache
def activate():
    """Annotate new nodes from now on."""
    interception.intercept(annotations=True)


def observe(observer):
    """Call `observer(node)` for every new node, in all threads, until `unobserve`."""
    global observers
    with _lock:
        observers = (*observers, observer)
    interception.intercept(annotations=True)


def unobserve(observer):
    """Remove an observer."""
    global observers
    with _lock:
        observers = tuple(candidate for candidate in observers if candidate != observer)
    interception.release("annotations")


class Pair(NamedTuple):
    """A pair of saved-tensor hooks: `pack` when a tensor is saved, `unpack` when it is used."""

    pack: Any
    unpack: Any


ONE_PAIR = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one "
    "pair of hooks is allowed at a time."
)


def pair(pack_hook, unpack_hook) -> Pair:
    """A pair of hooks. Raises TypeError if one is not callable."""
    for hook in (pack_hook, unpack_hook):
        if not callable(hook):
            raise TypeError(
                f"register_hooks(): incompatible function arguments: a hook is a function, but got "
                f"{type(hook).__name__}"
            )
    return Pair(pack_hook, unpack_hook)


class Packed(NamedTuple):
    """A packed residual: the result of the pack hook, the unpack hook, and the abstract value of
    the tensor that was packed.
    """

    value: Any
    unpack: Any
    aval: Aval

    def tensor(self) -> Tensor:
        """What the unpack hook returns, in the dtype of the packed tensor.

        Raises TypeError for another object, RuntimeError for a tensor of another shape.
        """
        before = switch(with_grad(False))
        try:
            result = self.unpack(self.value)
        finally:
            current_mode.set(before)
        if not isinstance(result, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of "
                f"type {type(result).__name__}"
            )
        if result.shape != self.aval.shape:
            raise RuntimeError(
                f"a saved tensor of shape {list(self.aval.shape)} was packed, and its unpack_hook "
                f"returned one of shape {list(result.shape)}"
            )
        return result if result.dtype is self.aval.dtype else self._converted(result)

    def _converted(self, tensor):
        with jax.enable_x64(True):
            return wrap(promotion.cast(tensor._array, self.aval.dtype))


def pack(pair: Pair, tensor: Tensor) -> Packed:
    """Pack a tensor that has no other reference. Raises RuntimeError if the hook writes to it."""
    array = held(tensor)
    before = switch(with_grad(False))
    try:
        value = pair.pack(tensor)
    finally:
        current_mode.set(before)
    if tensor._array is not array or tensor._version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to a pack hook cannot be modified by it: write to a clone() and return that"
        )
    return Packed(value, pair.unpack, abstract_value(tensor))


def new_node(reverse, saved, edges, output_count, leaves) -> Node:
    """A new node with the annotations that the current context asks for."""
    node = version_counter.new_node(reverse, saved, edges, output_count, leaves)
    pair = packing.get()
    if pair is not None:
        for position in range(len(saved)):
            # a number is no saved tensor, also where a trace has an array in its place
            if isinstance(_abstract(reverse, position), Aval):
                pack_at(node, position, pair)
    return note(node)


def note(node: Node) -> Node:
    """Note the source line on a node, if asked for, and call the observers."""
    if source_location.lines.get():
        node.metadata["place"] = source_location.place_of_caller()
    for observer in observers:
        observer(node)
    return node


def pack_at(node: ProgramNode, position: int, pair: Pair):
    """Pack one of a node's residuals."""
    saved, shown = node.saved, _abstract(node.reverse, position)
    packed = pack(pair, wrap(saved[position], _shown(saved[position], shown)))
    extras = node.more()
    extras.packed = {**(extras.packed or {}), position: packed}
    # the hook may have moved the tensor to the host or a file, so the node lets go of it
    node.saved = tuple([None if i == position else value for i, value in enumerate(saved)])


def _abstract(reverse, position: int):
    """The abstract value of a residual; for a number its type."""
    return reverse.inputs[len(reverse.program.differentiable_outputs) + position]


def _shown(array, aval):
    array_aval = abstract_value(wrap(array))
    return aval if array_aval.mode == aval.mode else array_aval


def unpacked(node: ProgramNode, saved):
    """A node's residuals with the packed ones unpacked."""
    residuals = list(saved)
    for position, packed in node.extras.packed.items():
        residuals[position] = packed.tensor()._array
    return residuals


def saved_of(node: ProgramNode):
    """A node's residuals, unpacked. Raises RuntimeError once they are freed."""
    saved = node.saved
    if saved is FREED:
        raise RuntimeError(f"{SECOND_TIME} This is {node.name()}")
    packed = node.extras is not None and node.extras.packed
    return unpacked(node, saved) if packed else saved
