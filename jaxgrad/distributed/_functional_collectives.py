"""Collectives that return new tensors, under PyTorch's private names.

Functions whose names end in `_autograd` have gradients, as in `jaxgrad.distributed.nn.functional`.
Reading a result waits for its numbers, as for any operator.
"""

from __future__ import annotations

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import communication as kinds
from ..core.device import contiguous_format
from ..names.not_provided import names_of
from ..tape.communicate import among
from ..tape.tensor import Tensor
from . import collectives
from .collectives import ReduceOp, check, reduced, scattered
from .device_mesh import DeviceMesh
from .process_group import ProcessGroup, new_group

__getattr__, __dir__ = names_of(__name__)


def _group_of(group) -> ProcessGroup:
    """The process group that an argument names: a group, a mesh of one dimension, a mesh and a
    dimension, or a list of ranks.
    """
    if isinstance(group, DeviceMesh):
        return group.get_group()
    if isinstance(group, tuple) and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    if isinstance(group, list):
        return new_group(group)
    if not isinstance(group, ProcessGroup):
        raise ValueError(
            f"Invalid type for group, must be one of ProcessGroup, list, DeviceMesh: {group}"
        )
    return group


def _op(name: str) -> ReduceOp:
    """The reduction of a name, as "sum". Raises ValueError for another name."""
    known = {op.name.lower(): op for op in ReduceOp}
    if name.lower() not in known:
        raise ValueError(f"reduceOp is one of {', '.join(known)}, not {name!r}")
    return known[name.lower()]


def wait_tensor(tensor: Tensor) -> Tensor:
    """Return the tensor: what reads it waits for its numbers.

    >>> jaxgrad.distributed._functional_collectives.wait_tensor(jaxgrad.ones(1))
    tensor([1.])
    """
    return tensor


@no_grad()
def all_reduce(self: Tensor, reduceOp: str, group, tag: str = "") -> Tensor:
    """The tensors of all processes, combined. reduceOp: "sum", "avg", "product", "min", "max"."""
    check("all_reduce", self)
    combined = reduced("all_reduce", self, _op(reduceOp), _group_of(group))
    return combined.clone() if combined is self else combined


@no_grad()
def broadcast(self: Tensor, src: int, group, tag: str = "") -> Tensor:
    """The tensor of the process with rank `src` in the world."""
    copy, group = self.clone(), _group_of(group)
    collectives.broadcast(copy, src, group)
    return copy


def all_gather_tensor_autograd(self: Tensor, gather_dim: int, group, tag: str = "") -> Tensor:
    """The tensors of all processes, one after another along a dimension."""
    check("all_gather_tensor", self)
    parts = among(ops.unsqueeze(self, 0), _group_of(group), kinds.AllGather)
    return ops.cat(ops.unbind(parts), gather_dim)


def reduce_scatter_tensor_autograd(
    self: Tensor, reduceOp: str, scatter_dim: int, group, tag: str = ""
) -> Tensor:
    """The part of this process of the combination of all tensors, along a dimension."""
    check("reduce_scatter_tensor", self)
    first = self.movedim(scatter_dim, 0)
    part = scattered("reduce_scatter_tensor", first, _op(reduceOp), _group_of(group))
    return part.movedim(0, scatter_dim).clone(memory_format=contiguous_format)


def all_to_all_single_autograd(
    self: Tensor, output_split_sizes, input_split_sizes, group, tag: str = ""
) -> Tensor:
    """The parts of this process of the tensors of all, along the first dimension. Raises
    NotImplementedError for split sizes that differ.
    """
    check("all_to_all_single", self)
    if len({*(output_split_sizes or ()), *(input_split_sizes or ())}) > 1:
        raise NotImplementedError(
            "all_to_all_single with gradients takes parts of one size: pad them"
        )
    parts = among(self, _group_of(group), kinds.AllToAll)
    return parts.clone() if parts is self else parts


all_gather_tensor = no_grad()(all_gather_tensor_autograd)
reduce_scatter_tensor = no_grad()(reduce_scatter_tensor_autograd)


@no_grad()
def all_to_all_single(
    self: Tensor, output_split_sizes, input_split_sizes, group, tag: str = ""
) -> Tensor:
    """The parts of this process of the tensors of all, along the first dimension."""
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    output = self.new_empty(rows, *self.shape[1:])
    collectives.all_to_all_single(
        output, self, output_split_sizes, input_split_sizes, _group_of(group)
    )
    return output


def permute_tensor(self: Tensor, src_dst: list[int], group, tag: str = "") -> Tensor:
    """The tensor of the process that sends to this one. src_dst: by rank in the group the rank that
    it sends to. Raises ValueError unless it is a permutation of the ranks.
    """
    group = _group_of(group)
    if sorted(src_dst) != list(range(group.size())):
        raise ValueError(f"permute_tensor: src_dst is no permutation of the ranks: {src_dst}")
    with no_grad():
        parts = among(ops.unsqueeze(self, 0), group, kinds.AllGather)
        return parts[src_dst.index(group.rank())].clone()
