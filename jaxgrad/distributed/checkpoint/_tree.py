"""State dicts as JSON: numbers, strings and containers exactly, tensors by shape, dtype and name.

A node of the JSON is what it stands for where that is None, a bool, an int, a finite float or a
string, and a dict with one kind otherwise: {"dict": [[key, node], ...]}, {"list": [...]},
{"tuple": [...]}, {"float": bits}, {"complex": [real, imag]}, {"tensor": name, "shape", "dtype"}.
Nothing in it chooses code to run.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping

import numpy as np

from ...core.meta_array import MetaArray
from ...tape.tensor import Tensor, current, held, is_concrete
from ._initial_state import InitialState

KEYS = (str, int, float, bool, type(None))


def encoded(value, path: tuple, tensors: dict[tuple, Tensor]):
    """The node of a value; its tensors are noted in `tensors` by their paths. Raises TypeError for
    what JSON cannot hold exactly, and for a tensor without values.
    """
    if isinstance(value, Tensor):
        return _tensor_node(value, path, tensors)
    if isinstance(value, InitialState):
        return {"dict": []}
    if isinstance(value, Mapping):
        pairs = [
            [_key(key, path), encoded(item, (*path, key), tensors)] for key, item in value.items()
        ]
        return {"dict": pairs}
    if type(value) in (list, tuple):
        items = [encoded(item, (*path, i), tensors) for i, item in enumerate(value)]
        return {type(value).__name__: items}
    return _number(value, path)


def _tensor_node(tensor, path, tensors):
    if type(held(current(tensor))) is MetaArray or not is_concrete(tensor):
        raise TypeError(f"{shown(path)}: a tensor of shape {list(tensor.shape)} without values")
    tensors[path] = tensor
    array = held(current(tensor))
    return {"tensor": None, "shape": list(array.shape), "dtype": np.dtype(array.dtype).name}


def _key(key, path):
    if type(key) not in KEYS:
        raise TypeError(
            f"{shown(path)}: a checkpoint takes dicts with keys that are strings or numbers, not "
            f"{key!r} of {type(key).__module__}.{type(key).__qualname__}"
        )
    return _number(key, path)


def _number(value, path):
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, float) and type(value) in (float, np.float64):
        value = float(value)
        return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
    if type(value) is complex:
        return {"complex": [_number(value.real, path), _number(value.imag, path)]}
    raise TypeError(
        f"{shown(path)}: a checkpoint takes tensors, numbers, strings, None, and dicts, lists and "
        f"tuples of them, not {type(value).__module__}.{type(value).__qualname__}: give a tensor, "
        "or an object with state_dict() and load_state_dict() at the top of the dict"
    )


def number_of(node):
    """The number, string or None of a node that is no container and no tensor."""
    if not isinstance(node, dict):
        return node
    if "float" in node:
        return struct.unpack(">d", bytes.fromhex(node["float"]))[0]
    real, imag = map(number_of, node["complex"])
    return complex(real, imag)


def kind_of(node) -> str:
    """The kind of a node: "dict", "list", "tuple", "tensor" or "number"."""
    kinds = ("dict", "list", "tuple", "tensor")
    return next((kind for kind in kinds if isinstance(node, dict) and kind in node), "number")


def children(node) -> list[tuple]:
    """The keys and nodes in a container; empty for other nodes."""
    kind = kind_of(node)
    if kind == "dict":
        return [(number_of(key), child) for key, child in node["dict"]]
    return list(enumerate(node[kind])) if kind in ("list", "tuple") else []


def leaves(node, path: tuple = ()) -> Iterator[tuple[tuple, dict]]:
    """The paths and nodes of the tensors."""
    if kind_of(node) == "tensor":
        yield path, node
    for key, child in children(node):
        yield from leaves(child, (*path, key))


def merged(first, second):
    """A node with the keys of both in its dicts; what both have is that of the first."""
    if kind_of(first) != "dict" or kind_of(second) != "dict":
        return first
    others = dict(children(second))
    pairs = [[_number(k, ()), merged(n, others.pop(k, n))] for k, n in children(first)]
    return {"dict": pairs + [[_number(k, ()), node] for k, node in others.items()]}


def give_names(tree):
    """Name the tensors by their paths, each once."""
    taken: set[str] = set()
    for path, node in leaves(tree):
        base = re.sub(r"[^\w.\-]", "_", shown(path))
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}-{number}"
        taken.add(name)
        node["tensor"] = name


def shown(path: tuple) -> str:
    """A path as PyTorch writes it."""
    return ".".join(map(str, path)) or "the state dict"
