"""Numbers that vary from call to call give what they give uncompiled, errors included."""

import collections
import math
from types import SimpleNamespace

import pytest

import jaxgrad as torch
from jaxgrad import nn

# what is computed of a number, its values at the calls, and how many traces there are at most
CASES = {
    "sum": (lambda n: n + n * 3 - 1, [1, 2, 3, 4], 2),
    "schedule": (lambda n: 0.5 / (1 + n), [1, 2, 3, 4], 2),
    "decay": (lambda n: 0.5**n, [1, 2, 3, -4], 2),
    "comparison": (lambda n: (n > 2) * 1.0, [1, 2, 3, 4], 4),
    "kind by isinstance": (lambda n: 2 if isinstance(n, int) else 3, [1, 2, 3.5, 4.5], 4),
    "other kind": (lambda n: 2 if isinstance(n, float) else 3, [1.5, 2.5, 3], 3),
    "format": (lambda n: len(f"{n}"), [1, 22, 333], 3),
    "text": (lambda n: len(str(n)), [1, 22, 333], 3),
    "text of a list": (lambda n: len(repr([n])), [1, 22, 333], 3),
    "item of a dict": (lambda n: {1: 2.0}.get(n, 5.0), [1, 2, 1, 4], 4),
    "power that is a float": (lambda n: 2**n, [1, 2, -1, -2, 5], 5),
    "power that is complex": (lambda n: abs((-8) ** n), [2.0, 3.0, 0.5, 1.5], 4),
    "power that is too large": (lambda n: 2 ** (n * 10) % 7, [1, 2, 8, 3], 4),
    "product that is too large": (lambda n: n * 3 // 5, [1, 2, 2**62, 4], 4),
    "division by zero": (lambda n: 1 / n, [1, 2, 0, 4], 4),
    "floor division by zero": (lambda n: 7 // n, [1, 2, -3, 0], 4),
    "remainder of zero": (lambda n: 7 % n, [2.5, -3.0, 0.0], 3),
    "function of C": (math.cos, [1, 2, 3], 3),
    "choice": (lambda n: max(n, 2), [1, 2, 3], 3),
}


def result_of(function, x, n):
    try:
        return function(x, n).item()
    except (ArithmeticError, TypeError) as error:
        return type(error).__name__


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_python(name):
    compute, values, most = CASES[name]

    def function(x, n):
        return x * compute(n)

    compiled, x = torch.jit(function), torch.ones((), dtype=torch.float64)
    for n in values:
        result, expected = result_of(compiled, x, n), result_of(function, x, n)
        is_number = isinstance(expected, float)
        assert result == (pytest.approx(expected, rel=1e-14) if is_number else expected)
    assert compiled.count <= most, compiled.explain()


class Holder:
    def __init__(self, count):
        self.count, self.kept = count, None


@pytest.mark.parametrize(
    "make", [Holder, lambda n: collections.deque([n]), lambda n: lambda: n, lambda n: [(n, {n})]]
)
def test_no_number_of_a_trace_is_kept(make):
    """Objects that the function makes of a counter, and keeps or returns."""
    holder = Holder(0)

    def count(x):
        holder.count += 1
        holder.kept = make(holder.count)
        return make(holder.count * 2)

    def shown(value):
        if isinstance(value, Holder):
            return value.count
        return value() if callable(value) else repr(value)

    compiled = torch.jit(count)
    for n in range(1, 5):
        result = compiled(torch.ones(1))
        assert (shown(result), shown(holder.kept)) == (shown(make(n * 2)), shown(make(n)))


def test_a_flag_computed_of_a_number_is_a_bool():
    module, weight = nn.Dropout(), torch.ones(2, requires_grad=True)

    @torch.jit
    def step(x, n):
        module.training = n > 1
        weight.requires_grad_(n > 2)
        return x

    for n in (1, 2, 3, 1):
        step(torch.ones(2), n)
        assert module.training is (n > 1) and weight.requires_grad is (n > 2)


def test_an_object_whose_counter_varies_is_replaced():
    holder = Holder(None)

    def count(x):
        holder.kept.count += 1
        return x * holder.kept.count

    holder.kept, compiled = Holder(0), torch.jit(count)
    assert [compiled(torch.ones(())).item() for _ in range(3)] == [1, 2, 3]
    holder.kept = Holder(5)
    assert [compiled(torch.ones(())).item() for _ in range(3)] == [6, 7, 8]


def test_a_counter_that_is_divided_by():
    """The division fails at the third call, and leaves the counter as it was."""

    class Countdown:
        n = 3

        def __call__(self, x):
            self.n -= 1
            return x / self.n + 1 / self.n

    one, other = Countdown(), Countdown()
    compiled, x = torch.jit(one), torch.ones((), dtype=torch.float64)
    for _ in range(2):
        assert compiled(x).item() == other(x).item()
    with pytest.raises(ZeroDivisionError):
        compiled(x)
    assert one.n == 1


@pytest.mark.slow
def test_a_second_trace_finds_the_graph_of_an_argument_whole():
    """The first trace with `count` as an input runs a pass through that graph, and comes to nothing
    at the `if`.
    """

    def run(jit):
        weight, holder = torch.tensor([1.0, 2.0], requires_grad=True), SimpleNamespace(count=0)

        def step(x):
            (x * weight).sum().backward()
            holder.count += 1
            return x.detach() * (2 if holder.count > 2 else 1)

        step, results = jit(step), []
        for _ in range(4):
            results.append(step(weight.square()).tolist())
        return results, weight.grad.tolist()

    assert run(torch.jit) == run(lambda step: step)


def test_an_error_leaves_the_graph_of_an_argument_whole():
    """By hand: the gradient of sin(3 x)."""
    weight = torch.tensor([1.0, 2.0], requires_grad=True)

    @torch.jit
    def step(x):
        x.sum().backward()
        raise KeyError("mine")

    x = (weight * 3).sin()
    with pytest.raises(KeyError, match="mine"):
        step(x)
    x.sum().backward()
    expected = [3 * math.cos(3), 3 * math.cos(6)]
    assert weight.grad.tolist() == pytest.approx(expected)


def test_second_derivative_with_two_numbers_that_are_read():
    """That of p x^3 + q x^2 is 6 p x + 2 q."""
    read = torch.tracing.number

    def function(x):
        return (read(lambda: values["p"]) * x**3 + read(lambda: values["q"]) * x**2).sum()

    compiled = torch.jit(function)
    for p, q in [(2.0, 3.0), (5.0, -1.0)]:
        values = {"p": p, "q": q}
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        (first,) = torch.autograd.grad(compiled(x), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        assert second.tolist() == [6 * p + 2 * q, 12 * p + 2 * q]


def test_one_of_two_gradients_beside_numbers_that_are_read():
    """The Function makes one pass of both results; that of the second alone is 2 q x."""

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    @torch.jit
    def function(x):
        y, p, q = (
            Same.apply(x),
            torch.tracing.number(lambda: 2.0),
            torch.tracing.number(lambda: 3.0),
        )
        return (p * y).sum(), (q * y * y).sum()

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    function(x)[1].backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_an_argument_is_a_number_at_one_call_and_a_tensor_at_another():
    f = torch.jit(lambda x, factor: x * factor)
    x = torch.ones(2)
    for factor in (2, torch.ones(2) * 5, 3, 2.5, torch.ones(()) * 4, 4):
        assert f(x, factor).tolist() == (x * factor).tolist()
