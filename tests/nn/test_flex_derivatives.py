"""flex_attention: its derivatives, as those of JAX, its programs, and what it refuses."""

import functools
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxgrad.rules import attention as rules

import jaxgrad
from jaxgrad.func import shared_function
from jaxgrad.nn.attention import flex_attention as flex

AuxRequest = flex.AuxRequest


def numbers(*shape, first=0):
    """Numbers without a pattern that a mistake could reproduce."""
    places = jaxgrad.arange(first, first + math.prod(shape)).double()
    return (1.3 * places * places + 0.7).sin().reshape(shape)


def three(heads=2, of_key=2, queries=5, keys=5, batch=2, of_batch=2):
    """Query, key and value."""
    return (
        numbers(batch, heads, queries, 3),
        numbers(of_batch, of_key, keys, 3, first=7),
        numbers(of_batch, of_key, keys, 2, first=11),
    )


def causal(b, h, i, j):
    return i >= j


# ---- errors and options


def test_what_pytorch_computes_otherwise_is_refused():
    q, k, v = three()
    with pytest.raises(TypeError, match="query, key and value are tensors, not int"):
        flex.flex_attention(1, k, v)
    with pytest.raises(TypeError, match="block_mask is a BlockMask, which create_block_mask"):
        flex.flex_attention(q, k, v, block_mask=jaxgrad.ones(5, 5, dtype=jaxgrad.bool))
    with pytest.raises(TypeError, match="return_aux is an AuxRequest, not bool"):
        flex.flex_attention(q, k, v, return_aux=True)
    with pytest.raises(RuntimeError, match="complex scores"):
        flex.flex_attention(q.cfloat(), k.cfloat(), v.cfloat())
    with pytest.raises(ValueError, match="key and value have the same heads and length"):
        flex.flex_attention(q, k, v[:, :, :3])
    with pytest.raises(RuntimeError, match="one tensor without dimensions"):
        flex.flex_attention(q, k, v, lambda s, b, h, i, j: s.expand(2))
    with pytest.raises(RuntimeError, match="one tensor without dimensions"):
        flex.flex_attention(q, k, v, lambda s, b, h, i, j: (s, s))
    with pytest.raises(TypeError, match="positional argument"):
        flex.flex_attention(q, k, v, causal)
    with pytest.raises(RuntimeError, match="needs the"):
        flex.flex_attention(q, k, v, lambda s, b, h, i, j: s if i > j else -s)
    with pytest.raises(RuntimeError, match="random numbers"):
        flex.flex_attention(q, k, v, lambda s, b, h, i, j: s + jaxgrad.rand(()))
    total = jaxgrad.zeros((), dtype=jaxgrad.float64)
    with pytest.raises(RuntimeError, match="writes to a tensor"):
        flex.flex_attention(q, k, v, lambda s, b, h, i, j: total.add_(s))
    assert total.item() == 0


def test_the_older_forms_warn():
    tensors = three()
    with pytest.warns(FutureWarning, match="return_lse is deprecated"):
        result, lse = flex.flex_attention(*tensors, return_lse=True)
    expected, aux = flex.flex_attention(*tensors, return_aux=AuxRequest(lse=True))
    assert jaxgrad.equal(result, expected) and jaxgrad.equal(lse, aux.lse)
    with pytest.warns(DeprecationWarning, match="_compile flag"):
        flex.create_block_mask(causal, None, None, 4, 4, _compile=True)


def test_aux_has_what_is_asked_for():
    q, k, v = (tensor.requires_grad_() for tensor in three())
    none = flex.flex_attention(q, k, v, return_aux=AuxRequest())[1]
    assert none == flex.AuxOutput(None, None)
    aux = flex.flex_attention(q, k, v, return_aux=AuxRequest(max_scores=True))[1]
    scores = np.einsum("bhle,bhse->bhls", q.detach(), k.detach()) / math.sqrt(3)
    assert aux.lse is None and not aux.max_scores.requires_grad
    np.testing.assert_allclose(aux.max_scores, scores.max(-1), rtol=1e-12)


# ---- derivatives, as JAX's of the formula


