"""The version of PyTorch whose interface jaxgrad follows, as torch.version.

>>> jaxgrad.version.__version__ >= "2.9"
True
"""

from __future__ import annotations

from .names.missing import missing_in
from .torch_version import TorchVersion

__version__ = TorchVersion("2.13.0")

# of the builds that PyTorch tells about here jaxgrad is none
cuda = hip = xpu = git_version = None
debug = False


__getattr__ = missing_in(__name__)
