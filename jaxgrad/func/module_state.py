"""Modules as functions of their state, and the stacked state of several modules."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from .. import ops
from ..tape.tensor import Tensor


def functional_call(
    module,
    parameter_and_buffer_dicts,
    args=None,
    kwargs=None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
):
    """Call a module with other tensors in place of its parameters and buffers.

    module: an `nn.Module`.
    parameter_and_buffer_dicts: a dict from paths to tensors, or a sequence of dicts; the module
    keeps its own tensors for other paths. A path may name another attribute too. Shapes and dtypes
    are those that `forward` accepts. What `forward` assigns to a member is in the dict afterwards.
    args, kwargs: the arguments of the call; a single argument needs no tuple.
    tie_weights: replace a tensor that has several names under all of them.
    strict: the dicts must name all parameters and buffers, and nothing else.

    Raises ValueError for a name in two dicts and for several values of tied names, RuntimeError if
    `strict` does not hold, TypeError for a value or an attribute that is not a tensor.

    >>> layer = jaxgrad.nn.Linear(2, 1)
    >>> ones = {"weight": jaxgrad.ones(1, 2), "bias": jaxgrad.zeros(1)}
    >>> jaxgrad.func.functional_call(layer, ones, jaxgrad.tensor([3.0, 4.0]))
    tensor([7.])
    """
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    tensors = _merged(parameter_and_buffer_dicts)
    with reparametrized(module, tensors, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


def reparametrized(
    module,
    parameters_and_buffers,
    *,
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
):
    """A block in which a module has other tensors in place of its parameters and buffers.

    The arguments are those of `functional_call`; stack_weights: not used.
    """
    names = {name: [name] for name in parameters_and_buffers}
    names = _tied(module, parameters_and_buffers) if tie_weights else names
    if strict:
        _check(module, parameters_and_buffers, names)
    return _replaced(module, parameters_and_buffers, names)


def _merged(dicts) -> dict[str, Tensor]:
    if isinstance(dicts, Mapping):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts)}"
        )
    if not all(isinstance(mapping, Mapping) for mapping in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for mapping in dicts for name in mapping]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous"
        )
    return {name: tensor for mapping in dicts for name, tensor in mapping.items()}


def _members(module) -> dict[str, Tensor]:
    """All parameters and buffers, under all of their names."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _tied(module, tensors) -> dict[str, list[str]]:
    """For each given name, all names of its tensor."""
    groups: dict[int, list[str]] = {}
    for name, tensor in _members(module).items():
        groups.setdefault(id(tensor), []).append(name)
    known = {name: group for group in groups.values() for name in group}
    for group in groups.values():
        several = [name for name in group if name in tensors]
        if len({id(tensors[name]) for name in several}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {several}, which are tied. "
                "Consider using tie_weights=False"
            )
    return {name: known.get(name, [name]) for name in tensors}


def _check(module, tensors, names):
    """Raise RuntimeError if a member has no tensor, or a tensor no member."""
    members, reached = _members(module), {name for group in names.values() for name in group}
    missing = sorted(members.keys() - reached)
    unexpected = sorted(tensors.keys() - members.keys())
    lines = [
        f"\n\t{what} key(s): {', '.join(map(repr, keys))}."
        for what, keys in (("Unexpected", unexpected), ("Missing", missing))
        if keys
    ]
    if lines:
        kind = type(module).__name__
        raise RuntimeError(f"Error(s) in reparametrizing for {kind}:{''.join(lines)}")


@contextlib.contextmanager
def _replaced(module, tensors, names):
    """A context in which the module holds other tensors. What `forward` assigns to a member is in
    `tensors` afterwards.
    """
    members = list(_members_of(module, tensors, names))
    before = [(group, key, group.get(key, ABSENT)) for group, key, _, _ in members]
    try:
        for group, key, tensor, _ in members:
            group[key] = tensor
        yield
    finally:
        for group, key, tensor, name in members:
            if name is not None and group.get(key, tensor) is not tensor:
                tensors[name] = group[key]
        for group, key, tensor in before:
            group[key] = tensor
            if tensor is ABSENT:
                del group[key]


ABSENT = object()


def _members_of(module, tensors, names):
    """For each tensor, the dicts of members and the keys in them that it replaces, and its name
    where it has one in `tensors`.
    """
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor | None):
            raise TypeError(f"{tensor!r} is not an instance of torch.Tensor: {name}")
        for path in names[name]:
            owner, _, key = path.rpartition(".")
            group = _holder(module.get_submodule(owner), key)
            known = group.get(key)
            if not isinstance(known, Tensor | None):
                raise TypeError(f"attribute `{key}`: {known!r} is not an instance of torch.Tensor")
            yield group, key, tensor, name if path == name else None


def _holder(module, key: str) -> dict:
    """The dict of a module that has a member: its parameters, its buffers, or its attributes."""
    for group in (module._parameters, module._buffers):
        if key in group:
            return group
    return vars(module)


def stack_module_state(models) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the parameters and the buffers of several modules, for `functional_call` under a vmap.

    models: modules of one class.

    Returns a dict of parameters and a dict of buffers, each stacked along a new first dimension, in
    its dtype. The parameters are leaves; they require grad if those of the models do.

    Raises RuntimeError for no models, for several classes, and for models that differ in `training`
    or in `requires_grad`.

    >>> models = [jaxgrad.nn.Linear(2, 1) for _ in range(3)]
    >>> params, buffers = jaxgrad.func.stack_module_state(models)
    >>> params["weight"].shape, buffers
    (torch.Size([3, 1, 2]), {})
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    params = {}
    for name, first in parameters[0].items():
        if any(members[name].requires_grad is not first.requires_grad for members in parameters):
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        stacked = ops.stack([members[name].detach() for members in parameters])
        params[name] = stacked.requires_grad_(first.requires_grad)
    return params, {name: ops.stack([members[name] for members in buffers]) for name in buffers[0]}


def replace_all_batch_norm_modules_(root):
    """Remove the running statistics of all BatchNorm modules in a module, and return it.

    root: an `nn.Module`. A vmap cannot write running statistics. Without them a BatchNorm
    normalizes by the batch, in evaluation mode too.

    >>> norm = jaxgrad.nn.BatchNorm1d(2)
    >>> jaxgrad.func.replace_all_batch_norm_modules_(norm).running_mean is None
    True
    """
    for module in root.modules():
        if hasattr(module, "_stop_tracking"):
            module._stop_tracking()
    return root