def formula(query, key, value, table, mask):
    """Attention with a bias of a table and soft capping, and the logarithms of its sums."""
    group = query.shape[1] // key.shape[1]
    key, value = (jnp.repeat(x, group, 1) for x in (key, value))
    scores = jnp.einsum("bhle,bhse->bhls", query, key) / math.sqrt(query.shape[-1])
    places = jnp.arange(query.shape[2])[:, None] - jnp.arange(key.shape[2]) + key.shape[2] - 1
    scores = 3 * jnp.tanh((scores + jnp.moveaxis(table[places], -1, 0)) / 3)
    scores = jnp.where(mask, scores, -1e300)
    weights = jnp.where(mask, jax.nn.softmax(scores, -1), 0)
    some = mask.any(-1)
    sums = jnp.where(some, jax.nn.logsumexp(scores, -1), 0)
    return jnp.einsum("bhls,bhsv->bhlv", weights, value), sums


def computed(query, key, value, table, mask):
    """The same by flex_attention."""
    keys, module = key.shape[2], flex

    def bias(score, b, h, i, j):
        return 3 * jaxgrad.tanh((score + table[i - j + keys - 1, h]) / 3)

    def is_kept(b, h, i, j):
        return mask[b, h, i, j]

    lengths = query.shape[0], query.shape[1], query.shape[2], keys
    block_mask = module.create_block_mask(is_kept, *lengths, BLOCK_SIZE=4)
    result, aux = module.flex_attention(
        query, key, value, bias, block_mask, enable_gqa=True, return_aux=AuxRequest(lse=True)
    )
    return result, jaxgrad.where(mask.any(-1), aux.lse, 0)


def case(seed=0, batch=2, heads=4, of_key=2, queries=6, keys=7, dtype=np.float64):
    """Arrays of numbers and a random mask, some of whose rows are masked whole."""
    rng = np.random.default_rng(seed)
    shapes = [
        (batch, heads, queries, 3),
        (batch, of_key, keys, 3),
        (batch, of_key, keys, 2),
        (queries + keys - 1, heads),
    ]
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    mask = rng.random((batch, heads, queries, keys)) < 0.5
    mask[:, :, -1] &= rng.random((batch, heads, 1)) < 0.5
    return arrays, mask


def weighted(results):
    """A number of the results that has all their derivatives, of both frameworks."""
    output, sums = results
    return (output**3).sum() + (sums**2).sum()


def theirs(*arrays, mask):
    return weighted(formula(*arrays, mask))


def ours(*tensors, mask):
    return weighted(computed(*tensors, jaxgrad.tensor(mask)))


@pytest.fixture(params=["whole", "blocks"])
def way(request, monkeypatch):
    """All scores at once, and blocks of four queries."""
    if request.param == "blocks":
        monkeypatch.setattr(rules, "block_rows", lambda pairs, queries, keys: min(4, queries))
    jaxgrad.compiler.reset()
    yield request.param
    jaxgrad.compiler.reset()


def assert_close(actual, expected, rtol=1e-9, atol=1e-11):
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=rtol, atol=atol)


def by_jax(function, *arrays, **options):
    """What JAX computes in double precision."""
    with jax.enable_x64(True):
        return function(*arrays, **options)


GRADIENT = jax.grad(theirs, argnums=(0, 1, 2, 3))


@pytest.mark.parametrize("seed", range(6))
def test_values_and_gradients(way, seed):
    sizes = [
        {},
        {"queries": 9, "keys": 3},
        {"of_key": 4},
        {"of_key": 1},
        {"batch": 1, "keys": 1},
        {"queries": 1},
    ][seed]
    arrays, mask = case(seed, **sizes)
    tensors = [jaxgrad.tensor(array, requires_grad=True) for array in arrays]
    results = computed(*tensors, jaxgrad.tensor(mask))
    assert_close([t.detach() for t in results], by_jax(formula, *arrays, mask))
    gradients = jaxgrad.autograd.grad(weighted(results), tensors)
    expected = by_jax(GRADIENT, *arrays, mask=mask)
    assert_close(gradients, expected)


def test_gradients_in_single_precision(way):
    arrays, mask = case(7, dtype=np.float32)
    tensors = [jaxgrad.tensor(array, requires_grad=True) for array in arrays]
    gradients = jaxgrad.autograd.grad(ours(*tensors, mask=mask), tensors)
    wide = [array.astype(np.float64) for array in arrays]
    expected = by_jax(GRADIENT, *wide, mask=mask)
    assert all(gradient.dtype is jaxgrad.float32 for gradient in gradients)
    assert_close(gradients, expected, rtol=2e-4, atol=2e-5)


def directions(arrays, seed=3):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(array.shape) for array in arrays]


