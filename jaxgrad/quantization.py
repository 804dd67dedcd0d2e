"""torch.quantization: the older name of torch.ao.quantization."""

from .ao.quantization import *  # noqa: F403
from .ao.quantization import __all__  # noqa: F401
from .names.missing import missing_in

__getattr__ = missing_in(__name__)
