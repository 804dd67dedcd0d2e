"""Making an exported program."""

from __future__ import annotations

import warnings

import jax

from ..nn.module import Module
from ..tape.mode import is_grad_enabled
from ..tape.tensor import Tensor, abstract_value
from ._deciding import decided
from ._errors import UnsupportedInput, UserError
from ._extents import Extent
from ._serialized import serialized
from ._signature import ConstantInput, Signature, TensorInput
from ._state import slots_of, warn_of_new
from ._tracing import Traced, lowered
from .dynamic_shapes import Shapes, shapes_of, tensor_names
from .exported_program import ExportedProgram, flat_arguments

PLATFORMS = ("cpu", "cuda", "tpu")
_KNOWN_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
_CONSTANTS = (bool, int, float, str, type(None))


def program_of(
    target, args, kwargs, dynamic_shapes, *, platforms=None, with_vjp=False
) -> ExportedProgram:
    """The exported program of a module or function."""
    if not isinstance(args, tuple):
        raise UserError(
            "Expecting `args` to be a tuple of example positional inputs, got "
            f"{type(args)}: write (x,) for one input"
        )
    if isinstance(target, type) and issubclass(target, Module):
        raise ValueError(
            f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(target)}: "
            f"{target.__name__} is a class; make a module of it, {target.__name__}(...)"
        )
    _check_platforms(platforms)
    kwargs = dict(kwargs or {})
    shapes = shapes_of(target, args, kwargs, dynamic_shapes)
    return program_for(target, args, kwargs, shapes, platforms=platforms, with_vjp=with_vjp)


def program_for(
    target, args, kwargs, shapes: Shapes, *, platforms=None, with_vjp=False
) -> ExportedProgram:
    """The same with the extents of the tensors."""
    if with_vjp and not is_grad_enabled():
        raise UserError("with_vjp=True: export outside of no_grad(), under which nothing has one")
    leaves, spec = flat_arguments(args, kwargs)
    names = tensor_names(target, args, kwargs)
    _check_leaves(names, leaves)
    tensors = slots_of(target) if isinstance(target, Module) else {}
    traced = Traced(target, tuple(tensors), names, leaves, spec)
    state = {slot.path: _struct(tensor.shape, tensor) for slot, tensor in tensors.items()}
    by_name = dict(zip(names, leaves, strict=True))

    def trace(extents):
        inputs = [_struct(extents[name], by_name[name]) for name in traced.input_names()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            exported = lowered(traced, state, tuple(inputs), tuple(platforms or PLATFORMS))
            # traces the derivative: what it raises, it raises here
            return exported, serialized(exported, with_vjp=True) if with_vjp else None

    (exported, data), shapes = decided(shapes, trace)
    warn_of_new(traced.new_tensors)
    tensors = {
        slot: tensor.detach() if slot.path in traced.replaced else tensor
        for slot, tensor in tensors.items()
    }
    inputs = [_input(name, leaf, shapes) for name, leaf in by_name.items()]
    signature = Signature(tuple(tensors), tuple(inputs), spec, traced.results, _used(shapes))
    example = args, kwargs
    recorder = traced.recorder
    return ExportedProgram(
        exported, signature, tensors, example, with_vjp=with_vjp, data=data, recorder=recorder
    )


def _check_platforms(platforms):
    if platforms is None:
        return
    if isinstance(platforms, str):
        raise TypeError(f"platforms is a tuple of texts: write ({platforms!r},) for one")
    for name in platforms:
        if name not in _KNOWN_PLATFORMS:
            raise ValueError(f"platforms: {name!r} is none of {', '.join(_KNOWN_PLATFORMS)}")


def _check_leaves(names, leaves):
    for name, leaf in zip(names, leaves, strict=True):
        if not isinstance(leaf, (Tensor, *_CONSTANTS)):
            raise UnsupportedInput(
                f"Unsupported input type {type(leaf)} of {name!r}. Export only supports pytree "
                "containers of basic types (Tensor, int, float, ...) as input. To register a "
                "custom dataclass, use torch.export.register_dataclass"
            )


def _struct(shape, tensor):
    return jax.ShapeDtypeStruct(tuple(shape), abstract_value(tensor).dtype.numpy)


def _input(name, leaf, shapes):
    if isinstance(leaf, Tensor):
        return TensorInput(name, shapes.extents[name], leaf.dtype)
    return ConstantInput(name, leaf)


def _used(shapes) -> dict:
    """The ranges of the symbols that the arguments have."""
    used = {e.symbol for known in shapes.extents.values() for e in known if isinstance(e, Extent)}
    return {symbol: bounds for symbol, bounds in shapes.ranges.items() if symbol in used}
