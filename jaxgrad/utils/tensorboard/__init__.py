"""Files for TensorBoard, as torch.utils.tensorboard. It needs the package tensorboard."""

from __future__ import annotations

try:
    import tensorboard as _tensorboard  # noqa: F401
except ImportError as error:
    raise ModuleNotFoundError(
        "torch.utils.tensorboard writes its files by the package tensorboard, which is not "
        "installed: pip install tensorboard"
    ) from error

from ...names.missing import missing_in
from .writer import FileWriter as FileWriter
from .writer import SummaryWriter as SummaryWriter

__getattr__ = missing_in(__name__)
