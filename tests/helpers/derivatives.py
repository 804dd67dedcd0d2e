"""The checks of one problem (problems.py), each against an independent oracle.

Against finite differences, PyTorch's recorded answers, and between the ways of asking: reverse and
forward mode, the tape and JAX, compiled and not, batched and one by one.
"""

import jax
import jax.numpy as jnp
import numpy

import jaxgrad
from helpers.problems import pack, to_array, to_tensor, unpack

# relative and absolute
SAME = 1e-10, 1e-12
ROUNDED = 1e-5, 1e-6  # float32
DIFFERENCES = 1e-6, 1e-8

# A central difference of fourth order.
STEP = 1e-3
OFFSETS = numpy.array([-2, -1, 1, 2]) * STEP
WEIGHTS = numpy.array([1, -8, 8, -1]) / (12 * STEP)

BATCH = 4


class Findings(list):
    """A line for each comparison that failed; `compared` counts all."""

    compared = 0

    def equal(self, check, actual, expected):
        self.compared += 1
        if actual != expected:
            self.append(f"{check}: {actual} where {expected} is expected")

    def close(self, check, actual, expected, tolerances=SAME, finite=False):
        """Whether all numbers are close; with `finite` no two nans are equal."""
        self.compared += 1
        actual, expected = numpy.asarray(actual), numpy.asarray(expected)
        relative, absolute = ROUNDED if actual.dtype == numpy.float32 else tolerances
        same = actual.shape == expected.shape and numpy.allclose(
            actual, expected, relative, absolute, equal_nan=not finite
        )
        if not same:
            self.append(f"{check}: {actual.tolist()} where {expected.tolist()} is expected")


def traced(function, problem, *arrays):
    """The results of a function of a problem and arrays, which JAX traces whole.

    The arrays are constants of the program: XLA then computes most of it while it compiles,
    several times faster than it would compile it.
    """

    def program():
        return function(problem, *map(jnp.asarray, arrays))

    with jax.enable_x64(True):
        return jax.tree.map(numpy.asarray, jax.jit(program)())


def packed(tensors):
    return pack(list(map(to_array, tensors)))


def has_derivative(problem):
    return bool(problem.moving and problem.differentiable)


# against PyTorch


def answers(problem, findings):
    """Values and gradients against PyTorch's."""
    outputs, gradients = problem.on_tape()
    recorded = problem.recorded
    findings.equal("number of outputs", len(outputs), len(recorded["outputs"]))
    for output, expected in zip(outputs, recorded["outputs"], strict=True):
        name = str(output.dtype).removeprefix("torch.")
        findings.equal("dtype", name, expected["dtype"])
        findings.equal("shape", list(output.shape), expected["shape"])
        findings.equal("requires_grad", output.requires_grad, expected["requires_grad"])
        findings.close("value", numbers(output), expected["values"])
    if gradients:
        compare_gradients(problem, gradients, findings)


def numbers(tensor):
    """The elements in a row, a complex one as two numbers, as in the recording."""
    array = to_array(tensor).ravel()
    return array.view(array.real.dtype) if numpy.iscomplexobj(array) else array


def compare_gradients(problem, gradients, findings):
    recorded = problem.recorded["gradients"]
    for position, gradient, expected in zip(problem.moving, gradients, recorded, strict=True):
        like = problem.arrays[position]
        expected = numpy.zeros(numbers(to_tensor(like)).size) if expected is None else expected
        what = f"gradient of tensor {position}"
        findings.equal(f"{what}, dtype", to_array(gradient).dtype, like.dtype)
        findings.equal(f"{what}, shape", tuple(gradient.shape), like.shape)
        findings.close(what, numbers(gradient), expected)


def answers_in_float32(problem, findings):
    """Values from inputs in float32 against PyTorch's."""
    narrow = [numpy.float32(a) if a.dtype == numpy.float64 else a for a in problem.arrays]
    outputs = problem.outputs(problem.tensors(narrow))
    recorded = zip(outputs, problem.recorded["float32"], problem.recorded["outputs"], strict=True)
    for output, (dtype, values), wide in recorded:
        findings.equal("float32: dtype", str(output.dtype).removeprefix("torch."), dtype)
        expected = wide["values"] if values is None else values
        findings.close("float32: value", numbers(output), expected, ROUNDED)


