"""The state that a function can reach, saved and put back: tensors, nodes and Python objects.

Python objects are found by a walk from the function and its arguments. Tensors are found by that
walk too, and by watching what the function reads (tape/interception.py), each before its first
read; nodes, when a pass reaches them.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import types
import weakref
from collections import OrderedDict, deque

import jax
import jax.numpy as jnp
import numpy as np

from ..core import dtypes
from ..frontend.generator import default_generator
from ..storage.alias import root_of
from ..tape import interception, mode, traced_hooks
from ..tape.node import Node, next_sequence_number
from ..tape.object_walk import UNSET, cell_value, global_names, is_of_library
from ..tape.source_location import place_of_caller
from ..tape.tensor import Tensor, current, held, hold, is_traced, known_edge_of
from ..tape.traversal import nodes_from
from .input_names import PathWalk
from .reachable import VALUES

# ---- what a mutable object holds


class Contents:
    """What a mutable object holds, by key.

    `before`: what it held when it was saved; `is_shown`: whether its changes count.
    """

    is_shown = True

    def __init__(self, name: str, holder):
        self.name, self.holder = name, holder
        self.before = self.read()

    def read(self) -> dict:
        return dict(self.holder)

    def write(self, held: dict):
        raise NotImplementedError(f"{type(self).__name__}.write")

    def suffix(self, key) -> str:
        """What leads from the holder to what it holds under a key."""
        return f"[{key!r}]"

    def path(self, key) -> str:
        """The path by which the function reaches what is held under a key."""
        return f"{self.name}{self.suffix(key)}".removeprefix(".")

    def has_changed(self, now: dict, held: dict) -> bool:
        """Whether two answers of `read` differ."""
        return list(map(id, _pairs(now))) != list(map(id, _pairs(held)))

    def put_back(self, held: dict):
        if self.has_changed(self.read(), held):
            self.write(held)


def _pairs(held):
    return [each for pair in held.items() for each in pair]


class Items(Contents):
    """The items of a dict."""

    def read(self):
        return dict(self.holder)

    def write(self, held):
        # past what subclasses do when an item is set; an OrderedDict keeps its order elsewhere
        kind = OrderedDict if isinstance(self.holder, OrderedDict) else dict
        kind.clear(self.holder)
        kind.update(self.holder, held)


class Attributes(Items):
    """The attributes in an object's `__dict__`."""

    def suffix(self, key):
        return f".{key}"


class Elements(Contents):
    """The elements of a list or a deque."""

    def read(self):
        return dict(enumerate(self.holder))

    def write(self, held):
        self.holder.clear()
        self.holder.extend(held.values())

    # by their number, which is a new object at each read
    def has_changed(self, now, held):
        return list(map(id, now.values())) != list(map(id, held.values()))


class Members(Contents):
    """The members of a set."""

    def read(self):
        return {each: each for each in self.holder}

    def write(self, held):
        self.holder.clear()
        self.holder.update(held.values())


class Slots(Attributes):
    """The attributes of an object that lie in slots."""

    def __init__(self, name, holder):
        super().__init__(name, holder)
        # such objects of jaxgrad count what a trace and a call count differently
        self.is_shown = type(holder).__module__.partition(".")[0] != "jaxgrad"

    def read(self):
        found = {slot.__name__: _of(slot, self.holder) for slot in _slots(type(self.holder))}
        return {name: value for name, value in found.items() if value is not UNSET}

    def write(self, held):
        for slot in _slots(type(self.holder)):
            if slot.__name__ in held:
                slot.__set__(self.holder, held[slot.__name__])
            elif _of(slot, self.holder) is not UNSET:
                slot.__delete__(self.holder)


@functools.lru_cache(maxsize=1024)
def _slots(kind) -> list:
    bases = [vars(base) for base in kind.__mro__ if "__slots__" in vars(base)]
    members = [each for base in bases for each in base.values()]
    return [each for each in members if isinstance(each, types.MemberDescriptorType)]


