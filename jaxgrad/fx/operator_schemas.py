"""Arguments of calls by the names of the callee's signature, as torch.fx.operator_schemas."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import NamedTuple

from ..names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call, by position and by name."""

    args: tuple
    kwargs: dict


def normalize_function(
    target: Callable,
    args: tuple,
    kwargs: dict | None = None,
    arg_types=None,
    kwarg_types=None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the arguments of a call of a function by the names of its signature, with defaults.

    normalize_to_only_use_kwargs: name all; otherwise those that the signature requires stay by
    position. None where the signature is not known or does not fit; arg_types, kwarg_types: unused.

    >>> from jaxgrad.fx.operator_schemas import normalize_function
    >>> normalize_function(jaxgrad.nn.functional.relu, (1,), normalize_to_only_use_kwargs=True)
    ArgsKwargsPair(args=(), kwargs={'input': 1, 'inplace': False})
    """
    if isinstance(target, types.BuiltinFunctionType):
        return None
    try:
        bound = inspect.signature(target).bind(*args, **(kwargs or {}))
    except (TypeError, ValueError):
        return None
    bound.apply_defaults()
    kinds = {p.kind for p in bound.signature.parameters.values()}
    if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        return None
    values = dict(bound.arguments)
    if normalize_to_only_use_kwargs:
        return ArgsKwargsPair((), values)
    count = min(len(args), len(values))
    names = list(values)
    leading = tuple(values[name] for name in names[:count])
    return ArgsKwargsPair(leading, {name: values[name] for name in names[count:]})


def normalize_module(
    root, target: str, args: tuple, kwargs: dict | None = None, normalize_to_only_use_kwargs=False
) -> ArgsKwargsPair | None:
    """Return the arguments of a call of a submodule by the names of its `forward`; see
    `normalize_function`. root: the module; target: the name of the submodule.

    >>> from jaxgrad.fx.operator_schemas import normalize_module
    >>> model = jaxgrad.nn.Sequential(jaxgrad.nn.Linear(2, 2))
    >>> normalize_module(model, "0", (1,), normalize_to_only_use_kwargs=True).kwargs
    {'input': 1}
    """
    forward = root.get_submodule(target).forward
    return normalize_function(
        forward, args, kwargs, normalize_to_only_use_kwargs=normalize_to_only_use_kwargs
    )
