"""Tracing of programs into graphs, as torch.fx.symbolic_trace."""

from __future__ import annotations

import collections
import functools
import inspect
import math
from collections.abc import Callable
from types import FunctionType as FunctionType
from types import ModuleType
from typing import Any

from ..names.not_provided import names_of, resolve
from ..nn.containers import Sequential
from ..nn.module import Module
from ..nn.parameter import Parameter
from ..tape.tensor import Tensor
from . import _patching
from ._compatibility import compatibility as compatibility
from ._patching import _autowrap_check as _autowrap_check
from ._patching import _create_wrapped_func as _create_wrapped_func
from ._patching import _create_wrapped_method as _create_wrapped_method
from ._patching import _find_proxy as _find_proxy
from ._patching import _maybe_revert_all_patches as _maybe_revert_all_patches
from ._patching import _new_patcher as _new_patcher
from ._patching import _orig_module_call as _orig_module_call
from ._patching import _orig_module_getattr as _orig_module_getattr
from ._patching import _patch_wrapped_functions as _patch_wrapped_functions
from ._patching import _Patcher as _Patcher
from ._patching import _wrapped_fns_to_patch as _wrapped_fns_to_patch
from ._patching import _wrapped_methods_to_patch as _wrapped_methods_to_patch
from ._placeholders import PH as PH
from ._placeholders import PHBase as PHBase
from ._placeholders import PHWithMeta as PHWithMeta
from ._placeholders import RootArguments
from ._placeholders import _transfer_attrs as _transfer_attrs
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .proxy import ParameterProxy, Scope, ScopeContextManager, TracerBase

__getattr__, __dir__ = names_of(__name__)
ScriptObject = resolve("torch._C.ScriptObject")

_is_fx_tracing_flag = False


def is_fx_symbolic_tracing() -> bool:
    """Return whether a program is being traced."""
    return _is_fx_tracing_flag


is_fx_tracing = is_fx_symbolic_tracing

# classes whose calls with stand-ins are recorded
_proxyable_classes: dict[type, None] = {}


class ProxyableClassMeta(type):
    """The class of classes whose instances graphs have: a call with stand-ins is recorded.

    >>> class Pair(metaclass=jaxgrad.fx.ProxyableClassMeta):
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> gm = jaxgrad.fx.symbolic_trace(lambda x: Pair(x, 1).left + 1)
    >>> gm(jaxgrad.ones(2))
    tensor([2., 2.])
    """

    def __init__(cls, name, bases, attrs):
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args, **kwargs):
        proxy = _find_proxy(args, kwargs) if is_fx_symbolic_tracing() else None
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def _assert_is_none(value, msg: str):
    if value is not None:
        raise AssertionError(msg)


