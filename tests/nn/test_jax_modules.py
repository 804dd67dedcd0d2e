"""Modules of equinox and flax as modules: their mode, copies, items and bound options."""

import copy

import equinox
import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import jaxgrad as torch

KEY = jax.random.key(0)
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def close(result, wanted):
    np.testing.assert_allclose(result.detach().numpy(), wanted, rtol=1e-5, atol=1e-6)


class Running(nnx.Module):
    def __init__(self, rngs):
        self.first, self.norm = nnx.Linear(3, 4, rngs=rngs), nnx.BatchNorm(4, rngs=rngs)
        self.dropout, self.last = nnx.Dropout(0.5, rngs=rngs), nnx.Linear(4, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.dropout(self.norm(self.first(x))))


class Dropping(equinox.Module):
    linear: equinox.nn.Linear
    dropout: equinox.nn.Dropout

    def __init__(self, inference=False):
        self.linear = equinox.nn.Linear(3, 8, key=KEY)
        self.dropout = equinox.nn.Dropout(0.5, inference=inference)

    def __call__(self, x, key):
        return self.dropout(self.linear(x), key=key)


# ---- train() and eval()


@pytest.mark.slow
def test_the_mode_of_a_module_of_nnx():
    module = Running(nnx.Rngs(0))
    net, x = torch.from_jax(module), torch.tensor(X)
    for mode in (True, False, False, True):
        assert net.train(mode) is net
        (module.train if mode else module.eval)()
        close(net(x), module(X))
        close(net.state_dict()["norm.mean"], module.norm.mean[...])
        assert net.training is net.dropout.training is net.first.training is mode
        assert net.dropout.deterministic is net.norm.use_running_average is (not mode)


@pytest.mark.slow
def test_the_mode_of_a_part_of_a_module_of_nnx():
    module = Running(nnx.Rngs(0))
    net, x = torch.from_jax(module), torch.tensor(X)
    net.norm.eval()
    module.norm.eval()
    close(net(x), module(X))
    assert net.training and net.dropout.training
    net.dropout.deterministic = module.dropout.deterministic = True
    close(net(x), module(X))


@pytest.mark.slow
def test_the_mode_of_a_module_of_equinox():
    module, x = Dropping(), torch.ones(3)
    net = torch.from_jax(module)
    for value in (False, True, True, False):
        net.train(not value)
        wanted = equinox.nn.inference_mode(module, value=value)
        close(net(x, KEY), wanted(jnp.ones(3), KEY))
        assert net.dropout.inference is value and net.dropout.training is (not value)
    net.dropout.eval()
    assert net.training
    close(net(x, KEY), module.linear(jnp.ones(3)))
    net.dropout.inference = False
    close(net(x, KEY), module(jnp.ones(3), KEY))
    alone = torch.from_jax(equinox.nn.Dropout(0.5)).eval()
    close(alone(torch.ones(8), key=KEY), np.ones(8))


@pytest.mark.slow
def test_the_mode_at_conversion_is_that_of_the_module():
    evaluated = Running(nnx.Rngs(0))
    evaluated.eval()
    for module, mode in (
        (evaluated, False),
        (Running(nnx.Rngs(0)), True),
        (Dropping(inference=True), False),
        (Dropping(), True),
        (equinox.nn.Linear(3, 2, key=KEY), True),  # it has no switch
    ):
        net = torch.from_jax(module)
        assert {submodule.training for submodule in net.modules()} == {mode}
    mixed = Running(nnx.Rngs(0))
    mixed.norm.eval()
    net = torch.from_jax(mixed)
    assert net.training and net.dropout.training and not net.norm.training
    close(net(torch.tensor(X)), mixed(X))


def test_the_order_of_the_parameters_is_that_of_the_arrays():
    class Network(equinox.Module):
        first: equinox.nn.Linear
        dropout: equinox.nn.Dropout
        norm: equinox.nn.BatchNorm
        last: equinox.nn.Linear

    first, last = (equinox.nn.Linear(3, n, key=KEY) for n in (3, 2))
    norm = equinox.nn.BatchNorm(3, "batch", mode="batch")
    network = Network(first, equinox.nn.Dropout(), norm, last)
    net = torch.from_jax(network)
    names = [f"{part}.{name}" for part in ("first", "norm", "last") for name in ("weight", "bias")]
    assert [name for name, _ in net.named_parameters() if "state" not in name] == names
    assert net.norm.inference is False and net.eval().norm.inference is True


