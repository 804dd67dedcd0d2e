"""The host executor's rules of primitives that move elements."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.host_rules_indexing import check_bits, check_refused, results_of
from jax import lax

CUBE = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)
ROW = numpy.array([1.0, -0.0, numpy.nan], numpy.float32)
EMPTY = numpy.zeros((0, 3), numpy.float32)

MOVES = {
    "transposed": (lambda a: lax.transpose(a, (2, 0, 1)), CUBE),
    "transposed scalar": (lambda a: lax.transpose(a, ()), numpy.float32(2)),
    "reshaped": (lambda a: lax.reshape(a, (4, 6)), CUBE),
    "reshaped after a transposition": (lambda a: lax.reshape(a, (4, 6), (2, 0, 1)), CUBE),
    "reshaped from a scalar": (lambda a: lax.reshape(a, (1, 1)), numpy.float32(2)),
    "reshaped to a scalar": (lambda a: lax.reshape(a, ()), CUBE[:1, :1, :1]),
    "squeezed": (lambda a: lax.squeeze(a, (0, 2)), CUBE[:1, :, :1]),
    "expanded": (lambda a: lax.expand_dims(a, (0, 2)), ROW),
    "broadcast scalar": (lambda a: lax.broadcast(a, (2, 3)), numpy.float32(-0.0)),
    "broadcast row": (lambda a: lax.broadcast_in_dim(a, (3, 2), (0,)), ROW),
    "broadcast last": (lambda a: lax.broadcast_in_dim(a, (2, 3), (1,)), ROW),
    "broadcast to itself": (lambda a: lax.broadcast_in_dim(a, (1, 3, 1), (1,)), ROW),
    "broadcast one": (lambda a: lax.broadcast_in_dim(a, (2, 3, 5), (0, 1, 2)), CUBE[:, :, :1]),
    "broadcast of much": (lambda a: lax.broadcast_in_dim(a, (3, 5000), (0,)), ROW),
    "broadcast scalar to much": (lambda a: lax.broadcast(a, (5000,)), numpy.float32(3)),
    "broadcast to nothing": (lambda a: lax.broadcast(a, (0,)), ROW),
    "sliced": (lambda a: lax.slice(a, (0, 1, 1), (2, 3, 4)), CUBE),
    "sliced by steps": (lambda a: lax.slice(a, (0, 0, 1), (2, 3, 4), (1, 2, 2)), CUBE),
    "sliced to nothing": (lambda a: lax.slice(a, (0, 3, 0), (2, 3, 4)), CUBE),
    "split": (lambda a: lax.split(a, (1, 0, 3), 2), CUBE),
    "split in one": (lambda a: lax.split(a, (2,), 0), CUBE),
    "reversed": (lambda a: lax.rev(a, (0, 2)), CUBE),
    "concatenated": (lambda a: lax.concatenate([a, a[..., :0], a[..., :2]], a.ndim - 1), CUBE),
    "one concatenated": (lambda a: lax.concatenate([a], 1), CUBE),
    "stacked": (lambda a: jnp.stack([a, a, a], 1), CUBE),
    "stacked last": (lambda a: jnp.stack([a, a], -1), CUBE),
    "stacked scalars": (lambda a: jnp.stack([a, a]), numpy.float32(3)),
    "tiled": (lambda a: lax.tile(a, (2, 1, 3)), CUBE),
    "tiled to nothing": (lambda a: lax.tile(a, (0, 1, 3)), CUBE),
    "barrier": (lambda a: lax.optimization_barrier((a, a[0])), CUBE),
    "copied": (lambda a: jnp.copy(a), CUBE),
    "of no elements": (lambda a: lax.rev(lax.transpose(a, (1, 0)), (0, 1)), EMPTY),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name):
    check_bits(*MOVES[name])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", ["broadcast scalar", "tiled", "stacked scalars", "concatenated"])
def test_dtypes_of_moves(name, dtype):
    function, array = MOVES[name]
    check_bits(function, jnp.asarray(array).astype(dtype))


@pytest.mark.parametrize(
    "config",
    [
        (1, 2, 0),
        (0, 0, 2),
        (-1, -1, 0),
        (-4, 1, 0),
        (1, -4, 0),
        (-9, 12, 0),
        (12, -9, 0),
        (-2, 3, 1),
        (-3, -3, 2),
        (2, -12, 3),
        (-1, 0, 1),
        (0, -5, 0),
        (-5, 5, 1),
    ],
)
def test_pad(config):
    check_bits(lambda a, b: lax.pad(a, b, [config]), numpy.arange(5), numpy.array(-7))


def test_random_pads():
    random = numpy.random.default_rng(0)
    for _ in range(5):
        extents = random.integers(0, 5, 3)
        configs = [(*random.integers(-2, 4, 2).tolist(), int(random.integers(0, 3))) for _ in "abc"]
        sizes = [
            n + low + high + max(n - 1, 0) * gap
            for n, (low, high, gap) in zip(extents, configs, strict=True)
        ]
        if min(sizes) >= 0:
            array = random.standard_normal(extents).astype(numpy.float32)
            check_bits(lambda a, configs=configs: lax.pad(a, jnp.float32(2), configs), array)


def test_platform_is_cpu():
    def function(array):
        return lax.platform_dependent(
            array, cuda=lambda a: a[2:], cpu=lambda a: a[1:2], default=lambda a: a[:1]
        )

    numpy.testing.assert_array_equal(*results_of(function, ROW), ROW[1:2])


def test_platform_by_default():
    def function(array):
        return lax.platform_dependent(array, cuda=lambda a: a[1:], default=lambda a: a[:2])

    numpy.testing.assert_array_equal(*results_of(function, ROW), ROW[:2])


def test_device_put_to_a_device_is_refused():
    device = jax.devices()[0]
    check_refused(lambda a: jax.device_put(a, device), ROW)
