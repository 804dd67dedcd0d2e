"""Functions of functions, as torch.func: so far `grad`, `grad_and_value`, `value_and_grad` and
`functionalize`.

They stand on the tape: the arguments become leaves of their own, and a gradient is recorded in its
turn where somebody outside may ask for its derivative. So they nest, and nothing that the function
reaches is confused with what it differentiates.
"""

from __future__ import annotations

import functools

import jax

from .. import autograd, ops, tangents
from ..modes import transforms
from ..tensor import Tensor, standing, wrap
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
        positions = _positions(argnums, len(args))
        leaves, structure = jax.tree.flatten([args[i] for i in positions], is_leaf=_is_tensor)
        for leaf in leaves:
            if not isinstance(leaf, Tensor | jax.Array):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
        nested = transforms.get() > 0 or any(
            _requires_grad(leaf) for leaf in jax.tree.leaves(args, is_leaf=_is_tensor)
        )
        depth = transforms.set(transforms.get() + 1)
        try:
            with autograd.enable_grad():
                inner = [_leaf(leaf) for leaf in leaves]
                given = list(args)
                for position, argument in zip(
                    positions, jax.tree.unflatten(structure, inner), strict=True
                ):
                    given[position] = argument
                value, aux = _value(func(*given, **kwargs), has_aux)
                found = _gradients(value, inner, nested)
        finally:
            transforms.reset(depth)
        arrays = not any(map(_is_tensor, leaves))
        found = jax.tree.unflatten(structure, [_array(g) if arrays else g for g in found])
        value = value if nested else tangents.apart(value, True)
        value = _array(value) if arrays else value
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


def _positions(argnums, count):
    if not isinstance(argnums, int | tuple) or isinstance(argnums, bool):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    chosen = (argnums,) if isinstance(argnums, int) else argnums
    if not chosen:
        raise RuntimeError("argnums must be non-empty")
    for argnum in chosen:
        if not isinstance(argnum, int) or not -count <= argnum < count:
            raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    positions = [argnum % count for argnum in chosen]
    if len(set(positions)) < len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return positions


def _leaf(value):
    """A tensor to differentiate with respect to: in the graph of the one outside, where that has a
    graph.
    """
    if not isinstance(value, Tensor):
        return wrap(value, requires_grad=True)
    return ops.alias(value) if value.requires_grad else tangents.apart(value).requires_grad_()


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


def _array(tensor):
    return standing(tensor, "jaxgrad.func gives as a JAX array")._array


def _is_tensor(value) -> bool:
    return isinstance(value, Tensor)


def _requires_grad(value) -> bool:
    return isinstance(value, Tensor) and tangents.is_recorded(value)
