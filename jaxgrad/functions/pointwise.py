"""Pointwise operators."""

from __future__ import annotations

import warnings

from .. import ops
from ..core import dtypes, promotion
from ..core.tracebacks import users_stacklevel
from ..frontend.indexing import nonzero
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from .out import takes_exact_out


@takes_exact_out
def float_power(input: Tensor | complex, exponent: Tensor | complex) -> Tensor:
    """Return `input ** exponent`, computed in float64, or in complex128 for complex operands.

    input, exponent: tensors or numbers, one of them a tensor; shapes broadcast. The gradients are
    those of `pow`. Raises TypeError for two numbers.

    >>> jaxgrad.float_power(jaxgrad.tensor([1, 2, 3]), 2)
    tensor([1., 4., 9.], dtype=torch.float64)
    """
    operands = (input, exponent)
    if not any(isinstance(operand, Tensor) for operand in operands):
        raise TypeError("float_power(): argument 'input' or 'exponent' must be Tensor")
    is_complex = promotion.result_type(*operands).is_complex
    dtype = dtypes.complex128 if is_complex else dtypes.float64
    kind = complex if is_complex else float
    wide = (
        operand.to(dtype) if isinstance(operand, Tensor) else kind(operand) for operand in operands
    )
    return ops.pow(*wide)


@api_boundary
def where(condition: Tensor, input=None, other=None, *, out: Tensor | None = None):
    """Return the elements of `input` where `condition` is true, else those of `other`.

    condition: a bool tensor. input, other: tensors or numbers; all three broadcast and the dtypes
    of the two promote. out: the tensor that receives the result. The gradient goes to the element
    chosen. `where(condition)` alone returns the indices of its nonzero elements, an int64 tensor
    for each dimension. Raises RuntimeError for a condition of another dtype and for shapes that do
    not broadcast.

    >>> jaxgrad.where(jaxgrad.tensor([True, False]), jaxgrad.tensor([1.0, 2.0]), 0.0)
    tensor([1., 0.])
    >>> jaxgrad.where(jaxgrad.tensor([0, 3, 4]))
    (tensor([1, 2]),)
    """
    if input is None and other is None and out is None:
        return nonzero(condition, as_tuple=True)
    if isinstance(condition, Tensor) and condition.dtype is dtypes.uint8:
        warnings.warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be "
            "removed in a future version of PyTorch. Use a boolean condition instead.",
            stacklevel=users_stacklevel(),
        )
    if out is None:
        return ops.where(condition, input, other)
    return ops.where(condition, input, other, out=out)


@api_boundary
def _conj(input: Tensor) -> Tensor:
    """Return a view of the complex conjugate; a real tensor itself."""
    return ops.conj(input)


@api_boundary
def _neg_view(input: Tensor) -> Tensor:
    """Return a view of the negative, to which a write writes the negative."""
    return ops._neg_view(input)
