# %% [markdown]
# # Twelve examples
#
# Each picture was made by the code above it, with `import jaxgrad as torch` and nothing else that
# PyTorch users would not write. Most of them need derivatives: of a network, of a simulation, of a
# fractal.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn, optim
from jaxgrad.func import functional_call, grad, hessian, jvp, vmap

torch.manual_seed(0)
plt.rcParams.update(
    {"figure.figsize": (5, 3.2), "axes.spines.top": False, "axes.spines.right": False}
)


# %% [markdown]
# ## 1. A curve through noisy points
#
# The whole step, with `backward()` and the optimizer, is one compiled program.

# %%
x = torch.linspace(-3, 3, 60)[:, None]
y = x.sin() + 0.15 * torch.randn(60, 1)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = optim.Adam(model.parameters(), lr=0.01)


@torch.jit
def step():
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


losses = [step().item() for _ in range(400)]
with torch.no_grad():
    fitted = model(x)
plt.plot(x, y, "o", ms=3, color="0.6")
plt.plot(x, fitted, color="teal")
plt.title(f"loss {losses[0]:.2f} before, {losses[-1]:.3f} after 400 steps")
plt.show()

# %% [markdown]
# ## 2. Two spirals
#
# The shade is the probability that the network gives to a point.

# %%
turns = 3 * math.pi * torch.rand(300).sqrt()
points = torch.stack([turns * turns.cos(), turns * turns.sin()], 1) / 9
points, labels = torch.cat([points, -points]), torch.cat([torch.zeros(300), torch.ones(300)])
points = points + 0.02 * torch.randn_like(points)
model = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
optimizer = optim.AdamW(model.parameters(), lr=0.01)


@torch.jit
def step():
    optimizer.zero_grad()
    F.binary_cross_entropy_with_logits(model(points)[:, 0], labels).backward()
    optimizer.step()


for _ in range(500):
    step()
axis = torch.linspace(-1.2, 1.2, 120)
plane = torch.cartesian_prod(axis, axis)
with torch.no_grad():
    shade = model(plane).sigmoid().reshape(120, 120).T
plt.figure(figsize=(3.6, 3.6))
plt.imshow(shade, extent=(-1.2, 1.2, -1.2, 1.2), origin="lower", cmap="BrBG", alpha=0.7)
plt.scatter(points[:, 0], points[:, 1], c=labels, s=4, cmap="BrBG")
plt.axis("off")
plt.show()

# %% [markdown]
# ## 3. Four optimizers in a valley
#
# Rosenbrock's function, from the same start.


# %%
def valley(p):
    return (1 - p[0]) ** 2 + 20 * (p[1] - p[0] ** 2) ** 2


def path(kind, steps=150, **options):
    p = torch.tensor([-1.2, 1.0], requires_grad=True)
    optimizer, places = kind([p], **options), [p.tolist()]
    for _ in range(steps):
        optimizer.zero_grad()
        valley(p).backward()
        optimizer.step()
        places.append(p.tolist())
    return np.array(places).T


grid = np.meshgrid(np.linspace(-1.6, 1.6, 200), np.linspace(-0.6, 1.8, 200))
plt.contour(*grid, np.log1p(valley(grid)), 14, colors="0.8", linewidths=0.7)
plt.plot(*path(optim.SGD, lr=0.008), label="SGD")
plt.plot(*path(optim.SGD, lr=0.004, momentum=0.9), label="SGD, momentum")
plt.plot(*path(optim.Adam, lr=0.1), label="Adam")
plt.plot(*path(optim.RMSprop, lr=0.03), label="RMSprop")
plt.plot(1, 1, "k*")
plt.legend(fontsize=7, frameon=False)
plt.show()

# %% [markdown]
# ## 4. A field of slopes
#
# `vmap(grad(f))` gives the gradient at every point of the plane at once. Arrows point downhill;
# bright ones are high up.


# %%
def bowl(p):
    return (p[0] * 2).sin() * (p[1] * 2).cos() + 0.2 * (p * p).sum()


axis = torch.linspace(-2, 2, 21)
plane = torch.cartesian_prod(axis, axis)
slopes = vmap(grad(bowl))(plane)
plt.figure(figsize=(3.6, 3.6))
plt.quiver(
    plane[:, 0], plane[:, 1], -slopes[:, 0], -slopes[:, 1], vmap(bowl)(plane), cmap="viridis"
)
plt.axis("off")
plt.show()

# %% [markdown]
# ## 5. Where Newton's method ends
#
# Second derivatives by `hessian`, for 14,400 starts in one call. Starts of one shade reach the
# same point.


# %%
def hills(p):
    return (p[0] ** 2 - 1) ** 2 + (p[1] ** 2 - 1) ** 2 + 0.5 * p[0] * p[1]


