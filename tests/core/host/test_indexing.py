"""The host executor's rules of dynamic slices, gather and scatter."""

import itertools

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.host_rules_indexing import (
    bits_of,
    check_bits,
    check_close,
    check_refused,
    expected_of,
    results_of,
)
from jax import lax

RANDOM = numpy.random.default_rng(0)
CUBE = RANDOM.standard_normal((4, 5, 6)).astype(numpy.float32)
TABLE = CUBE[0]
# on both sides of the bounds of every dimension
PLACES = numpy.array([[0, 3], [-2, 9], [2, -7]], numpy.int32)

# ---- dynamic slices


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32"])
@pytest.mark.parametrize("start", [0, 1, 3, 100, -1, -100])
def test_dynamic_slices(dtype, start):
    start = numpy.array(start).astype(dtype)
    check_bits(lambda a, i: lax.dynamic_slice(a, (i, i), (2, 3)), TABLE, start)
    check_bits(lambda a, i: lax.dynamic_update_slice(a, -a[:2, :3], (i, i)), TABLE, start)


def test_dynamic_slices_of_everything():
    start = numpy.int32(3)
    check_bits(lambda a, i: lax.dynamic_slice(a, (i, i), a.shape), TABLE, start)
    check_bits(lambda a, b, i: lax.dynamic_update_slice(a, b, (i, i)), TABLE, TABLE + 1, start)
    check_bits(lambda a: lax.dynamic_slice(a, (), ()), numpy.float32(1))


# ---- gather

READS = {
    "one": lambda a, i: a[i[0, 0]],
    "one element": lambda a, i: a[i[0, 0], i[0, 1], 2],
    "rows": lambda a, i: a[i],
    "columns": lambda a, i: a[:, i],
    "last": lambda a, i: a[..., i],
    "two": lambda a, i: a[i, i[:, :1]],
    "two at the end": lambda a, i: a[:, i, i[:1]],
    "two apart": lambda a, i: a[i, :, i],
    "two apart with a slice": lambda a, i: a[i, 1:3, i],
    "three": lambda a, i: a[i, i, i],
    "new axis": lambda a, i: a[:, None, i],
    "taken": lambda a, i: jnp.take(a, i, 1),
    "taken from all": lambda a, i: jnp.take(a, i),
    "taken of one": lambda a, i: jnp.take(a, i[0, 0], 2),
    "along first": lambda a, i: jnp.take_along_axis(a[:3, :2, 0], i, 0),
    "along last": lambda a, i: jnp.take_along_axis(a[:3, :, 0], i, 1),
    "along middle": lambda a, i: jnp.take_along_axis(a, i[None, :, :1], 1),
    "of a batch": lambda a, i: jax.vmap(lambda b, j: b[j])(a[:3], i),
    "of a late batch": lambda a, i: jax.vmap(lambda b, j: b[j, :2], (1, 1), 1)(a[:, :2], i),
    "slices of a batch": lambda a, i: jax.vmap(
        lambda j: lax.dynamic_slice(a, (j, j, j), (2, 5, 1))
    )(i[:, 0]),
    "no rows": lambda a, i: a[i[:0]],
}
MODES = ["fill", "clip", "promise_in_bounds"]


@pytest.mark.parametrize("name", READS)
def test_gathers(name):
    check_bits(READS[name], CUBE, PLACES)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["rows", "two", "three"])
def test_modes_of_gathers(name, mode):
    index = {
        "rows": lambda a, i: a.at[i],
        "two": lambda a, i: a.at[i, i[:, :1]],
        "three": lambda a, i: a.at[i[0, 0], i, i],
    }[name]
    check_bits(lambda a, i: index(a, i).get(mode=mode, wrap_negative_indices=False), CUBE, PLACES)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "bfloat16", "float16", "complex64"])
@pytest.mark.parametrize("fill_value", [None, 1])
def test_fill_values(dtype, fill_value):
    array = jnp.asarray(TABLE).astype(dtype)
    check_bits(lambda a, i: a.at[i].get(mode="fill", fill_value=fill_value), array, PLACES)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
@pytest.mark.parametrize("mode", MODES)
def test_dtypes_of_indices(dtype, mode):
    with jax.enable_x64(True):
        index = numpy.array([[0], [3], [-1], [100]]).astype(dtype)
        numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
        check_bits(lambda a, i: lax.gather(a, i, numbers, (1, 6), mode=mode), TABLE, index)


