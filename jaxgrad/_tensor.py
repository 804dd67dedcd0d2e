"""The module of PyTorch that defines `Tensor`."""

from __future__ import annotations

from ._utils import _set_obj_state
from .names.missing import missing_in
from .tape.tensor import Tensor as Tensor


def _rebuild_from_type_v2(func, new_type: type, args, state):
    """The tensor that a function makes, as an instance of a class, with attributes.

    state: a dict of them, or a pair of those of `__dict__` and those of slots; the class may have
    a `__setstate__` for it.
    """
    tensor = func(*args)
    if type(tensor) is not new_type:
        tensor = tensor.as_subclass(new_type)
    if getattr(new_type, "__setstate__", Tensor.__setstate__) is not Tensor.__setstate__:
        tensor.__setstate__(state)
        return tensor
    return _set_obj_state(tensor, state)


__getattr__ = missing_in(__name__)
