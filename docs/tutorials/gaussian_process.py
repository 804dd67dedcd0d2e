# %% [markdown]
# # A Gaussian process
#
# A Gaussian process predicts a function from noisy samples, and says how sure it is. This tutorial
# writes its likelihood by a Cholesky factorization, checks the gradient, learns the settings of the
# process by gradients in float64, and compares with scikit-learn.
#
# You need to know what a covariance matrix is. The data is generated.

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import jaxgrad as torch
from jaxgrad.func import vmap

# %% [markdown]
# ## The data
#
# 40 noisy samples of a function, with a gap in the middle. There the process should become unsure.


# %%
def truth(x):
    return np.sin(2 * x) + 0.3 * x


draw = np.random.default_rng(0)
points = np.sort(np.concatenate([draw.uniform(0, 2.5, 20), draw.uniform(4.5, 7, 20)]))
values = truth(points) + 0.2 * draw.standard_normal(40)
x, y = torch.tensor(points), torch.tensor(values)
print(x.shape, x.dtype)

# %% [markdown]
# ## The likelihood
#
# The process has three settings, all positive: the variance of the function, the length over which
# it changes, and the variance of the noise. Their logarithms may be any numbers, so these are
# learned.


# %%
def covariance(first, second, settings):
    """The covariance of the function at two sets of points."""
    variance, length, _ = settings.exp().unbind()
    return variance * torch.exp(-0.5 * ((first[:, None] - second) / length) ** 2)


def factor(settings):
    """The Cholesky factor of the covariance of the samples."""
    noise = settings[2].exp() * torch.eye(len(x), dtype=x.dtype)
    return torch.linalg.cholesky(covariance(x, x, settings) + noise)


# %% [markdown]
# With the factor \(L\), the logarithm of the likelihood needs no inverse and no determinant:
# \(y^T K^{-1} y\) is the square of the solution of \(L w = y\), and the determinant of \(K\) is the
# squared product of the diagonal of \(L\).


# %%
def negative_log_likelihood(settings):
    lower = factor(settings)
    w = torch.linalg.solve_triangular(lower, y[:, None], upper=False)
    log_determinant = 2 * lower.diagonal().log().sum()
    return 0.5 * (w.square().sum() + log_determinant + len(x) * math.log(2 * math.pi))


settings = torch.zeros(3, dtype=torch.float64, requires_grad=True)
print(negative_log_likelihood(settings))

# %% [markdown]
# `gradcheck` compares the gradient with finite differences, and `gradgradcheck` the second
# derivatives. They return True, or raise an error that says what differs.

# %%
print(torch.autograd.gradcheck(negative_log_likelihood, settings))
print(torch.autograd.gradgradcheck(negative_log_likelihood, settings))

# %% [markdown]
# ## Learning the settings
#
# L-BFGS takes long steps along a smooth function of few variables. To find how long, it calls a
# closure that computes the loss and its gradient, once or more in each step. The closure is
# compiled.

# %%
optimizer = torch.optim.LBFGS([settings], max_iter=3, line_search_fn="strong_wolfe")


@torch.compile
def closure():
    optimizer.zero_grad()
    loss = negative_log_likelihood(settings)
    loss.backward()
    return loss


path, losses = [settings.detach().clone()], []
for _ in range(6):
    losses.append(optimizer.step(closure).item())
    path.append(settings.detach().clone())
losses.append(closure().item())
print([round(loss, 4) for loss in losses])
variance, length, noise = settings.exp().tolist()
print(f"variance {variance:.3f}, length {length:.3f}, deviation of the noise {noise**0.5:.3f}")

# %% [markdown]
# The noise that made the data has the deviation 0.2. At the best settings the gradient is zero.

# %%
print(settings.grad)

# %% [markdown]
# `vmap` computes the likelihood of a whole grid of settings at once. Here are lengths and noises,
# with the variance that was learned, and the way that the optimizer went.

