"""What a checkpointed function reads from outside: held as it was, and put back afterwards.

A function that runs again must find what it found before. Its arguments are held by their arrays;
of tensors that it reaches otherwise (closures, attributes of a module, globals) the arrays that
they had are noted, and put into their handles while it runs again. Whatever that run writes, adds
to a `.grad` or registers as a hook is undone at its end.
"""

from __future__ import annotations

import functools
import types
import weakref
from contextlib import contextmanager

import jax

from ..capture.jit import Jitted
from ..core import dtypes
from ..core.aval import traced_aval
from ..frontend.generator import default_generator
from ..tape import mode, traced_hooks
from ..tape.hooks import Hooks, RemovableHandle
from ..tape.node import AccumulateGrad, Node
from ..tape.tensor import Tensor, current
from ..tape.traversal import nodes_from

# how many objects are looked through for tensors
MOST_OBJECTS = 5_000

_UNREAD = object()


def mapped(value, change, kind=Tensor):
    """A value with what is of a kind, in it or in lists, tuples and dicts in it, changed."""
    if isinstance(value, kind):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(mapped(item, change, kind) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(item, change, kind) for item in value))
    if type(value) is dict:
        return {name: mapped(item, change, kind) for name, item in value.items()}
    return value


def once(change):
    """`change`, which makes of one object one other."""
    known = {}

    def changed(value):
        if id(value) not in known:
            known[id(value)] = change(value)
        return known[id(value)]

    return changed


def tensors_in(value):
    """The tensors in a value, or in lists, tuples and dicts in it."""
    found = []
    mapped(value, found.append)
    return {id(tensor): tensor for tensor in found}.values()


class CheckpointError(RuntimeError):
    """A checkpointed function that, run again, did not save what it had saved before."""


def reachable(function, cells=None):
    """The tensors that a function can reach through closures, attributes, containers and the
    globals that it names. cells: a list for the variables of closures, and what they hold.
    """
    seen, stack = {}, [function]
    while stack and len(seen) < MOST_OBJECTS:
        value = stack.pop()
        if value is None or type(value) in _PLAIN or id(value) in seen:
            continue
        seen[id(value)] = value  # held, so that no other gets its id
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, types.FunctionType) and cells is not None:
            cells += [(cell, cell.cell_contents) for cell in _cells(value)]
            stack.extend(_within(value))
        elif not isinstance(value, _OPAQUE):
            stack.extend(_within(value))


_PLAIN = frozenset([bool, int, float, complex, str, bytes, type, types.ModuleType])
_OPAQUE = (Node, type, types.ModuleType, jax.Array, types.BuiltinFunctionType)
_OWN = ("jaxgrad", "jax", "numpy", "torch")


def _within(value):
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, types.FunctionType):
        return _within_function(value)
    if isinstance(value, types.MethodType):
        return (value.__self__, value.__func__)
    if isinstance(value, functools.partial):
        return (value.func, value.args, value.keywords)
    if isinstance(value, Jitted):
        return (value.function,)
    found = [vars(value)] if hasattr(value, "__dict__") else []
    return [*found, *[getattr(type(value), name, None) for name in ("forward", "__call__")]]


def _within_function(function):
    if function.__module__ and function.__module__.partition(".")[0] in _OWN:
        return ()
    cells = [cell.cell_contents for cell in _cells(function)]
    around, names = function.__globals__, _names(function.__code__)
    named = [around[name] for name in names if name in around]
    return [*cells, *named, function.__defaults__, function.__kwdefaults__, vars(function)]


