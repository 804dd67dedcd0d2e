"""Trains a graph convolutional network to find communities from the labels of a few nodes: each
layer is a product with the sparse, normalized adjacency matrix.

python docs/examples/graph_network.py --nodes 200

The training step runs eagerly and compiled; both must reach the same weights.
"""

import argparse
import sys

import numpy as np

import jaxgrad as torch
import jaxgrad.nn.functional as F

COMMUNITIES, FEATURES, HIDDEN, LABELLED = 3, 16, 16, 8


def graph(nodes: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The normalized adjacency matrix, sparse, of a random graph with communities, the features of
    its nodes and their communities.
    """
    draw = np.random.default_rng(0)
    labels = np.arange(nodes) % COMMUNITIES
    linked = np.where(labels[:, None] == labels, 12 / nodes, 2 / nodes)
    upper = np.triu(draw.uniform(size=(nodes, nodes)) < linked, 1)
    adjacency = upper | upper.T | np.eye(nodes, dtype=bool)
    degree = adjacency.sum(1)
    rows, columns = np.nonzero(adjacency)
    values = (degree[rows] * degree[columns]) ** -0.5
    matrix = torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([rows, columns])), torch.from_numpy(values), (nodes, nodes)
    ).coalesce()
    features = torch.from_numpy(draw.standard_normal((nodes, FEATURES)))
    return matrix, features, torch.from_numpy(labels)


def weights() -> list[torch.Tensor]:
    """The matrices of the two layers."""
    draw = np.random.default_rng(1)
    shapes = ((FEATURES, HIDDEN), (HIDDEN, COMMUNITIES))
    arrays = [draw.standard_normal(shape) / shape[0] ** 0.5 for shape in shapes]
    return [torch.from_numpy(array).requires_grad_() for array in arrays]


def network(
    matrix: torch.Tensor, features: torch.Tensor, first: torch.Tensor, second: torch.Tensor
) -> torch.Tensor:
    """The scores of the communities, of shape (nodes, COMMUNITIES)."""
    hidden = torch.relu(torch.sparse.mm(matrix, features @ first))
    return torch.sparse.mm(matrix, hidden @ second)


def train(
    matrix: torch.Tensor, features: torch.Tensor, labels: torch.Tensor, steps: int, compiled: bool
) -> tuple[list[torch.Tensor], list[float]]:
    """The trained weights and the loss of each step."""
    parameters = weights()
    optimizer = torch.optim.Adam(parameters, lr=0.02, weight_decay=1e-3)
    known = COMMUNITIES * LABELLED

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        scores = network(matrix, features, *parameters)
        loss = F.cross_entropy(scores[:known], labels[:known])
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = torch.jit(step) if compiled else step
    losses = [run().item() for _ in range(steps)]
    return [parameter.detach() for parameter in parameters], losses


def main() -> None:
    parser = argparse.ArgumentParser(description="a graph convolutional network")
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()

    matrix, features, labels = graph(options.nodes)
    eager, losses = train(matrix, features, labels, options.steps, compiled=False)
    compiled, other_losses = train(matrix, features, labels, options.steps, compiled=True)
    print("loss", " ".join(f"{loss:.6f}" for loss in losses[:: max(1, options.steps // 6)]))
    predicted = network(matrix, features, *eager).argmax(1)
    right = (predicted == labels).double().mean().item()
    print(
        f"{matrix.values().numel()} entries of the matrix, "
        f"{right:.3f} of the nodes in their community"
    )
    if not np.allclose(losses, other_losses, rtol=1e-6):
        sys.exit("the losses of the compiled step differ")
    if not all(torch.allclose(a, b) for a, b in zip(eager, compiled, strict=True)):
        sys.exit("the compiled step found other weights")


if __name__ == "__main__":
    main()
