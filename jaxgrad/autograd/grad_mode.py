"""Modes of recording: no_grad, enable_grad, set_grad_enabled, inference_mode.

Each thread and asyncio task has its own stack of entered modes with the values that they replaced.
So one object may be entered twice, and in several places at once. (PyTorch 2.13 leaves grad mode
off after an object was entered twice.)
"""

from __future__ import annotations

import contextvars

from ..core.pytorch_tensors import type_name
from ..names.missing import missing_in
from ..tape import settings, version_counter
from ..tape.mode import INFERENCE, RECORD, current_mode, switch, with_grad
from ..tape.tensor import Tensor
from ._decorators import _DecoratorContextManager, _NoParamDecoratorContextManager

# The stack of this context as a linked list: (entered object, value before, rest of the stack).
_entered = contextvars.ContextVar("jaxgrad.entered_modes", default=None)


class _Mode(_DecoratorContextManager):
    """A context manager that also decorates."""

    def set(self):
        """Set the mode; returns the value before."""
        raise NotImplementedError(f"{type(self).__name__}.set")

    def reset(self, before):
        """Restore the value before."""
        current_mode.set(before)

    def __enter__(self):
        around, before = _entered.get(), self.set()
        try:
            _entered.set((self, before, around))
        except BaseException:
            _entered.set(around)
            self.reset(before)
            raise

    def __exit__(self, *exception):
        try:
            self.leave()
        except KeyboardInterrupt:
            self.leave()
            raise

    def leave(self):
        """Restore the value before; a second call does nothing."""
        passed, entry = [], _entered.get()
        while entry is not None and entry[0] is not self:
            passed.append(entry[:2])
            entry = entry[2]
        if entry is None:
            return  # it was entered in another context, which will exit it
        self.reset(entry[1])
        rest = entry[2]
        for later in reversed(passed):
            rest = (*later, rest)
        _entered.set(rest)


class no_grad(_NoParamDecoratorContextManager, _Mode):
    """Do not record operators: their results do not require grad.

    It is a context manager and a decorator. Factories still obey `requires_grad=True`.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> with jaxgrad.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def set(self):
        return switch(with_grad(False))


class enable_grad(_NoParamDecoratorContextManager, _Mode):
    """Record operators again inside of `no_grad`.

    It is a context manager and a decorator.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> with jaxgrad.no_grad(), jaxgrad.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    def set(self):
        return switch(with_grad(True))


class _Setting(_Mode):
    """A mode that applies from its construction on, or as a context manager until its end."""

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(
                f"{type(self).__name__}(): argument 'enabled' (position 1) must be bool, "
                f"not {type(mode).__name__}"
            )
        self.mode = mode
        self._outer = (self.set(),)

    def clone(self):
        clone = object.__new__(type(self))
        clone.mode, clone._outer = self.mode, ()
        return clone

    def __enter__(self):
        super().__enter__()
        if self._outer:
            # The first exit restores the value from before the constructor.
            _entered.set((self, *self._outer, _entered.get()[2]))
            self._outer = ()

    def __call__(self, function):
        if self._outer:
            self.reset(*self._outer)
            self._outer = ()
        return super().__call__(function)

    def __repr__(self):
        return f"{type(self).__module__}.{type(self).__name__}(mode={self.mode})"


class set_grad_enabled(_Setting):
    """Choose whether operators are recorded, from the call on or for a `with` block.

    mode: whether they are recorded.

    Raises TypeError if it is not a bool.

    >>> with jaxgrad.set_grad_enabled(False):
    ...     jaxgrad.is_grad_enabled()
    False
    """

    def set(self):
        return switch(with_grad(self.mode))


class inference_mode(_Mode):
    """Do not record operators, and make their results inference tensors.

    An inference tensor has no version, and a recorded operator cannot save it. It is a context
    manager and a decorator, with and without parentheses.

    mode: False switches back inside of an `inference_mode()`.

    >>> with jaxgrad.inference_mode():
    ...     jaxgrad.ones(2).is_inference()
    True
    """

    def __new__(cls, mode=True):
        instance = super().__new__(cls)
        if isinstance(mode, bool):
            return instance
        instance.mode = True
        return instance(mode)

    def __init__(self, mode: bool = True):
        self.mode = mode

    def clone(self):
        return type(self)(self.mode)

    def set(self):
        return switch(INFERENCE if self.mode else RECORD)


