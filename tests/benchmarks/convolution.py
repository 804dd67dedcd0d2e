"""Measures convolutions and their gradients beside XLA's and PyTorch's in one process.

`.venv-torch/bin/python tests/benchmarks/convolution.py [ROW ...]`, rows from ROWS. Least times in
milliseconds, measured in turns: of wall time, or with `--cpu` of processor time, one thread each,
which a busy machine disturbs least.
"""

import os
import sys

ON_CPU_TIME = "--cpu" in sys.argv
if ON_CPU_TIME:  # before the libraries count the processors
    os.environ["OMP_NUM_THREADS"] = "1"
    os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import time  # noqa: E402
from typing import NamedTuple  # noqa: E402

import figures  # noqa: E402
import jax  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
from jaxgrad.rules import convolution as rules  # noqa: E402


class Row(NamedTuple):
    """Batches of 8, padding "same" before the stride. A transposed convolution is the gradient of
    the input.
    """

    channels: int
    out: int
    size: tuple[int, ...]
    kernel: int
    stride: int = 1
    groups: int = 1
    dilation: int = 1


ROWS = {
    "dense": Row(64, 128, (32, 32), 3),
    "dense-stride": Row(128, 256, (32, 32), 3, 2),
    "dense-5": Row(32, 64, (32, 32), 5),
    "dense-dilated": Row(64, 64, (32, 32), 3, dilation=2),
    "images": Row(3, 64, (64, 64), 7, 2),
    "patches": Row(3, 128, (64, 64), 4, 4),
    "transposed-2": Row(64, 128, (32, 32), 2, 2),
    "transposed-4": Row(64, 128, (32, 32), 4, 2),
    "depthwise": Row(128, 128, (32, 32), 3, groups=128),
    "depthwise-stride": Row(256, 256, (32, 32), 3, 2, 256),
    "depthwise-5": Row(96, 96, (32, 32), 5, groups=96),
    "depthwise-7": Row(96, 96, (16, 16), 7, groups=96),
    "depthwise-dilated": Row(128, 128, (32, 32), 3, groups=128, dilation=2),
    "grouped": Row(256, 256, (32, 32), 3, groups=32),
    "grouped-wide": Row(256, 256, (16, 16), 3, groups=4),
    "pointwise": Row(128, 256, (32, 32), 1),
    "pointwise-stride": Row(256, 512, (32, 32), 1, 2),
    "1d": Row(64, 128, (1024,), 3),
    "1d-7": Row(64, 64, (1024,), 7),
    "1d-dilated": Row(64, 64, (1024,), 3, dilation=8),
    "1d-stride": Row(128, 256, (512,), 4, 2),
    "1d-depthwise": Row(128, 128, (1024,), 5, groups=128),
    "1d-grouped": Row(256, 256, (512,), 3, groups=16),
    "3d": Row(16, 32, (16, 16, 16), 3),
    "3d-stride": Row(32, 64, (16, 16, 16), 3, 2),
    "3d-depthwise": Row(32, 32, (16, 16, 16), 3, groups=32),
}
ROUNDS = figures.rounds(12, 4)


def least_of(functions):
    clock = time.process_time if ON_CPU_TIME else time.perf_counter
    best = dict.fromkeys(functions, float("inf"))
    for turn in range(ROUNDS):
        for name, function in functions.items():
            if turn >= 3 and best[name] > 0.05:
                continue
            begun = clock()
            function()
            best[name] = min(best[name], clock() - begun)
    return best


def compiled(function, *arrays):
    run = jax.jit(function).lower(*arrays).compile()
    return lambda: jax.block_until_ready(run(*arrays))


def products(x, w, grad, numbers):
    """(name, ours, XLA's, PyTorch's) of the value and both gradients."""
    stride, padding, dilation, groups = numbers
    tx, tw, tgrad = (torch.tensor(numpy.asarray(array)) for array in (x, w, grad))
    edges = rules._transposed_padding(grad.shape, w.shape, x.shape, *numbers[:3])

    def of_torch(mask):
        return torch.ops.aten.convolution_backward(
            tgrad, tx, tw, None, stride, padding, dilation, False, [0] * len(stride), groups, mask
        )

    yield (
        "value",
        compiled(lambda x, w: rules.correlate(x, w, *numbers), x, w),
        compiled(lambda x, w: rules._correlate(x, w, *numbers), x, w),
        lambda: torch.convolution(tx, tw, None, *numbers[:3], False, [0] * len(stride), groups),
    )
    yield (
        "of input",
        compiled(lambda grad, w: rules.input_gradient(grad, w, x.shape, *numbers), grad, w),
        compiled(
            lambda grad, w: rules._input_gradient(grad, w, stride, edges, dilation, groups), grad, w
        ),
        lambda: of_torch([True, False, False]),
    )
    yield (
        "of weight",
        compiled(lambda x, grad: rules.weight_gradient(x, grad, w.shape, *numbers), x, grad),
        compiled(lambda x, grad: rules._weight_gradient(x, grad, w.shape, numbers), x, grad),
        lambda: of_torch([False, True, False]),
    )


def measure(row):
    channels, out, size, kernel, stride, groups, dilation = ROWS[row]
    dims, reach = len(size), dilation * (kernel - 1)
    generator = numpy.random.default_rng(0)

    def draw(*shape):
        return jax.numpy.asarray(generator.normal(size=shape), "float32")

    numbers = (stride,) * dims, (reach // 2,) * dims, (dilation,) * dims, groups
    x, w = draw(8, channels, *size), draw(out, channels // groups, *(kernel,) * dims)
    lengths = rules.result_lengths(x.shape[2:], w.shape[2:], *numbers[:3])
    grad = draw(8, out, *lengths)
    for name, ours, xla, torchs in products(x, w, grad, numbers):
        best = least_of({"ours": ours, "XLA": xla, "torch": torchs})
        times = "".join(f"{who} {seconds * 1e3:8.2f}   " for who, seconds in best.items())
        print(f"{row:<18}{name:<10}{times}{best['ours'] / best['torch']:6.2f} of torch", flush=True)
        durations = {who: seconds * 1e3 for who, seconds in best.items()}
        chart = {row: {"jaxgrad": durations.pop("ours"), **durations}}
        title = {"value": "The value"}.get(name, f"The gradient {name}")
        figures.note("m", title, "ms", "torch", chart)


if __name__ == "__main__":
    torch.set_num_threads(1 if ON_CPU_TIME else os.cpu_count())
    for row in [argument for argument in sys.argv[1:] if argument in ROWS] or ROWS:
        measure(row)
