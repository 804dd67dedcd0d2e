"""L-BFGS on the host and on tensors: the minimum of a quadratic form, which `numpy.linalg.solve`
gives.
"""

import copy
import math

import numpy
import pytest
from helpers.modes import eager

import jaxgrad
from jaxgrad.optim import lbfgs_vectors

MODES = {
    "deferred": lbfgs_vectors.HostVectors,
    "immediate,host": lbfgs_vectors.HostVectors,
    "deferred,compiled": lbfgs_vectors.TensorVectors,
}
DRAW = numpy.random.RandomState(4).standard_normal
EXACT = {"tolerance_change": 0, "tolerance_grad": 1e-9}
ROOT, AIM = DRAW((7, 7)), DRAW(7)


def problem(dtype):
    """Parameters of four shapes, and a closure for an optimizer."""
    kind = getattr(jaxgrad, dtype)
    params = [jaxgrad.zeros(shape, dtype=kind) for shape in ((), (2, 2), (1,), (1, 1))]
    for param in params:
        param.requires_grad_()
    root, aim = (jaxgrad.tensor(numbers, dtype=kind) for numbers in (ROOT, AIM))

    def closure_of(optimizer):
        def closure():
            optimizer.zero_grad()
            x = jaxgrad.cat([param.reshape(-1) for param in params])
            loss = 0.5 * ((root @ x) ** 2).sum() + 0.1 * (x**2).sum() - aim @ x
            loss.backward()
            return loss

        return closure

    return params, closure_of


def solution():
    return numpy.linalg.solve(ROOT.T @ ROOT + 0.2 * numpy.eye(7), AIM)


def numbers_of(params):
    return numpy.concatenate([param.detach().numpy().reshape(-1) for param in params])


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
@pytest.mark.parametrize("mode", MODES)
def test_minimum_of_a_quadratic_form(mode, line_search):
    with eager(mode):
        params, closure_of = problem("float64")
        assert type(lbfgs_vectors.vectors_of(params)) is MODES[mode]
        rate = 1 if line_search else 0.05
        optimizer = jaxgrad.optim.LBFGS(params, rate, 300, line_search_fn=line_search, **EXACT)
        view = params[1].detach()[0]
        optimizer.step(closure_of(optimizer))
        numpy.testing.assert_allclose(numbers_of(params), solution(), rtol=1e-5, atol=1e-6)
        assert view.tolist() == params[1][0].tolist()
        state = optimizer.state[params[0]]
        vectors = [state["d"], state["prev_flat_grad"], *state["old_dirs"], *state["old_stps"]]
        assert all(isinstance(vector, jaxgrad.Tensor) for vector in vectors)
        assert {vector.shape for vector in vectors} == {(7,)}


@pytest.mark.parametrize("first", MODES)
@pytest.mark.parametrize("second", ["deferred", "deferred,compiled"])
def test_a_state_goes_on_with_the_other_vectors(first, second):
    params, closure_of = problem("float64")
    with eager(first):
        optimizer = jaxgrad.optim.LBFGS(params, 1, 4, line_search_fn="strong_wolfe", **EXACT)
        optimizer.step(closure_of(optimizer))
        told = copy.deepcopy(optimizer.state_dict())
    with eager(second):
        optimizer = jaxgrad.optim.LBFGS(params)
        optimizer.load_state_dict(told)
        for _ in range(8):
            optimizer.step(closure_of(optimizer))
        numpy.testing.assert_allclose(numbers_of(params), solution(), rtol=1e-5, atol=1e-6)


def test_single_precision_stays():
    params, closure_of = problem("float32")
    optimizer = jaxgrad.optim.LBFGS(params, max_iter=60, line_search_fn="strong_wolfe")
    optimizer.step(closure_of(optimizer))
    assert {param.dtype for param in params} == {jaxgrad.float32}
    assert optimizer.state[params[0]]["d"].dtype is jaxgrad.float32
    numpy.testing.assert_allclose(numbers_of(params), solution(), rtol=2e-2, atol=2e-3)


def test_parameters_that_the_host_leaves_to_xla():
    mixed = [jaxgrad.ones(2), jaxgrad.ones(2, dtype=jaxgrad.float64)]
    half = [jaxgrad.ones(2, dtype=jaxgrad.bfloat16)]
    for params in (mixed, half, [jaxgrad.ones(2, device="meta")]):
        assert type(lbfgs_vectors.vectors_of(params)) is lbfgs_vectors.TensorVectors


def test_an_error_in_a_closure_keeps_the_state():
    params, closure_of = problem("float64")
    optimizer = jaxgrad.optim.LBFGS(params, 1, 3, line_search_fn="strong_wolfe", **EXACT)
    closure = closure_of(optimizer)
    optimizer.step(closure)
    calls = []

    def failing():
        calls.append(len(calls))
        if len(calls) > 2:
            raise KeyboardInterrupt
        return closure()

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(failing)
    state = optimizer.state[params[0]]
    assert all(isinstance(vector, jaxgrad.Tensor) for vector in (state["d"], *state["old_dirs"]))
    for _ in range(20):
        optimizer.step(closure)
    numpy.testing.assert_allclose(numbers_of(params), solution(), rtol=1e-5, atol=1e-6)


def test_warnings_of_a_closure_are_the_users():
    """NumPy's errors are off for the vectors alone."""
    seen = []
    params, closure_of = problem("float64")
    optimizer = jaxgrad.optim.LBFGS(params, max_iter=2)
    closure = closure_of(optimizer)

    def told():
        seen.append(numpy.geterr()["divide"])
        return closure()

    with numpy.errstate(divide="raise"):
        optimizer.step(told)
    assert set(seen) == {"raise"}


@pytest.mark.parametrize("tolerance", [math.inf, -math.inf])
def test_a_gradient_of_zeros(tolerance):
    """Of parameters that the closure does not use."""
    parameters = [jaxgrad.ones(3), jaxgrad.ones(2)]
    optimizer = jaxgrad.optim.LBFGS(parameters, 0.01, tolerance_grad=tolerance)
    assert optimizer.step(lambda: jaxgrad.tensor([10])).tolist() == [10]
    assert parameters[0].tolist() == [1, 1, 1]
