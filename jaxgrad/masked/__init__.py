"""Reductions and normalizations of the elements that a mask names: torch.masked.

Each is composed of operators, with the elements that are masked out replaced by the identity of the
reduction. So their gradient is 0, and NaN or infinity in them has no effect.
"""

from ..names.missing import missing_in
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
