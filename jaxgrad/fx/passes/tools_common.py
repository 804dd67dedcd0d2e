"""Orders of nodes, and names of what they call, as torch.fx.passes.tools_common."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Union

from ...names.not_provided import names_of
from ...nn.module import Module
from ...tape.tensor import Tensor
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, _get_qualified_name

__getattr__, __dir__ = names_of(__name__)

Tensors = Union[tuple[Tensor], list[Tensor]]  # noqa: UP007
TensorOrTensors = Union[Tensor, Tensors]  # noqa: UP007
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """Return a text for what a node calls: the name of a class, a function or a method.

    >>> from jaxgrad.fx.passes.tools_common import get_node_target
    >>> graph = jaxgrad.fx.symbolic_trace(lambda x: jaxgrad.relu(x)).graph
    >>> get_node_target({}, graph.output_node().args[0])
    'torch.relu'
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {CALLABLE_NODE_OPS}, but found {node.op}")
    if node.op == "call_module":
        module = submodules[node.target]
        return f"{type(module).__module__}.{type(module).__name__}"
    if node.op == "call_function":
        return _get_qualified_name(node.target)
    return node.target


def is_node_output_tensor(node: Node) -> bool:
    """Return whether a pass noted that the value of a node is a tensor."""
    kind = node.meta.get("type")
    return isinstance(kind, type) and issubclass(kind, Tensor)


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the nodes of a module's graph into an order in which they can run; return the module.

    Raises RuntimeError where nodes need one another.

    >>> from jaxgrad.fx.passes.tools_common import legalize_graph
    >>> gm = jaxgrad.fx.symbolic_trace(lambda x: x.sin().cos())
    >>> sin, cos = list(gm.graph.nodes)[1:3]
    >>> sin.prepend(cos)
    >>> list(legalize_graph(gm).graph.nodes)
    [x, sin, cos, output]
    """
    missing = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    ready = deque(node for node, count in missing.items() if not count)
    return _in_order(gm, ready, missing)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Put the nodes into an order in which they can run, and keep theirs as far as that is one.

    >>> from jaxgrad.fx.passes.tools_common import stable_topological_sort
    >>> gm = jaxgrad.fx.symbolic_trace(lambda x: x.sin().cos())
    >>> list(stable_topological_sort(gm).graph.nodes)
    [x, sin, cos, output]
    """
    placed: set[Node] = set()
    waiting = list(gm.graph.nodes)
    order = []
    while waiting:
        ready = [node for node in waiting if placed.issuperset(node.all_input_nodes)]
        if not ready:
            raise RuntimeError(f"Input graph has cycles, unable to add {waiting}")
        order.append(ready[0])
        placed.add(ready[0])
        waiting.remove(ready[0])
    return _with_nodes(gm, order)


def _in_order(gm: GraphModule, ready: deque, missing: dict[Node, int]) -> GraphModule:
    order = []
    while ready:
        order.append(ready.popleft())
        for user in order[-1].users:
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    if len(order) < len(missing):
        left = [node for node, count in missing.items() if count]
        raise RuntimeError(f"Input graph has cycles, unable to add {left}")
    return _with_nodes(gm, order)


def _with_nodes(gm: GraphModule, order: list[Node]) -> GraphModule:
    """The module with a copy of its graph in another order of nodes."""
    graph, copies = Graph(), {}
    for node in sorted(order, key=lambda node: node.op == "output"):
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm
