"""Arguments and results of the functions of `jaxgrad.func`."""

from __future__ import annotations

from contextlib import contextmanager

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import view_ops
from ..frontend.printing.wrapped import Batch, Wrapper
from ..storage.alias import forget
from ..tape import dual
from ..tape.mode import IN_A_TRANSFORM, transform, transforms, written
from ..tape.node import AccumulateGrad
from ..tape.pytree import flatten, is_tensor, map_leaves
from ..tape.tensor import (
    Tensor,
    abstract_value,
    alias_of,
    check_no_tangent,
    edge_of,
    is_tracked,
    known_edge_of,
    leaf_state,
    wrap,
)
from ..tape.traversal import nodes_from


class LeavesLevel:
    """A transform by reverse mode, with the tensors that it differentiates with respect to."""

    level = None  # of forward mode

    def __init__(self, leaves):
        self.leaves = leaves

    def is_differentiated_by(self, run) -> bool:
        """Whether a backward pass ends at one of the leaves."""
        nodes = [known_edge_of(leaf)[0] for leaf in self.leaves if is_tracked(leaf)]
        return run is not None and any(node.sequence in run.ends for node in nodes)

    def wrapper(self, value):
        """How a tensor prints inside of the transform; None for one that does not depend on the
        leaves.
        """
        if isinstance(value, Batch):
            # a program of one example has leaves of its own
            is_inside = value.example.requires_grad
        else:
            # not by `edge_of`: to read a tensor makes it an input of a trace around the call
            ends = {id(known_edge_of(leaf)[0]) for leaf in self.leaves if is_tracked(leaf)}
            root = [known_edge_of(value)[0]] if is_tracked(value) else []
            is_inside = any(id(node) in ends for node in nodes_from(root))
        return Wrapper("GradTrackingTensor", value) if is_inside else None


@contextmanager
def reverse_mode(leaves):
    """Enter a transform by reverse mode; yields the list of the tensors that the function writes a
    recorded value to, as weak references.
    """
    around, changed = written.get(), []
    token = written.set(changed)
    try:
        with transform(LeavesLevel(leaves)):
            yield changed
    finally:
        written.reset(token)
        if around is not None:
            around += changed


def forget_leaves(changed, leaves, results):
    """Cut the tensors that outlive a function off from its leaves, which no pass reaches later.

    changed: the tensors that it wrote to. results: those whose history is needed.
    """
    aliases = [alias for alias in map(alias_of, results) if alias is not None]
    memory = [alias.storage for alias in aliases]
    for tensor in [reference() for reference in changed]:
        if tensor is None:
            continue
        alias = alias_of(tensor)
        is_needed = any(result is tensor for result in results) or (
            alias is not None and any(storage is alias.storage for storage in memory)
        )
        if is_tracked(tensor) and not is_needed and not reaches_others([tensor], leaves):
            forget(tensor)


class TangentsLevel:
    """A transform by forward mode, with its level."""

    def __init__(self, level):
        self.level = level

    def wrapper(self, value):
        """How a tensor prints inside of the transform; None for one without a tangent."""
        if isinstance(value, Batch) or dual.tangent(value, self.level) is None:
            return None
        return Wrapper("GradTrackingTensor", value)


def positions_of(argnums, count):
    """`argnums` as a list of positions among `count` arguments."""
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
    """A tensor to differentiate with respect to; it continues the graph of `value`, if any."""
    if not isinstance(value, Tensor):
        return wrap(value, requires_grad=True)
    if value.requires_grad:
        return ops.alias(value)
    leaf = unrecorded(value).requires_grad_()
    leaf_state(leaf).argument = value
    return leaf


def give_back(values, leaves):
    """Write to the arguments what the function wrote to their leaves, under `no_grad`."""
    for value, leaf in zip(values, leaves, strict=True):
        if isinstance(value, Tensor) and not value.requires_grad and leaf._version:
            with no_grad():
                value.copy_(unrecorded(leaf))


def shown_as(like: Tensor, tensor: Tensor) -> Tensor:
    """The tensor in the dtype of another one: complex32 is complex64 with a class of its own."""
    if like.dtype is not tensor.dtype:
        tensor.__class__ = type(like)
    return tensor


def unrecorded(value: Tensor, deeply: bool = False) -> Tensor:
    """The value of a tensor without its history, with its tangents.

    deeply: drop the history of the tangents too. Unlike `detach` this does not stop derivatives of
    JAX, which may differentiate an enclosing function.
    """
    tensor = wrap(value._array, view_ops.plain(abstract_value(value)))
    shown_as(value, tensor)
    held = dual.kept(value)
    for level, tangent in list(held.of.items()) if deeply and held is not None else ():
        held.set(level, unrecorded(tangent, True))
    return dual.restore(tensor, held)


def reaches_others(outputs, inner) -> bool:
    """Whether the graph of `outputs` reaches leaves other than `inner`, those of the function."""
    leaves = set(map(id, inner))
    nodes = nodes_from([edge_of(output)[0] for output in outputs if output.requires_grad])
    return any(type(node) is AccumulateGrad and id(node.variable) not in leaves for node in nodes)


def may_be_differentiated(args) -> bool:
    """Whether an outer transform or the caller may differentiate a result with these arguments."""
    leaves, _ = flatten(args)
    return transforms.get() > 0 or any(map(requires_grad, leaves))


def aux_of(aux, inner, recorded):
    """The auxiliary output of a function.

    Its tensors lose their history unless an outer transform or the caller may differentiate it.
    """

    def shown(value):
        if not requires_grad(value):
            return value
        kept = recorded and (transforms.get() or reaches_others([value], inner))
        return value if kept else unrecorded(value, True)

    return map_leaves(shown, aux)


def split_aux(name, output, has_aux):
    """The output of a function, and the auxiliary output if `has_aux`."""
    if not has_aux:
        return output, None
    if not isinstance(output, tuple) or len(output) != 2:
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return output


def check_leaves(leaves):
    """Raise RuntimeError if the function called `requires_grad_(False)` on one of its leaves."""
    if not all(is_tracked(leaf) for leaf in leaves):
        raise RuntimeError(IN_A_TRANSFORM.format("requires_grad_(False)"))


def array_of(tensor):
    return check_no_tangent(tensor, "a transform of jaxgrad.func")._array


def are_arrays(leaves) -> bool:
    """Whether arguments are JAX arrays, so that results must be too."""
    return bool(leaves) and not any(map(is_tensor, leaves))


def requires_grad(value) -> bool:
    return isinstance(value, Tensor) and dual.is_recorded(value)
