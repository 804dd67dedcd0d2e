"""Parts of a graph that are like a pattern, as torch.fx.passes.utils.matcher_utils."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from ....names.not_provided import names_of
from ....tape.tensor import Tensor
from ..._module_attributes import _get_attr
from ...graph import Graph
from ...node import Node

__getattr__, __dir__ = names_of(__name__)


@dataclass
class InternalMatch:
    """A part of a graph. anchors: the last nodes of the pattern; nodes_map: by the nodes of the
    pattern those of the part; placeholder_nodes: what stands for the arguments of the pattern;
    returning_nodes: what stands for its results.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self):
        return InternalMatch(
            list(self.anchors),
            dict(self.nodes_map),
            list(self.placeholder_nodes),
            list(self.returning_nodes),
            dict(self.name_node_map),
        )


class SubgraphMatcher:
    """Finds the parts of graphs that are like a pattern.

    match_output, match_placeholder: the output and the arguments must be those of the graph;
    remove_overlapping_matches: of parts with common nodes keep the first; ignore_literals: numbers
    need not be those of the pattern.

    >>> from jaxgrad.fx.passes.utils.matcher_utils import SubgraphMatcher
    >>> pattern = jaxgrad.fx.symbolic_trace(lambda x: x.relu()).graph
    >>> graph = jaxgrad.fx.symbolic_trace(lambda x: (x.relu() + 1).relu()).graph
    >>> [match.returning_nodes for match in SubgraphMatcher(pattern).match(graph)]
    [[relu], [relu_1]]
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ):
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        for node in pattern.nodes:
            if node.op != "output" and not node.users:
                raise AssertionError(f"the result of the pattern does not depend on its {node}")
        output = next(iter(reversed(pattern.nodes)))
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        self.pattern_returning_nodes = output.all_input_nodes
        last = [node for node in output.all_input_nodes if len(node.users) == 1]
        self.pattern_anchors = [output] if match_output else last

    # ---- the whole

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the parts of a graph, in the order of their last nodes.

        node_name_match: a text that the names of nodes may contain in place of being equal.
        """
        candidates = [
            [node for node in graph.nodes if self._nodes_are_equal(anchor, node, node_name_match)]
            for anchor in self.pattern_anchors
        ]
        matches: list[InternalMatch] = []
        self._extend(InternalMatch(self.pattern_anchors), 0, candidates, matches, node_name_match)
        results = self.pattern_returning_nodes
        for match in matches:
            nodes = match.nodes_map
            # an argument that the pattern does not use has none
            match.placeholder_nodes = [
                nodes[node] for node in self.pattern_placeholder_nodes if node in nodes
            ]
            match.returning_nodes = [nodes[node] for node in results]
        matches = [match for match in matches if self._is_contained(match.nodes_map)]
        return _disjoint(matches) if self.remove_overlapping_matches else matches

    def _extend(self, match, position, candidates, matches, name):
        """Match the anchors from a position on, in all ways."""
        if position == len(self.pattern_anchors):
            matches.append(match)
            return
        for node in candidates[position]:
            tried = copy.copy(match)
            if self._match_nodes(self.pattern_anchors[position], node, tried, name):
                self._extend(tried, position + 1, candidates, matches, name)

    def _is_contained(self, nodes_map: dict[Node, Node]) -> bool:
        """Whether nothing outside of a part uses what it computes on the way."""
        inside = {node: known for known, node in nodes_map.items() if known.op != "placeholder"}
        return all(
            user in inside
            for node, known in inside.items()
            if known not in self.pattern_returning_nodes
            for user in node.users
        )

    # ---- nodes

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        ours = _get_attr(pn.graph.owning_module, pn.target)
        theirs = _get_attr(gn.graph.owning_module, gn.target)
        if type(ours) is not type(theirs):
            return False
        if isinstance(ours, Tensor):
            return isinstance(theirs, Tensor)
        return isinstance(ours, type(theirs)) and ours == theirs

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        """Whether a node of the graph can stand for one of the pattern."""
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.target == gn.target

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch, name: str = "") -> bool:
        """Match a node and those that it depends on; a failure leaves the match as it was."""
        if pn in match.nodes_map:
            return match.nodes_map[pn] == gn
        if gn in match.nodes_map.values() or not self._nodes_are_equal(pn, gn, name):
            return False
        before = dict(match.nodes_map)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        is_like = pn.kwargs.keys() == gn.kwargs.keys() and self._match_args(
            [*pn.args, *pn.kwargs.values()],
            [*gn.args, *(gn.kwargs[key] for key in pn.kwargs)],
            match,
            name,
        )
        if not is_like:
            match.nodes_map = before
        return is_like

    def _match_args(self, ours, theirs, match, name) -> bool:
        if len(ours) != len(theirs):
            return False
        pairs = zip(ours, theirs, strict=True)
        return all(self._match_arg(left, right, match, name) for left, right in pairs)

    def _match_arg(self, left, right, match, name) -> bool:
        if isinstance(left, Node) and isinstance(right, Node):
            return self._match_nodes(left, right, match, name)
        if isinstance(left, list | tuple) and isinstance(right, list | tuple):
            return self._match_args(left, right, match, name)
        if isinstance(left, slice) and isinstance(right, slice):
            parts = ((part.start, part.stop, part.step) for part in (left, right))
            return self._match_args(*parts, match, name)
        if isinstance(left, Node):
            return self._match_literal(left, right, match)
        if isinstance(right, Node):
            return False
        return self.ignore_literals or (type(left) is type(right) and left == right)

    def _match_literal(self, pn: Node, value: Any, match: InternalMatch) -> bool:
        """Match an argument of the pattern with a number of the graph."""
        if pn.op != "placeholder":
            return False
        if pn in match.nodes_map:
            return match.nodes_map[pn] == value
        match.nodes_map[pn] = value
        return True


def _disjoint(matches: list[InternalMatch]) -> list[InternalMatch]:
    """The matches without those that have nodes of one before them."""
    kept, taken = [], set()
    for match in matches:
        inner = ("placeholder", "output")
        nodes = {node for known, node in match.nodes_map.items() if known.op not in inner}
        if not nodes & taken:
            kept.append(match)
            taken |= nodes
    return kept
