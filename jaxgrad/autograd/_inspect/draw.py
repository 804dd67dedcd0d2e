"""`autograd.graph.draw`: the boxes of a drawing of a recorded graph."""

from __future__ import annotations

import sys
from collections import Counter

from ...tape import untracked_reason
from ...tape.node import AccumulateGrad
from ...tape.tensor import abstract_value
from .._function.call import FunctionNode
from .graph_reader import (
    Names,
    is_freed,
    kept_by,
    nodes_of,
    place_of,
    roots_of,
    short,
    shown_bytes,
    shown_place,
    variables_of,
    variables_of_program,
)
from .svg import CUT, CUT_COLOR, FUNCTION, LEAF, OPERATOR, Box, Drawing, Line

# The largest number of operators that are drawn in boxes of their own.
MOST_SINGLE = 60
# An edge to a leaf passes at most this many layers; a longer one gets another box for the leaf.
FARTHEST_LEAF = 4
# How many outputs of a node, and how many cuts of its inputs, are shown.
MOST_OUTPUTS, MOST_CUTS = 3, 2
# A part of a chain is shown once if it has at most this many operators and repeats this often.
LONGEST_PART, LEAST_TIMES = 12, 3
# How many parallel chains have boxes of their own, and how many nodes of a box its tooltip details.
MOST_BRANCHES, MOST_DETAILS = 4, 20
# the largest number of operators of a node's graph that a notebook shows unasked
MOST_UNASKED = 200


def draw(tensor, names=None, compact: bool | None = None) -> Drawing:
    """Draw the graph that leads to a tensor.

    The drawing shows operators, with the shapes and dtypes of their results, the bytes that they
    save and their source lines, and leaves by name. Source lines, and the places where the graph
    was cut off, are known for operators that ran under `record_lines()`.

    tensor: a tensor that requires grad, a GradientEdge, a node, or a sequence of them.
    names: a dict of tensors by name, or an object with `named_parameters()`; by default the
        variables of the caller.
    compact: draw chains of operators as one box with a line for each operator, and repeated parts
        once; by default for more than 60 operators.

    Returns a drawing: `svg` and `dot` are its text, `save(path)` writes it to a file, notebooks
    show it. Raises RuntimeError for a tensor without a graph, TypeError for an object that is not a
    tensor.

    >>> w = jaxgrad.ones(2, requires_grad=True)
    >>> jaxgrad.autograd.graph.draw((w * w).sum())
    <drawing of 2 operators, 1 leaf, 8 B saved>
    """
    roots = roots_of(tensor)
    names = Names(variables_of(sys._getframe(1)) if names is None else names)
    nodes = nodes_of(roots)
    operators = [node for node in nodes if type(node) is not AccumulateGrad]
    if compact is None:
        compact = len(operators) > MOST_SINGLE
    draftsman = _Compact if compact and operators else _Draftsman
    return draftsman(roots, nodes, operators, names).drawing()


def shown_in_notebook(node) -> str | None:
    """The drawing of the graph of a node, with the names of the program; None if it is large."""
    if len(nodes_of([(node, 0)])) > MOST_UNASKED:
        return None
    return draw(node, names=variables_of_program()).svg


