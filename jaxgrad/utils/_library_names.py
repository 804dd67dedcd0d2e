"""Functions of `torch` about the libraries that PyTorch is built with, and under old names.

Programs ask for them by `hasattr`, or call them at their start. `dir` does not show them.
"""

from __future__ import annotations

import os

from .. import ops
from ..amp import autocast_mode
from ..core import dtypes
from ..core.pytorch_tensors import type_name
from ..late import LateModule
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary

script_names = LateModule("jaxgrad.compiled.script_names")
function_schema = LateModule("jaxgrad.ops.function_schema")
table_schema = LateModule("jaxgrad.table.schema")

# XLA has linear algebra and Fourier transforms, and no library of Intel
has_lapack = has_spectral = True
has_openmp = has_mkl = False


def is_vulkan_available() -> bool:
    """Return False: JAX has no such device."""
    return False


def compiled_with_cxx11_abi() -> bool:
    """Return True, as PyTorch's packages do."""
    return True


def get_file_path(*path_components: str) -> str:
    """Return a path in the folder that the package `torch` would be in."""
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.join(folder, *path_components)


def init_num_threads():
    """Do nothing: XLA chooses its threads when it starts."""


def set_flush_denormal(mode: bool) -> bool:
    """Return False: XLA decides what happens to denormal numbers."""
    if not isinstance(mode, bool):
        raise TypeError(
            f"set_flush_denormal expects a bool, but got {type_name(mode)}: pass True or False"
        )
    return False


def cudnn_is_acceptable(self: Tensor) -> bool:
    """Return False: XLA chooses the library."""
    return False


def sym_constrain_range(size, *, min: int | None = None, max: int | None = None):
    """Raise RuntimeError for a number that is outside of [min, max]."""
    low = -(2**63) if min is None else min
    high = 2**63 - 1 if max is None else max
    if low > high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")
    if isinstance(size, int | float) and not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


sym_constrain_range_for_size = sym_constrain_range


@api_boundary
def mkldnn_convolution(
    self: Tensor, weight: Tensor, bias: Tensor | None, padding, stride, dilation, groups: int
) -> Tensor:
    """Return `torch.convolution` of the arguments, in the order of another library."""
    zeros = (0,) * (self.ndim - 2)
    return ops.convolution(self, weight, bias, stride, padding, dilation, False, zeros, groups)


def parse_schema(schema: str):
    """Return the schema of an operator, of a text such as "aten::sin(Tensor self) -> Tensor"."""
    text = schema.partition("::")[2] if "::" in schema.partition("(")[0] else schema
    return function_schema.FunctionSchema(table_schema.parse_schema(text))


def set_autocast_cpu_enabled(enabled: bool):
    """Call `set_autocast_enabled("cpu", enabled)`."""
    today = "set_autocast_enabled('cpu', enabled)"
    autocast_mode.warn_of_older("set_autocast_cpu_enabled(enabled)", today)
    autocast_mode.set_autocast_enabled("cpu", enabled)


def set_autocast_cpu_dtype(dtype: dtypes.dtype):
    """Call `set_autocast_dtype("cpu", dtype)`."""
    today = "set_autocast_dtype('cpu', dtype)"
    autocast_mode.warn_of_older("set_autocast_cpu_dtype(dtype)", today)
    autocast_mode.set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: dtypes.dtype):
    """Call `set_autocast_dtype("cuda", dtype)`."""
    today = "set_autocast_dtype('cuda', dtype)"
    autocast_mode.warn_of_older("set_autocast_gpu_dtype(dtype)", today)
    autocast_mode.set_autocast_dtype("cuda", dtype)


def is_autocast_xla_enabled() -> bool:
    """Return False: the device is named "tpu" here."""
    return False


is_autocast_ipu_enabled = is_autocast_xla_enabled


def get_autocast_xla_dtype() -> dtypes.dtype:
    """Return bfloat16."""
    return dtypes.bfloat16


def get_autocast_ipu_dtype() -> dtypes.dtype:
    """Return float16."""
    return dtypes.float16


# the entered contexts of programs that write an autocast of their own
_nested: list[None] = []


def autocast_increment_nesting() -> int:
    """Return how many contexts are entered, with this one."""
    _nested.append(None)
    return len(_nested)


def autocast_decrement_nesting() -> int:
    """Return how many contexts are entered, without this one."""
    if _nested:
        _nested.pop()
    return len(_nested)


def fork(function, *args, **kwargs):
    """Call `torch.jit.fork`."""
    return script_names.fork(function, *args, **kwargs)


def wait(future):
    """Return the value of a future of `fork`."""
    return future.wait()
