"""Results whose graph the function has used up, or a part of it, by a backward pass of its own:
gradients are those of the same lines uncompiled.
"""

import random

import pytest

import jaxgrad as torch


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def asked(ask):
    """What is asked for, or the error where the graph is used up."""
    try:
        return list(map(numbers, ask() or ()))
    except RuntimeError as error:
        assert "backward through the graph a second time" in str(error)
        return "used up"


def numbers(gradient):
    """A gradient as numbers, rounded since XLA and NumPy round in another way."""
    if isinstance(gradient, list):
        return list(map(numbers, gradient))
    is_tensor = isinstance(gradient, torch.Tensor)
    return numbers(gradient.tolist()) if is_tensor else gradient and round(gradient, 5)


def between(first, second):
    """The gradient of a result by another one."""
    return lambda x, results: torch.autograd.grad(
        results[first].sum(), results[second], allow_unused=True, retain_graph=True
    )


def by_argument(number):
    return lambda x, results: torch.autograd.grad(
        results[number].sum(), x, allow_unused=True, retain_graph=True
    )


def outside(number):
    """A gradient that ends at a result."""
    return lambda x, results: torch.autograd.grad((results[number] * 3).sum(), results[number])


def hooked(x, results):
    gradients = []
    results[0].register_hook(lambda gradient: gradients.append(gradient.tolist()))
    asked(lambda: (results[-1] * 1).sum().backward(retain_graph=True))
    return gradients, x.grad


def drawn(x):
    weight = leaf(-1.0, -1.0)
    x = x * random.random()
    torch.autograd.grad((x * weight).tanh().sum(), weight)
    return (weight + x).tanh(), x


def products(x):
    weight = leaf(2.0, 0.5)
    y = x * weight
    torch.autograd.grad(y.sum(), weight)
    return weight * y, y, y * 2


def summed(x):
    weight = leaf(1.0, 2.0)
    first, second = (weight * x).sum(), (weight * weight).sum()
    total = first + second
    torch.autograd.grad(total, weight)
    return total, first, second


def with_another_end(x):
    weight, other = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = weight * x
    torch.autograd.grad(y.sum(), weight)
    return y + other, x * other


def apart(x):
    weight, other = leaf(1.0, 2.0), leaf(5.0, 5.0)
    y = x.tanh() * weight
    torch.autograd.grad(y.sum(), weight)
    return y, other * 2.0, x * other


def kept(x):
    y = x * leaf(1.0, 2.0)
    torch.autograd.grad(y.sum(), x, retain_graph=True)
    return y, y * y


def mixed(x):
    weight = leaf(1.0, 2.0)
    y = x * weight
    z = y * y
    torch.autograd.grad(z.sum(), weight)
    q = y.detach() * weight
    return y, z, q, q + z.sum()


ASKED = {
    drawn: [between(0, 1), by_argument(0), by_argument(1), outside(1)],
    products: [between(0, 1), between(2, 1), between(0, 2), by_argument(0), outside(0), outside(1)],
    summed: [between(0, 1), between(0, 2), by_argument(0), outside(1)],
    with_another_end: [by_argument(0), by_argument(1)],
    apart: [between(0, 1), between(0, 2), between(2, 0), by_argument(2), by_argument(0)],
    kept: [between(1, 0), by_argument(1), by_argument(0), hooked],
    mixed: [*(between(*pair) for pair in ((1, 0), (3, 2), (3, 1), (3, 0))), by_argument(3), hooked],
}


@pytest.mark.parametrize("function", ASKED, ids=lambda function: function.__name__)
def test_gradients_of_what_is_left_of_a_graph(function):
    known = []
    for call in (torch.jit(function), function):
        random.seed(0)
        answers = []
        for _ in range(3):
            x = leaf(0.5, 2.0)
            results = call(x)
            answers += [asked(lambda ask=ask, x=x, r=results: ask(x, r)) for ask in ASKED[function]]
        known.append(answers)
    assert known[0] == known[1]


def test_a_gradient_from_a_graph_whose_memory_is_taken_is_refused():
    weight = leaf(1.0, 2.0)

    @torch.jit
    def step(x):
        first, second = (weight * x).sum(), (weight * weight).sum()
        total = first + second
        total.backward()  # from the second call on it writes to the memory of the gradient
        return total, first

    for _ in range(2):
        total, part = step(torch.ones(2))
    with pytest.raises(RuntimeError, match="has taken the memory of what it read: its gradient"):
        torch.autograd.grad(total, part)


def test_a_result_of_a_graph_from_outside_that_is_used_up():
    weight = leaf(0.25, 0.25)
    outer = weight * weight
    step = torch.jit(lambda x: [outer * 1.5, x])
    torch.autograd.grad(step(torch.ones(2))[0].sum(), weight)
    x = leaf(1.0, 2.0)
    first, second = step(x)
    assert torch.autograd.grad(first.sum(), second, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="a second time"):
        torch.autograd.grad(first.sum(), weight)


# ---- what is replayed has the shapes of the call


def test_a_gradient_between_results_where_a_shape_changes():
    base = torch.tensor([-1.0, 1.0])
    part = base.detach()[0:1]

    @torch.jit
    def step(x):
        z = x * 2
        total = (part * 2.0).sum()
        part.unsqueeze_(0)
        return z + total, z

    for call in range(3):
        x = leaf(1.0, 0.25)
        first, second = step(x)
        assert torch.autograd.grad(first.sum(), second)[0].tolist() == [1, 1]
        assert part.shape == (1,) * (call + 2)


def test_a_gradient_between_results_where_a_place_holds_an_earlier_result():
    class Own:
        pass

    own, other = Own(), leaf(2.0, 1.0)
    own.state = leaf(2.0, 0.25)

    @torch.jit
    def step(x):
        y = own.state + x
        own.state = y * 0
        return other * 1, y * 3, y

    for _ in range(3):
        x = torch.tensor([0.5, -1.0])
        unrelated, first, second = step(x)
        assert torch.autograd.grad(first.sum(), second, retain_graph=True)[0].tolist() == [3, 3]
        gradient = torch.autograd.grad(unrelated.sum(), second, allow_unused=True)
        assert gradient == (None,)


# ---- the counts of writes


def viewed(own):
    own.tensor.unsqueeze_(0)
    own.view = own.tensor.reshape(-1)[0:1]


def detached(own):
    own.tensor.unsqueeze_(0)
    own.view = own.tensor.detach()


def viewed_first(own):
    own.view = own.tensor[0:1]
    own.tensor.unsqueeze_(0)
    own.tensor.add_(1)


def written(own):
    own.tensor.add_(1)
    own.view = own.tensor.reshape(-1)[0:1]


@pytest.mark.parametrize("change", [viewed, detached, viewed_first, written])
def test_a_view_counts_writes_with_its_base(change):
    class Own:
        pass

    known = []
    for jit in (torch.jit, lambda function: function):
        own, versions = Own(), []
        own.tensor = torch.tensor([0.5, 0.5])
        step = jit(lambda own=own: change(own))
        for _ in range(3):
            step()
            versions.append(own.tensor._version)
            own.view.add_(1)
            versions.append((own.view._version, own.tensor._version, own.tensor.tolist()))
        known.append(versions)
    assert known[0] == known[1]
