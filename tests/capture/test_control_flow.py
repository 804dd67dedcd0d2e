"""Control flow on values, eager and compiled, against PyTorch's `if` and `for` and against JAX."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.as_torch import as_torch, leaf

import jaxgrad


def python():
    """Control flow as plain PyTorch code writes it."""

    def while_loop(test, body, carried):
        while test(*carried):
            carried = body(*carried)
        return carried

    def scan(combine, carry, xs, torch, reverse=False):
        outputs = []
        for i in reversed(range(len(xs))) if reverse else range(len(xs)):
            carry, output = combine(carry, xs[i])
            outputs.append(output)
        return carry, torch.stack(outputs[::-1] if reverse else outputs)

    def fori_loop(lower, upper, body, value):
        for i in range(lower, upper):
            value = body(i, value)
        return value

    return types.SimpleNamespace(
        cond=lambda pred, true, false, operands: true(*operands) if pred else false(*operands),
        while_loop=while_loop,
        scan=scan,
        fori_loop=fori_loop,
    )


def flow(torch):
    if torch is not jaxgrad:
        return python()
    scan = lambda f, c, xs, torch, **options: jaxgrad.scan(f, c, xs, **options)  # noqa: E731
    return types.SimpleNamespace(
        cond=jaxgrad.cond, while_loop=jaxgrad.while_loop, scan=scan, fori_loop=jaxgrad.fori_loop
    )


def vector(torch, *values):
    return leaf(torch, *values, dtype=torch.float64)


def close(results, wanted, tolerance=1e-13):
    results, wanted = jax.tree.leaves(results), jax.tree.leaves(wanted)
    assert len(results) == len(wanted)
    for one, other in zip(results, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def both_ways(torch, step, *args):
    """The result of a step, equal eager and compiled."""
    result = step(*args)
    if torch is jaxgrad:
        close(jaxgrad.jit(step)(*args), result)
    return result


def derivatives(torch, value, inputs):
    """A value, its gradients, and their gradients."""
    first = torch.autograd.grad(value, inputs, create_graph=True)
    again = sum((gradient * gradient).sum() for gradient in first)
    second = torch.autograd.grad(again, inputs)
    return [value.detach(), *[gradient.detach() for gradient in first], *second]


@pytest.mark.slow
@as_torch
def test_cond_takes_one_branch(torch):
    w, f, results = vector(torch, 0.3, 0.7), flow(torch), []
    for values in ((0.5, 1.0), (-0.5, -1.0)):

        def step(x):
            y = f.cond(x.sum() > 0, lambda x: (x * w).sin(), lambda x: x.exp() * w * w, (x,))
            return derivatives(torch, y.sum(), [x, w])

        results.append(both_ways(torch, step, vector(torch, *values)))
    return results


@as_torch("""
    tensor(2)
    tensor([2.0962146160575874, 2.5573702491919863], dtype=float64)
""")
def test_while_loop_runs_as_pythons_does(torch):
    w, f = vector(torch, 1.3, 0.7), flow(torch)

    def body(i, x):
        return i + 1, (x * w).sin() + x

    def step(x):
        with torch.no_grad():
            return f.while_loop(lambda i, x: x.sum() < 3, body, (torch.tensor(0), x))

    return both_ways(torch, step, vector(torch, 0.5, 1.0))


@as_torch("""
    tensor([2.0349089381137726, 1.535389531099142], dtype=float64)
    tensor([0.39804189927452793, 0.7648421872844885], dtype=float64)
""")
def test_while_loop_has_a_gradient_where_there_are_numbers(torch):
    w, x = vector(torch, 1.3, 0.7), vector(torch, 0.5, 1.0)
    y = flow(torch).while_loop(lambda x: x.sum() < 3, lambda x: ((x * w).sin() + x + 0.5,), (x,))[0]
    return torch.autograd.grad(y.sum(), [x, w])


@pytest.mark.slow
@as_torch
def test_scan_carries_and_collects(torch):
    w, f = vector(torch, 1.3, 0.7), flow(torch)
    xs = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=torch.float64, requires_grad=True)
    results = []
    for reverse in (False, True):

        def step(x, xs, reverse=reverse):
            carry, ys = f.scan(
                lambda c, x: ((c * w + x).sin(), c * x), x, xs, torch, reverse=reverse
            )
            value = carry.sum() + (ys * ys * ys).sum()
            return carry.detach(), ys.detach(), derivatives(torch, value, [x, xs, w])

        results.append(both_ways(torch, step, vector(torch, 0.5, 1.0), xs))
    return results


@pytest.mark.slow
@as_torch("""
    tensor(-0.10671015396941416, dtype=float64)
    tensor([0.04277709821970568, 0.07917382437711486], dtype=float64)
    tensor([0.04636918257049277, 0.20998941444963043], dtype=float64)
    tensor([0.12791745221190537, 0.33711002882046825], dtype=float64)
    tensor([0.04258332441302304, 0.2296111601383909], dtype=float64)
