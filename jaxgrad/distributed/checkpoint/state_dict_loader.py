"""`load`: it fills tensors in place, with the placements that they have."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from ...autograd.grad_mode import no_grad
from ...core.meta_array import MetaArray
from ...names.not_provided import names_of
from ...optim.optimizer import Optimizer
from ...storage.alias import assign
from ...tape.tensor import Tensor, current, held, wrap
from . import _orbax, _tree
from ._initial_state import InitialState, initial_state
from ._processes import agree, processes_of
from .default_planner import DefaultLoadPlanner
from .filesystem import FileSystemReader, folder_of
from .state_dict_saver import wait_for_last
from .stateful import Stateful


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_reader: FileSystemReader | None = None,
    planner: DefaultLoadPlanner | None = None,
    process_group=None,
    no_dist: bool = False,
) -> None:
    """Fill a state dict from a checkpoint, in place.

    state_dict: the keys to load; the checkpoint may have more. A tensor keeps its placements, its
    device and its dtype, whatever the checkpoint was saved with: another mesh, other processes.
    Numbers, strings, and lists and tuples without tensors are replaced by those of the checkpoint.
    Objects with `load_state_dict()` may be values of the dict; an optimizer gets its state also if
    it has not stepped.

    checkpoint_id: the folder; storage_reader: a FileSystemReader in its place. planner: a
    DefaultLoadPlanner, whose `allow_partial_load` leaves what the checkpoint lacks. process_group
    and no_dist: as in `save`. All processes call it.

    Raises CheckpointException for a folder that is not there or holds no checkpoint, for a key that
    the checkpoint lacks, a tensor of another shape, or a tensor in place of a number, and names
    the key: nothing has changed then. RuntimeError without a folder, ImportError without orbax.

    >>> import tempfile
    >>> from jaxgrad.distributed import checkpoint
    >>> folder = tempfile.mkdtemp()
    >>> checkpoint.save({"model": jaxgrad.nn.Linear(2, 1)}, checkpoint_id=folder)
    >>> model = jaxgrad.nn.Linear(2, 1)
    >>> checkpoint.load({"model": model}, checkpoint_id=folder)
    """
    if not isinstance(planner, DefaultLoadPlanner | None):
        raise NotImplementedError(
            f"load: orbax plans what is read, and takes DefaultLoadPlanner, not {planner!r}"
        )
    _orbax.orbax()
    folder = folder_of(checkpoint_id, storage_reader, FileSystemReader)
    processes = processes_of(process_group, no_dist)
    wait_for_last()
    with no_grad(), jax.enable_x64(True):
        _load(state_dict, folder, processes, getattr(planner, "allow_partial_load", False))


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: FileSystemReader,
    process_group=None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: DefaultLoadPlanner | None = None,
) -> None:
    """Call `load`, the newer name, after a FutureWarning.

    coordinator_rank: without effect, since all processes learn what happened; else as in `load`.

    >>> import tempfile
    >>> from jaxgrad.distributed import checkpoint
    >>> folder = tempfile.mkdtemp()
    >>> checkpoint.save({"epoch": 1}, checkpoint_id=folder)
    >>> state = {"epoch": 0}
    >>> with warnings.catch_warnings(action="ignore"):
    ...     checkpoint.load_state_dict(state, checkpoint.FileSystemReader(folder))
    >>> state
    {'epoch': 1}
    """
    warnings.warn(
        "'load_state_dict' is deprecated and will be removed in future versions. "
        "Please use 'load' instead.",
        FutureWarning,
        stacklevel=2,
    )
    load(
        state_dict,
        storage_reader=storage_reader,
        planner=planner,
        process_group=process_group,
        no_dist=no_dist,
    )


def _load(state_dict, folder, processes, is_partial):
    what = f"load of {folder}"
    version = _agreed(what, processes, lambda: _orbax.check_is_there(folder))
    plan = _Plan(is_partial)
    targets: dict = {}

    def prepare():
        tree = _orbax.read_tree(folder, version)
        targets.update(_targets(state_dict, tree))
        plan.check(targets, tree, ())
        return tree

    tree = _agreed(what, processes, prepare, is_from_first=False)

    def read():
        arrays = _orbax.read(processes.ranks, folder, version, plan.shardings)
        plan.check_read(arrays)
        return arrays

    arrays = _agreed(what, processes, read, is_from_first=False)
    loaded = plan.fill(targets, tree, (), arrays)
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(loaded[key])
        else:
            state_dict[key] = loaded[key]


def _agreed(what, processes, function, is_from_first=True):
    """The result of a function, of the first process if `is_from_first`. Raises CheckpointException
    if it fails in any process.
    """
    result = error = None
    try:
        result = function()
    except Exception as caught:
        error = caught
    answers = agree(what, processes, result if is_from_first else None, error)
    return answers[0] if is_from_first else result


def _targets(state_dict, tree) -> dict:
    """The dict with the states of its objects in their place."""
    return {
        key: _state_of(value) if isinstance(value, Stateful) else value
        for key, value in state_dict.items()
    }


def _state_of(value):
    if isinstance(value, Optimizer) and not value.state:
        return value.state_dict() | {"state": InitialState(initial_state(value))}
    return value.state_dict()


def _has_tensors(value) -> bool:
    """Whether a list or tuple is loaded item by item, as those with tensors or dicts in it."""
    if isinstance(value, list | tuple):
        return any(map(_has_tensors, value))
    return isinstance(value, Tensor | Mapping)


class _Plan:
    """The parts of a checkpoint to read into a state dict. is_partial: whether values that the
    checkpoint lacks may stay.
    """

    def __init__(self, is_partial: bool):
        self.is_partial = is_partial
        self.nodes: dict[str, dict] = {}
        # how the arrays are to lie, by name; None for those of numpy
        self.shardings: dict[str, Any] = {}

    def check(self, target, node, path):
        """Note which arrays a value needs. Raises an error that names what does not fit."""
        kind = _tree.kind_of(node)
        if isinstance(target, Tensor):
            self.check_tensor(target, node, path)
        elif isinstance(target, Mapping):
            self.check_kind("dict", kind, path)
            self.check_items(target, node, path)
        elif _has_tensors(target):
            self.check_kind("list", "list" if kind == "tuple" else kind, path)
            self.check_length(target, node, path)
            for key, child in _tree.children(node):
                self.check(target[key], child, (*path, key))
        else:
            if kind in ("tensor", "dict"):
                self.check_kind(type(target).__name__, kind, path)
            for _, leaf in _tree.leaves(node):
                self.want(leaf, None)

    def check_items(self, target, node, path):
        there = dict(_tree.children(node))
        for key, value in target.items():
            if key in there:
                self.check(value, there[key], (*path, key))
            elif not self.may_lack(target):
                raise RuntimeError(
                    f"Missing key in checkpoint state_dict: {_tree.shown((*path, key))}."
                )

    def may_lack(self, target) -> bool:
        """Whether the checkpoint may lack a key of a dict."""
        return self.is_partial or isinstance(target, InitialState)

    def check_kind(self, wanted, kind, path):
        if wanted != kind:
            raise ValueError(
                f"Invalid checkpoint metadata for {_tree.shown(path)}, expected {wanted} but "
                f"found {kind}"
            )

    def check_length(self, target, node, path):
        length = len(_tree.children(node))
        if length != len(target):
            raise ValueError(
                f"Size mismatch between saved {length} and current: {len(target)} items for "
                f"{_tree.shown(path)}"
            )

    def check_tensor(self, target, node, path):
        self.check_kind("tensor", _tree.kind_of(node), path)
        if list(target.shape) != node["shape"]:
            raise ValueError(
                f"Size mismatch between saved {node['shape']} and current: {list(target.shape)} "
                f"for {_tree.shown(path)}"
            )
        array = held(current(target))
        if isinstance(array, MetaArray | jax.core.Tracer):
            raise ValueError(
                f"{_tree.shown(path)} has no memory to load into: it is on the device meta, or "
                "being traced; to_empty(device=...) gives a module memory"
            )
        whole = isinstance(array.sharding, jax.sharding.SingleDeviceSharding)
        self.want(node, None if whole else array.sharding)

    def want(self, node, sharding):
        if 0 not in node["shape"]:
            self.nodes[node["tensor"]], self.shardings[node["tensor"]] = node, sharding

    def check_read(self, arrays):
        """Raise ValueError where an array is not what the JSON of the checkpoint says."""
        for name, node in self.nodes.items():
            array = arrays[name]
            if list(array.shape) != node["shape"] or np.dtype(array.dtype).name != node["dtype"]:
                raise ValueError(
                    f"{name} is {np.dtype(array.dtype).name}{list(array.shape)} in the files, and "
                    f"{node['dtype']}{node['shape']} in their description"
                )

    def fill(self, target, node, path, arrays):
        """The value to put in place of a target, whose tensors and dicts are filled in place."""
        if isinstance(target, Tensor):
            _fill_tensor(target, node, arrays)
            return target
        if isinstance(target, Mapping):
            return self.fill_items(target, node, path, arrays)
        if _has_tensors(target):
            pairs = _tree.children(node)
            items = [self.fill(target[key], child, (*path, key), arrays) for key, child in pairs]
            if isinstance(target, tuple):
                return tuple(items)
            target[:] = items
            return target
        return _value(node, arrays)

    def fill_items(self, target, node, path, arrays):
        there = dict(_tree.children(node))
        filled = {
            key: self.fill(value, there[key], (*path, key), arrays) if key in there else value
            for key, value in target.items()
            if key in there or not isinstance(target, InitialState)
        }
        if isinstance(target, InitialState):
            return filled
        target.update(filled)
        return target


def _fill_tensor(target, node, arrays):
    """Write the array of a node into a tensor, in its dtype and with its sharding."""
    present = held(current(target))
    array = arrays.get(node["tensor"])
    if array is None:
        array = np.zeros(node["shape"], np.dtype(node["dtype"]))
    if not isinstance(array, jax.Array):
        array = jax.device_put(array, present.sharding, may_alias=False)
    source = wrap(array)
    if source.dtype != target.dtype:
        source = wrap(jax.device_put(held(current(source.to(target.dtype))), present.sharding))
    assign(target, source, False)


def _value(node, arrays):
    """The value of a node; tensors in it are new ones."""
    kind = _tree.kind_of(node)
    if kind == "number":
        return _tree.number_of(node)
    if kind == "tensor":
        array = arrays.get(node["tensor"])
        if array is None:
            array = np.zeros(node["shape"], np.dtype(node["dtype"]))
        return wrap(jax.device_put(array, may_alias=False))
    pairs = [(key, _value(child, arrays)) for key, child in _tree.children(node)]
    if kind == "dict":
        return dict(pairs)
    return (list if kind == "list" else tuple)([value for _, value in pairs])


__getattr__, __dir__ = names_of(__name__)
