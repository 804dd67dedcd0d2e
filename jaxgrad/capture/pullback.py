"""The backward pass of a traced function, traced together with it.

If outputs of a function have a history, passes from them to the captured tensors are traced after
the function.
"""

from __future__ import annotations

import itertools
from operator import attrgetter

from ..autograd._engine.graph_task import PassTo
from ..storage.creation_meta import Severed
from ..tape import node_annotations
from ..tape.node import AccumulateGrad, ProgramNode
from ..tape.tensor import known_leaf_state, wrap
from ..tape.traced_hooks import hooks_at
from ..tape.traversal import nodes_from, search
from .graph_input import GraphInput


class Cotangent(GraphInput):
    """The cotangent of an output."""

    description = "a gradient that arrives from outside"

    def __init__(self, number: int):
        self.key = ("cotangent", number)


class OutputGroup:
    """Outputs with a history whose graphs share a node that a pass frees, or code of the user's,
    which one pass from all of them runs once.

    `outputs`: their numbers; `frees`: whether a pass frees anything that the nodes have saved;
    `calling`: the numbers of outputs whose pass runs a Function or hooks; `reached`: the numbers of
    the captured tensors that get a gradient in a pass from all of them; `arrays`: these gradients,
    until they are taken; `always`: for each output the positions in `reached` that get a gradient,
    if only zeros, from this output alone.

    `is_freed`: for a single output, whether the function has used up its graph or a part of it.
    Then `leads_to` has the numbers of the captured tensors to which the graph leads, and
    `is_partial` tells whether one of these tensors, or another output, still gets a gradient.
    """

    def __init__(self, outputs: list[int], is_freed: bool, frees: bool, calling):
        self.outputs, self.is_freed, self.frees = outputs, is_freed, frees
        self.calling = calling.intersection(outputs)
        self.reached, self.arrays, self.always = [], [], []
        self.leads_to, self.is_partial = [], False

    @property
    def reads_state(self) -> bool:
        """Whether a pass reads more than gradients."""
        return self.frees or bool(self.calling)


class Pullback:
    """The passes from the outputs of a function that have a history to its captured tensors.

    `avals`: the abstract values of these outputs; `groups`: one pass starts from each;
    `cotangents`: the inputs from which the passes start; `inner`: the numbers of the outputs whose
    gradient passes hooks of the function, or on which other outputs depend; `packing`: the hooks
    for saved tensors under which the function runs; `leaves`: the ids of the leaves created in the
    trace on which outputs depend; they get no gradient; `undefined`: the error of a pass where a
    gradient does not exist, None where all exist.
    """

    undefined: str | None = None

    def __init__(self, scope, roots):
        self.avals = [aval for _, aval, _ in roots]
        self.cotangents = [Cotangent(number) for number in range(len(roots))]
        ends = [(captured, end_of(captured)) for captured in scope.captured.values()]
        ends = [(captured, edge) for captured, edge in ends if edge is not None]
        nodes = nodes_between(scope, roots, [edge[0] for _, edge in ends])
        self.groups = groups_of([edge[0] for edge, _, _ in roots], nodes)
        led_to = {edge for node in nodes for edge in node.edges}
        self.packing = node_annotations.packing.get()
        edges = [edge for edge, _, _ in roots]
        self.inner = frozenset(n for n, e in enumerate(edges) if e in led_to or has_hooks(*e))
        for group in self.groups:
            if group.is_freed:
                follow_freed(group, edges, {edge: captured.number for captured, edge in ends})
        lasting = [n for group in self.groups if not group.is_freed for n in group.outputs]
        self.leaves = leaves_of([roots[number][0][0] for number in lasting])
        self.leaves -= {id(captured.tensor) for captured, _ in ends}
        if not lasting or not ends:
            return
        # a caller in grad mode differentiates the gradients; another one leaves out the whole pass
        scope.is_differentiated = False
        cotangents = {n: wrap(scope.add_input(roots[n][2], self.cotangents[n])) for n in lasting}
        for captured, _ in ends:
            captured.snapshot.hooks.mute()  # the engine calls them on the gradient outside
        for group in self.groups:
            if group.is_freed:
                continue
            group_cotangents = [cotangents[number] for number in group.outputs]
            sources = [roots[number][0] for number in group.outputs]
            run = TracedPass(sources, group_cotangents, [edge for _, edge in ends])
            for (captured, _), gradient in zip(ends, run.gradients, strict=True):
                if gradient is not None:
                    group.reached.append(captured.number)
                    group.arrays.append(gradient._array)
            if len(sources) > 1:
                edges = {captured.number: edge for captured, edge in ends}
                reached = [edges[number] for number in group.reached]
                group.always = [always_reached(run, source, reached) for source in sources]

    @property
    def is_partial(self) -> bool:
        """Whether the function has used up a part of the graph of an output, but not all of it."""
        return any(group.is_partial for group in self.groups)

    def take_arrays(self) -> list:
        """The gradients of each group in turn, which it does not keep."""
        arrays = [array for group in self.groups for array in group.arrays]
        for group in self.groups:
            group.arrays = None
        return arrays


def follow_freed(group: OutputGroup, roots, ends: dict):
    """Find where the graph of an output leads if the function has used up a part of the graph.

    roots: the edges of all outputs; ends: by the edges of captured tensors their numbers.
    """
    source = roots[group.outputs[0]]
    led_to = search([source], lambda edge: () if edge in ends else edge[0].edges)
    group.leads_to = sorted(ends[edge] for edge in led_to if edge in ends)
    targets = {*ends, *roots} - {source}
    left = search([source], lambda edge: () if edge in ends or edge[0].is_freed else edge[0].edges)
    group.is_partial = not targets.isdisjoint(left)


