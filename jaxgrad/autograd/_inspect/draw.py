"""`autograd.graph.draw`: what is in the boxes of a drawing of a recorded graph."""

from __future__ import annotations

import sys
from collections import Counter

from ...tape import untracked_reason
from ...tape.node import AccumulateGrad
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
    variables_of,
)
from .svg import CUT, CUT_COLOR, FUNCTION, LEAF, OPERATOR, Box, Drawing, Line

# a graph of more operators is drawn with chains in one box
MOST_SINGLE = 60
# an edge to a leaf that would pass by more layers gets a box of its own for the leaf
FARTHEST_LEAF = 4
# of a node's outputs, and of what it does not lead to, so many are shown
MOST_OUTPUTS, MOST_CUTS = 3, 2
# a part of a chain of at most so many operators that comes so often is shown once
LONGEST_PART, LEAST_TIMES = 12, 3
# so many chains beside one another have boxes of their own, and of so many nodes all is told
MOST_BRANCHES, MOST_DETAILS = 4, 20


def draw(tensor, names=None, compact: bool | None = None) -> Drawing:
    """The graph that leads to a tensor, to look at: operators with the shapes and dtypes of their
    results, the bytes that they keep, and their source lines, and leaves by name.

    tensor: a tensor that requires grad, a GradientEdge, a node, or several of them; names: a dict
    of tensors by name, or something with `named_parameters()`; left out, the variables of the
    caller; compact: have a line for an operator, leaves in it by name, and a box for operators that
    follow one another, the repeated ones once: left out, where there are more than 60 operators.
    Source lines are known of what was recorded under `record_lines()`, and then it is shown too
    where something was cut off. Raises RuntimeError for a tensor that has no graph, TypeError for
    what is no tensor.

    The drawing has its text as `svg`, and as `dot` for Graphviz; `save(path)` writes it to a file;
    notebooks show it.

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


class _Draftsman:
    """Makes a box for each operator, in the order in which gradients reach them, then for leaves,
    and for what was cut off.
    """

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
        kept = {each.key: each.bytes for node in self.operators for each in kept_by(node)}
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
        lines = [Line(name), *(Line(rest=each) for each in results)]
        lines += [Line(rest=extra)] if extra else []
        return Box(kind, lines, details(node), node.sequence in self.ends)

    def described(self, node):
        """A node's name, its results, and what it keeps and where it comes from."""
        results = []
        for number, aval in enumerate(node.outputs()):
            if aval is not None:
                name = self.names.of(node, number)
                results.append(_shown(aval) if name is None else f"{name}: {_shown(aval)}")
        if len(results) > MOST_OUTPUTS:
            results[MOST_OUTPUTS:] = [f"and {len(results) - MOST_OUTPUTS} more"]
        kept, place = sum(each.bytes for each in kept_by(node)), place_of(node)
        size = f"{shown_bytes(kept)} saved" if kept else "freed" if is_freed(node) else ""
        parts = [size, short(place) if place else ""]
        return node.name(), results, " \u00b7 ".join(filter(None, parts))

    def connect(self, node):
        """The edges of a node to other operators, which stand below it."""
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
        """A box for a leaf, or several, each near to where it is used."""
        first, name = None, self.names.of(leaf) or "leaf"
        for rank, user in sorted(self.users.get(leaf.sequence, [(0, None)])):
            if first is None or rank > first + FARTHEST_LEAF:
                lines = [Line(name), Line(rest=_shown(leaf.variable._aval))]
                lines += [] if first is None else [Line(rest="(again)")]
                first, here = rank, len(self.boxes)
                self.boxes.append(Box(LEAF, lines, f"{name}, a leaf", user is None))
            if user is not None:
                self.edges[user, here] += 1

    def add_cut(self, node, cause):
        lines = [Line(rest=cause.kind, color=CUT_COLOR), Line(rest=short(cause.place))]
        self.edges[self.at[node.sequence], len(self.boxes)] += 1
        self.boxes.append(Box(CUT, lines, f"{cause.operator} at {cause.place}"))


