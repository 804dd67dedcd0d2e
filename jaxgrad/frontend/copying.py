"""Copies of tensors: for `copy`, and as states from which the user's own pickling restores them.

`jaxgrad.load` reads no such state: its files hold no code.
"""

from __future__ import annotations

import copy
import warnings

import numpy as np

from ..core import dtypes
from ..core.aval import aval_of, meta_array, with_strides
from ..core.device import chosen_place
from ..core.tracebacks import users_stacklevel
from ..core.view_ops import plain
from ..storage.alias import copy_place, detached
from ..tape import interception, mode, torch_function
from ..tape.sparse_tensor import by_layout
from ..tape.tensor import (
    PLAIN_TENSORS,
    Tensor,
    abstract_value,
    alias_of,
    concrete,
    grad_of,
    is_concrete,
    kind_of,
    known_leaf_state,
    leaf_state,
    restore_state,
    set_counter,
    set_leaf_state,
    set_tracked,
    state_of,
    wrap,
)
from ..tape.version_counter import counter_of
from .array_creation import from_host

NON_LEAF = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at "
    "the moment. Use tensor.detach().clone(), or clone() to stay in the graph."
)


UNSERIALIZED = (
    "backward hook {!r} on tensor will not be serialized.  If this is expected, you can decorate "
    "the function with @torch.utils.hooks.unserializable_hook to suppress this warning"
)


class CopyMethods:
    """The methods that Python's `copy` and pickling call."""

    @by_layout
    def __copy__(self):
        clone = detached(self)
        set_tracked(clone, self._requires_grad)
        if kind_of(self) is not None:
            leaf_state(clone).kind = kind_of(self)
        return _with_class(clone, type(self), CopyMethods.__getstate__(self))

    @by_layout
    def __deepcopy__(self, memo):
        if self.grad_fn is not None:
            raise RuntimeError(NON_LEAF)
        clone = memo[id(self)] = wrap(self._array, plain(abstract_value(self)), self._requires_grad)
        # under a trace the memory may hold more than the trace has captured
        if alias_of(self) is not None and mode.scope.get() is None and is_concrete(self):
            copy_place(self, clone, memo)
        if known_leaf_state(self) is not None:
            state = leaf_state(clone)
            state.grad_dtype = known_leaf_state(self).grad_dtype
            state.kind = kind_of(self)
            if state.kind is None or state.kind.copies_gradient:
                state.grad = copy.deepcopy(grad_of(self), memo)
        kind = kind_of(self)
        # a copied parameter has no attributes of its own in PyTorch either
        is_plain = type(self) in PLAIN_TENSORS
        is_plain_parameter = is_plain and not getattr(kind, "copies_gradient", True)
        state = {} if is_plain_parameter else CopyMethods.__getstate__(self)
        # a subclass with slots is another object
        result = memo[id(self)] = _with_class(clone, type(self), None)
        CopyMethods.__setstate__(result, copy.deepcopy(state, memo))
        return result

    @by_layout
    def __reduce_ex__(self, protocol):
        """The values, dtype, strides and the device that the tensor was moved to; as in PyTorch
        without history, gradient and hooks. On the device meta there are no values.

        Raises RuntimeError under a trace.
        """
        shown = abstract_value(self)
        warn_of_hooks(self)
        place = shown.dtype.name, tuple(shown.shape), shown.strides
        parts = _bytes_of(self), *place, self._requires_grad, kind_of(self)
        moved_to = chosen_place(self._value)
        if moved_to is not None and len(moved_to) == 1:
            parts += (str(self.device),)
        return _rebuilt, (type(self), parts, python_state(self))

    def __getstate__(self):
        """The attributes that programs have set; a subclass may define what is kept of it."""
        attributes = dict(vars(self))
        slots = {name: getattr(self, name) for name in _slots(type(self)) if hasattr(self, name)}
        return (attributes, slots) if slots else attributes

    def __setstate__(self, state):
        """Set the attributes that `__getstate__` gives."""
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        if attributes:
            vars(self).update(attributes)
        for name, value in (slots or {}).items():
            setattr(self, name, value)


def python_state(tensor):
    """What Python's attributes of a tensor are, for pickling; None without any."""
    if type(tensor).__getstate__ is not CopyMethods.__getstate__:
        return tensor.__getstate__()
    return CopyMethods.__getstate__(tensor) or None


def _slots(cls):
    """The slots of the classes that users derive from `Tensor`."""
    for base in cls.__mro__[: cls.__mro__.index(Tensor)]:
        slots = vars(base).get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


def warn_of_hooks(tensor):
    """Warn of hooks that no file keeps."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(UNSERIALIZED.format(hook), UserWarning, users_stacklevel())


def _rebuilt(cls, parts, state):
    """The tensor of a pickle; `__new__` of a subclass may take other arguments."""
    data, dtype, shape, strides, requires_grad, kind, *moved_to = parts
    dtype = getattr(dtypes, dtype)
    if torch_function.overrides(cls):  # the first tensor of the class in this process
        torch_function.activate()
    if data is None:
        array = meta_array(shape, dtype)
    else:
        array = from_host(np.frombuffer(data, dtype.numpy).reshape(shape), *moved_to)
    tensor = wrap(array, with_strides(aval_of(array), strides), requires_grad)
    if kind is not None:
        leaf_state(tensor).kind = kind
    tensor = _with_class(tensor, cls, None)
    if interception.created is not None:
        interception.created(tensor)
    if state is not None:
        tensor.__setstate__(state)
    return tensor


def _bytes_of(tensor) -> np.ndarray | None:
    """The elements as an array of bytes, which newer protocols of pickling need not copy; None on
    the device meta.
    """
    if tensor.is_meta:
        return None
    return np.ascontiguousarray(concrete(tensor, "pickling")).reshape(-1).view(np.uint8)


def instance_of(tensor, cls):
    """A tensor without other references as an instance of a subclass: the object itself, or where
    the subclass has slots another one.
    """
    try:
        tensor.__class__ = cls
        return tensor
    except TypeError:
        result = object.__new__(cls)
    restore_state(result, state_of(tensor))
    set_leaf_state(result, known_leaf_state(tensor))
    set_counter(result, counter_of(tensor))
    return result


def _with_class(tensor, cls, state):
    """A new tensor as an instance of a class, with attributes of the user."""
    if cls is not Tensor:
        tensor = instance_of(tensor, cls)
    CopyMethods.__setstate__(tensor, state)
    return tensor
