"""Which operator of a program cannot be converted to ONNX, and where the user called it."""

from __future__ import annotations

import contextlib

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from ..core.jax_internals import lines_of, scopes_of
from ..core.symbolic_extents import is_symbolic
from ..core.tracebacks import users_line
from ..export._errors import UserError
from ..export._violations import LAYER, line_of
from ._conversion import converted, is_double
from ._program import ONNXProgram
from .errors import OnnxExporterError, UnsupportedOperatorError

# differences between a model and its conversion, by the bytes of a number
TOLERANCES = {2: (1e-2, 1e-2), 4: (1e-3, 1e-5), 8: (1e-9, 1e-11)}


@contextlib.contextmanager
def names_line():
    """Turn what a trace raises inside into an error that names the line of the user."""
    try:
        yield
    except OnnxExporterError:
        raise
    except Exception as error:  # the model's, jaxgrad's or JAX's
        line = line_of(error)
        place = "" if line == LAYER or isinstance(error, UserError) else f", at {line}"
        raise OnnxExporterError(f"torch.onnx.export: {error}{place}") from error


def check_precision(program: ClosedJaxpr):
    """Raise UnsupportedOperatorError for inputs and outputs of two precisions."""
    avals = [*program.in_avals, *program.out_avals]
    if np.dtype("float64") in [np.dtype(a.dtype) for a in avals] and not is_double(avals):
        raise UnsupportedOperatorError(
            "torch.onnx.export: the model has inputs, parameters or results of float32 and of "
            "float64, and the converter has one precision: bring them to one by .float()"
        )


@contextlib.contextmanager
def names_operator(programs, opset: int, arrays):
    """Turn what the converter, onnxruntime and `check_equal` raise inside into an error that names
    an operator.

    programs: the program, and a function that makes it again with the extents of the example if
    some vary; arrays: inputs for which it is run; None if it is not run.
    """
    try:
        yield
    except Exception as error:  # neither package has a class of its errors
        raise _unsupported(programs, opset, arrays, error) from error


def _compare(program, result: ONNXProgram, arrays):
    outputs = result.run(arrays)
    if any(any(map(is_symbolic, aval.shape)) for aval in program.in_avals):
        return  # what it gives is known for numbers alone
    with jax.enable_x64(True):
        expected = jax.jit(jaxpr_as_fun(program))(*arrays)
    for output, wanted in zip(outputs, map(np.asarray, expected), strict=True):
        # a value inside of the program may have fewer bits
        is_narrowed = wanted.dtype == np.float64 and output.dtype == np.float32
        check_equal(output, wanted.astype(np.float32) if is_narrowed else wanted)


def check_equal(output: np.ndarray, wanted: np.ndarray):
    """Raise OnnxExporterError if two arrays differ by more than rounding."""
    if output.shape != wanted.shape or output.dtype != wanted.dtype:
        raise OnnxExporterError(
            f"the ONNX model gives {output.dtype}{list(output.shape)} for "
            f"{wanted.dtype}{list(wanted.shape)}"
        )
    relative, absolute = TOLERANCES.get(wanted.dtype.itemsize, (0, 0))
    kind = complex if np.iscomplexobj(wanted) else np.float64
    output, wanted = output.astype(kind), wanted.astype(kind)
    if not np.array_equal(np.isnan(output), np.isnan(wanted)):
        raise OnnxExporterError(
            "the ONNX model gives NaN where the model has a number, or reversed"
        )
    if not np.allclose(output, wanted, rtol=relative, atol=absolute, equal_nan=True):
        with np.errstate(all="ignore"):
            error = np.nanmax(np.abs(output - wanted))
        raise OnnxExporterError(f"the ONNX model gives values that differ by {error:.3g}")


def _unsupported(programs, opset, arrays, error) -> UnsupportedOperatorError:
    """The error for a program that fails, which names the operator and the line of the user."""
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    for program in programs:
        program = program if isinstance(program, ClosedJaxpr) else program()
        equation = _first_failing(program, opset, arrays)
        if equation is not None:
            break
    else:
        return UnsupportedOperatorError(f"torch.onnx.export: {reason}")
    if _has_complex(equation.invars + equation.outvars) or _has_complex(program.jaxpr.invars):
        # the converter fails later, or on the inputs: what computes with them is the cause
        with_complex = (e for e in program.jaxpr.eqns if _has_complex(e.invars + e.outvars))
        equation = next(with_complex, equation)
        reason = (
            "it computes with complex numbers, which the operators of ONNX do not take: compute "
            f"with real and imaginary parts ({reason})"
        )
    line = users_line(lines_of(equation))
    place = f", called in {line[0]}, line {line[1]}" if line else ""
    return UnsupportedOperatorError(
        f"torch.onnx.export: {_operator(equation)} cannot be converted to ONNX{place}: {reason}"
    )


def _has_complex(atoms) -> bool:
    return any(np.issubdtype(atom.aval.dtype, np.complexfloating) for atom in atoms)


def _operator(equation) -> str:
    """PyTorch's name of the operator that an equation comes from, or JAX's of its primitive."""
    jaxpr = equation.params.get("call_jaxpr") or equation.params.get("jaxpr")
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    nearest = [scopes_of(part) for part in (equation, *getattr(inner, "eqns", ()))]
    scope = next(filter(None, nearest), "")
    return scope.rpartition("/")[2] or equation.primitive.name


def _first_failing(program, opset, arrays):
    """The first equation up to which a program cannot be converted; None if all of them can be."""
    equations = program.jaxpr.eqns
    low, high = 0, len(equations)
    while low < high:
        middle = (low + high) // 2
        if _fails(_up_to(program, middle), opset, arrays):
            high = middle
        else:
            low = middle + 1
    return equations[low] if low < len(equations) else None


def _up_to(program, number) -> ClosedJaxpr:
    """The program that ends with an equation, and gives the results of this equation."""
    equations = program.jaxpr.eqns[: number + 1]
    outputs = [*equations[-1].outvars]
    debug_info = program.jaxpr.debug_info._replace(result_paths=("",) * len(outputs))
    jaxpr = program.jaxpr.replace(eqns=equations, outvars=outputs, debug_info=debug_info)
    return ClosedJaxpr(jaxpr, program.consts)


def _fails(program, opset, arrays) -> bool:
    try:
        result = ONNXProgram(converted(program, opset))
        result.initialize_inference_session()
        if arrays is not None:
            _compare(program, result, arrays)
    except Exception:
        return True
    return False
