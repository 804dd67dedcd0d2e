"""Training scripts as PyTorch's users write them, eager and with their steps compiled: losses,
parameters, buffers and optimizers must come to what PyTorch came to, and steps be traced as seldom
as they can be.
"""

import itertools
import math

import numpy as np
import pytest
from helpers import checks
from helpers.as_torch import as_torch, described, differences

import jaxgrad

pytestmark = pytest.mark.slow

# relative tolerance: the libraries add up in another order, step after step
PRECISION = 1e-10


def plain(function):
    return function


def numbers(torch, *shape, seed=0):
    values = np.random.RandomState(seed).randn(*shape)
    return torch.tensor(values.tolist(), dtype=torch.float64)


def classes(torch, count, *shape, seed=0):
    return torch.tensor(np.random.RandomState(seed).randint(0, count, shape).tolist())


def begun(torch, model, seed=0):
    """A module with fixed numbers, the same in both libraries."""
    model = model.double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(0.4 * numbers(torch, *parameter.shape, seed=100 * seed + number))
    return model


def perceptron(torch, *sizes, seed=0):
    layers = []
    for before, after in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(before, after), torch.nn.Tanh()]
    return begun(torch, torch.nn.Sequential(*layers[:-1]), seed)


def gradients(*models):
    return [parameter.grad for model in models for parameter in model.parameters()]


@as_torch(precision=PRECISION)
def test_images_in_training_and_evaluation_by_turns(torch, jit=plain):
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = nn.Conv2d(1, 3, 3, padding=1, bias=False)
            self.norm, self.last = nn.BatchNorm2d(3), nn.Linear(3, 3)

        def forward(self, x):
            return self.last(self.norm(self.convolution(x)).relu().mean((2, 3)))

    model = begun(torch, Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @jit
    def train(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        return loss.detach()

    @jit
    @torch.no_grad()
    def evaluate(batch):
        model.eval()
        out = model(batch["x"])
        return {"loss": F.cross_entropy(out, batch["y"]), "right": out.argmax(1) == batch["y"]}

    images, labels = numbers(torch, 8, 1, 4, 4), classes(torch, 3, 8)
    log, total = [], 0.0
    for _ in range(2):
        model.train()
        for x, y in zip(images.split(4), labels.split(4), strict=True):
            log.append(train(x, y))
            total += log[-1].item()
        result = evaluate({"x": x, "y": y})
        log.append((model.training, result["loss"], result["right"].sum().item()))
    return log, total, model.state_dict(), optimizer.state_dict()["state"]


@as_torch(precision=PRECISION)
def test_two_networks_against_each_other(torch, jit=plain):
    F = torch.nn.functional
    maker, judge = perceptron(torch, 2, 5, 3), perceptron(torch, 3, 5, 1, seed=1)
    of_maker = torch.optim.Adam(maker.parameters(), lr=0.02, betas=(0.5, 0.99))
    of_judge = torch.optim.RMSprop(judge.parameters(), lr=0.02)

    @jit
    def step(real, noise):
        of_judge.zero_grad()
        fakes = maker(noise)
        of_two = F.softplus(-judge(real)).mean() + F.softplus(judge(fakes.detach())).mean()
        of_two.backward()
        of_judge.step()
        judge.requires_grad_(False)
        of_maker.zero_grad()
        loss = F.softplus(-judge(fakes)).mean()
        loss.backward()
        of_maker.step()
        judge.requires_grad_(True)
        return of_two, loss

    log = []
    for number in range(4):
        losses = step(numbers(torch, 4, 3, seed=number), numbers(torch, 4, 2, seed=9 + number))
        log.append([loss.item() for loss in losses])
    return log, maker.state_dict(), judge.state_dict(), gradients(maker, judge)


@as_torch(precision=PRECISION)
def test_a_language_model_with_padding(torch, jit=plain):
    nn, F = torch.nn, torch.nn.functional

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(7, 4, padding_idx=0)
            self.norm, self.mixed = nn.LayerNorm(4), nn.Linear(4, 12, bias=False)
            self.last = nn.Linear(4, 7, bias=False)
            self.last.weight = self.embedding.weight
            self.register_buffer("seen", torch.tensor(0))

        def forward(self, tokens):
            count = tokens.shape[1]
            self.seen += (tokens != 0).sum()
            x = self.embedding(tokens)
            q, k, v = self.mixed(self.norm(x)).chunk(3, -1)
            hidden = (tokens == 0)[:, None] | torch.ones(count, count).triu(1).bool()
            scores = (q @ k.transpose(-2, -1) / 2).masked_fill(hidden, -math.inf)
            return self.last(x + scores.softmax(-1) @ v)

    model = begun(torch, Model())
    decays = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    others = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    groups = [{"params": decays, "weight_decay": 0.1}, {"params": others, "lr": 0.003}]
    optimizer = torch.optim.AdamW(groups, lr=0.01, weight_decay=0.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))

    @jit
    def step(tokens):
        scores = model(tokens[:, :-1])
        loss = F.cross_entropy(scores.reshape(-1, 7), tokens[:, 1:].reshape(-1), ignore_index=0)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        return loss, norm

    log = []
    for number in range(4):
        tokens = classes(torch, 6, 3, 5, seed=number) + 1
        tokens[0, 3:] = 0
        loss, norm = step(tokens)
        log.append((loss.item(), norm.item(), scheduler.get_last_lr()))
    return log, model.state_dict(), optimizer.state_dict()["state"]


@as_torch(precision=PRECISION)
def test_learning_to_learn_with_a_slow_copy(torch, jit=plain):
    F, func = torch.nn.functional, torch.func
    model, slow = perceptron(torch, 1, 4, 1), perceptron(torch, 1, 4, 1)
    slow.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)

    def loss_of(parameters, x, y):
        return F.mse_loss(func.functional_call(model, parameters, (x,)), y)

    def of_task(parameters, x, y):
        slopes = func.grad(loss_of)(parameters, x[0], y[0])
        fast = {name: value - 0.1 * slopes[name] for name, value in parameters.items()}
        return loss_of(fast, x[1], y[1])

    @jit
    def step(x, y, rate):
        parameters = dict(model.named_parameters())
        loss = func.vmap(of_task, in_dims=(None, 0, 0))(parameters, x, y).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mine, other in zip(slow.parameters(), model.parameters(), strict=True):
                mine.lerp_(other, rate)
        return loss

    log = []
    for number in range(4):
        x = numbers(torch, 3, 2, 5, 1, seed=number)
        log.append(step(x, torch.sin(x), 1 / (2 + number)).item())
    return log, model.state_dict(), slow.state_dict(), gradients(model)


