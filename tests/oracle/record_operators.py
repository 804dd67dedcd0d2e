"""Records what PyTorch answers to the samples of operators: `make record OPERATORS="i0 copysign"`.

make record PARTS=operators

It records all samples, or those of the operators named.

samples/<family>.answers.json has for each sample over the real or complex numbers its outputs, and
the gradients of its differentiated inputs for random gradients of the outputs, both from float64,
complex numbers as pairs. "float32" has the outputs' dtypes for inputs of that type, and values
where they are not the others rounded.

autograd/test_node_names.answers.json has for each sample, field of numbers and output the name of
its node, and the names of its `next_functions`; null where there is no node.
"""

import sys
import warnings
from unittest import mock

import numpy
import torch
from helpers import derivatives, recorded
from helpers.answers import load, save
from oracle import exact
from samples import STAND_INS

STAND_INS |= exact.STAND_INS

ROUNDING = 1e-6  # of float32, relative


def numbers(tensor):
    """The elements of a tensor as a flat list, a complex one as two numbers."""
    array = tensor.numpy(force=True).ravel()  # a ZeroTensor needs the force
    return (array.view(array.real.dtype) if numpy.iscomplexobj(array) else array).tolist()


def dtype_name(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def run(sample, arrays):
    """The differentiated inputs, and the outputs."""
    tensors = [torch.from_numpy(array) for array in arrays]
    moving = [t for t, flag in zip(tensors, sample.differentiated, strict=True) if flag]
    for tensor in moving:
        tensor.requires_grad_()
    result = sample.call(torch, tensors)
    return moving, [result] if isinstance(result, torch.Tensor) else list(result)


def describe(output):
    return {
        "dtype": dtype_name(output),
        "shape": list(output.shape),
        "requires_grad": output.requires_grad,
        "values": numbers(output),
    }


def gradients(sample, moving, outputs, seed=0):
    """The gradients of `moving`, None for one that was not used."""
    differentiable = [output for output in outputs if output.requires_grad]
    if not differentiable or not moving:
        return [None] * len(moving)
    directions = [
        torch.from_numpy(sample.direction(f"output {i} {seed}", output.shape, dtype_name(output)))
        for i, output in enumerate(differentiable)
    ]
    return torch.autograd.grad(differentiable, moving, directions, allow_unused=True)


def rounded(array):
    return array.astype(numpy.float32) if array.dtype == numpy.float64 else array


def in_float32(sample, arrays, outputs):
    """Dtype of each output, and its values where PyTorch rounds on the way."""
    described = []
    for wide, output in zip(outputs, run(sample, map(rounded, arrays))[1], strict=True):
        expected, values = numpy.array(numbers(wide)), numpy.array(numbers(output))
        same = numpy.allclose(values, expected, ROUNDING, ROUNDING, equal_nan=True)
        described.append([dtype_name(output), None if same else values.tolist()])
    return described


def answer(sample, field, seed=0):
    """What PyTorch says of a sample."""
    arrays = sample.draw(field, seed)
    moving, outputs = run(sample, arrays)
    derivatives = gradients(sample, moving, outputs, seed)
    told = {
        "outputs": [describe(output) for output in outputs],
        "gradients": [None if gradient is None else numbers(gradient) for gradient in derivatives],
    }
    if field == "real" and any(array.dtype == numpy.float64 for array in arrays):
        told["float32"] = in_float32(sample, arrays, outputs)
    return told


def answers(sample):
    """What PyTorch answers over each of the sample's fields."""
    return {field: answer(sample, field) for field in sample.fields}


def node_names(sample):
    """The names of PyTorch's nodes over each of the sample's fields, and those that are recorded
    over a field that it had before: names take no time to compare.
    """
    with mock.patch.dict(STAND_INS):
        # the derivative of PyTorch's operator is wrong or missing, not its node's name
        for name in ("as_strided_scatter", *exact.PYTORCH_HAS):
            STAND_INS.pop(name, None)
        return recorded.all_node_names().get(sample.id, {}) | {
            field: [recorded.node_and_next(output) for output in run(sample, sample.draw(field))[1]]
            for field in sample.fields
        }


def record(ask, sample):
    try:
        return ask(sample)
    except Exception as error:
        error.add_note(f"PyTorch raised this for {sample}")
        raise


def update(path, samples, operators, ask):
    """Records in a file what `ask` answers to the samples, or to those of some operators."""

    def is_asked(sample):
        return not operators or sample.name in operators or sample.operator in operators

    known = load(path)
    new = {sample.id: record(ask, sample) for sample in samples if is_asked(sample)}
    merged = known | new
    table = {sample.id: merged[sample.id] for sample in samples if sample.id in merged}
    save(path, table, *derivatives.SAME)


def main(operators):
    samples = [sample for _, sample in recorded.SAMPLES]
    unknown = set(operators).difference(*((sample.name, sample.operator) for sample in samples))
    if unknown:
        sys.exit(f"tests/samples/ has no sample of {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    for family, members in recorded.FAMILIES.items():
        update(recorded.path_of(family), members, set(operators), answers)
    update(recorded.NODE_NAMES, samples, set(operators), node_names)


if __name__ == "__main__":
    main(sys.argv[1:])
