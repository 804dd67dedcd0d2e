"""Parts of graphs that are replaced by others, as torch.fx.subgraph_rewriter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..names.not_provided import names_of
from ..nn.module import Module
from ._module_attributes import _copy_attr, _has_attr, used_paths
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__getattr__, __dir__ = names_of(__name__)


class Match(NamedTuple):
    """A part of a graph that is like a pattern: the last node of that, and the nodes of the part by
    those of the pattern.
    """

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A part of a graph that was replaced, as in `Match`, and the nodes in its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node] = field(default_factory=list)


def replace_pattern(
    gm: GraphModule,
    pattern: Callable | GraphModule,
    replacement: Callable | GraphModule,
) -> list[Match]:
    """Replace the parts of a module's graph that are like a pattern; return them.

    pattern, replacement: functions or modules, which are traced, with the same arguments. Parts do
    not overlap, and nothing outside of a part uses what it computes on the way.

    >>> gm = jaxgrad.fx.symbolic_trace(lambda x: x.exp().log() + 1)
    >>> _ = jaxgrad.fx.replace_pattern(gm, lambda x: x.exp().log(), lambda x: x.clone())
    >>> print(gm.code.strip())
    def forward(self, x):
        clone = x.clone();  x = None
        add = clone + 1;  clone = None
        return add
    """
    replaced = _replace_pattern(gm, pattern, replacement)
    return [Match(part.anchor, part.nodes_map) for part in replaced]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable | Graph | GraphModule,
    replacement: Callable | Graph | GraphModule | None = None,
    match_filters: list[Callable] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """Replace the parts like a pattern for which all filters return true; see `replace_pattern`.

    match_filters: functions of the part, the graph and the graph of the pattern; ignore_literals:
    numbers need not be those of the pattern; replacement_callback: returns the graph that replaces
    a part; node_name_match: unused here.

    >>> from jaxgrad.fx.subgraph_rewriter import replace_pattern_with_filters
    >>> gm = jaxgrad.fx.symbolic_trace(lambda x: x + 1)
    >>> parts = replace_pattern_with_filters(
    ...     gm, lambda x: x + 2, lambda x: x - 2, ignore_literals=True)
    >>> parts[0].replacements
    [sub]
    """
    return _replace_pattern(
        gm, pattern, replacement, match_filters, ignore_literals, replacement_callback
    )


def _graph_of(source) -> Graph:
    if isinstance(source, GraphModule):
        return source.graph
    return source if isinstance(source, Graph) else symbolic_trace(source).graph


def _replace_pattern(
    gm: GraphModule,
    pattern,
    replacement,
    match_filters: list[Callable] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable | None = None,
) -> list[ReplacedPatterns]:
    graph, pattern_graph = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(graph)
        if all(accepts(match, graph, pattern_graph) for accepts in match_filters or ())
    ]
    if replacement is not None:
        common = _graph_of(replacement)
    elif replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a callback")
    replaced, newest = [], {}
    for match in matches:
        new = common
        if replacement_callback is not None:
            new = replacement_callback(match, graph, pattern_graph)
        replaced.append(_replace_part(graph, pattern_graph, new, match, newest))
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return replaced


def _replace_part(
    graph: Graph, pattern: Graph, new: Graph, match: InternalMatch, newest: dict[Node, Node]
) -> ReplacedPatterns:
    """Replace one part. newest: by nodes of parts before it those in their place."""
    placeholders = [node for node in new.nodes if node.op == "placeholder"]
    if len(match.placeholder_nodes) != len(placeholders):
        raise AssertionError("the replacement has another number of arguments than the pattern")
    inputs = [
        newest.get(node, node) if isinstance(node, Node) else node
        for node in match.placeholder_nodes
    ]
    copies: dict[Node, Any] = dict(zip(placeholders, inputs, strict=True))
    with graph.inserting_before(_first_user(graph, match, inputs)):
        results = graph.graph_copy(new, copies)
    results = (results,) if isinstance(results, Node) else tuple(results)
    if len(results) != len(match.returning_nodes):
        raise AssertionError("the replacement has another number of results than the pattern")
    for node, result in zip(match.returning_nodes, results, strict=True):
        node.replace_all_uses_with(result)
        newest[node] = result
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    added = [node for old, node in copies.items() if old.op != "placeholder"]
    return ReplacedPatterns(match.anchors[0], match.nodes_map, added)


def _first_user(graph: Graph, match: InternalMatch, inputs: list) -> Node:
    """The node before which the replacement is inserted: the first that uses the part."""
    users = {user for node in match.returning_nodes for user in node.users}
    first = next((node for node in graph.nodes if node in users), None)
    if first is None:  # a part that nothing uses
        return graph.output_node() if not match.returning_nodes else match.returning_nodes[-1].next
    return first


def _replace_attributes(gm: GraphModule, replacement: Module):
    """Take what the new nodes fetch and call from the replacement, and remove what none does."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for path in used_paths(gm.graph):
        if _has_attr(gm, path):
            continue
        if not _has_attr(replacement, path):
            raise RuntimeError(
                f'Attempted to create a "get_attr" or "call_module" node that refers to {path!r}, '
                "which neither the module nor the replacement has"
            )
        _copy_attr(replacement, gm, path)
    gm.graph.lint()
