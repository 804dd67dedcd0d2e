"""Comparisons for tests, as torch.testing._comparison.

A pair holds two values of one kind and compares them. `not_close_error_metas` descends two
containers, and makes for two values in them a pair of the first class that takes both. Test suites
derive classes from these pairs, so their methods have PyTorch's names.
"""

from __future__ import annotations

import cmath
import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..core import dtypes, named_dtypes, promotion
from ..core.tracebacks import shows_users_frames, users_stacklevel
from ..frontend.tensor_data import as_tensor
from ..names.missing import missing_in
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import Tensor, concrete

# by dtype the relative and the absolute tolerance; none for what is exact
TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    named_dtypes.complex32: (1e-3, 1e-5),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}
QUANTIZED = ("quint8", "quint2x4", "quint4x2", "qint8", "qint32")
# quantized tensors are compared by the numbers that they stand for
TOLERANCES |= {getattr(named_dtypes, name): TOLERANCES[dtypes.float32] for name in QUANTIZED}

# those of `assert_allclose`
FORMER_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-3),
    dtypes.float32: (1e-4, 1e-5),
    dtypes.float64: (1e-5, 1e-8),
}

_UNSIGNED = (dtypes.uint16, dtypes.uint32, dtypes.uint64)


# ---- errors


class ErrorMeta(Exception):
    """An error of a comparison, before the user's text takes the place of its text.

    type: its class; msg: its text; id: the keys that lead to the values in the containers.
    """

    def __init__(self, type: type[Exception], msg: str, *, id: tuple = ()):
        super().__init__(msg)
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """The error to raise. msg: its text, or a function of the text that it has."""
        if isinstance(msg, str):
            return self.type(msg)
        keys = "".join(f"[{key!r}]" for key in self.id)
        text = f"{self.msg}\n\nThe failure occurred for item {keys}" if keys else self.msg
        return self.type(msg(text) if callable(msg) else text)


class UnsupportedInputs(Exception):
    """A class of pairs does not take two values."""


def default_tolerances(
    *inputs: Tensor | dtypes.dtype,
    dtype_precisions: dict[dtypes.dtype, tuple[float, float]] | None = None,
) -> tuple[float, float]:
    """The relative and the absolute tolerance of some tensors or dtypes: the larger ones."""
    for value in inputs:
        if not isinstance(value, Tensor | dtypes.dtype):
            raise TypeError(
                f"Expected a torch.Tensor or a torch.dtype, but got {type(value)} instead."
            )
    known = dtype_precisions or TOLERANCES
    kinds = [value.dtype if isinstance(value, Tensor) else value for value in inputs]
    rtol, atol = zip(*[known.get(kind, (0.0, 0.0)) for kind in kinds], strict=True)
    return max(rtol), max(atol)


def get_tolerances(
    *inputs: Tensor | dtypes.dtype, rtol: float | None, atol: float | None, id: tuple = ()
) -> tuple[float, float]:
    """Two tolerances, by default those of the inputs. Raises ErrorMeta for one alone."""
    if (rtol is None) != (atol is None):
        raise ErrorMeta(
            ValueError,
            "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            f"{'rtol' if rtol is None else 'atol'}.",
            id=id,
        )
    return default_tolerances(*inputs) if rtol is None else (rtol, atol)


# ---- texts


def _mismatch(default, identifier, lines) -> str:
    if callable(identifier):
        identifier = identifier(default)
    return f"{identifier or default} are not {lines[0]}!\n\n" + "\n".join(lines[1:])


def _allowed(tolerance, rtol, atol) -> str:
    return f" (up to {tolerance} allowed)" if rtol or atol else ""


