# %% [markdown]
# # Fine-tuning a PyTorch checkpoint
#
# PyTorch has trained a network to tell the digits 0 to 4 apart. You load its file, keep the
# layers that have learned what strokes look like, give the network a new last layer, and teach it
# the digits 5 to 9 from 20 examples. At the end you save it so that PyTorch can load it.
#
# You need to know `nn.Module` and what a training loop looks like.

# %%
import pathlib
import tempfile

import matplotlib.pyplot as plt
import sklearn.datasets

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

_ = torch.manual_seed(0)

# %% [markdown]
# ## The file
#
# The script `docs/tutorials/data/make_checkpoint.py` made it: PyTorch's `torch.save` of a dict,
# as many training scripts write it. `torch.load` reads it without executing anything that the
# file says.

# %%
folders = [pathlib.Path("data"), pathlib.Path("docs/tutorials/data")]
file = next(folder for folder in folders if folder.exists()) / "digits_0_to_4.pt"
checkpoint = torch.load(file)
print("epochs:", checkpoint["epoch"])
for name, value in checkpoint["model"].items():
    print(f"{name:22} {value.dtype!s:14} {tuple(value.shape)}")

# %% [markdown]
# ## The model
#
# A file holds numbers and no code. So write the network as it was written there: the names and
# shapes above must fit.


# %%
def network(classes):
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(24, 24, 3, padding=1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(24, classes),
    )


model = network(5)
print(model.load_state_dict(checkpoint["model"]))

# %% [markdown]
# First make sure that the network does what it did in PyTorch. The digits come with scikit-learn:
# 1797 images of 8 x 8 pixels.

# %%
images, labels = sklearn.datasets.load_digits(return_X_y=True)
images = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
labels = torch.tensor(labels)


def accuracy(model, x, y):
    with torch.no_grad():
        return (model.eval()(x).argmax(1) == y).float().mean().item()


old = labels < 5
accuracy_old = accuracy(model, images[old], labels[old])
print(f"accuracy on the digits 0 to 4: {accuracy_old:.1%}")

# %% [markdown]
# ## The task
#
# Of the digits 5 to 9, the training gets 4 examples each. The other 876 are for the test.

# %%
x, y = images[~old], labels[~old] - 5
order = torch.randperm(len(y))
chosen = torch.cat([order[y[order] == digit][:4] for digit in range(5)])
is_chosen = torch.zeros(len(y), dtype=torch.bool)
is_chosen[chosen] = True
x_train, y_train, x_test, y_test = x[chosen], y[chosen], x[~is_chosen], y[~is_chosen]

figure, axes = plt.subplots(2, 10, figsize=(9, 2.2), layout="constrained")
for axis, image, digit in zip(axes.T.flat, x_train, y_train, strict=True):
    axis.imshow(image[0].numpy(), cmap="gray_r")
    axis.set_axis_off()
    axis.set_title(str(digit.item() + 5))
_ = figure.suptitle("The 20 training examples and their labels")

# %% [markdown]
# ## A new last layer, and frozen layers below
#
# Replace the last layer, and turn off `requires_grad` for all the others. Then no gradient is
# computed for them.

# %%
model[-1] = nn.Linear(24, 5)
body, head = model[:-1], model[-1]
body.requires_grad_(False)
trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
print(f"{trained} of {sum(p.numel() for p in model.parameters())} parameters are trained")

# %% [markdown]
# A batch norm has state that is no parameter: in training mode it changes its running mean and
# variance, whether its weights are frozen or not. So a frozen body has to be in evaluation mode
# too. `train` takes the modules that are to be in training mode.


# %%
def train(model, in_training, lr, updates=150):
    """The accuracy on the test data, every 10 updates."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=lr)

    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    curve = [accuracy(model, x_test, y_test)]
    for i in range(updates):
        if i % 10 == 0:
            model.eval()
            in_training.train()
        rows = torch.randint(len(y_train), (16,))
        step(x_train[rows], y_train[rows])
        if i % 10 == 9:
            curve.append(accuracy(model, x_test, y_test))
    return curve


curves = {"new last layer only": train(model, head, lr=0.03)}

# %% [markdown]
# ## All layers
#
# The frozen layers have learned what tells 0 to 4 apart, and that is not all that 5 to 9 need. So
# also train all layers, from the file on: with `strict=False`, `load_state_dict` takes what is
# there, here everything but the last layer, and tells what is missing.

# %%
whole = network(5)
body_state = {k: v for k, v in checkpoint["model"].items() if not k.startswith("12.")}
print(whole.load_state_dict(body_state, strict=False))

curves["all layers"] = train(whole, whole, lr=0.003)

# %% [markdown]
# For comparison, the same network without the file:

# %%
scratch = network(5)
curves["from scratch"] = train(scratch, scratch, lr=0.003)

figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
for name, curve in curves.items():
    axis.plot(range(0, 10 * len(curve), 10), [100 * accuracy for accuracy in curve], label=name)
    print(f"{name:20} {curve[2]:.1%} after 20 updates, {curve[-1]:.1%} after 150")
axis.set(title="Digits 5 to 9 from 20 examples", ylim=(0, 100))
axis.set(xlabel="updates", ylabel="accuracy on the test data (%)")
_ = axis.legend()

# %% [markdown]
# With all layers, the file gives a head start: see the accuracy after 20 updates. In the end
# little of it is left, since digits of 8 x 8 pixels are an easy task. The new last layer alone is
# limited by what the layers below see.
#
# ## What stayed as it was
#
# The frozen layers have no gradients, and hold what the file holds, the statistics of the batch
# norms included.

# %%
state = model.state_dict()
unchanged = [name for name, value in body_state.items() if torch.equal(state[name], value)]
print(f"{len(unchanged)} of {len(body_state)} entries of the body are unchanged")
print("a gradient of the first layer:", model[0].weight.grad)

# %% [markdown]
# ## Back to PyTorch
#
# For names that end in `.pt` or `.pth`, `torch.save` writes the format of PyTorch. There
# `torch.load("digits_5_to_9.pt")` gives the same dict. (Other names get the format of
# safetensors, which PyTorch's users load by `safetensors.torch.load_file`.)

# %%
path = pathlib.Path(tempfile.mkdtemp()) / "digits_5_to_9.pt"
torch.save({"epoch": 1, "model": model.state_dict()}, path)

again = network(5)
again.load_state_dict(torch.load(path)["model"])
with torch.no_grad():
    difference = (again.eval()(x_test) - model.eval()(x_test)).abs().max().item()
print(f"{path.stat().st_size / 1000:.0f} kB; largest difference after loading: {difference}")

# %% [markdown]
# ## Check

# %%
assert accuracy_old > 0.99
assert len(unchanged) == len(body_state) and model[0].weight.grad is None
assert curves["new last layer only"][-1] > 0.3  # 0.2 by guessing
assert curves["all layers"][2] > curves["from scratch"][2] + 0.05
assert curves["all layers"][-1] > 0.75
assert difference == 0
