"""Passes in several threads at once."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
from helpers import hangs
from helpers.as_torch import leaf

import jaxgrad
import jaxgrad as torch

THREADS = 10


@pytest.fixture(autouse=True)
def frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(function, count=THREADS):
    """The results or errors of `function(i)` in `count` threads that start together."""
    barrier = threading.Barrier(count)

    def run(position):
        barrier.wait(hangs.LIMIT)
        try:
            return function(position)
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def of_another_thread(function, *args):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()


@pytest.mark.row("A49")
def test_many_tasks_on_one_leaf():
    x = leaf(torch, 2.0)

    def task(_):
        (x * x).backward()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(task, range(100)))
    assert x.grad.item() == 400


@pytest.mark.slow
def test_many_tasks_on_one_leaf_recorded():
    x = leaf(torch, 2.0, dtype=torch.float64)

    def task(_):
        (first,) = torch.autograd.grad(x * x * x, x, create_graph=True)
        first.backward()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(task, range(100)))
    assert x.grad.item() == 100 * 12


@pytest.mark.row("A49")
@pytest.mark.slow
def test_one_shared_graph_is_for_one():
    for _ in range(20):
        x = leaf(torch, 2.0)
        y = (x * x + x.exp() * x).sin()
        results = together(lambda _, y=y: y.backward())
        errors = [result for result in results if result is not None]
        assert len(errors) == THREADS - 1
        assert {type(error) for error in errors} == {RuntimeError}
        assert all("second time" in str(error) for error in errors)
        expected = numpy.cos(4 + 2 * numpy.exp(2.0)) * (4 + 3 * numpy.exp(2.0))
        numpy.testing.assert_allclose(x.grad.item(), expected, rtol=1e-5)


def test_one_shared_graph_that_is_retained_is_for_all():
    x = leaf(torch, 2.0)
    y = x * 3
    y.retain_grad()
    z = y * y
    assert together(lambda _: z.backward(retain_graph=True)) == [None] * THREADS
    assert (x.grad.item(), y.grad.item()) == (THREADS * 36, THREADS * 12)


@pytest.mark.slow
def test_independent_passes_in_many_threads():
    def work(position):
        x = leaf(torch, float(position), 1.0)
        for _ in range(10):
            (x * x * position).sum().backward()
        return x.grad.tolist()

    assert together(work) == [[20.0 * i * i, 20.0 * i] for i in range(THREADS)]


@pytest.mark.slow
def test_a_new_leaf_in_many_threads_at_once():
    """All graphs must lead to the one node of the leaf, in whichever thread it was made."""
    for _ in range(30):
        x = leaf(torch, 3.0)
        results = together(lambda i, x=x: torch.autograd.grad(x * float(i + 4), x))
        assert [result[0].item() for result in results] == [i + 4 for i in range(THREADS)]
        outputs = together(lambda i, x=x: x * float(i + 4))
        total = torch.autograd.grad(outputs, x)
        assert total[0].item() == sum(range(4, THREADS + 4))


@pytest.mark.parametrize("name", ["AccumulateGrad", "LeafState"])
def test_a_new_leaf_gets_one_node_however_slowly(monkeypatch, name):
    module = sys.modules[torch.Tensor.__module__]
    make = getattr(module, name)

    def slowly(*args):
        time.sleep(0.05)
        return make(*args)

    monkeypatch.setattr(module, name, slowly)
    x = leaf(torch, 3.0)
    outputs = together(lambda i: x * (i + 1), 4)
    assert torch.autograd.grad(outputs, x)[0].item() == 10
    assert len({output.grad_fn.next_functions[0][0] for output in outputs}) == 1


@pytest.mark.slow
def test_a_new_operator_in_many_threads_at_once():
    def work(_):
        x = torch.full((7, 3), 0.5, requires_grad=True)
        y = x.tanh() / x.cosh()
        y.sum().backward()
        return x.grad.sum().item()

    results = together(work)
    assert len(set(results)) == 1
    x = 0.5
    slope = (1 - numpy.tanh(x) ** 2) / numpy.cosh(x) - numpy.tanh(x) * numpy.tanh(x) / numpy.cosh(x)
    numpy.testing.assert_allclose(results[0], 21 * slope, rtol=1e-5)


def test_a_part_of_the_graph_is_made_in_another_thread():
    x = leaf(torch, 2.0)
    y = x * x
    z = of_another_thread(lambda: y * x)
    (z * y).backward()
    assert x.grad.item() == 5 * 2**4


def test_a_pass_in_another_thread_than_the_graph():
    x = leaf(torch, 2.0)
    y = x * x * x
    with torch.no_grad():
        of_another_thread(y.backward)
    assert x.grad.item() == 12


def test_fork_and_join_in_the_middle():
    x = leaf(torch, 2.0)
    y = x * x
    parts = together(lambda i: y * (i + 1))
    sum(parts[1:], parts[0]).backward()
    assert x.grad.item() == 4 * sum(range(1, THREADS + 1))


def test_passes_inside_threads_of_a_pass_forked():
    x = leaf(torch, 2.0)
    y = x * x

    def work(i):
        (gradient,) = torch.autograd.grad(y * (i + 1), y, retain_graph=True)
        return gradient.item()

    assert together(work) == [i + 1 for i in range(THREADS)]
    y.backward()
    assert x.grad.item() == 4


def test_an_error_stays_in_its_thread():
    def work(position):
        x = leaf(torch, 2.0, 3.0)
        y = (x * x).sum()
        y.backward()
        if position % 2:
            y.backward()
        return x.grad.tolist()

    results = together(work)
    assert results[::2] == [[4, 6]] * (THREADS // 2)
    assert {type(error) for error in results[1::2]} == {RuntimeError}
    for error in results[1::2]:
        names = []
        trace = error.__traceback__
        while trace is not None:
            names.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        assert "work" in names


def test_each_thread_has_a_mode_of_its_own():
    def work(position):
        x = leaf(torch, 2.0)
        with torch.set_grad_enabled(position % 2 == 0):
            return [(x * x).requires_grad for _ in range(20)]

    assert together(work) == [[i % 2 == 0] * 20 for i in range(THREADS)]
    assert torch.is_grad_enabled()


@pytest.mark.slow
def test_compiling_in_several_threads():
    def work(position):
        @torch.jit
        def function(x):
            y = (x * x * (position + 1)).sum()
            y.backward()
            return x.grad

        x = leaf(torch, 1.0, 2.0)
        return [function(x).tolist() for _ in range(3)]

    expected = [[[2.0 * n * (i + 1), 4.0 * n * (i + 1)] for n in (1, 2, 3)] for i in range(THREADS)]
    assert together(work) == expected


def test_one_compiled_function_for_all():
    @torch.jit
    def function(x):
        (x * x * x).sum().backward()
        return x.grad

    results = together(lambda i: function(leaf(torch, float(i), 1.0)).tolist())
    assert results == [[3.0 * i * i, 3.0] for i in range(THREADS)]


def test_one_compiled_function_called_in_all_threads_at_once():
    """One thread traces, and the others find its program."""
    ready = threading.Barrier(THREADS)
    function = torch.jit(lambda x: x * x)

    def work(position):
        x = torch.tensor(float(position))
        ready.wait(hangs.LIMIT)
        return function(x).item()

    assert together(work) == [float(i * i) for i in range(THREADS)]
    assert function.count == 1


@pytest.mark.slow
def test_compiled_and_eager_passes_beside_each_other():
    function = torch.jit(lambda x: torch.autograd.grad((x.sin() * x).sum(), x)[0])
    outside = leaf(torch, 2.0)

    def work(position):
        if position % 2:
            return function(torch.ones(position + 1, requires_grad=True)).sum().item()
        (outside * outside).backward()
        return 0

    results = together(work)
    slope = numpy.sin(1.0) + numpy.cos(1.0)
    expected = [slope * (i + 1) if i % 2 else 0 for i in range(THREADS)]
    numpy.testing.assert_allclose(results, expected, rtol=1e-5)
    assert outside.grad.item() == 4 * (THREADS // 2)


def test_saved_tensors_hooks_belong_to_their_thread():
    """Hooks entered in one thread, while others record beside it, see what that thread saves."""

    def work(position):
        seen = []

        def pack(tensor):
            seen.append(tensor.item())
            return tensor

        x = leaf(torch, float(position))
        for _ in range(20):
            if position % 2:
                with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                    y = x.exp()
            else:
                y = x.exp()
            y.backward()
        return seen, x.grad.item()

    for position, (seen, gradient) in enumerate(together(work)):
        numpy.testing.assert_allclose(gradient, 20 * numpy.exp(position), rtol=1e-5)
        numpy.testing.assert_allclose(seen, [numpy.exp(position)] * (position % 2 * 20), rtol=1e-5)


def test_hooks_of_shared_leaves_in_data_parallel_passes():
    """Each thread's pass calls the hooks of what it shares with others, with its own gradient."""
    weight, seen, updated = leaf(torch, 2.0), [], []
    weight.register_hook(lambda gradient: seen.append(gradient.item()))
    weight.register_post_accumulate_grad_hook(lambda tensor: updated.append(tensor is weight))

    def work(position):
        (weight * (position + 1)).backward()

    together(work)
    assert sorted(seen) == list(range(1, THREADS + 1))
    assert updated == [True] * THREADS
    assert weight.grad.item() == sum(range(1, THREADS + 1))