def _of(slot, holder):
    try:
        return slot.__get__(holder)
    except AttributeError:
        return UNSET


class ClassAttributes(Attributes):
    """The attributes of a class."""

    def read(self):
        return {key: value for key, value in vars(self.holder).items() if key[:2] != "__"}

    def write(self, held):
        for name in self.read().keys() - held.keys():
            type.__delattr__(self.holder, name)
        for name, value in held.items():
            if vars(self.holder).get(name, UNSET) is not value:
                type.__setattr__(self.holder, name, value)


class Variables(Attributes):
    """The closure variables of a function, and the globals that its code names."""

    def read(self):
        function = self.holder
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        found = {name: cell_value(cell) for name, cell in cells}
        found |= {name: function.__globals__[name] for name in global_names(function)}
        return {name: value for name, value in found.items() if value is not UNSET}

    def write(self, held):
        function = self.holder
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for name, cell in cells:
            if cell_value(cell) is not held.get(name, UNSET):
                _bind(cell, name, held)
        names = held.keys() - set(function.__code__.co_freevars)
        function.__globals__.update({name: held[name] for name in names})

    def path(self, key):
        return key


def _bind(cell, name, held):
    if name in held:
        cell.cell_contents = held[name]
    else:
        del cell.cell_contents


class Numbers(Contents):
    """The elements of a NumPy array."""

    def read(self):
        return {(): self.holder.copy()}

    def write(self, held):
        np.copyto(self.holder, held[()])

    def suffix(self, key):
        return ""

    def has_changed(self, now, held):
        return now[()].tobytes() != held[()].tobytes()


class Settings(Contents):
    """The settings of this context and this process."""

    def read(self):
        return {
            "the grad mode": mode.current_mode.get(),
            "the default dtype": dtypes.get_default_dtype(),
        }

    def write(self, held):
        mode.current_mode.set(held["the grad mode"])
        dtypes.set_default_dtype(held["the default dtype"])

    def path(self, key):
        return key


def contents_of(name: str, value):
    """Yield the `Contents` of an object."""
    if isinstance(value, types.FunctionType):
        yield Variables(name, value)
    elif isinstance(value, type):
        yield ClassAttributes(name, value)
        return
    elif isinstance(value, np.ndarray) and value.flags.writeable and not value.dtype.hasobject:
        yield Numbers(name, value)
    for kind, form in ((dict, Items), (list | deque, Elements), (set, Members)):
        if isinstance(value, kind):
            yield form(name, value)
    if isinstance(getattr(value, "__dict__", None), dict):
        yield Attributes(name, vars(value))
    if _slots(type(value)):
        yield Slots(name, value)


# ---- what a function reaches

# packages of jaxgrad whose objects hold state of the user; those of the others hold caches
_OPEN = ("nn", "optim", "amp", "frontend")


def is_closed(kind: type) -> bool:
    """Whether the instances of a class hold no state of the user."""
    root, _, rest = kind.__module__.partition(".")
    return root in ("jax", "jaxlib") or (root == "jaxgrad" and rest.partition(".")[0] not in _OPEN)


class StateWalk(PathWalk):
    """Everything that a function reaches, by name.

    `found`: what the objects hold, by id of the holder; `tensors`: all tensors.
    """

    opaque = (*(kind for kind in VALUES if kind is not np.ndarray), types.ModuleType, Node)

    def __init__(self, function, arguments: dict):
        super().__init__(function)
        self.found: dict[int, Contents] = {}
        self.tensors: list[Tensor] = []
        for name, value in {**arguments, "the default generator": default_generator}.items():
            self.names.setdefault(id(value), name)
            self.waiting[1].append(value)
        for _ in self.rounds():
            pass

    def named_contents(self, name, value):
        if isinstance(value, Tensor):
            self.tensors.append(value)
            return super().named_contents(name, value)
        if isinstance(value, type | types.FunctionType):
            if is_of_library(value.__module__):
                return ()
        elif is_closed(type(value)):
            # the function of a compiled one, whose programs are no state
            return [(name, getattr(value, "__wrapped__", None))]
        held = {id(each.holder): each for each in contents_of(name, value)}
        self.found |= held
        return self.further_contents(name, value, held.values())

    def further_contents(self, name, value, held):
        yield from super().named_contents(name, value)
        if not isinstance(value, types.FunctionType):
            for contents in held:
                yield from [(contents.path(key), each) for key, each in contents.before.items()]
        yield type(value).__qualname__, type(value)