""")
def test_fori_loop_counts(torch):
    w, f = vector(torch, 1.3, 0.7), flow(torch)

    def step(x):
        y = f.fori_loop(1, 4, lambda i, v: (v * w + i).sin() * v, x)
        return derivatives(torch, y.sum(), [x, w])

    return both_ways(torch, step, vector(torch, 0.5, 1.0))


@pytest.mark.slow
@as_torch("""
    tensor(6.852145605084843, dtype=float64)
    tensor([8.427234882903855, 2.638528163632916], dtype=float64)
    tensor([6.774932542559345, 7.213854846947382], dtype=float64)
    tensor([183.5988438249185, 104.0794035056525], dtype=float64)
    tensor([300.5039172222827, 226.40054388227765], dtype=float64)
""")
def test_one_inside_the_other(torch):
    w, f = vector(torch, 1.3, 0.7), flow(torch)
    xs = torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], dtype=torch.float64)

    def step(x):
        def combine(c, row):
            c = f.cond(c.sum() > 1.6, lambda c: c * w.sin(), lambda c: c + x * w * row, (c,))
            return c, f.fori_loop(0, 2, lambda i, v: v * w, c)

        carry, ys = f.scan(combine, x, xs, torch)
        return derivatives(torch, carry.sum() + ys.sum(), [x, w])

    return both_ways(torch, step, vector(torch, 0.5, 1.0))


@pytest.mark.slow
@as_torch("""
    tensor(0.585702477272301, dtype=float64)
    tensor([-2.5613297122861853, -1.6935274707170442], dtype=float64)
    tensor([-0.9851268124177635, -2.4193249581672065], dtype=float64)
    tensor([94.31195628912823, 56.29605434569045], dtype=float64)
    tensor([44.8737294319657, 71.89408346773641], dtype=float64)
