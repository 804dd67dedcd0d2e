"""Saved tensors of nodes: as attributes (`node._saved_self`), and hooks that pack them."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable
from typing import Any

import jax

from ...core.meta_array import MetaArray
from ...core.primitive import Call
from ...tape import interception, node_annotations
from ...tape.node import FREED, SECOND_TIME, AccumulateGrad, ProgramNode
from ...tape.tensor import Tensor, held, node_or_mark, wrap
from ..grad_mode import _Mode
from .residuals import saved_tensors


class SavedTensor:
    """A saved tensor of a node, `node._raw_saved_self`, which can have hooks.

    A program cannot make one: the constructor raises RuntimeError.

    >>> x = jaxgrad.zeros(2, requires_grad=True)
    >>> saved = x.exp().grad_fn._raw_saved_result
    >>> saved.register_hooks(lambda tensor: tensor.numpy(), jaxgrad.tensor)
    >>> saved.data, saved.unpack()
    (array([1., 1.], dtype=float32), tensor([1., 1.], grad_fn=<ExpBackward0>))
    """

    def __init__(self):
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    def register_hooks(self, pack_hook: Callable, unpack_hook: Callable):
        """Save `pack_hook(tensor)` in place of the tensor; `unpack_hook` turns it into a tensor
        again.

        Raises RuntimeError if the tensor has hooks already, is freed, or is None; TypeError if a
        hook is not callable.
        """
        pair = node_annotations.pair(pack_hook, unpack_hook)
        if self._is_freed():
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. "
                f"{SECOND_TIME.partition('. ')[2]}"
            )
        if self._packed() is not None:
            raise RuntimeError(node_annotations.ONE_PAIR)
        if self._is_none():
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        self._pack(pair)

    @property
    def data(self):
        """The saved value: a leaf itself, any other tensor without its history, or the result of
        the pack hook. None once it is freed.
        """
        if self._is_freed() or self._is_none():
            return None
        packed = self._packed()
        return self._kept() if packed is None else packed.value

    @property
    def unpack_hook(self) -> Callable | None:
        """The unpack hook; None without hooks."""
        packed = None if self._is_freed() else self._packed()
        return None if packed is None else packed.unpack

    def unpack(self) -> Tensor | None:
        """The saved tensor with its history. Raises RuntimeError once it is freed."""
        if self._is_freed():
            raise RuntimeError(f"{SECOND_TIME} This is {self.node.name()}")
        return None if self._is_none() else self._unpacked()

    def __eq__(self, other):
        return isinstance(other, SavedTensor) and vars(self) == vars(other)

    def __hash__(self):
        return hash((self.node, self.position))


class _Residual(SavedTensor):
    """A residual of a recorded program."""

    def __init__(self, node: ProgramNode, position: int):
        self.node, self.position = node, position

    def _is_freed(self):
        return self.node.saved is FREED

    def _is_none(self):
        return False

    def _packed(self):
        extras = self.node.extras
        return None if extras is None else (extras.packed or {}).get(self.position)

    def _pack(self, pair):
        node_annotations.pack_at(self.node, self.position, pair)

    def _kept(self):
        tensor = self._unpacked()
        return tensor if tensor.is_leaf else wrap(held(tensor))

    def _unpacked(self):
        saved = node_annotations.saved_of(self.node)
        return _itself(saved_tensors(self.node, saved)[self.position])


class SavedByFunction(SavedTensor):
    """A tensor that a Function's call saved, or None. saved: its entry in `node._saved`."""

    def __init__(self, node, position: int):
        self.node, self.position, self.saved = node, position, node._saved[position]

    def _is_freed(self):
        return self.node.is_freed

    def _is_none(self):
        return self.saved is None

    def _packed(self):
        return None if self.saved is None else self.saved.packed

    def _pack(self, pair):
        self.saved.pack(pair)

    def _kept(self):
        tensor = self._unpacked()
        return tensor if tensor.is_leaf else wrap(held(tensor))

    def _unpacked(self):
        return self.saved.tensor(self.node)


# attributes of nodes

NO_ATTRIBUTE = "'{}' object has no attribute '{}'"


def offer(program):
    """Give nodes the attributes `_saved_*` and `_raw_saved_*` for this program's residuals."""
    if isinstance(program, Call):
        outputs = program.primitive.rule.outputs
        for name in (*program.primitive.argument_names, *outputs):
            _offer(name)


@functools.cache
def _offer(name):
    setattr(ProgramNode, f"_saved_{name}", property(lambda node: _value(node, name)))
    setattr(ProgramNode, f"_raw_saved_{name}", property(lambda node: _raw(node, name)))


def _names(node) -> list[str]:
    """The names that `dir` lists: the attributes of nodes that this node has."""
    names = object.__dir__(node)
    offered = {name: name.partition("_saved_") for name in names if "_saved_" in name}
    return [n for n in names if n not in offered or _is_offered(node, *offered[n][::2])]


ProgramNode.__dir__ = _names


def _is_offered(node, raw, name) -> bool:
    try:
        positions = _positions(node, name)
    except AttributeError:
        return False
    if positions or raw:
        return bool(positions)
    call = node.reverse.program
    constant = name in call.primitive.argument_names and name not in call.owners
    return constant or _is_read(call, name)


