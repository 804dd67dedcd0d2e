"""Reductions and normalizations of the elements that a mask names, and tensors that have a mask:
torch.masked.

A reduction is composed of operators, with the elements that are masked out replaced by the identity
of the reduction. So their gradient is 0, and NaN or infinity in them has no effect.
"""

from ..names.missing import missing_in
from ._ops import _canonical_dim as _canonical_dim
from ._ops import _combine_input_and_mask as _combine_input_and_mask
from ._ops import _input_mask as _input_mask
from ._ops import _output_mask as _output_mask
from ._ops import _reduction_identity as _reduction_identity
from ._ops import _where as _where
from .maskedtensor import functions as _functions  # noqa: F401  # computes with masked tensors
from .maskedtensor.core import MaskedTensor as MaskedTensor
from .maskedtensor.core import is_masked_tensor as is_masked_tensor
from .maskedtensor.creation import as_masked_tensor as as_masked_tensor
from .maskedtensor.creation import masked_tensor as masked_tensor
from .normalizations import cumprod as cumprod
from .normalizations import cumsum as cumsum
from .normalizations import log_softmax as log_softmax
from .normalizations import normalize as normalize
from .normalizations import softmax as softmax
from .normalizations import softmin as softmin
from .reductions import amax as amax
from .reductions import amin as amin
from .reductions import argmax as argmax
from .reductions import argmin as argmin
from .reductions import logaddexp as logaddexp
from .reductions import logsumexp as logsumexp
from .reductions import mean as mean
from .reductions import median as median
from .reductions import norm as norm
from .reductions import prod as prod
from .reductions import std as std
from .reductions import sum as sum
from .reductions import var as var

__getattr__ = missing_in(__name__)
