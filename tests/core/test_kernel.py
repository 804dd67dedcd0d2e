"""The states of a kernel: who computes, and what a call does."""

import pytest

import jaxgrad as torch
from jaxgrad.core import deferred, executor, kernel


@pytest.fixture
def program():
    """A program that is new."""
    torch.ones(7).sigmoid()  # what the call below needs is known
    x = torch.ones(7, requires_grad=True)
    program = x.sinh().grad_fn.reverse.program
    vars(program).pop("kernel", None)
    return executor.prepare(program)


def observer(program, call, *arrays):
    return call(*arrays)


def test_the_states_of_a_kernel(program):
    known = program.kernel
    assert known.program is program and known.state in (kernel.FIRST, kernel.AT_ONCE)
    if known.state == kernel.FIRST:
        known.became_traced()
        assert known.is_traced and known.state == kernel.NOTED and known.noted is not None
    executor.observe(observer)
    assert known.state == kernel.OBSERVED and known.noted is None
    executor.unobserve(observer)
    assert known.state in (kernel.NOTED, kernel.AT_ONCE)


def test_the_setting_of_eager_calls_chooses(program):
    before = ",".join([deferred.mode, *{executor.chosen} - {"auto"}])
    try:
        deferred.set_mode("immediate", "a test")
        assert program.kernel.state == kernel.AT_ONCE
        deferred.set_mode("deferred", "a test")
        assert program.kernel.state != kernel.AT_ONCE
    finally:
        deferred.set_mode(before, "a test")


def test_another_function_and_a_copy(program):
    array = torch.ones(7).numpy()
    program.kernel.use(lambda array: array + 1)
    assert program.kernel.compute(array).tolist() == [2.0] * 7
    copied = program.kernel.copy_for(program)
    assert copied is not program.kernel and copied.compute is program.kernel.compute
    assert copied.host is program.kernel.host