@pytest.mark.slow
def test_a_switch_that_was_not_set_is_kept_until_it_is():
    module = nnx.MultiHeadAttention(2, 4, dropout_rate=0.5, decode=False, rngs=nnx.Rngs(0))
    assert module.deterministic is None
    net, x = torch.from_jax(module), torch.ones(3, 4)
    with pytest.raises(ValueError, match="deterministic"):
        net(x)
    close(net.eval()(x), module(jnp.ones((3, 4)), deterministic=True))
    module.train()
    close(torch.from_jax(module)(x), net.train()(x).detach().numpy())


@pytest.mark.slow
def test_compiled_functions_follow_the_mode():
    for module in (Running(nnx.Rngs(0)), Dropping()):
        plain, net = torch.from_jax(module), torch.from_jax(module)
        arguments = (torch.tensor(X),) if isinstance(module, Running) else (torch.ones(3), KEY)
        compiled = torch.jit(lambda *args, net=net: net(*args))
        for mode in (True, False, True, False):
            plain.train(mode), net.train(mode)
            close(compiled(*arguments), plain(*arguments).detach().numpy())
            if isinstance(module, Dropping):
                mapped = torch.vmap(lambda x, net=net: net(x, KEY))(torch.ones(2, 3))
                close(mapped[1], plain(*arguments).detach().numpy())
        assert len(compiled.traces) == 2
        plain.dropout.train(), net.dropout.train()
        close(compiled(*arguments), plain(*arguments).detach().numpy())


def test_a_mode_set_inside_of_a_compiled_function():
    net, module = torch.from_jax(Dropping()), Dropping(inference=True)
    step = torch.jit(lambda x: net.eval()(x, KEY))
    for _ in range(2):
        net.train()
        close(step(torch.ones(3)), module(jnp.ones(3), KEY))
        assert not net.training and net.dropout.inference


# ---- copies


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: equinox.nn.MLP(3, 2, 8, 1, key=KEY, activation=jax.nn.relu),
        lambda: nnx.Linear(3, 2, rngs=nnx.Rngs(0)),
    ],
    ids=["equinox", "nnx"],
)
def test_a_copy_has_its_own_parameters(make):
    net, x = torch.from_jax(make()), torch.ones(3)
    for other in (copy.deepcopy(net), torch.optim.swa_utils.AveragedModel(net).module):
        before = net(x).detach().numpy()
        close(other(x), before)
        optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
        other(x).sum().backward()
        optimizer.step()
        assert all(p.grad is None for p in net.parameters())
        close(net(x), before)
        assert abs(other(x).detach().numpy() - before).max() > 0.01
        assert list(other.state_dict()) == list(net.state_dict())


@pytest.mark.slow
def test_a_copy_has_its_own_state_and_mode():
    module = Running(nnx.Rngs(0))
    net, x = torch.from_jax(module), torch.tensor(X)
    other = copy.deepcopy(net)
    other.eval()
    other(x)
    assert net.training and not net.dropout.deterministic
    close(net(x), module(X))
    assert other.state_dict()["norm.mean"].abs().max() == 0
    close(net.norm.mean, module.norm.mean[...])
    other.train()
    close(other(x), Running(nnx.Rngs(0))(X))


# ---- items


