"""Exported programs against those of the installed PyTorch: signatures, state, errors, numbers.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import types
from pathlib import Path

import models
import numpy as np
import pytest
import torch as pytorch
from helpers import checks, exported_models
from oracle.seed import SEED

import jaxgrad

pytestmark = pytest.mark.filterwarnings("ignore::Warning")  # of PyTorch

OF_FILES = {"resnet": "resnet18", "bert": "bert", "unet": "unet"}


def of_pytorch():
    """The models of helpers/exported_models.py in PyTorch."""
    module = types.ModuleType("exported_models_of_torch")
    source = Path(exported_models.__file__).read_text().replace("jaxgrad", "torch")
    exec(compile(source, exported_models.__file__, "exec"), vars(module))
    known = dict(module.MODELS)
    for name, file in OF_FILES.items():
        known[name] = models.load(file, "torch").model, known[name][1]
    return known


def as_jaxgrad(tensor):
    return jaxgrad.tensor(tensor.detach().numpy())


def rows(program):
    signature = program.graph_signature
    inputs = [(s.kind.name, s.arg.name, s.target, s.persistent) for s in signature.input_specs]
    outputs = [s for s in signature.output_specs if s.kind.name == "USER_OUTPUT"]
    return {
        "inputs": inputs,
        "results": len(outputs),
        "state": [*program.state_dict],
        "constants": [*program.constants],
        "arguments": str(program.call_spec.in_spec),
        "result": str(program.call_spec.out_spec),
        "parameters": [name for name, _ in program.named_parameters()],
        "buffers": [name for name, _ in program.named_buffers()],
    }


def outcome(function):
    try:
        function()
    except Exception as error:
        return type(error).__name__, str(error).split(",")[0]


def exported(library, model, args, count):
    batch = library.export.Dim("batch", min=2, max=count)
    shapes = tuple({0: batch} for _ in args)
    return library.export.export(model, args, dynamic_shapes=shapes)


@pytest.mark.parametrize("name", exported_models.MODELS)
def test_programs_are_pytorchs(name):
    pytorch.manual_seed(SEED)
    make, arguments = of_pytorch()[name]
    model, example = make().eval(), arguments(3)
    mine = exported_models.MODELS[name][0]().eval()
    mine.load_state_dict({key: as_jaxgrad(value) for key, value in model.state_dict().items()})
    expected = exported(pytorch, model, example, 9)
    program = exported(jaxgrad, mine, tuple(map(as_jaxgrad, example)), 9)
    assert rows(program) == rows(expected), SEED
    ranges = [str(known) for known in program.range_constraints.values()]
    assert ranges == [str(known) for known in expected.range_constraints.values()] == ["VR[2, 9]"]
    for count in (2, 5):
        args = arguments(count)
        wanted, results = (
            outputs if isinstance(outputs, tuple) else (outputs,)
            for outputs in (
                expected.module()(*args),
                program.module()(*map(as_jaxgrad, args)),
            )
        )
        for first, second in zip(results, wanted, strict=True):
            first, second = first.detach().numpy(), second.detach().numpy()
            assert first.dtype == second.dtype
            np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-4, err_msg=str(SEED))
    args = arguments(10)
    wanted = outcome(lambda: expected.module()(*args))
    result = outcome(lambda: program.module()(*map(as_jaxgrad, args)))
    assert result == wanted and wanted[0] == "AssertionError", SEED
    checks.count("export")
