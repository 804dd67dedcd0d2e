"""PyTorch's dtypes: objects compared by identity, the default dtype, and numeric limits.

>>> from jaxgrad.core import dtypes
>>> dtypes.float32, dtypes.complex64.to_real(), dtypes.int64.is_floating_point
(torch.float32, torch.float32, False)

In this module `bool`, `int` and `float` are dtypes, as in torch; Python's types are
`builtins.float` and so on.
"""

import builtins

import ml_dtypes
import numpy

from . import bounded_cache

BOOLEAN, INTEGRAL, FLOATING, COMPLEX = range(4)  # categories of promotion, in ascending order


class dtype:
    """The type of a tensor's elements. Use the existing ones: calling or subclassing raises
    TypeError.

    itemsize: bytes per element; numpy: the `numpy.dtype` of the arrays.

    >>> jaxgrad.float16.itemsize, jaxgrad.float16.is_floating_point, jaxgrad.float16.numpy
    (2, True, dtype('float16'))
    """

    __slots__ = ("_complex", "_real", "category", "itemsize", "name", "numpy", "scalar_type")

    def __new__(cls, *_arguments):
        raise TypeError("cannot create 'torch.dtype' instances: use one, as torch.float32")

    def __init_subclass__(cls, **_keywords):
        raise TypeError("type 'torch.dtype' is not an acceptable base type")

    @property
    def is_floating_point(self):
        return self.category == FLOATING

    @property
    def is_complex(self):
        return self.category == COMPLEX

    @property
    def is_signed(self):
        if self.name.startswith(("qint", "quint", "bits")):
            raise RuntimeError(
                f"Unknown ScalarType: {self!r} has no sign, its numbers have a scale"
            )
        if self.is_floating_point:
            return self.name != "float8_e8m0fnu"
        return (self.numpy if self.numpy.names is None else self.numpy[0]).kind not in "ub"

    @property
    def abbr(self):
        """The short name: a letter and the number of bits.

        >>> jaxgrad.float32.abbr, jaxgrad.bfloat16.abbr, jaxgrad.bool.abbr
        ('f32', 'bf16', 'b8')
        """
        kind = self.name.rstrip("0123456789").partition("8_")[0]
        return _LETTERS.get(kind, kind) + self.name.removeprefix(kind).replace("_", "")

    def to_real(self):
        """The dtype of the real part; a real dtype itself.

        >>> jaxgrad.complex64.to_real()
        torch.float32
        """
        return self._real

    def to_complex(self):
        """The complex dtype whose parts have this dtype.

        Raises RuntimeError for booleans and integers.

        >>> jaxgrad.float64.to_complex()
        torch.complex128
        """
        if self._complex is None:
            raise RuntimeError(
                f"Unknown Complex ScalarType for {self.scalar_type}: {self!r} has no complex form"
            )
        return self._complex

    def __reduce__(self):
        # compared by identity: a copy is the same object, and pickling stores its name
        is_global = self.numpy.names is None  # the others are in named_dtypes.py
        return self.name if is_global else (_by_name, (self.name,))

    def __repr__(self):
        return f"torch.{self.name}"


_LETTERS = {"bool": "b8", "uint": "u", "int": "i", "bfloat": "bf", "float": "f", "complex": "c"}

_FROM_NUMPY: dict = {}
_BY_NAME: dict[str, dtype] = {}


class LackingDtype(NotImplementedError):
    """A call needs a dtype that XLA lacks, which a class of tensors provides."""


class RawBitsResult(LackingDtype):
    """A call needs a dtype of bits: `frontend/raw_bits.py` provides it."""

    def __init__(self, kind):
        self.kind = kind
        super().__init__(f"XLA lacks {kind!r}: view(torch.uint8) shows the bytes of such a tensor")


class HalfComplexResult(LackingDtype):
    """A call needs complex32: `frontend/half_complex.py` computes it."""

    def __init__(self):
        super().__init__(
            "result type ComplexHalf can't be cast to the desired output type Half: XLA lacks "
            "torch.complex32, convert to torch.complex64 first"
        )


def _define(name, scalar_type, category, numpy_type=None):
    """`scalar_type`: PyTorch's name of the dtype in messages: not implemented for 'Half'."""
    # past `__new__`, which refuses users
    new = object.__new__(dtype)
    new.name, new.scalar_type, new.category = name, scalar_type, category
    new.numpy = numpy.dtype(numpy_type or name)
    new.itemsize, new._real, new._complex = new.numpy.itemsize, new, None
    _FROM_NUMPY[new.numpy] = _BY_NAME[name] = new
    return new


def _by_name(name: str) -> dtype:
    return _BY_NAME[name]


