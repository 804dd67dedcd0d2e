# %% [markdown]
# # Tools
#
# Each part of this page shows one tool on a small case: the call, what it gives, what you see in
# it, and what you use it for. Notebooks show these results as below, and also tensors, modules
# and optimizers.

# %%
import jax

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn, optim

jax.config.update("jax_num_cpu_devices", 4)  # of one processor, for the last part
torch.manual_seed(0)
graph = torch.autograd.graph

# %% [markdown]
# ## The layers of a model: `summary`
#
# You see each layer with the shape of its result, its parameters and its multiply-adds, and the
# sums below. Use it before you train, to find the layer that is too large or has the wrong shape:
# the forward pass runs on shapes alone, so a model of any size takes no memory.


# %%
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        first, second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3)
        self.features = nn.Sequential(first, nn.ReLU(), nn.MaxPool2d(2), second, nn.ReLU())
        self.head = nn.Linear(16 * 12 * 12, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


model = Net()
torch.summary(model, (32, 1, 28, 28), col_names=["output_size", "num_params", "mult_adds"])

# %% [markdown]
# With the column `"time"` a copy of the model runs, and you see where the time of an uncompiled
# forward pass goes. A compiled step fuses layers, so use it to compare layers, and the profiler
# or `jax.profiler` for the step as a whole.

# %%
columns = ["input_size", "output_size", "time"]
torch.summary(model, torch.rand(32, 1, 28, 28), col_names=columns, row_settings=["var_names"])

# %% [markdown]
# ## The graph of a loss: `autograd.graph.draw`
#
# You see each operator that `backward()` will visit, with the shape of its result, the bytes that
# it saved and its source line; leaves are green, and what was cut off from the graph is dashed.
# Use it when a gradient is None or has a path that you did not expect.

# %%
w, b = torch.ones(3, 4, requires_grad=True), torch.zeros(3, requires_grad=True)
x = torch.randn(5, 4)
with graph.record_lines():
    hidden = F.linear(x, w, b).tanh()
    scale = hidden.detach().abs().max()
    loss = (hidden / scale).square().sum()
graph.draw(loss)

# %% [markdown]
# A graph of more than 60 operators is drawn compactly: a chain of operators is one box, and a part
# that repeats, as in a loop, appears once. Use it to check what a loop has recorded.

# %%
state, weight = torch.rand(2, 8), torch.eye(8, requires_grad=True)
for _ in range(40):
    state = F.linear(state, weight).tanh()
graph.draw(state.sum())

# %% [markdown]
# ## The memory of a graph: `autograd.graph.memory_report`
#
# You see the bytes that each operator saved for the backward pass, and those of each source line.
# Use it to find what to recompute with `utils.checkpoint`, or which large intermediate result
# keeps a batch from fitting.

# %%
images, targets = torch.rand(64, 1, 28, 28), torch.randint(0, 10, (64,))
with graph.record_lines():
    loss = F.cross_entropy(model(images), targets)
graph.memory_report(loss)

# %% [markdown]
# ## Why a gradient is None or zero: `autograd.graph.explain`
#
# You see one sentence for each cause, with its line. Use it as the first question when a
# parameter does not learn.

# %%
gate = torch.tensor([-1.0, -2.0], requires_grad=True)
unused = torch.ones(2, requires_grad=True)
with graph.record_lines():
    loss = (F.relu(gate) * 3).sum()
print(graph.explain(gate, loss))
print(graph.explain(unused, loss))
with torch.no_grad(), graph.record_lines():
    frozen = gate * 2
print(graph.explain(frozen))

# %% [markdown]
# ## The time of each operator: `autograd.profiler.profile`
#
# You see how often each operator ran and how long it took, forward and backward, the most
# expensive first. Use it to find out whether one operator dominates an uncompiled step;
# `profile.export_chrome_trace(path)` shows the same events on a time line.

# %%
for _ in range(2):  # the first calls compile
    F.cross_entropy(model(images), targets).backward()
with torch.autograd.profiler.profile() as profile:
    F.cross_entropy(model(images), targets).backward()
profile

# %% [markdown]
# ## Why a step was traced again: `explain()` of a compiled function
#
# You see how often the function was traced, and what differed the last time. Use it when a
# compiled step is slow: a trace at every call means that something it depends on changes at every
# call, such as the shape of the last batch.

# %%
optimizer = optim.SGD(model.parameters(), lr=0.1)


@torch.compile
def step(images, targets):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images), targets)
    loss.backward()
    optimizer.step()
    return loss


for size in (64, 64, 48):
    step(images[:size], targets[:size])
    print(step.explain())

# %% [markdown]
# ## A tensor, a module, an optimizer
#
# A notebook shows a large tensor with its figures, a histogram, and a matrix as a picture too, in
# which NaNs are red. Use it to notice dead rows, saturated activations and NaNs without printing
# the numbers.

# %%
activations = torch.randn(60, 120).cumsum(1)
activations[20:24, 40:60] = float("nan")
activations

# %% [markdown]
# A module shows its layers, their settings and the shapes of their parameters; an optimizer its
# groups, with the options that are set, and the size of its state. Use them to check that a
# change of the model or of a learning rate has arrived.

# %%
model

# %%
groups = [{"params": model.head.parameters(), "lr": 1e-2}, {"params": model.features.parameters()}]
optim.AdamW(groups)

# %% [markdown]
# ## Where the parts of a tensor lie: `visualize_sharding`
#
# You see which rows and columns each device of a mesh has. Use it to check that a tensor is
# sharded the way you meant, before you look for a reason in the speed of a step.

# %%
import jaxgrad.distributed as dist
from jaxgrad.distributed.tensor import Replicate, Shard, debug, distribute_tensor

mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
for placements in ([Shard(0), Shard(1)], [Shard(0), Replicate()]):
    sharded = distribute_tensor(torch.ones(8, 6), mesh, placements)
    debug.visualize_sharding(sharded, header=str(placements))
