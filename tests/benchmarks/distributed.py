"""Measures steps in parallel, beside the same steps by hand in JAX, in turns in one process.

    python tests/benchmarks/distributed.py ddp:mlp fsdp:mlp ddp:transformer fsdp:transformer
    python -m jaxgrad launch --nproc 2 tests/benchmarks/distributed.py ddp:mlp ddp:transformer

The first runs on four devices of one process. Each row is a whole step with Adam, and
`keep` in place of `fsdp` keeps gathered parameters for the backward pass. `--rounds=40` says how
often each step runs; the figures are medians.
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
if "RANK" not in os.environ:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import functools
import statistics
import sys
import time

import jax
import numpy as np
import optax
import training
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jaxgrad
import jaxgrad.distributed as dist
from jaxgrad.distributed.fsdp import fully_shard
from jaxgrad.distributed.tensor import Shard, distribute_tensor

F = jaxgrad.nn.functional
WIDTH, CLASSES, SAMPLES, TEXTS = 512, 64, 256, 32
BLOCKS = {"mlp": (0, 2, 4), "transformer": range(training.LAYERS)}


# ---- the models


def mlp(torch):
    """Five megabytes of parameters."""
    nn, sizes = torch.nn, [WIDTH] * 6 + [CLASSES]
    layers = [nn.Linear(*each) for each in zip(sizes, sizes[1:], strict=False)]
    return nn.Sequential(*[each for layer in layers for each in (layer, nn.ReLU())][:-1])


def mlp_loss(weights, x, labels):
    last = max(int(name.partition(".")[0]) for name in weights)
    for number in range(0, last, 2):
        x = jax.nn.relu(training.linear(weights, str(number), x))
    return training.cross_entropy(training.linear(weights, str(last), x), labels)


def cases():
    draw = np.random.default_rng(0)
    tokens = draw.integers(0, training.VOCABULARY, (2, TEXTS, training.LENGTH))
    x = draw.standard_normal((SAMPLES, WIDTH)).astype(np.float32)
    labels = draw.integers(0, CLASSES, SAMPLES)
    texts = tokens[0], tokens[1].reshape(-1)
    return {
        "mlp": training.Case(mlp, mlp_loss, (x, labels)),
        "transformer": training.Case(training.transformer, training.transformer_loss, texts),
    }


# ---- jaxgrad


def batch_of(case, mesh):
    """The batch on all devices of this process, or the part of this process."""
    size, rank = dist.get_world_size(), dist.get_rank()
    if size == 1:
        return [distribute_tensor(jaxgrad.tensor(each), mesh, [Shard(0)]) for each in case.batch]
    parts = [np.split(each, size)[rank] for each in case.batch]
    return [jaxgrad.tensor(each) for each in parts]


def parallel(scheme, model, mesh):
    if scheme == "ddp":
        return jaxgrad.nn.parallel.DistributedDataParallel(model, device_mesh=mesh)
    blocks = getattr(model, "blocks", None) or [each for each in model if [*each.parameters()]]
    for block in blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=scheme == "fsdp")
    return fully_shard(model, mesh=mesh)


def script(scheme, case, weights, mesh):
    """A function that makes the next step, and the compiled step."""
    model = case.model(jaxgrad)
    values = {name: jaxgrad.tensor(value) for name, value in weights.items()}
    model.load_state_dict(values, strict=False)
    wrapped = parallel(scheme, model, mesh)
    optimizer = jaxgrad.optim.Adam(wrapped.parameters(), lr=training.RATE)
    x, y = batch_of(case, mesh)

    @jaxgrad.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(wrapped(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def following():
        return jax.block_until_ready(step(x, y)._array)

    return following, functools.partial(step.lower, x, y)


# ---- by hand


def spec_of(scheme, shape, size) -> PartitionSpec:
    """Along the first dimension that the devices divide, as fully_shard does."""
    if scheme == "ddp":
        return PartitionSpec()
    dims = [dim for dim, extent in enumerate(shape) if extent % size == 0]
    return PartitionSpec(*[None] * dims[0], "dp") if dims else PartitionSpec()


def gathering(scheme, case, mesh):
    """The loss of sharded parameters."""
    whole = NamedSharding(mesh, PartitionSpec())

    def loss(weights, x, y):
        gathered = {
            name: checkpoint_name(jax.lax.with_sharding_constraint(each, whole), "gathered")
            for name, each in weights.items()
        }
        return case.loss(gathered, x, y)

    if scheme == "keep":
        return jax.value_and_grad(loss)
    policy = jax.checkpoint_policies.save_anything_except_these_names("gathered")
    return jax.value_and_grad(jax.checkpoint(loss, policy=policy))


def summing(case, mesh):
    """The mean over processes of losses and gradients: a sum of all of them at once."""
    plain, whole, part = jax.value_and_grad(case.loss), PartitionSpec(), PartitionSpec("dp")

    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(whole, part, part), out_specs=whole, check_vma=False
    )
    def both(weights, x, y):
        return jax.lax.pmean(plain(weights, x, y), "dp")

    return both


def by_hand(scheme, case, weights, mesh):
    """As `script`."""
    optimizer, size = optax.adam(training.RATE), mesh.size
    if scheme != "ddp":
        differentiated = gathering(scheme, case, mesh)
    elif dist.get_world_size() == 1:
        differentiated = jax.value_and_grad(case.loss)
    else:
        differentiated = summing(case, mesh)
    places = {n: NamedSharding(mesh, spec_of(scheme, w.shape, size)) for n, w in weights.items()}
    arrays = {n: jax.make_array_from_callback(w.shape, places[n], w.__getitem__)
              for n, w in weights.items()}  # fmt: skip
    part = NamedSharding(mesh, PartitionSpec("dp"))
    batch = [jax.make_array_from_callback(b.shape, part, b.__getitem__) for b in case.batch]
    # copies: what is on a CPU may be shared with NumPy, and is donated
    arrays = jax.jit(lambda tree: jax.tree.map(lambda each: each + 0, tree))(arrays)
    state = jax.jit(optimizer.init)(arrays)
    state = jax.tree.map(functools.partial(_placed, mesh), state)
    layout = jax.tree.map(lambda each: each.sharding, (arrays, state))
    whole = NamedSharding(mesh, PartitionSpec())

    @functools.partial(jax.jit, donate_argnums=(0, 1), out_shardings=(*layout, whole))
    def step(weights, state, x, y):
        loss, gradients = differentiated(weights, x, y)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(weights, updates), state, loss

    kept = [arrays, state]

    def following():
        *kept[:], loss = step(*kept, *batch)
        return jax.block_until_ready(loss)

    return following, lambda: step.lower(*kept, *batch)


def _placed(mesh, array):
    """The state of an optimizer, on all devices of a mesh."""
    if isinstance(array.sharding, NamedSharding) and array.sharding.mesh.size == mesh.size:
        return array
    value = np.asarray(array)
    whole = NamedSharding(mesh, PartitionSpec())
    return jax.make_array_from_callback(value.shape, whole, value.__getitem__)


# ---- measuring


def timed(function) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def measure(scheme, name, rounds):
    case, count = cases()[name], len(jax.devices())
    weights = training.initial_weights(case)
    mesh = dist.init_device_mesh("cpu", (count,), mesh_dim_names=("dp",))
    steps = script(scheme, case, weights, mesh), by_hand(scheme, case, weights, _mesh_by_hand())
    (ours, ours_lowered), (hand, hand_lowered) = steps
    losses = [float(np.asarray(jax.device_get(each().addressable_data(0)))) for each in steps_of(steps)]
    pairs = [(timed(ours), timed(hand)) for _ in range(rounds + 3)][3:]
    medians = [1e3 * statistics.median(each) for each in zip(*pairs, strict=True)]
    memory = [each().compile().memory_analysis() for each in (ours_lowered, hand_lowered)]
    temporary = [each.temp_size_in_bytes / 1e6 for each in memory]
    if dist.get_rank() == 0:
        ratio = statistics.median(a / b for a, b in pairs)
        print(
            f"{scheme:6}{name:14}{medians[0]:9.2f} ms{medians[1]:9.2f} ms  {medians[0] / medians[1]:.3f}"
            f"  median of ratios {ratio:.3f}  temporary {temporary[0]:.1f} {temporary[1]:.1f} MB"
            f"  losses {losses[0]:.4f} {losses[1]:.4f}",
            flush=True,
        )


def steps_of(steps):
    return [following for following, _ in steps]


def _mesh_by_hand() -> Mesh:
    return Mesh(np.array(jax.devices()), ("dp",))


def main():
    rounds = [int(each.partition("=")[2]) for each in sys.argv if each.startswith("--rounds=")]
    rows = [each.split(":") for each in sys.argv[1:] if not each.startswith("--")]
    if "RANK" in os.environ:
        dist.init_process_group()
    else:
        dist.init_process_group(rank=0, world_size=1)
    for scheme, name in rows:
        measure(scheme, name, *(rounds or [40]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
