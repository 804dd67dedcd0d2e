# %% [markdown]
# # A language model that stops and goes on
#
# This tutorial trains a small transformer to write English one character at a time. It teaches how
# to save everything that a training run needs to go on (model, optimizer, scheduler, random state,
# place in the data), checks that the run that goes on has the same losses to the bit, and draws
# text from the model.
#
# You need to know what a training step is ([Digits](digits.md) shows one), and roughly what
# attention does.

# %%
import importlib
import inspect
import math
import pathlib
import tempfile
import zlib
from collections import Counter

import matplotlib.pyplot as plt

import jaxgrad as torch
import jaxgrad.nn.functional as F

# %% [markdown]
# jaxgrad leaves the first calls of a program to NumPy, and later ones to XLA, which rounds in other
# places. A run that goes on counts from its own start. So that both runs have the same bits, XLA
# makes all calls here. PyTorch has no such choice.

# %%
if hasattr(torch, "set_eager"):
    torch.set_eager("compiled")

# %% [markdown]
# ## The text
#
# The text is on your disk already: the docstrings of Python's own modules, in a mixed order. A
# character is a number, its place in the sorted list of all characters. Rare characters
# become a question mark.

# %%
MODULES = (
    *("argparse", "ast", "calendar", "collections", "configparser", "contextlib", "copy", "csv"),
    *("dataclasses", "datetime", "decimal", "difflib", "doctest", "enum", "fractions", "functools"),
    *("heapq", "inspect", "io", "json", "locale", "logging", "os", "pathlib", "pprint", "queue"),
    *("random", "re", "shutil", "socket", "statistics", "string", "subprocess", "tarfile"),
    *("tempfile", "textwrap", "threading", "tokenize", "trace", "traceback", "unittest", "uuid"),
)


def documentation(name):
    """The docstrings of the functions, classes and methods of a module."""
    module = importlib.import_module(name)
    public = [value for key, value in sorted(vars(module).items()) if key[0] != "_"]
    classes = [member for member in public if inspect.isclass(member)]
    methods = [value for kind in classes for value in vars(kind).values()]
    return [inspect.getdoc(member) for member in (*public, *methods) if callable(member)]


texts = dict.fromkeys(text for name in MODULES for text in documentation(name) if text)
texts = sorted(texts, key=lambda text: zlib.crc32(text.encode()))  # mixed, and always the same
text = "\n\n".join(texts)
counts = Counter(text)
characters = sorted({character for character, count in counts.items() if count > 20} | {"?"})
number_of = {character: number for number, character in enumerate(characters)}
tokens = torch.tensor([number_of.get(character, number_of["?"]) for character in text])
training, held_out = tokens[: len(tokens) * 9 // 10], tokens[len(tokens) * 9 // 10 :]
print(f"{len(tokens):,} characters, {len(characters)} different ones")
print(text[:200])

# %% [markdown]
# ## Batches that know where they are
#
# The training text is cut into pieces. Each epoch takes them in a new order, which follows from the
# number of the epoch alone. So two numbers say where a run is: the epoch, and the place in it.
# `state_dict` and `load_state_dict` are the names that PyTorch uses for such a thing.

# %%
LENGTH, BATCH = 48, 20


class Batches:
    def __init__(self, tokens):
        count = (len(tokens) - 1) // LENGTH
        self.x = tokens[: count * LENGTH].view(count, LENGTH)
        self.y = tokens[1 : count * LENGTH + 1].view(count, LENGTH)
        self.start(0)

    def start(self, epoch, place=0):
        self.epoch, self.place = epoch, place
        self.order = torch.randperm(len(self.x), generator=torch.Generator().manual_seed(epoch))

    def next(self):
        if self.place + BATCH > len(self.x):
            self.start(self.epoch + 1)
        rows = self.order[self.place : self.place + BATCH]
        self.place += BATCH
        return self.x[rows], self.y[rows]

    def state_dict(self):
        return {"epoch": self.epoch, "place": self.place}

    def load_state_dict(self, state):
        self.start(**state)


x, y = Batches(training).next()
print(x.shape, "the targets are the next characters:", bool((x[:, 1:] == y[:, :-1]).all()))

# %% [markdown]
# ## The model
#
# A transformer: each block lets every character look at those before it (`is_causal=True`), then
# thinks about each place by itself. `Dropout` draws random numbers at each step, so a run that goes
# on needs the state of the generator.

# %%
WIDTH, HEADS, LAYERS = 64, 4, 2


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)
        self.drop = torch.nn.Dropout(0.02)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(seen.transpose(1, 2).flatten(2)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class LanguageModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.characters = torch.nn.Embedding(len(characters), WIDTH)
        self.places = torch.nn.Embedding(LENGTH, WIDTH)
        self.blocks = torch.nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, len(characters))
        torch.nn.init.normal_(self.characters.weight, std=0.1)
        torch.nn.init.normal_(self.places.weight, std=0.1)

    def forward(self, tokens):
        x = self.characters(tokens) + self.places.weight[: tokens.shape[1]]
        return self.head(self.norm(self.blocks(x)))


