"""Nodes of a graph with observers become quantized ones."""

from __future__ import annotations

import copy

from ....frontend.tensor_data import tensor as new_tensor
from ....functions import quantized_kernels as kernels
from ....functions.quantization import quantize_per_tensor
from ....fx import GraphModule
from ....names.not_provided import names_of
from ...nn.quantized import linear
from ...nn.quantized.quantize import quantized_weight
from ..insertion import is_observed, remove_qconfig_of
from ..quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
    get_default_static_quant_module_mappings,
)
from . import patterns
from .fuse import is_relu
from .patterns import OBSERVER, is_static, is_weight_only


def convert(model, remove_qconfig=True):
    """A copy of a traced model with observers, in which their ranges are those of quantized
    layers and functions.
    """
    model = copy.deepcopy(model)
    _Conversion(model).run()
    model.graph.eliminate_dead_code()
    if remove_qconfig:
        remove_qconfig_of(model)
    return GraphModule(model, model.graph)


class _Conversion:
    """The change of a graph, node by node.

    values: the nodes of quantized tensors; numbers: those of their numbers, by these; waiting:
    functions that make the node of a sum, product or linear function once the observer of its
    result is known; weights: the observers of weights, by their nodes.
    """

    def __init__(self, model):
        self.model, self.graph = model, model.graph
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.values, self.numbers, self.waiting, self.weights = set(), {}, {}, {}
        self.linear_count = 0

    def run(self):
        for node in list(self.graph.nodes):
            if node.op == "call_module" and node.target.startswith(OBSERVER):
                self._observed(node)
            elif not self._became_quantized(node):
                self._take_numbers(node)

    def _observed(self, node):
        """Put the quantized value in place of an observer."""
        (source,) = node.args
        if source in self.waiting:  # a function that needs the scale of its result
            value = self.waiting.pop(source)(self.modules[node.target])
        elif source in self.values:
            value = source
        else:
            value = self._quantize(node, source)
        self.values.add(value)
        node.replace_all_uses_with(value, lambda user: user is not value)
        self.graph.erase_node(node)
        if source is not value and not source.users and source.op.startswith("call"):
            self.graph.erase_node(source)

    def _quantize(self, node, source):
        observer = self.modules[node.target]
        if source.op == "get_attr":
            return self._weight(node, source, observer)
        scale, start = self._parameters(self._name(node, source), observer)
        with self.graph.inserting_before(node):
            arguments = (source, *map(self.graph.get_attr, (scale, start)), observer.dtype)
            return self.graph.call_function(quantize_per_tensor, arguments)

    def _weight(self, node, source, observer):
        """The weight of a function: as it is for products, which pack it, else with its numbers
        rounded.
        """
        weight = self._attribute(source.target)
        observer(weight)
        self.weights[source] = observer
        if all(user.target in patterns.LINEAR for user in node.users):
            return source
        name = f"_rounded_weight_{len(self.weights)}"
        self.model.register_buffer(name, quantized_weight(weight, observer).dequantize())
        with self.graph.inserting_before(node):
            return self.graph.get_attr(name)

    def _name(self, node, source):
        """The beginning of the names of a scale and a zero point, as in PyTorch."""
        if source.op == "call_module":
            return source.target.replace(".", "_")
        layers = [user for user in node.users if user.op == "call_module"]
        name = layers[0].target.replace(".", "_") if layers else ""
        return f"{name}_input" if layers or source.op == "placeholder" else ""

    def _parameters(self, name, observer):
        scale, start = observer.calculate_qparams()
        number = 0
        while hasattr(self.model, f"{name}_scale_{number}"):
            number += 1
        names = f"{name}_scale_{number}", f"{name}_zero_point_{number}"
        for key, value in zip(names, (float(scale), int(start)), strict=True):
            self.model.register_buffer(key, new_tensor(value))
        return names

    def _became_quantized(self, node):
        """Whether a node computes with quantized tensors from here on."""
        inputs = patterns.inputs_of(node) if node.op.startswith("call") else []
        if inputs and inputs[0] in self.waiting and is_relu(node, self.modules):
            self.waiting[node] = self._with_relu(node, inputs[0])
            return True
        if node.op == "call_module":
            return self._layer(node)
        if not inputs or any(value not in self.values for value in inputs):
            return False
        if node.op == "call_function" and node.target in (*patterns.BINARY, *patterns.LINEAR):
            return self._function(node, inputs)
        if not patterns.has_kernel(node, None) or not self._is_observed(node):
            return False
        self.values.add(node)
        return True

    def _is_observed(self, node):
        return any(
            user.op == "call_module" and user.target.startswith(OBSERVER) for user in node.users
        )

    def _layer(self, node):
        layer = self.modules[node.target]
        qconfig = getattr(layer, "qconfig", None)
        if not is_observed(layer):
            return False
        if not is_static(qconfig):
            known = (
                get_default_static_quant_module_mappings()
                if is_weight_only(qconfig)
                else get_default_dynamic_quant_module_mappings()
            )
            if type(layer) in known:
                self._put(node.target, known[type(layer)].from_float(layer))
            return False
        if not self._is_observed(node) or node.args[0] not in self.values:
            return False
        known = get_default_static_quant_module_mappings()
        if type(layer) in known:
            layer.activation_post_process = self.modules[next(iter(node.users)).target]
            self._put(node.target, known[type(layer)].from_float(layer))
        elif not patterns.has_kernel(node, layer):
            return False
        self.values.add(node)
        return True

    def _put(self, path, layer):
        parent, _, name = path.rpartition(".")
        setattr(self.model.get_submodule(parent), name, layer)

    def _function(self, node, inputs):
        if node.target in patterns.LINEAR:
            self.waiting[node] = self._linear(node)
            return True
        name = patterns.BINARY[node.target]
        if len(inputs) == 1:
            number = next(value for value in node.args if value is not inputs[0])
            node.target, node.args = getattr(kernels, f"{name}_scalar"), (inputs[0], number)
            self.values.add(node)
            return True
        self.waiting[node] = self._binary(node, name)
        return True

    def _with_relu(self, node, source):
        make = self.waiting.pop(source)
        return lambda observer: make(observer, end="_relu", place=node)

    def _binary(self, node, name):
        def make(observer, end="", place=node):
            prefix = place.target if place.op == "call_module" else ""
            names = self._parameters(prefix.replace(".", "_"), observer)
            with self.graph.inserting_after(place):
                parts = [self.graph.get_attr(part) for part in reversed(names)][::-1]
            with self.graph.inserting_after(parts[-1]):
                arguments = (*node.args[:2], *parts)
                return self.graph.call_function(getattr(kernels, f"{name}{end}"), arguments)

        return make

    def _linear(self, node):
        """A layer in place of a linear function, since it has a weight to save."""
        observed = node.args[1]
        bias = node.args[2] if len(node.args) > 2 else node.kwargs.get("bias")

        def make(observer, end="", place=node):
            weight = self._attribute(observed.target)
            kind = linear.LinearReLU if end else linear.Linear
            layer = kind(weight.shape[1], weight.shape[0], bias is not None)
            layer.set_weight_bias(
                quantized_weight(weight, self.weights[observed]),
                None if bias is None else self._attribute(bias.target),
            )
            scale, start = observer.calculate_qparams()
            layer.scale, layer.zero_point = float(scale), int(start)
            self.linear_count += 1
            path = f"_linear_{self.linear_count - 1}"
            self.model.add_module(path, layer)
            with self.graph.inserting_after(place):
                return self.graph.call_module(path, (node.args[0],))

        return make

    def _attribute(self, path):
        value = self.model
        for part in path.split("."):
            value = getattr(value, part)
        return value

    def _take_numbers(self, node):
        """Let a node that is not quantized take the numbers of quantized tensors."""
        if node.op == "call_method" and node.target in ("size", "dim", "numel"):
            return
        for value in list(node.all_input_nodes):
            if value in self.values and value.op != "get_attr":
                node.replace_input_with(value, self._dequantized(value))

    def _dequantized(self, value):
        if value not in self.numbers:
            with self.graph.inserting_after(value):
                self.numbers[value] = self.graph.call_method("dequantize", (value,))
        return self.numbers[value]


__getattr__, __dir__ = names_of(__name__)
