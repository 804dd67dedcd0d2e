"""The nodes of graphs, and maps over their arguments, as torch.fx.node."""

from __future__ import annotations

import builtins
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Union

from ..amp.autocast_mode import _enter_autocast, _exit_autocast
from ..autograd.grad_mode import set_grad_enabled
from ..core import dtypes
from ..core.device import device, memory_format
from ..frontend.checks import _assert, _assert_async
from ..names.not_provided import names_of
from ..tape.tensor import Tensor
from . import _names
from .immutable_collections import immutable_dict, immutable_list
from .operator_schemas import ArgsKwargsPair as ArgsKwargsPair
from .operator_schemas import normalize_function as normalize_function
from .operator_schemas import normalize_module as normalize_module

__getattr__, __dir__ = names_of(__name__)

Target = Union[Callable[..., Any], str]  # noqa: UP007, as isinstance of typing's kinds asks

BaseArgumentTypes = Union[str, int, float, bool, complex, dtypes.dtype, Tensor, device]  # noqa: UP007
base_types = (
    *(str, int, float, bool, complex, dtypes.dtype, Tensor, device, memory_format, range, slice),
    *(types.EllipsisType, types.NoneType),
)
Argument = Union[
    *(None, tuple, Sequence, Mapping, slice, range, "Node", str, int, float, bool, complex),
    *(dtypes.dtype, Tensor, device),
]

_legal_ops = frozenset(
    (
        *("placeholder", "call_method", "call_module", "call_function", "get_attr", "output"),
        "root",
    )
)

_side_effectful_functions: set[Callable] = {
    *(_assert, _assert_async, operator.setitem, builtins.setattr, builtins.print),
    *(set_grad_enabled, _enter_autocast, _exit_autocast),
}

_get_qualified_name = _names.qualified_name
_type_repr = _names.type_name


def has_side_effect(fn: Callable) -> Callable:
    """Keep calls of a function in graphs from which dead code is removed; a decorator too.

    >>> from jaxgrad.fx.node import _side_effectful_functions
    >>> def log(value):
    ...     print(value)
    >>> jaxgrad.fx.has_side_effect(log) is log, log in _side_effectful_functions
    (True, True)
    """
    _side_effectful_functions.add(fn)
    return fn


# ---- maps over arguments


