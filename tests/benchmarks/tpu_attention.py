"""Attention of 16,384 queries compiled for a TPU that is not there, and what its program needs:
`python tests/benchmarks/tpu_attention.py second bfloat16`, with libtpu; minutes for each program.
"""

import importlib.util
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")

import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

import jaxgrad

SHAPE = (1, 8, 16384, 128)


def value(*qkv):
    return jaxgrad.ops._scaled_dot_product_flash_attention_for_cpu(*qkv, 0.0, True)[0]


def gradient(*qkv):
    return jax.grad(lambda *x: (value(*x).astype("float32") ** 2).sum(), (0, 1, 2))(*qkv)


def second(*qkv):
    return jax.vjp(gradient, *qkv)[1](qkv)


def forward_over_reverse(*qkv):
    return jax.jvp(gradient, qkv, qkv)[1]


PROGRAMS = {f.__name__: f for f in (value, gradient, second, forward_over_reverse)}


def compiled(function, dtype):
    """The program for one chip of a v5e, with the blocks of accelerators."""
    chip = topologies.get_topology_desc("v5e:2x2", "tpu").devices[0]
    array = jax.ShapeDtypeStruct(SHAPE, dtype, sharding=SingleDeviceSharding(chip))
    jax.default_backend = lambda: "tpu"
    with jax.enable_x64(True):
        return jax.jit(function).trace(*[array] * 3).lower(lowering_platforms=("tpu",)).compile()


if __name__ == "__main__":
    if not importlib.util.find_spec("libtpu"):
        print("skipped: the compiler for TPUs is not installed (pip install libtpu)")
        sys.exit()
    name, dtype = sys.argv[1:]
    begun = time.perf_counter()
    program = compiled(PROGRAMS[name], dtype)
    temporary = program.memory_analysis().temp_size_in_bytes / 2**20
    accessed = program.cost_analysis()["bytes accessed"] / 2**30
    seconds = time.perf_counter() - begun
    print(f"{name}, {dtype}: {temporary:.0f} MiB, {accessed:.2f} GiB, {seconds:.0f} s")
