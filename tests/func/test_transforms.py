"""Nested transformations of jaxgrad.func against JAX's of the same functions."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import func
from jaxgrad.autograd import forward_ad
from jaxgrad.tape.tensor import wrap

POINT = np.array([0.4, -0.7, 1.3])
DIRECTION = np.array([1.0, -0.5, 2.0])
MATRIX = np.array([[1.0, 2.0, 0.5], [0.3, -1.0, 1.0], [0.2, 0.1, -0.4]])

# from vectors to vectors, in both libraries
FUNCTIONS = {
    "x sin x": (lambda x: x * x.sin(), lambda x: x * jnp.sin(x)),
    "quotient": (lambda x: x / (1 + x * x), lambda x: x / (1 + x * x)),
    "exp and sum": (lambda x: (-x).exp() * x.sum(), lambda x: jnp.exp(-x) * x.sum()),
    "matrix": (
        lambda x: (torch.tensor(MATRIX) @ x).tanh(),
        lambda x: jnp.tanh(jnp.asarray(MATRIX) @ x),
    ),
    "sqrt": (lambda x: (1 + x * x).sqrt(), lambda x: jnp.sqrt(1 + x * x)),
    "softmax": (lambda x: x.softmax(0) * x, lambda x: jax.nn.softmax(x) * x),
    "power": (lambda x: (x * x + 1) ** 1.5, lambda x: (x * x + 1) ** 1.5),
    "product": (lambda x: x.prod() * x, lambda x: x.prod() * x),
    "outer": (
        lambda x: (x.unsqueeze(0) * x.unsqueeze(1)).sin().sum(1),
        lambda x: jnp.sin(x[None] * x[:, None]).sum(1),
    ),
    "where": (
        lambda x: torch.where(x > 0, x * x, x.cos()),
        lambda x: jnp.where(x > 0, x * x, jnp.cos(x)),
    ),
}


def transformations(module, jit, array, stack):
    """Each transformation maps a function of vectors to another one."""

    def by_vmap(f):
        return lambda x: module.vmap(f)(stack([x, 2 * x])).sum(0)

    return {
        "grad": lambda f: module.grad(lambda x: f(x).sum()),
        "jvp": lambda f: lambda x: module.jvp(f, (x,), (array(DIRECTION),))[1],
        "vmap": by_vmap,
        "jit": jit,
    }


OURS = transformations(func, torch.jit, torch.tensor, torch.stack)
THEIRS = transformations(jax, jax.jit, jnp.asarray, jnp.stack)
NESTINGS = list(itertools.product(OURS, repeat=3))


def nested(kinds, names, f):
    return functools.reduce(lambda f, name: kinds[name](f), names, f)


@functools.cache
def expected(names, function):
    with jax.enable_x64(True):
        return np.asarray(nested(THEIRS, names, FUNCTIONS[function][1])(jnp.asarray(POINT)))


def check(names, function):
    result = nested(OURS, names, FUNCTIONS[function][0])(torch.tensor(POINT))
    np.testing.assert_allclose(result.numpy(), expected(names, function), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", range(0, len(NESTINGS), 3), ids=lambda number: " of ".join(NESTINGS[number])
)
def test_three_transformations(number):
    """A third of the nestings, each with one function; `make oracle` runs all pairs."""
    check(NESTINGS[number], list(FUNCTIONS)[number % len(FUNCTIONS)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", list(itertools.product(["grad", "jvp", "vmap"], repeat=2))[:4], ids=" of ".join
)
def test_two_transformations(names):
    check(names, "exp and sum")


# ---- Jacobians


def f(x, y):
    return {"product": x.sin() * y, "sum": (x * x).sum() * y[0]}


def g(x, y):
    return {"product": jnp.sin(x) * y, "sum": (x * x).sum() * y[0]}


X, Y = np.array([0.3, 1.2]), np.array([2.0, -1.0])


def same(result, wanted):
    result = jax.tree.map(
        lambda tensor: tensor.detach().numpy(),
        result,
        is_leaf=lambda tensor: isinstance(tensor, torch.Tensor),
    )
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), result, wanted
    )


@pytest.mark.row("K10", "K11")
@pytest.mark.slow
@pytest.mark.parametrize("argnums", [0, 1, (0, 1), (1, -2)])
@pytest.mark.parametrize(
    ("ours", "theirs"), [(func.jacrev, jax.jacrev), (func.jacfwd, jax.jacfwd)], ids=["rev", "fwd"]
)
def test_jacrev_and_jacfwd_agree(ours, theirs, argnums):
    with jax.enable_x64(True):
        plain = argnums if argnums != (1, -2) else (1, 0)
        wanted = theirs(g, plain)(jnp.asarray(X), jnp.asarray(Y))
    same(ours(f, argnums)(torch.tensor(X), torch.tensor(Y)), wanted)


@pytest.mark.row("K10")
@pytest.mark.parametrize("chunk_size", [1, 2, 3, 100])
def test_chunks_of_jacrev(chunk_size):
    x = torch.tensor(X)
    jacobian = func.jacrev(lambda x: x.sin() * x.sum(), chunk_size=chunk_size)(x)
    same(jacobian, func.jacrev(lambda x: x.sin() * x.sum())(x).numpy())


@pytest.mark.row("K11")
def test_aux_of_tensors_and_others():
    jacobian, aux = func.jacfwd(lambda x: (x * x, {"x": x + 1, "n": 3}), has_aux=True)(
        torch.ones(2)
    )
    assert jacobian.tolist() == [[2, 0], [0, 2]] and aux["n"] == 3 and aux["x"].tolist() == [2, 2]
    jacobian, aux = func.jacrev(lambda x: (x * x, "beside"), has_aux=True)(torch.ones(2))
    assert jacobian.tolist() == [[2, 0], [0, 2]] and aux == "beside"


@pytest.mark.row("K12")
@pytest.mark.slow
def test_func_hessian():
    with jax.enable_x64(True):
        wanted = jax.hessian(lambda x: (jnp.sin(x) * x[0]).sum())(jnp.asarray(X))
    for way in (func.hessian, torch.jit, lambda f: func.jacrev(func.jacfwd(f))):
        hessian = way(lambda x: (x.sin() * x[0]).sum())
        hessian = (
            torch.jit(func.hessian(lambda x: (x.sin() * x[0]).sum()))
            if way is torch.jit
            else hessian
        )
        same(hessian(torch.tensor(X)), wanted)


@pytest.mark.slow
@pytest.mark.parametrize(
    "jacobian", [func.jacrev, func.jacfwd, func.grad], ids=lambda f: f.__name__
)
def test_closures_keep_their_gradients(jacobian):
    weight = torch.tensor(Y, requires_grad=True)
    value = (
        (lambda x: (x * weight).sin().sum())
        if jacobian is func.grad
        else (lambda x: (x * weight).sin())
    )
    jacobian(value)(torch.tensor(X)).sum().backward()
    with jax.enable_x64(True):
        wanted = jax.grad(lambda w: jax.jacrev(lambda x: jnp.sin(x * w))(jnp.asarray(X)).sum())(
            jnp.asarray(Y)
        )
    np.testing.assert_allclose(weight.grad.numpy(), wanted, rtol=1e-9)


# ---- products


@pytest.mark.row("K07")
@pytest.mark.slow
def test_vjp_is_used_again_and_again():
    output, pullback, aux = func.vjp(
        lambda x, y: (f(x, y), "aux"), *map(torch.tensor, (X, Y)), has_aux=True
    )
    assert aux == "aux" and not output["sum"].requires_grad
    with jax.enable_x64(True):
        value, transposed = jax.vjp(g, jnp.asarray(X), jnp.asarray(Y))
        cotangents = {"product": jnp.asarray(X), "sum": jnp.asarray(2.0)}
        wanted = transposed(cotangents)
    same(output, value)
    for _ in range(2):
        our_cotangents = {"product": torch.tensor(X), "sum": torch.tensor(2.0, dtype=torch.float64)}
        same(pullback(our_cotangents), wanted)


@pytest.mark.row("K09")
@pytest.mark.slow
def test_func_linearize():
    output, derivative = func.linearize(f, torch.tensor(X), torch.tensor(Y))
    with jax.enable_x64(True):
        value, linear = jax.linearize(g, jnp.asarray(X), jnp.asarray(Y))
        wanted = linear(jnp.asarray(Y), jnp.asarray(X))
    same(output, value)
    same(derivative(torch.tensor(Y), torch.tensor(X)), wanted)


# ---- vmap


@pytest.mark.row("K13")
def test_dimensions_of_vmap():
    x, y = (
        torch.tensor(np.arange(24.0).reshape(2, 3, 4)),
        torch.tensor(np.arange(12.0).reshape(4, 3)),
    )

    def pair(x, trees):
        return x @ trees["y"], (x.sum(), trees["k"] * x)

    results = func.vmap(pair, in_dims=(2, {"y": 0, "k": None}), out_dims=(1, (0, -1)))(
        x, {"y": y, "k": 2.0}
    )
    wanted = jax.vmap(
        lambda x, y: (x @ y, (x.sum(), 2.0 * x)), in_axes=(2, 0), out_axes=(1, (0, -1))
    )
    with jax.enable_x64(True):
        same(results, wanted(x.numpy(), y.numpy()))


@pytest.mark.row("K13")
def test_results_that_do_not_depend_on_the_example():
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    weights, same_for_all = func.vmap(lambda x: (weight, torch.ones(2)))(torch.zeros(3))
    assert weights.shape == same_for_all.shape == (3, 2)
    weights.sum().backward()
    assert weight.grad.tolist() == [3, 3]


@pytest.mark.row("K13")
@pytest.mark.slow
@pytest.mark.parametrize("chunk_size", [1, 2, 5, None])
def test_chunks_of_vmap(chunk_size):
    x = torch.arange(10.0).view(5, 2)
    results = func.vmap(lambda x: (x.square(), x.sum()), chunk_size=chunk_size)(x)
    assert results[0].tolist() == x.square().tolist() and results[1].tolist() == x.sum(1).tolist()


@pytest.mark.row("K14")
@pytest.mark.slow
def test_randomness_of_vmap():
    x = torch.zeros(4, 2)
    with pytest.raises(
        RuntimeError, match="called random operation while in randomness error mode"
    ):
        func.vmap(lambda x: x + torch.rand(2))(x)
    same_ones = func.vmap(lambda x: x + torch.rand(2), randomness="same")(x)
    others = func.vmap(lambda x: x + torch.rand(2) - torch.rand(2), randomness="different")
    assert (same_ones == same_ones[0]).all()
    assert len({tuple(row) for row in [*others(x).tolist(), *others(x).tolist()]}) == 8
    compiled = torch.jit(
        lambda x: func.vmap(lambda x: x + torch.rand(2), randomness="different")(x)
    )
    assert len({tuple(row) for row in [*compiled(x).tolist(), *compiled(x).tolist()]}) == 8


@pytest.mark.row("K15")
def test_functions_that_vmap_refuses():
    shared = torch.zeros(2)
    weight, kept = torch.ones(2, requires_grad=True), []
    for body, message in (
        (lambda x: x.item(), "being traced"),
        (lambda x: x if x > 0 else -x, "being traced"),
        (lambda x: shared.add_(x), "a Tensor `other` in extra_args that has more"),
        (lambda x: (weight * x).sum().backward() or x, r"gives it a \.grad"),
        (lambda x: kept.append(x * 2) or x, "leaves behind"),
    ):
        with pytest.raises(RuntimeError, match=message):
            func.vmap(body)(torch.ones(3))
    kept.clear()
    assert shared.tolist() == [0, 0] and weight.grad is None


@pytest.mark.row("K15")
def test_writes_to_an_argument_and_to_what_is_made_inside():
    x = torch.arange(6.0).view(2, 3)

    def body(x):
        output = torch.zeros(2)
        output[0].add_(x.sum())
        x.mul_(10)
        return output

    for wrapped in (lambda f: f, torch.jit):
        x = torch.arange(6.0).view(2, 3)
        assert wrapped(func.vmap(body, in_dims=1))(x).tolist() == [[3, 0], [5, 0], [7, 0]]
        assert x.tolist() == [[0, 10, 20], [30, 40, 50]] and x._version == 1


@pytest.mark.row("K16")
@pytest.mark.slow
def test_per_sample_gradients():
    weight = torch.tensor(Y, requires_grad=True)
    x = torch.tensor(np.arange(6.0).reshape(3, 2))

    def loss(weight, x):
        return ((x * weight).sum().sin()) ** 2

    with jax.enable_x64(True):
        wanted = jax.vmap(jax.grad(lambda w, x: jnp.sin((x * w).sum()) ** 2), in_axes=(None, 0))(
            jnp.asarray(Y), jnp.asarray(x.numpy())
        )
    same(func.vmap(func.grad(loss), in_dims=(None, 0))(weight.detach(), x), wanted)
    same(func.vmap(lambda x: torch.autograd.grad(loss(weight, x), weight)[0])(x), wanted)

    def by_backward(weight, x):
        loss(weight, x).backward()
        return weight.grad

    copies = torch.tensor(np.tile(Y, (3, 1)), requires_grad=True)
    same(func.vmap(by_backward)(copies, x), wanted)
    assert copies.grad is None


def test_hooks_and_functions_inside_of_vmap():
    class Seven(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 7

    def body(x):
        y = Seven.apply(x) * weight
        y.register_hook(lambda grad: grad * 10)
        return y.sum()

    x, weight = torch.ones(3, 2, requires_grad=True), torch.tensor([1.0, 2.0], requires_grad=True)
    func.vmap(body)(x).sum().backward()
    assert x.grad.tolist() == [[70, 140]] * 3 and weight.grad.tolist() == [60, 60]


@pytest.mark.slow
def test_a_mapped_function_under_jax():
    mapped = func.vmap(lambda x: torch.abs(x).sum())
    array = jnp.array([[0.0, -2.0], [3.0, 0.0]])
    gradient = jax.grad(lambda a: mapped(wrap(a)).sum()._array)(array)
    assert gradient.tolist() == [[0, -1], [1, 0]]  # of |x| at 0 as PyTorch's, not as JAX's
    assert jax.jit(lambda a: mapped(wrap(a))._array)(array).tolist() == [2, 3]


def test_a_graph_from_outside_does_not_get_lost():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y, z = (x**3).sum(), (x.sin() ** 3).sum()

    def slope(y):
        return lambda v: torch.autograd.grad(y, x, v, create_graph=True)[0]

    with pytest.raises(RuntimeError, match="history in a graph that was recorded outside"):
        func.vmap(slope(z))(torch.ones(2))
    func.vmap(slope(y))(torch.ones(2)).sum().backward()
    assert x.grad.tolist() == [12, 24]  # twice 6 x
    slopes = func.vmap(lambda v: torch.autograd.grad(y, x, v, retain_graph=True)[0])(torch.ones(2))
    assert slopes.tolist() == [[3, 12], [3, 12]] and not slopes.requires_grad


def test_arguments_that_vmap_refuses():
    x = torch.ones(2, 3)
    for in_dims, args, words in (
        ([0, 0], (x, x), "expected `in_dims` to be int or a"),
        ((0.0,), (x,), "in_dim must be either an integer dimension or None"),
        (0, (x, None), "Got in_dim=0 for an input but the input is of type <class 'NoneType'>"),
    ):
        with pytest.raises(ValueError, match=words):
            func.vmap(lambda *args: args[0], in_dims)(*args)
    with pytest.raises(ValueError, match="`out_dims` must be an int, None or a python collection"):
        func.vmap(lambda x: (x, x), out_dims=("a", 0))(x)
    with pytest.raises(ValueError, match=r"vmap\(functools.partial\(add, ...\), in_dims=5"):
        func.vmap(functools.partial(torch.add, other=1), in_dims=5)(x)


def test_numbers_of_a_shared_argument():
    scaled = func.vmap(lambda x, n: x * n.item() if n > 0 else x[n.bool()], (0, None))
    x = torch.tensor([[1.0], [2.0]])
    for factor in (2.0, 3.0, 2.0):
        assert scaled(x, torch.tensor(factor)).tolist() == [[factor], [2 * factor]]
    assert scaled(x, torch.tensor(-1.0)).shape == (2, 1, 1)


def test_examples_write_one_value_to_a_shared_tensor():
    shared, x = torch.zeros(3), torch.ones(2, 4, 3)
    results = func.vmap(func.vmap(lambda x: shared.add_(1) + x))(x)
    assert (results == 2).all() and shared.tolist() == [1, 1, 1]
    func.vmap(lambda x: shared[1].zero_() + x)(x)
    assert shared.tolist() == [1, 0, 1]
    weight = torch.ones(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="requires grad to a tensor"):
        func.vmap(lambda x: shared.add_(weight) * x)(x)
    assert shared.tolist() == [1, 0, 1]


def test_running_statistics_that_examples_share():
    x = torch.arange(24.0).view(2, 4, 3)
    for norm in (torch.nn.BatchNorm1d(3), torch.nn.InstanceNorm1d(4, track_running_stats=True)):
        with pytest.raises(RuntimeError, match="got a batched tensor as input while the running_m"):
            func.vmap(norm)(x)
        assert norm.running_mean.tolist() == [0] * len(norm.running_mean)
    mean, variance = torch.zeros(2, 3), torch.ones(2, 3)
    func.vmap(lambda *args: torch.nn.functional.batch_norm(*args, training=True))(x, mean, variance)
    assert torch.allclose(mean, x.mean(1) * 0.1)


def test_strides_of_examples():
    x, shown = torch.arange(24.0).view(2, 3, 4), []
    for in_dims in (0, 1, 2):
        func.vmap(lambda a: shown.append((a.stride(), a.is_contiguous())) or a, in_dims)(x)
    assert shown == [((4, 1), True), ((12, 1), False), ((12, 4), False)]
    # two of the three dimensions have no common step
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        func.vmap(lambda a: a.view(-1), 1)(x)
    transposed = x.clone().transpose(0, 2)
    func.vmap(lambda a: a.mul_(2), 1)(transposed)
    assert transposed.stride() == (1, 4, 12) and (transposed == 2 * x.transpose(0, 2)).all()
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        func.vmap(lambda a: a.mul_(2))(torch.ones(3, 1).expand(3, 4))
    ones = func.vmap(lambda a: torch.ones(3, 4).t().clone())(x)
    assert ones.stride() == (12, 1, 4)  # PyTorch expands it: docs/conventions.md


def test_tangents_that_are_constants_of_an_example():
    def slope(x, place):
        def added(x):
            return torch.scatter_add(x, 0, place, torch.tensor(5.0))

        return func.jvp(added, (x,), (torch.tensor(3.0),))

    batch = torch.tensor([1.0, 2.0]), torch.tensor([0, 0])
    for mapped in (func.vmap(slope), torch.compile(func.vmap(slope))):
        assert [result.tolist() for result in mapped(*batch)] == [[6, 7], [3, 3]]


def test_jvp_where_forward_mode_is_switched_off():
    x = torch.tensor([1.0, 2.0])
    with forward_ad._set_fwd_grad_enabled(False):
        _, tangent = func.jvp(torch.sin, (x,), (x,))
        assert not forward_ad._is_fwd_grad_enabled()
    assert torch.allclose(tangent, x.cos() * x)

    def shifted(x):
        with forward_ad._set_fwd_grad_enabled(False):
            shift = x**2
        return x**2 - shift

    assert func.jvp(shifted, (x,), (torch.ones(2),))[1].tolist() == [2, 4]


def test_a_pullback_that_is_called_outside_of_no_grad():
    x = torch.tensor(3.0, requires_grad=True)
    with torch.no_grad():
        output, pullback = func.vjp(lambda x: x**2, x)
        (silent,) = pullback(torch.tensor(1.0))
    (slope,) = pullback(torch.tensor(1.0))
    assert not (output.requires_grad or silent.requires_grad) and slope.requires_grad
    assert torch.autograd.grad(slope, x)[0] == 2


def test_debug_unwrap_shows_all_examples():
    x, shown = torch.arange(6.0).view(2, 3), []

    def see(a):
        shown.append([func.debug_unwrap(a, recurse=again).shape for again in (True, False)])
        return a.sum()

    for _ in range(2):
        func.vmap(see, 1)(x)
    func.vmap(func.vmap(see))(x)
    func.vmap(func.grad(see))(x)
    assert shown == [[(2, 3), (2, 3)]] * 2 + [[(2, 3), (3,)]] * 2
    _, whole = func.vmap(lambda a: (a, func.debug_unwrap(a)), out_dims=(0, None))(x)
    assert whole.equal(x)


class Passing(torch.overrides.TorchFunctionMode):
    """A mode that sees functions and changes nothing."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.names.append(function.__name__)
        return function(*args, **(kwargs or {}))


