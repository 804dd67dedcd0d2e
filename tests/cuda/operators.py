"""The program that test_operators_on_a_gpu.py runs in its own process: operators on the second of
the pretended GPUs, and where their results and gradients are. Arguments: a part, and their number.
"""

import json
import pathlib
import sys
import warnings

import jax

CPU, *GPUS = jax.local_devices()


def local_devices(backend=None):
    if backend in (None, "gpu", "cpu"):
        return {None: [CPU, *GPUS], "gpu": GPUS, "cpu": [CPU]}[backend]
    raise RuntimeError(backend)


jax.local_devices = local_devices

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from helpers import recorded  # noqa: E402 - jaxgrad reads the devices
from helpers.problems import to_tensor  # noqa: E402

PLACE = "cuda:1"


def places(problem):
    """The devices of the results and the gradients, or an error."""
    tensors = [to_tensor(array).to(PLACE) for array in problem.arrays]
    for position in problem.moving:
        tensors[position].requires_grad_()
    try:
        results = problem.outputs(tensors)
        if problem.moving and problem.differentiable:
            directions = [to_tensor(array).to(PLACE) for array in problem.output_gradients()]
            results = [*results, *problem.gradients(tensors, results, directions)]
    except RuntimeError as error:
        return [str(error)[:80]]
    return sorted({str(result.device) for result in results})


def main():
    part, count = map(int, sys.argv[1:])
    samples = {}
    for family, sample in recorded.SAMPLES:
        if sample.markers:
            samples.setdefault(sample.name, (family, sample))
    chosen = [*samples.values()][part::count]
    results = {s.name: places(recorded.problem(f, s, s.fields[0])) for f, s in chosen}
    elsewhere = {name: result for name, result in results.items() if result != [PLACE]}
    print(json.dumps([len(results), elsewhere]))


if __name__ == "__main__":
    with warnings.catch_warnings(action="ignore"):
        main()
