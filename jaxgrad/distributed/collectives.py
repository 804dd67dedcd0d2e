"""Collective communication in place, as torch.distributed: it records nothing for derivatives.
`torch.distributed.nn.functional` has the forms with gradients.
"""

from __future__ import annotations

import enum

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import communication as kinds
from ..core import pending, world
from ..core.aval import is_concrete
from ..core.dtypes import int64
from ..frontend import factories
from ..tape.communicate import among, communicated
from ..tape.tensor import Tensor, abstract_value, spans_processes
from .process_group import ProcessGroup, get_group_rank, group_of


class ReduceOp(enum.Enum):
    """How values of several processes become one.

    >>> jaxgrad.distributed.ReduceOp.SUM.name
    'SUM'
    """

    SUM, AVG, PRODUCT, MIN = "sum", "avg", "product", "min"
    MAX, BAND, BOR, BXOR, PREMUL_SUM = "max", "band", "bor", "bxor", "premul_sum"


class Work:
    """A communication that was begun with `async_op=True`.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> work = jaxgrad.distributed.all_reduce(jaxgrad.ones(2), async_op=True)
    >>> work.wait(), work.result()
    (True, [tensor([1., 1.])])
    >>> jaxgrad.distributed.destroy_process_group()
    """

    def __init__(self, tensors=()):
        self.tensors = list(tensors)

    def wait(self, timeout=None) -> bool:
        """Return True. What reads the tensors waits for their numbers, as with any operator."""
        return True

    def is_completed(self) -> bool:
        """Whether the numbers of the tensors are there."""
        return all(getattr(tensor._array, "is_ready", lambda: True)() for tensor in self.tensors)

    def is_success(self) -> bool:
        """Return True: what fails raises."""
        return True

    def result(self) -> list:
        """The tensors."""
        return self.tensors

    def get_future(self):
        """Return the work itself, which has `wait` and `value`."""
        return self

    value = result


def check(name: str, *tensors):
    """Raise TypeError unless all are tensors of this process."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"Invalid function argument. {name}: expected a torch.Tensor, "
                f"got {type(tensor).__name__}"
            )
        if spans_processes(tensor):
            raise TypeError(
                f"{name} communicates tensors of one process, and got a DTensor of shape "
                f"{list(tensor.shape)}: to_local() gives the part of this process, and "
                "redistribute() communicates parts of DTensors"
            )


def _give(tensor: Tensor, result: Tensor):
    """Write a result to a tensor of its shape and dtype."""
    if result is not tensor:
        tensor.copy_(result)


def _check_like(name, what, tensor, shape, dtype):
    if tuple(tensor.shape) != tuple(shape) or tensor.dtype != dtype:
        raise ValueError(
            f"{name}: {what} must have shape {list(shape)} and dtype {dtype}, not "
            f"{list(tensor.shape)} and {tensor.dtype}"
        )


def _done(async_op, *tensors):
    return Work(tensors) if async_op else None


def root_of(name, group: ProcessGroup, rank, group_rank) -> int:
    """The rank in a group of the process that is named by its rank in the world or the group."""
    if (rank is None) == (group_rank is None):
        raise ValueError(f"{name}: give the rank in the world, or that in the group")
    if group_rank is not None:
        if not 0 <= group_rank < group.size():
            raise ValueError(f"{name}: the group has no rank {group_rank}: {group}")
        return group_rank
    return get_group_rank(group, int(rank))


def reduced(name: str, tensor: Tensor, op, group: ProcessGroup) -> Tensor:
    """The tensors of all processes, combined."""
    op = _op(name, op, tensor)
    if op is ReduceOp.AVG:
        return among(tensor, group, kinds.AllReduce) / group.size()
    return among(tensor, group, kinds.AllReduce, op=op.value)


def _op(name, op, tensor) -> ReduceOp:
    if not isinstance(op, ReduceOp) or op is ReduceOp.PREMUL_SUM:
        raise ValueError(f"{name}: op must be one of ReduceOp.SUM to ReduceOp.BXOR, not {op!r}")
    has_fractions = tensor.is_floating_point() or tensor.is_complex()
    is_bitwise = op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
    if has_fractions if is_bitwise else op is ReduceOp.AVG and not has_fractions:
        raise RuntimeError(f"{name}: Cannot use ReduceOp.{op.name} with {tensor.dtype}")
    return op


@no_grad()
def all_reduce(tensor: Tensor, op=ReduceOp.SUM, group=None, async_op: bool = False):
    """Combine the tensors of all processes, and give each the result, in place.

    tensor: of one shape and dtype in all processes. op: a ReduceOp. async_op: whether to return a
    Work. Raises TypeError for what is no tensor of this process, ValueError for another op,
    RuntimeError for an op that the dtype does not have.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x = jaxgrad.tensor([1.0, 2.0])
    >>> jaxgrad.distributed.all_reduce(x)
    >>> jaxgrad.distributed.destroy_process_group()
    >>> x
    tensor([1., 2.])
    """
    check("all_reduce", tensor)
    if (own_group := group_of(group)) is not None:
        _give(tensor, reduced("all_reduce", tensor, op, own_group))
        return _done(async_op, tensor)


@no_grad()
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op=ReduceOp.SUM,
    group=None,
    async_op: bool = False,
    group_dst: int | None = None,
):
    """Combine the tensors of all processes, and give one of them the result, in place.

    dst: the rank in the world of the process that gets it, or group_dst: in the group. The tensors
    of the others stay. Errors as of `all_reduce`.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.reduce(jaxgrad.ones(2), dst=0, async_op=True).result()
    [tensor([1., 1.])]
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("reduce", tensor)
    if (own_group := group_of(group)) is not None:
        root = root_of("reduce", own_group, dst, group_dst)
        result = reduced("reduce", tensor, op, own_group)
        if own_group.rank() == root:
            _give(tensor, result)
        return _done(async_op, tensor)


