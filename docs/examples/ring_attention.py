"""Trains a small model whose causal self-attention runs on a sequence that is sharded over four
devices: sequence parallelism by ring attention.

python docs/examples/ring_attention.py --length 64

The compiled training step runs on the sharded sequence, and on one device with
`F.scaled_dot_product_attention`; both must have the same losses and reach the same weights.
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

DEVICES, BATCH, SYMBOLS, FEATURES, HEADS = 4, 8, 8, 16, 2


def scores(queries, keys, rows, columns, causal):
    """The scaled products of queries and keys, in float32 or wider; -inf where a query may not
    look at a key. rows, columns: the positions of the queries and of the keys in the sequence.
    """
    wide = torch.promote_types(queries.dtype, torch.float32)
    products = queries.to(wide) @ keys.to(wide).mT * queries.shape[-1] ** -0.5
    return products.masked_fill(columns > rows.unsqueeze(1), -torch.inf) if causal else products


@torch.to_jax
def add_block(state, queries, keys, values, rows, columns, causal):
    """The online softmax: one more block of keys and values.

    state: for each query the largest score so far, and the sums of exp(score - largest) and of
    exp(score - largest) * value.
    """
    largest, total, weighted = state
    logits = scores(queries, keys, rows, columns, causal)
    # finite from the first block on, which is the query's own: there each query sees itself
    larger = torch.maximum(largest, logits.amax(-1))
    shrink, weights = torch.exp(largest - larger), torch.exp(logits - larger.unsqueeze(-1))
    total = total * shrink + weights.sum(-1)
    weighted = weighted * shrink.unsqueeze(-1) + weights @ values.to(weights.dtype)
    return larger, total, weighted


@torch.to_jax
def finish(state):
    """The attention's result, and for each query the log of its sum of exp(score)."""
    largest, total, weighted = state
    return weighted / total.unsqueeze(-1), largest + total.log()


@torch.to_jax
def block_gradients(queries, keys, values, rows, columns, causal, known):
    """What one block of keys and values adds to the gradients of queries, keys and values.

    known: for each query the log of its sum of exp(score), the result and the result's gradient.
    """
    log_total, result, gradient = known
    wide, gradient = log_total.dtype, gradient.to(log_total.dtype)
    product = (result * gradient).sum(-1)

    def linearized(queries, keys, values):
        # log_total counts as a constant here, although it depends on all blocks; the second sum
        # is its part of the gradient
        logits = scores(queries, keys, rows, columns, causal)
        weights = torch.exp(logits - log_total.unsqueeze(-1))
        return (weights @ values * gradient).sum() - (weights.sum(-1) * product).sum()

    block = queries.to(wide), keys.to(wide), values.to(wide)
    return torch.func.grad(linearized, argnums=(0, 1, 2))(*block)


class Ring:
    """Attention of one device's block of the sequence, for `jax.shard_map`.

    Keys and values pass through all devices. The gradient rule sends them round once more,
    together with their gradients. JAX's own rule for the loop would keep each block that has
    passed, and so the keys and values of the whole sequence on every device.
    """

    def __init__(self, axis: str, devices: int, causal: bool):
        self.axis, self.devices, self.causal = axis, devices, causal
        self.neighbours = [(i, (i + 1) % devices) for i in range(devices)]
        self.attend = jax.custom_vjp(self.attention)
        self.attend.defvjp(self.forward, self.backward)

    def send(self, arrays):
        """Pass arrays to the next device, and receive those of the previous one."""
        return jax.lax.ppermute(arrays, self.axis, self.neighbours)

    def positions(self, queries, step):
        """The positions of the device's queries, and of the keys that are here in a step."""
        here, length = jax.lax.axis_index(self.axis), queries.shape[-2]
        block = jax.numpy.arange(length)
        return here * length + block, (here - step) % self.devices * length + block

    def attention(self, queries, keys, values):
        return self.forward(queries, keys, values)[0]

    def forward(self, queries, keys, values):
        """The result, and what the gradient rule needs."""

        def add(state, block, step):
            places = self.positions(queries, step)
            return add_block(state, queries, *block, *places, self.causal)

        def tick(carried, step):
            state, block = carried
            following = self.send(block)  # this waits for no result, so both can run at once
            return (add(state, block, step), following), None

        last = self.devices - 1
        wide = jax.numpy.promote_types(queries.dtype, jax.numpy.float32)
        zeros = jax.numpy.zeros_like(values, wide)
        start = zeros[..., 0] - jax.numpy.inf, zeros[..., 0], zeros
        ticks = jax.numpy.arange(last)
        (state, block), _ = jax.lax.scan(tick, (start, (keys, values)), ticks)
        result, log_total = finish(add(state, block, last))
        return result.astype(queries.dtype), (queries, keys, values, log_total, result)

    def backward(self, saved, gradient):
        """The gradients of the device's queries, keys and values."""
        queries, keys, values, log_total, result = saved
        known = log_total, result, gradient

        def add(sums, block, step):
            places = self.positions(queries, step)
            gradients = block_gradients(queries, *block, *places, self.causal, known)
            return jax.tree.map(jax.numpy.add, sums, gradients)

        def tick(carried, step):
            sums, block = carried
            following = self.send(block)
            of_queries, *of_block = add(sums, block, step)
            return ((of_queries, *self.send(of_block)), following), None

        last = self.devices - 1
        zeros = jax.tree.map(lambda x: jax.numpy.zeros_like(x, log_total.dtype), saved[:3])
        ticks = jax.numpy.arange(last)
        (sums, block), _ = jax.lax.scan(tick, (zeros, (keys, values)), ticks)
        of_queries, *of_block = add(sums, block, last)
        sums = of_queries, *self.send(of_block)  # which brings them home
        return jax.tree.map(lambda sum, x: sum.astype(x.dtype), sums, saved[:3])


