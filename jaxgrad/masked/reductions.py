"""Masked reductions.

Arguments that they share: `input`, a tensor of any shape; `dim`, the dimensions to reduce, all for
None and (); `keepdim`, whether to keep them with extent 1; `dtype`, that of the result; `mask`, a
tensor that broadcasts to the shape of input and is true for the elements to reduce, all for None.
They raise IndexError for a dimension out of range and for a mask with more dimensions than input.
"""

from __future__ import annotations

from .. import ops
from ..core import dtypes
from ..core.tracebacks import shows_users_frames
from ..frontend import factories
from ..tape.tensor import Tensor, is_concrete
from .masks import canonical_dims, combined, input_mask, of_layouts, sum_type


@of_layouts(takes_sparse=True)
def sum(input: Tensor, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Return the sum of the elements that the mask names; 0 where there is none.

    >>> x, mask = jaxgrad.tensor([1.0, 2.0, 3.0]), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.masked.sum(x, mask=mask)
    tensor(4.)
    """
    dims, dtype = canonical_dims(dim, input.ndim), sum_type(input, dtype)
    return ops.sum(combined("sum", input, mask), dims, bool(keepdim), dtype=dtype)


@of_layouts(takes_sparse=True)
def prod(input: Tensor, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Return the product of the elements that the mask names; 1 where there is none.

    >>> x, mask = jaxgrad.tensor([1.0, 2.0, 3.0]), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.masked.prod(x, mask=mask)
    tensor(3.)
    """
    dtype, product = sum_type(input, dtype), combined("prod", input, mask)
    for dimension in reversed(canonical_dims(dim, input.ndim)):
        product = ops.prod(product, dimension, bool(keepdim))
    return product.to(dtype)


@of_layouts(takes_sparse=True)
def amax(input: Tensor, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Return the greatest of the elements that the mask names; -inf where there is none.

    >>> x, mask = jaxgrad.tensor([1.0, 2.0, 3.0]), jaxgrad.tensor([True, True, False])
    >>> jaxgrad.masked.amax(x, mask=mask)
    tensor(2.)
    """
    return _extremum("amax", input, dim, keepdim, dtype, mask)


@of_layouts(takes_sparse=True)
def amin(input: Tensor, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Return the least of the elements that the mask names; inf where there is none.

    >>> x, mask = jaxgrad.tensor([1.0, 2.0, 3.0]), jaxgrad.tensor([False, True, True])
    >>> jaxgrad.masked.amin(x, mask=mask)
    tensor(2.)
    """
    return _extremum("amin", input, dim, keepdim, dtype, mask)


def _extremum(name, input, dim, keepdim, dtype, mask):
    dims = canonical_dims(dim, input.ndim)
    extremum = getattr(ops, name)(combined(name, input, mask), dims, bool(keepdim))
    return extremum.to(input.dtype if dtype is None else dtype)


@of_layouts
def argmax(input: Tensor, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Return the index of the greatest of the elements that the mask names, in the dtype of input.

    dim: an int, or None for the flattened tensor.

    >>> x, mask = jaxgrad.tensor([1.0, 2.0, 3.0]), jaxgrad.tensor([True, True, False])
    >>> jaxgrad.masked.argmax(x, mask=mask)
    tensor(1.)
    """
    return _position("argmax", input, dim, keepdim, dtype, mask)


@of_layouts
def argmin(input: Tensor, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Return the index of the least of the elements that the mask names, in the dtype of input.

    dim: an int, or None for the flattened tensor.

    >>> x, mask = jaxgrad.tensor([1.0, 2.0, 3.0]), jaxgrad.tensor([False, True, True])
    >>> jaxgrad.masked.argmin(x, mask=mask)
    tensor(1.)
    """
    return _position("argmin", input, dim, keepdim, dtype, mask)


def _position(name, input, dim, keepdim, dtype, mask):
    position = getattr(ops, name)(combined(name, input, mask), dim, bool(keepdim))
    return position.to(input.dtype if dtype is None else dtype)


@of_layouts(takes_sparse=True)
def mean(input: Tensor, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Return the mean of the elements that the mask names; NaN where there is none.

    Raises ValueError for integers without `dtype`.

    >>> x, mask = jaxgrad.tensor([1.0, 2.0, 3.0]), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.masked.mean(x, mask=mask)
    tensor(2.)
    """
    result_dtype = input.dtype if dtype is None else dtype
    if result_dtype.category < dtypes.FLOATING:
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {result_dtype}"
        )
    total = sum(input, dim, keepdim=keepdim, dtype=result_dtype, mask=mask)
    return total / _count(input, dim, keepdim, mask)


def _count(input, dim, keepdim, mask):
    """The number of elements to reduce."""
    chosen = factories.ones(input.shape, dtype=dtypes.bool, device=input.device)
    chosen = chosen if mask is None else input_mask(input, mask)
    return chosen.sum(canonical_dims(dim, input.ndim), bool(keepdim))


@of_layouts
def median(input: Tensor, dim: int = -1, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Return the median of the elements that the mask names, the lower one of two.

    It is NaN where there is none, and ValueError for integers. dim: an int.

    >>> x, mask = jaxgrad.tensor([1.0, 2.0, 3.0]), jaxgrad.tensor([False, True, True])
    >>> jaxgrad.masked.median(x, mask=mask)
    tensor(2.)
    """
    is_float = input.dtype.is_floating_point
    numbers = combined("median", input if is_float else input.to(dtypes.float32), mask)
    medians = ops.nanmedian(numbers, canonical_dims(dim, input.ndim)[0], bool(keepdim)).values
    if is_float:
        return medians
    if is_concrete(medians) and medians.isnan().any():
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    return medians.to(input.dtype if dtype is None else dtype)


@of_layouts
def logsumexp(input: Tensor, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Return the logarithm of the sum of exponentials of the elements that the mask names.

    It is -inf where there is none.

    >>> x, mask = jaxgrad.tensor([0.0, 5.0, 0.0]), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.masked.logsumexp(x, mask=mask)
    tensor(0.6931)
    """
    dims = canonical_dims(dim, input.ndim)
    logarithm = ops.logsumexp(combined("logsumexp", input, mask), dims, bool(keepdim))
    return logarithm.to(input.dtype if dtype is None else dtype)


@shows_users_frames
def logaddexp(
    input: Tensor, other: Tensor, *, dtype=None, input_mask=None, other_mask=None
) -> Tensor:
    """Return `log(exp(input) + exp(other))` without the elements that are masked out.

    input, other: tensors whose shapes broadcast. input_mask, other_mask: the mask of each.

    >>> x, mask = jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([True, False])
    >>> jaxgrad.masked.logaddexp(x, x, other_mask=mask)
    tensor([1.6931, 2.0000])
    """
    first = combined("logaddexp", input, input_mask)
    second = combined("logaddexp", other, other_mask)
    return ops.logaddexp(first, second).to(input.dtype if dtype is None else dtype)


@of_layouts
def norm(input: Tensor, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None) -> Tensor:
    """Return the vector norm of order `ord` of the elements that the mask names.

    It is 0 where there is none, and inf for `ord` -inf.

    >>> x, mask = jaxgrad.tensor([3.0, 2.0, 4.0]), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.masked.norm(x, mask=mask)
    tensor(5.)
    """
    numbers = combined("amin" if ord == float("-inf") else "norm", input, mask)
    dims = canonical_dims(dim, input.ndim)
    result_dtype = input.dtype if dtype is None else dtype
    return ops.linalg_vector_norm(numbers, ord, dims, bool(keepdim), dtype=result_dtype)


@of_layouts
def var(
    input: Tensor,
    dim=None,
    unbiased: bool | None = None,
    *,
    correction=None,
    keepdim=False,
    dtype=None,
    mask=None,
) -> Tensor:
    """Return the variance of the elements that the mask names; NaN where there is none.

    correction: the divisor is the number of elements minus this; 1 unless given, and 0 for
    `unbiased=False`.

    >>> x, mask = jaxgrad.tensor([1.0, 2.0, 3.0]), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.masked.var(x, mask=mask)
    tensor(2.)
    """
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0 if unbiased is False else 1
    result_dtype = input.dtype if dtype is None else dtype
    result_dtype = result_dtype if result_dtype.category >= dtypes.FLOATING else dtypes.float32
    average = sum(input, dim, keepdim=True, dtype=result_dtype, mask=mask) / _count(
        input, dim, True, mask
    )
    # masked once more, so that rows without elements give no NaN to the gradient
    centred = combined("sum", input - average, mask)
    total = sum(centred * centred.conj(), dim, keepdim=keepdim, dtype=result_dtype)
    count = (_count(input, dim, keepdim, mask) - correction).clamp(min=0)
    return (total / count).to(result_dtype)


@of_layouts
def std(
    input: Tensor,
    dim=None,
    unbiased: bool | None = None,
    *,
    correction=None,
    keepdim=False,
    dtype=None,
    mask=None,
) -> Tensor:
    """Return the standard deviation of the elements that the mask names, the square root of `var`.

    Where it is 0 its gradient is 0, as that of `jaxgrad.std`.

    >>> x, mask = jaxgrad.tensor([1.0, 2.0, 5.0]), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.masked.std(x, unbiased=False, mask=mask)
    tensor(2.)
    """
    variance = var(
        input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask
    )
    is_zero = variance == 0
    # the square root has an infinite slope at 0
    return ops.where(is_zero, 0, ops.where(is_zero, 1, variance).sqrt())
