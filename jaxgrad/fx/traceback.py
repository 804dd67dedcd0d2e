"""Notes on nodes that later nodes take over, as torch.fx.traceback."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable
from typing import Any

from ..names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)

current_meta: dict[str, Any] = {}
should_preserve_node_meta = False


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True):
    """Let nodes of a new graph take over the notes on those that they come from.

    >>> with jaxgrad.fx.traceback.preserve_node_meta():
    ...     jaxgrad.fx.traceback.has_preserved_node_meta()
    True
    """
    global should_preserve_node_meta, current_meta
    before, noted = should_preserve_node_meta, current_meta.copy()
    try:
        should_preserve_node_meta = enable
        yield
    finally:
        should_preserve_node_meta, current_meta = before, noted


def has_preserved_node_meta() -> bool:
    """Return whether nodes take over notes."""
    return should_preserve_node_meta


def get_current_meta() -> dict[str, Any]:
    """Return the notes on the node that is being run."""
    return current_meta


@contextlib.contextmanager
def set_current_meta(node, pass_name: str = ""):
    """Note which node is being run. pass_name: unused here."""
    global current_meta
    if not should_preserve_node_meta or not node.meta:
        yield
        return
    before = current_meta
    current_meta = node.meta.copy()
    try:
        yield
    finally:
        current_meta = before


def set_stack_trace(stack: list[str]):
    """Note the lines of the program for the nodes that follow."""
    if should_preserve_node_meta and stack:
        current_meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """Return the lines of the program that are noted.

    >>> jaxgrad.fx.traceback.format_stack()
    []
    """
    return [current_meta["stack_trace"]] if "stack_trace" in current_meta else []


@contextlib.contextmanager
def annotate(annotation_dict: dict):
    """Note items under "custom" for the nodes that are made meanwhile.

    >>> with jaxgrad.fx.traceback.annotate({"stage": 0}):
    ...     jaxgrad.fx.traceback.get_current_meta()["custom"]
    {'stage': 0}
    """
    global current_meta
    before = current_meta
    known = copy.copy(before.get("custom", {}))
    current_meta = {**before, "custom": {**known, **annotation_dict}}
    try:
        yield
    finally:
        current_meta = before


def annotate_fn(annotation_dict: dict) -> Callable:
    """Return a decorator that makes `annotate` of the calls of a function.

    >>> @jaxgrad.fx.traceback.annotate_fn({"stage": 1})
    ... def double(x):
    ...     return x * 2
    >>> double(3)
    6
    """

    def decorate(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return call

    return decorate
