"""torch.futures.Future: results, errors, callbacks, threads."""

import pickle
import threading

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad as torch

RUNNING = "Got the following error when running the callback"


@as_torch
def test_results_and_errors(torch):
    def completed(result=None, failure=None):
        future = torch.futures.Future()
        future.set_exception(failure) if failure else future.set_result(result)
        return future

    failed = completed(failure=ValueError("no"))
    return [
        [torch.futures.Future().done(), completed(1).done(), failed.done()],
        [
            completed(3).wait(),
            completed(3).value(),
            completed(3).then(lambda f: f.wait() + 1).wait(),
        ],
        error(failed.wait, words="no"),
        error(failed.value, words="no"),
        error(completed(1).set_result, 2, words="can only be marked completed once"),
        error(failed.set_exception, ValueError("b"), words="Attempting to mark a completed Future"),
        error(torch.futures.Future().set_exception, "x", words="is of type <class 'str'>, not an"),
        error(torch.futures.Future().then, 1, words="incompatible function arguments"),
        error(
            torch.futures.Future().add_done_callback, "f", words="incompatible function arguments"
        ),
        error(
            lambda: torch.futures.Future(devices=["cpu"]), words="devices to have indices, got cpu"
        ),
    ]


@as_torch
def test_callbacks(torch):
    future, calls = torch.futures.Future(), []
    future.then(lambda done: calls.append(1))
    future.add_done_callback(lambda done: calls.append(done.value()))
    chained = future.then(lambda done: done.wait() + 1).then(lambda done: done.wait() * 2)
    failed = future.then(lambda done: 1 / 0)
    after = failed.then(lambda done: done.wait())
    future.set_result(3)
    words = "Got the following error when running the callback: ZeroDivisionError"
    return [calls, chained.wait(), error(failed.wait, words=words), error(after.wait, words=words)]


@as_torch
def test_many(torch):
    first, second, failed = (torch.futures.Future() for _ in range(3))
    both, three = (torch.futures.collect_all(fs) for fs in ([first, second], [first, failed]))
    second.set_result("b")
    before = both.done()
    failed.set_exception(ValueError("no"))
    first.set_result("a")
    return [
        [before, [future.value() for future in both.wait()], torch.futures.collect_all([]).wait()],
        [torch.futures.wait_all([first, second]), torch.futures.wait_all([])],
        error(three.wait, words="no"),
        error(torch.futures.wait_all, [failed, first], words="no"),
        error(torch.futures.collect_all, [1], words="incompatible function arguments"),
    ]


def test_result_of_another_thread():
    future, begun = torch.futures.Future(), threading.Event()
    thread = threading.Thread(target=lambda: (begun.wait(), future.set_result(9)))
    thread.start()
    begun.set()
    assert future.wait() == 9
    thread.join()


def test_errors_of_callbacks_are_logged(caplog):
    future, calls = torch.futures.Future(), []
    future.add_done_callback(lambda done: 1 / 0)
    future.add_done_callback(calls.append)
    future.set_result(1)
    assert calls == [future] and RUNNING in caplog.text


def test_one_class():
    assert torch.Future is torch.futures.Future is torch.jit.Future


@pytest.mark.parametrize("wait", ["wait", "value"])
def test_a_result_that_nothing_sets(wait):
    """PyTorch waits forever."""
    with pytest.raises(RuntimeError, match=r"nothing has set|not there yet"):
        getattr(torch.futures.Future(), wait)()


def test_futures_are_not_pickled():
    with pytest.raises(RuntimeError, match="Can not pickle"):
        pickle.dumps(torch.futures.Future())
