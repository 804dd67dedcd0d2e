"""The check for leaked graphs notices one; what is made anew in a loop leaves nothing behind."""

import contextlib
import gc

import jax
import pytest
from helpers import leaks
from jax.extend.backend import get_backend

import jaxgrad
from jaxgrad import func, nn, optim
from jaxgrad.compiled.executable import Executable
from jaxgrad.core import bounded_cache
from jaxgrad.tape.node import Node
from jaxgrad.utils import checkpoint

pytestmark = pytest.mark.usefixtures("nothing_compiled")


class Held:
    def __init__(self, **attributes):
        vars(self).update(attributes)


def leaf():
    return jaxgrad.tensor([1.0, 2.0], requires_grad=True)


@pytest.mark.slow
def test_a_graph_that_is_dropped_is_not_left(monkeypatch):
    with leaks.no_graph_is_left(monkeypatch):
        x = leaf()
        (x * x).sum().backward()
        del x


@pytest.mark.slow
def test_a_graph_that_is_kept_is_left(monkeypatch):
    with (
        pytest.raises(AssertionError, match=r"2 nodes are left.*MulBackward0"),
        leaks.no_graph_is_left(monkeypatch),
    ):
        kept = leaf() * 2
    del kept


@pytest.mark.slow
def test_a_leaf_whose_edge_is_kept_is_left(monkeypatch):
    with (
        pytest.raises(AssertionError, match=r"1 nodes are left.*AccumulateGrad"),
        leaks.no_graph_is_left(monkeypatch),
    ):
        kept = jaxgrad.autograd.graph.get_gradient_edge(leaf())
    del kept


def tie(create_graph):
    x = leaf()
    (y,) = jaxgrad.autograd.grad((x**3).sum(), x, create_graph=create_graph)
    x.grad = y if create_graph else (x * x)


@pytest.mark.slow
def test_a_cycle_is_left_without_create_graph_alone(monkeypatch):
    gc.disable()
    try:
        with leaks.no_graph_is_left(monkeypatch):
            tie(create_graph=True)
        with (
            pytest.raises(AssertionError, match="nodes are left"),
            leaks.no_graph_is_left(monkeypatch),
        ):
            tie(create_graph=False)
    finally:
        gc.enable()


@pytest.mark.slow
def test_what_an_exception_holds_in_a_test_is_not_left(monkeypatch):
    def body():
        y = (leaf() * 2).sum()
        with pytest.raises(ZeroDivisionError) as raised:
            y.item() / 0
        assert raised.traceback

    with leaks.no_graph_is_left(monkeypatch):
        body()


# ---- loops: each case gives what is run again and again


def compiled_functions():
    x = jaxgrad.ones(2)
    return lambda: jaxgrad.jit(lambda x: x * 2)(x)


def compiled_functions_with_a_graph():
    x = jaxgrad.ones(2)

    def once():
        w = leaf()
        jaxgrad.jit(lambda x: (x * w).sum())(x).backward()

    return once


def compiled_training():
    x = jaxgrad.ones(2)

    def once():
        layer = nn.Linear(2, 2)
        optimizer = optim.Adam(layer.parameters())

        @jaxgrad.jit
        def step(x):
            optimizer.zero_grad()
            loss = layer(x).sum()
            loss.backward()
            optimizer.step()
            return loss

        step(x)
        step(x)

    return once


def modules_as_arguments():
    x, step = jaxgrad.ones(2), jaxgrad.jit(lambda module, x: module(x).sum())
    return lambda: step(nn.Linear(2, 2), x).backward()


def objects_as_arguments():
    x, step = jaxgrad.ones(2), jaxgrad.jit(lambda held, x: held.tensor * x)
    return lambda: step(Held(tensor=leaf()), x).sum().backward()


def functions_as_arguments():
    x, step = jaxgrad.ones(2), jaxgrad.jit(lambda function, x: function(x))

    def once():
        tensor = jaxgrad.ones(2)
        step(lambda x: x * tensor, x)

    return once


def captured_tensors_that_go():
    held, x = [None], jaxgrad.ones(2)
    step = jaxgrad.jit(lambda x: x * held[0])

    def once():
        held[0] = jaxgrad.ones(2)
        step(x)

    return once


def tensors_that_escape():
    held, x = [None], jaxgrad.ones(2)

    @jaxgrad.jit
    def step(x):
        y = x * 2
        held[0] = lambda: y
        return y

    return lambda: step(x)


def transform(make):
    x = jaxgrad.ones(2)
    return lambda: lambda: make(x)


