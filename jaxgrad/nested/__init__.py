"""torch.nested: tensors of components of different lengths.

`nested_tensor` makes one of a list; `_jagged.py` and `_strided.py` have the two layouts, and the
modules named functions after them fill their tables of functions.
"""

from ..names.missing import missing_in
from . import _jagged_functions as _jagged_functions
from . import _strided_functions as _strided_functions
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
