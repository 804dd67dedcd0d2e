"""Tensors of complex32, which XLA and NumPy lack.

A `HalfComplex` is a handle on its elements in complex64, whose parts are numbers of float16. Its
class overrides all functions: they compute in complex64, and what PyTorch gives in complex32 or
float16 is rounded. While no class overrides functions, its dtype is complex64.
"""

from __future__ import annotations

import contextvars

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import dtypes, promotion
from ..core import strides as layouts
from ..core.named_dtypes import complex32
from ..ops.autocast import tensors_in
from ..tape import pytree, sparse_tensor, torch_function
from ..tape.tensor import Tensor, abstract_value, alias_of
from . import draw
from .printing import tensors

# methods that name the dtype of their result
_CONVERSIONS = frozenset(("float", "double", "bfloat16", "cfloat", "cdouble"))
_LIKE_ANOTHER = frozenset(("to", "type_as"))

# how many calls around this one have needed complex32
_depth = contextvars.ContextVar("jaxgrad.half_complex_depth", default=0)


class HalfComplex(Tensor):
    """A tensor of complex32.

    >>> x = jaxgrad.tensor([1.0 + 2.0j], dtype=jaxgrad.complex32)
    >>> x.abs()
    tensor([2.2363], dtype=torch.float16)
    """

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.__name__ == "grad":
            return _gradients(func, args, kwargs)
        return _call(func, args, kwargs, _is_half(func.__name__, args, kwargs))

    @property
    def dtype(self):
        return complex32 if torch_function.classes_override.get() else abstract_value(self).dtype

    @property
    def grad(self):
        gradient = Tensor.grad.fget(self)
        return gradient if gradient is None else _rounded_once(gradient)

    @grad.setter
    def grad(self, gradient):
        with torch_function.DisableTorchFunctionSubclass():
            Tensor.grad.fset(self, gradient)

    @grad.deleter
    def grad(self):
        self.grad = None

    _shown_name = "tensor"

    def __repr__(self):
        token = torch_function.classes_override.set(True)
        try:
            return tensors.text_of(self)
        finally:
            torch_function.classes_override.reset(token)

    itemsize = property(lambda self: complex32.itemsize)
    nbytes = property(lambda self: self.numel() * complex32.itemsize)

    def element_size(self) -> int:
        return complex32.itemsize

    def type(self, dtype=None, non_blocking=False):
        return "torch.ComplexHalfTensor" if dtype is None else self.to(dtype)

    def numpy(self, *, force=False):
        raise TypeError("Got unsupported ScalarType ComplexHalf: take x.to(torch.complex64) first")


pytree.register_subclass(HalfComplex)
sparse_tensor.KINDS.add(HalfComplex)


def compute(function, args, kwargs):
    """The result of a call that needs numbers of complex32, of arguments without them."""
    torch_function.activate()
    if function.__name__ in _VIEWS:
        return _rounded_once(_VIEWS[function.__name__](*args))
    if _depth.get() > 1:
        raise NotImplementedError(
            f"{function.__name__}: a tensor of complex32 is no argument of a transform: convert it "
            "to torch.complex64 first"
        )
    if not any(True for _ in tensors_in((*args, *kwargs.values()))) and "dtype" not in kwargs:
        kwargs = {**kwargs, "dtype": dtypes.complex64}  # in place of a default dtype
    single = {name: v if name == "out" else _in_single(v) for name, v in kwargs.items()}
    token, default = _depth.set(_depth.get() + 1), dtypes.get_default_dtype()
    try:
        if default is dtypes.float16:  # integers and complex numbers meet in complex64
            dtypes.set_default_dtype(dtypes.float32)
        return _call(function, _in_single(args), single, True)
    finally:
        dtypes.set_default_dtype(default)
        _depth.reset(token)


def _is_half(name, args, kwargs):
    """Whether numbers of a call with these arguments are rounded to half precision."""
    values = (*args, *kwargs.values())
    requested = [value for value in values if type(value) is dtypes.dtype]
    if requested:
        return complex32 in requested
    if name in _CONVERSIONS:
        return False
    if name in _LIKE_ANOTHER and any(isinstance(value, Tensor) for value in values[1:]):
        return isinstance(next(v for v in values[1:] if isinstance(v, Tensor)), HalfComplex)
    tensors = [tensor for tensor in tensors_in(values) if tensor.dtype.category >= dtypes.FLOATING]
    return promotion.result_type(*tensors) is complex32


