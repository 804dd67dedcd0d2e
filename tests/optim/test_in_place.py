"""Eager steps of large models: a compiled update takes the memory of what it replaces. Here every
model counts as large.
"""

import gc
import weakref

import numpy as np
import pytest

import jaxgrad
from jaxgrad.autograd import forward_ad
from jaxgrad.optim import fused_step

OPTIMIZERS = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"]


@pytest.fixture(autouse=True)
def every_model_is_large(monkeypatch):
    monkeypatch.setattr(fused_step, "MOST_BYTES_COPIED", 0)


def quadratic(size=1000):
    x = jaxgrad.linspace(-1, 1, size).requires_grad_()
    x.grad = 2 * x.detach()
    return x


def test_the_memory_of_parameters_and_state_stays_the_same():
    x = quadratic()
    optimizer, addresses = jaxgrad.optim.Adam([x], lr=0.1), []
    for _ in range(4):
        optimizer.step()
        state = optimizer.state[x]
        addresses.append(
            {tensor.data_ptr() for tensor in (x, state["exp_avg"], state["exp_avg_sq"])}
        )
    assert addresses[1] == addresses[2] == addresses[3] and len(addresses[3]) == 3
    assert x.data_ptr() in addresses[0]


def test_arrays_that_somebody_holds_keep_their_numbers():
    x = quadratic()
    optimizer = jaxgrad.optim.SGD([x], lr=0.25, momentum=0.5)
    expected, momentum = np.linspace(-1, 1, 1000, dtype=np.float32), 0
    gradient = 2 * expected
    for _ in range(3):
        array, copy, shown = x._array, x.detach().clone(), np.asarray(x._array)
        before = expected
        optimizer.step()
        momentum = 0.5 * momentum + gradient
        expected = expected - np.float32(0.25) * momentum
        for kept in (array, copy.numpy(), shown):
            np.testing.assert_allclose(np.asarray(kept), before, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(x.detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_saved_tensors_keep_their_numbers():
    x = quadratic(3)
    loss = (x**3).sum()
    jaxgrad.optim.SGD([x], lr=0.25).step()  # to x / 2
    x.grad = None
    loss.backward()
    assert x.grad.tolist() == [3, 0, 3]


@pytest.mark.parametrize("way", ["parameter", "flat"])
def test_parameters_that_share_memory(way):
    flat = jaxgrad.ones(6)
    x = flat[:3] if way == "flat" else jaxgrad.ones(3)
    view = x[1:] if way == "parameter" else flat
    x = jaxgrad.nn.Parameter(x)
    x.grad = jaxgrad.ones(3)
    optimizer = jaxgrad.optim.Adam([x], lr=0.5)
    for expected in (0.5, 0.0):
        optimizer.step()
        assert x.tolist() == pytest.approx([expected] * 3, abs=1e-6)
        assert view[:2].tolist() == pytest.approx([expected] * 2, abs=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_changes_between_steps_counts(name):
    """Rates, gradients that are missing, and parameters that are added or frozen."""

    def run(is_large):
        fused_step.MOST_BYTES_COPIED = 0 if is_large else 2**40
        x, y, z = (jaxgrad.tensor([v, -v], requires_grad=True) for v in (1.0, 2.0, 3.0))
        optimizer = getattr(jaxgrad.optim, name)([x, y], lr=0.1)
        for number in range(7):
            optimizer.zero_grad()
            loss = (x * x).sum() + (z * z).sum()
            (loss + (y.sin().sum() if number != 2 else 0)).backward()
            if number == 3:
                optimizer.param_groups[0]["lr"] = 0.03
            if number == 4:
                optimizer.add_param_group({"params": [z], "lr": 0.2})
            if number == 5:
                optimizer.load_state_dict(optimizer.state_dict())
            optimizer.step()
        return [tensor.tolist() for tensor in (x, y, z)]

    np.testing.assert_allclose(run(True), run(False), rtol=1e-6)


def test_an_error_changes_nothing():
    x = quadratic(3)
    optimizer = jaxgrad.optim.SGD([x], lr=0.25)
    optimizer.step()
    before = x.tolist()
    optimizer.param_groups[0]["lr"] = "fast"
    with pytest.raises((TypeError, ValueError)):
        optimizer.step()
    assert x.tolist() == before
    optimizer.param_groups[0]["lr"] = 0.25
    optimizer.step()
    assert np.allclose(x.tolist(), [0, 0, 0])


def test_tangents_go_through_a_step():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(jaxgrad.tensor(2.0), jaxgrad.tensor(1.0))
        x.grad = x * x
        jaxgrad.optim.SGD([x], lr=0.5).step()
        assert [part.item() for part in forward_ad.unpack_dual(x)] == [0, -1]


def test_a_closure_and_hooks_run():
    x, seen = quadratic(3), []
    optimizer = jaxgrad.optim.SGD([x], lr=0.25)
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append(x.tolist()))

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 2 and seen == ["before", [-0.5, 0, 0.5]]


@pytest.mark.slow
def test_an_optimizer_goes_with_its_tensors():
    x = quadratic()
    optimizer = jaxgrad.optim.Adam([x], lr=0.1)
    optimizer.step()
    optimizer.step()
    gone = weakref.ref(optimizer), weakref.ref(x)
    del optimizer, x
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
