"""First calls are noted, and their kernels compiled in threads while the program goes on. The
oracle is the mode "immediate", or NumPy.
"""

import itertools
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest
from helpers import checks
from helpers.modes import eager
from jax.extend.core import Primitive

import jaxgrad as torch
from jaxgrad.core import aval, deferred, dtypes, executor
from jaxgrad.core.program import Program

sizes = itertools.count(5)  # of a shape that no program is known for


def values(size):
    generator = np.random.default_rng(0)
    return [
        torch.tensor(generator.standard_normal(shape).astype(dtype), requires_grad=True)
        for shape, dtype in (((5, size), "f4"), ((size, size), "f4"), ((size,), "f8"))
    ]


def loss(x, w, b):
    y = torch.softmax((x @ w).tanh() * 0.7, 1).double() + b.exp()
    return torch.nn.functional.layer_norm(y, b.shape).sin().square().mean()


def gradients(size):
    leaves = values(size)
    loss(*leaves).backward()
    return [leaf.grad.numpy() for leaf in leaves]


@pytest.fixture(autouse=True)
def in_deferred_mode():
    with eager("deferred,compiled"):
        yield


@pytest.mark.slow
def test_kernels_are_compiled_in_threads_that_end(nothing_compiled, compilations):
    threads = threading.enumerate()
    gradients(next(sizes))
    elsewhere = [ident for ident in compilations if ident != threading.get_ident()]
    assert len(elsewhere) >= 12 and threading.enumerate() == threads


@pytest.mark.slow
def test_no_kernel_is_compiled_twice_and_bits_are_the_same(nothing_compiled, compilations):
    size = next(sizes)
    ahead = gradients(size)
    compiled = len(compilations)
    torch.set_eager("immediate,compiled")
    torch.compiler.reset()
    jax.clear_caches()
    compilations.clear()
    for gradient, expected in zip(ahead, gradients(size), strict=True):
        assert gradient.dtype == expected.dtype and gradient.tobytes() == expected.tobytes()
        checks.count("autograd")
    assert len(compilations) == compiled and {*compilations} == {threading.get_ident()}


@pytest.mark.slow
def test_only_what_a_pass_runs_is_compiled(compilations):
    x, w, b = values(next(sizes))
    result = loss(x, w, b)
    compilations.clear()
    (gradient,) = torch.autograd.grad(result, b, retain_graph=True)
    few = len(compilations)
    torch.autograd.grad(result, [x, w])
    assert 0 < few < len(compilations)
    assert gradient.shape == b.shape


