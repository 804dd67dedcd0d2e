"""Settings of the libraries that compute for PyTorch, as torch.backends. XLA computes here instead.

What programs set here has no effect, but for the precision of products: `fp32_precision`,
`cuda.matmul.fp32_precision` and `cuda.matmul.allow_tf32` are `set_float32_matmul_precision` in
other forms. One setting holds for products, convolutions and layers.

>>> jaxgrad.backends.cudnn.benchmark = True
>>> jaxgrad.backends.cudnn.benchmark = False
>>> jaxgrad.backends.mps.is_available()
False
"""

from __future__ import annotations

import sys as _sys
import types as _types

from ..frontend import settings as _settings
from ..names.missing import missing_in
from ..tape import settings as _process_settings
from . import cpu as cpu
from . import cuda as cuda
from . import cudnn as cudnn
from . import cusparselt as cusparselt
from . import kleidiai as kleidiai
from . import mha as mha
from . import mkl as mkl
from . import mkldnn as mkldnn
from . import mps as mps
from . import nnpack as nnpack
from . import openmp as openmp
from . import opt_einsum as opt_einsum
from . import python_native as python_native
from . import quantized as quantized
from . import xnnpack as xnnpack


def disable_global_flags():
    """Let the settings of `cudnn`, `mkldnn` and this module be set for blocks alone, by `flags`.

    An assignment raises RuntimeError from then on.

    >>> import subprocess, sys
    >>> code = "from jaxgrad import backends; backends.disable_global_flags(); "
    >>> code += "backends.cudnn.benchmark = True"
    >>> done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    >>> print(done.stderr.splitlines()[-1][:69])
    RuntimeError: not allowed to set torch.backends.cudnn flags after dis
    """
    _process_settings.put("flags_are_frozen", True)


def flags_frozen() -> bool:
    """Return whether `disable_global_flags` has been called.

    >>> jaxgrad.backends.flags_frozen()
    False
    """
    return _process_settings.get("flags_are_frozen")


class _Backends(_types.ModuleType):
    """The module, with a setting."""

    @property
    def fp32_precision(self):
        return _settings.get_fp32_precision()

    @fp32_precision.setter
    def fp32_precision(self, precision):
        _process_settings.refuse_if_frozen(__name__)
        _settings.set_fp32_precision(precision)


__getattr__ = missing_in(__name__)
_sys.modules[__name__].__class__ = _Backends
