"""Context managers that also decorate, as torch.utils._contextlib: packages derive their modes from
them.
"""

from __future__ import annotations

from ..autograd._decorators import _DecoratorContextManager as _DecoratorContextManager
from ..autograd._decorators import (
    _NoParamDecoratorContextManager as _NoParamDecoratorContextManager,
)
from ..names.missing import missing_in


class _Entering(_DecoratorContextManager):
    """Enters what `make` returns, at each call of a decorated function."""

    def __init__(self, make):
        self.make = make

    def clone(self):
        return self.make()


def context_decorator(ctx, func):
    """Run a function inside of a context manager.

    ctx: a context manager, or a function that makes one for each call; what may be both raises
    AssertionError. func: a function, a generator function or a coroutine function; a class raises
    RuntimeError.

    >>> from jaxgrad.utils._contextlib import context_decorator
    >>> context_decorator(lambda: jaxgrad.no_grad(), jaxgrad.is_grad_enabled)()
    False
    """
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(
            f"context_decorator(): {ctx} is both callable and a context manager: pass a function "
            "that returns it, lambda: ..."
        )
    if isinstance(func, type):
        raise RuntimeError(
            f"Cannot decorate classes; it is ambiguous whether or not only the constructor or all "
            f"methods should have the context manager applied: decorate the methods of "
            f"{func.__name__}"
        )
    return _Entering(ctx if callable(ctx) else lambda: ctx)(func)


__getattr__ = missing_in(__name__)
