"""Factories that write to random tensors, sequences of several classes, and comparisons under two
default dtypes, in PyTorch and here.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import random
import warnings

import numpy
import pytest
import torch
from oracle.seed import SEED

import jaxgrad

DTYPES = ["int32", "int64", "uint8", "float32", "float64", "complex64"]
DEFAULTS = ["float32", "float64"]


class Items:
    """A sequence of no class of Python's."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        return self.items[number]

    def __repr__(self):
        return f"Items({self.items!r})"


def outcome(code: str, library):
    """What an expression gives, as text, and whether it warned of a new shape."""
    scope = {"torch": library, "numpy": numpy, "Items": Items, "nan": numpy.nan, "inf": numpy.inf}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(code, scope)
        except (RuntimeError, TypeError, ValueError, IndexError):
            return "an error"
    resized = any("resized" in str(warning.message) for warning in caught)
    return *map(shown, scope["shown"]), resized


def shown(tensor):
    rounded = numpy.round(numpy.array(tensor.tolist(), complex), 3).tolist()
    return str(tensor.dtype), tuple(tensor.shape), tensor.stride(), rounded


def writes(chance: random.Random) -> str:
    """A call with a tensor of random layout as `out=`: a view of as many elements, or any other."""
    shape = [chance.randint(1, 4) for _ in range(chance.randint(1, 3))]
    whole = f"x = torch.zeros({shape}, dtype=torch.{chance.choice(DTYPES)})"
    view = chance.choice(["x", "x[..., :2]", "x.mT if x.ndim > 1 else x[1:]", "x.flatten()[1:]"])
    count = chance.randint(0, 8) if view == "x" else "out.numel()"
    calls = ["arange({}, out=out)", "linspace(0, 3, {}, out=out)"]
    calls += ["logspace(0, 3, {}, base=2, out=out)"]
    calls += ["cat([out, out], out=out)", "stack([out], out=out)"]
    if view == "x":
        calls += ["zeros({}, out=out)", "full(({}, 2), 1, out=out)", "eye({}, out=out)"]
        calls += ["cat([torch.ones({}), torch.ones(2)], out=out)"]
    call = chance.choice(calls).format(count)
    return f"{whole}; out = {view}; torch.{call}; shown = x, out"


def number(chance: random.Random) -> str:
    numbers = ["0", "1", "-2", "2.5", "True", "1j", "2**40", "2**64", "nan", "inf"]
    return chance.choice([*numbers, "numpy.int8(3)"])


def data(chance: random.Random, depth: int) -> str:
    if not depth:
        return number(chance)
    parts = ", ".join(data(chance, depth - 1) for _ in range(chance.randint(1, 3)))
    return chance.choice(["[{}]", "({},)", "Items([{}])"]).format(parts)


def makes(chance: random.Random) -> str:
    # among floats a negative number is one of an unsigned type for PyTorch, and refused here
    kinds = [kind for kind in DTYPES if kind != "uint8"]
    dtype = chance.choice(["", *(f", dtype=torch.{kind}" for kind in kinds)])
    function = chance.choice(["tensor", "as_tensor"])
    return f"shown = [torch.{function}({data(chance, chance.randint(0, 2))}{dtype})]"


def compares(chance: random.Random) -> str:
    left = f"torch.tensor([0, 1, 7], dtype=torch.{chance.choice(DTYPES[:-1])})"
    right = chance.choice(["0.5", "1", "True", "torch.tensor(0.5)", "torch.tensor([0.5])", "2.0"])
    function = chance.choice(["lt", "ge", "eq", "ne", "gt", "isclose"])
    return f"shown = [torch.{function}({left}, {right})]"


def fills(chance: random.Random) -> str:
    size, steps = [chance.randint(1, 3) for _ in "ab"], [chance.randint(0, 3) for _ in "ab"]
    call = chance.choice(["fill_(7)", "zero_()"])
    return f"x = torch.arange(20.0); x.as_strided({size}, {steps}).{call}; shown = [x]"


@pytest.mark.parametrize("default", DEFAULTS)
@pytest.mark.parametrize("kind", [writes, makes, compares, fills])
def test_random_calls(kind, default):
    chance = random.Random(f"{SEED} {kind.__name__} {default}")
    different = []
    for library in (torch, jaxgrad):
        library.set_default_dtype(getattr(library, default))
    try:
        for _ in range(60):
            code = kind(chance)
            theirs, ours = outcome(code, torch), outcome(code, jaxgrad)
            if repr(ours) != repr(theirs):
                different.append(f"{code}\n  {theirs}\n  {ours}")
    finally:
        for library in (torch, jaxgrad):
            library.set_default_dtype(library.float32)
    assert not different, "\n".join([f"seed {SEED}", *different])