def ring_attention(mesh: Mesh, axis: str = "sp", causal: bool = True, spec: P | None = None):
    """Self-attention as an operator on queries, keys and values of shape (batch, heads, length,
    features), whose length is sharded over an axis of the mesh.

    spec: how all of them are sharded, where the mesh has other axes too.
    """
    ring = Ring(axis, mesh.shape[axis], causal)
    spec = P(None, None, axis) if spec is None else spec
    return torch.from_jax(
        jax.shard_map(ring.attend, mesh=mesh, in_specs=(spec, spec, spec), out_specs=spec)
    )


class Model(nn.Module):
    """Embeddings of symbols and positions, causal self-attention, and the scores of symbols."""

    def __init__(self, length: int, attention):
        super().__init__()
        self.symbols, self.places = nn.Embedding(SYMBOLS, FEATURES), nn.Embedding(length, FEATURES)
        # without a bias: that of the keys has no effect, and Adam would follow its rounding errors
        self.inward = nn.Linear(FEATURES, 3 * FEATURES, bias=False)
        self.outward = nn.Linear(FEATURES, SYMBOLS)
        self.attention = attention

    def forward(self, symbols, places):
        hidden = self.symbols(symbols) + self.places(places)
        three = self.inward(hidden).unflatten(-1, (3, HEADS, FEATURES // HEADS))
        queries, keys, values = three.permute(2, 0, 3, 1, 4)
        attended = self.attention(queries, keys, values).transpose(1, 2).flatten(2)
        return self.outward(hidden + attended)


def data(length: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Random symbols, their positions, and the targets: the first symbol, which all places must
    find, however far away it is.
    """
    symbols = np.random.default_rng(0).integers(SYMBOLS, size=(BATCH, length))
    places = np.broadcast_to(np.arange(length), symbols.shape)
    targets = np.broadcast_to(symbols[:, :1], symbols.shape)
    return tuple(torch.from_numpy(array.copy()) for array in (symbols, places, targets))


def train(tensors, steps: int, attention) -> tuple[list[float], list[torch.Tensor]]:
    """The loss of each step and the trained weights."""
    symbols, places, targets = tensors
    torch.manual_seed(0)
    model = Model(symbols.shape[1], attention)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

    @torch.jit
    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(symbols, places).mT, targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = [step().item() for _ in range(steps)]
    return losses, [parameter.detach().cpu() for parameter in model.parameters()]


def plain_attention(queries, keys, values):
    return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="ring attention")
    parser.add_argument("--length", type=int, default=64, help=f"a multiple of {DEVICES}")
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()

    mesh = jax.make_mesh((DEVICES,), ("sp",), axis_types=(AxisType.Auto,))
    along = NamedSharding(mesh, P(None, "sp"))
    tensors = data(options.length)
    plain, plain_weights = train(tensors, options.steps, plain_attention)
    sharded = jax.device_put(tensors, along)
    losses, weights = train(sharded, options.steps, ring_attention(mesh))
    print("loss", " ".join(f"{loss:.4f}" for loss in losses[:: max(1, options.steps // 6)]))
    if not np.allclose(losses, plain, rtol=1e-4):
        sys.exit("the losses of the sharded sequence differ")
    if not all(np.allclose(a, b, atol=1e-4) for a, b in zip(weights, plain_weights, strict=True)):
        sys.exit("the sharded sequence led to other weights")
    print("losses and weights agree with those of one device")


if __name__ == "__main__":
    main()
