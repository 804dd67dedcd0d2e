"""Measures steps in parallel, beside the same steps by hand in JAX, in turns in one process.

    python tests/benchmarks/distributed.py ddp:mlp fsdp:mlp ddp:transformer fsdp:transformer
    python -m jaxgrad launch --nproc 2 tests/benchmarks/distributed.py ddp:mlp ddp:transformer

The first runs on four devices of one process. Each row is a whole step with Adam; in several
processes each makes its part of the batch into tensors first, as in training. `keep` in place of
`fsdp` keeps gathered parameters for the backward pass. `--rounds=40` says how often each step runs;
the figures are medians. With `--same-loss` the loss by hand is PyTorch's too: the mean over the
labels that are not -100, whose number devices must sum.
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
if "RANK" not in os.environ:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import functools
import itertools
import statistics
import sys
import time

import figures
import jax
import numpy as np
import optax
import training
from jax.ad_checkpoint import checkpoint_name
from jax.flatten_util import ravel_pytree
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
    layers = [nn.Linear(*pair) for pair in itertools.pairwise(sizes)]
    return nn.Sequential(*[module for layer in layers for module in (layer, nn.ReLU())][:-1])


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


def cross_entropy_of_some(logits, labels):
    """The mean of PyTorch: over the labels that are not -100."""
    is_some = labels != -100
    labels = jax.numpy.where(is_some, labels, 0)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return jax.numpy.where(is_some, losses, 0).sum() / is_some.sum()


# ---- jaxgrad


def part_of(batch):
    """What this process has of a batch, for each of its arrays."""
    size, rank = dist.get_world_size(), dist.get_rank()
    return [np.split(array, size)[rank] for array in batch]


def parallel(scheme, model, mesh):
    if scheme == "ddp":
        return jaxgrad.nn.parallel.DistributedDataParallel(model, device_mesh=mesh)
    blocks = getattr(model, "blocks", None) or [layer for layer in model if [*layer.parameters()]]
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
    if dist.get_world_size() > 1:
        part_of_rank = part_of(case.batch)
        batch = functools.partial(map, jaxgrad.tensor, part_of_rank)
    else:
        placed = [
            distribute_tensor(jaxgrad.tensor(array), mesh, [Shard(0)]) for array in case.batch
        ]
        batch = functools.partial(list, placed)

    @jaxgrad.jit
    def step(x, y):
        loss = F.cross_entropy(wrapped(x), y)
        loss.backward()
        optimizer.step()
        # last, so that the program gives no gradients, like that by hand
        optimizer.zero_grad()
        return loss.detach()

    def following():
        return jax.block_until_ready(step(*batch())._array)

    return following, lambda: step.lower(*batch())


# ---- by hand


def spec_of(scheme, shape, size) -> PartitionSpec:
    """Along the first dimension that the devices divide, as fully_shard does."""
    if scheme == "ddp":
        return PartitionSpec()
    dims = [dim for dim, extent in enumerate(shape) if extent % size == 0]
    return PartitionSpec(*[None] * dims[0], "dp") if dims else PartitionSpec()


def kept_or_not(scheme, loss):
    """The loss and its gradients. Not `keep`: what is gathered is gathered anew for the backward
    pass.
    """
    if scheme == "fsdp":
        policy = jax.checkpoint_policies.save_anything_except_these_names("gathered")
        loss = jax.checkpoint(loss, policy=policy)
    return jax.value_and_grad(loss)


def partitioned(scheme, case, mesh):
    """The loss and the gradients on the devices of one process, for XLA to partition."""
    if scheme == "ddp":
        return jax.value_and_grad(case.loss)
    whole = NamedSharding(mesh, PartitionSpec())

    def loss(weights, x, y):
        gathered = {
            name: checkpoint_name(jax.lax.with_sharding_constraint(array, whole), "gathered")
            for name, array in weights.items()
        }
        return case.loss(gathered, x, y)

    return kept_or_not(scheme, loss)


def mapped(scheme, case, mesh, specs):
    """The same in several processes: a program of each device, with its communication. This is
    faster there than to leave the partition to XLA.
    """

    def whole(name, array):
        dims = [dim for dim, axis in enumerate(specs[name]) if axis]
        if not dims:
            return array
        array = jax.lax.all_gather(array, "dp", axis=dims[0], tiled=True)
        return checkpoint_name(array, "gathered")

    def loss(weights, x, y):
        return case.loss({name: whole(name, array) for name, array in weights.items()}, x, y)

    both, part = kept_or_not(scheme, loss), PartitionSpec("dp")

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(specs, part, part),
        out_specs=(PartitionSpec(), specs),
        check_vma=False,
    )
    def mean(weights, x, y):
        value, gradients = both(weights, x, y)
        # what was gathered has been summed; the others are, in one communication
        others = {name: gradient for name, gradient in gradients.items() if not any(specs[name])}
        flat, split = ravel_pytree((value, others))
        value, others = split(jax.lax.psum(flat, "dp"))
        return jax.tree.map(lambda array: array / mesh.size, (value, gradients | others))

    return mean


def by_hand(scheme, case, weights, mesh):
    """As `script`."""
    optimizer, size = optax.adam(training.RATE), mesh.size
    specs = {name: spec_of(scheme, weight.shape, size) for name, weight in weights.items()}
    if dist.get_world_size() == 1:
        differentiated = partitioned(scheme, case, mesh)
    else:
        differentiated = mapped(scheme, case, mesh, specs)
    places = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}
    arrays = {
        n: jax.make_array_from_callback(w.shape, places[n], w.__getitem__)
        for n, w in weights.items()
    }
    part = NamedSharding(mesh, PartitionSpec("dp"))
    if dist.get_world_size() > 1:
        placed, part_of_rank = jax.make_array_from_process_local_data, part_of(case.batch)
        batch = functools.partial(map, functools.partial(placed, part), part_of_rank)
    else:
        batch = functools.partial(list, [jax.device_put(array, part) for array in case.batch])
    # copies: what is on a CPU may be shared with NumPy, and is donated
    arrays = jax.jit(lambda tree: jax.tree.map(lambda array: array + 0, tree))(arrays)
    whole = NamedSharding(mesh, PartitionSpec())
    layout = optax.tree.map_params(
        optimizer,
        lambda _, place: place,
        jax.eval_shape(optimizer.init, arrays),
        places,
        transform_non_params=lambda _: whole,
    )
    state = jax.jit(optimizer.init, out_shardings=layout)(arrays)
    layout = places, layout

    @functools.partial(jax.jit, donate_argnums=(0, 1), out_shardings=(*layout, whole))
    def step(weights, state, x, y):
        loss, gradients = differentiated(weights, x, y)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(weights, updates), state, loss

    kept = [arrays, state]

    def following():
        *kept[:], loss = step(*kept, *batch())
        return jax.block_until_ready(loss)

    return following, lambda: step.lower(*kept, *batch())


# ---- measuring


def timed(function) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def in_turn(one, other, is_other_first) -> tuple[float, float]:
    """The seconds of both. Which is first alternates: the second one finds warmer caches."""
    if is_other_first:
        second = timed(other)
        return timed(one), second
    return timed(one), timed(other)


def measure(scheme, name, rounds):
    case, count = cases()[name], len(jax.devices())
    weights = training.initial_weights(case)
    mesh = dist.init_device_mesh("cpu", (count,), mesh_dim_names=("dp",))
    steps = script(scheme, case, weights, mesh), by_hand(scheme, case, weights, _mesh_by_hand())
    (ours, ours_lowered), (hand, hand_lowered) = steps
    losses = [float(step().addressable_data(0)) for step in (ours, hand)]
    pairs = [in_turn(ours, hand, number % 2) for number in range(rounds + 3)][3:]
    medians = [1e3 * statistics.median(times) for times in zip(*pairs, strict=True)]
    memory = [program().compile().memory_analysis() for program in (ours_lowered, hand_lowered)]
    temporary = [analysis.temp_size_in_bytes / 1e6 for analysis in memory]
    if dist.get_rank() == 0:
        ratio = statistics.median(a / b for a, b in pairs)
        print(
            f"{scheme:6}{name:14}{medians[0]:9.2f} ms{medians[1]:9.2f} ms"
            f"  {medians[0] / medians[1]:.3f}  median of ratios {ratio:.3f}"
            f"  temporary {temporary[0]:.1f} {temporary[1]:.1f} MB"
            f"  losses {losses[0]:.4f} {losses[1]:.4f}",
            flush=True,
        )
        where = "four devices of one process" if count > dist.get_world_size() else "two processes"
        chart = {f"{name}, {scheme}": dict(zip(("jaxgrad", "JAX by hand"), medians, strict=True))}
        figures.note("t", f"A step on {where}", "ms", "JAX by hand", chart)


def _mesh_by_hand() -> Mesh:
    return Mesh(np.array(jax.devices()), ("dp",))


def main():
    rounds = [int(word.partition("=")[2]) for word in sys.argv if word.startswith("--rounds=")]
    rows = [row.split(":") for row in sys.argv[1:] if not row.startswith("--")]
    if "--same-loss" in sys.argv:
        training.cross_entropy = cross_entropy_of_some
    if "RANK" in os.environ:
        dist.init_process_group()
    else:
        dist.init_process_group(rank=0, world_size=1)
    for scheme, name in rows:
        measure(scheme, name, *(rounds or [figures.rounds(40, 10)]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
