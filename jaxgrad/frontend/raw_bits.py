"""Tensors of dtypes with less than a byte for a number (`uint4`, `float4_e2m1fn_x2`), and of bits.

PyTorch computes nothing with them: it makes them, shows their bytes by other shapes and dtypes, and
moves them. A `RawBits` is a handle on bytes, or on pairs of bytes for bits16, whose class overrides
all functions: those that move elements do so, and all others are refused.
"""

from __future__ import annotations

from .. import ops
from ..core import dtypes, named_dtypes
from ..core import strides as layouts
from ..ops.autocast import tensors_in
from ..tape import pytree, torch_function
from ..tape.tensor import Tensor, abstract_value

_MAKES = frozenset(
    (
        *("empty", "zeros", "empty_like", "zeros_like", "new_empty", "new_zeros", "frombuffer"),
        *("empty_strided", "new_empty_strided", "empty_permuted"),
    )
)
# methods that are no operators of the table
_MANAGES = frozenset(
    (
        *(
            "contiguous",
            "cpu",
            "__getitem__",
            "__setitem__",
            "copy_",
            "resize_",
            "resize_as_",
            "set_",
        ),
        *("data_ptr", "storage_offset", "stride", "is_contiguous", "untyped_storage", "storage"),
        *("is_floating_point", "is_complex", "requires_grad_", "__len__", "__iter__", "nelement"),
        *("__deepcopy__", "is_pinned", "pin_memory", "is_shared", "ndimension", "detach_", "split"),
        *("chunk", "tensor_split", "hsplit", "vsplit", "dsplit", "tile", "fliplr", "flipud"),
    )
)


def _moves(name: str) -> bool:
    """Whether a function moves elements, and reads no number."""
    stem = name.removesuffix("_")
    is_view = stem in layouts.VIEWS or bool(ops.library.tags(stem) & {"bits", "parts", "copy"})
    return is_view or name in _MAKES or name in _MANAGES


class RawBits(Tensor):
    """A tensor of a dtype whose numbers no operator reads; its subclasses name the dtype.

    >>> x = jaxgrad.tensor([18, 52], dtype=jaxgrad.uint8).view(jaxgrad.bits8)
    >>> jaxgrad.cat([x, x[:1]]).view(jaxgrad.uint8)
    tensor([18, 52, 18], dtype=torch.uint8)
    """

    of_bits: dtypes.dtype
    _shown_name = "tensor"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return _call(func, args, kwargs or {}, cls.of_bits)

    @property
    def dtype(self):
        overrides = torch_function.classes_override.get()
        return self.of_bits if overrides else abstract_value(self).dtype

    @property
    def data(self):
        with torch_function.DisableTorchFunctionSubclass():
            return _shown(Tensor.data.fget(self), self.of_bits)

    @data.setter
    def data(self, value):
        with torch_function.DisableTorchFunctionSubclass():
            Tensor.data.fset(self, value)

    def __repr__(self, *, tensor_contents=None):
        if not self.numel() and self.ndim == 1 and not self.is_meta:
            return f"tensor([], dtype={self.of_bits})"
        device = f"device='{self.device}', " if self.is_meta else ""
        return f"tensor(..., {device}size={tuple(self.shape)}, dtype={self.of_bits})"

    __str__ = __repr__

    def __format__(self, spec):
        return format(repr(self), spec)

    def type(self, dtype=None, non_blocking=False):
        name = f"torch.{self.of_bits.scalar_type}Tensor"
        return name if dtype is None else self.to(dtype)

    def numpy(self, *, force=False):
        raise TypeError(
            f"Got unsupported ScalarType {self.of_bits.scalar_type}: take x.view(torch.uint8) first"
        )


def _class_of(dtype):
    kind = type(dtype.scalar_type, (RawBits,), {"of_bits": dtype, "__module__": __name__})
    pytree.register_subclass(kind)
    return kind