@no_grad()
def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group=None,
    async_op: bool = False,
    group_src: int | None = None,
):
    """Give all processes the tensor of one of them, in place.

    src: the rank in the world of that process, or group_src: in the group. Raises TypeError for
    what is no tensor of this process, ValueError for a rank that is not in the group.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.broadcast(jaxgrad.ones(2), src=0, async_op=True).result()
    [tensor([1., 1.])]
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("broadcast", tensor)
    if (own_group := group_of(group)) is not None:
        root = root_of("broadcast", own_group, src, group_src)
        _give(tensor, among(tensor, own_group, kinds.Broadcast, root=root))
        return _done(async_op, tensor)


@no_grad()
def all_gather(tensor_list: list, tensor: Tensor, group=None, async_op: bool = False):
    """Give all processes the tensors of all, in place.

    tensor_list: a tensor for each process, of the shape and dtype of `tensor`. Raises ValueError
    for another number of tensors, or another shape or dtype.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> tensors = [jaxgrad.zeros(2)]
    >>> jaxgrad.distributed.all_gather(tensors, jaxgrad.ones(2))
    >>> jaxgrad.distributed.destroy_process_group()
    >>> tensors
    [tensor([1., 1.])]
    """
    check("all_gather", tensor, *tensor_list)
    if (own_group := group_of(group)) is not None:
        _check_count("all_gather", "tensor_list", tensor_list, own_group)
        for output in tensor_list:
            what = "each tensor of tensor_list"
            _check_like("all_gather", what, output, tensor.shape, tensor.dtype)
        every = among(ops.unsqueeze(tensor, 0), own_group, kinds.AllGather)
        for output, part in zip(tensor_list, ops.unbind(every), strict=True):
            _give(output, part)
        return _done(async_op, *tensor_list)


def _check_count(name, what, tensors, group):
    if len(tensors) != group.size():
        raise ValueError(
            f"{name}: {what} must have a tensor for each of the {group.size()} processes, "
            f"not {len(tensors)}"
        )


@no_grad()
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group=None, async_op: bool = False
):
    """Give all processes the tensors of all as one tensor, in place.

    output_tensor: of the shape of `input_tensor` with its first extent times the number of
    processes, or with one more dimension in front. Raises ValueError for another shape or dtype.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x, output = jaxgrad.ones(2), jaxgrad.empty(1, 2)
    >>> jaxgrad.distributed.all_gather_into_tensor(output, x, async_op=True).result()
    [tensor([[1., 1.]])]
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("all_gather_into_tensor", output_tensor, input_tensor)
    if (own_group := group_of(group)) is not None:
        is_stack = tuple(output_tensor.shape) == (own_group.size(), *input_tensor.shape)
        is_raised = is_stack or not input_tensor.ndim
        part = ops.unsqueeze(input_tensor, 0) if is_raised else input_tensor
        wanted = (own_group.size() * part.shape[0], *part.shape[1:])
        name, dtype = "all_gather_into_tensor", input_tensor.dtype
        _check_like(name, "output_tensor", output_tensor, wanted, dtype)
        _give(output_tensor, among(part, own_group, kinds.AllGather))
        return _done(async_op, output_tensor)


