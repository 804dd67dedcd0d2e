"""Graphs without writes in place: what a program writes to is an output, as PyTorch's
`run_decompositions` has it.
"""

from __future__ import annotations

import operator

from .. import ops
from ..late import LateModule
from ..ops.aten import schemas
from ..tape.tensor import Tensor
from ._graph import Graph, WholeProgram
from .graph_signature import (
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

fx_graph = LateModule("jaxgrad.fx.graph")

_KINDS = {
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.CONSTANT_TENSOR: OutputKind.BUFFER_MUTATION,
}


class ViewIsWritten(Exception):
    """A tensor that shares memory with another one is written to."""


def functional(graph: Graph) -> Graph:
    """The graph without writes in place; the same graph where they go through views."""
    try:
        return _Functional(graph).result()
    except ViewIsWritten:
        return graph


def has_writes(graph: Graph) -> bool:
    """Whether a graph has operators that write to their arguments."""
    for node in graph.nodes.nodes:
        known = schemas(getattr(node.target, "_opname", ""))
        schema = known.get(getattr(node.target, "_overloadname", ""))
        if schema is not None and schema.inplace:
            return True
    return False


class _Functional:
    """One rewriting. known: by an old node the new one with its present value; roots: by a node the
    node whose memory it shares.
    """

    def __init__(self, graph: Graph):
        self.old, self.graph = graph, fx_graph.Graph()
        self.known: dict = {}
        self.roots: dict = {}
        self.sharing: dict = {}
        self.written: set = set()

    def result(self) -> Graph:
        """The new graph."""
        placeholders = []
        for node in self.old.nodes.nodes:
            if node.op == "output":
                return self._end(node, placeholders)
            if node.op == "placeholder":
                placeholders.append(node)
            self._add(node)
        return self.old

    def _end(self, node, placeholders) -> Graph:
        specs = self.old.signature.input_specs
        changed = [
            (self.known[old], spec)
            for old, spec in zip(placeholders, specs, strict=True)
            if old in self.written
        ]
        results = self._value(node.args[0])
        self.graph.output((*[new for new, _ in changed], *results))
        outputs = [
            OutputSpec(
                _KINDS[spec.kind],
                TensorArgument(new.name),
                spec.arg.name if spec.kind is InputKind.USER_INPUT else spec.target,
            )
            for new, spec in changed
        ]
        named = [
            OutputSpec(spec.kind, type(spec.arg)(new.name), None) if hasattr(new, "op") else spec
            for new, spec in zip(results, self.old.signature.output_specs, strict=True)
        ]
        signature = ExportGraphSignature(specs, [*outputs, *named])
        return Graph(self.graph, signature, self.old.lifted, self.old.note)

    # ---- nodes

    def _value(self, value):
        if isinstance(value, list | tuple):
            return type(value)([self._value(item) for item in value])
        return self.known[value] if hasattr(value, "op") else value

    def _add(self, node):
        name = getattr(node.target, "_opname", "")
        schema = schemas(name).get(getattr(node.target, "_overloadname", ""))
        if name == "batch_norm" and node.args[5] and hasattr(node.args[3], "op"):
            self._batch_norm(node)
        elif schema is not None and schema.inplace:
            self._write(node, name)
        elif schema is None and node.op == "call_function" and _is_unknown(node):
            raise ViewIsWritten  # it may write to anything
        else:
            self.known[node] = self._copy(node)
            self._note_memory(node, schema)

    def _copy(self, node):
        new = self.graph.node_copy(node, lambda old: self.known[old])
        if node.op == "placeholder" and new.name != node.name:
            new.name = node.name  # that of a function of Python
            self.graph._graph_namespace._rename_object(new, node.name)
        return new

    def _note_memory(self, node, schema):
        """Note whether a node shares the memory of another one."""
        first = node.args[0] if node.args and hasattr(node.args[0], "op") else None
        is_item = node.target is operator.getitem
        shares = schema is not None and schema.arguments and schema.arguments[0].type.alias
        if first is not None and (shares or is_item or _may_share(node)):
            self.roots[node] = self.roots.get(first, first)
            self.sharing.setdefault(self.roots[node], []).append(node)

    def _write(self, node, name):
        target = node.args[0]
        new_name = {"zero_": "zeros_like", "detach_": "detach"}.get(name, name[:-1])
        overload = node.target._overloadname
        if overload not in schemas(new_name):
            overload = "default"
        if overload not in schemas(new_name):
            raise ViewIsWritten
        if target in self.roots or self.sharing.get(target):
            raise ViewIsWritten
        if name == "copy_" and _are_alike(target, node.args[1]):
            new = self.known[node] = self._value(node.args[1])
            return self._set(target, new)
        function = getattr(getattr(ops.aten, new_name), overload)
        args, kwargs = self._value(node.args), {k: self._value(v) for k, v in node.kwargs.items()}
        new = self.graph.call_function(function, args, kwargs, name=new_name)
        new.meta = {**node.meta}
        self._set(target, new)
        self.known[node] = new

    def _set(self, target, new):
        """Note that a tensor has another value. The recorder calls it by its last write."""
        self.known[target] = new
        first = self._first(target)
        self.known[first] = new
        self.written.add(first)

    def _first(self, node):
        """The node that made the tensor to which nodes in place have written."""
        while _is_in_place(node):
            node = node.args[0]
        return node

    def _batch_norm(self, node):
        args = self._value(node.args)
        function = ops.aten._native_batch_norm_legit_functional.default
        call = self.graph.call_function(function, args[:8], name=function._opname)
        call.meta = {k: v for k, v in node.meta.items() if k != "val"}
        items = {}
        for number, old in ((0, node), (3, node.args[3]), (4, node.args[4])):
            items[number] = self.graph.call_function(operator.getitem, (call, number))
            items[number].meta = {**old.meta}
        self.known[node] = items[0]
        for number in (3, 4):
            target = node.args[number]
            if target in self.roots or self.sharing.get(target):
                raise ViewIsWritten
            self._set(target, items[number])


def _are_alike(target, source) -> bool:
    """Whether a copy of the second node to the first one gives the values of the second."""
    values = [getattr(node, "meta", {}).get("val") for node in (target, source)]
    kinds = [(value.shape, value.dtype) for value in values if isinstance(value, Tensor)]
    return len(kinds) == 2 and kinds[0] == kinds[1]


def _is_in_place(node) -> bool:
    name = getattr(node.target, "_opname", "")
    return name.endswith("_") and hasattr(node.args[0], "op")


def _is_unknown(node) -> bool:
    """Whether a function may write to its arguments."""
    is_whole = isinstance(node.target, WholeProgram)
    has_out = node.kwargs.get("out") is not None
    return is_whole or has_out or node.target.__name__.endswith("_")


# operators that give their argument itself, or a part of it, if they can
_SOMETIMES = frozenset(("reshape", "contiguous", "flatten", "to", "dropout", "type_as"))


def _may_share(node) -> bool:
    return getattr(node.target, "_opname", "") in _SOMETIMES
