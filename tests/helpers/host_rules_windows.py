"""Compares programs that the host runs with the same programs compiled by XLA."""

import jax
import numpy

from jaxgrad.core.host.block import Block

# how far results may be from each other, in units of the largest number
TOLERANCES = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float64": 1e-12,
    "complex128": 1e-12,
}


def on_host(function, *arrays) -> list:
    """The results of a program that the host runs, with the shapes and dtypes it promises."""
    block = Block(jax.make_jaxpr(function)(*arrays))
    for array in arrays:
        array.setflags(write=False)
    with numpy.errstate(all="ignore"):
        results = block.function(*arrays)
    for result, form in zip(results, block.outputs, strict=True):
        assert (result.shape, result.dtype) == form
    return results


def assert_as_xla(function, *arrays):
    """The results of a program on the host are those that XLA computes."""
    wanted = jax.tree.leaves(jax.jit(function)(*arrays))
    for result, value in zip(on_host(function, *arrays), wanted, strict=True):
        assert_close(result, value)


def assert_close(result, wanted):
    wanted = numpy.asarray(wanted)
    tolerance = TOLERANCES.get(result.dtype.name, 0)
    kind = numpy.complex128 if wanted.dtype.kind == "c" else numpy.float64
    if tolerance == 0:
        numpy.testing.assert_array_equal(result, wanted)
        return
    result, wanted = result.astype(kind), wanted.astype(kind)
    finite = numpy.abs(wanted[numpy.isfinite(wanted)])
    scale = max(1.0, finite.max(initial=0.0))
    numpy.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance * scale)


def drawn(generator, shape, dtype) -> numpy.ndarray:
    """An array of random numbers; small ones of integers."""
    dtype = numpy.dtype(dtype)
    if dtype.kind in "biu":
        return generator.integers(0 if dtype.kind != "i" else -5, 6, shape).astype(dtype)
    array = generator.standard_normal(shape)
    if dtype.kind == "c":
        array = array + 1j * generator.standard_normal(shape)
    return array.astype(dtype)