class _Draftsman:
    """Makes boxes for operators, in the order of the backward pass, then for leaves and cuts."""

    def __init__(self, roots, nodes, operators, names):
        self.ends = {node.sequence for node, _ in roots}
        self.operators, self.names = operators, names
        self.leaves = [node for node in nodes if type(node) is AccumulateGrad]
        self.boxes, self.edges = [], Counter()
        self.at, self.ranks, self.users = {}, {}, {}

    def drawing(self) -> Drawing:
        self.add_operators()
        self.add_others()
        straight = _straight(self.edges, len(self.boxes))
        return Drawing(self.boxes, dict(sorted(self.edges.items())), straight, self.summary())

    def summary(self):
        kept = {
            residual.key: residual.bytes for node in self.operators for residual in kept_by(node)
        }
        counts = [
            _counted(len(self.operators), "operator", "operators"),
            _counted(len(self.leaves), "leaf", "leaves"),
        ]
        return ", ".join([*counts, f"{shown_bytes(sum(kept.values()))} saved"])

    def add_operators(self):
        for node in self.operators:
            self.at[node.sequence] = len(self.boxes)
            self.boxes.append(self.operator(node))
        for node in self.operators:
            self.connect(node)

    def operator(self, node):
        name, results, extra = self.described(node)
        kind = FUNCTION if isinstance(node, FunctionNode) else OPERATOR
        lines = [Line(name), *(Line(rest=result) for result in results)]
        lines += [Line(rest=extra)] if extra else []
        return Box(kind, lines, details(node), node.sequence in self.ends)

    def described(self, node):
        """The name of a node, its results, and its saved bytes with its source line."""
        results = []
        for number, aval in enumerate(node.outputs()):
            if aval is not None:
                name = self.names.of(node, number)
                results.append(_shown(aval) if name is None else f"{name}: {_shown(aval)}")
        if len(results) > MOST_OUTPUTS:
            results[MOST_OUTPUTS:] = [f"and {len(results) - MOST_OUTPUTS} more"]
        kept, place = sum(residual.bytes for residual in kept_by(node)), place_of(node)
        size = f"{shown_bytes(kept)} saved" if kept else "freed" if is_freed(node) else ""
        parts = [size, short(place) if place else ""]
        return node.name(), results, " \u00b7 ".join(filter(None, parts))

    def connect(self, node):
        """Add the edges from a node to other operators, which are drawn below it."""
        here, rank = self.at[node.sequence], self.ranks.setdefault(node.sequence, 0)
        for target, _ in node.edges:
            if type(target) is AccumulateGrad:
                self.users.setdefault(target.sequence, []).append((rank, here))
            else:
                self.edges[here, self.at[target.sequence]] += 1
                below = self.ranks.get(target.sequence, 0)
                self.ranks[target.sequence] = max(below, rank + 1)

    def add_others(self):
        for leaf in self.leaves:
            self.add_leaf(leaf)
        for node in self.operators:
            for cause in untracked_reason.of(node)[-MOST_CUTS:]:
                self.add_cut(node, cause)

    def add_leaf(self, leaf):
        """Add a box for a leaf, and more boxes where it is used far below the first."""
        first, name = None, self.names.of(leaf) or "leaf"
        for rank, user in sorted(self.users.get(leaf.sequence, [(0, None)])):
            if first is None or rank > first + FARTHEST_LEAF:
                lines = [Line(name), Line(rest=_shown(abstract_value(leaf.variable)))]
                lines += [] if first is None else [Line(rest="(again)")]
                first, here = rank, len(self.boxes)
                self.boxes.append(Box(LEAF, lines, f"{name}, a leaf", user is None))
            if user is not None:
                self.edges[user, here] += 1

    def add_cut(self, node, cause):
        lines = [Line(rest=cause.kind, color=CUT_COLOR), Line(rest=short(cause.place))]
        self.edges[self.at[node.sequence], len(self.boxes)] += 1
        self.boxes.append(Box(CUT, lines, f"{cause.operator} at {shown_place(cause.place)}"))


