"""Attention in blocks of two queries equals PyTorch's on random shapes, with gradients, those of
its mask, and second derivatives.
"""

import contextlib

import numpy
import pytest
import torch
from jaxgrad.rules import attention
from oracle.seed import SEED

import jaxgrad

CASES = 12


@contextlib.contextmanager
def in_blocks():
    with pytest.MonkeyPatch.context() as patch:
        for limit, number in (("AT_ONCE", 0), ("BLOCK", 0), ("LEAST_ROWS", 2)):
            patch.setattr(attention, limit, number)
        jaxgrad.compiler.reset()
        yield
    jaxgrad.compiler.reset()


def drawn(number):
    """Query, key, value, a mask or None, and whether the call is causal."""
    random = numpy.random.default_rng([SEED, number])
    batch, heads, queries, keys, width, values = random.integers(1, 7, 6).tolist()
    shapes = [(batch, heads, queries, width), (batch, heads, keys, width)]
    shapes.append((batch, heads, keys, values))
    is_causal = number % 3 == 0
    if not is_causal:
        whole = batch, heads, queries, keys
        shapes.append(tuple(n if random.random() < 0.6 else 1 for n in whole))
    weights = [random.normal(size=shape) for shape in shapes]
    return [random.normal(size=shape) for shape in shapes], weights, is_causal


def results(framework, arrays, weights, is_causal):
    """The output, the gradients, and the gradients of a function of these."""
    leaves = [framework.tensor(array, requires_grad=True) for array in arrays]
    query, key, value, *mask = leaves
    output = framework.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask[0] if mask else None, is_causal=is_causal
    )
    grad = framework.autograd.grad
    gradients = grad(output.sin().sum(), leaves, create_graph=True)
    pairs = zip(gradients, map(framework.tensor, weights), strict=True)
    second = grad(sum((x * weight).cos().sum() for x, weight in pairs), leaves)
    return [x.detach().numpy() for x in (output, *gradients, *second)]


@pytest.mark.parametrize("number", range(CASES))
def test_blocks(number):
    case = drawn(number)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        expected = results(torch, *case)
    with in_blocks():
        actual = results(jaxgrad, *case)
    for one, other in zip(actual, expected, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
