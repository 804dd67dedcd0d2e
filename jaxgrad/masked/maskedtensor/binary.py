"""Binary pointwise functions of masked tensors: their masks must be equal."""

from __future__ import annotations

from ... import ops
from ...core import device as devices
from ...names.missing import missing_in
from ...tape.tensor import Tensor
from .core import _masks_match, attach, is_masked_tensor, values
from .unary import apply_inplace, inplace_names

BINARY_NAMES = ops.library.tagged("masked_binary")
INPLACE_BINARY_NAMES = inplace_names(BINARY_NAMES)

NATIVE_BINARY_FNS = [getattr(ops.aten, name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(ops.aten, name) for name in INPLACE_BINARY_NAMES]


def apply_binary(function, args, kwargs):
    """The result of a pointwise function of two operands, one of them masked at least."""
    first, second, *numbers = _operands(function, args, kwargs)
    mask = _mask_of(first, second)
    result = function(*_numbers(first, second, mask), *numbers, **kwargs)
    return attach(result, mask.expand_as(result) if mask.layout == devices.strided else mask)


def apply_inplace_binary(function, args, kwargs):
    """Write the result of a function of two operands into the data of the first."""
    return apply_inplace(function, _operands(function, args, kwargs), kwargs)


def _operands(function, args, kwargs):
    """The arguments. Raises ValueError for masks that differ, TypeError for a third tensor."""
    if "other" in kwargs:
        args = (*args, kwargs.pop("other"))
    if any(isinstance(value, Tensor) for value in (*args[2:], *kwargs.values())):
        raise TypeError(
            f"{function.__name__}: MaskedTensor binary ops do not support Tensor arguments aside "
            "from the lhs and rhs"
        )
    if not _layouts_match(*args[:2]):
        raise ValueError(
            f"{function.__name__}: the operands must have one layout, size and, where they are "
            "sparse, the same indices"
        )
    if not _masks_match(*args[:2]):
        raise ValueError(
            "Input masks must match. If you need support for this, please open an issue on Github."
        )
    return args


def _layouts_match(first, second) -> bool:
    tensors = [value for value in (first, second) if isinstance(value, Tensor)]
    if all(tensor.layout == devices.strided for tensor in tensors) or len(tensors) == 1:
        return True
    is_masked = all(map(is_masked_tensor, tensors))
    return is_masked and first.layout == second.layout and first.shape == second.shape


def _mask_of(first, second) -> Tensor:
    return first.get_mask() if is_masked_tensor(first) else second.get_mask()


def _numbers(first, second, mask):
    """The operands as plain tensors and numbers.

    The gradient of one that is broadcast is a sum over elements, so it leaves out those that are
    masked out: they may be NaN.
    """
    plain = [values(value) if is_masked_tensor(value) else value for value in (first, second)]
    shapes = {value.shape for value in plain if isinstance(value, Tensor)}
    return plain if len(shapes) == 1 else [_where_it_counts(value, mask) for value in plain]


def _where_it_counts(value, mask):
    """An operand whose elements have gradients only where the mask is True."""
    if not isinstance(value, Tensor) or not value.requires_grad:
        return value
    return ops.where(mask, value, value.detach())


__getattr__ = missing_in(__name__)
