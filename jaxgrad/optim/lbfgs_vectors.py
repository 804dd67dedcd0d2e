"""The vectors of L-BFGS: all parameters as one vector, all gradients, and the history of changes.

The line search branches on numbers, so each of its products is computed at once. The vectors are
NumPy arrays if the host executor would compute these products, and tensors otherwise.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from .. import ops
from ..core import dtypes, executor, host_kernel, world
from ..core.aval import IMMEDIATE, joint_mode
from ..core.bounded_cache import bounded
from ..core.program import Program
from ..frontend.array_creation import taken_over
from ..frontend.methods import numbers_of
from ..storage.alias import assign
from ..storage.inplace_check import permit
from ..tape.record import apply
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import Tensor, abstract_value, current, wrap


class Correction(Program):
    """One step of the two-loop recursion on a direction: adds a change of the history, times a
    factor less its product with the direction along another change. One program in place of four
    operators, since the history has up to 100 of these steps.

    Inputs: direction, the change it is multiplied with, the one that is added, the inverse
    curvature, and the factor. Outputs: the product, and the corrected direction.
    """

    name = "LBFGSCorrection"
    defers = True

    def __init__(self, inputs):
        self.inputs, self.mode = inputs, joint_mode(self.name, inputs)

    def function(self, direction, along, change, inverse, factor):
        product = jnp.vdot(along, direction) * inverse
        return product, direction + change * (factor - product)


@bounded(Program.weight)
def _correction(*inputs) -> Correction:
    return executor.prepare(Correction(inputs))


class TensorVectors:
    """Vectors that are tensors."""

    def __init__(self, params):
        self.params = params

    def of_state(self, value):
        """The vectors of tensors in the state."""
        return value

    of_vectors = of_state

    def gradient(self) -> Tensor:
        grads = [p.new_zeros(p.shape) if p.grad is None else p.grad for p in self.params]
        return ops.cat([_flat(grad) for grad in grads])

    def corrected(self, *leaves) -> tuple[Tensor, Tensor]:
        """The results of a `Correction` for its inputs, a number as the factor."""
        leaves = [current(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        kinds = [
            abstract_value(leaf) if isinstance(leaf, Tensor) else type(leaf) for leaf in leaves
        ]
        return apply(_correction(*kinds), leaves)

    def values(self) -> list:
        """Copies of the parameters, for `restore`."""
        return [param.clone() for param in self.params]

    def restore(self, values):
        for param, value in zip(self.params, values, strict=True):
            param.copy_(value)

    def move(self, t: float, direction):
        """Add a direction times a number to the parameters."""
        for param, piece in pieces(self.params, direction):
            if param.dtype.is_complex:
                piece = ops.view_as_complex(piece.reshape(-1, 2))
            param.add_(piece.reshape(param.shape), alpha=t)


class HostVectors:
    """The same with NumPy's arrays."""

    def __init__(self, params):
        self.params = params

    def of_state(self, value):
        if isinstance(value, list):
            return [*map(self.of_state, value)]
        return numbers_of(value, "LBFGS.step") if isinstance(value, Tensor) else value

    def of_vectors(self, value):
        """The tensors of vectors, for the state."""
        if isinstance(value, list):
            return [*map(self.of_vectors, value)]
        is_vector = isinstance(value, np.ndarray | np.generic)
        return wrap(taken_over(np.array(value))) if is_vector else value

    def gradient(self) -> np.ndarray:
        grads = [p.new_zeros(p.shape) if p.grad is None else p.grad for p in self.params]
        return np.concatenate([numbers_of(_flat(grad), "LBFGS.step") for grad in grads])

    def corrected(self, direction, along, change, inverse, factor):
        product = along.dot(direction) * inverse
        return product, direction + change * (factor - product)

    def values(self) -> list:
        return [numbers_of(param, "LBFGS.step").copy() for param in self.params]

    def restore(self, values):
        for param, value in zip(self.params, values, strict=True):
            _overwrite(param, value.copy())

    def move(self, t: float, direction):
        for param, piece in pieces(self.params, direction):
            value = numbers_of(param, "LBFGS.step")
            _overwrite(param, value + t * piece.view(value.dtype).reshape(value.shape))


def vectors_of(params) -> TensorVectors | HostVectors:
    """The vectors for parameters: the host computes with those of one dtype that NumPy has."""
    kinds = {(param.dtype.to_real(), abstract_value(param).mode) for param in params}
    is_plain = kinds in [{(dtypes.float32, IMMEDIATE)}, {(dtypes.float64, IMMEDIATE)}]
    is_for_xla = executor.chosen == "compiled" or executor.observers or world.current is not None
    is_on_host = is_plain and not is_for_xla and host_kernel.is_usual()
    return HostVectors(params) if is_on_host else TensorVectors(params)


def pieces(params, vector):
    """Each parameter with its piece of a vector, which has two elements for a complex number."""
    begin = 0
    for param in params:
        size = param.numel() * (1 + param.dtype.is_complex)
        yield param, vector[begin : begin + size]
        begin += size


def _overwrite(param: Tensor, value: np.ndarray):
    permit("add_", param, False)
    assign(param, wrap(taken_over(np.asarray(value))), False)


def _flat(grad):
    if is_sparse(grad):
        grad = grad.to_dense()
    if grad.dtype.is_complex:
        grad = ops.view_as_real(grad)
    return grad.detach().reshape(-1)
