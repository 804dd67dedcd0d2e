"""Graphs of operations, as torch.fx.graph: nodes in the order in which they run, and their code.

>>> graph = jaxgrad.fx.Graph()
>>> x = graph.placeholder("x")
>>> y = graph.call_function(jaxgrad.relu, (x,))
>>> _ = graph.output(y)
>>> print(graph)
graph():
    %x : [num_users=1] = placeholder[target=x]
    %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
    return relu
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

from ..names.not_provided import names_of
from . import _names
from ._codegen import CodeGen as CodeGen
from ._codegen import PythonCode as PythonCode
from ._codegen import _format_target as _format_target
from ._codegen import _is_from_torch as _is_from_torch
from ._codegen import _PyTreeCodeGen as _PyTreeCodeGen
from ._codegen import _PyTreeInfo as _PyTreeInfo
from ._codegen import inplace_methods as inplace_methods
from ._codegen import magic_methods as magic_methods
from ._codegen import reflectable_magic_methods as reflectable_magic_methods
from ._lint import check_attributes, check_nodes
from ._namespace import _custom_builtins as _custom_builtins
from ._namespace import _CustomBuiltin as _CustomBuiltin
from ._namespace import _is_magic as _is_magic
from ._namespace import _Namespace as _Namespace
from ._namespace import _register_custom_builtin as _register_custom_builtin
from ._namespace import _snake_case as _snake_case
from ._tables import table
from .node import Node, Target, map_arg
from .node import _type_repr as _type_repr

__getattr__, __dir__ = names_of(__name__)


class _node_list:
    """The nodes of a graph, from the first on, or from the last on with direction "_prev"."""

    def __init__(self, graph: Graph, direction: str = "_next"):
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction is '_next' or '_prev', not {direction!r}")
        self.graph, self.direction = graph, direction

    def __len__(self):
        return self.graph._len

    def __iter__(self):
        root, step = self.graph._root, self.direction
        node = getattr(root, step)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, step)

    def __reversed__(self):
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class _InsertPoint:
    """A context at whose end nodes are inserted where they were before."""

    def __init__(self, graph: Graph, new_insert: Callable):
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.graph._insert = self.orig_insert


class Graph:
    """Operations in the order in which they run.

    owning_module: the GraphModule of the graph; tracer_cls: the class of what traced it.

    >>> graph = jaxgrad.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_method("relu", (x,)))
    >>> jaxgrad.fx.GraphModule(jaxgrad.nn.Module(), graph)(jaxgrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module, self._owners = owning_module, 0
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()

    @property
    def owning_module(self):
        """The GraphModule of the graph; None where several share it."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module):
        self._owning_module = module if not self._owners else None
        self._owners += 1

    @property
    def nodes(self) -> _node_list:
        """The nodes, in order; the graph may be changed while they are iterated over."""
        return _node_list(self)

    def output_node(self) -> Node:
        """Return the node of the result."""
        node = next(iter(reversed(self.nodes)))
        if node.op != "output":
            raise AssertionError("the graph has no output")
        return node

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Return the nodes of an operation, and of a target for calls.

        >>> graph = jaxgrad.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> _ = graph.call_function(jaxgrad.relu, (x,))
        >>> graph.find_nodes(op="call_function", target=jaxgrad.relu)
        [relu]
        """
        nodes = [node for node in self.nodes if node.op == op]
        if target is None:
            return nodes
        return [node for node in nodes if node.target == target]

    # ---- copies

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False):
        """Copy the nodes of another graph to the insertion point, and return its result here.

        val_map: by nodes of `g` those of this graph that stand for them; the copies are added.
        return_output_node: return a pair with the output node of `g`.

        >>> inner = jaxgrad.fx.symbolic_trace(lambda x: x.relu()).graph
        >>> graph = jaxgrad.fx.Graph()
        >>> graph.graph_copy(inner, {})
        relu
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda inner: val_map[inner])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda inner: val_map[inner])
        return None

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Add a copy of a node of another graph. arg_transform: gives the arguments here.

        >>> old, new = jaxgrad.fx.Graph(), jaxgrad.fx.Graph()
        >>> new.node_copy(old.placeholder("x")).graph is new
        True
        """
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def __deepcopy__(self, memo=None) -> Graph:
        memo = {} if memo is None else memo
        graph = Graph(tracer_cls=self._tracer_cls)
        known: dict[Node, Node] = {}
        result = graph.graph_copy(self, known, return_output_node=True)
        graph._codegen = copy.deepcopy(self._codegen)
        for old, new in known.items():
            new.meta = copy.copy(old.meta)
        if result is not None:
            value, old = result
            node = graph.output(value, type_expr=old.type)
            node.meta = copy.copy(old.meta)
            known[old] = node
        memo[id(self)] = graph
        return graph

    # ---- new nodes

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple | None = None,
        kwargs: dict | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node at the insertion point.

        op: the operation; target: what it calls or fetches; name: the candidate for its name.

        >>> jaxgrad.fx.Graph().create_node("placeholder", "x")
        x
        """
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError("the arguments of a node are a tuple and a dict")
        name = self._graph_namespace.create_name(name or self._target_to_str(target), None)
        node = Node(self, name, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(name, node)
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        self._insert(node)
        self._len += 1
        return node

    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty
    ) -> Node:
        """Add an argument of the graph. name: `*args` and `**kwargs` too.

        >>> jaxgrad.fx.Graph().placeholder("x", default_value=2).args
        (2,)
        """
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add the fetch of an attribute of the module, as "layer.weight".

        >>> jaxgrad.fx.Graph().get_attr("layer.weight")
        layer_weight
        """
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args=None, kwargs=None, type_expr: Any = None) -> Node:
        """Add a call of a submodule.

        >>> jaxgrad.fx.Graph().call_module("layers.0")
        layers_0
        """
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args=None, kwargs=None, type_expr: Any = None) -> Node:
        """Add a call of a method of the first argument.

        >>> graph = jaxgrad.fx.Graph()
        >>> graph.call_method("relu", (graph.placeholder("x"),))
        relu
        """
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable,
        args=None,
        kwargs=None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function.

        >>> graph = jaxgrad.fx.Graph()
        >>> graph.call_function(jaxgrad.add, (graph.placeholder("x"), 1))
        add
        """
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result, type_expr: Any = None) -> Node:
        """Add the node of the result: a node, or what has nodes in containers.

        >>> graph = jaxgrad.fx.Graph()
        >>> graph.output((graph.placeholder("x"), 1)).args
        ((x, 1),)
        """
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def _target_to_str(self, target: Target) -> str:
        name = target if isinstance(target, str) else _names.node_name(target)
        return _snake_case(name[2:-2] if _is_magic(name) else name)

    # ---- changes

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nothing uses. Raises RuntimeError for one with users.

        >>> graph = jaxgrad.fx.Graph()
        >>> graph.erase_node(graph.placeholder("x"))
        >>> len(graph.nodes)
        0
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._assign((), {})

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Insert new nodes before a node, at the start without one; a context, or from now on.

        >>> graph = jaxgrad.fx.Graph()
        >>> y = graph.placeholder("y")
        >>> with graph.inserting_before(y):
        ...     _ = graph.placeholder("x")
        >>> list(graph.nodes)
        [x, y]
        """
        if n is None:
            return self.inserting_after(self._root)
        self._check_own(n)
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Insert new nodes after a node, at the end without one; see `inserting_before`.

        >>> graph = jaxgrad.fx.Graph()
        >>> x, z = graph.placeholder("x"), graph.placeholder("z")
        >>> with graph.inserting_after(x):
        ...     _ = graph.placeholder("y")
        >>> list(graph.nodes)
        [x, y, z]
        """
        if n is None:
            return self.inserting_before(self._root)
        self._check_own(n)
        return _InsertPoint(self, n.append)

    def _check_own(self, node: Node):
        if node.graph is not self:
            raise AssertionError("Node to insert before or after is not in graph.")

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes that nothing uses, but for those that change something; say if there were.

        is_impure_node: says which change something, in place of `Node.is_impure`. Calls of methods
        and functions whose names end in "_" count as such.

        >>> graph = jaxgrad.fx.symbolic_trace(lambda x: (x + 1, x)[1]).graph
        >>> graph.eliminate_dead_code(), list(graph.nodes)
        (True, [x, output])
        """
        self.lint()
        is_kept = is_impure_node or Node.is_impure
        before = len(self.nodes)
        for node in reversed(self.nodes):
            if not is_kept(node) and not node.users:
                self.erase_node(node)
        for submodule in self._graphs_inside():
            submodule.graph.eliminate_dead_code(is_impure_node)
        return len(self.nodes) < before

    def _graphs_inside(self) -> list:
        called = {node.target for node in self.nodes if node.op == "call_module"}
        named = self.owning_module.named_modules() if self.owning_module is not None else ()
        return [module for name, module in named if name in called and hasattr(module, "_graph")]

    def _clear_nodes(self):
        for node in reversed(self.nodes):
            node.users.clear()
            self.erase_node(node)

    # ---- code

    def process_inputs(self, *args):
        """Return the values of the placeholders for the arguments of a call.

        >>> jaxgrad.fx.Graph().process_inputs(1, 2)
        (1, 2)
        """
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        """Return the result of a call for the value of the output."""
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Choose what writes the code."""
        self._codegen = codegen

    def python_code(self, root_module: str, **options) -> PythonCode:
        """Return the code. root_module: the name of the module in it; `verbose`, `include_stride`,
        `include_device` and `expanded_def` choose what it shows.

        >>> graph = jaxgrad.fx.symbolic_trace(lambda x: x + 1).graph
        >>> print(graph.python_code("self").src.strip())
        def forward(self, x):
            add = x + 1;  x = None
            return add
        """
        namespace = _Namespace()
        before = {node: node._repr_fn for node in self.nodes}

        def shown(node):
            return namespace.create_name(node.name, node)

        try:
            for node in self.nodes:
                node._repr_fn = shown
            return self._python_code(root_module, namespace, **options)
        finally:
            for node, function in before.items():
                node._repr_fn = function

    def _python_code(self, root_module: str, namespace: _Namespace, **options) -> PythonCode:
        return self._codegen._gen_python_code(self.nodes, root_module, namespace, **options)

    def on_generate_code(self, make_transformer: Callable):
        """Change the lines of the code: `make_transformer(before)` returns a function of the list
        of lines, where `before` is the one that is there or None. As a context it ends again.

        >>> graph = jaxgrad.fx.symbolic_trace(lambda x: x + 1).graph
        >>> with graph.on_generate_code(lambda before: lambda body: ["# added\\n", *body]):
        ...     print(graph.python_code("self").src.strip())
        def forward(self, x):
            # added
            add = x + 1;  x = None
            return add
        """
        return _CodeChange(self, make_transformer)

    def __str__(self) -> str:
        lines = (node.format_node() for node in self.nodes)
        return "\n    ".join(["graph():", *lines])

    def print_tabular(self) -> None:
        """Print the nodes as a table.

        >>> jaxgrad.fx.symbolic_trace(lambda x: x).graph.print_tabular()
        opcode       name    target    args    kwargs
        -----------  ------  --------  ------  --------
        placeholder  x       x         ()      {}
        output       output  output    (x,)    {}
        """
        rows = [[node.op, node.name, node.target, node.args, node.kwargs] for node in self.nodes]
        print(table(rows, ["opcode", "name", "target", "args", "kwargs"]))

    def lint(self) -> None:
        """Check the graph: nodes are used after they are computed, names are unique, and what is
        fetched and called is in the module. Raises RuntimeError or ValueError where it is not.

        >>> jaxgrad.fx.symbolic_trace(lambda x: x + 1).graph.lint()
        """
        check_nodes(self)
        if self.owning_module is not None:
            check_attributes(self)


class _CodeChange:
    """The change of the lines of a graph's code; it ends with the context."""

    def __init__(self, graph: Graph, make_transformer: Callable):
        self.codegen = graph._codegen
        self.before = self.codegen._body_transformer
        self.codegen._body_transformer = make_transformer(self.before)

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        self.codegen._body_transformer = self.before
