"""Draws of the stream "jax" outside of traces are those of `jax.random`, whatever makes them, and
few programs make all shapes.
"""

import contextlib
import math
import threading
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import checks
from helpers.modes import eager
from scipy import special

import jaxgrad
from jaxgrad.core.host import error_function
from jaxgrad.frontend import array_creation, threefry

SEED = 2**40 + 7
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
# around the sizes of the programs that serve all shapes
SHAPES = [(), (0,), (1,), (3, 5, 7), (1024,), (1025,), (2, 0), (256, 256), (65537,), (300, 450)]


pytestmark = pytest.mark.usefixtures("jax_stream")


@pytest.fixture(autouse=True)
def wide_types():
    with jax.enable_x64(True):
        yield


def key_of(draw: int):
    """The key of a generator's draw: number of the draw and seed are 64 bits each."""
    seed, number = np.array([SEED, draw], np.uint64).view(np.uint32).reshape(2, 2)
    key = jax.random.wrap_key_data(jnp.asarray(seed), impl="threefry2x32")
    return jax.random.fold_in(jax.random.fold_in(key, number[0]), number[1])


def drawn(function, *args, before=0, **options):
    """What a function draws, as a NumPy array; `before` draws were taken."""
    generator = jaxgrad.Generator().manual_seed(SEED)
    generator.snapshot = SEED, before
    return array_of(function(*args, generator=generator, **options))


def array_of(tensor):
    return np.asarray(jaxgrad.to_jax(lambda: tensor)())


def assert_same_bits(numbers, expected):
    expected = np.asarray(expected)
    assert (numbers.shape, numbers.dtype) == (expected.shape, expected.dtype)
    assert numbers.tobytes() == expected.tobytes()
    checks.count("draws")


def assert_close(numbers, expected):
    """Of normal numbers, which two programs may round differently."""
    expected = np.asarray(expected)
    assert (numbers.shape, numbers.dtype) == (expected.shape, expected.dtype)
    wide = "complex128" if numbers.dtype.kind == "c" else "float64"
    tolerance = 4 * float(jnp.finfo(numbers.dtype).eps)
    np.testing.assert_allclose(numbers.astype(wide), expected.astype(wide), rtol=tolerance)
    checks.count("draws")


def normal(key, shape, dtype):
    """jax.random.normal, of half precision rounded once from single precision. In double precision
    by SciPy's inverse of the error function, which is right to rounding where XLA's is not.
    """
    if np.dtype(dtype).kind != "c":
        wide = jnp.promote_types(dtype, jnp.float32)
        if wide == jnp.float32:
            return jax.random.normal(key, shape, wide).astype(dtype)
        uniform = jax.random.uniform(key, shape, wide, np.nextafter(-1.0, 0.0), 1.0)
        return math.sqrt(2.0) * special.erfinv(np.asarray(uniform))
    # each part has half of the variance
    parts = np.asarray(normal(key, (*shape, 2), jnp.finfo(dtype).dtype)) * math.sqrt(0.5)
    return parts[..., 0] + 1j * parts[..., 1].astype(dtype)


def uniform(key, shape, dtype):
    if np.dtype(dtype).kind != "c":
        return jax.random.uniform(key, shape, dtype)
    parts = jax.random.uniform(key, (*shape, 2), jnp.finfo(dtype).dtype)
    return jax.lax.complex(parts[..., 0], parts[..., 1])


@pytest.mark.parametrize(
    "shape", [*SHAPES[:4], *(pytest.param(shape, marks=pytest.mark.slow) for shape in SHAPES[4:])]
)
@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_uniform_and_normal_numbers(shape, dtype):
    options = {"dtype": getattr(jaxgrad, dtype)}
    for function, oracle, before, check in (
        (jaxgrad.rand, uniform, 0, assert_same_bits),
        (jaxgrad.randn, normal, 2**33 + 5, assert_close),
    ):
        numbers = drawn(function, shape, before=before, **options)
        expected = oracle(key_of(before), shape, dtype)
        check(numbers, expected)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "bounds",
    [(0, 1), (-3, 200), (-(2**31), 2**31), (5, 2**33), (-(2**63), 2**63 - 1), (-9, 2**62 + 1)],
)
def test_integers(shape, bounds):
    expected = jax.random.randint(key_of(0), shape, *bounds, jnp.int64)
    assert_same_bits(drawn(jaxgrad.randint, *bounds, shape), expected)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "bfloat16", "float32"])