class Tracer(TracerBase):
    """Traces the forward pass of a module, or a function, into a graph.

    autowrap_modules: modules whose functions are recorded as one call; autowrap_functions: further
    ones; param_shapes_constant: the shapes of parameters are numbers, not nodes. A subclass says by
    `is_leaf_module` which submodules are one call.

    >>> class Whole(jaxgrad.fx.Tracer):
    ...     def is_leaf_module(self, m, module_qualified_name):
    ...         return False
    >>> model = jaxgrad.nn.Sequential(jaxgrad.nn.ReLU())
    >>> [node.op for node in Whole().trace(model).nodes]
    ['placeholder', 'call_function', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ):
        super().__init__()
        functions = [
            value
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        ]
        self._autowrap_function_ids = {id(value) for value in (*functions, *autowrap_functions)}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack: collections.OrderedDict = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope: dict[str, tuple] = {}

    _qualname_counter: dict[str, int]

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return a name with a number that the root module does not have, as `prefix0`."""
        counter = self.__dict__.setdefault("_qualname_counter", collections.defaultdict(int))
        while True:
            name = f"{prefix}{counter[prefix]}"
            counter[prefix] += 1
            if not hasattr(self.root, name):
                return name

    # ---- arguments

    def create_arg(self, a: Any):
        """Return what stands in a node for an argument: a node for a tensor of the module, and for
        another one too, which becomes an attribute of the root.
        """
        if isinstance(a, Tensor):
            return self._tensor_argument(a)
        if type(a) in _proxyable_classes:
            return self._instance_argument(a)
        return super().create_arg(a)

    def _tensor_argument(self, tensor):
        if isinstance(tensor, Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is tensor:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        for name, buffer in self.root.named_buffers():
            if buffer is tensor:
                return self.create_node("get_attr", name, (), {})
        name = self.tensor_attrs.get(tensor)
        if name is None:
            name = self.tensor_attrs[tensor] = self.get_fresh_qualname("_tensor_constant")
            setattr(self.root, name, tensor)
        return self.create_node("get_attr", name, (), {})

    def _instance_argument(self, instance):
        name = self.get_fresh_qualname(f"_{type(instance).__name__}_constant_")
        setattr(self.root, name, instance)
        return self.create_node("get_attr", name, (), {})

    # ---- modules

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Return whether a call of a submodule is one node: those of torch.nn but `Sequential`.

        >>> jaxgrad.fx.Tracer().is_leaf_module(jaxgrad.nn.ReLU(), "act")
        True
        """
        libraries = ("jaxgrad.nn", "jaxgrad.ao.nn", "torch.nn", "torch.ao.nn")
        is_of_library = m.__module__.startswith(libraries)
        return is_of_library and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """Return the path of a submodule. Raises NameError for one that is none."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Module, forward: Callable, args: tuple, kwargs: dict[str, Any]):
        """Record a call of a submodule, or trace it. forward: calls it."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            count = self.num_calls.get(path, 0)
            key = f"{path}@{count}" if count else path
            self.num_calls[path] = count + 1
            self.module_stack[key] = (path, type(m))
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.pop(key, None)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]):
        """Return what a look-up of an attribute of a module gives: a stand-in for a parameter, and
        with `proxy_buffer_attributes` for a buffer. parameter_proxy_cache: those that are there.
        """
        if isinstance(attr_val, Parameter):
            named = self.root.named_parameters()
            return self._fetched(attr_val, named, parameter_proxy_cache, True)
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            named = self.root.named_buffers()
            return self._fetched(attr_val, named, parameter_proxy_cache, False)
        return attr_val

    def _fetched(self, value, named, cache: dict, is_parameter: bool):
        for name, member in named:
            if member is not value:
                continue
            if name not in cache:
                options = {}
                if self.param_shapes_constant and is_parameter:
                    make = functools.partial(self._parameter_proxy, name, value)
                    options["proxy_factory_fn"] = make
                cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
            return cache[name]
        return value

    def _parameter_proxy(self, name: str, value, node: Node) -> ParameterProxy:
        return ParameterProxy(self, node, name, value)

    # ---- the root

    def create_args_for_root(
        self,
        root_fn: Callable,
        is_module: bool,
        concrete_args: dict[str, Any] | tuple | None = None,
    ) -> tuple[Callable, list]:
        """Return a function of leaves and the stand-ins for them, one placeholder each.

        root_fn: what is traced; is_module: its first argument is the module; concrete_args: values
        of arguments, which are not placeholders but where they have `PH`.
        """
        return RootArguments(self, root_fn, is_module, concrete_args, _assert_is_none).create()

    def trace(self, root: Module | Callable, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a module's forward pass, or of a function.

        concrete_args: values of arguments, for which alone the graph is right.

        >>> print(jaxgrad.fx.Tracer().trace(lambda x: x + 1))
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %add : [num_users=1] = call_function[target=operator.add](args = (%x, 1), kwargs = {})
            return add
        """
        global _is_fx_tracing_flag
        before = _is_fx_tracing_flag
        with _patching._lock:
            _is_fx_tracing_flag = True
            try:
                return self._trace(root, concrete_args)
            finally:
                _is_fx_tracing_flag = before
                self.submodule_paths = None

    def _trace(self, root, concrete_args) -> Graph:
        function = self._set_root(root)
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        self.tensor_attrs: dict[Tensor, str] = {}
        self._collect_tensors(self.root, [])
        is_module = isinstance(root, Module)
        called, args = self.create_args_for_root(function, is_module, concrete_args)
        returned = getattr(function, "__annotations__", {}).get("return")
        with _new_patcher() as patcher:
            self._patch(patcher, getattr(function, "__globals__", {}))
            result = self.create_arg(called(*args))
            self.create_node("output", "output", (result,), {}, type_expr=returned)
        return self.graph

    def _set_root(self, root) -> Callable:
        """Take a module or a function for the root, and return the function that is traced."""
        if not isinstance(root, Module):
            self.root, self.root_module_name = Module(), ""
            return root
        self.root, self.root_module_name = root, root._get_name()
        if not hasattr(type(root), self.traced_func_name):
            raise AssertionError(
                f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
            )
        self.submodule_paths = {module: name for name, module in root.named_modules()}
        return getattr(type(root), self.traced_func_name)

    def _collect_tensors(self, module: Module, path: list[str]):
        """Note the paths of tensors that are attributes of modules, but no buffers."""
        for name, value in module.__dict__.items():
            if isinstance(value, Tensor):
                self.tensor_attrs[value] = ".".join([*path, name])
        for name, child in module.named_children():
            self._collect_tensors(child, [*path, name])

    def _patch(self, patcher: _Patcher, scope: dict[str, Any]):
        """Let calls and attributes of modules come to this tracer."""
        cache: dict[str, Any] = {}

        def module_getattr(module, attr):
            return self.getattr(attr, _orig_module_getattr(module, attr), cache)

        def module_call(module, *args, **kwargs):
            def forward(*args, **kwargs):
                return _orig_module_call(module, *args, **kwargs)

            _autowrap_check(
                patcher, getattr(module.forward, "__globals__", {}), self._autowrap_function_ids
            )
            return self.call_module(module, forward, args, kwargs)

        here = _patching.in_this_thread
        patcher.patch_method(
            Module, "__getattr__", here(module_getattr, _orig_module_getattr), deduplicate=False
        )
        patcher.patch_method(
            Module, "__call__", here(module_call, _orig_module_call), deduplicate=False
        )
        _patch_wrapped_functions(patcher)
        _autowrap_check(patcher, scope, self._autowrap_function_ids)
        for module in self._autowrap_search:
            _autowrap_check(patcher, vars(module), self._autowrap_function_ids)

    def __deepcopy__(self, memo) -> Tracer:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        copied.num_calls, copied.node_name_to_scope = {}, {}
        return copied


# ---- public functions


def wrap(fn_or_name: str | Callable) -> str | Callable:
    """Record calls of a function in graphs as one node, in place of what it does inside.

    fn_or_name: a function of the module that calls this, or its name there; as a decorator too.
    Raises RuntimeError for another argument, NotImplementedError in the body of a function.

    >>> @jaxgrad.fx.wrap
    ... def first_or(x, default):
    ...     return x[0] if len(x) else default
    >>> print(jaxgrad.fx.symbolic_trace(lambda x: first_or(x, 0) + 1).graph.find_nodes(
    ...     op="call_function"))
    [first_or, add]
    """
    if not isinstance(fn_or_name, str) and not callable(fn_or_name):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else _checked_name(fn_or_name)
    frame = inspect.currentframe().f_back
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name


def _checked_name(function: Callable) -> str:
    if not hasattr(function, "__code__"):
        raise AssertionError(
            f"wrap takes a function of Python, not {function!r}: pass its name as a text"
        )
    return function.__code__.co_name


def symbolic_trace(
    root: Module | Callable, concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """Return a module whose forward pass is the graph of another's, or of a function.

    concrete_args: values of arguments, for which alone the graph is right: they are checked when
    it runs. Raises TraceError where the program asks for the value of a tensor, as in `if`.

    >>> gm = jaxgrad.fx.symbolic_trace(lambda x, y: (x + y).relu())
    >>> print(gm.code.strip())
    def forward(self, x, y):
        add = x + y;  x = y = None
        relu = add.relu();  add = None
        return relu
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)


def _make_graph_module(*args, graph_module_cls=None, **kwargs) -> GraphModule:
    return (graph_module_cls or GraphModule)(*args, **kwargs)
