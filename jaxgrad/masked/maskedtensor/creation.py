"""Functions that make masked tensors."""

from __future__ import annotations

from ...core.tracebacks import shows_users_frames
from ...names.missing import missing_in
from ...tape.tensor import Tensor
from .core import MaskedTensor


@shows_users_frames
def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """Return a masked tensor, a leaf, of copies of data and mask.

    The arguments and the errors are those of `MaskedTensor`.

    >>> data, mask = jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([True, False])
    >>> x = jaxgrad.masked.masked_tensor(data, mask, requires_grad=True)
    >>> x.exp().sum().backward()
    >>> x.grad
    MaskedTensor(
      [  2.7183,       --]
    )
    """
    return MaskedTensor(data, mask, requires_grad)


@shows_users_frames
def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """Return a masked tensor of copies of data and mask, with the history of data.

    The arguments and the errors are those of `MaskedTensor`.

    >>> data = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    >>> x = jaxgrad.masked.as_masked_tensor(data, jaxgrad.tensor([True, False]))
    >>> x.exp().sum().backward()
    >>> data.grad
    MaskedTensor(
      [  2.7183,       --]
    )
    """
    return MaskedTensor._from_values(data, mask)


__getattr__ = missing_in(__name__)