class _Kept(_Setting):
    """A setting without effect, which remembers its value."""

    kept: contextvars.ContextVar

    def __init_subclass__(cls):
        settings.let_last(cls.kept.get, cls.kept.set)

    def set(self):
        before = self.kept.get()
        self.kept.set(self.mode)
        return before

    def reset(self, before):
        self.kept.set(before)


class set_multithreading_enabled(_Kept):
    """Kept for PyTorch's code: whether a backward pass may use other threads.

    A backward pass of jaxgrad runs in the thread that calls it.

    mode: the value to remember.

    Raises TypeError if it is not a bool.

    >>> with jaxgrad.autograd.set_multithreading_enabled(False):
    ...     jaxgrad.autograd.is_multithreading_enabled()
    False
    """

    kept = contextvars.ContextVar("jaxgrad.multithreading", default=True)


def _multithreading(_) -> bool:
    return set_multithreading_enabled.kept.get()


def is_multithreading_enabled() -> bool:
    """The value of `set_multithreading_enabled`, True by default.

    >>> jaxgrad.autograd.is_multithreading_enabled()
    True
    """
    return settings.noted(_multithreading)


class enforce_grad_layout_policy(_Kept):
    """Kept for PyTorch's code: whether the `.grad` of a leaf must have the leaf's strides.

    It always has the strides of a dense leaf, and is contiguous for other leaves.

    enable: the value to remember.

    Raises TypeError if it is not a bool.

    >>> x = jaxgrad.ones(2, 3).t().requires_grad_()
    >>> with jaxgrad.autograd.enforce_grad_layout_policy(False):
    ...     x.sum().backward()
    >>> x.grad.stride()
    (1, 3)
    """

    kept = contextvars.ContextVar("jaxgrad.grad_layout", default=True)

    def __init__(self, enable: bool = True):
        super().__init__(enable)


class _force_original_view_tracking(_Kept):
    """Kept for PyTorch's code: whether views are regenerated by their original calls.

    jaxgrad always regenerates them so.

    mode: the value to remember.

    Raises TypeError if it is not a bool.

    >>> with jaxgrad.autograd._force_original_view_tracking(True):
    ...     jaxgrad.autograd.is_view_replay_enabled()
    True
    """

    kept = contextvars.ContextVar("jaxgrad.view_replay", default=False)


def is_view_replay_enabled() -> bool:
    """The value of `_force_original_view_tracking`, False by default.

    >>> jaxgrad.autograd.is_view_replay_enabled()
    False
    """
    return _force_original_view_tracking.kept.get()


class _unsafe_preserve_version_counter(_Mode):
    """Hide in-place writes in a `with` block from the versions of tensors.

    tensors: a tensor or a tuple of tensors.

    Raises AssertionError for another object, TypeError for other objects in the tuple.

    >>> x = jaxgrad.zeros(2)
    >>> with jaxgrad.autograd._unsafe_preserve_version_counter(x):
    ...     _ = x.add_(1)
    >>> x._version
    0
    """

    def __init__(self, tensors: Tensor | tuple[Tensor, ...]):
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tensors
        if not isinstance(self.tensors, tuple):
            kind = type(tensors).__name__
            raise AssertionError(f"Expected tensors to be a tuple or one tensor, not {kind}")
        for tensor in self.tensors:
            if not isinstance(tensor, Tensor):
                kind = type_name(tensor)
                raise TypeError(f"preserve_version_counter takes tensors, not {kind}")

    def clone(self):
        return type(self)(self.tensors)

    def set(self):
        return [tensor._version for tensor in self.tensors]

    def reset(self, before):
        for tensor, value in zip(self.tensors, before, strict=True):
            version_counter.counter_of(tensor).value = value


__getattr__ = missing_in(__name__)
