"""Stretches that the host runs as one function (core/host_routine.py). The oracle is NumPy in
double precision, or numbers that a test states.
"""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.modes import eager

import jaxgrad as torch
from jaxgrad.core import deferred, host_routine
from jaxgrad.core.host import block, steps
from jaxgrad.core.host.block import Block
from jaxgrad.core.host.cost import Cost
from jaxgrad.core.host.equation import Equation, Form
from jaxgrad.core.host_values import owned_apart


@pytest.fixture(autouse=True)
def structures():
    """Nothing is pending, and no structure has come up."""
    deferred.run_all()
    deferred._times.clear()
    deferred._routines.clear()
    with eager("deferred,host"):
        yield
    deferred.run_all()


@pytest.fixture
def written_out(monkeypatch):
    """The parts of routines that compute."""
    parts, computed = [], host_routine.Part.computed

    def noting(part, values):
        results = computed(part, values)
        if results is not None:
            parts.append(part)
        return results

    monkeypatch.setattr(host_routine.Part, "computed", noting)
    return parts


NUMBERS = np.random.default_rng(0).uniform(0.2, 0.9, (3, 4)).astype(np.float32)


def repeat(step, times=deferred.ROUTINE + 3):
    """Results of the last of some calls, all of the same structure."""
    for _ in range(times):
        results = step()
    return results


def test_a_step_that_repeats_has_the_numbers_of_its_formulas(written_out):
    def step():
        x = torch.tensor(NUMBERS, requires_grad=True)
        y = (x.exp() @ x.t()).sin()
        (y * y).sum().backward()
        return y.detach().numpy(), x.grad.numpy()

    value, gradient = repeat(step)
    assert len(written_out) == 3 and written_out[-1].calls > 5
    x = NUMBERS.astype(np.float64)
    inner = np.exp(x) @ x.T
    slope = 2 * np.sin(inner) * np.cos(inner)
    np.testing.assert_allclose(value, np.sin(inner), rtol=1e-5, atol=1e-6)
    expected = (slope @ x) * np.exp(x) + slope.T @ np.exp(x)
    np.testing.assert_allclose(gradient, expected, rtol=2e-5, atol=1e-5)


def test_numbers_of_python_are_read_anew_by_each_run(written_out):
    x, totals = torch.tensor(NUMBERS), []
    for i in range(10, 18):
        totals.append(((x * float(i)).cos() + i).sum().item())
    assert written_out
    expected = [(np.cos(NUMBERS.astype(float) * i) + i).sum() for i in range(10, 18)]
    np.testing.assert_allclose(totals, expected, rtol=1e-5)


def values_of(*tensors):
    """The arrays in which the host left the numbers of tensors."""
    deferred.run_all()
    return [tensor._raw.stretch.values for tensor in tensors]


def test_results_share_no_memory(written_out):
    x = torch.tensor(NUMBERS)

    def step():
        y = x.sin()
        return values_of(x, y, y.reshape(12), y.t(), y.expand(2, 3, 4), x.reshape(12))

    arrays = repeat(step)
    assert written_out and len(written_out[-1].results) >= 5
    np.testing.assert_allclose(arrays[3], np.sin(NUMBERS.astype(float)).T, rtol=1e-6)
    for i, first in enumerate(arrays):
        assert not any(np.shares_memory(first, second) for second in arrays[:i])


def test_a_result_that_nobody_holds_is_none_of_the_routine(written_out):
    x = torch.tensor(NUMBERS)
    kept = repeat(lambda: values_of(x.sin().cos().exp()))
    assert written_out[-1].calls == 3 and len(written_out[-1].results) == 1
    expected = np.exp(np.cos(np.sin(NUMBERS.astype(float))))
    np.testing.assert_allclose(kept[0], expected, rtol=1e-6)


def sine_and_exponential(x):
    """Two results that one stretch computes."""
    y, z = x.sin(), x.exp()
    deferred.run_all()
    return y, z


def test_an_error_in_a_routine_is_that_of_its_call_alone(monkeypatch, written_out):
    x = torch.tensor(NUMBERS)

    repeat(lambda: sine_and_exponential(x))
    (part,) = written_out[-1:]
    _, exponential = (call.program.kernel.host for call in calls_of(part))
    monkeypatch.setattr(part, "function", failing)
    monkeypatch.setattr(exponential, "function", failing)
    y, z = sine_and_exponential(x)
    np.testing.assert_allclose(y.numpy(), np.sin(NUMBERS.astype(float)), rtol=1e-6)
    with pytest.raises(ZeroDivisionError):
        z.numpy()


def failing(*arrays):
    raise ZeroDivisionError


