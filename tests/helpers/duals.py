"""A problem (problems.py) in forward mode, by duals, alone and nested with reverse mode.

Each function takes a problem and directions of inputs, or of outputs, as real vectors (`pack`), and
gives such a vector.
"""

import numpy
from jax.core import Tracer

import jaxgrad
from helpers.problems import pack, to_array, to_tensor, unpack
from jaxgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from jaxgrad.tape.tensor import wrap


def directions_of(problem, vector):
    """A tangent for each moving input."""
    arrays = unpack(vector, [problem.arrays[i] for i in problem.moving])
    return [to_tensor(numpy.asarray(array)) for array in arrays]


def moved(problem, tensors, vector):
    """The tensors with duals in the places of those that move."""
    duals = list(tensors)
    for position, tangent in zip(problem.moving, directions_of(problem, vector), strict=True):
        duals[position] = make_dual(duals[position], tangent)
    return duals


def tangents_of(problem, outputs):
    """The tangents of the differentiable outputs, zeros for constant ones."""
    return [tangent_of(outputs[i]) for i in problem.differentiable]


def tangent_of(tensor):
    tangent = unpack_dual(tensor).tangent
    return jaxgrad.zeros_like(tensor) if tangent is None else tangent


def packed(tensors):
    return pack([t._array if isinstance(t._array, Tracer) else to_array(t) for t in tensors])


def standing(problem, requires_grad):
    """Tensors of the problem's arrays; constant ones are no part of a trace."""
    tensors = list(map(wrap, problem.constants))
    for position in problem.moving:
        tensors[position] = to_tensor(problem.arrays[position], requires_grad)
    return tensors


def forward(problem, v):
    """The tangents of the outputs along v."""
    with dual_level():
        outputs = problem.outputs(moved(problem, standing(problem, False), v))
        return packed(tangents_of(problem, outputs))


def forward_over_forward(problem, v, w):
    """The tangents along w of the tangents along v."""
    with dual_level():
        outer = moved(problem, standing(problem, False), w)
        with dual_level():
            outputs = problem.outputs(moved(problem, outer, v))
            inner = tangents_of(problem, outputs)
        return packed(list(map(tangent_of, inner)))


def forward_over_reverse(problem, v, u):
    """The tangents along v of the gradients of <u, outputs>."""
    leaves = standing(problem, True)
    with dual_level():
        duals = moved(problem, leaves, v)
        outputs = problem.outputs(duals)
        gradients = problem.gradients(duals, outputs, weights(problem, u))
        return packed(list(map(tangent_of, gradients)))


def reverse_over_forward(problem, v, u):
    """The gradients of <u, tangents of the outputs along v>."""
    leaves = standing(problem, True)
    with dual_level():
        outputs = problem.outputs(moved(problem, leaves, v))
        tangents = tangents_of(problem, outputs)
    pairs = zip(tangents, weights(problem, u), strict=True)
    pairs = [(tangent, weight) for tangent, weight in pairs if tangent.requires_grad]
    wanted = [leaves[i] for i in problem.moving]
    if not pairs:
        return packed(list(map(jaxgrad.zeros_like, wanted)))
    gradients = jaxgrad.autograd.grad(
        [tangent for tangent, _ in pairs],
        wanted,
        [weight for _, weight in pairs],
        materialize_grads=True,
    )
    return packed(gradients)


def weights(problem, u):
    """Output gradients from a vector."""
    like = [numpy.zeros(o.shape, o.dtype) for o in map(numpy.asarray, problem.output_gradients())]
    return [to_tensor(numpy.asarray(array)) for array in unpack(u, like)]