def test_second_derivatives(way):
    arrays, mask = case()
    along = directions(arrays)
    tensors = [jaxgrad.tensor(array, requires_grad=True) for array in arrays]
    gradients = jaxgrad.autograd.grad(ours(*tensors, mask=mask), tensors, create_graph=True)
    total = sum((g * jaxgrad.tensor(d)).sum() for g, d in zip(gradients, along, strict=True))
    second = jaxgrad.autograd.grad(total, tensors)
    gradient = functools.partial(GRADIENT, mask=mask)
    expected = by_jax(jax.jvp, gradient, tuple(arrays), tuple(along))[1]
    assert_close(second, expected)


def test_transforms(way):
    arrays, mask = case()
    along = directions(arrays)
    tensors, tangents = ([jaxgrad.tensor(a) for a in group] for group in (arrays, along))
    function = functools.partial(ours, mask=mask)
    expected = by_jax(jax.jvp, functools.partial(theirs, mask=mask), tuple(arrays), tuple(along))
    assert_close(jaxgrad.func.jvp(function, tuple(tensors), tuple(tangents)), expected)
    gradients = jaxgrad.func.grad(function, argnums=(0, 1, 2, 3))(*tensors)
    formulas = functools.partial(GRADIENT, mask=mask)
    assert_close(gradients, by_jax(formulas, *arrays))
    several = [jaxgrad.stack([t, t * 0.5, t - 1]) for t in tensors]
    mapped = jaxgrad.func.vmap(jaxgrad.func.grad(function, argnums=(0, 1, 2, 3)))(*several)
    expected = by_jax(jax.vmap(formulas), *map(np.asarray, several))
    assert_close(mapped, expected)


def test_forward_mode(way):
    arrays, mask = case()
    along = directions(arrays)
    with jaxgrad.autograd.forward_ad.dual_level() as level:
        make = jaxgrad.autograd.forward_ad.make_dual
        duals = [
            make(jaxgrad.tensor(a), jaxgrad.tensor(d)) for a, d in zip(arrays, along, strict=True)
        ]
        result = jaxgrad.autograd.forward_ad.unpack_dual(ours(*duals, mask=mask), level=level)
    expected = by_jax(jax.jvp, functools.partial(theirs, mask=mask), tuple(arrays), tuple(along))
    assert_close(result, expected)


@pytest.mark.parametrize("compile_", [jaxgrad.jit, jaxgrad.compile])
def test_compiled(way, compile_):
    arrays, mask = case()
    tensors = [jaxgrad.tensor(array, requires_grad=True) for array in arrays]
    run = compile_(lambda *tensors: computed(*tensors[:4], tensors[4]))
    for _ in range(2):
        results = run(*tensors, jaxgrad.tensor(mask))
        assert_close([t.detach() for t in results], by_jax(formula, *arrays, mask))
        gradients = jaxgrad.autograd.grad(weighted(results), tensors)
        expected = by_jax(GRADIENT, *arrays, mask=mask)
        assert_close(gradients, expected)


def test_a_training_step_compiled_whole(way):
    arrays, mask = case()
    kept = jaxgrad.tensor(mask)
    tensors = [jaxgrad.tensor(array, requires_grad=True) for array in arrays]
    optimizer = jaxgrad.optim.SGD(tensors, lr=0.1)

    @jaxgrad.jit
    def step():
        optimizer.zero_grad()
        loss = weighted(computed(*tensors, kept))
        loss.backward()
        optimizer.step()
        return loss

    gradient = jax.value_and_grad(functools.partial(theirs, mask=mask), argnums=(0, 1, 2, 3))
    for _ in range(3):
        expected, gradients = by_jax(gradient, *arrays)
        assert_close([step().detach()], [expected])
        arrays = [a - 0.1 * np.asarray(g) for a, g in zip(arrays, gradients, strict=True)]
    assert_close([t.detach() for t in tensors], arrays, rtol=1e-8)


def test_under_jax():
    arrays, mask = case()
    function = jaxgrad.to_jax(lambda *tensors: ours(*tensors, mask=mask))
    expected = by_jax(GRADIENT, *arrays, mask=mask)
    gradients = by_jax(jax.jit(jax.grad(function, argnums=(0, 1, 2, 3))), *arrays)
    assert_close(gradients, expected)


