"""Entries that several threads read at once."""

import ast
import gc
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers import hangs

from jaxgrad.table import Scope, loads, parse_formula

ENTRY = """- name: op_{0}(Tensor self, Tensor other) -> Tensor
  example: torch.op_{0}(torch.tensor([1., 2.]), torch.ones({0})) -> tensor([1.])
  forward: self * other + jnp.where(self > {0}, -self, (other - self) / 2) * (1 if {0} > 1 else 2)
  self: grad * other * (1 if {0} > 1 else 2) - (grad + 1) / 2 * (self - other + {0}) * 3
  other: grad * self * (1 if {0} > 1 else 2) - (grad + 1) / 2 * (self + other + {0}) * 5
"""
THREADS = 6


@pytest.fixture
def garbage():
    """Collections of garbage at every few objects; a callback to run at each can be appended."""
    interval, threshold, callbacks = sys.getswitchinterval(), gc.get_threshold(), list(gc.callbacks)
    sys.setswitchinterval(1e-6)
    gc.set_threshold(30)
    yield gc.callbacks
    gc.callbacks[:] = callbacks
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


def at_depth(depth, function, *args):
    return function(*args) if depth == 0 else at_depth(depth - 1, function, *args)


@pytest.mark.slow
def test_threads_read_entries_at_once(garbage):
    """Python 3.11.7 counts the depth of the trees of all threads in one number, and a collection
    of garbage in the midst of a tree lets another thread in.
    """
    names = [f"op_{number}" for number in range(40)]
    text = "".join(ENTRY.format(number) for number in range(40))
    barrier = threading.Barrier(THREADS)

    def read(thread):
        table = loads(text)
        barrier.wait(hangs.LIMIT)
        return [at_depth(5 * thread, table.rules, name)[0].forward.text for name in names]

    garbage.append(lambda *_: time.sleep(0))
    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(read, range(THREADS)))
    expected = [
        f"self * other + jnp.where(self > {n}, -self, (other - self) / 2) * (1 if {n} > 1 else 2)"
        for n in range(40)
    ]
    assert results == [expected] * THREADS


def test_a_formula_is_read_while_other_code_parses(garbage):
    """As `inspect.signature` does, in code of others that runs in a collection of garbage."""
    parsed = []

    def parse(*_):
        if not parsed:
            parsed.append(at_depth(20, ast.parse, "x"))

    scope = Scope(values=frozenset(["x"]), functions=frozenset())
    garbage.append(parse)
    assert parse_formula("2 * x + " * 30 + "x", scope).names == {"x"}
    assert parsed
