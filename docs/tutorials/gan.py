# %% [markdown]
# # A generative adversarial network
#
# Two networks train against each other, each with an optimizer of its own. The generator makes
# points of random numbers; the discriminator learns to tell them from points of the data. You
# write one compiled step for both, and keep the game stable with a penalty on gradients, which
# takes derivatives of derivatives.
#
# You need to know `nn.Module`, optimizers and `binary_cross_entropy_with_logits`.

# %%
import math

import matplotlib.pyplot as plt

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

_ = torch.manual_seed(0)

# %% [markdown]
# ## Data
#
# Eight narrow Gaussians stand on a circle. It is a small problem with a well-known trap: a
# generator that serves only one or two of the eight *modes* may deceive the discriminator for a
# while, and then jump to others.

# %%
MODES, DEVIATION = 8, 0.1

angles = torch.arange(MODES) * (2 * math.pi / MODES)
centers = 2 * torch.stack([angles.cos(), angles.sin()], 1)


def data(count):
    return centers[torch.randint(MODES, (count,))] + DEVIATION * torch.randn(count, 2)


# %% [markdown]
# ## Two networks
#
# The generator takes noise of two dimensions. The discriminator gives a logit: positive where it
# believes that a point comes from the data.


# %%
def network(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, outputs),
    )


generator, discriminator = network(2, 2), network(2, 1)


def samples(count):
    return generator(torch.randn(count, 2))


# %% [markdown]
# ## Two losses
#
# The discriminator has the usual loss of a classifier. With \( D \) for its logit and \( G \) for
# the generator, the generator minimizes \( -\log \sigma(D(G(z))) \), the *non-saturating* loss:
# it has a large gradient where the discriminator is not deceived, which is where the generator
# has most to learn.


# %%
def loss_of_discriminator(real, fake):
    return F.softplus(-discriminator(real)).mean() + F.softplus(discriminator(fake)).mean()


def loss_of_generator(fake):
    return F.softplus(-discriminator(fake)).mean()


# %% [markdown]
# Where the discriminator becomes too steep, the generator overshoots. The penalty is the mean
# squared slope of the discriminator at the data. The slope is a gradient, and the penalty has to
# be differentiated again: `create_graph=True` makes a graph of the gradient.


# %%
def penalty(real):
    real = real.detach().requires_grad_()
    (slope,) = torch.autograd.grad(discriminator(real).sum(), real, create_graph=True)
    return slope.square().sum(1).mean()


# %% [markdown]
# ## One step for both
#
# The step of the discriminator uses `fake.detach()`, so no gradient goes to the generator there.
# The step of the generator goes through the discriminator and leaves gradients in its parameters
# too; the next `zero_grad` removes them. All this, both optimizers and the random numbers
# included, is one program.

# %%
BATCH, WEIGHT = 256, 0.1

optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.99))


@torch.compile
def step():
    real, fake = data(BATCH), samples(BATCH)
    optimizer_d.zero_grad()
    loss_d = loss_of_discriminator(real, fake.detach()) + WEIGHT * penalty(real)
    loss_d.backward()
    optimizer_d.step()

    optimizer_g.zero_grad()
    loss_g = loss_of_generator(fake)
    loss_g.backward()
    optimizer_g.step()
    return loss_d.detach(), loss_g.detach()


# %% [markdown]
# Train, and keep some samples on the way.

# %%
UPDATES = 3000

losses, shots = [], {}
for i in range(UPDATES + 1):
    if i in (0, 100, 500, UPDATES):
        with torch.no_grad():
            shots[i] = samples(1000)
    losses.append(torch.stack(step()))
losses = torch.stack(losses)

# %% [markdown]
# ## What happens on the way

# %%
shared = {"sharex": True, "sharey": True}
figure, axes = plt.subplots(1, 4, figsize=(12, 3.3), layout="constrained", **shared)
for axis, (i, points) in zip(axes, shots.items(), strict=True):
    axis.plot(*data(1000).T.numpy(), ".", color="0.8", markersize=3, label="data")
    axis.plot(*points.T.numpy(), ".", markersize=2, label="generated")
    axis.set(title=f"after {i} updates", xlim=(-3, 3), ylim=(-3, 3), xlabel="first coordinate")
axes[0].set_ylabel("second coordinate")
_ = axes[0].legend(loc="upper left", markerscale=3)

# %% [markdown]
# The losses of a game do not fall: each network gets better at the cost of the other. Where the
# generator has won, the discriminator guesses, and both losses are near \( 2\log 2 \approx 1.39
# \) and \( \log 2 \approx 0.69 \).

# %%
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
for name, curve in zip(("discriminator", "generator"), losses.T, strict=True):
    means = curve[:UPDATES].reshape(-1, 25).mean(1)
    axis.plot(range(0, UPDATES, 25), means.numpy(), label=name)
axis.set(title="Losses, means over 25 updates", xlabel="updates", ylabel="loss")
_ = axis.legend()

# %% [markdown]
# ## Are all modes there?
#
# Count the samples by the mode that is nearest, and among them those within four standard
# deviations of it.

# %%
with torch.no_grad():
    distance, nearest = torch.cdist(samples(4000), centers).min(1)
near = distance < 4 * DEVIATION
counts = torch.bincount(nearest[near], minlength=MODES)
print("samples near each mode:", counts.tolist())
print(f"near one of them: {near.float().mean():.1%}")
print(f"losses at the end: {[round(x, 2) for x in losses[-500:].mean(0).tolist()]}")

# %% [markdown]
# ## Is the penalty differentiated rightly?
#
# `gradgradcheck` compares the second derivative with finite differences of the first, in float64.

# %%
check = network(2, 1).double()
point = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
print("gradgradcheck:", torch.autograd.gradgradcheck(lambda x: check(x).sum(), (point,)))

# %% [markdown]
# ## Check

# %%
assert (counts > 100).all()  # of 500 in each, if it were perfect
assert near.float().mean() > 0.8
