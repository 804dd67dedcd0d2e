"""Runs of the host executor, compared with XLA, for tests of its arithmetic."""

import jax
import ml_dtypes
import numpy as np

from helpers import checks
from jaxgrad.core.host.block import Block

EPSILONS = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52}


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def on_host(function, *operands):
    """The results of a function by NumPy, of operands that nothing may write to."""
    operands = [np.asarray(operand) for operand in operands]
    for operand in operands:
        operand.flags.writeable = False
    block = Block(jax.make_jaxpr(function)(*operands))
    with np.errstate(all="ignore"):
        results = block.function(*operands)
    for result, form in zip(results, block.outputs, strict=True):
        assert (result.shape, result.dtype) == (form.shape, form.dtype)
    return results


def by_xla(function, *operands):
    return [np.asarray(result) for result in jax.tree.leaves(jax.jit(function)(*operands))]


def by_wider_xla(function, *operands):
    """The results of XLA in the next wider dtype, rounded once: XLA rounds what is within a
    function to half precision.
    """
    wider = {"float16": "float32", "bfloat16": "float32", "complex64": "complex128"}
    dtype = operands[0].dtype
    if dtype.name not in wider:
        return by_xla(function, *operands)
    results = by_xla(function, *[operand.astype(wider[dtype.name]) for operand in operands])
    narrow = {wider[dtype.name]: dtype}
    if dtype.kind == "c":
        narrow["float64"] = np.float32
    with np.errstate(all="ignore"):
        return [result.astype(narrow.get(result.dtype.name, result.dtype)) for result in results]


def assert_near(computed, expected, ulps=0, tiny=0.0):
    """Compare numbers: NaN with NaN, infinities, and the others to so many ulp of the size of the
    expected one. tiny: the size below which XLA takes a number for 0.
    """
    computed, expected = np.asarray(computed), np.asarray(expected)
    assert (computed.shape, computed.dtype) == (expected.shape, expected.dtype)
    wide = np.complex128 if computed.dtype.kind == "c" else np.float64
    epsilon = EPSILONS.get(np.zeros(0, computed.dtype).real.dtype.name)
    if epsilon is None:
        np.testing.assert_array_equal(computed, expected)
    else:
        computed, expected = computed.astype(wide), expected.astype(wide)
        with np.errstate(all="ignore"):
            is_same = (computed == expected) | (np.isnan(computed) & np.isnan(expected))
            is_near = np.abs(computed - expected) <= ulps * epsilon * np.abs(expected) + tiny
        wrong = np.flatnonzero(~(is_same | is_near))
        assert not wrong.size, (wrong[:5], computed.ravel()[wrong[:5]], expected.ravel()[wrong[:5]])
    checks.count("host rules", max(computed.size, 1))


def check(function, *operands, ulps=0, tiny=0.0, oracle=by_xla):
    """Compare the host's results with those of XLA: of the operands, of one element, of none, and
    of views that are not contiguous. The function computes element by element.
    """
    expected = oracle(function, *operands)
    for view in (
        lambda array: array,
        lambda array: array[3],
        lambda array: array[:0],
        lambda array: array[::-3],
        lambda array: np.broadcast_to(array[2:7, None], (5, 4)),
    ):
        for one, other in zip(on_host(function, *map(view, operands)), expected, strict=True):
            assert_near(one, view(other), ulps, tiny)
