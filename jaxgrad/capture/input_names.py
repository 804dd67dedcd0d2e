"""Names of the inputs of a compiled program, as JAX shows them in jaxprs, HLO and profiles: a
module's parameters by their qualified name (`model.0.weight`), other captured tensors by the
variable, attributes and items that lead to them, arguments by their parameter.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import types

import jax

from ..state.code import python_function
from ..state.objects import ObjectWalk
from ..state.ownership import is_of_library
from ..tape.tensor import Tensor, grad_of
from .graph_input import ArgumentInput
from .reachable import VALUES, variables

# attributes of a module whose members are named as its attributes
_MEMBERS = ("_parameters", "_buffers", "_modules")


class NamedInputs(inspect.Signature):
    """The signature `(*arrays)`, in which each array has a name of its own.

    JAX takes the names of a jitted function's inputs from what its signature binds. A name such as
    `model.0.weight` is no identifier, so it cannot be a parameter.
    """

    def __init__(self, names):
        super().__init__([inspect.Parameter("arrays", inspect.Parameter.VAR_POSITIONAL)])
        self.names = names

    def bind(self, *arrays):
        return inspect.BoundArguments(self, dict(zip(self.names, arrays, strict=True)))


def input_names(trace, tensors, inputs) -> list[str]:
    """A name for each input of a program; no two are the same.

    tensors: the captured ones; inputs: the `GraphInput`s in the order of the compiled function.
    """
    arguments = argument_names(trace.function.function, trace.arguments.structure)
    captured = captured_names(trace, tensors, arguments)
    names: dict[str, None] = {}
    for number, source in enumerate(inputs):
        if source.captured is not None:
            name = captured[source.captured.number]
        elif isinstance(source, ArgumentInput):
            name = arguments[source.position]
        else:
            name = source.key[0]  # the state of a generator, or a number that each call reads
        names[f"{name} ({number})" if name in names else name] = None
    return list(names)


def argument_names(function, structure) -> list[str]:
    """The names of a call's leaves: the parameter, and the keys and indices that lead to the leaf.

    >>> from jaxgrad.capture.input_names import argument_names
    >>> argument_names(lambda x, batch: x, jax.tree.structure(((1, {"a": 2, "b": [3]}), {})))
    ['x', "batch['a']", "batch['b'][0]"]
    """
    args, kwargs = jax.tree.unflatten(structure, range(structure.num_leaves))
    names = [f"argument[{position}]" for position in range(structure.num_leaves)]
    for parameter, value in arguments_by_name(function, args, kwargs).items():
        _name_leaves(names, parameter, value)
    return names


def arguments_by_name(function, args, kwargs) -> dict:
    """The arguments of a call by the names of the parameters."""
    called = getattr(function, "forward", function)  # of a module
    try:
        return inspect.signature(called).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # a builtin, or arguments that do not fit
        return {"args": args, **kwargs}


def leaf_names(name: str, structure) -> list[str]:
    """The names of the leaves of a tree, from the name of the tree.

    >>> from jaxgrad.capture.input_names import leaf_names
    >>> leaf_names("result", jax.tree.structure({"loss": 1, "parts": [2, 3]}))
    ["result['loss']", "result['parts'][0]", "result['parts'][1]"]
    """
    names = [f"{name}, leaf {position}" for position in range(structure.num_leaves)]
    _name_leaves(names, name, jax.tree.unflatten(structure, range(structure.num_leaves)))
    return names


def _name_leaves(names, name, tree):
    """Set the names of the positions that are the leaves of a tree."""
    for path, position in _leaves_with_path(tree):
        # a dataclass may give some of its fields values of its own
        if type(position) is int and position < len(names):
            names[position] = f"{name}{path}"


def _leaves_with_path(value):
    """Yield the leaves of a tree, each after the keys, indices and fields that lead to it."""
    # dicts are entered here, since JAX sorts their keys, which may have no order
    for keys, leaf in jax.tree_util.tree_leaves_with_path(value, is_leaf=_is_dict):
        path = jax.tree_util.keystr(keys)
        if _is_dict(leaf):
            parts = [(f"[{key!r}]", content) for key, content in leaf.items()]
        elif dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            fields = dataclasses.fields(leaf)
            parts = [(f".{field.name}", getattr(leaf, field.name)) for field in fields]
        else:
            yield path, leaf
            continue
        for part, content in parts:
            yield from [(f"{path}{part}{inner}", one) for inner, one in _leaves_with_path(content)]


def _is_dict(value) -> bool:
    return isinstance(value, dict)


def captured_names(trace, tensors, arguments) -> list[str]:
    """The names of the captured tensors of a trace, by number."""
    pairs = [*zip(trace.captured, tensors, strict=True)]
    outside = [tensor for captured, tensor in pairs if captured.is_outside]
    reached = PathWalk(trace.function.function).names_of(outside)
    names: list[str] = []
    for captured, tensor in pairs:
        if captured.position is not None:
            names.append(arguments[captured.position])
        # the owner has its name by now: it is captured before its `.grad`
        elif captured.grad_owner is not None:
            names.append(f"{names[captured.grad_owner]}.grad")
        else:
            names.append(reached.get(id(tensor), f"captured[{captured.number}]"))
    return names


class PathWalk(ObjectWalk):
    """A walk over the objects that a function reaches, with the variable, attributes and items that
    lead to each.

    Modules come first and optimizers last, since optimizers name their state after parameters.
    `names`: by id of an object; `waiting`: the objects to visit, by rank.
    """

    opaque = (*VALUES, type, types.ModuleType)
    most = 20_000

    def __init__(self, function):
        super().__init__()
        self.names, self.waiting = {id(function): ""}, ([function], [], [])

    def names_of(self, tensors) -> dict[int, str]:
        """The names of tensors, by id; a tensor that is not found has none."""
        sought = set(map(id, tensors))
        rounds = self.rounds()
        while not sought <= self.names.keys() and next(rounds, False):
            pass
        return {key: self.names[key] for key in sought & self.names.keys()}

    def rounds(self):
        """Walk on, and yield True after each round: the objects that wait with the lowest rank."""
        while any(self.waiting) and len(self.seen) < self.most:
            rank = next(filter(None, self.waiting))
            roots = rank[:]
            rank.clear()
            for _ in self.walk(*roots):
                pass
            yield True

    def contents(self, value):
        for name, held in self.named_contents(self.names[id(value)], value):
            self.names.setdefault(id(held), name)
            self.waiting[_rank(held)].append(held)
        return ()

    def named_contents(self, name, value):
        """Yield the objects that an object holds, with their names."""
        if isinstance(value, Tensor):
            yield f"{name}.grad", grad_of(value)
            yield from _attributes(name, vars(value))
        elif isinstance(value, list | tuple):
            for number, content in zip(range(self.most), value, strict=False):
                yield f"{name}[{number}]", content
        elif isinstance(value, dict):
            for key, content in itertools.islice(value.items(), self.most):
                yield f"{name}[{self.key(key)}]", content
        elif isinstance(value, functools.partial):
            yield name, value.func
            yield from [(f"args[{number}]", argument) for number, argument in enumerate(value.args)]
            yield from value.keywords.items()
        elif isinstance(value, types.MethodType):
            yield from (("self", value.__self__), (name, value.__func__))
        elif isinstance(value, types.FunctionType):
            function = python_function(value)
            closed = function is None or is_of_library(function.__module__)
            yield from () if closed else variables(function)
        else:
            yield from _attributes(name, getattr(value, "__dict__", {}))

    def key(self, key) -> str:
        return repr(key) if isinstance(key, str | int) else self.names.get(id(key), "?")


def _rank(value) -> int:
    held = getattr(value, "__dict__", ())
    return 0 if "_parameters" in held else 2 if "param_groups" in held else 1


def _attributes(name, held):
    """Yield attributes, those of a module as `named_parameters` names them."""
    prefix = f"{name}." if name else ""
    for key, value in held.items():
        if key in _MEMBERS and isinstance(value, dict):
            yield from [(f"{prefix}{member_name}", member) for member_name, member in value.items()]
        else:
            yield f"{prefix}{key}", value
