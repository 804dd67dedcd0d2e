# %% [markdown]
# # Fully sharded training on four devices
#
# With `fully_shard` each device holds one part of the parameters, the gradients and the optimizer
# state. You train a model so on four devices, look at which part lies where, count the bytes,
# compare with one device, save a distributed checkpoint, and resume from it.
#
# You need to know what a training step looks like; nothing of distributed training. To save
# checkpoints, install `jaxgrad[checkpoint]`.
#
# ## Four devices on any computer
#
# XLA can make several devices of one CPU. The flag has to be set before JAX starts, so it comes
# first. With four GPUs or a TPU, leave it out. The script also runs as four processes of one
# device each, by `python -m jaxgrad launch --nproc 4 fsdp.py`; then `RANK` is set.

# %%
import os

if "RANK" not in os.environ:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import itertools
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import sklearn.datasets

import jaxgrad as torch
import jaxgrad.distributed as dist
import jaxgrad.distributed.checkpoint as dcp
import jaxgrad.nn.functional as F
from jaxgrad import nn
from jaxgrad.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from jaxgrad.distributed.fsdp import fully_shard
from jaxgrad.distributed.tensor.debug import visualize_sharding

# %% [markdown]
# ## A mesh
#
# A mesh arranges devices in a grid and names its dimensions. Here it is a row of four.

# %%
if "RANK" in os.environ:
    dist.init_process_group()
mesh = dist.init_device_mesh("cpu", (4,), mesh_dim_names=("dp",))
rank, world = (dist.get_rank(), 4) if "RANK" in os.environ else (0, 1)
say = print if rank == 0 else lambda *_: None
say(mesh)

# %% [markdown]
# ## A model, sharded
#
# The model is an ordinary one. `fully_shard` changes it in place: each layer that you name is
# *gathered* as a whole just before it computes and freed afterwards. So a device needs room for
# its part of everything, and for one whole layer. The outermost call takes what is left.


# %%
def network():
    torch.manual_seed(0)
    widths = [64, 512, 512, 512]
    layers = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(512, 10))


def sharded(mesh):
    model = network()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


model = sharded(mesh)
for name, parameter in model.named_parameters():
    say(f"{name:10} {tuple(parameter.shape)!s:12} {parameter.placements}")

# %% [markdown]
# `Shard(dim=0)` says that the rows are divided. Where one process has all devices, a sharded
# tensor still is the whole tensor: its shape, and what you compute with it, do not show that it
# lies in four places. This does:

# %%
visualize_sharding(model[0].weight, use_rich=True)

# %% [markdown]
# The ten biases of the last layer cannot be cut into four equal parts, so every device has them
# all.
#
# ## A step
#
# The step is that of one device. XLA puts the communication into the compiled program: it gathers
# parameters, and sums gradients so that each device gets its part.


