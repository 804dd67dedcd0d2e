"""Arrays that are being traced inside of lists, tuples and dicts, which are one argument."""

from __future__ import annotations

import jax

from ...tape.tensor import Tensor, wrap


def arrays_in(value):
    """The traced arrays, in order, of the tensors and JAX arrays in a value."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from arrays_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from arrays_in(item)
    elif _is_traced(value):
        yield value._array if isinstance(value, Tensor) else value


def replaced(value, supply):
    """The value with other arrays in the places of those, taken from an iterator."""
    if not any(True for _ in arrays_in(value)):
        return value
    if isinstance(value, dict):
        return type(value)((name, replaced(item, supply)) for name, item in value.items())
    if isinstance(value, list | tuple):
        items = [replaced(item, supply) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return wrap(next(supply)) if isinstance(value, Tensor) else next(supply)


def marked(value, flags):
    """For what `replaced` would replace 0 or None, by flags, in the same structure; None for what
    has no such arrays.
    """
    if not any(True for _ in arrays_in(value)):
        return None
    if isinstance(value, dict):
        return {name: marked(item, flags) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([marked(item, flags) for item in value])
    return 0 if next(flags) else None


def _is_traced(value) -> bool:
    array = value._array if isinstance(value, Tensor) else value
    return isinstance(array, jax.core.Tracer)
