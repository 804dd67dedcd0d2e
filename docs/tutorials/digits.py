# %% [markdown]
# # Digits: data, a network and a compiled training step
#
# This tutorial trains a small convolutional network to read handwritten digits. It teaches how a
# `Dataset` and a `DataLoader` give batches, how a whole training step becomes one compiled program,
# and how to look at what the network gets wrong.
#
# You need to know Python and NumPy, and what a gradient is. The data comes with scikit-learn.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad.utils.data import DataLoader, Dataset

# %% [markdown]
# ## The data
#
# There are 1,797 images of 8 x 8 pixels, with values from 0 to 16. A network trains best on numbers
# near 1, so they are divided by 16.

# %%
images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8)
print(images.shape, images.dtype, labels.shape, labels.dtype)

figure, axes = plt.subplots(2, 8, figsize=(8, 2.4), layout="constrained")
for axis, image, label in zip(axes.flat, images, labels, strict=False):
    axis.imshow(image[0], cmap="gray_r")
    axis.set_title(str(label), fontsize=9)
    axis.axis("off")

# %% [markdown]
# A `Dataset` says how many samples there are, and gives the one with number `index`. This one can
# also move the image by up to one pixel, as if the writer had written elsewhere. Such moved copies
# are new samples for the network, and cost nothing.


# %%
class Digits(Dataset):
    def __init__(self, images, labels, moved=False):
        self.images, self.labels, self.moved = images, labels, moved
        self.draw = np.random.default_rng(0)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if self.moved:
            down, right = self.draw.integers(0, 3, 2)
            image = np.pad(image, ((0, 0), (1, 1), (1, 1)))[:, down : down + 8, right : right + 8]
        return image, self.labels[index]


# %% [markdown]
# 360 images are held out: the network never trains on them, and they tell how well it reads digits
# that it has not seen.

# %%
torch.manual_seed(0)
order = np.random.default_rng(0).permutation(len(images))
held_out, training = order[:360], order[360:]
training_set = Digits(images[training], labels[training], moved=True)
held_out_set = Digits(images[held_out], labels[held_out])
print(len(training_set), "to train on,", len(held_out_set), "held out")

# %% [markdown]
# A `DataLoader` makes batches of the samples: tensors with one more dimension at the front. It
# shuffles the training set anew in each epoch. `drop_last=True` leaves out the last batch of an
# epoch if it is smaller, so that all batches have one shape and the step is compiled once.

# %%
batches = DataLoader(training_set, batch_size=64, shuffle=True, drop_last=True)
x, y = next(iter(batches))
print(x.shape, x.dtype, y.shape, y.dtype)

# %% [markdown]
# ## The network
#
# Two convolutions look for strokes, `max_pool2d` keeps the strongest answer of each 2 x 2 square,
# and a linear layer turns what is left into ten scores, one for each digit.


# %%
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(1, 16, 3, padding=1)
        self.second = torch.nn.Conv2d(16, 32, 3, padding=1)
        self.drop = torch.nn.Dropout(0.2)
        self.last = torch.nn.Linear(32 * 4 * 4, 10)

    def forward(self, x):
        x = F.relu(self.first(x))
        x = F.max_pool2d(F.relu(self.second(x)), 2)
        return self.last(self.drop(x.flatten(1)))


model = Network()
print(sum(parameter.numel() for parameter in model.parameters()), "parameters")

# %% [markdown]
# ## The step
#
# A step clears the gradients, computes the loss, runs it backward and updates the parameters. Under
# `torch.compile` all of this is one program of XLA. Each call uses the current parameters and state
# of the optimizer, and updates them afterwards.

# %%
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
EPOCHS = 15
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=1e-2, total_steps=EPOCHS * len(batches), cycle_momentum=False
)


@torch.compile
def step(x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


# %% [markdown]
# The scheduler raises the learning rate and then lowers it again. It is stepped outside, between
# two calls: the learning rate is an input of the program, so a new one needs no new program.
#
# To judge the network, put it into evaluation mode, in which `Dropout` does nothing. `no_grad`
# saves the work of recording a graph.


# %%
@torch.no_grad()
def scores_of(images):
    model.eval()
    scores = model(torch.as_tensor(images))
    model.train()
    return scores


def accuracy(dataset):
    predicted = scores_of(dataset.images).argmax(1)
    return (predicted == torch.as_tensor(dataset.labels)).float().mean().item()


# %% [markdown]
# ## Training
#
# The loop keeps the losses as tensors. `item()` would wait for each step to end; the losses are
# read after the loop instead.

# %%
losses, accuracies = [], []
for epoch in range(EPOCHS):
    for x, y in batches:
        losses.append(step(x, y))
        scheduler.step()
    accuracies.append(accuracy(held_out_set))
    if epoch % 5 == 4:
        recent = torch.stack(losses[-len(batches) :]).mean().item()
        print(f"epoch {epoch + 1:2}: loss {recent:.4f}, held out {accuracies[-1]:.1%}")
losses = torch.stack(losses).numpy()

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(losses, linewidth=0.6, alpha=0.5, label="each step")
smooth = np.convolve(losses, np.ones(22) / 22, "valid")
left.plot(np.arange(21, len(losses)), smooth, label="mean of 22 steps")
left.set(xlabel="step", ylabel="training loss (nats)", yscale="log", title="Loss")
left.legend()
right.plot(range(1, EPOCHS + 1), [100 * accuracy for accuracy in accuracies], marker="o")
right.set(xlabel="epoch", ylabel="held-out accuracy (%)", title="Accuracy")
right.axhline(97, color="gray", linestyle=":", label="97 %")
_ = right.legend()

# %% [markdown]
# ## What it gets wrong
#
# The confusion matrix counts, for each true digit (row), what the network read (column). The pairs
# `10 * true + read` are numbers from 0 to 99, so `bincount` counts them.

# %%
predicted = scores_of(held_out_set.images).argmax(1)
true = torch.as_tensor(held_out_set.labels)
confusion = torch.bincount(10 * true + predicted, minlength=100).view(10, 10)
print("right:", confusion.diagonal().sum().item(), "of", confusion.sum().item())

figure, axis = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
picture = axis.imshow(np.log1p(confusion.numpy()), cmap="Blues")
for row in range(10):
    for column in range(10):
        count = confusion[row, column].item()
        if count:
            color = "white" if row == column else "black"
            axis.text(column, row, str(count), ha="center", va="center", color=color)
axis.set(xticks=range(10), yticks=range(10), xlabel="read as", ylabel="true digit")
_ = axis.set_title("Held-out images (count)")

# %% [markdown]
# These are the images with the largest loss, with the true digit and what was read.

# %%
each_loss = F.cross_entropy(scores_of(held_out_set.images), true, reduction="none")
worst = each_loss.topk(8).indices

figure, axes = plt.subplots(1, 8, figsize=(9, 1.7), layout="constrained")
for axis, number in zip(axes, worst.tolist(), strict=True):
    axis.imshow(held_out_set.images[number, 0], cmap="gray_r")
    axis.set_title(f"{true[number].item()} as {predicted[number].item()}", fontsize=9)
    axis.axis("off")

# %% [markdown]
# ## Checks
#
# More than 97 % of the digits that the network has not seen are read correctly, and the loss has
# fallen far below `log(10)`, that of a guess.

# %%
assert accuracies[-1] > 0.97
assert losses[-22:].mean() < 0.1 * np.log(10)
print(f"held out: {accuracies[-1]:.1%}")
