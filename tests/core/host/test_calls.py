"""Blocks that call blocks, and blocks in two parts."""

import jax
import jax.numpy as jnp
import numpy
from scipy import special

from jaxgrad.core.host.block import Block
from jaxgrad.core.host.calls import Parts, call_of
from jaxgrad.core.host.equation import Form, function_of
from jaxgrad.core.host.error_function import erf_inv

DRAW = numpy.random.default_rng(0)


def corrected(array, rate, count):
    """Reads `rate` and `count` alone in three equations, of which two results are used."""
    factor = rate / (1 - 0.5**count)
    return array * factor - factor, count + 1, rate


def block_of(function, *operands):
    return Block(jax.jit(function).trace(*operands).jaxpr)


def test_a_block_in_two_parts_computes_what_xla_does():
    operands = DRAW.random(5, numpy.float32), numpy.float32(0.3), numpy.float32(2)
    parts = Parts(block_of(corrected, *operands), [1, 2])
    assert all(form.shape == () for form in parts.shared.outputs)
    passed = parts.shared.function(*operands[1:])
    results = parts.rest.function(operands[0], *passed)
    for result, wanted in zip(results, jax.jit(corrected)(*operands), strict=True):
        numpy.testing.assert_allclose(result, wanted, rtol=1e-6)
    names = [equation.name for equation, _, _ in parts.rest.equations]
    assert "pow" not in names and "div" not in names


def test_a_part_that_shares_all_or_nothing():
    operands = DRAW.random(5, numpy.float32), numpy.float32(0.3), numpy.float32(2)
    block = block_of(corrected, *operands)
    for inputs in ([], [0, 1, 2]):
        parts = Parts(block, inputs)
        others = [array for i, array in enumerate(operands) if i not in inputs]
        passed = parts.shared.function(*[operands[i] for i in inputs])
        for result, wanted in zip(
            parts.rest.function(*others, *passed), jax.jit(corrected)(*operands), strict=True
        ):
            numpy.testing.assert_allclose(result, wanted, rtol=1e-6)


def test_a_call_of_a_block_in_other_shapes():
    rows = DRAW.random((2, 3), numpy.float32)
    block = block_of(lambda x: (jnp.cumsum(x), x.sum()), rows.reshape(-1))
    forms = [Form((2, 3), rows.dtype)], [Form((3, 2), rows.dtype), Form((1,), rows.dtype)]
    first, second = function_of(call_of(block, *forms))(rows)
    numpy.testing.assert_allclose(first, rows.reshape(-1).cumsum().reshape(3, 2), rtol=1e-6)
    numpy.testing.assert_allclose(second, [rows.sum()], rtol=1e-6)


def test_the_inverse_of_the_error_function():
    x = (DRAW.random((3, 50_000)) * 2 - 1).astype(numpy.float32)
    result, exact = erf_inv(x), special.erfinv(x.astype(float))
    eps = numpy.finfo(numpy.float32).eps
    is_central = 1 - abs(x) > 0.1
    numpy.testing.assert_allclose(result[is_central], exact[is_central], rtol=4 * eps)
    numpy.testing.assert_allclose(result, jax.jit(jax.lax.erf_inv)(x), rtol=4 * eps)
