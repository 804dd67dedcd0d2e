"""The operators that made the first NaN or Inf of a forward pass, noted for the arrays and nodes
that hold it.

The note dies with its array or node, so an error names only operators that lead to it.
"""

from __future__ import annotations

import contextlib
import contextvars
import weakref
from typing import NamedTuple

from ...core.pending import value_of


class Origin(NamedTuple):
    """The call in which a NaN or an Inf first appeared.

    kind: "nan" or "inf".
    """

    kind: str
    operator: str
    place: str

    def sentence(self, where: str) -> str:
        """A sentence for an error."""
        return f" {where} came out of {self.operator}, at {self.place}."


# by the id of an array a weak reference to it, since no array has a hash, and its origins by kind
known: dict[int, tuple] = {}

# the origins of the own results of nodes, by kind
_of_nodes: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

# the program that ran last, and the origins of its results: its node comes next
_latest = contextvars.ContextVar("jaxgrad.latest_origins", default=(None, {}))

# all origins of a run that someone collects
_collected = contextvars.ContextVar("jaxgrad.collected_origins", default=None)


def of(values, kind) -> Origin | None:
    """The origin of the first of some arrays, tensors or numbers that has one."""
    for value in values:
        array = value_of(getattr(value, "_array", value))
        reference, origins = known.get(id(array), (None, {}))
        if kind in origins and reference() is array:
            return origins[kind]
    return None


def keep(array, origin: Origin):
    """Note the origin of an array."""
    key = id(array)

    def forget(reference):
        if known.get(key, (None,))[0] is reference:
            del known[key]

    reference, origins = known.get(key, (None, {}))
    if reference is None or reference() is not array:
        reference, origins = weakref.ref(array, forget), {}
    known[key] = reference, {**origins, origin.kind: origin}
    if _collected.get() is not None:
        _collected.get().add(origin)


def computed(program, origins):
    """Note the origins of NaN for the results of a program, which may be recorded now."""
    _latest.set((program, origins))


def recorded(node):
    """Note the origins of a node's own results."""
    program, origins = _latest.get()
    if origins and node.reverse is not None and node.reverse.program is program:
        _of_nodes[node] = origins
    _latest.set((None, {}))


def of_node(node, kind) -> Origin | None:
    """The origin of a node's own results."""
    return _of_nodes.get(node, {}).get(kind)


@contextlib.contextmanager
def collected():
    """Collect all origins that are noted in the block, in a set."""
    outer, origins = _collected.get(), set()
    token = _collected.set(origins)
    try:
        yield origins
    finally:
        _collected.reset(token)
        if outer is not None:
            outer |= origins