@pytest.mark.parametrize(
    "number", [1, 13, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 7, 10, 16, 19, 22))]
)
def test_an_interrupt_leaves_no_thread_and_all_tensors_right(number, monkeypatch, compilations):
    size, lower, calls = next(sizes), executor._lower_of, []
    leaves, threads = values(size), threading.enumerate()

    def interrupted(*args):
        calls.append(args)
        if len(calls) == number:
            raise KeyboardInterrupt
        return lower(*args)

    monkeypatch.setattr(executor, "_lower_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        loss(*leaves).backward()
    torch.synchronize()
    assert threading.enumerate() == threads
    for tensor in leaves:
        tensor.grad = None
    loss(*leaves).backward()
    for leaf, wanted in zip(leaves, gradients(size), strict=True):
        np.testing.assert_array_equal(leaf.grad.numpy(), wanted)


@pytest.mark.slow
def test_an_error_of_a_compiling_thread_is_left_to_the_call(monkeypatch, compilations):
    class Broken:
        def compile(self):
            raise ValueError("out of cores")

    size = next(sizes)
    leaves = values(size)
    monkeypatch.setattr(executor, "_lower_of", lambda program: Broken)
    loss(*leaves).backward()
    torch.set_eager("immediate,compiled")
    for leaf, wanted in zip(leaves, gradients(size), strict=True):
        np.testing.assert_array_equal(leaf.grad.numpy(), wanted)


@pytest.mark.slow
def test_a_signal_handler_may_read_a_value_while_a_kernel_is_handed_over(monkeypatch, compilations):
    read = []

    class Interrupted(executor.ThreadPoolExecutor):
        def submit(self, compile):
            with self._shutdown_lock:  # as `submit` does
                read.append(pending.sum().item())
            return super().submit(compile)

    monkeypatch.setattr(executor, "ThreadPoolExecutor", Interrupted)
    pending, x = torch.ones(3, 2) * 3, torch.ones(2, next(sizes))
    assert x.sin().exp().mean().item() == pytest.approx(np.exp(np.sin(1)))
    assert len(read) == 3 and {*read} == {18}


class Unlowered(Program):
    """What no compiler knows."""

    name, defers, mode = "unlowered", True, aval.IMMEDIATE
    inputs = outputs = (aval.make_aval((3,), dtypes.float32),)
    primitive = Primitive("unlowered")
    primitive.def_abstract_eval(lambda array: array)

    def function(self, array):
        return (self.primitive.bind(array),)


def test_an_error_of_lowering_shows_at_the_line_of_the_call():
    program = executor.prepare(Unlowered())
    for _ in range(2):
        with pytest.raises(NotImplementedError, match="unlowered"):
            program.kernel.call(jax.numpy.ones(3))
        assert not deferred.local.stretch.entries


@pytest.mark.slow
def test_an_error_of_a_formula_is_told_where_it_runs(monkeypatch):
    x, w, b = values(next(sizes))
    result, prepare = loss(x, w, b), executor.prepare

    def failing(program):
        if program.name == "TanhBackward":
            raise ZeroDivisionError(program.name)
        return prepare(program)

    monkeypatch.setattr(executor, "prepare", failing)
    (gradient,) = torch.autograd.grad(result, b, retain_graph=True)
    with pytest.raises(ZeroDivisionError, match="TanhBackward"):
        torch.autograd.grad(result, w, retain_graph=True)
    monkeypatch.undo()
    wanted = torch.autograd.grad(result, [b, w])
    np.testing.assert_array_equal(gradient.numpy(), wanted[0].numpy())
    assert wanted[1].isfinite().all()


@pytest.mark.slow
def test_first_calls_in_many_threads(compilations):
    by_size, begin = {}, threading.Barrier(6)

    def work(size):
        begin.wait()
        by_size[size] = gradients(size)

    taken = [next(sizes) for _ in range(3)] * 2  # every shape in two threads
    threads = [threading.Thread(target=work, args=(size,)) for size in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.set_eager("immediate,compiled")
    for size, arrays in by_size.items():
        for one, other in zip(arrays, gradients(size), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_a_script_may_end_while_kernels_are_compiled():
    script = """if True:
        import jaxgrad as torch
        torch.set_eager("compiled")
        x = torch.rand(5, 5, requires_grad=True)
        y = (x @ x).softmax(0).tanh()
        assert torch.core.executor.compilers.pool is not None
    """
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.slow
def test_tensors_without_data_compile_nothing(compilations):
    x = torch.empty(4, 4, device="meta", requires_grad=True)
    x.sin().exp().sum().backward()
    assert compilations == [] and x.grad.is_meta


@pytest.mark.slow
def test_what_a_compiled_function_calls_is_compiled_with_it(compilations):
    x = torch.rand(3, next(sizes))
    x.sum().item()
    compilations.clear()
    torch.jit(lambda x: x.sin().exp().tanh())(x).tolist()
    assert len(compilations) == 1


@pytest.mark.slow
def test_what_the_host_runs_is_not_compiled_ahead(compilations):
    def backward():
        size = next(sizes)
        x = torch.ones(3, 4, size, requires_grad=True)
        (x.transpose(0, 2).reshape(-1).flip(0).view(2, -1) * 3).backward(torch.ones(2, 6 * size))

    with eager("deferred"):
        backward()
    assert compilations == []
    backward()
    assert len(compilations) > 3
