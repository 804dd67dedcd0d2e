"""Checks for the code of models, and arithmetic with sizes."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp

from ..core import dtypes, promotion
from ..core.aval import Size
from ..core.symbolic_extents import is_exported, is_symbolic, larger, smaller
from ..tape.requirements import require
from ..tape.symbolic_number import Varying, calculated, is_open, open_number
from ..tape.tensor import Tensor, is_concrete
from ..tape.torch_function import api_boundary
from .tensor_data import tensor

result_type = api_boundary(promotion.result_type)
result_type.__module__ = "jaxgrad"  # where it is pickled from


@api_boundary
def _assert(condition, message: str):
    """Raise AssertionError with a message unless a condition holds.

    condition: a bool, or a tensor of one element.
    """
    assert condition, message


@api_boundary
def _assert_async(self: Tensor, assert_msg: str = ""):
    """Raise RuntimeError where a tensor of one element is 0, at once where its value is known. A
    program that is exported checks it at each call. In a compiled function it is not known, and
    nothing is checked.
    """
    text = assert_msg or "Expected Tensor with single nonzero value, but got zero"
    if is_exported() and not is_concrete(self):
        require(Varying.of_tensor(self != 0), text)
    elif is_concrete(self) and not self:
        raise RuntimeError(text)


_functional_assert_async = _assert_async


@api_boundary
def _check_with(error_type: type[Exception], cond: bool, message: Callable | None = None):
    """Raise an error unless a condition holds.

    error_type: a class of exceptions that is no warning. cond: a bool. message: a function that
    gives the text. Raises TypeError for others.
    """
    if type(cond) is Varying and cond.is_open and cond.error is None:
        failed = "Runtime assertion failed for a condition of torch._check"
        require(cond, failed if message is None else str(message()))
        return
    if type(cond) is not bool and not is_open(cond):
        hint = "; use torch._check_tensor_all() for a tensor" if isinstance(cond, Tensor) else ""
        raise TypeError(f"cond must be a bool, but got {type(cond)}{hint}")
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    if cond:
        return
    if not issubclass(error_type, Exception) or issubclass(error_type, Warning):
        raise AssertionError(
            f"error_type must be a subclass of Exception but not Warning, got {error_type}"
        )
    raise error_type("Expected cond to be True" if message is None else str(message()))


def _check(cond: bool, message: Callable | None = None):
    """Raise RuntimeError unless a condition holds.

    >>> jaxgrad._check(1 < 2, lambda: "1 is less than 2")
    """
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Callable | None = None):
    """Raise IndexError unless a condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Callable | None = None):
    """Raise ValueError unless a condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Callable | None = None):
    """Raise TypeError unless a condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Callable | None = None):
    """Raise NotImplementedError unless a condition holds."""
    _check_with(NotImplementedError, cond, message)


@api_boundary
def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Callable | None = None
):
    """Raise an error unless all elements of a tensor of bools are True.

    error_type: a class of exceptions. message: a function that gives the text. Raises TypeError
    for a tensor of another dtype and for what is no tensor.
    """
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not dtypes.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Callable | None = None):
    """Raise RuntimeError unless all elements of a tensor of bools are True, and TypeError for a
    tensor of another dtype.
    """
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_is_size(i: int, message: Callable | None = None, *, max: int | None = None):
    """Raise RuntimeError unless a number is at least 0, and at most `max`."""
    _check_with(RuntimeError, i >= 0, message)
    if max is not None:
        _check_with(RuntimeError, i <= max, message)


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The sizes of a tensor as a tensor."""
    return tensor(list(self.shape))


# ---- sizes: Python's numbers, and in a program that is exported those that vary


class _OfSizes(type):
    def __instancecheck__(cls, value):
        kind = int if is_symbolic(value) else getattr(value, "kind", None)
        return is_open(value) and cls.__name__ == _CLASSES[kind]


_CLASSES = {int: "SymInt", float: "SymFloat", bool: "SymBool", complex: ""}


class _Symbolic(metaclass=_OfSizes):
    def __new__(cls, *args, **kwargs):
        raise TypeError(f"torch.{cls.__name__}: sizes and numbers are Python's here")


class SymInt(_Symbolic):
    """PyTorch's class of ints that are not known: in a program that is exported the sizes that
    vary, and `item()` of tensors. All others are ints. A call raises TypeError.

    >>> isinstance(jaxgrad.ones(3).shape[0], jaxgrad.SymInt)
    False
    """


class SymFloat(_Symbolic):
    """PyTorch's class of floats that are not known: in a program that is exported those that are
    computed of its inputs. A call raises TypeError.

    >>> isinstance(1.5, jaxgrad.SymFloat)
    False
    """


class SymBool(_Symbolic):
    """PyTorch's class of bools that are not known: in a program that is exported those that depend
    on its inputs. A call raises TypeError.

    >>> isinstance(1 < 2, jaxgrad.SymBool)
    False
    """


@api_boundary
def sym_int(a) -> int:
    """A number without its fraction, as an int; a size that varies is one.

    >>> jaxgrad.sym_int(-2.7)
    -2
    """
    return a if is_symbolic(a) else math.trunc(a)


@api_boundary
def sym_float(a) -> float:
    """A number as a float; a size that varies gives a number of the exported program.

    >>> jaxgrad.sym_float(3)
    3.0
    """
    if is_open(a):
        return calculated(sym_float, (open_number(a),), lambda array: array * 1.0)
    return float(a)


@api_boundary
def sym_not(a) -> bool:
    """Whether a bool is False.

    >>> jaxgrad.sym_not(1 > 2)
    True
    """
    if is_open(a):
        return calculated(sym_not, (a,), jnp.logical_not)
    return not a


def _joined(function, choose, of_sizes, a, b):
    if any(type(number) is Varying and is_open(number) for number in (a, b)):
        of_arrays = {max: jnp.maximum, min: jnp.minimum}[choose]
        return calculated(function, (open_number(a), open_number(b)), of_arrays)
    if is_symbolic(a) or is_symbolic(b):
        return of_sizes(a, b)
    # a float where one of the two is one
    kind = float if isinstance(a, float) or isinstance(b, float) else int
    return kind(choose(a, b))


@api_boundary
def sym_max(a, b):
    """The larger of two numbers, a float if one of them is.

    >>> jaxgrad.sym_max(3, 2.0)
    3.0
    """
    return _joined(sym_max, max, larger, a, b)


@api_boundary
def sym_min(a, b):
    """The smaller of two numbers, a float if one of them is.

    >>> jaxgrad.sym_min(3, 2.0)
    2.0
    """
    return _joined(sym_min, min, smaller, a, b)


@api_boundary
def sym_ite(b: bool, t, f):
    """`t` if `b` is True, else `f`.

    >>> jaxgrad.sym_ite(True, 1, 2)
    1
    """
    if is_open(b):
        return calculated(sym_ite, (b, open_number(t), open_number(f)), jnp.where)
    return t if b else f


@api_boundary
def sym_sqrt(a) -> float:
    """The square root of a number.

    >>> jaxgrad.sym_sqrt(9)
    3.0
    """
    return calculated(sym_sqrt, (open_number(a),), jnp.sqrt) if is_open(a) else math.sqrt(a)


@api_boundary
def sym_sum(*args):
    """The sum of numbers, or of those in a list.

    >>> jaxgrad.sym_sum([1, 2, 3])
    6
    """
    return sum(args[0] if len(args) == 1 and isinstance(args[0], list | tuple | Size) else args)


# those that a graph of a program has
SIZE_FUNCTIONS = sym_float, sym_not, sym_max, sym_min, sym_ite, sym_sqrt