def custom_functions():
    def once():
        class Double(jaxgrad.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        Double.apply(leaf()).sum().backward()

    return once


def per_example_gradients():
    def once():
        w = leaf()
        func.vmap(lambda x: (x * w).sum())(jaxgrad.ones(3, 2)).sum().backward()

    return once


def optimizers():
    w = leaf()

    def once():
        w.grad = None
        (w * w).sum().backward()
        optim.Adam([w]).step()

    return once


def modules():
    def once():
        layers = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
        optimizer = optim.SGD(layers.parameters(), lr=0.1, momentum=0.9)
        layers(jaxgrad.ones(2)).sum().backward()
        optimizer.step()

    return once


def checkpoints():
    return lambda: (
        checkpoint.checkpoint(lambda x: x.sin(), leaf(), use_reentrant=False).sum().backward()
    )


LOOPS = {
    "grad": transform(lambda x: func.grad(lambda x: (x * x).sum())(x)),
    "vjp": transform(lambda x: func.vjp(lambda x: x * x, x)[1](x)),
    "jvp": transform(lambda x: func.jvp(lambda x: x * x, (x,), (x,))),
    "vmap": transform(lambda x: func.vmap(lambda x: x * 2)(x)),
    "jacrev": transform(lambda x: func.jacrev(lambda x: x * x)(x)),
    "jacfwd": transform(lambda x: func.jacfwd(lambda x: x * x)(x)),
    "hessian": transform(lambda x: func.hessian(lambda x: (x * x * x).sum())(x)),
    "linearize": transform(lambda x: func.linearize(lambda x: x * x, x)[1](x)),
    "to_jax": transform(lambda x: jax.grad(jaxgrad.to_jax(lambda x: (x * 2).sum()))(x.numpy())),
} | {
    scenario.__name__: scenario
    for scenario in (
        compiled_functions,
        compiled_functions_with_a_graph,
        compiled_training,
        modules_as_arguments,
        objects_as_arguments,
        functions_as_arguments,
        captured_tensors_that_go,
        tensors_that_escape,
        custom_functions,
        per_example_gradients,
        optimizers,
        modules,
        checkpoints,
    )
}


def counts() -> dict[str, int]:
    """What is alive, after collections: what the first one finds may free more."""
    jaxgrad.synchronize()  # calls that are noted hold what they read
    while gc.collect():
        pass
    objects = gc.get_objects()
    kinds = jaxgrad.Tensor, Node, Executable, nn.Module, optim.Optimizer
    alive = {
        kind.__name__: sum(issubclass(type(entry), kind) for entry in objects) for kind in kinds
    }
    executables, arrays = get_backend().live_executables(), jax.live_arrays()
    return alive | {"executables": len(executables), "arrays": len(arrays)}


def grown(before: dict[str, int]) -> dict[str, int]:
    """What is more than before, and how much more: what other tests made may go meanwhile."""
    after = counts()
    return {name: after[name] - before[name] for name in before if after[name] > before[name]}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.filterwarnings("ignore:.*traced at every call")
def test_a_loop_leaves_nothing(name):
    once = LOOPS[name]()
    for _ in range(3):
        once()
    before = counts()
    for _ in range(5):
        once()
        gc.collect()  # a program is dropped once its tensors are gone
    assert not grown(before)


@contextlib.contextmanager
def limits(**bounds):
    usual = dict(bounded_cache.LIMITS)
    jaxgrad.compiler.reset()
    jaxgrad.compiler.set_cache_limits(**bounds)
    yield
    jaxgrad.compiler.set_cache_limits(**usual)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*traced at every call")
def test_programs_of_other_states_stay_within_the_limit():
    class Config:
        pass

    config, x = Config(), jaxgrad.ones(2)
    step = jaxgrad.jit(lambda x: x * config.held.rate + config.held.tensor)

    def once(number):
        config.held = Held(rate=number + 0.5, tensor=jaxgrad.ones(2))
        assert step(x).tolist() == [number + 1.5] * 2

    for number in range(4):
        once(number)
    before = counts()
    for number in range(8):
        once(number)
        gc.collect()
    assert not grown(before) and len(step.traces) <= 2


@pytest.mark.slow
def test_functions_of_jax_stay_within_the_limit():
    def once():
        jaxgrad.from_jax(lambda x: x * 2)(leaf()).sum().backward()

    with limits(kernels=16):
        for _ in range(10):
            once()
        before = counts()
        for _ in range(30):
            once()
            assert counts()["executables"] <= before["executables"] + 16
        assert counts()["arrays"] <= before["arrays"] + 16


def cubes(x):
    @jaxgrad.jit
    def step(held, x):
        return (x**3).sum() * held.rate

    return step(Held(rate=2.0), x)


@pytest.mark.slow
def test_a_graph_keeps_the_arguments_that_a_second_derivative_needs():
    x = leaf()
    loss = cubes(x)
    (first,) = jaxgrad.autograd.grad(loss, x, create_graph=True)
    (second,) = jaxgrad.autograd.grad(first.sum(), x)
    assert first.tolist() == [6.0, 24.0] and second.tolist() == [12.0, 24.0]


def test_a_gradient_keeps_the_arguments_that_its_derivative_needs():
    x = leaf()
    (first,) = jaxgrad.autograd.grad(cubes(x), x, create_graph=True)
    (second,) = jaxgrad.autograd.grad(first.sum(), x)  # the loss is gone
    assert second.tolist() == [12.0, 24.0]
