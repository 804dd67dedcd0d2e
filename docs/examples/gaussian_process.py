"""Fits a Gaussian process to noisy samples of a function: hyperparameters by LBFGS on the marginal
likelihood, through a Cholesky factorization and its solves.

python docs/examples/gaussian_process.py --points 60

The closure of LBFGS runs eagerly and compiled; both must find the same hyperparameters.
"""

import argparse
import math
import sys

import numpy as np

import jaxgrad as torch


def samples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points in [0, 6] and noisy values of a sine there, as float64 tensors of shape (count, 1)."""
    draw = np.random.default_rng(0)
    points = np.sort(draw.uniform(0, 6, (count, 1)), axis=0)
    values = np.sin(2 * points) + 0.1 * draw.standard_normal((count, 1))
    return torch.from_numpy(points), torch.from_numpy(values)


def covariance(
    first: torch.Tensor, second: torch.Tensor, log_scale: torch.Tensor, log_length: torch.Tensor
) -> torch.Tensor:
    """The squared-exponential kernel between two sets of points."""
    distances = torch.cdist(first, second) / log_length.exp()
    return (2 * log_scale).exp() * torch.exp(-0.5 * distances**2)


def factor(
    points: torch.Tensor,
    log_scale: torch.Tensor,
    log_length: torch.Tensor,
    log_noise: torch.Tensor,
) -> torch.Tensor:
    """The Cholesky factor of the covariance of the noisy values."""
    noise = (2 * log_noise).exp() * torch.eye(len(points), dtype=points.dtype)
    return torch.linalg.cholesky(covariance(points, points, log_scale, log_length) + noise)


def negative_log_likelihood(
    points: torch.Tensor, values: torch.Tensor, *hyperparameters: torch.Tensor
) -> torch.Tensor:
    """-log p(values), whose log-determinant is twice that of the factor."""
    lower = factor(points, *hyperparameters)
    weights = torch.cholesky_solve(values, lower)
    logdet = 2 * lower.diagonal().log().sum()
    return 0.5 * ((values * weights).sum() + logdet + len(points) * math.log(2 * math.pi))


def fit(
    points: torch.Tensor, values: torch.Tensor, steps: int, compiled: bool
) -> tuple[list[torch.Tensor], list[float]]:
    """The hyperparameters, log scale, log length and log noise, and the loss after each step."""
    hyperparameters = [
        torch.tensor(start, dtype=points.dtype, requires_grad=True) for start in (0.0, 0.0, -1.0)
    ]
    optimizer = torch.optim.LBFGS(hyperparameters, lr=0.5, max_iter=5)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = negative_log_likelihood(points, values, *hyperparameters)
        loss.backward()
        return loss

    step = torch.jit(closure) if compiled else closure
    losses = [optimizer.step(step).item() for _ in range(steps)]
    return [parameter.detach() for parameter in hyperparameters], losses


def predict(
    points: torch.Tensor,
    values: torch.Tensor,
    new_points: torch.Tensor,
    hyperparameters: list[torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean and the variance of the function at new points."""
    lower = factor(points, *hyperparameters)
    across = covariance(points, new_points, *hyperparameters[:2])
    half = torch.linalg.solve_triangular(lower, across, upper=False)
    mean = across.mT @ torch.cholesky_solve(values, lower)
    variance = (2 * hyperparameters[0]).exp() - (half * half).sum(0)
    return mean[:, 0], variance


def main() -> None:
    parser = argparse.ArgumentParser(description="a Gaussian process")
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()

    points, values = samples(options.points)
    eager, losses = fit(points, values, options.steps, compiled=False)
    compiled, compiled_losses = fit(points, values, options.steps, compiled=True)
    print("loss", " ".join(f"{loss:.3f}" for loss in losses))
    names = ("scale", "length", "noise")
    print(*(f"{n} {h.exp().item():.6f}" for n, h in zip(names, eager, strict=True)))
    new_points = torch.linspace(0.5, 5.5, 11, dtype=torch.float64).unsqueeze(1)
    mean, variance = predict(points, values, new_points, eager)
    error = (mean - torch.sin(2 * new_points[:, 0])).abs().max().item()
    print(f"largest error {error:.6f}, largest deviation {variance.sqrt().max().item():.6f}")
    if not np.allclose(losses, compiled_losses, rtol=1e-7):
        sys.exit(f"the compiled closure differs: {losses} and {compiled_losses}")
    if not torch.allclose(torch.stack(eager), torch.stack(compiled), rtol=1e-6):
        sys.exit(f"the hyperparameters differ: {eager} and {compiled}")


if __name__ == "__main__":
    main()
