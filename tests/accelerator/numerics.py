"""Every operator on the device of JAX beside the CPU in float64: values and gradients.

The numbers of each dtype are rounded to it first, so both compute of the same ones.
"""

import sys
import warnings

import jax
import ml_dtypes
import numpy as np
from helpers import recorded

from accelerator.parts import Part
from jaxgrad.tape.tensor import wrap

DTYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
# The largest difference, relative to the largest number of an array or 1. Products of float32 are
# whole on all platforms; TPUs approximate functions of one number further.
TOLERANCES = {
    "float32": {"cpu": 5e-4, "gpu": 5e-4, "tpu": 2e-3},
    "bfloat16": {"cpu": 6e-2, "gpu": 6e-2, "tpu": 6e-2},
    "float16": {"cpu": 1e-2, "gpu": 1e-2, "tpu": 1e-2},
}
# A difference that the CPU has as well, up to this factor, is one of the dtype.
AS_ON_CPU = 4.0


def first_samples() -> list:
    """The first sample of each operator whose numbers are no random ones, over its first field."""
    by_name = {}
    for family, sample in recorded.SAMPLES:
        if family != "random":
            by_name.setdefault(sample.name, (family, sample))
    return [recorded.problem(*pair, pair[1].fields[0]) for pair in by_name.values()]


def narrowed(array, dtype):
    """The array in a dtype; complex numbers in complex64."""
    if array.dtype.kind == "c":
        return array.astype(np.complex64)
    return array.astype(dtype) if array.dtype.kind == "f" else array


def widened(array):
    array = np.asarray(array)
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.float64) if array.dtype in DTYPES.values() else array


def computed(problem, arrays, cotangents, device) -> list:
    """Outputs and gradients on a device, as arrays of NumPy."""
    with jax.enable_x64(True), jax.default_device(device):
        tensors = [wrap(jax.device_put(array, device)) for array in arrays]
        for position in problem.moving:
            tensors[position].requires_grad_()
        outputs = problem.outputs(tensors)
        gradients = ()
        if problem.moving and problem.differentiable:
            cotangents = [wrap(jax.device_put(array, device)) for array in cotangents]
            gradients = problem.gradients(tensors, outputs, cotangents)
        results = [*outputs, *gradients]
        return [widened(np.asarray(result.detach()._array)) for result in results]


def difference(wanted, results) -> float:
    """The largest, relative to the largest number of its array or 1."""
    worst = 0.0
    for theirs, ours in zip(wanted, results, strict=True):
        if theirs.shape != ours.shape:
            return np.inf
        if theirs.dtype.kind not in "fc":
            worst = max(worst, 0.0 if np.array_equal(theirs, ours) else np.inf)
        elif theirs.size:
            is_finite = np.isfinite(theirs) & np.isfinite(ours)
            if not np.array_equal(theirs[~is_finite], ours[~is_finite], equal_nan=True):
                return np.inf
            gaps = np.abs(theirs[is_finite] - ours[is_finite])
            scale = max(1.0, np.abs(theirs[is_finite]).max(initial=0.0))
            worst = max(worst, float(gaps.max(initial=0.0) / scale))
    return worst


def compared(problem, name, device, cpu) -> dict | None:
    """What differs beyond the tolerance and beyond what the CPU differs; None for nothing."""
    arrays = [narrowed(array, DTYPES[name]) for array in problem.arrays]
    cotangents = [narrowed(np.asarray(c), DTYPES[name]) for c in problem.output_gradients()]

    def on(device):
        return computed(problem, arrays, cotangents, device)

    wanted = computed(problem, [*map(widened, arrays)], [*map(widened, cotangents)], cpu)
    try:
        error = difference(wanted, on(device))
    except Exception as raised:
        if refuses(on, cpu):
            return {"refused": True}
        return {"operator": str(problem.sample), "dtype": name, "raised": sentence(raised)}
    if error <= TOLERANCES[name].get(device.platform, TOLERANCES[name]["gpu"]):
        return None
    on_cpu = error if device == cpu else difference(wanted, on(cpu))
    if error <= AS_ON_CPU * on_cpu:
        return {"of the dtype": True}
    row = {"operator": str(problem.sample), "dtype": name}
    return row | {"difference": error, "on the CPU": on_cpu}


def refuses(on, cpu) -> bool:
    """Whether the operator refuses the dtype on the CPU too."""
    try:
        on(cpu)
    except Exception:
        return True
    return False


def sentence(raised) -> str:
    return f"{type(raised).__name__}: {str(raised).splitlines()[0][:200] if str(raised) else ''}"


def main(part: Part):
    device, cpu = jax.devices()[0], jax.devices("cpu")[0]
    problems = first_samples()
    part.result |= {"operators": len(problems), "differences": [], "by dtype": {}}
    by_dtype = part.result["by dtype"]
    for name in DTYPES:
        by_dtype[name] = {"compared": 0, "refused": 0, "of the dtype": 0}
        by_dtype[name]["not reached"] = len(problems)
    # all dtypes of an operator first: a machine that ends early has proved some of each
    for problem in problems:
        if part.is_over():
            break
        for name, counts in by_dtype.items():
            counts["not reached"] -= 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row = compared(problem, name, device, cpu) or {}
            kind = next((kind for kind in ("refused", "of the dtype") if kind in row), "compared")
            counts[kind] += 1
            part.result["differences"] += [row] if "operator" in row else []
        part.write()


if __name__ == "__main__":
    main(Part(*sys.argv[1:]))
