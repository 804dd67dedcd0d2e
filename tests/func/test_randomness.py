"""Random numbers under `vmap`.

PyTorch's "different" draws for all examples at once, as one call outside of `vmap` does for the
whole batch; its "same" draws for one example. So the expected numbers are those of a call without
`vmap` from the same seed, and the messages are PyTorch's.
"""

import contextlib

import pytest

import jaxgrad as torch
from jaxgrad.nn import functional as F

vmap = torch.func.vmap

BATCH = torch.full((3, 2, 4), 0.6)

# functions of one example and a generator, which draw in the shape of the example
FACTORIES = {
    "rand": lambda x, g: torch.rand(x.shape, generator=g),
    "randn complex": lambda x, g: torch.randn(x.shape, generator=g, dtype=torch.complex64),
    "randint": lambda x, g: torch.randint(5, 100, x.shape, generator=g),
    "normal": lambda x, g: torch.normal(1.0, 2.0, x.shape, generator=g),
}
IN_PLACE = {
    "random_": lambda x, g: x.random_(-5, 100, generator=g),
    "normal_": lambda x, g: x.normal_(generator=g),
    "bernoulli_": lambda x, g: x.bernoulli_(0.3, generator=g),
    "cauchy_": lambda x, g: x.cauchy_(generator=g),
    "geometric_": lambda x, g: x.geometric_(0.5, generator=g),
    "uniform_": lambda x, g: x.uniform_(generator=g),
}
OF_PARAMETERS = {
    "bernoulli": lambda x, g: torch.bernoulli(x, generator=g),
    "normal of std": lambda x, g: torch.normal(0.0, x, generator=g),
    "poisson": lambda x, g: torch.poisson(x * 5, generator=g),
    "gamma": lambda x, g: torch._standard_gamma(x, generator=g),
    "dirichlet": lambda x, g: torch._sample_dirichlet(x, generator=g),
    "binomial": lambda x, g: torch.binomial(x.round() * 9, x, generator=g),
}


# PyTorch's stream draws their samples one after the other, each of as many words as it takes
IN_TURN = {"poisson", "gamma", "dirichlet", "binomial"}


def numbers_of(draw, batch, *settings, stream=None, **options):
    """What a function draws under `vmap` from a fixed state of a generator, and without it."""
    generator = torch.Generator(stream=stream)
    state = generator.get_state()
    drawn = vmap(lambda x: draw(x, generator), *settings, **options)(batch.clone())
    return drawn, lambda x: draw(x, generator.set_state(state))


@pytest.mark.slow
@pytest.mark.parametrize("name", FACTORIES | IN_PLACE | OF_PARAMETERS)
def test_different_numbers_are_those_of_the_whole_batch(name):
    draw = (FACTORIES | IN_PLACE | OF_PARAMETERS)[name]
    for stream in ("torch", "jax") if name in IN_TURN else ("torch",):
        drawn, draw_outside = numbers_of(draw, BATCH, randomness="different", stream=stream)
        assert torch.allclose(drawn, draw_outside(BATCH.clone())) and (drawn[0] != drawn[1]).any()


@pytest.mark.parametrize("name", ["rand", "randint", "random_", "normal_"])
def test_same_numbers_are_those_of_one_example(name):
    draw = (FACTORIES | IN_PLACE)[name]
    drawn, draw_outside = numbers_of(draw, BATCH, randomness="same")
    assert (drawn == draw_outside(BATCH[0].clone())).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_PARAMETERS)
def test_same_numbers_for_parameters_that_differ_are_refused(name):
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
        numbers_of(OF_PARAMETERS[name], BATCH, randomness="same")

    def shared(x, g):
        return OF_PARAMETERS[name](BATCH[0], g)

    for stream in ("torch", "jax") if name in IN_TURN else ("torch",):
        drawn, draw_outside = numbers_of(shared, BATCH, randomness="same", stream=stream)
        assert (drawn == draw_outside(BATCH[0])).all()


