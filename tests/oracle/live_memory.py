"""Random sequences of writes, views and changes of size on one memory, in PyTorch and in jaxgrad.

After each sequence all tensors have the same values, shapes, strides and offsets in both, or the
same step has raised.
"""

import random

import pytest
import torch
from oracle.seed import SEED

import jaxgrad

SEQUENCES = 60
STEPS = 6


def strided(draw, count):
    size = [draw.randint(1, 3) for _ in range(draw.randint(1, 2))]
    stride = [draw.randint(0, 4) for _ in size]
    last = sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    return size, stride, draw.randint(0, max(count - last - 1, 0))


def step(draw):
    """A step as a function of the module and its tensors, with its name."""
    size, stride, offset = strided(draw, 12)
    steps_inside = [min(distance, 2) for distance in stride]  # new bytes have no values in PyTorch
    number = draw.randint(1, 9)
    place, other = draw.random(), draw.random()

    def chosen(tensors, at):
        return tensors[int(at * len(tensors))]

    steps = {
        "as_strided": lambda t, xs: xs.append(
            chosen(xs, place).detach().as_strided(size, stride, offset)
        ),
        "detach": lambda t, xs: xs.append(chosen(xs, place).detach()),
        "slice": lambda t, xs: xs.append(chosen(xs, place)[1:]),
        "flatten": lambda t, xs: xs.append(chosen(xs, place).reshape(-1)),
        "set_": lambda t, xs: xs.append(
            t.zeros(1).set_(xs[0].untyped_storage(), offset, size, steps_inside)
        ),
        "resize_": lambda t, xs: xs[0].resize_(size),
        "add_": lambda t, xs: xs[0].add_(number),
        "copy_": lambda t, xs: xs[0].copy_(chosen(xs, other).clone()),
        "storage": lambda t, xs: xs[0].untyped_storage().__setitem__(4 * offset + 3, 64),
        "permute_copy": lambda t, xs: xs.append(
            t.permute_copy(chosen(xs, place), [*range(chosen(xs, place).ndim)][::-1])
        ),
    }
    name = draw.choice(sorted(steps))
    return name, steps[name]


def outcome(module, steps):
    tensors, done = [module.arange(12.0)], []
    try:
        for name, run in steps:
            done.append(name)
            run(module, tensors)
    except (RuntimeError, IndexError) as error:
        return done, type(error).__name__
    return [(x.tolist(), tuple(x.stride()), x.storage_offset()) for x in tensors]


@pytest.mark.parametrize("number", range(SEQUENCES))
def test_sequences(number):
    draw = random.Random(f"{SEED} {number}")
    steps = [step(draw) for _ in range(STEPS)]
    expected, actual = outcome(torch, steps), outcome(jaxgrad, steps)
    assert actual == expected, (SEED, [name for name, _ in steps])
