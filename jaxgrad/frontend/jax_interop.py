"""Functions of JAX as operators, and functions of tensors as functions of JAX."""

from __future__ import annotations

import functools

import jax
import numpy as np

from ..core import executor
from ..core.aval import joint_mode
from ..core.bounded_cache import bounded
from ..core.program import Program
from ..tape.pytree import flatten, is_tensor, map_leaves
from ..tape.record import apply
from ..tape.tensor import Tensor, check_no_tangent, current, wrap
from .tensor_data import from_numpy


def from_jax(function):
    """Turn a function of JAX arrays into an operator on tensors, which records one node.

    function: a pure function of JAX arrays. It is compiled for each kind of arguments.

    The operator takes and returns pytrees of tensors, of any shapes and dtypes. Other arguments go
    to `function` unchanged and must be hashable. A call without tensors calls `function`.

    JAX computes the derivatives, of any order and in both modes. So flax and equinox modules,
    diffrax solvers and kernels with a `custom_vjp` work. In `jaxgrad.jit` the operator is part of
    the program. JAX's 64-bit setting at the call of `from_jax` holds: if it is off and no argument
    is float64, int64 arrives as int32.

    Raises TypeError for an argument that is not hashable, and the errors of `function`.

    >>> import jax.numpy as jnp
    >>> hypot = jaxgrad.from_jax(jnp.hypot)
    >>> x = jaxgrad.tensor([3.0], requires_grad=True)
    >>> hypot(x, jaxgrad.tensor([4.0])).sum().backward()
    >>> x.grad
    tensor([0.6000])
    """

    wide = jax.config.jax_enable_x64

    @functools.wraps(function, updated=())
    def operator(*args, **kwargs):
        leaves, structure = flatten((args, kwargs))
        if not any(map(is_tensor, leaves)):
            return function(*args, **kwargs)
        given = [leaf for leaf in leaves if _is_data(leaf)]
        given = [_as_tensor(leaf) for leaf in given]
        program = _program(
            function,
            wide,
            structure,
            tuple([None if _is_data(leaf) else (leaf,) for leaf in leaves]),
            tuple([current(tensor)._aval for tensor in given]),
        )
        return apply(executor.prepare(program), given)

    return operator


class FromJax(Program):
    """The program of a function of JAX, for arguments of one kind.

    constants: for each leaf of the arguments None if it is an array, else a tuple of the leaf.
    """

    def __init__(self, function, wide, structure, constants, inputs):
        self.is_wide = wide or any(aval.wide and aval.differentiable for aval in inputs)
        self.called, self.structure, self.constants = function, structure, constants
        self.name = getattr(function, "__name__", type(function).__name__)
        self.inputs, self.mode, self.tree = inputs, joint_mode(self.name, inputs), None

    def function(self, *arrays):
        supply = iter(arrays if self.is_wide else map(_narrowed, arrays))
        leaves = [next(supply) if each is None else each[0] for each in self.constants]
        args, kwargs = jax.tree.unflatten(self.structure, leaves)
        with jax.enable_x64(self.is_wide):
            results, self.tree = flatten(self.called(*args, **kwargs))
            return tuple(map(jax.numpy.asarray, results))

    @functools.cached_property
    def single(self):
        return len(self.outputs) == 1 and jax.tree.structure(0) == self.tree

    def result(self, outputs):
        return jax.tree.unflatten(self.tree, outputs)


@bounded(Program.weight)
def _program(function, wide, structure, constants, inputs) -> FromJax:
    return FromJax(function, wide, structure, constants, inputs)


def to_jax(function):
    """Turn a function of tensors into a pure function of JAX arrays, for jax.jit, jax.grad,
    jax.vmap and shard_map.

    function: a function of pytrees of tensors that returns such a pytree.

    The result takes JAX or numpy arrays and returns JAX arrays, of any shapes and dtypes. JAX
    differentiates it by the rules of the operators. Tensors from outside are constants to JAX; to
    differentiate with respect to them, pass them as arguments. The errors are those of `function`.

    >>> import jax
    >>> square = jaxgrad.to_jax(lambda x: (x * x).sum())
    >>> jax.grad(square)(jax.numpy.array([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """

    @functools.wraps(function, updated=())
    def pure(*args, **kwargs):
        args, kwargs = map_leaves(_as_tensor, (args, kwargs))
        return map_leaves(_as_array, function(*args, **kwargs))

    return pure


def _narrowed(array):
    """An array in the dtype that JAX uses while its 64-bit types are off."""
    return array.astype({"int64": "int32", "uint64": "uint32"}.get(array.dtype.name, array.dtype))


def _as_tensor(value):
    if isinstance(value, np.ndarray):
        return from_numpy(value)
    return wrap(value) if isinstance(value, jax.Array) else value


def _as_array(value):
    if not isinstance(value, Tensor):
        return value
    return check_no_tangent(value, "jaxgrad.to_jax")._array


def _is_data(value) -> bool:
    return isinstance(value, Tensor | jax.Array | np.ndarray)
