"""Graphs that are run node by node, as torch.fx.interpreter."""

from __future__ import annotations

import contextlib
import inspect
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ..names.not_provided import names_of
from ..nn.module import Module
from . import traceback as fx_traceback
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, Target, map_aggregate, map_arg
from .proxy import Proxy

__getattr__, __dir__ = names_of(__name__)


class Interpreter:
    """Runs a graph node by node. A subclass changes what an operation does.

    module: a GraphModule; graph: its graph, or another one; garbage_collect_values: release values
    that no later node needs.

    >>> class Shown(jaxgrad.fx.Interpreter):
    ...     def run_node(self, n):
    ...         print(n.op, n.name)
    ...         return super().run_node(n)
    >>> Shown(jaxgrad.fx.symbolic_trace(lambda x: x + 1)).run(jaxgrad.ones(1))
    placeholder x
    call_function add
    output output
    tensor([2.])
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ):
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses = _last_uses(self.graph) if garbage_collect_values else {}

    def run(
        self, *args, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True
    ):
        """Run the graph on arguments, and return the result.

        initial_env: values of nodes, which are not computed; enable_io_processing: take arguments
        and result as a call of the module does.
        """
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self._checked(node)
            for dead in self.user_to_last_uses.get(node, ()):
                del self.env[dead]
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
        return None

    def _checked(self, node: Node):
        try:
            return self.run_node(node)
        except Exception as error:
            if self.extra_traceback:
                _add_place(error, node)
            raise

    def boxed_run(self, args_list: list[Any]):
        """Run the graph on a list of values, which is emptied so that they can be released."""
        placeholders = self.graph.find_nodes(op="placeholder")
        if len(placeholders) != len(args_list):
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(placeholders)} arguments for placeholders "
                f"but received {len(args_list)}"
            )
        env = dict(zip(placeholders, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=env, enable_io_processing=False)

    @contextlib.contextmanager
    def _set_current_node(self, node: Node):
        with fx_traceback.set_current_meta(node):
            yield

    def run_node(self, n: Node):
        """Return the value of a node, by the method of the name of its operation."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    # ---- operations

    def placeholder(self, target: Target, args: tuple, kwargs: dict[str, Any]):
        """Return the next argument, or its default. Raises RuntimeError where there is none."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: tuple, kwargs: dict[str, Any]):
        """Return the attribute of the module at a path."""
        return self.fetch_attr(target)

    def call_function(self, target: Target, args: tuple, kwargs: dict[str, Any]):
        """Return the result of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple, kwargs: dict[str, Any]):
        """Return the result of a method of the first argument."""
        owner, *rest = args
        return getattr(owner, target)(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple, kwargs: dict[str, Any]):
        """Return the result of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Target, args: tuple, kwargs: dict[str, Any]):
        """Return the result of the graph."""
        return args[0]

    # ---- values

    def fetch_attr(self, target: str):
        """Return the attribute of the module at a path. Raises RuntimeError where there is none."""
        steps, value = target.split("."), self.module
        for count, name in enumerate(steps):
            if not hasattr(value, name):
                raise RuntimeError(
                    f"Node referenced nonexistent target {'.'.join(steps[: count + 1])}"
                )
            value = getattr(value, name)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        """Return the values of the arguments of a node."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n: Node):
        """Return an argument of a node with values in the place of nodes."""

        def value_of(node: Node):
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose "
                    "such issues"
                )
            return self.env[node]

        return map_arg(args, value_of)


def _last_uses(graph: Graph) -> dict[Node, list[Node]]:
    seen: set[Node] = set()
    dying = defaultdict(list)
    for user in reversed(graph.nodes):
        for node in user._input_nodes:
            if node not in seen:
                seen.add(node)
                dying[user].append(node)
    return dying


def _add_place(error: Exception, node: Node):
    """Add to the text of an error which node was run."""
    if getattr(error, "_fx_node", None) is not None:
        return
    lines = [f"While executing {node.format_node()}"]
    if node.stack_trace:
        lines += ["Original traceback:", node.stack_trace]
    says = "\n".join(lines)
    first = f"{error.args[0]}\n\n{says}" if error.args else says
    with contextlib.suppress(AttributeError):
        error._fx_node = node
    if isinstance(error, KeyError):
        error.add_note(says)  # the text of one is the key
    else:
        error.args = (first, *error.args[1:])


class Transformer(Interpreter):
    """An interpreter that makes a new graph of what its methods do with stand-ins.

    >>> class Swapped(jaxgrad.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         target = jaxgrad.tanh if target is jaxgrad.relu else target
    ...         return super().call_function(target, args, kwargs)
    >>> gm = jaxgrad.fx.symbolic_trace(lambda x: jaxgrad.relu(x))
    >>> print(Swapped(gm).transform().code.strip())
    def forward(self, x):
        tanh = torch.tanh(x);  x = None
        return tanh
    """

    def __init__(self, module: GraphModule):
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """Return the stand-in of a new placeholder."""
        default = next(iter(args)) if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """Return the stand-in of a new fetch of an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple, kwargs: dict[str, Any]):
        """Return the stand-in of a new call of a submodule."""
        return self.tracer.call_module(
            self.fetch_attr(target), self.fetch_attr(target).forward, args, kwargs
        )

    def call_function(self, target: Target, args: tuple, kwargs: dict[str, Any]):
        """Return the stand-in of a new call of a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Return a module of the new graph."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            types = [node.type for node in self.graph.nodes if node.op == "output"]
            value = map_aggregate(result, lambda leaf: leaf.node if _is_proxy(leaf) else leaf)
            self.new_graph.output(value, types[0] if types else None)
        return GraphModule(self.module, self.new_graph)


def _is_proxy(value) -> bool:
    return isinstance(value, Proxy)


class _TransformerTracer(Tracer):
    """The tracer of a new graph: all modules are leaves."""

    def __init__(self, graph: Graph):
        super().__init__()
        self.graph = graph
        self.tensor_attrs: dict[Any, str] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True
