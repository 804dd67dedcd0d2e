"""Functions of functions, as torch.func.

They stand on the tape: the arguments become leaves of their own, and a gradient is recorded in its
turn where somebody outside may ask for its derivative. So they nest, and nothing that the function
reaches is confused with what it differentiates.
"""

from __future__ import annotations

import functools

import jax

from .. import autograd, ops
from ..modes import is_grad_enabled, transforms
from ..tensor import Tensor, wrap
from .arguments import (
    array_of,
    is_tensor,
    leaf_of,
    positions_of,
    reaches_others,
    requires_grad,
    unrecorded,
)
from .derivatives import hessian as hessian
from .derivatives import jacfwd as jacfwd
from .derivatives import jacrev as jacrev
from .derivatives import jvp as jvp
from .derivatives import linearize as linearize
from .derivatives import vjp as vjp
from .module_state import functional_call as functional_call
from .module_state import stack_module_state as stack_module_state
from .vmapping import vmap as vmap


def grad(func, argnums: int | tuple[int, ...] = 0, has_aux: bool = False):
    """The function of the gradients of `func` with respect to its arguments `argnums`, each a
    tensor or a tree of tensors.

    `func` returns a tensor of one element without dimensions, or with `has_aux` a pair of it and
    anything else, which is returned beside the gradients. Tensors may be JAX arrays; gradients then
    are too. An argument that `func` does not use has zeros. Raises RuntimeError for another shape
    of result and for argnums that are not there, ValueError for an argument that is no tensor.

    >>> jaxgrad.func.grad(lambda x: x**3)(jaxgrad.tensor(2.0))
    tensor(12.)
    """
    compute = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradients(*args, **kwargs):
        found, value = compute(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradients


def value_and_grad(func, argnums: int | tuple[int, ...] = 0, has_aux: bool = False):
    """As `grad_and_value`, in JAX's order: the value first.

    >>> jaxgrad.func.value_and_grad(lambda x: x**3)(jaxgrad.tensor(2.0))
    (tensor(8.), tensor(12.))
    """
    compute = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def values(*args, **kwargs):
        found, value = compute(*args, **kwargs)
        return value, found

    return values


def grad_and_value(func, argnums: int | tuple[int, ...] = 0, has_aux: bool = False):
    """The function of the gradients and the value of `func`; see `grad`.

    >>> jaxgrad.func.grad_and_value(lambda x: x**3)(jaxgrad.tensor(2.0))
    (tensor(12.), tensor(8.))
    """

    @functools.wraps(func)
    def compute(*args, **kwargs):
        positions = positions_of(argnums, len(args))
        leaves, structure = jax.tree.flatten([args[i] for i in positions], is_leaf=is_tensor)
        for leaf in leaves:
            if not isinstance(leaf, Tensor | jax.Array):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
        nested = transforms.get() > 0 or any(
            requires_grad(leaf) for leaf in jax.tree.leaves(args, is_leaf=is_tensor)
        )
        recorded = is_grad_enabled()
        depth = transforms.set(transforms.get() + 1)
        try:
            with autograd.enable_grad():
                inner = [leaf_of(leaf) for leaf in leaves]
                given = list(args)
                for position, argument in zip(
                    positions, jax.tree.unflatten(structure, inner), strict=True
                ):
                    given[position] = argument
                value, aux = _value(func(*given, **kwargs), has_aux)
                nested |= recorded and reaches_others([value], inner)
                found = _gradients(value, inner, nested)
        finally:
            transforms.reset(depth)
        arrays = not any(map(is_tensor, leaves))
        found = jax.tree.unflatten(structure, [array_of(g) if arrays else g for g in found])
        value = value if nested else unrecorded(value, True)
        value = array_of(value) if arrays else value
        return (found[0] if isinstance(argnums, int) else tuple(found)), (
            (value, aux) if has_aux else value
        )

    return compute


def functionalize(func, *, remove: str = "mutations"):
    """`func`, without writes in what it records: so it is without this too, since a write records a
    new value and the arrays stay as they are. What it writes to its arguments is seen outside.

    remove: "mutations" or "mutations_and_views"; RuntimeError for anything else.

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


def _value(output, has_aux):
    name = "grad_and_value(f)(*args)"
    aux = None
    if has_aux:
        if not isinstance(output, tuple) or len(output) != 2:
            raise RuntimeError(
                f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
            )
        output, aux = output
    if not isinstance(output, Tensor):
        raise RuntimeError(
            f"{name}: Expected f(*args) to return a Tensor, got {type(output).__name__}"
        )
    if output.ndim:
        raise RuntimeError(
            f"{name}: Expected f(*args) to return a scalar Tensor, got tensor with {output.ndim} "
            f"dims, of shape "
            f"{list(output.shape)}. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )
    return output, aux


def _gradients(value, inputs, nested):
    if not value.requires_grad:
        return [wrap(ops.mul(each.detach(), 0)._array) for each in inputs]
    return autograd.grad(value, inputs, create_graph=nested, materialize_grads=True)
