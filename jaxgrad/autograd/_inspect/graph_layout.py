"""Positions for the boxes of a drawing: in layers, so that every edge leads down, with few
crossings.

The method is Sugiyama's (Sugiyama, Tagawa and Toda, "Methods for visual understanding of
hierarchical system structures", 1981). It assigns each box a layer, orders the boxes of each layer
together with the edges that pass through it, and then computes coordinates. Sweeps down and up
order each layer by the mean position of each box's neighbours. The same sweeps give the
coordinates: those nearest to the mean of the neighbours that leave room between boxes.
"""

from __future__ import annotations

from bisect import bisect, insort
from itertools import pairwise
from typing import NamedTuple

from ...tape.traversal import search

GAP, LAYER_GAP = 22.0, 34.0
ORDER_SWEEPS, PLACE_SWEEPS = 12, 16
# The weights with which edges are kept straight: most edges, those of `straight`, and the parts of
# an edge that pass through layers.
USUAL, STRAIGHT, PASSING = 1.0, 1e6, 30.0


class Layout(NamedTuple):
    """The positions of a drawing.

    boxes: for each box its left, top, width and height.
    routes: for each edge its points from top to bottom; it is straight between the first two, bends
        to the third, and so on.
    """

    width: float
    height: float
    boxes: list[tuple[float, float, float, float]]
    routes: list[list[tuple[float, float]]]


def layout(sizes, edges, straight=frozenset()) -> Layout:
    """Compute positions for boxes.

    sizes: the width and height of each box.
    edges: pairs of a box and a later box.
    straight: the edges that should lead straight down.
    """
    ranks = _ranks(len(sizes), edges)
    graph = _Layers(sizes, ranks, straight)
    chains = [graph.chain(source, target) for source, target in edges]
    _reduce_crossings(graph)
    tops, heights = graph.heights()
    centers = _centers(graph)
    boxes = [
        (centers[i] - width / 2, tops[ranks[i]], width, height)
        for i, (width, height) in enumerate(sizes)
    ]
    ports = _ports(graph, chains, centers)
    routes = [
        _route(graph, chain, ports[number], centers, boxes, tops, heights)
        for number, chain in enumerate(chains)
    ]
    right = max((c + w / 2 for c, w in zip(centers, graph.widths, strict=True)), default=0)
    bottom = tops[-1] + heights[-1] if tops else 0
    return Layout(right + GAP, bottom + LAYER_GAP / 2, boxes, routes)


def _ranks(count, edges):
    """The layer of each box: one below the lowest box that leads to it."""
    ranks = [0] * count
    for source, target in sorted(edges):
        ranks[target] = max(ranks[target], ranks[source] + 1)
    return ranks


class _Layers:
    """The slots of all layers: first the boxes, then the edges that pass through a layer.

    above, below: the neighbours of each slot.
    order: the slots of each layer from left to right.
    """

    def __init__(self, sizes, ranks, straight):
        self.sizes, self.ranks, self.straight = sizes, list(ranks), straight
        self.widths = [width for width, _ in sizes]
        self.above = [[] for _ in sizes]
        self.below = [[] for _ in sizes]
        self.order = [[] for _ in range(max(ranks, default=-1) + 1)]
        for place, rank in enumerate(ranks):
            self.order[rank].append(place)

    def chain(self, source, target):
        """The slots that an edge passes through; makes those between its boxes."""
        chain = [source]
        for rank in range(self.ranks[source] + 1, self.ranks[target]):
            place = len(self.ranks)
            self.ranks.append(rank)
            self.widths.append(0.0)
            self.above.append([])
            self.below.append([])
            self.order[rank].append(place)
            chain.append(place)
        chain.append(target)
        for upper, lower in pairwise(chain):
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        return chain

    def passes(self, place) -> bool:
        """Whether a slot is that of an edge."""
        return place >= len(self.sizes)

    def pull(self, first, second) -> float:
        """How strongly an edge between two slots should be straight."""
        if self.passes(first) and self.passes(second):
            return PASSING
        is_straight = (first, second) in self.straight or (second, first) in self.straight
        return STRAIGHT if is_straight else USUAL

    def heights(self):
        """The top and the height of each layer."""
        tops, heights, top = [], [], LAYER_GAP / 2
        for layer in self.order:
            heights.append(max((self.sizes[p][1] for p in layer if not self.passes(p)), default=0))
            tops.append(top)
            top += heights[-1] + LAYER_GAP
        return tops, heights

    def positions(self):
        """The position of each slot in its layer."""
        positions = [0] * len(self.ranks)
        for layer in self.order:
            for position, place in enumerate(layer):
                positions[place] = position
        return positions


