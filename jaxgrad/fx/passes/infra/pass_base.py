"""The class of passes over graphs, as torch.fx.passes.infra.pass_base."""

from __future__ import annotations

import abc
from typing import NamedTuple

from ....names.not_provided import names_of
from ...graph_module import GraphModule

__getattr__, __dir__ = names_of(__name__)


class PassResult(NamedTuple):
    """What a pass returns: the module, and whether it was changed."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass over the graph of a module. A subclass defines `call`.

    >>> from jaxgrad.fx.passes.infra.pass_base import PassBase, PassResult
    >>> class Nothing(PassBase):
    ...     def call(self, graph_module):
    ...         return PassResult(graph_module, False)
    >>> Nothing()(jaxgrad.fx.symbolic_trace(lambda x: x)).modified
    False
    """

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Change the module, and say whether it was changed."""

    def requires(self, graph_module: GraphModule) -> None:
        """Check what must hold before the pass; nothing by default."""
        return

    def ensures(self, graph_module: GraphModule) -> None:
        """Check what must hold after the pass; nothing by default."""
        return