def scattered(name, tensor: Tensor, op, group: ProcessGroup) -> Tensor:
    """The part of this process of the combination of all tensors."""
    op = _op(name, op, tensor)
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        every, size = reduced(name, tensor, op, group), tensor.shape[0] // group.size()
        return every.narrow(0, group.rank() * size, size)
    part = among(tensor, group, kinds.ReduceScatter)
    return part / group.size() if op is ReduceOp.AVG else part


@no_grad()
def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op=ReduceOp.SUM, group=None, async_op: bool = False
):
    """Combine the tensors of all processes, and give each its part of the result, in place.

    input: its first extent is that of `output` times the number of processes, or it has one more
    dimension in front. Raises ValueError for another shape or dtype.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x, output = jaxgrad.ones(1, 2), jaxgrad.empty(2)
    >>> jaxgrad.distributed.reduce_scatter_tensor(output, x, async_op=True).result()
    [tensor([1., 1.])]
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("reduce_scatter_tensor", output, input)
    if (own_group := group_of(group)) is not None:
        is_stack = input.ndim == output.ndim + 1
        part = (1, *output.shape) if is_stack else tuple(output.shape)
        wanted = (own_group.size() * part[0], *part[1:]) if part else (own_group.size(),)
        _check_like("reduce_scatter_tensor", "input", input, wanted, output.dtype)
        result = scattered("reduce_scatter_tensor", input, op, own_group)
        _give(output, result.reshape(output.shape))
        return _done(async_op, output)


@no_grad()
def reduce_scatter(
    output: Tensor, input_list: list, op=ReduceOp.SUM, group=None, async_op: bool = False
):
    """Combine the lists of all processes tensor by tensor, and give each process the result of its
    number, in place. Raises ValueError for another number of tensors, or another shape or dtype.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x, output = jaxgrad.ones(2), jaxgrad.empty(2)
    >>> jaxgrad.distributed.reduce_scatter(output, [x], async_op=True).result()
    [tensor([1., 1.])]
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("reduce_scatter", output, *input_list)
    if (own_group := group_of(group)) is not None:
        _check_count("reduce_scatter", "input_list", input_list, own_group)
        what = "each tensor of input_list"
        for part in input_list:
            _check_like("reduce_scatter", what, part, output.shape, output.dtype)
        _give(output, scattered("reduce_scatter", ops.stack(list(input_list)), op, own_group)[0])
        return _done(async_op, output)


@no_grad()
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes=None,
    input_split_sizes=None,
    group=None,
    async_op: bool = False,
):
    """Give each process a part of the tensor of this one, and take one of each, in place.

    input: its parts along the first dimension go to the processes in order; all have one size,
    unless the split sizes say how long each is. Raises ValueError for sizes that do not fit.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x, output = jaxgrad.ones(2), jaxgrad.empty(2)
    >>> jaxgrad.distributed.all_to_all_single(output, x, async_op=True).result()
    [tensor([1., 1.])]
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("all_to_all_single", output, input)
    if (own_group := group_of(group)) is not None:
        if output_split_sizes or input_split_sizes:
            parts = input.split(input_split_sizes or input.shape[0] // own_group.size())
            sizes = output_split_sizes or [output.shape[0] // own_group.size()] * own_group.size()
            received = [factories.empty((n, *output.shape[1:]), dtype=output.dtype) for n in sizes]
            all_to_all(received, list(parts), own_group)
            _give(output, ops.cat(received))
            return _done(async_op, output)
        _check_like("all_to_all_single", "output", output, input.shape, input.dtype)
        if input.ndim == 0 or input.shape[0] % own_group.size():
            raise ValueError(
                f"all_to_all_single: tensor's dim 0 does not divide equally across group size "
                f"{own_group.size()}: {list(input.shape)}"
            )
        _give(output, among(input, own_group, kinds.AllToAll))
        return _done(async_op, output)


@no_grad()
def all_to_all(
    output_tensor_list: list, input_tensor_list: list, group=None, async_op: bool = False
):
    """Give each process one tensor of this one's list, and take one tensor from each, in place.

    The tensors may differ in shape: a tensor that this process sends must have the shape that the
    receiver expects. Raises ValueError for another number of tensors.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x, output = jaxgrad.ones(2), jaxgrad.empty(2)
    >>> jaxgrad.distributed.all_to_all([output], [x], async_op=True).result()
    [tensor([1., 1.])]
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("all_to_all", *output_tensor_list, *input_tensor_list)
    if (own_group := group_of(group)) is not None:
        for what, tensors in (("output", output_tensor_list), ("input", input_tensor_list)):
            _check_count("all_to_all", f"{what}_tensor_list", tensors, own_group)
        all_tensors = output_tensor_list + input_tensor_list
        # all processes run one program, so the longest tensor of all decides
        longest = factories.full((), max(tensor.numel() for tensor in all_tensors), dtype=int64)
        most = int(reduced("all_to_all", longest, ReduceOp.MAX, own_group).item())
        rows = [
            ops.constant_pad_nd(tensor.reshape(-1), (0, most - tensor.numel()))
            for tensor in input_tensor_list
        ]
        every = ops.unbind(among(ops.stack(rows), own_group, kinds.AllToAll))
        for output, row in zip(output_tensor_list, every, strict=True):
            _give(output, row[: output.numel()].reshape(output.shape))
        return _done(async_op, *output_tensor_list)


@no_grad()
def scatter(
    tensor: Tensor,
    scatter_list: list | None = None,
    src: int | None = None,
    group=None,
    async_op: bool = False,
    group_src: int | None = None,
):
    """Give each process one tensor of the list of one of them, in place.

    scatter_list: in the process `src` a tensor for each, of the shape and dtype of `tensor`. src: 0
    by default. Raises ValueError for another number of tensors, or another shape or dtype.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x, output = jaxgrad.ones(2), jaxgrad.empty(2)
    >>> jaxgrad.distributed.scatter(output, [x], src=0, async_op=True).result()
    [tensor([1., 1.])]
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("scatter", tensor, *(scatter_list or ()))
    if (own_group := group_of(group)) is not None:
        root = root_of("scatter", own_group, 0 if src is group_src is None else src, group_src)
        if own_group.rank() == root:
            _check_count("scatter", "scatter_list", scatter_list or (), own_group)
            what = "each tensor of scatter_list"
            for part in scatter_list:
                _check_like("scatter", what, part, tensor.shape, tensor.dtype)
            parts = ops.stack(list(scatter_list))
        else:
            parts = factories.zeros((own_group.size(), *tensor.shape), dtype=tensor.dtype)
        _give(tensor, among(parts, own_group, kinds.Scatter, root=root)[0])
        return _done(async_op, tensor)


@no_grad()
def gather(
    tensor: Tensor,
    gather_list: list | None = None,
    dst: int | None = None,
    group=None,
    async_op: bool = False,
    group_dst: int | None = None,
):
    """Give one process the tensors of all, in place.

    gather_list: in the process `dst` a tensor for each, of the shape and dtype of `tensor`. dst: 0
    by default. Raises ValueError for another number of tensors, or another shape or dtype.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> x, output = jaxgrad.ones(2), jaxgrad.empty(2)
    >>> jaxgrad.distributed.gather(x, [output], dst=0, async_op=True).result()
    [tensor([1., 1.])]
    >>> jaxgrad.distributed.destroy_process_group()
    """
    check("gather", tensor, *(gather_list or ()))
    if (own_group := group_of(group)) is not None:
        root = root_of("gather", own_group, 0 if dst is group_dst is None else dst, group_dst)
        if own_group.rank() == root:
            _check_count("gather", "gather_list", gather_list or (), own_group)
        every = among(ops.unsqueeze(tensor, 0), own_group, kinds.Gather, root=root)
        if own_group.rank() == root:
            for output, part in zip(gather_list, ops.unbind(every), strict=True):
                _give(output, part)
        return _done(async_op, *(gather_list or ()))


# ---- from one process to another


def _between(name, tensor: Tensor, source: int, target: int) -> Tensor:
    if source == target:
        raise ValueError(f"Invalid {name}: a process cannot send to itself")
    if not is_concrete(abstract_value(tensor).mode):
        raise RuntimeError(
            f"{name} in a compiled function: all processes run one program, and only two of them "
            "would run this. Use broadcast or all_to_all, or do it outside of the function"
        )
    pair = ProcessGroup(sorted((source, target)))
    places = pair.ranks.index(source), pair.ranks.index(target)
    return communicated(tensor, kinds.Permute(pair.mesh, pairs=(places,)))


@no_grad()
def send(
    tensor: Tensor, dst: int | None = None, group=None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Send a tensor to another process, which calls `recv` with one of its shape and dtype.

    dst: its rank in the world, or group_dst: in the group. tag: not used, for messages between two
    processes arrive in order. Raises ValueError for a process that is not in the group or is this
    one, RuntimeError in a compiled function. In two processes:

        x = torch.ones(2) * dist.get_rank()
        if dist.get_rank() == 1:
            dist.send(x, dst=0)
        else:
            dist.recv(x, src=1)  # x is tensor([1., 1.]) now
    """
    check("send", tensor)
    if (own_group := group_of(group)) is not None:
        target = own_group.ranks[root_of("send", own_group, dst, group_dst)]
        _between("destination rank", tensor, world.current.rank, target)


