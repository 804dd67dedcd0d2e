"""Random changes of containers of modules and parameters against PyTorch's: what each call gives or
raises, and what the container holds after it.

make oracle ARGUMENTS=containers     (`--seed N` repeats a run)
"""

import random

import pytest
import torch
from oracle.seed import SEED

import jaxgrad

LIBRARIES = torch, jaxgrad
PROGRAMS, STEPS = 40, 12


def layer(library, number):
    return (library.nn.ReLU, library.nn.Tanh, library.nn.Linear)[number % 3](
        *((1 + number, 2) if number % 3 == 2 else ())
    )


def parameter(library, number):
    kinds = library.ones(number + 1), library.nn.Parameter(library.zeros(number + 1)), "text"
    return kinds[number % 3]


SEQUENCE = [
    lambda lib, c, i, n: c.append(layer(lib, n)),
    lambda lib, c, i, n: c.extend([layer(lib, n), layer(lib, n + 1)]),
    lambda lib, c, i, n: c.insert(n % (len(c) + 1), layer(lib, n)),
    lambda lib, c, i, n: c.pop(i),
    lambda lib, c, i, n: c[i],
    lambda lib, c, i, n: c[min(i, n) : max(i, n)],
    lambda lib, c, i, n: c.__setitem__(i, layer(lib, n)),
    lambda lib, c, i, n: c.__delitem__(i),
    lambda lib, c, i, n: c.__delitem__(slice(0, n, 2)),
    lambda lib, c, i, n: c + type(c)(),
    lambda lib, c, i, n: c.__iadd__(type(c)()),
    lambda lib, c, i, n: len(c),
]
PRODUCTS = [
    lambda lib, c, i, n: c * (i % 3),
    lambda lib, c, i, n: c.__imul__(1 + i % 2),
    lambda lib, c, i, n: c + n,
    lambda lib, c, i, n: c.insert(i * 3, layer(lib, n)),
]
NAMES = "b", "a", "weight", "training", "a.b", ""
DICT = [
    lambda lib, c, i, n: c.update({NAMES[i % 3]: layer(lib, n), NAMES[n % 3]: layer(lib, i)}),
    lambda lib, c, i, n: c.update([(NAMES[i % 6], layer(lib, n))]),
    lambda lib, c, i, n: c.update([[layer(lib, n)]]),
    lambda lib, c, i, n: c.update(n),
    lambda lib, c, i, n: c.pop(NAMES[i % 3]),
    lambda lib, c, i, n: c[NAMES[i % 4]],
    lambda lib, c, i, n: c.__delitem__(NAMES[i % 3]),
    lambda lib, c, i, n: list(c),
]
VALUES = [
    lambda lib, c, i, n: c.update({NAMES[i % 3]: parameter(lib, n), NAMES[n % 3]: "text"}),
    lambda lib, c, i, n: c.update([(NAMES[i % 3], parameter(lib, n))]),
    lambda lib, c, i, n: NAMES[n] in c,
    lambda lib, c, i, n: c.pop(NAMES[i % 3]),
    lambda lib, c, i, n: c.get(NAMES[i % 3], n),
    lambda lib, c, i, n: c.setdefault(NAMES[i % 3], parameter(lib, n)),
    lambda lib, c, i, n: c | type(c)({NAMES[i % 3]: parameter(lib, n)}),
    lambda lib, c, i, n: c[NAMES[i % 3]],
    lambda lib, c, i, n: c(n),
    lambda lib, c, i, n: c.clear() if i == n else list(reversed(c)),
]
KINDS = {
    "Sequential": SEQUENCE + PRODUCTS,
    "ModuleList": SEQUENCE,
    "ModuleDict": DICT,
    "ParameterDict": VALUES,
}


def shown(value, library):
    """What a call gives, as text."""
    if isinstance(value, library.Tensor):
        return f"{tuple(value.shape)} {isinstance(value, library.nn.Parameter)}"
    if isinstance(value, library.nn.Module):
        return repr(value)
    return repr(value).replace(library.__name__, "")


def outcome(library, container, call, *numbers):
    try:
        result = call(library, container, *numbers)
    except Exception as error:
        result = next(k for k in type(error).__mro__ if k.__module__ == "builtins").__name__
    # PyTorch's ModuleList.insert gives None, those of other containers themselves
    result = None if result is container else result
    return shown(result, library), repr(container), list(container.state_dict())


@pytest.mark.parametrize("kind", KINDS)
def test_changes_of_containers(kind):
    for program in range(PROGRAMS):
        draws = random.Random(f"{SEED} {kind} {program}")
        containers = [getattr(library.nn, kind)() for library in LIBRARIES]
        for step in range(STEPS):
            call = draws.choice(KINDS[kind])
            numbers = draws.randrange(-3, 6), draws.randrange(6)
            theirs, ours = (
                outcome(library, container, call, *numbers)
                for library, container in zip(LIBRARIES, containers, strict=True)
            )
            where = f"seed {SEED}, {kind}, program {program}, step {step}, {numbers}"
            assert ours == theirs, where
