# %% [markdown]
# # A neural differential equation
#
# You learn the law of motion of a pendulum from noisy measurements. A network stands for the
# right-hand side of a differential equation, a Runge-Kutta solver integrates it, and gradients
# flow through the solver. Then you write the *adjoint method* as an `autograd.Function`: it gives
# the same gradients and keeps almost nothing in memory.
#
# You need to know `nn.Module`, optimizers, and what a differential equation is.

# %%
import matplotlib.pyplot as plt
import numpy as np

import jaxgrad as torch
from jaxgrad import nn

_ = torch.manual_seed(0)

# %% [markdown]
# ## Data
#
# The state is \( y = (\theta, \dot\theta) \), angle and angular velocity. The true law, which the
# network must not see, is a pendulum with friction: \( \ddot\theta = -\sin\theta -
# 0.15\,\dot\theta \).


# %%
def pendulum(y):
    angle, velocity = y[..., 0], y[..., 1]
    return torch.stack([velocity, -angle.sin() - 0.15 * velocity], -1)


# %% [markdown]
# The solver is the classical Runge-Kutta method with a fixed step. Its loop is an ordinary Python
# loop. It works on batches: the last dimension of `y` is the state, and all others are examples.


# %%
def rk4_step(f, y, h):
    k1 = f(y)
    k2 = f(y + h / 2 * k1)
    k3 = f(y + h / 2 * k2)
    k4 = f(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def odeint(f, y0, h, steps):
    """The states at the times 0, h, ..., steps * h, along a new first dimension."""
    states = [y0]
    for _ in range(steps):
        states.append(rk4_step(f, states[-1], h))
    return torch.stack(states)


# %% [markdown]
# Forty pendulums start at random. Each is measured 61 times in 12 seconds, with an error of
# 0.02 in each number.

# %%
H, STEPS, NOISE = 0.2, 60, 0.02

starts = (torch.rand(40, 2) - 0.5) * torch.tensor([5.0, 3.0])
truth = odeint(pendulum, starts, H, STEPS)
measured = truth + NOISE * torch.randn(truth.shape)
print("measured:", tuple(measured.shape), "= times x pendulums x (angle, velocity)")

# %% [markdown]
# ## The network, and training through the solver
#
# The network maps a state to its time derivative. It knows nothing of sines or friction.


# %%
class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 2)
        )

    def forward(self, y):
        return self.layers(y)


# %% [markdown]
# A training step draws 64 windows of 8 intervals from the measurements, integrates from the first
# state of each window, and compares with the rest. `backward()` goes back through all 8 steps of
# the solver, which call the network 32 times. `@torch.compile` makes one program of it all.

# %%
WINDOW = 8


def windows(count):
    """Measurements of shape (WINDOW + 1, count, 2)."""
    first = torch.randint(STEPS - WINDOW + 1, (count,))
    times = first + torch.arange(WINDOW + 1)[:, None]
    return measured[times, torch.randint(measured.shape[1], (count,))]


def train(field, solve, updates=800):
    optimizer = torch.optim.Adam(field.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, updates)

    @torch.compile
    def step(batch):
        optimizer.zero_grad()
        loss = (solve(field, batch[0], H, WINDOW) - batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = []
    for _ in range(updates):
        losses.append(step(windows(64)))
        scheduler.step()
    return torch.stack(losses)


field = Field()
losses = train(field, odeint)
first, last = losses[:10].mean(), losses[-100:].mean()
print(f"loss of the first 10 updates: {first:.4f}, of the last 100: {last:.4f}")

# %% [markdown]
# The first states have the noise too, from which the solver starts. So no model gets much below
# twice the variance of the noise, 2 · 0.02² = 0.0008.
#
# ## What the network has learned
#
# On the left is the learned field with the measurements it was learned from. On the right a
# pendulum that was not in the data swings for 24 seconds, twice as long as any measurement: the
# network continues it from its first state alone.

# %%
with torch.no_grad():
    new_start = torch.tensor([1.5, 0.5])
    expected = odeint(pendulum, new_start, H, 120)
    predicted = odeint(field, new_start, H, 120)

    x, v = torch.meshgrid(torch.linspace(-3.5, 3.5, 22), torch.linspace(-3, 3, 20), indexing="xy")
    arrows = field(torch.stack([x, v], -1))

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
left.streamplot(x.numpy(), v.numpy(), arrows[..., 0].numpy(), arrows[..., 1].numpy(), color="0.75")
left.plot(*measured.numpy().T.swapaxes(1, 2).reshape(2, -1), ".", markersize=2)
left.set(title="Learned field and measurements", xlim=(-3.5, 3.5), ylim=(-3, 3))
left.set(xlabel="angle (rad)", ylabel="angular velocity (rad/s)")
seconds = np.arange(121) * H
right.plot(seconds, expected[:, 0].numpy(), color="0.6", linewidth=4, label="pendulum")
right.plot(seconds, predicted[:, 0].numpy(), label="network")
right.axvline(STEPS * H, color="0.6", linestyle=":")
right.set(title="A pendulum that was not in the data", xlabel="time (s)", ylabel="angle (rad)")
_ = right.legend()

# %% [markdown]
# ## The adjoint method
#
# To go back through the solver, the graph keeps what each of its steps computed: memory grows
# with the number of steps. The adjoint method keeps only the states that the solver returns. The
# gradient \( a(t) = \partial L / \partial y(t) \) obeys a differential equation of its own,
#
# $$ \dot a = -a^\top \frac{\partial f}{\partial y}, \qquad
# \frac{\partial L}{\partial p} = \int a^\top \frac{\partial f}{\partial p}\, dt, $$
#
# which the same Runge-Kutta method integrates backward in time. At each returned state it adds
# the gradient that arrives there.
#
# The right-hand side needs a product of a vector with the Jacobian, which is what
# `torch.func.vjp` gives. A `Function` takes tensors as separate arguments, so the parameters of
# the field come last. `substeps` steps of the solver lie between two returned states.


# %%
class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, f, h, steps, substeps, y0, *parameters):
        states = [y0]
        for _ in range(steps):
            y = states[-1]
            for _ in range(substeps):
                y = rk4_step(lambda y: f(y, *parameters), y, h / substeps)
            states.append(y)
        states = torch.stack(states)
        ctx.save_for_backward(states, *parameters)
        ctx.f, ctx.h, ctx.substeps = f, h, substeps
        return states

    @staticmethod
    def backward(ctx, grad):
        states, *parameters = ctx.saved_tensors

        def backward_in_time(y, a, *_):
            value, pull = torch.func.vjp(ctx.f, y, *parameters)
            return (-value, *pull(a))

        a = grad[-1]
        sums = [torch.zeros_like(p) for p in parameters]
        for i in range(len(states) - 1, 0, -1):
            bundle = (states[i], a, *sums)
            for _ in range(ctx.substeps):
                bundle = rk4_bundle(backward_in_time, bundle, ctx.h / ctx.substeps)
            a, sums = bundle[1] + grad[i - 1], bundle[2:]
        return None, None, None, None, a, *sums


