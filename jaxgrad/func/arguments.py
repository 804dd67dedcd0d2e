"""What the functions of `jaxgrad.func` do with arguments and results."""

from __future__ import annotations

import jax

from .. import ops
from ..autograd.functional import IN_A_TRANSFORM
from ..core import view_ops
from ..tape import dual
from ..tape.mode import transforms
from ..tape.node import AccumulateGrad
from ..tape.tensor import Tensor, check_no_tangent, edge_of, wrap
from ..tape.traversal import nodes_from


def positions_of(argnums, count):
    if not isinstance(argnums, int | tuple) or isinstance(argnums, bool):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    chosen = (argnums,) if isinstance(argnums, int) else argnums
    if not chosen:
        raise RuntimeError("argnums must be non-empty")
    for argnum in chosen:
        if not isinstance(argnum, int):
            raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
        if not -count <= argnum < count:
            raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    positions = [argnum % count for argnum in chosen]
    if len(set(positions)) < len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(positions)}")
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
    made = wrap(value._array, view_ops.plain(value._aval))
    held = dual.kept(value)
    for level, tangent in list(held.of.items()) if deeply and held is not None else ():
        held.set(level, unrecorded(tangent, True))
    return dual.restore(made, held)


def reaches_others(outputs, inner) -> bool:
    """Whether the graph of `outputs` leads to leaves other than the function's own, `inner`."""
    own = set(map(id, inner))
    nodes = nodes_from([edge_of(each)[0] for each in outputs if each.requires_grad])
    return any(type(node) is AccumulateGrad and id(node.variable) not in own for node in nodes)


def may_be_asked(args) -> bool:
    """Whether somebody outside may ask for the derivative of what is computed of arguments."""
    leaves = jax.tree.leaves(args, is_leaf=is_tensor)
    return transforms.get() > 0 or any(map(requires_grad, leaves))


def aux_of(aux, inner, recorded):
    """What a function returns beside its results: tensors without the part of their graph that
    leads to the leaves it was called with, where nobody outside may ask for it.
    """

    def shown(value):
        if not requires_grad(value):
            return value
        kept = recorded and (transforms.get() or reaches_others([value], inner))
        return value if kept else unrecorded(value, True)

    return jax.tree.map(shown, aux, is_leaf=is_tensor)


def split_aux(name, output, has_aux):
    """What a function returned, and what is beside it."""
    if not has_aux:
        return output, None
    if not isinstance(output, tuple) or len(output) != 2:
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return output


def check_leaves(leaves):
    """Raises RuntimeError where a function has had a tensor that it is differentiated with respect
    to require no grad.
    """
    if not all(leaf._tracked for leaf in leaves):
        raise RuntimeError(IN_A_TRANSFORM.format("requires_grad_(False)"))


def array_of(tensor):
    return check_no_tangent(tensor, "a transform of jaxgrad.func")._array


def are_arrays(leaves) -> bool:
    """Whether arguments are JAX's, so that results are too."""
    return bool(leaves) and not any(map(is_tensor, leaves))


def is_tensor(value) -> bool:
    return isinstance(value, Tensor)


def requires_grad(value) -> bool:
    return isinstance(value, Tensor) and dual.is_recorded(value)
