"""Discrete Fourier transforms: torch.fft.

The operators of the table whose names begin with `fft_`, and functions composed of operators.
"""

from . import ops
from .functions.fft import fft as fft
from .functions.fft import fft2 as fft2
from .functions.fft import fftfreq as fftfreq
from .functions.fft import fftn as fftn
from .functions.fft import fftshift as fftshift
from .functions.fft import hfft as hfft
from .functions.fft import hfft2 as hfft2
from .functions.fft import hfftn as hfftn
from .functions.fft import ifft as ifft
from .functions.fft import ifft2 as ifft2
from .functions.fft import ifftn as ifftn
from .functions.fft import ifftshift as ifftshift
from .functions.fft import ihfft as ihfft
from .functions.fft import ihfft2 as ihfft2
from .functions.fft import ihfftn as ihfftn
from .functions.fft import irfft as irfft
from .functions.fft import irfft2 as irfft2
from .functions.fft import irfftn as irfftn
from .functions.fft import rfft as rfft
from .functions.fft import rfft2 as rfft2
from .functions.fft import rfftfreq as rfftfreq
from .functions.fft import rfftn as rfftn

__getattr__, __dir__ = ops.module_functions("fft_", globals())
