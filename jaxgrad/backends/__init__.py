"""Settings of the libraries that compute for PyTorch, as torch.backends. XLA computes here instead.

What programs set here has no effect.

>>> jaxgrad.backends.cudnn.benchmark = True
>>> jaxgrad.backends.cudnn.benchmark = False
>>> jaxgrad.backends.mps.is_available()
False
"""

from __future__ import annotations

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

__getattr__ = missing_in(__name__)