def make_scalar_mismatch_msg(
    actual: complex, expected: complex, *, rtol: float, atol: float, identifier=None
) -> str:
    """The text for two numbers. identifier: what they are, or a function of "Scalars"."""
    apart = abs(actual - expected)
    relative = apart / abs(expected) if expected != 0 else float("inf")
    lines = (
        "close" if rtol or atol else "equal",
        f"Expected {expected} but got {actual}.",
        f"Absolute difference: {apart}{_allowed(atol, rtol, atol)}",
        f"Relative difference: {relative}{_allowed(rtol, rtol, atol)}",
    )
    return _mismatch("Scalars", identifier, lines)


def make_tensor_mismatch_msg(
    actual: Tensor, expected: Tensor, matches, *, rtol: float, atol: float, identifier=None
) -> str:
    """The text for two tensors. matches: which elements are close, a tensor or an array;
    identifier: what the tensors are, or a function of "Tensor-likes".
    """
    is_close = np.asarray(matches)
    count = int((~is_close).sum())
    lines = [
        "close" if rtol or atol else "equal",
        f"Mismatched elements: {count} / {is_close.size} ({count / is_close.size:.1%})",
    ]
    if is_of_bits(actual.dtype):
        lines[0] = "'equal'"
        place = tuple(map(int, np.argwhere(~is_close)[0]))
        lines.append(f"The first mismatched element is at index {place}.")
        return _mismatch("Tensor-likes", identifier, lines)
    absolute, relative = _differences(_array(actual), _array(expected))
    for name, values, limit in (("absolute", absolute, atol), ("relative", relative, rtol)):
        values = np.where(is_close, 0, values)
        place = tuple(map(int, np.unravel_index(np.argmax(values), values.shape)))
        difference = f"Greatest {name} difference: {values[place].item()} at index {place}"
        lines.append(difference + _allowed(limit, rtol, atol))
    return _mismatch("Tensor-likes", identifier, lines)


def _differences(actual, expected):
    """The absolute and the relative differences, in the precision of the arrays as in PyTorch."""
    is_exact = actual.dtype.kind in "biu"
    if is_exact:
        actual, expected = actual.astype(np.int64), expected.astype(np.int64)
    with np.errstate(all="ignore"):
        apart, size = np.abs(actual - expected), np.abs(expected)
        if is_exact:
            return apart, apart.astype(np.float32) / size.astype(np.float32)
        return apart, apart / size


def _array(tensor):
    return np.asarray(concrete(tensor.detach(), "assert_close"))


def is_of_bits(dtype: dtypes.dtype) -> bool:
    """Whether floats of a dtype are compared to the bit: those of 8 bits."""
    return dtype.is_floating_point and dtype.itemsize == 1


# ---- pairs


class Pair:
    """Two values to compare. A class raises UnsupportedInputs for values that it does not take.

    id: the keys that lead to the values. It gets the options of all classes, and takes its own.
    """

    def __init__(self, actual, expected, *, id: tuple = (), **unknown_parameters):
        self.actual, self.expected, self.id = actual, expected, id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported():
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs, cls):
        if not all(isinstance(value, cls) for value in inputs):
            Pair._inputs_not_supported()

    def _fail(self, type: type[Exception], msg: str, *, id: tuple = ()):
        raise ErrorMeta(type, msg, id=id or getattr(self, "id", ()))

    def compare(self) -> None:
        """Raise ErrorMeta where the values differ."""
        raise NotImplementedError

    def extra_repr(self) -> Sequence[str | tuple]:
        """The options that the representation shows: names of attributes, or names and values."""
        return ()

    def __repr__(self):
        names = ("id", "actual", "expected", *self.extra_repr())
        pairs = ((name, getattr(self, name)) if isinstance(name, str) else name for name in names)
        lines = (f"    {name}={value!s}," for name, value in pairs)
        return "\n".join((f"{type(self).__name__}(", *lines, ")"))


