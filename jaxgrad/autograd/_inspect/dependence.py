"""Whether a tensor depends on a leaf, judged output by output.

A node has an edge for every input that requires grad, even if one of its outputs does not depend on
that input: both gradients of a product are outputs of one node. `strict` in `autograd.functional`
needs the exact answer, so it looks at the jaxprs of the nodes.
"""

from __future__ import annotations

import jax
from jax.interpreters import partial_eval

from ...core.aval import INLINE32, struct_of
from ...tape.node import AccumulateGrad
from ...tape.tensor import edge_of
from ...tape.traversal import search


def depends(tensor, apart=()) -> bool:
    """Whether a tensor is computed from a leaf other than the leaves of `apart`; False for None."""
    if tensor is None or not tensor.requires_grad:
        return False
    ignored = {edge_of(leaf)[0] for leaf in apart}
    edges = search([edge_of(tensor)], _sources, lambda edge: edge[0] not in ignored)
    return any(type(node) is AccumulateGrad for node, _ in edges)


def _sources(edge):
    """The edges to the inputs that an output of a node is computed from."""
    node, output_nr = edge
    if node.reverse is None:
        return node.edges
    used = _used(node.reverse.program, output_nr)
    wanted = zip(node.reverse.wanted, node.edges, strict=True)
    return [edge for position, edge in wanted if used[position]]


def _used(program, output_nr):
    """For each input of a program, whether an output is computed from it."""
    structs = list(map(struct_of, program.inputs))
    with jax.enable_x64(program.mode != INLINE32):
        traced = jax.make_jaxpr(program.value)(*structs).jaxpr
    chosen = [position == output_nr for position in range(len(traced.outvars))]
    return partial_eval.dce_jaxpr(traced, chosen)[1]
