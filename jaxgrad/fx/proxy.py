"""Stand-ins for values, which record what is done with them, as torch.fx.proxy."""

from __future__ import annotations

import collections
import dis
import inspect
import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from ..names.not_provided import names_of
from ..state.ownership import is_internal
from ..tape import torch_function
from . import _names
from . import traceback as fx_traceback
from .graph import Graph, magic_methods, reflectable_magic_methods
from .immutable_collections import immutable_dict, immutable_list
from .node import Node, Target, base_types
from .operator_schemas import ArgsKwargsPair as ArgsKwargsPair

__getattr__, __dir__ = names_of(__name__)


# the notes on a node that those made of it take over
_TAKEN_OVER = ("nn_module_stack", "source_fn_stack", "recompute", "stack_trace", "custom")


class TraceError(ValueError):
    """A program does with a stand-in what only a value can do."""


class Scope:
    """The module whose forward pass is being traced: its path and its class."""

    def __init__(self, module_path: str, module_type: Any):
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """A context in which a scope is that of a submodule."""

    def __init__(self, scope: Scope, current_scope: Scope):
        self._before = Scope(scope.module_path, scope.module_type)
        scope.module_path = current_scope.module_path
        scope.module_type = current_scope.module_type
        self._scope = scope

    def __enter__(self):
        return self._scope

    def __exit__(self, *exception):
        self._scope.module_path = self._before.module_path
        self._scope.module_type = self._before.module_type


# ---- tracers


class TracerBase:
    """What turns operations on stand-ins into nodes of `graph`.

    record_stack_traces: note the lines of the program; check_mutable_operations: unused here;
    proxy_buffer_attributes: fetch buffers by nodes too; traced_func_name: the method that is
    traced.
    """

    graph: Graph
    record_stack_traces: bool = False
    _record_forward_stack_traces_only: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple,
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node to the graph, with the path of the module that is being traced."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if scope := getattr(self, "scope", None):
            self.node_name_to_scope[node.name] = (scope.module_path, scope.module_type)
        stack = getattr(self, "module_stack", None)
        if fx_traceback.has_preserved_node_meta():
            noted = fx_traceback.get_current_meta()
            node.meta |= {name: noted[name] for name in _TAKEN_OVER if name in noted}
        elif stack:
            node.meta["nn_module_stack"] = collections.OrderedDict(stack)
        return node

    def proxy(self, node: Node) -> Proxy:
        """Return the stand-in of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple,
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node for an operation on stand-ins, and return its stand-in.

        proxy_factory_fn: makes it in place of `proxy`.
        """
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError("create_arg returns a tuple for a tuple, and a dict for a dict")
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = _users_lines()
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any):
        """Return what stands in a node for an argument: nodes for stand-ins.

        Raises NotImplementedError for an object that graphs do not have.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return immutable_list([self.create_arg(item) for item in a])
        if isinstance(a, dict):
            return _dict_argument(self, a)
        if isinstance(a, slice):
            return slice(*(self.create_arg(part) for part in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            parts = (a.start, a.stop, a.step)
            return range(*(self.create_arg(part) for part in parts))
        is_callable = callable(a) and hasattr(a, "__name__") and hasattr(a, "__module__")
        if isinstance(a, base_types) or is_callable or a is None or a is ...:
            return a
        if hasattr(type(a), "__members__") and hasattr(a, "name"):  # an enumeration
            return a
        if hasattr(a, "__dataclass_fields__"):
            return _dataclass_argument(self, a)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Return the truth of a stand-in, as `if` asks for it. Raises TraceError; a subclass may
        know it.
        """
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator:
        """Return the items of a stand-in, as a loop asks for them. Raises TraceError."""
        raise TraceError(
            "Proxy object cannot be iterated: the number of its items is known only when the "
            "graph runs. A loop over it, and *args and **kwargs of it, cannot be traced"
        )

    def keys(self, obj: Proxy) -> Any:
        """Return the keys of a stand-in, as `**` asks for them."""
        return Attribute(obj, "keys")()


def _dict_argument(tracer: TracerBase, values: dict):
    shown = {}
    for key, value in values.items():
        if isinstance(tracer.create_arg(key), Node):
            raise RuntimeError("a graph has no dicts whose keys are computed")
        shown[key] = tracer.create_arg(value)
    return immutable_dict(shown)


def _dataclass_argument(tracer: TracerBase, value):
    names = [name for name, field in value.__dataclass_fields__.items() if field.init]
    fields = {name: tracer.create_arg(getattr(value, name)) for name in names}
    return tracer.create_node("call_function", type(value), (), fields)


def _users_lines() -> str | None:
    """The lines of the program that are being run, from the traced function on; None for none."""
    frames = []
    frame = sys._getframe(1)
    while frame is not None and not _starts_trace(frame):
        if not is_internal(frame):
            frames.append((frame, frame.f_lineno))
        frame = frame.f_back
    summary = traceback.StackSummary.extract(reversed(frames))
    return "".join(summary.format()).strip() or None


def _starts_trace(frame) -> bool:
    return frame.f_code.co_name == "_trace" and frame.f_globals["__name__"].endswith(
        "_symbolic_trace"
    )


