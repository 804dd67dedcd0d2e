"""Why a result is not in the graph, noted while source lines are (`autograd.graph.record_lines`).

A tensor that was computed from one that requires grad, and is not recorded, gets a `Cause`; what is
computed from it without being recorded has the same cause; and a node notes the causes of those of
its inputs that it does not lead to. So from both ends of a path it can be said where it was cut.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

from ..core import view_ops
from . import node_annotations, version_counter
from .mode import INFERENCE, MARK, RECORD, current_mode
from .node import AccumulateGrad, Node
from .tensor import LeafState, Tensor, known_edge_of, leaf_state
from .traversal import nodes_from

DETACHED, NO_GRAD, INFERENCE_MODE = "detached", "no_grad", "inference_mode"
NOT_DIFFERENTIABLE, CONSTANT_ARGUMENT, MARKED = "operator", "argument", "marked"

# what a tensor, or what a cause knows to lie before it, is cut down to
MOST_CAUSES, MOST_NODES = 32, 10_000


class Cause(NamedTuple):
    """Why a path ended.

    kind: one of the words above; operator: where; place: the source line; numbers: of the nodes
    before it, by `sequence`; leaves: those before it, weakly.
    """

    kind: str
    operator: str
    place: str
    numbers: frozenset
    leaves: tuple

    def follows(self, tensor: Tensor) -> bool:
        """Whether what was cut had been computed from a tensor, which requires grad."""
        if any(leaf() is tensor for leaf in self.leaves):
            return True
        node, _ = known_edge_of(tensor)
        return node.sequence in self.numbers

    def __repr__(self):
        return f"<{self.kind} in {self.operator} at {self.place}>"


def of(thing) -> tuple[Cause, ...]:
    """The causes that were noted of a tensor, or of the inputs of a node."""
    if isinstance(thing, Node):
        extras = thing.extras
        metadata = None if extras is None else extras.metadata
        return () if metadata is None else metadata.get("cut", ())
    return getattr(thing._leaf, "causes", None) or ()


def merged(several) -> tuple[Cause, ...]:
    """All causes, of those of one line and operator the latest, which the others go on in."""
    found = {}
    for causes in several:
        for cause in causes:
            key = cause.kind, cause.operator, cause.place
            found.pop(key, None)
            found[key] = cause
    return tuple(found.values())[-MOST_CAUSES:]


def note(program, leaves, mask, node, results):
    """Note why results are not recorded, and a node what it does not lead to."""
    wanted = node.reverse.wanted if isinstance(node, Node) else ()
    inputs = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    before = merged([of(tensor) for tensor in inputs if not tensor._tracked])
    lost = [leaf for i, leaf in enumerate(leaves) if mask[i] and i not in wanted]
    name = getattr(getattr(program, "primitive", program), "name", "operator")
    if wanted:
        if lost and name not in view_ops.SHAPED:
            before = merged([before, [cause_of(CONSTANT_ARGUMENT, name, lost)]])
        if before:
            node.metadata["cut"] = before
        lost, before = inputs, ()
    results = [tensor for tensor in results if not tensor._tracked]
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


def note_detached(source: Tensor, made: Tensor):
    """Note what was taken out of the graph by `detach` or `data`."""
    if not node_annotations.lines.get():
        return
    found = [cause_of(DETACHED, "detach", [source])] if source._tracked else of(source)
    if found:
        leaf_state(made).causes = tuple(found)


def note_written(target: Tensor, made: Tensor):
    """Note with a tensor that was written to why its new value is not in the graph."""
    found = () if target._tracked or not node_annotations.lines.get() else of(made)
    if found:
        leaf_state(target).causes = found


def note_call(ctx, args, results):
    """Note of a Function's call what `note` does of an operator's."""
    inputs = [tensor for tensor in args if isinstance(tensor, Tensor)]
    before = merged([of(tensor) for tensor in inputs if not tensor._tracked])
    if before:
        ctx.metadata["cut"] = before
    for tensor in results:
        if isinstance(tensor, Tensor) and not tensor._tracked:
            leaf_state(tensor).causes = (cause_of(MARKED, ctx.name(), inputs),)


def cause_of(kind, operator, sources) -> Cause:
    """The cause that what was computed from the sources is not recorded."""
    found = [upstream(known_edge_of(each)[0]) for each in sources if _has_edge(each)]
    numbers = frozenset().union(*(numbers for numbers, _ in found))
    leaves = {id(leaf()): leaf for _, several in found for leaf in several}
    return Cause(kind, operator, version_counter.place_of_caller(), numbers, tuple(leaves.values()))


def _has_edge(tensor) -> bool:
    # a leaf's state of another kind stands for a history that is not known
    known = tensor._node is not None or type(tensor._leaf) in (type(None), LeafState)
    return tensor._tracked and known


# what `upstream` found, while the node lives
_found: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def upstream(node: Node):
    """The numbers of the nodes before a node, and the leaves, weakly; also beyond what was cut."""
    found = _found.get(node)
    if found is not None:
        return found
    numbers, leaves = set(), {}

    def is_new(each):
        return len(numbers) < MOST_NODES and each.sequence not in numbers

    for each in nodes_from([node], is_new):
        numbers.add(each.sequence)
        if type(each) is AccumulateGrad:
            leaves[id(each.variable)] = weakref.ref(each.variable)
        for cause in of(each):
            numbers |= cause.numbers
            leaves |= {id(leaf()): leaf for leaf in cause.leaves if leaf() is not None}
    # the numbers rise, and what is left out was recorded first
    found = frozenset(sorted(numbers)[-MOST_NODES:]), tuple(leaves.values())
    _found[node] = found
    return found