def test_integers_in_other_dtypes(dtype):
    bounds = (0, 251) if dtype == "uint8" else (-32000, 32001)
    expected = jax.random.randint(key_of(0), (70000,), *bounds, jnp.int64).astype(dtype)
    is_half = dtype in ("float16", "bfloat16")
    with pytest.warns(match="is out of bounds") if is_half else contextlib.nullcontext():
        numbers = drawn(jaxgrad.randint, *bounds, (70000,), dtype=getattr(jaxgrad, dtype))
    assert_same_bits(numbers, expected)


def test_random_orders():
    keys = jax.random.bits(key_of(0), (1000,), jnp.uint64)
    assert_same_bits(drawn(jaxgrad.randperm, 1000), np.argsort(keys, stable=True).astype(np.int64))


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_a_scaled_normal_draw_is_one_operator_after_the_other(dtype):
    """A program that fused the product and the sum would round once."""
    options = {"dtype": getattr(jaxgrad, dtype)}
    part = np.dtype(jnp.finfo(dtype).dtype)
    std, mean = np.asarray([1.7, 0.3], max(part, np.dtype(np.float32), key=lambda d: d.itemsize))
    numbers = drawn(jaxgrad.randn, 40, 50, **options)
    # the mean of complex numbers is that of both parts
    mean = mean.astype(part) * (1 + 1j) if dtype in COMPLEX else mean.astype(part)
    expected = jax.jit(jnp.add)(jax.jit(jnp.multiply)(numbers, std.astype(part)), mean)
    assert_same_bits(drawn(jaxgrad.zeros(40, 50, **options).normal_, 0.3, 1.7), expected)
    assert_same_bits(drawn(jaxgrad.normal, 0.3, 1.7, (40, 50), **options), expected)


FORMULAS = {
    "uniform_": ((-0.13, 0.77), lambda u, low, high: u * (high - low) + low),
    "cauchy_": ((0.5, 2.0), lambda u, median, sigma: median + sigma * np.tan(np.pi * (u - 0.5))),
    "exponential_": (
        (1.5,),
        lambda u, rate: -np.log1p(-np.maximum(u, np.finfo(float).eps / 4)) / rate,
    ),
    "geometric_": ((0.3,), lambda u, p: np.maximum(np.ceil(np.log1p(-u) / np.log1p(-p)), 1)),
}


@pytest.mark.parametrize("shape", [(0,), (7, 11), (1030,), (70000,)])
@pytest.mark.parametrize("name", FORMULAS)
def test_distributions_of_uniform_numbers(name, shape):
    """In double precision, by NumPy's formulas."""
    arguments, formula = FORMULAS[name]
    target = jaxgrad.zeros(shape, dtype=jaxgrad.float64)
    unit = np.asarray(jax.random.uniform(key_of(0), shape, jnp.float64))
    numbers = drawn(getattr(target, name), *arguments)
    np.testing.assert_allclose(numbers, formula(unit, *arguments), rtol=1e-11)
    checks.count("draws")


def draws():
    generator = jaxgrad.Generator().manual_seed(SEED)
    return [
        array_of(tensor)
        for tensor in (
            jaxgrad.rand(30, 40, generator=generator),
            jaxgrad.randn(30, 40, generator=generator),
            jaxgrad.zeros(30, 40).normal_(0.3, 1.7, generator=generator),
            jaxgrad.zeros(30, 40).uniform_(-0.1, 0.3, generator=generator),
            jaxgrad.zeros(30, 40).log_normal_(0.1, 0.3, generator=generator),
            jaxgrad.rand(30, 40, dtype=jaxgrad.complex64, generator=generator),
            jaxgrad.randint(3, 99, (30, 40), generator=generator),
            jaxgrad.randperm(99, generator=generator),
        )
    ]