@functools.lru_cache(maxsize=4096)
def _names(code) -> frozenset[str]:
    """The names that a function's code, and that of functions in it, looks up beyond its own."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return frozenset(code.co_names).union(*map(_names, inner))


def _cells(function):
    return [cell for cell in function.__closure__ or () if _is_full(cell)]


def _is_full(cell) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def leaves_behind(outputs, begun: int):
    """The leaves that results were computed from by nodes with sequence numbers from `begun` on."""
    roots = [each._node for each in outputs if isinstance(each._node, Node)]
    nodes = nodes_from(roots, lambda node: node.sequence >= begun or _is_leaf(node))
    return (node.variable for node in nodes if _is_leaf(node))


def _is_leaf(node) -> bool:
    return type(node) is AccumulateGrad


class Held:
    """A tensor as it was when a function ran first; the handle itself is not held."""

    __slots__ = ("aval", "node", "nr", "raw", "reference", "tracked", "version")

    def __init__(self, tensor: Tensor):
        self.reference = weakref.ref(tensor)
        self.raw = _UNREAD
        if not _is_unread(tensor):
            current(tensor)
            self.raw = tensor._raw
        self.aval, self.nr, self.tracked = tensor._aval, tensor._nr, tensor._tracked
        node = tensor._node
        self.node = weakref.ref(node) if isinstance(node, Node) else (lambda: node)
        self.version = version_of(tensor)

    def value(self, tensor):
        """The array that it had, and what that shows, in the trace that is under way."""
        if self.raw is not _UNREAD:
            return self.raw, self.aval
        place = _place(tensor)  # it has been read since, in the trace that has met it
        if place is None:
            return tensor._raw, tensor._aval
        return place.array, traced_aval(self.aval, place.array)

    def has_changed(self, tensor, array) -> bool:
        return tensor._raw is not array or tensor._tracked is not self.tracked

    def put(self, tensor, array, aval):
        """Have the tensor be what it was, with an array of these values."""
        node = self.node()
        if self.tracked and node is None and tensor._node is not None:
            raise CheckpointError(
                "torch.utils.checkpoint: a tensor of shape "
                f"{list(self.aval.shape)} that the function reads from outside was written to "
                "after it ran, and its history from before is gone: pass it as an argument"
            )
        tensor._raw, tensor._aval, tensor._alias = array, aval, None
        tensor._node, tensor._nr, tensor._tracked = node, self.nr, self.tracked


def version_of(tensor) -> int:
    counter = tensor._counter
    return 0 if counter is None else counter.value


def _place(tensor):
    scope = mode.scope.get()
    return None if scope is None else scope.places.get(id(tensor))


def _is_unread(tensor) -> bool:
    """Whether a trace is under way that a tensor is from outside of, and has not been read in."""
    scope = mode.scope.get()
    return scope is not None and _place(tensor) is None and scope.is_outside(tensor)


class Outside:
    """The tensors that a function reaches by itself, as they are now."""

    def __init__(self, function, arguments):
        known, self.cells = set(map(id, arguments)), []
        found = reachable(function, self.cells)
        self.held = {id(tensor): Held(tensor) for tensor in found if id(tensor) not in known}
        self.refusal = None

    def add(self, outputs, begun, arguments):
        """Hold besides these the leaves that the results were found to come from."""
        known = set(map(id, arguments))
        for leaf in leaves_behind(outputs, begun):
            if id(leaf) not in known and id(leaf) not in self.held:
                self.held[id(leaf)] = Held(leaf)

    def refuse_overlaps(self, arguments, versions):
        """Note where two tensors of one memory were in use and one was written to: apart from each
        other they would not see the write. `versions`: of the arguments, before.
        """
        pairs = list(zip(arguments, versions, strict=True))
        pairs += [(held.reference(), held.version) for held in self.held.values()]
        sharing: dict[int, list] = {}
        for tensor, version in pairs:
            if tensor is not None and tensor._alias is not None:
                written = version_of(tensor) != version
                sharing.setdefault(id(tensor._alias.storage), []).append((tensor, written))
        for group in sharing.values():
            if len(group) > 1 and any(written for _, written in group):
                shapes = " and ".join(str(list(tensor.shape)) for tensor, _ in group)
                self.refusal = (
                    f"torch.utils.checkpoint: the function uses tensors of shapes {shapes} that "
                    "share memory, and writes to one of them, so it cannot run again: take the "
                    "views inside of it, or clone() before it"
                )

    def tensors(self) -> list:
        pairs = [(held, held.reference()) for held in self.held.values()]
        return [(held, tensor) for held, tensor in pairs if tensor is not None]

    @contextmanager
    def again(self, arguments, late):
        """Have the tensors be what they were; afterwards they are what they are now.

        arguments: tensors that the function is given; late: makes of arrays of a trace others of
        the same values.
        """
        if self.refusal:
            raise CheckpointError(self.refusal)
        pairs = self.tensors()
        leaves = [each._node.variable for each in arguments if type(each._node) is AccumulateGrad]
        before = [_Now(tensor) for tensor in [*leaves, *[tensor for _, tensor in pairs]]]
        random, dtype = _generator_state(), dtypes.get_default_dtype()
        begun = _next_hook()
        variables = [(cell, cell.cell_contents) for cell, _ in self.cells if _is_full(cell)]
        try:
            _bind(self.cells)
            self.put(pairs, late)
            yield
        finally:
            ended = _next_hook()
            _bind(variables)
            for now in before:
                now.restore()
            if ended > begun + 1:
                _unhook([tensor for _, tensor in pairs], begun, ended)
            _restore_generator(random)
            dtypes.set_default_dtype(dtype)

    def put(self, pairs, late):
        values = [held.value(tensor) for held, tensor in pairs]
        traced = [isinstance(array, jax.core.Tracer) for array, _ in values]
        if any(traced):
            fresh = iter(late([v[0] for v, flag in zip(values, traced, strict=True) if flag]))
            values = [
                (next(fresh), aval) if flag else (array, aval)
                for (array, aval), flag in zip(values, traced, strict=True)
            ]
        for (held, tensor), (array, aval) in zip(pairs, values, strict=True):
            # apart from what shares its memory, which is not to see what is written
            if held.has_changed(tensor, array) or tensor._alias is not None:
                held.put(tensor, array, aval)


class _Now:
    """A tensor as it is, for what is done to it to be undone."""

    __slots__ = ("fields", "grad", "grad_raw", "tensor")

    def __init__(self, tensor):
        self.tensor, self.fields = tensor, _fields(tensor)
        self.grad = self.grad_raw = None
        leaf = tensor._leaf
        if leaf is not None and getattr(leaf, "grad", None) is not None:
            self.grad, self.grad_raw = leaf.grad, _fields(leaf.grad)

    def restore(self):
        _give(self.tensor, self.fields)
        leaf = self.tensor._leaf
        if leaf is not None and getattr(leaf, "grad", None) is not self.grad:
            leaf.grad = self.grad
        if self.grad is not None:
            _give(self.grad, self.grad_raw)


def _fields(tensor):
    return (
        tensor._raw, tensor._aval, tensor._node, tensor._nr, tensor._tracked, tensor._alias,
        version_of(tensor),
    )  # fmt: skip


def _give(tensor, fields):
    raw, aval, node, nr, tracked, alias, version = fields
    if tensor._raw is raw and tensor._node is node and tensor._tracked is tracked:
        tensor._alias = alias
        return
    tensor._raw, tensor._aval, tensor._alias = raw, aval, alias
    tensor._node, tensor._nr, tensor._tracked = node, nr, tracked
    if tensor._counter is not None:
        tensor._counter.value = version


def _generator_state():
    return default_generator._seed, default_generator._draws


def _restore_generator(state):
    if mode.scope.get() is None and state != _generator_state():
        with default_generator._lock:
            default_generator._seed, default_generator._draws = state


def _bind(variables):
    for cell, value in variables:
        if not _is_full(cell) or cell.cell_contents is not value:
            cell.cell_contents = value


def _next_hook() -> int:
    """A number between those of the hooks registered before and after."""
    return RemovableHandle(Hooks()).id


def _unhook(tensors, begun, ended):
    """Take away the hooks that were registered meanwhile."""
    for tensor in tensors:
        for hooks in traced_hooks.lists_of(tensor):
            for number in [n for n in hooks or () if begun < n < ended]:
                hooks.pop(number, None)
