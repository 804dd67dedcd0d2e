"""torch.nested: tensors of components of different lengths.

`nested_tensor` makes one of a list; operators compute on the joined components (`_tensor.py`).
"""

from ..names.missing import missing_in
from ._construction import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    to_padded_tensor,
)

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]

__getattr__ = missing_in(__name__)
