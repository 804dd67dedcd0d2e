"""jaxgrad.from_jax and to_jax: functions of JAX's libraries on the tape, and the reverse."""

import equinox
import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgrad as torch

pytestmark = pytest.mark.slow

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def close(found, wanted):
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-5, atol=1e-6)


def compared(apply, variables):
    """Value, gradients and a Hessian product of a module of JAX's on the tape, against JAX's."""
    taped, x = torch.from_jax(apply), torch.tensor(X, requires_grad=True)
    leaves, structure = jax.tree.flatten(variables)
    tensors = [torch.tensor(leaf, requires_grad=True) for leaf in leaves]

    def loss(*leaves_and_x):
        *given, x = leaves_and_x
        return (apply(jax.tree.unflatten(structure, given), x) ** 2).sum()

    value = (taped(jax.tree.unflatten(structure, tensors), x) ** 2).sum()
    wanted, gradients = jax.value_and_grad(loss, tuple(range(len(leaves) + 1)))(*leaves, X)
    close(value, wanted)
    found = torch.autograd.grad(value, [*tensors, x], create_graph=True)
    for each, gradient in zip(found, gradients, strict=True):
        close(each, gradient)
    product = torch.autograd.grad((found[-1] ** 2).sum(), x)[0]
    slope = jax.grad(loss, len(leaves))
    close(product, jax.grad(lambda x: (slope(*leaves, x) ** 2).sum())(X))


def test_a_module_of_equinox():
    module = equinox.nn.MLP(3, 2, 8, 1, key=jax.random.key(0), activation=jnp.tanh)
    arrays, rest = equinox.partition(module, equinox.is_array)
    compared(lambda arrays, x: jax.vmap(equinox.combine(arrays, rest))(x), arrays)


def test_a_module_of_flax():
    class Network(flax.linen.Module):
        @flax.linen.compact
        def __call__(self, x):
            x = flax.linen.tanh(flax.linen.Dense(8)(x))
            return flax.linen.softmax(flax.linen.Dense(4)(x))

    network = Network()
    compared(network.apply, network.init(jax.random.key(0), X))


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
        found = step(torch.tensor(X), torch.tensor(y))
        variables, wanted = plain(variables, X, y)
        close(found, wanted)
    assert step.count == 1
    for parameter, wanted in zip(parameters, jax.tree.leaves(variables), strict=True):
        close(parameter, wanted)


def test_trees_constants_and_several_results():
    @torch.from_jax
    def function(tree, *, power):
        return {"first": tree["x"] ** power, "rest": (tree["n"] + 1, jnp.zeros(2))}

    x, n = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1, 2])
    found = function({"x": x, "n": n}, power=3)
    assert found["first"].tolist() == [1, 8] and found["rest"][0].tolist() == [2, 3]
    found["first"].sum().backward()
    assert x.grad.tolist() == [3, 12] and not found["rest"][0].requires_grad
    assert function({"x": 2.0, "n": 1}, power=2)["first"] == 4  # no tensor, no tape


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
