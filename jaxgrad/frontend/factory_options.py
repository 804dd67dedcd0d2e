"""The arguments that all factories share: options, sizes and numbers."""

from __future__ import annotations

import numbers
import operator
from typing import TypedDict

import numpy as np

from ..core import device as devices
from ..core import dtypes, named_dtypes
from ..core.pytorch_tensors import type_name
from ..core.symbolic_extents import is_symbolic
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import Tensor, has_tangent


class FactoryOptions(TypedDict, total=False):
    """The keyword arguments of every factory; None means the default.

    dtype, device: those of the new tensor.
    requires_grad: whether operators on it are recorded; it may be set under `no_grad` too.
    layout: `strided`; `zeros` and `empty` also make sparse tensors, without elements.
    memory_format: a memory format, or a tuple of strides, that the tensor shows; of `empty` and the
        `_like` forms.
    out: a tensor that receives the values; not of the `_like` forms.
    pin_memory: True has no effect where JAX has an accelerator; elsewhere it raises RuntimeError.
    """

    dtype: dtypes.dtype | None
    device: devices.device | str | int | None
    requires_grad: bool
    layout: devices.layout | None
    memory_format: devices.memory_format | tuple[int, ...] | None
    pin_memory: bool
    out: Tensor | None


# by the last one, which is not for users, a `_like` factory says how the tensor is to be sharded
_NAMES = frozenset((*FactoryOptions.__annotations__, "_sharded_like"))
_COMMON = frozenset(("dtype", "device", "requires_grad", "_sharded_like"))


def check_options(name: str, options: FactoryOptions) -> bool:
    """Whether the options ask for a sparse tensor. Raises TypeError for an unknown option,
    RuntimeError for an unsupported value of one.
    """
    if options.keys() <= _COMMON:
        return False
    unknown = sorted(options.keys() - _names_of(name))
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument '{unknown[0]}'")
    if options.get("pin_memory"):
        devices.check_pinning(f"{name}()")
    out = options.get("out")
    if out is not None and not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type_name(out)}")
    layout = options.get("layout")
    if layout is not None and not isinstance(layout, devices.layout):
        raise TypeError(
            f"{name}(): argument 'layout' must be torch.layout, not {type_name(layout)}"
        )
    return is_sparse(out) or layout not in (None, devices.strided)


def _names_of(name):
    """The options of a factory: the strides of the result are not for all to choose."""
    if name.endswith(("_like", "_window")):
        return _NAMES - {"out"} if name.endswith("_like") else _NAMES - {"out", "memory_format"}
    return _NAMES if name == "empty" else _NAMES - {"memory_format"}


def dtype_of(options: FactoryOptions, default: dtypes.dtype) -> dtypes.dtype:
    """The dtype of the new tensor: that of the options, else of `out`, else the default."""
    requested, out = options.get("dtype"), options.get("out")
    if not isinstance(out, Tensor):
        return default if requested is None else named_dtypes.of_tensor(requested)
    if requested is not None and dtypes.as_dtype(requested) is not out.dtype:
        raise RuntimeError(
            f"dtype {dtypes.as_dtype(requested).scalar_type} does not match dtype of out tensor "
            f"({out.dtype.scalar_type}): leave out one of the two"
        )
    return out.dtype


def has_no_data(options: FactoryOptions) -> bool:
    """Whether the new tensor is on the device meta: by the options, else `out`, else by default."""
    requested, out = options.get("device"), options.get("out")
    return devices.is_meta(out.device if requested is None and out is not None else requested)


def size_of(name: str, arguments, options) -> tuple[int, ...]:
    """The shape that `f(2, 3)`, `f((2, 3))` or `f(size=(2, 3))` names; pops `size`."""
    if not arguments:
        if "size" not in options:
            raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
        return shape_of(name, options.pop("size"))
    if isinstance(arguments[0], tuple | list):
        if len(arguments) > 1:
            raise TypeError(f"{name}() takes 1 positional argument but {len(arguments)} were given")
        return shape_of(name, arguments[0])
    return tuple([_extent(name, extent) for extent in arguments])


def shape_of(name: str, size) -> tuple[int, ...]:
    """`size` as a shape. Raises TypeError unless it is a list of ints, RuntimeError if one is
    negative."""
    if not isinstance(size, tuple | list):
        raise _not_a_size(name, size)
    return tuple([_extent(name, extent) for extent in size])


def _extent(name, extent):
    if isinstance(extent, bool):
        raise _not_a_size(name, extent)
    try:
        extent = operator.index(extent)
    except TypeError:
        if is_symbolic(extent):
            return extent
        raise _not_a_size(name, extent) from None
    if extent < 0:
        raise RuntimeError(
            f"{name}: Dimension size must be non-negative. "
            f"Trying to create tensor with negative dimension {extent}"
        )
    return extent


def _not_a_size(name, value):
    return TypeError(f"{name}(): argument 'size' must be tuple of ints, not {type_name(value)}")


def number_of(name: str, argument: str, value) -> numbers.Number:
    """A number, a numpy number or a 0-d tensor, as a Python number."""
    is_constant = isinstance(value, Tensor) and not value.requires_grad and not has_tangent(value)
    if is_constant and not value.ndim:
        return value.item()
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, numbers.Number) and not is_symbolic(value):
        raise TypeError(f"{name}(): argument '{argument}' must be Number, not {type_name(value)}")
    return value
