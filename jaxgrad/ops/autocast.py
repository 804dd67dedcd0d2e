"""Autocast: converts the arguments of some operators to another dtype before they run.

While it is off, it costs an operator nothing. While any thread has it on, all operators take the
general path of dispatch, where `_arguments` converts if the current context has it on.
"""

from __future__ import annotations

import contextlib
import functools

from ..core import dtypes
from ..core.device import device_of
from ..tape import mode
from ..tape.interception import intercept, release
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import Tensor

# the tags of operators that compute in the autocast dtype, in float32, and in the widest dtype of
# their arguments
LOWER, FLOAT32, WIDEST = "autocast_lower_precision", "autocast_fp32", "autocast_promote"

# those of operators that do so on devices other than CPUs alone
ON_ACCELERATORS = {
    "autocast_accelerator_lower_precision": LOWER,
    "autocast_accelerator_fp32": FLOAT32,
    "autocast_accelerator_promote": WIDEST,
}


class Cache:
    """Parameters converted to the autocast dtype, until the outermost autocast ends: by `id`, with
    the array and the grad mode of the conversion.
    """

    def __init__(self):
        self.scope, self.entries = mode.scope.get(), {}

    def get(self, tensor, dtype):
        # a tracer of a conversion in another trace must not be used here
        if mode.scope.get() is not self.scope:
            return tensor.to(dtype)
        key = tensor._value, mode.current_mode.get(), dtype
        known = self.entries.get(id(tensor))
        if known is None or any(a is not b for a, b in zip(known[1], key, strict=True)):
            known = self.entries[id(tensor)] = tensor, key, tensor.to(dtype)
        return known[2]


def converted(policy, args, kwargs):
    """The arguments after the conversion that the current context asks for."""
    casting = mode.casting.get()
    if casting is not None and policy in ON_ACCELERATORS:
        policy = ON_ACCELERATORS[policy]
        casting = tuple([pair for pair in casting if pair[0] != "cpu"]) or None
    # PyTorch's fp32_set_opt_dtype: a dtype that the call names wins
    if casting is None or _says_dtype((*args, *kwargs.values())):
        return args, kwargs
    # products of sparse tensors keep their dtype
    if any(map(is_sparse, tensors_in((*args, *kwargs.values())))):
        return args, kwargs
    wanted = functools.partial(_cast, dict(casting), _target(policy, casting, args, kwargs))
    return tuple(map(wanted, args)), {name: wanted(value) for name, value in kwargs.items()}


def _says_dtype(values) -> bool:
    return any(isinstance(value, dtypes.dtype) for value in values)


def tensors_in(values):
    """The tensors among values and in their lists."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_in(value)


def _target(policy, casting, args, kwargs):
    """The dtype to convert to; None means the autocast dtype, "" no conversion."""
    if policy != WIDEST:
        return None if policy == LOWER else dtypes.float32
    tensors = tensors_in((*args, *kwargs.values()))
    return dtypes.float32 if any(tensor.dtype is dtypes.float32 for tensor in tensors) else ""


def _cast(casting, target, value):
    if isinstance(value, list | tuple):
        return type(value)([_cast(casting, target, part) for part in value])
    if not isinstance(value, Tensor) or target == "" or not is_eligible(value, casting):
        return value
    dtype = target or casting[type_of(value)]
    cache = mode.casts.get()
    # PyTorch caches these alone, since they are converted in every layer of every call
    is_parameter = value.dtype is dtypes.float32 and value.requires_grad and value.is_leaf
    if target is None and cache is not None and is_parameter and not value._is_view():
        return cache.get(value, dtype)
    return value.to(dtype)


def type_of(tensor: Tensor) -> str:
    return device_of(tensor._value).type


def is_eligible(tensor: Tensor, types) -> bool:
    """Whether autocast for these device types converts a tensor."""
    # as in PyTorch, float64 keeps its precision
    floating = tensor.dtype.is_floating_point and tensor.dtype is not dtypes.float64
    return floating and type_of(tensor) in types


def lowered(*arguments):
    """Arguments of a composite function that computes in the autocast dtype, if it is on."""
    return arguments if mode.casting.get() is None else converted(LOWER, arguments, {})[0]


def widened(*arguments):
    """Arguments of a composite function that computes in float32 under autocast."""
    return arguments if mode.casting.get() is None else converted(FLOAT32, arguments, {})[0]


# ---- switching


def _arguments(operator, args, kwargs):
    policy = operator.policy
    return (args, kwargs) if policy is None else converted(policy, args, kwargs)


def switch(casting):
    """Set the autocast dtypes of the current context and return the previous ones: pairs of a
    device type and a dtype, None for off.
    """
    before = mode.casting.get()
    mode.casting.set(casting)
    # nested autocasts are one user of the interception point
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
