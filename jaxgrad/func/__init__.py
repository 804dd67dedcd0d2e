"""Transforms of functions, as in torch.func.

They use the tape. The arguments become leaves of their own, so the derivative is with respect to
them and to no captured tensor. A gradient is recorded if an outer transform or the caller may
differentiate it, so transforms nest.
"""

from __future__ import annotations

import functools

import jax

from .. import autograd, ops
from ..core import view_ops
from ..core.pytorch_tensors import class_of, type_name
from ..core.tracebacks import shows_users_frames
from ..names.missing import missing_in
from ..tape.mode import is_grad_enabled, recording, transform_levels, transforms
from ..tape.pytree import flatten
from ..tape.tensor import Tensor, abstract_value, wrap
from .arguments import (
    are_arrays,
    array_of,
    aux_of,
    check_leaves,
    forget_leaves,
    give_back,
    leaf_of,
    may_be_differentiated,
    positions_of,
    reaches_others,
    reverse_mode,
    split_aux,
    unrecorded,
)
from .derivatives import hessian as hessian
from .derivatives import jacfwd as jacfwd
from .derivatives import jacrev as jacrev
from .derivatives import jvp as jvp
from .derivatives import linearize as linearize
from .derivatives import vjp as vjp
from .example_scope import ExampleScope
from .module_state import functional_call as functional_call
from .module_state import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
from .module_state import stack_module_state as stack_module_state
from .rearrange import rearrange as rearrange
from .vmap import vmap as vmap


def grad(func, argnums: int | tuple[int, ...] = 0, has_aux: bool = False):
    """Return a function that computes the gradients of `func`.

    func: a function that returns a 0-d tensor, or with `has_aux` a pair of it and anything else.
    argnums: the positions of the arguments to differentiate with respect to, an int or a tuple.
    Each is a floating-point or complex tensor of any shape, or a pytree of such tensors.
    has_aux: return the pair of the gradients and the second part of the pair.

    Gradients have the structure, shapes and dtypes of their arguments; an unused argument gets
    zeros. If all these arguments are JAX arrays, the gradients are too.

    The function raises RuntimeError for a result that is not a 0-d tensor and for `argnums` out of
    range, ValueError for an argument that is not a tensor.

    >>> jaxgrad.func.grad(lambda x: x**3)(jaxgrad.tensor(2.0))
    tensor(12.)
    """
    compute = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    @shows_users_frames
    def gradients(*args, **kwargs):
        gradients, value = compute(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradients


def value_and_grad(func, argnums: int | tuple[int, ...] = 0, has_aux: bool = False):
    """Return a function that computes the value and the gradients of `func`, in JAX's order.

    Arguments and errors as for `grad`. With `has_aux` the value is a pair.

    >>> jaxgrad.func.value_and_grad(lambda x: x**3)(jaxgrad.tensor(2.0))
    (tensor(8.), tensor(12.))
    """
    compute = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    @shows_users_frames
    def values(*args, **kwargs):
        gradients, value = compute(*args, **kwargs)
        return value, gradients

    return values


def grad_and_value(func, argnums: int | tuple[int, ...] = 0, has_aux: bool = False):
    """Return a function that computes the gradients and the value of `func`.

    Arguments and errors as for `grad`. With `has_aux` the value is a pair.

    >>> jaxgrad.func.grad_and_value(lambda x: x**3)(jaxgrad.tensor(2.0))
    (tensor(12.), tensor(8.))
    """

    @functools.wraps(func)
    @shows_users_frames
    def compute(*args, **kwargs):
        positions = positions_of(argnums, len(args))
        leaves, structure = flatten([args[i] for i in positions])
        for leaf in leaves:
            if not isinstance(leaf, Tensor | jax.Array):
                kind = class_of(leaf)
                raise ValueError(f"Thing passed to transform API must be Tensor, got {kind}")
        recorded = is_grad_enabled()
        nested = recorded and may_be_differentiated(args)
        depth = transforms.set(transforms.get() + 1)
        try:
            with recording():
                inner = [leaf_of(leaf) for leaf in leaves]
                arguments = list(args)
                for position, argument in zip(
                    positions, jax.tree.unflatten(structure, inner), strict=True
                ):
                    arguments[position] = argument
                with reverse_mode(inner) as changed:
                    value, aux = _value(func(*arguments, **kwargs), has_aux)
                check_leaves(inner)
                give_back(leaves, inner)
                nested |= recorded and reaches_others([value], inner)
                gradients = _gradients(value, inner, nested)
                forget_leaves(changed, inner, [value])
        finally:
            transforms.reset(depth)
        aux = aux_of(aux, inner, recorded)
        arrays = are_arrays(leaves)
        gradients = jax.tree.unflatten(structure, [array_of(g) if arrays else g for g in gradients])
        value = value if nested else unrecorded(value, True)
        value = array_of(value) if arrays else value
        return (gradients[0] if isinstance(argnums, int) else tuple(gradients)), (
            (value, aux) if has_aux else value
        )

    return compute


def functionalize(func, *, remove: str = "mutations"):
    """Return a function that calls `func`, which needs no functionalization.

    A write records a new value and changes no array, so there are no mutations to remove. Writes to
    arguments stay visible outside.

    remove: "mutations" or "mutations_and_views". Raises RuntimeError for anything else.

    >>> jaxgrad.func.functionalize(lambda x: x.clone().mul_(3))(jaxgrad.ones(2))
    tensor([3., 3.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. "
            "Valid options are remove='mutations' and remove='mutations_and_views'"
        )

    @functools.wraps(func)
    def call(*args, **kwargs):
        return func(*args, **kwargs)

    return call


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return the value of a tensor inside a transform, without history and tangents, to print it.

    tensor: of any shape and dtype. recurse: leave all transforms around, or the innermost one. Of
    an argument of a vmap the result has all examples; what is computed is one example, which has no
    values yet.

    Raises TypeError for anything but a tensor.

    >>> jaxgrad.func.grad(lambda x: print(jaxgrad.func.debug_unwrap(x)) or x * x)(jaxgrad.ones(()))
    tensor(1.)
    tensor(2.)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"debug_unwrap(): a Tensor is expected, not {type_name(tensor)}")
    levels = transform_levels.get()
    for level in levels[::-1] if recurse else levels[-1:]:
        whole = level.show(tensor) if isinstance(level, ExampleScope) else None
        tensor = tensor if whole is None else whole
    return wrap(tensor._array, view_ops.plain(abstract_value(tensor)))


def _value(output, has_aux):
    name = "grad_and_value(f)(*args)"
    output, aux = split_aux(name, output, has_aux)
    if not isinstance(output, Tensor):
        what = "return the loss alone, or has_aux=True and the pair (loss, the rest)"
        if not isinstance(output, tuple | list | dict):
            what = "return the tensor itself, without item()"
        raise RuntimeError(
            f"{name}: Expected f(*args) to return a Tensor, got {type(output)}: {what}"
        )
    if output.ndim:
        raise RuntimeError(
            f"{name}: Expected f(*args) to return a scalar Tensor, got tensor with {output.ndim} "
            f"dims, of shape "
            f"{list(output.shape)}. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )
    return output, aux


def _gradients(value, inputs, nested):
    gradients = [None] * len(inputs)
    if value.requires_grad:
        gradients = autograd.grad(value, inputs, create_graph=nested, allow_unused=True)
    pairs = zip(inputs, gradients, strict=True)
    return [wrap(ops.mul(i.detach(), 0)._array) if g is None else g for i, g in pairs]


__getattr__ = missing_in(__name__)
