"""The numbers of a new tensor stay with NumPy until they are read: no way of reading them shows."""

import copy
import io
import pickle
import threading

import jax
import numpy as np
import pytest
from helpers.modes import eager

import jaxgrad as torch
from jaxgrad.core import executor
from jaxgrad.core.host_values import is_new


@pytest.fixture(autouse=True)
def in_deferred_mode():
    with eager("deferred"):
        yield


def new_tensor(dtype=np.float32):
    """A new tensor and its numbers; what they were made of changes."""
    values = np.arange(6).astype(dtype).reshape(2, 3)
    x, wanted = torch.tensor(values), values.copy()
    values[:] = 0
    assert is_new(x._raw)
    return x, wanted


def saved(x):
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file)


def added(x):
    y = x.detach()
    y += 1
    return x


double = torch.jit(lambda x: x * 2)

USES = {
    "numbers": (lambda x: x, lambda v: v),
    "operator": (lambda x: x * 2, lambda v: v * 2),
    "two operators": (lambda x: (x + 1) * x, lambda v: (v + 1) * v),
    "compiled": (double, lambda v: v * 2),
    "compiled twice": (lambda x: double(x) + double(x), lambda v: v * 4),
    "compiled, then an operator": (lambda x: double(x) + x, lambda v: v * 3),
    "an operator, then compiled": (lambda x: double(x + 1) + x, lambda v: v * 3 + 2),
    "a view, compiled": (lambda x: double(x[1]), lambda v: v[1] * 2),
    "compiled with a view": (torch.jit(lambda x: x.t() + x[0, 0]), lambda v: v.T + v[0, 0]),
    "detach": (lambda x: double(x.detach()) + x, lambda v: v * 3),
    "a write to a view": (added, lambda v: v + 1),
    "donated": (torch.jit(lambda x: x * 2, donate=0), lambda v: v * 2),
    "copied": (lambda x: copy.deepcopy(x) + copy.copy(x), lambda v: v * 2),
    "pickled": (lambda x: pickle.loads(pickle.dumps(x)), lambda v: v),
    "saved": (saved, lambda v: v),
    "moved": (lambda x: x.to(x.device, torch.float64, copy=True), lambda v: v),
    "mapped": (torch.func.vmap(lambda row: row.sum()), lambda v: v.sum(1)),
    "verified": (torch.jit(lambda x: x * 2, verify=1), lambda v: v * 2),
    "stacked": (lambda x: torch.stack([x, x]), lambda v: np.stack([v, v])),
}


@pytest.mark.parametrize("use", USES)
def test_uses(use):
    function, wanted = USES[use]
    for _ in range(3):  # that which traces, that which is the first warm one, and another
        x, values = new_tensor()
        np.testing.assert_array_equal(function(x).numpy(), wanted(values))


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float64",
        "complex64",
        "complex128",
    ],
)
def test_dtypes(dtype):
    """Wide ones too, while JAX's are off."""
    large = torch.jit(lambda x: torch.stack([x, x]))
    for _ in range(3):
        x, values = new_tensor(dtype)
        result = large(x)
        assert result.dtype is x.dtype
        np.testing.assert_array_equal(result.numpy(), np.stack([values, values]))
    big = torch.tensor(2**40 + 1)
    assert torch.jit(lambda n: n + 1)(big).item() == 2**40 + 2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_narrow_dtypes(dtype):
    widened = torch.jit(lambda x: x.to(torch.float32) + 1)
    for _ in range(3):
        x = torch.tensor([0.5, -2.0, 0.0], dtype=dtype)
        assert is_new(x._raw) and widened(x).tolist() == [1.5, -1.0, 1.0]


def test_a_compiled_function_that_writes_to_its_argument():
    @torch.jit
    def write(x):
        x.mul_(3)

    for _ in range(3):
        x, values = new_tensor()
        y = x.detach()
        write(x)
        np.testing.assert_array_equal(x.numpy(), values * 3)
        np.testing.assert_array_equal(y.numpy(), values * 3)


@pytest.mark.slow
def test_gradients_through_a_compiled_function():
    weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    loss = torch.jit(lambda x: (x * weight).square().sum())
    for _ in range(3):
        (x, values), weight.grad = new_tensor(), None
        loss(x).backward()
        expected = 2 * (values**2 * weight.detach().numpy()).sum(0)
        np.testing.assert_allclose(weight.grad.numpy(), expected, rtol=1e-6)
        leaf = torch.tensor(values, requires_grad=True)
        loss(leaf).backward()
        np.testing.assert_allclose(leaf.grad.numpy(), 2 * values * weight.detach().numpy() ** 2)


def test_a_compiled_function_is_traced_once():
    twice = torch.jit(lambda x: x * 2)
    for _ in range(3):
        x, _ = new_tensor()
        assert twice(x) is not twice(x)
    assert twice.count == 1


def test_an_array_of_its_own_for_the_second_compiled_function(monkeypatch):
    """So that numbers go to a device once for all."""
    monkeypatch.setattr(executor, "chosen", "compiled")  # NumPy needs no array
    double = torch.jit(lambda x: x * 2)
    double(new_tensor()[0])
    x, _ = new_tensor()
    double(x)
    assert is_new(x._raw)
    double(x)
    assert not is_new(x._raw)
    array = x._array
    double(x)
    assert x._array is array


def test_in_a_trace_of_jax():
    """An array made within a trace is no part of it."""
    x, values = new_tensor()
    result = jax.jit(lambda a: a + x._array)(np.float32(1))
    np.testing.assert_array_equal(result, values + 1)
    np.testing.assert_array_equal((x + 1).numpy(), values + 1)


def test_guarded_transfers():
    """A guard of JAX against implicit transfers holds for nothing that the user did not do."""
    x, values = new_tensor()
    warm = torch.jit(lambda x: x * 2)
    warm(new_tensor()[0])
    with jax.transfer_guard("disallow"):
        np.testing.assert_array_equal(warm(x).numpy(), values * 2)


def test_two_threads():
    x, values = new_tensor()
    results = [None] * 8

    def read(number):
        results[number] = (x * number).numpy() if number % 2 else double(x).numpy() * number / 2

    threads = [threading.Thread(target=read, args=[n]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, result in enumerate(results):
        np.testing.assert_array_equal(result, values * number)


def test_another_default_device():
    """It is on the device that was the default one when it was made (tests/on_four_devices.py has
    several).
    """
    x, values = new_tensor()
    assert x.device == torch.device("cpu") and x.to("cpu") is x and is_new(x._raw)
    with jax.default_device(jax.devices()[0]):
        y = torch.tensor(values)
        assert not is_new(y._raw)
        np.testing.assert_array_equal((x + y).numpy(), values * 2)
