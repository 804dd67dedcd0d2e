"""Reading and writing files, as torch.serialization."""

from .frontend.serialization import load as load
from .frontend.serialization import save as save
