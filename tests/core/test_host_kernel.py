"""The first calls of kernels, which the host executor makes (core/host_kernel.py)."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import checks
from helpers.modes import eager

import jaxgrad as torch
from jaxgrad.core import executor, host_kernel
from jaxgrad.core.host import cost
from jaxgrad.core.host.block import Block
from jaxgrad.distributed.tensor import Shard, distribute_tensor


def assert_close(results, expected):
    for result, wanted in zip(results, expected, strict=True):
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
        checks.count("host kernels")


# ---- the model of cost


def test_a_program_that_xla_would_not_run_faster_is_never_compiled():
    assert cost.turns(host=10.0, saved=-1.0, compile=1e4) == (np.inf, np.inf)


def test_a_compilation_begins_when_it_has_paid_off_and_ends_as_many_calls_later_as_it_takes():
    assert cost.turns(host=50.0, saved=20.0, compile=1e4) == (500, 700)


CONVOLUTIONS = {  # the shape of the weight, groups, dtype, and whether XLA saves time
    "3x3": ((16, 8, 3, 3), 1, "float32", True),
    "1x1": ((16, 8, 1, 1), 1, "float32", False),
    "depthwise": ((8, 1, 3, 3), 8, "float32", True),
    "depthwise in half precision": ((8, 1, 3, 3), 8, "bfloat16", False),
    "grouped": ((16, 4, 3, 3), 2, "float32", False),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_that_xla_saves_time_of(name):
    shape, groups, dtype, is_faster = CONVOLUTIONS[name]

    def convolve(source, weight):
        return jax.lax.conv_general_dilated(
            source, weight, (1, 1), "SAME", feature_group_count=groups
        )

    arrays = jnp.ones((8, 8, 64, 64), dtype), jnp.ones(shape, dtype)
    programs = {convolve: arrays}
    if groups > 1:  # the gradient of the weight has groups of the batch
        of_weight = jax.linear_transpose(lambda weight: convolve(arrays[0], weight), arrays[1])
        programs[of_weight] = (convolve(*arrays),)
    for program, operands in programs.items():
        saved = cost.Cost(Block(jax.make_jaxpr(program)(*operands))).saved
        # what else the program has are reshapes and transposes
        assert (saved > 100) == is_faster, saved


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


@pytest.fixture
def soon(monkeypatch):
    """XLA begins to compile a kernel after 5 calls, and takes over after 8."""
    monkeypatch.setattr(cost, "turns", lambda *_: (5, 8))


def kernel_of(tensor):
    """The kernel of `t()` for a tensor."""
    return torch.t.operator.plans[tensor._aval,].call.compact.kernel.host


@pytest.mark.slow
def test_xla_takes_over_after_a_fixed_number_of_calls(compilations, soon, mode):
    x, _ = tensors(3, 4)
    for count in range(1, 12):
        assert (x.t().numpy() == x.numpy().T).all()
        kernel = kernel_of(x)
        assert kernel.calls == count if count <= 8 else kernel is None
    assert len(compilations) == 1


def test_the_takeover_waits_for_the_compilation(soon, monkeypatch):
    waits = []
    monkeypatch.setattr(executor, "in_background", lambda compile: lambda: waits.append(compile()))
    x, _ = tensors(3, 5)
    for _ in range(8):
        x.t().numpy()
    assert not waits
    x.t().numpy()
    assert len(waits) == 1


@pytest.mark.parametrize("executor", ["host", "compiled"])
def test_one_executor_alone(executor, soon, compilations):
    with eager(f"immediate,{executor}"):
        x, _ = tensors(3, 7)
        for _ in range(12):
            assert (x.t().numpy() == x.numpy().T).all()
    assert len(compilations) == (executor == "compiled")


def test_an_unknown_executor_is_refused_and_nothing_changes():
    chosen = executor.chosen
    for words in ("gpu", "host,compiled", "deferred,immediate", "host,", ""):
        with pytest.raises(ValueError, match="is not one of"):
            torch.set_eager(words)
        assert executor.chosen == chosen


def pointer(tensor):
    return torch.to_jax(lambda: tensor)().unsafe_buffer_pointer()


@pytest.mark.slow
def test_results_share_no_memory_with_operands_or_each_other(mode):
    x, y = tensors(64, 64)
    y.copy_(x)
    results = [
        x,
        y,
        x.clone(),
        x.detach().clone(),
        torch.zeros(64, 64),
        torch.zeros(64, 64),
    ]
    results += [torch.zeros_like(x), torch.ones(64, 64).fill_(0), x.new_zeros(64, 64)]
    first, second = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    (first + second).backward()
    results += [first.grad, second.grad]
    assert len(set(map(pointer, results))) == len(results)


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
    for tensor in (
        x.clone().fill_(value),
        torch.full_like(x, value),
        torch.full((3, 4), value, dtype=x.dtype),
    ):
        array = np.asarray(torch.to_jax(lambda tensor=tensor: tensor)())
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
    for result in (x + 1, x.relu(), x * x, x.clone(), torch.cat([x, x])):
        assert result.placements == (Shard(0),)


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
    assert [array.shape for array in mapped] == [(5, 4, 3)] * 2 + [(5, 3, 4)]
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

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(host_kernel, "owned_apart", interrupted)
    wide = jax.config.jax_enable_x64
    with pytest.raises(KeyboardInterrupt):
        (x.double().t() * 2.5).numpy()
    monkeypatch.undo()
    assert jax.config.jax_enable_x64 == wide
    np.testing.assert_array_equal((x.double().t() * 2.5).numpy(), x.numpy().astype(float).T * 2.5)


@pytest.mark.slow
def test_threads_may_call_one_program_at_once(monkeypatch, mode):
    monkeypatch.setattr(cost, "turns", lambda *_: (20, 40))
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
    results = []
    for factor in (0.5, -1.25, 0.0):
        y = torch.where(x > 0.1, x * factor, -x).t().reshape(3, 8)
        z = torch.cat([y[:, :3], y.flip(1)[:, 2:]], 1).clamp(-1.5, 0.75)
        z = torch.stack([z, z.relu()]).permute(2, 0, 1).unbind(1)
        out = (z[0] + z[1]) * torch.ones_like(z[0])
        (grad,) = torch.autograd.grad(out, x, torch.full_like(out, 1.5), retain_graph=True)
        results += [y, out, grad]
    return [result.detach().numpy() for result in results]


@pytest.mark.slow
def test_a_program_of_all_kinds_has_the_numbers_of_compiled_kernels(mode):
    torch.compiler.reset()
    on_host = steps(torch)
    torch.compiler.reset()
    with eager("compiled"):
        assert_close(on_host, steps(torch))


def test_numbers_that_are_known_before_a_call_are_computed_without_a_warning():
    """pytest makes an error of NumPy's warning."""

    def mean_of_nothing(source):
        return source * (jnp.sum(jnp.zeros(0)) / jnp.zeros(()))

    (value,) = Block(jax.make_jaxpr(mean_of_nothing)(1.0)).function(np.float32(2))
    assert np.isnan(value)
