"""What nodes note beyond what gradients need: the source line that recorded them, the versions of
what they save, and what saved-tensor hooks make of it.

An operator reads `interception.is_noted` at every call, and does the rest only where that holds.
"""

from __future__ import annotations

import contextvars
import functools
import threading
from typing import Any, NamedTuple

from . import interception, version_counter
from .mode import switch, with_grad
from .node import FREED, SECOND_TIME, Node, ProgramNode
from .tensor import Tensor, held, wrap

_lock = threading.Lock()

# who is shown every new node
observers: tuple = ()

# whether nodes note the source line that recorded them, here and now
lines = contextvars.ContextVar("jaxgrad.lines", default=False)

# the innermost saved_tensors_hooks that is entered here and now
packing = contextvars.ContextVar("jaxgrad.saved_tensors_hooks", default=None)


@functools.cache
def activate():
    """Make new nodes note what they are asked for, from now on."""
    interception.intercept(annotations=True)


def observe(observer):
    """Have every new node shown to `observer(node)`, in all threads, until `unobserve`."""
    global observers
    with _lock:
        observers = (*observers, observer)
    interception.intercept(annotations=True)


def unobserve(observer):
    """Have an observer see no more."""
    global observers
    with _lock:
        observers = tuple(each for each in observers if each != observer)
    interception.release("annotations")


class Pair(NamedTuple):
    """What saved tensors go through: `pack` when they are saved, `unpack` when they are used."""

    pack: Any
    unpack: Any


ONE_PAIR = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one "
    "pair of hooks is allowed at a time."
)


def pair(pack_hook, unpack_hook) -> Pair:
    """Two hooks. Raises TypeError where one cannot be called."""
    for hook in (pack_hook, unpack_hook):
        if not callable(hook):
            raise TypeError(
                f"register_hooks(): incompatible function arguments: a hook is a function, but got "
                f"{type(hook).__name__}"
            )
    return Pair(pack_hook, unpack_hook)


class Packed(NamedTuple):
    """What a pack hook made of a saved tensor, and the hook that makes a tensor of it again."""

    value: Any
    unpack: Any

    def tensor(self) -> Tensor:
        before = switch(with_grad(False))
        try:
            made = self.unpack(self.value)
        finally:
            switch(before)
        if not isinstance(made, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of "
                f"type {type(made).__name__}"
            )
        return made


def pack(pair: Pair, tensor: Tensor) -> Packed:
    """A tensor, which nobody else has, through a pack hook."""
    array = held(tensor)
    before = switch(with_grad(False))
    try:
        value = pair.pack(tensor)
    finally:
        switch(before)
    if tensor._array is not array or tensor._version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to a pack hook cannot be modified by it: write to a clone() and return that"
        )
    return Packed(value, pair.unpack)


def new_node(reverse, saved, edges, output_count, leaves) -> Node:
    """A node that notes what is asked for here and now."""
    node = version_counter.new_node(reverse, saved, edges, output_count, leaves)
    pair = packing.get()
    if pair is not None:
        for position in range(len(saved)):
            if hasattr(saved[position], "shape"):
                pack_at(node, position, pair)
    return note(node)


def note(node: Node) -> Node:
    """Have a node note where it was recorded, if that is asked for, and show it."""
    if lines.get():
        node.metadata["place"] = version_counter.place_of_caller()
    for observer in observers:
        observer(node)
    return node


def pack_at(node: ProgramNode, position: int, pair: Pair):
    """Put one of the arrays that a node has saved through a pair of hooks."""
    reverse, saved = node.reverse, node.saved
    shown = reverse.inputs[len(reverse.program.differentiable_outputs) + position]
    packed = pack(pair, wrap(saved[position], _shown(saved[position], shown)))
    extras = node.more()
    extras.packed = {**(extras.packed or {}), position: packed}
    saved[position] = None


def _shown(array, aval):
    made = wrap(array)._aval
    return aval if made.mode == aval.mode else made


def unpacked(node: ProgramNode, saved):
    """What a node has saved, with what was packed made arrays again."""
    found = list(saved)
    for position, packed in node.extras.packed.items():
        found[position] = packed.tensor()._array
    return found


def saved_of(node: ProgramNode):
    """The arrays that a node has saved. Raises RuntimeError once they are freed."""
    saved = node.saved
    if saved is FREED:
        raise RuntimeError(f"{SECOND_TIME} This is {node.name()}")
    packed = node.extras is not None and node.extras.packed
    return unpacked(node, saved) if packed else saved
