"""Makes SavedModels of exported programs, as docs/deploy.md has it, and runs them by TensorFlow.

python read_by_tensorflow.py FOLDER: for each NAME.pt2 it calls the SavedModel on the arrays of
NAME.inputs.npz, and writes NAME.outputs.npz.
"""

import dataclasses
import os
import sys
from pathlib import Path

sys.modules["jaxgrad"] = sys.modules["torch"] = None  # an import raises
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import jax
import numpy as np
import tensorflow as tf
from jax.experimental import jax2tf
from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import stablehlo

sys.path.append(str(Path(__file__).parents[1] / "helpers"))
import read_exported

COMPOSED = "builtin.module(func.func(stablehlo-legalize-composite-to-call))"
PERIOD = stablehlo.StablehloCompatibilityRequirement.WEEK_12


def for_tensorflow(program):
    """The program without operators that consist of others, such as top_k of a sort."""
    with ir.Context() as context:
        stablehlo.register_dialect(context)
        stablehlo.register_stablehlo_passes()
        data = program.mlir_module_serialized
        module = stablehlo.deserialize_portable_artifact(context, data)
        passmanager.PassManager.parse(COMPOSED).run(module.operation)
        version = stablehlo.get_version_from_compatibility_requirement(PERIOD)
        data = stablehlo.serialize_portable_artifact_str(str(module), version)
    return dataclasses.replace(program, mlir_module_serialized=data)


def saved(path, folder):
    """The SavedModel of an exported program."""
    program, state = read_exported.read(path)
    program = for_tensorflow(program)
    _, arguments = jax.tree.unflatten(program.in_tree, program.in_avals)[0]
    signature, shapes = [], []
    for aval in arguments:
        extents = [size if isinstance(size, int) else None for size in aval.shape]
        signature.append(tf.TensorSpec(extents, tf.as_dtype(aval.dtype)))
        shapes.append("(" + ", ".join(map(str, aval.shape)) + ")")
    with jax.enable_x64(True):
        convert = jax2tf.convert(
            lambda state, *inputs: program.call(state, inputs)[0],
            polymorphic_shapes=[None, *shapes],
            with_gradient=False,
        )
        module = tf.Module()
        module.variables_of_state = [tf.Variable(array) for array in state.values()]

        def run(*inputs):
            return convert(dict(zip(state, module.variables_of_state, strict=True)), *inputs)

        module.run = tf.function(run, input_signature=signature, autograph=False)
        tf.saved_model.save(module, folder)


def run(path):
    folder = str(path.with_suffix(""))
    saved(path, folder)
    inputs = np.load(path.with_suffix(".inputs.npz"))
    loaded = tf.saved_model.load(folder)  # which holds the variables
    outputs = loaded.run(*[tf.constant(inputs[name]) for name in inputs.files])
    np.savez(path.with_suffix(".outputs.npz"), *[output.numpy() for output in outputs])


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).glob("*.pt2")):
        run(path)
