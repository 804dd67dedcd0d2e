"""Attention on a CPU: that of jaxgrad compiled, products and a softmax under `jax.jit`, and that of
torch, in turns: `python tests/benchmarks/attention.py`.
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import functools
import time

import figures
import jax
import jax.numpy as jnp
import numpy as np

import jaxgrad

try:
    import torch
except ImportError:
    torch = None

ROUNDS = figures.rounds(5, 2)
# batch, heads, length, features; whether causal
ROWS = (
    *(((8, 4, 64, 16), False), ((8, 8, 128, 64), False), ((2, 8, 256, 64), False)),
    *(((8, 8, 256, 64), False), ((4, 8, 512, 64), False), ((4, 8, 512, 64), True)),
    *(((1, 8, 1024, 64), False), ((1, 8, 1024, 64), True)),
    *(((1, 4, 4096, 64), False), ((1, 4, 4096, 64), True)),
)
LENGTHS = (1024, 4096, 16384)
SHAPE = "batch, heads, length, features"


def composed(q, k, v, causal):
    scores = q @ k.swapaxes(-2, -1) / q.shape[-1] ** 0.5
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
    return jax.nn.softmax(scores) @ v


def with_gradients(function):
    """A function of JAX for the value of the sum and the gradients."""
    return jax.value_and_grad(lambda *qkv: function(*qkv).sum(), (0, 1, 2))


def script(module, causal, gradients):
    """A function of tensors of jaxgrad or torch."""
    attention = module.nn.functional.scaled_dot_product_attention

    def run(*qkv):
        if not gradients:
            return attention(*qkv, is_causal=causal)
        leaves = [tensor.detach().requires_grad_() for tensor in qkv]
        attention(*leaves, is_causal=causal).sum().backward()
        return [leaf.grad for leaf in leaves]

    return run


def calls(shape, causal, gradients):
    """By subject a function that waits for its result."""
    draw = np.random.default_rng(0)
    arrays = [draw.standard_normal(shape).astype(np.float32) for _ in range(3)]
    by_hand = functools.partial(composed, causal=causal)
    by_hand = jax.jit(with_gradients(by_hand) if gradients else by_hand)
    ours = jaxgrad.jit(script(jaxgrad, causal, gradients))
    tensors, plain = [jaxgrad.tensor(array) for array in arrays], list(map(jnp.asarray, arrays))
    by_subject = {
        "jaxgrad": lambda: jax.block_until_ready(jax.tree.leaves(ours(*tensors))),
        "composed": lambda: jax.block_until_ready(by_hand(*plain)),
    }
    if torch is not None:
        of_torch = script(torch, causal, gradients)
        by_subject["torch"] = functools.partial(of_torch, *map(torch.tensor, arrays))
    return by_subject


def least(functions):
    """The least milliseconds of each, in turns."""
    best = {}
    for turn in range(-1, ROUNDS):
        for name, function in functions.items():
            begun = time.perf_counter()
            function()
            taken = (time.perf_counter() - begun) * 1e3
            best[name] = min(best.get(name, taken), taken) if turn > 0 else taken
    return best


def measure(shape, causal):
    row = ", ".join(map(str, shape)) + ", causal" * causal
    for title, gradients in (("The value", False), ("Value and gradients", True)):
        best = least(calls(shape, causal, gradients))
        print(f"{row:<24}{title:<22}", *[f"{k} {v:8.2f} ms" for k, v in best.items()], flush=True)
        figures.note("l", f"{title}: {SHAPE}", "ms", "torch", {row: best})


def memory(length):
    """The temporary memory of the gradients, as XLA reports it, in MiB."""
    shape = (1, 4, length, 64)
    ours = jaxgrad.jit(script(jaxgrad, False, True))
    plain = jax.jit(with_gradients(functools.partial(composed, causal=False)))
    abstract = [jax.ShapeDtypeStruct(shape, jnp.float32)] * 3
    lowered = ours.lower(*[jaxgrad.zeros(shape)] * 3), plain.lower(*abstract)
    sizes = [program.compile().memory_analysis().temp_size_in_bytes / 2**20 for program in lowered]
    amounts = dict(zip(("jaxgrad", "composed"), sizes, strict=True))
    print(f"{length:>6}", *[f"{name} {size:.0f} MiB" for name, size in amounts.items()], flush=True)
    figures.note(
        "l",
        "Temporary memory of the gradients",
        "MiB",
        "composed",
        {f"4 heads, length {length}": amounts},
    )


if __name__ == "__main__":
    for row in ROWS:
        measure(*row)
    for length in LENGTHS:
        memory(length)
