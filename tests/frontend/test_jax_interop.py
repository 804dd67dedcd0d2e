"""jaxgrad.from_jax and to_jax: functions of JAX's libraries on the tape, and the reverse."""

import equinox
import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import jaxgrad as torch

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def close(result, wanted):
    np.testing.assert_allclose(result.detach().numpy(), wanted, rtol=1e-5, atol=1e-6)


def compared(apply, variables):
    """Value, gradients and a Hessian product of a module of JAX's on the tape, against JAX's."""
    taped, x = torch.from_jax(apply), torch.tensor(X, requires_grad=True)
    leaves, structure = jax.tree.flatten(variables)
    tensors = [torch.tensor(leaf, requires_grad=True) for leaf in leaves]

    def loss(*leaves_and_x):
        *arrays, x = leaves_and_x
        return (apply(jax.tree.unflatten(structure, arrays), x) ** 2).sum()

    value = (taped(jax.tree.unflatten(structure, tensors), x) ** 2).sum()
    wanted, gradients = jax.value_and_grad(loss, tuple(range(len(leaves) + 1)))(*leaves, X)
    close(value, wanted)
    results = torch.autograd.grad(value, [*tensors, x], create_graph=True)
    for result, gradient in zip(results, gradients, strict=True):
        close(result, gradient)
    product = torch.autograd.grad((results[-1] ** 2).sum(), x)[0]
    slope = jax.grad(loss, len(leaves))
    close(product, jax.grad(lambda x: (slope(*leaves, x) ** 2).sum())(X))


@pytest.mark.slow
def test_a_module_of_equinox():
    module = equinox.nn.MLP(3, 2, 8, 1, key=jax.random.key(0), activation=jnp.tanh)
    arrays, rest = equinox.partition(module, equinox.is_array)
    compared(lambda arrays, x: jax.vmap(equinox.combine(arrays, rest))(x), arrays)


@pytest.mark.slow
def test_a_module_of_flax():
    class Network(flax.linen.Module):
        @flax.linen.compact
        def __call__(self, x):
            x = flax.linen.tanh(flax.linen.Dense(8)(x))
            return flax.linen.softmax(flax.linen.Dense(4)(x))

    network = Network()
    compared(network.apply, network.init(jax.random.key(0), X))


