"""Functions that distributions share: torch.distributions.utils."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from .. import ops
from ..autograd.grad_mode import enable_grad
from ..core import dtypes
from ..frontend.factories import full
from ..frontend.random import randn
from ..functions.shape import broadcast_tensors
from ..names.missing import missing_in
from ..tape.tensor import Tensor, is_concrete
from ..tape.torch_function import stands_for_tensor

__all__ = [
    *("broadcast_all", "logits_to_probs", "clamp_probs", "probs_to_logits", "lazy_property"),
    *("tril_matrix_to_vec", "vec_to_tril_matrix"),
]

euler_constant = 0.57721566490153286060


def broadcast_all(*values) -> tuple[Tensor, ...]:
    """Return tensors expanded to the shape to which they broadcast.

    values: tensors of shapes that broadcast, and numbers, which become tensors on the device of the
    first tensor, of its dtype or of the default dtype if that cannot hold them; also objects with
    `__torch_function__`, which overrides `broadcast_tensors`. Raises ValueError for other types.

    >>> from jaxgrad.distributions.utils import broadcast_all
    >>> broadcast_all(jaxgrad.tensor([1.0, 2.0]), 3)
    (tensor([1., 2.]), tensor([3., 3.]))
    """
    first = next((value for value in values if isinstance(value, Tensor)), None)
    tensors = [value if _is_tensor_like(value) else _tensor_of(value, first) for value in values]
    shapes = {tensor.shape if isinstance(tensor, Tensor) else None for tensor in tensors}
    if len(shapes) == 1 and None not in shapes:
        return tuple(tensors)
    return broadcast_tensors(*tensors)


def _is_tensor_like(value):
    return isinstance(value, Tensor) or stands_for_tensor(value)


def _tensor_of(number, like) -> Tensor:
    if not isinstance(number, int | float):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            f"__torch_function__, not {type(number).__name__}"
        )
    if like is None:
        return full((), number, dtype=dtypes.get_default_dtype())
    fits = like.dtype.is_floating_point or not isinstance(number, float)
    dtype = like.dtype if fits else dtypes.get_default_dtype()
    return full((), number, dtype=dtype, device=like.device)


def _options_of(tensor: Tensor) -> dict:
    """The dtype and device of a tensor, as options of a factory."""
    return {"dtype": tensor.dtype, "device": tensor.device}


def _standard_normal(shape: Sequence[int], dtype, device) -> Tensor:
    """Random numbers of mean 0 and variance 1; other packages call it."""
    return randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, count: int) -> Tensor:
    """The sum over the last `count` dimensions."""
    return value.sum(tuple(range(-count, 0))) if count else value


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return the probabilities of logits: the sigmoid of log-odds if binary, else the softmax over
    the last dimension.

    logits: (...) if binary, else (..., k).

    >>> from jaxgrad.distributions.utils import logits_to_probs
    >>> logits_to_probs(jaxgrad.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """
    return ops.sigmoid(logits) if is_binary else ops.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Return probabilities of any shape, kept away from 0 and 1 by the precision of their dtype.

    >>> from jaxgrad.distributions.utils import clamp_probs
    >>> clamp_probs(jaxgrad.tensor([0.0, 0.5]))
    tensor([1.1921e-07, 5.0000e-01])
    """
    eps = dtypes.finfo(probs.dtype).eps
    return ops.clamp(probs, eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the logits of probabilities: log-odds if binary, else logarithms.

    probs: of any shape, kept away from 0 and 1 by `clamp_probs`.

    >>> from jaxgrad.distributions.utils import probs_to_logits
    >>> probs_to_logits(jaxgrad.tensor([0.5]), is_binary=True)
    tensor([0.])
    """
    clamped = clamp_probs(probs)
    logs = ops.log(clamped)
    return logs - ops.log1p(-clamped) if is_binary else logs


class lazy_property:
    """A property that is computed at its first use, and then kept as an attribute.

    Under a trace it is computed at each use, since the tensors of a trace have no values after it.

    >>> class Circle:
    ...     @jaxgrad.distributions.utils.lazy_property
    ...     def area(self):
    ...         print("computed")
    ...         return 3 * 2**2
    >>> circle = Circle()
    >>> circle.area + circle.area
    computed
    24
    """

    def __init__(self, wrapped: Callable):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        if not isinstance(value, Tensor) or is_concrete(value):
            setattr(instance, self.wrapped.__name__, value)
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements of the lower triangle of matrices, row by row.

    mat: (..., n, n). diag: the last diagonal of the triangle, from -n to n - 1. Returns (..., k).
    Raises ValueError for another `diag`.

    >>> from jaxgrad.distributions.utils import tril_matrix_to_vec
    >>> tril_matrix_to_vec(jaxgrad.tensor([[1.0, 0.0], [2.0, 3.0]]))
    tensor([1., 2., 3.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    row, column = np.tril_indices(n, diag)
    flat = mat.reshape(*mat.shape[:-2], n * n)
    return flat[..., (row * n + column).tolist()]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return matrices whose lower triangle has these elements, row by row, and 0 elsewhere.

    vec: (..., k). diag: the last diagonal of the triangle. Returns (..., n, n). Raises ValueError
    if no n has a triangle of k elements.

    >>> from jaxgrad.distributions.utils import vec_to_tril_matrix
    >>> vec_to_tril_matrix(jaxgrad.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    n = _rows(vec.shape[-1], diag)
    row, column = np.tril_indices(n, diag)
    if len(row) != vec.shape[-1]:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    # the element of `vec`, after a 0 in front, that each element of the matrix takes
    places = np.zeros((n, n), int)
    places[row, column] = np.arange(1, len(row) + 1)
    padded = ops.constant_pad_nd(vec, (1, 0), 0)
    return padded[..., places.reshape(-1).tolist()].reshape(*vec.shape[:-1], n, n)


def _rows(count, diag):
    """The rows of a matrix whose triangle has about `count` elements."""
    wide = 1 + 2 * diag
    return round((math.sqrt(wide**2 + 8 * count + 4 * abs(diag) * (diag + 1)) - wide) / 2)


__getattr__ = missing_in(__name__)
