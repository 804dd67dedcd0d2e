"""Why a result has no `grad_fn`, noted within `autograd.graph.record_lines`.

An unrecorded result of an input that requires grad gets a `Cause`. Unrecorded results computed from
it inherit the cause, and a node notes the causes of its inputs that are not in the graph. So
`explain` finds the place where a path was cut from both of its ends.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

from ..core.strides import SHAPED
from .mode import INFERENCE, MARK, RECORD, current_mode
from .node import AccumulateGrad, Node
from .source_location import lines, place_of_caller
from .tensor import (
    LeafState,
    Tensor,
    is_tracked,
    known_edge_of,
    known_leaf_state,
    leaf_state,
    node_or_mark,
)
from .traversal import nodes_from

DETACHED, NO_GRAD, INFERENCE_MODE = "detached", "no_grad", "inference_mode"
NOT_DIFFERENTIABLE, CONSTANT_ARGUMENT, MARKED = "operator", "argument", "marked"

# how many causes a tensor keeps, and how many nodes a cause knows upstream
MOST_CAUSES, MOST_NODES = 32, 10_000


class Cause(NamedTuple):
    """Why a path in the graph ended.

    kind: one of the words above; operator: the operator that ended it; place: its source line;
    numbers: the sequence numbers of the nodes upstream; leaves: weak references to the leaves
    upstream.
    """

    kind: str
    operator: str
    place: str
    numbers: frozenset
    leaves: tuple

    def follows(self, tensor: Tensor) -> bool:
        """Whether the path that ended leads to `tensor`, which requires grad."""
        if any(leaf() is tensor for leaf in self.leaves):
            return True
        node, _ = known_edge_of(tensor)
        return node.sequence in self.numbers

    def __repr__(self):
        return f"<{self.kind} in {self.operator} at {self.place}>"


def of(tensor_or_node) -> tuple[Cause, ...]:
    """The causes noted for a tensor, or for the inputs of a node."""
    if isinstance(tensor_or_node, Node):
        extras = tensor_or_node.extras
        metadata = None if extras is None else extras.metadata
        return () if metadata is None else metadata.get("cut", ())
    return getattr(known_leaf_state(tensor_or_node), "causes", None) or ()


def merged(several) -> tuple[Cause, ...]:
    """The causes without repetitions: the latest of each kind, operator and line."""
    latest = {}
    for causes in several:
        for cause in causes:
            key = cause.kind, cause.operator, cause.place
            latest.pop(key, None)
            latest[key] = cause
    return tuple(latest.values())[-MOST_CAUSES:]


def note(program, leaves, mask, node, results):
    """Note why results are not recorded, and on a node the causes of its untracked inputs."""
    wanted = node.reverse.wanted if isinstance(node, Node) else ()
    inputs = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    before = merged([of(tensor) for tensor in inputs if not is_tracked(tensor)])
    lost = [leaf for i, leaf in enumerate(leaves) if mask[i] and i not in wanted]
    name = getattr(getattr(program, "primitive", program), "name", "operator")
    if wanted:
        if lost and name not in SHAPED:
            before = merged([before, [cause_of(CONSTANT_ARGUMENT, name, lost)]])
        if before:
            node.metadata["cut"] = before
        lost, before = inputs, ()
    results = [tensor for tensor in results if not is_tracked(tensor)]
    if lost and results and current_mode.get() != MARK:
        before = merged([before, [cause_of(_kind(name), name, lost)]])
    for tensor in results if before else ():
        leaf_state(tensor).causes = before


def _kind(name):
    if current_mode.get() >= INFERENCE:
        return INFERENCE_MODE
    if current_mode.get() != RECORD:
        return NO_GRAD
    return DETACHED if name == "detach" else NOT_DIFFERENTIABLE


def note_detached(source: Tensor, result: Tensor):
    """Note a tensor that `detach` or `data` took out of the graph."""
    if not lines.get():
        return
    causes = [cause_of(DETACHED, "detach", [source])] if is_tracked(source) else of(source)
    if causes:
        leaf_state(result).causes = tuple(causes)


def note_written(target: Tensor, value: Tensor):
    """Note why the new value of a tensor that was written to is not in the graph."""
    causes = () if is_tracked(target) or not lines.get() else of(value)
    if causes:
        leaf_state(target).causes = causes


def note_call(ctx, args, results):
    """`note` for the call of a Function."""
    inputs = [tensor for tensor in args if isinstance(tensor, Tensor)]
    before = merged([of(tensor) for tensor in inputs if not is_tracked(tensor)])
    if before:
        ctx.metadata["cut"] = before
    for tensor in results:
        if isinstance(tensor, Tensor) and not is_tracked(tensor):
            leaf_state(tensor).causes = (cause_of(MARKED, ctx.name(), inputs),)


def cause_of(kind, operator, sources) -> Cause:
    """The cause that a result computed from `sources` is not recorded."""
    ancestries = [upstream(known_edge_of(source)[0]) for source in sources if _has_edge(source)]
    numbers = frozenset().union(*(numbers for numbers, _ in ancestries))
    leaves = {id(leaf()): leaf for _, several in ancestries for leaf in several}
    return Cause(kind, operator, place_of_caller(), numbers, tuple(leaves.values()))


def _has_edge(tensor) -> bool:
    # a leaf state of another class marks a history that is not known
    kind = type(known_leaf_state(tensor))
    known = node_or_mark(tensor) is not None or kind in (type(None), LeafState)
    return is_tracked(tensor) and known


# results of `upstream`, as long as the node lives
_ancestries: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def upstream(node: Node):
    """The sequence numbers of the nodes upstream of a node, and weak references to the leaves.

    Paths continue beyond the places where they were cut.
    """
    ancestry = _ancestries.get(node)
    if ancestry is not None:
        return ancestry
    numbers, leaves = set(), {}

    def is_new(ancestor):
        return len(numbers) < MOST_NODES and ancestor.sequence not in numbers

    for ancestor in nodes_from([node], is_new):
        numbers.add(ancestor.sequence)
        if type(ancestor) is AccumulateGrad:
            leaves[id(ancestor.variable)] = weakref.ref(ancestor.variable)
        for cause in of(ancestor):
            numbers |= cause.numbers
            leaves |= {id(leaf()): leaf for leaf in cause.leaves if leaf() is not None}
    # keep the nodes that were recorded last
    ancestry = frozenset(sorted(numbers)[-MOST_NODES:]), tuple(leaves.values())
    _ancestries[node] = ancestry
    return ancestry
