"""Comparisons for tests, as torch.testing."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from . import ops
from .core import dtypes, promotion
from .core.device import device_of_jax
from .core.tracebacks import shows_users_frames, users_stacklevel
from .frontend import random
from .frontend.factories import empty
from .frontend.tensor_data import as_tensor
from .names.missing import missing_in
from .tape.sparse_tensor import is_sparse
from .tape.tensor import Tensor, concrete

# by dtype the relative and the absolute tolerance; none for what is exact
TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}

# those of `assert_allclose`
FORMER_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-3),
    dtypes.float32: (1e-4, 1e-5),
    dtypes.float64: (1e-5, 1e-8),
}


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
    msg: the text of the error, or a function of it. allow_subclasses: without effect.

    Raises ValueError for one of `rtol` and `atol` alone, TypeError for what cannot be compared.

    >>> jaxgrad.testing.assert_close(jaxgrad.tensor([1.0]), jaxgrad.tensor([1.0 + 1e-7]))
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            "rtol and atol must both be specified or both be unspecified, but got no "
            f"{'rtol' if rtol is None else 'atol'}."
        )
    checks = {"device": check_device, "dtype": check_dtype, "layout": check_layout}
    checks["stride"] = check_stride
    text = difference(actual, expected, (rtol, atol), equal_nan, checks)
    if text is not None:
        raise AssertionError(msg(text) if callable(msg) else text if msg is None else msg)


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
        known = [FORMER_TOLERANCES.get(x.dtype, (0, 0)) for x in (actual, expected)]
        rtol, atol = map(max, zip(*known, strict=True))
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, msg=msg or None, **options
    )


# by category of dtypes the least number and the bound of those of `make_tensor`
_RANGES = {dtypes.INTEGRAL: (-9, 10), dtypes.FLOATING: (-9, 9), dtypes.COMPLEX: (-9, 9)}


@shows_users_frames
def make_tensor(
    *shape: int | Sequence[int],
    dtype: dtypes.dtype,
    device,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format=None,
) -> Tensor:
    """Return a tensor of random numbers, uniform in [low, high).

    shape: integers, or one sequence of them. low, high: by default 0 and 2 for bool, -9 and 10 for
    integers (those that the dtype has), -9 and 9 for floats and parts of complex numbers.
    noncontiguous: whether elements lie at every second place of memory. exclude_zero: whether the
    smallest positive number, or 1, takes the place of 0.

    Raises ValueError for a range that is empty, NaN or outside of the dtype, for `requires_grad`
    with integers, and for `noncontiguous` with a `memory_format`.

    >>> from jaxgrad.testing import make_tensor
    >>> make_tensor(2, 3, dtype=jaxgrad.int64, device="cpu", low=4, high=5)
    tensor([[4, 4, 4],
            [4, 4, 4]])
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    if requires_grad and dtype.category < dtypes.FLOATING:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"{dtype=}"
        )
    is_spread = noncontiguous and math.prod(shape) > 1
    drawn = (*shape[:-1], 2 * shape[-1]) if is_spread else shape
    result = _uniform(drawn, dtype, device, *_range(dtype, low, high))
    if is_spread:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = _least(dtype)
    return result.requires_grad_() if requires_grad else result


def _range(dtype, low, high):
    """The range of numbers, within that of a dtype."""
    if dtype == dtypes.bool:
        least, bound, default = 0, 2, (0, 2)
    else:
        is_integral = dtype.category == dtypes.INTEGRAL
        limits = dtypes.iinfo(dtype) if is_integral else dtypes.finfo(dtype)
        bound = limits.max + (is_integral and dtype != dtypes.int64)
        least, default = limits.min, _RANGES[dtype.category]
    low, high = (x if x is not None else y for x, y in zip((low, high), default, strict=True))
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low > high or (low == high and dtype.category < dtypes.FLOATING):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low >= bound:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} "
            f"only supports [{least}, {bound})"
        )
    return (min(max(x, least), bound) for x in (low, high))


def _uniform(shape, dtype, device, low, high):
    if dtype.category < dtypes.FLOATING:
        return random.randint(math.ceil(low), math.ceil(high), shape, dtype=dtype, device=device)
    if dtype.is_complex:
        parts = _uniform((*shape, 2), dtype.to_real(), device, low, high)
        return ops.view_as_complex(parts).clone()
    if dtype in dtypes.FLOAT8:
        return _uniform(shape, dtypes.float32, device, low, high).to(dtype)
    numbers = empty(shape, dtype=dtype, device=device)
    if high - low < dtypes.finfo(dtype).max:
        return numbers.uniform_(low, high)
    return numbers.uniform_(low / 2, high / 2).mul_(2)


def _least(dtype):
    if dtype.category < dtypes.FLOATING:
        return 1
    tiny = dtypes.finfo(dtype).tiny
    return complex(tiny, tiny) if dtype.is_complex else tiny


def difference(actual, expected, tolerances, equal_nan, checks, place="") -> str | None:
    """How two values differ, in words; None where they are close.

    tolerances: `rtol` and `atol`, None for those of the dtypes; checks: what else to compare, by
    name; place: where in a container the values are. `assert_close` raises the text.

    >>> print(jaxgrad.testing.difference([1, 2], [1], (None, None), False, {}))
    The length of the sequences mismatch: 2 != 1
    """
    inner = _pairs(actual, expected)
    if isinstance(inner, str):
        return inner + _at(place)
    for key, one, other in inner or ():
        mismatch = difference(one, other, tolerances, equal_nan, checks, f"{place}[{key!r}]")
        if mismatch is not None:
            return mismatch
    if inner is not None:
        return None
    if actual is None or expected is None:
        is_same = actual is expected
        return None if is_same else f"None mismatch: {actual!r} is not {expected!r}" + _at(place)
    numbers = isinstance(actual, int | float | complex), isinstance(expected, int | float | complex)
    if all(numbers):
        kinds = type(actual), type(expected)
        if checks.get("dtype") and kinds[0] is not kinds[1]:
            return f"The (d)types do not match: {kinds[0]} != {kinds[1]}." + _at(place)
        checks = {}
    text = _tensor_difference(
        *_tensors(actual, expected, place), tolerances, equal_nan, checks, all(numbers)
    )
    return None if text is None else text + _at(place)


