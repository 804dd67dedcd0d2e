"""What depends on the platform of the process: with that of a GPU forced, numbers are the same, and
names are PyTorch's for it.
"""

import ast
import pathlib
import sys
import warnings

import jax
import numpy
import pytest
from distributed.processes import printed

import jaxgrad
from jaxgrad import nn
from jaxgrad.core import deferred, device, host_kernel
from jaxgrad.distributed import device_mesh, process_group
from jaxgrad.frontend import array_creation, threefry
from jaxgrad.utils import checkpoint

CACHES = device.may_differ, host_kernel.has_one_cpu
ROOT = pathlib.Path(jaxgrad.__file__).parents[1]
# the functions that ask for the platform of the process, by the test that forces both answers
FORCED = {
    "test_random_numbers": {"_drawn", "_may_compile"},
    "test_steps": {"__init__", "may_differ", "has_one_cpu", "options_for"},
    "test_names": {"backend_name", "current_mesh", "get_device_type"},
    "test_warning": {"use_deterministic_algorithms"},
    "test_profiler": {"_available"},
    "test_steps_of_two_processes": {"compiled"},
}


@pytest.fixture
def on(monkeypatch):
    """Takes the branches of a platform, and calls a function."""

    def results(platform, function, test):
        callers = set()

        def default_backend():
            callers.add(sys._getframe(1).f_code.co_name)
            return platform

        with monkeypatch.context() as patch:
            patch.setattr(jax, "default_backend", default_backend)
            forget()
            value = function()
        assert callers >= FORCED[test]
        return value

    def forget():
        for cached in CACHES:
            cached.cache_clear()
        jaxgrad.compiler.reset()
        jax.clear_caches()

    yield results
    forget()


def functions_that_ask():
    """The names of the functions that call `jax.default_backend`."""
    names = set()
    for path in (ROOT / "jaxgrad").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if "jax.default_backend()" in source:
            names |= {
                node.name
                for node in ast.walk(ast.parse(source))
                if isinstance(node, ast.FunctionDef)
                and "jax.default_backend()" in "\n".join(map(ast.unparse, node.body))
            }
    return names


def test_every_function_that_asks_is_forced():
    assert functions_that_ask() == set().union(*FORCED.values())
    assert FORCED.keys() <= globals().keys()


def draws():
    """Numbers of JAX's stream, of sizes that NumPy draws and that XLA draws."""
    g = jaxgrad.Generator(stream="jax").manual_seed(3)
    tensors = [
        jaxgrad.rand(5, generator=g),
        jaxgrad.randn(3, 2, generator=g),
        jaxgrad.randperm(6, generator=g),
        jaxgrad.randint(0, 9, (4,), generator=g),
        jaxgrad.bernoulli(jaxgrad.full((6,), 0.5), generator=g),
        jaxgrad.rand(threefry.PIECE + 3, generator=g),
    ]
    return [tensor.numpy() for tensor in tensors]


def test_random_numbers(on, monkeypatch):
    monkeypatch.setattr(threefry, "BEFORE", 0)
    monkeypatch.setattr(array_creation, "FREQUENT", 0)
    on_cpu, on_gpu = (on(platform, draws, "test_random_numbers") for platform in ("cpu", "gpu"))
    for one, other in zip(on_cpu, on_gpu, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=1e-6)


def losses():
    """Of steps of a network, uncompiled and compiled."""
    jaxgrad.manual_seed(3)
    model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.Flatten(), nn.Dropout(0.3), nn.Linear(16, 2))
    optimizer = jaxgrad.optim.Adam(model.parameters())
    x, y = jaxgrad.randn(6, 2, 6), jaxgrad.arange(6) % 2

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    compiled = jaxgrad.compile(step)
    return [call().item() for call in (step, step, step, compiled, compiled)]


@pytest.mark.slow
def test_steps(on, monkeypatch):
    """Stretches of calls become one program at once, with barriers on CPUs alone."""
    monkeypatch.setattr(deferred, "REPEATS", 1)
    on_cpu, on_gpu = (on(platform, losses, "test_steps") for platform in ("cpu", "gpu"))
    assert on_gpu == pytest.approx(on_cpu, rel=1e-5)
    assert on_cpu[0] != on_cpu[1] != on_cpu[4]


def names():
    mesh = device_mesh.current_mesh(None)
    kind = checkpoint.DefaultDeviceType.get_device_type()
    return mesh.device_type, kind, process_group.backend_name()


@pytest.mark.parametrize(
    "platform, expected",
    [("cpu", ("cpu", "cpu", "gloo")), ("gpu", ("cuda", "cuda", "nccl")), ("tpu", ("tpu",) * 3)],
)
def test_names(platform, expected, on, monkeypatch):
    monkeypatch.setattr(checkpoint.DefaultDeviceType, "_default_device_type", None)
    monkeypatch.setitem(device.PLATFORMS, expected[0], ("cpu",))
    assert on(platform, names, "test_names") == expected


def test_warning(on, monkeypatch):
    """XLA chooses its algorithms before the program asks, and only for GPUs by their speed."""
    monkeypatch.setenv("XLA_FLAGS", "")

    def warned():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            jaxgrad.use_deterministic_algorithms(True)
            jaxgrad.use_deterministic_algorithms(False)
        return [str(warning.message) for warning in caught]

    assert on("cpu", warned, "test_warning") == []
    (message,) = on("gpu", warned, "test_warning")
    assert "XLA_FLAGS=--xla_gpu_deterministic_ops=true" in message
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")
    assert on("gpu", warned, "test_warning") == []


def test_profiler(on):
    def device_of_a_profile():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            profile = jaxgrad.autograd.profiler.profile(use_device="cuda")
        return profile.use_device, len(caught)

    assert on("cpu", device_of_a_profile, "test_profiler") == (None, 1)
    assert on("gpu", device_of_a_profile, "test_profiler") == ("cuda", 0)


@pytest.mark.slow
def test_steps_of_two_processes():
    """A compiled step over the devices of two processes takes its batch as values on CPUs, and as
    arrays elsewhere.
    """
    results = printed("on_other_platform.py", processes=2)
    on_cpu, on_gpu = results["cpu"], results["gpu"]
    assert on_gpu["losses"] == pytest.approx(on_cpu["losses"], rel=1e-6)
    assert on_cpu["losses"][0] > on_cpu["losses"][-1]
    assert "compiled" in on_cpu["callers"] and "compiled" in on_gpu["callers"]
