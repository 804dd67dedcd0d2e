"""Learns a diffusion coefficient and an initial temperature from one later measurement, through a
spectral solver: a Fourier transform, a decay of each mode, and the transform back.

python docs/examples/spectral.py --points 128

The training step runs eagerly and compiled; both must reach the same numbers.
"""

import argparse
import sys

import numpy as np

import jaxgrad as torch

TIMES = (0.1, 0.3, 1.0)
COEFFICIENT = 0.5


def heat(initial: torch.Tensor, coefficient: torch.Tensor | float, time: float) -> torch.Tensor:
    """The temperature of a ring of length 2 pi after `time`; the equation is u_t = c u_xx."""
    modes = torch.arange(initial.shape[-1] // 2 + 1, dtype=initial.dtype)
    decay = torch.exp(-coefficient * modes**2 * time)
    return torch.fft.irfft(torch.fft.rfft(initial) * decay, n=initial.shape[-1])


def measurements(points: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The temperature at TIMES, of shape (3, points), and that at the beginning."""
    angles = 2 * np.pi * np.arange(points) / points
    initial = torch.from_numpy(np.exp(np.cos(angles)) + 0.5 * np.sin(3 * angles))
    return torch.stack([heat(initial, COEFFICIENT, time) for time in TIMES]), initial


def train(
    measured: torch.Tensor, steps: int, compiled: bool
) -> tuple[torch.Tensor, torch.Tensor, list[float]]:
    """The coefficient, the initial temperature and the loss of each step."""
    log_coefficient = torch.zeros((), dtype=measured.dtype, requires_grad=True)
    initial = torch.zeros(measured.shape[-1], dtype=measured.dtype, requires_grad=True)
    optimizer = torch.optim.Adam([log_coefficient, initial], lr=0.05)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        predicted = torch.stack([heat(initial, log_coefficient.exp(), time) for time in TIMES])
        loss = ((predicted - measured) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = torch.jit(step) if compiled else step
    losses = [run().item() for _ in range(steps)]
    return log_coefficient.detach().exp(), initial.detach(), losses


def main() -> None:
    parser = argparse.ArgumentParser(description="a spectral solver")
    parser.add_argument("--points", type=int, default=128)
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()

    measured, truth = measurements(options.points)
    coefficient, initial, losses = train(measured, options.steps, compiled=False)
    other, other_initial, other_losses = train(measured, options.steps, compiled=True)
    print("loss", " ".join(f"{loss:.2e}" for loss in losses[:: max(1, options.steps // 6)]))
    error = (initial - truth).abs().max().item()
    print(f"coefficient {coefficient.item():.4f} for {COEFFICIENT}, largest error {error:.4f}")
    if not np.allclose(losses, other_losses, rtol=1e-6):
        sys.exit("the losses of the compiled step differ")
    if not torch.allclose(initial, other_initial) or not torch.allclose(coefficient, other):
        sys.exit("the compiled step found other numbers")


if __name__ == "__main__":
    main()
