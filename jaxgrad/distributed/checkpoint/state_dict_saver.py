"""`save` and `async_save`."""

from __future__ import annotations

import enum
import os
import threading
import warnings
from concurrent.futures import Future
from typing import Any

import jax
import numpy as np

from ...autograd.grad_mode import no_grad
from ...names.not_provided import names_of
from ...tape.tensor import Tensor, current, held, wrap
from ..object_collectives import exchanged
from . import _orbax, _tree
from ._processes import Processes, agree, processes_of
from .api import CheckpointException
from .filesystem import FileSystemWriter, folder_of
from .stateful import Stateful


class AsyncCheckpointerType(enum.Enum):
    """How `async_save` runs beside the program: always by threads."""

    THREAD = "thread"
    PROCESS = "process"


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner=None,
    process_group=None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> None:
    """Save nested dicts and lists of tensors, numbers and strings in a folder, by orbax.

    All processes call it, and it returns when all have written. Each writes its shards of DTensors;
    of other tensors and of numbers, the first process that has the key writes its own. Objects with
    `state_dict()` may be values of the dict. A checkpoint that is there is replaced when the new
    one is whole: whoever is killed before leaves the old one.

    checkpoint_id: the folder, on a file system that all processes see; storage_writer: a
    FileSystemWriter in its place. process_group: the processes that call it, by default all;
    no_dist: this process alone calls it. use_collectives is taken and not used.

    Raises TypeError for a value of another kind, and names its key, before anything is written;
    RuntimeError without a folder, and for one that FileSystemWriter(overwrite=False) must not
    replace; NotImplementedError for a planner, and where the process of rank 0 does not take part;
    CheckpointException if another process fails or orbax cannot write; ImportError without orbax.

    >>> import tempfile
    >>> from jaxgrad.distributed import checkpoint
    >>> folder = tempfile.mkdtemp()
    >>> checkpoint.save({"x": jaxgrad.arange(3), "epoch": 1}, checkpoint_id=folder)
    >>> state = {"x": jaxgrad.zeros(3, dtype=jaxgrad.int64), "epoch": 0}
    >>> checkpoint.load(state, checkpoint_id=folder)
    >>> state
    {'x': tensor([0, 1, 2]), 'epoch': 1}
    """
    begin("save", state_dict, checkpoint_id, storage_writer, planner, process_group, no_dist)()


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: FileSystemWriter,
    process_group=None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner=None,
) -> None:
    """Call `save`, the newer name, after a FutureWarning.

    coordinator_rank: without effect, since all processes learn what happened; else as in `save`.

    >>> import tempfile
    >>> from jaxgrad.distributed import checkpoint
    >>> folder = tempfile.mkdtemp()
    >>> with warnings.catch_warnings(action="ignore"):
    ...     checkpoint.save_state_dict({"epoch": 1}, checkpoint.FileSystemWriter(folder))
    """
    warnings.warn(
        "'save_state_dict' is deprecated and will be removed in future versions. "
        "Please use 'save' instead.",
        FutureWarning,
        stacklevel=2,
    )
    begin("save", state_dict, None, storage_writer, planner, process_group, no_dist)()


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner=None,
    process_group=None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager=None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future:
    """As `save`, and returns when the tensors are copied: threads write while training goes on.

    Returns a Future whose `result()` waits and raises what went wrong. A save waits for the one
    before it, and Python does not end before it is done; wait for it before destroy_process_group.
    async_checkpointer_type and async_stager are taken and not used. Raises as `save`.

    >>> import tempfile
    >>> from jaxgrad.distributed import checkpoint
    >>> future = checkpoint.async_save({"epoch": 1}, checkpoint_id=tempfile.mkdtemp())
    >>> future.result(), future.done()
    (None, True)
    """
    finish = begin(
        "async_save", state_dict, checkpoint_id, storage_writer, planner, process_group, no_dist
    )
    future: Future = Future()
    future.set_running_or_notify_cancel()  # nobody can cancel it
    thread = threading.Thread(target=_finish_for, args=(future, finish), name="async_save")
    _last.thread = thread
    thread.start()
    return future


class _Last:
    """thread: that of the last async_save."""

    thread: threading.Thread | None = None


_last = _Last()


def _finish_for(future, finish):
    try:
        finish()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(None)


def wait_for_last():
    """Wait until the last async_save is done."""
    if _last.thread is not None and _last.thread is not threading.current_thread():
        _last.thread.join()
        _last.thread = None


