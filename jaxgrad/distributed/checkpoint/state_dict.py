"""The states of models and optimizers by the names of parameters, to save and to load."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...autograd.grad_mode import no_grad
from ...names.not_provided import names_of
from ...nn.module import Module
from ...nn.state import _IncompatibleKeys
from ...optim.optimizer import Optimizer
from ..process_group import get_rank, is_initialized
from ._full_state import as_they_lie, broadcast_state, like_parameter, whole
from ._initial_state import InitialState, initial_state
from ._names import buffers_and_parameters, names_of_parameters, without_wrappers


@dataclass
class StateDictOptions:
    """How the functions of this module make and take state dicts.

    full_state_dict: whole tensors in place of DTensors. cpu_offload: tensors on the CPU; with
    full_state_dict the process of rank 0 alone gets them, and the others get empty dicts.
    ignore_frozen_params: leave out parameters that need no gradient. keep_submodule_prefixes: keep
    the name of a submodule in the keys. strict: as in `Module.load_state_dict`.
    broadcast_from_rank0: take the whole state of the process of rank 0, with full_state_dict.
    flatten_optimizer_state_dict: one dict with keys as "state.0.weight.exp_avg".

    >>> from jaxgrad.distributed.checkpoint.state_dict import StateDictOptions
    >>> StateDictOptions(full_state_dict=True).cpu_offload
    False
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state of a model, as `model.state_dict()` gives it, without the names of wrappers.

    submodules: those to take alone.

    >>> from jaxgrad.distributed.checkpoint.state_dict import get_model_state_dict
    >>> list(get_model_state_dict(jaxgrad.nn.DataParallel(jaxgrad.nn.Linear(2, 1))))
    ['weight', 'bias']
    """
    options = _checked(options)
    names = without_wrappers(model)
    state = {names(key): value for key, value in _as_it_lies(model).items()}
    if options.ignore_frozen_params:
        frozen = {n for n, p in buffers_and_parameters(model) if p.is_leaf and _is_frozen(model, p)}
        state = {key: value for key, value in state.items() if key not in frozen}
    if submodules is not None:
        state = _of_submodules(model, state, submodules, options)
    return _offered(state, options)


def _as_it_lies(model) -> dict:
    """The state dict of a model with its parameters as they lie."""
    token = as_they_lie.set(True)
    try:
        return model.state_dict()
    finally:
        as_they_lie.reset(token)


def _is_frozen(model, tensor) -> bool:
    return not tensor.requires_grad and any(tensor is parameter for parameter in model.parameters())


def _of_submodules(model, state, submodules, options):
    names = without_wrappers(model)
    prefixes = [names(f"{name}.") for name, module in model.named_modules() if module in submodules]
    return {
        key if options.keep_submodule_prefixes else key.removeprefix(prefix): value
        for prefix in prefixes
        for key, value in state.items()
        if key.startswith(prefix)
    }


def _offered(state, options: StateDictOptions):
    """A state dict with whole tensors or on the CPU, as wanted."""
    if not (options.full_state_dict or options.cpu_offload):
        return state
    offered = whole(state, options.full_state_dict, options.cpu_offload)
    is_left_out = options.full_state_dict and options.cpu_offload
    return {} if is_left_out and is_initialized() and get_rank() > 0 else offered


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The state of optimizers by the names of the parameters: another order, other groups of the
    same parameters and other optimizers may take it.

    Of an optimizer that has not stepped it has what a step would make, for `load` to fill; the
    optimizer does not change, and `save` saves that there is no state. Raises KeyError for a
    parameter that is not one of the model.

    >>> from jaxgrad.distributed.checkpoint.state_dict import get_optimizer_state_dict
    >>> model = jaxgrad.nn.Linear(2, 1)
    >>> adam = jaxgrad.optim.Adam(model.parameters())
    >>> get_optimizer_state_dict(model, adam)["param_groups"][0]["params"]
    ['weight', 'bias']
    """
    options = _checked(options)
    state: dict[str, Any] = {}
    groups: list[dict] = []
    has_stepped = True
    for optimizer in _several(optimizers):
        names = names_of_parameters(model, optimizer)
        state_dict = optimizer.state_dict()
        if not state_dict["state"]:
            state_dict, has_stepped = state_dict | {"state": initial_state(optimizer)}, False
        state |= {names.get(key, key): value for key, value in state_dict["state"].items()}
        groups += [
            group | {"params": [names[key] for key in group["params"]]}
            for group in state_dict["param_groups"]
        ]
    left_out = _left_out(model, submodules, options)
    state = {key: value for key, value in state.items() if key not in left_out}
    for group in groups:
        group["params"] = [name for name in group["params"] if name not in left_out]
    offered = _offered({"state": state, "param_groups": groups}, options)
    if options.flatten_optimizer_state_dict:
        return _flat(offered)
    if offered and not has_stepped:
        offered["state"] = InitialState(offered["state"])
    return offered


