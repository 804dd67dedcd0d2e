"""A model as a program of JAX whose first inputs are its parameters and buffers."""

from __future__ import annotations

import contextlib
import inspect
from typing import NamedTuple

import jax
from jax.extend.core import ClosedJaxpr

from ..autograd.grad_mode import no_grad
from ..core.symbolic_extents import exporting
from ..frontend.jax_interop import to_jax
from ..func.module_state import functional_call
from ..late import LateModule
from ..nn.module import Module
from ..tape import pytree
from ..tape.pytree import is_tensor
from ..tape.tensor import Tensor, abstract_value
from .errors import OnnxExporterError

export = LateModule("jax.export")


class Traced(NamedTuple):
    """A traced model.

    state: parameters and buffers by name, the first inputs; structure: of the result, whose leaves
    are the outputs.
    """

    program: ClosedJaxpr
    state: dict[str, Tensor]
    structure: object


class Arguments:
    """The example arguments of a model, those by keyword in the order of its parameters.

    pairs: of the name of a parameter and a value; tensors: those among the values.
    """

    def __init__(self, model, args: tuple, kwargs: dict):
        forward = model.forward if isinstance(model, Module) else model
        self.pairs = _bound(forward, args, kwargs)
        kwargs = {name: kwargs[name] for name, _ in self.pairs if name in kwargs}
        self.leaves, self.structure = pytree.flatten((args, kwargs))
        self.places = [number for number, leaf in enumerate(self.leaves) if is_tensor(leaf)]
        self.tensors = [self.leaves[place] for place in self.places]

    def with_tensors(self, tensors):
        """The arguments by position and by keyword, with other tensors."""
        leaves = [*self.leaves]
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        return jax.tree.unflatten(self.structure, leaves)

    @property
    def names(self) -> list[str]:
        """A name for each tensor: of its parameter, with a number for each tensor of a tree."""
        names = []
        for name, value in self.pairs:
            numbers = range(count_tensors(value))
            names += [name] if is_tensor(value) else [f"{name}_{number}" for number in numbers]
        return names


def count_tensors(tree) -> int:
    """How many tensors a tree has."""
    return sum(map(is_tensor, pytree.flatten(tree)[0]))


def _bound(forward, args, kwargs) -> list[tuple]:
    """Pairs of a parameter and its value, where `**kwargs` has one for each."""
    bound = inspect.signature(forward).bind(*args, **kwargs)
    pairs = []
    for name, value in bound.arguments.items():
        is_keywords = bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        pairs += value.items() if is_keywords else [(name, value)]
    return pairs


def traced(model, arguments: Arguments, extents: list[dict]) -> Traced:
    """Trace a model without gradients, a module in evaluation mode.

    extents: for each tensor among the arguments a dict from dimensions to the name of an extent
    that varies; the other extents are those of the example.
    """
    known, results = _state(model), []

    def function(tensors_of_state, tensors):
        state = dict(zip(known, tensors_of_state, strict=True))
        args, kwargs = arguments.with_tensors(tensors)
        with no_grad():
            result = (
                functional_call(model, state, args, kwargs) if state else model(*args, **kwargs)
            )
        _refuse_writes(state)
        outputs, structure = pytree.flatten(result)
        results[:] = [structure]
        return outputs

    structs = _structs(arguments.tensors, extents)
    of_state = [_struct(tensor, tensor.shape) for tensor in known.values()]
    with in_evaluation(model), exporting(), jax.enable_x64(True):
        program = jax.make_jaxpr(to_jax(function))(of_state, structs)
    return Traced(program, known, results[0])


def _state(model) -> dict[str, Tensor]:
    if not isinstance(model, Module):
        return {}
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def _refuse_writes(state):
    for name, tensor in state.items():
        if tensor._version:
            raise OnnxExporterError(
                f"torch.onnx.export: the model writes to its buffer {name!r}, which an ONNX model "
                "cannot keep: return the new value, and take the old one as an argument"
            )


def _structs(tensors, extents) -> list[jax.ShapeDtypeStruct]:
    names = dict.fromkeys(name for of_tensor in extents for name in of_tensor.values())
    symbols = {}
    if names:
        symbols = dict(zip(names, export.symbolic_shape(",".join(names)), strict=True))
    structs = []
    for tensor, of_tensor in zip(tensors, extents, strict=True):
        shape = [*tensor.shape]
        for dimension, name in of_tensor.items():
            shape[dimension] = symbols[name]
        structs.append(_struct(tensor, shape))
    return structs


def _struct(tensor, shape) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tuple(shape), abstract_value(tensor).dtype.numpy)


@contextlib.contextmanager
def in_evaluation(model):
    """Put the modules of a model into evaluation mode, and each back into its mode."""
    modules = [*model.modules()] if isinstance(model, Module) else []
    modes = [module.training for module in modules]
    try:
        for module in modules:
            module.training = False
        yield
    finally:
        for module, is_training in zip(modules, modes, strict=True):
            module.training = is_training