bool = _define("bool", "Bool", BOOLEAN)
uint8 = _define("uint8", "Byte", INTEGRAL)
int8 = _define("int8", "Char", INTEGRAL)
int16 = short = _define("int16", "Short", INTEGRAL)
int32 = int = _define("int32", "Int", INTEGRAL)
int64 = long = _define("int64", "Long", INTEGRAL)
uint16 = _define("uint16", "UInt16", INTEGRAL)
uint32 = _define("uint32", "UInt32", INTEGRAL)
uint64 = _define("uint64", "UInt64", INTEGRAL)
float16 = half = _define("float16", "Half", FLOATING)
bfloat16 = _define("bfloat16", "BFloat16", FLOATING, ml_dtypes.bfloat16)
float32 = float = _define("float32", "Float", FLOATING)
float64 = double = _define("float64", "Double", FLOATING)
complex64 = cfloat = _define("complex64", "ComplexFloat", COMPLEX)
complex128 = cdouble = _define("complex128", "ComplexDouble", COMPLEX)

for _real, _complex in (
    (bfloat16, complex64),
    (float32, complex64),  # after bfloat16: complex64's parts are float32
    (float64, complex128),
):
    _real._complex = _complex._complex = _complex
    _complex._real = _real

ALL = tuple(_FROM_NUMPY.values())

