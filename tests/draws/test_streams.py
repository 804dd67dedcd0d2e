"""Compiled functions draw PyTorch's numbers: those of the uncompiled function, and its states. The
numbers written here are those of PyTorch 2.13.
"""

import pytest

import jaxgrad as torch
from jaxgrad import distributions as D

RATES = torch.tensor([0.5, 3.0, 20.0, 100.0])


@pytest.fixture(autouse=True)
def stream():
    torch.random.use("torch")
    yield
    torch.random.use(None)


def masks(x):
    return torch.nn.functional.dropout(x, 0.4), torch.rand(3), torch.randn(20), torch.randperm(6)


def after_samples(x):
    return (
        torch.poisson(x),
        *masks(x),
        D.Gamma(x, x).rsample(),
        torch.randint(0, 9, (4,)),
        *masks(x),
    )


def nothing_before(x):
    return D.Beta(x, 2 * x).rsample(), torch.rand(2, dtype=torch.float64), torch.randn(3)


def strided(x):
    return torch.empty(4, 5).t().normal_(), torch.empty(3, 8)[:, ::2].uniform_(1, 2)


def seeded_after_samples(x):
    sample = torch.binomial(x.floor(), x / 200)
    state = torch.get_rng_state()
    first = torch.rand(2)
    torch.set_rng_state(state)
    again = torch.rand(2)
    torch.manual_seed(3)
    return sample, first, again, torch.randn(17), torch.get_rng_state()


def loop(x):
    def step(carry, row):
        noise = torch.randn(2)
        return carry + row * noise, torch.nn.functional.dropout(noise, 0.5)

    return torch.scan(step, torch.zeros(2), x.reshape(2, 2))


def loop_after_samples(x):
    return torch.poisson(x), *loop(x)


def loop_in_loop(x):
    return torch.fori_loop(0, 3, lambda i, y: y + loop(y)[1].reshape(4) + torch.rand(4), x)


FUNCTIONS = [masks, after_samples, nothing_before, strided, seeded_after_samples]
FUNCTIONS += [loop, loop_after_samples, loop_in_loop]


def listed(result):
    results = result if isinstance(result, tuple) else (result,)
    return [tensor.double().flatten().tolist() for tensor in results]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_compiled_functions_draw_what_uncompiled_ones_do(function):
    def runs(call):
        torch.manual_seed(1)
        results = [listed(call(RATES)) for _ in range(2)]
        return results, torch.get_rng_state().tolist()

    (expected, state), (results, after) = runs(function), runs(torch.jit(function))
    for part, wanted in zip(results, expected, strict=True):
        for numbers, others in zip(part, wanted, strict=True):
            assert numbers == pytest.approx(others, rel=2e-6)
    # a normal number is kept back in double precision, and may be rounded otherwise
    assert after[:5016] == state[:5016]


def test_a_compiled_call_gives_pytorchs_numbers():
    torch.manual_seed(0)
    result = torch.jit(lambda x: (torch.poisson(x), torch.rand(2), torch.randperm(4)))(RATES)
    numbers = [[2, 4, 21, 99], [0.41940832138061523, 0.5529070496559143], [1, 3, 0, 2]]
    assert listed(result) == numbers


def test_a_program_belongs_to_a_stream():
    draw = torch.jit(lambda: torch.rand(2))
    torch.manual_seed(0)
    first = draw().tolist()
    torch.random.use("jax")
    torch.manual_seed(0)
    other = draw().tolist()
    torch.manual_seed(0)
    assert other == torch.rand(2).tolist() != first


@pytest.mark.parametrize("function", [masks, after_samples])
def test_a_failed_call_draws_nothing(function):
    class Stop(Exception):
        pass

    def fails(x, raises):
        result = function(x)
        if raises:
            raise Stop
        return result

    call = torch.jit(fails)
    torch.manual_seed(2)
    state = torch.get_rng_state().tolist()
    with pytest.raises(Stop):
        call(RATES, True)
    assert torch.get_rng_state().tolist() == state
