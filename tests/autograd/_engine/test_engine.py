"""The tape and its engine: order, accumulation, lifetime of saved values, exceptions."""

import copy
import functools
import gc
import signal
import sys
import threading
import types
import weakref

import hypothesis
import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.as_torch import as_torch, leaf
from hypothesis import strategies

import jaxgrad
import jaxgrad as torch
from jaxgrad.autograd._engine import graph_task
from jaxgrad.core.pending import value_of
from jaxgrad.tape.node import FREED

DOUBLE = torch.float64


@pytest.fixture(autouse=True)
def grad_mode_is_as_it_was():
    yield
    assert torch.is_grad_enabled()


def double(*values):
    return leaf(torch, *values, dtype=DOUBLE)


def nodes_of(tensor):
    """The nodes that a tensor's gradient may reach."""
    nodes, stack = {}, [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node not in nodes:
            nodes[node] = None
            stack += [edge[0] for edge in node.edges]
    return list(nodes)


# ---- which nodes run, and in what order


def order_of(monkeypatch, run):
    """The nodes that ran while `run` was called, by sequence number."""
    seen, step = [], graph_task.Pass.step

    def spy(self, node, gradients):
        seen.append(node.sequence)
        step(self, node, gradients)

    monkeypatch.setattr(graph_task.Pass, "step", spy)
    run()
    monkeypatch.undo()
    return seen


@pytest.mark.row("A37")
def test_nodes_run_by_descending_number_each_once(monkeypatch):
    x = leaf(torch, 2.0)
    left, right = x * x, x * 3
    right_again = right * right
    left_again = left + 1
    total = left_again * right_again + right
    seen = order_of(monkeypatch, total.backward)
    computed = [left, right, right_again, left_again]
    assert {tensor.grad_fn.sequence for tensor in computed} < set(seen)
    assert seen == sorted(set(seen), reverse=True)
    assert x.grad.item() == 2 * 2 * 36 + 5 * 18 * 2 + 3  # x^2: (x^2 + 1) 9 x^2 + 3 x


def test_only_what_leads_to_an_input_runs(monkeypatch):
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    towards, beside = x * x, y * y
    total = towards * beside
    run = functools.partial(torch.autograd.grad, total, x)
    seen = order_of(monkeypatch, run)
    assert seen == [total.grad_fn.sequence, towards.grad_fn.sequence]
    assert beside.grad_fn.saved is not FREED
    beside.backward()
    assert y.grad.item() == 6


def test_an_input_that_was_computed_does_not_run(monkeypatch):
    x = leaf(torch, 2.0)
    y = x * x
    z = y * 3
    run = functools.partial(torch.autograd.grad, z, y)
    assert order_of(monkeypatch, run) == [z.grad_fn.sequence]


BINARY = {"add": jnp.add, "mul": jnp.multiply, "sub": jnp.subtract}
OPERATORS = BINARY | {"sin": jnp.sin, "neg": jnp.negative}
GRAPHS = strategies.lists(
    strategies.tuples(
        strategies.sampled_from(sorted(OPERATORS)),
        strategies.integers(0, 9),
        strategies.integers(0, 9),
    ),
    min_size=1,
    max_size=12,
)


def evaluate(operators, graph, leaves):
    """What the instructions of a random graph compute."""
    values = list(leaves)
    for name, *places in graph:
        operands = [values[place % len(values)] for place in places[: 1 + (name in BINARY)]]
        values.append(operators[name](*operands))
    return values[len(leaves) :]


@pytest.mark.slow
@hypothesis.settings(max_examples=60)
@hypothesis.given(GRAPHS)
def test_random_graphs_equal_jax(graph):
    points = numpy.array([[0.3, -0.7], [1.1, 0.2], [-0.4, 0.9]])
    leaves = [torch.tensor(point, requires_grad=True) for point in points]
    ours = {name: getattr(torch, name) for name in OPERATORS}

    def total(*points):
        return sum(value.sum() for value in evaluate(OPERATORS, graph, points))

    with jax.enable_x64(True):
        expected = jax.grad(total, (0, 1, 2))(*points)
    outputs = [value.sum() for value in evaluate(ours, graph, leaves)]
    gradients = torch.autograd.grad(outputs, leaves, retain_graph=True, materialize_grads=True)
    numpy.testing.assert_allclose([f.numpy() for f in gradients], expected, rtol=1e-12, atol=1e-14)
    torch.autograd.backward(outputs, inputs=leaves[1:], retain_graph=True)
    assert leaves[0].grad is None
    torch.autograd.backward(outputs)
    for point, gradient in zip(leaves, gradients, strict=True):
        times = 2 - (point is leaves[0])
        reached = 0 if point.grad is None else point.grad.numpy()
        numpy.testing.assert_allclose(reached, times * gradient.numpy(), rtol=1e-12, atol=1e-14)


# ---- accumulation and identity


def test_a_leaf_is_itself_and_not_its_values():
    x = leaf(torch, 2.0)
    twin = x.detach().requires_grad_()
    equal = leaf(torch, 2.0)
    (x * twin * equal * 3).backward()
    (twin * twin).backward()
    assert (x.grad.item(), twin.grad.item(), equal.grad.item()) == (12, 16, 12)


@as_torch("tensor(32.0)")
def test_one_tensor_many_times(torch):
    x = leaf(torch, 3.0)
    y = x * x * x + x + torch.stack([x, x, x * 2]).sum()
    y.backward()
    return x.grad


@as_torch("""
    tensor(12.0)
    tensor(24.0)
    tensor(2.0)
    tensor(72.0)
    [False, True, True]
""")
def test_retain_grad_on_every_tensor_of_a_path(torch):
    x = leaf(torch, 2.0)
    y = x * 3
    z = y * y
    for tensor in (x, y, z):
        tensor.retain_grad()
    z.backward(retain_graph=True)
    first = y.grad
    z.backward()
    return first, y.grad, z.grad, x.grad, [t.retains_grad for t in (x, y, z)]


@as_torch("""
    [[tensor([[0.0, 0.0], [1.0, 1.0]])],
     [tensor([[0.0, 10.0], [8.0, 0.0]], requires_grad=True)],
     [tensor([[0.0, 2.0], [2.0, 0.0]])],
     [tensor([[4.0, 2.0], [1.0, 5.0]]), tensor([4.0, 2.0])]]
    False
    [0, 1]
""")
def test_one_of_several_outputs(torch):
    x = torch.tensor([[1.0, 5.0], [4.0, 2.0]], requires_grad=True)
    first, second = x.unbind()
    values, indices = x.max(0)
    gradients = [torch.autograd.grad(second.sum(), x, retain_graph=True)]
    gradients.append(torch.autograd.grad((values * values).sum(), x, create_graph=True))
    gradients.append(torch.autograd.grad(gradients[1][0].sum(), x))
    gradients.append(torch.autograd.grad((first * second).sum(), [x, first]))
    return gradients, indices.requires_grad, (first.output_nr, second.output_nr)


def test_gradients_given_and_returned_are_handles_of_their_own():
    x, gradient = leaf(torch, 1.0, 2.0), torch.tensor([3.0, 4.0])
    x.backward(gradient)
    y = x.detach().requires_grad_()
    y.backward(gradient)
    x.backward(gradient)
    assert gradient.tolist() == [3, 4]
    assert y.grad.tolist() == [3, 4]
    assert x.grad.tolist() == [6, 8]


def test_deepcopy_of_a_leaf_is_another_leaf():
    x = leaf(torch, 2.0)
    (x * x).backward()
    y = copy.deepcopy(x)
    (x * y * y).backward()
    assert (x.grad.item(), y.grad.item()) == (4 + 4, 4 + 8)


# ---- saved values


def test_saved_values_die_node_by_node():
    x = leaf(torch, 1.0, 2.0)
    values, total = [], x
    for _ in range(5):
        total = total.sin()
        values.append(weakref.ref(total._array))
    last = total.sum()
    del total
    torch.synchronize()
    alive = [value() is not None for value in values]
    assert alive == [True] * 4 + [False]  # the last sine saved its argument, and nobody its result
    last.backward()
    assert [value() is not None for value in values] == [False] * 5
    assert last.grad_fn is not None


def test_retained_values_live_until_a_pass_frees_them():
    x = leaf(torch, 1.0, 2.0)
    y = x.exp()
    kept = weakref.ref(y._array)
    total = y.sum()
    del y
    for _ in range(2):
        total.backward(retain_graph=True)
        assert kept() is not None
    total.backward()
    assert kept() is None
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        total.backward()


def test_what_nobody_can_differentiate_is_not_saved():
    x, constant = leaf(torch, 1.0, 2.0), torch.tensor([3.0, 4.0])
    y = x * constant
    assert [value is constant._value for value in y.grad_fn.saved] == [True]
    assert not (x + constant).grad_fn.saved
    assert not x.reshape(2, 1).grad_fn.saved
    assert (constant * constant).grad_fn is None


# ---- recorded passes


def penalty(module, gradient, weight, x):
    """A loss with the gradient of the loss in it."""

    def loss(x):
        return (module.tanh(weight * x) * module.exp(x)).sum()

    slope = gradient(loss, x)
    return loss(x) + ((slope * slope).sum() - 1) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_gradient_penalty_of_a_network(compiled):
    def ours(weight, x):
        def gradient(loss, x):
            return torch.autograd.grad(loss(x), x, create_graph=True)[0]

        penalty(torch, gradient, weight, x).backward()
        return weight.grad, x.grad

    def theirs(weight, x):
        return penalty(jnp, lambda loss, x: jax.grad(loss)(x), weight, x)

    points = numpy.array([0.3, -0.8]), numpy.array([0.5, 1.2])
    gradients = (torch.jit(ours) if compiled else ours)(*[double(*point) for point in points])
    with jax.enable_x64(True):
        expected = jax.grad(theirs, (0, 1))(*points)
    for ours, theirs in zip(gradients, expected, strict=True):
        numpy.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_of_higher_orders(order):
    def function(x, module):
        return (module.sin(x) * x * x / module.exp(x)).sum()

    def theirs(x):
        return function(x, jnp)

    point = numpy.array([0.3, 1.2])
    x = double(*point)
    y = function(x, torch)
    for _ in range(order):
        theirs = (lambda inner: lambda x: jax.grad(inner)(x).sum())(theirs)
        (gradient,) = torch.autograd.grad(y, x, create_graph=True)
        y = gradient.sum()
    with jax.enable_x64(True):
        numpy.testing.assert_allclose(y.item(), theirs(point), rtol=1e-11)
    again = double(*point)
    y = function(again, torch)
    for _ in range(order):
        again.grad = None
        with pytest.warns(UserWarning, match="reference cycle"):
            y.backward(create_graph=True)
        y = again.grad.sum()
    again.grad = None
    with jax.enable_x64(True):
        numpy.testing.assert_allclose(y.item(), theirs(point), rtol=1e-11)


@pytest.mark.slow
def test_mixed_derivatives_and_vector_products():
    def function(x, y, module):
        return module.sin(x * y) * y

    point = 0.4, 1.3
    x, y = double(point[0]), double(point[1])
    value = function(x, y, torch)
    by_x, by_y = torch.autograd.grad(value, [x, y], create_graph=True)
    by_x_y = torch.autograd.grad(by_x, y, create_graph=True)[0]
    by_y_x = torch.autograd.grad(by_y, x, create_graph=True)[0]
    by_x_y_y = torch.autograd.grad(by_x_y, y, retain_graph=True)[0]
    product = torch.autograd.grad([by_x, by_y], [x, y], [torch.tensor(2.0), torch.tensor(3.0)])
    with jax.enable_x64(True):
        theirs = functools.partial(function, module=jnp)
        mixed = jax.grad(jax.grad(theirs, 0), 1)
        numpy.testing.assert_allclose(by_x_y.item(), mixed(*point), rtol=1e-12)
        numpy.testing.assert_allclose(by_y_x.item(), mixed(*point), rtol=1e-12)
        numpy.testing.assert_allclose(by_x_y_y.item(), jax.grad(mixed, 1)(*point), rtol=1e-12)
        hessian = numpy.array(jax.hessian(theirs, (0, 1))(*point))
        numpy.testing.assert_allclose([p.item() for p in product], hessian @ [2, 3], rtol=1e-12)


def test_nested_gradients_are_not_confused():
    """d/dx (x d/dy (x + y)) is 1; d/dx (x d/dy (x y)) is 2x."""
    for inner, slope in ((lambda x, y: x + y, 1), (lambda x, y: x * y, 6)):
        x, y = leaf(torch, 3.0), leaf(torch, 1.0)
        (by_y,) = torch.autograd.grad(inner(x, y), y, create_graph=True)
        assert torch.autograd.grad(x * by_y, x)[0].item() == slope


@as_torch("tensor(12.0, requires_grad=True)")
def test_a_recorded_pass_that_frees(torch):
    x = leaf(torch, 2.0)
    y = x * x * x
    (first,) = torch.autograd.grad(y, x, create_graph=True, retain_graph=False)
    return first


# ---- passes inside jaxgrad.jit


def test_passes_inside_jit_equal_eager_ones():
    def function(x, y):
        z = x * y
        z.retain_grad()
        total = (z * z).sum() + x.exp().sum()
        total.backward(retain_graph=True)
        total.backward(inputs=[y])
        batch = torch.autograd.grad(x * x * y, x, torch.eye(2), is_grads_batched=True)
        unused = torch.autograd.grad(x.sum(), [x, y], materialize_grads=True)
        return z.grad, x.grad, y.grad, *batch, *unused

    def arguments():
        return leaf(torch, 0.5, 2.0), leaf(torch, 3.0, -1.0)

    leaves = arguments()
    for compiled, eager in zip(torch.jit(function)(*leaves), function(*arguments()), strict=True):
        numpy.testing.assert_allclose(compiled.numpy(), eager.numpy(), rtol=1e-6)
    for x, gradient in zip(leaves, torch.jit(function)(*arguments())[1:3], strict=True):
        assert x.grad.tolist() == gradient.tolist()


# ---- life and death of a graph


def saved_by(node):
    saved = getattr(node, "saved", ())
    return () if saved is FREED else tuple(map(value_of, saved))


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def backward(x):
    y = (x.sin() * x).sum()
    y.backward()
    return y


def retained(x):
    y = x * x
    y.retain_grad()
    z = y.sum()
    z.backward(retain_graph=True)
    return z


def recorded(x):
    y = (x * x * x).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    return second


def several_outputs(x):
    first, second = (x * x).unbind()
    values, _ = (x * first).max(0)
    return values * second


def failed(x):
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    return y


def inside_func(x):
    return torch.func.grad(lambda x: (x * x * x).sum())(x) * 2


@pytest.mark.parametrize(
    "compute", [backward, retained, recorded, several_outputs, failed, inside_func]
)
def test_a_graph_dies_with_its_last_handle(no_collector, compute):
    x = leaf(torch, 1.0, 2.0)
    result = compute(x)
    nodes = [weakref.ref(node) for node in nodes_of(result)]
    arrays = [weakref.ref(array) for node in nodes for array in saved_by(node())]
    assert len(nodes) > 2
    tensor = weakref.ref(result)
    reference = weakref.ref(x)
    del result
    torch.synchronize()
    assert tensor() is None
    assert [node() for node in nodes if node() is not None] == []
    assert [a() for a in arrays if a() is not None and a() is not x._array] == []
    del x
    assert reference() is None


def test_a_leaf_is_held_by_its_graph_alone(no_collector):
    x = leaf(torch, 2.0)
    y = x * x
    reference = weakref.ref(x)
    del x
    assert reference() is not None
    y.backward()
    assert reference().grad.item() == 4
    del y
    assert reference() is None


def test_a_retained_tensor_is_not_kept_alive(no_collector):
    x = leaf(torch, 2.0)
    y = x * x
    y.retain_grad()
    middle = weakref.ref(y)
    z = y * 3
    del y
    assert middle() is None
    z.backward()
    assert x.grad.item() == 12


# ---- deep graphs


def chain(x, length):
    for _ in range(length):
        x = -x
    return x


@pytest.mark.row("A36")
@pytest.mark.parametrize(
    "length", [20_000, *[pytest.param(n, marks=pytest.mark.slow) for n in (100_000, 1_000_000)]]
)
def test_deep_chains_are_recorded_run_and_freed(length):
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        x = leaf(torch, 1.0)
        y = chain(x, length)
        last = weakref.ref(y.grad_fn)
        assert torch.autograd.grad(y, x, retain_graph=True)[0].item() == 1
        y.backward()
        assert x.grad.item() == 1
        del y
        assert last() is None
    finally:
        sys.setrecursionlimit(limit)


# Python frees 50 objects of a chain inside one another, and Python 3.13 of any chain 10,000, for
# which plain objects too need so much. All nodes of the graph would need more.
SMALL_STACK = 1024 * 1024 if sys.version_info[:2] == (3, 13) else 512 * 1024


@pytest.mark.slow
def test_deep_graphs_that_never_ran_are_freed_on_a_small_stack():
    def work():
        y = chain(leaf(torch, 1.0), 50_000)
        freed.append(weakref.ref(y.grad_fn))
        del y

    freed, before = [], threading.stack_size(SMALL_STACK)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert freed[0]() is None


@pytest.mark.slow
def test_deep_recorded_passes():
    x = double(1.001)
    y = x
    for _ in range(3000):
        y = y * x
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    numpy.testing.assert_allclose(first.item(), 3001 * 1.001**3000, rtol=1e-10)
    numpy.testing.assert_allclose(second.item(), 3001 * 3000 * 1.001**2999, rtol=1e-10)


@pytest.mark.slow
def test_wide_graphs_accumulate_every_path():
    x = leaf(torch, 2.0)
    total = x * 0
    for _ in range(5000):
        total = total + x * x
    total.backward()
    assert x.grad.item() == 5000 * 4


# ---- exceptions


class Broken(Exception):
    pass


def calling(function):
    """In the place of a kernel one that calls a function."""
    return types.SimpleNamespace(noted=None, call=function)


def raising(error, *args):
    def kernel(*arrays):
        raise error(*args)

    return kernel


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("error", [Broken, KeyboardInterrupt, MemoryError])
def test_a_failed_pass_leaves_the_graph_usable(monkeypatch, error, create_graph):
    x = leaf(torch, 2.0, 3.0)
    y = x.sin()
    z = (y * y).sum()
    node = z.grad_fn.edges[0][0]
    monkeypatch.setattr(node.reverse, "kernel", calling(raising(error)))
    with pytest.raises(error):
        torch.autograd.grad(z, x, create_graph=create_graph)
    assert torch.is_grad_enabled()
    monkeypatch.undo()
    z.backward()
    numpy.testing.assert_allclose(x.grad.numpy(), numpy.sin([4.0, 6.0]), rtol=1e-6)


def test_what_ran_before_a_failure_is_freed_and_the_rest_is_not(monkeypatch):
    x = leaf(torch, 2.0, 3.0)
    y = x * x
    z = y.exp()
    monkeypatch.setattr(y.grad_fn.reverse, "kernel", calling(raising(Broken)))
    with pytest.raises(Broken):
        z.sum().backward()
    monkeypatch.undo()
    assert z.grad_fn.saved is FREED
    assert x.grad is None
    y.sum().backward()
    assert x.grad.tolist() == [4, 6]


def test_an_interrupt_by_signal(monkeypatch):
    x = leaf(torch, 2.0, 3.0)
    y = x * x
    z = (y * y).sum()
    kernel = y.grad_fn.reverse.kernel
    call = kernel.call

    def interrupted(*arrays):
        signal.raise_signal(signal.SIGINT)
        return call(*arrays)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(kernel, "call", interrupted)
        with torch.no_grad():
            with pytest.raises(KeyboardInterrupt):
                z.backward(retain_graph=True)
            assert not torch.is_grad_enabled()
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    x.grad = None
    z.backward()
    assert x.grad.tolist() == [32, 108]


def test_refused_arguments_leave_no_trace():
    x, constant = leaf(torch, 2.0), torch.tensor(1.0)
    y = x * x
    for wrong in (
        lambda: y.backward(torch.ones(3)),
        lambda: torch.autograd.grad(y, constant),
        lambda: torch.autograd.backward([y, constant]),
        lambda: y.backward(inputs=[]),
        lambda: torch.autograd.grad(y, x, is_grads_batched=True, grad_outputs=torch.ones(2, 2)),
    ):
        with pytest.raises(RuntimeError):
            wrong()
    assert x.grad is None
    y.backward()
    assert x.grad.item() == 4


def test_an_error_shows_where_it_was_raised(monkeypatch):
    x = leaf(torch, 2.0)
    y = x * x
    monkeypatch.setattr(y.grad_fn.reverse, "kernel", calling(raising(Broken, "in the kernel")))
    with pytest.raises(Broken, match="in the kernel") as raised:
        y.backward()
    assert [entry.name for entry in raised.traceback][-1] == "kernel"


@pytest.mark.row("edge_38")
@pytest.mark.slow
def test_a_chain_of_100_000_nodes():
    x = leaf(jaxgrad, 1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1
