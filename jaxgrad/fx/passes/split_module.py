"""Graphs that are split into submodules, as torch.fx.passes.split_module."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ...names.not_provided import names_of
from ...nn.module import Module
from .._module_attributes import _get_attr
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..proxy import Proxy

__getattr__, __dir__ = names_of(__name__)


class Partition:
    """A part of a graph that becomes a submodule. name: the key by which nodes were chosen; inputs,
    outputs: the names of the nodes whose values it takes and returns.
    """

    def __init__(self, name: str):
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {list(self.inputs)},\n"
            f" outputs: {list(self.outputs)},\n partitions depended on: "
            f"{list(self.dependencies)},\n partition dependents: {list(self.dependents)}"
        )


def split_module(
    m: GraphModule,
    root_m: Module,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """Return a module whose submodules are parts of another's graph.

    root_m: has what the graph calls and fetches; split_callback: gives the part of a node, a number
    or a name; qualname_map: gets by the new paths of submodules those in `root_m`;
    keep_original_order: run the parts in the order of their first nodes; keep_original_node_name,
    keep_original_input_name: of nodes and arguments in the parts; partition_affix: a part of the
    names of submodules; tuple_return: parts with one result return a tuple too. Raises RuntimeError
    where two parts need each other.

    >>> from jaxgrad.fx.passes.split_module import split_module
    >>> gm = jaxgrad.fx.symbolic_trace(lambda x: (x + 1).relu())
    >>> halves = split_module(gm, gm, lambda node: int(node.op == "call_method"))
    >>> print(halves.code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    """
    split = _Split(m, root_m, {} if qualname_map is None else qualname_map)
    split.affix, split.returns_tuples = partition_affix, tuple_return
    split.keeps_names = keep_original_node_name
    split.keeps_input_names = keep_original_input_name
    split.assign(split_callback)
    return split.assembled(split.in_order(keep_original_order))


class _Split:
    """The parts of a graph. paths: gets by the new paths of submodules the old ones."""

    def __init__(self, module: GraphModule, root: Module, paths: dict[str, str]):
        self.graph, self.root, self.paths = module.graph, root, paths
        self.affix, self.returns_tuples = None, False
        self.keeps_names, self.keeps_input_names = False, True
        self.partitions: dict[str, Partition] = {}
        self.partition_of: dict[Node, str] = {}
        self.nodes = {node.name: node for node in self.graph.nodes}

    # ---- parts

    def assign(self, split_callback):
        """Assign nodes to parts, and note which values go from one to another."""
        computed = (n for n in self.graph.nodes if n.op.startswith("call_"))
        for node in computed:
            name = self.partition_of[node] = str(split_callback(node))
            partition = self.partitions.setdefault(name, Partition(name))
            if self.affix is not None:
                partition.submod_name = f"submod_{self.affix}_{name}"
            partition.node_names.append(node.name)
        for node in self.graph.nodes:
            for used in node.all_input_nodes:
                self._note_use(used, node)

    def _note_use(self, definition: Node, user: Node):
        origin, target = self.partition_of.get(definition), self.partition_of.get(user)
        if origin == target:
            return
        if origin is not None:
            self.partitions[origin].outputs.setdefault(definition.name)
            if target is not None:
                self.partitions[origin].dependents.setdefault(target)
        if target is not None:
            self.partitions[target].inputs.setdefault(definition.name)
            if origin is not None:
                self.partitions[target].dependencies.setdefault(origin)

    def in_order(self, keeps_order: bool | None) -> list[Partition]:
        """The parts, those that others need before them."""
        missing = {name: set(part.dependencies) for name, part in self.partitions.items()}
        ready = deque(name for name, needed in missing.items() if not needed)
        ordered = []
        while ready:
            name = ready.popleft()
            ordered.append(name)
            for dependent in self.partitions[name].dependents:
                missing[dependent].discard(name)
                if not missing[dependent]:
                    ready.append(dependent)
        if len(ordered) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        if keeps_order:
            ordered = self._by_first_node(ordered)
        return [self.partitions[name] for name in ordered]

    def _by_first_node(self, ordered: list[str]) -> list[str]:
        """The order of the first nodes, as far as parts do not need later ones."""
        left, result = list(self.partitions), []
        while left:
            done = set(result)
            free = (name for name in left if done >= self.partitions[name].dependencies.keys())
            result.append(next(free))
            left.remove(result[-1])
        return result

    # ---- graphs

    def fill(self):
        """Write the graphs of the parts."""
        for partition in self.partitions.values():
            for position, name in enumerate(partition.inputs):
                node = self.nodes[name]
                shown = name if self.keeps_input_names else f"arg_{position}"
                placeholder = partition.graph.placeholder(shown, type_expr=node.type)
                placeholder.meta = node.meta.copy()
                partition.environment[node] = placeholder
        for node, name in self.partition_of.items():
            self._copy(node, self.partitions[name])

    def _copy(self, node: Node, partition: Partition):
        known = partition.environment
        args, kwargs = map_arg((node.args, node.kwargs), known.__getitem__)
        target = node.target
        if node.op == "call_module":
            target = node.target.replace(".", "_")
            partition.targets[target] = _get_attr(self.root, node.target)
            self.paths[f"{partition.submod_name}.{target}"] = node.target
        name = node.name if self.keeps_names else None
        new = partition.graph.create_node(
            node.op, target, tuple(args), dict(kwargs), name, node.type
        )
        new.meta = node.meta.copy()
        known[node] = new

    def assembled(self, ordered: list[Partition]) -> GraphModule:
        """The module that calls the parts in order."""
        self.fill()
        graph, members = Graph(), {}
        values: dict[str, Node] = {}
        for node in self.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                values[node.name] = graph.node_copy(node)
            if node.op == "get_attr":
                members[node.target] = _get_attr(self.root, node.target)
        for partition in ordered:
            members[partition.submod_name] = self._submodule(partition)
            args = tuple(values[name] for name in partition.inputs)
            result = graph.call_module(partition.submod_name, args)
            is_tuple = len(partition.outputs) > 1 or self.returns_tuples
            for position, name in enumerate(partition.outputs):
                values[name] = Proxy(result)[position].node if is_tuple else result
        for node in self.graph.nodes:
            if node.op == "output":
                value = map_arg(node.args[0], lambda inner: values[inner.name])
                graph.output(value, node.type).meta = node.meta.copy()
        return GraphModule(members, graph)

    def _submodule(self, partition: Partition) -> GraphModule:
        results = tuple(partition.environment[self.nodes[name]] for name in partition.outputs)
        is_single = len(results) == 1 and not self.returns_tuples
        partition.graph.output(results[0] if is_single else results)
        return GraphModule(partition.targets, partition.graph)