@pytest.mark.slow
def test_lists_of_equinox_are_indexed():
    layers = [
        equinox.nn.Linear(3, 4, key=KEY),
        jax.nn.relu,
        equinox.nn.Identity(),
        None,
        equinox.nn.Linear(4, 2, key=KEY),
    ]
    net = torch.from_jax(equinox.nn.Sequential(layers[:3] + layers[4:]))
    assert len(net.layers) == 4 and net.layers[0] is net.get_submodule("layers.0")
    assert net.layers[-1].weight.shape == (2, 4) and net.layers[1] is layers[1]
    assert list(net.layers) == [net.layers[i] for i in range(4)] == net.layers[:]
    assert isinstance(net.layers[2], equinox.nn.Identity) and net.layers
    with pytest.raises(IndexError):
        net.layers[4]
    with pytest.raises(TypeError):
        len(net)

    class Several(equinox.Module):
        several: dict
        pairs: tuple

    net = torch.from_jax(Several({2: layers[0], 1: jnp.ones(2)}, (jnp.ones(3), None, [layers[4]])))
    assert set(net.several) == {1, 2} and len(net.several) == 2 and 2 in net.several
    assert net.several[2].weight.shape == (4, 3) and net.several[1].tolist() == [1, 1]
    assert net.pairs[0].shape == (3,) and net.pairs[1] is None
    assert net.pairs[2][0].bias.shape == (2,)
    with pytest.raises(KeyError):
        net.several["2"]


@pytest.mark.slow
def test_lists_of_flax_are_indexed():
    class Several(nnx.Module):
        def __init__(self, rngs):
            self.layers = nnx.List([nnx.Linear(3, 3, rngs=rngs), jax.nn.relu, nnx.Dropout(0.5)])
            self.named = nnx.Dict(a=nnx.Linear(3, 3, rngs=rngs))
            self.pair = nnx.data((nnx.Linear(3, 2, rngs=rngs), 1))

    net = torch.from_jax(Several(nnx.Rngs(0)))
    assert len(net.layers) == 3 and net.layers[0].kernel.shape == (3, 3)
    assert net.layers[1] is jax.nn.relu and net.layers[2].deterministic is False
    assert net.named["a"].kernel.shape == (3, 3) and list(net.named) == ["a"]
    assert len(net.pair) == 2 and net.pair[0].kernel.shape == (3, 2)
    bound = flax.linen.Dense(2).bind(flax.linen.Dense(2).init(KEY, X))
    net = torch.from_jax(bound)
    assert list(net.params) == list(bound.variables["params"])
    close(net.params["kernel"], bound.variables["params"]["kernel"])


# ---- what `bind` of flax.linen was given


class Normalized(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, x, train=False):
        x = flax.linen.BatchNorm(use_running_average=not train)(flax.linen.Dense(4)(x))
        return flax.linen.Dropout(0.5, deterministic=not train)(x)


class Statistics(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, x, train=False):
        return flax.linen.BatchNorm(use_running_average=not train)(x)


@pytest.mark.slow
@pytest.mark.parametrize("mutable", [["batch_stats"], "batch_stats", True])
def test_collections_bound_as_mutable(mutable):
    module = Statistics()
    variables = module.init(KEY, X)
    bound = module.bind(variables, mutable=mutable)
    net = torch.from_jax(module.bind(variables, mutable=mutable))
    for train in (True, True, False):
        close(net(torch.tensor(X), train=train), bound(X, train=train))
        for name, value in bound.variables["batch_stats"]["BatchNorm_0"].items():
            close(net.batch_stats["BatchNorm_0"].get_buffer(name), value)
    close(net(torch.tensor(X), mutable=False), bound(X))


def test_new_mutable_collections_add_nothing():
    class Sowing(flax.linen.Module):
        @flax.linen.compact
        def __call__(self, x):
            self.sow("intermediates", "x", x)
            return flax.linen.Dense(2)(x)

    module = Sowing()
    bound = module.bind({"params": module.init(KEY, X)["params"]}, mutable=["intermediates"])
    net = torch.from_jax(bound)
    before = repr(net)
    close(net(torch.tensor(X)), bound(X))
    assert repr(net) == before


@pytest.mark.slow
def test_bound_random_keys_are_refused():
    module = Normalized()
    variables = module.init(KEY, X)
    bound = module.bind(variables, rngs={"dropout": KEY}, mutable=["batch_stats"])
    with pytest.raises(TypeError, match=r"Normalized.*rngs.*pass rngs=.* at each call"):
        torch.from_jax(bound)
    options = {"train": True, "rngs": {"dropout": KEY}}
    net = torch.from_jax(module.bind(variables, mutable=["batch_stats"]))
    wanted, _ = module.apply(variables, X, mutable=["batch_stats"], **options)
    close(net(torch.tensor(X), **options), wanted)