def random_geometry(random):
    """An operand, indices, and what is needed to gather from one by the other."""
    rank = int(random.integers(1, 5))
    extents = random.integers(1, 5, rank)
    dims = random.permutation(rank)
    batched = sorted(dims[: random.integers(0, min(rank, 3))].tolist())
    rest = [d for d in range(rank) if d not in batched]
    mapped = random.permutation(rest)[: random.integers(0, len(rest) + 1)].tolist()
    sizes = [1 if d in batched else int(random.integers(1, extents[d] + 1)) for d in range(rank)]
    collapsed = [d for d in rest if sizes[d] == 1 and random.random() < 0.7]
    free = random.integers(1, 4, random.integers(0, 3)).tolist()
    batch = [*free, *[int(extents[d]) for d in batched]]
    order = random.permutation(len(batch))
    index_dims = [int(numpy.flatnonzero(order == len(free) + i)[0]) for i in range(len(batched))]
    shape = [batch[place] for place in order] + [len(mapped)]
    window = rank - len(collapsed) - len(batched)
    places = sorted(random.permutation(len(batch) + window)[:window].tolist())
    operand = random.standard_normal(extents).astype(numpy.float32)
    indices = random.integers(-2, 6, shape).astype(numpy.int32)
    parts = (*map(tuple, (places, collapsed, mapped, batched, index_dims)),)
    return operand, indices, parts, tuple(sizes)


@pytest.mark.parametrize("seed", range(60))
def test_random_gathers(seed):
    operand, indices, parts, sizes = random_geometry(numpy.random.default_rng(seed))
    numbers = lax.GatherDimensionNumbers(*parts)
    mode = MODES[seed % 3]
    check_bits(lambda a, i: lax.gather(a, i, numbers, sizes, mode=mode), operand, indices)


def test_gather_by_products_is_refused():
    numbers, mode = lax.GatherDimensionNumbers((1,), (0,), (0,)), lax.GatherScatterMode.ONE_HOT
    index = numpy.zeros((1, 1), numpy.int32)
    check_refused(lambda a, i: lax.gather(a, i, numbers, (1, 6), mode=mode), TABLE, index)


# ---- scatter

WRITES = {
    "one": lambda a, i: a.at[i[0, 0]],
    "one element": lambda a, i: a.at[i[0, 0], i[0, 1], 2],
    "rows": lambda a, i: a.at[i[:, 0]],
    "columns": lambda a, i: a.at[:, i[:, 0]],
    "last": lambda a, i: a.at[..., i[:, 0]],
    "two": lambda a, i: a.at[i[:, 0], i[:, 1]],
    "two apart": lambda a, i: a.at[i[:, 0], :, i[:, 1]],
    "three": lambda a, i: a.at[i[:, 0], i[:, 1], i[:, 0]],
    "a slice": lambda a, i: a.at[1:3, i[:, 0], 2:4],
    "none": lambda a, i: a.at[i[:0, 0]],
}


@pytest.mark.parametrize("mode", ["drop", "clip", "promise_in_bounds"])
@pytest.mark.parametrize("name", WRITES)
def test_scatters(name, mode):
    # no place is written twice, whether it is moved inside or not
    places = numpy.array([[1, 2], [2, 3], [-9, 1], [9, 0]], numpy.int32)
    values = jax.eval_shape(lambda a, i: WRITES[name](a, i).get(), CUBE, places).shape
    values = numpy.random.default_rng(1).standard_normal(values).astype(numpy.float32)

    def write(array, index, update):
        return WRITES[name](array, index).set(update, mode=mode, wrap_negative_indices=False)

    check_bits(write, CUBE, places, values)


