"""PyTorch's autograd on JAX: `import jaxgrad as torch`, and the code runs, eager or compiled by XLA.

>>> x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

from importlib.util import find_spec

if find_spec("jaxgrad.rules") is None:
    raise ImportError("this checkout of jaxgrad is not installed: run pip install -e . in it")

from . import autograd as autograd
from . import func as func
from . import methods
from . import ops as ops
from .autograd.grad_mode import enable_grad as enable_grad
from .autograd.grad_mode import inference_mode as inference_mode
from .autograd.grad_mode import no_grad as no_grad
from .autograd.grad_mode import set_grad_enabled as set_grad_enabled
from .jit import jit as jit
from .modes import is_grad_enabled as is_grad_enabled
from .modes import is_inference_mode_enabled as is_inference_mode_enabled
from .tensor import Tensor as Tensor

methods.install()


def __getattr__(name):
    """Every operator of the table is a function here."""
    if name.startswith("_") or name not in ops.library.names:
        raise AttributeError(f"module 'jaxgrad' has no attribute {name!r}")
    return getattr(ops, name)
