"""The state that a checkpointed function reads from outside: held as it was, and put back.

A function that runs again must find what its first run found. Its arguments are held by their
arrays. For the tensors that it reaches otherwise (closures, attributes of a module, globals), their
arrays are held and put into the handles for the recomputation. Whatever a recomputation writes,
accumulates in a `.grad` or registers as a hook is undone at its end.
"""

from __future__ import annotations

import types
import weakref
from contextlib import contextmanager

import jax

from ..compiled.jit import CompiledFunction
from ..core import dtypes
from ..core.aval import traced_aval
from ..frontend.generator import default_generator
from ..state.code import UNSET, cell_value, full_cells, global_names
from ..state.objects import ObjectWalk
from ..tape import mode, traced_hooks
from ..tape.hooks import Hooks, RemovableHandle
from ..tape.node import AccumulateGrad, Node
from ..tape.tensor import (
    Tensor,
    abstract_value,
    alias_of,
    current,
    grad_of,
    held,
    is_tracked,
    known_counter,
    known_leaf_state,
    node_or_mark,
    output_number,
    recorded_node,
    restore_state,
    set_alias,
    state_of,
    version_of,
)
from ..tape.traversal import nodes_from

_UNREAD = object()


def mapped(value, change, kind=Tensor):
    """A value with every object of a type in it, and in its lists, tuples and dicts, changed."""
    if isinstance(value, kind):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(mapped(item, change, kind) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return value._make(mapped(item, change, kind) for item in value)
    if type(value) is dict:
        return {name: mapped(item, change, kind) for name, item in value.items()}
    return value


def once(change):
    """`change`, memoized by the identity of its argument."""
    known = {}

    def changed(value):
        if id(value) not in known:
            known[id(value)] = change(value)
        return known[id(value)]

    return changed


def tensors_in(value):
    """The tensors in a value, and in its lists, tuples and dicts, each once."""
    tensors = []
    mapped(value, tensors.append)
    return {id(tensor): tensor for tensor in tensors}.values()


class CheckpointError(RuntimeError):
    """A checkpointed function, run again, did not save the tensors that its first run saved.

    >>> calls = []
    >>> def changing(x):
    ...     calls.append(x)
    ...     return (x * x).exp() if len(calls) == 1 else x * x
    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> y = jaxgrad.utils.checkpoint.checkpoint(changing, x, use_reentrant=False)
    >>> try:
    ...     y.sum().backward()
    ... except jaxgrad.utils.checkpoint.CheckpointError as error:
    ...     print("A different number of tensors" in str(error))
    True
    """


class _FunctionWalk(ObjectWalk):
    """A walk over the objects that a function reaches through closures, attributes, containers and
    the globals it names.

    `cells`: the closure variables on the way, and their values.
    """

    opaque = (
        type(None),
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        Node,
        type,
        types.ModuleType,
        jax.Array,
        types.BuiltinFunctionType,
    )
    leaf, most = Tensor, 5_000

    def __init__(self):
        super().__init__()
        self.cells = []

    def of_function(self, function):
        self.cells += [(cell, cell.cell_contents) for cell in full_cells(function)]
        if function.__module__ and function.__module__.partition(".")[0] in _LIBRARIES:
            return ()
        named = [function.__globals__[name] for name in global_names(function)]
        rest = function.__defaults__, function.__kwdefaults__, vars(function)
        return [*super().of_function(function), *named, *rest]

    def of_object(self, value):
        if isinstance(value, CompiledFunction):
            return (value.function,)
        calls = [getattr(type(value), name, None) for name in ("forward", "__call__")]
        return [*super().of_object(value), *calls]


_LIBRARIES = ("jaxgrad", "jax", "numpy", "torch")


def leaves_since(begun: int, outputs):
    """The leaves in the history of outputs, as far as it was recorded since sequence number
    `begun`.
    """
    roots = [node for node in map(recorded_node, outputs) if node is not None]
    nodes = nodes_from(roots, lambda node: node.sequence >= begun or _is_leaf(node))
    return (node.variable for node in nodes if _is_leaf(node))


def _is_leaf(node) -> bool:
    return type(node) is AccumulateGrad


class HeldTensor:
    """A tensor as it was at the first run. The handle is referenced weakly."""

    __slots__ = ("aval", "node", "nr", "raw", "reference", "tracked", "version")

    def __init__(self, tensor: Tensor):
        self.reference = weakref.ref(tensor)
        self.raw = _UNREAD
        if not _is_unread(tensor):
            current(tensor)
            self.raw = held(tensor)
        self.aval, self.tracked = abstract_value(tensor), is_tracked(tensor)
        self.nr = output_number(tensor)
        node = node_or_mark(tensor)
        self.node = weakref.ref(node) if isinstance(node, Node) else (lambda: node)
        self.version = version_of(tensor)

    def value(self, tensor):
        """The array that it had, and its abstract value, in the trace that is under way."""
        if self.raw is not _UNREAD:
            return self.raw, self.aval
        captured = _captured(tensor)  # where the trace has read it since
        if captured is None:
            return held(tensor), abstract_value(tensor)
        return captured.tracer, traced_aval(self.aval, captured.tracer)

    def has_changed(self, tensor, array) -> bool:
        return held(tensor) is not array or is_tracked(tensor) is not self.tracked

    def put_back(self, tensor, array, aval):
        """Make the tensor what it was, with the given array of the same values."""
        node = self.node()
        if self.tracked and node is None and node_or_mark(tensor) is not None:
            raise CheckpointError(
                "torch.utils.checkpoint: a tensor of shape "
                f"{list(self.aval.shape)} that the function reads from outside was written to "
                "after it ran, and its history from before is gone: pass it as an argument"
            )
        restore_state(tensor, (array, aval, node, self.nr, self.tracked, None))


def _captured(tensor):
    scope = mode.scope.get()
    return None if scope is None else scope.captured.get(id(tensor))


def _is_unread(tensor) -> bool:
    """Whether a tensor is from outside of the trace under way, and not captured yet."""
    scope = mode.scope.get()
    return scope is not None and _captured(tensor) is None and scope.is_outside(tensor)


class OuterState:
    """The tensors that a function reaches by itself, and its closure variables, as they are now."""

    def __init__(self, function, arguments):
        known, walk = set(map(id, arguments)), _FunctionWalk()
        tensors = [value for value in walk.walk(function) if isinstance(value, Tensor)]
        self.held = {
            id(tensor): HeldTensor(tensor) for tensor in tensors if id(tensor) not in known
        }
        self.cells, self.refusal = walk.cells, None

    def add_leaves(self, outputs, begun, arguments):
        """Hold also the leaves in the history of the function's outputs."""
        known = set(map(id, arguments))
        for leaf in leaves_since(begun, outputs):
            if id(leaf) not in known and id(leaf) not in self.held:
                self.held[id(leaf)] = HeldTensor(leaf)

    def refuse_overlaps(self, arguments, versions):
        """Refuse to recompute if two tensors shared memory and the function wrote to one of them:
        put back separately, the other one would not see the write. versions: the earlier versions
        of the arguments.
        """
        pairs = list(zip(arguments, versions, strict=True))
        pairs += [(held.reference(), held.version) for held in self.held.values()]
        sharing: dict[int, list] = {}
        for tensor, version in pairs:
            if tensor is not None and alias_of(tensor) is not None:
                is_written = version_of(tensor) != version
                sharing.setdefault(id(alias_of(tensor).storage), []).append((tensor, is_written))
        for group in sharing.values():
            if len(group) > 1 and any(is_written for _, is_written in group):
                shapes = " and ".join(str(list(tensor.shape)) for tensor, _ in group)
                self.refusal = (
                    f"torch.utils.checkpoint: the function uses tensors of shapes {shapes} that "
                    "share memory, and writes to one of them, so it cannot run again: take the "
                    "views inside of it, or clone() before it"
                )

    def alive(self) -> list:
        """Pairs of a held tensor and its handle."""
        pairs = [(held, held.reference()) for held in self.held.values()]
        return [(held, tensor) for held, tensor in pairs if tensor is not None]

    @contextmanager
    def restored(self, arguments, delayed):
        """Put the state back inside of the block, and the present state afterwards.

        arguments: tensors that the function gets; delayed: makes arrays of a trace depend on the
        gradients, so that XLA recomputes (utils/delayed_recompute.py).
        """
        if self.refusal:
            raise CheckpointError(self.refusal)
        pairs = self.alive()
        nodes = map(node_or_mark, arguments)
        leaves = [node.variable for node in nodes if type(node) is AccumulateGrad]
        before = [_TensorSnapshot(tensor) for tensor in [*leaves, *[tensor for _, tensor in pairs]]]
        random, dtype = _generator_state(), dtypes.get_default_dtype()
        begun = _next_hook()
        variables = [(cell, cell_value(cell)) for cell, _ in self.cells]
        try:
            _bind(self.cells)
            self.put_back(pairs, delayed)
            yield
        finally:
            ended = _next_hook()
            _bind([pair for pair in variables if pair[1] is not UNSET])
            for snapshot in before:
                snapshot.restore()
            if ended > begun + 1:
                _remove_hooks([tensor for _, tensor in pairs], begun, ended)
            _restore_generator(random)
            dtypes.set_default_dtype(dtype)

    def put_back(self, pairs, delayed):
        values = [held.value(tensor) for held, tensor in pairs]
        traced = [isinstance(array, jax.core.Tracer) for array, _ in values]
        if any(traced):
            arrays = [array for (array, _), flag in zip(values, traced, strict=True) if flag]
            fresh = iter(delayed(arrays))
            values = [
                (next(fresh), aval) if flag else (array, aval)
                for (array, aval), flag in zip(values, traced, strict=True)
            ]
        for (known, tensor), (array, aval) in zip(pairs, values, strict=True):
            # without its alias: other tensors of its memory must not see what is written
            if known.has_changed(tensor, array) or alias_of(tensor) is not None:
                known.put_back(tensor, array, aval)


class _TensorSnapshot:
    """A tensor and its `.grad` as they are now."""

    __slots__ = ("fields", "grad", "grad_fields", "tensor")

    def __init__(self, tensor):
        self.tensor, self.fields, self.grad = tensor, _fields(tensor), grad_of(tensor)
        self.grad_fields = None if self.grad is None else _fields(self.grad)

    def restore(self):
        _set_fields(self.tensor, self.fields)
        leaf = known_leaf_state(self.tensor)
        if leaf is not None and grad_of(self.tensor) is not self.grad:
            leaf.grad = self.grad
        if self.grad is not None:
            _set_fields(self.grad, self.grad_fields)


def _fields(tensor):
    return state_of(tensor), version_of(tensor)


def _set_fields(tensor, fields):
    state, version = fields
    value, _, node, _, tracked, alias = state
    if held(tensor) is value and node_or_mark(tensor) is node and is_tracked(tensor) is tracked:
        set_alias(tensor, alias)
        return
    restore_state(tensor, state)
    if known_counter(tensor) is not None:
        known_counter(tensor).value = version


def _generator_state():
    scope = mode.scope.get()
    # in a trace the states that the function has set
    if scope is not None:
        return scope.seeded.save()
    return default_generator.snapshot


def _restore_generator(state):
    scope = mode.scope.get()
    if scope is not None:
        scope.seeded.put_back(state)
    elif state != _generator_state():
        default_generator.snapshot = state


def _bind(variables):
    """Bind closure variables to values. variables: pairs of a cell and its value."""
    for cell, value in variables:
        if cell_value(cell) is not value:
            cell.cell_contents = value


def _next_hook() -> int:
    """An id between those of the hooks registered before and after."""
    return RemovableHandle(Hooks()).id


def _remove_hooks(tensors, begun, ended):
    """Remove the hooks with ids between two others."""
    for tensor in tensors:
        for hooks in traced_hooks.hook_lists(tensor):
            for number in [n for n in hooks or () if begun < n < ended]:
                hooks.pop(number, None)
