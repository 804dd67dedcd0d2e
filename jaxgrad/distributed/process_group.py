"""Process groups: which processes take part in a communication.

`init_process_group` connects the processes through `jax.distributed`. Each trains on the first of
its devices; a `DeviceMesh` may have all of them.
"""

from __future__ import annotations

import atexit
import datetime
import os
import sys
import warnings

import jax

from ..core import jax_internals, pending, world
from ..core.world import DistBackendError, mesh_of_devices
from .debug_level import DebugLevel as DebugLevel
from .debug_level import get_debug_level as get_debug_level
from .debug_level import set_debug_level as set_debug_level
from .debug_level import set_debug_level_from_env as set_debug_level_from_env

DEFAULT_TIMEOUT = datetime.timedelta(minutes=30)

# JAX ends a process that hears nothing of another one for so long, in seconds
HEARTBEAT = 100


class ProcessGroup:
    """Processes that communicate with one another.

    ranks: their numbers in the world, in the order of their ranks in the group; partition: groups
    that together have each process once, this one among them, so that a compiled function can
    communicate in all at once; None if they are not known.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.group.WORLD
    ProcessGroup(ranks=[0])
    >>> jaxgrad.distributed.destroy_process_group()
    """

    def __init__(self, ranks, partition=None, name: str = "", timeout=DEFAULT_TIMEOUT):
        self.ranks, self.partition, self.group_name = tuple(ranks), partition, name
        self.timeout, self.group_desc = timeout, name or "default_pg"
        devices = world.current.mesh.devices.ravel()
        self.mesh = mesh_of_devices([devices[rank] for rank in self.ranks])
        self.is_world = self.ranks == tuple(range(world.current.size))

    def size(self) -> int:
        """How many processes it has."""
        return len(self.ranks)

    def rank(self) -> int:
        """The rank of this process in the group; -1 if it is not in it."""
        mine = world.current.rank
        return self.ranks.index(mine) if mine in self.ranks else -1

    def name(self) -> str:
        """The name of the backend."""
        return backend_name()

    def __repr__(self):
        return f"ProcessGroup(ranks={list(self.ranks)})"


