"""The functions that pipes apply to elements, and to parts of these."""

from __future__ import annotations

import functools
import warnings

from ....core.tracebacks import users_stacklevel

LAMBDA = (
    "Lambda function is not supported by pickle, please use regular python function or "
    "functools.partial instead."
)
LOCAL = (
    "Local function is not supported by pickle, please use regular python function or "
    "functools.partial instead."
)


def checked(function):
    """The function. Warns of one that cannot be sent to workers; TypeError if it is not called."""
    if not callable(function):
        raise TypeError(f"A callable function is expected, but {type(function)} is provided.")
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    name = getattr(inner, "__qualname__", "")
    if name.endswith("<lambda>"):
        warnings.warn(LAMBDA, UserWarning, stacklevel=users_stacklevel())
    elif "<locals>" in name and getattr(inner, "__name__", "") == name.rpartition(".")[2]:
        warnings.warn(LOCAL, UserWarning, stacklevel=users_stacklevel())
    return function


def on_columns(function, columns, element):
    """The result for an element, or for its parts at one or several places."""
    if columns is None:
        return function(element)
    if isinstance(columns, list | tuple):
        return function(*(element[column] for column in columns))
    return function(element[columns])


def with_result(element, result, columns, target):
    """An element with a result at a place: that of its columns, or another; -1 is a new one behind
    all others.
    """
    if columns is None:
        return result
    is_tuple = isinstance(element, tuple)
    element = list(element) if is_tuple else element.copy()
    several = isinstance(columns, list | tuple)
    if target is None:
        place = columns[0] if several else columns
        element[place] = result
        for column in sorted(columns[1:], reverse=True) if several else ():
            del element[column]
    elif target == -1:
        element.append(result)
    else:
        element[target] = result
    return tuple(element) if is_tuple else element
