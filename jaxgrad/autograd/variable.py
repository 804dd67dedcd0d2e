"""`Variable`, the class of tensors with gradients in old versions of PyTorch.

>>> isinstance(jaxgrad.ones(2), jaxgrad.autograd.variable.Variable)
True
"""

from __future__ import annotations

import sys
import types
import warnings

from ..core.pytorch_tensors import type_name
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from ._engine.graph_task import queue_callback
from ._private_api import _is_checkpoint_valid

VOLATILE = "volatile was removed and now has no effect. Use `with torch.no_grad():` instead."


class _Kind(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor)


class _Engine:
    """The functions of PyTorch's engine that programs call by name."""

    queue_callback = staticmethod(queue_callback)
    is_checkpoint_valid = staticmethod(_is_checkpoint_valid)


class Variable(metaclass=_Kind):
    """Detach a tensor and set its `requires_grad`; every tensor is an instance of Variable.

    data: a tensor of any shape and dtype.
    requires_grad: whether the result requires grad.
    volatile: removed; warns.

    Raises TypeError if `data` is not a tensor.

    >>> jaxgrad.autograd.Variable(jaxgrad.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False):
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type_name(data)}")
        if volatile:
            warnings.warn(VOLATILE, UserWarning, stacklevel=2)
        return data.detach().requires_grad_(requires_grad)


class VariableMethods:
    """Methods of `Tensor` for old code; `frontend/methods.py` installs them."""

    @property
    def volatile(self) -> bool:
        """False; warns, because `no_grad` has replaced it."""
        warnings.warn(
            "volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2
        )
        return False

    @volatile.setter
    def volatile(self, flag):
        warnings.warn(VOLATILE, UserWarning, stacklevel=2)

    def reinforce(self, reward):
        """Raise RuntimeError: PyTorch has removed this method.

        >>> jaxgrad.ones(2).reinforce(1.0)
        Traceback (most recent call last):
        RuntimeError: reinforce() was removed. Compute the logarithm of the probability of the
        action that was drawn, and call (-log_probability * reward).sum().backward()
        """
        raise RuntimeError(
            "reinforce() was removed. Compute the logarithm of the probability of the action that "
            "was drawn, and call (-log_probability * reward).sum().backward()"
        )


class _Module(types.ModuleType):
    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead"
        )


sys.modules[__name__].__class__ = _Module

__getattr__ = missing_in(__name__)
