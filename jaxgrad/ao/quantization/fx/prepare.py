"""Observers are put into the graph of a model."""

from __future__ import annotations

from collections import Counter

from .... import nn
from ....fx import GraphModule
from ....names.not_provided import names_of
from ..insertion import convert_layers
from ..quantization_mappings import TRACED_QAT_MODULE_MAPPINGS
from . import patterns
from .fuse import fuse, is_relu


def prepare(model, mapping, is_qat):
    """Fuse the layers of a traced model and put observers into it."""
    model = fuse(model, is_qat)
    chosen = _Chosen(model, mapping)
    for node in model.graph.nodes:
        if node.op == "call_module":
            model.get_submodule(node.target).qconfig = chosen.of[node]
    if is_qat:
        convert_layers(model, TRACED_QAT_MODULE_MAPPINGS)
    _Insertion(model, chosen.of).run()
    return GraphModule(model, model.graph)


class _Chosen:
    """The `qconfig` of each node, None where it stays as it is."""

    def __init__(self, model, mapping):
        self.mapping, self.counts, self.of = mapping, Counter(), {}
        modules = dict(model.named_modules(remove_duplicate=False))
        for node in model.graph.nodes:
            self.of[node] = self._of_node(node, modules)

    def _of_node(self, node, modules):
        if node.op == "call_module":
            layer = modules[node.target]
            first = layer[0] if isinstance(layer, nn.Sequential) else layer
            name, kinds = node.target, (type(layer), type(first))
        elif node.op in ("call_function", "call_method"):
            stack = node.meta.get("nn_module_stack") or {"": None}
            name, kinds = next(reversed(stack)), (node.target, patterns.name_of(node))
        else:
            return None
        place = name.rpartition(".")[0] if node.op == "call_module" else name
        number = self.counts[place, kinds[0]]
        self.counts[place, kinds[0]] += 1
        if node.op != "call_module":
            name = f"{name}.{node.name}" if name else node.name
        return self.mapping.of(name, kinds, number)


class _Insertion:
    def __init__(self, model, chosen):
        self.model, self.chosen = model, chosen
        self.modules, self.count = dict(model.named_modules(remove_duplicate=False)), 0
        self.observers, self.unobserved = {}, set()

    def run(self):
        for node in list(self.model.graph.nodes):
            qconfig = self.chosen[node]
            kind = patterns.kind_of(node, self.modules)
            if kind is None or not patterns.is_static(qconfig):
                continue
            inputs = patterns.inputs_of(node)
            if not inputs:
                continue
            is_fused = is_relu(node, self.modules) and inputs[0] in self.unobserved
            if not is_fused:
                self._observe_inputs(node, inputs, qconfig)
            if kind == "own" and self._is_before_relu(node):
                self.unobserved.add(node)
            elif kind == "own" or is_fused:
                self._insert(node, qconfig.activation())
            else:
                self._insert(node, self._observer_of(patterns.inputs_of(node)[0]))

    def _is_before_relu(self, node):
        """Whether a relu is the only use of a sum, product or linear function."""
        can_be_one = node.op == "call_function" and node.target in (
            *patterns.BINARY,
            *patterns.LINEAR,
        )
        return (
            can_be_one
            and len(node.users) == 1
            and is_relu(next(iter(node.users)), self.modules)
            and patterns.is_static(self.chosen[next(iter(node.users))])
        )

    def _observe_inputs(self, node, inputs, qconfig):
        for value in inputs:
            if not self._is_observer(value):
                self._insert(value, qconfig.activation())
        has_weight = node.op == "call_function" and (
            node.target in patterns.LINEAR or patterns.name_of(node) in patterns.CONVOLUTIONS
        )
        if has_weight and not self._is_observer(node.args[1]):
            self._insert(node.args[1], qconfig.weight())
        if patterns.is_joined(node):
            first = self._observer_of(patterns.inputs_of(node)[0])
            for value in patterns.inputs_of(node)[1:]:
                self.model.add_submodule(value.target, first)

    def _is_observer(self, node):
        return node.op == "call_module" and str(node.target).startswith(patterns.OBSERVER)

    def _observer_of(self, node):
        return self.model.get_submodule(node.target)

    def _insert(self, node, observer):
        """Let an observer record what a node gives, and the others take its result."""
        name = f"{patterns.OBSERVER}{self.count}"
        self.count += 1
        self.model.add_submodule(name, observer)
        users = list(node.users)
        with self.model.graph.inserting_after(node):
            observed = self.model.graph.call_module(name, (node,))
        for user in users:
            user.replace_input_with(node, observed)


__getattr__, __dir__ = names_of(__name__)