def _positions(node, name) -> list[int]:
    """The positions of an argument or an output among a node's residuals.

    Raises AttributeError if the operator has none of this name.
    """
    call, reverse = node.reverse.program, node.reverse
    known = isinstance(call, Call) and name in (
        *call.primitive.argument_names,
        *call.primitive.rule.outputs,
    )
    if not known:
        raise AttributeError(NO_ATTRIBUTE.format(node.name(), f"_saved_{name}"))
    owners = [call.owners[i] for i in reverse.saved_inputs]
    names = call.primitive.rule.outputs
    owners += [names[min(i, len(names) - 1)] for i in reverse.saved_outputs]
    return [i for i, owner in enumerate(owners) if owner == name]


def _value(node, name):
    """The saved argument or output: a tensor with its history, a list of them, or a number."""
    positions, arguments = _positions(node, name), node.reverse.program.primitive.argument_names
    call = node.reverse.program
    part = call.structure[arguments.index(name)] if name in arguments else None
    if not positions and name in arguments and name not in call.owners:
        return part
    if not positions and not _is_read(call, name):
        raise AttributeError(NO_ATTRIBUTE.format(node.name(), f"_saved_{name}"))
    if not positions:
        return None  # only formulas of other gradients read it
    tensors = list(map(_itself, saved_tensors(node, node_annotations.saved_of(node))))
    several = name in arguments and call.is_list(name)
    return tuple(tensors[i] for i in positions) if several else tensors[positions[0]]


def _is_read(call, name) -> bool:
    """Whether the formula of one of the gradients reads an argument or an output."""
    primitive = call.primitive
    outputs = primitive.rule.outputs
    names = {name, "result", f"result{outputs.index(name)}"} if name in outputs else {name}
    formulas = [formula for _, formula in primitive.rule.gradients]
    return any(names & getattr(formula, "values", {name}) for formula in formulas)


def _itself(tensor):
    """The leaf behind a saved tensor if it still holds the saved array, else the tensor."""
    node = node_or_mark(tensor) if isinstance(tensor, Tensor) else None
    is_leaf = type(node) is AccumulateGrad and node.variable._array is held(tensor)
    return node.variable if is_leaf else tensor


def _raw(node, name):
    positions = _positions(node, name)
    if not positions:
        raise AttributeError(NO_ATTRIBUTE.format(node.name(), f"_raw_saved_{name}"))
    call = node.reverse.program
    several = name in call.primitive.argument_names and call.is_list(name)
    residuals = tuple(_Residual(node, i) for i in positions)
    return residuals if several else residuals[0]


# hooks for all saved tensors


class saved_tensors_hooks(_Mode):
    """A context that packs every tensor that operators save in it.

    pack_hook: called with each tensor when it is saved; its result is kept instead. unpack_hook:
    called with that result when the tensor is needed; must return a tensor of the same values. The
    tensors have no history, and both hooks run with grad mode off. The innermost context counts.

    Raises TypeError if a hook is not callable, and in the backward pass if unpack_hook does not
    return a tensor; RuntimeError inside `disable_saved_tensors_hooks`.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> with jaxgrad.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), jaxgrad.tensor):
    ...     y = x.exp()
    >>> y.sum().backward()
    >>> x.grad
    tensor([2.7183, 2.7183])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.pair = node_annotations.pair(pack_hook, unpack_hook)

    def clone(self):
        return type(self)(*self.pair)

    def set(self):
        if _disabled.get() is not None:
            raise RuntimeError(_disabled.get())
        node_annotations.activate()
        before = node_annotations.packing.get()
        node_annotations.packing.set(self.pair)
        return before

    def reset(self, before):
        node_annotations.packing.set(before)


class save_on_cpu(saved_tensors_hooks):
    """A context that keeps saved tensors in host memory and moves them back when they are needed.

    On a CPU it copies them. `pin_memory` and `device_type` are accepted and ignored: XLA chooses
    how memory is moved.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> with jaxgrad.autograd.graph.save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        self.pin_memory, self.device_type = pin_memory, device_type
        super().__init__(_to_host, _from_host)

    def clone(self):
        return type(self)(self.pin_memory, self.device_type)


def _to_host(tensor):
    """The tensor's array on the host, and where to move it back."""
    array = tensor._array
    if isinstance(array, MetaArray):
        return array, None
    if isinstance(array, jax.core.Tracer):
        return jax.device_put(array, jax.memory.Space.Host), jax.memory.Space.Device
    with jax.enable_x64(True):
        host = jax.local_devices(backend="cpu")[0]
        return jax.device_put(array, host, may_alias=False), array.sharding


def _from_host(packed):
    array, place = packed
    if isinstance(array, MetaArray):
        return wrap(array)
    with jax.enable_x64(True):
        return wrap(jax.device_put(array, place))


_disabled = contextvars.ContextVar("jaxgrad.saved_tensors_hooks_disabled", default=None)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str):
    """A context in which `saved_tensors_hooks` raises RuntimeError(error_message).

    Raises it at once inside a `saved_tensors_hooks`.

    >>> graph = jaxgrad.autograd.graph
    >>> with graph.disable_saved_tensors_hooks("not here"):
    ...     try:
    ...         graph.save_on_cpu().__enter__()
    ...     except RuntimeError as error:
    ...         print(error)
    not here
    """
    if node_annotations.packing.get() is not None:
        raise RuntimeError(error_message)
    token = _disabled.set(error_message)
    try:
        yield
    finally:
        _disabled.reset(token)


interception.intercept(recording=offer)
