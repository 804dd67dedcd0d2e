"""Checks of graphs."""

from __future__ import annotations

import warnings

from ..core.tracebacks import users_stacklevel
from ..tape.tensor import Tensor
from .node import _legal_ops, map_arg


def check_nodes(graph):
    """Check the order, the names and the operations of the nodes."""
    names, computed = set(), set()
    for node in graph.nodes:
        if node.op not in _legal_ops:
            raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
        if node.graph is not graph:
            raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
        if node not in graph._graph_namespace._obj_to_name:
            raise RuntimeError(f"Node {node} is not in the names of the graph")
        map_arg((node.args, node.kwargs), lambda used, user=node: _check_use(used, user, computed))
        if node.name in names:
            raise RuntimeError(f"Node redefined name {node.name}!")
        computed.add(node)
        names.add(node.name)


def _check_use(used, user, computed):
    if used.graph is not user.graph:
        raise RuntimeError(
            f"Argument '{used}' of Node '{user}' does not belong to this Graph, but was used as an "
            "argument! If you are copying nodes from another graph, make sure to use "
            "``arg_transform`` on node_copy() to remap values"
        )
    if used not in computed:
        raise RuntimeError(
            f"Argument '{used}' of Node '{user}' was used before it has been defined! Please check "
            "that Nodes in the graph are topologically ordered"
        )


def check_attributes(graph):
    """Check that the module has what the graph fetches and calls."""
    for node in graph.nodes:
        if node.op == "call_function" and not callable(node.target):
            raise ValueError(f"Node {node} target {node.target} has to be a Callable")
        if node.op == "call_function" or node.op == "root":
            continue
        if not isinstance(node.target, str):
            raise ValueError(f"Node {node} target {node.target} has to be a str")
        if node.op in ("get_attr", "call_module"):
            _check_target(node, graph.owning_module)


def _check_target(node, module):
    walked = []
    for name in node.target.split("."):
        if not hasattr(module, name):
            where = ".".join(walked) or "the module"
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute {name} of "
                f"{where}"
            )
        module = getattr(module, name)
        walked.append(name)
    is_module = hasattr(module, "named_modules")
    if node.op == "call_module" and not is_module:
        raise RuntimeError(
            f"Node {node} target {node.target} {'.'.join(walked)} of type "
            f"{type(module).__qualname__} does not reference an nn.Module"
        )
    if node.op == "get_attr" and not (is_module or isinstance(module, Tensor)):
        warnings.warn(
            f"Node {node} target {node.target} does not reference an nn.Module, nn.Parameter, or "
            "buffer, which is what 'get_attr' Nodes typically target",
            stacklevel=users_stacklevel(),
        )