@pytest.mark.slow
def test_training_a_module_of_flax_under_jit():
    network = flax.linen.Dense(1)
    variables = network.init(jax.random.key(0), X)
    leaves, structure = jax.tree.flatten(variables)
    parameters = [torch.nn.Parameter(torch.tensor(leaf)) for leaf in leaves]
    optimizer, apply = torch.optim.SGD(parameters, lr=0.1), torch.from_jax(network.apply)

    @torch.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = ((apply(jax.tree.unflatten(structure, parameters), x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    def plain(variables, x, y):
        def loss(variables):
            return ((network.apply(variables, x) - y) ** 2).mean()

        value, gradients = jax.value_and_grad(loss)(variables)
        return jax.tree.map(lambda v, g: v - 0.1 * g, variables, gradients), value

    y = X.sum(1, keepdims=True)
    for _ in range(5):
        loss = step(torch.tensor(X), torch.tensor(y))
        variables, wanted = plain(variables, X, y)
        close(loss, wanted)
    assert step.count == 1
    for parameter, wanted in zip(parameters, jax.tree.leaves(variables), strict=True):
        close(parameter, wanted)


def test_trees_constants_and_several_results():
    @torch.from_jax
    def function(tree, *, power):
        return {"first": tree["x"] ** power, "rest": (tree["n"] + 1, jnp.zeros(2))}

    x, n = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1, 2])
    results = function({"x": x, "n": n}, power=3)
    assert results["first"].tolist() == [1, 8] and results["rest"][0].tolist() == [2, 3]
    results["first"].sum().backward()
    assert x.grad.tolist() == [3, 12] and not results["rest"][0].requires_grad
    assert function({"x": 2.0, "n": 1}, power=2)["first"] == 4  # no tensor, no tape


@pytest.mark.slow
@pytest.mark.parametrize(
    "packed", [lambda y: (y,), lambda y: [y], lambda y: {"y": y}], ids=["tuple", "list", "dict"]
)
def test_a_tree_of_one_result(packed):
    taped, x = torch.from_jax(lambda x: packed(jnp.sin(x) * x)), torch.tensor(X, requires_grad=True)
    (result,), structure = jax.tree.flatten(taped(x), is_leaf=torch.is_tensor)
    assert structure == jax.tree.structure(packed(0))
    close(result, np.sin(X) * X)
    result.sum().backward()
    close(x.grad, np.cos(X) * X + np.sin(X))

    def only(function, x):
        return jax.tree.leaves(function(x), is_leaf=torch.is_tensor)[0]

    close(only(torch.jit(taped), x), np.sin(X) * X)
    close(only(torch.vmap(taped), x), np.sin(X) * X)
    _, tangent = torch.func.jvp(lambda x: only(taped, x), (x.detach(),), (torch.ones(4, 3),))
    close(tangent, np.cos(X) * X + np.sin(X))


def test_float64_and_complex():
    taped, x = (
        torch.from_jax(lambda z: jnp.abs(z) ** 2),
        torch.tensor([3 + 4j], dtype=torch.complex128),
    )
    x.requires_grad_()
    taped(x).sum().backward()
    assert x.grad.dtype is torch.complex128 and x.grad.tolist() == [6 + 8j]


def test_forward_mode_and_vmap():
    taped = torch.from_jax(lambda x: jnp.sin(x) * x)
    x, wanted = torch.tensor(X[0]), jax.vmap(jax.grad(lambda x: jnp.sin(x) * x))(X[0])
    close(torch.func.jvp(taped, (x,), (torch.ones(3),))[1], wanted)
    close(torch.func.vmap(torch.func.grad(taped))(x), wanted)


def test_a_function_of_jax_refuses_a_tensor_that_requires_grad():
    with pytest.raises(TypeError, match=r"gradient would be lost.*jaxgrad.from_jax"):
        jnp.sin(torch.ones(2, requires_grad=True))
    with pytest.raises(TypeError, match=r"gradient would be lost.*jaxgrad.from_jax"):
        jax.jit(lambda x: x)(torch.ones(2, requires_grad=True))
    assert jnp.cos(torch.zeros(2)).tolist() == [1, 1]
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match=r"gradient would be lost.*is_leaf=jaxgrad.is_tensor"):
        jax.tree.map(lambda x: x * 2, {"leaf": leaf})
    with torch.no_grad():
        assert jax.tree.map(lambda x: x * 2, {"leaf": leaf})["leaf"].tolist() == [2, 2]
        assert jnp.cos(leaf * 0).tolist() == [1, 1]


@pytest.mark.slow
def test_to_jax_gives_a_function_of_arrays():
    def loss(tree, x):
        return ((x @ tree["w"]).relu() ** 2).sum()

    def wanted(tree, x):
        return (jax.nn.relu(x @ tree["w"]) ** 2).sum()

    pure, tree = torch.to_jax(loss), {"w": jnp.array([1.0, -2.0, 0.5])}
    for way in (jax.grad, lambda f: jax.jit(jax.grad(f)), jax.jacfwd):
        np.testing.assert_allclose(way(pure)(tree, X)["w"], way(wanted)(tree, X)["w"], rtol=1e-5)
    batched = jax.vmap(pure, in_axes=(None, 0))(tree, X[:, None])
    np.testing.assert_allclose(
        batched, jax.vmap(wanted, in_axes=(None, 0))(tree, X[:, None]), rtol=1e-5
    )


def test_to_jax_under_shard_map():
    mesh = jax.make_mesh((1,), ("data",))
    spec = jax.sharding.PartitionSpec("data")
    doubled = jax.shard_map(
        torch.to_jax(lambda x: x * 2 + x.sin()), mesh=mesh, in_specs=spec, out_specs=spec
    )
    x = jax.device_put(X, jax.sharding.NamedSharding(mesh, spec))
    np.testing.assert_allclose(jax.jit(doubled)(x), X * 2 + np.sin(X), rtol=1e-6)


# ---- random keys


