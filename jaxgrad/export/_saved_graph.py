"""Graphs as JSON. Reading one looks up operators by their names and calls nothing."""

from __future__ import annotations

import math
import operator
import types
from typing import Any, NamedTuple

import numpy as np

from .. import ops
from ..amp import autocast_mode
from ..autograd import grad_mode
from ..core import device as placement
from ..core import dtypes
from ..core.symbolic_extents import is_symbolic
from ..frontend.checks import SIZE_FUNCTIONS
from ..functions.normalization import _weight_norm
from ..late import LateModule
from ..nn import functional
from ..tape.tensor import Tensor, abstract_value
from ._fake import fake
from ._recorder import is_node

fx_graph = LateModule("jaxgrad.fx.graph")
jax_export = LateModule("jax.export")

# what graphs calculate numbers with
_OF_NUMBERS = {
    **{
        f"operator.{function.__name__}": function
        for function in (
            *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
            *(operator.mod, operator.pow, operator.neg, operator.abs),
            *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
            *(operator.and_, operator.or_, operator.xor),
        )
    },
    **{f"math.{function.__name__}": function for function in (math.floor, math.ceil, math.trunc)},
    **{function.__name__: function for function in (max, min, round, *SIZE_FUNCTIONS)},
}
NUMBER_FUNCTIONS = frozenset(_OF_NUMBERS.values())
_FUNCTIONS = {
    **_OF_NUMBERS,
    "operator.getitem": operator.getitem,
    "set_grad_enabled": grad_mode.set_grad_enabled,
    "enter_autocast": autocast_mode._enter_autocast,
    "exit_autocast": autocast_mode._exit_autocast,
    "_weight_norm": _weight_norm,
}
_NAMES = {function: name for name, function in _FUNCTIONS.items()}
_LAYOUTS = (
    *(placement.strided, placement.contiguous_format, placement.preserve_format),
    *(placement.channels_last, placement.channels_last_3d),
)
_BY_NAME = {str(value): value for value in (*_LAYOUTS, *dtypes.ALL)}


class SavedRecording(NamedTuple):
    """A graph that was read, with what `Recorder` knows of one."""

    graph: Any
    lifted: dict[str, np.ndarray]
    outputs: list
    reason: str | None = None


class _NotWritten(Exception):
    """A graph holds something that no file has."""


# ---- writing


def written(recording) -> dict | None:
    """The JSON of a recording; None if a file does not hold it."""
    if recording is None or recording.reason is not None:
        return None
    try:
        nodes = [_written_node(node) for node in recording.graph.nodes]
        return {"nodes": nodes, "outputs": _written(recording.outputs)}
    except _NotWritten:
        return None


def _written_node(node) -> dict:
    entry = {"op": node.op, "name": node.name, "target": node.target, "args": _written(node.args)}
    if node.op == "call_function":
        entry["target"] = _name_of(node.target)
        entry["kwargs"] = {name: _written(value) for name, value in node.kwargs.items()}
    value = node.meta.get("val")
    if isinstance(value, Tensor):
        entry["val"] = _written_tensor(value)
    elif node.op == "placeholder":
        entry["val"] = {"value": _written(value)}
    for key in ("stack_trace", "nn_module_stack"):
        if node.meta.get(key):
            entry[key] = node.meta[key]
    return entry


def _written_tensor(tensor) -> dict:
    aval = abstract_value(tensor)
    strides = None if aval.strides is None else [*map(_extent_text, aval.strides)]
    return {"shape": [*map(_extent_text, aval.shape)], "dtype": str(aval.dtype), "strides": strides}


def _extent_text(extent):
    return str(extent) if is_symbolic(extent) else extent


def _name_of(target) -> str:
    if hasattr(target, "overloadpacket"):
        return str(target)
    if target in _NAMES:
        return _NAMES[target]
    name = getattr(target, "__name__", "")
    if _functional(name) is target:
        return f"functional.{name}"
    raise _NotWritten


def _functional(name: str):
    """The function of nn.functional of a name; None if there is none."""
    function = None if name.startswith("_") else getattr(functional, name, None)
    return function if isinstance(function, types.FunctionType) else None


def _written(value):
    if is_node(value):
        return {"node": value.name}
    if isinstance(value, tuple):
        return {"tuple": [_written(item) for item in value]}
    if isinstance(value, list):
        return [_written(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, complex):
        return {"complex": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, placement.device):
        return {"device": str(value)}
    if str(value) in _BY_NAME:
        return {"constant": str(value)}
    raise _NotWritten


# ---- reading


def read(saved: dict, lifted: dict[str, np.ndarray]) -> SavedRecording:
    """The recording of a JSON. lifted: its constants by their names."""
    reader = _Reader(saved["nodes"])
    return SavedRecording(reader.graph, lifted, [*reader.value(saved["outputs"])])


class _Reader:
    def __init__(self, entries):
        self.graph, self.nodes = fx_graph.Graph(), {}
        self._scope = jax_export.SymbolicScope()
        for entry in entries:
            self._add(entry)

    def _add(self, entry):
        args, target = self.value(entry["args"]), entry["target"]
        kwargs = {name: self.value(value) for name, value in entry.get("kwargs", {}).items()}
        if entry["op"] == "call_function":
            target = _target(target)
        node = self.graph.create_node(entry["op"], target, args, kwargs, name=entry["name"])
        self.nodes[entry["name"]] = node
        node.name = entry["name"]  # that of a function of Python, too
        self.graph._graph_namespace._rename_object(node, node.name)
        value = entry.get("val")
        if value is not None:
            node.meta["val"] = self._tensor(value) if "shape" in value else value["value"]
        node.meta |= {key: entry[key] for key in ("stack_trace", "nn_module_stack") if key in entry}

    def _tensor(self, value):
        strides = None if value["strides"] is None else self._extents(value["strides"])
        return fake(self._extents(value["shape"]), _BY_NAME[value["dtype"]], strides)

    def _extents(self, extents) -> tuple:
        return tuple(
            [
                jax_export.symbolic_shape(extent, scope=self._scope)[0]
                if isinstance(extent, str)
                else extent
                for extent in extents
            ]
        )

    def value(self, value):
        """The value that a JSON describes."""
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        match kind:
            case "node":
                return self.nodes[content]
            case "tuple":
                return tuple([self.value(item) for item in content])
            case "device":
                return placement.device(content)
            case "constant":
                return _BY_NAME[content]
        return {"float": float, "complex": complex}[kind](content)


def _target(name: str):
    """The function of a name. Raises KeyError for one that no graph has."""
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    space, operator_name, *rest = name.split(".")
    if space == "functional" and _functional(operator_name) is not None:
        return _functional(operator_name)
    if space != "aten":
        raise KeyError(name)
    (overload,) = rest
    return getattr(getattr(ops.aten, operator_name), overload)