@pytest.mark.parametrize("seed", range(8))
def test_random_masks_and_blocks(seed):
    """What to_dense says of random masks is what NumPy counts, and slices hold what they cut."""
    rng = np.random.default_rng(seed)
    lengths, size = rng.integers(1, 30, 2), tuple(int(n) for n in rng.integers(1, 9, 2))
    shape = *rng.integers(1, 4, 2), *lengths
    mask = rng.random(shape) < 0.3
    mask[:, :, : lengths[0] // 2] = rng.random() < 0.5
    tensor = jaxgrad.tensor(mask)
    counted = flex.create_block_mask(
        lambda b, h, i, j: tensor[b, h, i, j], *map(int, shape), BLOCK_SIZE=size
    )
    padding = [(0, 0), (0, 0), *((0, -n % s) for n, s in zip(lengths, size, strict=True))]
    padded = np.pad(mask, padding)
    rows, columns = (n // s for n, s in zip(padded.shape[2:], size, strict=True))
    sums = padded.reshape(*shape[:2], rows, size[0], columns, size[1]).sum((3, 5))
    np.testing.assert_array_equal(counted.to_dense(), sums > 0)
    np.testing.assert_array_equal(counted.full_kv_num_blocks, (sums == math.prod(size)).sum(-1))
    np.testing.assert_array_equal(
        counted.q_num_blocks + counted.full_q_num_blocks, (sums > 0).sum(-2)
    )
    np.testing.assert_array_equal(counted[:, 0, 1:].to_dense(), sums[:, :1, 1:] > 0)
    # fewer keys too, whose blocks PyTorch's list may name although they are gone
    cut = counted._adjust(int(lengths[0]), int(min(lengths[1], size[1])))
    np.testing.assert_array_equal(cut.to_dense(), sums[..., :1] > 0)
    columns_first = flex.BlockMask.from_kv_blocks(
        counted.q_num_blocks, counted.q_indices, counted.full_q_num_blocks, counted.full_q_indices
    )
    np.testing.assert_array_equal(columns_first.to_dense(), np.swapaxes(sums > 0, 2, 3))


# ---- tables

WAYS_TO_READ = {
    "index": lambda table, i, h: table[i, h],
    "index after index": lambda table, i, h: table[i][h],
    "select of a transposed": lambda table, i, h: table.T[h][i],
    "gather": lambda table, i, h: table.gather(0, i.long().expand(1, 2)).squeeze(0)[h],
    "take": lambda table, i, h: table.take((2 * i + h).long()),
    "index_select": lambda table, i, h: table.index_select(0, i[None])[0, h],
    "embedding": lambda table, i, h: jaxgrad.nn.functional.embedding(i, table)[h],
    "sum of a row": lambda table, i, h: table[i].sum() - table[i, 1 - h],
}


@pytest.mark.parametrize("read", WAYS_TO_READ.values(), ids=WAYS_TO_READ)
def test_derivatives_of_tables(read):
    """Of the first and the second order, of the bias that `computed` reads by two indices."""
    arrays, mask = case(heads=2)
    mask[:] = True
    along = directions(arrays)

    def ours_reading(query, key, value, table):
        keys = key.shape[2]

        def bias(score, b, h, i, j):
            return 3 * jaxgrad.tanh((score + read(table, i - j + keys - 1, h)) / 3)

        asked = AuxRequest(lse=True)
        result, aux = flex.flex_attention(
            query, key, value, bias, enable_gqa=True, return_aux=asked
        )
        return weighted((result, aux.lse))

    tensors = [jaxgrad.tensor(array, requires_grad=True) for array in arrays]
    loss = ours_reading(*tensors)
    gradients = jaxgrad.autograd.grad(loss, tensors, create_graph=True)
    total = sum((g * jaxgrad.tensor(d)).sum() for g, d in zip(gradients, along, strict=True))
    gradient = functools.partial(GRADIENT, mask=mask)
    expected = by_jax(jax.jvp, gradient, tuple(arrays), tuple(along))
    assert_close([g.detach() for g in gradients], expected[0])
    assert_close(jaxgrad.autograd.grad(total, tensors), expected[1])


# ---- memory, programs and state


def test_the_memory_of_a_long_call_grows_with_the_keys():
    """A gradient needs less memory than one array of all scores has."""
    length = 2**13
    shape = jax.ShapeDtypeStruct((1, 1, length, 8), jnp.float32)
    table = jax.ShapeDtypeStruct((2 * length,), jnp.float32)

    def loss(query, key, value, table):
        attend = flex.flex_attention
        bias = lambda s, b, h, i, j: s + table[i - j + length]  # noqa: E731
        blocks = jaxgrad.ones(1, 1, 1), jaxgrad.zeros(1, 1, 1, 1)
        lengths = (length, length)
        mask = flex.BlockMask.from_kv_blocks(*blocks, mask_mod=causal, seq_lengths=lengths)
        return attend(query, key, value, bias, mask).sum()

    gradient = jax.grad(jaxgrad.to_jax(loss), argnums=(0, 1, 2, 3))
    compiled = jax.jit(gradient).lower(shape, shape, shape, table).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 4 * length * length / 4


@pytest.mark.parametrize("run", [flex.flex_attention, jaxgrad.compile(flex.flex_attention)])
def test_functions_written_anew_share_a_program(run):
    tensors = three()

    def attend(factor):
        return run(*tensors, lambda s, b, h, i, j: s * factor)

    jaxgrad.compiler.reset()
    results = [attend(jaxgrad.tensor(n)) for n in (3.0, 4.0)]
    assert [shared.count for shared in shared_function._functions.all_values()] == [1]
    scaled = [flex.flex_attention(*tensors, scale=n / math.sqrt(3)) for n in (3.0, 4.0)]
    assert_close(results, scaled)


WIDTH = 2


def test_state_that_the_function_reads_may_change():
    """A number, a tensor written to, and an attribute: the next call sees what they are then."""
    global WIDTH
    tensors, bias = three(), jaxgrad.zeros(5)

    class Holder:
        factor = 1.0

        def score_mod(self, s, b, h, i, j):
            near = (i - j).abs() < WIDTH
            return jaxgrad.where(near, self.factor * s + bias[j], -math.inf)

    holder = Holder()

    def expected():
        q, k, v = map(np.asarray, tensors)
        scores = holder.factor * np.einsum("bhle,bhse->bhls", q, k) / math.sqrt(3) + bias.numpy()
        places = np.abs(np.arange(5)[:, None] - np.arange(5))
        scores = np.where(places < WIDTH, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return np.einsum("bhls,bhsv->bhlv", weights, v)

    def check():
        np.testing.assert_allclose(
            flex.flex_attention(*tensors, holder.score_mod), expected(), rtol=1e-6
        )

    try:
        check()
        WIDTH = 3
        check()
        bias[1] = 2.0
        check()
        holder.factor = -1.5
        check()
        bias = jaxgrad.ones(5) * jaxgrad.arange(5)
        check()
    finally:
        WIDTH = 2


def test_a_function_that_shows_something_runs_at_each_call(capsys):
    tensors = three()

    def shows(s, b, h, i, j):
        print("called")
        return s + 1.0

    expected = flex.flex_attention(*tensors)
    for _ in range(3):
        assert_close([flex.flex_attention(*tensors, shows)], [expected])
    assert capsys.readouterr().out.count("called") >= 3


def test_a_rule_of_the_users_own_in_the_function():
    class Doubled(jaxgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    q, k, v = (tensor.requires_grad_() for tensor in three())
    loss = flex.flex_attention(q, k, v, lambda s, b, h, i, j: Doubled.apply(s)).pow(2).sum()
    plain = flex.flex_attention(q, k, v).pow(2).sum()
    doubled = jaxgrad.autograd.grad(loss, [q, k, v])
    gradients = jaxgrad.autograd.grad(plain, [q, k, v])
    assert_close(doubled, [2 * gradients[0], 2 * gradients[1], gradients[2]])


@pytest.mark.parametrize(("queries", "keys", "batch"), [(0, 3, 2), (3, 0, 2), (3, 3, 0)])
def test_without_numbers(queries, keys, batch):
    tensors = three(queries=queries, keys=keys, batch=batch, of_batch=batch)
    tensors = [tensor.requires_grad_() for tensor in tensors]
    result, aux = flex.flex_attention(
        *tensors, lambda s, b, h, i, j: s + 1, return_aux=AuxRequest(True)
    )
    assert result.shape == (batch, 2, queries, 2)
    assert (result == 0).all() and (aux.lse == -math.inf).all()
    result.sum().backward()
    assert all((tensor.grad == 0).all() for tensor in tensors)


def test_autocast_and_dtypes():
    q, k, v = (tensor.float() for tensor in three())
    with jaxgrad.autocast("cpu", jaxgrad.bfloat16), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert flex.flex_attention(q, k, v, causal_score).dtype is jaxgrad.float32
    half = flex.flex_attention(q.half(), k.half(), v.half(), causal_score)
    assert half.dtype is jaxgrad.float16
    expected = flex.flex_attention(q, k, v, causal_score)
    np.testing.assert_allclose(half.float(), expected, atol=3e-3)


def causal_score(s, b, h, i, j):
    return jaxgrad.where(i >= j, s, -math.inf)