def test_samples_in_turn_between_other_draws():
    # the expected numbers are PyTorch's
    x = torch.tensor([[0.5, 8.0], [1.5, 20.0], [0.3, 2.0]])

    def draw(t):
        first = torch.poisson(t) + 100 * torch.randint(0, 9, (2,))
        return first + 1000 * torch.poisson(t.flip(0))

    wanted = [[7500, 1608], [15400, 2726], [3300, 1602]]
    function = vmap(draw, randomness="different")
    for run in (function, torch.compile(lambda t: function(t) * 1)):
        torch.manual_seed(4)
        assert run(x).tolist() == wanted
        assert torch.rand(1).item() == pytest.approx(0.7225257158279419)
    torch.manual_seed(4)
    nested = vmap(vmap(torch.poisson, randomness="different"), randomness="different")
    assert nested(torch.stack([x, x])).tolist() == [
        [[0, 8], [0, 26], [0, 2]],
        [[1, 7], [0, 32], [0, 1]],
    ]
    shared = vmap(lambda t: torch.poisson(torch.tensor([3.0, 9.0])), randomness="different")
    torch.manual_seed(4)
    assert shared(x).tolist() == [[2, 10], [4, 8], [3, 12]]


def test_gradients_of_samples_in_turn():
    # the expected numbers are PyTorch's
    x = torch.tensor([[0.5, 8.0], [1.5, 20.0], [0.3, 2.0]], requires_grad=True)
    torch.manual_seed(4)
    samples = vmap(torch._standard_gamma, randomness="different")(x)
    (gradient,) = torch.autograd.grad(samples.sum(), x)
    wanted = torch.tensor([[0.307431, 6.758062], [0.398907, 18.258461], [0.284204, 0.777875]])
    slopes = torch.tensor([[1.024064, 0.937254], [0.529545, 0.963174], [1.481202, 0.649951]])
    torch.testing.assert_close(samples.detach(), wanted, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient, slopes, rtol=1e-4, atol=1e-6)


def test_mapped_dimensions_of_arguments_and_results():
    for draw, stream in ((FACTORIES["rand"], None), (IN_PLACE["normal_"], "jax")):
        drawn, draw_outside = numbers_of(draw, BATCH, -1, 1, "different", stream=stream)
        assert (drawn.movedim(1, 0) == draw_outside(torch.zeros(4, 3, 2))).all()


@pytest.mark.slow
@pytest.mark.parametrize("outer", ["same", "different"])
@pytest.mark.parametrize("inner", ["same", "different"])
def test_nested(outer, inner):
    def draw(x, g):
        return vmap(lambda x: torch.rand(4, generator=g), randomness=inner)(x)

    drawn, _ = numbers_of(draw, BATCH, randomness=outer)
    if outer == inner == "different":
        in_place = torch.func.vmap(lambda x: x.uniform_(generator=torch.Generator()), 0, 0, inner)
        written = vmap(in_place, randomness=outer)(BATCH.clone())
        assert (written == torch.rand(3, 2, 4, generator=torch.Generator())).all()
    rows = (3 if outer == "different" else 1, 2 if inner == "different" else 1)
    generator = torch.Generator()
    assert (drawn == torch.rand(*rows, 4, generator=generator)).all()
    with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
        vmap(lambda x: draw(x, torch.Generator()))(BATCH)


@pytest.mark.slow
def test_multinomial():
    def draw(x, g):
        return torch.multinomial(x, 5, replacement=True, generator=g)

    drawn, draw_outside = numbers_of(draw, BATCH, randomness="different")
    assert (drawn.view(6, 5) == draw_outside(BATCH.view(6, 4))).all()


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_permutations_are_drawn_one_after_the_other(randomness):
    generator = torch.Generator()
    state = generator.get_state()
    drawn = vmap(lambda x: torch.randperm(9, generator=generator), randomness=randomness)(BATCH)
    after = torch.rand(1, generator=generator)
    generator.set_state(state)
    count = 3 if randomness == "different" else 1
    wanted = torch.stack([torch.randperm(9, generator=generator) for _ in range(count)])
    assert (drawn == wanted).all() and after == torch.rand(1, generator=generator)


