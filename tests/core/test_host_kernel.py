"""Kernels that the host runs: the bits of XLA's, of new arrays, until compiling pays off."""

import threading

import checks
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from modes import eager

import jaxgrad as torch
from jaxgrad.core import host_kernel
from jaxgrad.distributed.tensor import Shard, distribute_tensor

TINY = np.finfo(np.float32).tiny
# what NumPy and XLA may treat differently, and numbers around it
HOSTILE = [
    *(0.0, -0.0, 1.0, -1.0, 1.5, 3e-39, -1e-45, TINY, -TINY, 2 * TINY, 1e-20, -1e-19, 3e38, -3e38),
    *(np.inf, -np.inf, np.nan, 1 / 3, 2.0**24 + 1, -7.25),
]
USUAL = [0.0, 1.0, -1.0, 1.5, 1e-10, -1e10, np.inf, -np.inf, 1 / 3, 2.0**24 + 1, -7.25, 3e38, 5e-5]


def served(function, *arrays):
    """The result of a function on the host, and as XLA compiles it."""
    jaxpr = jax.make_jaxpr(function)(*arrays)
    assert host_kernel.serves(jaxpr)
    expected = jax.tree.leaves(jax.jit(function)(*arrays))
    return host_kernel.evaluate(jaxpr, arrays), [np.asarray(each) for each in expected]


def assert_same_bits(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert one.tobytes() == other.tobytes()
        checks.count("host kernels")


def matrix(numbers=HOSTILE, dtype=np.float32):
    return jnp.asarray(np.resize(np.asarray(numbers), (4, 5, 6)).astype(dtype))


MOVES = {
    "nothing": lambda x: x,
    "both": lambda x: (x, x),
    "copy": jnp.copy,
    "transpose": lambda x: x.transpose(2, 0, 1),
    "reshape": lambda x: x.transpose(1, 0, 2).reshape(6, 20),
    "flip": lambda x: jnp.flip(x, (0, 2)),
    "cut": lambda x: x[1:4:2, ::-1, 2:],
    "element": lambda x: x[1, 2, 3],
    "new axis": lambda x: x[:, None, :, None],
    "expand": lambda x: jnp.broadcast_to(x[:, :1], (3, 4, 5, 6)),
    "concatenate": lambda x: jnp.concatenate([x, x[:, :2]], 1),
    "stack": lambda x: jnp.stack([x, x], 1),
    "split": lambda x: jnp.split(x, [1, 4], 1),
    "pad": lambda x: jax.lax.pad(x, jnp.asarray(2, x.dtype), [(1, 0, 0), (0, 2, 1), (3, 1, 2)]),
    "pad nothing": lambda x: jax.lax.pad(
        x[:0], jnp.asarray(2, x.dtype), [(1, 0, 2), (0, 0, 0), (0, 0, 0)]
    ),
    "fill": lambda x: jnp.full_like(x, 3),
    "constant": lambda x: jnp.zeros((2, 3), x.dtype),
    "empty": lambda x: x[:, 2:2],
    "inner jit": lambda x: jax.jit(lambda y: y.T)(x)[0],
}
DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MOVES)
def test_moves_keep_all_bits(name, dtype):
    """Those of NaN and of numbers below the normal ones too."""
    numbers = USUAL if dtype == "bfloat16" else HOSTILE  # XLA moves it by single precision
    with jax.enable_x64(True):
        assert_same_bits(*served(MOVES[name], matrix(numbers, jnp.dtype(dtype))))


ROUNDINGS = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "sub": lambda x, y: x - y,
    "neg": lambda x, y: -x,
    "two products": lambda x, y: (x * y, y * x[:1]),
    "times a constant": lambda x, y: x * (1 / 3),
    "plus a constant": lambda x, y: x + 1.5,
    "from a constant": lambda x, y: 1 - x,
    "of moved": lambda x, y: (x.transpose(0, 2, 1) * y.transpose(0, 2, 1))[1],
    "less": lambda x, y: x < y,
    "compared": lambda x, y: (x >= 0.5, x == y, x != y, x <= y, x > y),
    "chosen": lambda x, y: jnp.where((x > y) & ~(y == 1.5), x, y),
    "relu": lambda x, y: jnp.maximum(x, 0),
    "clamped": lambda x, y: jnp.minimum(jnp.maximum(x, -0.5), 6.0),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ROUNDINGS)
