"""`CompiledFunction.profile`: the time of each operator within a compiled program."""

import jax
import jax.numpy as jnp
import pytest

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn
from jaxgrad.compiled import operation_times


class Event:
    def __init__(self, name, start, duration):
        self.start_ns, self.duration_ns, self.stats = start, duration, [("hlo_op", name)]


def test_the_time_of_an_event_is_without_those_inside():
    events = [
        *(Event("while", 0, 100), Event("dot", 10, 30), Event("add", 50, 20)),
        Event("neg", 120, 5),
    ]
    times = operation_times.exclusive_times(reversed(events))
    assert times == [("while", 50), ("dot", 30), ("add", 20), ("neg", 5)]


@pytest.mark.parametrize(
    ("scope", "operator"),
    [
        ("jit(step)/jit(equations)/linear/dot_general", "linear"),
        ("jit(step)/jit(equations)/NllLossBackward0/jit(_where)/select_n", "NllLossBackward0"),
        ("jit(step)/while/body/sin/sin", "sin"),
        ("jit(step)/jit(equations)/add", operation_times.NO_OPERATOR),
        (None, operation_times.NO_OPERATOR),
    ],
)
def test_the_operator_of_a_scope(scope, operator):
    assert operation_times.operator_of(scope) == operator


def test_the_instructions_of_a_program_of_jax():
    function = jax.jit(lambda x, y: jax.named_scope("product")(jnp.dot)(x, y))
    text = function.lower(jnp.ones((64, 64)), jnp.ones((64, 64))).compile().as_text()
    assert "product" in operation_times.operators_of(text).values()


@pytest.mark.slow
def test_a_training_step():
    model = nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters())

    @torch.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    x, y = torch.rand(512, 256), torch.randint(0, 10, (512,))
    step(x, y)
    state = torch.get_rng_state()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    times = step.profile(x, y)
    names = [row.name for row in times]
    assert {"linear", "tanh", "AddmmBackward0", "TanhBackward0", "Adam.step"} <= set(names)
    assert [row.microseconds for row in times] == sorted(
        (row.microseconds for row in times), reverse=True
    )
    assert all(row.microseconds > 0 and row.instructions > 0 for row in times)
    assert str(times).splitlines()[0].split() == [
        "operator",
        *["us", "per", "call", "share", "instructions"],
    ]
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state) and step.count == 1
    assert step(x, y).isfinite()


def test_a_compiled_method():
    class Doubler:
        @torch.jit
        def double(self, x):
            return (x @ x).sin()

    assert {"matmul", "sin"} <= {row.name for row in Doubler().double.profile(torch.ones(128, 128))}
