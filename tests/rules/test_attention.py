"""Attention in blocks of queries: equal to attention at once, with memory that grows linearly."""

import functools

import jax
import jax.numpy as jnp
import numpy
import pytest
from jaxgrad.rules import attention

import jaxgrad
from jaxgrad.core import threefry as jax_threefry

SHAPES = {
    "mask": ((1, 2, 7, 2), (1, 2, 3, 2), (1, 2, 3, 2), (7, 3)),
    "one row of a mask": ((5, 2), (3, 2), (3, 2), (1, 3)),
    "groups": ((2, 4, 5, 2), (2, 2, 6, 2), (2, 1, 6, 2), None),
    "mask of heads": ((3, 4, 5, 2), (3, 2, 6, 2), (3, 1, 6, 2), (4, 1, 6)),
    "mask of queries": ((2, 2, 7, 2), (2, 2, 3, 2), (2, 2, 3, 2), (2, 1, 7, 1)),
}


@pytest.fixture
def in_blocks(monkeypatch):
    """A context in which the blocks have two queries."""

    def enter():
        monkeypatch.setattr(attention, "AT_ONCE", 0)
        monkeypatch.setattr(attention, "BLOCK", 0)
        monkeypatch.setattr(attention, "LEAST_ROWS", 2)
        jaxgrad.compiler.reset()

    return enter


def arrays(case):
    random = numpy.random.RandomState(0)
    *shapes, mask = SHAPES[case]
    inputs = [jnp.array(random.randn(*shape), "float32") for shape in shapes]
    if mask is not None:
        inputs.append(jnp.array(random.randn(*mask), "float32").at[(0,) * len(mask)].set(-jnp.inf))
    return inputs


def attend(causal, query, key, value, mask=None):
    flash = jaxgrad.ops._scaled_dot_product_flash_attention_for_cpu
    return tuple(flash(query, key, value, 0.0, causal, attn_mask=mask))


def first_and_second(causal, inputs):
    """Outputs, gradients, and the derivatives of gradients along tangents, both ways."""
    attended = functools.partial(attend, causal)
    outputs, back = jax.vjp(attended, *inputs)
    weights = [jnp.cos(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape) for x in outputs]

    def gradients(*inputs):
        return jax.vjp(attended, *inputs)[1](tuple(weights))

    tangents = [jnp.sin(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape) for x in inputs]
    _, forward = jax.jvp(gradients, tuple(inputs), tuple(tangents))
    _, along = jax.jvp(attended, tuple(inputs), tuple(tangents))
    reverse = jax.vjp(gradients, *inputs)[1](tuple(tangents))
    return [outputs, back(tuple(weights)), forward, along, reverse]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "causal"), [(case, case != "mask") for case in SHAPES] + [("mask", True)]
)
def test_blocks_change_no_derivative(case, causal, in_blocks):
    inputs = arrays(case)
    whole = jax.jit(functools.partial(first_and_second, causal))(inputs)
    assert "scan" not in str(jax.make_jaxpr(functools.partial(attend, causal))(*inputs))
    in_blocks()
    assert "scan" in str(jax.make_jaxpr(functools.partial(attend, causal))(*inputs))
    parts = jax.jit(functools.partial(first_and_second, causal))(inputs)
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(parts), strict=True):
        numpy.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


def temporary_bytes(function, length):
    shape = jax.ShapeDtypeStruct((1, 4, length, 8), "float32")
    return (
        jax.jit(function).lower(shape, shape, shape).compile().memory_analysis().temp_size_in_bytes
    )


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, True])
def test_memory_grows_with_the_length_and_not_with_its_square(causal):
    """All scores of the longer call take 1 GiB."""

    def gradient(*inputs):
        return jax.grad(lambda *x: attend(causal, *x)[0].sum(), (0, 1, 2))(*inputs)

    short, long = temporary_bytes(gradient, 4096), temporary_bytes(gradient, 8192)
    assert long < 2.1 * short and long < 2**26


@pytest.mark.slow
def test_memory_of_16384_queries():
    """All scores take 4 GiB; each derivative stays in blocks."""

    def value(*inputs):
        return attend(True, *inputs)[0]

    def gradient(*inputs):
        return jax.grad(lambda *x: (value(*x) ** 2).sum(), (0, 1, 2))(*inputs)

    def forward(*inputs):
        return jax.jvp(value, inputs, inputs)[1]

    def second(*inputs):
        return jax.vjp(gradient, *inputs)[1](inputs)

    def forward_over_reverse(*inputs):
        return jax.jvp(gradient, inputs, inputs)[1]

    def of_mask(*inputs):
        mask = jnp.zeros((4, 1, inputs[1].shape[2]))
        return jax.grad(lambda mask: (attend(True, *inputs, mask)[0] ** 2).sum())(mask)

    for function in (value, gradient, forward, second, forward_over_reverse, of_mask):
        assert temporary_bytes(function, 16384) < 2**26, function.__name__


