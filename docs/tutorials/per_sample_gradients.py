# %% [markdown]
# # Per-sample gradients and differential privacy
#
# `backward()` gives the sum of the gradients of a batch. Some methods need the gradient of each
# sample. This tutorial computes them by `vmap` of `grad`, and uses them to train with differential
# privacy: whoever sees the trained network can hardly tell whether a given person's digit was among
# the training data.
#
# You need to know how a module is trained ([Digits](digits.md) shows it). The rest is explained.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad.func import functional_call, grad, vmap

images, labels = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(images))
images = torch.tensor(images[order] / 16, dtype=torch.float32)
labels = torch.tensor(labels[order])
held_out_images, held_out_labels = images[:360], labels[:360]
images, labels = images[360:], labels[360:]
SAMPLES = len(images)
print(SAMPLES, "to train on,", len(held_out_images), "held out")

# %% [markdown]
# ## The gradient of each sample
#
# `functional_call` runs a module with parameters that it is given. So the loss of one sample is a
# function of the parameters, and `grad` gives its gradient.


# %%
def new_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10))


model = new_model()


def loss_of_one(parameters, image, label):
    return F.cross_entropy(functional_call(model, parameters, (image,)), label)


parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
one = grad(loss_of_one)(parameters, images[0], labels[0])
print({name: tuple(gradient.shape) for name, gradient in one.items()})

# %% [markdown]
# `vmap` makes it a function of a batch. `in_dims` says what is batched: the parameters are the same
# for all samples (`None`), images and labels have one sample in each row (`0`).

# %%
per_sample_gradients = vmap(grad(loss_of_one), in_dims=(None, 0, 0))
many = per_sample_gradients(parameters, images[:64], labels[:64])
print({name: tuple(gradient.shape) for name, gradient in many.items()})

# %% [markdown]
# A loop over the samples gives the same, one backward pass at a time.


# %%
def by_loop(images, labels):
    rows = []
    for image, label in zip(images, labels, strict=True):
        model.zero_grad()
        F.cross_entropy(model(image), label).backward()
        rows.append([parameter.grad.clone() for parameter in model.parameters()])
    return [torch.stack(gradients) for gradients in zip(*rows, strict=True)]


for batched, looped in zip(many.values(), by_loop(images[:64], labels[:64]), strict=True):
    torch.testing.assert_close(batched, looped)
print("the loop agrees")

# %% [markdown]
# With them you know how hard each sample pulls: the length of its gradient. In a network that has
# learned nothing yet, all samples pull about equally.


# %%
def norms_of(gradients):
    squares = sum(gradient.flatten(1).square().sum(1) for gradient in gradients.values())
    return squares.sqrt()


norms_at_start = norms_of(per_sample_gradients(parameters, images, labels)).numpy()
print(f"{norms_at_start.min():.2f} to {norms_at_start.max():.2f}")

# %% [markdown]
# ## A private step
#
# The step of differentially private gradient descent bounds what one sample can do, and hides it:
#
# 1. Each sample takes part with the probability `RATE`, by a draw of its own.
# 2. The gradient of each sample is shortened to the length `CLIP` if it is longer.
# 3. The sum gets Gaussian noise with the standard deviation `NOISE * CLIP`.
#
# The number of samples in a batch is random, and it must stay so: the guarantee rests on it. A
# compiled step wants equal shapes. So `topk` takes `CAPACITY` rows, first those that were drawn,
# with weight 1, then others, with weight 0.

# %%
RATE, CLIP, CAPACITY = 0.1, 1.0, 256


def draw_batch():
    drawn = torch.rand(SAMPLES) < RATE
    weights, rows = drawn.float().topk(CAPACITY)
    return rows, weights, drawn.sum()


_, weights, size = draw_batch()
print(size.item(), "samples were drawn,", int(weights.sum().item()), "of", CAPACITY, "rows count")

# %% [markdown]
# The optimizer is an ordinary one. It finds the noisy sum, divided by the expected size of a batch,
# in `.grad`. The step draws its batch and its noise itself: random numbers are new at each call of
# a compiled function, too.

# %%
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)


@torch.compile
def step(noise):
    rows, weights, size = draw_batch()
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    gradients = per_sample_gradients(parameters, images[rows], labels[rows])
    weights = weights * (CLIP / norms_of(gradients)).clamp(max=1)
    for name, parameter in model.named_parameters():
        total = torch.tensordot(weights, gradients[name], dims=1)
        total = total + noise * CLIP * torch.randn_like(total)
        parameter.grad = total / (RATE * SAMPLES)
    optimizer.step()
    return size


def training(noise, steps):
    """The held-out accuracy after each 20 steps from the start, with this much noise."""
    model.load_state_dict(new_model().state_dict())
    noise, sizes, accuracies = torch.tensor(noise), [], []
    for number in range(1, steps + 1):
        sizes.append(step(noise))
        if number % 20 == 0:
            with torch.no_grad():
                right = model(held_out_images).argmax(1) == held_out_labels
            accuracies.append(right.float().mean().item())
    assert torch.stack(sizes).max().item() <= CAPACITY  # no sample was left out
    return accuracies