class _Compact(_Draftsman):
    """Makes one box for each chain of operators, and one for many chains between the same boxes."""

    def add_operators(self):
        self.targets = {
            node.sequence: [to.sequence for to, _ in node.edges if type(to) is not AccumulateGrad]
            for node in self.operators
        }
        for several in self.joined(self.chains()):
            for chain in several:
                self.at |= {node.sequence: len(self.boxes) for node in chain}
            self.boxes.append(self.box(several))
        for source, several in self.targets.items():
            for target in several:
                if self.at[source] != self.at[target]:
                    self.edges[self.at[source], self.at[target]] += 1

    def chains(self):
        """The operators in chains: each but the last leads only to the next."""
        users = Counter(target for several in self.targets.values() for target in several)
        chains, chain_of = [], {}
        for node in self.operators:
            chain = chain_of.get(node.sequence)
            if chain is None:
                chains.append(chain := [])
            chain.append(node)
            several = self.targets[node.sequence]
            if len(several) == 1 and users[several[0]] == 1 and several[0] not in self.ends:
                chain_of[several[0]] = chain
        return chains

    def joined(self, chains):
        """The chains, grouped if they come from one node and lead to the same nodes."""
        users, alike = {}, {}
        for source, several in self.targets.items():
            for target in several:
                users.setdefault(target, set()).add(source)
        for chain in chains:
            first, last = chain[0].sequence, chain[-1].sequence
            alone = len(users.get(first, ())) == 1 and first not in self.ends
            ends = (*users[first], *self.targets[last]) if alone else (first, None)
            alike.setdefault(ends, []).append(chain)
        groups = []
        for several in alike.values():
            groups += [several] if len(several) > MOST_BRANCHES else [[chain] for chain in several]
        return sorted(groups, key=lambda several: -several[0][0].sequence)

    def box(self, chains):
        groups = [[self.lines(node) for node in chain] for chain in chains]
        lines = _folded([lines for group in groups for lines in (*group, [Line()])][:-1])
        nodes = [node for chain in chains for node in chain]
        is_function = any(isinstance(node, FunctionNode) for node in nodes)
        text = "\n".join(map(details, nodes[:MOST_DETAILS]))
        is_end = nodes[0].sequence in self.ends
        return Box(FUNCTION if is_function else OPERATOR, lines, text, is_end, True)

    def lines(self, node):
        name, results, extra = self.described(node)
        targets = [to for to, _ in node.edges if type(to) is AccumulateGrad]
        leaves = [
            self.names.of(leaf) or f"leaf {_shown(abstract_value(leaf.variable))}"
            for leaf in targets
        ]
        taken = f" ({', '.join(dict.fromkeys(leaves))})" if leaves else ""
        rest = " \u00b7 ".join(filter(None, [", ".join(results), extra]))
        lines = [Line(name, f"{taken}  {rest}")]
        for cause in untracked_reason.of(node)[-MOST_CUTS:]:
            text = f"    not from: {cause.kind}, {short(cause.place)}"
            lines.append(Line(rest=text, color=CUT_COLOR))
        return lines

    def add_others(self):
        """Do nothing: the lines of the boxes name the leaves and the cuts."""


def _folded(groups) -> list[Line]:
    """The lines, with a part that repeats shown once."""
    lines, start = [], 0
    while start < len(groups):
        times, length = max(
            (_times(groups, start, length), length)
            for length in range(1, min(LONGEST_PART, len(groups) - start) + 1)
        )
        if times < LEAST_TIMES:
            times = length = 1
        part = groups[start : start + length]
        for group in part:
            lines.extend(group)
        if times > 1:
            count = sum(bool(group[0].title) for group in part)
            what = "this" if count == 1 else f"these {count}"
            lines.append(Line(rest=f"    ({what}, {times} times in a row)"))
        start += times * length
    return lines


def _times(groups, start, length):
    """How often a part repeats."""
    part, times = groups[start : start + length], 1
    while groups[start + times * length : start + (times + 1) * length] == part:
        times += 1
    return times


def _straight(edges, count):
    """The edges of the longest paths, at most one from each box and one to each."""
    above, below = [0] * count, [0] * count
    for source, target in sorted(edges):
        above[target] = max(above[target], above[source] + 1)
    for source, target in sorted(edges, reverse=True):
        below[source] = max(below[source], below[target] + 1)
    onward, backward = {}, {}
    for source, target in sorted(edges, key=lambda edge: (below[edge[1]], edge[1])):
        onward[source] = target
    for source, target in sorted(edges, key=lambda edge: (above[edge[0]], edge[0])):
        backward[target] = source
    return {(source, target) for source, target in onward.items() if backward[target] == source}


def details(node) -> str:
    """The tooltip of a node."""
    place = place_of(node)
    facts = [node.name() + (f" at {shown_place(place)}" if place else "")]
    facts += [f"saves {residual}, {shown_bytes(residual.bytes)}" for residual in kept_by(node)]
    return "\n".join(facts)


def _shown(aval):
    return f"{str(aval.dtype).removeprefix('torch.')}{list(aval.shape)}"


def _counted(count, one, several):
    return f"{count} {one if count == 1 else several}"