def calls_of(part):
    """The calls of the one routine, which has one part."""
    (key,) = deferred._routines
    assert deferred._routines[key].parts == [part]
    return [host_routine.Call(program, [], []) for program in key[0]]


def test_an_interrupt_of_a_routine_leaves_its_calls(monkeypatch, written_out):
    x = torch.tensor(NUMBERS)

    def step():
        return x.sin(), x.exp()

    def results():
        y, z = step()
        deferred.run_all()
        return y, z

    repeat(results)
    part, function = written_out[-1], written_out[-1].function

    def interrupted(*arrays):
        monkeypatch.setattr(part, "function", function)
        raise KeyboardInterrupt

    y, z = step()
    monkeypatch.setattr(part, "function", interrupted)
    with pytest.raises(KeyboardInterrupt):
        deferred.run_all()
    np.testing.assert_allclose(y.numpy(), np.sin(NUMBERS.astype(float)), rtol=1e-6)
    np.testing.assert_allclose(z.numpy(), np.exp(NUMBERS.astype(float)), rtol=1e-6)


def test_calls_in_a_routine_count_until_xla_takes_over(monkeypatch, written_out, compilations):
    with eager("deferred"):
        monkeypatch.setattr(deferred, "repeats_of", lambda _: (10**6, 0))
        x = torch.tensor(NUMBERS)

        repeat(lambda: sine_and_exponential(x))
        sine, _ = (call.program.kernel.host for call in calls_of(written_out[-1]))
        runs = len(written_out)
        sine.known_turns = sine.calls + 1, sine.calls + 3
        deferred._routines.clear()
        for _ in range(8):
            y, z = sine_and_exponential(x)
    assert len(written_out) == runs + 3 and len(compilations) == 1
    np.testing.assert_allclose(y.numpy(), np.sin(NUMBERS.astype(float)), rtol=1e-6)
    np.testing.assert_allclose(z.numpy(), np.exp(NUMBERS.astype(float)), rtol=1e-6)


# ---- blocks and the model of cost


def test_equal_equations_are_computed_once_and_equal_results_share_no_memory():
    def function(x):
        return jnp.sin(x) * jnp.sin(x), jnp.sin(x), jnp.sin(x), jnp.cumsum(x), jnp.cumsum(x[::-1])

    block = Block(jax.make_jaxpr(function)(NUMBERS[0]))
    outputs = block.steps[-1]
    assert outputs[1] == outputs[2] and outputs[3] != outputs[4]
    results = owned_apart(block.function(NUMBERS[0]), [form.dtype for form in block.outputs])
    for result, expected in zip(results, jax.jit(function)(NUMBERS[0]), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6)
    for i, first in enumerate(results):
        assert not any(np.shares_memory(first, second) for second in results[:i])


def test_signs_of_zero_among_parameters_tell_equations_apart():
    outputs = (Form((2,), np.dtype(np.float32)),)
    equations = [Equation("gather", {"fill_value": fill}, (), outputs) for fill in (0.0, -0.0)]
    first, second = (block._key_of(equation, [0, 1]) for equation in equations)
    assert first != second and first == block._key_of(equations[0], [0, 1])


@pytest.mark.parametrize(("extent", "is_compiled"), [(8, False), (1024, True)])
def test_a_structure_is_compiled_for_its_memory_and_not_for_its_calls(extent, is_compiled):
    costs = [Cost(Block(jax.make_jaxpr(jnp.sin)(jnp.ones((extent, extent))))) for _ in range(60)]
    programs = [SimpleNamespace(compact=SimpleNamespace(cost=cost)) for cost in costs]
    start, _ = deferred.repeats_of(programs)
    assert (start < 100) == is_compiled


def test_arrays_that_nothing_reads_any_more_are_written_to_and_no_others():
    def function(x, y):
        first = jnp.sin(x) * y
        seen = first.reshape(-1)  # a view
        second = jnp.exp(x - y) + first
        third = jnp.maximum(second * 2 - y, jnp.minimum(jnp.cos(second) * y, x))
        return third, seen, second > 1, first - 1, jnp.square(third)

    block = Block(jax.make_jaxpr(function)(NUMBERS, NUMBERS))
    known, written, outputs = block.steps
    places = steps._overwritten(written, outputs)
    assert sum(place is not None for place in places) >= 4
    operands = [NUMBERS.copy(), np.asfortranarray(NUMBERS + 1)]
    for operand in operands:
        operand.flags.writeable = False
    for result, expected in zip(
        block.function(*operands), jax.jit(function)(*operands), strict=True
    ):
        np.testing.assert_allclose(result, expected, rtol=2e-5)
    for value in known.values():
        assert not value.flags.writeable
