"""Backward passes inside backward passes, callbacks at the end of a pass, and threads."""

import contextvars
import sys
import threading

import pytest
from helpers.as_torch import as_torch, error, leaf
from helpers.compiled import under_jit
from helpers.functions import function, square
from helpers.hangs import LIMIT

import jaxgrad
from jaxgrad.autograd import Variable


def nested(torch, inside):
    """Doubles; its backward runs `inside`, with grad mode on, and gives twice its gradient."""

    def backward(ctx, grad):
        with torch.enable_grad():
            inside()
        return grad * 2

    return function(torch, lambda ctx, x: x * 2, backward)


def deep(torch, depth, at=lambda level: None):
    """Nested passes, `depth` of them; `at(level)` is called in each, `at(0)` last."""
    ends = []

    def pass_of(level):
        x = leaf(torch, 1.0)

        def inside():
            at(level)
            if level:
                pass_of(level - 1)

        nested(torch, inside).apply(x).backward()
        ends.append(x.grad.item())

    pass_of(depth)
    return ends


# ---- A48


@pytest.mark.row("A48")
@as_torch("""
    tensor(2.0)
    tensor(6.0)
    True
""")
def test_a_pass_inside_of_a_pass(torch):
    inner = leaf(torch, 3.0)
    x = leaf(torch, 2.0)
    F = nested(torch, lambda: (inner * inner).backward())
    F.apply(x).backward()
    return x.grad, inner.grad, torch.is_grad_enabled()


@pytest.mark.row("A48")
@as_torch("tensor(10.0)")
def test_a_pass_inside_of_a_pass_on_the_same_leaf(torch):
    x = leaf(torch, 2.0)
    F = nested(torch, lambda: (x * x).backward())
    (F.apply(x) * 3).backward()
    return x.grad


@pytest.mark.row("A48")
@as_torch("""
    tensor(2.0)
    [tensor(12.0)]
""")
def test_a_pass_inside_of_a_pass_by_grad(torch):
    x, gradients = leaf(torch, 2.0), []
    F = nested(torch, lambda: gradients.append(torch.autograd.grad(x**3, x)[0]))
    F.apply(x).backward()
    return x.grad, gradients