def _pairs(actual, expected) -> list[tuple] | str | None:
    """The items of two containers by their keys; what differs, in words; None for others."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return (
                "The keys of the mappings do not match:\nMissing keys in the actual mapping: "
                f"{sorted(expected.keys() - actual.keys(), key=repr)}\nAdditional keys in the "
                f"actual mapping: {sorted(actual.keys() - expected.keys(), key=repr)}"
            )
        return [(key, actual[key], expected[key]) for key in expected]
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
        return list(zip(range(len(actual)), actual, expected, strict=True))
    return None


def _is_sequence(value) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _at(place) -> str:
    return f"\n\nThe failure occurred for item {place}" if place else ""


def _tensors(actual, expected, place) -> list[Tensor]:
    known = Tensor, np.ndarray, np.generic, int, float, complex
    for value in (actual, expected):
        if not isinstance(value, known):
            raise TypeError(
                "No comparison pair was able to handle inputs of type "
                f"{type(actual)} and {type(expected)}." + _at(place)
            )
    tensors = (actual, expected)
    return [v if isinstance(v, Tensor) else as_tensor(v, device=device_of_jax()) for v in tensors]


def _tensor_difference(actual, expected, tolerances, equal_nan, checks, are_numbers) -> str | None:
    checked = ["shape", *[name for name, is_checked in checks.items() if is_checked]]
    for name in checked:
        one, other = getattr(actual, name), getattr(expected, name)
        one, other = (one(), other()) if callable(one) else (one, other)
        if one != other:
            return f"The values for attribute '{name}' do not match: {one} != {other}."
    if is_sparse(actual) and is_sparse(expected) and actual.layout is expected.layout:
        return _sparse_difference(actual, expected, tolerances, equal_nan)
    actual, expected = (t.to_dense() if is_sparse(t) else t for t in (actual, expected))
    if actual.is_meta and expected.is_meta:
        return None
    rtol, atol = tolerances
    if rtol is None:
        pairs = [TOLERANCES.get(tensor.dtype, (0.0, 0.0)) for tensor in (actual, expected)]
        rtol, atol = map(max, zip(*pairs, strict=True))
    wide = promotion.promote_types(actual.dtype, expected.dtype)
    one, other = [
        np.asarray(concrete(tensor.detach().to(wide), "assert_close"))
        for tensor in (actual, expected)
    ]
    if wide is dtypes.bfloat16 or wide is dtypes.float16:
        one, other = one.astype(np.float32), other.astype(np.float32)
    return _array_difference(one, other, rtol, atol, equal_nan, are_numbers)


_PARTS = {"COO": ("_indices", "_values")}
_PARTS |= dict.fromkeys(("CSR", "BSR"), ("crow_indices", "col_indices", "values"))
_PARTS |= dict.fromkeys(("CSC", "BSC"), ("ccol_indices", "row_indices", "values"))


def _sparse_difference(actual, expected, tolerances, equal_nan) -> str | None:
    """How the parts of two sparse tensors of one layout differ."""
    word = "COO" if actual.is_sparse else actual.layout.name[-3:].upper()
    counts = actual._nnz(), expected._nnz()
    if counts[0] != counts[1]:
        return (
            f"The number of specified values in sparse {word} tensors does not match: {counts[0]} "
            f"!= {counts[1]}"
        )
    for name in _PARTS[word]:
        parts = [getattr(tensor, name)() for tensor in (actual, expected)]
        text = _tensor_difference(*parts, tolerances, equal_nan, {}, False)
        if text is not None:
            return text.replace("Tensor-likes", f"Sparse {word} {name.removeprefix('_')}")
    return None


def _array_difference(one, other, rtol, atol, equal_nan, are_numbers) -> str | None:
    is_close = np.isclose(one, other, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if is_close.all():
        return None
    word = "close" if rtol or atol else "equal"
    with np.errstate(all="ignore"):
        apart = np.abs(one.astype(np.complex128 if one.dtype.kind == "c" else np.float64) - other)
        relative = apart / np.abs(other)
    if are_numbers:
        allowed = f" (up to {atol} allowed)" if word == "close" else ""
        relatively = f" (up to {rtol} allowed)" if word == "close" else ""
        return (
            f"Scalars are not {word}!\n\nExpected {other.item()} but got {one.item()}.\n"
            f"Absolute difference: {apart.item()}{allowed}\n"
            f"Relative difference: {relative.item()}{relatively}"
        )
    count = int((~is_close).sum())
    lines = [
        f"Tensor-likes are not {word}!\n",
        f"Mismatched elements: {count} / {is_close.size} ({count / is_close.size:.1%})",
    ]
    for name, values, allowed in (("absolute", apart, atol), ("relative", relative, rtol)):
        values = np.where(is_close, -np.inf, np.where(np.isnan(values), np.inf, values))
        place = tuple(map(int, np.unravel_index(np.argmax(values), values.shape)))
        at = f" at index {place}" if place else ""
        limit = f" (up to {allowed} allowed)" if word == "close" else ""
        lines.append(f"Greatest {name} difference: {values[place]}{at}{limit}")
    return "\n".join(lines)


__getattr__ = missing_in(__name__)
