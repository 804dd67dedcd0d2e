"""What the functions of `jaxgrad.func` do with arguments and results."""

from __future__ import annotations

from .. import ops, tangents, views
from ..nodes import AccumulateGrad
from ..tensor import Tensor, current, edge_of, standing, wrap


def positions_of(argnums, count):
    if not isinstance(argnums, int | tuple) or isinstance(argnums, bool):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    chosen = (argnums,) if isinstance(argnums, int) else argnums
    if not chosen:
        raise RuntimeError("argnums must be non-empty")
    for argnum in chosen:
        if not isinstance(argnum, int) or not -count <= argnum < count:
            raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    positions = [argnum % count for argnum in chosen]
    if len(set(positions)) < len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return positions


def leaf_of(value):
    """A tensor to differentiate with respect to: in the graph of the one outside, where that has a
    graph.
    """
    if not isinstance(value, Tensor):
        return wrap(value, requires_grad=True)
    return ops.alias(value) if value.requires_grad else unrecorded(value).requires_grad_()


def unrecorded(value: Tensor, deeply: bool = False) -> Tensor:
    """The value of a tensor without its history on the tape, which moves as the tensor does; with
    `deeply` its tangents are without theirs too. Unlike `detach` it says nothing to JAX, which may
    be differentiating around this place.
    """
    made = wrap(current(value)._raw, views.plain(value._aval))
    held = tangents.kept(value)
    for level, tangent in list(held.of.items()) if deeply and held is not None else ():
        held.set(level, unrecorded(tangent, True))
    return tangents.restore(made, held)


def reaches_others(outputs, inner) -> bool:
    """Whether the graph of some tensors leads to leaves other than those that a function was called
    with.
    """
    own = set(map(id, inner))
    seen, stack = set(), [edge_of(each)[0] for each in outputs if each.requires_grad]
    while stack:
        node = stack.pop()
        if node.sequence in seen:
            continue
        seen.add(node.sequence)
        if type(node) is AccumulateGrad and id(node.variable) not in own:
            return True
        stack.extend([edge[0] for edge in node.edges])
    return False


def array_of(tensor):
    return standing(tensor, "jaxgrad.func gives as a JAX array")._array


def is_tensor(value) -> bool:
    return isinstance(value, Tensor)


def requires_grad(value) -> bool:
    return isinstance(value, Tensor) and tangents.is_recorded(value)