@as_torch(precision=PRECISION)
def test_heads_that_take_turns_on_a_state_that_goes_on(torch, jit=plain):
    nn, F = torch.nn, torch.nn.functional

    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return (x * 8).round() / 8

        @staticmethod
        def backward(ctx, grad):
            return grad

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.Linear(5, 9)
            self.heads = nn.ModuleDict({"value": nn.Linear(3, 1), "label": nn.Linear(3, 2)})

        def forward(self, sequence, hidden, head):
            for x in sequence.unbind(1):
                old, gate, new = self.cell(torch.cat([x, hidden], 1)).chunk(3, 1)
                hidden = torch.sigmoid(gate) * hidden + torch.sigmoid(old) * torch.tanh(new)
            return self.heads[head](Rounded.apply(hidden)), hidden

    class Trainer:
        def __init__(self):
            self.model = begun(torch, Net())
            self.model.cell.weight.register_hook(lambda grad: grad.clamp(-0.1, 0.1))
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.5)
            self.steps = torch.zeros((), dtype=torch.int64)

        @jit
        def step(self, sequence, hidden, head, goal):
            out, hidden = self.model(sequence, hidden, head)
            loss = F.mse_loss(out[:, 0], goal) if head == "value" else F.cross_entropy(out, goal)
            for parameter in self.model.parameters():
                parameter.grad = None
            loss.backward()
            self.optimizer.step()
            self.steps += 1
            return loss, hidden.detach()

    trainer, hidden, log = Trainer(), torch.zeros(2, 3, dtype=torch.float64), []
    for number in range(5):
        goals = {"value": numbers(torch, 2, seed=number), "label": classes(torch, 2, 2)}
        head = ("value", "label")[number % 2]
        sequence = numbers(torch, 2, 3, 2, seed=number)
        loss, hidden = trainer.step(sequence, hidden, head, goals[head])
        log.append(loss.item())
    return log, hidden, trainer.steps, trainer.model.state_dict(), gradients(trainer.model)


SCRIPTS = [test for test in list(globals().values()) if hasattr(test, "body")]

# how often the functions of a script are traced, where that is more than once
TRACES = {
    "test_images_in_training_and_evaluation_by_turns": [1, 1],
    "test_learning_to_learn_with_a_slow_copy": [2],  # the rate is an input from the second one on
    "test_heads_that_take_turns_on_a_state_that_goes_on": [2],
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_with_compiled_steps(script):
    steps = []

    def jit(function):
        steps.append(jaxgrad.jit(function))
        return steps[-1]

    name = script.__name__
    differences(script.expected(), described(script.body(jaxgrad, jit)), name, PRECISION)
    assert [step.count for step in steps] == TRACES.get(name, [1])
    checks.count("autograd")
