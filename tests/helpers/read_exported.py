"""Reads exported programs with JAX alone, as docs/export.md has it, and runs them.

python read_exported.py FOLDER: for each NAME.pt2 it calls the program on the arrays of
NAME.inputs.npz, and writes NAME.outputs.npz.
"""

import json
import sys
import zipfile
from pathlib import Path

sys.modules["jaxgrad"] = sys.modules["torch"] = None  # an import raises

import jax
import numpy as np
from jax import export


def read(path):
    with zipfile.ZipFile(path) as file:
        program = export.deserialize(bytearray(file.read("program.jax")))
        data = file.read("state.safetensors")
    start = 8 + int.from_bytes(data[:8], "little")
    kinds = {"F16": "float16", "F32": "float32", "F64": "float64", "I64": "int64", "BOOL": "bool"}
    state = {}
    for name, known in json.loads(data[8:start]).items():
        if name != "__metadata__":
            first, last = (start + place for place in known["data_offsets"])
            array = np.frombuffer(data[first:last], kinds[known["dtype"]])
            state[name] = array.reshape(known["shape"])
    return program, state


def run(path):
    program, state = read(path)
    inputs = np.load(path.with_suffix(".inputs.npz"))
    with jax.enable_x64(True):
        outputs, _ = program.call(state, tuple(inputs[name] for name in inputs.files))
    np.savez(path.with_suffix(".outputs.npz"), *outputs)


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).glob("*.pt2")):
        run(path)
