"""Rules that differ by platform: all branches run on a CPU and agree, derivatives too."""

import ast
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy
import pytest
from jax import lax
from jaxgrad.rules import attention

import jaxgrad
from jaxgrad import ops
from jaxgrad.utils.delayed_recompute import after_gradients

ROOT = pathlib.Path(jaxgrad.__file__).parents[1]


def numbers(*shape):
    return numpy.random.RandomState(len(shape)).randn(*shape)


def greatest(x):
    return ops.topk(x, 3)[0]


def convolved(x, w):
    return ops.convolution(x, w, None, *geometry(x.ndim - 2), False, (0,) * (x.ndim - 2), 1)


def transposed(x, w):
    return ops.convolution(x, w, None, *geometry(x.ndim - 2), True, (0,) * (x.ndim - 2), 1)


def geometry(count):
    return (1,) * count, (1,) * count, (1,) * count


def delayed(x):
    return after_gradients([jnp.sin(x)], [jnp.cos(x)])[0]


def squared_factors(x):
    """The factors, whose signs a branch may choose."""
    left, values, right = ops.linalg_svd(x, False)
    parts = left**2, values, right**2
    return jnp.concatenate([jnp.ravel(part) for part in parts])


def singular_values(x):
    return ops.linalg_svdvals(x)


def truncated_inverse(x):
    """Its derivatives are those that JAX takes of the decomposition."""
    return ops.linalg_pinv(x, atol=0.1)


def attended(query, key, value):
    """By the kernel of TPUs, in single precision; the formula gives the derivatives of it."""
    single = (x.astype("float32") for x in (query, key, value))
    flash = ops._scaled_dot_product_flash_attention_for_cpu
    parts = flash(*single, 0.0, True)
    return jnp.concatenate([jnp.ravel(part) for part in parts]).astype(query.dtype)


# by the function that branches: functions of floats and their inputs
CASES = {
    "_first_greatest": [(greatest, numbers(2, 7))],
    "_for_platform": [
        (convolved, numbers(2, 4, 9, 9), numbers(3, 4, 3, 3)),
        (convolved, numbers(1, 2, 5, 5, 5), numbers(2, 2, 3, 3, 3)),
        (transposed, numbers(1, 2, 5, 5, 5), numbers(2, 2, 3, 3, 3)),
    ],
    "_computed_once": [
        (convolved, numbers(2, 4, 9), numbers(3, 4, 3)),
        (transposed, numbers(2, 3, 9), numbers(3, 4, 3)),
    ],
    "after_gradients": [(delayed, numbers(2, 3))],
    "_on_platform": [
        *((squared_factors, numbers(*shape)) for shape in ((4, 3), (2, 5), (2, 3, 3))),
        (truncated_inverse, numbers(4, 3)),
        (singular_values, numbers(4, 3)),
    ],
    "by_platform": [(attended, numbers(1, 2, 5, 3), numbers(1, 1, 6, 3), numbers(1, 1, 6, 2))],
}
# the branches that differ, where they are not of CPUs and of GPUs
PLATFORMS = dict.fromkeys(("_on_platform", "by_platform"), ("cpu", "tpu"))
# the functions that compute in single precision there, and so the tolerance of float32
SINGLE = {"by_platform"}
# whose other branches are errors: tests/core/test_lacking.py
REFUSING = {"without_kernel"}


def functions_that_branch():
    """The names of the functions that call `platform_dependent`."""
    names = set()
    for folder in ("rules", "jaxgrad"):
        for path in (ROOT / folder).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            if "platform_dependent" in source:
                names |= {
                    node.name
                    for node in ast.walk(ast.parse(source))
                    if isinstance(node, ast.FunctionDef) and "platform_dependent(" in code(node)
                }
    return names


def code(function):
    return "\n".join(map(ast.unparse, function.body))


def test_every_function_that_branches_has_cases():
    assert functions_that_branch() == CASES.keys() | REFUSING


@pytest.fixture
def force(monkeypatch):
    """Takes one branch everywhere; yields a set of the functions that branched."""

    def choose(platform):
        callers = set()

        def platform_dependent(*arguments, default, **branches):
            callers.add(sys._getframe(1).f_code.co_name)
            return branches.get(platform, default)(*arguments)

        monkeypatch.setattr(lax, "platform_dependent", platform_dependent)
        jaxgrad.compiler.reset()
        jax.clear_caches()
        return callers

    yield choose
    monkeypatch.undo()
    jaxgrad.compiler.reset()
    jax.clear_caches()


def derivatives(function, inputs):
    """The value, the gradients, the forward derivative, and both derivatives of the gradients."""
    output, back = jax.vjp(function, *inputs)
    weights, *tangents = (jnp.cos(jnp.arange(x.size)).reshape(x.shape) for x in (output, *inputs))

    def gradients(*inputs):
        return jax.vjp(function, *inputs)[1](weights)

    forward = jax.jvp(function, inputs, tuple(tangents))[1]
    along = jax.jvp(gradients, inputs, tuple(tangents))[1]
    return output, back(weights), forward, along, jax.vjp(gradients, *inputs)[1](tuple(tangents))


@pytest.mark.parametrize("name", CASES)
def test_the_branches_agree(name, force, monkeypatch):
    monkeypatch.setattr(attention, "AT_ONCE", 0)
    monkeypatch.setenv("MOSAIC_GPU_CUDA_ROOT", "")  # which Pallas sets
    results, near = [], {"rtol": 1e-10, "atol": 1e-12}
    if name in SINGLE:
        near = {"rtol": 1e-5, "atol": 1e-5}
    for platform in PLATFORMS.get(name, ("cpu", "cuda")):
        callers = force(platform)
        with jax.enable_x64(True):
            compiled = [(jax.jit(lambda *x, f=f: derivatives(f, x)), x) for f, *x in CASES[name]]
            results.append([program(*x) for program, x in compiled])
        assert name in callers
    for one, other in zip(*map(jax.tree.leaves, results), strict=True):
        numpy.testing.assert_allclose(one, other, **near)


def test_topk_of_special_numbers_in_both_branches(force):
    """NaN is the greatest, zeros are equal and stand in their order, as PyTorch has it."""
    x = jnp.array([-0.0, -jnp.inf, jnp.nan, 0.0, jnp.inf, -1.0])
    for platform in ("cpu", "cuda"):
        force(platform)
        values, places = ops.topk(x, 6)
        numpy.testing.assert_array_equal(values, [jnp.nan, jnp.inf, 0, 0, -1, -jnp.inf])
        assert places.tolist() == [2, 4, 0, 3, 5, 1]
