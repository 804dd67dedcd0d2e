"""Whatever comes in between a call, every tensor holds its value of before or of after.

`make oracle` has 10,000 interrupts (tests/oracle/live_interrupts.py).
"""

import itertools
import signal
import subprocess
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from helpers import interrupts

import jaxgrad as torch
from jaxgrad.compiled import first_run
from jaxgrad.core import deferred, executor


@pytest.mark.slow
@pytest.mark.parametrize("name", interrupts.JOBS)
def test_interrupts_at_random_moments(name):
    times = {"FirstCall": 15, "FirstCallOfTransform": 15, "Save": 40}.get(name, 150)
    interrupts.interrupt(interrupts.JOBS[name], times, seed=1)


@pytest.mark.parametrize("name", interrupts.JOBS)
def test_interrupts_leave_the_state_of_jax(name, monkeypatch):
    if name.startswith("FirstCall"):
        monkeypatch.setattr(executor, "chosen", "compiled")  # the host calls little of JAX
    moments = interrupts.interrupt_at_jax_state(interrupts.JOBS[name])
    assert moments >= {"FirstCall": 100, "FirstCallOfTransform": 30}.get(name, 0)


@pytest.mark.parametrize("mode", ["deferred", pytest.param("immediate", marks=pytest.mark.slow)])
def test_interrupts_of_first_calls_leave_no_broken_cache_of_jax(mode, monkeypatch):
    monkeypatch.setattr(deferred, "mode", mode)
    monkeypatch.setattr(executor, "chosen", "compiled")  # the host calls little of JAX
    x, count = np.linspace(0, 1, 21, dtype=np.float32).reshape(3, 7), itertools.count(0, 6)
    expected = np.exp(np.sin(x)).sum()
    for number in count:
        torch.compiler.reset()
        values, profile = torch.tensor(x), interrupts.InCacheOfJax(number)
        interrupts.at_moment(profile, lambda values: values.sin().exp().sum().item(), values)
        if not profile.has_raised:
            break
        assert values.sin().exp().sum().item() == pytest.approx(expected, rel=1e-6)
    assert number >= 12


def test_interrupts_between_donation_and_results(monkeypatch):
    """JAX runs Python code there whenever a call has arguments of a new kind."""
    monkeypatch.setattr(executor, "chosen", "compiled")
    device = jax.devices()[0]
    for number in itertools.count():
        w = torch.ones(3)

        @torch.jit
        def step(x, w=w):
            w.add_(x)

        step(torch.ones(3))
        x = torch.asarray(jax.device_put(np.full(3, 2, np.float32), device))
        profile = interrupts.AfterDeletion(number, w)
        interrupts.at_moment(profile, step, x)
        if not profile.has_raised:
            break
        assert w.tolist() == [4] * 3
    assert number >= 5


def test_a_signal_with_several_handlers_leaves_all_of_them():
    """A handler that raises while others are put back."""
    calls, numbers = [], (signal.SIGUSR1, signal.SIGUSR2)

    def handler(number, _):
        calls.append(number)
        raise KeyboardInterrupt

    for number in numbers:
        signal.signal(number, handler)
    for number in numbers:
        with pytest.raises(KeyboardInterrupt):
            first_run.run_whole(signal.raise_signal, number)
    assert calls == [*numbers]
    assert [*map(signal.getsignal, numbers)] == [handler, handler]


class Failing:
    """Makes the next run of a kernel fail, before it or after it."""

    def __init__(self, error, is_after: bool, name="step"):
        self.error, self.is_after, self.name = error, is_after, name

    def __call__(self, program, kernel, *arrays):
        if program.name != self.name or self.error is None:
            return kernel(*arrays)
        error, self.error = self.error, None
        if self.is_after:
            kernel(*arrays)
        raise error

    def __enter__(self):
        executor.observe(self)

    def __exit__(self, *error):
        executor.unobserve(self)


ERRORS = {
    "an interrupt": KeyboardInterrupt(),
    "no memory in Python": MemoryError(),
    "no memory on the device": RuntimeError("RESOURCE_EXHAUSTED: Out of memory"),
}


