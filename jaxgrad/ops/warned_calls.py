"""Calls of operators that warn: of those that PyTorch deprecates, and of some arguments."""

from __future__ import annotations

import math
import numbers
import warnings

from ..core.primitive import ARRAY
from ..core.tracebacks import users_stacklevel
from ..tape import settings
from ..tape.warn_once import warn_once

CHOLESKY = (
    "torch.cholesky is deprecated in favor of torch.linalg.cholesky: L is "
    "torch.linalg.cholesky(A), and U, of upper=True, is torch.linalg.cholesky(A).mH"
)
QR = (
    "torch.qr is deprecated in favor of torch.linalg.qr, whose mode is 'reduced' for some=True and "
    "'complete' for some=False"
)
TRIANGULAR = (
    "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular, which takes "
    "the triangular matrix first"
)
LU_SOLVE = (
    "torch.lu_solve is deprecated in favor of torch.linalg.lu_solve, which takes the right-hand "
    "side last"
)
SCATTER = (
    "The reduce argument of torch.scatter with Tensor src is deprecated: call "
    "torch.scatter_reduce, which has more reductions"
)
CROSS = (
    "Using torch.cross without specifying the dim arg is deprecated: it takes the first dimension "
    "of 3 elements. Pass dim, or call torch.linalg.cross, which takes the last one"
)
# the kernels of PyTorch whose result depends on an order, by the operator
UNORDERED = {
    "put": "put_",
    "max_unpool2d": "max_unpooling2d_forward_out",
    "max_unpool3d": "max_unpooling3d_forward_out",
}
NOT_DETERMINISTIC = (
    "{} does not have a deterministic implementation, but you set "
    "'torch.use_deterministic_algorithms(True)'. Where indices repeat, which value is written is "
    "left open on GPUs: turn it off for this call, or pass warn_only=True"
)
NO_FREEDOM = (
    "{}(): degrees of freedom is <= 0. Correction should be strictly less than the number of "
    "elements that one result is computed of, {}"
)


def prepare(call):
    """Let a new call warn each time it runs, if calls of its kind do."""
    message = _deprecation(call)
    if message is not None:
        call.attach = lambda leaves, results: warn_once(message)
    elif call.primitive.name in ("std", "var", "std_mean", "var_mean"):
        _prepare_variance(call)
    elif call.primitive.name in UNORDERED and not _accumulates(call):
        call.attach = lambda leaves, results: _alert(UNORDERED[call.primitive.name])


def _accumulates(call) -> bool:
    names = call.primitive.argument_names
    return "accumulate" in names and bool(call.structure[names.index("accumulate")])


def _alert(kernel: str):
    """Raise or warn where deterministic algorithms are asked for."""
    debug_mode = settings.get("debug_mode")
    if debug_mode == 2:
        raise RuntimeError(NOT_DETERMINISTIC.format(kernel))
    if debug_mode:
        warnings.warn(NOT_DETERMINISTIC.format(kernel), stacklevel=users_stacklevel())


def _deprecation(call):
    """What PyTorch says once of the calls of an operator, or of an overload; None: nothing."""
    match call.primitive.rule.schema.full_name:
        case "cholesky":
            return CHOLESKY
        case "qr":
            return QR
        case "triangular_solve":
            return TRIANGULAR
        case "lu_solve":
            return LU_SOLVE
        case "scatter.reduce":
            return SCATTER
        case "cross" if call.structure[2] is None:
            return CROSS


def _prepare_variance(call):
    names, structure = call.primitive.argument_names, call.structure
    key = "correction" if "correction" in names else "unbiased"
    correction = structure[names.index(key)]
    count = math.prod(call.inputs[0].shape) // max(math.prod(call.outputs[0].shape), 1)
    message = NO_FREEDOM.format(call.primitive.name, count)

    def warn(leaves, results):
        subtracted = leaves[1] if correction is ARRAY else correction
        subtracted = 1 if subtracted is None else subtracted
        if isinstance(subtracted, numbers.Number) and count <= subtracted:
            warnings.warn(message, stacklevel=users_stacklevel())

    # a number that is an input differs from call to call
    if correction is ARRAY or count <= (1 if correction is None else correction):
        call.attach = warn
