"""Where a later call finds a captured tensor."""

from __future__ import annotations

import weakref

from ..tape.tensor import Tensor


class TensorSource:
    """Finds a captured tensor in a later call."""

    def find(self, leaves, tensors) -> Tensor | None:
        """The tensor, given the arguments and the captured tensors found before it."""
        raise NotImplementedError(f"{type(self).__name__}.find")


class ArgumentSource(TensorSource):
    """An argument, by its position among the leaves."""

    def __init__(self, position: int):
        self.position = position

    def find(self, leaves, tensors):
        return leaves[self.position]


class HandleSource(TensorSource):
    """A tensor that the function reaches by closure, attribute or global: the handle itself, for as
    long as it is referenced elsewhere.
    """

    def __init__(self, tensor: Tensor):
        self.reference = weakref.ref(tensor)

    def find(self, leaves, tensors):
        return self.reference()