# %%
def training(model):
    """The optimizer, and a compiled step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return optimizer, step


# %% [markdown]
# The data are scikit-learn's digits. A batch depends on the number of its step alone, so that a
# run that resumes sees what it would have seen. With one process for each device, a process takes
# every fourth row of it. `item()` waits for the step: on the devices of one CPU let no more than
# one program with communication run at a time.

# %%
images, labels = sklearn.datasets.load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(labels))
images, labels = (images[order] / 16).astype(np.float32), labels[order]


def batch(number):
    rows = np.random.default_rng(number).integers(1500, size=128)
    return images[rows], labels[rows]


def train(step, numbers):
    """The losses of the steps with these numbers."""
    losses = []
    for number in numbers:
        x, y = (torch.from_numpy(array[rank::world]) for array in batch(number))
        loss = step(x, y)
        if world > 1:
            dist.all_reduce(loss)  # the sum over processes
        losses.append(loss.item() / world)
    return torch.tensor(losses)


optimizer, step = training(model)
losses = train(step, range(60))
say(f"loss of the first step {losses[0]:.3f}, of the last ten {losses[-10:].mean():.3f}")

# %% [markdown]
# ## The same as on one device
#
# The same model, not sharded, with the whole batch: the losses agree up to rounding, since sums
# are taken in another order.


# %%
def train_whole(step, numbers):
    return torch.stack([step(*map(torch.from_numpy, batch(number))) for number in numbers])


losses_one = train_whole(training(network())[1], range(60))
difference = (losses - losses_one).abs().max().item()
say(f"largest difference of the losses: {difference:.1e}")

# %% [markdown]
# ## Memory
#
# Gradients and the state of AdamW, two numbers for each parameter, lie as their parameters do.
# Count what the first device holds, for meshes of one, two and four devices.


# %%
def bytes_on_a_device(tensor):
    if world > 1:  # PyTorch's words for the part of this process
        return tensor.to_local().nbytes
    return tensor.__jax_array__().addressable_shards[0].data.nbytes


def megabytes(model, optimizer):
    """What a device holds of parameters, gradients and optimizer state."""
    parameters = list(model.parameters())
    state = [optimizer.state[p][name] for p in parameters for name in ("exp_avg", "exp_avg_sq")]
    groups = parameters, [p.grad for p in parameters], state
    return [sum(bytes_on_a_device(t.detach()) for t in group) / 1e6 for group in groups]


held = {4: megabytes(model, optimizer)}
if world == 1:
    for devices in (1, 2):
        smaller = sharded(dist.init_device_mesh("cpu", (devices,)))
        its_optimizer, its_step = training(smaller)
        train(its_step, range(1))
        held[devices] = megabytes(smaller, its_optimizer)

# %%
figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
devices = sorted(held)
bottom = np.zeros(len(devices))
for i, name in enumerate(("parameters", "gradients", "state of AdamW")):
    heights = [held[n][i] for n in devices]
    axis.bar([str(n) for n in devices], heights, bottom=bottom, label=name)
    bottom += heights
axis.set(title="Memory of one device", xlabel="devices", ylabel="memory (MB)")
axis.legend()
say({n: f"{sum(held[n]):.2f} MB" for n in devices})

# %% [markdown]
# ## A checkpoint
#
# Every device writes its own parts. `get_state_dict` gives the states of model and optimizer with
# their shardings.

# %%
folder = [tempfile.mkdtemp() if rank == 0 else None]
if world > 1:
    dist.broadcast_object_list(folder)  # all processes write to the same folder
path = folder[0] + "/step_60"

parameters, state = get_state_dict(model, optimizer)
dcp.save({"model": parameters, "optimizer": state}, checkpoint_id=path)
continued = train(step, range(60, 80))

# %% [markdown]
# To resume, make model and optimizer as at the start, and load into their states. `load` fills
# the tensors as they lie now, on this mesh or another one.


# %%
def resume(model, optimizer):
    parameters, state = get_state_dict(model, optimizer)
    dcp.load({"model": parameters, "optimizer": state}, checkpoint_id=path)
    set_state_dict(model, optimizer, model_state_dict=parameters, optim_state_dict=state)


model = sharded(mesh)
optimizer, step = training(model)
resume(model, optimizer)
resumed = train(step, range(60, 80))
say("the same losses, to the bit:", torch.equal(continued, resumed))

# %% [markdown]
# The same files on one device:

# %%
whole = network()
optimizer_whole, step_whole = training(whole)
resume(whole, optimizer_whole)
resumed_whole = train_whole(step_whole, range(60, 80))
say(f"largest difference: {(resumed_whole - continued).abs().max().item():.1e}")

# %% [markdown]
# ## Check

# %%
with torch.no_grad():
    right = whole(torch.from_numpy(images[1500:])).argmax(1) == torch.from_numpy(labels[1500:])
accuracy = right.float().mean().item()
say(f"accuracy on digits that were not in the batches: {accuracy:.1%}")

assert difference < 1e-4
assert torch.equal(continued, resumed)
assert (resumed_whole - continued).abs().max() < 1e-3
assert world > 1 or sum(held[4]) < 0.26 * sum(held[1])
assert accuracy > 0.9
if world > 1:
    dist.destroy_process_group()

# %% [markdown]
# Four devices of one CPU share its cores, so this is no faster than one device; it is the way to
# try a program before you have the devices. PyTorch ran the same script in four processes, with
# gloo. [Many devices](../distributed.md) tells about tensor parallelism and several processes.