_CLASSES = {dtype: _class_of(dtype) for dtype in named_dtypes.RAW_BITS}


def compute(function, args, kwargs, dtype):
    """The result of a call with one of these dtypes, whose arguments are other tensors."""
    torch_function.activate()
    is_view = function.__name__ == "view"
    if not is_view and function.__name__ not in _MAKES:
        raise refusal("copy_" if function.__name__ == "to" else function.__name__, dtype)
    return _call(function, args, kwargs, dtype)


def refusal(name: str, dtype: dtypes.dtype) -> NotImplementedError:
    return NotImplementedError(
        f"\"{name}\" not implemented for '{dtype.scalar_type}': no operator reads such numbers; "
        "view(torch.uint8) shows their bytes"
    )


def _call(function, args, kwargs, dtype):
    """Call a function on the bytes, and show what it returns in the dtype of the bits."""
    name = getattr(function, "__name__", str(function))
    requested = [value for value in (*args, *kwargs.values()) if type(value) is dtypes.dtype]
    if name == "to":
        return _converted(function, args, kwargs, dtype)
    if not _moves(name) or _reads_numbers(name, args):
        raise refusal(name, dtype)
    _check_kinds(name, args, dtype)
    shown = requested[0] if requested else dtype
    stored = [_stored(values) for values in (args, kwargs)]
    with torch_function.DisableTorchFunctionSubclass():
        if name == "view" and requested:
            stored[0] = (plain(args[0]), *stored[0][1:])
        result = function(*stored[0], **stored[1])
        return _shown(result, shown) if shown in _CLASSES else result


def _converted(function, args, kwargs, dtype):
    values = (*args[1:], *kwargs.values())
    wanted = [value.dtype if isinstance(value, Tensor) else value for value in values]
    if any(type(value) is dtypes.dtype and value is not dtype for value in wanted):
        raise refusal("copy_", dtype)
    with torch_function.DisableTorchFunctionSubclass():
        return _shown(function(*_stored(args), **_stored(kwargs)), dtype)


def _reads_numbers(name, args):
    """Whether a call makes elements of numbers, or chooses them by a list or a mask."""
    if name == "__setitem__":
        return not isinstance(args[2], RawBits)
    parts = args[1] if name == "__getitem__" and isinstance(args[1], tuple) else args[1:2]
    is_choice = name == "__getitem__" and any(isinstance(p, list | Tensor) for p in parts)
    return is_choice


def _check_kinds(name, args, dtype):
    """Raise NotImplementedError for tensors of two dtypes whose elements would be converted."""
    joins = "bits" in ops.library.tags(name) and name != "index_select"
    if not joins and name not in ("copy_", "__setitem__"):
        return
    tensors = [*tensors_in(args)][1 if name == "where" else 0 :]
    if any(tensor.dtype is not dtype for tensor in tensors):
        raise refusal("copy_", dtype)


def _stored(values):
    """Arguments with the dtype of the bytes in place of that of the bits."""
    if isinstance(values, dict):
        return {name: _stored(value) for name, value in values.items()}
    if type(values) in (tuple, list):
        return type(values)(map(_stored, values))
    return (
        named_dtypes.bytes_of(values)
        if type(values) is dtypes.dtype and values in _CLASSES
        else values
    )


def plain(tensor: Tensor) -> Tensor:
    """The bytes of a tensor, as a view of a plain class."""
    if not isinstance(tensor, RawBits):
        return tensor
    with torch_function.DisableTorchFunctionSubclass():
        view = ops.view(tensor, tuple(tensor.shape))
    view.__class__ = Tensor
    return view


def _shown(result, dtype):
    if isinstance(result, list | tuple):
        return type(result)(_shown(part, dtype) for part in result)
    if type(result) is Tensor and abstract_value(result).dtype is named_dtypes.bytes_of(dtype):
        result.__class__ = _CLASSES[dtype]
    return result
