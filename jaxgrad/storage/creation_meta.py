"""How a view was created: PyTorch's CreationMeta.

It decides whether the view may be written to, and whether its history is known after a write to its
base.
"""

from __future__ import annotations

import re

from ..tape.node import Node
from ..tape.tensor import OWN_DTYPE, LeafState, Tensor, node_or_mark, output_number

# From NO_GRAD on, the history of the view after a recorded write to its base is not known.
USUAL, ONE_OF_SEVERAL, NO_GRAD, NO_GRAD_SEVERAL, INFERENCE_MODE = range(5)
FUNCTION, FUNCTION_SEVERAL = 5, 6


def view_of_view(source: int, creation: int) -> int:
    """How a view of a view was created; creation: the same for a source that is USUAL."""
    if source < NO_GRAD and creation == NO_GRAD:
        return NO_GRAD if source == USUAL else NO_GRAD_SEVERAL
    return creation if (source < NO_GRAD and creation) or creation >= FUNCTION else source


def origin_of(tensor: Tensor) -> str:
    """A tensor as PyTorch's messages describe it: an output of a node."""
    node = node_or_mark(tensor)
    if not isinstance(node, Node):
        return "One of several"
    kind = re.sub(r"Backward\d*$", "", node.name())
    return f"Output {output_number(tensor)} of {kind}"


class Severed(LeafState):
    """The leaf state of a view whose history is not known; asking for its node raises."""

    __slots__ = ("creation", "origin")

    def __init__(self, creation: int, origin: str):
        self.creation, self.origin = creation, origin
        self.grad = self.hooks = self.post_hooks = self.tangents = self.causes = self.kind = None
        self.grad_dtype = OWN_DTYPE

    def __copy__(self):
        return Severed(self.creation, self.origin)

    def node(self):
        what = "its base or another view of its base has been modified inplace"
        if self.creation >= FUNCTION:
            raise RuntimeError(f"{self.origin} is a view and {what}. {IN_FUNCTION}")
        raise RuntimeError(unclear(self.creation, what))

    check_history = node


def unclear(creation: int, what: str) -> str:
    """The error message for a view that was created while grad mode was off; what: what happened to
    it.
    """
    mode, block, when = "no_grad", "no_grad", "with grad mode enabled"
    if creation == INFERENCE_MODE:
        mode, block, when = "inference", "inference_mode", "in normal mode"
    why = SEVERAL if creation == NO_GRAD_SEVERAL else AMBIGUOUS.format(block)
    return f"A view was created in {mode} mode and {what} {when}. {why}"


SEVERAL = (
    "This view is the output of a function that returns multiple views. Such functions do not "
    "allow the output views to be modified inplace. You should replace the inplace operation by an "
    "out-of-place one."
)
IN_FUNCTION = (
    "This view was created inside a custom Function (or because an input was returned as-is) and "
    "the autograd logic to handle view+inplace would override the custom backward associated with "
    "the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix "
    "this by cloning the output of the custom Function."
)
AMBIGUOUS = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the {} block (if you don't "
    "want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
