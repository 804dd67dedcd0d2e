"""Which operator of a program cannot be converted to ONNX, and where the user called it."""

from __future__ import annotations

import contextlib

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from ..core.jax_internals import lines_of, scopes_of
from ..core.tracebacks import users_line
from ._conversion import converted
from ._program import ONNXProgram
from .errors import OnnxExporterError, UnsupportedOperatorError

RELATIVE, ABSOLUTE = 1e-3, 1e-5  # differences between a model and its conversion


@contextlib.contextmanager
def names_operator(program: ClosedJaxpr, opset: int, arrays):
    """Turn what the converter, onnxruntime and `check_equal` raise inside into an error that names
    an operator of the program.

    arrays: inputs for which results are compared; None if nothing is.
    """
    try:
        yield
    except Exception as error:  # neither package has a class of its errors
        raise _unsupported(program, opset, arrays, error) from error


def _compare(program, result: ONNXProgram, arrays):
    with jax.enable_x64(True):
        expected = jax.jit(jaxpr_as_fun(program))(*arrays)
    for output, wanted in zip(result.run(arrays), expected, strict=True):
        check_equal(output, np.asarray(wanted))


def check_equal(output: np.ndarray, wanted: np.ndarray):
    """Raise OnnxExporterError if two arrays differ by more than rounding."""
    if output.shape != wanted.shape or output.dtype != wanted.dtype:
        raise OnnxExporterError(
            f"the ONNX model gives {output.dtype}{list(output.shape)} for "
            f"{wanted.dtype}{list(wanted.shape)}"
        )
    if not np.allclose(output, wanted, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True):
        with np.errstate(all="ignore"):
            error = np.nanmax(np.abs(output.astype(np.float64) - wanted.astype(np.float64)))
        raise OnnxExporterError(f"the ONNX model gives values that differ by {error:.3g}")


def _unsupported(program, opset, arrays, error) -> UnsupportedOperatorError:
    """The error for a program that fails, which names the operator and the line of the user."""
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    equation = _first_failing(program, opset, arrays)
    if equation is None:
        return UnsupportedOperatorError(f"torch.onnx.export: {reason}")
    line = users_line(lines_of(equation))
    place = f", called in {line[0]}, line {line[1]}" if line else ""
    return UnsupportedOperatorError(
        f"torch.onnx.export: {_operator(equation)} cannot be converted to ONNX{place}: {reason}"
    )


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
        if arrays is not None:
            _compare(program, result, arrays)
    except Exception:
        return True
    return False