@pytest.mark.parametrize("is_after", [False, True], ids=["before the run", "after it"])
@pytest.mark.parametrize("what", ERRORS)
@pytest.mark.parametrize("is_first", [False, True], ids=["a later call", "the first call"])
def test_a_call_that_fails_has_changed_all_or_nothing(what, is_after, is_first):
    """The program takes the memory of the tensors that it overwrites."""
    w = torch.ones(3, requires_grad=True)
    shared = torch.zeros(2, 3)
    row, history = shared[0], []
    generator = torch.Generator().manual_seed(3)

    @torch.jit
    def step(x):
        w.grad = None
        (w * x).sum().backward()
        with torch.no_grad():
            w.sub_(w.grad)
            row.add_(x)
            torch.rand(1, generator=generator)
        history.append("called")

    x, calls = torch.full((3,), 2.0), 0
    if not is_first:
        step(x)
        calls = 1
    with Failing(ERRORS[what], is_after), pytest.raises(type(ERRORS[what])):
        step(x)
    calls += is_after

    def check():
        assert w.tolist() == [1.0 - 2.0 * calls] * 3
        assert row.tolist() == shared[0].tolist() == [2.0 * calls] * 3
        assert history == ["called"] * calls
        assert w._version == row._version == shared._version == calls
        drawn = torch.Generator().manual_seed(3)
        for _ in range(calls):
            torch.rand(1, generator=drawn)
        assert generator.get_state().tolist() == drawn.get_state().tolist()

    check()
    step(x)
    calls += 1
    check()


@pytest.mark.slow
@pytest.mark.unverified
def test_a_batch_too_large_for_memory_can_be_halved():
    """The program asks for its memory before it takes that of the parameters."""
    ran = subprocess.run([sys.executable, "-c", TOO_LARGE], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("refused")


TOO_LARGE = """
import os, resource
os.environ["JAX_PLATFORMS"] = "cpu"
import jaxgrad as torch

w = torch.full((64, 64), 0.01, requires_grad=True)
optimizer = torch.optim.Adam([w], lr=0.1)

@torch.jit
def step(x):
    optimizer.zero_grad()
    loss = ((x @ w).tanh() ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss.detach()

step(torch.ones(8, 64))
before, size, refused = w.tolist(), 2_000_000, 0
batch = torch.ones(size, 64)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 400 * 2**20, resource.RLIM_INFINITY))
while True:
    try:
        step(batch)
        break
    except RuntimeError as error:
        assert "RESOURCE_EXHAUSTED: Out of memory" in str(error), error
        assert w.tolist() == before
        size, refused = size // 2, refused + 1
        del batch
        batch = torch.ones(size, 64)
assert refused and w.tolist() != before
print("refused", refused)
"""


class FakeDevice:
    """A device that tells its memory, as accelerators do."""

    platform = "gpu"

    def __init__(self, limit, used):
        self.stats = {"bytes_limit": limit, "bytes_in_use": used}

    def memory_stats(self):
        return self.stats


def test_memory_that_a_device_tells():
    assert first_run.free_bytes(FakeDevice(100, 30)) == 70


class FakeArray:
    def __init__(self, device):
        self.sharding = SimpleNamespace(addressable_devices={device})


@pytest.mark.parametrize(("room", "outcome"), [(1000, "copied"), (130, "taken"), (110, "refused")])
def test_inputs_of_a_first_run(room, outcome, monkeypatch):
    """Copies where there is room for them; else the inputs, if the program alone fits."""
    sizes = SimpleNamespace(temp_size_in_bytes=100, output_size_in_bytes=60, alias_size_in_bytes=40)
    compiled = SimpleNamespace(memory_analysis=lambda: sizes)
    inputs = [FakeArray(FakeDevice(room, 0)), FakeArray(FakeDevice(room, 0))]
    monkeypatch.setattr(jax.numpy, "copy", lambda array: "a copy")

    def run():
        return first_run.inputs_of("step", compiled, inputs, [1])

    if outcome == "refused":
        with pytest.raises(jax.errors.JaxRuntimeError, match="120 bytes"):
            run()
        return
    assert run() == ([inputs[0], "a copy"] if outcome == "copied" else inputs)


def test_a_pass_that_lacks_memory_accumulates_nothing():
    """Of other errors, the gradients accumulated before stay, as in PyTorch."""
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    a.grad, b.grad = torch.ones(2), None

    def fail(gradient):
        raise MemoryError

    loss = (a * 3).sum() + (b * 2).sum()
    b.register_hook(fail)
    with pytest.raises(MemoryError):
        loss.backward()
    assert a.grad.tolist() == [1.0, 1.0] and b.grad is None
    np.testing.assert_array_equal(a.grad.numpy(), [1.0, 1.0])
