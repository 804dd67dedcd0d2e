"""Operators on a tensor and a number, whose calls after the first find their plan at once. The
oracle is NumPy, or a derivative in closed form.
"""

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad.ops.dispatch import Operator

NUMBERS = np.random.default_rng(0).uniform(0.5, 2.0, (3, 4))


@pytest.fixture
def general_calls(monkeypatch):
    """The names of the operators whose calls take the general path."""
    names, bind = [], Operator.bind

    def noting(self, args, kwargs):
        names.append(self.name)
        return bind(self, args, kwargs)

    # an operator that is made meanwhile would keep a replaced `general_call`
    monkeypatch.setattr(Operator, "bind", noting)
    return names


def tensor(**options):
    return torch.tensor(NUMBERS, **options)


@pytest.mark.parametrize("number", [0.3, 2.5, -7.125, float("inf"), float("nan"), 0.5, 2.0, 0.0])
@pytest.mark.parametrize(
    "compute",
    [
        lambda x, number: x * number,
        lambda x, number: x + number,
        lambda x, number: x / (number + 4.0),
        lambda x, number: x - number,
        lambda x, number: x**number,
        lambda x, number: x > number,
    ],
)
def test_a_float_has_the_numbers_of_numpy(compute, number):
    for _ in range(3):
        result = compute(tensor(), number)
    np.testing.assert_allclose(result, compute(NUMBERS, number), rtol=1e-14)


@pytest.mark.parametrize("number", [0.1, 0.2, 0.7])
def test_a_float_is_an_input_of_one_call(general_calls, number):
    x = tensor(requires_grad=True)
    (x * 0.9).sum().backward()
    general_calls.clear()
    (x * number).sum().backward()
    assert "mul" not in general_calls
    np.testing.assert_allclose(x.grad, np.full(NUMBERS.shape, 0.9 + number), rtol=1e-14)


def test_a_dim_finds_its_call(general_calls):
    x = tensor(requires_grad=True)
    for call, dim in enumerate((0, 1, -1, 0, 1, -1)):
        if call == 3:
            general_calls.clear()
        results = x.sum(dim), x.softmax(dim), x.unsqueeze(dim)
        exp = np.exp(NUMBERS)
        np.testing.assert_allclose(results[0].detach(), NUMBERS.sum(dim))
        np.testing.assert_allclose(results[1].detach(), exp / exp.sum(dim, keepdims=True))
        assert results[2].shape == np.expand_dims(NUMBERS, dim).shape
    assert general_calls == []
    (x.sum(1) ** 2).sum().backward()
    np.testing.assert_allclose(x.grad, np.broadcast_to(2 * NUMBERS.sum(1)[:, None], (3, 4)))


def test_an_int_and_a_bool_and_a_float_are_told_apart():
    x = torch.tensor([1, 5])
    for _ in range(2):
        assert (x * 2).dtype is torch.int64 and (x * 2.0).dtype is torch.float32
        assert (x * True).dtype is torch.int64 and (x * 7).tolist() == [7, 35]
        assert (x * 2.5).tolist() == [2.5, 12.5] and (x**2).tolist() == [1, 25]


def test_a_write_with_a_float(general_calls):
    x, expected = tensor(), NUMBERS.copy()
    base = torch.zeros(2, 3, 4, dtype=torch.float64)
    view = base[1]
    view.copy_(x)
    for number in (0.3, 0.7, 1.5):
        if number == 1.5:
            general_calls.clear()
        assert x.mul_(number) is x
        view.mul_(number)
        x.add_(number)
        expected = expected * number + number
    assert general_calls == []
    np.testing.assert_allclose(x, expected, rtol=1e-14)
    np.testing.assert_allclose(base[1], NUMBERS * 0.3 * 0.7 * 1.5, rtol=1e-14)
    assert x._version == 6 and base._version == 4


def test_a_write_with_a_float_is_recorded_and_refused():
    w = tensor(requires_grad=True)
    for number in (0.3, 0.4):
        w.grad = None
        y = w * w
        y.mul_(number)
        y.sum().backward()
        np.testing.assert_allclose(w.grad, 2 * number * NUMBERS, rtol=1e-14)
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            w.mul_(number)
    with torch.no_grad():
        w.mul_(0.3)
    np.testing.assert_allclose(w.detach(), NUMBERS * 0.3, rtol=1e-14)
    whole = torch.zeros(3, dtype=torch.int64)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="can't be cast"):
            whole.mul_(0.3)
    wide = torch.zeros(1, 3).expand(2, 3)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="more than one element"):
            wide.mul_(0.3)


def test_a_write_of_several_tensors_and_a_number():
    x, m, g = tensor(), tensor(), torch.tensor(NUMBERS[::-1].copy())
    first, second = NUMBERS.copy(), NUMBERS.copy()
    for factor in (0.1, 0.2, 0.3):
        m.lerp_(g, factor)
        x.addcmul_(g, m, value=factor)
        second = second + factor * (NUMBERS[::-1] - second)
        first = first + factor * NUMBERS[::-1] * second
    np.testing.assert_allclose(m, second, rtol=1e-13)
    np.testing.assert_allclose(x, first, rtol=1e-13)
    narrow = torch.ones(3, 4)
    narrow.addcmul_(torch.ones(3, 4), torch.ones(3, 4), value=0.25)
    assert narrow.dtype is torch.float32 and narrow[0, 0].item() == 1.25
    with pytest.raises(RuntimeError, match="broadcast shape"):
        torch.ones(1, 4).addcmul_(narrow, narrow, value=0.25)