class GraphAppendingTracer(TracerBase):
    """A tracer that appends to a graph, for stand-ins of nodes that are there.

    >>> graph = jaxgrad.fx.Graph()
    >>> tracer = jaxgrad.fx.proxy.GraphAppendingTracer(graph)
    >>> x = jaxgrad.fx.Proxy(graph.placeholder("x"), tracer)
    >>> (x + 1).node, list(graph.nodes)
    (add, [x, add])
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope: dict[str, tuple] = {}


# ---- stand-ins


class Proxy:
    """A stand-in for a value: what is done with it becomes nodes of a graph.

    node: the node that computes the value; tracer: what adds the nodes.

    >>> graph = jaxgrad.fx.Graph()
    >>> x = jaxgrad.fx.Proxy(graph.placeholder("x"))
    >>> y = jaxgrad.relu(x).sum() * 2
    >>> list(graph.nodes)
    [x, relu, sum_1, mul]
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None):
        torch_function.activate()  # else functions would be traced inside
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name) -> Attribute:
        return Attribute(self, name)

    def __getstate__(self) -> dict:
        return self.__dict__

    def __deepcopy__(self, memo) -> Proxy:
        return Proxy(self.node, self.tracer)

    def __setstate__(self, state):
        self.__dict__ = state

    def __call__(self, *args, **kwargs) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator:
        frame = inspect.currentframe()
        caller = frame.f_back
        count = _unpacked(caller.f_code, caller.f_lasti)
        if count is not None:
            return (self[position] for position in range(count))
        return self.tracer.iter(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self):
        """Return the stand-in of the keys."""
        return self.tracer.keys(self)

    def __len__(self):
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default: a length is known only when "
            "the graph runs. torch.fx.wrap('len') at module scope records the call"
        )

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        args, kwargs = args or (), kwargs or {}
        tracer = _only_tracer(args, kwargs, orig_method)
        method = _names.method_name(orig_method)
        if method is not None:
            return tracer.create_proxy("call_method", method, args, kwargs)
        function, args, kwargs = _names.normalized(orig_method, args, kwargs)
        name = tracer.graph._target_to_str(_names.node_name(function))
        return tracer.create_proxy("call_function", function, args, kwargs, name=name)


def _unpacked(code, position: int) -> int | None:
    """The number of names to which an instruction assigns the items of a value; None for another
    instruction.
    """
    instructions = {step.offset: step for step in dis.get_instructions(code)}
    step = instructions.get(position)
    return step.argval if step is not None and step.opname == "UNPACK_SEQUENCE" else None


def _proxies_in(value) -> Iterator[Proxy]:
    if isinstance(value, Proxy):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _proxies_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _proxies_in(item)
    elif isinstance(value, slice):
        yield from _proxies_in((value.start, value.stop, value.step))


def _only_tracer(args, kwargs, function) -> TracerBase:
    """The tracer of the stand-ins among arguments. Raises RuntimeError where there are several."""
    tracers = {id(proxy.tracer): proxy.tracer for proxy in _proxies_in((args, kwargs))}
    if len(tracers) > 1:
        raise RuntimeError(
            f"Found multiple different tracers {list(tracers.values())} while trying to trace "
            f"operations {function}"
        )
    if not tracers:
        raise RuntimeError(f"no argument of {function} is a stand-in")
    return next(iter(tracers.values()))


class MetaProxy(Proxy):
    """A stand-in with an example of its value. fake_mode: unused here."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode=None):
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"


class Attribute(Proxy):
    """A stand-in for an attribute of a value. It becomes a node where it is used but for a call,
    which is one of a method.
    """

    def __init__(self, root: Proxy, attr: str):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        """The node that fetches the attribute."""
        if self._node is None:
            fetched = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = fetched.node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A stand-in for a parameter, whose shape and number of dimensions are known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param):
        super().__init__(node, tracer)
        self.name, self.param = name, param

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        """The shape of the parameter."""
        return self.param.shape

    def size(self):
        """Return the shape of the parameter."""
        return self.param.size()

    def dim(self):
        """Return the number of dimensions of the parameter."""
        return self.param.dim()

    @property
    def ndim(self):
        """The number of dimensions of the parameter."""
        return self.param.ndim

    def numel(self):
        """Return the number of elements of the parameter."""
        return self.param.numel()

    def nelement(self):
        """Return the number of elements of the parameter."""
        return self.param.nelement()


# ---- operators


def _operator_method(name: str) -> Callable:
    target = getattr(operator, name)

    def method(*args, **kwargs):
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    method.__name__ = f"__{name.strip('_')}__"
    return method


def _reflected_method(name: str) -> Callable:
    target = getattr(operator, name)

    def method(self, other):
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    method.__name__ = f"__r{name.strip('_')}__"
    return method


for _name in magic_methods:
    if hasattr(operator, _name):
        _method = _operator_method(_name)
        setattr(Proxy, _method.__name__, _method)
for _name in reflectable_magic_methods:
    if hasattr(operator, _name) and _name != "getitem":
        _method = _reflected_method(_name)
        setattr(Proxy, _method.__name__, _method)
Proxy.__hash__ = object.__hash__
