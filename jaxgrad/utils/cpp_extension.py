"""Operators in C++ and CUDA for PyTorch's library, which jaxgrad does not provide, as
torch.utils.cpp_extension.
"""

from __future__ import annotations

from ..names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)

CUDA_HOME = ROCM_HOME = SYCL_HOME = None
