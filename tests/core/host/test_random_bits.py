"""The host executor's random bits, which are those of JAX to the bit."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.host_rules_indexing import check_bits, check_refused
from jax import lax, random
from jax.extend.random import threefry_2x32

KEY = random.key(42)
KEYS = random.split(KEY, 6).reshape(2, 3)


@pytest.fixture(params=[True, False], ids=["partitionable", "original"], autouse=True)
def layout(request):
    with jax.threefry_partitionable(request.param):
        yield


# XLA takes long to compile the cipher
BITS = [
    ("uint32", (3, 5)),
    ("uint64", (7,)),
    ("uint16", (0,)),
    *[
        pytest.param(dtype, shape, marks=pytest.mark.slow)
        for dtype in ("uint8", "uint16", "uint32", "uint64")
        for shape in ((), (1,), (7,), (9001,))
    ],
]


@pytest.mark.parametrize(("dtype", "shape"), BITS)
def test_bits(shape, dtype):
    with jax.enable_x64(True):
        check_bits(lambda key: random.bits(key, shape, dtype), KEY)


@pytest.mark.slow
def test_bits_of_many_keys():
    check_bits(lambda keys: jax.vmap(jax.vmap(lambda key: random.bits(key, (3,))))(keys), KEYS)


@pytest.mark.parametrize("shape", [(2,), (3, 5), (), (0,)])
def test_split(shape):
    check_bits(lambda key: random.split(key, shape), KEY)
    check_bits(lambda keys: jax.vmap(lambda key: random.split(key, shape))(keys), KEYS[0])


@pytest.mark.parametrize("number", [0, 1, 2**31, 2**32 - 1])
def test_fold_in(number):
    number = numpy.uint32(number)
    check_bits(random.fold_in, KEY, number)
    check_bits(lambda keys, i: jax.vmap(random.fold_in, (0, None))(keys, i), KEYS[0], number)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("seed", [0, 5, -1, 2**40 + 3, -(2**63)])
def test_seeds(seed, dtype):
    with jax.enable_x64(True):
        seeds = numpy.array([seed, 7]).astype(dtype)
        check_bits(lambda s: jax.vmap(random.key)(s), seeds)
        check_bits(random.key, seeds[0])
        check_bits(random.PRNGKey, seeds[0])


def test_words_of_keys():
    check_bits(random.key_data, KEY)
    check_bits(random.key_data, KEYS)
    check_bits(random.wrap_key_data, numpy.asarray(random.key_data(KEYS)))
    check_bits(lambda words: random.bits(words, (5,)), numpy.array([7, 9], numpy.uint32))
    check_bits(random.clone, KEYS)


def test_words_with_steps_in_memory():
    words = numpy.arange(12, dtype=numpy.uint32).reshape(2, 6)
    check_bits(lambda w: random.wrap_key_data(w[::-1, ::3]), words)


MOVES = {
    "reshaped": lambda keys: keys.reshape(3, 2),
    "transposed": lambda keys: keys.T,
    "one": lambda keys: keys[1, 2],
    "sliced": lambda keys: keys[:, 1:],
    "broadcast": lambda keys: jnp.broadcast_to(keys[0], (4, 3)),
    "concatenated": lambda keys: jnp.concatenate([keys, keys]),
    "gathered": lambda keys: keys[:, jnp.array([2, 0, 0])],
    "stacked": lambda keys: jnp.stack([keys[0], keys[1]]),
    "expanded": lambda keys: keys[:, None],
    "written": lambda keys: keys.at[0].set(keys[1]),
    "scanned": lambda keys: lax.scan(lambda key, other: (other, key), keys[0], keys)[1],
}


@pytest.mark.parametrize("name", MOVES)
def test_moves_of_keys(name):
    check_bits(MOVES[name], KEYS)


def test_keys_among_constants():
    check_bits(lambda i: KEYS.at[i].get(mode="clip"), numpy.int32(1))


@pytest.mark.slow
def test_cipher():
    """The primitive itself, with one key and with many."""
    words = numpy.arange(8, dtype=numpy.uint32).reshape(4, 2) * 77

    def encrypted(words):
        return threefry_2x32((words[0], words[1]), jnp.arange(20, dtype=jnp.uint32))

    check_bits(encrypted, words[0])
    check_bits(jax.vmap(encrypted), words)


def test_other_kinds_are_refused():
    check_refused(lambda seed: random.key(seed, impl="rbg"), numpy.int32(1))
    check_refused(lambda key: random.bits(key, (3,)), random.key(1, impl="rbg"))
    check_refused(lambda words: lax.rng_bit_generator(words, (3,)), numpy.zeros(4, numpy.uint32))


@pytest.mark.slow
def test_permutation():
    check_bits(lambda key: random.permutation(key, 100), KEY)