@pytest.mark.slow
def test_a_program_of_its_own_gives_the_same_numbers(monkeypatch):
    """XLA and NumPy round formulas differently, such as that of normal numbers."""
    expected = draws()
    monkeypatch.setattr(array_creation, "FREQUENT", 0)
    for numbers, wanted in zip(draws(), expected, strict=True):
        if numbers.dtype == np.float32:
            np.testing.assert_allclose(numbers, wanted, rtol=5e-7, atol=1e-7)
        else:
            assert_same_bits(numbers, wanted)


def test_the_other_form_of_threefry_is_followed():
    """Its numbers depend on the size of a draw, which only programs of that size know."""
    with jax.threefry_partitionable(False):
        numbers = drawn(jaxgrad.rand, 5)
        assert_same_bits(numbers, jax.random.uniform(key_of(0), (5,), jnp.float32))
    assert numbers.tolist() != drawn(jaxgrad.rand, 5).tolist()


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("begin", [0, 1, 16383, 2**31 + 11, 2**32 - 40000])
def test_bits_from_any_element_on(begin, width):
    key = jax.random.key(SEED, impl="threefry2x32")
    words = jax.random.key_data(key).tolist()
    counters = jnp.arange(begin, begin + 40000, dtype=jnp.uint32)
    pairs = jax.extend.random.threefry_2x32(
        jnp.asarray(words, jnp.uint32), jnp.concatenate([jnp.zeros_like(counters), counters])
    )
    high, low = np.asarray(pairs, np.uint64).reshape(2, -1)
    expected = high << np.uint64(32) | low if width == 64 else (high ^ low).astype(f"uint{width}")
    assert_same_bits(threefry.bits(words, begin, 40000, width), expected)
    if not begin:
        assert_same_bits(
            threefry.bits(words, 0, 40000, width), jax.random.bits(key, (40000,), f"uint{width}")
        )


@pytest.mark.slow
def test_few_programs_serve_all_shapes(compilations, monkeypatch):
    # the shapes and numbers that this process drew before: programs are compiled for frequent ones
    monkeypatch.setattr(array_creation, "_requests", Counter())
    monkeypatch.setattr(threefry, "_drawn_by_numpy", 0)

    def all_shapes(sizes):
        for size in sizes:
            jaxgrad.rand(size, 5)
            jaxgrad.randn(size, 5)
            jaxgrad.randint(size, (size, 2))
            jaxgrad.normal(0.0, float(size), (size, 5))
            jaxgrad.randperm(size)

    all_shapes([1, 400])
    compilations.clear()
    all_shapes([*range(2, 12), 1000, 10_000, 20_000])
    assert compilations == []


@pytest.mark.slow
def test_draws_in_a_trace_are_those_outside():
    def both(x):
        return (
            x + jaxgrad.randn(40, 50),
            jaxgrad.empty(70).uniform_(2.0, 3.5),
            jaxgrad.randint(9, (50,)),
        )

    jaxgrad.manual_seed(SEED)
    expected = both(jaxgrad.zeros(()))
    jaxgrad.manual_seed(SEED)
    # normal numbers are those of the inverse of the error function in single precision, which
    # has an error of 46 units near its ends: XLA may round the square in it once less than NumPy
    bounds = (46 * np.finfo(np.float32).eps, 1e-6, 0)
    numbers = zip(jaxgrad.jit(both)(jaxgrad.zeros(())), expected, bounds, strict=True)
    for traced, untraced, bound in numbers:
        np.testing.assert_allclose(array_of(traced), array_of(untraced), rtol=bound)
        checks.count("draws")


