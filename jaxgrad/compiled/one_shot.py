"""What runs or can be read only once, and so cannot be part of a program: generators, coroutines,
iterators.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Iterator

from ..capture.input_names import argument_names, leaf_names
from ..core.pytorch_tensors import is_of_pytorch, type_name
from ..tape import pytree

ONE_SHOT = (Iterator, AsyncIterator, Awaitable)

_KINDS = {
    inspect.isgeneratorfunction: "a generator function",
    inspect.isasyncgenfunction: "an asynchronous generator function",
    inspect.iscoroutinefunction: "a coroutine function",
}


def kind_of_function(function) -> str | None:
    """The kind of a function whose call only begins to run its code; None for any other.

    >>> from jaxgrad.compiled.one_shot import kind_of_function
    >>> def doubled(x):
    ...     yield x * 2
    >>> kind_of_function(doubled), kind_of_function(lambda x: x * 2)
    ('a generator function', None)
    """
    while isinstance(function, functools.partial):
        function = function.func
    # what a call of the object runs: a module's forward, the method of another object's class
    called = function, getattr(function, "forward", None), vars(type(function)).get("__call__")
    for is_kind, kind in _KINDS.items():
        if any(map(is_kind, called)):
            return kind
    return None


def refuse_arguments(function, leaves, structure):
    """Raise TypeError for an argument that the trace would use up, and for a PyTorch tensor."""
    for position, leaf in enumerate(leaves):
        if is_of_pytorch(leaf):
            name = argument_names(function, structure)[position]
            raise TypeError(
                f"{_name(function)}, compiled by jaxgrad.jit: the argument {name} is "
                f"a {type_name(leaf)}"
            )
        if isinstance(leaf, ONE_SHOT):
            name = argument_names(function, structure)[position]
            raise TypeError(
                f"{_name(function)}, compiled by jaxgrad.jit: the argument {name} is "
                f"{_described(leaf)}, which can be read only once, and the trace would use it up: "
                "pass a list or a tuple of what it gives"
            )


def refuse_result(name: str, result):
    """The result of a traced function. Raises TypeError if it holds what can be read only once."""
    if pytree.has_cycle(result):
        return result  # the object is from before the call, or the output refuses it
    leaves, structure = pytree.flatten(result)
    for position, leaf in enumerate(leaves):
        if isinstance(leaf, ONE_SHOT):
            if inspect.iscoroutine(leaf):
                leaf.close()  # or Python warns that it was never awaited
            raise TypeError(
                f"{name}, compiled by jaxgrad.jit: {leaf_names('the result', structure)[position]} "
                f"is {_described(leaf)}, which can be read only once, and whose code would run "
                "after the call: return a list or a tuple of what it gives, or compile the "
                "function that it calls"
            )
    return result


def _name(function) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _described(value) -> str:
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