@pytest.mark.slow
def test_functions_that_take_random_keys():
    key = jax.random.key(3)

    def noisy(key, x):
        return x * jax.random.normal(key, x.shape), jax.random.split(key)

    x = torch.ones(3, requires_grad=True)
    result, keys = torch.from_jax(noisy)(key, x)
    result.sum().backward()
    close(x.grad, jax.random.normal(key, (3,)))
    assert (jax.random.key_data(keys) == jax.random.key_data(jax.random.split(key))).all()
    # another key is another input of the same program, and its kind is kept
    other = jax.random.key(3, impl="rbg")
    close(torch.from_jax(noisy)(other, x)[0], jax.random.normal(other, (3,)))
    compiled = torch.jit(lambda x: torch.from_jax(noisy)(key, x))
    close(compiled(x)[0], jax.random.normal(key, (3,)))
    assert jax.dtypes.issubdtype(compiled(x)[1].dtype, jax.dtypes.prng_key)
    scaled = torch.from_jax(lambda key, x: noisy(key, x)[0])
    close(torch.func.grad(lambda x: scaled(key, x).sum())(x.detach()), jax.random.normal(key, (3,)))
    batched = jax.vmap(torch.to_jax(scaled))(jax.random.split(key), jnp.ones((2, 3)))
    wanted = jax.vmap(lambda key: jax.random.normal(key, (3,)))(jax.random.split(key))
    np.testing.assert_allclose(batched, wanted, rtol=1e-6)
    with pytest.raises(TypeError, match="random key, of dtype key<fry>: it is no tensor"):
        torch.as_tensor(key)


@pytest.mark.slow
def test_gradients_of_a_map_over_random_keys():
    noise = torch.from_jax(lambda x, key: x * jax.random.normal(key, x.shape))
    keys, x = jax.random.split(jax.random.key(0)), torch.ones(2, 3, requires_grad=True)
    wanted = jax.vmap(lambda key: jax.random.normal(key, (3,)))(keys)
    for mapped in (torch.vmap(noise), torch.jit(torch.vmap(noise))):
        x.grad = None
        result = mapped(x, keys)
        result.sum().backward()
        close(result, wanted)
        close(x.grad, wanted)


@pytest.mark.slow
def test_random_keys_are_arguments_of_compiled_functions():
    weight = torch.ones(3, requires_grad=True)
    noisy = torch.from_jax(lambda key, x: x * jax.random.normal(key, x.shape))

    @torch.jit
    def step(key, x):
        key, subkey = jax.random.split(key)
        (noisy(subkey, x) * weight).sum().backward()
        return key, noisy(subkey, x)

    for key in (jax.random.key(0), jax.random.key(5)):
        weight.grad, (following, subkey) = None, jax.random.split(key)
        next_key, drawn = step(key, torch.ones(3))
        assert (jax.random.key_data(next_key) == jax.random.key_data(following)).all()
        close(drawn, jax.random.normal(subkey, (3,)))
        close(weight.grad, jax.random.normal(subkey, (3,)))
    assert len(step.traces) == 1
    step(jax.random.key(0, impl="rbg"), torch.ones(3))
    assert len(step.traces) == 2 and "key<rbg>" in step.explain()
    # a replay, for the second derivative, gets the key of its call
    squares, x = torch.jit(lambda key, x: noisy(key, x).square().sum()), torch.ones(3)
    x.requires_grad_()
    (first,) = torch.autograd.grad(squares(key, x), x, create_graph=True)
    squares(jax.random.key(7), x)
    close(torch.autograd.grad(first.sum(), x)[0], 2 * jax.random.normal(key, (3,)) ** 2)
    keys = jax.random.split(key, 4)
    wanted = jax.vmap(lambda key: jax.random.normal(key, (3,)))(keys)
    close(torch.vmap(noisy)(keys, torch.ones(4, 3)), wanted)
    assert step.eval_shape(key, torch.ones(3))[1].shape == (3,)


def test_integers_of_64_bits_are_narrowed_in_traces_without_them():
    counted = torch.to_jax(lambda n: n.add_(1) * 2)
    n = jnp.asarray(torch.tensor([1, 2]))
    assert n.dtype == "int64" and counted(n).dtype == "int64"
    result = jax.jit(counted)(n)
    assert result.dtype == "int32" and result.tolist() == [4, 6]
    with jax.enable_x64(True):
        assert jax.jit(counted)(n).dtype == "int64"


def test_buffers_as_arguments_of_a_function_of_jax():
    norm = torch.nn.BatchNorm1d(3)

    def call(state, x):
        return torch.func.functional_call(norm, state, (x,)), state

    state = {name: jnp.asarray(tensor.detach()) for name, tensor in norm.state_dict().items()}
    result, changed = jax.jit(torch.to_jax(call))(state, X)
    close(norm(torch.tensor(X)), result)
    for name, tensor in norm.state_dict().items():
        close(tensor, changed[name])


# ---- modules


def gradients_of(module):
    return {name: parameter.grad for name, parameter in module.named_parameters()}


