"""Threads that call compiled functions with shared state, and threads that read it: no contribution
is lost, and each reader sees the state of before or of after a call.

`make oracle` repeats them a hundred times (tests/oracle/live_interrupts.py).
"""

import contextlib
import sys
import threading

import pytest
from helpers import hangs
from helpers.modes import eager

import jaxgrad as torch
from jaxgrad.core import executor

THREADS, CALLS = 8, 50


@contextlib.contextmanager
def frequent_switches():
    """Python goes on with another thread as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Readers:
    """Threads that call functions until the block ends. `errors`: what they raised."""

    def __init__(self, *functions):
        self.errors, self.is_over = [], threading.Event()
        self.threads = [
            threading.Thread(target=self.repeat, args=(function,)) for function in functions
        ]

    def repeat(self, function):
        try:
            while not self.is_over.is_set():
                function()
        except BaseException as error:
            self.errors.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


def call_in_threads(function):
    """Call a function THREADS times CALLS times; gives what was raised."""
    errors = []

    def work():
        try:
            for _ in range(CALLS):
                function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def accumulate():
    """Calls that add to a parameter, a total and a Python counter, beside threads that read."""
    weight = torch.zeros(16, 16, dtype=torch.float64, requires_grad=True)
    total, count = torch.zeros((), dtype=torch.float64), {"calls": 0}
    one, seen = torch.ones((), dtype=torch.float64), []

    @torch.jit
    def add(x):
        with torch.no_grad():
            weight.add_(x)
            total.add_(x)
        count["calls"] += 1

    def whole(values):
        seen.append(float(values.min()))
        assert values.min() == values.max()

    readers = Readers(
        lambda: whole(weight.detach().numpy()),
        lambda: whole((weight * 1).detach().numpy()),
        lambda: whole(weight.detach().clone().numpy()),
    )
    with frequent_switches(), readers:
        errors = call_in_threads(lambda: add(one))
    assert not errors and not readers.errors, (errors, readers.errors)
    calls = THREADS * CALLS
    assert weight.tolist() == [[float(calls)] * 16] * 16
    assert total.item() == calls and count["calls"] == calls
    # once more where a number that changes becomes an input
    assert add.count <= 2


def train():
    """Steps of SGD that accumulate gradients, in calls of two functions that share a parameter."""
    weight = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    one = torch.ones(4, dtype=torch.float64)

    @torch.jit
    def down(x):
        (weight * x).sum().backward()

    @torch.jit
    def up(x):
        (weight * x * 2).sum().backward()

    numbers = iter(range(THREADS * CALLS))
    lock = threading.Lock()

    def step():
        with lock:
            number = next(numbers)
        (up if number % 2 else down)(one)

    with frequent_switches():
        errors = call_in_threads(step)
    assert not errors, errors
    assert weight.grad.tolist() == [1.5 * THREADS * CALLS] * 4


@pytest.mark.slow
@pytest.mark.parametrize("work", [accumulate, train])
def test_threads_that_share_state(work):
    work()


def test_a_reader_waits_for_a_trace():
    """Meanwhile the handle holds a tracer."""
    weight, begun, reads = torch.ones(3), threading.Event(), []

    def read():
        begun.wait(hangs.LIMIT)
        reads.append(weight.tolist())
        reads.append((weight * 2).tolist())

    reader = threading.Thread(target=read)
    reader.start()

    @torch.jit
    def double():
        weight.mul_(2)
        begun.set()
        # the trace goes on while the other thread reads
        reader.join(0.2)

    double()
    reader.join()
    assert reads == [[2.0] * 3, [4.0] * 3]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["an operator", "its numbers", "a compiled function"])
def test_a_reader_waits_for_a_call(how):
    """Once the program has run, the array of before is deleted."""
    weight, begun, reads = torch.ones(3), threading.Event(), []

    @torch.jit
    def double():
        weight.mul_(2)

    triple = torch.jit(lambda: weight * 3)
    triple()
    double()

    def read():
        begun.wait(hangs.LIMIT)
        call = {"an operator": lambda: weight * 3, "a compiled function": triple}.get(how)
        reads.append([3 * value for value in weight.tolist()] if call is None else call().tolist())

    def wait_after(program, kernel, *arrays):
        results = kernel(*arrays)
        if program.name == "double":
            begun.set()
            reader.join(0.2)
        return results

    reader = threading.Thread(target=read)
    reader.start()
    executor.observe(wait_after)
    try:
        double()
    finally:
        executor.unobserve(wait_after)
    reader.join()
    assert reads == [[12.0] * 3]


def test_a_reader_does_not_wait_forever(monkeypatch):
    """A traced function that waits for a thread that reads is told so."""
    from jaxgrad.tape import handle_lock

    monkeypatch.setattr(handle_lock, "PATIENCE", 0.2)
    weight, errors = torch.ones(3), []

    def read():
        try:
            weight * 2
        except RuntimeError as error:
            errors.append(str(error))

    @torch.jit
    def double():
        weight.mul_(2)
        reader = threading.Thread(target=read)
        reader.start()
        reader.join()

    double()
    assert len(errors) == 1 and "must not wait for a thread that reads" in errors[0]
    assert weight.tolist() == [2.0] * 3


@pytest.mark.parametrize("executor_of_calls", ["deferred", "deferred,compiled"])
def test_a_tensor_whose_views_come_and_go(executor_of_calls):
    with eager(executor_of_calls):
        tensor = torch.ones(3)
        step = torch.jit(lambda: tensor.add_(1))
        tensor.detach()  # gone at once
        step()
        kept = tensor.detach()
        step()
        assert kept.tolist() == tensor.tolist() == [3] * 3
        kept.fill_(5)
        step()
        tensor[:1].fill_(9)  # pending when the view is gone
        del kept
        for _ in range(3):
            step()
        assert tensor.tolist() == [12, 9, 9] and not tensor._is_view()
        view, address = tensor[1:], tensor.data_ptr()
        del view
        step()
        assert tensor.data_ptr() == address and step.count <= 3
