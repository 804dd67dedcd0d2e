"""What autocast does to operators: before some of them run, their arguments are given another
dtype.

While it is off it costs an operator nothing. While it is on somewhere, in any thread, no operator
takes the short way of its call (as in a trace), and each finds its arguments by another function,
which asks whether it is on here and now.
"""

from __future__ import annotations

import contextlib
import functools

from .. import ops
from ..core import dtypes
from ..core.device import device_of
from ..tape import mode
from ..tape.interception import intercept, release
from ..tape.tensor import Tensor
from .dispatch import Operator

# Operators that compute in the dtype of autocast, those that compute in float32, and those that
# take the widest of their arguments: PyTorch's lists for CPUs.
LOWER, FLOAT32, WIDEST = "lower", "float32", "widest"
_NAMES = {
    LOWER: ("addbmm", "addmm", "baddbmm", "bmm", "linear", "matmul", "mm"),
    FLOAT32: (
        "binary_cross_entropy_with_logits", "cross_entropy_loss", "kl_div", "l1_loss", "mse_loss",
        "nll_loss", "nll_loss2d", "prod", "smooth_l1_loss", "view_as_complex",
    ),
    WIDEST: ("cat", "index_copy", "stack"),
}  # fmt: skip


class Cache:
    """Parameters in the dtype of autocast, for as long as one is entered: by `id`, with the array
    and the mode that they were converted in."""

    def __init__(self):
        self.scope, self.entries = mode.scope.get(), {}

    def get(self, tensor, dtype):
        if mode.scope.get() is not self.scope:
            return tensor.to(dtype)
        key = tensor._array, mode.current_mode.get(), dtype
        known = self.entries.get(id(tensor))
        if known is None or any(a is not b for a, b in zip(known[1], key, strict=True)):
            known = self.entries[id(tensor)] = tensor, key, tensor.to(dtype)
        return known[2]


@functools.cache
def policies() -> dict[Operator, str]:
    """What each operator's arguments are converted to."""
    return {
        getattr(ops, name).operator: policy for policy, names in _NAMES.items() for name in names
    }


def converted(policy, args, kwargs):
    """Arguments as an operator gets them that is called here and now."""
    casting = mode.casting.get()
    if casting is None or _says_dtype((*args, *kwargs.values())):
        return args, kwargs
    wanted = functools.partial(_cast, dict(casting), _target(policy, casting, args, kwargs))
    return tuple(map(wanted, args)), {name: wanted(value) for name, value in kwargs.items()}


def _says_dtype(values) -> bool:
    return any(isinstance(value, dtypes.dtype) for value in values)


def _tensors(values):
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _target(policy, casting, args, kwargs):
    """The dtype that is wanted; None for that of autocast, "" where there is nothing to do."""
    if policy != WIDEST:
        return None if policy == LOWER else dtypes.float32
    given = _tensors((*args, *kwargs.values()))
    return dtypes.float32 if any(each.dtype is dtypes.float32 for each in given) else ""


def _cast(casting, target, value):
    if isinstance(value, list | tuple):
        return type(value)([_cast(casting, target, each) for each in value])
    if not isinstance(value, Tensor) or target == "" or not is_eligible(value, casting):
        return value
    dtype = target or casting[type_of(value)]
    cache = mode.casts.get()
    is_parameter = value.dtype is dtypes.float32 and value.requires_grad and value.is_leaf
    if target is None and cache is not None and is_parameter and not value._is_view():
        return cache.get(value, dtype)
    return value.to(dtype)


def type_of(tensor: Tensor) -> str:
    return device_of(tensor._array).type


def is_eligible(tensor: Tensor, types) -> bool:
    """Whether autocast on these types of devices converts a tensor."""
    floating = tensor.dtype.is_floating_point and tensor.dtype is not dtypes.float64
    return floating and type_of(tensor) in types


def lowered(*arguments):
    """Arguments of a function made of operators, which is one of those that compute in the dtype of
    autocast; as they are where it is off."""
    return arguments if mode.casting.get() is None else converted(LOWER, arguments, {})[0]


def widened(*arguments):
    """Arguments of one of those that compute in float32."""
    return arguments if mode.casting.get() is None else converted(FLOAT32, arguments, {})[0]


# ---- switching


def _arguments(operator, args, kwargs):
    policy = policies().get(operator)
    return (args, kwargs) if policy is None else converted(policy, args, kwargs)


def switch(casting):
    """Convert to these dtypes here and now: pairs of a type of device and a dtype, None for none.
    Gives what it was."""
    before = mode.casting.get()
    mode.casting.set(casting)
    if (before is None) != (casting is None):
        if before is None:
            intercept(arguments=_arguments)
        else:
            release("arguments")
    return before


@contextlib.contextmanager
def entered(casting):
    before = switch(casting)
    try:
        yield
    finally:
        switch(before)
