"""Seeds and states that compiled functions give to generators: numbers and states are those of the
uncompiled function.
"""

import pytest

import jaxgrad as torch
from jaxgrad.utils.checkpoint import checkpoint

ONES = torch.ones(2)
OUTSIDE = torch.Generator().manual_seed(11).get_state()


def constant():
    def f(x):
        torch.manual_seed(0)
        return x * torch.rand(2)

    return f, [(ONES,)] * 3


def after_a_draw():
    def f(x):
        y = torch.rand(2)
        torch.manual_seed(5)
        return x * y

    return f, [(ONES,)] * 3


def argument():
    def f(x, seed):
        torch.rand(1)
        torch.manual_seed(seed)
        return x * torch.rand(2) * (torch.initial_seed() + 1)

    return f, [(ONES, seed) for seed in (1, 2, 3, 2**40)]


def negative():
    def f(x, seed):
        torch.manual_seed(seed)
        return x * torch.rand(2)

    return f, [(ONES, seed) for seed in (-1, -2, -3)]


def condition():
    def f(x, seed):
        if seed is not None:
            torch.manual_seed(seed)
        return torch.nn.functional.dropout(x.expand(8))

    return f, [(ONES[:1], seed) for seed in (None, 3, 3, 4, None)]


def fork():
    def f(x):
        first = torch.rand(2)
        with torch.random.fork_rng():
            torch.manual_seed(9)
            inner = torch.rand(2)
        return x * first + inner * 10 + torch.rand(2) * 100

    return f, [(ONES,)] * 3


def fork_without_a_seed():
    def f(x):
        with torch.random.fork_rng():
            inner = torch.rand(2)
        return x + inner * 10 + torch.rand(2) * 100

    return f, [(ONES,)] * 3


def fork_that_raises():
    def f(x):
        try:
            with torch.random.fork_rng():
                torch.manual_seed(1)
                raise KeyError
        except KeyError:
            return x * torch.rand(2)

    return f, [(ONES,)] * 3


def nested_forks():
    def f(x):
        torch.rand(1)
        with torch.random.fork_rng():
            torch.rand(1)
            with torch.random.fork_rng():
                torch.manual_seed(2)
            inner = torch.rand(2)
        return x * inner + torch.rand(2) * 10

    return f, [(ONES,)] * 3


def state():
    def f(x):
        before = torch.get_rng_state()
        first = torch.rand(2)
        torch.set_rng_state(before)
        return torch.cat([first, torch.rand(2), torch.rand(1), x])

    return f, [(ONES,)] * 3


def state_from_outside():
    def f(x):
        torch.rand(3)
        torch.set_rng_state(OUTSIDE)
        return x * torch.rand(2)

    return f, [(ONES,)] * 3


def state_as_argument():
    states = [torch.Generator().manual_seed(seed).get_state() for seed in (1, 2, 2**63 + 5)]

    def f(x, state):
        torch.set_rng_state(state)
        return x * torch.rand(2)

    return f, [(ONES, state) for state in states]


def state_that_is_changed():
    def f(x):
        state = torch.get_rng_state()
        state[24] ^= 1  # of the words of the twister
        torch.set_rng_state(state)
        return x * torch.rand(2)

    return f, [(ONES,)] * 3


def returned_state():
    def f(x):
        torch.rand(2)
        return torch.get_rng_state()

    return f, [(ONES,)] * 3


def another_generator():
    generator = torch.Generator()

    def f(x, seed):
        generator.manual_seed(seed)
        first = torch.rand(2, generator=generator)
        generator.set_state(torch.get_rng_state())
        return torch.cat([first, torch.rand(2, generator=generator), torch.rand(2), x])

    return f, [(ONES, seed) for seed in (1, 2, 3)]


def generator_made_inside():
    def f(x, seed):
        generator = torch.Generator().manual_seed(seed)
        return x * torch.rand(2, generator=generator) + torch.randn(2, generator=generator)

    return f, [(ONES, seed) for seed in (1, 2, 3)]


def recomputed():
    weight = torch.ones(2, requires_grad=True)

    def inner(x):
        torch.manual_seed(4)
        return (torch.rand(2) * x * weight).sin()

    def f(x):
        weight.grad = None
        y = checkpoint(inner, x, use_reentrant=False).sum()
        z = torch.rand(2)
        y.backward()
        return torch.cat([weight.grad, z, torch.rand(2)])

    return f, [(ONES,)] * 3


def loop():
    def f(x):
        torch.manual_seed(3)
        for _ in range(2):
            x = x + torch.rand(2)
            torch.manual_seed(torch.initial_seed() + 1)
        return x

    return f, [(ONES,)] * 2


WORLDS = [
    constant,
    after_a_draw,
    argument,
    negative,
    condition,
    fork,
    fork_without_a_seed,
    fork_that_raises,
    nested_forks,
    state,
    state_from_outside,
    state_as_argument,
    state_that_is_changed,
    returned_state,
    another_generator,
    generator_made_inside,
    recomputed,
    loop,
]


def runs(make, compile):
    torch.manual_seed(8)
    function, calls = make()
    function, results = compile(function), []
    for arguments in calls:
        result = function(*arguments).tolist()
        results.append((result, torch.initial_seed(), torch.get_rng_state().tolist()))
    return results, function


@pytest.mark.parametrize("make", WORLDS, ids=lambda make: make.__name__)
def test_seeds_and_states(make):
    expected, _ = runs(make, lambda function: function)
    results, compiled = runs(make, torch.jit)
    for (result, *states), (other, *others) in zip(results, expected, strict=True):
        assert result == pytest.approx(other, rel=1e-6) and states == others
    assert compiled.count <= 2 or make in (condition, generator_made_inside)


def test_a_seed_of_the_operating_system():
    f = torch.jit(lambda x: (torch.seed(), x * torch.rand(2)))
    (first, y), (second, z) = f(ONES), f(ONES)
    assert first != second == torch.initial_seed() and len(f.traces) == 1
    torch.manual_seed(first)
    assert y.tolist() == torch.rand(2).tolist()
    torch.manual_seed(second)
    assert z.tolist() == torch.rand(2).tolist()


def test_a_call_that_fails_sets_no_seed():
    def f(x):
        torch.manual_seed(1)
        torch.rand(2)
        raise KeyError

    before = torch.get_rng_state().tolist()
    with pytest.raises(KeyError):
        torch.jit(f)(ONES)
    assert torch.get_rng_state().tolist() == before


def test_what_runs_once_for_several_runs_refuses_a_seed():
    def f(x):
        torch.manual_seed(1)
        return x

    with pytest.raises(RuntimeError, match=r"manual_seed.*call it outside"):
        torch.jit(lambda p, x: torch.cond(p, f, torch.sin, (x,)))(torch.tensor(True), ONES)
