"""Pipes of data, trees and writes at masks of PyTorch beside those of jaxgrad, on random inputs.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import random

import numpy as np
import pytest
import torch
from oracle.seed import SEED

import jaxgrad

pytestmark = pytest.mark.filterwarnings("ignore")


def rest(x):
    return hash(str(x)) % 3 if isinstance(x, list | tuple) else x % 3


def is_kept(x):
    return rest(x) != 1


def marked(x):
    return (x, 1)


def is_number(x):
    return isinstance(x, int)


def of_numbers(pipe):
    return pipe.unbatch(-1).filter(is_number)


def random_pipe(lib, seed):
    """A pipe of two to six random steps; the same steps for both libraries."""
    draws, iterated = random.Random(seed), lib.utils.data.datapipes.iter
    pipe = iterated.IterableWrapper(list(range(draws.randrange(1, 20))))
    for _ in range(draws.randrange(2, 7)):
        kind, size = draws.randrange(9), draws.randrange(1, 5)
        other = iterated.IterableWrapper(list(range(draws.randrange(1, 9))))
        steps = (
            lambda pipe, size, other: pipe.batch(size, drop_last=size == 2),
            lambda pipe, size, other: pipe.unbatch(-1),
            lambda pipe, size, other: pipe.filter(is_kept),
            lambda pipe, size, other: pipe.shuffle(buffer_size=size).set_seed(size),
            lambda pipe, size, other: pipe.concat(other),
            lambda pipe, size, other: pipe.zip(other),
            lambda pipe, size, other: pipe.mux(other),
            lambda pipe, size, other: of_numbers(pipe).groupby(rest, group_size=size),
            lambda pipe, size, other: pipe.demux(3, rest, buffer_size=-1)[size % 3],
        )
        pipe = steps[kind](pipe, size, other)
    return pipe


def outcome(lib, seed):
    try:
        return list(random_pipe(lib, seed))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("number", range(200))
def test_random_pipes(number):
    seed = SEED + number
    assert outcome(jaxgrad, seed) == outcome(torch, seed), f"SEED={seed}"


def random_tree(draws, depth=0):
    kind = draws.randrange(6 if depth < 4 else 2)
    inner = [random_tree(draws, depth + 1) for _ in range(draws.randrange(4))] if kind > 1 else ()
    if kind < 2:
        return draws.choice([None, draws.randrange(9), "a"])
    if kind == 2:
        return tuple(inner)
    return {f"k{place}": item for place, item in enumerate(inner)} if kind == 3 else list(inner)


@pytest.mark.parametrize("number", range(50))
def test_random_trees(number):
    seed = SEED + number
    tree, answers = random_tree(random.Random(seed)), []
    for lib in (jaxgrad, torch):
        pytree = lib.utils._pytree
        leaves, spec = pytree.tree_flatten(tree)
        paths = [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(tree)]
        text = pytree.treespec_dumps(spec)
        assert pytree.treespec_loads(text) == spec
        answers.append((leaves, repr(spec), spec.num_nodes, paths, text, spec.unflatten(leaves)))
    assert answers[0] == answers[1], f"SEED={seed}"


@pytest.mark.parametrize("number", range(50))
def test_random_writes_at_masks(number):
    seed = SEED + number
    draws = np.random.default_rng(seed)
    shape = tuple(draws.integers(1, 5, draws.integers(1, 4)))
    dims = int(draws.integers(1, len(shape) + 1))
    mask = draws.random(shape[:dims]) < 0.5
    base, accumulate = draws.normal(size=shape).astype("f4"), bool(draws.integers(2))
    values = draws.normal(size=(int(mask.sum()), *shape[dims:])).astype("f4")
    answers = []
    for lib in (jaxgrad, torch):
        x = lib.tensor(base).requires_grad_()
        v = lib.tensor(values).requires_grad_()
        result = lib.index_put(x, (lib.tensor(mask),), v, accumulate)
        result.square().sum().backward()
        answers.append([t.detach().numpy() for t in (result, x.grad, v.grad)])
    for ours, theirs in zip(*answers, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, err_msg=f"SEED={seed}")
