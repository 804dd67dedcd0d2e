"""The graph of a program as that of a module: the state is fetched from attributes."""

from __future__ import annotations

from ..late import LateModule
from ._signature import Signature
from .graph_signature import InputKind

fx_graph = LateModule("jaxgrad.fx.graph")


def unlifted(graph, signature: Signature):
    """The `Graph` of the arguments alone, with their structure and that of the result."""
    new = fx_graph.Graph()
    known = {}
    placeholders = graph.nodes.find_nodes(op="placeholder")
    state = zip(placeholders, graph.signature.input_specs, strict=True)
    # attributes come before arguments, as in PyTorch's graphs
    for node, spec in sorted(state, key=lambda pair: pair[1].kind is InputKind.USER_INPUT):
        if spec.kind is InputKind.USER_INPUT:
            known[node] = new.node_copy(node)
        else:
            known[node] = new.get_attr(spec.target)
            known[node].meta = {**node.meta}
    for node in graph.nodes.nodes:
        if node not in known:
            known[node] = new.node_copy(node, known.__getitem__)
    names, out_spec = _argument_names(signature), signature.results.spec
    info = fx_graph._PyTreeInfo(names, signature.in_spec, out_spec)
    new.set_codegen(fx_graph._PyTreeCodeGen(info))
    return new


def _argument_names(signature: Signature) -> list[str]:
    """The names of the arguments: those of leaves, and where one is a container a number."""
    args, kwargs = signature.in_spec.children_specs
    names, leaves = [], iter([known.name for known in signature.inputs])
    for number, child in enumerate(args.children_specs):
        inner = [next(leaves) for _ in range(child.num_leaves)]
        names.append(inner[0] if child.is_leaf() else f"arg_{number}")
    return [*names, *(kwargs.context or ())]