def test_one_rounding_is_that_of_xla(name, dtype):
    with jax.enable_x64(dtype is np.float64):
        x, y = matrix(USUAL, dtype), matrix(USUAL[::-1] + [2.0], dtype)
        # inf - inf and inf * 0 are NaN, which is left to XLA
        is_usual = jnp.isfinite(x) & jnp.isfinite(x * y) & jnp.isfinite(x - y)
        x = jnp.where(is_usual | (name in ("relu", "clamped", "less", "compared")), x, 4.0)
        y = jnp.where(is_usual, y, -2.0)
        assert_same_bits(*served(ROUNDINGS[name], x.astype(dtype), y.astype(dtype)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("name", ["add", "mul", "two products", "of moved", "less", "relu"])
def test_integers_wrap_as_those_of_xla(name, dtype):
    with jax.enable_x64(True):
        numbers = np.random.default_rng(0).integers(-(2**62), 2**62, 120)
        x, y = (matrix(each, dtype) for each in (numbers, numbers[::-1] // 3))
        assert_same_bits(*served(ROUNDINGS[name], x, y))
        assert_same_bits(*served(lambda x, y: -(x * y + x) - y, x, y))


CASTS = [
    *[("float32", other) for other in ("float64", "float16", "bfloat16", "float32")],
    *[("float64", "float32"), ("float16", "float32"), ("bfloat16", "float32")],
    *[("int32", other) for other in ("int8", "int64", "uint8", "float32", "float64")],
    *[("int64", other) for other in ("int32", "uint8")],
    *[("bool", other) for other in ("int64", "float32", "uint8")],
    *[("uint8", other) for other in ("int8", "int64")],
]


@pytest.mark.parametrize(("before", "after"), CASTS)
def test_casts_are_those_of_xla(before, after):
    generator = np.random.default_rng(0)
    bits = generator.integers(-(2**31), 2**31, 20_000)
    numbers = (
        bits
        if before.startswith(("int", "uint"))
        else bits / 2.0 ** generator.integers(0, 40, bits.size)
    )
    with jax.enable_x64(True):
        numbers = jnp.asarray(numbers).astype(before)
        numbers = numbers[jnp.abs(numbers) > 1e-3] if before.startswith(("f", "bf")) else numbers
        numbers = numbers[jnp.abs(numbers) < 6e4] if "float16" in (before, after) else numbers
        assert_same_bits(*served(lambda x: x.astype(after), numbers))


@pytest.mark.parametrize("number", [3e-39, -1e-45, TINY, -TINY, np.nan])
def test_what_xla_may_flush_or_choose_is_left_to_it(number):
    unusual = jnp.asarray([1.0, number, 2.0], jnp.float32)
    usual = jnp.asarray([1.0, 0.0, 2.0], jnp.float32)
    for function in (
        jnp.add,
        jnp.multiply,
        jnp.subtract,
        jnp.greater,
        jnp.maximum,
        lambda x, y: -x,
        lambda x, y: x.astype(jnp.bfloat16),
    ):
        jaxpr = jax.make_jaxpr(function)(unusual, usual)
        assert host_kernel.serves(jaxpr)
        with pytest.raises(host_kernel._Refused):
            host_kernel.evaluate(jaxpr, [unusual, usual])
        checks.count("host kernels")
    # an underflow, inf - inf, and zeros: XLA may choose either
    for function, one, other in (
        (jnp.multiply, 1e-20, 1e-19),
        (jnp.subtract, np.inf, np.inf),
        (jnp.maximum, 0.0, -0.0),
        (jnp.minimum, -0.0, 0.0),
    ):
        pair = jnp.float32(one), jnp.float32(other)
        with pytest.raises(host_kernel._Refused):
            host_kernel.evaluate(jax.make_jaxpr(function)(*pair), pair)


REFUSED = {
    "fused": lambda x, y: x * y + x,
    "twice": lambda x, y: x + y + y,
    "constant 0": lambda x, y: x + jnp.zeros(()),
    "constant zeros": lambda x, y: x - jnp.zeros((4, 5, 6)),
    "sum": lambda x, y: x.sum(),
    "exp": lambda x, y: jnp.exp(x),
    "quotient": lambda x, y: x / y,
    "to integers": lambda x, y: x.astype(jnp.int32),
    "integers to half": lambda x, y: jnp.arange(3).astype(jnp.float16),
    "excess precision": lambda x, y: x.astype(jnp.bfloat16).astype(jnp.float32),
    "of what was filled up": lambda x, y: jnp.pad(x, 1) + jnp.pad(y, 1),
    "negative padding": lambda x, y: jax.lax.pad(x, 0.0, [(-1, 0, 0)] * 3),
    "half": lambda x, y: x.astype(jnp.float16) * 2,
    "weak": lambda x, y: 1.0,
    "random": lambda x, y: jax.random.bits(jax.random.key(0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_programs_that_xla_may_fuse_or_compute_otherwise_are_left_to_it(name):
    x = matrix()
    assert not host_kernel.serves(jax.make_jaxpr(REFUSED[name])(x, x))
    checks.count("host kernels")


# ---- as the kernels of operators


@pytest.fixture(params=["deferred", pytest.param("immediate", marks=pytest.mark.slow)])
def mode(request):
    with eager(request.param):
        yield


def tensors(*shape):
    generator = np.random.default_rng(0)
    return [torch.tensor(generator.standard_normal(shape).astype(np.float32)) for _ in range(2)]


@pytest.mark.slow
def test_new_shapes_of_moves_compile_nothing(compilations, mode):
    for size in range(2, 12):
        x, y = tensors(size, 6)
        x.requires_grad_()
        parts = torch.cat([x.t().reshape(-1), (x * y).flatten()]).view(2, -1).clone().chunk(2)
        assert parts[0].expand(3, *parts[0].shape).shape[0] == 3
        (parts[0].T * 2).backward(torch.ones(*parts[0].T.shape))
        y.fill_(size).copy_(x.detach()).zero_()
        assert x.grad.shape == (size, 6)
    assert compilations == []


@pytest.mark.slow
def test_what_comes_up_often_is_compiled(compilations, monkeypatch, mode):
    monkeypatch.setattr(host_kernel, "MOST", 20)
    x, _ = tensors(3, 4)
    results = [x.t().numpy() for _ in range(60)]
    assert 1 <= len(compilations) <= 2 and all((each == results[0]).all() for each in results)
    compilations.clear()
    # a result of 20 units' bytes at once
    torch.zeros(20 * host_kernel.BYTES // 4).clone().numpy()
    assert len(compilations) == 1


def pointer(tensor):
    return torch.to_jax(lambda: tensor)().unsafe_buffer_pointer()


@pytest.mark.slow
def test_results_share_no_memory_with_operands_or_each_other(mode):
    x, y = tensors(64, 64)
    y.copy_(x)
    made = [
        x,
        y,
        x.clone(),
        x.detach().clone(),
        torch.zeros(64, 64),
        torch.zeros(64, 64),
    ]
    made += [torch.zeros_like(x), torch.ones(64, 64).fill_(0), x.new_zeros(64, 64)]
    first, second = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    (first + second).backward()
    made += [first.grad, second.grad]
    assert len(set(map(pointer, made))) == len(made)


def test_donating_one_leaves_the_others(mode):
    x, _ = tensors(32, 32)
    copy, state = x.clone(), {"x": x.detach().clone()}
    expected = x.numpy().copy()
    doubled = jax.jit(lambda array: array * 2, donate_argnums=0)(torch.to_jax(lambda: copy)())
    assert (x.numpy() == expected).all() and (state["x"].numpy() == expected).all()
    np.testing.assert_array_equal(np.asarray(doubled), 2 * expected)


@pytest.mark.slow
def test_a_write_leaves_the_source(mode):
    x, y = tensors(8, 8)
    expected = x.numpy().copy()
    y.copy_(x)
    y.mul_(0).fill_(7)
    z = x.clone()
    z[0] = 3
    assert (x.numpy() == expected).all() and (y == 7).all() and (z[0] == 3).all()


@pytest.mark.parametrize("value", [0.0, -0.0, np.nan, np.inf, 3e-39, 1.5, 7, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "bool", "complex64"])
def test_fills_have_the_bits_of_numpy(value, dtype, mode):
    if not dtype.startswith(("float", "complex")) and not 1e-9 < abs(value) < 9:
        value = 0
    x = torch.ones(3, 4, dtype=getattr(torch, dtype))
    expected = np.full((3, 4), value).astype(jnp.dtype(dtype))
    for found in (
        x.clone().fill_(value),
        torch.full_like(x, value),
        torch.full((3, 4), value, dtype=x.dtype),
    ):
        array = np.asarray(torch.to_jax(lambda found=found: found)())
        assert (array.dtype, array.tobytes()) == (expected.dtype, expected.tobytes())
        checks.count("host kernels")


def test_strides_and_memory_formats_stay(mode):
    x = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert x.clone().stride() == torch.zeros_like(x).stride() == x.stride() == (60, 1, 15, 3)
    assert x.permute(0, 2, 3, 1).contiguous().stride() == (60, 15, 3, 1)


@pytest.mark.slow
def test_results_of_what_lies_on_a_mesh_lie_there_too(mode):
    mesh = torch.distributed.init_device_mesh("cpu", (1,))
    x = distribute_tensor(torch.ones(2, 3), mesh, [Shard(0)])
    for made in (x + 1, x.relu(), x * x, x.clone(), torch.cat([x, x])):
        assert made.placements == (Shard(0),)


@pytest.mark.slow
def test_calls_in_a_trace_of_jax_are_a_part_of_it(mode):
    x, y = tensors(3, 4)
    outside = x.t().numpy()

    def traced(array):
        return torch.to_jax(lambda z: (x.t(), z.t() * 2, torch.zeros_like(z)))(array)

    moved, doubled, zeros = jax.jit(traced)(y.numpy())
    assert (np.asarray(moved) == outside).all() and (np.asarray(doubled) == 2 * y.numpy().T).all()
    assert zeros.shape == (3, 4) and not zeros.any()
    mapped = jax.vmap(traced)(jnp.ones((5, 3, 4)))
    assert [each.shape for each in mapped] == [(5, 4, 3)] * 2 + [(5, 3, 4)]
    compiled = torch.jit(lambda z: (z.t() * y.t()).clone())(x)
    assert (compiled == x.t() * y.t()).all()


@pytest.mark.slow
def test_settings_that_look_at_results_are_heeded(mode):
    x = torch.tensor([1.0, float("nan")])
    assert x.clone().isnan().tolist() == [False, True]
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        x.flip(0).numpy()
    with jax.disable_jit():
        assert x.view(2, 1).shape == (2, 1)


@pytest.mark.slow
def test_an_interrupt_leaves_everything_right(monkeypatch, mode):
    x, _ = tensors(5, 7)
    evaluate = host_kernel.evaluate

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(host_kernel, "evaluate", interrupted)
    wide = jax.config.jax_enable_x64
    with pytest.raises(KeyboardInterrupt):
        (x.double().t() * 2.5).numpy()
    monkeypatch.setattr(host_kernel, "evaluate", evaluate)
    assert jax.config.jax_enable_x64 == wide
    np.testing.assert_array_equal((x.double().t() * 2.5).numpy(), x.numpy().astype(float).T * 2.5)


@pytest.mark.slow
def test_threads_may_call_one_program_at_once(monkeypatch, mode):
    monkeypatch.setattr(host_kernel, "MOST", 50)
    x, _ = tensors(6, 3)
    expected, wrong = x.numpy().T, []

    def work():
        for _ in range(50):
            if not (x.t().clone().numpy() == expected).all():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def steps(torch):
    """What several kinds of programs give, step by step."""
    x = torch.tensor(np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6), requires_grad=True)
    found = []
    for factor in (0.5, -1.25, 0.0):
        y = torch.where(x > 0.1, x * factor, -x).t().reshape(3, 8)
        z = torch.cat([y[:, :3], y.flip(1)[:, 2:]], 1).clamp(-1.5, 0.75)
        z = torch.stack([z, z.relu()]).permute(2, 0, 1).unbind(1)
        out = (z[0] + z[1]) * torch.ones_like(z[0])
        (grad,) = torch.autograd.grad(out, x, torch.full_like(out, 1.5), retain_graph=True)
        found += [y, out, grad]
    return [each.detach().numpy() for each in found]


@pytest.mark.slow
def test_a_program_of_all_kinds_has_the_bits_of_compiled_kernels(monkeypatch, mode):
    torch.compiler.reset()
    on_host = steps(torch)
    torch.compiler.reset()
    monkeypatch.setattr(host_kernel, "MOST", -1)
    assert_same_bits(on_host, steps(torch))
