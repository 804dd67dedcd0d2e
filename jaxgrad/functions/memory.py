"""Functions that change in place which memory a tensor shows; `Tensor` has them as methods."""

from __future__ import annotations

from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary


@api_boundary
def as_strided_(input: Tensor, size, stride, storage_offset=None) -> Tensor:
    """Make a tensor show its memory at strides, and return it; see `as_strided`.

    >>> jaxgrad.as_strided_(jaxgrad.arange(4.0), (2,), (3,))
    tensor([0., 3.])
    """
    return input.as_strided_(size, stride, storage_offset)


@api_boundary
def detach_(input: Tensor) -> Tensor:
    """Make a tensor a leaf that does not require grad, and return it. Raises RuntimeError for a
    view.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> jaxgrad.detach_(x * 2).requires_grad
    False
    """
    return input.detach_()


@api_boundary
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format=None) -> Tensor:
    """Resize a tensor to the shape of another, and return it; see `Tensor.resize_`.

    >>> jaxgrad.resize_as_(jaxgrad.ones(2), jaxgrad.zeros(1))
    tensor([1.])
    """
    return input.resize_as_(the_template, memory_format=memory_format)
