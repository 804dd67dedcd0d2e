"""The function that is checked, with its values, gradients and tangents at a point.

All of it works on numpy arrays. A complex tensor counts as two real ones: its real and its
imaginary part are moved, and weighted, separately.
"""

from __future__ import annotations

import contextlib
import functools
import os

import jax
import jax.numpy as jnp
import numpy

from ...core.pending import value_of
from ...storage.alias import assign
from ...tape.sparse_tensor import is_sparse
from ...tape.tensor import Tensor, edge_of, wrap
from ...tape.traversal import in_backward_order
from ...tape.version_counter import counter_of
from .. import forward_ad
from .._engine.graph_task import PassTo

REAL, COMPLEX = (1,), (1, 1j)


class GradcheckProblem:
    """A function at a point.

    moving: the positions of the inputs that require grad.
    outputs: the outputs of the first call that require grad.
    chosen: the positions of these outputs.
    """

    def __init__(self, func, inputs, name=None):
        self.func, self.inputs = func, inputs
        self.name = name or name_of(func)
        self.moving = [
            i
            for i, argument in enumerate(inputs)
            if isinstance(argument, Tensor) and argument.requires_grad
        ]
        self.all_outputs = self.call(inputs)
        self.chosen = [i for i, output in enumerate(self.all_outputs) if output.requires_grad]
        self.outputs = [self.all_outputs[i] for i in self.chosen]

    def call(self, inputs) -> list:
        """Call the function; returns its outputs as a list of tensors."""
        outputs = tensors_of(self.func(*inputs))
        for position, output in enumerate(outputs):
            _refuse_other(output, position, self.name)
        return outputs

    def input(self, position) -> Tensor:
        """The input at a position of `moving`."""
        return self.inputs[self.moving[position]]

    def point(self, position) -> numpy.ndarray:
        """The value of an input that requires grad."""
        return numpy.asarray(self.input(position)._array)

    def values(self, chosen, moved="by 0") -> list:
        """The values of chosen outputs in double precision, from a new call.

        moved: how the inputs differ from those of the first call. Raises AssertionError for outputs
        of another number, shape or dtype.
        """
        outputs = self.call(self.inputs)
        self._need_same(moved, "number", len(self.all_outputs), len(outputs))
        for first, second in zip(self.all_outputs, outputs, strict=True):
            self._need_same(moved, "shape", first.shape, second.shape)
            self._need_same(moved, "dtype", first.dtype, second.dtype)
        return [_wide(outputs[i]._array) for i in chosen]

    def _need_same(self, moved, what, before, after):
        if before != after:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed "
                f"{moved}, but got: {what}s {before} and {after}. {self.name} has no derivative "
                "that finite differences could give"
            )

    def slopes(self, position, index, direction, eps, chosen=None) -> list:
        """The derivatives of the outputs along a direction of one input, by a central difference.

        position: the input, by its position in `moving`.
        index: the flat index of the elements that move.
        direction: how far they move, in multiples of `eps`.
        """
        chosen = self.chosen if chosen is None else chosen
        start, values, steps = self.point(position), [], []
        moved_by = f"by {eps:g}"
        if isinstance(index, int):
            place = tuple(int(coordinate) for coordinate in numpy.unravel_index(index, start.shape))
            moved_by = f"on index {place} by {eps:g}"
        with moved(self.input(position)) as put:
            for sign in (1, -1):
                array = start.copy()
                array.reshape(-1)[index] += numpy.asarray(sign * eps * direction).astype(
                    start.dtype
                )
                put(array)
                values.append(self.values(chosen, moved_by))
                steps.append(array.reshape(-1)[index])
        step = _step(*steps, direction, eps)
        return [quotient(*pair, step) for pair in zip(*values, strict=True)]

    def pull(self, gradients, outputs=None) -> list:
        """The gradient of each input that requires grad, an array or None.

        gradients: an array for each output, or None for an undefined gradient.
        """
        outputs = self.outputs if outputs is None else outputs
        with jax.enable_x64(True):
            carried = [None if array is None else jnp.asarray(array) for array in gradients]
        ends = [edge_of(self.input(k)) for k in range(len(self.moving))]
        run = PassTo(True, False, ends)
        run.run([edge_of(output) for output in outputs], carried)
        return [value_of(run.captured.get((node.sequence, output_nr))) for node, output_nr in ends]

    def pull_one(self, i, gradient) -> list:
        """The gradients of the inputs for a gradient of one output."""
        return self.pull([gradient], [self.outputs[i]])

    def push(self, tangents) -> list:
        """The tangent of each output, an array or None.

        tangents: an array for each input that requires grad, or None for an undefined tangent.
        """
        inputs = list(self.inputs)
        with forward_ad.dual_level(), jax.enable_x64(True):
            for position, tangent in zip(self.moving, tangents, strict=True):
                if tangent is not None:
                    dual = forward_ad.make_dual(inputs[position], wrap(jnp.asarray(tangent)))
                    inputs[position] = dual
            outputs = self.call(inputs)
            output_tangents = [forward_ad.unpack_dual(outputs[i]).tangent for i in self.chosen]
        return [None if tangent is None else tangent._array for tangent in output_tangents]

    def push_one(self, position, tangent) -> list:
        """The tangents of the outputs for a tangent of one input; zeros for None."""
        tangents = [numpy.zeros(array.shape, array.dtype) for array in self.arrays()]
        tangents[position] = tangent
        pairs = zip(self.push(tangents), self.outputs, strict=True)
        return [numpy.zeros(o.shape) if t is None else _wide(t) for t, o in pairs]

    def arrays(self) -> list:
        """The JAX arrays of the inputs that require grad."""
        return [tensor._array for tensor in map(self.input, range(len(self.moving)))]


