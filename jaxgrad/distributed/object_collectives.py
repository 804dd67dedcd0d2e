"""Communication of Python objects, in the format of `jaxgrad.save`: receiving runs no code."""

from __future__ import annotations

import io

import numpy as np

from .. import serialization
from ..autograd.grad_mode import no_grad
from ..core import communication as kinds
from ..core.dtypes import int64
from ..frontend import factories
from ..frontend.tensor_data import tensor as tensor_of
from ..tape.communicate import among
from .collectives import ReduceOp, reduced, root_of
from .process_group import ProcessGroup, group_of


def _bytes_of(value) -> bytes:
    file = io.BytesIO()
    serialization.save([value], file, format="pt")
    try:
        _value_of(file.getvalue())
    except serialization.RefusedFile as refusal:
        kind = type(value).__name__
        message = f"a process receives data alone, and what is to be sent, a {kind}, holds more"
        raise TypeError(f"{message}: {refusal}") from refusal
    return file.getvalue()


def _value_of(data: bytes):
    return serialization.load(io.BytesIO(data))[0]


@no_grad()
def exchanged(value, group: ProcessGroup) -> list:
    """The objects of all processes."""
    data = np.frombuffer(_bytes_of(value), np.uint8)
    lengths = among(factories.full((1,), len(data), dtype=int64), group, kinds.AllGather).tolist()
    row = np.zeros((1, max(lengths)), np.uint8)
    row[0, : len(data)] = data
    rows = among(tensor_of(row), group, kinds.AllGather).numpy()
    return [_value_of(row[:n].tobytes()) for row, n in zip(rows, lengths, strict=True)]


def all_gather_object(object_list: list, obj, group=None) -> None:
    """Give all processes the objects of all, in place.

    object_list: has a place for each process. obj: data that
    `jaxgrad.load` reads. Raises ValueError for
    another length, TypeError for an object of another kind.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> objects = [None]
    >>> jaxgrad.distributed.all_gather_object(objects, {"step": 3})
    >>> jaxgrad.distributed.destroy_process_group()
    >>> objects
    [{'step': 3}]
    """
    if (own_group := group_of(group)) is not None:
        _check_length("all_gather_object", "object_list", object_list, own_group)
        object_list[:] = exchanged(obj, own_group)


def _check_length(name, what, values, group):
    if len(values) != group.size():
        raise ValueError(
            f"{name}: {what} must have a place for each of the {group.size()} processes, "
            f"not {len(values)}"
        )


def gather_object(
    obj,
    object_gather_list: list | None = None,
    dst: int | None = None,
    group=None,
    group_dst: int | None = None,
) -> None:
    """Give one process, by default that of rank 0, the objects of all, in place.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> objects = [None]
    >>> jaxgrad.distributed.gather_object({"step": 3}, objects, dst=0)
    >>> jaxgrad.distributed.destroy_process_group()
    >>> objects
    [{'step': 3}]
    """
    if (own_group := group_of(group)) is not None:
        root = root_of(
            "gather_object", own_group, 0 if dst is group_dst is None else dst, group_dst
        )
        if own_group.rank() == root:
            _check_length(
                "gather_object", "object_gather_list", object_gather_list or (), own_group
            )
        every = exchanged(obj, own_group)
        if own_group.rank() == root:
            object_gather_list[:] = every


def broadcast_object_list(
    object_list: list,
    src: int | None = None,
    group=None,
    device=None,
    group_src: int | None = None,
) -> None:
    """Give all processes the objects of one, by default that of rank 0, in place.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> objects = ["run", {"step": 3}]
    >>> jaxgrad.distributed.broadcast_object_list(objects, src=0)
    >>> jaxgrad.distributed.destroy_process_group()
    >>> objects
    ['run', {'step': 3}]
    """
    if (own_group := group_of(group)) is not None:
        root = root_of(
            "broadcast_object_list", own_group, 0 if src is group_src is None else src, group_src
        )
        mine = list(object_list) if own_group.rank() == root else None
        object_list[:] = _broadcast(mine, root, own_group)


@no_grad()
def _broadcast(value, root, group: ProcessGroup):
    data = np.frombuffer(_bytes_of(value), np.uint8)
    size = len(data) if group.rank() == root else 0
    length = int(
        reduced("broadcast", factories.full((), size, dtype=int64), ReduceOp.MAX, group).item()
    )
    row = np.zeros(length, np.uint8)
    if group.rank() == root:
        row[:] = data
    return _value_of(among(tensor_of(row), group, kinds.Broadcast, root=root).numpy().tobytes())


def scatter_object_list(
    scatter_object_output_list: list,
    scatter_object_input_list: list | None = None,
    src: int | None = None,
    group=None,
    group_src: int | None = None,
) -> None:
    """Give each process one object of the list of one of them, as the first of a list.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> mine = [None]
    >>> jaxgrad.distributed.scatter_object_list(mine, [{"step": 3}], src=0)
    >>> jaxgrad.distributed.destroy_process_group()
    >>> mine
    [{'step': 3}]
    """
    if (own_group := group_of(group)) is not None:
        root = root_of(
            "scatter_object_list", own_group, 0 if src is group_src is None else src, group_src
        )
        mine = None
        if own_group.rank() == root:
            mine = list(scatter_object_input_list or ())
            _check_length("scatter_object_list", "scatter_object_input_list", mine, own_group)
        scatter_object_output_list[0] = _broadcast(mine, root, own_group)[own_group.rank()]
