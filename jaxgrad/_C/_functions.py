"""PyTorch's functions on the graph that its own code and tests call."""

from __future__ import annotations

from ..autograd.function import Function
from ..names.not_provided import names_of
from ..tape.node import AccumulateGrad as AccumulateGrad
from ..tape.tensor import Tensor

__getattr__, __dir__ = names_of(__name__)


class UndefinedGrad:
    """The identity, whose backward pass gives its inputs no gradient: nodes before it get None.

    >>> from jaxgrad._C import _functions
    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> _functions.UndefinedGrad()(x).sum().backward()
    >>> x.grad is None
    True
    """

    def __call__(self, *tensors: Tensor):
        return _results(_Undefined.apply(*tensors))


class DelayedError:
    """The identity, whose backward pass raises RuntimeError with a message.

    message: the text of the error. count: the number of tensors.
    """

    def __init__(self, message: str, count: int):
        self.message, self.count = message, count

    def __call__(self, *tensors: Tensor):
        if len(tensors) != self.count:
            raise ValueError(f"DelayedError: expected {self.count} tensors, but got {len(tensors)}")
        return _results(_Delayed.apply(self.message, *tensors))


def _results(outputs):
    return outputs[0] if len(outputs) == 1 else outputs


class _Undefined(Function):
    @staticmethod
    def forward(ctx, *tensors):
        return tuple([tensor.view_as(tensor) for tensor in tensors])

    @staticmethod
    def backward(ctx, *gradients):
        return tuple([None] * len(gradients))


class _Delayed(Function):
    @staticmethod
    def forward(ctx, message, *tensors):
        ctx.message = message
        return tuple([tensor.view_as(tensor) for tensor in tensors])

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError(ctx.message)