def quotient(above, below, step):
    """A difference quotient; nan where the values are infinite."""
    with numpy.errstate(all="ignore"):
        return (above - below) / step


def tensors_of(returned) -> list:
    """The result of a function, which is one tensor or several, as a list."""
    return list(returned) if isinstance(returned, tuple | list) else [returned]


@contextlib.contextmanager
def moved(tensor):
    """Yield a function that overwrites a tensor in place; restore the tensor at the end.

    In place, because the checked function may hold the tensor itself. The graph and the tensor's
    version do not change.
    """
    counter, start = counter_of(tensor), tensor._array
    version = counter.value

    def put(array):
        with jax.enable_x64(True):
            assign(tensor, wrap(jax.device_put(array, start.sharding)), False)

    try:
        yield put
    finally:
        assign(tensor, wrap(start), False)
        counter.value = version


def parts(tensor) -> tuple:
    """The units in which a number moves: 1, and for complex numbers 1j."""
    return COMPLEX if tensor.dtype.is_complex else REAL


def one_hot(tensor, index, value=1) -> numpy.ndarray:
    """An array of a tensor's shape and dtype, with `value` at a flat index and zeros elsewhere."""
    flat = numpy.zeros(tensor.shape.numel(), tensor.dtype.numpy)
    flat[index] = value
    return flat.reshape(tensor.shape)


def directions(tensors, generator) -> list:
    """Random arrays of the tensors' shapes and dtypes, with elements between 1 and 2 or -1 and -2.

    An error in one element then appears at its full size in a sum over all.
    """
    return [_direction(tensor, generator) for tensor in tensors]


def _direction(tensor, generator):
    parts = [
        generator.uniform(1, 2, tensor.shape) * generator.choice([-1, 1], tensor.shape)
        for _ in range(2 if tensor.dtype.is_complex else 1)
    ]
    whole = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
    return whole.astype(tensor.dtype.numpy)


def product(first, second) -> float:
    """The inner product of two real arrays; a complex array counts as two real ones."""
    first, second = numpy.asarray(first).reshape(-1), numpy.asarray(second).reshape(-1)
    wide = numpy.complex128 if numpy.iscomplexobj(first) else numpy.float64
    return float(numpy.vdot(first.astype(wide), second).real)


def nodes(tensors):
    """The nodes of the graph of some tensors, the latest first."""
    return in_backward_order([edge_of(tensor)[0] for tensor in tensors if tensor.requires_grad])


def _wide(array) -> numpy.ndarray:
    array = numpy.asarray(array)
    return array.astype(numpy.complex128 if numpy.iscomplexobj(array) else numpy.float64)


def _step(above, below, direction, eps):
    """The step that rounding has left; for a narrow dtype it differs from the step asked for."""
    if numpy.ndim(above):
        return 2 * eps
    step = (_wide(above) - _wide(below)) / direction
    return numpy.real(step) or 2 * eps


def _refuse_other(output, position, name):
    if isinstance(output, Tensor) and not is_sparse(output):
        return
    if is_sparse(output) or hasattr(output, "todense"):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call todense() on the output "
            f"of fn for gradcheck: output {position} of {name} is a {type(output).__name__}"
        )
    raise TypeError(
        f"gradcheck: {name} must return a tensor or a tuple of tensors, but its output {position} "
        f"is a {type(output).__name__}"
    )


def name_of(func) -> str:
    """The name of a function, with its file and line."""
    if isinstance(func, functools.partial):
        return name_of(func.func)
    owner = getattr(func, "__self__", None)
    if isinstance(owner, type):
        return f"{owner.__qualname__}.{func.__name__}"
    name = getattr(func, "__qualname__", type(func).__name__).replace("<locals>.", "")
    code = getattr(func, "__code__", None)
    if code is None or (func.__module__ or "").partition(".")[0] == "jaxgrad":
        return name
    return f"{name} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"