@pytest.fixture
def computed(monkeypatch):
    """The numbers of elements of the draws that are computed."""
    counts, bits = [], threefry.bits

    def counted(key, begin, count, width):
        counts.append(count)
        return bits(key, begin, count, width)

    monkeypatch.setattr(threefry, "bits", counted)
    return counts


OVERWRITING = {
    "a second draw": lambda x, _: x.normal_(),
    "a draw by its data": lambda x, _: x.data.uniform_(2, 3),
    "a truncated draw": lambda x, _: jaxgrad.nn.init.trunc_normal_(x),
    "zeros": lambda x, _: x.zero_(),
    "a number": lambda x, _: x.fill_(1.5),
    "another tensor": lambda x, other: x.copy_(other),
    "another dtype": lambda x, other: x.copy_(other.double()),
    "other data": lambda x, other: setattr(x, "data", other),
}


@pytest.mark.parametrize("name", OVERWRITING)
def test_what_is_overwritten_is_not_drawn(name, computed):
    with eager("deferred,host"):
        layer = jaxgrad.nn.Linear(30, 50)
        assert not computed
        with jaxgrad.no_grad():
            OVERWRITING[name](layer.weight, jaxgrad.ones(50, 30))
        layer.weight.tolist()
        draws_again = "draw" in name
        assert sum(computed) == 1500 * draws_again
        if not draws_again:
            wanted = {"zeros": 0, "a number": 1.5}.get(name, 1)
            assert_same_bits(array_of(layer.weight.detach()), np.full((50, 30), wanted, "float32"))


def test_a_loaded_model_draws_nothing(computed):
    with eager("deferred,host"):
        model = jaxgrad.nn.Sequential(jaxgrad.nn.Linear(3, 4), jaxgrad.nn.Conv2d(4, 5, 3))
        state = {name: jaxgrad.ones(p.shape) for name, p in model.state_dict().items()}
        model.load_state_dict(state)
        assert all(p.detach().numpy().min() == 1 for p in model.parameters())
    assert not computed


def test_the_order_in_which_draws_are_read_does_not_matter(computed):
    first, second = (
        jaxgrad.rand(7, generator=jaxgrad.Generator().manual_seed(SEED)),
        jaxgrad.empty(9).uniform_(generator=jaxgrad.Generator().manual_seed(SEED)),
    )
    generator = jaxgrad.Generator().manual_seed(SEED)
    draws = [jaxgrad.rand(5, generator=generator) for _ in range(3)]
    generator.manual_seed(1)
    for number in (2, 0, 1):
        expected = jax.random.uniform(key_of(number), (5,), jnp.float32)
        assert_same_bits(draws[number].numpy(), expected)
    assert_same_bits(second.numpy(), jax.random.uniform(key_of(0), (9,), jnp.float32))
    assert_same_bits(first.numpy(), jax.random.uniform(key_of(0), (7,), jnp.float32))


def test_a_draw_that_is_first_read_in_a_trace():
    generator = jaxgrad.Generator().manual_seed(SEED)
    drawn, compiled = jaxgrad.rand(70000, generator=generator), jaxgrad.rand(6, generator=generator)
    numbers = jax.jit(lambda a: a + drawn._array)(np.float32(0))
    expected = jax.random.uniform(key_of(0), (70000,), jnp.float32)
    assert_same_bits(np.asarray(numbers), expected)
    assert_same_bits(drawn.numpy(), expected)
    expected = jax.random.uniform(key_of(1), (6,), jnp.float32)
    assert_same_bits(jaxgrad.jit(lambda: compiled * 2)().numpy(), np.asarray(expected) * 2)


