# %% [markdown]
# # A network that obeys an equation
#
# A physics-informed network is a function that is trained until it solves a differential equation.
# No data of the solution is needed inside of the domain: the loss is how badly the equation fails.
# This tutorial teaches two ways to get second derivatives (`autograd.grad` with
# `create_graph=True`, and the transforms of `torch.func`), and training by L-BFGS.
#
# You need to know how a network is trained ([Digits](digits.md) shows it), and what a partial
# derivative is.

# %%
import matplotlib.pyplot as plt
import numpy as np

import jaxgrad as torch
from jaxgrad.func import jvp

torch.set_default_dtype(torch.float64)

# %% [markdown]
# ## The equation
#
# Burgers' equation describes a velocity \(u(t, x)\) that carries itself along and is smoothed by
# friction:
#
# $$ \frac{\partial u}{\partial t} + u \frac{\partial u}{\partial x}
# = \nu \frac{\partial^2 u}{\partial x^2} $$
#
# It has an exact solution with two fronts: the faster one catches up with the slower one, and both
# go on as one. At each point it is a mean of the three speeds 1, 1/2 and 0, weighted by a softmax.

# %%
NU = 0.02
SPEEDS = torch.tensor([1.0, 0.5, 0.0])
SHIFTS = torch.tensor([0.0, 0.0, -0.25])


def exact(t, x):
    logits = (-SPEEDS * x[..., None] + SPEEDS**2 * t[..., None] / 2 + SHIFTS) / (2 * NU)
    return (torch.softmax(logits, -1) * SPEEDS).sum(-1)


times, places = torch.linspace(0, 1.5, 101), torch.linspace(-0.5, 1.5, 201)
grid_t, grid_x = torch.meshgrid(times, places, indexing="ij")
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for row in range(0, 101, 25):
    label = f"t = {times[row].item():.2f}"
    axis.plot(places.numpy(), exact(grid_t, grid_x)[row].numpy(), label=label)
axis.set(xlabel="x", ylabel="u", title="The exact solution: two fronts become one")
_ = axis.legend(fontsize=8)

# %% [markdown]
# ## The network
#
# It takes a time and a place, and gives the velocity. Smooth activations are needed, since the
# equation has second derivatives: those of `relu` are zero.

# %%
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(2, 24),
    torch.nn.Tanh(),
    torch.nn.Linear(24, 24),
    torch.nn.Tanh(),
    torch.nn.Linear(24, 24),
    torch.nn.Tanh(),
    torch.nn.Linear(24, 1),
)


def velocity(t, x):
    return model(torch.stack([t, x], -1))[..., 0]


# %% [markdown]
# ## Second derivatives, first way
#
# The residual is the left side of the equation minus the right side. `create_graph=True` records
# the computation of a gradient, so that it can be differentiated again: once more in `x`, and later
# in the parameters. Each velocity depends on its own point only, so the gradient of the sum holds
# the derivative at each point.


# %%
def residual_by_autograd(function, t, x):
    t, x = t.detach().requires_grad_(), x.detach().requires_grad_()
    u = function(t, x)
    u_t, u_x = torch.autograd.grad(u.sum(), (t, x), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    return u_t + u * u_x - NU * u_xx


# %% [markdown]
# ## Second way
#
# Forward mode pushes a tangent along with the computation. `jvp` of a function gives its value and
# its derivative, and `jvp` of that gives the second derivative, without a backward pass.


# %%
def residual_by_func(function, t, x):
    ones = torch.ones_like(x)

    def value_and_slope(x):
        return jvp(lambda x: function(t, x), (x,), (ones,))

    (u, u_x), (_, u_xx) = jvp(value_and_slope, (x,), (ones,))
    _, u_t = jvp(lambda t: function(t, x), (t,), (ones,))
    return u_t + u * u_x - NU * u_xx


# %% [markdown]
# Both agree, and so do the gradients of the parameters. For the exact solution, the residual is
# zero: this checks the equation and the solution against each other.

# %%
t, x = 1.5 * torch.rand(1500), 2 * torch.rand(1500) - 0.5
gradients = []
for residual in (residual_by_autograd, residual_by_func):
    loss = residual(velocity, t, x).square().mean()
    gradients.append(torch.autograd.grad(loss, list(model.parameters())[:-1]))
    print(f"{residual.__name__}: {loss.item():.12f}")
for one, other in zip(*gradients, strict=True):
    torch.testing.assert_close(one, other)

print("exact solution:", residual_by_func(exact, t, x).abs().max().item())

# %% [markdown]
# ## Training
#
# The loss has two parts: the residual at points inside of the domain, and the error at the start
# and at the two ends, where the velocity is given. L-BFGS suits such smooth problems of few
# parameters. It calls the closure about once for each iteration, so the closure is compiled: two
# derivatives forward, and one backward.

# %%
edge_t = torch.cat([torch.zeros(200), 1.5 * torch.rand(200)])
edge_x = torch.cat([2 * torch.rand(200) - 0.5, -0.5 + 2 * torch.randint(2, (200,))])
edge_u = exact(edge_t, edge_x)

optimizer = torch.optim.LBFGS(
    model.parameters(), max_iter=50, history_size=30, line_search_fn="strong_wolfe"
)


@torch.compile
def closure():
    optimizer.zero_grad()
    equation = residual_by_func(velocity, t, x).square().mean()
    edges = (velocity(edge_t, edge_x) - edge_u).square().mean()
    loss = equation + 10 * edges
    loss.backward()
    return loss


losses = [optimizer.step(closure).item() for _ in range(12)]  # the loss before each 50 iterations
losses.append(closure().item())
print(f"loss {losses[0]:.2e} -> {losses[-1]:.2e}")

# %% [markdown]
# ## The result

# %%
with torch.no_grad():
    learned = velocity(grid_t, grid_x)
true = exact(grid_t, grid_x)
error = learned - true
relative = (error.norm() / true.norm()).item()

figure, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
for axis, shown, title in zip(
    axes, (learned, true, error), ("learned u", "exact u", "difference"), strict=True
):
    drawn = axis.pcolormesh(places, times, shown.numpy(), shading="auto")
    axis.set(xlabel="x", ylabel="t", title=title)
    figure.colorbar(drawn)

# %%
figure, axis = plt.subplots(figsize=(5, 3), layout="constrained")
axis.semilogy(50 * np.arange(len(losses)), losses)
_ = axis.set(xlabel="iteration of L-BFGS", ylabel="loss", title="Equation and edges")

# %% [markdown]
# ## Checks
#
# The network has seen the solution at the start and at the ends only. Inside, its error is below
# one percent, also where the fronts meet.

# %%
assert relative < 0.01
assert error.abs().max().item() < 0.05
print(f"relative error {relative:.1e}, largest error {error.abs().max().item():.1e}")