@pytest.mark.slow
def test_queries_that_fill_a_block_add_nothing(in_blocks):
    """Nor where the exponential of a mask, shared by all queries, is infinite."""
    query, key, value, mask = arrays("one row of a mask")
    in_blocks()
    gradient = jax.grad(lambda *x: attend(False, *x)[0].sum(), (0, 1, 2))
    large = gradient(query, key, value, mask + 200)
    for one, other in zip(large, gradient(query, key, value, mask), strict=True):
        numpy.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_blocks_of_accelerators_are_wider(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    assert attention.block_rows(8, 1024, 1024) == 1024
    assert attention.block_rows(64, 2**14, 2**14) == 64


def test_short_calls_are_made_at_once():
    assert attention.block_rows(16, 256, 256) == 256
    assert attention.block_rows(8, 1024, 1024) == 128
    assert attention.block_rows(64, 2**16, 2**16) == attention.LEAST_ROWS


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_sums_in_single_precision(dtype):
    """Sums of 4,096 equal weights: in half precision they would stop growing."""
    shape = 1, 1, 4096, 2
    query = jnp.zeros((1, 1, 1, 2), dtype)
    output, logsumexp = attend(False, query, jnp.zeros(shape, dtype), jnp.ones(shape, dtype))
    assert output.dtype == dtype and logsumexp.dtype == jnp.float32
    numpy.testing.assert_allclose(output.astype(jnp.float32), 1, rtol=1e-2)
    numpy.testing.assert_allclose(logsumexp, numpy.log(4096), rtol=1e-6)


@pytest.mark.slow
def test_dropout_in_blocks_draws_what_dropout_of_all_weights_draws(in_blocks):
    """In both streams, in derivatives of second order, and for the examples of a `vmap`."""
    random = numpy.random.default_rng(0)
    attention_of = jaxgrad.nn.functional.scaled_dot_product_attention
    tensors = [jaxgrad.tensor(random.normal(size=(3, 2, n, 2))) for n in (5, 6, 6)]
    mask = jaxgrad.tensor(random.normal(size=(5, 1)))

    def dropped(*inputs):
        return attention_of(*inputs, dropout_p=0.4)

    def results(stream):
        jaxgrad.random.use(stream)
        jaxgrad.manual_seed(5)
        leaves = [tensor.detach().requires_grad_() for tensor in (*tensors, mask)]
        output = dropped(*leaves)
        gradients = jaxgrad.autograd.grad(output.sin().sum(), leaves, create_graph=True)
        second = jaxgrad.autograd.grad(sum((x * x).cos().sum() for x in gradients), leaves)
        of_examples = jaxgrad.vmap(dropped, randomness="different")(*tensors)
        compiled = jaxgrad.compile(dropped)(*tensors)
        tangent = jaxgrad.func.jvp(lambda query: dropped(query, *tensors[1:]), *[(tensors[0],)] * 2)
        outputs = [output, *gradients, *second, of_examples, compiled, *tangent]
        return [tensor.detach().numpy() for tensor in outputs]

    try:
        whole = [results(stream) for stream in ("torch", "jax")]
        in_blocks()
        assert "AttentionWithDropout" in str(dropped(mask.requires_grad_(), *[mask] * 2).grad_fn)
        for one, other in zip(whole, [results(s) for s in ("torch", "jax")], strict=True):
            for x, y in zip(one, other, strict=True):
                numpy.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
        assert not numpy.allclose(whole[0][0], whole[1][0])
    finally:
        jaxgrad.random.use(None)


def test_dropout_by_a_key_keeps_what_jax_draws():
    """Element i of the draw, from any counter on, and beyond 2**32."""
    key = jax.random.PRNGKey(3)
    rows, width = jnp.arange(4, dtype=jnp.uint32), 5
    expected = jax.random.uniform(key, (40,)) < 0.3
    for begin in (0, 7):
        drawn = jnp.array([*key, 0, begin], jnp.uint32)
        kept = attention._kept_from(drawn, rows, width, width, 0.3)
        assert (kept.ravel() == expected[begin : begin + 20]).all()
    # counters of rows of 2**20 elements, behind 2**32 - 3: by the addition of Python
    rows, begin = jnp.array([4095, 4096], jnp.uint32), 2**32 - 3
    drawn = jnp.array([*key, 0, begin], jnp.uint32)
    kept = attention._kept_from(drawn, rows, 2**20, 8, 0.5)
    counters = [[begin + row * 2**20 + i for i in range(8)] for row in (4095, 4096)]
    for flags, numbers in zip(kept.tolist(), counters, strict=True):
        pairs = [jax_threefry.encrypted_integers(0, 3, n >> 32, n % 2**32) for n in numbers]
        assert flags == [((high ^ low) >> 9) / 2**23 < 0.5 for high, low in pairs]


@pytest.mark.slow
def test_memory_of_dropout_for_16384_queries():
    """All weights take 4 GiB."""
    drawn = jnp.array([0, 3, 0, 0], jnp.uint32)

    def value(*inputs):
        return jaxgrad.ops._attention_with_dropout(*inputs, drawn, 0.9, True)[0]

    def gradient(*inputs):
        return jax.grad(lambda *x: (value(*x) ** 2).sum(), (0, 1, 2))(*inputs)

    def second(*inputs):
        return jax.vjp(gradient, *inputs)[1](inputs)

    for function in (value, gradient, second):
        assert temporary_bytes(function, 16384) < 2**27, function.__name__