UNDER_A_MODE = {
    "vmap": (lambda x: func.vmap(lambda row: row.sum())(x), [3, 12]),
    "columns": (lambda x: func.vmap(torch.amax, 1)(x), [3, 4, 5]),
    "chunks": (lambda x: func.vmap(lambda row: row.sum(), chunk_size=1)(x), [3, 12]),
    "nested": (lambda x: func.vmap(func.vmap(lambda y: y * y))(x), [[0, 1, 4], [9, 16, 25]]),
    "grad": (lambda x: func.vmap(func.grad(lambda row: row.sum() ** 2))(x), [[6] * 3, [24] * 3]),
    "jacfwd": (lambda x: func.jacfwd(lambda row: row**2)(x[1]).diag(), [6, 8, 10]),
    "hessian": (lambda x: func.hessian(lambda row: (row**3).sum())(x[1]).diag(), [18, 24, 30]),
}


@pytest.mark.parametrize("name", UNDER_A_MODE)
def test_transforms_under_a_mode(name):
    function, expected = UNDER_A_MODE[name]
    x = torch.arange(6.0).view(2, 3)
    for _ in range(2):  # the first call might keep a program for the second one
        with Passing() as seen:
            assert function(x).tolist() == expected
        assert {"sum", "amax", "mul", "pow", "__pow__"} & {*seen.names}


@pytest.mark.parametrize("jacobian", [func.jacrev, func.jacfwd])
def test_a_block_of_zeros_has_memory_for_all_elements(jacobian):
    x, y = torch.ones(3), torch.ones(2)
    blocks = jacobian(lambda x, y: x * 2, argnums=(0, 1))(x, y)
    blocks[1][0].add_(1)
    assert blocks[1].tolist() == [[1, 1], [0, 0], [0, 0]]
