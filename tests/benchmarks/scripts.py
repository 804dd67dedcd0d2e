"""Whole training scripts, as users of PyTorch write them: how long one waits from the imports to
the last step. Each runs in a process of its own: by torch with one thread, by jaxgrad, and by
jaxgrad with the step under `torch.jit`.

    python tests/benchmarks/scripts.py [NAME ...]
    python tests/benchmarks/scripts.py NAME --by SUBJECT    # this process, as JSON

A script gives its step and the arrays of its batches. LBFGS decides from values how often it asks
for the loss, so `torch.jit` compiles its closure. Weights, batches and noise come from NumPy,
so all subjects do the same work, and the last losses must agree within rounding.
"""

import argparse
import importlib
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import figures
import numpy as np
from tutorials import failure

EARLY = 32  # a structure of operators is compiled after so many repetitions
ROUNDS = figures.rounds(3, 1)
SUBJECTS = ("torch", "jaxgrad", "jaxgrad, compiled")
UNIT = {"whole": "s", "again": "s"}


def initialized(torch, model, draw):
    """Give weights and buffers that a library draws at random numbers from NumPy."""
    named = [*model.named_parameters(), *model.named_buffers()]
    with torch.no_grad():
        for name, tensor in sorted(named, key=lambda pair: pair[0]):
            shape = tuple(tensor.shape)
            if len(shape) > 1:
                numbers = draw.standard_normal(shape) / math.sqrt(math.prod(shape[1:]))
            elif name.endswith(("_u", "_v")):  # of spectral norm
                numbers = draw.standard_normal(shape)
                numbers /= np.linalg.norm(numbers)
            elif "bias" in name:
                numbers = np.zeros(shape)
            else:
                continue
            tensor.copy_(torch.from_numpy(numbers.astype(np.float32)))
    return model


def training_step(optimizer, loss_of):
    """The usual step: the loss of a batch, its gradients, and an update."""

    def step(*batch):
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def cnn(torch, draw, jit):
    """A convolutional network with batch norm, by SGD with momentum."""
    nn = torch.nn

    def block(channels_in, channels):
        convolution = nn.Conv2d(channels_in, channels, 3, padding=1)
        return convolution, nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(2)

    layers = (*block(3, 16), *block(16, 32), *block(32, 64), nn.Flatten(), nn.Linear(1024, 10))
    model = initialized(torch, nn.Sequential(*layers), draw)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def loss_of(images, labels):
        return nn.functional.cross_entropy(model(images), labels)

    labels = draw.integers(0, 10, (58, 32))
    centers = draw.standard_normal((10, 3, 32, 32))
    images = centers[labels] + draw.standard_normal((58, 32, 3, 32, 32))
    return jit(training_step(optimizer, loss_of)), zip(
        images.astype(np.float32), labels, strict=True
    )


def transformer(torch, draw, jit):
    """A language model with mixed precision, clipped gradients and AdamW."""
    nn, vocabulary, width, length = torch.nn, 128, 128, 24

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.positions = nn.Parameter(torch.zeros(1, length, width))
            layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(width, vocabulary)
            mask = nn.Transformer.generate_square_subsequent_mask(length)
            self.register_buffer("mask", mask, persistent=False)

        def forward(self, tokens):
            return self.head(self.layers(self.tokens(tokens) + self.positions, mask=self.mask))

    model = Model()
    mask = model.mask.clone()
    initialized(torch, model, draw).mask.copy_(mask)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(tokens):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    starts = draw.integers(0, vocabulary, (54, 6, 1))
    tokens = (starts + np.arange(length + 1) * draw.integers(1, 4, (54, 6, 1))) % vocabulary
    return jit(step), ((batch,) for batch in tokens)


