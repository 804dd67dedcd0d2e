"""The benchmark of training steps (run.py): three networks, written for PyTorch and by hand in JAX.

A `Case` gives three ways to make a training step from the same initial weights. The steps by hand
use optax's Adam and `jax.value_and_grad`, donate what they overwrite, and multiply matrices as
`[b * s, d] @ w`, which is fastest on XLA's CPU backend.
"""

import dataclasses
import functools
import time
from collections.abc import Callable

import figures
import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxgrad
import jaxgrad.nn.functional

RATE = 1e-3
VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 256, 128, 4, 4, 64, 8


@dataclasses.dataclass
class Case:
    """One network. `model(torch)` makes it with PyTorch's names; `loss` computes its loss by hand
    from a dict of arrays with the names of its parameters; `batch` is two arrays. channels_last:
    whether `loss` wants images (batch, height, width, channels), and kernels (height, width, in,
    out).
    """

    model: Callable
    loss: Callable
    batch: tuple
    channels_last: bool = False


# ---- a transformer


def transformer(torch):
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.register_buffer("mask", torch.ones(LENGTH, LENGTH).tril().bool())

        def forward(self, x):
            b, s, d = x.shape
            qkv = self.qkv(x).view(b, s, 3, HEADS, d // HEADS)
            q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
            scores = q @ k.transpose(-2, -1) / (d // HEADS) ** 0.5
            scores = scores.masked_fill(~self.mask, float("-inf"))
            output = scores.softmax(-1) @ v
            return self.out(output.transpose(1, 2).reshape(b, s, d))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attention = Attention()
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            x = x + self.attention(self.first(x))
            return x + self.down(F.gelu(self.up(self.second(x))))

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.positions = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens):
            x = self.tokens(tokens) + self.positions
            for block in self.blocks:
                x = block(x)
            return self.head(self.last(x)).flatten(0, 1)

    return Transformer()


def linear(weights, name, x):
    flat = x.reshape(-1, x.shape[-1]) @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return flat.reshape(*x.shape[:-1], -1)


def layer_norm(weights, name, x, epsilon=1e-5):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    x = (x - mean) * jax.lax.rsqrt(variance + epsilon)
    return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def attend_heads(qkv, heads, is_causal):
    b, s, d = *qkv.shape[:2], qkv.shape[2] // 3
    q, k, v = qkv.reshape(b, s, 3, heads, d // heads).transpose(2, 0, 3, 1, 4)
    scores = q @ k.swapaxes(-2, -1) / (d // heads) ** 0.5
    if is_causal:
        scores = jnp.where(jnp.tril(jnp.ones((s, s), bool)), scores, -jnp.inf)
    output = jax.nn.softmax(scores) @ v
    return output.swapaxes(1, 2).reshape(b, s, d)


def attend(weights, name, x):
    output = attend_heads(linear(weights, f"{name}.qkv", x), HEADS, is_causal=True)
    return linear(weights, f"{name}.out", output)


def cross_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def transformer_loss(weights, tokens, labels):
    x = weights["tokens.weight"][tokens] + weights["positions"]
    for number in range(LAYERS):
        name = f"blocks.{number}"
        x = x + attend(weights, f"{name}.attention", layer_norm(weights, f"{name}.first", x))
        inner = linear(weights, f"{name}.up", layer_norm(weights, f"{name}.second", x))
        x = x + linear(weights, f"{name}.down", jax.nn.gelu(inner, approximate=False))
    logits = linear(weights, "head", layer_norm(weights, "last", x))
    return cross_entropy(logits.reshape(-1, VOCABULARY), labels)


# ---- a small convolutional network


def cnn(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def convolve(weights, name, x):
    x = jax.lax.conv_general_dilated(x, weights[f"{name}.weight"], (1, 1), "SAME")
    return x + weights[f"{name}.bias"][:, None, None]


def max_pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def cnn_loss(weights, images, labels):
    x = max_pool(jax.nn.relu(convolve(weights, "0", images)))
    x = max_pool(jax.nn.relu(convolve(weights, "3", x)))
    x = jax.nn.relu(linear(weights, "7", x.reshape(len(x), -1)))
    return cross_entropy(linear(weights, "9", x), labels)


# ---- a language model of two LSTM layers

STEPS, SEQUENCES, HIDDEN = 64, 16, 256


def language_model(torch):
    nn = torch.nn

    class LanguageModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.head = nn.Embedding(VOCABULARY, HIDDEN), nn.Linear(HIDDEN, VOCABULARY)
            self.layers = nn.LSTM(HIDDEN, HIDDEN, 2)

        def forward(self, tokens):
            return self.head(self.layers(self.tokens(tokens))[0]).flatten(0, 1)

    return LanguageModel()


def lstm(weights, number, x):
    """One layer: the gates of all inputs at once, then a scan over the states."""
    of_input, of_hidden = (weights[f"layers.weight_{name}_l{number}"] for name in ("ih", "hh"))
    bias = weights[f"layers.bias_ih_l{number}"] + weights[f"layers.bias_hh_l{number}"]

    def step(state, gates):
        hidden, cell = state
        i, f, g, o = jnp.split(gates + hidden @ of_hidden.T, 4, -1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zeros = jnp.zeros((x.shape[1], of_hidden.shape[1]))
    return jax.lax.scan(step, (zeros, zeros), x @ of_input.T + bias)[1]


def language_model_loss(weights, tokens, labels):
    x = lstm(weights, 1, lstm(weights, 0, weights["tokens.weight"][tokens]))
    return cross_entropy(linear(weights, "head", x).reshape(-1, VOCABULARY), labels)


def cases():
    draw = np.random.default_rng(0)
    tokens = draw.integers(0, VOCABULARY, (2, BATCH, LENGTH))
    images = draw.standard_normal((32, 1, 28, 28)).astype(np.float32)
    words = draw.integers(0, VOCABULARY, (2, STEPS, SEQUENCES))
    return {
        "transformer": Case(transformer, transformer_loss, (tokens[0], tokens[1].reshape(-1))),
        "cnn": Case(cnn, cnn_loss, (images, draw.integers(0, 10, 32))),
        "lstm": Case(language_model, language_model_loss, (words[0], words[1].reshape(-1))),
    }


# ---- the ways to train it


def initial_weights(case) -> dict:
    jaxgrad.manual_seed(0)
    model = case.model(jaxgrad)
    return {name: value.detach().numpy() for name, value in model.named_parameters()}


def script(torch, case, weights, **options):
    """The step of an ordinary PyTorch script, and its batch."""
    model = case.model(torch)
    model.load_state_dict(
        {name: torch.tensor(value) for name, value in weights.items()}, strict=False
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, **options)

    def step(x, y):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, tuple(map(torch.tensor, case.batch))


def by_hand(case, weights):
    """The same step as a pure function, its weights, and its batch."""
    optimizer = optax.adam(RATE)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(weights, state, x, y):
        loss, gradients = jax.value_and_grad(case.loss)(weights, x, y)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(weights, updates), state, loss

    arrays, batch = weights, case.batch
    if case.channels_last:
        arrays = {
            name: value.transpose(2, 3, 1, 0) if value.ndim == 4 else value
            for name, value in weights.items()
        }
        batch = case.batch[0].transpose(0, 2, 3, 1), case.batch[1]
    # copies: what is on a CPU may be shared with NumPy, and is donated
    return step, jax.tree.map(jnp.array, arrays), tuple(map(jnp.asarray, batch))


# ---- measuring


def first_calls(case, weights):
    """Seconds of the first calls, functions for further calls, and bytes of temporary memory.

    Each is a pair: jaxgrad and by hand. A first call also makes the state of Adam.
    """
    jax.clear_caches()
    step, batch = script(jaxgrad, case, weights)
    compiled = jaxgrad.jit(step)
    begun = time.perf_counter()
    loss = jax.block_until_ready(compiled(*batch)._array)
    ours = time.perf_counter() - begun
    jax.clear_caches()
    plain, arrays, inputs = by_hand(case, weights)
    begun = time.perf_counter()
    state = [arrays, optax.adam(RATE).init(arrays)]
    *state, expected = jax.block_until_ready(plain(*state, *inputs))
    hand = time.perf_counter() - begun
    np.testing.assert_allclose(loss, expected, rtol=1e-5)

    def next_by_hand():
        *state[:], loss = plain(*state, *inputs)
        jax.block_until_ready(loss)

    def next_of_ours():
        jax.block_until_ready(compiled(*batch)._array)

    programs = compiled.lower(*batch).compile(), plain.lower(*state, *inputs).compile()
    temporary = [program.memory_analysis().temp_size_in_bytes for program in programs]
    return (ours, hand), (next_of_ours, next_by_hand), temporary


def torch_steps(case, weights) -> dict:
    """The same script in torch, plain and with the model compiled; empty without torch."""
    try:
        import torch
    except ImportError:
        return {}
    steps = {"torch": script(torch, case, weights)}
    compiled = dataclasses.replace(case, model=lambda torch: torch.compile(case.model(torch)))
    try:
        step, batch = script(torch, compiled, {f"_orig_mod.{k}": v for k, v in weights.items()})
        step(*batch)
        steps["torch.compile"] = step, batch
    except Exception as error:  # torch.compile needs a C++ compiler
        print(f"    torch.compile: {type(error).__name__}")
    return {name: functools.partial(step, *batch) for name, (step, batch) in steps.items()}


def training(least_of, cases, rounds=3, section="h", names=None):
    print(f"({section}) training steps with Adam under jaxgrad.jit, to JAX and optax by hand")
    for name, case in cases().items():
        if names is not None and name not in names:
            continue
        weights = initial_weights(case)
        repeated = range(figures.rounds(rounds, 1))
        measured = [first_calls(case, weights) for _ in repeated]
        ours, hand = (min(times) for times in zip(*[run[0] for run in measured], strict=True))
        _, calls, temporary = measured[-1]
        others = torch_steps(case, weights)
        times = [t / 1e3 for t in least_of([*calls, *others.values()], repetitions=40)]
        measures = {
            "a step, ms": times[:2],
            "the first call, s": (ours, hand),
            "temporary memory, MB": [size / 1e6 for size in temporary],
        }
        for what, (jaxgrads, other) in measures.items():
            print(f"    {name:<14}{what:<24}{jaxgrads:10.2f}{other:10.2f}{jaxgrads / other:8.3f}")
        for other, duration in zip(others, times[2:], strict=True):
            print(f"    {name:<14}{other + ', ms':<32}{duration:12.2f}")
        note(section, name, measures, dict(zip(others, times[2:], strict=True)))


def note(section, name, measures, others):
    """`measures`: by what is measured and its unit the figures of jaxgrad and by hand."""
    for what, (jaxgrads, other) in measures.items():
        title, _, unit = what.rpartition(", ")
        values = {"jaxgrad": jaxgrads, "JAX by hand": other} | (others if title == "a step" else {})
        figures.note(section, title.capitalize(), unit, "JAX by hand", {name: values})


def overhead(least_of):
    """Prints what a call costs beyond its program.

    It compares a step of SGD over small parameters with a call of `jax.jit` that has as many arrays
    in and out.
    """
    print("(i) what a call of jaxgrad.jit costs beyond one of jax.jit, us")
    for count in (1, 20, 100, 300):
        parameters = [jaxgrad.randn(4).requires_grad_() for _ in range(count)]
        optimizer, x = jaxgrad.optim.SGD(parameters, lr=0.1), jaxgrad.randn(4)

        def loss(parameters, x):
            return sum((parameter * x).sum() for parameter in parameters)

        @jaxgrad.jit
        def step(x, parameters=parameters, optimizer=optimizer):
            optimizer.zero_grad()
            value = loss(parameters, x)
            value.backward()
            optimizer.step()
            return value.detach()

        @functools.partial(jax.jit, donate_argnums=0)
        def plain(arrays, x):
            value, gradients = jax.value_and_grad(loss)(arrays, x)
            after = [a - 0.1 * g for a, g in zip(arrays, gradients, strict=True)]
            return after, gradients, value

        kept = [[jnp.array(parameter._array) for parameter in parameters], None]

        def by_hand(array=x._array, kept=kept, plain=plain):
            kept[0], kept[1], _ = plain(kept[0], array)

        ours, hand = least_of([functools.partial(step, x), by_hand], repetitions=400)
        print(
            f"    {count:4} parameters {ours:8.1f} {hand:8.1f} {ours - hand:8.1f}, to reach "
            f"{30 + 1.5 * count:.0f}"
        )
        chart = {f"{count} parameter{'s' * (count > 1)}": {"jaxgrad": ours, "JAX by hand": hand}}
        figures.note("i", "A call that computes almost nothing", "us", "JAX by hand", chart)
    of_new_tensors(least_of)


def of_new_tensors(least_of):
    """The same for a batch that NumPy has: both copy it, since its owner may write to it."""
    draw = np.random.default_rng(0)
    x, y = draw.standard_normal((32, 64)).astype(np.float32), draw.integers(0, 64, 32)

    def loss(x, y):
        return (x[:, 0] * y).sum()

    compiled, plain = jaxgrad.jit(loss), jax.jit(loss)
    calls = {
        "tensor() of both": lambda: (jaxgrad.tensor(x), jaxgrad.tensor(y)),
        "device_put of both": lambda: (jax.device_put(x.copy()), jax.device_put(y.copy())),
        "and a call": lambda: compiled(jaxgrad.tensor(x), jaxgrad.tensor(y)),
        "and a call, by hand": lambda: plain(jax.device_put(x.copy()), jax.device_put(y.copy())),
    }
    times = dict(zip(calls, least_of([*calls.values()], repetitions=400), strict=True))
    for name, duration in times.items():
        print(f"    {name:<20}{duration:8.1f}")
    pairs = zip([*times.values()][::2], [*times.values()][1::2], strict=True)
    names = "a new batch", "a new batch and a call"
    chart = {
        name: {"jaxgrad": jaxgrads, "JAX by hand": hand}
        for name, (jaxgrads, hand) in zip(names, pairs, strict=True)
    }
    figures.note("i", "A new batch from NumPy", "us", "JAX by hand", chart)
