"""Comparisons and random tensors for tests, as torch.testing."""

from __future__ import annotations

from ..names.missing import missing_in
from . import _utils as _utils
from ._comparison import assert_allclose as assert_allclose
from ._comparison import assert_close as assert_close
from ._creation import make_tensor as make_tensor

__getattr__ = missing_in(__name__)
