"""Graphs that are split by tags of their nodes, as torch.fx.passes.split_utils."""

from __future__ import annotations

from typing import Any

from ...names.not_provided import names_of
from ...nn.module import Module
from .._module_attributes import _copy_attr, used_paths
from .._module_attributes import _get_attr as getattr_recursive
from ..graph import Graph
from ..graph_module import GraphModule
from .split_module import split_module

__getattr__, __dir__ = names_of(__name__)


class HolderModule(Module):
    """A module with submodules of the names of a dict."""

    def __init__(self, d: dict[str, Module]):
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def setattr_recursive(obj: Any, attr: str, value: Any):
    """Set an attribute at a path, as "layer.weight".

    >>> from jaxgrad.fx.passes.split_utils import setattr_recursive
    >>> model = jaxgrad.nn.Sequential(jaxgrad.nn.ReLU())
    >>> setattr_recursive(model, "0", jaxgrad.nn.Tanh())
    >>> model[0]
    Tanh()
    """
    owner, _, name = attr.rpartition(".")
    setattr(getattr_recursive(obj, owner) if owner else obj, name, value)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """Return a module of a graph with what that uses of another module, and the paths of this.

    comp_name: a path that comes before those in the new module, which are the keys.

    >>> from jaxgrad.fx.passes.split_utils import lift_subgraph_as_module
    >>> gm = jaxgrad.fx.symbolic_trace(jaxgrad.nn.Sequential(jaxgrad.nn.ReLU()))
    >>> lift_subgraph_as_module(gm, gm.graph)[1]
    {'0': '0'}
    """
    holder = HolderModule({})
    for path in used_paths(subgraph):
        _copy_attr(gm, holder, path)
    prefix = f"{comp_name}." if comp_name else ""
    paths = {f"{prefix}{path}": path for path in used_paths(subgraph)}
    return GraphModule(holder, subgraph, class_name), paths


def split_by_tags(gm: GraphModule, tags: list[str], return_fqn_mapping: bool = False):
    """Return a module with a submodule for each tag, of the nodes whose attribute `tag` is it.

    tags: in the order of the submodules; return_fqn_mapping: return by the new paths of submodules
    the old ones too.

    >>> from jaxgrad.fx.passes.split_utils import split_by_tags
    >>> gm = jaxgrad.fx.symbolic_trace(lambda x: (x + 1).relu())
    >>> for node in gm.graph.nodes:
    ...     node.tag = "second" if node.op == "call_method" else "first"
    >>> print(split_by_tags(gm, ["first", "second"]).code.strip())
    def forward(self, x):
        first = self.first(x);  x = None
        second = self.second(first);  first = None
        return second
    """
    computed = [node for node in gm.graph.nodes if node.op in _COMPUTED]
    unknown = {node.tag for node in computed} - set(tags)
    if unknown:
        raise AssertionError(f"nodes have tags that are not listed: {sorted(unknown)}")
    paths: dict[str, str] = {}
    split = split_module(gm, gm, lambda node: node.tag, paths)
    for node in split.graph.nodes:
        if node.op == "call_module":
            name = node.target.removeprefix("submod_")
            module = getattr(split, node.target)
            split.delete_submodule(node.target)
            split.add_submodule(name, module)
            node.target = name
            node._rename(name)
    split.recompile()
    renamed = {new.removeprefix("submod_"): old for new, old in paths.items()}
    return (split, renamed) if return_fqn_mapping else split


_COMPUTED = ("call_function", "call_method", "call_module")
