"""PyTorch's type promotion, and the decorators that apply it to a value function.

Operands have three ranks: numbers (Python's, numpy's, or JAX values of weak type), values without
dimensions, and values with dimensions. Dtypes are promoted within each rank. Then a lower rank
matters only if its category (boolean, integral, floating, complex) is higher:

>>> import jax.numpy as jnp
>>> from jaxgrad.core import dtypes, promotion
>>> promotion.result_type(jnp.ones(3, "int8"), 5), promotion.result_type(jnp.ones(3, "int8"), 0.5)
(torch.int8, torch.float32)

A family in rules/ writes `sin = promotion.floating(jnp.sin)` to get PyTorch's dtypes.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy
from jax import lax

from . import dtypes, named_dtypes
from .dtypes import BOOLEAN, COMPLEX, FLOATING, INTEGRAL
from .pytorch_tensors import type_name
from .symbolic_extents import is_symbolic

_PYTHON_KINDS = (bool, int, float, complex)  # in the order of dtypes' categories
_NUMBERS = (*_PYTHON_KINDS, numpy.generic)
_INT64_MAX = 2**63 - 1
_LONE_UNSIGNED = frozenset({dtypes.uint16, dtypes.uint32, dtypes.uint64})  # PyTorch's "barebones"


@functools.cache
def promote_types(type1, type2) -> dtypes.dtype:
    """The smallest dtype that holds both dtypes, in the higher of their categories.

    type1, type2: dtypes. Raises RuntimeError for uint16, uint32 or uint64 with another dtype that
    is not floating point, and for numbers of 8 bits with any other dtype.

    >>> jaxgrad.promote_types(jaxgrad.float16, jaxgrad.bfloat16)
    torch.float32
    """
    _check_dtypes("promote_types", type1=type1, type2=type2)
    if type1 is type2:
        return type1
    if not dtypes.FLOAT8.isdisjoint((type1, type2)):
        raise RuntimeError(
            "Promotion for Float8 Types is not supported, attempted to promote "
            f"{type1.scalar_type} and {type2.scalar_type}: convert one with .to(dtype) first"
        )
    if any(dtype.numpy.names and not dtype.is_complex for dtype in (type1, type2)):
        raise RuntimeError(
            "promoteTypes with quantized numbers is not handled yet; offending types: "
            f"{type1.scalar_type} {type2.scalar_type}: take int_repr() or dequantize() first"
        )
    low, high = sorted((type1, type2), key=lambda dtype: (dtype.category, dtype.itemsize))
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
    """Whether a result of dtype `from_` may be stored in a tensor of dtype `to`.

    The category must not fall: complex to real, floating to integral, any other to boolean.

    >>> jaxgrad.can_cast(jaxgrad.float64, jaxgrad.float32)
    True
    >>> jaxgrad.can_cast(jaxgrad.float32, jaxgrad.int64)
    False
    """
    try:
        if to.category == BOOLEAN:
            return from_.category == BOOLEAN
        # PyTorch counts neither quantized dtypes nor those of bits as integral
        least = INTEGRAL if to.numpy.names is None else FLOATING
        return from_.category <= max(to.category, least)
    except AttributeError:
        _check_dtypes("can_cast", from_=from_, to=to)
        raise


def _check_dtypes(name, **arguments):
    for place, (argument, value) in enumerate(arguments.items(), 1):
        if not isinstance(value, dtypes.dtype):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {place}) must be torch.dtype, not "
                f"{type(value).__name__}"
            )


def result_type(*operands) -> dtypes.dtype:
    """The dtype in which an operator computes on these operands.

    operands: tensors, JAX values or numbers, of any shape and dtype. Raises ValueError without
    operands, TypeError for one without a dtype, RuntimeError as `promote_types`.

    >>> jaxgrad.result_type(jaxgrad.ones(2, dtype=jaxgrad.int8), 0.5)
    torch.float32
    """
    by_rank = [None, None, None]  # for numbers, values without dimensions, values with dimensions
    for operand in operands:
        rank, dtype = _rank_and_dtype(operand)
        by_rank[rank] = dtype if by_rank[rank] is None else promote_types(by_rank[rank], dtype)
    present = [dtype for dtype in by_rank if dtype is not None]
    if not present:
        raise ValueError("result_type: at least one operand is needed to tell a dtype")
    return functools.reduce(_raise_category, present)


def _rank_and_dtype(operand):
    if isinstance(operand, _NUMBERS) or getattr(operand, "weak_type", False):
        return 0, _number_dtype(operand)
    if is_symbolic(operand):
        return 0, dtypes.int64
    if not hasattr(operand, "dtype"):
        kind = type_name(operand)
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
    """`higher`, raised to the category of `lower` if that is above its own."""
    # PyTorch's combine_categories: beside a complex number a float dtype keeps its size
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
    """`value`, a JAX value or a number, as an array of `dtype` without a weak type.

    As in PyTorch's operators, integers wrap around and floats overflow to infinity. A number of a
    higher category must fit (`checked_number`). A complex array raises for a real dtype. With JAX's
    x64 mode off, 64-bit integers become 32-bit ones, and float64 and complex128 raise.
    """
    if isinstance(value, _NUMBERS):
        return jnp.asarray(_number_array(value, dtype))
    if isinstance(value, jax.Array) and value.dtype == dtype.numpy and not value.weak_type:
        return value  # an existing float64 array passes with x64 off too
    value_dtype = dtypes.from_numpy(value.dtype)
    if value_dtype.category == COMPLEX and dtype.category == BOOLEAN:
        return lax.ne(value, lax.full_like(value, 0))  # XLA would convert the real part alone
    if value_dtype.category == COMPLEX and dtype.category != COMPLEX:
        raise RuntimeError(
            f"result type {value_dtype.scalar_type} can't be cast to the desired output type "
            f"{dtype.scalar_type}: take .real first"
        )
    if dtype in dtypes.FLOAT8:
        return dtypes.as_float8(value, dtype, jnp)
    if value_dtype.category == BOOLEAN and dtype.category >= FLOATING:
        # XLA would make `where(value, x, 0)` of a product with a converted boolean: 0 for 0 * nan
        one, zero = (lax.full_like(value, number, available(dtype)) for number in (1, 0))
        return lax.select(value, one, zero)
    if value_dtype.category == FLOATING and dtype.category == INTEGRAL:
        value = _as_integer(value, dtype)
    return lax.convert_element_type(value, available(dtype))


def _as_integer(value, dtype):
    """A float array as integers of 32 or 64 bits, of which `dtype` takes the low bits. Numbers that
    these do not hold become what processors with SSE, and so PyTorch, make of them: most the least
    integer. XLA would give the nearest integer that `dtype` holds.
    """
    wide = jnp.float64 if value.dtype == jnp.float64 else jnp.float32  # 8 bits promote to nothing
    value = lax.convert_element_type(value, wide)
    is_wide = dtype in (dtypes.int64, dtypes.uint64)
    is_wide = is_wide or (dtype is dtypes.uint8 and value.dtype == jnp.float64)
    bits = 64 if is_wide and jax.config.jax_enable_x64 else 32
    bound = lax.full_like(value, 2.0 ** (bits - 1))
    is_held = lax.lt(value, bound) & lax.ge(value, lax.neg(bound))
    whole = lax.convert_element_type(value, f"int{bits}")
    whole = lax.select(is_held, whole, lax.full_like(whole, -(2 ** (bits - 1))))
    if dtype not in (dtypes.uint32, dtypes.uint64):
        return whole
    of_negative = lax.convert_element_type(whole, f"uint{bits}")
    of_positive = lax.convert_element_type(value, f"uint{bits}")
    is_held = lax.lt(value, 2 * bound)
    of_positive = lax.select(is_held, of_positive, lax.full_like(of_positive, 0))
    return lax.select(lax.ge(value, lax.full_like(value, 0)), of_positive, of_negative)


def available(dtype) -> numpy.dtype:
    """JAX's dtype for `dtype`: 32-bit integers for 64-bit ones while its x64 mode is off. Raises
    `LackingDtype` for a dtype that XLA lacks.
    """
    if dtype.numpy.names is not None:
        named_dtypes.of_tensor(dtype)  # raises
    if jax.config.jax_enable_x64:  # of this thread, also inside `with jax.enable_x64(...)`
        return dtype.numpy
    if dtype in (dtypes.float64, dtypes.complex128):
        raise RuntimeError(
            f"{dtype!r} is not available while JAX's x64 mode is off: use jaxgrad.jit in place of "
            "jax.jit, or call inside `with jax.enable_x64(True):`"
        )
    return _NARROW.get(dtype, dtype).numpy


def is_long(kind: numpy.dtype) -> bool:
    """Whether a dtype of JAX is that of int64; while its x64 mode is off that is int32.

    >>> is_long(numpy.dtype("int64")), is_long(numpy.dtype("uint8"))
    (True, False)
    """
    return kind == dtypes.int64.numpy or kind == available(dtypes.int64)


_NARROW = {dtypes.int64: dtypes.int32, dtypes.uint64: dtypes.uint32}


def _number_array(number, dtype):
    target = available(dtype)
    plain = _plain(number)
    if dtype.category != BOOLEAN and _number_category(plain) > dtype.category:
        plain = checked_number(plain, dtype)
    if target != dtype.numpy:
        plain = checked_number(plain, _NARROW[dtype])
    with numpy.errstate(over="ignore"):
        plain = numpy.asarray(plain)
        return dtypes.of_array(plain, dtype) if target == dtype.numpy else plain.astype(target)


def _plain(number):
    """`number` as a Python number; an integer must fit in 64 bits, signed or unsigned."""
    plain = number.item() if isinstance(number, numpy.generic) else number
    if isinstance(plain, int) and plain >= 2**64:
        raise OverflowError(f"int too big to convert: {plain} has more than 64 bits")
    if isinstance(plain, int) and plain < -(2**63):
        raise OverflowError(f"can't convert negative int to unsigned: {plain} is below -2**63")
    return plain


def checked_number(number, dtype) -> bool | int | float | complex:
    """`number` as an element of `dtype`, as in `full` and `fill_`. Raises if it does not fit."""
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


def checked_element(number, dtype, shape):
    """`checked_number` for each element of a tensor of this shape: as in PyTorch, one element of
    half precision overflows.
    """
    if dtype.is_floating_point and dtype.itemsize <= 2 and numpy.prod(shape) == 1:
        return overflowed(checked_number(number, dtypes.float64), dtype)
    return checked_number(number, dtype)


def overflowed(number, dtype):
    """The number that a float of 16 or 8 bits makes of one that does not fit; else the number."""
    if not dtype.is_floating_point or dtype.itemsize > 2 or _fits(number, dtype):
        return number
    return float(dtypes.of_array(numpy.asarray(_plain(number), "float64"), dtype))


def refuse_overflow(*operands):
    """Raise RuntimeError for a number that does not fit the common dtype of the operands, None
    among them left out: the precondition of operators that convert numbers with a check.
    """
    present = [operand for operand in operands if operand is not None]
    dtype = result_type(*present)
    for operand in present:
        if isinstance(operand, _NUMBERS):
            checked_number(operand, dtype)


refuse_overflow.of_integers = True  # floats overflow to infinity


def refuse_large_factors(*operands):
    """Raise RuntimeError for a number that does not fit the integers which it scales: the
    precondition of operators whose factors take no part in the promotion.
    """
    factors = [operand for operand in operands if isinstance(operand, _NUMBERS)]
    dtype = result_type(*(one for one in operands if not isinstance(one, _NUMBERS)))
    for factor in factors:
        checked_number(factor, dtype)


refuse_large_factors.of_integers = True


def _fits(plain, dtype):
    if isinstance(plain, complex):
        return dtype.category == COMPLEX and all(
            _fits(part, dtype.to_real()) for part in (plain.real, plain.imag)
        )
    if dtype.category == INTEGRAL:
        limits = dtypes.iinfo(dtype)
        # an integer -1 wraps to the maximum of an unsigned dtype, as in C; a float -1.0 raises
        wraps = not dtype.is_signed and isinstance(plain, int)
        return (-limits.max if wraps else limits.min) <= plain <= limits.max
    if dtype.itemsize >= (16 if dtype.is_complex else 8):
        return True
    if abs(plain) == math.inf:
        return dtype not in dtypes.FLOAT8 or dtype is dtypes.float8_e5m2
    is_negative = plain < 0 and not dtype.is_signed
    return plain != plain or (abs(plain) <= dtypes.finfo(dtype).max and not is_negative)


def other_out(expected, dtype) -> str:
    """The words for a tensor of another dtype than that of the result which is written to it."""
    names = [_NAMES_OF_INTEGERS.get(kind.name) or _c_type(kind) for kind in (expected, dtype)]
    # the last words are those of further checks of PyTorch
    words = "the output tensor's dtype is wrong, the out tensor must be same dtype as the result"
    if expected is dtypes.bool:
        words = "the operator does not support non-boolean outputs"
    return (
        f"Expected out tensor to have dtype {names[0]}, but got {names[1]} instead: {words}. "
        f"Expected object of scalar type {expected.scalar_type} but got scalar type "
        f"{dtype.scalar_type} for argument 'out'"
    )


_NAMES_OF_INTEGERS = {
    **{"int64": "long int", "int16": "short int", "int8": "signed char"},
    **{"uint8": "unsigned char", "bool": "bool"},
}


def _c_type(dtype):
    """The C++ type that PyTorch's messages name."""
    if dtype.category == COMPLEX:
        return f"c10::complex<{_c_type(dtype.to_real())}>"
    if dtype.category == INTEGRAL:
        return "int" if dtype is dtypes.int32 else f"{dtype.name}_t"
    if dtype.itemsize == 2:
        return f"c10::{dtype.scalar_type}"
    return "float" if dtype is dtypes.float32 else "double"


