"""Forward mode over the first sample of every operator (samples/), by duals, and nested over every
third operator; `make oracle` takes all others.

A tangent is compared with PyTorch's recorded gradient, by <u, J v> = <J^T u, v>, and with JAX's own
derivative of the operator on arrays; nested with itself and with reverse mode, with JAX's nestings,
which tests/ops/test_operators.py compares with finite differences. One program that JAX traces
whole has all of it: so duals are also made and unpacked in a trace.
"""

import collections

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers import checks, derivatives, duals, recorded
from helpers.problems import pack, to_tensor

pytestmark = pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")

QUICK = 20  # one in so many operators is quick
MOST = 1  # of the samples of an operator
NESTED_STEP = 3  # one in so many operators is nested


def parameters():
    names = list(dict.fromkeys(sample.name for _, sample in recorded.SAMPLES))
    counts = collections.Counter()
    for family, sample in recorded.SAMPLES:
        counts[sample.name] += 1
        if counts[sample.name] > MOST:
            continue
        is_quick = counts[sample.name] == 1 and names.index(sample.name) % QUICK == 0
        marks = [] if is_quick else [pytest.mark.slow]
        yield pytest.param(family, sample, id=f"{family}-{sample}", marks=marks)


SOME = [*parameters()]


def one_of_each():
    """A sample of each operator that is not at a kink."""
    taken = set()
    for parameter in SOME:
        sample = parameter.values[1]
        if not sample.kink and sample.name not in taken:
            taken.add(sample.name)
            yield parameter


NESTED = [*one_of_each()][::NESTED_STEP]  # `make oracle` nests all others


def problems(family, sample):
    candidates = [recorded.problem(family, sample, field) for field in sample.fields]
    return [problem for problem in candidates if derivatives.has_derivative(problem)]


def report(findings):
    checks.count("forward mode", findings.compared)
    assert not findings, "\n".join(findings)


def recorded_gradients(problem):
    """PyTorch's, of <output_gradients, outputs>, as one vector."""
    gradients = []
    for position, gradient in zip(problem.moving, problem.recorded["gradients"], strict=True):
        like = problem.arrays[position]
        count = derivatives.numbers(to_tensor(like)).size
        gradient = numpy.zeros(count) if gradient is None else numpy.asarray(gradient)
        gradient = gradient.view(complex) if numpy.iscomplexobj(like) else gradient
        gradients.append(gradient.reshape(like.shape))
    return pack(gradients)


@pytest.mark.parametrize(("family", "sample"), SOME)
def test_tangents_of_every_operator(family, sample):
    findings = derivatives.Findings()
    for problem in problems(family, sample):
        direction = problem.directions(1)[0][0]
        tangent, gradient = duals.forward(problem, direction), recorded_gradients(problem)
        outputs = pack(problem.output_gradients())
        findings.equal("number of tangents", tangent.shape, outputs.shape)
        if numpy.isfinite(tangent).all() and numpy.isfinite(gradient).all():
            directions = direction[None], outputs[None]
            derivatives.adjoint(directions, tangent[None], gradient[None], findings)
    report(findings)


def ours(problem, v, w, u):
    return {
        "forward": duals.forward(problem, v),
        "forward over forward": duals.forward_over_forward(problem, v, w),
        "forward over reverse": duals.forward_over_reverse(problem, v, u),
        "reverse over forward": duals.reverse_over_forward(problem, v, u),
    }


def of_jax(problem, point, v, w, u):
    def gradient(x):
        return derivatives.reverse(problem.function, x, u)

    def tangent(x):
        return derivatives.forward(problem.function, x, v)

    return {
        "forward": tangent(point),
        "forward over forward": derivatives.forward(tangent, point, w),
        "forward over reverse": derivatives.forward(gradient, point, v),
        "reverse over forward": derivatives.reverse(tangent, point, u),
    }


@pytest.mark.slow
@pytest.mark.parametrize(("family", "sample"), NESTED)
def test_nestings_of_forward_mode_over_every_operator(family, sample):
    findings = derivatives.Findings()
    for problem in problems(family, sample):
        (v, w), (u,) = problem.directions(2)[0], problem.directions(2)[1][:1]
        with jax.enable_x64(True):
            vectors = jax.jit(lambda p=problem, d=(v, w, u): ours(p, *d))()
        expected = derivatives.traced(of_jax, problem, problem.point, v, w, u)
        for name, vector in vectors.items():
            findings.close(name, vector, expected[name])
    report(findings)


@pytest.mark.slow
def test_a_wrong_tangent_is_found():
    """The comparison with PyTorch's gradients can fail."""
    family, sample = next(pair for pair in recorded.SAMPLES if pair[1].name == "sin")
    problem = recorded.problem(family, sample, "real")
    findings, direction = derivatives.Findings(), problem.directions(1)[0][0]
    outputs = pack(problem.output_gradients())
    wrong = duals.forward(problem, direction) + jnp.float32(1e-6)
    gradient = recorded_gradients(problem)
    derivatives.adjoint((direction[None], outputs[None]), wrong[None], gradient[None], findings)
    assert findings
