"""`trace`, `lower`, `eval_shape` and `clear_cache` of compiled functions, as those of `jax.jit`."""

import re

import jax
import jax.numpy as jnp
import pytest

import jaxgrad as torch
from jaxgrad import nn, optim
from jaxgrad.core.jaxprs import equations_of
from jaxgrad.core.program import Program


class Counting:
    def __init__(self):
        self.w, self.calls = torch.ones(3, requires_grad=True), 0

    @torch.jit
    def step(self, x, factor=2):
        self.calls += 1
        self.w.grad = None
        loss = (self.w * x * factor).sum()
        loss.backward()
        with torch.no_grad():
            self.w.sub_(self.w.grad)
        return loss, self.calls


def test_the_stages_of_a_function():
    function = torch.jit(lambda x: (x * 2, {"b": x.double(), "a": [x.argmax(), 3]}))
    struct, x = jax.ShapeDtypeStruct((2, 3), jnp.float32), torch.ones(2, 3)
    for argument in (x, struct):
        traced = function.trace(argument)
        assert [aval.shape for aval in traced.jaxpr.out_avals] == [(2, 3), (2, 3), ()]
        assert (
            "multiply" in traced.lower().as_text() and "f64" in function.lower(argument).as_text()
        )
        doubled, rest = function.eval_shape(argument)
        assert (doubled.shape, doubled.dtype) == ((2, 3), jnp.float32)
        assert (rest["b"].dtype, rest["a"][0].dtype, rest["a"][1]) == (jnp.float64, jnp.int64, 3)
        assert list(rest) == ["b", "a"]
    compiled = function.trace(x).lower().compile()
    assert compiled(x._array)[0].tolist() == [[2, 2, 2]] * 2 and "flops" in compiled.cost_analysis()
    assert function.count == 0 and function.traces == []


def test_arrays_stay_arrays():
    sine = torch.jit(lambda x: jnp.sin(x))
    assert sine.eval_shape(jnp.ones(3)).shape == (3,)
    (equation,) = equations_of(sine.trace(jnp.ones(3)).jaxpr)
    assert equation.primitive is jax.lax.sin_p


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["trace", "lower", "eval_shape"])
def test_they_change_no_state(stage):
    model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    optimizer, seen = optim.Adam(model.parameters()), []

    @torch.jit
    def step(x):
        optimizer.zero_grad()
        model.eval()
        model.train()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] = 0.5
        seen.append(len(seen))
        return loss

    def state():
        groups = [{**group, "params": None} for group in optimizer.param_groups]
        numbers = [tensor.tolist() for tensor in model.state_dict().values()]
        return numbers, dict(optimizer.state), groups, torch.get_rng_state().tolist(), [*seen]

    before = state()
    getattr(step, stage)(torch.ones(4, 2))
    assert state() == before and all(p.grad is None for p in model.parameters())
    assert step.count == 0 and step.traces == []
    step(torch.ones(4, 2))
    assert step.count == 1 and seen == [0] and len(optimizer.state) == 4


def test_the_stages_of_methods_and_modules():
    counting = Counting()
    loss, calls = counting.step.eval_shape(torch.ones(3), factor=3)
    assert (loss.shape, calls, counting.calls, counting.w.tolist()) == ((), 1, 0, [1, 1, 1])
    assert "multiply" in counting.step.lower(torch.ones(3)).as_text()
    assert len(counting.step.trace(torch.ones(3)).jaxpr.in_avals) == 2  # w and x
    assert counting.step(torch.ones(3))[1] == 1 and counting.step.count == 1
    assert counting.step.__name__ == "step" and "first time" in counting.step.explain()

    linear, struct = nn.Linear(2, 3), jax.ShapeDtypeStruct((4, 2), jnp.float32)
    for compiled in (torch.jit(linear), torch.jit(linear.forward), torch.compile(linear)):
        assert compiled.eval_shape(struct).shape == (4, 3)
        assert "dot" in compiled.lower(torch.ones(4, 2)).as_text()


def test_a_written_argument_has_its_shape():
    double = torch.jit(lambda x: x.mul_(2))
    x = torch.ones(2)
    assert double.eval_shape(x).shape == (2,) and x.tolist() == [1, 1] and x._version == 0


def test_cleared_programs_are_traced_again():
    double = torch.jit(lambda x: x * 2)
    double(torch.ones(2))
    double.clear_cache()
    assert double.traces == []
    assert double(torch.ones(2)).tolist() == [2, 2] and double.count == 2

    chosen = torch.compile(lambda x: x[x > 1])
    for _ in range(2):
        with pytest.warns(UserWarning, match="runs uncompiled"):
            chosen(torch.ones(2))
        chosen.clear_cache()


def test_there_are_no_stages_inside_of_a_trace():
    inner = torch.jit(lambda x: x * 2)
    with pytest.raises(RuntimeError, match="cannot be lowered inside of a function that jaxgrad"):
        torch.jit(lambda x: inner.lower(x) and x)(torch.ones(1))


# ---- one trace


def test_what_capture_found_is_lowered_without_a_second_trace(monkeypatch):
    called, bind = [], jax.lax.erf_p.bind

    def spy(*args, **params):
        called.append(args)
        return bind(*args, **params)

    monkeypatch.setattr(jax.lax.erf_p, "bind", spy)
    # a shape of its own, or JAX would know the equations of `erf`
    result = torch.jit(lambda x: jax.lax.erf(x) * 2)(jnp.zeros((1, 37, 1)))
    assert (result == 0).all() and len(called) == 1


def test_the_lines_of_the_function_are_those_of_the_program():
    def function(x):
        x = x.sin()
        return x.sin()  # a call of the same kind, in another line

    def lines(file):
        text = torch.jit(function).lower(torch.ones(3)).as_text(debug_info=True)
        return {int(n) for n in re.findall(rf'"{re.escape(file)}":(\d+)', text)}

    first = function.__code__.co_firstlineno
    assert {first + 1, first + 2} <= lines(__file__)


def test_formulas_run_once_for_calls_of_one_kind(monkeypatch):
    called, value = [], Program.value

    def spy(program, *arrays):
        called.append(program.name)
        return value(program, *arrays)

    def step(x):
        for _ in range(10):
            x = x.exp2()
        x.sum().backward()
        return x

    # a shape of its own, or other tests would have traced its programs
    x = torch.ones(3, 1, 41, requires_grad=True)
    expected = jax.grad(lambda x: 2 ** (2**x))(1.0)
    monkeypatch.setattr(Program, "value", spy)
    torch.jit(step).lower(x)
    # for the abstract values of the results, and for the equations
    assert called.count("Exp2") <= 2 and called.count("Exp2Backward") <= 2
    x.exp2().exp2().sum().backward()
    assert x.grad.flatten()[0].item() == pytest.approx(float(expected))