# first derivatives


def slope(function, point, direction):
    """The derivative of a function along a direction by finite differences."""
    points = point + OFFSETS[:, None] * direction
    values = jax.vmap(function)(points)
    return sum(weight * value for weight, value in zip(WEIGHTS, values, strict=True))


def forward(function, point, direction):
    return jax.jvp(function, (point,), (direction,))[1]


def reverse(function, point, direction):
    return jax.vjp(function, point)[1](direction)[0]


def alone(function, point, part):
    """The function of some of the coordinates; the others are constants."""

    def of_part(numbers):
        return function(jnp.concatenate([point[: part.start], numbers, point[part.stop :]]))

    return of_part


def first_derivatives(problem, point, inputs, outputs):
    """The compared derivatives, as one program."""
    function = problem.function
    derivatives = {
        "value": function(point),
        "forward": jax.vmap(lambda v: forward(function, point, v))(inputs),
        "reverse": jax.vmap(lambda u: reverse(function, point, u))(outputs),
        "differences": jax.vmap(lambda v: slope(function, point, v))(inputs),
    }
    if len(problem.parts) > 1:
        derivatives |= one_by_one(problem, point, inputs[0], outputs[0])
    return derivatives


def one_by_one(problem, point, direction, output_gradients):
    """The derivatives with respect to each input where the others are constants, put together."""
    functions = [(alone(problem.function, point, part), part) for part in problem.parts]
    return {
        "forward alone": sum(forward(f, point[part], direction[part]) for f, part in functions),
        "reverse alone": jnp.concatenate(
            [reverse(f, point[part], output_gradients) for f, part in functions]
        ),
    }


def first_order(problem, findings):
    """Reverse and forward mode, of all inputs and of each alone, and the tape."""
    directions = problem.directions(3)
    results = traced(first_derivatives, problem, problem.point, *directions)
    moved, pulled = results["forward"], results["reverse"]
    if not problem.sample.kink:
        findings.close("forward", moved, results["differences"], DIFFERENCES, finite=True)
    if numpy.isfinite(moved).all() and numpy.isfinite(pulled).all():
        adjoint(directions, moved, pulled, findings)
    if len(problem.parts) > 1:
        findings.close("forward, inputs alone", results["forward alone"], moved[0])
        findings.close("reverse, inputs alone", results["reverse alone"], pulled[0])
    outputs, gradients = problem.on_tape()
    differentiable = [outputs[i] for i in problem.differentiable]
    findings.close("compiled value", results["value"], packed(differentiable))
    findings.close("reverse", pulled[0], packed(gradients))


def adjoint(directions, moved, pulled, findings):
    """<u, Jv> = <J^T u, v>, to 1e-10 of the sums' largest terms."""
    inputs, outputs = directions
    findings.compared += 1
    difference = abs(outputs @ moved.T - pulled @ inputs.T).max(initial=0)
    scale = (abs(outputs) @ abs(moved).T).max(initial=1)
    if difference > 1e-10 * scale:
        findings.append(f"<u, Jv> - <J^T u, v> is {difference}")


# second derivatives


def second_derivatives(problem, point, v, w, u):
    """Second derivatives of f along v and w, and of <u, f> along v, in all nestings."""

    def gradient(x):
        return reverse(problem.function, x, u)

    def tangent(x):
        return forward(problem.function, x, v)

    return {
        "reverse over reverse": reverse(gradient, point, v),
        "forward over reverse": forward(gradient, point, v),
        "reverse over forward": reverse(tangent, point, u),
        "forward over forward": forward(tangent, point, w),
        "differences of reverse": slope(gradient, point, v),
        "differences of forward": slope(tangent, point, w),
        "tangent": tangent(point),
    }


def second_order(problem, findings):
    """All four nestings, and the tape's create_graph."""
    inputs, outputs = problem.directions(2)
    results = traced(second_derivatives, problem, problem.point, *inputs, outputs[0])
    for name in ("reverse over reverse", "forward over reverse", "reverse over forward"):
        expected = results["differences of reverse"]
        findings.close(name, results[name], expected, DIFFERENCES, finite=True)
    name, expected = "forward over forward", results["differences of forward"]
    findings.close(name, results[name], expected, DIFFERENCES, finite=True)
    of_inputs, of_gradients = twice_on_tape(problem, inputs[0])
    findings.close("create_graph", of_inputs, results["reverse over reverse"])
    findings.close("create_graph, output's gradient", of_gradients, results["tangent"])


