"""The functions of orbax, an optional package, that checkpoints use.

A checkpoint is a folder in which each save makes another folder, jaxgrad.1, jaxgrad.2 and so on,
and then removes those before it. orbax writes a folder under a temporary name, and renames it when
all processes have written. A load takes the last folder that has its final name, so there is a
complete one at each moment.
"""

from __future__ import annotations

import functools
import importlib
import json
import logging
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np

VERSION = re.compile(r"jaxgrad\.(\d+)(\.orbax-checkpoint-tmp.*)?")
FORMAT = 1


@functools.cache
def orbax():
    """The module orbax.checkpoint. Raises ImportError that names the extra if it is missing."""
    log = Log()
    try:
        return importlib.import_module("orbax.checkpoint")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("orbax"):
            raise
        raise ImportError(
            "torch.distributed.checkpoint writes and reads by orbax, which is not installed: "
            "pip install 'jaxgrad[checkpoint]'"
        ) from None
    finally:
        log.restore()


class Log:
    """The handlers of the root logger. absl, by which orbax logs, adds one at the first message if
    there is none, and later calls of logging.basicConfig would have no effect.
    """

    def __init__(self):
        self.handlers = logging.getLogger().handlers[:]

    def restore(self):
        """Remove the handler that absl added."""
        for handler in logging.getLogger().handlers[:]:
            is_plain = type(handler) is logging.StreamHandler and handler.stream is sys.stderr
            if is_plain and handler not in self.handlers:
                logging.getLogger().removeHandler(handler)


def checkpointer(ranks, timeout: float = 1800):
    """A checkpointer of orbax for some of the processes; None for all. timeout: how long they wait
    for one another, in seconds.
    """
    ocp = orbax()
    options = ocp.options.MultiprocessingOptions()
    if ranks is not None:
        options = ocp.options.MultiprocessingOptions(
            ranks[0], set(ranks), "jaxgrad_" + "_".join(map(str, ranks))
        )
    types = ocp.type_handlers
    registry = types.create_type_handler_registry(
        (np.ndarray, types.NumpyHandler(deepcopy_host_arrays=False)),
        (
            jax.Array,
            types.ArrayHandler(
                primary_host=options.primary_host,
                use_replica_parallel=False,  # copies of a plain tensor may differ: that of rank 0
                enable_write_sharding_file=False,  # whoever loads says how they lie
            ),
        ),
    )
    arrays = ocp.PyTreeCheckpointHandler(
        type_handler_registry=registry, multiprocessing_options=options
    )
    tree = ocp.JsonCheckpointHandler(multiprocessing_options=options)
    return ocp.AsyncCheckpointer(
        ocp.CompositeCheckpointHandler(
            tree=tree,
            arrays=arrays,
            composite_options=ocp.CompositeOptions(multiprocessing_options=options),
        ),
        async_options=ocp.AsyncOptions(
            timeout_secs=max(1, int(timeout)),
            create_directories_asynchronously=False,  # threads would wait for it after an error
        ),
        multiprocessing_options=options,
    )


def write(saver, folder: str, version: int, tree, arrays: dict):
    """Begin to write a version: the arrays are copied, and written by other threads."""
    args = orbax().args
    items = {"tree": args.JsonSave({"jaxgrad": FORMAT, "state": tree})}
    if arrays:  # orbax refuses no arrays
        items["arrays"] = args.PyTreeSave(arrays)
    path = os.path.join(folder, f"jaxgrad.{version}")
    _apart(lambda: saver.save(path, args=args.Composite(**items)))


def read(ranks, folder: str, version: int, shardings: dict) -> dict:
    """Arrays by name. shardings: for each a sharding of JAX, or None for an array of numpy."""
    ocp = orbax()
    if not shardings:
        return {}
    how = {
        name: ocp.RestoreArgs(restore_type=np.ndarray)
        if sharding is None
        else ocp.ArrayRestoreArgs(restore_type=jax.Array, sharding=sharding)
        for name, sharding in shardings.items()
    }
    wanted = ocp.args.PyTreeRestore(
        item=dict.fromkeys(shardings, 0), restore_args=how, partial_restore=True
    )
    path = os.path.join(folder, f"jaxgrad.{version}")
    log, loader = Log(), checkpointer(ranks)
    try:
        return _apart(lambda: loader.restore(path, args=ocp.args.Composite(arrays=wanted)))[
            "arrays"
        ]
    finally:
        loader.close()
        log.restore()


def _apart(function):
    """The result of a function of orbax, which runs in another thread: this one may have an event
    loop, as in a notebook, in which orbax would nest its own. Arrays keep 64 bits there.
    """

    def run():
        with jax.enable_x64(True):
            return function()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()


def read_tree(folder: str, version: int):
    """The JSON of a version. Raises ValueError if it is of another format."""
    metadata = json.loads((Path(folder) / f"jaxgrad.{version}" / "tree" / "metadata").read_text())
    if not isinstance(metadata, dict) or metadata.get("jaxgrad") != FORMAT:
        raise ValueError(
            f"{folder} holds a checkpoint of another version of jaxgrad: update jaxgrad to load it"
        )
    return metadata["state"]


def versions(folder: str) -> dict[int, list[Path]]:
    """The folders of each version in the folder of a checkpoint, unfinished ones among them."""
    folders: dict[int, list[Path]] = {}
    for path in Path(folder).iterdir() if os.path.isdir(folder) else ():
        if match := VERSION.fullmatch(path.name):
            folders.setdefault(int(match[1]), []).append(path)
    return folders


def last_version(folder: str) -> int:
    """The last version that is whole; 0 if there is none."""
    whole = [
        number
        for number, paths in versions(folder).items()
        if any(path.suffix == f".{number}" and (path / "tree").is_dir() for path in paths)
    ]
    return max(whole, default=0)


def next_version(folder: str) -> int:
    """A number that no version has. Raises OSError if the folder cannot be made or written to."""
    there = Path(folder)
    while not os.path.lexists(there):
        there = there.parent
    if not there.is_dir():
        raise NotADirectoryError(f"{folder} cannot be a checkpoint: {there} is no folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"{folder} cannot be written: {there} is not writable")
    return max(versions(folder), default=0) + 1


def remove_before(folder: str, version: int):
    """Remove the versions before one, unfinished ones too. Whoever ends it leaves some, which the
    next save removes.
    """
    for number, paths in versions(folder).items():
        for path in paths if number < version else ():
            shutil.rmtree(path, ignore_errors=True)


def check_is_there(folder: str) -> int:
    """The last version. Raises FileNotFoundError or ValueError if there is no checkpoint."""
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{folder} is not there")
    version = last_version(folder)
    if not version:
        why = "is no checkpoint"
        if versions(folder):
            why = "holds a checkpoint whose first save did not finish, and no whole one"
        elif os.path.exists(os.path.join(folder, ".metadata")):
            why = (
                "is a checkpoint of PyTorch, which only PyTorch reads: there, "
                "torch.distributed.checkpoint.format_utils.dcp_to_torch_save makes a file that "
                "jaxgrad.load reads"
            )
        raise ValueError(f"{folder} {why}")
    return version
