"""Whether operators are recorded: no_grad, enable_grad, set_grad_enabled, inference_mode.

Each object keeps a stack of what it found, so that entering one twice restores twice; PyTorch 2.13 leaves gradients off there.
"""

from __future__ import annotations

import functools
import inspect
import warnings

from ..modes import is_inference_mode_enabled, switch


class _Mode:
    """A context manager that is a decorator too, of functions and of generators (the mode holds inside them)."""

    def __init__(self):
        self._before: list[tuple[bool, bool]] = []

    def target(self) -> tuple[bool, bool]:
        """Grad mode and inference mode within."""
        raise NotImplementedError

    def clone(self):
        """A fresh one of the same settings, for each call of a decorated function."""
        return type(self)()

    def __enter__(self):
        self._before.append(switch(*self.target()))

    def __exit__(self, *exception):
        switch(*self._before.pop())

    def __call__(self, function):
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. "
                "Decorate the methods instead.",
                FutureWarning,
                stacklevel=2,
            )
            function.__init__ = self(function.__init__)
            return function
        if inspect.isgeneratorfunction(function):
            return self._of_generator(function)

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return call

    def _of_generator(self, function):
        @functools.wraps(function)
        def generate(*args, **kwargs):
            generator = function(*args, **kwargs)
            advance, value = generator.send, None
            while True:
                try:
                    with self.clone():
                        item = advance(value)
                except StopIteration as stop:
                    return stop.value
                advance, value = (yield from _receive(item, generator))

        return generate


def _receive(item, generator):
    """Yield an item outside of the mode; how to resume the generator, and with what."""
    try:
        return generator.send, (yield item)
    except GeneratorExit:
        generator.close()
        raise
    except BaseException as error:
        return generator.throw, error


class _WithoutParentheses(_Mode):
    """`@no_grad` as well as `@no_grad()`."""

    def __new__(cls, function=None):
        made = super().__new__(cls)
        if function is None:
            return made
        made.__init__()
        return made(function)

    def __init__(self, function=None):
        super().__init__()


class no_grad(_WithoutParentheses):
    """Operators within are not recorded: their results do not require grad. Factories still heed `requires_grad=True`.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> with jaxgrad.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def target(self):
        return False, is_inference_mode_enabled()


class enable_grad(_WithoutParentheses):
    """Operators within are recorded again, inside a `no_grad`.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> with jaxgrad.no_grad(), jaxgrad.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    def target(self):
        return True, is_inference_mode_enabled()


class set_grad_enabled(_Mode):
    """Record operators or not, by a flag: from the call on, and as a context manager until its end.

    Raises TypeError for a mode that is not a bool.

    >>> with jaxgrad.set_grad_enabled(False):
    ...     jaxgrad.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        super().__init__()
        self.enabled = mode
        self._found = switch(mode, is_inference_mode_enabled())

    def target(self):
        return self.enabled, is_inference_mode_enabled()

    def clone(self):
        return _Quiet(self.enabled)

    def __enter__(self):
        # what to go back to is what the constructor found, the first time
        found, self._found = self._found, None
        before = switch(*self.target())
        self._before.append(found or before)

    def __call__(self, function):
        if self._found is not None:
            switch(*self._found)
            self._found = None
        return super().__call__(function)

    def __repr__(self):
        return f"{type(self).__module__}.set_grad_enabled(mode={self.enabled})"


class _Quiet(_Mode):
    """`set_grad_enabled` that does not act before it is entered."""

    def __init__(self, enabled):
        super().__init__()
        self.enabled = enabled

    def target(self):
        return self.enabled, is_inference_mode_enabled()


class inference_mode(_Mode):
    """Like `no_grad`, and results are inference tensors, which recorded operators must not save.

    `inference_mode(False)` inside one switches back. Decorates with and without parentheses.

    >>> with jaxgrad.inference_mode():
    ...     jaxgrad.ones(2).is_inference()
    True
    """

    def __new__(cls, mode=True):
        made = super().__new__(cls)
        if isinstance(mode, bool):
            return made
        made.__init__()
        return made(mode)

    def __init__(self, mode: bool = True):
        super().__init__()
        self.inference = mode

    def target(self):
        return not self.inference, self.inference

    def clone(self):
        return type(self)(self.inference)
