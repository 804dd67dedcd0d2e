"""Unary pointwise functions of masked tensors: the result has the mask of the input."""

from __future__ import annotations

from ... import ops
from ...names.missing import missing_in
from ...tape.tensor import Tensor
from .core import attach, is_masked_tensor, values


def inplace_names(names: list[str]) -> list[str]:
    """The forms in place of the operators that have one."""
    return [f"{name}_" for name in names if "inplace" in ops.library.tags(name)]


UNARY_NAMES = ops.library.tagged("masked_unary")
INPLACE_UNARY_NAMES = inplace_names(UNARY_NAMES)

NATIVE_UNARY_FNS = [getattr(ops.aten, name) for name in UNARY_NAMES]
NATIVE_INPLACE_UNARY_FNS = [getattr(ops.aten, name) for name in INPLACE_UNARY_NAMES]


def apply_unary(function, args, kwargs):
    """The result of a pointwise function of one masked tensor, and of numbers."""
    tensor, *numbers = args
    if any(isinstance(number, Tensor) for number in (*numbers, *kwargs.values())):
        raise TypeError(
            f"{function.__name__}: MaskedTensor unary ops do not support additional Tensor "
            "arguments"
        )
    return attach(function(values(tensor), *numbers, **kwargs), tensor.get_mask())


def apply_inplace(function, args, kwargs):
    """Write a result into the data of a masked tensor, and return that tensor."""
    target, *others = args
    return function(target, *map(_plain, others), **kwargs)


def _plain(value):
    return values(value) if is_masked_tensor(value) else value


__getattr__ = missing_in(__name__)
