"""Questions about tensors whose answers are no tensors."""

from __future__ import annotations

from .. import ops
from ..core.pytorch_tensors import type_name
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary


def _check_tensors(name, **arguments):
    for position, (argument, value) in enumerate(arguments.items(), start=1):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Tensor, not "
                f"{type_name(value)}"
            )


@api_boundary
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Return whether all elements are close, as by `isclose`.

    input, other: tensors of one dtype whose shapes broadcast. rtol, atol: tolerances, at least 0:
    elements may differ by `atol + rtol * abs(other)`. equal_nan: whether NaN is close to NaN.
    Raises RuntimeError for other dtypes or negative tolerances, and in a trace, where there is no
    value.

    >>> jaxgrad.allclose(jaxgrad.tensor([1.0]), jaxgrad.tensor([1.000001]))
    True
    """
    _check_tensors("allclose", input=input, other=other)
    return bool(ops.isclose(input, other, rtol, atol, equal_nan).all())


@api_boundary
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and equal elements.

    input, other: tensors of any shape and dtype; dtypes promote. Raises RuntimeError in a trace.

    >>> jaxgrad.equal(jaxgrad.tensor([1, 2]), jaxgrad.tensor([1, 2]))
    True
    """
    _check_tensors("equal", input=input, other=other)
    return input.shape == other.shape and bool(ops.eq(input, other).all())


@api_boundary
def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element of a tensor is not zero.

    input: a tensor with one element. Raises RuntimeError for another size, and in a trace.

    >>> jaxgrad.is_nonzero(jaxgrad.tensor([0.0]))
    False
    """
    _check_tensors("is_nonzero", input=input)
    return bool(input)


@api_boundary
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape.

    input, other: tensors of any shape and dtype.

    >>> jaxgrad.is_same_size(jaxgrad.zeros(2, 3), jaxgrad.zeros(3, 2))
    False
    """
    _check_tensors("is_same_size", input=input, other=other)
    return input.shape == other.shape


@api_boundary
def is_signed(input: Tensor) -> bool:
    """Return whether the dtype has negative numbers.

    input: a tensor of any shape and dtype.

    >>> jaxgrad.is_signed(jaxgrad.zeros(2, dtype=jaxgrad.uint8))
    False
    """
    _check_tensors("is_signed", input=input)
    return input.dtype.is_signed


def typename(obj) -> str:
    """Return the name of the class of an object as PyTorch shows it.

    obj: a tensor, whose class in old PyTorch it names, a class, or any object.

    >>> jaxgrad.typename(jaxgrad.ones(2)), jaxgrad.typename(3)
    ('torch.FloatTensor', 'int')
    """
    if isinstance(obj, Tensor):
        return obj.type()
    has_name = hasattr(obj, "__qualname__") and getattr(obj, "__module__", None)
    of = obj if has_name else type(obj)
    module = getattr(of, "__module__", None) or ""
    prefix = "" if module in ("", "builtins", "__builtin__") else f"{module}."
    return prefix + of.__qualname__


@api_boundary
def is_distributed(input: Tensor) -> bool:
    """Return False: no tensor is distributed in PyTorch's sense.

    >>> jaxgrad.is_distributed(jaxgrad.ones(2))
    False
    """
    _check_tensors("is_distributed", input=input)
    return False


@api_boundary
def get_device(input: Tensor) -> int:
    """Return the number of the device of a tensor, -1 for a CPU.

    >>> jaxgrad.get_device(jaxgrad.ones(2))
    -1
    """
    _check_tensors("get_device", input=input)
    return input.get_device()
