"""Signal processing: torch.signal."""

from ..core.missing_names import missing_in
from . import windows as windows

__getattr__ = missing_in(__name__)
