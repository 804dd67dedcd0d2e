"""Records PyTorch's answers to the samples of operators, in operators/<family>.json.

python tests/oracle/record_operators.py [FAMILY...]     (needs torch 2.13)

A line is a sample over the real or complex numbers: its outputs, and the gradients of its
differentiated inputs for random gradients of the outputs, both from float64, complex numbers as
pairs. "float32" has the outputs' dtypes for inputs of that type, and values where they are not the
others rounded.
"""

import json
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy
import torch
from samples import families

FOLDER = Path(__file__).with_name("operators")
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
    recorded = []
    for wide, output in zip(outputs, run(sample, map(rounded, arrays))[1], strict=True):
        expected, found = numpy.array(numbers(wide)), numpy.array(numbers(output))
        same = numpy.allclose(found, expected, ROUNDING, ROUNDING, equal_nan=True)
        recorded.append([dtype_name(output), None if same else found.tolist()])
    return recorded


def answer(sample, field, seed=0):
    """What PyTorch says of a sample."""
    arrays = sample.draw(field, seed)
    moving, outputs = run(sample, arrays)
    found = gradients(sample, moving, outputs, seed)
    recorded = {
        "outputs": [describe(output) for output in outputs],
        "gradients": [None if gradient is None else numbers(gradient) for gradient in found],
    }
    if field == "real" and any(array.dtype == numpy.float64 for array in arrays):
        recorded["float32"] = in_float32(sample, arrays, outputs)
    return recorded


def line(sample, field):
    try:
        return f"{json.dumps(field)}: {json.dumps(answer(sample, field))}"
    except Exception as error:
        error.add_note(f"in {sample} over the {field} numbers")
        raise


def text(samples):
    """JSON with a line for each answer."""
    entries = []
    for sample in samples:
        answers = (line(sample, field) for field in sample.fields)
        entries.append(f"{json.dumps(sample.id)}: {{\n" + ",\n".join(answers) + "}")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def main(names):
    warnings.simplefilter("ignore")
    FOLDER.mkdir(exist_ok=True)
    for name, samples in families().items():
        if not names or name in names:
            (FOLDER / f"{name}.json").write_text(text(samples))


if __name__ == "__main__":
    main(sys.argv[1:])
