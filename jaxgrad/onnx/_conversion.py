"""The conversion of programs to ONNX by jax2onnx."""

from __future__ import annotations

import contextlib
import importlib
import logging

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr

from ._expressed import as_function, expressed


def imported(package: str):
    """A package of the extra `onnx`. Raises ModuleNotFoundError if it is not installed."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ModuleNotFoundError(
            f"torch.onnx needs the package {error.name or package}: pip install 'jaxgrad[onnx]'",
            name=error.name,
        ) from error


def packages():
    """The modules `jax2onnx` and `onnx_ir`. Raises ModuleNotFoundError if one is not installed."""
    names = "jax2onnx", "onnx_ir", "onnx_ir.passes.common"
    return [*map(imported, names)][:2]


def converted(program: ClosedJaxpr, opset: int, inputs=None, outputs=None):
    """The `onnx_ir.Model` of a program.

    inputs, outputs: their names. The errors are those of the converter, which have no common class.
    """
    jax2onnx, ir = packages()
    avals = program.in_avals
    with _quiet():
        model = jax2onnx.to_onnx(
            as_function(expressed(program, is_double(avals))),
            [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals],
            model_name="main_graph",
            opset=opset,
            return_mode="ir",
            input_names=inputs,
            output_names=outputs,
            enable_double_precision=is_double(avals),
        )
    for value, aval in zip(model.graph.inputs, avals, strict=True):
        _retype(model.graph, value, ir.DataType.from_numpy(np.dtype(aval.dtype)))
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        for value in node.outputs:
            # what it says of them is wrong at times, and those that read the model find it out
            if not value.is_graph_output():
                value.type = value.shape = None
    return model


def _retype(graph, value, dtype):
    """Give an input the dtype of the program: the converter makes integers int32. It leaves out
    conversions from int32 to int64 and back, which are necessary then.
    """
    declared, value.dtype = value.dtype, dtype
    uses = [use for use in value.uses() if use.node.op_type != "Cast"]
    if declared == dtype or not dtype.is_integer() or not uses:
        return
    _, ir = packages()
    cast = ir.node("Cast", [value], {"to": declared.value})
    cast.outputs[0].dtype, cast.outputs[0].shape = declared, value.shape
    graph.insert_before(graph[0], cast)
    for node, place in uses:
        node.replace_input_with(place, cast.outputs[0])


def is_double(avals) -> bool:
    """Whether floats of 64 bits stay so: the converter has one precision, that of the inputs."""
    dtypes = {np.dtype(aval.dtype) for aval in avals}
    return np.dtype("float64") in dtypes and np.dtype("float32") not in dtypes


def optimize(model):
    """Remove from an `onnx_ir.Model` what is computed twice or not used."""
    common = packages()[1].passes.common
    common.IdentityEliminationPass()(model)
    common.CommonSubexpressionEliminationPass()(model)
    common.RemoveUnusedNodesPass()(model)


def share_constants(model):
    """Give equal constants of an `onnx_ir.Model` one initializer."""
    with _quiet():
        packages()[1].passes.common.DeduplicateInitializersPass()(model)


def with_initializers(model, state):
    """Make the first inputs of an `onnx_ir.Model` initializers. state: tensors by name."""
    _, ir = packages()
    graph = model.graph
    values, graph.inputs[:] = graph.inputs[: len(state)], graph.inputs[len(state) :]
    for value, tensor in zip(values, state.values(), strict=True):
        value.const_value = ir.tensor(np.asarray(tensor.detach()), name=value.name)
        if value.uses():
            graph.register_initializer(value)


@contextlib.contextmanager
def _quiet():
    """Without a handler of its own at the root, where `logging.info`, which the converter calls,
    would install one.
    """
    handler, root = logging.NullHandler(), logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
