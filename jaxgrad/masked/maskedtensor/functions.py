"""Which functions masked tensors have, and how they are computed."""

from __future__ import annotations

from ... import ops
from ...core import dtypes
from ...frontend import factories
from ...frontend.to import CONVERSIONS
from ...ops.inplace import InPlace
from ...tape import torch_function
from .. import normalizations
from . import core
from .binary import apply_binary, apply_inplace_binary
from .core import _masks_match, attach, is_masked_tensor, values
from .passthrough import apply_passthrough
from .reductions import apply_reduction
from .unary import apply_inplace, apply_unary

_OF_HANDLES = torch_function.OF_HANDLES | {"dim_order"}
# the modules whose functions are composed of operators
_COMPOSED = ("jaxgrad.functions", "jaxgrad.nn", "jaxgrad.frontend.reflected_methods")


def call(function, args, kwargs):
    """The result of a function of tensors, one of them masked at least.

    Raises TypeError for a function that masked tensors do not have.
    """
    if kwargs.get("out", ...) is None:  # a default, which masked functions do not take
        kwargs = {name: value for name, value in kwargs.items() if name != "out"}
    apply = _implementation(function)
    if apply is None and hasattr(function, "overridable") and _is_composed(function):
        return function.__wrapped__(*args, **kwargs)  # the functions that it calls come here
    name = function.__name__
    is_of_handles = not hasattr(function, "operator") and not hasattr(function, "overridable")
    if apply is None and not is_of_handles and name not in _OF_HANDLES:
        raise TypeError(
            f"Multiple dispatch failed for 'torch._ops.aten.{name}.default': no implementation for "
            f"MaskedTensor: call {name} on get_data() or to_tensor(value)"
        )
    with torch_function.DisableTorchFunctionSubclass():
        return function(*args, **kwargs) if apply is None else apply(function, args, kwargs)


def _implementation(function):
    """What computes a function of masked tensors: by its name, or by its tag in the table."""
    if function.__name__ in _BY_NAME:
        return _BY_NAME[function.__name__]
    operator = getattr(function, "operator", None)
    tags = ops.library.tags(function.__name__ if operator is None else operator.name)
    by_tag = _INPLACE_BY_TAG if isinstance(operator, InPlace) else _BY_TAG
    return next((by_tag[tag] for tag in tags if tag in by_tag), None)


def _is_composed(function) -> bool:
    """Whether a function is written in operators, so that these can be computed one by one."""
    return function.__module__.startswith(_COMPOSED)


def _of_data(function, args, kwargs):
    """A function that changes the dtype, or copies."""
    tensor, *others = args
    # a handle of its own: a conversion to the same dtype returns its argument
    result = values(function(values(tensor), *others, **kwargs))
    return attach(result, tensor.get_mask().clone())


def _where(function, args, kwargs):
    if kwargs or len(args) != 3:
        raise ValueError("where: a MaskedTensor takes three positional arguments and no others")
    if is_masked_tensor(args[0]) and not is_masked_tensor(args[1]):
        args = args[1], args[0], args[2]  # the method `first.where(condition, second)`
    condition, *sides = args
    first, second = map(_masked, sides)
    mask = ops.where(condition, first.get_mask(), second.get_mask())
    return attach(ops.where(condition, values(first), values(second)), mask)


def _masked(value):
    if is_masked_tensor(value):
        return value
    return attach(values(value), factories.ones_like(value, dtype=dtypes.bool))


def _copy(function, args, kwargs):
    if not all(map(is_masked_tensor, args[:2])) or not _masks_match(*args[:2]):
        raise ValueError("copy_: args[0] mask and args[1] mask must match but do not")
    return apply_inplace(function, args, kwargs)


def _item(function, args, kwargs):
    (tensor,) = args
    if tensor.numel() == 1 and not tensor.get_mask().all():
        raise ValueError("item: expected a mask tensor that is True: the element is masked out")
    return values(tensor).item()


def _normalization(function, args, kwargs):
    tensor, *others = args
    normalize = getattr(normalizations, function.__name__)
    names = ("dim", "dtype") if len(others) < 3 else ("dim", "_stacklevel", "dtype")
    options = dict(zip(names, others, strict=False)) | kwargs
    options.pop("_stacklevel", None)
    mask = tensor.get_mask()
    return attach(normalize(values(tensor), mask=mask, **options), mask)


def _any(function, args, kwargs):
    (tensor,) = args
    return attach(
        ops.any(values(tensor) & tensor.get_mask()), factories.ones((), dtype=dtypes.bool)
    )


_COPIES = ["to", "type", "type_as", "clone", "detach", "cpu", "cuda", "ones_like", "zeros_like"]
_NORMALIZATIONS = ["softmax", "log_softmax", "softmin"]

_OPERATORS = {"where": _where, "copy_": _copy, "any": _any, "rsub": apply_binary}
_BY_NAME = {
    **dict.fromkeys((*CONVERSIONS, *_COPIES), _of_data),
    **dict.fromkeys(_NORMALIZATIONS, _normalization),
    **_OPERATORS,
    "__rsub__": apply_binary,
    "__getitem__": apply_passthrough,
    "item": _item,
}
_BY_TAG = {
    "masked_unary": apply_unary,
    "masked_binary": apply_binary,
    "masked_reduction": apply_reduction,
    "masked_move": apply_passthrough,
}
_INPLACE_BY_TAG = {"masked_unary": apply_inplace, "masked_binary": apply_inplace_binary}

core.implement_by(call)