def map_arg(a, fn: Callable):
    """Return an argument with `fn(node)` in the place of every node in it.

    a: a node, or what has nodes in tuples, lists, dicts and slices.

    >>> graph = jaxgrad.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> jaxgrad.fx.map_arg((x, [1, x]), lambda node: node.name)
    ('x', [1, 'x'])
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


def map_aggregate(a, fn: Callable):
    """Return `fn` of a value, or the tuple, list, dict or slice of `fn` of its items.

    >>> jaxgrad.fx.node.map_aggregate([1, (2, {"a": 3})], lambda number: number + 1)
    [2, (3, {'a': 4})]
    """
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


_fx_map_arg, _fx_map_aggregate = map_arg, map_aggregate


def _format_arg(arg, max_list_len=float("inf")) -> str:
    """The text of an argument in tables: nodes with `%`, containers of more items cut off."""
    if isinstance(arg, list | tuple):
        shown = [_format_arg(item) for item in arg[: min(len(arg), int(min(max_list_len, 1e9)))]]
        if len(arg) > max_list_len:
            shown.append(f"...[total_len={len(arg)}]")
        if isinstance(arg, list):
            return f"[{', '.join(shown)}]"
        return f"({', '.join(shown)}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{key}: {_format_arg(value)}' for key, value in arg.items())}}}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


# ---- nodes

# functions of random numbers: without their calls the others would draw other numbers
_RANDOM = frozenset(
    (
        *("rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm"),
        *("bernoulli", "binomial", "multinomial", "normal", "poisson", "dropout"),
    )
)


def _is_in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__") and name not in _KEYWORDS


_KEYWORDS = frozenset(("and_", "or_", "not_", "is_"))  # operators that change nothing


def _between(before: Node, after: Node) -> Fraction:
    """A place in the order of a graph between two neighbours; the root is before all nodes."""
    if after.op == "root":
        return before._sort_key + 1
    return (before._sort_key + after._sort_key) / 2


class Node:
    """One operation of a graph: a placeholder, a call, an attribute or the output.

    op: "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output";
    target: what is called or fetched; args, kwargs: the arguments, nodes among them; users: the
    nodes that have this one as an argument; meta: a dict for passes.

    >>> graph = jaxgrad.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(jaxgrad.relu, (x,))
    >>> y.op, y.args, list(x.users)
    ('call_function', (x,), [relu])
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in _legal_ops:
            raise AssertionError(f"{op!r} is no operation of a node: {sorted(_legal_ops)}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target)} but a Callable is expected"
            )
        if op not in ("call_function", "root") and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target)} but a str is expected"
            )
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.type, self.meta = return_type, {}
        self._prev = self._next = self
        self._erased, self._repr_fn, self._sort_key = False, None, Fraction(0)
        self._args, self._kwargs = (), immutable_dict()
        self._assign(args, kwargs)

    def _assign(self, args, kwargs):
        """Take new arguments, and enter this node among the users of the nodes in them."""
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def note(leaf):
            if isinstance(leaf, Node):
                self._input_nodes[leaf] = None
                leaf.users[self] = None
            return leaf

        self._args = map_aggregate(tuple(args), note)
        self._kwargs = map_aggregate(dict(kwargs), note)

    @property
    def args(self) -> tuple:
        """The arguments by position. An assignment changes the users of the nodes in them."""
        return self._args

    @args.setter
    def args(self, args: tuple):
        self._assign(args, self._kwargs)

    @property
    def kwargs(self) -> dict:
        """The arguments by name. An assignment changes the users of the nodes in them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict):
        self._assign(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, without repetition."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg) -> None:
        """Replace the argument at a position."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg) -> None:
        """Insert an argument before a position."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg) -> None:
        """Set the argument of a name."""
        self.kwargs = {**self.kwargs, key: arg}

    # ---- order

    @property
    def next(self) -> Node:
        """The node after this one; after the last, the root."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one; before the first, the root."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move a node of the graph, or put a new one, before this node."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before, x.graph = self._prev, self.graph
        before._next, x._prev, x._next, self._prev = x, before, self, x
        x._sort_key = _between(before, self)

    def append(self, x: Node) -> None:
        """Move a node of the graph, or put a new one, after this node."""
        self._next.prepend(x)

    def _remove_from_list(self):
        self._prev._next, self._next._prev = self._next, self._prev

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __gt__(self, other: Node) -> bool:
        return self._sort_key > other._sort_key

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    # ---- uses

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Put another node in the place of this one in the arguments of its users; return them.

        delete_user_cb: says for a user whether to change it; propagate_meta: copy `meta` too.

        >>> graph = jaxgrad.fx.Graph()
        >>> x, z = graph.placeholder("x"), graph.placeholder("z")
        >>> y = graph.call_function(jaxgrad.relu, (x,))
        >>> x.replace_all_uses_with(z), y.args
        ([relu], (z,))
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError("propagate_meta needs a node whose meta is empty")
            replace_with.meta.update(self.meta)
        is_asked = delete_user_cb or (lambda user: True)
        changed = [user for user in self.users if is_asked(user)]
        for user in changed:
            self._replace_in(user, replace_with)
        return changed

    def _replace_in(self, user: Node, other: Node):
        owner = self.graph.owning_module
        for hook in getattr(owner, "_replace_hooks", None) or ():
            hook(old=self, new=other.name, user=user)
        renamed = map_arg((user.args, user.kwargs), lambda node: other if node is self else node)
        user._assign(*renamed)

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Put `new_input` in the place of `old_input` in the arguments of this node."""
        old_input._replace_in(self, new_input)

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether the node is to be kept where nothing uses it.

        impure_random: count functions of random numbers.

        >>> graph = jaxgrad.fx.Graph()
        >>> graph.placeholder("x").is_impure()
        True
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_method":
            return _is_in_place(self.target)
        if self.op == "call_module":
            return bool(getattr(self._target_module(), "_is_impure", False))
        if self.op != "call_function":
            return False
        name = getattr(self.target, "_opname", None) or _names.node_name(self.target)
        is_changing = self.target in _side_effectful_functions or _is_in_place(name)
        is_random = impure_random and _names.is_own(self.target) and name in _RANDOM
        return is_changing or is_random

    def _target_module(self):
        module = self.graph.owning_module
        if module is None:
            raise AssertionError("self.graph.owning_module not set for purity check")
        return module.get_submodule(self.target)

    def normalized_arguments(
        self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False
    ):
        """Return the arguments as `(args, kwargs)` with the names of the callee's signature, None
        where it has none. root: the module whose submodules the graph calls.

        >>> graph = jaxgrad.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(jaxgrad.nn.functional.relu, (x,))
        >>> y.normalized_arguments(jaxgrad.nn.Module()).kwargs
        {'inplace': False}
        """
        if self.op not in ("call_function", "call_module"):
            return None
        target = self.target if callable(self.target) else root.get_submodule(self.target).forward
        return normalize_function(
            target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
        )

    # ---- text

    @property
    def stack_trace(self) -> str | None:
        """The lines of the program that the node comes from, where the tracer kept them."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None):
        self.meta["stack_trace"] = trace

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    def _pretty_print_target(self, target) -> str:
        if isinstance(target, str):
            return target
        name = _names.qualified_name(target)
        if name.startswith("_operator."):
            return name.replace("_operator", "operator", 1)
        return f"builtins.{name}" if "." not in name else name

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """Return the text of the node that `print(graph)` shows.

        placeholder_names: a list that gets the names of placeholders, in place of a text;
        maybe_return_typename: a list whose first text is set to the type of an output.

        >>> graph = jaxgrad.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> graph.call_function(jaxgrad.relu, (x,)).format_node()
        '%relu : [num_users=0] = call_function[target=torch.relu](args = (%x,), kwargs = {})'
        """
        kind = f": {_type_repr(self.type)} " if self.type else ": "
        users = f"[num_users={len(self.users)}]"
        if self.op == "placeholder":
            if not isinstance(self.target, str):
                raise AssertionError("the target of a placeholder is its name")
            if placeholder_names is not None:
                shown = _type_repr(self.type) if self.type else None
                placeholder_names.append(f"{self.target}: {shown}" if shown else self.target)
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} {kind}{users} = {self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            target = self._pretty_print_target(self.target)
            return f"%{self.name} {kind}{users} = {self.op}[target={target}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        target = self._pretty_print_target(self.target)
        return (
            f"%{self.name} {kind}{users} = {self.op}[target={target}]"
            f"(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"
        )

    def _rename(self, candidate: str):
        if candidate == self.name:
            return
        self.name = self.graph._graph_namespace.create_name(candidate, None)
        self.graph._graph_namespace._rename_object(self, self.name)
