"""A backward pass compiles the programs that are new to it side by side, before it runs them."""

import itertools
import threading

import checks
import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad.core import executor, host_kernel

sizes = itertools.count(5)  # of a shape that no program is known for


def values(size):
    generator = np.random.default_rng(0)
    return [
        torch.tensor(generator.standard_normal(shape).astype(dtype), requires_grad=True)
        for shape, dtype in (((5, size), "f4"), ((size, size), "f4"), ((size,), "f8"))
    ]


def loss(x, w, b):
    y = torch.softmax((x @ w).tanh(), 1).double() + b.exp()
    return torch.nn.functional.layer_norm(y, b.shape).sin().square().mean()


def gradients(size):
    leaves = values(size)
    loss(*leaves).backward()
    return [each.grad.numpy() for each in leaves]


def test_programs_are_compiled_in_threads_that_end(compilations):
    leaves, threads = values(next(sizes)), threading.enumerate()
    result = loss(*leaves)
    compilations.clear()
    result.backward()
    elsewhere = [each for each in compilations if each != threading.get_ident()]
    assert len(elsewhere) >= 5 and threading.enumerate() == threads
    # what is compiled ahead is what the calls take
    ahead = len(compilations)
    result = loss(*values(next(sizes)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor, "compile_together", lambda programs: None)
        compilations.clear()
        result.backward()
    assert len(compilations) == ahead and {*compilations} == {threading.get_ident()}


def test_gradients_have_the_same_bits(monkeypatch, nothing_compiled, compilations):
    size = next(sizes)
    together = gradients(size)
    torch.compiler.reset()
    compilations.clear()
    monkeypatch.setattr(executor, "compile_together", lambda programs: None)
    for found, expected in zip(together, gradients(size), strict=True):
        assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()
        checks.count("autograd")
    assert len(compilations) > 5  # again, one by one


def test_a_pass_without_new_programs_looks_for_none(monkeypatch):
    size = next(sizes)
    gradients(size)
    monkeypatch.setattr(executor, "compile_together", None)
    gradients(size)


def test_only_what_a_pass_runs_is_compiled(compilations):
    x, w, b = values(next(sizes))
    result = loss(x, w, b)
    compilations.clear()
    (found,) = torch.autograd.grad(result, b, retain_graph=True)
    few = len(compilations)
    torch.autograd.grad(result, [x, w])
    assert 0 < few < len(compilations)
    assert found.shape == b.shape


def test_an_interrupt_leaves_no_thread_and_the_graph_whole(monkeypatch):
    size, lowered = next(sizes), executor._lowered
    leaves, threads, calls = values(size), threading.enumerate(), []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return lowered(*args)

    result = loss(*leaves)
    monkeypatch.setattr(executor, "_lowered", interrupted)
    with pytest.raises(KeyboardInterrupt):
        result.backward()
    assert threading.enumerate() == threads
    assert [each.grad for each in leaves] == [None] * 3
    result.backward()
    for leaf, wanted in zip(leaves, gradients(size), strict=True):
        np.testing.assert_array_equal(leaf.grad.numpy(), wanted)


def test_an_error_of_the_compiler_is_that_of_the_call(monkeypatch):
    class Broken:
        def compile(self):
            raise ValueError("out of cores")

    size = next(sizes)
    leaves = values(size)
    result = loss(*leaves)
    monkeypatch.setattr(executor, "_lowered", lambda *args: Broken())
    result.backward()
    for leaf, wanted in zip(leaves, gradients(size), strict=True):
        np.testing.assert_array_equal(leaf.grad.numpy(), wanted)


def test_an_error_of_a_formula_is_told_where_it_runs(monkeypatch):
    x, w, b = values(next(sizes))
    result, prepare = loss(x, w, b), executor.prepare

    def failing(program):
        if program.name == "TanhBackward":
            raise ZeroDivisionError(program.name)
        return prepare(program)

    monkeypatch.setattr(executor, "prepare", failing)
    (found,) = torch.autograd.grad(result, b, retain_graph=True)
    with pytest.raises(ZeroDivisionError, match="TanhBackward"):
        torch.autograd.grad(result, w, retain_graph=True)
    monkeypatch.undo()
    wanted = torch.autograd.grad(result, [b, w])
    np.testing.assert_array_equal(found.numpy(), wanted[0].numpy())
    assert wanted[1].isfinite().all()


def test_tensors_without_data_and_compiled_functions_compile_nothing_ahead(compilations):
    x = torch.empty(4, 4, device="meta", requires_grad=True)
    x.sin().exp().sum().backward()
    assert compilations == [] and x.grad.is_meta

    def step(x):
        y = x.detach().requires_grad_()
        y.sin().exp().tanh().sum().backward()
        return y.grad

    given = torch.ones(4, 4, dtype=torch.float64)
    np.testing.assert_allclose(torch.jit(step)(given).numpy(), step(given).numpy(), rtol=1e-12)


def test_what_the_host_runs_is_not_compiled_ahead(compilations, monkeypatch):
    def backward():
        size = next(sizes)
        x = torch.ones(3, 4, size, requires_grad=True)
        (x.transpose(0, 2).reshape(-1).flip(0).view(2, -1) * 3).backward(torch.ones(2, 6 * size))

    backward()
    assert compilations == []
    monkeypatch.setattr(host_kernel, "MOST", -1)
    backward()
    assert len(compilations) > 3