# numbers of a byte, which few operators take: tensors are stored in them, and converted
float8_e4m3fn = _define("float8_e4m3fn", "Float8_e4m3fn", FLOATING, ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = _define("float8_e4m3fnuz", "Float8_e4m3fnuz", FLOATING, ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = _define("float8_e5m2", "Float8_e5m2", FLOATING, ml_dtypes.float8_e5m2)
float8_e5m2fnuz = _define("float8_e5m2fnuz", "Float8_e5m2fnuz", FLOATING, ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = _define("float8_e8m0fnu", "Float8_e8m0fnu", FLOATING, ml_dtypes.float8_e8m0fnu)
FLOAT8 = frozenset(_FROM_NUMPY.values()).difference(ALL)


def as_float8(values, dtype, module):
    """An array as numbers of 8 bits, where XLA and ml_dtypes give NaN and PyTorch a number:
    `float8_e4m3fn` has no infinity, so the others become the nearest bound; `float8_e8m0fnu` has
    positive numbers alone, which the absolute values become, and 0 the least. module: numpy or
    jax.numpy.
    """
    if values.dtype.kind in "biu" or values.dtype.itemsize < 4:
        values = values.astype("float32")  # few bits would not hold the bounds
    if dtype is float8_e4m3fn:
        values = module.clip(values, -448, 448)
    if dtype is not float8_e8m0fnu:
        return values.astype(dtype.numpy)
    least = numpy.zeros((), "uint8").view(dtype.numpy)
    sizes = abs(values)  # those below the normal numbers count as 0
    return module.where(sizes < 2.0**-126, least, sizes.astype(dtype.numpy))


def of_array(values, dtype):
    """An array of NumPy as one of a dtype, as PyTorch converts it."""
    with numpy.errstate(over="ignore", invalid="ignore"):
        if dtype in FLOAT8:
            return as_float8(values, dtype, numpy)
        return values.astype(dtype.numpy)


_PYTHON_TYPES = {
    builtins.bool: bool,
    builtins.int: int64,
    builtins.float: float64,
    builtins.complex: complex128,
}


def from_numpy(numpy_dtype) -> dtype:
    """The dtype of NumPy's and JAX's arrays of this `numpy.dtype`. Raises TypeError without one."""
    equivalent = _FROM_NUMPY.get(numpy_dtype)
    if equivalent is None:
        if str(numpy_dtype).startswith("key<"):
            raise TypeError(
                f"can't convert JAX's random key, of dtype {numpy_dtype!s}: it is no tensor; "
                "jaxgrad.from_jax makes operators that take keys"
            )
        raise TypeError(
            f"can't convert numpy dtype {numpy_dtype!s}: supported types are: bool, uint8 to "
            "uint64, int8 to int64, float16, bfloat16, float32, float64, complex64 and complex128"
        )
    return equivalent


def as_dtype(argument) -> dtype:
    """The dtype for `argument`: a dtype, a numpy or JAX dtype, or Python's float, int, bool or
    complex. Raises TypeError for anything else.

    >>> from jaxgrad.core import dtypes
    >>> dtypes.as_dtype(numpy.int8), dtypes.as_dtype(type(1.5))
    (torch.int8, torch.float64)
    """
    if type(argument) is dtype:
        return argument
    if isinstance(argument, numpy.dtype):
        return from_numpy(argument)
    # numpy reads None as float64, text as the type of that name and an array as that of its
    # elements; PyTorch refuses them
    if not isinstance(argument, type) and (
        not hasattr(argument, "dtype") or hasattr(argument, "shape")
    ):
        raise _not_a_dtype(argument)
    return _PYTHON_TYPES.get(argument) or from_numpy(_numpy_dtype(argument))


def _numpy_dtype(scalar_type):
    try:
        numpy_dtype = numpy.dtype(scalar_type)
    except TypeError:
        raise _not_a_dtype(scalar_type) from None
    if numpy_dtype.hasobject:
        raise _not_a_dtype(scalar_type)
    return numpy_dtype


def _not_a_dtype(argument):
    kind = type(argument).__name__
    kind = f"PyTorch's {kind}" if type(argument).__module__ == "torch" else kind
    return TypeError(
        f"argument 'dtype' must be torch.dtype, not {kind} ({argument!r}): as in torch.float32"
    )


default = float32
bounded_cache.set_setting("default dtype", default)


def get_default_dtype() -> dtype:
    """The dtype of new tensors of Python floats.

    >>> jaxgrad.get_default_dtype()
    torch.float32
    """
    return default


def set_default_dtype(d, /) -> None:
    """Set the dtype of new tensors of Python floats; complex numbers get its complex form.

    d: a floating-point dtype. Raises TypeError for anything else.

    >>> jaxgrad.set_default_dtype(jaxgrad.float64)
    >>> jaxgrad.tensor(0.5).dtype
    torch.float64
    >>> jaxgrad.set_default_dtype(jaxgrad.float32)
    """
    global default
    wanted = "only floating-point types are supported as the default type"
    if type(d) is not dtype:
        raise TypeError(f"invalid dtype object: {wanted}, and {d!r} is not a dtype")
    if not d.is_floating_point or d in FLOAT8 or d.numpy.names is not None:
        raise TypeError(f"{wanted}, not {d!r}")
    if d is not default:
        default = d
        bounded_cache.set_setting("default dtype", d)  # plans hold the dtypes of their results


_DECIMAL_DIGITS = {float16: 3, bfloat16: 2, float32: 6, float64: 15, **dict.fromkeys(FLOAT8, 0)}


class _Limits:
    """Limits of a dtype, equal to those of the same dtype."""

    __slots__ = ()
    __hash__ = None

    def __eq__(self, other):
        return type(other) is type(self) and other.dtype == self.dtype


class finfo(_Limits):
    """The limits of a floating-point dtype, or of the parts of a complex one.

    type: a dtype, the default dtype if left out. Raises TypeError for booleans and integers.
    Attributes: bits, dtype (its name), eps, max, min, resolution, smallest_normal, tiny.

    >>> jaxgrad.finfo(jaxgrad.float32).eps
    1.1920928955078125e-07
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type=None):
        real = (default if type is None else as_dtype(type)).to_real()
        if not real.is_floating_point:
            raise TypeError(
                f"torch.finfo() requires a floating point input type, not {real!r}: use torch.iinfo"
            )
        if real.numpy.names is not None:
            raise NotImplementedError(f"\"finfo\" not implemented for '{real.scalar_type}'")
        # numpy's own finfo refuses bfloat16
        limits = ml_dtypes.finfo(real.numpy)
        self.bits, self.dtype = 8 * real.itemsize, real.name
        self.min, self.max = builtins.float(limits.min), builtins.float(limits.max)
        self.eps = builtins.float(limits.eps)
        self.resolution = 10.0 ** -_DECIMAL_DIGITS[real]
        self.smallest_normal = self.tiny = builtins.float(limits.smallest_normal)

    def __repr__(self):
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        limits = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({limits}, dtype={self.dtype})"


class iinfo(_Limits):
    """The limits of an integer dtype.

    type: a dtype. Raises TypeError for bool, floating-point and complex dtypes. A quantized dtype
    has the limits of its integers. Attributes: bits, dtype (its name), max, min.

    >>> jaxgrad.iinfo(jaxgrad.int8).max
    127
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type):
        integer = as_dtype(type)
        if integer is bool:
            raise TypeError("torch.bool is not supported by torch.iinfo: its values are 0 and 1")
        if integer.category != INTEGRAL:
            raise TypeError(
                f"torch.iinfo() requires an integer input type, not {integer!r}: use torch.finfo"
            )
        numbers = integer.numpy
        if integer.name.startswith(("qint", "quint")):
            numbers = numbers[0]  # the integers that a tensor of it holds
        elif numbers.names is not None:
            raise TypeError(f"torch.iinfo() is not available for {integer!r}, which XLA lacks")
        limits = numpy.iinfo(numbers)
        self.bits, self.dtype = limits.bits, integer.name
        self.min, self.max = builtins.int(limits.min), builtins.int(limits.max)

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
