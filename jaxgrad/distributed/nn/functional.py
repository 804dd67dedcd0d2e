"""Collective communication with gradients, as torch.distributed.nn.functional.

Each function gives new tensors. The gradient of an input is the derivative of the sum of what all
processes differentiate: where each process calls `backward()` on a loss of its own, that is the sum
of the losses.
"""

from __future__ import annotations

from ... import ops
from ...core import communication as kinds
from ...frontend.factories import zeros_like
from ...names.not_provided import names_of
from ...tape.communicate import among
from ...tape.tensor import Tensor
from ..collectives import ReduceOp, check, reduced, root_of, scattered
from ..process_group import default_group


def _group(group):
    return default_group() if group is None else group


def all_reduce(tensor: Tensor, op=ReduceOp.SUM, group=None) -> Tensor:
    """The tensors of all processes, combined.

    op: ReduceOp.SUM or AVG; others have no derivative, and a backward pass raises
    NotImplementedError. Raises TypeError for what is no tensor of this process.

    >>> from jaxgrad.distributed.nn import functional
    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> functional.all_reduce(x).sum().backward()
    >>> jaxgrad.distributed.destroy_process_group()
    >>> x.grad
    tensor([1., 1.])
    """
    check("all_reduce", tensor)
    return reduced("all_reduce", tensor, op, _group(group))


def all_gather(tensor: Tensor, group=None) -> tuple[Tensor, ...]:
    """The tensors of all processes, which have one shape and dtype.

    >>> from jaxgrad.distributed.nn import functional
    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x = jaxgrad.ones(2)
    >>> functional.all_gather(x)
    (tensor([1., 1.]),)
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("all_gather", tensor)
    return ops.unbind(among(ops.unsqueeze(tensor, 0), _group(group), kinds.AllGather))


def reduce_scatter(output: Tensor, input_list, op=ReduceOp.SUM, group=None) -> Tensor:
    """Combine the lists of all processes tensor by tensor; each process gets the one of its number.

    output: not used; the result is a new tensor.

    >>> from jaxgrad.distributed.nn import functional
    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x = jaxgrad.ones(2)
    >>> functional.reduce_scatter(jaxgrad.empty(2), [x])
    tensor([1., 1.])
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("reduce_scatter", *input_list)
    return scattered("reduce_scatter", ops.stack(list(input_list)), op, _group(group))[0]


def broadcast(tensor: Tensor, src: int, group=None) -> Tensor:
    """The tensor of the process of rank `src`; that process gets the gradients of all.

    >>> from jaxgrad.distributed.nn import functional
    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x = jaxgrad.ones(2)
    >>> functional.broadcast(x, src=0)
    tensor([1., 1.])
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("broadcast", tensor)
    own_group = _group(group)
    root = root_of("broadcast", own_group, src, None)
    return among(tensor, own_group, kinds.Broadcast, root=root)


def reduce(tensor: Tensor, dst: int, op=ReduceOp.SUM, group=None) -> Tensor:
    """The combined tensors in the process of rank `dst`, zeros in the others.

    >>> from jaxgrad.distributed.nn import functional
    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x = jaxgrad.ones(2)
    >>> functional.reduce(x, dst=0)
    tensor([1., 1.])
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("reduce", tensor)
    own_group = _group(group)
    root = root_of("reduce", own_group, dst, None)
    if op is ReduceOp.SUM:
        return among(tensor, own_group, kinds.Reduce, root=root)
    result = reduced("reduce", tensor, op, own_group)
    return result if own_group.rank() == root else zeros_like(result)


def gather(tensor: Tensor, dst: int = 0, group=None) -> tuple[Tensor, ...]:
    """The tensors of all processes in the process of rank `dst`, zeros in the others.

    >>> from jaxgrad.distributed.nn import functional
    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x = jaxgrad.ones(2)
    >>> functional.gather(x, dst=0)
    (tensor([1., 1.]),)
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("gather", tensor)
    own_group = _group(group)
    root = root_of("gather", own_group, dst, None)
    return ops.unbind(among(ops.unsqueeze(tensor, 0), own_group, kinds.Gather, root=root))


def scatter(tensors, src: int = 0, group=None) -> Tensor:
    """One of the tensors of the process of rank `src` for each process. tensors: one for each
    process, in all processes of the same shape and dtype.

    >>> from jaxgrad.distributed.nn import functional
    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x = jaxgrad.ones(2)
    >>> functional.scatter([x], src=0)
    tensor([1., 1.])
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("scatter", *tensors)
    own_group = _group(group)
    root = root_of("scatter", own_group, src, None)
    return among(ops.stack(list(tensors)), own_group, kinds.Scatter, root=root)[0]


def all_to_all(output_tensor_list, input_tensor_list, group=None) -> tuple[Tensor, ...]:
    """One tensor from each process: the tensor at this process's number in the sender's list; all
    have one shape. output_tensor_list: not used; the results are new tensors.

    >>> from jaxgrad.distributed.nn import functional
    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x = jaxgrad.ones(2)
    >>> functional.all_to_all([jaxgrad.empty(2)], [x])
    (tensor([1., 1.]),)
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("all_to_all", *input_tensor_list)
    parts = ops.stack(list(input_tensor_list))
    return ops.unbind(among(parts, _group(group), kinds.AllToAll))


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes=None, input_split_sizes=None, group=None
) -> Tensor:
    """The parts of this process of the tensors of all, along the first dimension.

    output: not used; the result is a new tensor. Raises NotImplementedError for split sizes.

    >>> from jaxgrad.distributed.nn import functional
    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x = jaxgrad.ones(2)
    >>> functional.all_to_all_single(jaxgrad.empty(2), x)
    tensor([1., 1.])
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("all_to_all_single", input)
    if output_split_sizes or input_split_sizes:
        raise NotImplementedError(
            "all_to_all_single with gradients takes parts of one size: pad them, or use all_to_all"
        )
    return among(input, _group(group), kinds.AllToAll)


__getattr__, __dir__ = names_of(__name__)
