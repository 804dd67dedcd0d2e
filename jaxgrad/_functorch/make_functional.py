"""Modules as functions of their parameters and buffers, as functorch has them."""

from __future__ import annotations

import copy
from collections.abc import Callable

from .. import nn
from ..frontend.factories import empty_like
from ..func.module_state import reparametrized, stack_module_state
from ..names.not_provided import names_of
from ..tape.tensor import Tensor

__getattr__, __dir__ = names_of(__name__)


class FunctionalModule(nn.Module):
    """A module as a function of its parameters: `functional(parameters, *args)`.

    stateless_model: the module, whose own parameters are not used. names: those of the parameters.
    """

    def __init__(self, stateless_model: nn.Module, names: tuple[str, ...]):
        super().__init__()
        self.stateless_model, self.param_names = stateless_model, names

    @classmethod
    def _create_from(cls, model: nn.Module, disable_autograd_tracking: bool = False):
        """The function of a module, and a copy of its parameters."""
        stateless = copy.deepcopy(model)
        names, tensors = _taken_out(stateless, stateless.named_parameters, nn.Parameter)
        if disable_autograd_tracking:
            for tensor in tensors:
                tensor.requires_grad_(False)
        return cls(stateless, names), tensors

    def forward(self, params, *args, **kwargs):
        return _call(
            self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs
        )


class FunctionalModuleWithBuffers(nn.Module):
    """A module as a function of its state: `functional(parameters, buffers, *args)`.

    stateless_model: the module, whose own parameters and buffers are not used. param_names,
    buffer_names: those of the parameters and buffers.
    """

    def __init__(self, stateless_model: nn.Module, param_names, buffer_names):
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = param_names, buffer_names

    @classmethod
    def _create_from(cls, model: nn.Module, disable_autograd_tracking: bool = False):
        """The function of a module, and a copy of its parameters and of its buffers."""
        functional, parameters = FunctionalModule._create_from(model, disable_autograd_tracking)
        stateless = functional.stateless_model
        names, buffers = _taken_out(stateless, stateless.named_buffers, Tensor)
        return cls(stateless, functional.param_names, names), parameters, buffers

    def forward(self, params, buffers, *args, **kwargs):
        tensors = dict(zip(self.param_names, params, strict=True))
        tensors |= zip(self.buffer_names, buffers, strict=True)
        return _call(self.stateless_model, tensors, args, kwargs)


def _taken_out(module, named: Callable, kind):
    """The names and tensors of a module, which has tensors without data in their place."""
    tensors = {}
    for name, tensor in named(remove_duplicate=False):
        if id(tensor) not in tensors:
            empty = empty_like(tensor, device="meta")
            is_parameter = kind is nn.Parameter
            place = nn.Parameter(empty, tensor.requires_grad) if is_parameter else empty
            tensors[id(tensor)] = name, tensor, place
        owner, _, key = name.rpartition(".")
        submodule = module.get_submodule(owner)
        members = submodule._parameters if kind is nn.Parameter else submodule._buffers
        members[key] = tensors[id(tensor)][2]
    names, values, _ = zip(*tensors.values(), strict=True) if tensors else ((), (), ())
    return names, values


def _call(module, tensors, args, kwargs):
    with reparametrized(module, tensors, tie_weights=True):
        return module(*args, **kwargs)


def make_functional(model: nn.Module, disable_autograd_tracking: bool = False):
    """Return a module as a function of its parameters, and a copy of the parameters.

    model: a module without buffers. disable_autograd_tracking: the copies require no gradient.

    Raises RuntimeError for a module with buffers.

    >>> functional, (weight, bias) = make_functional(jaxgrad.nn.Linear(2, 1))
    >>> functional((jaxgrad.ones(1, 2), bias.detach() * 0), jaxgrad.tensor([3.0, 4.0]))
    tensor([7.])
    """
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(model: nn.Module, disable_autograd_tracking: bool = False):
    """Return a module as a function of its parameters and buffers, and copies of them.

    Arguments as for `make_functional`.

    >>> functional, parameters, buffers = make_functional_with_buffers(jaxgrad.nn.BatchNorm1d(2))
    >>> len(parameters), len(buffers), functional(parameters, buffers, jaxgrad.ones(3, 2)).shape
    (2, 3, torch.Size([3, 2]))
    """
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(models):
    """Return the function of modules of one class, with their stacked parameters and buffers.

    models: modules of one class. The results are those of `make_functional_with_buffers`, with a
    new first dimension of the parameters and buffers. Raises RuntimeError for no models, for
    several classes, and for models that differ in `training`.

    >>> models = [jaxgrad.nn.Linear(2, 1) for _ in range(3)]
    >>> functional, parameters, buffers = combine_state_for_ensemble(models)
    >>> jaxgrad.vmap(functional, (0, 0, None))(parameters, buffers, jaxgrad.ones(2)).shape
    torch.Size([3, 1])
    """
    for wrong, words in (
        (not models, "Expected at least one model, got 0."),
        (
            len({m.training for m in models}) > 1,
            "Expected all models to have the same training/eval mode.",
        ),
        (len({type(m) for m in models}) > 1, "Expected all models to be of the same class."),
    ):
        if wrong:
            raise RuntimeError(f"combine_state_for_ensemble: {words}")
    functional, _, _ = make_functional_with_buffers(models[0])
    parameters, buffers = stack_module_state(models)
    return functional, tuple(parameters.values()), tuple(buffers.values())