""")
def test_gradients_taken_inside(torch):
    w, f = vector(torch, 1.3, 0.7), flow(torch)

    def true(x):
        (gradient,) = torch.autograd.grad((x * w).sin().sum(), x, create_graph=True)
        return gradient * x

    def step(x):
        return derivatives(
            torch, f.cond(x.sum() > 0, true, lambda x: x * 1, (x * 2,)).sum(), [x, w]
        )

    return both_ways(torch, step, vector(torch, 0.5, 1.0))


@as_torch("[tensor([7.0, 8.0, 6.0, 8.0], dtype=float64)]")
def test_rules_of_the_table_and_of_users(torch):
    # the derivative of abs at 0 is PyTorch's, not JAX's; of a Function, its author's
    class Seven(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 7

    def step(x):
        y = flow(torch).cond(x.sum() > 0, lambda x: x.abs() + Seven.apply(x), lambda x: x, (x,))
        return torch.autograd.grad(y.sum(), x)

    return both_ways(torch, step, vector(torch, 0.0, 1.0, -2.0, 3.0))


def test_trees_and_numbers():
    def step(x, n):
        pair = jaxgrad.cond(
            n > 0,
            lambda d: {"a": d["x"] * 2, "b": (1, d["n"])},
            lambda d: {"a": d["x"], "b": (0, -d["n"])},
            ({"x": x, "n": n},),
        )
        return pair["a"], *pair["b"]

    x = jaxgrad.tensor([1.0, 2.0])
    for function in (step, jaxgrad.jit(step)):
        assert [t.tolist() for t in function(x, jaxgrad.tensor(3))] == [[2, 4], 1, 3]
        assert [t.tolist() for t in function(x, jaxgrad.tensor(-3))] == [[1, 2], 0, 3]


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
def test_each_run_of_a_scan_draws_its_own_numbers(reverse):
    generator, w = jaxgrad.Generator(), jaxgrad.ones(2, requires_grad=True)

    def combine(c, x):
        c = c * jaxgrad.rand(2) * w + jaxgrad.rand(2, generator=generator)
        inner = jaxgrad.fori_loop(0, 2, lambda i, v: v + jaxgrad.rand(2), x)
        return c, jaxgrad.rand(2) * inner

    def step(x):
        first = jaxgrad.rand(2)
        carry, ys = jaxgrad.scan(combine, x, jaxgrad.ones(3, 2), reverse=reverse)
        gradient = jaxgrad.autograd.grad(carry.sum() + ys.sum(), w)[0]
        return first, carry.detach(), ys.detach(), gradient, jaxgrad.rand(2)

    def twice(step):
        jaxgrad.manual_seed(3)
        generator.manual_seed(4)
        return [step(jaxgrad.ones(2)) for _ in range(2)]

    close(twice(jaxgrad.jit(step)), twice(step), 1e-6)
    checkpointed = functools.partial(
        jaxgrad.utils.checkpoint.checkpoint, combine, use_reentrant=False
    )

    def kept(x):
        carry, ys = jaxgrad.utils.checkpoint.checkpoint(
            lambda x: jaxgrad.scan(checkpointed, x, jaxgrad.ones(3, 2)), x, use_reentrant=False
        )
        return carry.detach(), jaxgrad.autograd.grad(carry.sum() + ys.sum(), w)[0]

    close(twice(jaxgrad.jit(kept)), twice(kept), 1e-6)


@pytest.mark.slow
def test_a_checkpoint_inside_of_a_scan():
    w, memory, results = jaxgrad.eye(16, requires_grad=True), [], []
    checkpoint = functools.partial(jaxgrad.utils.checkpoint.checkpoint, use_reentrant=False)

    def layers(c, name):
        for _ in range(6):
            c = (c @ w).sin().exp()
        return c, name

    def step(x, wrapped):
        carry, _ = jaxgrad.scan(lambda c, e: (wrapped(layers, c, "n")[0], ()), x, jaxgrad.ones(20))
        return jaxgrad.autograd.grad(carry.sum(), [w, x])

    for wrapped in (lambda f, *args: f(*args), checkpoint):
        compiled = jaxgrad.jit(functools.partial(step, wrapped=wrapped))
        x = jaxgrad.ones(64, 16, requires_grad=True)
        analysis = compiled.lower(x).compile().memory_analysis()
        memory.append(analysis.temp_size_in_bytes / x._array.nbytes)
        results.append(compiled(x))
    close(results[1], results[0], 1e-5)
    assert memory[0] > 100
    assert memory[1] < 50


def test_dim_of_scan():
    xs = jaxgrad.arange(6.0).reshape(2, 3)
    for wrapped in (lambda f: f, jaxgrad.jit):
        total, ys = wrapped(
            lambda xs: jaxgrad.scan(lambda c, x: (c + x, x * 2), jaxgrad.zeros(2), xs, dim=1)
        )(xs)
        assert total.tolist() == [3, 12]
        assert ys.tolist() == [[0, 2, 4], [6, 8, 10]]


def test_scan_of_nothing():
    for wrapped in (lambda f: f, jaxgrad.jit):
        total, ys = wrapped(lambda c, xs: jaxgrad.scan(lambda c, x: (c + x, x * 2), c, xs))(
            jaxgrad.ones(2), jaxgrad.zeros(0, 2)
        )
        assert total.tolist() == [1, 1]
        assert ys.shape == (0, 2)


def test_fori_loop_up_to_a_tensor():
    for wrapped in (lambda f: f, jaxgrad.jit):
        step = wrapped(lambda x, n: jaxgrad.fori_loop(0, n, lambda i, v: v * 2 + i, x))
        assert step(jaxgrad.tensor(1.0), jaxgrad.tensor(4)).item() == 27
        assert step(jaxgrad.tensor(1.0), jaxgrad.tensor(0)).item() == 1


def test_one_program_serves_both_branches_and_any_number_of_runs():
    @jaxgrad.jit
    def step(x):
        y = jaxgrad.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
        return jaxgrad.fori_loop(0, 1000, lambda i, v: v * 0.5, y)

    for sign in (1.0, -1.0):
        step(jaxgrad.ones(3) * sign)
    assert len(step.traces) == 1
    text = step.lower(jaxgrad.ones(3)).as_text()
    assert text.count("stablehlo.while") == 1
    assert text.count("stablehlo.multiply") < 5


def tape(name, x, w):
    """A call of each control-flow function with tensors."""
    if name == "cond":
        return jaxgrad.cond(x.sum() > 0, lambda x: (x * w).sin(), lambda x: x, (x,))
    if name == "scan":
        xs = jaxgrad.ones(3, 2, dtype=x.dtype)
        return jaxgrad.scan(lambda c, e: ((c * w + e).sin(), c), x, xs)[0]
    return jaxgrad.while_loop(lambda x: x.sum() < 3, lambda x: ((x * w).sin() + x + 0.5,), (x,))[0]


def by_jax(name, x, w):
    """The same in JAX."""
    if name == "cond":
        return jax.lax.cond(x.sum() > 0, lambda x: jnp.sin(x * w), lambda x: x, x)
    if name == "scan":
        xs = jnp.ones((3, 2), x.dtype)
        return jax.lax.scan(lambda c, e: (jnp.sin(c * w + e), c), x, xs)[0]
    return jax.lax.while_loop(lambda x: x.sum() < 3, lambda x: jnp.sin(x * w) + x + 0.5, x)


NAMES = ("cond", "scan", "while_loop")
X, W, V = np.array([0.5, 1.0]), np.array([1.3, 0.7]), np.array([0.2, -0.4])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_forward_mode_through_control_flow(name):
    forward_ad = jaxgrad.autograd.forward_ad

    def step(x, w, v):
        with forward_ad.dual_level():
            dual, moving = forward_ad.make_dual(x, v), forward_ad.make_dual(w, v)
            return forward_ad.unpack_dual(tape(name, dual, moving)).tangent

    arguments = [jaxgrad.tensor(values) for values in (X, W, V)]
    with jax.enable_x64(True):
        operands = [jnp.asarray(values) for values in (X, W)], [jnp.asarray(V)] * 2
        wanted = jax.jvp(functools.partial(by_jax, name), *operands)[1]
    close(step(*arguments), wanted)
    close(jaxgrad.jit(step)(*arguments), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_control_flow_under_traces_of_jax(name):
    def ours(x, w):
        return tape(name, jaxgrad.as_tensor(x), jaxgrad.as_tensor(w))._array

    theirs = functools.partial(by_jax, name)
    xs = jnp.stack([jnp.asarray(X, jnp.float32), jnp.asarray([0.1, -0.2], jnp.float32)])
    w = jnp.asarray(W, jnp.float32)
    for transform in (jax.jit, lambda f: jax.vmap(f, (0, None))):
        argument = xs if transform is not jax.jit else xs[0]
        close(transform(ours)(argument, w), transform(theirs)(argument, w), 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cond", "scan"])
def test_differentiated_by_jax(name):
    def ours(x, w):
        return tape(name, jaxgrad.as_tensor(x), jaxgrad.as_tensor(w))._array.sum()

    theirs = lambda x, w: by_jax(name, x, w).sum()  # noqa: E731
    arguments = jnp.asarray(X, jnp.float32), jnp.asarray(W, jnp.float32)
    for transform in (
        lambda f: jax.grad(f, (0, 1)),
        lambda f: jax.jit(jax.grad(f, (0, 1))),
        lambda f: jax.hessian(f, (0, 1)),
    ):
        close(transform(ours)(*arguments), transform(theirs)(*arguments), 1e-5)


def test_no_reverse_mode_through_a_compiled_while_loop():
    w = vector(jaxgrad, 1.3, 0.7)

    @jaxgrad.jit
    def step(x):
        tape("while_loop", x, w).sum().backward()

    with pytest.raises(RuntimeError, match="while_loop: a loop whose number of runs depends on"):
        step(vector(jaxgrad, 0.5, 1.0))
    assert w.grad is None


REFUSALS = {
    "other shapes": (lambda x: x, lambda x: x[:1], r"float32\[2\]\) and \(torch.float32\[1\]"),
    "other trees": (lambda x: x, lambda x: (x, x), "trees of different structure"),
    "a write to an operand": (lambda x: x.add_(1), lambda x: x, "writes to a tensor of shape"),
    "random numbers": (lambda x: x * jaxgrad.rand(2), lambda x: x, "draws random numbers"),
    "hooks": (lambda x: x.register_hook(abs) and x, lambda x: x, "registers a hook"),
    "no tensor": (lambda x: "x", lambda x: x, "not str"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_control_flow_refuses(name):
    true, false, words = REFUSALS[name]
    step = jaxgrad.jit(lambda x: jaxgrad.cond(x.sum() > 0, true, false, (x,)))
    x = jaxgrad.ones(2, requires_grad=name == "hooks")
    with pytest.raises((RuntimeError, TypeError), match=words):
        step(x)
    assert x.tolist() == [1, 1]
    assert jaxgrad.jit(lambda x: x * 2)(x).tolist() == [2, 2]


def test_a_write_outside_is_refused():
    state, x = jaxgrad.zeros(2), jaxgrad.ones(2, requires_grad=True)

    def body(c, x):
        state.add_(1)
        return c, x

    with pytest.raises(RuntimeError, match="or reaches outside"):
        jaxgrad.jit(lambda xs: jaxgrad.scan(body, jaxgrad.zeros(()), xs))(jaxgrad.ones(3))
    assert state.tolist() == [0, 0]
    inside = lambda x: (x * 2).sum().backward() or x  # noqa: E731
    outer = jaxgrad.jit(lambda p: jaxgrad.cond(p > 0, lambda: inside(x), lambda: x, ()))
    with pytest.raises(RuntimeError, match=r"reads or changes the \.grad"):
        outer(jaxgrad.tensor(1))
    assert x.grad is None


@pytest.mark.parametrize("wrapped", [lambda f: f, jaxgrad.jit], ids=["eager", "compiled"])
def test_what_is_carried_keeps_its_kind(wrapped):
    grows = wrapped(lambda x: jaxgrad.fori_loop(0, 2, lambda i, x: jaxgrad.cat([x, x]), x))
    with pytest.raises(RuntimeError, match=r"must keep its shapes and dtypes.*\[2\].*\[4\]"):
        grows(jaxgrad.ones(2))
    written = wrapped(
        lambda x: jaxgrad.while_loop(lambda x: x.sum() < 9, lambda x: x.add_(1), (x,))
    )
    with pytest.raises(RuntimeError, match="clone"):
        written(jaxgrad.ones(2))
    with pytest.raises(RuntimeError, match="must give a pair"):
        wrapped(lambda x: jaxgrad.scan(lambda c, x: c, x, x))(jaxgrad.ones(2))


def test_arguments_of_control_flow():
    x = jaxgrad.ones(2)
    for pred, words in ((x, "single-element tensor"), ("x", "not str")):
        with pytest.raises(RuntimeError, match=words):
            jaxgrad.cond(pred, lambda: x, lambda: x)
    with pytest.raises(RuntimeError, match="branches to be callable"):
        jaxgrad.cond(True, lambda: x, 3)
    with pytest.raises(RuntimeError, match="different numbers of slices"):
        jaxgrad.scan(lambda c, x: (c, c), x, (x, jaxgrad.ones(3)))
    with pytest.raises(RuntimeError, match="'dim' number of dimensions"):
        jaxgrad.scan(lambda c, x: (c, c), x, jaxgrad.ones(()))
    with pytest.raises(TypeError, match="a bound is an int"):
        jaxgrad.fori_loop(0, 1.5, lambda i, x: x, x)
    with pytest.raises(RuntimeError, match="carried_inputs are a tuple"):
        jaxgrad.while_loop(lambda x: False, lambda x: x, x)
    assert jaxgrad.cond(True, lambda: x, lambda: x * 2) is x


def test_scan_stacks_outputs_along_the_dimension_of_the_slices():
    # PyTorch's answers
    x = jaxgrad.arange(1.0, 7).reshape(2, 3)

    def step(total, column):
        return total + column, (total * column, column.sum(), jaxgrad.stack([column] * 3))

    for dim in (1, -1):
        for run in (jaxgrad.scan, jaxgrad.jit(jaxgrad.scan)):
            last, (products, sums, repeated) = run(step, jaxgrad.zeros(2), x, dim=dim)
            assert last.tolist() == [6, 15] and sums.tolist() == [5, 7, 9]
            assert products.tolist() == [[0, 2, 9], [0, 20, 54]]
            assert repeated.shape == (3, 3, 2) and repeated[0].tolist() == x.t().tolist()
    _, products = jaxgrad.scan(
        lambda c, v: (c + v, c * v), jaxgrad.zeros(2), x, dim=1, reverse=True
    )
    assert products.tolist() == [[5, 6, 0], [44, 30, 0]]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("Combine_fn must be a callable, but got 3", {"combine_fn": 3}),
        ("Dim must be an int, but got <class 'float'>", {"dim": 1.5}),
        ("Reverse must be a bool, but got <class 'int'>", {"reverse": 1}),
        ("'dim' number of dimensions", {"dim": 3}),
    ],
)
def test_arguments_of_scan_of_other_types(words, options):
    arguments = {
        "combine_fn": lambda c, x: (c, x),
        "init": jaxgrad.zeros(3),
        "xs": jaxgrad.ones(2, 3),
    }
    with pytest.raises(RuntimeError, match=words):
        jaxgrad.scan(**{**arguments, **options})
    with pytest.raises(RuntimeError, match="cond_fn and body_fn to be callable"):
        jaxgrad.while_loop(3, lambda i: (i,), (jaxgrad.tensor(0),))
