"""Graphs of layers that compute less, as torch.fx.experimental.optimization."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ...names.not_provided import names_of
from ...nn.convolution import Conv1d, Conv2d, Conv3d
from ...nn.dropout import Dropout
from ...nn.linear import Linear
from ...nn.module import Module
from ...nn.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .. import GraphModule, Node, Transformer, symbolic_trace
from ..graph import Graph

__getattr__, __dir__ = names_of(__name__)

_PATTERNS = ((Conv1d, BatchNorm1d), (Conv2d, BatchNorm2d), (Conv3d, BatchNorm3d))
_PATTERNS += ((Linear, BatchNorm1d),)


def _parent_name(target: str) -> tuple[str, str]:
    """The path of the owner of a submodule, and the name there."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Return whether a node calls a module of the last class on the result of one of the first.

    pattern: two classes; modules: those of the graph by their paths.

    >>> from jaxgrad.fx.experimental.optimization import matches_module_pattern
    >>> nn = jaxgrad.nn
    >>> gm = jaxgrad.fx.symbolic_trace(nn.Sequential(nn.ReLU(), nn.Tanh()))
    >>> last = gm.graph.output_node().args[0]
    >>> matches_module_pattern((nn.ReLU, nn.Tanh), last, dict(gm.named_modules()))
    True
    """
    if not node.args or not isinstance(node.args[0], Node):
        return False
    return all(
        called.op == "call_module" and type(modules.get(called.target)) is kind
        for kind, called in zip(pattern, (node.args[0], node), strict=True)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Module):
    """Put another module in the place of the one that a node calls.

    modules: those of the graph by their paths; the change is made there too.

    >>> from jaxgrad.fx.experimental.optimization import replace_node_module
    >>> gm = jaxgrad.fx.symbolic_trace(jaxgrad.nn.Sequential(jaxgrad.nn.ReLU()))
    >>> node = gm.graph.output_node().args[0]
    >>> replace_node_module(node, dict(gm.named_modules()), jaxgrad.nn.Tanh())
    >>> gm.get_submodule("0")
    Tanh()
    """
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """Return a module with the batch norms that follow convolutions and linear layers in these.

    model: one in evaluation mode, since the statistics become constants; inplace: change its
    layers; no_trace: it is a GraphModule already. Only layers that nothing else uses are fused.

    >>> from jaxgrad.fx.experimental.optimization import fuse
    >>> layers = jaxgrad.nn.Sequential(jaxgrad.nn.Conv2d(1, 2, 3), jaxgrad.nn.BatchNorm2d(2))
    >>> fuse(layers.eval())
    GraphModule(
      (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
    )
    """
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules, graph = dict(traced.named_modules()), copy.deepcopy(traced.graph)
    for pattern in _PATTERNS:
        for node in graph.nodes:
            if matches_module_pattern(pattern, node, modules):
                _fuse_pair(graph, node, modules)
    return GraphModule(traced, graph)


def _fuse_pair(graph: Graph, node: Node, modules: dict[str, Any]):
    first, norm = modules[node.args[0].target], modules[node.target]
    if len(node.args[0].users) > 1 or not norm.track_running_stats:
        return
    is_linear = isinstance(first, Linear)
    fused = (fuse_linear_bn_eval if is_linear else fuse_conv_bn_eval)(first, norm)
    replace_node_module(node.args[0], modules, fused)
    node.replace_all_uses_with(node.args[0])
    graph.erase_node(node)


def remove_dropout(model: Module) -> Module:
    """Return a module without the dropout layers of another.

    >>> from jaxgrad.fx.experimental.optimization import remove_dropout
    >>> remove_dropout(jaxgrad.nn.Sequential(jaxgrad.nn.ReLU(), jaxgrad.nn.Dropout()))
    GraphModule(
      (0): ReLU()
    )
    """

    class WithoutDropout(Transformer):
        def call_module(self, target, args, kwargs):
            if isinstance(self.submodules[target], Dropout):
                (value,) = args
                return value
            return super().call_module(target, args, kwargs)

    return WithoutDropout(symbolic_trace(model)).transform()


def extract_subgraph(
    orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """Return a module of some nodes of a graph. inputs, outputs: the nodes whose values it takes
    and gives.

    >>> from jaxgrad.fx.experimental.optimization import extract_subgraph
    >>> gm = jaxgrad.fx.symbolic_trace(lambda x: x.sin().cos())
    >>> x, sin, cos, _ = gm.graph.nodes
    >>> print(extract_subgraph(gm, [cos], [sin], [cos]).code.strip())
    def forward(self, sin):
        cos = sin.cos();  sin = None
        return (cos,)
    """
    graph, copies = Graph(), {}
    for node in inputs:
        copies[node] = graph.placeholder(node.name)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in outputs))
    graph.lint()
    return GraphModule(orig_module, graph)
