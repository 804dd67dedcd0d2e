"""The graph of an exported program."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import NamedTuple

import jax

from ..late import LateModule
from ..nn.module import Module
from ..tape.tensor import Tensor, wrap
from ._fake import fake_like
from ._recorder import is_node
from ._signature import ConstantInput, Signature
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)

graph_module = LateModule("jaxgrad.fx.graph_module")
fx_graph = LateModule("jaxgrad.fx.graph")


class Graph(NamedTuple):
    """A graph of operators, and what its inputs and outputs are.

    lifted: the constants that are inputs, by their names; note: what the graph does not show, ""
    if it shows all.
    """

    nodes: object
    signature: ExportGraphSignature
    lifted: dict[str, Tensor]
    note: str = ""


class LateGraph:
    """The graph of a program, and its module, which is written when it is first asked for."""

    def __init__(self, build: Callable[[], Graph]):
        self._build = build

    def __deepcopy__(self, memo):
        return self

    @functools.cached_property
    def graph(self) -> Graph:
        return self._build()

    @functools.cached_property
    def module(self):
        return graph_module.GraphModule(Module(), self.graph.nodes)

    @property
    def text(self) -> str:
        note = self.graph.note
        text = self.module.print_readable(print_output=False)
        return f"# {note}\n{text}" if note else text


def recorded_graph(recorder, signature: Signature) -> Graph | None:
    """The graph of a `Recorder` or `SavedRecording`; None if it lacks something."""
    if recorder.reason is not None:
        return None
    known = signature.graph_signature().input_specs
    state, inputs = known[: len(signature.slots)], known[len(signature.slots) :]
    constants = [
        InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(""), name) for name in recorder.lifted
    ]
    placeholders = recorder.graph.find_nodes(op="placeholder")
    specs = [
        _named(spec, node.name)
        for spec, node in zip([*state, *constants, *inputs], placeholders, strict=True)
    ]
    outputs = [_output(value) for value in recorder.outputs]
    with jax.enable_x64(True):
        lifted = {name: wrap(jax.device_put(array)) for name, array in recorder.lifted.items()}
    return Graph(recorder.graph, ExportGraphSignature(specs, outputs), lifted)


def _named(spec: InputSpec, name: str) -> InputSpec:
    argument = spec.arg
    if isinstance(argument, ConstantArgument):
        return InputSpec(spec.kind, ConstantArgument(name, argument.value), spec.target)
    return InputSpec(spec.kind, TensorArgument(name), spec.target, spec.persistent)


def _output(value) -> OutputSpec:
    argument = ConstantArgument("", value)
    if is_node(value):
        is_tensor = isinstance(value.meta.get("val"), Tensor)
        argument = (TensorArgument if is_tensor else SymIntArgument)(value.name)
    return OutputSpec(OutputKind.USER_OUTPUT, argument, None)


# ---- a program as one node


class WholeProgram:
    """A program in StableHLO as a function of all inputs of its graph, state first."""

    __name__ = "stablehlo_program"
    __module__ = "jax_export"  # so that the code of a graph takes it from its globals

    def __init__(self, run: Callable):
        self._run = run

    def __call__(self, *inputs):
        return self._run(inputs)

    def __deepcopy__(self, memo):
        return self


def opaque_graph(exported, signature: Signature, run: Callable, note: str) -> Graph:
    """The graph with the program as one node. run: runs it on the inputs, and gives its tensors."""
    graph, specs = fx_graph.Graph(), signature.graph_signature().input_specs
    values = [*map(fake_like, exported.in_avals[: len(signature.slots)])]
    values = dict(zip([slot.path for slot in sorted_slots(signature)], values, strict=True))
    tensors = iter(map(fake_like, exported.in_avals[len(exported.in_avals) - _count(signature) :]))
    nodes = []
    for spec in specs:
        node = graph.placeholder(spec.arg.name)
        if isinstance(spec.arg, ConstantArgument):
            node.meta["val"] = spec.arg.value
        else:
            node.meta["val"] = values[spec.target] if spec.target else next(tensors)
        nodes.append(node)
    call = graph.call_function(WholeProgram(run), tuple(nodes))
    leaves, results = signature.results.leaves, []
    for leaf in leaves:
        if isinstance(leaf, tuple):
            results.append(leaf[0])
            continue
        number = sum(is_node(value) for value in results)
        node = graph.call_function(operator.getitem, (call, number))
        if leaf is None:
            node.meta["val"] = fake_like(exported.out_avals[number])
        results.append(node)
    graph.output(tuple(results))
    named = [_named(spec, node.name) for spec, node in zip(specs, nodes, strict=True)]
    outputs = [_output(value) for value in results]
    return Graph(graph, ExportGraphSignature(named, outputs), {}, note)


def sorted_slots(signature: Signature) -> list:
    """The slots in the order of JAX's dicts."""
    return sorted(signature.slots, key=lambda slot: slot.path)


def _count(signature: Signature) -> int:
    return sum(not isinstance(known, ConstantInput) for known in signature.inputs)
