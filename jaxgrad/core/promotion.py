"""PyTorch's type promotion, and the decorators that give it to a value function.

An operand is one of three: a number (Python's or numpy's, or a JAX value of weak type), a value
without dimensions, a value with some. Dtypes are promoted within each of the three; then a lower
one matters only where its category (boolean, integral, floating, complex) is the higher:

>>> import jax.numpy as jnp
>>> from jaxgrad.core import dtypes, promotion
>>> promotion.result_type(jnp.ones(3, "int8"), 5), promotion.result_type(jnp.ones(3, "int8"), 0.5)
(torch.int8, torch.float32)

A family of rules/ writes `sin = promotion.floating(jnp.sin)` and has PyTorch's dtypes.
"""

import functools

import jax
import jax.numpy as jnp
import numpy
from jax import lax

from . import dtypes
from .dtypes import BOOLEAN, COMPLEX, FLOATING, INTEGRAL

_PYTHON_KINDS = (bool, int, float, complex)  # in the order of dtypes' categories
_NUMBERS = (*_PYTHON_KINDS, numpy.generic)
_INT64_MAX = 2**63 - 1
_LONE_UNSIGNED = frozenset({dtypes.uint16, dtypes.uint32, dtypes.uint64})  # PyTorch's "barebones"


@functools.cache
def promote_types(type1, type2) -> dtypes.dtype:
    """The smallest dtype of a category not below either one's that holds both.

    >>> from jaxgrad.core import dtypes, promotion
    >>> promotion.promote_types(dtypes.float16, dtypes.bfloat16)
    torch.float32
    """
    if type1 is type2:
        return type1
    low, high = sorted((type1, type2), key=lambda each: (each.category, each.itemsize))
    if high.category != FLOATING and not _LONE_UNSIGNED.isdisjoint((low, high)):
        raise RuntimeError(
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            f"{type1.scalar_type} and {type2.scalar_type}: convert one with .to(dtype) first"
        )
    if high.category == COMPLEX and low.category >= FLOATING:
        return promote_types(low.to_real(), high.to_real()).to_complex()
    if (low.category, low.itemsize) != (high.category, high.itemsize):
        return high
    return dtypes.float32 if high.category == FLOATING else dtypes.int16  # the halves; uint8, int8


def can_cast(from_, to) -> bool:
    """Whether promotion's rules let a result of the one dtype be stored in the other.

    >>> from jaxgrad.core import dtypes, promotion
    >>> promotion.can_cast(dtypes.float64, dtypes.float32)
    True
    >>> promotion.can_cast(dtypes.float32, dtypes.int64)
    False
    """
    if to.category == BOOLEAN:
        return from_.category == BOOLEAN
    return from_.category <= max(to.category, INTEGRAL)


def result_type(*operands) -> dtypes.dtype:
    """The dtype in which an operator computes on these numbers, JAX values or Tensors."""
    found = [None, None, None]  # of numbers, of values without dimensions, of values with some
    for operand in operands:
        rank, dtype = _rank_and_dtype(operand)
        found[rank] = dtype if found[rank] is None else promote_types(found[rank], dtype)
    present = [dtype for dtype in found if dtype is not None]
    if not present:
        raise ValueError("result_type: at least one operand is needed to tell a dtype")
    return functools.reduce(_raise_category, present)


def _rank_and_dtype(operand):
    if isinstance(operand, _NUMBERS) or getattr(operand, "weak_type", False):
        return 0, _number_dtype(operand)
    if not hasattr(operand, "dtype"):
        kind = type(operand).__name__
        raise TypeError(f"{operand!r} has no dtype: must be Tensor, array or Number, not {kind}")
    return (2 if operand.ndim else 1), dtypes.as_dtype(operand.dtype)


def _number_dtype(number):
    category = _number_category(number)
    if category == COMPLEX:
        return dtypes.get_default_dtype().to_complex()
    if isinstance(number, int) and number > _INT64_MAX:
        return dtypes.uint64
    return (dtypes.bool, dtypes.int64, dtypes.get_default_dtype())[category]


def _number_category(number):
    if hasattr(number, "dtype"):
        return dtypes.from_numpy(number.dtype).category
    # bool is a subclass of int
    return next(rank for rank, kind in enumerate(_PYTHON_KINDS) if isinstance(number, kind))