METHODS = ["add", "subtract", "multiply", "min", "max"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", WRITES)
def test_scatters_that_combine(name, method):
    places = numpy.array([[1, 2], [3, 0], [1, 2], [-9, 1], [9, 0], [1, 2]], numpy.int32)
    values = jax.eval_shape(lambda a, i: WRITES[name](a, i).get(), CUBE, places).shape
    values = numpy.random.default_rng(1).standard_normal(values).astype(numpy.float32)

    def combine(array, index, update):
        return getattr(WRITES[name](array, index), method)(update)

    check_close(combine, CUBE, places, values, within=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["int8", "uint32", "float16", "bfloat16", "float32", "complex64"])
def test_dtypes_of_scatters_that_combine(method, dtype):
    array = jnp.asarray(TABLE * 2).astype(dtype)
    index, updates = numpy.array([1, 3, 1, 1], numpy.int32), array[::-1][:4] * 3

    def combine(array, updates):
        return getattr(array.at[index], method)(updates)

    if dtype == "complex64" and method in ("min", "max"):
        check_refused(combine, array, updates)
    elif dtype in ("int8", "uint32") or method in ("min", "max"):
        check_bits(combine, array, updates)
    else:
        # XLA rounds half precision after every update
        within = {"float16": 4e-3, "bfloat16": 4e-2}.get(dtype, 1e-6)
        check_close(combine, array, updates, within=within)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_rounded_once(dtype):
    # each addend alone is lost in 256
    updates = jnp.full((512,), 2.0**-4, dtype)
    array, index = jnp.full((2,), 256, dtype), numpy.zeros(512, numpy.int32)
    (result,) = results_of(lambda a, u: a.at[index].add(u), array, updates)
    numpy.testing.assert_array_equal(result.astype(numpy.float32), [288, 256])


def test_scatters_that_combine_bools():
    array, index = TABLE > 0, numpy.array([1, 1, 3], numpy.int32)
    check_bits(lambda a, u: a.at[index].max(u), array, ~array[:3])
    check_bits(lambda a, u: a.at[index].min(u), array, ~array[:3])


def test_nan_is_the_least_and_the_largest():
    updates = numpy.array([numpy.nan, 3, 1, numpy.nan], numpy.float32)
    array, index = numpy.arange(3, dtype=numpy.float32), numpy.array([0, 0, 1, 2], numpy.int32)
    check_bits(lambda a, u: a.at[index].max(u), array, updates)
    check_bits(lambda a, u: a.at[index].min(u), array, updates)


def test_large_windows():
    random = numpy.random.default_rng(2)
    index = random.integers(-12, 12, 20).astype(numpy.int32)
    array = random.standard_normal((9, 700)).astype(numpy.float32)
    updates = random.standard_normal((20, 700)).astype(numpy.float32)
    check_close(lambda a, i, u: a.at[i].add(u), array, index, updates, within=1e-5)
    check_close(lambda a, i, u: a.at[:, i].add(u.T), array.T, index, updates, within=1e-5)


def _has_no_index(indices) -> bool:
    """Several windows at the same place, of which XLA writes not all."""
    return indices.shape[-1] == 0 and indices.shape[:-1] != (1,) * (indices.ndim - 1)


@pytest.mark.parametrize("seed", range(60))
def test_random_scatters(seed):
    random = numpy.random.default_rng(seed)
    operand, indices, parts, sizes = random_geometry(random)
    gather = lax.GatherDimensionNumbers(*parts)
    numbers = lax.ScatterDimensionNumbers(*parts)
    shape = jax.eval_shape(lambda a, i: lax.gather(a, i, gather, sizes), operand, indices).shape
    updates = random.standard_normal(shape).astype(numpy.float32)
    combine = (lax.scatter_add, lax.scatter_mul, lax.scatter_max)[seed // 3 % 3]
    mode = ("drop", "clip", "promise_in_bounds")[seed % 3]

    def scatter(operand, indices, updates):
        return combine(operand, indices, updates, numbers, mode=mode)

    if _has_no_index(indices):
        check_refused(scatter, operand, indices, updates)
    else:
        check_close(scatter, operand, indices, updates, within=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_random_scatters_of_one_number(seed):
    """Of windows that overlap any may be the last, so that all updates are the same number."""
    operand, indices, parts, sizes = random_geometry(numpy.random.default_rng(seed))
    gather = lax.GatherDimensionNumbers(*parts)
    numbers = lax.ScatterDimensionNumbers(*parts)
    shape = jax.eval_shape(lambda a, i: lax.gather(a, i, gather, sizes), operand, indices).shape
    updates = numpy.full(shape, 7, numpy.float32)
    check = check_refused if _has_no_index(indices) else check_bits
    check(lambda a, i, u: lax.scatter(a, i, u, numbers), operand, indices, updates)


def test_scatter_apply():
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    index = numpy.array([[3], [9], [1]], numpy.int32)

    def function(element):
        return lax.reshape(lax.rev(lax.reshape(element, (1,)), (0,)), ())

    def scatter(array, index):
        return lax.scatter_apply(array, index, function, numbers, update_shape=(3, 6))

    check_bits(scatter, TABLE, index)


def test_operands_with_steps_in_memory():
    array = numpy.broadcast_to(TABLE[:, :1], (5, 6))[::-1]
    for read, index in itertools.product((READS["rows"], READS["two"]), (PLACES, PLACES[:, ::-1])):
        wanted = expected_of(read, TABLE, numpy.ascontiguousarray(index))
        (result,) = results_of(read, TABLE, index)
        numpy.testing.assert_array_equal(bits_of(result), bits_of(wanted[0]))
    check_bits(lambda a: lax.dynamic_slice(a, (1, 1), (2, 2)), array)