@pytest.mark.slow
def test_an_equinox_module_is_a_module():
    module = equinox.nn.MLP(3, 2, 8, 1, key=jax.random.key(0), activation=jnp.tanh)
    net, x = torch.from_jax(module), torch.tensor(X)
    names = [f"layers.{i}.{name}" for i in (0, 1) for name in ("weight", "bias")]
    assert list(net.state_dict()) == names and "MLP" in repr(net)
    output = torch.vmap(net)(x)
    close(output, jax.vmap(module)(X))
    (output**2).sum().backward()
    wanted = equinox.filter_grad(lambda module: (jax.vmap(module)(X) ** 2).sum())(module)
    gradients = gradients_of(net)
    for number, layer in enumerate(wanted.layers):
        close(gradients[f"layers.{number}.weight"], layer.weight)
        close(gradients[f"layers.{number}.bias"], layer.bias)
    before = np.array(module.layers[0].weight)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    optimizer.step()
    assert (before == module.layers[0].weight).all()  # of what was given nothing changes
    close(net.state_dict()["layers.0.weight"], before - 0.1 * wanted.layers[0].weight)
    other = torch.from_jax(module)
    other.load_state_dict(net.state_dict())
    close(torch.vmap(other)(x), torch.vmap(net)(x).detach().numpy())