def test_a_multi_grad_hook_keeps_passes_apart():
    x, y, calls = leaf(torch, 2.0), leaf(torch, 3.0), []
    torch.autograd.graph.register_multi_grad_hook(
        (x, y), lambda gradients: calls.append([g.item() for g in gradients])
    )
    together(lambda i: (x * y * (i + 1)).backward())
    assert sorted(calls) == [[3.0 * (i + 1), 2.0 * (i + 1)] for i in range(THREADS)]


def test_a_thread_in_the_middle_of_a_pass():
    """A Function whose backward waits for a pass that runs in another thread."""

    class Elsewhere(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors

            def slope():
                inner = x.detach().requires_grad_()
                (inner * inner).sum().backward()
                return inner.grad

            return gradient * of_another_thread(slope)

    def work(position):
        x = leaf(torch, float(position))
        (Elsewhere.apply(x) * 3).backward()
        return x.grad.item()

    assert together(work) == [6.0 * i for i in range(THREADS)]


@pytest.mark.slow
def test_real_numbers_joined_to_complex_ones():
    def work(position):
        real = leaf(torch, 1.0, 2.0)
        number = leaf(torch, 1 + 2j, 3 - 1j)
        joined = torch.cat([real, number]) if position % 2 else torch.stack([real, number])
        (joined * joined.conj()).real.sum().backward()
        return real.grad.tolist(), number.grad.tolist()

    assert together(work) == [([2.0, 4.0], [2 + 4j, 6 - 2j])] * THREADS


def test_levels_of_forward_mode_belong_to_their_thread():
    forward_ad = torch.autograd.forward_ad

    def work(position):
        with forward_ad.dual_level():
            x = forward_ad.make_dual(torch.tensor(3.0), torch.tensor(float(position)))
            return forward_ad.unpack_dual(x * x).tangent.item()

    assert together(work) == [6.0 * i for i in range(THREADS)]


@pytest.mark.row("edge_39")
def test_asyncio_tasks_on_one_leaf():
    x = leaf(jaxgrad, 2.0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: (x * x).backward(), range(100)))
    assert x.grad.item() == 400


@pytest.mark.row("edge_39")
def test_one_shared_graph_in_several_threads():
    x = leaf(jaxgrad, 2.0)
    y = (x * x).exp()

    def attempt(_):
        try:
            y.backward()
        except RuntimeError as error:
            assert "second time" in str(error)
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1


@pytest.mark.row("edge_39")
def test_grad_mode_is_thread_local():
    with jaxgrad.no_grad(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(jaxgrad.is_grad_enabled).result()