STEPS, NOISE = 400, 3.0
exact = training(0.0, STEPS)
trained = {name: parameter.detach() for name, parameter in model.named_parameters()}
norms_at_end = norms_of(per_sample_gradients(trained, images, labels)).numpy()
private = training(NOISE, STEPS)
print(f"held out: {exact[-1]:.1%} without noise, {private[-1]:.1%} with noise")

# %% [markdown]
# ## What it costs in privacy
#
# Training is \((\varepsilon, \delta)\)-private if adding or removing one sample changes the
# probability of every outcome by a factor of at most \(e^\varepsilon\), but for a probability
# \(\delta\). The accountant follows the Rényi divergence of an order \(\alpha\), because it adds up
# over steps. For one step with a whole number \(\alpha\) it has a closed form (I. Mironov, K.
# Talwar, L. Zhang, *Rényi Differential Privacy of the Sampled Gaussian Mechanism*, 2019, section
# 3.3), with \(q\) for `RATE` and \(\sigma\) for `NOISE`:
#
# $$ \frac{1}{\alpha - 1} \log \sum_{k=0}^{\alpha} \binom{\alpha}{k} (1 - q)^{\alpha - k} q^k
# \exp\left(\frac{k^2 - k}{2 \sigma^2}\right) $$


# %%
def divergence_of_a_step(order, rate, noise):
    terms = [
        math.comb(order, k)
        * (1 - rate) ** (order - k)
        * rate**k
        * math.exp((k * k - k) / (2 * noise**2))
        for k in range(order + 1)
    ]
    return math.log(math.fsum(terms)) / (order - 1)


# %% [markdown]
# Two checks. If every sample takes part (\(q = 1\)), what is left is the divergence of two
# Gaussians, \(\alpha / 2 \sigma^2\). And the sum is an integral over the noise \(z\), which can be
# computed by adding up many values.

# %%
assert math.isclose(divergence_of_a_step(8, 1.0, NOISE), 8 / (2 * NOISE**2))

z = torch.linspace(-60, 60, 200_001, dtype=torch.float64)
density = torch.exp(-z * z / (2 * NOISE**2)) / (NOISE * math.sqrt(2 * math.pi))
ratio = 1 - RATE + RATE * torch.exp((2 * z - 1) / (2 * NOISE**2))
integral = torch.trapezoid(density * ratio**8, z).log().item() / 7
assert math.isclose(divergence_of_a_step(8, RATE, NOISE), integral, rel_tol=1e-6)

# %% [markdown]
# The divergences of all steps add up, and \(\varepsilon\) is at most their sum plus
# \(\log(1/\delta) / (\alpha - 1)\) (I. Mironov, *Rényi Differential Privacy*, 2017, propositions 1
# and 3). This holds for every order, so the least bound counts. \(\delta\) should be well below one
# over the number of samples.

# %%
DELTA = 1e-4
divergences = {order: divergence_of_a_step(order, RATE, NOISE) for order in range(2, 65)}


def epsilon(steps):
    return min(
        steps * divergence + math.log(1 / DELTA) / (order - 1)
        for order, divergence in divergences.items()
    )


print(f"epsilon = {epsilon(STEPS):.2f} at delta = {DELTA}")

# %% [markdown]
# The picture on the right shows the lengths of the gradients again. Trained without noise, the
# network has learned most samples, and a few samples pull most.

# %%
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
counts = list(range(20, STEPS + 1, 20))
left.plot(counts, [100 * accuracy for accuracy in exact], label="clipped, without noise")
left.plot(counts, [100 * accuracy for accuracy in private], label="clipped, with noise")
left.set(xlabel="step", ylabel="held-out accuracy (%)", title="Accuracy", ylim=(0, 102))
left.legend(loc="lower right", fontsize=8)
middle.plot(range(1, STEPS + 1), [epsilon(step) for step in range(1, STEPS + 1)])
middle.set(xlabel="step", ylabel="epsilon", title=f"Privacy spent (delta = {DELTA})", ylim=0)
right.hist(norms_at_start, bins=30, range=(0, 6), alpha=0.7, label="at the start")
right.hist(norms_at_end, bins=30, range=(0, 6), alpha=0.7, label="trained without noise")
right.axvline(CLIP, color="black", linestyle=":", label="CLIP")
right.set(xlabel="length of the gradient", ylabel="samples", title="Per-sample gradients")
_ = right.legend(fontsize=8)

# %% [markdown]
# The accountant is honest only if all that depends on the data goes through the private step. If
# you choose settings by their accuracy, this \(\varepsilon\) does not count that. The noise also
# comes from a generator that is made for speed: use a cryptographic one where people depend on it.
#
# ## Checks

# %%
assert exact[-1] > 0.93 and private[-1] > 0.85
assert epsilon(STEPS) < 5
print(f"{exact[-1]:.1%} without privacy, {private[-1]:.1%} at epsilon {epsilon(STEPS):.2f}")
