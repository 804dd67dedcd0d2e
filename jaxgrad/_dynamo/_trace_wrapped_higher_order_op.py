"""How PyTorch's compiler takes indices that are tensors."""

from __future__ import annotations

from ..names.not_provided import names_of
from ..overrides import BaseTorchFunctionMode

__getattr__, __dir__ = names_of(__name__)


class TransformGetItemToIndex(BaseTorchFunctionMode):
    """A block in which `x[index]` takes 0-D tensors as indices: it does everywhere here, under
    transforms too, so that the block changes nothing.
    """