def _map(function, values):
    if isinstance(values, dict):
        return {name: _map(function, value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        parts = [_map(function, value) for value in values]
        return type(values)(*parts) if hasattr(values, "_fields") else type(values)(parts)
    return function(values)


def _single(value):
    return dtypes.complex64 if value is complex32 else value


def _view_as_complex(input):
    return ops.view_as_complex(ops._rounded_view(input, dtypes.float32))


def _view_of_bytes(input, dtype):
    """A view of other numbers as complex32."""
    shape = layouts.shape_as_dtype(input.shape, input.dtype, dtype)
    bytes = input.unsqueeze(-1) if input.dtype.itemsize == dtype.itemsize else input
    return _view_as_complex(bytes.view(dtypes.float16).view(*shape, 2)).detach()


_VIEWS = {"view_as_complex": _view_as_complex, "view": _view_of_bytes}


def _bytes_as(input, dtype):
    """A view of complex32 as other numbers."""
    layouts.VIEWS["view"](input.shape, input.stride(), (complex32, dtype))  # or raise
    shape = layouts.shape_as_dtype(input.shape, complex32, dtype)
    parts = ops._rounded_view(ops.view_as_real(input), dtypes.float16)
    if dtype.itemsize == complex32.itemsize:
        return parts.view(dtype).squeeze(-1)
    return parts.flatten(-2).view(dtype).detach().view(shape)


def _in_single(values):
    """Arguments with tensors of float16 in float32."""

    def widened(value):
        is_half = isinstance(value, Tensor) and value.dtype is dtypes.float16
        return value.to(dtypes.float32) if is_half else value

    return _map(widened, values)


def _call(function, args, kwargs, is_half):
    """Call a function in single precision, and round what it returns or has written."""
    name = function.__name__
    known = [*map(id, tensors_in((*args, *kwargs.values())))]
    writes = "out" in kwargs or (name.endswith("_") and not name.endswith("__"))
    with torch_function.DisableTorchFunctionSubclass():
        requested = [value for value in (*args, *kwargs.values()) if type(value) is dtypes.dtype]
        if name == "view" and requested not in ([], [complex32]):
            return _bytes_as(args[0], *requested)
        out = kwargs.get("out")
        if isinstance(out, Tensor) and out.dtype is dtypes.float16:
            single = function(*_map(_single, args), **kwargs | {"out": out.to(dtypes.float32)})
            return out.resize_(single.shape).copy_(single)
        token = draw.is_of_half.set(is_half or type(out) is HalfComplex)
        try:
            result = function(*_map(_single, args), **_map(_single, kwargs))
        finally:
            draw.is_of_half.reset(token)
        if writes:
            for target in tensors_in((kwargs.get("out"), *args[:1])):
                _round_in_place(target)
            return result
        return _map(lambda part: _shown(part, is_half, known), result)


def _gradients(function, args, kwargs):
    """The results of `autograd.grad`, each in the dtype of its input."""
    with torch_function.DisableTorchFunctionSubclass():
        results = function(*args, **kwargs)
    return tuple(
        _rounded_once(result) if result is not None and type(tensor) is HalfComplex else result
        for result, tensor in zip(results, args[1], strict=True)
    )


def _shown(part, is_half, known):
    """A result as users see it: rounded, unless it is an argument or shares memory with one."""
    if not isinstance(part, Tensor):
        return complex32 if is_half and part is dtypes.complex64 else part
    if not is_half:
        is_same = type(part) is HalfComplex and id(part) in known
        return part.clone() if is_same else part  # of another dtype, which was the same inside
    if id(part) in known:
        is_converted = type(part) is not HalfComplex and part.dtype is dtypes.complex64
        return _rounded_once(part.clone()) if is_converted else part
    if part.dtype is dtypes.float32:
        is_view = alias_of(part) is not None
        return ops._rounded_view(part, dtypes.float16) if is_view else part.to(dtypes.float16)
    return _rounded_once(part) if part.dtype is dtypes.complex64 else part


def _rounded_once(tensor):
    """The tensor as one of complex32; a leaf or a view stays itself."""
    if sparse_tensor.is_sparse(tensor):
        values = _rounded_once(sparse_tensor.values_of(tensor))
        return sparse_tensor.sparse(values, tensor._indices_held, tensor._sizes, tensor._coalesced)
    with torch_function.DisableTorchFunctionSubclass():
        if type(tensor) is HalfComplex:
            return tensor
        if tensor.is_leaf and tensor.requires_grad:
            with no_grad():
                tensor.copy_(_rounded(tensor))
        elif alias_of(tensor) is None:
            tensor = _rounded(tensor)
    tensor.__class__ = HalfComplex
    return tensor


def _round_in_place(target):
    if type(target) is HalfComplex:
        target.copy_(_rounded(target))


def _rounded(tensor):
    parts = (part.to(dtypes.float16).to(dtypes.float32) for part in (tensor.real, tensor.imag))
    return ops.complex(*parts)
