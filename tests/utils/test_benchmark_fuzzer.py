"""Random parameters and tensors for benchmarks: from a seed PyTorch's numbers."""

import importlib

import pytest
from helpers.as_torch import as_torch

import jaxgrad
from jaxgrad.utils.benchmark import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias


@as_torch
def test_draws(torch):
    kinds = importlib.import_module(f"{torch.__name__}.utils.benchmark")
    parameters = [
        kinds.FuzzedParameter("n", 1, 8, "loguniform"),
        [kinds.FuzzedParameter("m", 2, 5, "uniform")],
        kinds.FuzzedParameter("r", 0.5, 1.5, "uniform"),
        kinds.FuzzedParameter("d", 1, 3, "uniform", strict=True),
    ]
    bounds = {"min_elements": 2, "max_elements": 60, "max_allocation_bytes": 400}
    tensors = [
        kinds.FuzzedTensor("x", ("n", "m", 3), (1, 2, 1), dim_parameter="d", **bounds),
        kinds.FuzzedTensor("y", ("m", "n"), probability_contiguous=0.1, dtype=torch.int64),
    ]
    fuzzer = kinds.Fuzzer(parameters, tensors, [lambda drawn: drawn["n"] != 3], seed=5)
    lines = []
    for results, properties, drawn in fuzzer.take(3):
        lines.append([drawn["n"], drawn["m"], drawn["d"], round(drawn["r"], 9)])
        for name, tensor in results.items():
            facts = properties[name]
            order, is_contiguous = facts["order"].tolist(), facts["is_contiguous"]
            lines.append([tensor.flatten()[:2].tolist(), tensor.stride(), order, is_contiguous])
    return [*lines, round(fuzzer.rejection_rate, 9)]


def test_probabilities_by_value():
    """PyTorch 2.13 refuses probabilities that add up to 1."""
    extent = FuzzedParameter("m", distribution={1: 0.0, ParameterAlias("n"): 1.0})
    tensor = FuzzedTensor("x", ("n", "m"), tensor_constructor=lambda size, **_: jaxgrad.zeros(size))
    fuzzer = Fuzzer([FuzzedParameter("n", 2, 4, "uniform"), extent], [tensor], seed=1)
    for tensors, _, drawn in fuzzer.take(4):
        assert tensors["x"].shape == (drawn["n"], drawn["n"]) and tensors["x"].sum() == 0


def test_errors():
    for distribution, words in (
        ("normal", "Unknown distribution"),
        ({1: -0.5, 2: 1.5}, "cannot be negative"),
        ({1: 0.5}, "not normalized"),
    ):
        with pytest.raises(AssertionError, match=words):
            FuzzedParameter("n", distribution=distribution)
    with pytest.raises(AssertionError, match="'minval' must be None"):
        FuzzedParameter("n", 1, distribution={1: 1.0})
    extent = FuzzedParameter("n", 1, 2, "uniform")
    with pytest.raises(ValueError, match="Duplicate names"):
        Fuzzer([extent], [FuzzedTensor("n", (1,))])
    with pytest.raises(ValueError, match="Failed to generate"):
        next(Fuzzer([extent], [FuzzedTensor("x", ("n",), min_elements=3)], seed=0).take(1))
    circle = [FuzzedParameter(a, distribution={ParameterAlias(b): 1.0}) for a, b in ("nm", "mn")]
    with pytest.raises(ValueError, match="cycle"):
        next(Fuzzer(circle, [], seed=0).take(1))
