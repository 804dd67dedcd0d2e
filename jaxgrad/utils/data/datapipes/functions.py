"""The functions that pipes apply to elements, and to parts of these."""

from __future__ import annotations

import functools
import inspect
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


def check_columns(function, columns):
    """Raise ValueError where a function cannot take as many arguments as there are columns."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # one in C
        return
    count = len(columns) if isinstance(columns, list | tuple) else 1
    name = getattr(function, "__name__", repr(function))
    needed = [parameter for parameter in parameters if parameter.default is parameter.empty]
    by_name = [parameter for parameter in needed if parameter.kind is parameter.KEYWORD_ONLY]
    if by_name:
        raise ValueError(
            f"The function {name} takes {len(by_name)} keyword-only parameters, which is not "
            "allowed."
        )
    least = sum(parameter.kind in _POSITIONAL for parameter in needed)
    most = sum(parameter.kind in _POSITIONAL for parameter in parameters)
    is_open = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    if least > count:
        raise ValueError(
            f"The function {name} takes {least} positional parameters, but {count} are required."
        )
    if most < count and not is_open:
        raise ValueError(f"The function {name} takes {most} parameters, but {count} are required.")


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


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
