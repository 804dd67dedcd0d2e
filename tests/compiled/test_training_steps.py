"""Training steps as PyTorch users write them, under `jaxgrad.jit`: equal to the same steps run as
they are, from one program, whatever the step does and whichever optimizer it uses.
"""

import numpy as np
import pytest

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn, optim
from jaxgrad.core import executor
from jaxgrad.utils.checkpoint import checkpoint

OPTIMIZERS = {
    "SGD": lambda parameters: optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: optim.SGD(parameters, lr=0.05, momentum=0.9),
    "Adam": lambda parameters: optim.Adam(parameters, lr=0.01),
    "AdamW": lambda parameters: optim.AdamW(parameters, lr=0.01, weight_decay=0.1),
}
STEPS = 5


class Slope(torch.autograd.Function):
    """tanh, with its own gradient."""

    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (1 - y * y) * 2


def network(*middle):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), *middle, nn.ReLU(), nn.Linear(8, 2)).double()


def plain(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def clip(bias):
    bias.grad.clamp_(-0.01, 0.01)


def with_hooks(model, optimizer):
    model[0].weight.register_hook(lambda grad: grad * 0.5)
    model[2].bias.register_post_accumulate_grad_hook(clip)
    model[0].register_forward_hook(lambda module, inputs, output: output * 1.1)
    return plain(model, optimizer)


def with_clipping(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        return norm

    return step


def with_accumulation(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        for part in range(4):
            loss = F.cross_entropy(model(x[part::4]), y[part::4]) / 4
            loss.backward()
        optimizer.step()
        return loss

    return step


def with_two_losses(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        scores = model(x)
        first, second = F.cross_entropy(scores, y), (scores**2).mean()
        first.backward(retain_graph=True)
        (0.1 * second).backward()
        optimizer.step()
        return first.detach() + second.detach()

    return step


def with_a_penalty(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        x = x.detach().requires_grad_()
        loss = F.cross_entropy(model(x), y)
        (slope,) = torch.autograd.grad(loss, x, create_graph=True)
        (loss + 10 * (slope**2).sum()).backward()
        optimizer.step()
        return loss

    return step


class Sloped(nn.Module):
    def forward(self, x):
        return Slope.apply(x)


def with_checkpoints(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        hidden = checkpoint(model[:2], x, use_reentrant=False)
        loss = F.cross_entropy(model[2](hidden), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def with_a_schedule(model, optimizer):
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    step = plain(model, optimizer)

    def scheduled(x, y):
        return step(x, y)

    scheduled.after = scheduler.step
    return scheduled


KINDS = {
    "plain": (plain, ()),
    "hooks": (with_hooks, ()),
    "clip_grad_norm_": (with_clipping, ()),
    "accumulation": (with_accumulation, ()),
    "two losses": (with_two_losses, ()),
    "a gradient penalty": (with_a_penalty, ()),
    "a Function": (plain, (Sloped,)),
    "checkpoint": (with_checkpoints, ()),
    "dropout": (plain, (lambda: nn.Dropout(0.5),)),
    "a schedule": (with_a_schedule, ()),
}


def trained(kind, optimizer, compile):
    """The result of every step, the parameters, their gradients, and the compiled step."""
    make, middle = KINDS[kind]
    model = network(*[layer() for layer in middle])
    step = make(model, OPTIMIZERS[optimizer](model.parameters()))
    compiled, values = compile(step), []
    torch.manual_seed(2)
    numbers = np.random.default_rng(3)
    for _ in range(STEPS):
        x, y = torch.tensor(numbers.normal(size=(8, 4))), torch.tensor(numbers.integers(0, 2, 8))
        values.append(compiled(x, y).item())
        getattr(step, "after", lambda: None)()
    for parameter in model.parameters():
        values += [*parameter.flatten().tolist(), *parameter.grad.flatten().tolist()]
    return values, compiled


@pytest.mark.row("S06", "S07")
@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_compiled_step_equals_the_eager_one(kind, optimizer):
    values, compiled = trained(kind, optimizer, torch.jit)
    expected, _ = trained(kind, optimizer, lambda step: step)
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-12)
    assert compiled.count == 1, compiled.explain()


def exact_linear(inputs, outputs, value):
    """A layer whose numbers are all `value`, a power of 2: every kernel computes it exactly."""
    layer = nn.Linear(inputs, outputs)
    nn.init.constant_(layer.weight, value)
    nn.init.constant_(layer.bias, value)
    return layer


@pytest.mark.slow
def test_a_function_may_set_the_mode_of_a_module():
    """Each call leaves the module in the mode that the function sets, from one program each."""
    model = nn.Sequential(exact_linear(4, 64, 0.5), nn.Dropout(0.5))
    x = torch.ones(2, 4)

    def run(mode):
        model.train(mode)
        return model(x)

    train, evaluate = torch.jit(lambda: run(True)), torch.jit(lambda: run(False))
    plain = torch.jit(lambda: model(x))
    for _ in range(3):
        assert (train() == 0).any() and model.training and model[1].training
        assert (plain() == 0).any()
        assert not (evaluate() == 0).any() and not model.training and not model[1].training
        assert (plain() == evaluate()).all()
    assert (train.count, evaluate.count, plain.count) == (1, 1, 2)

    @torch.jit
    def there_and_back():
        before = model(x)  # in the mode of the call
        model.train(not model.training)
        return before, model(x)

    for call in range(4):
        first, second = there_and_back()
        assert [bool((output == 0).any()) for output in (first, second)] == [
            call % 2 == 1,
            call % 2 == 0,
        ]
    assert there_and_back.count == 2, there_and_back.explain()


@pytest.mark.slow
def test_the_mode_of_a_module_within_vmap_is_seen_from_outside():
    model = nn.Sequential(exact_linear(4, 64, 0.5), nn.Dropout(0.5))
    compiled = torch.jit(lambda x: torch.func.vmap(model, randomness="different")(x))
    x = torch.ones(2, 4)
    assert (compiled(x) == 0).any()
    model.eval()
    assert (compiled(x) == model(x)).all() and compiled.count == 2


def test_a_compiled_module_has_what_the_module_has():
    model = nn.Linear(4, 2)
    compiled = torch.jit(model)
    optimizer = optim.SGD(compiled.parameters(), lr=0.5)
    compiled(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    assert compiled.weight is model.weight and list(compiled.state_dict()) == ["weight", "bias"]
    assert not compiled.eval().training and not compiled.training
    model.train()
    assert compiled.training
    with pytest.raises(AttributeError, match="nothing"):
        _ = compiled.nothing


@pytest.mark.slow
def test_modes_of_a_module_lead_to_programs_of_their_own():
    torch.manual_seed(0)
    model = nn.Sequential(exact_linear(4, 8, 0.5), nn.Dropout(0.5))
    compiled, x = torch.jit(lambda x: model(x)), torch.ones(2, 4)
    assert (compiled(x) == 0).any() and not (compiled(x) == compiled(x)).all()
    model.eval()
    assert (compiled(x) == model(x)).all() and compiled.count == 2
    model.train()
    compiled(x)
    model.eval()
    compiled(x)
    assert compiled.count == 2
    model[0] = exact_linear(4, 8, 2.0)
    assert (compiled(x) == model(x)).all() and compiled.count == 3


@pytest.mark.slow
@pytest.mark.unverified
def test_what_is_overwritten_keeps_its_memory(monkeypatch):
    """Memory is kept although a step makes gradients of the same shapes in between."""
    monkeypatch.setattr(executor, "chosen", "compiled")  # NumPy makes new arrays
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    step, x = torch.jit(plain(model, optimizer)), torch.ones(2, 4)
    y = torch.zeros(2, dtype=torch.int64)
    step(x, y)
    state = [
        entry[name] for entry in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")
    ]
    tensors = [*model.parameters(), *state]
    before = [tensor._array.unsafe_buffer_pointer() for tensor in tensors]
    step(x, y)
    assert [tensor._array.unsafe_buffer_pointer() for tensor in tensors] == before