def _raise_category(lower, higher):
    """The dtype of `higher`, made to hold the category of `lower`."""
    if higher.category == BOOLEAN:
        return promote_types(higher, lower)
    if higher.category == FLOATING and lower.category == COMPLEX:
        return higher.to_complex()
    return lower if lower.category > higher.category else higher


def floating_type(*operands) -> dtypes.dtype:
    """`result_type`, with the default dtype in place of integers and booleans, as in `1 / 2`."""
    common_type = result_type(*operands)
    return common_type if common_type.category >= FLOATING else dtypes.get_default_dtype()


def cast(value, dtype) -> jax.Array:
    """`value`, a JAX value or a number, as an array of `dtype` and of no weak type.

    Integers wrap round and floats overflow to infinity, as in PyTorch's operators; a number of a
    higher category must fit (`checked_number`). A complex array never becomes real: take `.real`.
    With JAX's x64 mode off, 64-bit integers are 32-bit ones, and float64 and complex128 raise.
    """
    if isinstance(value, _NUMBERS):
        return jnp.asarray(_number_array(value, dtype))
    if isinstance(value, jax.Array) and value.dtype == dtype.numpy and not value.weak_type:
        return value  # float64 too, with x64 off: it is here already
    given = dtypes.from_numpy(value.dtype)
    if given.category == COMPLEX and dtype.category == BOOLEAN:
        return lax.ne(value, lax.full_like(value, 0))  # XLA converts the real part alone
    if given.category == COMPLEX and dtype.category != COMPLEX:
        raise RuntimeError(
            f"result type {given.scalar_type} can't be cast to the desired output type "
            f"{dtype.scalar_type}: take .real first"
        )
    return lax.convert_element_type(value, available(dtype))


def available(dtype) -> numpy.dtype:
    """What JAX has for `dtype` here and now: narrower integers where its x64 mode is off."""
    if jax.config.jax_enable_x64:  # this thread's, inside `with jax.enable_x64(...)` too
        return dtype.numpy
    if dtype in (dtypes.float64, dtypes.complex128):
        raise RuntimeError(
            f"{dtype!r} is not available while JAX's x64 mode is off: use jaxgrad.jit in place of "
            "jax.jit, or call inside `with jax.enable_x64(True):`"
        )
    return _NARROW.get(dtype, dtype).numpy


_NARROW = {dtypes.int64: dtypes.int32, dtypes.uint64: dtypes.uint32}


def _number_array(number, dtype):
    target = available(dtype)
    plain = _plain(number)
    if dtype.category != BOOLEAN and _number_category(plain) > dtype.category:
        plain = checked_number(plain, dtype)
    if target != dtype.numpy:
        plain = checked_number(plain, _NARROW[dtype])
    with numpy.errstate(over="ignore"):
        return numpy.asarray(plain).astype(target)


def _plain(number):
    """`number` as Python's own; an integer must have 64 bits, with a sign or without."""
    plain = number.item() if isinstance(number, numpy.generic) else number
    if isinstance(plain, int) and plain >= 2**64:
        raise OverflowError(f"int too big to convert: {plain} has more than 64 bits")
    if isinstance(plain, int) and plain < -(2**63):
        raise OverflowError(f"can't convert negative int to unsigned: {plain} is below -2**63")
    return plain


def checked_number(number, dtype) -> bool | int | float | complex:
    """`number` for an element of `dtype`, where it fits: what `full` and `fill_` ask of theirs."""
    plain = _plain(number)
    if dtype.category == BOOLEAN:
        return bool(plain)
    if isinstance(plain, complex) and dtype.category != COMPLEX and plain.imag == 0:
        plain = plain.real
    if not _fits(plain, dtype):
        raise RuntimeError(
            f"value cannot be converted to type {_c_type(dtype)} without overflow: {plain!r}"
        )
    return int(plain) if dtype.category == INTEGRAL else plain


def _fits(plain, dtype):
    if isinstance(plain, complex):
        return dtype.category == COMPLEX and all(
            _fits(part, dtype.to_real()) for part in (plain.real, plain.imag)
        )
    if dtype.category == INTEGRAL:
        limits = dtypes.iinfo(dtype)
        # an integer -1 is the greatest of an unsigned type, as in C; a float -1.0 is an error
        wraps = not dtype.is_signed and isinstance(plain, int)
        return (-limits.max if wraps else limits.min) <= plain <= limits.max
    # PyTorch lets the halves overflow to infinity
    single = dtype in (dtypes.float32, dtypes.complex64) and numpy.isfinite(plain)
    return not single or abs(plain) <= dtypes.finfo(dtypes.float32).max


