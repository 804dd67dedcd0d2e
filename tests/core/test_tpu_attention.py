"""The kernel of attention for TPUs, in Pallas' interpreter, beside the formula written out."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy
import pytest
from jax import lax
from jaxgrad.rules import attention

import jaxgrad
from jaxgrad.core import tpu_attention

# query, key and value, whether the call is causal, and the tolerance, that of the dtype: lengths
# that are no multiples of a block, groups of query heads, values of another width, several blocks
CASES = {
    "causal, in groups": ((1, 4, 200, 8), (1, 2, 130, 8), (1, 2, 130, 8), True, "float32", 2e-5),
    "all keys": ((1, 2, 9, 8), (1, 2, 200, 8), (1, 2, 200, 4), False, "float32", 2e-5),
    "bfloat16": ((2, 1, 130, 4), (2, 1, 130, 4), (2, 1, 130, 4), True, "bfloat16", 2**-5),
}


@pytest.fixture(autouse=True)
def on_tpu(monkeypatch):
    """The branch of TPUs is taken everywhere, also by short calls."""

    def platform_dependent(*arguments, default, **branches):
        return branches.get("tpu", default)(*arguments)

    monkeypatch.setattr(lax, "platform_dependent", platform_dependent)
    monkeypatch.setattr(attention, "AT_ONCE", 0)
    monkeypatch.setenv("MOSAIC_GPU_CUDA_ROOT", "")  # which Pallas sets
    jaxgrad.compiler.reset()
    jax.clear_caches()
    yield
    monkeypatch.undo()
    jaxgrad.compiler.reset()
    jax.clear_caches()


def attended(is_causal, query, key, value):
    flash = jaxgrad.ops._scaled_dot_product_flash_attention_for_cpu
    return tuple(flash(query, key, value, 0.0, is_causal))


def written_out(is_causal, query, key, value):
    group = query.shape[1] // key.shape[1]
    key, value = (jnp.repeat(x, group, 1) for x in (key, value))
    product = functools.partial(jnp.einsum, precision="highest")
    scores = product("bhle,bhse->bhls", query, key) / math.sqrt(query.shape[-1])
    if is_causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
    weights = jax.nn.softmax(scores, -1)
    return product("bhls,bhse->bhle", weights, value), jax.nn.logsumexp(scores, -1)


def value_and_gradients(function, *inputs):
    """The output, the logarithm of sums, and the gradients of a loss of the output alone."""
    output, back, sums = jax.vjp(function, *inputs, has_aux=True)
    weights = jnp.cos(jnp.arange(output.size)).reshape(output.shape).astype(output.dtype)
    return output, sums, *back(weights)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case):
    *shapes, is_causal, dtype, tolerance = CASES[case]
    random = numpy.random.RandomState(0)
    inputs = [jnp.array(random.randn(*shape), dtype) for shape in shapes]
    ours = functools.partial(value_and_gradients, functools.partial(attended, is_causal))
    # the value and the gradients
    assert str(jax.make_jaxpr(ours)(*inputs)).count("jaxgrad_tpu_attention") == 2
    wide = [x.astype("float32") for x in inputs]
    theirs = value_and_gradients(functools.partial(written_out, is_causal), *wide)
    for one, other in zip(jax.jit(ours)(*inputs), theirs, strict=True):
        numpy.testing.assert_allclose(one.astype("float32"), other, rtol=tolerance, atol=tolerance)


def test_programs_for_one_tpu_have_the_kernel():
    """Those for several devices have the formula, which XLA can split."""
    shape = jax.ShapeDtypeStruct((1, 1, 256, 8), "float32")
    function = jax.jit(lambda *x: attended(True, *x)[0])

    def kernels(*shapes):
        lowered = function.trace(*shapes).lower(lowering_platforms=("tpu",))
        return lowered.as_text().count("tpu_custom_call")

    assert kernels(shape, shape, shape) == 1
    half = jax.ShapeDtypeStruct(shape.shape, "float16")
    assert kernels(half, half, half) == 0
    types = (jax.sharding.AxisType.Auto,)
    mesh = jax.sharding.AbstractMesh((2,), ("chips",), axis_types=types)
    place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, None, "chips"))
    split = jax.ShapeDtypeStruct(shape.shape, "float32", sharding=place)
    assert kernels(split, split, split) == 0


def test_which_calls_the_kernel_serves():
    def serves(dtype="float32", width=8, scale=0.5):
        x = jax.ShapeDtypeStruct((1, 1, 1, 4, width), dtype)
        return tpu_attention.serves(x, x, x, scale)

    assert serves() and serves("bfloat16")
    assert not serves("float64") and not serves("float16") and not serves(width=512)
    assert not serves(scale=1)
    with jax.default_matmul_precision("high"):
        assert serves("bfloat16") and not serves()


@pytest.mark.slow
def test_vmap_of_the_kernel():
    random = numpy.random.RandomState(0)
    query, keys = (jnp.array(random.randn(*shape)) for shape in ((1, 1, 3, 4), (2, 1, 1, 5, 4)))
    function = jax.vmap(functools.partial(attended, True), (None, 0, 0))
    assert "jaxgrad_tpu_attention" in str(jax.make_jaxpr(function)(query, keys, keys))
    theirs = jax.vmap(functools.partial(written_out, True), (None, 0, 0))(query, keys, keys)
    for one, other in zip(function(query, keys, keys), theirs, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
