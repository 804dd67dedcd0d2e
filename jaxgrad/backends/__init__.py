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
from . import quantized as quantized


class _Backends(_types.ModuleType):
    """The module, with a setting."""

    fp32_precision = property(
        lambda _: _settings.get_fp32_precision(),
        lambda _, precision: _settings.set_fp32_precision(precision),
    )


__getattr__ = missing_in(__name__)
_sys.modules[__name__].__class__ = _Backends