class _GroupType(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes; None before `init_process_group`."""
        return world.group

    @WORLD.setter
    def WORLD(cls, value):
        world.set_group(value)


class group(metaclass=_GroupType):
    """Holds the default group, as `group.WORLD`.

    >>> jaxgrad.distributed.group.WORLD is None
    True
    """


class GroupMember(metaclass=_GroupType):
    """Holds the default group, as `GroupMember.WORLD`, and what stands for a group that this
    process is not in.

    >>> jaxgrad.distributed.get_rank(jaxgrad.distributed.GroupMember.NON_GROUP_MEMBER)
    -1
    """

    NON_GROUP_MEMBER = -100


def backend_name() -> str:
    """How JAX communicates on this platform: "gloo" on CPUs, "nccl" on GPUs."""
    return {"cpu": "gloo", "gpu": "nccl"}.get(jax.default_backend(), jax.default_backend())


# the groups that this process is in, each with the name of its backend and no store
_pg_map: dict[ProcessGroup, tuple[str, None]] = {}


def _noted(group: ProcessGroup) -> ProcessGroup:
    """The group, which `_pg_map` has from now on if this process is in it."""
    if group.rank() >= 0:
        _pg_map[group] = backend_name(), None
    return group


BACKENDS = ("gloo", "nccl", "mpi", "xccl", "ucc")


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: datetime.timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store=None,
    group_name: str = "",
    pg_options=None,
    device_id=None,
) -> None:
    """Connect this process with the others, by `jax.distributed`.

    backend: "gloo" or "nccl", also as "cpu:gloo,cuda:nccl"; JAX communicates as its platform does.
    init_method: "env://", the default, reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT from the
    environment, which `python -m jaxgrad launch` and torchrun set; "tcp://host:port" names the
    process of rank 0. world_size, rank: instead of those of the environment. timeout: how long the
    processes wait for one another, to start and, on CPUs, in a communication; 30 minutes by
    default. The other arguments are taken and not used.

    It must come before the first tensor: JAX decides then which devices there are. Raises
    ValueError where the environment lacks a variable, for a rank that is not below `world_size`,
    for an unknown `init_method` or backend, and if it has been called before; RuntimeError if JAX
    has computed already; DistError if the others do not come in time.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.get_world_size()
    1
    >>> jaxgrad.distributed.destroy_process_group()
    """
    if world.group is not None:
        raise ValueError("trying to initialize the default process group twice!")
    _check_backend(backend)
    if store is not None:
        raise ValueError(
            "init_process_group: JAX's coordinator is the store, so leave `store` out and give "
            'init_method="tcp://host:port", or MASTER_ADDR and MASTER_PORT in the environment'
        )
    timeout = timeout or DEFAULT_TIMEOUT
    rank, world_size, address = _rendezvous(init_method, world_size, rank)
    if world_size > 1 and not jax.distributed.is_initialized():
        _connect(rank, world_size, address, timeout)
    set_debug_level_from_env()
    begun = world.begin()
    if begun.size != world_size:
        world.end()
        raise ValueError(
            f"init_process_group: world_size is {world_size}, and JAX knows {begun.size} processes"
        )
    world.set_group(_noted(ProcessGroup(range(begun.size), None, group_name, timeout)))


def _check_backend(backend):
    for part in () if backend is None else backend.lower().split(","):
        name = part.rpartition(":")[2]
        if name not in BACKENDS:
            raise ValueError(
                f"Invalid backend: {backend!r}, expected one of {', '.join(BACKENDS)}. JAX "
                "communicates by gloo on CPUs and by NCCL on GPUs, so give one of these, or None"
            )


def _rendezvous(init_method, world_size: int, rank: int):
    """The rank, the number of processes, and the address of the process of rank 0."""
    scheme, _, address = (init_method or "env://").partition("://")
    if scheme == "tcp":
        if rank < 0 or world_size < 1:
            raise ValueError("init_process_group: tcp:// needs both rank= and world_size=")
    elif scheme == "env":
        rank = _number("RANK", "rank") if rank < 0 else rank
        world_size = _number("WORLD_SIZE", "world_size") if world_size < 1 else world_size
        if world_size > 1:
            address = f"{_variable('MASTER_ADDR')}:{_variable('MASTER_PORT')}"
    else:
        raise RuntimeError(
            f"No rendezvous handler for {scheme}://: init_process_group takes "
            f'"env://" and "tcp://host:port", not {init_method!r}'
        )
    if not 0 <= rank < world_size:
        raise ValueError(
            f"Invalid rank {rank}, rank should be in the interval [0, {world_size - 1}]"
        )
    return rank, world_size, address


def _variable(name: str) -> str:
    if name not in os.environ:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{name} expected, but not set. `python -m jaxgrad launch --nproc N script.py` sets it"
        )
    return os.environ[name]


def _number(name: str, argument: str) -> int:
    text = _variable(name)
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"environment variable {name}={text!r} is no number: {argument}") from None


def _connect(rank, world_size, address, timeout):
    seconds = max(1, int(timeout.total_seconds()))
    options = {}
    if int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1 and "LOCAL_RANK" in os.environ:
        # as with torch: each process of a machine has one of its GPUs; CPUs need no such choice
        options["local_device_ids"] = [int(os.environ["LOCAL_RANK"])]
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    _limit_waiting(seconds)
    # it would catch SIGTERM, by which a launcher ends this process
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            address,
            world_size,
            rank,
            initialization_timeout=seconds,
            heartbeat_timeout_seconds=HEARTBEAT,
            shutdown_timeout_seconds=seconds,
            **options,
        )
    except RuntimeError as error:
        if jax_internals.is_of_late_initialization(error):
            raise RuntimeError(
                "init_process_group must be called before the first tensor is made: JAX has chosen "
                "the devices of this process already. Call it first in the script"
            ) from None
        raise DistBackendError(
            f"init_process_group: rank {rank} of {world_size} found no others at {address} within "
            f"{seconds} s: {error}"
        ) from None
    atexit.register(_leave_after_error)


def _limit_waiting(seconds: int):
    """Let a communication on CPUs fail that has waited so long, unless the user has set a limit."""
    flags, name = os.environ.get("XLA_FLAGS", ""), "--xla_cpu_collective_timeout_seconds"
    if name not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {name}={seconds}".strip()


def _leave_after_error():
    """End the process at once after an error that nobody caught: JAX would wait for the others,
    which wait for this one.
    """
    is_session = hasattr(sys, "ps1")  # where errors do not end the process
    has_failed = not is_session and getattr(sys, "last_value", None) is not None
    if not has_failed or not jax.distributed.is_initialized():
        return
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End the connection with the other processes, or forget one group.

    All processes wait for one another. Raises ValueError without a process group.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.destroy_process_group()
    >>> jaxgrad.distributed.is_initialized()
    False
    """
    if group is not None and group is not world.group:
        _pg_map.pop(group, None)
        return
    default_group()
    pending.run_all()
    world.set_group(None)
    _pg_map.clear()
    world.end()
    if jax.distributed.is_initialized():
        jax.distributed.shutdown()


def default_group() -> ProcessGroup:
    """The group of all processes. Raises ValueError before `init_process_group`."""
    if world.group is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return world.group


def group_of(group) -> ProcessGroup | None:
    """The group that an argument names, None for the default one; None if this process is not in
    it, with a warning.
    """
    if group is None:
        return default_group()
    if group == GroupMember.NON_GROUP_MEMBER or group.rank() < 0:
        warnings.warn(
            f"Running on global rank {world.current.rank}, which does not belong to the group: "
            "nothing is communicated",
            stacklevel=3,
        )
        return None
    return group


def is_available() -> bool:
    """Return True.

    >>> jaxgrad.distributed.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Whether there is a process group.

    >>> jaxgrad.distributed.is_initialized()
    False
    """
    return world.group is not None


def is_torchelastic_launched() -> bool:
    """Whether `python -m jaxgrad launch` or torchrun started this process.

    >>> jaxgrad.distributed.is_torchelastic_launched()
    False
    """
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_gloo_available() -> bool:
    """Return True: JAX communicates by gloo on CPUs.

    >>> jaxgrad.distributed.is_gloo_available()
    True
    """
    return True


def is_nccl_available() -> bool:
    """Whether JAX has GPUs, where it communicates by NCCL.

    >>> jaxgrad.distributed.is_nccl_available() == jaxgrad.cuda.is_available()
    True
    """
    return backend_name() == "nccl"


def is_mpi_available() -> bool:
    """Return False.

    >>> jaxgrad.distributed.is_mpi_available()
    False
    """
    return False


is_ucc_available = is_xccl_available = is_mpi_available


def is_backend_available(backend: str) -> bool:
    """Whether processes can communicate by a backend.

    >>> jaxgrad.distributed.is_backend_available("gloo")
    True
    """
    return backend.lower() == "gloo" or (backend.lower() == "nccl" and is_nccl_available())


def get_rank(group: ProcessGroup | None = None) -> int:
    """The rank of this process in a group; -1 if it is not in it. Raises ValueError before
    `init_process_group`.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.get_rank()
    0
    >>> jaxgrad.distributed.destroy_process_group()
    """
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    return (default_group() if group is None else group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes a group has; -1 if this one is not in it. Raises ValueError before
    `init_process_group`.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.get_world_size()
    1
    >>> jaxgrad.distributed.destroy_process_group()
    """
    return -1 if get_rank(group) < 0 else (default_group() if group is None else group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """How the processes communicate: "gloo" or "nccl". Raises ValueError before
    `init_process_group`.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.get_backend() in ("gloo", "nccl")
    True
    >>> jaxgrad.distributed.destroy_process_group()
    """
    default_group()
    return backend_name()


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank of this process on its machine, by LOCAL_RANK in the environment. Raises
    RuntimeError if it is not set and there is no fallback.

    >>> jaxgrad.distributed.get_node_local_rank(fallback_rank=0)
    0
    """
    if "LOCAL_RANK" not in os.environ and fallback_rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to "
            "get_node_local_rank, or start by `python -m jaxgrad launch`"
        )
    return int(os.environ.get("LOCAL_RANK", fallback_rank))


def new_group(
    ranks=None,
    timeout=None,
    backend: str | None = None,
    pg_options=None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id=None,
    sort_ranks: bool = True,
):
    """A group of some of the processes; all processes must call it, in the same order.

    ranks: their numbers in the world; None for all. Gives GroupMember.NON_GROUP_MEMBER in a process
    that is not among them. Raises ValueError for a rank that does not exist or comes twice, or if
    there is no process group. In a compiled function only the group of all, and those of a
    `DeviceMesh`, `new_subgroups` or `split_group`, communicate, for all processes run one program.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.new_group([0])
    ProcessGroup(ranks=[0])
    >>> jaxgrad.distributed.destroy_process_group()
    """
    _check_backend(backend)
    every = default_group()
    chosen = list(range(every.size())) if ranks is None else list(map(int, ranks))
    _check_ranks("new_group", chosen, every.size())
    group = _noted(ProcessGroup(sorted(chosen) if sort_ranks else chosen, None, group_desc or ""))
    return group if group.rank() >= 0 else GroupMember.NON_GROUP_MEMBER


def _check_ranks(name, ranks, size):
    if len(set(ranks)) < len(ranks) or not all(0 <= rank < size for rank in ranks):
        raise ValueError(
            f"{name}: the new group's rank should be within the world_size set by "
            f"init_process_group, {size}, and each once, not {ranks}"
        )


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list,
    timeout=None,
    backend: str | None = None,
    pg_options=None,
    group_desc: str | None = None,
):
    """The group of this process among several that share no process, and all of these groups.

    ranks_per_subgroup_list: the ranks of each. Raises ValueError where a rank comes twice or does
    not exist.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.new_subgroups_by_enumeration([[0]])
    (ProcessGroup(ranks=[0]), [ProcessGroup(ranks=[0])])
    >>> jaxgrad.distributed.destroy_process_group()
    """
    every, lists = default_group(), [tuple(map(int, part)) for part in ranks_per_subgroup_list]
    ranks = [rank for members in lists for rank in members]
    _check_ranks("new_subgroups_by_enumeration", ranks, every.size())
    is_regular = len(ranks) == every.size() and len({len(members) for members in lists}) == 1
    partition = tuple(lists) if is_regular else None
    groups = [_noted(ProcessGroup(members, partition)) for members in lists]
    return next((group for group in groups if group.rank() >= 0), None), groups


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout=None,
    backend: str | None = None,
    pg_options=None,
    group_desc: str | None = None,
):
    """The group of this process among groups of consecutive ranks, and all of these groups.

    group_size: how many processes each has; by default those of a machine. Raises ValueError if the
    number of processes is no multiple of it.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.new_subgroups(1)
    (ProcessGroup(ranks=[0]), [ProcessGroup(ranks=[0])])
    >>> jaxgrad.distributed.destroy_process_group()
    """
    size = get_world_size(group)
    count = group_size or int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if not 0 < count <= size or size % count:
        raise ValueError(
            f"new_subgroups: the world size {size} must be divisible by group_size={count}"
        )
    ranks = (default_group() if group is None else group).ranks
    return new_subgroups_by_enumeration([ranks[i : i + count] for i in range(0, size, count)])


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks=None,
    timeout=None,
    pg_options=None,
    group_desc: str | None = None,
    backend=None,
):
    """The group of this process among parts of a group; None if it is in none of them.

    split_ranks: for each part the ranks in the parent group. Raises ValueError without it.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.split_group(split_ranks=[[0]])
    ProcessGroup(ranks=[0])
    >>> jaxgrad.distributed.destroy_process_group()
    """
    parent = default_group() if parent_pg is None else parent_pg
    if not split_ranks:
        raise ValueError("split_group: split_ranks cannot be None or empty")
    lists = [[parent.ranks[rank] for rank in part] for part in split_ranks]
    return new_subgroups_by_enumeration(lists)[0]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The ranks in the world of the processes of a group, in the order of their ranks in it.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.get_process_group_ranks(jaxgrad.distributed.group.WORLD)
    [0]
    >>> jaxgrad.distributed.destroy_process_group()
    """
    return list((default_group() if group is None else group).ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in a group of a rank in the world. Raises ValueError if it is not in the group.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.get_group_rank(jaxgrad.distributed.group.WORLD, global_rank=0)
    0
    >>> jaxgrad.distributed.destroy_process_group()
    """
    if global_rank not in group.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group.ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the world of a rank in a group. Raises ValueError if there is none.

    >>> jaxgrad.distributed.init_process_group(world_size=1, rank=0)
    >>> jaxgrad.distributed.get_global_rank(jaxgrad.distributed.group.WORLD, group_rank=0)
    0
    >>> jaxgrad.distributed.destroy_process_group()
    """
    if not 0 <= group_rank < group.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group.ranks[group_rank]


__all__ = [
    *("DebugLevel", "get_debug_level", "set_debug_level", "set_debug_level_from_env"),
    *("GroupMember", "ProcessGroup", "destroy_process_group", "get_backend", "get_global_rank"),
    *("get_group_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank"),
    *("get_world_size", "group", "init_process_group", "is_available", "is_backend_available"),
    *("is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available"),
    *("is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "new_group"),
    *("new_subgroups", "new_subgroups_by_enumeration", "split_group"),
]
