"""What programs use of torch._C, PyTorch's module in C++: the switches of `__torch_function__`.

>>> jaxgrad.overrides.is_tensor_like(jaxgrad.ones(2))
True
"""

from __future__ import annotations

from .core.missing_names import missing_in
from .tape.torch_function import DisableTorchFunction as DisableTorchFunction
from .tape.torch_function import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from .tape.torch_function import disabled as _disabled_torch_function_impl  # noqa: F401

__getattr__ = missing_in(__name__)