def unify(*arguments) -> list:
    """The arguments with the operands among them cast to their common dtype."""
    return _converted(arguments, result_type)


def unify_floating(*arguments) -> list:
    """`unify`, with the default dtype in place of integers and booleans."""
    return _converted(arguments, floating_type)


def _converted(arguments, choose_type):
    operands = [argument for argument in arguments if _is_operand(argument)]
    dtype = choose_type(*operands)
    return [cast(argument, dtype) if _is_operand(argument) else argument for argument in arguments]


def _is_operand(argument):
    return isinstance(argument, _NUMBERS) or hasattr(argument, "dtype")


def broadcast_shapes(what, *shapes) -> tuple[int, ...]:
    """The shape to which these shapes broadcast; `what` names the operator in the RuntimeError.

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
    """The arguments with arrays broadcast to one shape, except 0-d ones, which lax broadcasts."""
    shapes = dict.fromkeys(argument.shape for argument in arguments if getattr(argument, "ndim", 0))
    if len(shapes) < 2:
        return list(arguments)
    shape = broadcast_shapes(what, *shapes)
    return [
        jnp.broadcast_to(argument, shape)
        if getattr(argument, "ndim", 0) and argument.shape != shape
        else argument
        for argument in arguments
    ]


def common(function):
    """`function` called with its operands in their common dtype: `add`, `maximum`.

    Positional operands are broadcast to one shape, except those without dimensions, which lax
    broadcasts. Keyword arguments and values without a dtype pass unchanged.
    """
    return _promoting(function, result_type)


def floating(function):
    """`common`, with the default dtype in place of integers and booleans: `sin`, `true_divide`."""
    promoted = _promoting(function, floating_type)
    promoted.result_dtype = "floating point for integers too"  # as `help` shows it
    return promoted


def in_single(function):
    """`function` with arguments of half precision as float32, and its result rounded once.

    This is how PyTorch's kernels compute: a formula that is rounded after each operation loses the
    digits of small differences. Arrays of other dtypes pass unchanged.
    """

    @functools.wraps(function)
    def computed(*arguments, **keywords):
        if not any(map(_is_half, arguments)):
            return function(*arguments, **keywords)
        wide = [
            argument.astype(jnp.float32) if _is_half(argument) else argument
            for argument in arguments
        ]
        arrays = [argument for argument in arguments if hasattr(argument, "dtype")]
        return function(*wide, **keywords).astype(result_type(*arrays).numpy)

    return computed


def with_exact_number(function):
    """`function` of two operands, of which a number or 0-d array beside one of half precision keeps
    its digits: the product with 0.1 is not one with 0.10009765625, its value in bfloat16.
    """

    @functools.wraps(function)
    def computed(self, other):
        if not _is_half(self) or getattr(other, "ndim", 0) or _is_half(other):
            return function(self, other)
        dtype = result_type(self, other)
        if dtype.numpy != self.dtype:
            return function(self, other)
        return cast(function(cast(self, dtypes.float32), cast(other, dtypes.float32)), dtype)

    return computed


def _is_half(argument):
    return getattr(argument, "dtype", None) in _HALVES


_HALVES = (jnp.float16, jnp.bfloat16)


def of_float8(function):
    """`function` of two arrays with arrays of 8 bits as float32, and its result converted once."""

    @functools.wraps(function)
    def computed(first, second, *arguments):
        if first.dtype not in _FLOAT8:
            return function(first, second, *arguments)
        wide = first.astype(jnp.float32), second.astype(jnp.float32)
        return cast(function(*wide, *arguments), dtypes.from_numpy(first.dtype))

    return computed


_FLOAT8 = frozenset(dtype.numpy for dtype in dtypes.FLOAT8)


def product_precision(factor):
    """JAX's precision for a product or convolution with this factor.

    It is the highest, as in PyTorch, until `set_float32_matmul_precision` or JAX's
    `jax_default_matmul_precision` gives another one, which None asks for: by JAX's own default an
    accelerator rounds float32 to fewer bits. XLA multiplies half precision exactly.
    """
    if factor.dtype.itemsize <= 2:
        return lax.Precision.DEFAULT
    return lax.Precision.HIGHEST if jax.config.jax_default_matmul_precision is None else None


def comparison(function):
    """`common`, with a boolean result: `eq`, `lt`."""
    promoted = common(function)

    @functools.wraps(function)
    def compared(*arguments, **keywords):
        return cast(promoted(*arguments, **keywords), dtypes.bool)

    compared.result_dtype = "bool"
    return compared


def _promoting(function, choose_type):
    name = function.__name__.strip("_")  # errors name `add`, not its helper `_add`

    @functools.wraps(function)
    def promoted(*arguments, **keywords):
        return function(*broadcast(name, *_converted(arguments, choose_type)), **keywords)

    return promoted


def refuse(what, array, *categories):
    """Raise NotImplementedError if the dtype of `array` is in one of these categories."""
    dtype = dtypes.from_numpy(array.dtype)
    if dtype.category in categories:
        raise NotImplementedError(
            f"\"{what}\" not implemented for '{dtype.scalar_type}': {what} has no meaning for "
            f"{dtype!r}; convert to another dtype first"
        )


def without(*categories):
    """A decorator that raises NotImplementedError if the first operand is of these categories."""

    def decorate(function):
        @functools.wraps(function)
        def checked(*operands, **keywords):
            refuse(function.__name__, operands[0], *categories)
            return function(*operands, **keywords)

        return checked

    return decorate
