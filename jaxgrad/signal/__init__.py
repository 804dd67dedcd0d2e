"""Signal processing: torch.signal."""

from ..names.missing import missing_in
from . import windows as windows

__getattr__ = missing_in(__name__)