def arguments_by_name(function, args, kwargs) -> dict:
    """The arguments of a call by the names of the parameters."""
    called = getattr(function, "forward", function)  # of a module
    try:
        return inspect.signature(called).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # a builtin, or arguments that do not fit
        return {"args": args, **kwargs}


# ---- all of it


class SavedState:
    """The state that a function reaches: its tensors, by id with their names; the `Contents` of
    Python objects; `edges`: by the id of a tensor that requires grad where its gradient arrived.
    """

    def __init__(self, function, args, kwargs):
        walk = StateWalk(function, arguments_by_name(function, args, kwargs))
        self.contents = [Settings("", None), *walk.found.values()]
        self.names = {id(tensor): walk.names[id(tensor)] for tensor in walk.tensors}
        self.tensors: dict[int, Tensor] = {}
        self.edges: dict[int, tuple] = {}
        self.created: dict[int, weakref.ref] = {}
        # of tensors and nodes: what they hold is put back, and shown by the tensors
        self.inner: dict[int, list[Contents]] = {}
        self.begun = next_sequence_number()
        for tensor in walk.tensors:
            self.save(tensor)

    @contextlib.contextmanager
    def recording(self):
        """Save each tensor that is read inside of the block, before its first read."""
        saving.set(self)
        traced_hooks.outer_nodes.set(self)
        with interception.watch(read=_read, grad=_read, created=_created):
            yield

    def save(self, tensor: Tensor):
        if id(tensor) in self.tensors or self.is_created_here(tensor):
            return
        self.tensors[id(tensor)] = tensor
        self.names.setdefault(
            id(tensor), f"the tensor of shape {list(tensor.shape)} read at {place_of_caller()}"
        )
        # up to date: settling a write changes no value, and need not be undone
        if current(tensor)._tracked:
            self.edges[id(tensor)] = known_edge_of(tensor)
        counter, leaf, alias = tensor._counter, tensor._leaf, tensor._alias
        self.save_inner(tensor, counter, counter and counter.places, leaf, alias)
        self.save_extras(getattr(tensor._node, "extras", None))
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
            if value is not None and id(value) not in self.inner:
                self.inner[id(value)] = list(contents_of("", value))

    def record(self, roots, runs):
        """Save the nodes from before that a pass can reach (see traced_hooks.OuterNodes)."""
        for node in nodes_from([node for node, _ in roots]):
            if node.sequence < self.begun:
                self.save_inner(node)
                self.save_extras(node.extras)

    def all(self) -> list[Contents]:
        return [*self.contents, *[each for held in self.inner.values() for each in held]]

    def now(self) -> dict[Contents, dict]:
        """What everything holds now, for `put_back`."""
        return {contents: contents.read() for contents in self.all()}

    def put_back(self, moment: dict[Contents, dict] | None = None):
        """Make everything what it was when it was saved, or at a later moment."""
        for contents in self.all():
            contents.put_back((moment or {}).get(contents, contents.before))

    def disturb(self):
        """Change the saved tensors of floating point by about as much as rounding does."""
        for number, tensor in enumerate(self.tensors.values()):
            # a tensor that shares its memory is computed from that
            if tensor.dtype.is_floating_point and tensor._alias is None:
                hold(tensor, disturbed(held(tensor), number))

    def name(self, tensor: Tensor) -> str:
        return self.names[id(tensor)]


def disturbed(array, seed: int):
    """An array whose elements differ in their last bit or two, in either direction."""
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
