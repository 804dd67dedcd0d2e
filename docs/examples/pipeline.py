"""Trains a network whose four equal stages lie on four devices: pipeline parallelism. Microbatches
pass from stage to stage, so that all devices compute at the same time.

python docs/examples/pipeline.py --microbatches 8

The compiled training step runs as a pipeline, and stage after stage on one device; both must have
the same losses and reach the same weights.
"""

import argparse
import os
import sys

# one processor stands for four devices, unless the variable is set
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

STAGES, FEATURES, HIDDEN = 4, 16, 32


def pipeline(stage, mesh: Mesh, microbatches: int, axis: str = "pp", rows: str | None = None):
    """An operator on stacked parameters and a batch: equal stages, one after the other.

    stage: a function of one stage's parameters and its input, tensors, that returns a tensor like
    the input. The parameters of all stages are stacked along a first dimension, which is sharded
    over the axis of the mesh.
    microbatches: into how many parts of the first dimension the batch is cut.
    rows: another axis of the mesh, over which the batch is sharded: each part has its own pipeline.
    """
    stages = mesh.shape[axis]
    onward = [(i, i + 1) for i in range(stages - 1)]

    def wait(_, microbatch):
        return jax.numpy.zeros_like(microbatch)

    # The backward pass computes each stage again from its input, which alone is kept. Around the
    # branches, since what they keep is kept for each tick, and the parameters would be too.
    @jax.checkpoint
    def run(is_there, parameters, microbatch):
        return jax.lax.cond(is_there, torch.to_jax(stage), wait, parameters, microbatch)

    def piped(stacked, batch):
        """What one device does."""
        here = jax.lax.axis_index(axis)
        parameters = jax.tree.map(lambda parameter: parameter[0], stacked)
        parts = batch.reshape(microbatches, -1, *batch.shape[1:])
        # Gradients are summed over devices where the values become those of each device: here,
        # once, and not in each tick.
        parts = jax.lax.pcast(parts, axis, to="varying")
        if rows is not None:
            parameters = jax.lax.pcast(parameters, rows, to="varying")

        def tick(arrived, time):
            number = time - here  # of the microbatch whose turn it is
            microbatch = jax.numpy.where(here == 0, parts[number % microbatches], arrived)
            is_there = (number >= 0) & (number < microbatches)  # else this is the bubble
            result = run(is_there, parameters, microbatch)
            return jax.lax.ppermute(result, axis, onward), result

        ticks = jax.numpy.arange(microbatches + stages - 1)
        _, outputs = jax.lax.scan(tick, jax.numpy.zeros_like(parts[0]), ticks)
        results = outputs[stages - 1 :].reshape(batch.shape)  # right in the last stage
        return jax.lax.psum(jax.numpy.where(here == stages - 1, results, 0), axis)

    in_specs, out_specs = (P(axis), P(rows)), P(rows)
    return torch.from_jax(jax.shard_map(piped, mesh=mesh, in_specs=in_specs, out_specs=out_specs))


class Stage(nn.Module):
    """A residual block."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(FEATURES)
        self.inward, self.outward = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, FEATURES)

    def forward(self, x):
        return x + self.outward(F.gelu(self.inward(self.norm(x))))


BLOCK = Stage().to("meta")  # computes with the parameters of each stage


def stage(parameters, x):
    return torch.func.functional_call(BLOCK, parameters, (x,))


def sequential(stacked, x):
    """All stages on one device."""
    for number in range(STAGES):
        x = stage({name: parameter[number] for name, parameter in stacked.items()}, x)
    return x


def data(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs, and targets that are a smooth function of them."""
    draw = np.random.default_rng(0)
    inputs = draw.standard_normal((batch, FEATURES))
    targets = np.sin(inputs @ draw.standard_normal((FEATURES, 1)))
    return tuple(torch.from_numpy(array).float() for array in (inputs, targets))


def train(
    inputs: torch.Tensor, targets: torch.Tensor, steps: int, network, mesh: Mesh | None = None
) -> tuple[list[float], list[torch.Tensor]]:
    """The loss of each step and the trained weights. network: of stacked parameters and a batch."""
    torch.manual_seed(0)
    stacked, _ = torch.func.stack_module_state([Stage() for _ in range(STAGES)])
    head = nn.Linear(FEATURES, 1)
    if mesh is not None:
        place = NamedSharding(mesh, P("pp"))
        for parameter in stacked.values():
            parameter.data = jax.device_put(parameter.detach(), place)
    optimizer = torch.optim.Adam([*stacked.values(), *head.parameters()], lr=0.003)

    @torch.jit
    def step(inputs, targets):
        optimizer.zero_grad()
        loss = F.mse_loss(head(network(stacked, inputs)), targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = [step(inputs, targets).item() for _ in range(steps)]
    return losses, [p.detach().cpu() for p in (*stacked.values(), *head.parameters())]


def main() -> None:
    parser = argparse.ArgumentParser(description="a pipeline")
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--batch", type=int, default=64, help="a multiple of --microbatches")
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()

    mesh = jax.make_mesh((STAGES,), ("pp",), axis_types=(AxisType.Auto,))
    tensors, count = data(options.batch), options.microbatches
    plain, plain_weights = train(*tensors, options.steps, sequential)
    losses, weights = train(*tensors, options.steps, pipeline(stage, mesh, count), mesh)
    print("loss", " ".join(f"{loss:.4f}" for loss in losses[:: max(1, options.steps // 6)]))
    print(f"bubble {(STAGES - 1) / (count + STAGES - 1):.1%}: devices wait in {STAGES - 1} ticks")
    if not np.allclose(losses, plain, rtol=1e-4):
        sys.exit("the losses of the pipeline differ")
    if not all(np.allclose(a, b, atol=1e-4) for a, b in zip(weights, plain_weights, strict=True)):
        sys.exit("the pipeline found other weights")
    print("losses and weights agree with those of one device")


if __name__ == "__main__":
    main()
