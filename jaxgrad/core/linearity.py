"""Whether a formula is linear in the gradients or tangents that it maps.

The derivative of an operator is a linear map, which JAX may transpose and apply to any multiple of
a gradient. A formula that is not linear, such as `grad.abs() * self`, would give wrong numbers
without an error. The equations of most formulas prove that they are linear. The other formulas are
evaluated on random numbers, since JAX cannot transpose every linear function.
"""

from __future__ import annotations

import jax
import numpy as np

from . import dtypes
from .aval import INLINE, make_aval
from .program import bare

# the least and the largest of the inputs: formulas are finite for some of them, and may tell
# negative numbers from positive ones
DOMAINS = ((-2.0, 2.0), (0.1, 0.9), (1.1, 3.0), (-3.0, -1.1), (20.0, 30.0))
# multiples of two gradients, and their names. Among them are large and small ones, since clamping
# is linear near zero, and rounding nearly so far from it
MULTIPLES = (
    (0.0, 0.0, "zeros"),
    (-1.0, 0.0, "-{0}"),
    (1000.0, 0.0, "1000 * {0}"),
    (0.001, 0.0, "0.001 * {0}"),
    (1.0, 1.0, "{0} + another {0}"),
    (0.7, -1.3, "0.7 * {0} - 1.3 * another {0}"),
)
# a formula may compute in few bits: elements may differ by 2 parts in 100 of their own terms, and
# by rounding from the largest element
OF_TERMS, OF_LARGEST = 2e-2, 1e-5
WIDE = {dtypes.float32: dtypes.float64, dtypes.complex64: dtypes.complex128}


def widened(avals) -> tuple:
    """The abstract values with 64 bits per real number."""
    return tuple(make_aval(a.shape, WIDE.get(a.dtype, a.dtype), INLINE) for a in avals)


def difference(value, derive, inputs, moving, name: str) -> str | None:
    """The numbers that show that `derive` is not linear, from a multiple of random gradients; None
    if it seems linear, or cannot run.

    value: the function that computes the outputs; inputs, moving: structs; name: the name of a
    gradient in the formula.
    """
    random = np.random.default_rng(0)
    value, derive = jax.jit(without_rules(value)), jax.jit(without_rules(derive))
    for domain in DOMAINS:
        arrays = [_random(random, struct, domain) for struct in inputs]
        one, two = ([_random(random, struct, (-2.0, 2.0)) for struct in moving] for _ in range(2))
        mixed = [[a * x + b * y for x, y in zip(one, two, strict=True)] for a, b, _ in MULTIPLES]
        try:
            with jax.enable_x64(True):
                outputs = value(*arrays)
                results = [derive(arrays, outputs, gradients) for gradients in (one, two, *mixed)]
        except Exception:  # of a function that needs another device, or other numbers
            continue
        why = _difference(*results, name=name)
        if why:
            return why
    return None


def without_rules(function):
    """`function` for a trace that JAX does not differentiate."""

    def call(*arguments):
        with bare():
            return function(*arguments)

    return call


def _random(random, struct, domain):
    dtype, shape = struct.dtype, struct.shape
    if not np.issubdtype(dtype, np.inexact):
        return random.integers(0, 2, shape).astype(dtype)  # a mask, or an index into any dimension
    numbers = random.uniform(*domain, shape)
    if np.issubdtype(dtype, np.complexfloating):
        numbers = numbers + 1j * random.uniform(*domain, shape)
    return numbers.astype(dtype)


def _difference(one, two, *mixed, name):
    for (a, b, text), results in zip(MULTIPLES, mixed, strict=True):
        for triple in zip(one, two, results, strict=True):
            why = _compare(*map(np.asarray, triple), a, b)
            if why:
                return f"for {text.format(name)} it gives {why.format(name)}"
    return None


@np.errstate(all="ignore")
def _compare(first, second, result, a, b):
    """How `result` differs from `a * first + b * second`; None if it does not."""
    finite = np.isfinite(first), np.isfinite(second), np.isfinite(result)
    # a linear map is finite for all gradients or, except for 0, for none
    wrong = (finite[0] != finite[2]) & (finite[0] if not a else True)
    if wrong.any():
        return f"{result[wrong][0]:.6}, and for {{0}} {first[wrong][0]:.6}"
    compared = finite[0] & finite[1] & finite[2]
    terms = np.where(compared, [a * first, b * second, result], 0)
    sizes = np.abs(terms).sum(0)
    allowed = OF_TERMS * sizes + OF_LARGEST * sizes.max(initial=0)
    differs = np.abs(terms[0] + terms[1] - terms[2]) > allowed
    if not differs.any():
        return None
    return f"{result[differs][0]:.6}, not {(terms[0] + terms[1])[differs][0]:.6}"
