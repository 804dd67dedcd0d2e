"""Masked operators whose result has the shape of their input.

Arguments that they share: `input`, a tensor of any shape; `dim`, an int; `dtype`, that of the
result; `mask`, a tensor that broadcasts to the shape of input and is true for the elements that
count, all for None. They raise IndexError for a dimension out of range and for a mask with more
dimensions than input.
"""

from __future__ import annotations

from .. import ops
from ..tape.tensor import Tensor
from . import reductions
from .masks import canonical_dims, combined, of_layouts


@of_layouts
def softmax(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """Return the softmax over the elements that the mask names, 0 for the others.

    Rows without elements are NaN.

    >>> x, mask = jaxgrad.tensor([1.0, 9.0, 1.0]), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.masked.softmax(x, 0, mask=mask)
    tensor([0.5000, 0.0000, 0.5000])
    """
    result_dtype, (dim,) = input.dtype if dtype is None else dtype, _first_dim(dim, input)
    return ops.softmax(combined("amax", input, mask), dim, result_dtype)


@of_layouts
def log_softmax(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """Return the logarithm of the softmax over the elements that the mask names.

    It is -inf for the others. Rows without elements are NaN.

    >>> x, mask = jaxgrad.tensor([1.0, 9.0, 1.0]), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.masked.log_softmax(x, 0, mask=mask)
    tensor([-0.6931,    -inf, -0.6931])
    """
    result_dtype, (dim,) = input.dtype if dtype is None else dtype, _first_dim(dim, input)
    return ops.log_softmax(combined("amax", input, mask), dim, result_dtype)


@of_layouts
def softmin(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """Return the softmax of -input over the elements that the mask names, 0 for the others.

    Rows without elements are NaN.

    >>> x, mask = jaxgrad.tensor([1.0, 9.0, 1.0]), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.masked.softmin(x, 0, mask=mask)
    tensor([0.5000, 0.0000, 0.5000])
    """
    result_dtype, (dim,) = input.dtype if dtype is None else dtype, _first_dim(dim, input)
    return ops.softmax(-combined("amin", input, mask), dim, result_dtype)


@of_layouts
def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype=None, mask=None
) -> Tensor:
    """Return input divided by the norm of the elements that the mask names, 0 for the others.

    ord: the order of the norm, as in `norm`. eps: the least divisor.

    >>> x, mask = jaxgrad.tensor([3.0, 9.0, 4.0]), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.masked.normalize(x, 2, 0, mask=mask)
    tensor([0.6000, 0.0000, 0.8000])
    """
    numbers = combined("sum", input, mask)
    length = reductions.norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return numbers / ops.maximum(length, length.new_full((), eps))


@of_layouts
def cumsum(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """Return the running sum of the elements that the mask names.

    >>> x, mask = jaxgrad.tensor([1.0, 2.0, 3.0]), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.masked.cumsum(x, 0, mask=mask)
    tensor([1., 1., 4.])
    """
    result_dtype, (dim,) = input.dtype if dtype is None else dtype, _first_dim(dim, input)
    return ops.cumsum(combined("cumsum", input, mask), dim, dtype=result_dtype)


@of_layouts
def cumprod(input: Tensor, dim: int, *, dtype=None, mask=None) -> Tensor:
    """Return the running product of the elements that the mask names.

    >>> x, mask = jaxgrad.tensor([1.0, 2.0, 3.0]), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.masked.cumprod(x, 0, mask=mask)
    tensor([1., 1., 3.])
    """
    result_dtype, (dim,) = input.dtype if dtype is None else dtype, _first_dim(dim, input)
    return ops.cumprod(combined("cumprod", input, mask), dim, dtype=result_dtype)


def _first_dim(dim, input):
    """The first of the dimensions that `dim` names."""
    return canonical_dims(dim, input.ndim)[:1] or (0,)
