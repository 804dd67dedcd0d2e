"""Whether a tensor depends on any leaf, to the letter.

A node has an edge for every input that requires grad, be it that one of its outputs does not depend
on it: the gradients of a product are one node. Who asks for strictness looks into the programs.
"""

from __future__ import annotations

import jax
from jax.interpreters import partial_eval

from ...core.aval import INLINE32, Aval
from ...tape.node import AccumulateGrad
from ...tape.tensor import edge_of


def depends(tensor, apart=()) -> bool:
    """Whether a tensor, or None, is computed from any leaf that requires grad, apart from some."""
    if tensor is None or not tensor.requires_grad:
        return False
    ignored = {edge_of(each)[0].sequence for each in apart}
    seen, stack = set(), [edge_of(tensor)]
    while stack:
        node, output_nr = stack.pop()
        place = node.sequence, output_nr
        if place in seen or node.sequence in ignored:
            continue
        if type(node) is AccumulateGrad:
            return True
        seen.add(place)
        stack.extend(_sources(node, output_nr))
    return False


def _sources(node, output_nr):
    """The edges to what an output of a node was computed from."""
    if node.reverse is None:
        return [edge for edge in node.edges if edge[0] is not None]
    used = _used(node.reverse.program, output_nr)
    wanted = zip(node.reverse.wanted, node.edges, strict=True)
    return [edge for position, edge in wanted if used[position]]


def _used(program, output_nr):
    """For each input of a program whether an output is computed from it."""
    structs = [i.struct if isinstance(i, Aval) else i(0) for i in program.inputs]
    with jax.enable_x64(program.mode != INLINE32):
        traced = jax.make_jaxpr(program.value)(*structs).jaxpr
    chosen = [position == output_nr for position in range(len(traced.outvars))]
    return partial_eval.dce_jaxpr(traced, chosen)[1]