@pytest.mark.slow
def test_training_an_equinox_module_under_jit():
    def losses(compiled):
        net = torch.from_jax(equinox.nn.MLP(3, 1, 4, 1, key=jax.random.key(0)))
        optimizer, x = torch.optim.Adam(net.parameters(), lr=0.1), torch.tensor(X)

        def step():
            optimizer.zero_grad()
            loss = (torch.vmap(net)(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        step = torch.jit(step) if compiled else step
        return [step().item() for _ in range(4)]

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-5)


@pytest.mark.slow
def test_a_module_of_equinox_takes_its_arguments():
    key = jax.random.key(1)
    dropout = equinox.nn.Dropout(0.5)
    close(torch.from_jax(dropout)(torch.ones(8), key=key), dropout(jnp.ones(8), key=key))
    close(torch.from_jax(dropout)(torch.ones(8), inference=True), np.ones(8))


class Normalized(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, x, train=False):
        x = flax.linen.Dense(4)(x)
        x = flax.linen.BatchNorm(use_running_average=not train)(x)
        x = flax.linen.Dropout(0.5, deterministic=not train)(x)
        return flax.linen.Dense(1)(x)


@pytest.mark.slow
def test_a_bound_module_of_flax_linen_is_a_module():
    module, key = Normalized(), jax.random.key(0)
    variables = module.init(key, X)
    net, x = torch.from_jax(module.bind(variables)), torch.tensor(X)
    assert {name.partition(".")[0] for name, _ in net.named_parameters()} == {"params"}
    assert {name for name, _ in net.named_buffers()} == {
        f"batch_stats.BatchNorm_0.{name}" for name in ("mean", "var")
    }
    close(net(x), module.apply(variables, X))
    options = {"train": True, "mutable": ["batch_stats"], "rngs": {"dropout": key}}
    wanted, changed = module.apply(variables, X, **options)
    output = net(x, **options)
    close(output, wanted)
    for name, value in changed["batch_stats"]["BatchNorm_0"].items():
        close(net.state_dict()[f"batch_stats.BatchNorm_0.{name}"], value)
    output.sum().backward()

    def total(params):
        return module.apply(variables | {"params": params}, X, **options)[0].sum()

    slope = jax.grad(total)(variables["params"])["Dense_0"]["kernel"]
    close(gradients_of(net)["params.Dense_0.kernel"], slope)
    with pytest.raises(TypeError, match=r"Normalized has no variables: pass module.bind"):
        torch.from_jax(module)


@pytest.mark.slow
def test_a_layer_of_flax_nnx_without_other_state_is_a_module():
    layer = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    net = torch.from_jax(layer)
    close(net(torch.tensor(X)), layer(X))
    net(torch.tensor(X)).sum().backward()
    close(net.kernel.grad, np.repeat(X.sum(0)[:, None], 2, 1))


class Running(nnx.Module):
    def __init__(self, rngs):
        self.first, self.norm = nnx.Linear(3, 4, rngs=rngs), nnx.BatchNorm(4, rngs=rngs)
        self.dropout, self.last = nnx.Dropout(0.5, rngs=rngs), nnx.Linear(4, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.dropout(self.norm(self.first(x))))


@pytest.mark.slow
def test_a_module_of_flax_nnx_is_a_module():
    module = Running(nnx.Rngs(0))
    net, x = torch.from_jax(module), torch.tensor(X)
    kinds = ("first.kernel", "first.bias", "norm.scale", "norm.bias", "last.kernel", "last.bias")
    assert {name for name, _ in net.named_parameters()} == set(kinds)
    assert {"norm.mean", "norm.var"} < {name for name, _ in net.named_buffers()}
    for _ in range(2):  # what a call changes, the next one sees: statistics and drawn numbers
        output = net(x)
        close(output, module(X))
        close(net.state_dict()["norm.mean"], module.norm.mean[...])
    output.sum().backward()

    def total(module):
        module(X)
        return module(X).sum()

    wanted = nnx.grad(total)(Running(nnx.Rngs(0)))["first"]["kernel"][...]
    close(gradients_of(net)["first.kernel"], wanted)


# ---- functions of arrays that call operators on tensors


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.sin(x).sum(),
        lambda x: (x * torch.tensor([1.0, 2.0])).sum() + jnp.sin(x).sum(),
        lambda x: jnp.sum(jnp.asarray(torch.as_tensor(x) ** 2)),
        lambda x: torch.to_jax(lambda t: (t * torch.tensor([3.0, 4.0])).sum())(x),
        lambda x: torch.nn.functional.relu(x).sum(),
        lambda x: torch.cat([x, x]).sum(),
        lambda x: torch.from_jax(jnp.sin)(x).sum(),
    ],
)
def test_functions_of_arrays_that_mix_both_have_their_gradient(function):
    x, step = jnp.array([1.0, 2.0]), 1e-3
    slopes = [
        (function(x.at[i].add(step)) - function(x.at[i].add(-step))) / (2 * step) for i in (0, 1)
    ]
    np.testing.assert_allclose(jax.grad(function)(x), slopes, rtol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("transform", [jax.grad, jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (torch.tensor([1.0, 2.0]) * x).sum(),
        lambda x: (torch.as_tensor(x) ** 2).sum(),
        lambda x: (torch.zeros(2) + x).sum(),
        lambda x: torch.stack([torch.as_tensor(x)[0], torch.as_tensor(x)[1]]).sum(),
        lambda x: (torch.as_tensor(x).detach() * 2).sum(),
    ],
)
def test_functions_that_return_tensors_say_to_jax(transform, function):
    try:
        result = transform(function)(jnp.array([1.0, 2.0]))
    except RuntimeError as error:
        assert "make it a function of arrays by jaxgrad.to_jax(function)" in str(error)
    else:  # a transform that takes any tree: its result is right
        wanted = jax.grad(torch.to_jax(function))(jnp.array([1.0, 2.0]))
        np.testing.assert_allclose(jax.tree.leaves(result)[0], wanted)


def test_operators_that_refuse_a_tracer_say_to_jax():
    with pytest.raises(TypeError, match="expected Tensor as element 0") as raised:
        jax.grad(lambda x: torch.einsum("i,i->", x, torch.ones(2)))(jnp.ones(2))
    assert raised.value.__notes__[0].startswith("A function that JAX transforms")
    assert "jaxgrad.to_jax(function)" in raised.value.__notes__[0]
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises((TypeError, RuntimeError), match=r"jaxgrad\.(to_jax|from_jax)"):
        jax.grad(lambda x: (leaf * x).sum())(jnp.ones(2))


@pytest.mark.slow
@pytest.mark.parametrize("transform", [lambda function: function, jax.jit])
def test_arrays_of_a_weak_type_have_the_dtype_that_a_tensor_tells(transform):
    """`jax.numpy.full(3, 2.0)` would give way to an array of another type."""
    half, weak = jnp.ones(3, jnp.float16), jnp.full(3, 2.0)
    assert weak.weak_type

    def product(x, y):
        assert (x * y).dtype is torch.float32
        return x * y

    pure = torch.to_jax(product)
    assert transform(pure)(half, weak).dtype == jnp.float32
    gradients = transform(jax.grad(lambda x, y: pure(x, y).sum(), (0, 1)))(half, weak)
    assert [gradient.dtype for gradient in gradients] == [jnp.float16, jnp.float32]
    assert [gradient.tolist() for gradient in gradients] == [[2.0] * 3, [1.0] * 3]
