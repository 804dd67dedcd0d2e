"""What is checked: a function at a point, with its values, its gradients and its tangents.

Everything here is in numpy. A complex tensor counts as two real ones: it has a real and an
imaginary part, which are moved, and weighed, each by itself.
"""

from __future__ import annotations

import contextlib
import functools
import os

import jax
import jax.numpy as jnp
import numpy

from ... import autograd
from ...storage.alias import assign
from ...tape.tensor import Tensor, edge_of, wrap
from ...tape.version_counter import counter_of
from .._engine.graph_task import PassTo

REAL, COMPLEX = (1,), (1, 1j)


class Subject:
    """A function at a point.

    `moving`: the positions of the inputs that require grad; `outputs`: those of the first call that
    require grad; `chosen`: their positions among all that the function returns.
    """

    def __init__(self, func, inputs, name=None):
        self.func, self.inputs = func, inputs
        self.name = name or name_of(func)
        self.moving = [
            i for i, each in enumerate(inputs) if isinstance(each, Tensor) and each.requires_grad
        ]
        self.everything = self.call(inputs)
        self.chosen = [i for i, each in enumerate(self.everything) if each.requires_grad]
        self.outputs = [self.everything[i] for i in self.chosen]

    def call(self, inputs) -> list:
        """What the function returns, as a list of tensors."""
        outputs = tensors_of(self.func(*inputs))
        for position, output in enumerate(outputs):
            _refuse_other(output, position, self.name)
        return outputs

    def input(self, position) -> Tensor:
        return self.inputs[self.moving[position]]

    def point(self, position) -> numpy.ndarray:
        """The numbers of an input that moves."""
        return numpy.asarray(self.input(position)._array)

    def values(self, chosen) -> list:
        """Some of the outputs, as they are now, in double precision."""
        outputs = self.call(self.inputs)
        return [_wide(outputs[i]._array) for i in chosen]

    def slopes(self, position, index, direction, eps, chosen=None) -> list:
        """The derivatives of the outputs along a direction of one input, by a central difference.

        index: the elements that are moved, in a row; direction: by how many times `eps`.
        """
        chosen = self.chosen if chosen is None else chosen
        start, found, steps = self.point(position), [], []
        with moved(self.input(position)) as put:
            for sign in (1, -1):
                array = start.copy()
                array.reshape(-1)[index] += numpy.asarray(sign * eps * direction).astype(
                    start.dtype
                )
                put(array)
                found.append(self.values(chosen))
                steps.append(array.reshape(-1)[index])
        step = _step(*steps, direction, eps)
        return [quotient(*pair, step) for pair in zip(*found, strict=True)]

    def pull(self, gradients, outputs=None) -> list:
        """For each input that moves the gradient, an array or None where none arrives.

        gradients: an array for each of the outputs, None for one that stays undefined.
        """
        outputs = self.outputs if outputs is None else outputs
        with jax.enable_x64(True):
            carried = [None if each is None else jnp.asarray(each) for each in gradients]
        ends = [edge_of(self.input(k)) for k in range(len(self.moving))]
        run = PassTo(True, False, ends)
        run.run([edge_of(each) for each in outputs], carried)
        return [run.captured.get((node.sequence, output_nr)) for node, output_nr in ends]

    def pull_one(self, i, gradient) -> list:
        return self.pull([gradient], [self.outputs[i]])

    def push(self, tangents) -> list:
        """For each of the outputs the tangent, an array or None.

        tangents: an array for each input that moves, None for one without tangent.
        """
        forward_ad, given = autograd.forward_ad, list(self.inputs)
        with forward_ad.dual_level(), jax.enable_x64(True):
            for position, tangent in zip(self.moving, tangents, strict=True):
                if tangent is not None:
                    dual = forward_ad.make_dual(given[position], wrap(jnp.asarray(tangent)))
                    given[position] = dual
            outputs = self.call(given)
            found = [forward_ad.unpack_dual(outputs[i]).tangent for i in self.chosen]
        return [None if each is None else each._array for each in found]

    def push_one(self, position, tangent) -> list:
        """The tangents of the outputs where one input moves, zeros for those that do not."""
        tangents = [numpy.zeros(each.shape, each.dtype) for each in self.arrays()]
        tangents[position] = tangent
        pairs = zip(self.push(tangents), self.outputs, strict=True)
        return [numpy.zeros(o.shape) if t is None else _wide(t) for t, o in pairs]

    def arrays(self) -> list:
        return [each._array for each in map(self.input, range(len(self.moving)))]


def quotient(above, below, step):
    """A difference quotient, nan where the values are infinite."""
    with numpy.errstate(all="ignore"):
        return (above - below) / step


def tensors_of(returned) -> list:
    """What a function returned, one or several, as a list."""
    return list(returned) if isinstance(returned, tuple | list) else [returned]


@contextlib.contextmanager
def moved(tensor):
    """Gives a function that gives the tensor other numbers, which it has until the end.

    In place: whoever else holds the tensor sees them, as the function might that is checked. To the
    graph, and to the tensor's version, nothing happens.
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
    """The directions of one number: of a real one, or of a complex one."""
    return COMPLEX if tensor.dtype.is_complex else REAL


def one_hot(tensor, index, value=1) -> numpy.ndarray:
    flat = numpy.zeros(tensor.shape.numel(), tensor.dtype.numpy)
    flat[index] = value
    return flat.reshape(tensor.shape)


def directions(tensors, generator) -> list:
    """Random arrays as the tensors, each part of each number between 1 and 2, or -1 and -2.

    So large that an error of one element shows in a sum over all at its full size.
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
    """The inner product of two arrays of real numbers, a complex one being two."""
    first, second = numpy.asarray(first).reshape(-1), numpy.asarray(second).reshape(-1)
    wide = numpy.complex128 if numpy.iscomplexobj(first) else numpy.float64
    return float(numpy.vdot(first.astype(wide), second).real)


def nodes(tensors):
    """The nodes of the graph that tensors come from, the last ones first."""
    seen, stack = set(), [tensor.grad_fn for tensor in tensors]
    while stack:
        node = stack.pop(0)
        if node is not None and node.sequence not in seen:
            seen.add(node.sequence)
            yield node
            stack.extend(edge[0] for edge in node.next_functions)


def _wide(array) -> numpy.ndarray:
    array = numpy.asarray(array)
    return array.astype(numpy.complex128 if numpy.iscomplexobj(array) else numpy.float64)


def _step(above, below, direction, eps):
    """The step that was made: of a narrow dtype not the one that was asked for."""
    if numpy.ndim(above):
        return 2 * eps
    made = (_wide(above) - _wide(below)) / direction
    return numpy.real(made) or 2 * eps


def _refuse_other(output, position, name):
    if isinstance(output, Tensor):
        return
    if hasattr(output, "todense"):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call todense() on the output "
            f"of fn for gradcheck: output {position} of {name} is a {type(output).__name__}"
        )
    raise TypeError(
        f"gradcheck: {name} must return a tensor or a tuple of tensors, but its output {position} "
        f"is a {type(output).__name__}"
    )


def name_of(func) -> str:
    """A function's name, and where its code is."""
    if isinstance(func, functools.partial):
        return name_of(func.func)
    owner = getattr(func, "__self__", None)
    if isinstance(owner, type):
        return f"{owner.__qualname__}.{func.__name__}"
    name = getattr(func, "__qualname__", type(func).__name__).replace("<locals>.", "")
    code = getattr(func, "__code__", None)
    if code is None or func.__module__.partition(".")[0] == "jaxgrad":
        return name
    return f"{name} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"
