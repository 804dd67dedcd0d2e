"""Modules under jaxgrad.jit: a compiled step learns what the eager step learns."""

import math

import pytest
from helpers.as_torch import as_torch

import jaxgrad
import jaxgrad.nn.functional as F
from jaxgrad import nn


def differs(one, two):
    """The greatest difference between the state of two modules."""
    pairs = zip(one.state_dict().values(), two.state_dict().values(), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


def batches(count, shape, classes):
    generator = jaxgrad.Generator().manual_seed(1)
    for _ in range(count):
        x = jaxgrad.rand(4, *shape, generator=generator)
        yield x, jaxgrad.randint(classes, (4,), generator=generator)


def trained(make, compiled, steps=5):
    """A module after some steps, the losses, and the traces of the step."""
    jaxgrad.manual_seed(0)
    module, shape = make()

    def step(x, y):
        module.zero_grad()
        loss = F.cross_entropy(module(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(module.parameters(), 0.5)
        with jaxgrad.no_grad():
            for parameter in module.parameters():
                parameter.sub_(0.2 * parameter.grad)
        return loss.detach(), norm

    step = jaxgrad.jit(step) if compiled else step
    history = [[scalar.item() for scalar in step(*batch)] for batch in batches(steps, shape, 3)]
    return module, history, len(step.traces) if compiled else 1


def images():
    net = nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(3 * 4, 3),
    )
    return net, (1, 4, 4)


@pytest.mark.slow
def test_training_with_dropout_compiled_is_training():
    """test_layers.py compares the eager step with PyTorch, layer by layer."""
    usual, expected, _ = trained(images, False)
    module, history, traces = trained(images, True)
    assert traces == 1
    assert differs(usual, module) < 1e-6
    for one, two in zip(expected, history, strict=True):
        assert one == pytest.approx(two, rel=1e-5)


@pytest.mark.slow
def test_a_compiled_function_follows_its_module():
    """By the closed form of each state of the module."""
    module = nn.Sequential(nn.Identity(), nn.Dropout(0.5))
    apply = jaxgrad.jit(lambda x: module(x))
    x = jaxgrad.full((64,), 3.0)

    def shows(values, traces):
        assert set(apply(x).tolist()) == values
        assert len(apply.traces) == traces

    shows({0.0, 6.0}, 1)
    module.eval()
    shows({3.0}, 2)
    module.train()
    shows({0.0, 6.0}, 2)
    module.eval()
    shows({3.0}, 2)
    module[0] = nn.ReLU()
    module[0].register_buffer("unused", None)
    assert set(apply(-x).tolist()) == {0.0}
    handle = module[0].register_forward_hook(lambda m, args, out: out + 1)
    assert set(apply(x).tolist()) == {4.0}
    handle.remove()
    assert set(apply(x).tolist()) == {3.0}
    module.append(nn.Hardtanh(0.0, 2.0))
    assert set(apply(x).tolist()) == {2.0}
    module[2].max_val = 1.5
    assert set(apply(x).tolist()) == {1.5}


def test_a_compiled_function_follows_what_it_only_reads():
    module = nn.Module()
    module.scale, module.weight = 2.0, nn.Parameter(jaxgrad.ones(1))
    apply = jaxgrad.jit(lambda x: x * module.weight * module.scale)
    assert apply(jaxgrad.ones(1)).item() == 2
    module.scale = float("2")
    assert apply(jaxgrad.ones(1)).item() == 2 and len(apply.traces) == 1
    module.scale = 5.0
    assert apply(jaxgrad.ones(1)).item() == 5
    module.weight = nn.Parameter(jaxgrad.full((1,), 3.0))
    assert apply(jaxgrad.ones(1)).item() == 15
    with jaxgrad.no_grad():
        module.weight.fill_(4.0)
    count = len(apply.traces)
    assert apply(jaxgrad.ones(1)).item() == 20
    assert len(apply.traces) == count


def test_a_compiled_function_follows_lists_and_dicts_of_its_module():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.factors, self.named, self.log = [2.0], {"bias": 1.0}, []

        def forward(self, x):
            return x * sum(self.factors) + self.named["bias"]

    scaled = Scaled()
    call = jaxgrad.jit(lambda x: scaled(x))

    def check(expected, traces):
        scaled.log.append(call(jaxgrad.tensor(3.0)).item())  # which forward does not name
        assert scaled.log[-1] == expected and call.count == traces

    check(7.0, 1)
    check(7.0, 1)
    scaled.named["bias"] = 2.0
    check(8.0, 2)
    scaled.factors.append(1.0)
    check(11.0, 3)
    scaled.factors[:] = [2.0]
    check(8.0, 3)  # which finds the earlier program again


@pytest.mark.unverified
def test_a_counter_in_forward_counts_each_compiled_call():
    class Counting(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x * 2

    module = Counting()
    one, two = jaxgrad.jit(lambda x: module(x)), jaxgrad.jit(lambda x: module(x) + 1)
    for _ in range(3):
        assert (one(jaxgrad.ones(1)).item(), two(jaxgrad.ones(1)).item()) == (2, 3)
    assert module.calls == 6 and max(len(one.traces), len(two.traces)) <= 3


def test_running_statistics_after_a_compiled_function():
    """The mean of 1 and 3 is 2, their variance 2."""
    norm = nn.BatchNorm1d(1, momentum=0.5)
    apply = jaxgrad.jit(lambda x: norm(x))
    x = jaxgrad.tensor([[1.0], [3.0]])
    for expected in (1.0, 1.5, 1.75):
        apply(x)
        assert norm.running_mean.item() == pytest.approx(expected)
    assert norm.running_var.item() == pytest.approx(2 - 0.5**3)
    assert norm.num_batches_tracked.item() == 3
    assert len(apply.traces) == 1
    norm.eval()
    expected = (1 - 1.75) / math.sqrt(1.875 + 1e-5)
    assert apply(x)[0].item() == pytest.approx(expected, rel=1e-5)
    assert norm.num_batches_tracked.item() == 3


@pytest.mark.row("S04")
def test_compiled_gradient_clipping():
    x = jaxgrad.ones(2, requires_grad=True)

    @jaxgrad.jit
    def step(scale, error=False):
        x.grad = None
        (x * scale).sum().backward()
        return nn.utils.clip_grad_norm_([x], 1.0, error_if_nonfinite=error)

    for scale in (3.0, 4.0):
        assert step(jaxgrad.tensor(scale)).item() == pytest.approx(scale * math.sqrt(2))
        assert x.grad.tolist() == pytest.approx([math.sqrt(0.5)] * 2, rel=1e-6)
    assert len(step.traces) == 1
    with pytest.raises(RuntimeError, match="error_if_nonfinite=True reads the total norm"):
        step(jaxgrad.tensor(1.0), True)


def test_hooks_of_modules_compiled():
    layer, seen = nn.Linear(2, 1, bias=False), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(1) or (gi[0] * 10,))

    @jaxgrad.jit
    def gradient(x):
        x.requires_grad_()
        return jaxgrad.autograd.grad(layer(x).sum(), x)[0]

    expected = [10 * weight for weight in layer.weight[0].tolist()]
    assert gradient(jaxgrad.ones(1, 2))[0].tolist() == pytest.approx(expected)
    assert seen == [1]


def network(torch):
    """A network as scripts write it, with fixed weights."""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(1, 4, 3, padding=1, bias=False),
                nn.BatchNorm2d(4),
                nn.ReLU(inplace=True),
                nn.MaxPool2d(2),
            )
            self.tags = nn.Embedding(3, 4, padding_idx=0)
            layer = nn.TransformerEncoderLayer(4, 2, 6, 0.0, batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
            self.head = nn.Linear(4, 3)

        def forward(self, x, tag):
            x = self.features(x).flatten(2).transpose(1, 2)
            x = torch.cat([x, self.tags(tag).unsqueeze(1)], 1)
            return self.head(self.encoder(x).mean(1))

    net = Net().double()
    with torch.no_grad():
        for number, parameter in enumerate(net.parameters()):
            count = parameter.numel()
            values = [0.5 * math.sin(1.3 * (i + number) ** 2 + 0.7) for i in range(count)]
            parameter.copy_(torch.tensor(values, dtype=torch.float64).reshape(parameter.shape))
    return net


def script(torch, compile):
    """The losses of a training, the norms of its gradients, and the learned parameters."""
    nn, net = torch.nn, network(torch)
    groups = [
        {"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in net.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def step(x, tag, y):
        optimizer.zero_grad()
        loss = criterion(net(x, tag), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss.detach(), norm

    step, history = compile(step), []
    x = torch.sin(torch.arange(4 * 16, dtype=torch.float64)).reshape(4, 1, 4, 4)
    tag, y = torch.tensor([0, 1, 2, 1]), torch.tensor([0, 2, 1, 1])
    for number in range(5):
        history.append([scalar.item() for scalar in step(x * (number + 1), tag, y)])
        scheduler.step()
    net.eval()
    with torch.no_grad():
        return history, net(x, tag), net.features[1].running_var, net.tags.weight.detach()[0], step


@pytest.mark.slow
@as_torch(precision=1e-6)
def test_a_training_script(torch):
    return script(torch, lambda step: step)[:-1]


@pytest.mark.row("S06")
@pytest.mark.slow
@as_torch(precision=1e-6)
def test_a_training_script_compiled(torch):
    """PyTorch runs it eagerly; jaxgrad runs one program for all five learning rates."""
    if torch is not jaxgrad:
        return script(torch, lambda step: step)[:-1]
    *results, step = script(torch, torch.jit)
    assert len(step.traces) == 1
    return results


def micro_batches(torch, compile):
    """Two steps, each with the gradients of four parts of a batch and of the whole batch."""
    net = torch.nn.Linear(2, 1).double()
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[0.5, -1.5]]))
        net.bias.fill_(0.25)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.125, momentum=0.5)
    x = torch.arange(16.0, dtype=torch.float64).reshape(8, 2) / 8
    y = x.sin().sum(1, keepdim=True)

    def loss_of(part):
        return torch.nn.functional.mse_loss(net(x[part]), y[part])

    def accumulate(first):
        for start in range(first, first + 4, 2):
            (loss_of(slice(start, start + 2)) / 4).backward()

    accumulate, update = compile(accumulate), compile(optimizer.step)
    whole, gradients = compile(lambda: loss_of(slice(None)).backward()), []
    for _ in range(2):
        for way in (lambda: [accumulate(first) for first in (0, 4)], whole):
            optimizer.zero_grad()
            way()
            gradients.append([parameter.grad for parameter in net.parameters()])
        update()
    return gradients, list(net.parameters()), accumulate


@pytest.mark.row("S07")
@pytest.mark.slow
@as_torch
def test_gradients_of_micro_batches(torch):
    return micro_batches(torch, lambda step: step)[:-1]


@pytest.mark.row("S07")
@pytest.mark.slow
@as_torch(precision=1e-13)
def test_gradients_of_micro_batches_compiled(torch):
    if torch is not jaxgrad:
        return micro_batches(torch, lambda step: step)[:-1]
    *results, accumulate = micro_batches(torch, torch.jit)
    # the start of a part is part of the program, and so is whether .grad is None
    assert len(accumulate.traces) == 2
    return results