def twice_on_tape(problem, direction):
    """The gradient of <gradients, direction> with respect to inputs and outputs' gradients."""
    tensors = problem.tensors()
    output_gradients = [to_tensor(array, True) for array in problem.output_gradients()]
    outputs = problem.outputs(tensors)
    gradients = problem.gradients(tensors, outputs, output_gradients, create_graph=True)
    wanted = [*(tensors[i] for i in problem.moving), *output_gradients]
    like = [problem.arrays[i] for i in problem.moving]
    directions = unpack(direction, like)
    pairs = [p for p in zip(gradients, directions, strict=True) if p[0].requires_grad]
    second_gradients = jaxgrad.autograd.grad(
        [gradient for gradient, _ in pairs],
        wanted,
        [to_tensor(numbers) for _, numbers in pairs],
        materialize_grads=True,
    )
    count = len(problem.moving)
    return packed(second_gradients[:count]), packed(second_gradients[count:])


# batched and compiled


def outputs_and_gradient(problem, output_gradients, *arrays):
    """All outputs, and the gradient of the moving inputs, by JAX."""
    outputs = problem.all_outputs(*arrays)
    if not has_derivative(problem):
        return outputs, jnp.zeros(0)
    point = pack([arrays[i] for i in problem.moving])
    gradient = reverse(lambda x: problem.function(x, arrays), point, output_gradients)
    return outputs, gradient


def batchings(problem):
    """Which arguments have a batch dimension: all, only the first, only the last."""
    varying = problem.varying
    return {tuple(chosen) for chosen in (varying, varying[:1], varying[-1:]) if chosen}


def batched(problem, findings):
    """jax.vmap of value and gradient against one problem after another on the tape."""
    draws = [problem.with_seed(seed) for seed in range(1, BATCH + 1)]
    rows = {
        chosen: [mixed(problem, draw, chosen) for draw in draws] for chosen in batchings(problem)
    }
    results = traced(lambda p: {c: over_batch(p, draws, r, c) for c, r in rows.items()}, problem)
    for chosen, (outputs, gradients) in results.items():
        for row, (draw, arrays) in enumerate(zip(draws, rows[chosen], strict=True)):
            expected, expected_gradients = draw.on_tape(draw.tensors(arrays))
            check = f"vmap over tensors {chosen}"
            for output, tensor in zip(outputs, expected, strict=True):
                findings.close(f"{check}, value", output[row], to_array(tensor))
            findings.close(f"{check}, gradient", gradients[row], packed(expected_gradients))


def mixed(problem, draw, chosen):
    """The arguments of a draw in the places that are `chosen`, else those of the problem."""
    both = zip(problem.arrays, draw.arrays, strict=True)
    return [other if i in chosen else before for i, (before, other) in enumerate(both)]


def over_batch(problem, draws, rows, chosen):
    gradients = jnp.stack([pack(draw.output_gradients()) for draw in draws])
    batches = [jnp.stack([row[i] for row in rows]) for i in chosen]
    constants = problem.constants

    def of_one_draw(output_gradients, *arrays):
        inputs = list(constants)
        for position, array in zip(chosen, arrays, strict=True):
            inputs[position] = array
        return outputs_and_gradient(problem, output_gradients, *inputs)

    return jax.vmap(of_one_draw)(gradients, *batches)


def under_jit(problem, findings):
    """jaxgrad.jit of value and gradients against eager ones."""
    tensors = problem.tensors()

    @jaxgrad.jit
    def run(varying, output_gradients):
        inputs = list(tensors)
        for position, tensor in zip(problem.varying, varying, strict=True):
            inputs[position] = tensor
        return problem.on_tape(inputs, output_gradients)

    output_gradients = list(map(to_tensor, problem.output_gradients()))
    results = run([tensors[i] for i in problem.varying], output_gradients)
    for name, actual, expected in zip(
        ("value", "gradient"), results, problem.on_tape(), strict=True
    ):
        for tensor, eager in zip(actual, expected, strict=True):
            findings.equal(f"jit: dtype of {name}", tensor.dtype, eager.dtype)
            findings.close(f"jit: {name}", to_array(tensor), to_array(eager))
