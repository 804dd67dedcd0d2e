"""Traversal of the graph of nodes without recursion: a graph may be a million nodes deep."""

from __future__ import annotations

from operator import attrgetter


def search(starts, following, enter=None):
    """Yield each item that can be reached from `starts` once, depth first, the starts included.

    following(item): the items that it leads to; enter(item): whether to yield an item and go on to
    what it leads to, asked when its turn comes; None enters all. Items are hashable.
    """
    seen, stack = set(), list(starts)
    while stack:
        item = stack.pop()
        if item not in seen and (enter is None or enter(item)):
            seen.add(item)
            yield item
            stack.extend(following(item))


def nodes_from(roots, enter=None):
    """Yield each node that nodes lead to once, the roots included; `enter` is that of `search`.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> [node.name() for node in jaxgrad.tape.traversal.nodes_from([x.exp().sum().grad_fn])]
    ['SumBackward0', 'ExpBackward0', 'AccumulateGrad']
    """
    return search(roots, _targets, enter)


def in_backward_order(roots) -> list:
    """All nodes that nodes lead to, the roots included, in the order in which gradients reach them.

    Gradients go to nodes with lower sequence numbers only.
    """
    return sorted(nodes_from(roots), key=attrgetter("sequence"), reverse=True)


def _targets(node):
    return [target for target, _ in node.edges]