@pytest.mark.row("A48")
@as_torch("tensor([-6.134892725577433, 0.6829280059116103], dtype=float64)")
def test_a_gradient_that_is_computed_by_a_pass_inside(torch):
    """As checkpointing does it: forward runs again in backward, recorded."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin() * x

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            again = x.detach().requires_grad_()
            y = again.sin() * again
        torch.autograd.backward(y, grad)
        return again.grad

    F = function(torch, forward, backward)
    x = leaf(torch, 1.0, 2.0, dtype=torch.float64)
    F.apply(F.apply(x) * 3).sum().backward()
    return x.grad


@pytest.mark.row("A48")
@as_torch("""
    tensor(7.0)
    [RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn')]
""")
def test_in_a_hook_grad_mode_is_off(torch):
    x, seen = leaf(torch, 2.0), []

    def hook(grad):
        seen.append(error(lambda: (x * x).backward()))
        with torch.enable_grad():
            (x * x).backward()

    y = x * 3
    y.register_hook(hook)
    y.backward()
    return x.grad, seen


@pytest.mark.row("A48")
@as_torch("""
    RuntimeError(
     'Trying to backward through the graph a second time (or directly access saved '
     'tensors after they have already been freed). Saved intermediate values of the '
     'graph are freed when you call .backward() or autograd.grad(). Specify '
     'retain_graph=True if you need to backward through the graph a second time or if '
     'you need to access saved tensors after calling backward.')
    tensor(4.0)
""")
def test_the_graph_of_the_pass_around(torch):
    """Both passes share a graph: the outer pass does not find what the inner one freed."""
    x = leaf(torch, 2.0)
    graph = [x * x]
    F = nested(torch, lambda: graph[0].backward())
    z = F.apply(x) * graph[0]
    raised = error(z.backward)
    graph.clear()
    return raised, x.grad


@pytest.mark.row("A48")
@as_torch("""
    KeyError("'mine'")
    True
    KeyError("'mine'")
    None
""")
def test_an_error_inside_an_inner_pass(torch):
    def inside():
        raise KeyError("mine")

    x = leaf(torch, 2.0)
    y = nested(torch, lambda: nested(torch, inside).apply(x).backward()).apply(x) * x
    raised = error(lambda: y.backward(retain_graph=True))
    return raised, torch.is_grad_enabled(), error(y.backward), x.grad


@pytest.mark.row("A48")
@as_torch
def test_grad_mode_in_each_pass(torch):
    x, seen = leaf(torch, 2.0), []

    def note(name):
        seen.append((name, torch.is_grad_enabled()))

    def backward(ctx, grad):
        note("before")
        with torch.enable_grad():
            y = x * x
            y.register_hook(lambda grad: note("inside"))
            torch.autograd.grad(y, x)
            note("between")
            y = x * x
            y.register_hook(lambda grad: note("inside, recorded"))
            torch.autograd.grad(y, x, create_graph=True)
        note("after")
        return grad

    F = function(torch, lambda ctx, x: x * 2, backward)
    F.apply(x).backward()
    torch.autograd.grad(F.apply(x), x, create_graph=True)
    return seen


@pytest.mark.row("edge_38")
@pytest.mark.parametrize("depth", [1, 19, 20, 21, 200])
def test_passes_inside_passes(depth):
    assert deep(jaxgrad, depth) == [2] * (depth + 1)


@pytest.mark.row("edge_38")
@pytest.mark.slow
def test_a_thousand_passes_inside_of_each_other():
    threads = threading.active_count()
    assert deep(jaxgrad, 1000) == [2] * 1001
    assert threading.active_count() == threads


@pytest.mark.row("edge_38")
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_at_the_bottom(kind):
    def at(level):
        if not level:
            raise kind("mine")

    threads = threading.active_count()
    with pytest.raises(kind, match="mine"):
        deep(jaxgrad, 100, at)
    assert threading.active_count() == threads and jaxgrad.is_grad_enabled()
    assert deep(jaxgrad, 3) == [2] * 4


@pytest.mark.row("edge_38")
def test_recursion_without_an_end():
    """Python raises RecursionError and does not crash; afterwards everything works as before."""
    before = sys.getrecursionlimit()

    def endless(level=0):
        return endless(level + 1)

    with pytest.raises(RecursionError):
        deep(jaxgrad, 50, lambda level: level or endless())
    assert sys.getrecursionlimit() == before and deep(jaxgrad, 1) == [2, 2]


@pytest.mark.row("edge_38")
def test_modes_and_context_variables_in_the_deepest_pass():
    variable, seen = contextvars.ContextVar("variable"), []

    def at(level):
        modes = jaxgrad.is_grad_enabled(), jaxgrad.is_inference_mode_enabled()
        seen.append((variable.get(), *modes, jaxgrad.get_default_dtype()))
        variable.set(level)

    variable.set(100)
    jaxgrad.set_default_dtype(jaxgrad.float64)
    try:
        deep(jaxgrad, 99, at)
    finally:
        jaxgrad.set_default_dtype(jaxgrad.float32)
    # inner passes see the context variables that an outer one sets
    assert seen == [(level, True, False, jaxgrad.float64) for level in range(100, 0, -1)]


@pytest.mark.row("edge_38")
def test_strict_versions_in_the_deepest_pass():
    def at(level):
        if level:
            return
        x = leaf(jaxgrad, 2.0)
        y = x.exp()
        y.add_(1)
        y.backward()

    with (
        jaxgrad.autograd.graph.strict_versions(),
        pytest.raises(RuntimeError, match="has been modified by an inplace operation"),
    ):
        deep(jaxgrad, 50, at)
    deep(jaxgrad, 50, at)


@pytest.mark.row("edge_38")
def test_passes_inside_passes_compiled():
    """In a trace a pass stays in its thread: another thread would not be part of the trace."""

    def step(x):
        gradients = []

        def pass_of(level):
            y = x * 3
            F = nested(jaxgrad, lambda: level and pass_of(level - 1))
            gradients.append(jaxgrad.autograd.grad(F.apply(y), x)[0])

        pass_of(30)
        return gradients

    for run in (jaxgrad.jit(step), step):
        assert [gradient.item() for gradient in run(leaf(jaxgrad, 3.0))] == [6] * 31


@pytest.mark.row("edge_38")
def test_threads_with_deep_passes_beside_each_other():
    gradients = {}

    def task(number):
        gradients[number] = deep(jaxgrad, 60)

    tasks = [threading.Thread(target=task, args=(number,)) for number in range(4)]
    for thread in tasks:
        thread.start()
    for thread in tasks:
        thread.join(LIMIT)
    assert gradients == {number: [2] * 61 for number in range(4)}


# ---- A47


def queue(torch, callback):
    engine = torch.autograd.Variable._execution_engine
    engine.queue_callback(callback)


@pytest.mark.row("A47")
@as_torch("""
    'hook'
    ['end', 6.0]
    'after'
""")
def test_callbacks_are_called_at_the_end_of_the_pass(torch):
    x, seen = leaf(torch, 2.0), []

    def hook(grad):
        queue(torch, lambda: seen.append(("end", x.grad.item())))
        seen.append("hook")

    y = x * 3
    y.register_hook(hook)
    (y * 2).backward()
    seen.append("after")
    return seen


@pytest.mark.row("A47")
@as_torch("RuntimeError('Final callbacks can only be installed during backward pass.')")
def test_queue_callback_outside_of_a_pass(torch):
    return error(queue, torch, print)


@pytest.mark.row("A47")
@as_torch("""
    'first'
    'second'
    'first'
    'first'
    'second'
    'first'
""")
def test_callbacks_run_in_their_order_also_those_added_meanwhile(torch):
    x, seen = leaf(torch, 2.0), []

    def first():
        seen.append("first")

    def hook(grad):
        queue(torch, first)
        queue(torch, lambda: seen.append("second"))
        queue(torch, first)

    x.register_hook(hook)
    (x * 2).backward()
    (x * 2).backward()
    return seen


@pytest.mark.row("A47")
@as_torch("""
    'end of the inner pass'
    'the inner pass is over'
    'end of the outer pass'
""")
def test_callbacks_of_a_pass_inside_of_a_pass(torch):
    x, seen = leaf(torch, 2.0), []

    def inside():
        z = x * x
        z.register_hook(lambda grad: queue(torch, lambda: seen.append("end of the inner pass")))
        z.backward()
        seen.append("the inner pass is over")

    y = nested(torch, inside).apply(x)
    y.register_hook(lambda grad: queue(torch, lambda: seen.append("end of the outer pass")))
    y.backward()
    return seen


@pytest.mark.row("A47")
@as_torch("""
    KeyError("'mine'")
    tensor(4.0)
    True
""")
def test_an_error_in_a_callback(torch):
    x = leaf(torch, 2.0)

    def wrong():
        raise KeyError("mine")

    handle = x.register_hook(lambda grad: queue(torch, wrong))
    raised = error((x * 2).backward)
    handle.remove()
    (x * 2).backward()
    return raised, x.grad, torch.is_grad_enabled()


@pytest.mark.row("A47")
@as_torch("""
    KeyError("'mine'")
    []
""")
def test_callbacks_are_not_called_where_the_pass_fails(torch):
    x, seen = leaf(torch, 2.0), []

    def hook(grad):
        queue(torch, lambda: seen.append("end"))
        raise KeyError("mine")

    handle = x.register_hook(hook)
    raised = error((x * 2).backward)
    handle.remove()
    (x * 2).backward()
    return raised, seen


@pytest.mark.row("A47")
@as_torch("""
    False
    True
""")
def test_callbacks_under_grad(torch):
    x, seen = leaf(torch, 2.0), []
    x.register_hook(lambda grad: queue(torch, lambda: seen.append(torch.is_grad_enabled())))
    torch.autograd.grad(x * 2, x)
    torch.autograd.grad(x * 2, x, create_graph=True)
    return seen


@pytest.mark.row("A47")
def test_a_pass_in_a_callback():
    x, z = leaf(jaxgrad, 2.0), leaf(jaxgrad, 3.0)

    def callback():
        with jaxgrad.enable_grad():
            (z * z).backward()

    x.register_hook(lambda grad: Variable._execution_engine.queue_callback(callback))
    (x * 2).backward()
    assert (x.grad.item(), z.grad.item()) == (2, 6)


@pytest.mark.row("A47")
def test_callbacks_belong_to_the_pass_of_their_thread():
    seen, barrier = [], threading.Barrier(4)

    def task(number):
        x = leaf(jaxgrad, 2.0)

        def hook(grad):
            barrier.wait(LIMIT)  # all passes have begun
            queue(jaxgrad, lambda: seen.append((number, threading.get_ident() == mine)))

        mine = threading.get_ident()
        x.register_hook(hook)
        (x * 2).backward()

    tasks = [threading.Thread(target=task, args=(number,)) for number in range(4)]
    for thread in tasks:
        thread.start()
    for thread in tasks:
        thread.join(LIMIT)
    assert sorted(seen) == [(number, True) for number in range(4)]


# ---- threads, A49


def together(task, count=8):
    """The results or errors of `task(number)` in `count` threads that start together."""
    barrier, outcomes = threading.Barrier(count), {}

    def run(number):
        barrier.wait(LIMIT)
        try:
            outcomes[number] = task(number)
        except Exception as raised:
            outcomes[number] = raised

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    return [outcomes[number] for number in range(count)]


@pytest.fixture
def frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.row("A49")
@pytest.mark.usefixtures("frequent_switches")
def test_functions_of_many_threads_on_one_leaf():
    F, x = square(jaxgrad), leaf(jaxgrad, 2.0)

    def task(number):
        for _ in range(20):
            F.apply(F.apply(x) * 1).backward()

    assert together(task) == [None] * 8
    assert x.grad.item() == 8 * 20 * 32


@pytest.mark.row("A49")
@pytest.mark.usefixtures("frequent_switches")
def test_hooks_of_many_threads_on_one_leaf():
    """Each pass calls the hooks that are registered when it reaches the leaf, each once."""
    x, calls = leaf(jaxgrad, 2.0), []
    x.register_hook(lambda grad: calls.append("hook"))
    x.register_post_accumulate_grad_hook(lambda x: calls.append("post"))

    def task(number):
        for _ in range(20):
            handle = x.register_hook(lambda grad: calls.append(number))
            (x * 3).backward()
            handle.remove()

    assert together(task) == [None] * 8
    assert x.grad.item() == 8 * 20 * 3
    assert calls.count("hook") == calls.count("post") == 160
    assert all(calls.count(number) >= 20 for number in range(8)) and len(x._backward_hooks) == 1


@pytest.mark.row("A49")
@pytest.mark.slow
@pytest.mark.usefixtures("frequent_switches")
def test_a_hook_of_several_tensors_in_many_threads():
    """One call in each pass, with the gradients of that pass."""
    x, y, seen = leaf(jaxgrad, 2.0), leaf(jaxgrad, 3.0), []
    handle = jaxgrad.autograd.graph.register_multi_grad_hook(
        (x, y), lambda grads: seen.append(tuple(grad.item() for grad in grads))
    )

    def task(number):
        for _ in range(20):
            (x * (number + 1) + y * (number + 1)).backward()

    assert together(task) == [None] * 8
    handle.remove()
    assert sorted(seen) == sorted((number, number) for number in range(1, 9) for _ in range(20))


@pytest.mark.row("A49")
@pytest.mark.usefixtures("frequent_switches")
def test_one_graph_of_a_function_in_many_threads():
    """One thread runs the graph; the others find it freed."""
    for _ in range(20):
        x = leaf(jaxgrad, 3.0)
        y = square(jaxgrad).apply(x)
        outcomes = together(lambda number, y=y: y.backward())
        errors = [outcome for outcome in outcomes if outcome is not None]
        assert all("backward through the graph a second time" in str(outcome) for outcome in errors)
        assert x.grad.item() == 6 * (8 - len(errors))


@pytest.mark.row("A49")
@pytest.mark.usefixtures("frequent_switches")
def test_one_graph_retained_in_many_threads():
    x = leaf(jaxgrad, 3.0)
    y = square(jaxgrad).apply(square(jaxgrad).apply(x))
    assert together(lambda number: y.backward(retain_graph=True)) == [None] * 8
    assert x.grad.item() == 8 * 108


@pytest.mark.row("edge_39")
def test_grad_mode_belongs_to_a_thread():
    entered, seen = threading.Event(), []

    def forward(ctx, x):
        entered.wait(LIMIT)
        return x * 2

    def task():
        with jaxgrad.no_grad():
            entered.set()
            seen.append(function(jaxgrad, forward, lambda ctx, g: g).apply(x).requires_grad)

    x = leaf(jaxgrad, 2.0)
    thread = threading.Thread(target=task)
    thread.start()
    y = function(jaxgrad, forward, lambda ctx, grad: grad).apply(x)
    thread.join(LIMIT)
    assert (seen, y.requires_grad) == ([False], True)


@pytest.mark.row("edge_38")
@as_torch("""
    tensor(3.0)
    tensor(3.0)
    tensor(3.0)
""")
def test_a_pass_inside_a_pass(torch):
    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.save_for_backward(x)
            ctx.depth = depth
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                inner = x.detach().requires_grad_()
                y = Nested.apply(inner, ctx.depth - 1) if ctx.depth else inner * 3
                y.backward()
            return g * inner.grad, None

    gradients = []
    for depth in (0, 1, 4):
        x = leaf(torch, 1.0)
        Nested.apply(x, depth).backward()
        gradients.append(x.grad)
    return gradients


@pytest.mark.row("edge_38")
def test_a_pass_inside_a_pass_of_depth_200():
    class Count(jaxgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 1

        @staticmethod
        def backward(ctx, g):
            if not ctx.depth:
                return g + 1, None
            with jaxgrad.enable_grad():
                inner = leaf(jaxgrad, 1.0)
                Count.apply(inner, ctx.depth - 1).backward()
            return inner.grad + 1, None

    x = leaf(jaxgrad, 1.0)
    Count.apply(x, 200).backward()
    assert x.grad.item() == 202


@pytest.mark.row("edge_38")
@as_torch("""
    [RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn'),
     tensor(6.0)]
    tensor(4.0)
""")
def test_a_pass_inside_a_hook(torch):
    x, seen = leaf(torch, 2.0), []

    def without(_):
        z = leaf(torch, 3.0)
        words = "element 0 of tensors does not require grad and does not have a grad_fn"
        seen.append(error((z * z).backward, words=words))

    def within(_):
        with torch.enable_grad():
            z = leaf(torch, 3.0)
            (z * z).backward()
        seen.append(z.grad)

    x.register_hook(without)
    x.register_hook(within)
    (x * x).backward()
    return seen, x.grad


@pytest.mark.slow
@pytest.mark.parametrize(
    "test", [test_a_pass_inside_a_pass, test_a_pass_inside_a_hook], ids=lambda test: test.__name__
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()