def newton(p):
    return p - torch.linalg.solve(hessian(hills)(p), grad(hills)(p))


@torch.jit
def ends(p):
    for _ in range(12):
        p = vmap(newton)(p)
    return p


axis = torch.linspace(-2, 2, 120)
place = ends(torch.cartesian_prod(axis, axis))
angle = torch.atan2(place[:, 1], place[:, 0]).reshape(120, 120).T
plt.figure(figsize=(3.6, 3.6))
plt.imshow(angle, cmap="twilight", origin="lower")
plt.axis("off")
plt.show()

# %% [markdown]
# ## 6. A fractal by its derivative
#
# Forward mode carries dz/dc beside z, and their ratio tells how far a point is from the set.


# %%
def iterate(c):
    z = torch.zeros_like(c)
    for _ in range(60):
        z = torch.where(z.abs() < 1e3, z * z + c, z)
    return z


real, imag = torch.linspace(-2.1, 0.7, 280), torch.linspace(-1.2, 1.2, 240)
c = torch.complex(*torch.meshgrid(real, imag, indexing="xy"))
z, dz = torch.jit(lambda c: jvp(iterate, (c,), (torch.ones_like(c),)))(c)
distance = z.abs() * z.abs().clamp(min=1.01).log() / dz.abs().clamp(min=1e-9)
shade = torch.where(z.abs() > 2, distance, 0.0).clamp(1e-6, 1).log()
plt.imshow(shade, cmap="magma", origin="lower")
plt.axis("off")
plt.show()

# %% [markdown]
# ## 7. A throw that hits
#
# The gradient goes through 100 steps of a simulation with drag, back to the first velocity.


# %%
def flight(velocity):
    position, places = torch.zeros(2), []
    for _ in range(100):
        drag = -0.1 * velocity.norm() * velocity
        velocity = velocity + 0.02 * (drag + torch.tensor([0.0, -9.81]))
        position = position + 0.02 * velocity
        places.append(position)
    return torch.stack(places)


target = torch.tensor([8.0, 1.0])
velocity = torch.tensor([6.0, 6.0], requires_grad=True)
optimizer = optim.Adam([velocity], lr=0.15)


@torch.jit
def throw():
    optimizer.zero_grad()
    places = flight(velocity)
    ((places - target) ** 2).sum(1).min().backward()
    optimizer.step()
    return places.detach()


for number in range(41):
    places = throw()
    if number % 8 == 0:
        plt.plot(places[:, 0], places[:, 1], color=plt.cm.viridis(number / 40), lw=1)
plt.plot(*target, "r*", ms=12)
plt.ylim(-2, 5)
plt.title("every 8th throw")
plt.show()

# %% [markdown]
# ## 8. A Gaussian process
#
# `backward()` through a Cholesky factorization finds the length and the noise.

# %%
x = torch.tensor([-2.5, -1.9, -1.0, -0.4, 0.3, 1.2, 2.4], dtype=torch.float64)
y = (1.5 * x).sin() + 0.1 * torch.randn(7, dtype=torch.float64)
logs = torch.tensor([0.0, 0.0, -2.0], dtype=torch.float64, requires_grad=True)
new = torch.linspace(-3.5, 3.5, 200, dtype=torch.float64)


def kernel(a, b):
    length, height, _ = logs.exp()
    return height * (-0.5 * ((a[:, None] - b) / length) ** 2).exp()


def factor():
    return torch.linalg.cholesky(kernel(x, x) + (logs[2].exp() + 1e-6) * torch.eye(7).double())


optimizer = optim.Adam([logs], lr=0.05)
for _ in range(150):
    optimizer.zero_grad()
    L = factor()
    fit = torch.cholesky_solve(y[:, None], L)[:, 0]
    (0.5 * y @ fit + L.diagonal().log().sum()).backward()
    optimizer.step()
with torch.no_grad():
    L, across = factor(), kernel(new, x)
    mean = across @ torch.cholesky_solve(y[:, None], L)[:, 0]
    spread = torch.linalg.solve_triangular(L, across.T, upper=False)
    deviation = (logs[1].exp() - (spread**2).sum(0)).clamp(min=0).sqrt()
plt.fill_between(new, mean - 2 * deviation, mean + 2 * deviation, color="teal", alpha=0.2, lw=0)
plt.plot(new, mean, color="teal")
plt.plot(x, y, "ko", ms=4)
plt.show()

# %% [markdown]
# ## 9. The gradient of every sample
#
# `vmap(grad(loss))` gives each sample's own gradient. The wrong labels have the largest ones.

# %%
inputs = torch.randn(400, 5)
labels = (inputs.sum(1) > 0).long()
wrong = torch.randperm(400)[:40]
noisy = labels.clone()
noisy[wrong] = 1 - noisy[wrong]
model = nn.Linear(5, 2)
optimizer = optim.SGD(model.parameters(), lr=0.5)
for _ in range(60):
    optimizer.zero_grad()
    F.cross_entropy(model(inputs), noisy).backward()
    optimizer.step()
