"""Trains a small network on scikit-learn's 1,797 handwritten digits in four ways to compare them.

1. eager: `loss.backward()` on tensors, as in PyTorch;
2. compiled: the same step, `.backward()` and update included, under `jaxgrad.jit`;
3. functional: `jaxgrad.func.grad_and_value` under `jaxgrad.jit`;
4. script: a PyTorch script with a module and an optimizer, unchanged, under `@jaxgrad.jit`.

The same step in plain JAX runs beside them. Run it with `make demo`, or `python
docs/examples/digits.py --float64`.
"""

import argparse
import itertools
import pathlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits  # type: ignore[import-untyped]
from tqdm import tqdm  # type: ignore[import-untyped]

import jaxgrad as torch
import jaxgrad.nn.functional as F

SIZES = (64, 64, 32, 10)
BATCH, EPOCHS, RATE = 64, 60, 0.1
HELD_OUT = 360

wait_for: Callable[[Any], Any] = jax.block_until_ready  # which JAX does not annotate

Numbers = NDArray[Any]
Data = tuple[Numbers, Numbers]  # images and labels
Step = Callable[..., tuple[Any, Any]]  # of weights, images and labels: new weights, and the loss


def digits(dtype: type[np.floating[Any]]) -> tuple[Data, Data]:
    """Images scaled to [0, 1] and their labels: training set, held-out set."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = (images[order] / 16).astype(dtype), labels[order]
    return (images[HELD_OUT:], labels[HELD_OUT:]), (images[:HELD_OUT], labels[:HELD_OUT])


def initial_weights(dtype: type[np.floating[Any]]) -> list[Numbers]:
    """The weights that all ways start from: uniform with variance 1 / inputs, biases zero."""
    generator = np.random.default_rng(1)
    arrays = []
    for inputs, outputs in itertools.pairwise(SIZES):
        bound = (3 / inputs) ** 0.5
        arrays += [generator.uniform(-bound, bound, (outputs, inputs)), np.zeros(outputs)]
    return [array.astype(dtype) for array in arrays]


def batches(count: int) -> Iterator[Numbers]:
    """The indices of each batch of the training set, in the same random order for all ways."""
    generator = np.random.default_rng(2)
    for _ in range(EPOCHS):
        order = generator.permutation(count)
        yield from order[: count - count % BATCH].reshape(-1, BATCH)


def network(weights: Sequence[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        x = F.relu(F.linear(x, weight, bias))
    return F.linear(x, *weights[-2:])


def loss_of(weights: Sequence[torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(network(weights, x), y)


def imperative_step(
    weights: Sequence[torch.Tensor], x: torch.Tensor, y: torch.Tensor
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """One step of gradient descent as PyTorch users write it; returns the new weights."""
    loss = loss_of(weights, x, y)
    loss.backward()
    with torch.no_grad():
        return [(weight - RATE * weight.grad).requires_grad_() for weight in weights], loss.detach()


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(64, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 32),
            torch.nn.ReLU(),
            torch.nn.Linear(32, 10),
        )

    def forward(self, x: torch.Tensor) -> Any:
        return self.layers(x)


def script(start: list[Numbers]) -> tuple[Step, list[torch.Tensor]]:
    """The step of a PyTorch script that starts from these weights, and its parameters.

    The step ignores the weights it is given: the model holds them. It returns them as the other
    ways do.
    """
    model = Network().to(getattr(torch, start[0].dtype.name))
    for parameter, values in zip(model.parameters(), start, strict=True):
        parameter.data.copy_(torch.tensor(values))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    criterion = torch.nn.CrossEntropyLoss()

    @torch.jit
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def with_parameters(
        weights: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        loss = step(x, y)
        return list(model.parameters()), loss

    return with_parameters, list(model.parameters())


def functional_step(
    weights: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor
) -> tuple[list[torch.Tensor], torch.Tensor]:
    gradients, loss = torch.func.grad_and_value(loss_of)(weights, x, y)
    return [
        weight - RATE * gradient for weight, gradient in zip(weights, gradients, strict=True)
    ], loss


def plain_loss(weights: list[jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
    """The same network in plain JAX, for comparison."""
    for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        x = jax.nn.relu(x @ weight.T + bias)
    scores = jax.nn.log_softmax(x @ weights[-2].T + weights[-1])
    return -jnp.take_along_axis(scores, y[:, None], axis=1).mean()


@jax.jit
def plain_step(
    weights: list[jax.Array], x: jax.Array, y: jax.Array
) -> tuple[list[jax.Array], jax.Array]:
    loss, gradients = jax.value_and_grad(plain_loss)(weights, x, y)
    return [
        weight - RATE * gradient for weight, gradient in zip(weights, gradients, strict=True)
    ], loss


def train(
    name: str, step: Step, weights: Any, data: Data, as_data: Callable[..., Any]
) -> tuple[Any, list[float], float, float]:
    """Runs all steps; returns the weights, each step's loss, the seconds of all steps, in which the
    first ones trace and compile, and the microseconds of a later one.
    """
    images, labels = data
    places = list(batches(len(images)))
    inputs = [(as_data(images[place]), as_data(labels[place])) for place in places]
    losses: list[Any] = []
    warm = min(20, len(inputs) // 2)
    begun = start = time.perf_counter()
    for number, (x, y) in enumerate(
        tqdm(inputs, desc=f"{name:<26}", unit="step", leave=True, mininterval=0.2)
    ):
        if number == warm:
            wait_for(weights)
            begun = time.perf_counter()
        weights, loss = step(weights, x, y)
        losses.append(loss)
    wait_for(weights)
    end = time.perf_counter()
    step_time = (end - begun) / (len(inputs) - warm) * 1e6
    return weights, [float(loss) for loss in losses], end - start, step_time


def accuracy(weights: list[Numbers], data: Data) -> float:
    images, labels = data
    for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        images = np.maximum(images @ weight.T + bias, 0)
    return float(np.mean(np.argmax(images @ weights[-2].T + weights[-1], axis=1) == labels))


def save_curves(path: pathlib.Path, curves: dict[str, list[float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), dpi=120)
    for width, (name, losses) in zip((6, 4.5, 3, 1.2), curves.items(), strict=False):
        axes.plot(
            np.convolve(losses, np.ones(22) / 22, "valid"), label=name, linewidth=width, alpha=0.8
        )
    axes.set(
        xlabel="step",
        ylabel="training loss (mean of 22 steps)",
        yscale="log",
        title="1,797 handwritten digits",
    )
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def save_graph(
    path: pathlib.Path, weights: list[Numbers], data: Data, as_data: Callable[..., torch.Tensor]
) -> None:
    images, labels = data
    leaves = [torch.tensor(weight, requires_grad=True) for weight in weights]
    names = {
        f"{'weight' if i % 2 == 0 else 'bias'} {i // 2 + 1}": leaf for i, leaf in enumerate(leaves)
    }
    with torch.autograd.graph.record_lines():
        loss = loss_of(leaves, as_data(images[:BATCH]), as_data(labels[:BATCH]))
    torch.autograd.graph.draw(loss, names).save(path)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--float64", action="store_true", help="compute in double precision")
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        default=pathlib.Path("demo-output"),
        help="folder of the pictures",
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    dtype = np.float64 if options.float64 else np.float32
    tolerance = 1e-9 if options.float64 else 1e-3
    training, held_out = digits(dtype)
    start = initial_weights(dtype)

    def leaves() -> list[torch.Tensor]:
        return [torch.tensor(weight, requires_grad=True) for weight in start]

    scripted, parameters = script(start)
    runs: dict[str, tuple[Step, list[torch.Tensor], Callable[..., Any]]] = {
        "eager backward()": (imperative_step, leaves(), torch.tensor),
        "backward() under jit": (torch.jit(imperative_step), leaves(), torch.tensor),
        "func.grad under jit": (
            torch.jit(functional_step),
            [leaf.detach() for leaf in leaves()],
            torch.tensor,
        ),
        "module, optimizer, jit": (scripted, parameters, torch.tensor),
    }
    results = {
        name: train(name, step, weights, training, as_data)
        for name, (step, weights, as_data) in runs.items()
    }
    with jax.enable_x64(options.float64):
        plain = [jnp.asarray(weight) for weight in start]
        results["plain jax.value_and_grad"] = train(
            "plain jax.value_and_grad", plain_step, plain, training, jnp.asarray
        )
    final = {
        name: [
            np.asarray(torch.Tensor.detach(w) if isinstance(w, torch.Tensor) else w)
            for w in result[0]
        ]
        for name, result in results.items()
    }

    print(f"\n{'':<26} {'loss':>9} {'held out':>9} {'all steps':>11} {'later step':>11}")
    for name, (_, losses, seconds, step_time) in results.items():
        score = accuracy(final[name], held_out)
        print(
            f"{name:<26} {np.mean(losses[-22:]):9.5f} {score:9.1%} {seconds:9.2f} s "
            f"{step_time:8.0f} us"
        )
    ours = [final[name] for name in runs]
    difference = max(
        np.abs(a - b).max() for weights in ours[1:] for a, b in zip(ours[0], weights, strict=True)
    )
    print(
        f"\nlargest difference between the weights of the four: {difference:.1e} (at most "
        f"{tolerance:.0e})"
    )

    options.output.mkdir(parents=True, exist_ok=True)
    save_curves(options.output / "loss.png", {name: results[name][1] for name in runs})
    save_graph(options.output / "graph.svg", start, training, torch.tensor)
    print(f"saved {options.output / 'loss.png'} and {options.output / 'graph.svg'}")
    worst = min(accuracy(final[name], held_out) for name in runs)
    if difference > tolerance or worst <= 0.95:
        sys.exit(
            f"the four ways disagree ({difference:.1e}) or learned too little ({worst:.1%} of "
            f"held-out digits)"
        )


if __name__ == "__main__":
    main()
