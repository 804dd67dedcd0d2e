"""Names in jaxprs and HLO: operators bear their own, inputs those by which the function reaches
them.
"""

import dataclasses
import re

import jax
import jax.numpy as jnp
import pytest

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

x = torch.ones(5, 3)


def input_names(lowered):
    """The names of the program's inputs, as XLA has them: in its own text after compilation."""
    text = lowered.compile().as_text().replace("\\'", "'")
    pairs = re.findall(r"parameter\((\d+)\).*op_name=\"([^\"]*)\"", text[text.index("ENTRY") :])
    return [name for _, name in sorted(pairs, key=lambda pair: int(pair[0]))]


def names_of_operations(lowered):
    return set(re.findall(r'loc\("(jit\([^"]*)"', lowered.as_text(debug_info=True)))


def names_of_calls(jaxpr):
    return re.findall(r"custom_jvp_call\[\s+name=(\w+)", str(jaxpr))


def test_the_call_of_an_operator_in_a_jaxpr_has_its_name():
    assert names_of_calls(jax.make_jaxpr(torch.sin)(jnp.ones(3))) == ["sin"]
    assert "derivative of sin" in str(
        jax.make_jaxpr(lambda x: jax.jvp(torch.sin, (x,), (x,)))(jnp.ones(3))
    )


def test_the_call_of_a_function_in_a_jaxpr_has_the_name_of_its_class():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    assert names_of_calls(jax.make_jaxpr(Twice.apply)(jnp.ones(3)))[0] == "Twice"


def test_operations_are_in_the_scope_of_their_operator():
    def f(x):
        return torch.sum(torch.softmax(torch.sin(x), 0))

    lowered = jax.jit(f).lower(jnp.ones(3))
    assert {"jit(f)/sin/sin", "jit(f)/softmax/exp"} <= names_of_operations(lowered)
    lowered = jax.jit(jax.grad(f)).lower(jnp.ones(3))
    assert any(name.endswith("SinBackward0))/cos/cos") for name in names_of_operations(lowered))


def test_operations_of_a_compiled_backward_pass_are_in_the_scope_of_their_node():
    w = torch.ones(3, requires_grad=True)

    @torch.jit
    def step(x):
        loss = (w * x).sin().sum()
        loss.backward()
        return loss

    lowered = step.lower(torch.ones(3))
    scopes = set(
        re.findall(r'op_name="jit\(step\)/jit\(equations\)/([^"]*)"', lowered.compile().as_text())
    )
    assert {"mul/mul", "sin/sin", "SinBackward0/cos/cos"} <= scopes
    assert "plain" not in lowered.as_text(debug_info=True)


def test_parameters_have_their_qualified_names():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))
    step = torch.jit(lambda inputs: model(inputs).sum())
    names = input_names(step.lower(x))
    named = [*dict(model.named_parameters()), *dict(model.named_buffers())]
    assert names[0] == "inputs" and sorted(names[1:]) == sorted(f"model.{name}" for name in named)


def test_parameters_of_a_compiled_module_have_their_names_in_it():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    names = input_names(torch.jit(model).lower(x))
    assert names == ["input", *dict(model.named_parameters())]


class Trainer:
    def __init__(self):
        self.lin = nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.lin.parameters(), lr=0.1, momentum=0.9)
        self.averages = {"weight": torch.zeros(2, 3)}

    def step(self, batch, *rest, scale):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.lin(batch["x"]), batch["y"]) * rest[0] * scale
        loss.backward()
        self.optimizer.step()
        self.averages["weight"].mul_(0.9).add_(self.lin.weight.detach())
        return loss


def test_attributes_items_arguments_and_the_state_of_optimizers():
    trainer = Trainer()
    batch = {"x": x, "y": torch.ones(5, 2)}
    lowered = torch.jit(trainer.step).lower(batch, torch.ones(()), scale=torch.ones(()))
    names = input_names(lowered)
    state = "self.optimizer.state[self.lin.{}]['momentum_buffer']"
    assert names[:9] == [
        "batch['x']",
        "batch['y']",
        "rest[0]",
        "scale",
        "self.lin.weight",
        "self.lin.bias",
        state.format("weight"),
        state.format("bias"),
        "self.averages['weight']",
    ]


@dataclasses.dataclass
class Batch:
    inputs: torch.Tensor
    targets: list


def test_fields_of_dataclasses_among_the_arguments():
    batch = Batch(torch.ones(2), [torch.zeros(2)])
    function = torch.jit(lambda batch: batch.inputs - batch.targets[0])
    assert input_names(function.lower(batch)) == ["batch.inputs", "batch.targets[0]"]


def test_variables_of_the_function_and_of_those_that_it_calls():
    lin = nn.Linear(3, 2)
    weights = [torch.ones(2), torch.ones(2)]

    def scaled(value):
        return value * weights[0] + weights[1]

    names = input_names(torch.jit(lambda a: scaled(lin(a))).lower(x))
    assert names == ["a", "lin.weight", "lin.bias", "weights[0]", "weights[1]"]


def test_a_grad_that_is_read_is_named_after_its_tensor():
    w = torch.ones(3, requires_grad=True)
    w.grad = torch.ones(3)
    assert input_names(torch.jit(lambda: w + w.grad).lower()) == ["w", "w.grad"]


def test_a_tensor_that_no_variable_leads_to_has_its_number():
    class Slots:
        __slots__ = ("tensor",)

    holder = Slots()
    holder.tensor = torch.ones(3)
    assert input_names(torch.jit(lambda: holder.tensor * 2).lower()) == ["captured[0]"]


def test_inputs_of_one_name_are_told_apart():
    def make(x):
        return lambda: x * 2

    other = make(torch.ones(3))
    names = input_names(torch.jit(lambda x: other() + x).lower(torch.zeros(3)))
    assert names == ["x", "x (1)"]


def test_odd_objects_on_the_way_are_passed_over():
    class Odd:
        _parameters = None

        def __init__(self):
            self._parameters = [1]
            self._modules = None
            self.tensor = torch.ones(3)

        def __getattr__(self, name):
            raise RuntimeError("not to be called")

    odd, many = Odd(), list(range(100_000))
    function = torch.jit(lambda: odd.tensor * len(many))
    assert input_names(function.lower()) == ["odd.tensor"]


@pytest.mark.parametrize("donate", [(), 0, "auto"])
def test_named_inputs_may_be_donated(donate):
    w = torch.ones(3)

    @torch.jit(donate=donate)
    def step(x):
        w.add_(x)
        return x * 2

    for count in (1, 2, 3):
        step(torch.ones(3))
        assert w.tolist() == [1 + count] * 3
    assert input_names(step.lower(torch.ones(3))) == ["x", "w"]
