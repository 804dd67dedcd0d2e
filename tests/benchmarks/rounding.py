"""Prints the rounding of operators in float32, beside that of PyTorch: the distance to PyTorch's
answer in float64 from the same numbers, of outputs and gradients.

    JAXGRAD_EAGER=host .venv-torch/bin/python tests/benchmarks/rounding.py

An error is the largest of one result, relative to its largest number, in units of 2**-23. Samples
whose float64 answers are infinite or NaN are left out, and those that draw.
"""

import argparse
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers import recorded

import jaxgrad

UNIT = 2.0**-23


def to_single(array):
    return array.astype(np.float32) if array.dtype == np.float64 else array


def to_double(array):
    return array.astype(np.float64) if array.dtype == np.float32 else array


def results(library, sample, arrays):
    """The outputs and the gradients of a sample, of numbers with a fraction."""
    tensors = [library.tensor(array) for array in arrays]
    moving = [t for t, flag in zip(tensors, sample.differentiated, strict=True) if flag]
    for tensor in moving:
        tensor.requires_grad_()
    result = sample.call(library, tensors)
    outputs = list(result) if isinstance(result, tuple | list) else [result]
    ends = [output for output in outputs if output.requires_grad]
    generator = np.random.default_rng(zlib.crc32(sample.id.encode()))
    directions = [
        library.tensor(generator.uniform(-1, 1, tuple(output.shape)).astype(np.float32)).to(
            output.dtype
        )
        for output in ends
    ]
    gradients = library.autograd.grad(ends, moving, directions, allow_unused=True) if ends else []
    kept = [*outputs, *(gradient for gradient in gradients if gradient is not None)]
    kept = [tensor for tensor in kept if isinstance(tensor, library.Tensor)]
    return [tensor.detach().numpy() for tensor in kept if tensor.is_floating_point()]


def error(single, double) -> float | None:
    """The error of a result in units of single precision, relative to its largest number."""
    if single.dtype != np.float32 or not single.size or not np.isfinite(double).all():
        return None
    scale = np.abs(double).max()
    if not 1e-30 < scale < 1e30:
        return None
    return float(np.abs(single - double).max() / scale / UNIT)


def errors(sample) -> list[tuple[float, float]]:
    """By result of a sample the errors of jaxgrad and of PyTorch."""
    arrays = [to_single(array) for array in sample.draw("real")]
    double = results(torch, sample, map(to_double, arrays))
    both = results(jaxgrad, sample, arrays), results(torch, sample, arrays)
    if len(both[0]) != len(double):
        raise ValueError(f"{sample.id}: {len(both[0])} results, and not {len(double)}")
    rows = [tuple(map(error, ours, double)) for ours in both]
    pairs = zip(*rows, strict=True)
    return [pair for pair in pairs if None not in pair]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worst", type=int, default=15, help="how many operators to name")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    by_operator, left_out = {}, {}
    for family, sample in recorded.SAMPLES:
        if family == "random" or "real" not in sample.fields:
            continue
        try:
            by_operator.setdefault(sample.operator, []).extend(errors(sample))
        except Exception as problem:
            left_out[sample.id] = repr(problem)[:100]
    worst = {name: np.max(pairs, axis=0) for name, pairs in by_operator.items() if pairs}
    table = np.array([*worst.values()])
    results_of_all = np.array([pair for pairs in by_operator.values() for pair in pairs])
    print(
        f"{len(worst)} operators, {len(results_of_all)} results; {len(left_out)} samples left out"
    )
    for name, numbers in (("results", results_of_all), ("operators, the worst of each", table)):
        median, maximum = np.median(numbers, axis=0), numbers.max(axis=0)
        text = "median {:.2f} ({:.2f}), worst {:.1f} ({:.1f})"
        print(f"{name}: {text.format(*np.stack([median, maximum]).ravel())} units, PyTorch's in ()")
    ranked = sorted(worst.items(), key=lambda item: -item[1][0] / max(item[1][1], 1))
    for name, (ours, theirs) in ranked[: options.worst]:
        print(f"  {name}: {ours:.1f} ({theirs:.1f})")


if __name__ == "__main__":
    main()