def _several(optimizers) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _left_out(model, submodules, options) -> set[str]:
    """The names of the parameters whose state is not wanted."""
    names = dict(buffers_and_parameters(model))
    left_out = {n for n, p in names.items() if options.ignore_frozen_params and not p.requires_grad}
    if submodules is not None:
        inner = {id(p) for module in submodules for p in module.parameters()}
        left_out |= {name for name, tensor in names.items() if id(tensor) not in inner}
    return left_out


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The states of a model and of its optimizers, as the two functions above give them.

    >>> from jaxgrad.distributed.checkpoint.state_dict import get_state_dict
    >>> model = jaxgrad.nn.Linear(2, 1)
    >>> states = get_state_dict(model, jaxgrad.optim.SGD(model.parameters()))
    >>> [list(state) for state in states]
    [['weight', 'bias'], ['state', 'param_groups']]
    """
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> _IncompatibleKeys:
    """Load the state of a model: whole tensors and DTensors get the placements of its parameters.

    Returns the missing and the unexpected keys. Raises RuntimeError where keys or shapes differ,
    as `Module.load_state_dict`.

    >>> from jaxgrad.distributed.checkpoint import state_dict
    >>> model = jaxgrad.nn.Linear(2, 1)
    >>> state_dict.set_model_state_dict(model, state_dict.get_model_state_dict(model))
    <All keys matched successfully>
    """
    options = _checked(options)
    names = without_wrappers(model)
    keys = {names(key): key for key in _as_it_lies(model)}
    tensors = dict(buffers_and_parameters(model))
    if options.broadcast_from_rank0:
        model_state_dict = broadcast_state(model_state_dict)
    state = {
        keys.get(key, key): like_parameter(value, tensors.get(key))
        for key, value in model_state_dict.items()
    }
    is_abstract = any(tensor.is_meta for tensor in tensors.values())
    return model.load_state_dict(state, strict=options.strict, assign=is_abstract)


@no_grad()
def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load the state of optimizers, by the names of the parameters.

    optim_state_dict: as `get_optimizer_state_dict` gives it, flat or not. State of the shape of its
    parameter gets its placements, other state is replicated. Raises KeyError for a parameter
    of the optimizers that it lacks, unless `strict=False`.

    >>> from jaxgrad.distributed.checkpoint import state_dict
    >>> model = jaxgrad.nn.Linear(2, 1)
    >>> slow, fast = (jaxgrad.optim.SGD(model.parameters(), lr=lr) for lr in (0.1, 0.5))
    >>> saved = state_dict.get_optimizer_state_dict(model, slow)
    >>> state_dict.set_optimizer_state_dict(model, fast, saved)
    >>> fast.param_groups[0]["lr"]
    0.1
    """
    options = _checked(options)
    if options.broadcast_from_rank0:
        optim_state_dict = broadcast_state(optim_state_dict)
    every = _several(optimizers)
    if "param_groups" not in optim_state_dict:
        optim_state_dict = _nested(model, every, optim_state_dict)
    states = [
        state_to_load(model, optimizer, optim_state_dict, options.strict) for optimizer in every
    ]
    for optimizer, state in zip(every, states, strict=True):
        optimizer.load_state_dict(state)


def state_to_load(
    model: Module, optimizer: Optimizer, named_state: dict, strict: bool = True
) -> dict:
    """The part of a state by names that belongs to an optimizer, in the form that it loads.

    Raises KeyError for a parameter of the optimizer that it lacks, unless `strict=False`.
    """
    names = names_of_parameters(model, optimizer)
    group_of = {name: group for group in named_state["param_groups"] for name in group["params"]}
    known = named_state["state"] if type(named_state["state"]) is not InitialState else {}
    params = [param for group in optimizer.param_groups for param in group["params"]]
    state, groups = {}, []
    for entry in optimizer.state_dict()["param_groups"]:
        for number in entry["params"]:
            name = names[number]
            if name not in group_of and strict:
                raise KeyError(
                    f"the state dict of an optimizer has no parameter {name!r}, which "
                    "the optimizer has"
                )
            source = group_of.get(name, {})
            entry = entry | {k: v for k, v in source.items() if k not in ("params", "param_names")}
            if name in known:
                state[number] = like_parameter(known[name], params[number])
        groups.append(entry)
    return {"state": state, "param_groups": groups}


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:
    """Load the states of a model and of its optimizers, as the two functions above do.

    >>> from jaxgrad.distributed.checkpoint import state_dict
    >>> model = jaxgrad.nn.Linear(2, 1)
    >>> sgd = jaxgrad.optim.SGD(model.parameters())
    >>> of_model, of_sgd = state_dict.get_state_dict(model, sgd)
    >>> state_dict.set_state_dict(model, sgd, model_state_dict=of_model, optim_state_dict=of_sgd)
    <All keys matched successfully>
    """
    keys = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return keys


def _flat(nested) -> dict:
    """A state of optimizers as one dict."""
    flat = {
        f"state.{name}.{key}": value
        for name, state in nested.get("state", {}).items()
        for key, value in state.items()
    }
    for group in nested.get("param_groups", ()):
        for name in group["params"]:
            flat |= {f"param_groups.{name}.{k}": v for k, v in group.items() if k != "params"}
    return flat


def _nested(model, optimizers, flat) -> dict:
    """The state of optimizers that `_flat` made one dict: a group for each parameter."""
    state: dict[str, dict] = {}
    groups = []
    for optimizer in optimizers:
        for name in names_of_parameters(model, optimizer).values():
            param_state = _below(flat, f"state.{name}.")
            if param_state:
                state[name] = param_state
            options = _below(flat, f"param_groups.{name}.")
            if options:
                groups.append(options | {"params": [name]})
    return {"state": state, "param_groups": groups}


def _below(flat, prefix) -> dict:
    return {key.removeprefix(prefix): v for key, v in flat.items() if key.startswith(prefix)}


__getattr__, __dir__ = names_of(__name__)
