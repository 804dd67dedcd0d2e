"""A model as a program of JAX whose first inputs are its parameters and buffers."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import jax
from jax.extend.core import ClosedJaxpr

from ..autograd.grad_mode import no_grad
from ..export.dynamic_shapes import named_arguments, tensor_names
from ..frontend.jax_interop import to_jax
from ..frontend.tensor_data import tensor_of_number
from ..func.module_state import functional_call
from ..nn.module import Module
from ..tape import pytree
from ..tape.pytree import is_tensor
from ..tape.symbolic_number import is_open
from ..tape.symbolic_size import exporting
from ..tape.tensor import Tensor, abstract_value
from ..utils._pytree import tree_flatten, tree_unflatten
from .errors import OnnxExporterError


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

    names: of the tensors among them: that of the parameter, with a number or key for each tensor of
    a container.
    """

    def __init__(self, model, args: tuple, kwargs: dict):
        self.model, self.args = model, args
        self.kwargs = {
            name: kwargs[name] for name in named_arguments(model, args, kwargs) if name in kwargs
        }
        self.leaves, self.structure = tree_flatten((self.args, self.kwargs))
        names = tensor_names(model, self.args, self.kwargs)
        self.places = [number for number, leaf in enumerate(self.leaves) if is_tensor(leaf)]
        self.tensors = [self.leaves[place] for place in self.places]
        self.names = [names[place] for place in self.places]

    def with_tensors(self, tensors):
        """The arguments by position and by keyword, with other tensors."""
        leaves = [*self.leaves]
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        return tree_unflatten(leaves, self.structure)


def traced(model, arguments: Arguments, shapes) -> Traced:
    """Trace a model without gradients, a module in evaluation mode.

    shapes: of each tensor among the arguments, with symbols for extents that vary.
    """
    known, results = _state(model), []
    flags = {name: tensor.clone() for name, tensor in known.items() if _is_flag(tensor)}
    weights = {name: tensor for name, tensor in known.items() if name not in flags}

    def function(tensors_of_state, tensors):
        state = {**flags, **dict(zip(weights, tensors_of_state, strict=True))}
        args, kwargs = arguments.with_tensors(tensors)
        with no_grad():
            result = (
                functional_call(model, state, args, kwargs) if state else model(*args, **kwargs)
            )
        _refuse_writes(state)
        outputs, structure = pytree.flatten(result)
        outputs = [tensor_of_number(output) if is_open(output) else output for output in outputs]
        _check_outputs(outputs)
        results[:] = [structure]
        return outputs

    pairs = zip(arguments.tensors, shapes, strict=True)
    structs = [_struct(tensor, shape) for tensor, shape in pairs]
    of_state = [_struct(tensor, tensor.shape) for tensor in weights.values()]
    with in_evaluation(model), exporting(), jax.enable_x64(True):
        program = jax.make_jaxpr(to_jax(function))(of_state, structs)
    return Traced(program, weights, results[0])


def _state(model) -> dict[str, Tensor]:
    if not isinstance(model, Module):
        return {}
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def _is_flag(tensor) -> bool:
    """Whether code may depend on the number of a buffer: one int or bool, such as the switches of
    `FakeQuantize`. It is a part of the program.
    """
    return tensor.numel() == 1 and not (tensor.is_floating_point() or tensor.is_complex())


def _refuse_writes(state):
    for name, tensor in state.items():
        if tensor._version:
            raise OnnxExporterError(
                f"torch.onnx.export: the model writes to its buffer {name!r}, which an ONNX model "
                "cannot keep: return the new value, and take the old one as an argument"
            )


def _check_outputs(outputs):
    for output in outputs:
        if not (is_tensor(output) or isinstance(output, bool | int | float | complex)):
            raise OnnxExporterError(
                f"torch.onnx.export: a result of the model is {output!r}: return tensors, numbers, "
                "None, or containers of these"
            )


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
