"""`torch.onnx.export`: a module as a model in ONNX, converted by jax2onnx."""

from __future__ import annotations

import enum
import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..autograd.grad_mode import no_grad
from ..core.tracebacks import shows_users_frames, users_stacklevel
from ..export._deciding import decided
from ..nn.module import Module
from ..tape import pytree
from ..tape.pytree import is_tensor
from ._conversion import converted, packages, share_constants, with_initializers
from ._conversion import optimize as optimize_model
from ._extents import extents_of
from ._program import ONNXProgram
from ._traced import Arguments, in_evaluation, traced
from ._unsupported import check_equal, check_precision, names_line, names_operator
from .errors import OnnxExporterWarning

DEFAULT_OPSET = 20


class TrainingMode(enum.Enum):
    """The mode of the modules during an export; jaxgrad exports in evaluation mode.

    >>> jaxgrad.onnx.TrainingMode.EVAL.value
    0
    """

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


@shows_users_frames
def export(
    model: Module | Callable,
    args: tuple | Any = (),
    f: str | os.PathLike | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: dict[str, Any] | tuple | list | None = None,
    custom_translation_table: dict | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = True,
    artifacts_dir: str | os.PathLike = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Any] | None = None,
    training: TrainingMode = TrainingMode.EVAL,
    profile: bool = False,
    dump_exported_program: bool = False,
    fallback: bool = False,
    do_constant_folding: bool = True,
    operator_export_type: object = None,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: object = False,
    autograd_inlining: bool = True,
) -> ONNXProgram | None:
    """Convert a model to ONNX, in evaluation mode and without gradients.

    model: a module, or a function of tensors; args, kwargs: example arguments, whose tensors are
    the inputs, and all else is part of the model; f: a path, or with `dynamo=False` a file, for the
    model; input_names, output_names: in order; opset_version: 20 if it is None; external_data: the
    parameters go to a second file, f with ".data"; dynamic_shapes: for each argument, by name or by
    position, a dict from dimensions to a name or `Dim` of an extent that varies; dynamic_axes: the
    same by names of inputs; verify: compare with the model by onnxruntime (in PyTorch False is the
    default); report: write the operators to a file in artifacts_dir; export_params: False leaves
    the parameters out of the file; dynamo: False returns None. The other arguments are PyTorch's,
    and are not used.

    The parameters are initializers with their names. It needs `pip install 'jaxgrad[onnx]'`.

    Raises ModuleNotFoundError without this, UnsupportedOperatorError, which names the operator and
    your line, for what the converter lacks, OnnxExporterError if `verify` finds a difference.

    >>> layer, x = jaxgrad.nn.Linear(2, 1), jaxgrad.ones(3, 2)
    >>> try:
    ...     program = jaxgrad.onnx.export(layer, (x,), dynamic_shapes={"input": {0: "batch"}})
    ... except ModuleNotFoundError as error:
    ...     assert "pip install" in str(error)
    """
    args = args if isinstance(args, tuple) else (args,)
    if not dynamo and not kwargs and args and isinstance(args[-1], dict):
        args, kwargs = args[:-1], args[-1]
    _refuse(training, custom_translation_table)
    packages()
    _warn_of_training(model)
    arguments = Arguments(model, args, dict(kwargs or {}))
    names = _named(arguments.names, input_names)
    with names_line():
        extents = extents_of(arguments, names, dynamic_shapes, dynamic_axes)
        trace, _ = decided(extents, lambda shapes: traced(model, arguments, shapes.values()))
    check_precision(trace.program)
    outputs = _named(_names_of_outputs(len(trace.program.out_avals)), output_names)
    arrays = [_array(tensor) for tensor in [*trace.state.values(), *arguments.tensors]]
    expected = _results(model, arguments) if verify else ()
    opset = opset_version or DEFAULT_OPSET
    programs = [trace.program]
    if extents.ranges:
        fixed = [tensor.shape for tensor in arguments.tensors]
        programs.append(lambda: traced(model, arguments, fixed).program)
    with names_operator(programs, opset, arrays if verify else None):
        converted_model = converted(trace.program, opset, [*trace.state, *names], outputs)
        if optimize:
            optimize_model(converted_model)
            share_constants(converted_model)  # before parameters are constants too
        with_initializers(converted_model, trace.state)
        program = ONNXProgram(converted_model)
        if verify:
            results = program.run(arrays[len(trace.state) :])
            for output, wanted in zip(results, expected, strict=True):
                check_equal(output, wanted)
    if report:
        _write_report(program, artifacts_dir)
    if f is not None:
        options = {"external_data": bool(external_data and dynamo)}
        options["include_initializers"] = export_params
        options["keep_initializers_as_inputs"] = keep_initializers_as_inputs
        program.save(f, **options)
    return program if dynamo else None


def _refuse(training, custom_translation_table):
    if training != TrainingMode.EVAL:
        raise NotImplementedError(
            f"torch.onnx.export(training={training}): jaxgrad exports in evaluation mode alone"
        )
    if custom_translation_table:
        raise NotImplementedError(
            "torch.onnx.export(custom_translation_table=...): the converter has one of its own"
        )


def _warn_of_training(model):
    if isinstance(model, Module) and model.training:
        warnings.warn(
            "Exporting a model while it is in training mode: it is exported in evaluation mode. "
            "Calling model.eval() before export is recommended.",
            OnnxExporterWarning,
            stacklevel=users_stacklevel(),
        )


def _named(names: list[str], chosen) -> list[str]:
    """The names, the first of them replaced by those of the user."""
    chosen = list(chosen or ())
    if len(chosen) > len(names):
        raise ValueError(f"{len(chosen)} names for {len(names)} tensors: {chosen}")
    return chosen + names[len(chosen) :]


def _names_of_outputs(count: int) -> list[str]:
    return ["output"] if count == 1 else [f"output_{number}" for number in range(count)]


def _results(model, arguments) -> list[np.ndarray]:
    """What the model gives for the example."""
    with in_evaluation(model), no_grad():
        args, kwargs = arguments.with_tensors(arguments.tensors)
        return [*map(_array, pytree.flatten(model(*args, **kwargs))[0])]


def _array(value) -> np.ndarray:
    return np.asarray(value.detach() if is_tensor(value) else value)


def _write_report(program, folder):
    """Write the inputs, the outputs and the number of nodes of each operator as Markdown."""
    graph = program.model.graph
    counts = Counter(node.op_type for node in graph)
    values = [f"- {value.name}: {value.dtype} {value.shape}" for value in graph.inputs]
    results = [f"- {value.name}: {value.dtype} {value.shape}" for value in graph.outputs]
    rows = [f"| {operator} | {count} |" for operator, count in counts.most_common()]
    lines = ["# ONNX export", "", "## Inputs", "", *values, "", "## Outputs", "", *results, ""]
    lines += ["## Operators", "", "| operator | nodes |", "| --- | ---: |", *rows, ""]
    path = os.path.join(folder, "onnx_export_success.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