def lstm(torch, draw, jit):
    """A classifier of sequences of various lengths, packed, by Adam."""
    nn, batch, vocabulary = torch.nn, 16, 100

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, 32, padding_idx=0)
            self.lstm = nn.LSTM(32, 64, batch_first=True)
            self.head = nn.Linear(64, 2)

        def forward(self, tokens, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(
                self.tokens(tokens), lengths, batch_first=True, enforce_sorted=False
            )
            _, (last, _) = self.lstm(packed)
            return self.head(last[-1])

    model = initialized(torch, Classifier(), draw)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def loss_of(tokens, lengths, labels):
        return nn.functional.cross_entropy(model(tokens, lengths), labels)

    def padded():
        lengths = draw.integers(5, 46, batch)
        tokens = draw.integers(1, vocabulary, (batch, lengths.max()))
        tokens[np.arange(lengths.max()) >= lengths[:, None]] = 0
        return tokens, lengths, (tokens[:, 0] > vocabulary // 2).astype(np.int64)

    return jit(training_step(optimizer, loss_of)), [padded() for _ in range(54)]


def vae(torch, draw, jit):
    """A variational autoencoder of small images, by Adam."""
    nn, pixels, latent = torch.nn, 196, 8

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(pixels, 128), nn.ReLU())
            self.mean, self.log_variance = nn.Linear(128, latent), nn.Linear(128, latent)
            self.decoder = nn.Sequential(
                nn.Linear(latent, 128), nn.ReLU(), nn.Linear(128, pixels), nn.Sigmoid()
            )

        def forward(self, images, noise):
            hidden = self.encoder(images)
            mean, log_variance = self.mean(hidden), self.log_variance(hidden)
            sample = mean + noise * torch.exp(0.5 * log_variance)
            return self.decoder(sample), mean, log_variance

    model = initialized(torch, VAE(), draw)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def loss_of(images, noise):
        decoded, mean, log_variance = model(images, noise)
        likelihood = nn.functional.binary_cross_entropy(decoded, images, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean**2 - log_variance.exp())
        return (likelihood + divergence) / len(images)

    images = draw.random((194, 32, 1)) * draw.random((1, 1, pixels))
    noise = draw.standard_normal((194, 32, latent))
    batches = (images.astype(np.float32), noise.astype(np.float32))
    return jit(training_step(optimizer, loss_of)), zip(*batches, strict=True)


def pinn(torch, draw, jit):
    """The heat equation by a network that knows it, whose second derivatives autograd computes."""
    nn = torch.nn
    layers = (nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    model = initialized(torch, nn.Sequential(*layers), draw)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=6, line_search_fn="strong_wolfe")

    def derivative(of, by):
        return torch.autograd.grad(of, by, torch.ones_like(of), create_graph=True)[0]

    @jit
    def evaluate(place, moment, begin):
        optimizer.zero_grad()
        heat = model(torch.cat([place, moment], 1))
        residual = derivative(heat, moment) - 0.1 * derivative(derivative(heat, place), place)
        at_begin = model(torch.cat([begin, torch.zeros_like(begin)], 1))
        misfit = at_begin - torch.sin(math.pi * begin)
        loss = (residual**2).mean() + (misfit**2).mean()
        loss.backward()
        return loss.detach()

    def step(place, moment, begin):
        inside = place.requires_grad_(), moment.requires_grad_()
        return optimizer.step(lambda: evaluate(*inside, begin))

    batch = [draw.random((128, 1)).astype(np.float32) for _ in range(3)]
    return step, [batch] * 12


def gan(torch, draw, jit):
    """A generator of points on a circle, and a discriminator with spectral norm."""
    nn, normed = torch.nn, torch.nn.utils.parametrizations.spectral_norm
    layers = (nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    generator = initialized(torch, nn.Sequential(*layers), draw)
    layers = (normed(nn.Linear(2, 64)), nn.LeakyReLU(0.2), normed(nn.Linear(64, 1)))
    discriminator = initialized(torch, nn.Sequential(*layers), draw)
    of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    judge = nn.BCEWithLogitsLoss()

    def step(real, noise):
        forged, true, false = generator(noise), torch.ones(len(real), 1), torch.zeros(len(real), 1)
        of_discriminator.zero_grad()
        loss = judge(discriminator(real), true) + judge(discriminator(forged.detach()), false)
        loss.backward()
        of_discriminator.step()
        of_generator.zero_grad()
        deceit = judge(discriminator(forged), true)
        deceit.backward()
        of_generator.step()
        return (loss + deceit).detach()

    angles = draw.random((144, 64)) * 2 * math.pi
    real = np.stack([np.cos(angles), np.sin(angles)], -1).astype(np.float32)
    noise = draw.standard_normal((144, 64, 8)).astype(np.float32)
    return jit(step), zip(real, noise, strict=True)


SCRIPTS = {script.__name__: script for script in (cnn, transformer, lstm, vae, pinn, gan)}
# how far the last losses may be from PyTorch's, in parts of it: bfloat16 has 8 bits, and 72
# iterations of LBFGS, which divide a loss by thousands, multiply what rounding leaves
ROUNDING = dict.fromkeys(SCRIPTS, 0.01) | {"transformer": 0.05, "pinn": 0.25}


def run(name, subject):
    """Run a script in this process. Gives what `figures_of` makes of its times."""
    library, _, mode = subject.partition(", ")
    torch = importlib.import_module(library)
    if library == "torch":  # what its optimizers import, in over a second
        importlib.import_module("torch._dynamo")
    torch.set_num_threads(1)
    begun, used, times = time.perf_counter(), time.process_time(), []
    jit = torch.jit if mode == "compiled" else lambda function: function
    step, batches = SCRIPTS[name](torch, np.random.default_rng(0), jit)
    for arrays in batches:
        begun_step = time.perf_counter()
        loss = step(*map(torch.from_numpy, arrays)).item()
        times.append((time.perf_counter() - begun_step) * 1e3)
    whole, used = time.perf_counter() - begun, time.process_time() - used
    return figures_of(times) | {"whole": whole, "processor": used, "loss": loss}


def figures_of(times):
    """The first step, medians, and the longest step after the first with its number, in ms."""
    longest = max(range(1, len(times)), key=times.__getitem__)
    later = {"later steps": statistics.median(times[EARLY:])} if times[EARLY:] else {}
    return {
        "first step": times[0],
        f"steps 2 to {EARLY}": statistics.median(times[1:EARLY]),
        **later,
        "longest step": times[longest],
        "its number": longest + 1,
    }


def measured(name, subject):
    """The run of the least whole time of some in new processes, with `again`, the least whole time
    of a second process with what the first one has kept; or why there is none, as a str.
    """
    command, pairs = [sys.executable, __file__, name, "--by", subject], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            kept, pair = os.environ | {"JAXGRAD_CACHE": folder}, []
            for _ in range(2):
                child = subprocess.run(command, capture_output=True, text=True, env=kept)
                if child.returncode:
                    return failure(child.stderr)
                pair.append(json.loads(child.stdout.splitlines()[-1]))
        pairs.append(pair)
    first = min((first for first, _ in pairs), key=lambda figures: figures["whole"])
    return first | {"again": min(second["whole"] for _, second in pairs)}


def scripts(names=()):
    """Print and note the figures of each script; torch only where it is installed."""
    has_torch = importlib.util.find_spec("torch") is not None
    print(f"(w) training scripts in new processes, the least whole time of {ROUNDS}; steps in ms")
    for name in names or SCRIPTS:
        expected = None
        for subject in SUBJECTS[not has_torch :]:
            result = measured(name, subject)
            if isinstance(result, str):
                print(f"    {name:<12}{subject:<18} does not run: {result}", flush=True)
                continue
            line = "  ".join(f"{what} {value:.4g}" for what, value in result.items())
            print(f"    {name:<12}{subject:<18} {line}", flush=True)
            expected = result["loss"] if expected is None else expected
            error = abs(result["loss"] - expected)
            assert error <= ROUNDING[name] * abs(expected), f"{name}: {subject} does other work"
            note(name, subject, result)


def note(name, subject, result):
    titles = {"whole": "A whole script", "again": "A whole script, the second run"}
    titles |= {"first step": "The first step of a script"}
    titles |= {"later steps": f"A step after {EARLY}", "longest step": "The longest later step"}
    for what, title in titles.items():
        if what in result:
            row = {name: {subject: result[what]}}
            figures.note("w", title, UNIT.get(what, "ms"), "torch", row)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*SCRIPTS, []], metavar="NAME")
    parser.add_argument("--by", choices=SUBJECTS, help="run one script here, and print JSON")
    options = parser.parse_args()
    if options.by:
        print(json.dumps(run(options.names[0], options.by)))
    else:
        scripts(options.names)