def rk4_bundle(f, bundle, h):
    """`rk4_step` for a state that is a tuple of tensors."""

    def moved(slopes, h):
        return [part + h * slope for part, slope in zip(bundle, slopes, strict=True)]

    k1 = f(*bundle)
    k2 = f(*moved(k1, h / 2))
    k3 = f(*moved(k2, h / 2))
    k4 = f(*moved(k3, h))
    mean = [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]
    return moved(mean, h)


# %% [markdown]
# `functional_call` turns the module into a function of its parameters.


# %%
def odeint_adjoint(field, y0, h, steps, substeps=1):
    names, parameters = zip(*field.named_parameters(), strict=True)

    def f(y, *values):
        return torch.func.functional_call(field, dict(zip(names, values, strict=True)), (y,))

    return Adjoint.apply(f, h, steps, substeps, y0, *parameters)


# %% [markdown]
# ## Is it right?
#
# `gradcheck` compares the rule with finite differences. It wants float64, and here it wants small
# steps too: the backward integration has an error of its own, which falls with the fourth power
# of the step. With 4 substeps it is below the tolerance.

# %%
small = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2)).double()
y0 = torch.randn(2, dtype=torch.float64, requires_grad=True)


def solution(y0, *values, substeps=4):
    def f(y, w1, b1, w2, b2):
        return torch.tanh(y @ w1.T + b1) @ w2.T + b2

    return Adjoint.apply(f, 0.5, 2, substeps, y0, *values)


checked = torch.autograd.gradcheck(solution, (y0, *small.parameters()), atol=1e-6)
print("gradcheck:", checked)

# %% [markdown]
# Compare it with the gradient through the solver, for more and more substeps: twice as many make
# the difference about 16 times smaller.


# %%
def gradients(states):
    return torch.autograd.grad(states.square().sum(), [y0, *small.parameters()])


differences = []
for substeps in (1, 2, 4, 8):
    through = odeint(small, y0, 0.5 / substeps, 2 * substeps)[::substeps]
    adjoint = solution(y0, *small.parameters(), substeps=substeps)
    pairs = zip(gradients(through), gradients(adjoint), strict=True)
    differences.append(max((a - b).abs().max().item() for a, b in pairs))
    print(f"{substeps} substeps: largest difference {differences[-1]:.1e}")

# %% [markdown]
# ## What it saves
#
# `saved_tensors_hooks` sees every tensor that a graph keeps. Count their bytes.


# %%
def bytes_kept(solve, steps):
    total = 0

    def count(tensor):
        nonlocal total
        total += tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        solve(field, starts, H, steps)
    return total


for steps in (10, 40):
    through, adjoint = bytes_kept(odeint, steps), bytes_kept(odeint_adjoint, steps)
    kept = [f"{count / 1000:.0f} kB" for count in (through, adjoint)]
    print(f"{steps} steps: {kept[0]} through the solver, {kept[1]} by the adjoint")

# %% [markdown]
# The same training with the adjoint finds as good a field. It computes more: the backward pass
# integrates again.

# %%
other = Field()
losses_adjoint = train(other, odeint_adjoint, updates=400)
with torch.no_grad():
    again = odeint(other, new_start, H, 120)
errors = [(path - expected)[:, 0].abs().max().item() for path in (predicted, again)]
print("largest error in 24 s, in rad, through the solver:", round(errors[0], 3))
print("by the adjoint:", round(errors[1], 3))

# %% [markdown]
# Adaptive step sizes need no code of your own: the package `torchdiffeq` runs on jaxgrad
# unchanged, by `python -m jaxgrad run script.py`.
#
# ## Check

# %%
assert last < first / 50
assert checked and differences[0] > 1000 * differences[3]
assert max(errors) < 0.4
assert adjoint < through / 20
