"""Functions of JAX as operators, and functions of tensors as functions of JAX."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import numpy as np

from ..cached import cached_property
from ..core import dtypes, executor
from ..core.aval import is_key, joint_mode, strong
from ..core.bounded_cache import bounded
from ..core.program import Program
from ..tape.pytree import flatten, is_tensor, map_leaves
from ..tape.record import apply
from ..tape.tensor import Tensor, abstract_value, check_no_tangent, current, wrap
from .tensor_data import from_numpy


def from_jax(function):
    """A function of JAX arrays as an operator, see `jaxgrad.from_jax`."""
    return _operator(function, FromJax)


def own_operator(function):
    """A function of jaxgrad itself that is written in JAX, as an operator like those of the table:
    any executor runs it.
    """
    return _operator(function, OwnFunction)


def wide_operator(function):
    """A function of JAX arrays as an operator that gets all arguments in their dtypes, 64-bit ones
    too.
    """
    return _operator(function, WideFunction)


def _operator(function, kind):
    was_wide = jax.config.jax_enable_x64

    @functools.wraps(function, updated=())
    def operator(*args, **kwargs):
        leaves, structure = flatten((args, kwargs))
        if not any(map(is_tensor, leaves)):
            return function(*args, **kwargs)
        tensors = [_as_tensor(leaf) for leaf in leaves if _is_data(leaf)]
        # the operators of jaxgrad make tensors of the default dtype
        wide = was_wide or (kind is OwnFunction and dtypes.default is dtypes.float64)
        program = _program(
            kind,
            function,
            wide,
            structure,
            tuple(map(_constant, leaves)),
            tuple([abstract_value(current(tensor)) for tensor in tensors]),
        )
        return apply(executor.prepare(program), tensors)

    return operator


class _Key(NamedTuple):
    """Stands for a random key of JAX among arguments and results, which is passed as its data."""

    implementation: object

    def key(self, data) -> jax.Array:
        """The key of this data."""
        array = data._array if isinstance(data, Tensor) else data
        return jax.random.wrap_key_data(array, impl=self.implementation)


class FromJax(Program):
    """The program of a function of JAX, for arguments of one kind.

    constants: for each leaf of the arguments None if it is an array, a `_Key` if it is a random
    key, else a tuple of the leaf.
    """

    may_run_on_host = False  # what JAX computes is JAX's

    def __init__(self, function, wide, structure, constants, inputs):
        self.is_wide = wide or any(aval.wide and aval.differentiable for aval in inputs)
        self.called, self.structure, self.constants = function, structure, constants
        self.name = getattr(function, "__name__", type(function).__name__)
        self.inputs, self.mode = inputs, joint_mode(self.name, inputs)
        self.tree = self.keys = None

    def function(self, *arrays):
        supply = iter(arrays if self.is_wide else map(_narrowed, arrays))
        leaves = [_leaf(constant, supply) for constant in self.constants]
        args, kwargs = jax.tree.unflatten(self.structure, leaves)
        with jax.enable_x64(self.is_wide):
            results, self.tree = flatten(self.called(*args, **kwargs))
            self.keys = [_Key(jax.random.key_impl(r)) if is_key(r) else None for r in results]
            return tuple(map(_data_of, results))

    def gives_one(self, results):
        return len(results) == 1 and jax.tree.structure(0) == self.tree and self.keys == [None]

    @cached_property
    def single(self):
        return self.gives_one(self.outputs)

    def result(self, outputs):
        pairs = zip(outputs, self.keys, strict=True)
        leaves = [data if key is None else key.key(data) for data, key in pairs]
        return jax.tree.unflatten(self.tree, leaves)


class OwnFunction(FromJax):
    """The program of a function of jaxgrad itself."""

    may_run_on_host = True


class WideFunction(FromJax):
    """The program of a function with JAX's 64-bit types on."""

    def __init__(self, function, wide, structure, constants, inputs):
        super().__init__(function, True, structure, constants, inputs)


def _constant(leaf):
    if is_key(leaf):
        return _Key(jax.random.key_impl(leaf))
    return None if _is_data(leaf) else (leaf,)


def _leaf(constant, supply):
    if isinstance(constant, _Key):
        return constant.key(next(supply))
    return next(supply) if constant is None else constant[0]


def _data_of(value) -> jax.Array:
    return jax.random.key_data(value) if is_key(value) else jax.numpy.asarray(value)


@bounded(Program.weight)
def _program(kind, function, wide, structure, constants, inputs) -> FromJax:
    return kind(function, wide, structure, constants, inputs)


def to_jax(function):
    """Turn a function of tensors into a pure function of JAX arrays, for jax.jit, jax.grad,
    jax.vmap and shard_map.

    function: a function of pytrees of tensors that returns such a pytree.

    The result takes JAX or numpy arrays and returns JAX arrays, of any shapes and dtypes. JAX
    differentiates it by the rules of the operators. Tensors from outside are constants to JAX; to
    differentiate with respect to them, pass them as arguments. In a trace of JAX with 64-bit types
    off, int64 arrives as int32. The errors are those of `function`.

    >>> import jax
    >>> square = jaxgrad.to_jax(lambda x: (x * x).sum())
    >>> jax.grad(square)(jax.numpy.array([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """

    @functools.wraps(function, updated=())
    def pure(*args, **kwargs):
        args, kwargs = map_leaves(_argument, (args, kwargs))
        return map_leaves(_as_array, function(*args, **kwargs))

    return pure


def _narrowed(array):
    """An array in the dtype that JAX uses while its 64-bit types are off."""
    narrow = {"int64": "int32", "uint64": "uint32"}.get(array.dtype.name)
    return array if narrow is None else array.astype(narrow)


def _as_tensor(value):
    if isinstance(value, np.ndarray):
        return from_numpy(value)
    if is_key(value):
        return wrap(jax.random.key_data(value))
    return wrap(strong(value)) if isinstance(value, jax.Array) else value


def _argument(value):
    """An argument of a function of tensors; a random key stays a key."""
    if is_key(value):
        return value
    if isinstance(value, jax.core.Tracer) and not jax.config.jax_enable_x64:
        value = _narrowed(value)  # the trace has no other integers of 64 bits
    return _as_tensor(value)


def _as_array(value):
    if not isinstance(value, Tensor):
        return value
    return check_no_tangent(value, "jaxgrad.to_jax")._array


def _is_data(value) -> bool:
    return isinstance(value, Tensor | jax.Array | np.ndarray)
