"""Runs ONNX models by onnxruntime.

python read_by_onnxruntime.py FOLDER: for each NAME.onnx it runs the model on the arrays of
NAME.inputs.npz, and writes NAME.outputs.npz.
"""

import sys
from pathlib import Path

sys.modules["jaxgrad"] = sys.modules["torch"] = sys.modules["jax"] = None  # an import raises

import numpy as np
import onnxruntime


def run(path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    inputs = np.load(path.with_suffix(".inputs.npz"))
    names = [value.name for value in session.get_inputs()]
    feed = dict(zip(names, [inputs[name] for name in inputs.files], strict=True))
    np.savez(path.with_suffix(".outputs.npz"), *session.run(None, feed))


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).glob("*.onnx")):
        run(path)
