"""The placeholders of a trace: one for each argument of what is traced, or for each leaf."""

from __future__ import annotations

import inspect
import types
import warnings
from collections.abc import Callable

from ..core.tracebacks import users_stacklevel
from ..frontend.checks import _assert
from ..tape.tensor import Tensor
from ..utils import _pytree as pytree
from .graph import _PyTreeCodeGen, _PyTreeInfo
from .node import base_types

_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_SPECIALIZED = "{} has been specialized to have value {} but got another value"


class PHBase:
    """Stands in concrete arguments for a leaf that is a placeholder."""

    def __repr__(self):
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A leaf whose placeholder has further attributes. ph_key: a name for it."""

    def __init__(self, ph_key: str | None = None):
        super().__init__()
        self.ph_key = ph_key


def _transfer_attrs(fr, to):
    """Set the public attributes of an object that another one lacks."""
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


class RootArguments:
    """The arguments of what a tracer traces. assert_is_none: the function that checks for None."""

    def __init__(self, tracer, function: Callable, is_module: bool, concrete, assert_is_none):
        self.tracer, self.function, self.is_module = tracer, function, is_module
        self.analyzed = inspect.unwrap(function)
        self.signature = inspect.signature(self.analyzed)
        self.assert_is_none = assert_is_none
        code = self.analyzed.__code__
        self.count = code.co_argcount + code.co_kwonlyargcount
        if is_module and not self.count:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        self.names = list(code.co_varnames)
        if isinstance(concrete, tuple):
            taken = self.names[int(is_module) : self.count]
            if len(concrete) != len(taken):
                raise RuntimeError(
                    f"Tracing expected {len(taken)} arguments but got {len(concrete)} concrete "
                    "arguments"
                )
            concrete = dict(zip(taken, concrete, strict=True))
        self.concrete = concrete or {}

    def create(self) -> tuple[Callable, list]:
        """A function of leaves, and the stand-ins for them."""
        args = [self.tracer.root] if self.is_module else []
        args += map(self.placeholder, self.names[len(args) : self.count])
        code, function = self.analyzed.__code__, self.function
        variadic = iter(self.names[self.count :])
        if code.co_kwonlyargcount or code.co_flags & _VARIADIC:
            if code.co_flags & inspect.CO_VARARGS:
                args.append(self.placeholder(f"*{next(variadic)}"))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(self.placeholder(f"**{next(variadic)}"))
            function = _positional(self.analyzed, len(args))
        leaves, structure = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in structure.children()):
            return function, args
        return self._of_leaves(function, structure), leaves

    def _of_leaves(self, function: Callable, structure) -> Callable:
        """A function of the leaves of the arguments, which returns the leaves of the result."""
        graph = self.tracer.graph
        info = _PyTreeInfo(self.names[: self.count], structure, None)
        graph._codegen = _PyTreeCodeGen(info)

        def flat(*leaves):
            result = function(*pytree.tree_unflatten(list(leaves), structure))
            results, out_structure = pytree.tree_flatten(result)
            graph._codegen.pytree_info = info._replace(out_spec=out_structure)
            return results

        return flat

    def placeholder(self, name: str):
        """The stand-in for an argument; its value, if that is known, with a check in the graph."""
        if name in self.concrete:
            return self._concrete_argument(name)
        kind = self.analyzed.__annotations__.get(name)
        default = () if name.startswith("*") else self._default(name)
        return self.tracer.create_proxy("placeholder", name, default, {}, type_expr=kind)

    def _default(self, name: str) -> tuple:
        default = self.signature.parameters[name].default
        return () if default is inspect.Parameter.empty else (default,)

    def _concrete_argument(self, name: str):
        leaves, structure = pytree.tree_flatten(self.concrete[name])
        values = [
            self._concrete_leaf(name, f"{name}_{position}", leaf)
            for position, leaf in enumerate(leaves, 1)
        ]
        return pytree.tree_unflatten(values, structure)

    def _concrete_leaf(self, name: str, target: str, leaf):
        proxy = self.tracer.create_proxy("placeholder", target, self._default(name), {})
        if isinstance(leaf, PHBase):
            if leaf is not PH:
                _transfer_attrs(leaf, proxy.node)
            return proxy
        says = _SPECIALIZED.format(name, leaf)
        if leaf is None:
            self.tracer.create_proxy("call_function", self.assert_is_none, (proxy, says), {})
        elif isinstance(leaf, base_types) and not isinstance(leaf, Tensor):
            self.tracer.create_proxy("call_function", _assert, (proxy == leaf, says), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized "
                "function: the graph is right for such inputs alone",
                stacklevel=users_stacklevel(),
            )
        return leaf


def _positional(function: types.FunctionType, count: int) -> types.FunctionType:
    """The function with all its arguments by position; what `*` and `**` collect is one each."""
    code = function.__code__.replace(
        co_flags=function.__code__.co_flags & ~_VARIADIC,
        co_argcount=count,
        co_kwonlyargcount=0,
        co_posonlyargcount=0,
    )
    new = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    new.__annotations__ = function.__annotations__
    return new