def test_threads_that_read_one_draw():
    drawn = jaxgrad.randn(40, 500, generator=jaxgrad.Generator().manual_seed(SEED))
    results = [None] * 8

    def read(number):
        results[number] = (drawn * 1).numpy() if number % 2 else drawn.numpy()

    threads = [threading.Thread(target=read, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = normal(key_of(0), (40, 500), "float32")
    for numbers in results:
        assert_close(numbers, expected)


def test_a_draw_overwrites_values_and_history():
    x = jaxgrad.zeros(3, 4, requires_grad=True)
    y = x * 2
    view, version = y[1], y._version
    y.normal_(generator=jaxgrad.Generator().manual_seed(SEED))
    assert y._version > version and view.tolist() == y[1].tolist()
    (gradient,) = jaxgrad.autograd.grad(y.sum(), x)
    assert gradient.tolist() == [[0.0] * 4] * 3
    std = jaxgrad.ones(3, requires_grad=True)
    assert not jaxgrad.zeros(3).normal_(std=std).requires_grad
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.uniform_()
    part = jaxgrad.zeros(4, 6)
    part.t()[1:3].uniform_(2, 3)
    assert (part.numpy()[:, 1:3] >= 2).all() and part.sum(0).tolist()[0] == 0


@pytest.mark.parametrize("dtype", FLOATS)
def test_truncated_normal_numbers(dtype):
    """By inversion of the distribution function in double precision, of numbers in single one."""
    mean, std, low, high = 0.3, 1.7, -2.5, 3.0
    ends = [math.erf((bound - mean) / std / math.sqrt(2)) for bound in (low, high)]
    unit = np.asarray(jax.random.uniform(key_of(0), (40, 50), jnp.float32), np.float64)
    expected = special.erfinv(unit * (ends[1] - ends[0]) + ends[0]) * std * math.sqrt(2) + mean
    target = jaxgrad.zeros(40, 50, dtype=getattr(jaxgrad, dtype))
    numbers = drawn(jaxgrad.nn.init.trunc_normal_, target, mean, std, low, high)
    assert numbers.dtype == dtype
    eps = max(float(jnp.finfo(dtype).eps), float(np.finfo("float32").eps))
    wide = numbers.astype("float64")
    # where the density is small, rounding of the uniform number counts for more
    np.testing.assert_allclose(wide, expected, rtol=4 * eps, atol=12 * np.finfo("float32").eps)
    assert wide.min() >= low and wide.max() <= high
    checks.count("draws")


def test_truncated_normal_numbers_reach_the_bounds():
    """A uniform number of 0 is the lower end of the distribution, at minus infinity."""
    with np.errstate(divide="ignore"):
        low, high = error_function.erf_inv(np.array([-1, 1], np.float32))
    assert (low, high) == (-np.inf, np.inf)
    with pytest.raises(RuntimeError, match="range"):
        jaxgrad.nn.init.trunc_normal_(jaxgrad.empty(3), a=2.0, b=-2.0)


def forbidden_unless_empty(_key, _begin, drawn):
    assert not drawn.size


@pytest.mark.parametrize("width", [8, 16, 32])
def test_bits_of_the_program_for_large_draws(width, monkeypatch, compilations):
    """A compiled piece at a time, and the rest by NumPy: the same bits, in a trace too."""
    count = 2 * threefry.PIECE - 5
    key = jax.random.key(SEED, impl="threefry2x32")
    words = jax.random.key_data(key).tolist()
    expected = np.asarray(jax.random.bits(key, (count,), f"uint{width}"))
    by_numpy, last = np.empty(count, f"uint{width}"), 2**32 - count
    threefry._by_numpy(words, last, by_numpy)
    monkeypatch.setattr(threefry, "_drawn_by_numpy", threefry.BEFORE)
    with eager("deferred,host"):
        compilations.clear()
        assert_same_bits(threefry.bits(words, 0, count, width), expected)
        assert compilations == []
    with eager("deferred"), monkeypatch.context() as patch:
        patch.setattr(threefry, "_by_numpy", forbidden_unless_empty)
        assert_same_bits(threefry.bits(words, 0, count, width), expected)
        bits = jax.jit(lambda: jnp.asarray(threefry.bits(words, 7, count - 7, width)))()
        assert_same_bits(np.asarray(bits), expected[7:])
        assert_same_bits(threefry.bits(words, last, count, width), by_numpy)
