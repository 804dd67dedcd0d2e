"""Signal processing: torch.signal.

>>> jaxgrad.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""

from ..names.missing import missing_in
from . import windows as windows

__getattr__ = missing_in(__name__)
