"""Parameters as one vector, as torch.nn.utils.convert_parameters."""

from __future__ import annotations

from collections.abc import Iterable

from ... import ops
from ...autograd.grad_mode import no_grad
from ...core.pytorch_tensors import type_name
from ...names.missing import missing_in
from ...tape.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the elements of all parameters as one differentiable vector, in row-major order.

    >>> jaxgrad.nn.utils.parameters_to_vector([jaxgrad.ones(2, 1), jaxgrad.zeros(1)])
    tensor([1., 1., 0.])
    """
    return ops.cat([parameter.reshape(-1) for parameter in parameters])


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy consecutive elements of a vector into parameters, the inverse of `parameters_to_vector`.

    Raises TypeError unless `vec` is a tensor.

    >>> x = jaxgrad.zeros(2, 1)
    >>> jaxgrad.nn.utils.vector_to_parameters(jaxgrad.tensor([1.0, 2.0]), [x])
    >>> x
    tensor([[1.],
            [2.]])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type_name(vec)}")
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.copy_(vec[start:end].reshape(parameter.shape))
        start = end


__getattr__ = missing_in(__name__)
