"""The state that a function can reach, saved and put back: tensors, nodes and Python objects.

A walk from the function and its arguments finds the Python objects and most tensors. Watching the
reads of the function (tape/interception.py) finds the other tensors, each before its first read.
Nodes are saved when a pass reaches them.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import types
import weakref

import jax
import jax.numpy as jnp
import numpy as np

from ..capture.graph_input import NumberReads
from ..capture.input_names import PathWalk, arguments_by_name
from ..capture.observation import TensorHolder
from ..capture.reachable import VALUES
from ..core import dtypes
from ..core.aval import has_numbers
from ..draws.environment import EnvironmentHolder
from ..draws.python_runs import MOVING
from ..frontend.generator import Generator, default_generator
from ..state.holder import GlobalsHolder, Holder, parts_of
from ..state.objects import slots_of
from ..state.ownership import is_of_library
from ..state.snapshot import Snapshots
from ..storage.alias import root_of
from ..tape import interception, mode, settings, traced_hooks
from ..tape.node import Node, next_sequence_number
from ..tape.source_location import place_of_caller
from ..tape.tensor import (
    Tensor,
    alias_of,
    current,
    held,
    hold,
    is_traced,
    is_tracked,
    known_counter,
    known_edge_of,
    known_leaf_state,
    node_or_mark,
    recorded_node,
)
from ..tape.traversal import nodes_from

# ---- what a function reaches

# packages of jaxgrad whose objects hold state of the user; those of the others hold caches
_OPEN = ("nn", "optim", "amp", "frontend")


def is_closed(kind: type) -> bool:
    """Whether the instances of a class hold no state of the user."""
    root, _, rest = str(kind.__module__).partition(".")
    return root in ("jax", "jaxlib") or (root == "jaxgrad" and rest.partition(".")[0] not in _OPEN)


class ReachedState(PathWalk):
    """Everything that a function reaches, by name.

    `objects`: the holders of Python objects; `counters`: the holders of jaxgrad's own objects that
    count differently in a trace and in a call; `tensors`: all tensors.
    """

    opaque = (*(kind for kind in VALUES if kind is not np.ndarray), types.ModuleType, Node)

    def __init__(self, function, arguments: dict):
        super().__init__(function)
        self.objects, self.counters = Snapshots(), Snapshots()
        self.tensors: list[Tensor] = []
        for name, value in {**arguments, "the default generator": default_generator}.items():
            self.names.setdefault(id(value), name)
            self.waiting[1].append(value)
        for _ in self.rounds():
            pass

    def named_contents(self, name, value):
        kind = type(value)
        if kind is Generator:
            value.settle()  # states are compared
        if isinstance(value, Tensor):
            self.tensors.append(value)
        elif isinstance(value, type | types.FunctionType):
            if is_of_library(value.__module__):
                return
        elif issubclass(kind, MOVING) and is_of_library(str(kind.__module__)):
            return  # all runs of a call get the same from it (draws/python_runs.py)
        elif is_closed(kind):
            # the function of a compiled one, whose programs are no state
            yield name, getattr(value, "__wrapped__", None)
            return
        yield from super().named_contents(name, value)
        is_counter = str(kind.__module__).startswith("jaxgrad.") and slots_of(kind)
        snapshots = self.counters if is_counter else self.objects
        is_tensor = isinstance(value, Tensor)
        for part in [(value, name, TensorHolder)] if is_tensor else parts_of(value, name):
            holder = snapshots.take(*part)
            # of globals only those that the code names, which `super` gives; of arrays copies
            if not isinstance(holder, GlobalsHolder) and not isinstance(value, np.ndarray):
                yield from [(holder.path(key), content) for key, content in holder.before.items()]
        yield kind.__qualname__, kind


# ---- all of it


class Settings(Holder):
    """The settings of this context and this process."""

    def contents(self, target):
        return {
            "the grad mode": mode.current_mode.get(),
            "the default dtype": dtypes.get_default_dtype(),
            **vars(settings.process),
        }

    def bind(self, target, name, value):
        if name == "the grad mode":
            mode.current_mode.set(value)
        elif name == "the default dtype":
            dtypes.set_default_dtype(value)
        else:
            setattr(settings.process, name, value)


class SavedState:
    """The saved state that a function reaches: its tensors, by id with their names; the `holders`
    of Python objects; `edges`: by the id of a tensor that requires grad, where its gradient
    arrived; `numbers`: the numbers that it reads by `tracing.number`.
    """

    def __init__(self, function, args, kwargs):
        reached = ReachedState(function, arguments_by_name(function, args, kwargs))
        variables = EnvironmentHolder(os.environ, "os.environ")
        self.holders = [Settings(mode, ""), variables, *reached.objects.holders.values()]
        self.names = {id(tensor): reached.names[id(tensor)] for tensor in reached.tensors}
        self.tensors: dict[int, Tensor] = {}
        self.edges: dict[int, tuple] = {}
        self.created: dict[int, weakref.ref] = {}
        # of tensors and nodes: what they hold is put back, and shown by the tensors
        self.inner = reached.counters
        self.begun, self.numbers = next_sequence_number(), NumberReads()
        for tensor in reached.tensors:
            self.save(tensor)

    @contextlib.contextmanager
    def recording(self):
        """Save each tensor that is read inside of the block, before its first read."""
        saving.set(self)
        traced_hooks.outer_nodes.set(self)
        with interception.watch(read=_read, grad=_read, created=_created), self.numbers.open():
            yield

    def save(self, tensor: Tensor):
        if id(tensor) in self.tensors or self.is_created_here(tensor):
            return
        self.tensors[id(tensor)] = tensor
        self.names.setdefault(
            id(tensor), f"the tensor of shape {list(tensor.shape)} read at {place_of_caller()}"
        )
        # up to date: settling a write changes no value, and need not be undone
        if is_tracked(current(tensor)) and not is_cut(tensor):
            self.edges[id(tensor)] = known_edge_of(tensor)
        # not before, since a leaf may get its state there
        counter, leaf, alias = known_counter(tensor), known_leaf_state(tensor), alias_of(tensor)
        self.save_inner(tensor, counter, counter and counter.places, leaf, alias)
        self.save_inner(recorded_node(tensor))
        self.save_extras(getattr(node_or_mark(tensor), "extras", None))
        if leaf is not None:
            self.save_inner(getattr(leaf, "hooks", None), getattr(leaf, "post_hooks", None))
            if getattr(leaf, "grad", None) is not None:
                self.names.setdefault(id(leaf.grad), f"{self.names[id(tensor)]}.grad")
                self.save(leaf.grad)
        if alias is not None:
            self.save_inner(alias.storage)
            if alias.root is not None:
                # a write through a view changes its root unread
                self.save(root_of(alias))

    def is_created_here(self, tensor) -> bool:
        known = self.created.get(id(tensor))
        return known is not None and known() is tensor

    def save_extras(self, extras):
        if extras is not None:
            hooks = (extras.tensor_hooks or {}).values()
            self.save_inner(extras, extras.pre_hooks, extras.post_hooks, *hooks)

    def save_inner(self, *values):
        for value in values:
            for part in () if value is None else parts_of(value, ""):
                self.inner.take(*part)

    def record(self, roots, runs):
        """Save the nodes from before that a pass can reach (see traced_hooks.OuterNodes)."""
        for node in nodes_from([node for node, _ in roots]):
            if node.sequence < self.begun:
                self.save_inner(node)
                self.save_extras(node.extras)

    def all(self) -> list[Holder]:
        """The holders of everything that is saved."""
        return [*self.holders, *self.inner.holders.values()]

    def current(self) -> list[Holder]:
        """Holders of the present contents of everything saved, for `put_back`."""
        pairs = [(holder, holder.reference()) for holder in self.all()]
        return [type(holder)(target, holder.name) for holder, target in pairs if target is not None]

    def put_back(self, moment: list[Holder] | None = None):
        """Put everything back to its saved state, or to its state at a later moment."""
        holders = moment or self.all()
        try:
            _restore(holders)
        except KeyboardInterrupt:
            _restore(holders)  # half of it would be a state in between
            raise

    def disturb(self):
        """Change the saved tensors of floating point by about as much as rounding does."""
        for number, tensor in enumerate(self.tensors.values()):
            # a tensor that shares its memory is computed from that
            if tensor.dtype.is_floating_point and alias_of(tensor) is None:
                hold(tensor, disturbed(held(tensor), number))

    def name(self, tensor: Tensor) -> str:
        return self.names[id(tensor)]


def _restore(holders):
    for holder in holders:
        holder.restore()


def is_cut(tensor: Tensor) -> bool:
    """Whether a tensor is a view with the history of its base. After a write, a gradient arrives
    at the base through the node of the view or past it.
    """
    alias = alias_of(tensor)
    return alias is not None and alias.root is not None and recorded_node(tensor) is not None


def disturbed(array, seed: int):
    """An array whose elements differ in their last bit or two, in either direction."""
    if not has_numbers(array):
        return array
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], array.shape)
    with jax.enable_x64(True):
        steps = jnp.asarray(1 + signs * float(jnp.finfo(array.dtype).eps), array.dtype)
        return array * steps


# the state that a run in this context saves
saving = contextvars.ContextVar("jaxgrad.saving", default=None)


def _read(tensor, *_):
    state = saving.get()
    if state is not None and not is_traced(tensor):
        state.save(tensor)


def _created(tensor):
    state = saving.get()
    if state is not None:
        state.created[id(tensor)] = weakref.ref(tensor)
