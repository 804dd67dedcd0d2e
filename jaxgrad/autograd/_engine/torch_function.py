"""Objects with `__torch_function__`, to which `backward` and `grad` leave the call."""

from __future__ import annotations

from ...core.pytorch_tensors import is_of_pytorch
from ...tape.tensor import Tensor


def stands_for_tensor(value) -> bool:
    """Whether the `__torch_function__` of a value handles calls with it."""
    if type(value) is Tensor or is_of_pytorch(value):
        return False
    return hasattr(value, "__torch_function__")


def handle(function, relevant, args, kwargs):
    """The first result of `__torch_function__` among `relevant` that is not NotImplemented.

    It is tried from left to right, on subclasses before their base classes. Raises TypeError if all
    return NotImplemented.
    """
    asked = []
    for value in relevant:
        kind = type(value)
        if kind not in map(type, asked) and (kind is Tensor or stands_for_tensor(value)):
            places = [i for i, before in enumerate(asked) if issubclass(kind, type(before))]
            asked.insert(min(places, default=len(asked)), value)
    types = tuple(map(type, asked))
    for value in filter(stands_for_tensor, asked):
        result = value.__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"no implementation found for '{function.__module__}.{function.__qualname__}' on types "
        f"that implement __torch_function__: {list(types)}"
    )
