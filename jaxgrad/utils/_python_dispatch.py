"""Whether a tensor wraps other tensors, as torch.utils._python_dispatch."""

from __future__ import annotations

from ..names.not_provided import names_of
from ..tape.tensor import Tensor

__getattr__, __dir__ = names_of(__name__)


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Return whether a class of tensors can be taken apart into tensors and put together again."""
    names = ("__tensor_flatten__", "__tensor_unflatten__")
    return issubclass(t, Tensor) and t is not Tensor and all(hasattr(t, name) for name in names)


def is_traceable_wrapper_subclass(t) -> bool:
    """Return whether a value is a tensor that holds others.

    >>> from jaxgrad.utils._python_dispatch import is_traceable_wrapper_subclass
    >>> is_traceable_wrapper_subclass(jaxgrad.ones(2))
    False
    """
    return is_traceable_wrapper_subclass_type(type(t))