class ObjectPair(Pair):
    """Two objects, compared by `==`."""

    def compare(self):
        try:
            is_equal = bool(self.actual == self.expected)
        except Exception as error:
            text = f"{self.actual} == {self.expected} failed with:\n{error}."
            raise ErrorMeta(ValueError, text, id=self.id) from error
        if not is_equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """Two values; one of them is None."""

    def __init__(self, actual, expected, **other_parameters):
        if not (actual is None or expected is None):
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self):
        if not (self.actual is None and self.expected is None):
            text = f"None mismatch: {self.actual} is not {self.expected}"
            self._fail(AssertionError, text)


class BooleanPair(Pair):
    """Two booleans, of Python or NumPy."""

    _supported_types = property(lambda self: (bool, np.bool_))

    def __init__(self, actual, expected, *, id: tuple = (), **other_parameters):
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)

    def _process_inputs(self, actual, expected, *, id):
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return [self._to_bool(value, id=id) for value in (actual, expected)]

    def _to_bool(self, bool_like, *, id) -> bool:
        if not isinstance(bool_like, self._supported_types):
            raise ErrorMeta(TypeError, f"Unknown boolean type {type(bool_like)}.", id=id)
        return bool(bool_like)

    def compare(self):
        if self.actual is not self.expected:
            text = f"Booleans mismatch: {self.actual} is not {self.expected}"
            self._fail(AssertionError, text)


