"""Trains a mixture of experts whose router sends each token to its best two: top-k, a sort of the
tokens by expert, and a scatter of the experts' results back.

python docs/examples/router.py --tokens 256

The training step runs eagerly and compiled; both must reach the same weights.
"""

import argparse
import sys

import numpy as np

import jaxgrad as torch

FEATURES, EXPERTS, CHOSEN = 8, 4, 2


def data(tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens, and targets that are another linear function of them in each quadrant."""
    draw = np.random.default_rng(0)
    inputs = draw.standard_normal((tokens, FEATURES))
    maps = draw.standard_normal((EXPERTS, FEATURES, FEATURES)) / FEATURES**0.5
    quadrant = (inputs[:, 0] > 0) * 2 + (inputs[:, 1] > 0)
    targets = np.einsum("ti,tij->tj", inputs, maps[quadrant])
    return torch.from_numpy(inputs), torch.from_numpy(targets)


def weights() -> list[torch.Tensor]:
    """The router's matrix and the experts' matrices."""
    draw = np.random.default_rng(1)
    shapes = ((FEATURES, EXPERTS), (EXPERTS, FEATURES, FEATURES))
    arrays = [draw.standard_normal(shape) / FEATURES**0.5 for shape in shapes]
    return [torch.from_numpy(array).requires_grad_() for array in arrays]


def mixture(
    inputs: torch.Tensor, router: torch.Tensor, experts: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The results of the chosen experts, weighted, and how evenly the router shares the tokens.

    inputs: (tokens, FEATURES). Returns tensors of the same shape and of shape (EXPERTS,).
    """
    best, chosen = torch.topk(inputs @ router, CHOSEN)
    gates = torch.softmax(best, dim=1)
    # tokens in the order of their experts, so that each expert has its tokens side by side
    expert, order = torch.sort(chosen.flatten(), stable=True)
    token = order // CHOSEN
    outputs = torch.einsum("ti,tij->tj", inputs[token], experts[expert])
    weighted = outputs * gates.flatten()[order].unsqueeze(1)
    results = torch.zeros_like(inputs).index_add(0, token, weighted)
    shares = torch.zeros(len(inputs), EXPERTS, dtype=inputs.dtype).scatter(1, chosen, gates)
    return results, shares.mean(0)


def train(
    inputs: torch.Tensor, targets: torch.Tensor, steps: int, compiled: bool
) -> tuple[list[torch.Tensor], list[float]]:
    """The trained weights and the loss of each step."""
    parameters = weights()
    optimizer = torch.optim.Adam(parameters, lr=0.02)

    def step(inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        results, shares = mixture(inputs, *parameters)
        loss = ((results - targets) ** 2).mean() + 0.01 * (shares**2).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = torch.jit(step) if compiled else step
    losses = [run(inputs, targets).item() for _ in range(steps)]
    return [parameter.detach() for parameter in parameters], losses


def main() -> None:
    parser = argparse.ArgumentParser(description="a mixture of experts")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()

    inputs, targets = data(options.tokens)
    eager, losses = train(inputs, targets, options.steps, compiled=False)
    compiled, other_losses = train(inputs, targets, options.steps, compiled=True)
    print("loss", " ".join(f"{loss:.6f}" for loss in losses[:: max(1, options.steps // 6)]))
    _, shares = mixture(inputs, *eager)
    print("shares of the experts", " ".join(f"{share:.4f}" for share in shares.tolist()))
    if not np.allclose(losses, other_losses, rtol=1e-6):
        sys.exit("the losses of the compiled step differ")
    if not all(torch.allclose(a, b) for a, b in zip(eager, compiled, strict=True)):
        sys.exit("the compiled step found other weights")


if __name__ == "__main__":
    main()