@no_grad()
def recv(
    tensor: Tensor, src: int | None = None, group=None, tag: int = 0, group_src: int | None = None
) -> int:
    """Receive a tensor from another process, in place; returns its rank.

    src: its rank in the world, or group_src: in the group. Errors as of `send`; ValueError without
    a rank, for JAX cannot receive from any process. In process 1, while process 0 sends to it:

        sender = dist.recv(x, src=0)  # 0
    """
    check("recv", tensor)
    if (own_group := group_of(group)) is None:
        return -1
    source = own_group.ranks[root_of("recv", own_group, src, group_src)]
    _give(tensor, _between("source rank", tensor, source, world.current.rank))
    return source


def isend(
    tensor: Tensor, dst: int | None = None, group=None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """`send`, as a Work.
    Where process 1 calls `recv(x, src=0)`, process 0 calls

        dist.isend(x, dst=1).wait()
    """
    send(tensor, dst, group, tag, group_dst)
    return Work([tensor])


def irecv(
    tensor: Tensor, src: int | None = None, group=None, tag: int = 0, group_src: int | None = None
) -> Work:
    """`recv`, as a Work.
    Where process 0 calls `send(x, dst=1)`, process 1 calls

        (x,) = dist.irecv(x, src=0).result()
    """
    recv(tensor, src, group, tag, group_src)
    return Work([tensor])


class P2POp:
    """A send or a receipt for `batch_isend_irecv`.

    op: `isend` or `irecv`; peer: the rank of the other process in the world, or group_peer: in the
    group. Raises ValueError for another op.

    >>> jaxgrad.distributed.P2POp(jaxgrad.distributed.isend, jaxgrad.ones(2), peer=1).peer
    1
    """

    def __init__(self, op, tensor, peer=None, group=None, tag: int = 0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group, self.group_peer = group, group_peer
        self.peer = peer if group_peer is None else group.ranks[group_peer]


def batch_isend_irecv(p2p_op_list: list) -> list:
    """Send and receive several tensors; returns a Work for each.

    The pairs of processes communicate in one order everywhere, so no two of them wait for one
    another. Raises ValueError for an empty list, or what is no P2POp. An exchange of two processes:

        other = 1 - dist.get_rank()
        ops = [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]
        works = dist.batch_isend_irecv(ops)
    """
    if not p2p_op_list or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type "
            "``torch.distributed.P2POp``."
        )
    mine = world.current.rank

    def order(op):
        source, target = (mine, op.peer) if op.op is isend else (op.peer, mine)
        return min(source, target), max(source, target), source

    for op in sorted(p2p_op_list, key=order):
        op.op(op.tensor, op.peer, op.group, op.tag)
    return [Work([op.tensor]) for op in p2p_op_list]


def barrier(group=None, async_op: bool = False, device_ids=None, timeout=None):
    """Wait until all processes of the group have come here.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.barrier()
    >>> jaxgrad.distributed.destroy_process_group()
    """
    if (own_group := group_of(group)) is not None:
        pending.run_all()
        with no_grad():
            among(factories.ones(1), own_group, kinds.AllReduce).tolist()
        return _done(async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks: bool = False) -> None:
    """`barrier`. Where a process has ended, the others raise DistBackendError.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.monitored_barrier()
    >>> jaxgrad.distributed.destroy_process_group()
    """
    barrier(group)


__all__ = [
    *("P2POp", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_reduce"),
    *("all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "gather"),
    *("irecv", "isend", "monitored_barrier", "recv", "reduce", "reduce_scatter"),
    *("reduce_scatter_tensor", "scatter", "send"),
]
