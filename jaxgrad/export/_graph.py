"""The graph of an exported module, as far as one is asked for."""

from __future__ import annotations

import functools

from ..late import LateModule
from ..nn.module import Module

fx = LateModule("jaxgrad.fx")


class Graph:
    """The calls of a module, traced by `fx` when they are first asked for."""

    def __init__(self, target, args, kwargs, signature):
        self.target, self.signature = target, signature

    @functools.cached_property
    def module(self):
        return fx.symbolic_trace(self.target)

    @property
    def text(self) -> str:
        if not isinstance(self.target, Module):
            return ""
        try:
            return self.module.print_readable(print_output=False)
        except Exception as error:
            return f"# no graph: {error}"


class SavedGraph:
    """The graph of a program that was read from a file, as text."""

    def __init__(self, text: str):
        self.text = text

    @property
    def module(self):
        raise RuntimeError(
            "the file holds the graph as text, which str() of the program shows: export the module "
            "again to have an fx.GraphModule"
        )