# %% [markdown]
# ## A run
#
# All that a run has is in one object. Its checkpoint is a dict: the state of each part, and the
# state of the random generator. `torch.save` writes it, and `torch.load` reads it.

# %%
STEPS, SAVED = 500, 400


class Run:
    def __init__(self):
        self.model = LanguageModel()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=8e-3)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=8e-3, total_steps=STEPS, cycle_momentum=False
        )
        self.batches = Batches(training)
        self.parts = {
            "model": self.model,
            "optimizer": self.optimizer,
            "scheduler": self.scheduler,
            "batches": self.batches,
        }
        self.step = torch.compile(self.uncompiled_step)

    def uncompiled_step(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x).flatten(0, 1), y.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()

    def train(self, steps):
        losses = []
        for _ in range(steps):
            losses.append(self.step(*self.batches.next()))
            self.scheduler.step()
        return torch.stack(losses).tolist()

    def save(self, path):
        state = {name: part.state_dict() for name, part in self.parts.items()}
        torch.save({**state, "random": torch.get_rng_state()}, path)

    def load(self, path):
        state = torch.load(path)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        torch.set_rng_state(state["random"])


# %% [markdown]
# This run makes 400 steps, saves, and makes the other 100 steps.

# %%
folder = tempfile.TemporaryDirectory()
path = pathlib.Path(folder.name, "checkpoint.pt")

torch.manual_seed(0)
run = Run()
losses = run.train(SAVED)
run.save(path)
losses += run.train(STEPS - SAVED)
print(f"{sum(p.numel() for p in run.model.parameters()):,} parameters,", end=" ")
print(f"checkpoint of {path.stat().st_size / 1e6:.1f} MB, loss {losses[0]:.3f} -> {losses[-1]:.3f}")

# %% [markdown]
# Another run, with other weights and another seed, loads the checkpoint and goes on. In practice it
# is in another process, after the first was stopped. Its losses are not only close: they are equal
# to the last bit, and so are the weights at the end.

# %%
torch.manual_seed(12345)
resumed = Run()
resumed.load(path)
losses_after = resumed.train(STEPS - SAVED)

assert losses_after == losses[SAVED:]
for one, other in zip(run.model.parameters(), resumed.model.parameters(), strict=True):
    assert torch.equal(one, other)
print(losses[SAVED : SAVED + 3], losses_after[:3])
folder.cleanup()

# %% [markdown]
# Each part matters. Without the state of the optimizer, the next update is a different one. Without
# the random state, other elements are dropped. Without the place, the next batch is another one.
#
# ## How good is it?
#
# The loss on text that was held out, in bits for each character. Two numbers to compare with: the
# loss of a uniform guess, and that of a guess from the frequencies of the characters.

# %%
model = run.model.eval()
pieces = Batches(held_out)
with torch.no_grad():
    scores = model(pieces.x[:200])
    loss = F.cross_entropy(scores.flatten(0, 1), pieces.y[:200].flatten()).item()
bits = loss / math.log(2)
shares = torch.bincount(tokens).double() / len(tokens)
by_frequency = -torch.special.xlogy(shares, shares).sum().item() / math.log(2)
by_guess = math.log2(len(characters))
print(f"{bits:.2f} bits; {by_frequency:.2f} by frequency, {by_guess:.2f} by guess")

figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
axis.plot([loss / math.log(2) for loss in losses], linewidth=0.8, label="training")
axis.plot(range(SAVED, STEPS), [loss / math.log(2) for loss in losses_after], ":", label="resumed")
axis.axhline(by_frequency, color="gray", linestyle="--", label="by frequency")
axis.axhline(bits, color="black", linewidth=0.8, label="held out, at the end")
axis.set(xlabel="step", ylabel="bits per character", title="Loss of the language model", ylim=0)
_ = axis.legend(fontsize=8)

# %% [markdown]
# ## Text from the model
#
# The model gives scores for the next character. `softmax` makes probabilities of them, and
# `multinomial` draws one. A lower temperature prefers what is likely. The window always has
# `LENGTH` characters, so that there is one program.


# %%
@torch.compile
def next_window(window, temperature):
    scores = model(window)[:, -1] / temperature
    drawn = torch.multinomial(scores.softmax(-1), 1)
    return torch.cat([window[:, 1:], drawn], 1)


@torch.no_grad()
def write(prompt, count, temperature):
    window = torch.tensor([[number_of[character] for character in prompt.rjust(LENGTH)]])
    temperature, written = torch.tensor(temperature), []
    for _ in range(count):
        window = next_window(window, temperature)
        written.append(window[0, -1])
    return prompt + "".join(characters[number] for number in torch.stack(written).tolist())


torch.manual_seed(3)
print(write("Return the ", 400, temperature=0.6))

# %% [markdown]
# ## Checks

# %%
assert losses_after == losses[SAVED:]
assert bits < 0.8 * by_frequency
print(f"{bits:.2f} bits per character, and the run that went on has the same losses to the bit")