# %%
lengths = torch.linspace(-2, 2, 60, dtype=torch.float64)
noises = torch.linspace(-6, 1, 60, dtype=torch.float64)
grid_length, grid_noise = torch.meshgrid(lengths, noises, indexing="ij")
grid_variance = torch.full_like(grid_length, math.log(variance))
grid = torch.stack([grid_variance, grid_length, grid_noise], 2).view(-1, 3)
landscape = torch.compile(vmap(negative_log_likelihood))(grid).view(60, 60)

figure, axis = plt.subplots(figsize=(5.4, 4), layout="constrained")
height = (landscape - landscape.min()).numpy()
drawn = axis.contourf(lengths, noises, np.log10(height.T + 0.1), levels=20, cmap="viridis_r")
axis.plot(*torch.stack(path)[:, 1:].T.numpy(), "o-", color="white", markeredgecolor="black")
axis.set(xlabel="log length", ylabel="log variance of the noise", title="Likelihood")
_ = figure.colorbar(drawn, label="log10(0.1 + nats above the least)")

# %% [markdown]
# ## Predictions
#
# Samples and predictions have one joint Gaussian distribution. Given the samples, its mean is the
# prediction and its deviation says how sure it is.


# %%
@torch.no_grad()
def predict(new):
    lower = factor(settings)
    across = torch.linalg.solve_triangular(lower, covariance(x, new, settings), upper=False)
    w = torch.linalg.solve_triangular(lower, y[:, None], upper=False)
    variance = settings[0].exp() - across.square().sum(0)
    return (across.mT @ w)[:, 0], variance.sqrt()


new = torch.linspace(-1, 8, 200, dtype=torch.float64)
mean, deviation = predict(new)

figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
for times, alpha in ((2, 0.2), (1, 0.3)):
    low, high = mean - times * deviation, mean + times * deviation
    label = f"within {times} deviation{'s' if times > 1 else ''}"
    axis.fill_between(new.numpy(), low.numpy(), high.numpy(), alpha=alpha, color="C0", label=label)
axis.plot(new.numpy(), mean.numpy(), label="prediction")
axis.plot(new.numpy(), truth(new.numpy()), "k:", label="the function")
axis.plot(points, values, "k.", label="samples")
axis.set(xlabel="x", ylabel="y", title="The function, given 40 samples")
_ = axis.legend(loc="upper left", fontsize=8, ncols=2)

# %% [markdown]
# ## Checks
#
# scikit-learn computes the same likelihood with a gradient that was derived by hand. Its settings
# are the same logarithms in the same order.

# %%
kernel = ConstantKernel(variance) * RBF(length) + WhiteKernel(noise)
theirs = GaussianProcessRegressor(kernel, alpha=0, optimizer=None).fit(points[:, None], values)

for where in (path[0], path[1], path[-1]):
    here = where.clone().requires_grad_()
    loss = negative_log_likelihood(here)
    (gradient,) = torch.autograd.grad(loss, here)
    likelihood, slope = theirs.log_marginal_likelihood(where.numpy(), eval_gradient=True)
    np.testing.assert_allclose(-loss.item(), likelihood, rtol=1e-10)
    np.testing.assert_allclose(-gradient.numpy(), slope, rtol=1e-8, atol=1e-8)

# %% [markdown]
# Its predictions are the same, too. Its deviation includes the noise of a sample. Started where
# this page started, its own optimizer finds no better settings.

# %%
their_mean, their_deviation = theirs.predict(new.numpy()[:, None], return_std=True)
np.testing.assert_allclose(mean.numpy(), their_mean, atol=1e-10)
np.testing.assert_allclose((deviation**2 + noise).sqrt().numpy(), their_deviation, atol=1e-10)

start = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(1.0)
best = GaussianProcessRegressor(start, alpha=0).fit(points[:, None], values)
assert -losses[-1] > best.log_marginal_likelihood_value_ - 1e-6
assert settings.grad.abs().max().item() < 1e-4
assert abs(noise**0.5 - 0.2) < 0.05
print(f"log-likelihood {-losses[-1]:.6f}, scikit-learn {best.log_marginal_likelihood_value_:.6f}")
