"""Every operator on the device meta: outputs and gradients have the shapes and dtypes that PyTorch
recorded, and the strides that they have under a trace.

It takes the first sample of each, `make test` that of every fourth operator.
"""

import jax
import pytest
from helpers import checks, recorded

import jaxgrad as torch
from jaxgrad.core.aval import strides_of
from jaxgrad.tape.tensor import wrap

# kl_div warns of its mean, as PyTorch's does
pytestmark = pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")


# by name the first sample of an operator, and its family
FIRST = {sample.name: (family, sample) for family, sample in reversed(recorded.SAMPLES)}


def samples():
    for number, (name, (family, sample)) in enumerate(sorted(FIRST.items())):
        marks = [pytest.mark.slow] if number % 4 else []
        yield pytest.param(family, sample, id=name, marks=marks)


def needs_numbers(sample, arrays):
    # as in PyTorch, an index without dimensions must be known
    has_number = any(array.ndim == 0 and array.dtype.kind in "iu" for array in arrays)
    return sample.dynamic or (sample.name == "Tensor.__getitem__" and has_number)


def strides_under_a_trace(problem):
    """The strides of the outputs where JAX traces the operator."""
    strides = []

    def run(*arrays):
        outputs = problem.outputs(list(map(wrap, arrays)))
        strides.extend(strides_of(output._aval) for output in outputs)
        return [output._array for output in outputs]

    with jax.enable_x64(True):
        jax.eval_shape(run, *problem.arrays)
    return strides


@pytest.mark.parametrize(("family", "sample"), list(samples()))
def test_operators_on_meta(family, sample):
    problem = recorded.problem(family, sample, sample.fields[0])
    tensors = [
        torch.tensor(array, device="meta", requires_grad=position in problem.moving)
        for position, array in enumerate(problem.arrays)
    ]
    with torch.device("meta"):  # for what a sample makes by itself
        if needs_numbers(sample, problem.arrays):
            with pytest.raises(RuntimeError, match="meta tensor"):
                problem.outputs(tensors)
            return
        outputs = problem.outputs(tensors)
    for output, answer in zip(outputs, problem.recorded["outputs"], strict=True):
        assert output.is_meta and list(output.shape) == answer["shape"]
        assert output.dtype.numpy.name == answer["dtype"]
        assert output.requires_grad == answer["requires_grad"]
    if family != "random":  # whose numbers cannot be traced
        assert [output.stride() for output in outputs] == strides_under_a_trace(problem)
    if problem.moving and problem.differentiable:
        cotangents = [torch.tensor(g, device="meta") for g in problem.output_gradients()]
        gradients = problem.gradients(tensors, outputs, cotangents)
        for position, gradient in zip(problem.moving, gradients, strict=True):
            like = tensors[position]
            assert gradient.is_meta
            assert (gradient.shape, gradient.dtype) == (like.shape, like.dtype)
    checks.count("meta", len(outputs))
