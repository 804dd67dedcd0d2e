"""What the functions of `jaxgrad.func` do with arguments and results."""

from __future__ import annotations

from .. import ops, tangents
from ..nodes import AccumulateGrad
from ..tensor import Tensor, edge_of, standing, wrap


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
    return ops.alias(value) if value.requires_grad else tangents.apart(value).requires_grad_()


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