@no_grad()
def begin(name, state_dict, checkpoint_id, writer, planner, process_group, no_dist):
    """Copy the tensors and begin to write; returns a function that waits until that is done."""
    if planner is not None:
        raise NotImplementedError(f"{name}: orbax plans what is written: leave `planner` out")
    _orbax.orbax()
    folder = folder_of(checkpoint_id, writer, FileSystemWriter)
    processes = processes_of(process_group, no_dist)
    if 0 not in (processes.ranks or (0,)):
        raise NotImplementedError(
            f"{name}: orbax writes tensors that are no DTensors by the process of rank 0, and it "
            f"is not among the ranks {list(processes.ranks)} that save"
        )
    wait_for_last()
    what = f"{name} to {folder}"
    version, tree, arrays = _prepared(what, state_dict, folder, writer, processes)
    log = _orbax.Log()
    saver = _orbax.checkpointer(processes.ranks, processes.timeout)

    def end():
        saver.wait_until_finished()
        saver.close()
        if processes.is_first:
            _orbax.remove_before(folder, version)

    _guarded(what, processes, log, lambda: _orbax.write(saver, folder, version, tree, arrays))
    return lambda: _guarded(what, processes, log, end)


def _prepared(what, state_dict, folder, writer, processes: Processes):
    """The version to write, its JSON and its arrays, when all processes have found theirs good."""
    tensors: dict[tuple, Tensor] = {}
    tree = version = error = None
    spanning: list[str] = []
    try:
        tree = _tree.encoded(_with_states(state_dict), (), tensors)
        spanning = _spanning(processes, tensors)
        version = _version(folder, writer) if processes.is_first else None
    except Exception as caught:
        error = caught
    try:
        every = agree(what, processes, [tree, version, spanning], error)
    except CheckpointException:
        if error is not None:
            raise error from None  # what the caller gave is wrong: no failure of the checkpoint
        raise
    tree, version, _ = every[0]
    for other, _, _ in every[1:]:
        tree = _tree.merged(tree, other)
    _tree.give_names(tree)
    _check_spanning(what, every)
    return version, tree, _arrays(processes, tree, tensors, every)


def _with_states(state_dict) -> dict:
    """The dict with the states of its objects in their place."""
    return {
        key: value.state_dict() if isinstance(value, Stateful) else value
        for key, value in state_dict.items()
    }


def _version(folder, writer) -> int:
    if not getattr(writer, "overwrite", True) and _orbax.last_version(folder):
        raise RuntimeError(f"Checkpoint already exists at {folder} and overwrite=False")
    return _orbax.next_version(folder)


def _guarded(what, processes: Processes, log: _orbax.Log, function):
    try:
        function()
    except Exception as error:
        raise CheckpointException(what, {processes.rank: (error, None)}) from error
    finally:
        log.restore()


def _spanning(processes, tensors) -> list[str]:
    """The paths of the tensors that have shards in several processes. Raises RuntimeError if one of
    these does not save.
    """
    paths = []
    for path, tensor in tensors.items():
        array = held(current(tensor))
        if array.is_fully_addressable:
            continue
        holders = {device.process_index for device in array.sharding.device_set}
        if not holders <= set(processes.members):
            raise RuntimeError(
                f"{_tree.shown(path)} has shards in the processes of rank {sorted(holders)}, and "
                f"those of rank {list(processes.members)} save: save it in all, or full_tensor()"
            )
        paths.append(_tree.shown(path))
    return paths


def _check_spanning(what, every):
    """Raise RuntimeError where a tensor has shards in several processes, and not all save it."""
    paths = [set(spanning) for _, _, spanning in every]
    for path in sorted(set.union(*paths) - set.intersection(*paths)):
        raise RuntimeError(
            f"{what}: {path} is a DTensor of several processes, and not in all that save"
        )


def _arrays(processes, tree, tensors, every) -> dict:
    """The array that this process gives orbax for each name: its shards, or the whole array if this
    process writes it, or an array of this shape.
    """
    array_of = {path: held(current(tensor)) for path, tensor in tensors.items()}
    if processes.group is not None:
        array_of = _of_others(processes, array_of, every) | array_of
    arrays = {}
    for path, node in _tree.leaves(tree):
        if 0 in node["shape"]:
            continue  # orbax takes no arrays without elements; the JSON has all there is of them
        array = array_of.get(path)
        if array is None or (not processes.is_first and array.is_fully_addressable):
            array = np.zeros(node["shape"], np.dtype(node["dtype"]))  # takes no memory
        elif jax.process_count() > 1 and array.is_fully_addressable:
            array = np.array(array)  # orbax takes those of one process as arrays of numpy
        arrays[node["tensor"]] = array
    return arrays


def _of_others(processes, array_of, every) -> dict:
    """For the process that writes, the arrays that only others have, by path."""
    seen: set[tuple] = set()
    owners = []
    for tree, _, _ in every:
        paths = {path for path, _ in _tree.leaves(tree)}
        owners.append(paths - seen)
        seen |= paths
    if not any(owners[1:]):
        return {}
    mine = () if processes.is_first else owners[processes.members.index(processes.rank)]
    received = exchanged(
        [[path, wrap(array_of[path])] for path in sorted(mine, key=repr)], processes.group
    )
    return {tuple(path): held(tensor) for pairs in received for path, tensor in pairs}


__getattr__, __dir__ = names_of(__name__)
