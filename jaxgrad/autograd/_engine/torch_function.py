"""Objects that stand for tensors: `backward` and `grad` leave it to their `__torch_function__`."""

from __future__ import annotations

from ...tape.tensor import Tensor


def stands_for_tensor(value) -> bool:
    """Whether a value is to be asked what a function makes of it."""
    return type(value) is not Tensor and hasattr(value, "__torch_function__")


def handle(function, relevant, args, kwargs):
    """What the first of `relevant` that knows says that a call of `function` gives.

    They are asked from left to right, classes derived from others before those. Raises TypeError
    where none knows.
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
