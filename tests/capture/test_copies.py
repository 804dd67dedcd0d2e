"""Copies that a compiled function makes: of parameter groups, state dicts, modules, tensors."""

import copy

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import nn, optim

RATES = [0.1, 0.1, 0.05, 0.05, 0.025]  # of StepLR(2, gamma=0.5)


def plain(value):
    """A value with lists in the place of tensors."""
    if isinstance(value, torch.Tensor):
        return np.round(value.detach().numpy(), 5).tolist()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return list(map(plain, value))
    return round(value, 7) if isinstance(value, float) else value


class Training:
    """Five steps of a small network. Each returns `copied(model, optimizer)` too."""

    def __init__(self, copied, jit=lambda function: function):
        torch.manual_seed(0)
        self.model = nn.Linear(2, 1)
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.1)
        scheduler = optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        self.copied, self.step, self.results = copied, jit(self.run), []
        for _ in range(5):
            self.results.append(plain(self.step(torch.ones(3, 2))))
            scheduler.step()

    def run(self, x):
        self.optimizer.zero_grad()
        loss = (self.model(x) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach(), self.copied(self.model, self.optimizer)


def used_copy(model, optimizer):
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.weight.zero_()
    return other(torch.ones(1, 2)).detach(), model.weight.detach().clone()


def restored(model, optimizer):
    groups = copy.deepcopy(optimizer.param_groups)
    with torch.no_grad():
        model.weight.mul_(0)
        for group, kept in zip(optimizer.param_groups, groups, strict=True):
            for parameter, before in zip(group["params"], kept["params"], strict=True):
                parameter.copy_(before)
    return [tensor.detach() for tensor in model.parameters()]


def reloaded(model, optimizer):
    before = copy.deepcopy(model.state_dict())
    with torch.no_grad():
        model.weight.add_(1)
    after = model.weight.detach().clone()
    model.load_state_dict(before)
    return after


@pytest.mark.slow
@pytest.mark.parametrize(
    ("copied", "most_traces"),
    [
        (lambda m, o: copy.deepcopy(o.param_groups), 1),
        (lambda m, o: copy.deepcopy(o.state_dict()), 1),
        (lambda m, o: o.state_dict(), 1),
        (lambda m, o: copy.deepcopy(m.state_dict()), 1),
        (lambda m, o: m.state_dict(), 1),
        (lambda m, o: [dict(state) for state in copy.deepcopy(o.state).values()], 1),
        (lambda m, o: list(copy.deepcopy(m).parameters()), 1),
        (lambda m, o: list(copy.copy(m).parameters()), 1),
        (lambda m, o: copy.copy(m.weight), 1),
        (lambda m, o: copy.deepcopy(o.param_groups)[0]["lr"] * 2 + 1, 1),
        # what code looks at is a constant of the program
        (lambda m, o: 1 if copy.deepcopy(o.param_groups)[0]["lr"] > 0.06 else 2, 3),
        (lambda m, o: copy.deepcopy(o).param_groups[0]["lr"], 3),
        (used_copy, 1),
        (restored, 1),
        (reloaded, 1),
    ],
)
def test_copies_in_a_step(copied, most_traces):
    compiled, uncompiled = Training(copied, torch.jit), Training(copied)
    assert compiled.results == uncompiled.results
    assert compiled.step.count <= most_traces


def test_the_lr_in_a_copy_is_that_of_the_call():
    copied = Training(lambda m, o: copy.deepcopy(o.param_groups)[0]["lr"], torch.jit)
    assert [rate for _, rate in copied.results] == RATES and copied.step.count == 1
    saved = Training(lambda m, o: o.state_dict()["param_groups"][0]["lr"], torch.jit)
    assert [rate for _, rate in saved.results] == RATES and saved.step.count == 1


def test_a_copy_is_a_plain_dict_with_tensors_of_its_own():
    w = torch.ones(2, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.5)
    groups = torch.jit(lambda: copy.deepcopy(optimizer.param_groups))()
    assert type(groups[0]) is dict and groups[0]["params"][0] is not w and groups[0]["lr"] == 0.5
    with torch.no_grad():
        groups[0]["params"][0].zero_()
    assert w.tolist() == [1, 1] and groups[0]["params"][0].requires_grad


@pytest.mark.parametrize("make", [lambda step: step, torch.jit])
def test_copied_groups_can_be_assigned(make):
    w = torch.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=0.5)
    saved = copy.deepcopy(optimizer.param_groups)
    saved[0]["params"] = [w]
    groups = optimizer.param_groups = optimizer.param_groups
    assert groups is optimizer.param_groups
    optimizer.param_groups = saved

    def step():
        w.grad = torch.ones(1)
        optimizer.step()

    step = make(step)
    for rate, expected in ((0.5, 0.5), (0.25, 0.25), (0.25, 0.0)):
        optimizer.param_groups[0]["lr"] = rate
        step()
        assert w.item() == expected
    assert getattr(step, "count", 1) == 1
    assert not hasattr(object.__new__(optim.SGD), "param_groups")


def test_an_lr_that_becomes_a_tensor_leads_to_a_trace():
    optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)
    rate = torch.jit(lambda: copy.deepcopy(optimizer.param_groups)[0]["lr"] * 2)
    assert rate() == 1.0
    optimizer.param_groups[0]["lr"] = torch.tensor(0.25)
    assert rate().item() == 0.5 and rate.count == 2


def test_a_moving_average_that_begins_inside():
    class Averaged:
        def __init__(self):
            self.model, self.average = nn.Linear(2, 1), None

        def step(self):
            if self.average is None:
                self.average = copy.deepcopy(self.model)
            with torch.no_grad():
                for old, new in zip(
                    self.average.parameters(), self.model.parameters(), strict=True
                ):
                    old.mul_(0.5).add_(new, alpha=0.5)
                    new.add_(1)

    averaged = Averaged()
    first = averaged.model.weight.tolist()[0][0]
    step = torch.jit(averaged.step)
    for expected in (0.0, 0.5, 1.25, 2.125):
        step()
        assert averaged.average.weight.tolist()[0][0] == pytest.approx(first + expected, abs=1e-5)
    assert step.count == 2


def test_objects_made_by_the_function_do_not_make_it_be_traced_again():
    class State:
        def __init__(self, hidden):
            self.hidden, self.all = hidden, [hidden]

    first = State(torch.ones(2))

    @torch.jit
    def step(x):
        state = State(x * 2)
        state.before = first
        return state.hidden + state.before.hidden + state.all[0]

    assert [step(torch.ones(2)).tolist() for _ in range(3)] == [[5, 5]] * 3
    assert step.count == 1


def test_a_dict_by_tensors_keeps_its_order():
    one, two = torch.tensor(2.0), torch.tensor(1.0)
    swapped = torch.jit(lambda x: {one: x, two: x * 2})
    assert list(swapped(torch.ones(1))) == [one, two]
