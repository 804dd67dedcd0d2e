# %% [markdown]
# # Learning to learn: MAML
#
# Model-agnostic meta-learning (C. Finn, P. Abbeel, S. Levine, 2017) looks for parameters from which
# a network learns a new task in a few steps. The loss is that *after* these steps, so its gradient
# goes through gradients. This tutorial teaches derivatives of second order by `torch.func`, and
# `vmap` over tasks.
#
# You need to know what `vmap` and `grad` do to a function
# ([Per-sample gradients](per_sample_gradients.md) shows it).

# %%
import math

import matplotlib.pyplot as plt

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad.func import functional_call, grad, vmap

# %% [markdown]
# ## The tasks
#
# Each task is a sine wave with an amplitude and a phase of its own. A few points of it are known
# (the support), and the network shall predict others (the query).

# %%
TASKS, SHOTS = 25, 10


def draw_tasks(count):
    """Support and query of `count` waves: four tensors of shape (count, SHOTS, 1)."""
    amplitude = 0.1 + 4.9 * torch.rand(count, 1, 1)
    phase = math.pi * torch.rand(count, 1, 1)
    x = 10 * torch.rand(2, count, SHOTS, 1) - 5
    y = amplitude * torch.sin(x + phase)
    return x[0], y[0], x[1], y[1]


torch.manual_seed(0)
support_x, support_y, query_x, query_y = draw_tasks(TASKS)
print(support_x.shape)

# %% [markdown]
# ## The network and its adaptation
#
# `functional_call` runs the network with parameters that it is given. Adaptation is gradient
# descent, written as a function from parameters to parameters.

# %%
INNER_RATE = 0.02


def new_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Linear(1, 40),
        torch.nn.Tanh(),
        torch.nn.Linear(40, 40),
        torch.nn.Tanh(),
        torch.nn.Linear(40, 1),
    )


model = new_model()


def loss_of(parameters, x, y):
    return F.mse_loss(functional_call(model, parameters, (x,)), y)


def adapt(parameters, x, y, steps=1):
    for _ in range(steps):
        gradients = grad(loss_of)(parameters, x, y)
        parameters = {
            name: value - INNER_RATE * gradients[name] for name, value in parameters.items()
        }
    return parameters


# %% [markdown]
# The loss of a task is that of the adapted parameters on the query. `vmap` computes it for all
# tasks at once: the parameters are shared (`None`), the points have one task in each row (`0`).


# %%
def loss_after(parameters, support_x, support_y, query_x, query_y):
    return loss_of(adapt(parameters, support_x, support_y), query_x, query_y)


losses_after = vmap(loss_after, in_dims=(None, 0, 0, 0, 0))
parameters = dict(model.named_parameters())
print(losses_after(parameters, support_x, support_y, query_x, query_y).shape)

# %% [markdown]
# ## The step
#
# `backward()` differentiates all of this, the `grad` inside too: that takes second derivatives. The
# step draws its tasks itself, and the whole step is one program.

# %%
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


@torch.compile
def meta_step():
    optimizer.zero_grad()
    loss = losses_after(dict(model.named_parameters()), *draw_tasks(TASKS)).mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


STEPS = 3000
losses = torch.stack([meta_step() for _ in range(STEPS)])
print(f"loss after one step of adaptation: {losses[:50].mean():.3f} -> {losses[-50:].mean():.3f}")

# %% [markdown]
# For comparison, a second network learns the same tasks without thinking of adaptation: its loss is
# that of the parameters as they are. The best it can do is the mean of all waves.

# %%
plain = new_model()
plain_optimizer = torch.optim.Adam(plain.parameters(), lr=2e-3)


@torch.compile
def plain_step():
    plain_optimizer.zero_grad()
    _, _, x, y = draw_tasks(TASKS)
    loss = F.mse_loss(plain(x), y)
    loss.backward()
    plain_optimizer.step()
    return loss.detach()


plain_losses = torch.stack([plain_step() for _ in range(STEPS)])

# %%
figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, curve in (("MAML, after one step", losses), ("plain, as it is", plain_losses)):
    smooth = curve.view(-1, 50).mean(1).numpy()
    axis.plot(range(50, STEPS + 1, 50), smooth, label=name)
axis.set(xlabel="step", ylabel="loss (mean of 50 steps)", yscale="log", title="Training")
_ = axis.legend()

# %% [markdown]
# ## New tasks
#
# Both networks now meet a wave that they have not seen, and take a few steps on ten points of it.

# %%
amplitude, phase = 3.5, 1.0
torch.manual_seed(5)
few = 10 * torch.rand(SHOTS, 1) - 5
known = amplitude * torch.sin(few + phase)
line = torch.linspace(-5, 5, 200)[:, None]

figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), sharey=True, layout="constrained")
for axis, network, name in zip(axes, (model, plain), ("MAML", "plain"), strict=True):
    start = {name: value.detach() for name, value in network.named_parameters()}
    for steps in (0, 1, 10):
        adapted = adapt(start, few, known, steps)
        curve = functional_call(model, adapted, (line,))
        axis.plot(line[:, 0].numpy(), curve[:, 0].numpy(), label=f"steps: {steps}")
    axis.plot(line[:, 0].numpy(), (amplitude * torch.sin(line + phase))[:, 0].numpy(), "k:")
    axis.plot(few[:, 0].numpy(), known[:, 0].numpy(), "k^", label="ten points")
    axis.set(xlabel="x", ylabel="y", title=f"{name}: a new wave (dotted)")
_ = axes[0].legend(fontsize=8)

# %% [markdown]
# The same for 500 new waves at once. Now each task has parameters of its own, so they have one task
# in each row too.

# %%
support_x, support_y, query_x, query_y = draw_tasks(500)
adapt_all, losses_of_all = torch.compile(vmap(adapt)), torch.compile(vmap(loss_of))


@torch.no_grad()
def mean_losses(network, steps):
    """The mean loss before the first step and after each."""
    parameters = {
        name: value.expand(500, *value.shape) for name, value in network.named_parameters()
    }
    means = [losses_of_all(parameters, query_x, query_y).mean().item()]
    for _ in range(steps):
        parameters = adapt_all(parameters, support_x, support_y)
        means.append(losses_of_all(parameters, query_x, query_y).mean().item())
    return means


counts = (0, 1, 2, 5, 10)
table = {}
for name, network in (("MAML", model), ("plain", plain)):
    means = mean_losses(network, 10)
    table[name] = [means[steps] for steps in counts]
print("steps", *(f"{steps:7}" for steps in counts))
for name, row in table.items():
    print(f"{name:5}", *(f"{loss:7.3f}" for loss in row))

# %% [markdown]
# ## Checks
#
# One step makes the loss of the network that learned to learn several times smaller. The plain one
# learns more slowly.

# %%
before, after = table["MAML"][0], table["MAML"][1]
assert after < 0.25 * before
assert after < 0.5 * table["plain"][1] and table["MAML"][-1] < table["plain"][-1]
print(f"{before:.2f} before, {after:.2f} after one step; plain {table['plain'][1]:.2f}")
