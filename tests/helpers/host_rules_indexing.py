"""Programs run by the host executor and by XLA, compared."""

import functools

import jax
import numpy
import pytest

from jaxgrad.core.host.block import Block, array_of
from jaxgrad.core.host.equation import NotOnHostError


def results_of(function, *arrays, **options):
    """What the host executor gives, with the forms that the program says."""
    block = Block(jax.make_jaxpr(functools.partial(function, **options))(*arrays))
    pairs = zip(arrays, block.inputs, strict=True)
    operands = [numpy.array(array_of(array), form.dtype) for array, form in pairs]
    for operand in operands:
        operand.flags.writeable = False
    with numpy.errstate(all="ignore"):
        results = block.function(*operands)
        # the same of arrays in another order in memory
        again = block.function(*[numpy.array(operand, order="F") for operand in operands])
    for result, other, form in zip(results, again, block.outputs, strict=True):
        assert (numpy.shape(result), result.dtype) == form
        assert numpy.array_equal(bits_of(result), bits_of(other))
    return results


def bits_of(array):
    """An array whose equality tells 0.0 from -0.0 and takes every NaN for the same."""
    array = numpy.array(array, order="C")
    if array.dtype.kind == "c":
        return numpy.stack([bits_of(array.real), bits_of(array.imag)])
    if array.dtype.kind in "biu":
        return array
    array[numpy.isnan(array)] = numpy.nan
    return array.view(f"u{array.dtype.itemsize}")


def expected_of(function, *arrays):
    return [array_of(result) for result in jax.tree.leaves(jax.jit(function)(*arrays))]


def check_bits(function, *arrays):
    """The host's results are those of XLA to the bit, as of programs that round nothing."""
    results, expected = results_of(function, *arrays), expected_of(function, *arrays)
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype
        numpy.testing.assert_array_equal(bits_of(result), bits_of(wanted))


def check_close(function, *arrays, within, expected=None):
    """The host's results differ from XLA's, or from expected ones, by rounding."""
    results = results_of(function, *arrays)
    expected = expected_of(function, *arrays) if expected is None else expected
    for result, wanted in zip(results, expected, strict=True):
        wide = numpy.complex128 if result.dtype.kind == "c" else numpy.float64
        numpy.testing.assert_allclose(result.astype(wide), wanted.astype(wide), within, within)


def check_refused(function, *arrays):
    with pytest.raises(NotOnHostError):
        _ = Block(jax.make_jaxpr(function)(*arrays)).function
