"""Graphs of symbolic operators, which jaxgrad does not provide, as torch.fx."""

from __future__ import annotations

from .core.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)


def wrap(function):
    """Return the function, or its name, as it is: there are no symbolic traces to leave it out of.

    >>> jaxgrad.fx.wrap(len) is len
    True
    """
    return function
