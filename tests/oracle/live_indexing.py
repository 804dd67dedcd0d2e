"""Reading and writing by random indices: `make oracle`."""

import random

import numpy
import pytest
import torch
from oracle.seed import SEED

import jaxgrad

PARTS = "int", "slice", "none", "ellipsis", "ints", "mask", "list", "bool"


def slice_of(draw, extent):
    bounds = [draw.choice([None, draw.randint(-extent - 1, extent + 1)]) for _ in range(2)]
    return slice(*bounds, draw.choice([None, 1, 2, 3]))


def part_of(draw, kind, extent):
    """A part of an index as text, which both modules evaluate."""
    low, high = -extent, max(extent - 1, 0)
    places = [draw.randint(low, high) for _ in range(draw.choice([1, 2, 2]))]
    flags = [draw.random() < 0.5 for _ in range(extent)]
    return {
        "int": lambda: str(draw.randint(low - 1, high + 1)),
        "slice": lambda: repr(slice_of(draw, extent)),
        "none": lambda: "None",
        "ellipsis": lambda: "...",
        "ints": lambda: f"module.tensor({places}, dtype=module.int64)",
        "mask": lambda: f"module.tensor({flags}, dtype=module.bool)",
        "list": lambda: str(places),
        "bool": lambda: str(draw.random() < 0.5),
    }[kind]()


def index_of(draw, shape):
    kinds = [draw.choice(PARTS) for _ in range(draw.randint(1, len(shape) + 1))]
    while kinds.count("ellipsis") > 1:
        kinds.remove("ellipsis")
    extents = [*shape, *[3] * len(kinds)]
    return ", ".join(
        part_of(draw, kind, extent) for kind, extent in zip(kinds, extents, strict=False)
    )


def outcome(module, array, index, value):
    """What is read, its strides, the tensor after a write and the gradient; or the error's kind."""
    leaf = module.tensor(array, requires_grad=True)
    try:
        place = eval(f"({index},)", {"module": module})
        result = leaf[place]
        (result**2).sum().backward()
        written = leaf.detach().clone()
        written[place] = value if value is None else module.tensor(value)
        read = result.detach().numpy(), leaf.grad.numpy(), written.numpy()
        return [part.tolist() for part in read], result.stride() if result.numel() > 1 else None
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        kinds = IndexError, ValueError, TypeError, RuntimeError
        return next(kind for kind in kinds if isinstance(error, kind)).__name__


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("number", range(40))
def test_indices(number):
    draw = random.Random(f"{SEED} {number}")
    for _ in range(10):
        shape = [draw.choice([1, 2, 3, 4]) for _ in range(draw.randint(1, 3))]
        array = numpy.arange(1.0, 1 + numpy.prod(shape)).reshape(shape)
        index = index_of(draw, shape)
        expected, computed = (outcome(module, array, index, 7.5) for module in (torch, jaxgrad))
        assert computed == expected, f"SEED={SEED} {shape} [{index}]"