class _Compact(_Draftsman):
    """Makes a box for each chain of operators, with a line for each; one for many chains that lead
    from one box to the same others.
    """

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
        """The operators in groups: each but the last leads to the next and nowhere else."""
        users = Counter(target for several in self.targets.values() for target in several)
        found, chain_of = [], {}
        for node in self.operators:
            chain = chain_of.get(node.sequence)
            if chain is None:
                found.append(chain := [])
            chain.append(node)
            several = self.targets[node.sequence]
            if len(several) == 1 and users[several[0]] == 1 and several[0] not in self.ends:
                chain_of[several[0]] = chain
        return found

    def joined(self, chains):
        """The chains, those together that come from one node alone and lead to the same."""
        users, alike = {}, {}
        for source, several in self.targets.items():
            for target in several:
                users.setdefault(target, set()).add(source)
        for chain in chains:
            first, last = chain[0].sequence, chain[-1].sequence
            alone = len(users.get(first, ())) == 1 and first not in self.ends
            ends = (*users[first], *self.targets[last]) if alone else (first, None)
            alike.setdefault(ends, []).append(chain)
        found = []
        for several in alike.values():
            found += [several] if len(several) > MOST_BRANCHES else [[chain] for chain in several]
        return sorted(found, key=lambda several: -several[0][0].sequence)

    def box(self, chains):
        groups = [[self.lines(node) for node in chain] for chain in chains]
        lines = _folded([lines for group in groups for lines in (*group, [Line()])][:-1])
        nodes = [node for chain in chains for node in chain]
        is_function = any(isinstance(node, FunctionNode) for node in nodes)
        told = "\n".join(map(details, nodes[:MOST_DETAILS]))
        is_end = nodes[0].sequence in self.ends
        return Box(FUNCTION if is_function else OPERATOR, lines, told, is_end, True)

    def lines(self, node):
        name, results, extra = self.described(node)
        targets = [to for to, _ in node.edges if type(to) is AccumulateGrad]
        leaves = [self.names.of(leaf) or f"leaf {_shown(leaf.variable._aval)}" for leaf in targets]
        taken = f" ({', '.join(dict.fromkeys(leaves))})" if leaves else ""
        rest = " \u00b7 ".join(filter(None, [", ".join(results), extra]))
        found = [Line(name, f"{taken}  {rest}")]
        for cause in untracked_reason.of(node)[-MOST_CUTS:]:
            text = f"    not from: {cause.kind}, {short(cause.place)}"
            found.append(Line(rest=text, color=CUT_COLOR))
        return found

    def add_others(self):
        """Leaves, and what was cut off, are in the lines."""


def _folded(groups) -> list[Line]:
    """Lines, of which a part that comes several times in a row is there once."""
    found, start = [], 0
    while start < len(groups):
        times, length = max(
            (_times(groups, start, length), length)
            for length in range(1, min(LONGEST_PART, len(groups) - start) + 1)
        )
        if times < LEAST_TIMES:
            times = length = 1
        part = groups[start : start + length]
        for group in part:
            found.extend(group)
        if times > 1:
            count = sum(bool(group[0].title) for group in part)
            what = "this" if count == 1 else f"these {count}"
            found.append(Line(rest=f"    ({what}, {times} times in a row)"))
        start += times * length
    return found


def _times(groups, start, length):
    """How often a part comes in a row."""
    part, times = groups[start : start + length], 1
    while groups[start + times * length : start + (times + 1) * length] == part:
        times += 1
    return times


def _straight(edges, count):
    """The edges along which the longest paths lead, at most one from each box and one to each."""
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
    """What is told of a node when it is pointed at."""
    place = place_of(node)
    told = [node.name() + (f" at {place}" if place else "")]
    told += [f"saves {each}, {shown_bytes(each.bytes)}" for each in kept_by(node)]
    return "\n".join(told)


def _shown(aval):
    return f"{str(aval.dtype).removeprefix('torch.')}{list(aval.shape)}"


def _counted(count, one, several):
    return f"{count} {one if count == 1 else several}"