def test_nested_permutations_have_pytorchs_order():
    torch.manual_seed(0)
    inner = vmap(lambda x: torch.randperm(4), randomness="different")
    drawn = vmap(inner, randomness="different")(torch.zeros(2, 3))
    first = [[0, 1, 3, 2], [3, 2, 0, 1], [0, 1, 2, 3]]
    assert drawn.tolist() == [first, [[0, 2, 3, 1], [3, 0, 2, 1], [0, 1, 2, 3]]]


@pytest.mark.parametrize("draw", [torch.bernoulli, lambda x: x.normal_(), torch.poisson])
def test_parameters_that_differ_in_an_outer_map_of_same_numbers_are_refused(draw):
    is_refused = draw is torch.bernoulli or draw is torch.poisson
    inner = vmap(draw, randomness="different")
    refusal = pytest.raises(RuntimeError, match="same randomness with a batched tensor input")
    with refusal if is_refused else contextlib.nullcontext():
        vmap(inner, randomness="same")(torch.full((2, 3, 4), 0.5))


DROPOUTS = {
    "dropout": F.dropout,
    "dropout in place": lambda x: F.dropout(x, inplace=True),
    "dropout1d": lambda x: F.dropout1d(x[None]),
    "alpha_dropout": lambda x: F.alpha_dropout(x, training=True),
    "feature_alpha_dropout": lambda x: F.feature_alpha_dropout(x[None], training=True),
    "rrelu": lambda x: F.rrelu(-x, training=True),
    "layer": torch.nn.Dropout(0.4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout(name):
    torch.manual_seed(4)
    x = torch.ones(3, 4, 8)
    same = vmap(DROPOUTS[name], randomness="same")(x.clone())
    different = vmap(DROPOUTS[name], randomness="different")(x.clone())
    assert (same == same[0]).all() and (same[0] != same[0].max()).any()
    assert all((different[i] != different[i - 1]).any() for i in range(3))
    with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
        vmap(DROPOUTS[name])(x)


def test_writes_of_random_numbers_to_a_shared_tensor():
    shared = torch.zeros(4)
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        vmap(lambda x: shared.normal_() + x, randomness="different")(BATCH)
    with pytest.raises(RuntimeError, match="a Tensor `other` in extra_args that has more elements"):
        vmap(lambda p: shared.bernoulli_(p[0]), randomness="different")(BATCH)
    assert shared.tolist() == [0, 0, 0, 0]
    torch.manual_seed(5)
    drawn = vmap(lambda x: shared.normal_() + x[0] * 0, randomness="same")(BATCH)
    torch.manual_seed(5)
    assert (drawn == shared).all() and (shared == torch.zeros(4).normal_()).all()


def test_a_seed_that_is_set_inside():
    def draw(x):
        torch.manual_seed(6)
        return torch.rand(2)

    inside = vmap(vmap(draw, randomness="same"), randomness="different")(BATCH)
    after = torch.rand(3)
    torch.manual_seed(6)
    assert (inside == torch.rand(3, 1, 2)).all() and (after == torch.rand(3)).all()


def test_a_state_that_is_set_inside():
    generator = torch.Generator()
    start = generator.get_state()

    def draw(x):
        generator.set_state(start)
        state = generator.get_state()
        first = torch.rand(2, generator=generator)
        return first, torch.rand(2, generator=generator.set_state(state))

    first, again = vmap(draw, randomness="same")(BATCH)
    generator.set_state(start)
    assert (first == torch.rand(2, generator=generator)).all() and (first == again).all()


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_no_examples(randomness):
    none = torch.ones(0, 4)
    assert vmap(lambda x: x + torch.rand(4), randomness=randomness)(none).shape == (0, 4)
    assert vmap(lambda x: torch.randperm(4), randomness=randomness)(none).shape == (0, 4)
    assert vmap(torch._standard_gamma, randomness="different")(none).shape == (0, 4)


def test_chunks_draw_the_same_numbers():
    def drawn(chunk_size):
        torch.manual_seed(7)
        draw = vmap(lambda x: x + torch.rand(4), randomness="same", chunk_size=chunk_size)
        return draw(BATCH).tolist()

    assert drawn(1) == drawn(2) == drawn(None)


@pytest.mark.slow
@pytest.mark.parametrize("randomness", ["same", "different"])
def test_derivatives_of_every_order(randomness):
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    x = torch.ones(3)

    def output(weight):
        torch.manual_seed(8)
        return vmap(lambda x: (weight**3 * torch.rand(2)).sum(), randomness=randomness)(x)

    torch.manual_seed(8)
    factors = torch.rand(3, 2) if randomness == "different" else torch.rand(2).expand(3, 2)
    (slope,) = torch.autograd.grad(output(weight).sum(), weight, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), weight)
    assert torch.allclose(slope, factors.sum(0) * 3 * weight**2)
    assert torch.allclose(second, factors.sum(0) * 6 * weight)
    point = weight.detach()
    _, tangent = torch.func.jvp(output, (point,), (torch.ones(2),))
    assert torch.allclose(tangent, factors @ (3 * point**2))
    compiled = torch.compile(output)
    assert torch.allclose(compiled(point), factors @ point**3)


IN_MEMORY = {
    "uniform_": lambda t: t.uniform_(),
    "normal_": lambda t: t.normal_(),
    "random_": lambda t: t.random_(100),
    "bernoulli_": lambda t: t.bernoulli_(0.5),
    "exponential_": lambda t: t.exponential_(),
    "rand_like": torch.rand_like,
    "randint_like": lambda t: torch.randint_like(t, 100),
}


@pytest.mark.parametrize("name", IN_MEMORY)
def test_draws_for_examples_are_in_the_order_of_memory(name):
    """As PyTorch's are: those of a call without `vmap` on the whole tensor."""
    draw, x = IN_MEMORY[name], torch.ones(3, 2, 4)
    torch.manual_seed(0)
    expected = draw(x.clone().movedim(-1, 0))
    torch.manual_seed(0)
    numbers = torch.vmap(draw, in_dims=-1, randomness="different")(x.clone())
    assert numbers.tolist() == expected.tolist()
    nested = torch.vmap(torch.vmap(draw, 1, randomness="different"), 0, randomness="different")
    torch.manual_seed(0)
    expected = draw(x.clone().movedim(2, 1))
    torch.manual_seed(0)
    assert nested(x.clone()).tolist() == expected.tolist()


def test_numbers_for_the_last_dimension_are_pytorchs():
    x = torch.ones(2, 3)
    torch.manual_seed(0)
    numbers = torch.vmap(lambda t: t.uniform_(), in_dims=-1, randomness="different")(x)
    assert [[round(n, 4) for n in row] for row in numbers.tolist()] == [
        [0.4963, 0.132],
        [0.7682, 0.3074],
        [0.0885, 0.6341],
    ]


def test_one_draw_for_all_examples_is_contiguous():
    x = torch.ones(8, 4, 3)
    torch.manual_seed(0)
    expected = torch.ones(8, 4).normal_()
    torch.manual_seed(0)
    numbers = torch.vmap(lambda t: t.normal_(), in_dims=-1, randomness="same")(x)
    assert (numbers == expected).all()


@pytest.mark.parametrize("draw", [torch.poisson, torch._standard_gamma, torch.bernoulli])
def test_an_outer_map_in_error_mode_refuses_draws_of_an_inner_one(draw):
    x, rows = torch.full((2, 4), 0.5), torch.arange(3)
    inner = torch.vmap(draw, randomness="different")
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.vmap(lambda _: inner(x))(rows)