weights = {name: p.detach() for name, p in model.named_parameters()}


def loss(weights, sample, label):
    return F.cross_entropy(functional_call(model, weights, (sample[None],)), label[None])


gradients = vmap(grad(loss), in_dims=(None, 0, 0))(weights, inputs, noisy)
norms = gradients["weight"].flatten(1).norm(dim=1)
is_wrong = torch.zeros(400, dtype=torch.bool)
is_wrong[wrong] = True
bins = np.linspace(0, norms.max().item(), 30)
plt.hist(norms[~is_wrong].numpy(), bins, alpha=0.7, label="right labels", color="teal")
plt.hist(norms[is_wrong].numpy(), bins, alpha=0.7, label="wrong labels", color="orangered")
plt.xlabel("norm of the gradient")
plt.legend(frameon=False)
plt.show()

# %% [markdown]
# ## 10. Heat, backwards
#
# Which heat at the beginning gives the letter that is measured later? Gradients through 40 steps
# of diffusion tell.


# %%
def spread_out(heat):
    for _ in range(40):
        padded = F.pad(heat[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
        around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        heat = heat + 0.2 * (around - 4 * heat)
    return heat


truth = torch.zeros(32, 32)
truth[6:26, 14:18] = 1
truth[6:10, 8:24] = 1
measured = spread_out(truth)
guess = torch.zeros(32, 32, requires_grad=True)
optimizer = optim.Adam([guess], lr=0.1)


@torch.jit
def step():
    optimizer.zero_grad()
    F.mse_loss(spread_out(guess.sigmoid()), measured).backward()
    optimizer.step()


for _ in range(800):
    step()
_, axes = plt.subplots(1, 3, figsize=(6, 2.2))
pictures = {"truth": truth, "measured": measured, "recovered": guess.detach().sigmoid()}
for ax, (title, picture) in zip(axes, pictures.items(), strict=True):
    ax.imshow(picture, cmap="inferno", vmin=0, vmax=1)
    ax.set_title(title, fontsize=9)
    ax.axis("off")
plt.show()

# %% [markdown]
# ## 11. What attention looks at
#
# One head learns to copy the token that stands three places before.

# %%
LENGTH, VOCABULARY = 16, 12


class Copier(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, 32), nn.Embedding(LENGTH, 32)
        self.attention = nn.MultiheadAttention(32, 1, batch_first=True)
        self.head = nn.Linear(32, VOCABULARY)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(LENGTH))
        mixed, weights = self.attention(x, x, x)
        return self.head(mixed), weights


model = Copier()
optimizer = optim.Adam(model.parameters(), lr=0.01)


@torch.jit
def step(tokens):
    optimizer.zero_grad()
    logits, weights = model(tokens)
    loss = F.cross_entropy(logits[:, 3:].flatten(0, 1), tokens[:, :-3].flatten())
    loss.backward()
    optimizer.step()
    return weights.detach()[0]


for _ in range(300):
    weights = step(torch.randint(0, VOCABULARY, (32, LENGTH)))
plt.figure(figsize=(3.4, 3.4))
plt.imshow(weights, cmap="Blues")
plt.xlabel("looks at")
plt.ylabel("place")
plt.show()

# %% [markdown]
# ## 12. A flow from noise to two moons
#
# A network learns the velocity that carries points of a normal distribution to the data; the
# picture shows them on their way.

# %%
angle = math.pi * torch.rand(512)
upper = torch.stack([angle.cos(), angle.sin()], 1)
lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], 1)
data = torch.cat([upper, lower]) - torch.tensor([0.5, 0.25]) + 0.05 * torch.randn(1024, 2)
field = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))
optimizer = optim.Adam(field.parameters(), lr=3e-3)


@torch.jit
def step(sample):
    noise, time = torch.randn_like(sample), torch.rand(len(sample), 1)
    between = (1 - time) * noise + time * sample
    optimizer.zero_grad()
    F.mse_loss(field(torch.cat([between, time], 1)), sample - noise).backward()
    optimizer.step()


for _ in range(1500):
    step(data[torch.randint(0, 1024, (256,))])
points = torch.randn(800, 2)
_, axes = plt.subplots(1, 4, figsize=(7, 2))
with torch.no_grad():
    for number in range(61):
        if number % 20 == 0:
            ax = axes[number // 20]
            ax.scatter(points[:, 0], points[:, 1], s=1, color="teal")
            ax.set(xlim=(-2.5, 2.5), ylim=(-2, 2), title=f"time {number / 60:.2f}")
            ax.axis("off")
        time = torch.full((800, 1), number / 60)
        points = points + field(torch.cat([points, time], 1)) / 60
plt.show()