def _crossings(graph, positions) -> int:
    """The number of crossings between edges."""
    total = 0
    for layer in graph.order:
        seen = []
        for place in layer:
            ends = sorted(positions[lower] for lower in graph.below[place])
            total += sum(len(seen) - bisect(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _reduce_crossings(graph):
    """Give each layer the order with the fewest crossings found."""
    _order_by_search(graph)
    best = [list(layer) for layer in graph.order]
    fewest = _crossings(graph, graph.positions())
    for sweep in range(ORDER_SWEEPS):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        layers = graph.order if down else reversed(graph.order)
        neighbours = graph.above if down else graph.below
        positions = graph.positions()
        for layer in layers:
            if sweep % 4 > 1:
                layer.reverse()  # ties keep their order, so try the other one too
            _sort(layer, neighbours, positions)
        count = _crossings(graph, graph.positions())
        if count < fewest:
            best, fewest = [list(layer) for layer in graph.order], count
    graph.order = best


def _sort(layer, neighbours, positions):
    """Order a layer by the mean position of each slot's neighbours."""

    def wish(place):
        near = neighbours[place]
        return sum(positions[slot] for slot in near) / len(near) if near else positions[place]

    layer.sort(key=wish)
    for position, place in enumerate(layer):
        positions[place] = position


def _order_by_search(graph):
    """Set the initial order by a depth-first search, which draws a tree without crossings."""
    places = [place for layer in graph.order for place in layer]
    order = [[] for _ in graph.order]
    for place in search(reversed(places), lambda place: reversed(graph.below[place])):
        order[graph.ranks[place]].append(place)
    graph.order = order


# coordinates


def _centers(graph):
    """The horizontal centre of each slot."""
    centers = [0.0] * len(graph.ranks)
    for layer in graph.order:
        left = 0.0
        for place in layer:
            centers[place] = left + graph.widths[place] / 2
            left += graph.widths[place] + GAP
    for sweep in range(PLACE_SWEEPS):
        both = sweep >= PLACE_SWEEPS - 2
        down = sweep % 2 == 0
        for layer in graph.order if down else reversed(graph.order):
            _settle(graph, layer, centers, down or both, not down or both)
    left = min((c - w / 2 for c, w in zip(centers, graph.widths, strict=True)), default=0)
    return [center - left + GAP for center in centers]


def _settle(graph, layer, centers, from_above, from_below):
    """Move the slots of a layer towards their neighbours, without overlaps."""
    wishes, weights = [], []
    for place in layer:
        near = [*(graph.above[place] if from_above else ())]
        near += graph.below[place] if from_below else ()
        pulls = [graph.pull(place, slot) for slot in near]
        weights.append(sum(pulls) or 0.01)
        pulled = sum(pull * centers[slot] for pull, slot in zip(pulls, near, strict=True))
        wishes.append(pulled / weights[-1] if near else centers[place])
    for place, center in zip(layer, apart(wishes, weights, _distances(graph, layer)), strict=True):
        centers[place] = center


def _distances(graph, layer):
    """The least distances between the centres of adjacent slots."""
    return [(graph.widths[a] + graph.widths[b]) / 2 + GAP for a, b in pairwise(layer)]


def apart(wishes, weights, distances) -> list[float]:
    """The numbers nearest to `wishes` that keep given distances, by weighted least squares.

    Each number is at least its distance above the one before. The method is the
    pool-adjacent-violators algorithm.
    """
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)
    blocks = []  # of slots that touch: (mean of their wishes, weight, number of slots)
    for wish, weight, offset in zip(wishes, weights, offsets, strict=False):
        mean, count = wish - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, more, number = blocks.pop()
            mean = (mean * weight + other * more) / (weight + more)
            weight, count = weight + more, count + number
        blocks.append((mean, weight, count))
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]


# routes


def _ports(graph, chains, centers):
    """The horizontal positions where each edge leaves and enters its boxes.

    Edges are side by side, in the order of their other ends; a straight edge is in the middle.
    """
    leaving, arriving = {}, {}
    for number, chain in enumerate(chains):
        is_straight = (chain[0], chain[-1]) in graph.straight
        leaving.setdefault(chain[0], []).append((centers[chain[1]], number, is_straight))
        arriving.setdefault(chain[-1], []).append((centers[chain[-2]], number, is_straight))
    starts, ends = _spread(graph, leaving, centers), _spread(graph, arriving, centers)
    return [(starts[number], ends[number]) for number in range(len(chains))]


def _spread(graph, groups, centers):
    """The positions of the edges at each box, side by side around its centre."""
    positions = {}
    for box, several in groups.items():
        several.sort()
        straight = [i for i, (_, _, is_straight) in enumerate(several) if is_straight]
        middle = straight[0] if straight else (len(several) - 1) / 2
        step = min(16.0, graph.widths[box] * 0.45 / max(middle, len(several) - 1 - middle, 1))
        for position, (_, number, _) in enumerate(several):
            positions[number] = centers[box] + (position - middle) * step
    return positions


def _route(graph, chain, ports, centers, boxes, tops, heights):
    """The points of an edge."""
    (start, end), source, target = ports, chain[0], chain[-1]
    _, top, _, height = boxes[source]
    points = [(start, top + height), (start, top + heights[graph.ranks[source]])]
    for place in chain[1:-1]:
        rank = graph.ranks[place]
        points += [(centers[place], tops[rank]), (centers[place], tops[rank] + heights[rank])]
    return [*points, (end, boxes[target][1])]
