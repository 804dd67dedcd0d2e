"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

import contextlib

from .. import ops
from ..tensor import Tensor


def functional_call(
    module,
    parameter_and_buffer_dicts,
    args=None,
    kwargs: dict | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
):
    """Call a module with other tensors in the place of its parameters and buffers, by their dotted
    names.

    parameter_and_buffer_dicts: one dict, or several; args: the argument, or a tuple of them;
    tie_weights: what is given for one name of a parameter holds for its other names too; strict:
    all parameters and buffers must be given, and no other names. What the module assigns to a
    buffer during the call is gone afterwards; what it writes into one in place is written to the
    tensor that was given.

    Raises ValueError for a name that is given twice, RuntimeError where `strict` is not met.

    >>> layer = jaxgrad.nn.Linear(2, 1)
    >>> values = {"weight": jaxgrad.ones(1, 2), "bias": jaxgrad.zeros(1)}
    >>> jaxgrad.func.functional_call(layer, values, (jaxgrad.ones(2),))
    tensor([2.])
    """
    given = _joined(parameter_and_buffer_dicts)
    members = {
        name: tensor
        for members in (module.named_parameters, module.named_buffers)
        for name, tensor in members(remove_duplicate=False)
    }
    values = _tied(members, given) if tie_weights else given
    if strict:
        _check(module, members, values)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, {name: values[name] for name in values if name in members}):
        return module(*args, **(kwargs or {}))


def _joined(dicts) -> dict:
    if isinstance(dicts, dict):
        return dict(dicts)
    if not isinstance(dicts, list | tuple):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts)}"
        )
    if not all(isinstance(each, dict) for each in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for each in dicts for name in each]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous"
        )
    return {name: value for each in dicts for name, value in each.items()}


def _tied(members, given) -> dict:
    """What is given, for all names of the same tensor."""
    names: dict[int, list] = {}
    for name, tensor in members.items():
        names.setdefault(id(tensor), []).append(name)
    found = dict(given)
    for tied in names.values():
        told = [name for name in tied if name in given]
        if len({id(given[name]) for name in told}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {told}, which are tied. Consider "
                "using tie_weights=False"
            )
        found |= {name: given[told[0]] for name in tied if told}
    return found


def _check(module, members, values):
    missing = [name for name in members if name not in values]
    unexpected = [name for name in values if name not in members]
    lines = [
        f"{kind} key(s): {', '.join(map(repr, names))}."
        for kind, names in (("Missing", missing), ("Unexpected", unexpected))
        if names
    ]
    if lines:
        told = "\n\t".join(lines)
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t{told}")


@contextlib.contextmanager
def _replaced(module, values):
    """A module with other parameters and buffers, which it has as long as this lasts."""
    modules, before = dict(module.named_modules(remove_duplicate=False)), []
    for name, value in values.items():
        owner, _, attribute = name.rpartition(".")
        own = vars(modules[owner])
        group = own["_parameters"] if attribute in own["_parameters"] else own["_buffers"]
        before.append((group, attribute, group[attribute]))
        group[attribute] = value
    try:
        yield
    finally:
        for group, attribute, tensor in reversed(before):
            group[attribute] = tensor


def stack_module_state(models) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several modules of one class, stacked by name, for
    `vmap(functional_call)`: leaves of their own along a new first dimension.

    Raises RuntimeError for no modules, for different classes, and for different modes.

    >>> layers = [jaxgrad.nn.Linear(2, 3) for _ in range(4)]
    >>> parameters, buffers = jaxgrad.func.stack_module_state(layers)
    >>> parameters["weight"].shape
    torch.Size([4, 3, 2])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len(set(map(type, models))) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = _stacked([dict(model.named_parameters()) for model in models])
    return parameters, _stacked([dict(model.named_buffers()) for model in models])


def _stacked(dicts):
    found = {}
    for name, first in dicts[0].items():
        tensors = [each[name].detach() for each in dicts]
        if len({each[name].requires_grad for each in dicts}) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        found[name] = ops.stack(tensors).requires_grad_(first.requires_grad)
    return found