def has_hooks(node, output_nr: int) -> bool:
    """Whether the gradient of an output of a node passes hooks before the node runs."""
    extras = node.extras
    return extras is not None and bool(extras.pre_hooks or hooks_at(node, output_nr))


def end_of(captured):
    """The edge at which the gradient of a captured tensor arrives; None where it gets none."""
    if captured.snapshot.edge is not None:
        return captured.snapshot.edge
    # a leaf that requires grad since the function said so
    leaf = known_leaf_state(captured.tensor)
    node = None if leaf is None or isinstance(leaf, Severed) else leaf.node()
    return None if node is None else (node, 0)


class TracedPass(PassTo):
    """A pass from cotangents of the edges `roots` to the edges `ends`, where it stops.

    cotangents: tensors, None for a missing one. `gradients`: for each end the gradient that
    arrives, a tensor or None; `gave`: by the sequence number of a node with the user's code, for
    each edge whether the node gave a gradient.
    """

    def __init__(self, roots, cotangents, ends, create_graph=False):
        super().__init__(True, create_graph, ends, stops=True)
        self.gave = {}
        pairs = [pair for pair in zip(roots, cotangents, strict=True) if pair[1] is not None]
        self.run([root for root, _ in pairs], [self.carried(cotangent) for _, cotangent in pairs])
        captured = [self.captured.get((node.sequence, number)) for node, number in ends]
        self.gradients = list(map(self.as_tensor, captured))

    def called(self, node, gradients):
        results = super().called(node, gradients)
        listed = [results] if len(node.edges) == 1 else results
        self.gave[node.sequence] = [result is not None for result in listed]
        return results


def nodes_between(scope, roots, ends) -> list:
    """The nodes on the way from the outputs to the nodes of the captured tensors, `ends`.

    Raises RuntimeError if the history of an output continues in a graph from outside, beyond the
    captured tensors: it would be lost.
    """
    ends = set(ends)
    nodes = [*nodes_from([edge[0] for edge, _, _ in roots], lambda node: node not in ends)]
    for node in nodes:
        if scope.is_outer_node(node):
            raise RuntimeError(
                f"{scope.name}: a result has a history in a graph that was recorded outside: a "
                f"pass with create_graph ran on to {node.name()}. Compute what is differentiated "
                "inside of the function, or omit create_graph"
            )
    return nodes


def always_reached(run: TracedPass, source, ends) -> set[int]:
    """The positions of the edges in `ends` at which a gradient arrives, if only zeros, in a pass
    from the edge `source` alone. run: a pass from this edge and others.
    """
    stops = set(ends)
    reached = set(search([source], lambda edge: () if edge in stops else always_sent(run, edge[0])))
    return {position for position, end in enumerate(ends) if end in reached}


def always_sent(run: TracedPass, node):
    """The edges along which a node sends a gradient, whichever of its own gradients arrive."""
    extras = node.extras
    is_plain = extras is None or not (extras.pre_hooks or extras.post_hooks)
    if isinstance(node, ProgramNode) and is_plain and not node.reverse.tells_apart:
        return node.edges
    fills = is_plain and node._fills_missing
    if node.output_count == 1 or fills:
        return itertools.compress(node.edges, run.gave.get(node.sequence, ()))
    return ()


def leaves_of(nodes) -> set[int]:
    """The ids of the leaves that nodes lead to."""
    return {id(node.variable) for node in nodes_from(nodes) if type(node) is AccumulateGrad}


def has_saved(node) -> bool:
    """Whether a node has saved anything, which a pass frees."""
    return any(getattr(node, name) for name in node._residuals)


def runs_users_code(node) -> bool:
    """Whether a node runs a Function or hooks."""
    return not isinstance(node, ProgramNode) or node.extras is not None


def above(nodes, condition) -> set:
    """The nodes that meet a condition, and those that lead to one of them."""
    selected = set()
    for node in sorted(nodes, key=attrgetter("sequence")):
        if condition(node) or not selected.isdisjoint([edge[0] for edge in node.edges]):
            selected.add(node)
    return selected


def groups_of(sources, nodes) -> list[OutputGroup]:
    """The groups of outputs, whose nodes are `sources`. Outputs whose passes read only gradients
    form one group, and each output whose graph is freed already forms a group.

    nodes: all nodes to which the outputs lead.
    """
    saving, calling = above(nodes, has_saved), above(nodes, runs_users_code)
    joining = saving | calling
    freed_nodes = above(nodes, attrgetter("is_freed"))
    freed = [source in freed_nodes for source in sources]
    # union-find: each output leads to a lower one of its group, or is the first
    first, owners = list(range(len(sources))), {}

    def first_of(number):
        while first[number] != number:
            number = first[number]
        return number

    for number, source in enumerate(sources):
        waiting = [source if source in joining else "lasting"]
        while waiting and not freed[number]:
            node = waiting.pop()
            if node in owners:
                low, high = sorted([first_of(number), first_of(owners[node])])
                first[high] = low
                continue
            owners[node] = number
            if not isinstance(node, str):
                waiting += [edge[0] for edge in node.edges if edge[0] in joining]
    members: dict[int, list[int]] = {}
    for number in range(len(sources)):
        members.setdefault(first_of(number), []).append(number)
    called = {number for number, source in enumerate(sources) if source in calling}
    return [
        OutputGroup(outputs, freed[number], any(sources[n] in saving for n in outputs), called)
        for number, outputs in members.items()
    ]