def _c_type(dtype):
    """PyTorch's messages name C++ types."""
    if dtype.category == COMPLEX:
        return f"c10::complex<{_c_type(dtype.to_real())}>"
    if dtype.category == INTEGRAL:
        return "int" if dtype is dtypes.int32 else f"{dtype.name}_t"
    return "float" if dtype is dtypes.float32 else "double"


def unify(*arguments) -> list:
    """The arguments with all numbers and values among them cast to their common dtype."""
    return _converted(arguments, result_type)


def unify_floating(*arguments) -> list:
    """`unify`, where integers and booleans become the default dtype."""
    return _converted(arguments, floating_type)


def _converted(arguments, choose_type):
    operands = [argument for argument in arguments if _is_operand(argument)]
    dtype = choose_type(*operands)
    return [cast(each, dtype) if _is_operand(each) else each for each in arguments]


def _is_operand(argument):
    return isinstance(argument, _NUMBERS) or hasattr(argument, "dtype")


def broadcast_shapes(what, *shapes) -> tuple[int, ...]:
    """The shape to which operands of these shapes are broadcast; `what` names the operator.

    >>> from jaxgrad.core import promotion
    >>> promotion.broadcast_shapes("add", (2, 1), (3,), ())
    (2, 3)
    """
    return functools.reduce(functools.partial(_broadcast_two, what), shapes, ())


def _broadcast_two(what, first, second):
    rank = max(len(first), len(second))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in (first, second)]
    for dimension, (a, b) in reversed(list(enumerate(zip(*padded, strict=True)))):
        if a != b and 1 not in (a, b):
            raise RuntimeError(
                f"The size of tensor a ({a}) must match the size of tensor b ({b}) at "
                f"non-singleton dimension {dimension}: {what} cannot broadcast {list(first)} and "
                f"{list(second)} together; reshape or expand one of them"
            )
    return tuple(b if a == 1 else a for a, b in zip(*padded, strict=True))


def broadcast(what, *arguments) -> list:
    """The arguments with all arrays of one shape, but 0-d ones as they are: lax takes them."""
    shapes = dict.fromkeys(each.shape for each in arguments if getattr(each, "ndim", 0))
    if len(shapes) < 2:
        return list(arguments)
    shape = broadcast_shapes(what, *shapes)
    return [
        jnp.broadcast_to(each, shape) if getattr(each, "ndim", 0) and each.shape != shape else each
        for each in arguments
    ]


def common(function):
    """`function` of positional operands, which it gets in their common dtype: `add`, `maximum`.

    They are broadcast to one shape, save those without dimensions, which lax takes as they are.
    Keyword arguments, None and whatever else has no dtype pass untouched.
    """
    return _promoting(function, result_type)


def floating(function):
    """As `common`, but integers and booleans become the default dtype: `sin`, `true_divide`."""
    return _promoting(function, floating_type)


def comparison(function):
    """As `common`, with a boolean result: `eq`, `lt`."""
    promoted = common(function)

    @functools.wraps(function)
    def compared(*arguments, **keywords):
        return cast(promoted(*arguments, **keywords), dtypes.bool)

    return compared


def _promoting(function, choose_type):
    name = function.__name__.strip("_")  # `_add` does part of `add`'s work

    @functools.wraps(function)
    def promoted(*arguments, **keywords):
        return function(*broadcast(name, *_converted(arguments, choose_type)), **keywords)

    return promoted


def refuse(what, array, *categories):
    """NotImplementedError where the dtype of `array` is of one of these categories."""
    dtype = dtypes.from_numpy(array.dtype)
    if dtype.category in categories:
        raise NotImplementedError(
            f"\"{what}\" not implemented for '{dtype.scalar_type}': {what} has no meaning for "
            f"{dtype!r}; convert to another dtype first"
        )


def without(*categories):
    """A decorator that refuses operands of these categories, told by the first."""

    def decorate(function):
        @functools.wraps(function)
        def checked(*operands, **keywords):
            refuse(function.__name__, operands[0], *categories)
            return function(*operands, **keywords)

        return checked

    return decorate