class NumberPair(Pair):
    """Two numbers, of Python or NumPy. Options: rtol, atol, equal_nan, check_dtype."""

    _TYPE_TO_DTYPE = {  # noqa: RUF012 - a class derived from it has a dict of its own
        int: dtypes.int64,
        float: dtypes.float64,
        complex: dtypes.complex128,
    }
    _NUMBER_TYPES = (int, float, complex)
    _supported_types = property(lambda self: (*self._NUMBER_TYPES, np.number))

    def __init__(
        self,
        actual,
        expected,
        *,
        id: tuple = (),
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_dtype: bool = False,
        **other_parameters,
    ):
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)
        kinds = [self._dtype(value) for value in (actual, expected)]
        self.rtol, self.atol = get_tolerances(*kinds, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_dtype = equal_nan, check_dtype

    def _dtype(self, number) -> dtypes.dtype:
        types = (kind for kind in self._TYPE_TO_DTYPE if isinstance(number, kind))
        return self._TYPE_TO_DTYPE[next(types)]

    def _process_inputs(self, actual, expected, *, id):
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return [self._to_number(value, id=id) for value in (actual, expected)]

    def _to_number(self, number_like, *, id):
        if not isinstance(number_like, self._supported_types):
            raise ErrorMeta(TypeError, f"Unknown number type {type(number_like)}.", id=id)
        return number_like.item() if isinstance(number_like, np.number) else number_like

    def compare(self):
        actual, expected = self.actual, self.expected
        kinds = type(actual), type(expected)
        if self.check_dtype and kinds[0] is not kinds[1]:
            text = f"The (d)types do not match: {kinds[0]} != {kinds[1]}."
            self._fail(AssertionError, text)
        are_nan = cmath.isnan(actual) and cmath.isnan(expected)
        if actual == expected or (self.equal_nan and are_nan):
            return
        apart = abs(actual - expected)
        if not (cmath.isfinite(apart) and apart <= self.atol + self.rtol * abs(expected)):
            tolerances = {"rtol": self.rtol, "atol": self.atol}
            self._fail(AssertionError, make_scalar_mismatch_msg(actual, expected, **tolerances))

    def extra_repr(self):
        return "rtol", "atol", "equal_nan", "check_dtype"


_COMPRESSED = dict.fromkeys(("CSR", "BSR"), ("crow_indices", "col_indices"))
_COMPRESSED |= dict.fromkeys(("CSC", "BSC"), ("ccol_indices", "row_indices"))


class TensorLikePair(Pair):
    """Two tensors, or what can be made tensors. Options: those of `assert_close`."""

    def __init__(
        self,
        actual,
        expected,
        *,
        id: tuple = (),
        allow_subclasses: bool = True,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_device: bool = True,
        check_dtype: bool = True,
        check_layout: bool = True,
        check_stride: bool = False,
        **other_parameters,
    ):
        tensors = self._process_inputs(actual, expected, id=id, allow_subclasses=allow_subclasses)
        super().__init__(*tensors, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(*tensors, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_device, self.check_dtype = equal_nan, check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def _process_inputs(self, actual, expected, *, id, allow_subclasses):
        types = type(actual), type(expected)
        # PyTorch refuses an array beside a tensor
        are_of_one_kind = isinstance(actual, types[1]) or isinstance(expected, types[0])
        are_arrays = all(issubclass(kind, Tensor | np.ndarray) for kind in types)
        if not (are_of_one_kind or are_arrays) or not (allow_subclasses or types[0] is types[1]):
            self._inputs_not_supported()
        tensors = [self._to_tensor(value) for value in (actual, expected)]
        for tensor in tensors:
            self._check_supported(tensor, id=id)
        return tensors

    def _to_tensor(self, tensor_like) -> Tensor:
        if isinstance(tensor_like, Tensor):
            return tensor_like
        try:
            return as_tensor(tensor_like)
        except Exception:
            self._inputs_not_supported()

    def _check_supported(self, tensor, *, id):
        """Take every layout: a class derived from it may refuse some."""

    def compare(self):
        self._compare_attributes(self.actual, self.expected)
        if not (self.actual.is_meta or self.expected.is_meta):
            self._compare_values(*self._equalize_attributes(self.actual, self.expected))

    def _compare_attributes(self, actual, expected):
        checks = {"shape": True, "is_quantized": True, "layout": self.check_layout}
        checks |= {"device": self.check_device, "dtype": self.check_dtype}
        for name in (name for name, is_checked in checks.items() if is_checked):
            self._compare_attribute(name, getattr(actual, name), getattr(expected, name))
        if actual.is_quantized:
            self._compare_attribute("qscheme()", actual.qscheme(), expected.qscheme())
        if self.check_stride and not (is_sparse(actual) or is_sparse(expected)):
            self._compare_attribute("stride()", actual.stride(), expected.stride())

    def _compare_attribute(self, name, actual, expected):
        if actual != expected:
            text = f"The values for attribute '{name}' do not match: {actual} != {expected}."
            self._fail(AssertionError, text)

    def _equalize_attributes(self, actual, expected):
        """Two tensors on one device, of one dtype and one layout."""
        tensors = [actual, expected]
        if actual.device != expected.device:
            tensors = [tensor.cpu() for tensor in tensors]
        if actual.dtype != expected.dtype:
            kinds = (dtypes.int64 if t.dtype in _UNSIGNED else t.dtype for t in tensors)
            dtype = promotion.promote_types(*kinds)
            tensors = [tensor.to(dtype) for tensor in tensors]
        if actual.layout != expected.layout:
            tensors = [t.to_dense() if is_sparse(t) else t for t in tensors]
        return tensors

    def _compare_values(self, actual, expected):
        options = {"rtol": self.rtol, "atol": self.atol, "equal_nan": self.equal_nan}
        if actual.is_quantized:
            options["identifier"] = lambda word: f"Quantized {word.lower()}"
            actual, expected = actual.dequantize(), expected.dequantize()
        elif is_sparse(actual):
            return self._compare_sparse_values(actual, expected, **options)
        elif getattr(actual, "is_nested", False):
            actual, expected = actual.values(), expected.values()
        elif is_of_bits(actual.dtype) and (self.rtol or self.atol):
            self._fail(
                AssertionError,
                f"Rtol={self.rtol} and atol={self.atol} are not supported for bitwise comparison "
                "of low dimensional floats. Please use rtol=0.0 and atol=0.0.",
            )
        return self._compare_regular_values_close(actual, expected, **options)

    def _compare_sparse_values(self, actual, expected, **options):
        is_coo = actual.is_sparse
        word = "COO" if is_coo else actual.layout.name[-3:].upper()
        dims = [("sparse dimensions", "sparse_dim")] if is_coo else []
        for counted, name in (*dims, ("specified values", "_nnz")):
            counts = getattr(actual, name)(), getattr(expected, name)()
            if counts[0] != counts[1]:
                text = f"The number of {counted} in sparse {word} tensors does not match: "
                self._fail(AssertionError, f"{text}{counts[0]} != {counts[1]}")
        for name in ("_indices",) if is_coo else _COMPRESSED[word]:
            indices = [getattr(tensor, name)().to(dtypes.int64) for tensor in (actual, expected)]
            identifier = f"Sparse {word} {name.removeprefix('_')}"
            self._compare_regular_values_equal(*indices, identifier=identifier)
        values = [t._values() if is_coo else t.values() for t in (actual, expected)]
        identifier = f"Sparse {word} values"
        self._compare_regular_values_close(*values, **options, identifier=identifier)

    def _compare_regular_values_equal(self, actual, expected, *, equal_nan=False, identifier=None):
        options = {"rtol": 0, "atol": 0, "equal_nan": equal_nan, "identifier": identifier}
        self._compare_regular_values_close(actual, expected, **options)

    def _compare_regular_values_close(
        self, actual, expected, *, rtol, atol, equal_nan, identifier=None
    ):
        is_close = _are_close(_array(actual), _array(expected), rtol, atol, equal_nan)
        if is_close.all():
            return
        options = {"rtol": rtol, "atol": atol, "identifier": identifier}
        if actual.ndim == 0:
            text = make_scalar_mismatch_msg(actual.item(), expected.item(), **options)
        else:
            text = make_tensor_mismatch_msg(actual, expected, is_close, **options)
        self._fail(AssertionError, text)

    def extra_repr(self):
        checks = ("check_device", "check_dtype", "check_layout", "check_stride")
        return "rtol", "atol", "equal_nan", *checks


def _are_close(actual, expected, rtol, atol, equal_nan):
    """Which elements of two arrays are close; without tolerances, equal to the bit."""
    if rtol or atol:
        kinds = "biufc"  # NumPy does not know the others, such as bfloat16
        arrays = [x if x.dtype.kind in kinds else x.astype(np.float32) for x in (actual, expected)]
        arrays = [x.astype(np.float32) if x.dtype == np.float16 else x for x in arrays]
        return np.isclose(*arrays, rtol=rtol, atol=atol, equal_nan=equal_nan)
    is_equal = np.asarray(actual == expected)
    return is_equal | ((actual != actual) & (expected != expected)) if equal_nan else is_equal


# ---- containers


def originate_pairs(
    actual,
    expected,
    *,
    pair_types: Sequence[type[Pair]],
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    id: tuple = (),
    **options,
) -> list[Pair]:
    """The pairs of the values in two containers. Raises ErrorMeta where the containers differ, or
    for two values that no class takes.
    """
    options |= {"pair_types": pair_types, "mapping_types": mapping_types}
    options["sequence_types"] = sequence_types
    values = actual, expected
    if all(isinstance(x, sequence_types) and not isinstance(x, str) for x in values):
        lengths = len(actual), len(expected)
        if lengths[0] != lengths[1]:
            text = f"The length of the sequences mismatch: {lengths[0]} != {lengths[1]}"
            raise ErrorMeta(AssertionError, text, id=id)
        keys = range(lengths[0])
    elif all(isinstance(x, mapping_types) for x in values):
        keys = _keys_of(actual, expected, id)
    else:
        return [_pair(actual, expected, id, **options)]
    inner = (originate_pairs(actual[k], expected[k], id=(*id, k), **options) for k in keys)
    return [pair for pairs in inner for pair in pairs]


def _keys_of(actual, expected, id) -> list:
    keys, others = set(actual.keys()), set(expected.keys())
    if keys != others:
        raise ErrorMeta(
            AssertionError,
            "The keys of the mappings do not match:\nMissing keys in the actual mapping: "
            f"{sorted(others - keys, key=repr)}\nAdditional keys in the actual mapping: "
            f"{sorted(keys - others, key=repr)}",
            id=id,
        )
    with contextlib.suppress(TypeError):
        return sorted(keys)
    return list(expected.keys())


def _pair(actual, expected, id, *, pair_types, sequence_types, mapping_types, **options) -> Pair:
    for pair_type in pair_types:
        with contextlib.suppress(UnsupportedInputs):
            return pair_type(actual, expected, id=id, **options)
    text = f"No comparison pair was able to handle inputs of type {type(actual)} and "
    raise ErrorMeta(TypeError, f"{text}{type(expected)}.", id=id)


def not_close_error_metas(
    actual,
    expected,
    *,
    pair_types: Sequence[type[Pair]] = (ObjectPair,),
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    **options,
) -> list[ErrorMeta]:
    """The errors of the values in two containers that differ.

    pair_types: the classes that are tried in turn; options: those of the pairs. Raises the error
    of containers that differ, and TypeError for values that no class takes.
    """
    options |= {"pair_types": pair_types, "mapping_types": mapping_types}
    try:
        pairs = originate_pairs(actual, expected, sequence_types=sequence_types, **options)
    except ErrorMeta as error:
        raise error.to_error() from None
    return [error for error in map(_error_of, pairs) if error is not None]


def _error_of(pair) -> ErrorMeta | None:
    try:
        pair.compare()
    except ErrorMeta as error:
        return error.with_traceback(None)
    return None


def _unwrap_dtensor_for_comparison(actual, expected):
    """Two values as they are: shards are compared by their global values."""
    return actual, expected


# ---- what tests call


@shows_users_frames
def assert_close(
    actual,
    expected,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless `abs(actual - expected) <= atol + rtol * abs(expected)`.

    actual, expected: tensors, arrays of NumPy, numbers, None, and sequences and mappings of these,
    of equal structure. rtol, atol: both or none; by default those of the dtypes, the larger ones of
    two: 1.3e-6 and 1e-5 for float32, 1e-7 and 1e-7 for float64, 0 for integers. equal_nan: whether
    NaN equals NaN. check_device, check_dtype, check_layout, check_stride: what else must be equal.
    allow_subclasses: whether the classes of the tensors may differ. msg: the text of the error, or
    a function of it.

    Raises ValueError for one of `rtol` and `atol` alone, TypeError for what cannot be compared.

    >>> jaxgrad.testing.assert_close(jaxgrad.tensor([1.0]), jaxgrad.tensor([1.0 + 1e-7]))
    """
    checks = {"check_device": check_device, "check_dtype": check_dtype}
    checks |= {"check_layout": check_layout, "check_stride": check_stride}
    errors = not_close_error_metas(
        *_unwrap_dtensor_for_comparison(actual, expected),
        pair_types=(NonePair, BooleanPair, NumberPair, TensorLikePair),
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        **checks,
    )
    if errors:
        raise errors[0].to_error(msg)


@shows_users_frames
def assert_allclose(
    actual,
    expected,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Raise AssertionError as `assert_close` does, for values of any dtype, device and strides.

    actual, expected: tensors, arrays, numbers or sequences of numbers. rtol, atol: both or none; by
    default the larger ones of two: 1e-4 and 1e-5 for float32, 1e-5 and 1e-8 for float64, 1e-3 for
    float16, 0 for others.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):  # it is deprecated
    ...     jaxgrad.testing.assert_allclose(jaxgrad.ones(2), [1, 1])
    """
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12: use assert_close() in its "
        "place.",
        FutureWarning,
        stacklevel=users_stacklevel(),
    )
    actual, expected = as_tensor(actual), as_tensor(expected)
    options = {"check_device": True, "check_dtype": False, "check_stride": False}
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual, expected, dtype_precisions=FORMER_TOLERANCES)
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, msg=msg or None, **options
    )


__getattr__ = missing_in(__name__)
