"""Tensors with a mask, as torch.masked.maskedtensor."""

from ...names.missing import missing_in
from .core import MaskedTensor as MaskedTensor
from .core import is_masked_tensor as is_masked_tensor
from .creation import as_masked_tensor as as_masked_tensor
from .creation import masked_tensor as masked_tensor

__getattr__ = missing_in(__name__)
