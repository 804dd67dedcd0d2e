"""Context managers that also decorate functions, generators and coroutines."""

from __future__ import annotations

import functools
import inspect
import warnings


class _DecoratorContextManager:
    """A context manager that also decorates functions, generators and coroutines.

    A subclass defines `__enter__`, `__exit__` and, if it has arguments, `clone`.
    """

    def __enter__(self):
        raise NotImplementedError(f"{type(self).__name__}.__enter__")

    def __exit__(self, exc_type, exc_value, traceback):
        raise NotImplementedError(f"{type(self).__name__}.__exit__")

    def clone(self):
        """A new object with the same settings, for each call of a decorated function."""
        return type(self)()

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
        if inspect.iscoroutinefunction(function):
            return self._of_coroutine(function)
        if inspect.isasyncgenfunction(function):
            return self._of_async_generator(function)

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return call

    def _of_coroutine(self, function):
        @functools.wraps(function)
        async def run(*args, **kwargs):
            with self.clone():
                return await function(*args, **kwargs)

        return run

    def _of_async_generator(self, function):
        @functools.wraps(function)
        async def generate(*args, **kwargs):
            generator = function(*args, **kwargs)
            advance, value = generator.asend, None
            while True:
                try:
                    with self.clone():
                        item = await advance(value)
                except StopAsyncIteration:
                    return
                try:
                    advance, value = generator.asend, (yield item)
                except GeneratorExit:
                    with self.clone():
                        await generator.aclose()
                    raise
                except BaseException as error:
                    advance, value = generator.athrow, error

        return generate

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
                advance, value = yield from self._received(item, generator)

        return generate

    def _received(self, item, generator):
        """Yield an item outside of the mode; returns how to resume the generator, and with what."""
        try:
            return generator.send, (yield item)
        except GeneratorExit:
            with self.clone():
                generator.close()
            raise
        except BaseException as error:
            return generator.throw, error


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context manager without arguments that decorates as `@no_grad` and as `@no_grad()`."""

    def __new__(cls, function=None):
        instance = super().__new__(cls)
        return instance if function is None else instance(function)
